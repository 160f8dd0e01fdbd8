"""Web pages as text: which characters their bytes are, and what a reader would read of them.

`trafilatura` (extra `fetch`) finds the article; where it keeps too little of a page (a list of links, a front page), or
is not installed, the whole page is told in plain Markdown.
"""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from urllib.parse import urljoin

from msgspec import Struct

LEAST_SHARE = 0.2
"""Of the visible text, what an extracted article has to keep: below it the page is no article."""
MANY_LINKS = 10
"""Links from which a page may be a list of them: an extraction that loses most of those has missed the point."""
_META = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_SAME = {"gb2312": "gb18030", "gbk": "gb18030", "latin1": "cp1252", "iso-8859-1": "cp1252", "ascii": "cp1252"}
"""What browsers read these as."""
_BLANKS = re.compile(r"[ \t\r\f\v]+")
_GAPS = re.compile(r"\n{3,}")


class Page(Struct, frozen=True):
    title: str
    text: str


def decode(body: bytes, content_type: str = "") -> str:
    """The characters of a page: by mark, header, its own word, and else UTF-8. What fits nothing is replaced."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return body.decode(name, "replace")
    header = re.search(r"charset\s*=\s*[\"']?([\w:.-]+)", content_type, re.IGNORECASE)
    own = _META.search(body[:4096])
    for name in (header[1] if header else "", own[1].decode() if own else "", "utf-8"):
        try:
            return body.decode(_SAME.get(name.lower(), name)) if name else body.decode("utf-8")
        except (LookupError, UnicodeDecodeError):
            continue
    guessed = header[1] if header else own[1].decode() if own else "utf-8"
    try:
        return body.decode(_SAME.get(guessed.lower(), guessed), "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def readable(html: str, url: str) -> Page:
    """Title and text of a page. Runs for a while on a large one: call it in a thread."""
    plain = _Plain(url)
    plain.feed(html)
    plain.close()
    whole = plain.text()
    article = _article(html, url)
    lists_links = article.count("](") < whole.count("](") // 2 and whole.count("](") >= MANY_LINKS
    if lists_links or len(article) < LEAST_SHARE * len(plain.visible()):
        return Page(plain.title, whole)
    return Page(plain.title, article)


def _article(html: str, url: str) -> str:
    if importlib.util.find_spec("trafilatura") is None:
        return ""
    trafilatura = importlib.import_module("trafilatura")  # 0.3 s, optional, without types
    found: str | None = trafilatura.extract(
        html, url=url, output_format="markdown", include_links=True, include_tables=True, with_metadata=False
    )
    return (found or "").strip()


class _Plain(HTMLParser):
    """A page as Markdown: headings, lists, links; nothing of scripts, styles and navigation."""

    SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "head", "nav", "iframe"))
    BLOCKS = frozenset(
        [
            *("p", "div", "section", "article", "header", "footer", "main", "aside", "ul", "ol", "table", "tr", "br"),
            *("hr", "blockquote", "pre", "figure", "form", "dl", "dt", "dd"),
        ]
    )

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._url = url
        self._parts: list[str] = []
        self._skipping = 0
        self._in_title = False
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and not self.title:
            self._in_title = True
        elif tag in self.SKIPPED:
            self._skipping += tag != "head"
        elif re.fullmatch(r"h[1-6]", tag):
            self._parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self._parts.append("\n- ")
        elif tag in ("td", "th"):
            self._parts.append(" | ")
        elif tag == "a" and (address := dict(attrs).get("href") or "").startswith(("http://", "https://", "/")):
            self._link = urljoin(self._url, address)
            self._parts.append("[")
        elif tag in self.BLOCKS:
            self._parts.append("\n\n" if tag != "br" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self.SKIPPED:
            self._skipping = max(0, self._skipping - (tag != "head"))
        elif tag == "a" and self._link:
            self._parts.append(f"]({self._link})")
            self._link = ""
        elif tag in self.BLOCKS or re.fullmatch(r"h[1-6]", tag):
            self._parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = " ".join(f"{self.title} {data}".split())
        elif not self._skipping:
            self._parts.append(_BLANKS.sub(" ", data.replace("\n", " ")))

    def text(self) -> str:
        lines = (line.strip() for line in "".join(self._parts).split("\n"))
        return _GAPS.sub("\n\n", "\n".join(lines)).strip()

    def visible(self) -> str:
        """What is seen of the page, without addresses."""
        return re.sub(r"\]\([^)\s]*\)", "", self.text())
