"""The index of skills."""

from __future__ import annotations

from msgspec import structs

from limpet.prompt.skill_index import NAMES_ONLY, SHORTENED, index
from limpet.skills.skill import Front, Needs, Skill


def one(name: str, description: str = "Makes tea & <more>", *, front: Front = Front(), **rest: object) -> Skill:  # noqa: B008 (frozen)
    missing = ("bin:kettle",) if rest.get("lacks") else ()
    return Skill(
        name=name,
        description=description,
        origin="workspace",
        folder=f"/w/skills/{name}",
        location=f"skills/{name}/SKILL.md",
        body="Boil {baseDir}/water.",
        sha256="x",
        front=front,
        missing=missing,
        ungranted=bool(front.needs),
    )


def test_a_skill_is_told_with_what_it_lacks() -> None:
    text = index([one("tea", lacks=True)])
    assert text.splitlines() == [
        '<skills files="skills/NAME/SKILL.md">',
        '<skill name="tea" lacks="bin:kettle">Makes tea &amp; &lt;more&gt;</skill>',
        "</skills>",
    ]
    assert one("tea").instructions == "Boil /w/skills/tea/water."


def test_a_skill_that_lies_elsewhere_says_where() -> None:
    other = structs.replace(one("far"), location='/opt/a "b"/far/SKILL.md')
    assert '<skill name="far" file="/opt/a &quot;b&quot;/far/SKILL.md">' in index([one("tea"), one("mate"), other])


def test_what_is_not_granted_is_told_and_hidden_skills_are_not() -> None:
    needy = one("needy", front=Front(needs=Needs(hosts=("tea.example",))))
    assert 'not-granted="hosts tea.example"' in index([needy])
    assert index([one("hidden", front=Front(listed=False))]) == ""


def test_many_skills_are_shortened_then_named_then_counted() -> None:
    def many(count: int) -> str:
        return index([one(f"skill-{number}", "word " * 100) for number in range(count)], budget=8_000)

    assert "shortened" not in many(10)
    assert SHORTENED in many(30)
    assert NAMES_ONLY in many(90)
    assert "more are not named." in many(500)
    assert all(len(many(count)) <= 8_000 for count in (10, 30, 70, 300))
