"""The page in Chromium: how soon it is usable, how soon what a model says is seen, and what its code weighs."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fake import ROOT, folder
from bench.report import Figure, Report, median
from bench.start import program
from limpet.gateway import link
from limpet.tools.browser.chromium import find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

USABLE, SEEN, ADDED, IDLE = 1.5, 100.0, 80.0, 60.0
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WATCH = """() => {
  window.late = [];
  let last = '';
  new MutationObserver(() => {
    const live = document.querySelector('.lp-live .lp-rich');
    const moments = live ? live.textContent.trim().split(/\\s+/) : [];
    const newest = moments[moments.length - 1];
    if (!newest || newest === last || newest.length !== 13) return;
    last = newest;
    window.late.push(Date.now() - Number(newest));
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


def measure(*, quick: bool) -> Report:
    """Raises `SystemExit` where there is no Chromium, or nothing that drives it."""
    if not find_chromium(""):
        raise SystemExit("There is no Chromium here.")
    from playwright.sync_api import sync_playwright

    runs = 1 if quick else 7
    with folder() as place, _model() as address, _gateway(place / "home", address) as (port, process):
        time.sleep(1.0 if quick else 3.0)
        idle = _megabytes(process)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=find_chromium(""), args=ARGUMENTS)
            page = browser.new_page()
            token = (place / "home" / "server-token").read_text().strip()
            made = link.make(token, now=time.time_ns() // 1_000_000)
            first = _usable(page, f"http://127.0.0.1:{port}/web/login/{made}")
            warm = [_usable(page, f"http://127.0.0.1:{port}/web/") for _ in range(runs)]
            late = [one for _ in range(runs) for one in _streamed(page)]
            open_ = _megabytes(process)
            browser.close()
    figures = [
        Figure("the first time", "usable", first, "s", goal=USABLE),
        Figure("later", "usable", median(warm), "s", goal=USABLE),
        Figure("streamed text", "seen, median", median(late), "ms", goal=SEEN),
        Figure("streamed text", "seen, worst", max(late), "ms"),
        Figure("idle gateway", "memory", idle, "MB", goal=IDLE),
        Figure("the page's code and one open page", "memory", open_ - idle, "MB", goal=ADDED),
    ]
    notes = ["usable: from navigation until one can type; the first time NiceGUI is loaded too", f"{len(late)} pieces"]
    return Report("The page", figures, notes)


def _usable(page: Page, url: str) -> float:
    """Seconds until one can type."""
    began = time.perf_counter()
    page.goto(url)
    page.get_by_label("Message", exact=True).fill("x")
    took = time.perf_counter() - began
    page.get_by_label("Message", exact=True).fill("")
    return took


def _streamed(page: Page) -> list[float]:
    """Milliseconds from the sending of each piece to the moment at which the browser has it."""
    count = page.locator(".lp-agent").count()
    page.evaluate(WATCH)
    page.get_by_label("Message", exact=True).fill("go")
    page.keyboard.press("Enter")
    page.wait_for_function(f"document.querySelectorAll('.lp-agent footer').length > {count}", timeout=30_000)
    return [float(one) for one in page.evaluate("window.late")]


@contextlib.contextmanager
def _model() -> Generator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.web_model"], cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@contextlib.contextmanager
def _gateway(home: Path, address: str) -> Generator[tuple[int, int]]:
    """A gateway as people start it; gives its port and process id."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    home.mkdir()
    (home / "config.toml").write_text(
        f'agent.model = "lab/clock"\ngateway.port = {port}\n'
        f'[providers.lab]\nbase_url = "{address}"\napi_key = "sk-test"\n'
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LIMPET_HOME": str(home)}
    process = subprocess.Popen(
        [*program(), "gateway"], env=environ, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        process.stderr.readline()
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def _megabytes(process: int) -> float:
    """What a process has in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
