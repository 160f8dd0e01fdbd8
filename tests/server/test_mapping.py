"""Templates: only fields are filled in, what is missing says so, and strangers cannot get out of their marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.gateway.outside import enclosed_payload
from limpet.server.mapping import Event, told

PAYLOAD = {"pull_request": {"title": "Fix it", "labels": [{"name": "bug"}], "draft": False}, "n": 7, "nothing": None}


def text(template: str, payload: object = PAYLOAD) -> str:
    event = Event("git", "push", payload, {"x-github-event": "push"})
    return told(event, template, enclosed=enclosed_payload).partition("\n")[2]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Look at {{payload.pull_request.title}}.", "Look at <payload>Fix it</payload>."),
        ("{{ payload.pull_request.labels.0.name }}", "<payload>bug</payload>"),
        ("{{payload.n}} {{payload.pull_request.draft}}", "<payload>7</payload> <payload>false</payload>"),
        ("{{payload.pull_request.labels}}", '<payload>[{"name":"bug"}]</payload>'),
        ("{{header.X-GitHub-Event}}", "<payload>push</payload>"),
        ("{{payload.a.b}}", "[there is no payload.a.b]"),
        ("{{payload.pull_request.labels.9.name}}", "[there is no payload.pull_request.labels.9.name]"),
        ("{{payload.nothing}}", "[there is no payload.nothing]"),
        ("{{payload.n.x}}", "[there is no payload.n.x]"),
        ("{{7*7}} {{payload['n']}} {% if x %} ${n}", "[there is no 7*7] [there is no payload['n']] {% if x %} ${n}"),
        ("{{payload.__class__}}", "[there is no payload.__class__]"),
    ],
)
def test_a_template_is_filled_in_and_nothing_in_it_is_run(template: str, expected: str) -> None:
    assert text(template) == expected


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    assert text("{{payload.x}}", {"x": "{{payload.y}}", "y": "no"}) == "<payload>{{payload.y}}</payload>"


def test_without_a_template_the_whole_payload_is_told() -> None:
    said = text("", {"a": 1})
    assert said.startswith("It holds:\n<payload>{")
    assert '"a": 1' in said


def test_long_values_are_cut_and_say_so() -> None:
    said = text("{{payload.x}}", {"x": "y" * 10_000})
    assert said.endswith("… [cut, 10,000 characters in all]</payload>")


@given(st.text(alphabet="</>payloadPAYLOAD \n[]{}.", max_size=80))
def test_nobody_gets_out_of_the_marks(value: str) -> None:
    said = text("{{payload.x}}", {"x": value})
    assert said.lower().count("<payload") == 1
    assert said.lower().count("</payload") == 1
    assert said.startswith("<payload>")
    assert said.endswith("</payload>")
