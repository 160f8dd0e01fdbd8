"""Concrete inputs of the field on security: one test for each case, as far as its parts exist."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

from limpet.config.secrets import SecretRedactor, known_secrets


def test_c65_no_secret_leaves_and_ordinary_uuids_stay(tmp_path: Path) -> None:
    """The redactor's part of C65."""
    values = ["tvly-AAAA1111BBBB", "0d9f1f5e-5a3b-4b59-9f0e-3a1f7c5e2b11", "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"]
    table: dict[str, object] = {
        "providers": {"x": {"api_key": values[0]}},
        "web": {"token": values[1]},
        "channels": {"telegram": {"bot_token": "env:BOT"}},
    }
    redactor = SecretRedactor(known_secrets(table, root=tmp_path, environ={"BOT": values[2]}))
    other = "6f1e2d3c-1111-4222-8333-944455566677"
    for value in values:
        shown = [
            f"BOT={value}\nHOME=/root",
            f'{{"error": "Incorrect API key provided: {value}"}}',
            f"https://x/?q={quote(value, safe='')}&id={other}",
            json.dumps({"header": f"Bearer {value}"}),
            base64.b64encode(f"user:{value}".encode()).decode(),
        ]
        for text in shown:
            assert value not in redactor.redact(text)
            assert "[secret:" in redactor.redact(text)
        assert other in redactor.redact(shown[2])
