"""What a conversation looks like: Markdown, diffs and single lines as text with styles, for a window of any width."""

from __future__ import annotations

from io import StringIO

import msgspec
from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.text import Text

from limpet.cli.terminal import printable

CODE_THEME = "ansi_dark"
"""The terminal's own sixteen colours: they fit whatever background there is."""
ARGUMENT, ARGUMENTS = 60, 200
"""Characters of one argument, and of all, in the line of a call."""
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class _Code(CodeBlock):
    """Code without a frame or background, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 0, 0, 2))


class _Heading(Heading):
    """A line that stands out, on the left as all others."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class _Markdown(Markdown):
    elements = {**Markdown.elements, "heading_open": _Heading, "fence": _Code, "code_block": _Code}  # noqa: RUF012


def lines_of(shown: RenderableType, *, width: int) -> list[str]:
    """`shown` as lines of at most `width` columns, with colours as the terminal and NO_COLOR have it."""
    console = Console(file=StringIO(), force_terminal=True, width=width, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(shown, soft_wrap=False)
    return [line.rstrip(" ") for line in captured.get().split("\n")[:-1]]


def markdown(text: str) -> Markdown:
    """Markdown of a model. Tags are text here: they must not vanish; addresses are shown, never hidden behind words."""
    shown = _Markdown(printable(text), code_theme=CODE_THEME, hyperlinks=False)
    shown.parsed = _PARSER.parse(printable(text))
    return shown


def settled(text: str) -> int:
    """How many characters of a Markdown text that is still growing will look the same whatever follows: all blocks but
    the last. A line that is not complete could become anything, so it does not count."""
    lines = text.split("\n")[:-1]
    tokens = _PARSER.parse("\n".join(lines))
    starts = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    return sum(len(line) + 1 for line in lines[: starts[-1]]) if len(starts) > 1 else 0


def line(text: str, style: str = "dim") -> Text:
    """One line, cut to the width."""
    first = printable(text).replace("\n", " ")
    return Text(first, style=style, no_wrap=True, overflow="ellipsis", end="\n")


def block(text: str, style: str = "dim", *, indent: int = 0) -> Text:
    """Text of any length, folded."""
    lead = " " * indent
    return Text("\n".join(f"{lead}{one}" for one in printable(text).splitlines()), style=style)


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def diff(text: str) -> Text:
    """A unified diff with what comes and what goes in colours."""
    shown = Text()
    for number, one in enumerate(printable(text).splitlines()):
        head = one.startswith(("+++", "---", "***"))
        shown.append("\n" if number else "")
        shown.append(f"  {one}", style="bold" if head else _DIFF_STYLES.get(one[:1], "dim"))
    return shown


def call_line(name: str, arguments: str) -> str:
    """A call with its arguments, in a line."""
    try:
        values = msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        return f"{name} {arguments}"[: ARGUMENTS + len(name)]
    if len(values) == 1:
        return f"{name} {_short(next(iter(values.values())), ARGUMENTS)}"
    return f"{name} " + ", ".join(f"{key}={_short(value, ARGUMENT)}" for key, value in values.items())


def _short(value: object, most: int) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
