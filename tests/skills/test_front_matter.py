"""Front matter: what is read, and what is said of what cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.skills.front_matter import read, split
from limpet.skills.skill import Gates, Needs


def test_all_fields_are_read() -> None:
    front = read(
        "name: brew-tea\ndescription: >\n  Makes\n  tea\nalways: true\nhomepage: https://x.example\n"
        "user-invocable: false\ndisable-model-invocation: true\n"
        "metadata:\n  limpet:\n    triggers: [tea, 茶杯]\n"
        "    needs: {hosts: [API.example:8443], place: host, secrets: [TEA_KEY]}\n"
        "    tools: [{name: brew, run: brew.py, parameters: {type: object}}]"
    )
    assert (front.name, front.description, front.homepage) == ("brew-tea", "Makes tea", "https://x.example")
    assert (front.always, front.invocable, front.listed) == (True, False, False)
    assert front.needs == Needs(hosts=("api.example:8443",), host=True, secrets=("TEA_KEY",))
    assert front.triggers == ("tea", "茶杯")
    assert [tool.name for tool in front.tools] == ["brew"]
    assert front.problems == ()


def test_gates_of_other_agents_are_read() -> None:
    text = (
        'name: x\ndescription: x\nmetadata: {"openclaw": {"emoji": "X", "os": ["darwin"], '
        '"requires": {"bins": ["a"], "anyBins": ["b", "c"], "env": ["E"], "config": ["net.proxy"]}}}'
    )
    wanted = Gates(os=("darwin",), bins=("a",), any_bins=("b", "c"), env=("E",), config=("net.proxy",))
    assert read(text).gates == wanted
    as_text = text.replace("metadata: ", "metadata: '") + "'"
    assert read(as_text).gates == wanted
    assert read("name: x\ndescription: x\nrequires: [a, b]").gates == Gates(bins=("a", "b"))


@pytest.mark.parametrize(
    ("head", "line", "text"),
    [
        ("name: [", 2, "no YAML"),
        ("name: x\ndescription: 'open", 3, "no YAML"),
        ("- a", 1, "no table"),
        ("name: Bad Name\ndescription: x", 2, "is no name"),
        ("description: x", 1, "`name` is missing"),
        ("name: x\ndescription: x\nalways: maybe", 4, "neither true nor false"),
        ("name: x\ndescription: x\nmetadata: 3", 4, "no table"),
        ("name: x\ndescription: x\ncolour: red", 4, "no field"),
        ("name: x\ndescription: x\nmetadata:\n  limpet:\n    needs:\n      hosts: ['http://x/']", 7, "no host"),
        ("name: &a x\ndescription: *a", 1, "Aliases"),
        ("", 1, "no front matter"),
    ],
)
def test_faults_name_line_and_remedy(head: str, line: int, text: str) -> None:
    problem = next(one for one in read(head).problems if text in one.text)
    assert problem.line == line
    assert problem.remedy


def test_front_matter_without_end_is_none() -> None:
    assert split("---\nname: x\nBody") == ("", "---\nname: x\nBody")
    assert split("---\nname: x\n---\n\nBody\n") == ("name: x", "Body")


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    front = read(text)
    assert front.name == "" or front.name.isascii()
    assert len(front.description) <= 1_024
