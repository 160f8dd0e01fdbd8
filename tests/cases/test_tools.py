"""Cases C50 to C53: commands and edits."""

import asyncio
import json
import os
import shlex
import tracemalloc
from pathlib import Path

import pytest

from limpet.errors import ArgumentsError
from limpet.sandbox.limits import Limits
from limpet.sandbox.run import Sandbox
from limpet.testing.context import Recorded, call, tool_context
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_edit import edit_file
from limpet.tools.files_write import write_file
from limpet.types.tool import ToolResult

REPORT = Sandbox().report
PLACES = [
    pytest.param("sandbox", marks=pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")),
    "host",
]


def execute(workspace, place, command, *, settings=None, result_limit=32_000, **arguments) -> ToolResult:
    async def go():
        sandbox = Sandbox()
        tool = make_exec(sandbox, settings or ExecSettings())
        text = json.dumps({"command": command, "place": place, **arguments})
        try:
            async with asyncio.timeout(30):
                return await tool.bind(text, workspace=str(workspace)).run(
                    tool_context(workspace, result_limit=result_limit)
                )
        finally:
            await sandbox.close()

    return asyncio.run(go())


def python(code: str) -> str:
    return f"python3 -c {shlex.quote(code)}"


def children() -> str:
    """Children of this process, zombies too."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def alive(mark: str) -> list[str]:
    """Processes with `mark` in their command line."""
    found: list[str] = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", ["cat", python("input()")])
def test_c50_programs_that_read_get_the_end_of_input(tmp_path, place, command):
    result = execute(tmp_path, place, command, timeout=20)
    assert "timed out" not in result.text
    assert result.details.exit_code in (0, 1)


@pytest.mark.parametrize("place", PLACES)
def test_c50_timeout_keeps_partial_output(tmp_path, place):
    result = execute(tmp_path, place, "echo partial; sleep 60", timeout=1)
    assert result.is_error
    assert result.text == "partial\n[timed out after 1 s; it and its children were killed]"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "command",
    ["$EDITOR file", "$GIT_EDITOR file", "$VISUAL file", "$SSH_ASKPASS 'password?'", "git commit || exit 1"],
)
def test_c50_editors_and_prompts_fail_fast(tmp_path, place, command):
    result = execute(tmp_path, place, command, timeout=20)
    assert result.details.exit_code not in (0, None)


@pytest.mark.parametrize("place", PLACES)
def test_c50_no_terminal_can_be_opened(tmp_path, place):
    code = "import os\ntry:\n    os.open('/dev/tty', os.O_RDWR)\nexcept OSError as error:\n    print('refused')"
    assert execute(tmp_path, place, python(code)).text == "refused\n[exit code 0]"


@pytest.mark.parametrize("place", PLACES)
def test_c51a_a_timeout_leaves_no_descendant_and_no_zombie(tmp_path, place):
    mark, before = f"41{os.getpid()}1", children()
    result = execute(tmp_path, place, f"bash -c 'sleep {mark} & sleep {mark} & wait'", timeout=1)
    assert "timed out after 1 s" in result.text
    assert alive(f"sleep\0{mark}") == []
    assert children() == before


@pytest.mark.parametrize("place", PLACES)
def test_c51b_background_children_are_listed(tmp_path, place):
    mark = f"42{os.getpid()}2"
    result = execute(tmp_path, place, f"sleep {mark} & echo done", timeout=20)
    assert result.text.startswith("done\n[exit code 0]\n[Still running in the background: ")
    assert f"(sleep {mark})" in result.text
    assert alive(f"sleep\0{mark}") == []


@pytest.mark.parametrize("place", PLACES)
def test_c51c_stop_kills_everything(tmp_path, place):
    mark = f"43{os.getpid()}3"

    async def go():
        sandbox = Sandbox()
        tool = make_exec(sandbox, ExecSettings())
        bound = tool.bind(json.dumps({"command": f"sleep {mark}", "place": place}), workspace=str(tmp_path))
        task = asyncio.create_task(bound.run(tool_context(tmp_path)))
        async with asyncio.timeout(20):
            while not alive(f"sleep\0{mark}"):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert alive(f"sleep\0{mark}") == []
        await sandbox.close()

    asyncio.run(go())


@pytest.mark.parametrize("place", PLACES)
def test_c52_split_characters(tmp_path, place):
    code = "import os, time\nos.write(1, b'caf\\xc3')\ntime.sleep(0.05)\nos.write(1, b'\\xa9 ok')"
    assert execute(tmp_path, place, python(code)).text == "café ok\n[exit code 0]"


@pytest.mark.parametrize("place", PLACES)
def test_c52_bytes_that_are_no_text(tmp_path, place):
    result = execute(tmp_path, place, python(r"import os; os.write(1, b'\xff\xfeabc')"))
    assert result.text == "\\xff\\xfeabc\n[exit code 0]"


@pytest.mark.parametrize("place", PLACES)
def test_c52_fallback_encoding(tmp_path, place):
    command = python("import os; os.write(1, '中文'.encode('gbk'))")
    assert execute(tmp_path, place, command, settings=ExecSettings(encoding="cp936")).text == "中文\n[exit code 0]"


def test_c52_people_see_a_last_line_without_secrets(tmp_path):
    recorded = Recorded(secrets={"KEY": "tvly-1"})

    async def go():
        sandbox = Sandbox()
        arguments = '{"command": "echo one; echo tvly-1", "place": "host"}'
        bound = make_exec(sandbox, ExecSettings()).bind(arguments, workspace=str(tmp_path))
        await bound.run(tool_context(tmp_path, recorded=recorded))
        await sandbox.close()

    asyncio.run(go())
    assert recorded.progress
    assert not any("tvly" in line for line in recorded.progress)


@pytest.mark.parametrize("place", PLACES)
def test_c52_colours_and_progress(tmp_path, place):
    code = r"print('\x1b[31mred\x1b[0m'); print('10%\r55%\r100%')"
    assert execute(tmp_path, place, python(code)).text == "red\n100%\n[exit code 0]"


@pytest.mark.parametrize("place", PLACES)
def test_c52_five_megabytes(tmp_path, place):
    command = python("import sys\nfor n in range(100_000): sys.stdout.write(f'{n:049}\\n')")
    result = execute(tmp_path, place, command)
    assert len(result.text) < 33_000
    assert result.text.startswith("0" * 49)
    assert f"{99_999:049}" in result.text
    assert f"{result.details.omitted:,} of 4,999,999 characters" in result.text
    spilled = Path(tmp_path.parent / "blobs" / result.details.spill).read_bytes()
    assert spilled.count(b"\n") == 99_999


def test_c52_memory_is_bounded_by_the_cap(tmp_path):
    cap = 1_000_000
    settings = ExecSettings(limits=Limits(output=cap))
    command = "head -c 20000000 /dev/zero | tr '\\0' 'x' | fold -w 99"

    async def go():
        sandbox = Sandbox()
        try:
            bound = make_exec(sandbox, settings).bind(
                json.dumps({"command": command, "place": "host"}), workspace=str(tmp_path)
            )
            return await bound.run(tool_context(tmp_path))
        finally:
            await sandbox.close()

    tracemalloc.start()
    try:
        result = asyncio.run(go())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "bytes of output not kept" in Path(tmp_path.parent / "blobs" / result.details.spill).read_text()
    assert peak < 3.5 * cap


@pytest.mark.parametrize("place", PLACES)
def test_c52_exit_code_without_output(tmp_path, place):
    result = execute(tmp_path, place, "exit 7")
    assert result.text == "(no output)\n[exit code 7]"
    assert result.is_error
    assert result.details.exit_code == 7


@pytest.mark.parametrize("replace_all", [False, True])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_c53_line_ends_mark_and_mode_are_kept(tmp_path, replace_all, mark):
    path = tmp_path / "f"
    path.write_bytes(mark + b"alpha\r\nbeta\r\ngamma")
    path.chmod(0o755)
    call(edit_file, tool_context(tmp_path), path="f", old="alpha\nbeta", new="ALPHA\nBETA", replace_all=replace_all)
    assert path.read_bytes() == mark + b"ALPHA\r\nBETA\r\ngamma"
    assert path.stat().st_mode & 0o777 == 0o755


def test_c53_mixed_line_ends_stay_where_they_are(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"one\r\ntwo\nthree\r\nfour\n")
    call(edit_file, tool_context(tmp_path), path="f", old="two\n", new="TWO\nmore\n")
    assert path.read_bytes() == b"one\r\nTWO\nmore\nthree\r\nfour\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"path":"a.txt","content":"line1\\nli', "cut off"),
        ('{"path":"a.txt"}', "content: required argument is missing"),
    ],
)
def test_c04_a_call_that_was_cut_off_writes_nothing(tmp_path, arguments, message):
    (tmp_path / "a.txt").write_text("KEEP")
    with pytest.raises(ArgumentsError, match=message):
        write_file.bind(arguments, workspace=str(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "KEEP"
