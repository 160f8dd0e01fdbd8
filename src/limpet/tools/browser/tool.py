"""`browser`: open a page, read it as a tree with refs, act on what the refs name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

from limpet.errors import NetworkRefusedError, ToolError
from limpet.toolkit.schema import FunctionTool, tool
from limpet.toolkit.spill import capped, with_spill
from limpet.tools.browser.session import Browser, Gate
from limpet.tools.browser.tabs import Tabs
from limpet.tools.sniff import picture
from limpet.tools.web_fetch import OUTSIDE, sealed
from limpet.types.content import Image, Text
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

Action = Literal[
    "open", "snapshot", "click", "type", "press", "select", "scroll", "back", "screenshot", "tabs", "close"
]
ACTING = ("click", "type", "press", "select")
"""What may change something at the other end."""
_ACT = 10_000
"""Milliseconds for one act on an element."""
_SETTLE = 0.3
"""Seconds after an act until a page has usually begun to change."""
_COMING = 5_000
"""Milliseconds that a page which is on its way is waited for after an act."""
_READING = 5_000
"""Milliseconds for a snapshot. A frame that was refused never answers: it is left out when they are over."""
_SCROLL = 600
"""Pixels."""
_REF = re.compile(r"(?:f\d+)?e\d+")
_WHY = (
    ("intercepts pointer events", "something else covers it"),
    ("not visible", "it is not visible"),
    ("not enabled", "it is disabled"),
    ("not editable", "it cannot be edited"),
    ("not an <input>", "nothing can be typed into it"),
    ("not a <select>", "it is no list to select from"),
    ("did not find some options", "it has no such option"),
)


def make_browser(running: Browser) -> FunctionTool:
    """The tool over a browser that is started by its first call."""

    @tool(effect="unsafe", exclusive=True, brief="Use a web browser.", sends=_acts)
    async def browser(
        context: ToolContext,
        action: Action,
        url: Annotated[str, "for open"] = "",
        ref: Annotated[str, "element of the last snapshot, such as e12"] = "",
        text: Annotated[str, "what to type; key to press, such as Enter; option to select; up or down"] = "",
        tab: Annotated[int, "for tabs and close: its number"] = 0,
    ) -> ToolResult:
        """Use a web browser: open a page, read its snapshot, act on elements by their ref. Each action but screenshot
        gives a new snapshot. For reading a page only, web_fetch is cheaper.
        """
        if action == "open":
            _host(url.strip())
        async with running.using(context.session) as (tabs, gate):
            use = _Use(tabs, gate, timeout=running.settings.timeout * 1000)
            async with _told(action, gate):
                await use.do(action, url=url.strip(), ref=ref.strip(), text=text, tab=tab)
                if action == "screenshot":
                    return await use.picture(context)
                return await use.told(context, tree=action not in ("tabs", "close"))

    return browser


def _acts(values: Mapping[str, object]) -> bool:
    return values.get("action") in ACTING


@asynccontextmanager
async def _told(action: str, gate: Gate) -> AsyncGenerator[None]:
    """Failures of the browser in our own words: its own may quote the page. Raises `ToolError`."""
    from playwright.async_api import Error, TimeoutError

    try:
        yield
    except TimeoutError as error:
        why = next((said for mark, said in _WHY if mark in str(error)), "it took too long")
        raise ToolError(f"{action} failed: {why}.", hint="Take a snapshot to see how the page is now.") from None
    except Error as error:
        if refused := gate.refusals():
            raise NetworkRefusedError("\n".join(refused)) from None
        code = re.search(r"net::(ERR_\w+)", str(error))
        why = next((said for mark, said in _WHY if mark in str(error)), "the page or the browser went away")
        raise ToolError(f"{action} failed: {code[1] if code else why}.") from None


class _Use:
    """One call: what it does in the tabs of its conversation."""

    def __init__(self, tabs: Tabs, gate: Gate, *, timeout: float) -> None:
        self._tabs = tabs
        self._gate = gate
        self._timeout = timeout

    async def do(self, action: Action, *, url: str, ref: str, text: str, tab: int) -> None:
        """Raises `ToolError`, and the errors of the browser."""
        match action:
            case "open":
                await self._open(url)
            case "click" | "type" | "press" | "select":
                await self._act(action, ref=ref, text=text)
            case "scroll":
                await self._scroll(ref, text)
            case "back":
                await self._tabs.current().go_back(wait_until="domcontentloaded", timeout=self._timeout)
            case "tabs":
                if tab:
                    await self._tabs.switch(tab).bring_to_front()
            case "close":
                page = self._tabs.switch(tab) if tab else self._tabs.current()
                await page.close()
            case "snapshot" | "screenshot":
                self._tabs.current()

    async def _open(self, url: str) -> None:
        host = _host(url)
        await self._gate.check(host)
        self._gate.refusals()
        page = await self._tabs.for_opening()
        answer = await page.goto(url, wait_until="domcontentloaded", timeout=self._timeout)
        if answer is not None and answer.status == 403 and (refused := self._gate.refusals()):
            await page.goto("about:blank")
            raise NetworkRefusedError("\n".join(refused))
        await _settled(page)

    async def _act(self, action: str, *, ref: str, text: str) -> None:
        page = self._tabs.current()
        if action == "press" and not ref:
            await page.keyboard.press(_key(text))
        else:
            element = await _element(page, ref)
            match action:
                case "click":
                    await element.click(timeout=_ACT)
                case "type":
                    await element.fill(text, timeout=_ACT)
                case "press":
                    await element.press(_key(text), timeout=_ACT)
                case _:
                    await element.select_option(text, timeout=_ACT)
        await asyncio.sleep(_SETTLE)
        if self._tabs.pages:
            await _settled(self._tabs.current())

    async def _scroll(self, ref: str, text: str) -> None:
        page = self._tabs.current()
        if ref:
            await (await _element(page, ref)).scroll_into_view_if_needed(timeout=_ACT)
        else:
            await page.mouse.wheel(0, -_SCROLL if text.strip().lower() == "up" else _SCROLL)
            await asyncio.sleep(_SETTLE)

    async def told(self, context: ToolContext, *, tree: bool) -> ToolResult:
        """The current page as text, or with `tree` false the tabs."""
        pages = self._tabs.pages
        if tree and pages:
            page = self._tabs.current()
            text = await page.aria_snapshot(mode="ai", timeout=_READING)
            lines = [f"Tab {self._tabs.number} of {len(pages)}: {await page.title()}", page.url, "", text]
        else:
            lines = [f"Tab {number}: {await page.title()} {page.url}" for number, page in enumerate(pages, 1)]
        lines = [*self._tabs.notes(), *(f"[Refused: {one}]" for one in self._gate.refusals()), *lines]
        shown, spill, omitted = await capped("\n".join(lines) or "No page is open.", context)
        return ToolResult(
            content=(Text(f"{OUTSIDE}\n{sealed(shown)}"),),
            details=with_spill(Details(summary=_where(self._tabs)), spill=spill, omitted=omitted),
            trust="external",
        )

    async def picture(self, context: ToolContext) -> ToolResult:
        page = self._tabs.current()
        data = await page.screenshot(type="jpeg", quality=75, scale="css", timeout=self._timeout)
        blob = await context.blobs.put(data)
        found = picture(data)
        width, height = (found.width, found.height) if found else (0, 0)
        image = Image(blob=blob, mime="image/jpeg", name="screenshot.jpg", width=width, height=height)
        return ToolResult(
            content=(Text(f"{OUTSIDE}\n{sealed(page.url)}"), image),
            details=Details(summary=_where(self._tabs)),
            trust="external",
        )


def _host(url: str) -> str:
    """The host of an address that may be opened. Raises `ToolError`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", None
    if parts is None or parts.scheme.lower() not in ("http", "https") or not host:
        raise ToolError(f"{url[:200]!r} cannot be opened: only http and https addresses can.")
    return host


async def _element(page: Page, ref: str) -> Locator:
    """Raises `ToolError` when the page has no such element now."""
    if not _REF.fullmatch(ref):
        raise ToolError("A ref is needed, such as e12.", hint="The last snapshot has them in brackets: [ref=e12].")
    element = page.locator(f"aria-ref={ref}")
    if not await element.count():
        raise ToolError(
            f"There is no element {ref} on the page any more.", hint="Take a snapshot and use a ref of that one."
        )
    return element


def _key(text: str) -> str:
    """Raises `ToolError` for no key."""
    key = text.strip()
    if not key or len(key) > 40:
        raise ToolError("press needs a key in text, such as Enter, Tab, Escape, ArrowDown or Control+a.")
    return key


async def _settled(page: Page) -> None:
    from playwright.async_api import TimeoutError

    with suppress(TimeoutError):
        await page.wait_for_load_state("load", timeout=_COMING)


def _where(tabs: Tabs) -> str:
    return tabs.current().url[:200] if tabs.pages else "no page"
