"""Secrets that tools are made to say: in every form, by every tool that gives text back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from limpet.config.secrets import SecretRedactor
from limpet.sandbox.run import Sandbox
from limpet.testing.context import Recorded, tool_context
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_edit import edit_file
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.types.ports import Tool
from tests.attack.played import Played

SECRETS = {
    "SEARCH": "tvly-AAAA1111BBBB",
    "TOKEN": "0b0e7f1c-5d3a-4f54-9b43-2f1f6f3c9a10",
    "BOT": "a3f5" * 10,
    "ODD": 'p/ss+w=rd&"quoted" %41',
}
COMMANDS: Mapping[str, str] = {
    "plain": "cat s",
    "in lines": "fold -w 200 s",
    "base64": "base64 s",
    "base64 in lines": "base64 -w 20 s",
    "base64 beside other text": "(printf 'user:'; cat s) | base64",
    "hexadecimal": "od -An -tx1 -v s | tr -d ' \\n'",
    "URL": "python3 -c \"import urllib.parse; print(urllib.parse.quote(open('s').read().strip(), safe=''))\"",
    "URL, all of it": "python3 -c \"print(''.join('%%%02x' % b for b in open('s','rb').read().strip()))\"",
    "JSON": "python3 -c \"import json; print(json.dumps(open('s').read().strip()))\"",
    "JSON twice": "python3 -c \"import json; print(json.dumps(json.dumps(open('s').read().strip())))\"",
    "HTML": "python3 -c \"import html; print(html.escape(open('s').read().strip()))\"",
    "Unicode escapes": "python3 -c \"print(''.join(chr(92) + 'u%04x' % ord(c) for c in open('s').read().strip()))\"",
    "an error": 'cat "$(cat s)"',
    "standard error": "cat s >&2; exit 3",
    "with colours": "printf '\\033[31m%s\\033[0m' \"$(cat s)\"",
    "much text around": "yes x | head -n 20000; cat s; yes y | head -n 20000",
}


def forms(value: str) -> list[str]:
    return [
        value,
        quote(value, safe=""),
        json.dumps(value)[1:-1],
        base64.b64encode(value.encode()).decode(),
        value.encode().hex(),
    ]


class Redacting(Recorded):
    """A context whose redactor is the real one."""

    def __init__(self) -> None:
        super().__init__()
        self._real = SecretRedactor(SECRETS)

    def redact(self, text: str) -> str:
        return self._real.redact(text)


async def leak(folder: Path) -> list[Played]:
    """What comes back of `exec` in each form, and of the tools for files, after the redaction that all results pass."""
    played: list[Played] = []
    async with Sandbox() as sandbox:
        for name, value in SECRETS.items():
            space = folder / name
            space.mkdir()
            (space / "s").write_text(value + "\n")
            runs: list[tuple[str, Tool, dict[str, object]]] = [
                (how, make_exec(sandbox, ExecSettings()), {"command": command}) for how, command in COMMANDS.items()
            ]
            runs += [
                ("read_file", read_file, {"path": "s"}),
                ("grep", grep, {"pattern": "."}),
                ("list_dir", list_dir, {}),
                ("find_files", find_files, {"pattern": "*"}),
                ("edit_file", edit_file, {"path": "s", "old": value, "new": value + "x"}),
            ]
            for how, tool, values in runs:
                recorded = Redacting()
                context = tool_context(space, recorded=recorded, blobs=folder / "blobs")
                result = await tool.bind(json.dumps(values), workspace=str(space)).run(context)
                text = recorded.redact(result.text) + recorded.redact(result.details.diff) + "".join(recorded.progress)
                spilt = (
                    "".join(path.read_text("utf-8", "replace") for path in (folder / "blobs").glob("*"))
                    if (folder / "blobs").exists()
                    else ""
                )
                flat = (text + spilt).replace("\n", "")
                played.append(
                    Played("secrets in results", f"{name} by {how}", any(form in flat for form in forms(value)))
                )
    return played
