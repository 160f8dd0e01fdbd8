"""The index of skills."""

from __future__ import annotations

from pathlib import Path

from limpet.prompt.skill_index import find_skills, index


def skill(workspace: Path, folder: str, text: str) -> None:
    (workspace / "skills" / folder).mkdir(parents=True)
    (workspace / "skills" / folder / "SKILL.md").write_text(text)


def test_front_matter_is_read(tmp_path: Path) -> None:
    skill(tmp_path, "b", "---\nname: brew\ndescription: Makes\n  tea & <more>\nalways: true\n---\n\nBoil water.\n")
    skill(tmp_path, "a", "# Plain\n\nno front matter")
    plain, brew = find_skills(str(tmp_path))
    assert (plain.name, plain.description) == ("a", "Plain")
    assert (brew.name, brew.description, brew.body) == ("brew", "Makes tea & <more>", "Boil water.")
    assert brew.always
    assert "<description>Makes tea &amp; &lt;more&gt;</description><location>skills/b/SKILL.md</location>" in index(
        [brew]
    )


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    skill(tmp_path, "x", "---\nrequires: {bins: [sh, no-such-program], env: [NO_SUCH_VARIABLE]}\n---\nx")
    (found,) = find_skills(str(tmp_path))
    assert found.missing == ("bin:no-such-program", "env:NO_SUCH_VARIABLE")
    assert '<skill available="false">' in index([found])
    assert "<requires>bin:no-such-program, env:NO_SUCH_VARIABLE</requires>" in index([found])


def test_broken_front_matter_and_odd_folders_do_no_harm(tmp_path: Path) -> None:
    skill(tmp_path, "broken", "---\nname: [\n---\nBody")
    bomb = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9) if n else 'lol'}]\n" for n in range(12))
    skill(tmp_path, "bomb", f"---\n{bomb}name: *x11\ndescription: *x11\nrequires: *x11\n---\nBody")
    skill(tmp_path, "list", "---\n- a\n---\nBody")
    skill(tmp_path, "open", "---\nname: x\nBody without end")
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "file.md").write_text("x")
    assert [found.name for found in find_skills(str(tmp_path))] == ["bomb", "broken", "list", "open"]
    assert find_skills(str(tmp_path / "nowhere")) == []
