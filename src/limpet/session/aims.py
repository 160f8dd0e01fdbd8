"""What the agent is after over many turns: the goal and the plan of a session, as the path of its log says."""

from __future__ import annotations

from limpet.types.entry import AssistantEntry, Entry, GoalEntry, PlanEntry, PlanStep
from limpet.types.message import AssistantMessage

MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class Aims:
    """`goal` and `plan` are the newest ones; `steps` answers and `cost` (millionths of a dollar) went into the goal."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.goal: GoalEntry | None = None
        self.plan: tuple[PlanStep, ...] = ()
        self.steps = 0
        self.cost = 0

    def learn(self, entry: Entry) -> None:
        """Take in the next entry of the path."""
        match entry.payload:
            case GoalEntry() as goal:
                if self.goal is None or self.goal.state != "open" or self.goal.text != goal.text:
                    self.steps = self.cost = 0
                self.goal = goal
            case PlanEntry(steps=steps):
                self.plan = steps
            case AssistantEntry(message=message):
                self.steps += 1
                self.cost += message.usage.cost or 0
            case _:
                pass

    @property
    def open(self) -> GoalEntry | None:
        """The goal that is being worked on."""
        return self.goal if self.goal is not None and self.goal.state == "open" else None

    def used_up(self, answer: AssistantMessage | None = None) -> str:
        """Which budget of the goal is used up with `answer`, when that was not told yet; empty while it lasts."""
        goal = self.open
        if goal is None or goal.exhausted:
            return ""
        steps = self.steps + (answer is not None)
        cost = (self.cost + (answer.usage.cost or 0 if answer else 0)) / 1e6
        if goal.dollars and cost >= goal.dollars:
            return f"${cost:.2f} of ${goal.dollars:g} are spent"
        if goal.steps and steps >= goal.steps:
            return f"{steps} of {goal.steps} steps are made"
        return ""

    def facts(self) -> list[str]:
        """Lines for the model with each message: the goal and where the plan stands; nothing without them."""
        lines: list[str] = []
        if goal := self.open:
            progress = f" (so far: {goal.progress})" if goal.progress else ""
            over = "; its budget is used up" if goal.exhausted else ""
            lines.append(f"Goal: {goal.text}{progress}{self._budget(goal)}{over}")
        if self.plan:
            done = sum(step.state == "done" for step in self.plan)
            current = next((step.text for step in self.plan if step.state == "in_progress"), "")
            following = next((step.text for step in self.plan if step.state == "pending"), "")
            where = f"; now: {current}" if current else f"; next: {following}" if following else ""
            lines.append(f"Plan: {done} of {len(self.plan)} steps done{where}")
        return lines

    def _budget(self, goal: GoalEntry) -> str:
        parts = [f"{self.steps} of {goal.steps} steps"] if goal.steps else []
        parts += [f"${self.cost / 1e6:.2f} of ${goal.dollars:g}"] if goal.dollars else []
        return f" [used: {', '.join(parts)}]" if parts else ""

    def goal_text(self) -> str:
        """The goal for people."""
        goal = self.goal
        if goal is None:
            return "There is no goal."
        progress = f"\nso far: {goal.progress}" if goal.progress else ""
        over = "\nIts budget is used up." if goal.exhausted and goal.state == "open" else ""
        return f"Goal ({goal.state}): {goal.text}{self._budget(goal)}{progress}{over}"

    def plan_text(self) -> str:
        """The plan for people."""
        return plan_lines(self.plan) or "There is no plan."


def plan_lines(steps: tuple[PlanStep, ...]) -> str:
    """One numbered line for each step."""
    return "\n".join(f"{number}. {MARKS[step.state]} {step.text}" for number, step in enumerate(steps, start=1))
