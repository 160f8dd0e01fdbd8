"""Where skills are found, and which of one name counts."""

from __future__ import annotations

from pathlib import Path

from tests.skills.folders import find, room, skill


def test_the_first_of_one_name_counts_in_the_order_of_the_places(tmp_path: Path) -> None:
    workspace, home, own = room(tmp_path)
    spots = [workspace / "skills", workspace / ".agents/skills", own / ".agents/skills", home / "skills"]
    for place in (*spots, tmp_path / "more"):
        skill(place, "tea")
        skill(place, f"only-{place.parent.name.strip('.')}")
    found = find(tmp_path, extra=(str(tmp_path / "more"),))
    assert [one.origin for one in found.skills if one.name == "tea"] == ["workspace"]
    assert [one.origin for one in found.shadowed if one.name == "tea"] == ["agents", "user", "home", "extra"]
    assert found.skills[0].location == "skills/only-workspace/SKILL.md"
    assert next(one for one in found.skills if one.origin == "home").location.startswith("/")


def test_links_that_lead_out_are_left_out_and_told(tmp_path: Path) -> None:
    workspace, home, _ = room(tmp_path)
    outside = skill(tmp_path / "elsewhere", "evil")
    skill(home / "skills", "inner")
    (home / "skills" / "evil").symlink_to(outside)
    (home / "skills" / "same").symlink_to(home / "skills" / "inner")
    (workspace / "skills").symlink_to(tmp_path / "elsewhere")
    (home / "skills" / "file").mkdir()
    (home / "skills" / "file" / "SKILL.md").symlink_to(outside / "SKILL.md")
    found = find(tmp_path)
    assert [one.name for one in found.skills] == ["inner"]
    assert len([fault for fault in found.faults if "link" in fault.text]) == 3


def test_skills_may_lie_in_groups_and_odd_folders_do_no_harm(tmp_path: Path) -> None:
    workspace, _, _ = room(tmp_path)
    skill(workspace / "skills" / "group", "inner")
    skill(workspace / "skills" / ".hidden", "secret")
    skill(workspace / "skills", "huge", "---\nname: huge\n---\n" + "x" * 1_000_001)
    skill(workspace / "skills", "Bad Name", "No front matter")
    (workspace / "skills" / "empty").mkdir()
    found = find(tmp_path)
    assert [one.name for one in found.skills] == ["inner"]
    assert {fault.path.split("/")[-2] for fault in found.faults} == {"huge", "Bad Name"}
    assert find(tmp_path / "nowhere" if (tmp_path / "nowhere").mkdir() is None else tmp_path).skills == ()


def test_a_skill_without_a_name_is_left_out_and_told(tmp_path: Path) -> None:
    workspace, _, _ = room(tmp_path)
    for name, head in (("tea", "description: x"), ("mate", "name: ''"), ("rum", "name: No Name"), ("gin", "name: [a]")):
        skill(workspace / "skills", name, f"---\n{head}\n---\nX")
    found = find(tmp_path)
    assert found.skills == ()
    left = [fault.path.split("/")[-2] for fault in found.faults if "left out" in fault.text]
    assert sorted(left) == ["gin", "mate", "rum", "tea"]


def test_tools_are_read_and_broken_ones_are_told(tmp_path: Path) -> None:
    workspace, _, _ = room(tmp_path)
    folder = skill(workspace / "skills", "tea")
    (folder / "tools").mkdir()
    (folder / "tools" / "brew.json").write_text('{"name": "brew", "description": "Brews.", "run": ["brew.py", "-x"]}')
    (folder / "tools" / "bad.json").write_text('{"name": "Bad Name", "run": "x"}')
    found = find(tmp_path)
    assert [(tool.name, tool.run) for tool in found.skills[0].tools] == [("brew", ("brew.py", "-x"))]
    assert "no name for a tool" in str(found.faults[0])
