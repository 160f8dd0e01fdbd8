"""Pictures of the page; those of docs/ are made anew with

`LIMPET_PICTURES=docs/images pytest -m slow tests/webui/test_pictures.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limpet.webui import texts
from tests.webui.conftest import ROOT, Stagehand, staged

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
LARGEST = 120_000
"""Bytes of one picture."""
DESK, PHONE = {"width": 1100, "height": 700}, {"width": 390, "height": 760}


@pytest.mark.slow
def test_pictures_for_the_docs(tmp_path: Path, browser: playwright.Browser, hand: Stagehand) -> None:
    folder = Path(ROOT, os.environ.get("LIMPET_PICTURES", "") or tmp_path / "images")
    folder.mkdir(exist_ok=True)
    with staged(tmp_path / "home", "neat") as stage:
        hand.do(lambda: take(browser, stage.url, stage.link(), folder))
    taken = {path.name: path.stat().st_size for path in folder.glob("web-*.png")}
    assert len(taken) == 6
    assert not {name: size for name, size in taken.items() if size > LARGEST}


def take(browser: playwright.Browser, url: str, link: str, folder: Path) -> None:
    context = browser.new_context(viewport=DESK, reduced_motion="reduce")
    page = context.new_page()
    page.goto(link)
    for number, said in enumerate(
        ("What is a limpet?", "How do I count them?", 'tool read_file {"path": "MEMORY.md"}'), 1
    ):
        page.get_by_label(texts.CHAT_SAY, exact=True).fill(said)
        page.keyboard.press("Enter")
        page.locator(".lp-user").nth(number - 1).wait_for()
        page.wait_for_function(f"document.querySelectorAll('.lp-agent footer').length >= {number}")
    page.wait_for_timeout(700)
    page.screenshot(path=folder / "web-chat.png")
    for name in ("context", "schedule", "usage"):
        page.goto(f"{url}/web/{name}")
        page.wait_for_timeout(900)
        page.screenshot(path=folder / f"web-{name}.png")
    page.get_by_label(texts.DARK).click()
    page.goto(f"{url}/web/memory")
    page.wait_for_timeout(500)
    page.screenshot(path=folder / "web-memory-dark.png")
    page.set_viewport_size(PHONE)
    page.goto(f"{url}/web/")
    page.wait_for_timeout(700)
    page.screenshot(path=folder / "web-phone.png")
    context.close()
