"""A mail in HTML as text: its words, its quotes marked with `>`."""

from __future__ import annotations

from html.parser import HTMLParser

LONGEST = 500_000
"""Characters of HTML that are read."""
_SILENT = frozenset(("script", "style", "head", "template", "title"))
_BREAKS = frozenset(
    ("p", "div", "br", "tr", "li", "ul", "ol", "table", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "pre")
)


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._line: list[str] = []
        self._quotes = 0
        self._silent = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._silent and tag in _SILENT:
            self._silent = tag
        if tag in _BREAKS:
            self.end_line(blank=tag == "p")
        if tag == "blockquote":
            self._quotes += 1
        elif tag == "li":
            self._line.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""
        if tag in _BREAKS and tag != "br":
            self.end_line(blank=tag == "p")
        if tag == "blockquote":
            self._quotes = max(0, self._quotes - 1)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._line.append(data)

    def end_line(self, *, blank: bool = False) -> None:
        line = " ".join("".join(self._line).split())
        self._line = []
        mark = ">" * min(self._quotes, 9)
        if line:
            self.lines.append(f"{mark} {line}" if mark else line)
        if blank and self.lines and self.lines[-1].strip("> "):
            self.lines.append(mark)


def words(html: str) -> str:
    """The text of a page."""
    parser = _Words()
    parser.feed(html[:LONGEST])
    parser.close()
    parser.end_line()
    return "\n".join(parser.lines).strip()
