"""Cases C63 (paths) and C65 (secrets), as far as files and commands go."""

import asyncio
import json
import os

import pytest

from limpet.errors import PathRefusedError
from limpet.sandbox.run import Sandbox
from limpet.testing.context import Recorded, call, tool_context
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_edit import edit_file
from limpet.tools.files_patch import apply_patch
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.tools.files_write import delete_path, write_file
from limpet.tools.policy import BuiltinPolicy

REPORT = Sandbox().report
needs_sandbox = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")


@pytest.fixture
def world(tmp_path):
    space = tmp_path / "w" / "abc"
    (space / "sub").mkdir(parents=True)
    for folder in ("abcdef", "out"):
        (tmp_path / "w" / folder).mkdir()
        (tmp_path / "w" / folder / "s.txt").write_text("SECRET")
    (space / "leak").symlink_to("../out")
    (space / "new").symlink_to("../out/n.txt")
    (space / "inside").symlink_to("sub")
    return space


def outside(world):
    return {
        str(path): path.read_text() for path in world.parent.rglob("*") if path.is_file() and world not in path.parents
    }


PATHS = ["leak/s.txt", "../abcdef/s.txt", "{w}/abcdef/s.txt", "~/x", "new", "sub/../../out/s.txt", "a\0b", "leak", ".."]
TOOLS = [
    (read_file, {}),
    (write_file, {"content": "x"}),
    (edit_file, {"old": "SECRET", "new": "x"}),
    (list_dir, {}),
    (find_files, {"pattern": "*"}),
    (grep, {"pattern": "SECRET"}),
    (delete_path, {}),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("tool", "arguments"), TOOLS, ids=lambda value: getattr(value, "name", ""))
def test_c63_file_tools_refuse_what_leads_out(world, path, tool, arguments):
    if tool is delete_path and path in ("leak", "new"):
        pytest.skip("deletes the link itself, which is inside")
    before = outside(world)
    with pytest.raises(PathRefusedError) as caught:
        call(tool, tool_context(world), path=path.format(w=world.parent), **arguments)
    assert "refused" in str(caught.value)
    assert outside(world) == before


@pytest.mark.parametrize("path", [path for path in PATHS if path not in ("a\0b", "..")])
@pytest.mark.parametrize("section", ["*** Add File: {}\n+x", "*** Update File: {}\n-SECRET\n+x", "*** Delete File: {}"])
def test_c63_patches_refuse_what_leads_out(world, path, section):
    before = outside(world)
    text = f"*** Begin Patch\n{section.format(path.format(w=world.parent))}\n*** End Patch"
    with pytest.raises(PathRefusedError):
        call(apply_patch, tool_context(world), patch=text)
    assert outside(world) == before


def test_c63_links_that_stay_inside_work(world):
    call(write_file, tool_context(world), path="inside/a.txt", content="A")
    assert (world / "sub" / "a.txt").read_text() == "A"
    assert call(read_file, tool_context(world), path="inside/a.txt").text == "A"


def test_c63_searching_does_not_follow_links(world):
    assert "SECRET" not in call(grep, tool_context(world), pattern="[S]ECRET").text
    assert "s.txt" not in call(find_files, tool_context(world), pattern="**/*").text


def test_c63_the_folder_of_a_write_becomes_a_link_while_the_intent_is_committed(world):
    class Swapping(Recorded):
        async def starting(self, intent):
            os.rename(world / "sub", world / "old")
            (world / "sub").symlink_to("../out")

    before = outside(world)
    call(write_file, tool_context(world, recorded=Swapping()), path="sub/s.txt", content="x")
    assert outside(world) == before
    assert (world / "old" / "s.txt").read_text() == "x"


def execute(world, command, **options):
    async def go():
        sandbox = Sandbox()
        try:
            bound = make_exec(sandbox, ExecSettings()).bind(json.dumps({"command": command}), workspace=str(world))
            return await bound.run(tool_context(world, **options))
        finally:
            await sandbox.close()

    return asyncio.run(go())


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "cat leak/s.txt",
        "cat ~/x",
        "F={w}/abcdef/s.txt; cat $F",
        "python3 -c \"print(open('{w}/out/s.txt').read())\"",
        "cat /proc/1/root{w}/out/s.txt",
        "ln -s {w}/out there; cat there/s.txt",
        "echo x > leak/s.txt",
        "echo x > new",
    ],
)
def test_c63_commands_cannot_see_outside(world, command):
    before = outside(world)
    result = execute(world, command.format(w=world.parent))
    assert "SECRET" not in result.text
    assert result.is_error
    assert outside(world) == before


def test_c63_without_a_sandbox_every_command_is_asked_for():
    sandbox = Sandbox(enabled=False)
    tool = make_exec(sandbox, ExecSettings())
    bound = tool.bind('{"command":"cat leak/s.txt"}', workspace="/w")
    verdict = BuiltinPolicy(sandbox).decide(tool, bound)
    assert verdict.decision == "ask"
    assert "cannot be isolated" in verdict.reason


SECRETS = {
    "SEARCH": "tvly-AAAA1111BBBB",
    "TOKEN": "0b0e7f1c-5d3a-4f54-9b43-2f1f6f3c9a10",
    "BOT": "a3f5" * 10,
}


@pytest.mark.parametrize("place", [pytest.param("sandbox", marks=needs_sandbox), "host"])
def test_c65_a_command_has_no_secret_in_its_environment(world, monkeypatch, place):
    for name, value in SECRETS.items():
        monkeypatch.setenv(f"LIMPET_{name}", value)
        monkeypatch.setenv(f"{name}_API_KEY", value)

    async def go():
        sandbox = Sandbox()
        try:
            call_text = json.dumps({"command": "env; echo [$SEARCH_API_KEY]; cat /proc/*/environ", "place": place})
            bound = make_exec(sandbox, ExecSettings()).bind(call_text, workspace=str(world))
            return await bound.run(tool_context(world))
        finally:
            await sandbox.close()

    text = asyncio.run(go()).text
    assert "[]" in text
    if place == "sandbox":
        assert not any(value in text for value in SECRETS.values())
    assert not any(f"{name}_API_KEY" in text.split("[]")[0] for name in SECRETS)


@needs_sandbox
def test_c65_known_values_are_redacted_from_output_and_spill(world):
    (world / "config").write_text(f"key = {SECRETS['SEARCH']}\n" * 200 + "id = 7d444840-9dc0-11d1-b245-5ffdce74fad2\n")
    recorded = Recorded(secrets=SECRETS)
    result = execute(world, "cat config", recorded=recorded, result_limit=1_000)
    spill = (world.parent / "blobs" / result.details.spill).read_text()
    assert SECRETS["SEARCH"] not in result.text + spill
    assert "[secret:SEARCH]" in result.text
    assert "7d444840-9dc0-11d1-b245-5ffdce74fad2" in result.text
