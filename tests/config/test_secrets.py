"""References and redaction."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.config.secrets import (
    SecretRedactor,
    is_secret_name,
    known_secrets,
    literal_secrets,
    resolve,
    too_short,
)
from limpet.errors import ConfigError


def test_references_lead_to_values(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("s3cret value\n")
    environ = {"MY_KEY": "from-environment"}
    assert resolve("env:MY_KEY", key="k", root=tmp_path, environ=environ) == "from-environment"
    assert resolve("file:key.txt", key="k", root=tmp_path, environ=environ) == "s3cret value"
    assert resolve("literal", key="k", root=tmp_path, environ=environ) == "literal"


@pytest.mark.parametrize("reference", ["env:NOT_THERE", "file:nowhere", "file:."])
def test_a_reference_to_nothing_names_the_setting(tmp_path: Path, reference: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.x\.api_key"):
        resolve(reference, key="providers.x.api_key", root=tmp_path, environ={})


def test_which_names_hold_secrets() -> None:
    assert all(map(is_secret_name, ("api_key", "bot_token", "X-Api-Key", "password")))
    assert not any(map(is_secret_name, ("max_tokens", "model", "keyboard")))


def test_known_secrets_come_from_settings_and_environment(tmp_path: Path) -> None:
    table: dict[str, object] = {
        "providers": {"x": {"api_key": "env:X_KEY", "base_url": "http://x"}, "y": {"api_key": "literal-value"}},
        "later": {"web": {"tavily_key": "tvly-AAAA1111BBBB"}},
    }
    environ = {"X_KEY": "value-of-x", "OPENAI_API_KEY": "sk-1234567890", "PATH": "/bin", "SOME_TOKEN": "/run/token"}
    assert known_secrets(table, root=tmp_path, environ=environ) == {
        "providers.x.api_key": "value-of-x",
        "providers.y.api_key": "literal-value",
        "later.web.tavily_key": "tvly-AAAA1111BBBB",
        "OPENAI_API_KEY": "sk-1234567890",
    }
    assert literal_secrets(table) == ["providers.y.api_key", "later.web.tavily_key"]


SECRET = "päss/w+rd?&=\"'\\ end"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        base64.b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
    ],
)
def test_every_form_of_a_value_is_replaced(form: str) -> None:
    secret = SECRET.lower() if form == form.lower() and "%" in form else SECRET
    text = SecretRedactor({"k": secret}).redact(f"before {form} after")
    assert form not in text
    assert text.startswith("before [secret:k]")


@given(
    st.text(max_size=20), st.text(min_size=8, max_size=40, alphabet=st.characters(codec="utf-8")), st.text(max_size=9)
)
def test_no_value_survives_wherever_it_stands(before: str, secret: str, after: str) -> None:
    assert secret not in SecretRedactor({"k": secret}).redact(before + secret + after).replace("[secret:k]", "")


@given(st.integers(0, 5), st.integers(0, 5))
def test_base64_of_something_around_the_value_is_replaced(before: int, after: int) -> None:
    whole = "u" * before + "hunter2hunter2" + "z" * after
    encoded = base64.b64encode(whole.encode()).decode()
    assert "[secret:k]" in SecretRedactor({"k": "hunter2hunter2"}).redact(encoded)


@given(
    st.lists(st.sampled_from(["abcdefgh-ijkl", "abcdefgh", "abcd", "efgh", "-ij", "kl", " ", "a"]), max_size=12),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_a_secret_cut_into_pieces_is_found_all_the_same(words: list[str], sizes: list[int]) -> None:
    redactor = SecretRedactor({"short": "abcdefgh", "long": "abcdefgh-ijkl"})
    stream = redactor.stream()
    text = "".join(words)
    shown, place = "", 0
    while place < len(text):
        size = sizes[place % len(sizes)]
        shown += stream.feed(text[place : place + size])
        place += size
    assert shown + stream.flush() == redactor.redact(text)


def test_what_cannot_be_a_secret_is_shown_at_once() -> None:
    stream = SecretRedactor({"k": "abcdefgh"}).stream()
    assert [stream.feed("hello "), stream.feed("ab"), stream.feed("x"), stream.flush()] == ["hello ", "", "abx", ""]


def test_ordinary_uuids_stay_and_short_values_are_left_alone() -> None:
    secrets = {"token": "0d9f1f5e-5a3b-4b59-9f0e-3a1f7c5e2b11", "pin": "1234"}
    other = "6f1e2d3c-1111-4222-8333-944455566677 and 1234"
    assert SecretRedactor(secrets).redact(other) == other
    assert too_short(secrets) == ["pin"]


def test_the_longer_secret_goes_as_a_whole() -> None:
    redactor = SecretRedactor({"short": "abcdefgh", "long": "abcdefgh-ijkl"})
    assert redactor.redact("abcdefgh-ijkl abcdefgh") == "[secret:long] [secret:short]"


PARTS = "päss w0rd/+=\"'<&>\\%41"


def escapings(character: str) -> list[str]:
    """The ways in which one character of a longer text may be written."""
    code = ord(character)
    percent = "".join(f"%{byte:02x}" for byte in character.encode())
    return [
        character,
        percent,
        percent.upper(),
        f"\\u{code:04x}",
        f"\\u{code:04X}",
        f"&#{code};",
        f"&#x{code:x};",
        html.escape(character),
    ]


mixtures = st.tuples(*(st.sampled_from(escapings(character)) for character in PARTS)).map("".join)


@given(mixtures, st.text(alphabet="xyz :=", max_size=9), st.text(alphabet="xyz :=", max_size=9))
def test_any_mixture_of_escaped_characters_is_replaced(disguised: str, before: str, after: str) -> None:
    assert SecretRedactor({"k": PARTS}).redact(before + disguised + after) == f"{before}[secret:k]{after}"


@given(mixtures, st.lists(st.integers(1, 9), min_size=1))
def test_a_mixture_cut_into_pieces_is_found_all_the_same(disguised: str, sizes: list[int]) -> None:
    stream = SecretRedactor({"k": PARTS}).stream()
    text = f"it is {disguised}, yes"
    shown, place = "", 0
    for size in sizes * len(text):
        shown += stream.feed(text[place : place + size])
        place += size
    assert shown + stream.flush() == "it is [secret:k], yes"


@pytest.mark.parametrize("value", ["plain-and-simple", 'quo"ted\\value', "0d9f1f5e-5a3b-4b59-9f0e-3a1f7c5e2b11"])
def test_json_inside_json_is_seen_through(value: str) -> None:
    text = json.dumps({"arguments": json.dumps({"key": value})})
    assert value.strip('"') not in (shown := SecretRedactor({"k": value}).redact(text))
    assert json.loads(json.loads(shown)["arguments"]) == {"key": "[secret:k]"}


def test_base64_in_lines_is_found() -> None:
    text = base64.encodebytes(b"x" * 50 + b"hunter2hunter2" + b"y" * 80).decode()
    shown = SecretRedactor({"k": "hunter2hunter2"}).redact(text)
    assert "[secret:k]" in shown
    assert b"hunter2" not in base64.b64decode(shown.replace("[secret:k]", "").replace("\n", "") + "==", validate=False)


def test_secrets_that_overlap_go_as_one() -> None:
    redactor = SecretRedactor({"a": "abcdefgh", "b": "efgh-ijklm"})
    assert redactor.redact("<abcdefgh-ijklm>") == "<[secret:b]>"


@given(st.text(alphabet='ab%41\\u0&;#<>" \n', max_size=200))
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert SecretRedactor({"k": "not-in-there"}).redact(text) == text
