"""Goal and plan follow the path of the log."""

from __future__ import annotations

from limpet.session.log import Log
from limpet.types.content import Text
from limpet.types.entry import Compaction, Entry, GoalEntry, Leaf, Payload, PlanEntry, PlanStep, UserEntry
from limpet.types.message import UserMessage


def log(*payloads: Payload) -> Log:
    """A log of these entries, named `e1 e2 …`, each below the one before or the leaf that a `Leaf` names."""
    found, leaf = Log(), ""
    for seq, payload in enumerate(payloads, start=1):
        found.extend([Entry("s", seq, f"e{seq}", parent=leaf, at=seq, turn="t", payload=payload)])
        leaf = payload.target if isinstance(payload, Leaf) else f"e{seq}"
    return found


SAID = UserEntry(UserMessage((Text("hi"),)))


def test_a_rewind_brings_back_the_goal_of_that_time() -> None:
    found = log(SAID, GoalEntry("one"), SAID, GoalEntry("two"), PlanEntry((PlanStep("x"),)), Leaf("e3"))
    assert found.aims.goal == GoalEntry("one")
    assert found.aims.plan == ()


def test_a_summary_keeps_goal_and_plan() -> None:
    found = log(SAID, GoalEntry("one"), PlanEntry((PlanStep("x", "done"),)), SAID, Compaction("short", first_kept="e4"))
    assert found.aims.facts() == ["Goal: one", "Plan: 1 of 1 steps done"]


def test_the_steps_are_told_in_their_order() -> None:
    steps = (PlanStep("a", "done"), PlanStep("b"), PlanStep("c"))
    assert log(PlanEntry(steps)).aims.facts() == ["Plan: 1 of 3 steps done; next: b"]
    assert log(PlanEntry(steps)).aims.plan_text() == "1. [x] a\n2. [ ] b\n3. [ ] c"
