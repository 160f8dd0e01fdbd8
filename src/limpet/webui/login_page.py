"""The page on which one logs in: a plain form, without any script."""

from __future__ import annotations

from html import escape
from pathlib import Path

from limpet.webui import texts

STYLE = Path(__file__).parent / "static" / "login.css"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style nonce="{nonce}">{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{told}
<form method="post" action="{prefix}/login">
<label for="secret">{label}</label>
<input id="secret" name="secret" type="password" autocomplete="current-password" required autofocus maxlength="500">
<button type="submit">{enter}</button>
</form>
</main>
</body>
</html>
"""


def page(*, prefix: str, nonce: str, has_password: bool, fault: str = "") -> str:
    """The form as HTML; `fault` is what was wrong with the last try, one of our own texts."""
    told = f'<p class="bad" role="alert">{escape(fault)}</p>' if fault else f"<p>{escape(texts.LOGIN_HOW)}</p>"
    return PAGE.format(
        title=escape(texts.LOGIN_TITLE),
        style=STYLE.read_text("utf-8"),
        nonce=nonce,
        told=told,
        prefix=prefix,
        label=escape(texts.LOGIN_SECRET if has_password else texts.LOGIN_TOKEN),
        enter=escape(texts.LOGIN_ENTER),
    )
