"""Which acts a tool's name stands for, and whether the owner asked for one."""

from __future__ import annotations

import pytest

from limpet.assistant.acts import act_of, asked_for


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("send_email", "please forward that to anna"),
        ("create_calendar_event", "schedule a lunch"),
        ("deleteFile", "remove the draft"),
        ("gmail_send_message", "reply to her"),
        ("send_email", "antworte ihr bitte"),
        ("create_event", "ajoute un rendez-vous"),
        ("delete_file", "borra el archivo"),
        ("send_email", "把总结发给他"),
        ("frobnicate", "frobnicate it"),
    ],
)
def test_is_asked_for(tool: str, said: str) -> None:
    assert asked_for(act_of(tool), said)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("send_email", "what does the page say?"),
        ("delete_file", "send the file to anna"),
        ("update_password", "how much did i spend?"),
        ("frobnicate", "delete everything"),
        ("send_email", "what is the recommended sender?"),
        ("delete_file", "今天天气怎么样"),
    ],
)
def test_is_not_asked_for(tool: str, said: str) -> None:
    assert not asked_for(act_of(tool), said)
