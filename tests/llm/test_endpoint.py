from __future__ import annotations

import pytest

from limpet.errors import ConfigError
from limpet.llm.endpoint import check_address, check_values


@pytest.mark.parametrize("url", ["", "http://h", "HTTPS://h/v1/", "http://[::1]:8/v1", "http://10.0.0.1:65535"])
def test_addresses_that_work_pass(url: str) -> None:
    check_address("openai", url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://[::1", "no web address"),
        ("http://h:99999/v1", "no web address"),
        ("/run/x.sock", "http://"),
        ("unix:///run/x.sock", "http://"),
        ("h:80/v1", "http://"),
        ("http:///v1", "name a host"),
        ("http://user:pa55word@h/v1", "password"),
        ("http://h/v1?key=pa55word", "after a"),
    ],
)
def test_an_address_that_cannot_work_is_told_without_its_secrets(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        check_address("openai", url)
    assert "pa55word" not in caught.value.present()


@pytest.mark.parametrize("value", ["sk-a\nb", "sk\x00", "a\r\nX-Other: 1"])
def test_a_key_with_control_characters_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ConfigError, match="control character") as caught:
        check_values("openai", ("fine", value))
    assert value not in caught.value.present()
