"""Case C65 on the whole program: a hostile provider, commands that look around, a careless owner, logs switched on."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

from limpet.config.vault import Vault
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Rules, Seen
from tests.cli.program import at, limpet

KEY = "sk-proj/A+b=c d%7E-9999"
TOKEN = "tvly-AAAA1111BBBB"
OTHER = "0123456789abcdef0123456789abcdef01234567"
UUID = "0b6a5a1e-0000-4000-8000-123456789abc"
CONFIG = f"""
[providers.openai]
api_key = "file:secrets/key"
[channels.chat]
bot_token = "{TOKEN}"
"""


def forms(value: str) -> list[bytes]:
    texts = [value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1]]
    return [text.encode() for text in texts] + [base64.b64encode(value.encode())]


def hostile(seen: Seen) -> Reply:
    """Says the key back in every way there is."""
    text = seen.raw.decode().rpartition('"role":"')[2]
    if text.startswith("tool"):
        return Reply(text=("so be it",))
    if "refuse" in text:
        said = f"Incorrect API key provided: {KEY}, {quote(KEY, safe='')}, {forms(KEY)[-1].decode()}"
        return Reply(status=401, body={"error": {"message": said, "code": "invalid_api_key"}})
    if "break" in text:
        failed = {"error": {"message": f"boom {KEY}", "code": 502}}
        return Reply(chunks=({"choices": [{"index": 0, "delta": {"content": KEY}}]}, failed), bare=True)
    if "look around" in text:
        command = "env; cat ../config.toml ../secrets/key; cat /proc/*/environ; cat key.txt"
        return Reply(calls=(Call("exec", json.dumps({"command": command})),))
    if "write" in text:
        return Reply(calls=(Call("write_file", json.dumps({"path": "key.txt", "content": f"{KEY} {UUID}"})),))
    return Reply(thinking=f"hm {KEY}", text=tuple(f"It is {KEY}, {quote(KEY, safe='')} and {UUID}."))


def odd_forms(value: str) -> list[str]:
    """Partly escaped, in entities, in base64 beside other text, in hexadecimal."""
    return [
        "".join(f"%{ord(c):02x}" if at % 3 else c for at, c in enumerate(value)),
        "".join(f"&#{ord(c)};" if at % 2 else c for at, c in enumerate(value)),
        json.dumps(json.dumps(value)),
        base64.b64encode(f"user:{value}:x".encode()).decode(),
        base64.urlsafe_b64encode(f"ab{value}".encode()).decode(),
        value.encode().hex(),
    ]


def curious(seen: Seen) -> Reply:
    """Looks for what is in the store in every way, and says what it found."""
    text = seen.raw.decode().rpartition('"role":"')[2]
    if text.startswith("tool"):
        return Reply(text=tuple(" ".join(odd_forms(KEPT)) + UUID))
    command = "env; echo $SEARCH; cat ../secrets* ../config.toml; cat /proc/*/environ; cat odd.txt; base64 odd.txt"
    return Reply(calls=(Call("exec", json.dumps({"command": command})),))


KEPT = "tvly-AAAA1111BBBB"


def test_c65_secrets_of_the_store_are_known_used_or_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    vault = Vault(home)
    vault.put("openai", KEY)
    vault.put("SEARCH", KEPT)
    (home / "config.toml").write_text('[providers.openai]\napi_key = "secret:openai"\n')
    (home / "workspace").mkdir()
    (home / "workspace" / "odd.txt").write_text("\n".join(odd_forms(KEPT)))

    async def main() -> str:
        async with FakeOpenAI(curious, rules=Rules(key=KEY)) as server:
            there = at(server) | {"OPENAI_API_KEY": ""}
            ended = await limpet(home, "--verbose", "agent", "-m", f"find {KEPT}", "--json", **there)
            assert server.refusals == []
            return ended.out + ended.err + b"".join(seen.raw for seen in server.requests).decode()

    everything = asyncio.run(main())
    for path in home.rglob("*"):
        if path.is_file() and path.name not in ("odd.txt", "copies.db"):  # the owner's own file, and its copy for undo
            everything += path.read_bytes().decode("utf-8", "replace")
    assert [form for form in (KEY, KEPT, *odd_forms(KEPT)) if form in everything] == []
    assert everything.count("[secret:SEARCH]") > 6
    assert UUID in everything


def test_c65_no_form_of_a_secret_is_anywhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "secrets").mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(CONFIG)
    (home / "secrets" / "key").write_text(KEY + "\n")

    async def main() -> bytes:
        async with FakeOpenAI(hostile, rules=Rules(key=KEY)) as server:
            there = at(server) | {"OPENAI_API_KEY": OTHER, "MY_BOT_TOKEN": OTHER}
            outputs: list[str] = []
            for message in ("hello", "refuse", "break", "write", "look around", f"my key is {KEY} and {UUID}"):
                name = f"s{len(outputs)}"
                ended = await limpet(home, "--verbose", "agent", "-m", message, "--session", name, "--json", **there)
                exported = await limpet(home, "sessions", "export", name, "--format", "jsonl", **there)
                outputs.append(ended.out + ended.err + exported.out)
            assert server.refusals == []
            return "".join(outputs).encode() + b"".join(seen.raw for seen in server.requests)

    everything = asyncio.run(main())
    sources = (home / "config.toml", home / "secrets" / "key")
    for path in home.rglob("*"):
        if path.is_file() and path not in sources:
            everything += path.read_bytes()
    assert [form for secret in (KEY, TOKEN, OTHER) for form in forms(secret) if form in everything] == []
    assert b"[secret:providers.openai.api_key]" in everything
    assert UUID in (home / "workspace" / "key.txt").read_text(), "what is no secret stays as it is"
