from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import pytest

from limpet.gateway import link
from limpet.tools.browser.chromium import find_chromium
from limpet.types.clock import SystemClock

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1440, "height": 900}}


@dataclass(slots=True)
class Stage:
    """A served gateway."""

    home: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.home / "server-token").read_text().strip()

    def link(self) -> str:
        return f"{self.url}/web/login/{link.make(self.token, now=SystemClock().now())}"


@contextmanager
def staged(home: Path, *how: str) -> Generator[Stage]:
    """A gateway with a page in a process of its own, until the block ends."""
    if not find_chromium("") or find_spec("nicegui") is None:
        pytest.skip("the page is tested with Chromium, and needs the extra `web`")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.webui.stage", str(home), *how],
        cwd=ROOT,
        env={**os.environ, "LIMPET_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Stage(home, int(told["port"]))
        process.stdin.close()
        process.wait(30)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with staged(tmp_path_factory.mktemp("stage") / "home") as made:
        yield made


class Stagehand:
    """Runs what drives a browser on a thread of its own: Playwright keeps an event loop there, and other tests have
    theirs."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def do(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result(110)

    def close(self) -> None:
        self._thread.shutdown()


@pytest.fixture(scope="session")
def hand() -> Generator[Stagehand]:
    made = Stagehand()
    yield made
    made.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests with a page run where the page lives."""
    if "page" not in pyfuncitem.funcargs:
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    pyfuncitem.funcargs["hand"].do(lambda: pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session")
def browser(hand: Stagehand) -> Generator[playwright.Browser]:
    driver = hand.do(lambda: playwright.sync_playwright().start())
    opened = hand.do(lambda: driver.chromium.launch(executable_path=find_chromium(""), headless=True, args=ARGUMENTS))
    yield opened
    hand.do(opened.close)
    hand.do(driver.stop)


@pytest.fixture(scope="session")
def state(stage: Stage, browser: playwright.Browser, hand: Stagehand) -> dict[str, object]:
    """What a browser keeps that is logged in."""

    def enter() -> dict[str, object]:
        context = browser.new_context()
        page = context.new_page()
        page.goto(stage.link())
        kept: dict[str, object] = dict(context.storage_state())
        context.close()
        return kept

    return hand.do(enter)


@pytest.fixture(params=list(SIZES))
def page(
    request: pytest.FixtureRequest, browser: playwright.Browser, state: dict[str, object], hand: Stagehand
) -> Generator[playwright.Page]:
    """A page of a browser that is logged in, as wide as a phone, then as a desk; it has nothing to complain of."""
    faults: list[str] = []

    def open_page() -> playwright.Page:
        context = browser.new_context(viewport=SIZES[request.param], storage_state=state, reduced_motion="reduce")
        opened = context.new_page()
        opened.on("console", lambda one: faults.append(one.text) if one.type == "error" else None)
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.set_default_timeout(15_000)
        return opened

    opened = hand.do(open_page)
    yield opened
    hand.do(opened.context.close)
    assert not faults
