"""Every view at the page, in a real browser: what it shows, what can be done there, and that nothing else happens."""

from __future__ import annotations

import uuid

import pytest

from limpet.webui import texts
from tests.webui.conftest import Stage
from tests.webui.props import LONG, SESSIONS, TURNS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
Page, expect = playwright.Page, playwright.expect
axe = pytest.importorskip("axe_playwright_python.base", reason="axe-playwright-python is not installed")

CHECK = "axe.run({resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"


def go(page: Page, stage: Stage, path: str) -> None:
    page.goto(f"{stage.url}/web{path}")
    expect(page.locator(".lp-page h2, .lp-composer textarea").first).to_be_visible()


def test_every_view_is_usable_by_everybody_and_runs_nothing_that_it_shows(page: Page, stage: Stage) -> None:
    found: list[str] = []
    go(page, stage, "/chat/hostile")
    page.evaluate(axe.AXE_SCRIPT)
    found += faults_of(page, "/chat/hostile")
    for path, (name, _) in texts.NAV.items():
        page.locator(f'.lp-nav[href$="{path}"]').first.evaluate("link => link.click()")
        page.wait_for_url(f"**/web{path}")
        expect(page.locator(".lp-page h2", has_text=name).or_(page.locator(".lp-composer")).first).to_be_visible()
        found += faults_of(page, path)
    assert not found, "\n".join(found)


def faults_of(page: Page, path: str) -> list[str]:
    """What is wrong with what is shown: it ran something, it is too wide, or some people cannot use it."""
    page.wait_for_timeout(100)
    found = [f"{path} ran {page.evaluate('window.pwned')}"] if page.evaluate("window.pwned") else []
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
        found.append(f"{path} is wider than the screen")
    for one in page.evaluate(CHECK)["violations"]:
        if one["impact"] in ("serious", "critical"):
            nodes = " | ".join(node["html"][:160] for node in one["nodes"][:3])
            found.append(f"{path}: {one['id']} ({one['impact']}): {nodes}")
    return found


@pytest.mark.parametrize("page", ["phone"], indirect=True)
def test_what_is_typed_into_fields_stays_text(page: Page, stage: Stage) -> None:
    probe = '"><img src=x onerror="window.pwned=\'typed\'"> :onclick="window.pwned=\'prop\'"'
    for path in ("/", "/sessions", "/memory", "/schedule", "/settings", "/log"):
        go(page, stage, path)
        fields = page.locator("#content input[type=text]:visible, #content textarea:visible")
        for place in range(min(3, fields.count())):
            fields.nth(place).fill(probe)
            fields.nth(place).press("Enter")
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned") is None, path


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_ten_thousand_sessions_are_paged_and_what_was_said_is_found(page: Page, stage: Stage) -> None:
    go(page, stage, "/sessions")
    expect(page.locator(".lp-entry")).to_have_count(50)
    page.get_by_role("button", name="Ended").click()
    expect(page.locator(".lp-entry").first).to_contain_text(f"Old talk {SESSIONS - 1}")
    page.get_by_role("button", name=texts.MORE).click()
    expect(page.locator(".lp-entry")).to_have_count(100)
    page.get_by_label(texts.SESSIONS_SEARCH).fill("Answer 1234")
    page.keyboard.press("Enter")
    expect(page.locator(".lp-entry").first).to_contain_text("Answer 1234")


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_a_chat_of_two_thousand_turns_opens_at_its_end_and_goes_back(page: Page, stage: Stage) -> None:
    go(page, stage, f"/chat/{LONG}")
    expect(page.locator(".lp-message").last).to_contain_text(f"Answer {TURNS - 1}")
    expect(page.locator(".lp-message")).to_have_count(60)
    page.get_by_role("button", name=texts.CHAT_EARLIER).click()
    expect(page.locator(".lp-message")).to_have_count(120)
    expect(page.locator(".lp-message").first).to_contain_text(f"Question {TURNS - 60}")


def test_a_session_is_exported_and_copied(page: Page, stage: Stage) -> None:
    go(page, stage, "/sessions")
    page.get_by_role("link", name="Question 0").last.click()
    expect(page.locator(".lp-message").last).to_contain_text(f"Answer {TURNS - 1}")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export markdown").click()
    assert f"Answer {TURNS - 1}" in download.value.path().read_text()
    page.locator(".lp-message").last.get_by_role("button", name="Fork").click()
    page.wait_for_url(f"**/chat/{LONG}-fork*")


def test_memory_is_added_changed_taken_back_and_forgotten(page: Page, stage: Stage) -> None:
    fact = f"fact {uuid.uuid4().hex[:8]}"
    go(page, stage, "/memory")
    page.get_by_label(texts.MEMORY_NEW).fill(fact)
    page.get_by_role("button", name=texts.MEMORY_ADD).click()
    entry = page.locator(".lp-entry", has_text=fact)
    expect(entry).to_contain_text("said")
    entry.get_by_role("button", name=texts.MEMORY_EDIT).click()
    page.locator(".q-dialog textarea").fill(f"{fact} changed")
    page.locator(".q-dialog").get_by_role("button", name=texts.SAVE).click()
    expect(page.locator(".lp-entry", has_text=f"{fact} changed")).to_be_visible()
    page.locator(".lp-entry", has_text=fact).get_by_role("button", name=texts.MEMORY_FORGET).click()
    page.locator(".q-dialog").get_by_role("button", name=texts.YES).click()
    expect(page.locator(".lp-entry", has_text=fact)).to_have_count(0)
    assert fact not in (stage.home / "workspace" / "MEMORY.md").read_text()


def test_a_job_is_made_paused_and_removed(page: Page, stage: Stage) -> None:
    name = f"water {uuid.uuid4().hex[:6]}"
    go(page, stage, "/schedule")
    page.get_by_label(texts.JOBS_TEXT).fill(name)
    page.get_by_label(texts.JOBS_WHEN).fill("every 3h")
    page.get_by_role("button", name=texts.JOBS_ADD, exact=True).click()
    job = page.locator(".lp-entry", has_text=name).first
    expect(job).to_contain_text("every 3h")
    job.get_by_role("button", name="Pause").click()
    expect(job.get_by_role("button", name="Resume")).to_be_visible()
    job.get_by_role("button", name="Remove").click()
    page.locator(".q-dialog").get_by_role("button", name=texts.YES).click()
    expect(page.locator(".lp-entry", has_text=name)).to_have_count(0)


def test_a_setting_that_does_not_fit_is_refused_and_another_is_written(page: Page, stage: Stage) -> None:
    go(page, stage, "/settings")
    page.get_by_label(texts.SEARCH).fill("limits minutes")
    expect(page.locator(".lp-entry")).to_have_count(1)
    field = page.get_by_label("agent.limits.minutes", exact=True)
    field.fill("soon")
    field.press("Enter")
    expect(page.locator(".lp-page")).to_contain_text("expected a number")
    field.fill("25")
    field.press("Enter")
    expect(page.get_by_text(texts.SETTING_SAVED).first).to_be_visible()
    assert "minutes = 25" in (stage.home / "config.toml").read_text()


def test_the_inbox_decides_what_waits(page: Page, stage: Stage) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    go(page, stage, f"/chat/{name}")
    page.get_by_label(texts.CHAT_SAY, exact=True).fill(f'tool write_file {{"path": "{name}.txt", "content": "x"}}')
    page.keyboard.press("Enter")
    expect(page.locator(".lp-approval")).to_be_visible()
    go(page, stage, "/approvals")
    box = page.locator(".lp-approval", has_text=name)
    box.get_by_role("button", name=texts.APPROVAL_DENY, exact=True).click()
    expect(box).to_have_count(0)
    expect(page.locator(".lp-entry", has_text=name)).to_contain_text("no")


def test_a_stranger_is_let_in_by_his_code(page: Page, stage: Stage) -> None:
    go(page, stage, "/channels")
    account = "bot0" if page.viewport_size["width"] < 500 else "bot1"
    code = page.locator(".lp-entry", has_text=f"telegram:{account}").first
    expect(code.locator("img")).to_be_visible()
    code.get_by_role("button", name=texts.PAIR_PEER).click()
    expect(page.locator(".lp-entry", has_text=f"telegram:{account}")).to_contain_text("peer since")


def test_dark_stays_dark_and_the_menu_is_reached_by_keyboard(page: Page, stage: Stage) -> None:
    go(page, stage, "/policy")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=texts.SKIP)).to_be_focused()
    page.get_by_label(texts.DARK).click()
    expect(page.locator("body.body--dark")).to_be_visible()
    page.wait_for_timeout(150)
    page.reload()
    expect(page.locator("body.body--dark")).to_be_visible()
