"""The store of secrets: what is kept, who can read it, and what is said when it cannot be read."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from limpet.config.keys import KeyKeeper
from limpet.config.secrets import SecretRedactor, known_secrets, resolve
from limpet.config.vault import Vault
from limpet.errors import ConfigError, InputError

VALUE = "s3cret-välue/+="


class Ring(KeyKeeper):
    """A keyring in memory; a locked one keeps nothing."""

    def __init__(self, *, locked: bool = False) -> None:
        self.keys: dict[str, bytes] = {}
        self.locked = locked

    def keep(self, name: str, key: bytes) -> bool:
        if not self.locked:
            self.keys[name] = key
        return not self.locked

    def find(self, name: str) -> bytes | None:
        return self.keys.get(name)

    def forget(self, name: str) -> None:
        del self.keys[name]


def key_files(root: Path) -> list[Path]:
    return sorted(root.glob("secrets-*.key"))


def test_a_secret_comes_back_and_stands_nowhere_in_the_clear(tmp_path: Path) -> None:
    Vault(tmp_path).put("git", VALUE)
    assert Vault(tmp_path).value("git") == VALUE
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert VALUE.encode() not in path.read_bytes()
    assert resolve("secret:git", key="k", root=tmp_path, environ={}) == VALUE


def test_every_secret_of_the_store_is_known_used_or_not(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.put("git", VALUE)
    vault.put("other", "not-used-anywhere")
    redactor = SecretRedactor(known_secrets({}, root=tmp_path, environ={}))
    key = key_files(tmp_path)[0].read_text().strip()
    assert (
        redactor.redact(f"{VALUE} not-used-anywhere {key}") == "[secret:git] [secret:other] [secret:key of the store]"
    )


def test_the_key_is_in_the_keyring_where_there_is_one(tmp_path: Path) -> None:
    ring = Ring()
    vault = Vault(tmp_path, keyring=ring)
    vault.put("git", VALUE)
    assert (vault.place, key_files(tmp_path), vault.value("git")) == ("keyring", [], VALUE)
    assert vault.rotate() == 1
    assert (len(ring.keys), vault.value("git")) == (1, VALUE)


def test_a_keyring_that_keeps_nothing_is_replaced_by_a_file(tmp_path: Path) -> None:
    vault = Vault(tmp_path, keyring=Ring(locked=True))
    vault.put("git", VALUE)
    assert (vault.place, vault.value("git"), len(key_files(tmp_path))) == ("file", VALUE, 1)


def test_rotation_leaves_one_key_and_every_value(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    for name in ("a", "b"):
        vault.put(name, VALUE + name)
    before, sealed = key_files(tmp_path), vault.path.read_text()
    assert vault.rotate() == 2
    assert key_files(tmp_path) != before
    assert len(key_files(tmp_path)) == 1
    assert vault.path.read_text() != sealed
    assert [vault.value(name) for name in vault.names()] == [VALUE + "a", VALUE + "b"]


def test_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.put("github", VALUE)
    with pytest.raises(ConfigError) as caught:
        resolve("secret:gihub", key="providers.x.api_key", root=tmp_path, environ={})
    assert str(caught.value).startswith("providers.x.api_key: There is no secret gihub")
    assert caught.value.hint == "Did you mean github?"


def spoil_key(vault: Vault, root: Path) -> None:
    other = root / "other"
    Vault(other).put("x", "y")
    key_files(root)[0].write_text(key_files(other)[0].read_text())


def drop_key(vault: Vault, root: Path) -> None:
    key_files(root)[0].unlink()


def cut_file(vault: Vault, root: Path) -> None:
    vault.path.write_text(vault.path.read_text()[:-20])


def swap_values(vault: Vault, root: Path) -> None:
    vault.put("other", "other-value")
    data = json.loads(vault.path.read_text())
    data["secrets"]["git"], data["secrets"]["other"] = data["secrets"]["other"], data["secrets"]["git"]
    vault.path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_key, "the key is another one"),
        (drop_key, "is not in"),
        (cut_file, "is damaged"),
        (swap_values, "cannot be decrypted"),
    ],
)
def test_what_cannot_be_read_is_said_and_left_as_it_is(tmp_path: Path, spoil: object, words: str) -> None:
    vault = Vault(tmp_path)
    vault.put("git", VALUE)
    assert callable(spoil)
    spoil(vault, tmp_path)
    before = vault.path.read_bytes()
    for attempt in (lambda: vault.value("git"), lambda: vault.put("new", "value"), vault.rotate):
        with pytest.raises(ConfigError, match=words) as caught:
            attempt()
        assert caught.value.hint
    assert vault.path.read_bytes() == before
    assert known_secrets({}, root=tmp_path, environ={}).get("git") is None


def test_one_damaged_secret_does_not_hide_the_others(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.put("a", VALUE)
    vault.put("b", "other-value")
    data = json.loads(vault.path.read_text())
    data["secrets"]["a"]["value"] = "AAAA"
    vault.path.write_text(json.dumps(data))
    vault.put("c", "third-value")
    assert [vault.known().get(name) for name in "abc"] == [None, "other-value", "third-value"]


def test_a_crash_between_key_and_store_loses_nothing(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    vault.put("git", VALUE)
    (tmp_path / "secrets-abcdefabcdef.key").write_text("a new key whose store was never written")
    assert vault.value("git") == VALUE


def test_writers_take_turns(tmp_path: Path) -> None:
    threads = [threading.Thread(target=lambda n=n: Vault(tmp_path).put(f"n{n}", f"value-{n}")) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [Vault(tmp_path).value(name) for name in Vault(tmp_path).names()] == [f"value-{n}" for n in range(6)]


@pytest.mark.parametrize(("name", "value"), [("../x", "v"), ("", "v"), ("a b", "v"), ("ok", "")])
def test_bad_names_and_empty_values_are_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InputError):
        Vault(tmp_path).put(name, value)
    assert list(tmp_path.glob("secrets.json")) == []
