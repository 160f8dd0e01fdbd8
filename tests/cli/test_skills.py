"""`limpet skills`, and turns with skills, in the real program."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import Ended, ask, run
from tests.skills.folders import skill

NEEDY = (
    "---\nname: tea\ndescription: Tea.\nmetadata: {limpet: {needs: {hosts: [tea.example], secrets: [TEA_KEY]}}}\n---\nX"
)


def skills(home: Path, *arguments: str, stdin: bytes = b"") -> Ended:
    return run(home, "skills", *arguments, stdin=stdin, HOME=str(home / "own"))


def test_list_and_info_say_what_is_missing(tmp_path: Path) -> None:
    skill(tmp_path / "workspace/skills", "tea", "---\nname: tea\ndescription: Tea.\nrequires: [no-such]\n---\nX")
    skill(tmp_path / "own/.agents/skills", "tea")
    listed = skills(tmp_path, "list")
    assert "workspace; lacks bin:no-such" in listed.out
    assert "does not count" in listed.err
    assert "bundled; lacks tool:cron" in listed.out
    assert "lacks tool:web_fetch" not in listed.out
    assert "/tea" in skills(tmp_path, "info", "tea").out
    assert "There is no skill milk" in skills(tmp_path, "info", "milk").err


def test_check_names_faults_with_their_line(tmp_path: Path) -> None:
    skill(tmp_path / "workspace/skills", "tea", "---\nname: tea\ndescription: x\nalways: perhaps\n---\nX")
    found = skills(tmp_path, "check")
    assert found.code == 1
    assert "SKILL.md:4: `always` is neither true nor false" in found.out


def test_a_grant_is_asked_for_audited_and_lost_with_a_change(tmp_path: Path) -> None:
    folder = skill(tmp_path / "workspace/skills", "tea", NEEDY)
    ask(tmp_path, [Reply(text=("hi",))], "agent", "-m", "hello")
    assert "not granted: hosts tea.example; secrets TEA_KEY" in skills(tmp_path, "list").out
    assert skills(tmp_path, "grant", "tea", stdin=b"n\n").code != 0
    granted = skills(tmp_path, "grant", "tea", "--yes")
    assert "limpet secrets set TEA_KEY" in granted.out
    assert "offered" in skills(tmp_path, "list").out
    assert "granted hosts tea.example" in run(tmp_path, "audit", "show").out
    (folder / "SKILL.md").write_text(NEEDY + "Y")
    assert "not granted" in skills(tmp_path, "list").out
    assert "changed since it was granted" in skills(tmp_path, "check").out
    assert skills(tmp_path, "revoke", "tea").code == 0
    assert skills(tmp_path, "revoke", "tea").code != 0


def test_an_update_goes_on_after_a_source_that_is_gone(tmp_path: Path) -> None:
    for name in ("mate", "rum", "tea"):
        skills(tmp_path, "install", str(skill(tmp_path / "from", name)), "--yes")
    for name in ("mate", "rum"):
        shutil.rmtree(tmp_path / "from" / name)
    skill(tmp_path / "other", "tea")
    (tmp_path / "from/tea/more.txt").write_text("more")
    updated = skills(tmp_path, "update", "--yes")
    assert updated.code == 1
    assert all(f"{name}: {tmp_path}/from/{name} does not exist" in updated.err for name in ("mate", "rum"))
    assert (tmp_path / "skills/tea/more.txt").exists()
    refused = skills(tmp_path, "install", str(tmp_path / "other/tea"), "--yes")
    assert refused.code == 2
    assert "--force" in refused.err
    assert skills(tmp_path, "install", str(tmp_path / "other/tea"), "--yes", "--force").code == 0


def test_the_agent_reads_and_runs_a_skill_of_the_home(tmp_path: Path) -> None:
    folder = skill(tmp_path / "skills", "tea", body="Run sh {baseDir}/brew.sh")
    (folder / "brew.sh").write_text("echo brewed")
    calls = (
        Call("read_file", json.dumps({"path": f"{folder}/SKILL.md"})),
        Call("exec", json.dumps({"command": f"sh {folder}/brew.sh; echo x > {folder}/brew.sh"})),
    )
    seen: list[str] = []
    replies = [Reply(calls=calls), Reply(text=("done",))]

    def script(request: object) -> Reply:
        seen.append(str(request))
        return replies[len(seen) - 1]

    ended = ask(tmp_path, script, "agent", "-m", "tea", HOME=str(tmp_path / "own"))
    assert ended.code == 0, ended.err
    assert 'name="tea"' in seen[0]
    assert f"Run sh {folder}/brew.sh" in seen[1]
    assert "brewed" in seen[1]
    assert (folder / "brew.sh").read_text() == "echo brewed"


def test_tools_of_a_skill_are_found_and_called(tmp_path: Path) -> None:
    folder = skill(tmp_path / "skills", "tea", "---\nname: tea\ndescription: Tea.\n---\nX")
    (folder / "tools").mkdir()
    (folder / "tools" / "brew.json").write_text('{"name": "brew", "description": "Brew.", "run": "brew.sh"}')
    (folder / "brew.sh").write_text("echo brewed; cat")
    config = '[[policy.rules]]\ndecision = "allow"\ntool = "skill_tea_brew"\n'
    (tmp_path / "config.toml").write_text(config)
    seen: list[str] = []
    wanted = json.dumps({"name": "skill_tea_brew", "arguments": {}})
    replies = [
        Reply(calls=(Call("tool_search", '{"query": "brew"}'),)),
        Reply(calls=(Call("call_tool", wanted),)),
        Reply(text=("done",)),
    ]

    def script(request: object) -> Reply:
        seen.append(str(request))
        return replies[len(seen) - 1]

    ended = ask(tmp_path, script, "agent", "-m", "tea", HOME=str(tmp_path / "own"))
    assert ended.code == 0, ended.err
    assert "skill_tea_brew: Brew." in seen[1]
    assert "brewed" in seen[2]
