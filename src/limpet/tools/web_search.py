"""`web_search`: what a search service finds, as titles, addresses and excerpts."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import re
import time
from html import unescape
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from limpet.errors import ToolError
from limpet.net.client import Fetched, Web
from limpet.net.guard import Guard, NetworkRules
from limpet.toolkit.schema import FunctionTool, tool
from limpet.tools.web_fetch import OUTSIDE
from limpet.types.content import Text
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult

Engine = Literal["", "brave", "tavily", "searxng", "duckduckgo"]
KEPT = 15 * 60.0
"""Seconds for which an answer is given again."""
MOST_KEPT = 100
MOST = 20
LONGEST = 400
"""Characters of an excerpt."""
BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"


class SearchSettings(Struct, frozen=True):
    """Where to search. `key` is for Brave and Tavily, `url` the address of a SearXNG."""

    engine: Engine = ""
    key: str = ""
    url: str = ""


class Hit(Struct, frozen=True):
    title: str
    url: str
    text: str = ""


def engine_of(settings: SearchSettings) -> Engine:
    """The engine to use: the one that is set, else what there is a key, an address or a package for; empty: none."""
    if settings.engine:
        return settings.engine
    if settings.url:
        return "searxng"
    if settings.key:
        return "tavily" if settings.key.startswith("tvly-") else "brave"
    return "duckduckgo" if importlib.util.find_spec("ddgs") else ""


def make_web_search(web: Web, settings: SearchSettings) -> FunctionTool:
    """The tool; answers are kept for a quarter of an hour."""
    engine = engine_of(settings)
    kept: dict[tuple[str, int], tuple[float, list[Hit]]] = {}

    @tool(effect="pure", brief="Search the web.")
    async def web_search(
        context: ToolContext, query: str, count: Annotated[int, "results, up to 20"] = 8
    ) -> ToolResult:
        """Search the web: titles, addresses, excerpts. Read a page with web_fetch."""
        place = (" ".join(query.split()), min(max(count, 1), MOST))
        if not place[0]:
            raise ToolError("There is nothing to search for.")
        made, hits = kept.get(place, (0.0, []))
        if time.monotonic() - made > KEPT or not made:
            hits = (await _search(web, settings, engine, place[0], count=place[1]))[: place[1]]
            kept[place] = (time.monotonic(), hits)
            while len(kept) > MOST_KEPT:
                del kept[next(iter(kept))]
        found = "\n\n".join(f"{n}. {hit.title}\n{hit.url}\n{hit.text}".strip() for n, hit in enumerate(hits, start=1))
        return ToolResult(
            content=(Text(f"{OUTSIDE}\n\n{found}" if hits else "Nothing was found."),),
            details=Details(summary=f"{len(hits)} results"),
            trust="external" if hits else "tool",
        )

    return web_search


async def _search(web: Web, settings: SearchSettings, engine: Engine, query: str, *, count: int) -> list[Hit]:
    """What the engine finds. Raises `ToolError`."""
    match engine:
        case "brave":
            headers = {"X-Subscription-Token": settings.key, "Accept": "application/json"}
            answer = await web.get(f"{BRAVE}?{urlencode({'q': query, 'count': count})}", headers=headers)
            return _hits(_decoded(answer).web.results)
        case "tavily":
            asked = msgspec.json.encode({"query": query, "max_results": count})
            headers = {"Authorization": f"Bearer {settings.key}", "Content-Type": "application/json"}
            return _hits(_decoded(await web.post(TAVILY, asked, headers=headers)).results)
        case "searxng":
            return await _searxng(settings.url, query)
        case "duckduckgo":
            return await asyncio.to_thread(_duckduckgo, query, count)
        case _:
            raise ToolError(
                "There is nothing to search with.",
                hint="The owner sets tools.web.search (a key of Brave or Tavily, or the address of a SearXNG).",
            )


async def _searxng(url: str, query: str) -> list[Hit]:
    """Ask the owner's own server, which may be at any address: the owner has named it."""
    web = Web(Guard(NetworkRules(allow_cidrs=("0.0.0.0/0", "::/0"))))
    try:
        answer = await web.get(f"{url.rstrip('/')}/search?{urlencode({'q': query, 'format': 'json'})}")
    finally:
        await web.close()
    return _hits(_decoded(answer).results)


def _duckduckgo(query: str, count: int) -> list[Hit]:
    ddgs = importlib.import_module("ddgs")  # heavy, optional, without types
    try:
        rows: list[dict[str, str]] = ddgs.DDGS(timeout=10).text(query, max_results=count)
    except ddgs.exceptions.DDGSException as error:
        raise ToolError(f"The search failed: {error}.") from None
    return [_hit(row.get("title", ""), row.get("href", ""), row.get("body", "")) for row in rows]


class _Item(Struct, frozen=True):
    title: str = ""
    url: str = ""
    description: str = ""
    content: str = ""


class _Web(Struct, frozen=True):
    results: list[_Item] = []


class _Answer(Struct, frozen=True):
    """Of all three services: `web.results` is Brave's, `results` the others'."""

    results: list[_Item] = []
    web: _Web = _Web()


def _decoded(answer: Fetched) -> _Answer:
    if answer.status != 200:
        said = answer.body[:300].decode("utf-8", "replace").strip()
        refused = ToolError(f"The search service answered with status {answer.status}. {said}".strip())
        refused.external = True
        raise refused
    try:
        return msgspec.json.decode(answer.body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ToolError(
            "The search service gave no JSON.", hint="SearXNG: allow the format json in its settings."
        ) from None


def _hits(items: list[_Item]) -> list[Hit]:
    return [_hit(item.title, item.url, item.description or item.content) for item in items if item.url]


def _hit(title: str, url: str, text: str) -> Hit:
    """One result in few lines, without markup."""
    plain = " ".join(re.sub(r"</?(?:b|strong|em)>", "", unescape(text)).split())
    return Hit(title=" ".join(unescape(title).split()), url=url, text=plain[:LONGEST])
