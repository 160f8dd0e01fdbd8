import asyncio
import json
from typing import Annotated, Literal

import pytest
from msgspec import Struct

from limpet.errors import ArgumentsError
from limpet.testing.context import call, tool_context
from limpet.toolkit.schema import tool
from limpet.types.ports import Tool, ToolContext
from limpet.types.tool import ToolResult, text_result


class Pair(Struct):
    old: str
    new: str = ""


@tool(effect="pure", writes=("path",), brief="Short.")
async def sample(
    context: ToolContext,
    path: str,
    count: Annotated[int, "how many"] = 3,
    flag: bool = False,
    ratio: float | None = None,
    mode: Literal["a", "b"] = "a",
    pairs: list[Pair] | None = None,
) -> ToolResult:
    """Do a thing.
    Then another.

    Not for models.
    """
    return text_result(repr((path, count, flag, ratio, mode, pairs)))


def bind(**arguments: object):
    return sample.bind(json.dumps(arguments), workspace="/w")


def faults(**arguments: object) -> str:
    with pytest.raises(ArgumentsError) as caught:
        bind(**arguments)
    return str(caught.value)


def test_is_a_tool():
    one: Tool = sample
    assert (one.spec.name, one.effect, one.exclusive) == ("sample", "pure", False)


def test_schema_is_compact_and_stable():
    schema = bytes(sample.spec.parameters)
    assert b": " not in schema
    assert b", " not in schema
    assert json.loads(schema) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "count": {"type": "integer", "description": "how many"},
            "flag": {"type": "boolean"},
            "ratio": {"type": "number"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "pairs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                    "required": ["old"],
                },
            },
        },
        "required": ["path"],
    }


def test_description_is_the_first_paragraph():
    assert sample.spec.description == "Do a thing. Then another."


def test_tiny_tells_less():
    tiny = sample.tiny().spec
    assert tiny.description == "Short."
    assert b"how many" not in bytes(tiny.parameters)
    assert len(bytes(tiny.parameters)) < len(bytes(sample.spec.parameters))


def test_runs_with_values(tmp_path):
    result = call(sample, tool_context(tmp_path), path="p", count=5, pairs=[{"old": "x"}])
    assert result.text == "('p', 5, False, None, 'a', [Pair(old='x', new='')])"


def test_unambiguous_coercions():
    values = bind(path="p", count="5", flag="true", ratio="1.5", pairs='[{"old":"x"}]').values
    assert values == {"path": "p", "count": 5, "flag": True, "ratio": 1.5, "pairs": [Pair("x")]}


@pytest.mark.parametrize("value", ["five", "5.5", 5.5, True, [], "1e3", ""])
def test_no_guessing_of_integers(value):
    assert "count: expected an integer" in faults(path="p", count=value)


def test_all_faults_at_once():
    text = faults(count="many", flag=7, mode="c", pairs=[{"new": 1}, 3], pth="x")
    for part in (
        "path: required argument is missing",
        'count: expected an integer, got "many"',
        "flag: expected true or false, got 7",
        'mode: expected one of "a", "b", got "c"',
        "pairs[0].old: required argument is missing",
        "pairs[0].new: expected a string, got 1",
        "pairs[1]: expected an object, got 3",
        "pth: unknown argument; did you mean 'path'?",
    ):
        assert part in text


def test_null_for_an_optional_argument_is_absence():
    assert bind(path="p", count=None).values == {"path": "p"}


def test_long_received_values_are_shortened():
    assert len(faults(path="p", count="x" * 10_000)) < 300


@pytest.mark.parametrize("text", ['{"path": "a', "[1]", "nonsense", "null"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ArgumentsError):
        sample.bind(text, workspace="/w")


def test_plan_is_one_exact_line():
    plan = bind(path="a\nb\x1b[2J", count=2).plan()
    assert plan == 'sample path="a\\nb\\u001b[2J" count=2'


def test_plans_of_long_values_differ_by_hash():
    one, two = bind(path="x" * 5000 + "1").plan(), bind(path="x" * 5000 + "2").plan()
    assert one != two
    assert len(one) < 700


def test_writes_are_real_paths(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    bound = sample.bind('{"path":"link/x"}', workspace=str(tmp_path))
    assert bound.writes == (str(tmp_path.resolve() / "real" / "x"),)
    assert sample.bind('{"path":"a\\u0000b"}', workspace=str(tmp_path)).writes


def test_bound_call_can_run_twice(tmp_path):
    bound = bind(path="p")
    first = asyncio.run(bound.run(tool_context(tmp_path)))
    assert asyncio.run(bound.run(tool_context(tmp_path))) == first
