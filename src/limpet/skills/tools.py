"""Tools that skills bring: a script of theirs, run in the sandbox, with the arguments as JSON on its input.

They are never listed in a prompt: `tool_search` finds them. Policy, taint and approvals see them as any unsafe tool.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import Raw

from limpet.errors import ToolError
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.run import Finished, Job
from limpet.skills.discovery import is_below
from limpet.skills.runner import Runner
from limpet.skills.skill import Skill, ToolFile
from limpet.toolkit.jsonschema import check_arguments
from limpet.toolkit.schema import Bound, Traits
from limpet.toolkit.spill import capped
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, Effect, ToolResult, ToolSpec, text_result

LONGEST_NAME = 64
"""Characters of a tool's name, as providers take it."""
_INTERPRETERS = {".py": "python3", ".sh": "sh", ".bash": "bash", ".js": "node", ".mjs": "node"}


class SkillTool:
    """Implements the port `Tool` over one tool of a skill."""

    exclusive = False
    effect: Effect = "unsafe"

    def __init__(self, skill: Skill, file: ToolFile, runner: Runner) -> None:
        self._skill = skill
        self._file = file
        self._runner = runner
        about = f"{file.description} (of the skill {skill.name})"
        self.spec = ToolSpec(tool_name(skill, file), about, Raw(file.parameters.encode()))

    def bind(self, arguments: str, *, workspace: str) -> Bound:
        """Raises `ArgumentsError`."""
        schema: object = msgspec.json.decode(self._file.parameters)
        values = check_arguments(self.spec.name, arguments, schema)
        sends = self._runner.network.kind != "none"

        async def run(context: ToolContext, /, **given: object) -> ToolResult:
            return await self._run(context, given)

        run.__name__ = self.spec.name
        return Bound(run, Traits("unsafe", False, (), (), "", sends), values=values, workspace=workspace)

    async def _run(self, context: ToolContext, values: dict[str, object]) -> ToolResult:
        job = self._job(context)
        output = bytearray()
        cap = self._runner.limits.output

        def take(data: bytes) -> None:
            output.extend(data[: max(0, cap - len(output))])

        after = self._runner.watch(job)
        command = await self._runner.sandbox.start(job, take)
        finished: Finished | None = None
        try:
            with suppress(BrokenPipeError, TimeoutError):  # it may not want its input; its exit code tells the rest
                await command.write(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
            command.running.close_input()
            finished = await command.wait()
        finally:
            await command.kill()
            moved = after(context.key)
        assert finished is not None
        text, spill, omitted = await capped(bytes(output).decode("utf-8", "replace").strip("\n"), context)
        how = "timed out" if finished.timed_out else f"exit code {finished.exit_code}"
        failed = finished.exit_code != 0
        details = Details(
            summary=how, exit_code=finished.exit_code, spill=spill, omitted=omitted, duration=finished.duration
        )
        said = f"{text}\n[{how}]".lstrip() if failed else text or "(no output)"
        result = text_result("\n".join(filter(None, (said, moved))), details=details, is_error=failed)
        return msgspec.structs.replace(result, trust="external") if job.networked else result

    def _job(self, context: ToolContext) -> Job:
        folder = self._skill.folder
        script = os.path.realpath(os.path.join(folder, self._file.run[0]))
        if not is_below(script, folder) or not os.path.isfile(script):
            raise ToolError(f"{self._file.run[0]!r} is no file of the skill {self._skill.name}")
        lead = [] if os.access(script, os.X_OK) else [_INTERPRETERS.get(os.path.splitext(script)[1], "sh")]
        workspace = os.path.realpath(context.workspace)
        hidden = (".limpet", *context.veil.hidden)
        return Job(
            command=shlex.join([*lead, script, *self._file.run[1:]]),
            workspace=workspace,
            folder=workspace,
            env={"PATH": search_path(), "HOME": workspace, "LANG": "C.UTF-8", "SKILL_DIR": folder},
            timeout=self._file.timeout,
            limits=self._runner.limits,
            hidden=tuple(os.path.join(workspace, one) for one in hidden),
            readonly=(*self._runner.protected(workspace), *self._runner.shown()),
            input="pipe",
            network=self._runner.network,
        )


def tools_of(skills: Iterable[Skill], runner: Runner) -> tuple[SkillTool, ...]:
    """The tools of the skills that can be used and have all that they need; of one name the first."""
    tools: dict[str, SkillTool] = {}
    for skill in skills:
        if not skill.missing and not skill.ungranted:
            for file in skill.tools:
                tools.setdefault(tool_name(skill, file), SkillTool(skill, file, runner))
    return tuple(tools.values())


def tool_name(skill: Skill, file: ToolFile) -> str:
    """`skill_<name>_<tool>`; one that would be too long ends in a hash. Names of skills have hyphens and no `_`, those
    of tools the other way round, so no two are alike."""
    name = f"skill_{skill.name}_{file.name}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
