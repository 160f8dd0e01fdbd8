"""What of a job's answer is told."""

from __future__ import annotations

import pytest

from limpet.assistant.unattended import reserved, spoken
from limpet.types.envelope import Mandate

BEAT = Mandate("heartbeat-main", "heartbeat", purpose="heartbeat")
JOB = Mandate("j1", "news")


@pytest.mark.parametrize(
    "text",
    [
        "HEARTBEAT_OK", "**HEARTBEAT_OK**", "_HEARTBEAT_OK_", "`HEARTBEAT_OK`", "heartbeat_ok", " HEARTBEAT_OK.\n",
        "✅ HEARTBEAT_OK!", "```\nHEARTBEAT_OK\n```", "> HEARTBEAT_OK", "# HEARTBEAT_OK", "<b>HEARTBEAT_OK</b>",
        '"HEARTBEAT_OK"', "HEARTBEAT_OK\n\nNothing new.", "All quiet. **HEARTBEAT_OK**", '{"status": "HEARTBEAT_OK"}',
        '{"notify": false}', '{"notify": false, "text": "x"}', '```json\n{"notify": false}\n```',
        '{"notify": true, "text": "HEARTBEAT_OK"}', "[SILENT]", "NO_REPLY",
    ],
)  # fmt: skip
def test_there_is_nothing_to_tell(text: str) -> None:
    assert spoken(text, BEAT) == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The oven is hot", "The oven is hot"),
        ('{"notify": true, "text": "The oven is hot"}', "The oven is hot"),
        ('```json\n{"notify": true, "text": "The oven is hot"}\n```', "The oven is hot"),
        ('{"notify": true, "message": "hot"}', '{"notify": true, "message": "hot"}'),
        (f"HEARTBEAT_OK {'but ' * 100}", ("but " * 100).strip()),
        ("HEARTBEAT_OKAY then", "HEARTBEAT_OKAY then"),
        ("The word HEARTBEAT_OK is in the middle of it", "The word HEARTBEAT_OK is in the middle of it"),
    ],
)
def test_something_is_to_be_told(text: str, told: str) -> None:
    assert spoken(text, BEAT) == told


@pytest.mark.parametrize("text", ["[SILENT]", "**[SILENT]**", "HEARTBEAT_OK", '{"notify": false}'])
def test_any_job_may_be_silent(text: str) -> None:
    assert spoken(text, JOB) == ""


@pytest.mark.parametrize("text", ["Silent", "All is well. HEARTBEAT_OK", "[SILENT] movies are on tonight"])
def test_what_another_job_says_beside_it_is_told(text: str) -> None:
    assert spoken(text, JOB) == text


@pytest.mark.parametrize(
    ("key", "free"), [("cron:heartbeat-main", True), ("cron:j1", False), ("agent:main:main", False), ("", False)]
)
def test_only_heartbeats_are_answered_with_respond(key: str, free: bool) -> None:
    assert bool(reserved(key, "respond")) is not free
    assert not reserved(key, "read_file")
