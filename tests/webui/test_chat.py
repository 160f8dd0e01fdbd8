"""A conversation at the page, in a real browser."""

from __future__ import annotations

import base64
import uuid

import pytest

from tests.webui.conftest import Stage

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
Page, expect = playwright.Page, playwright.expect


def opened(page: Page, stage: Stage) -> str:
    """A chat of its own; gives its name."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    page.goto(f"{stage.url}/web/chat/{name}")
    return name


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def test_what_is_said_is_answered_and_stands_there_after_a_reload(page: Page, stage: Stage) -> None:
    opened(page, stage)
    say(page, "Hello **there**")
    expect(page.locator(".lp-agent")).to_contain_text("echo: Hello there")
    expect(page.locator(".lp-agent strong").last).to_have_text("there")
    page.reload()
    expect(page.locator(".lp-user")).to_contain_text("Hello **there**")
    expect(page.locator(".lp-agent")).to_contain_text("echo: Hello there")


def test_markdown_becomes_elements(page: Page, stage: Stage) -> None:
    opened(page, stage)
    say(page, "code")
    answer = page.locator(".lp-agent").last
    expect(answer.locator("pre code")).to_have_text("print('a < b')")
    expect(answer.locator("td strong")).to_have_text("2")
    expect(answer.locator("ol > li")).to_have_count(2)
    expect(answer.locator("summary", has_text="Thinking")).to_be_visible()


def test_a_tool_call_is_a_card(page: Page, stage: Stage) -> None:
    opened(page, stage)
    say(page, 'tool read_file {"path": "AGENTS.md"}')
    card = page.locator(".lp-card")
    expect(card).to_contain_text("done")
    card.locator("summary").click()
    expect(card).to_contain_text("AGENTS.md")
    expect(page.locator(".lp-agent").last).to_contain_text("It said:")


def test_an_approval_is_given_in_the_chat(page: Page, stage: Stage) -> None:
    name = opened(page, stage)
    say(page, f'tool write_file {{"path": "{name}.txt", "content": "kept"}}')
    box = page.locator(".lp-approval")
    expect(box).to_contain_text(f"{name}.txt")
    box.get_by_role("button", name="Yes, this once").click()
    expect(page.locator(".lp-agent").last).to_contain_text("It said:")
    expect(box).to_have_count(0)
    assert (stage.home / "workspace" / f"{name}.txt").read_text() == "kept"


def test_a_turn_is_stopped(page: Page, stage: Stage) -> None:
    opened(page, stage)
    say(page, "slow")
    expect(page.locator(".lp-live")).to_contain_text("I begin")
    page.get_by_label("Stop").click()
    expect(page.locator(".lp-agent").last).to_contain_text("stopped")


def test_a_message_is_said_differently_in_a_copy(page: Page, stage: Stage) -> None:
    name = opened(page, stage)
    say(page, "first")
    expect(page.locator(".lp-agent")).to_have_count(1)
    say(page, "second")
    expect(page.locator(".lp-agent")).to_have_count(2)
    page.locator(".lp-user").last.get_by_role("button", name="Edit").click()
    page.locator(".q-dialog textarea").fill("third")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/{name}-fork")
    expect(page.locator(".lp-user")).to_have_count(2)
    expect(page.locator(".lp-agent").last).to_contain_text("echo: third")


def test_a_place_is_labelled_and_branches_are_gone_between(page: Page, stage: Stage) -> None:
    name = opened(page, stage)
    say(page, "first")
    expect(page.locator(".lp-agent")).to_have_count(1)
    page.locator(".lp-user").get_by_role("button", name="Label").click()
    page.locator(".q-dialog textarea").fill("the start")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".lp-label")).to_have_text("the start")
    say(page, "second")
    expect(page.locator(".lp-agent")).to_have_count(2)
    say(page, "/rewind the start")
    expect(page.locator(".lp-user")).to_have_count(1)
    say(page, "other")
    expect(page.locator(".lp-agent").last).to_contain_text("echo: other")
    page.get_by_label("Branches").click()
    page.get_by_text("Branches", exact=True).click()
    page.get_by_role("button", name="Go on from here").click()
    page.wait_for_url(f"**/chat/{name}")
    expect(page.locator(".lp-agent").last).to_contain_text("echo: second")


def test_files_go_in_and_pictures_are_seen(page: Page, stage: Stage) -> None:
    opened(page, stage)
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "note.txt", "mimeType": "text/plain", "buffer": b"seven limpets"},
            {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
        ]
    )
    expect(page.locator(".lp-chosen button")).to_have_count(2)
    say(page, "look")
    expect(page.locator(".lp-user")).to_contain_text("seven limpets")
    expect(page.locator(".lp-picture img")).to_be_visible()
    assert page.locator(".lp-picture img").evaluate("one => one.decode().then(() => one.naturalWidth)") == 1


def test_a_file_of_the_agent_can_be_fetched(page: Page, stage: Stage) -> None:
    name = opened(page, stage)
    (stage.home / "workspace" / f"{name}.html").write_text("<script>window.pwned = 1</script>")
    say(page, f'tool message {{"text": "Here it is", "files": ["{name}.html"]}}')
    link = page.locator("a.lp-file", has_text=name)
    with page.expect_download() as download:
        link.click()
    assert "pwned" in download.value.path().read_text()


def test_who_was_away_has_lost_nothing(page: Page, stage: Stage) -> None:
    name = opened(page, stage)
    say(page, "first")
    expect(page.locator(".lp-agent")).to_have_count(1)
    other = page.context.new_page()
    page.goto("about:blank")
    other.goto(f"{stage.url}/web/chat/{name}")
    say(other, "second")
    expect(other.locator(".lp-agent")).to_have_count(2)
    page.goto(f"{stage.url}/web/chat/{name}")
    expect(page.locator(".lp-agent")).to_have_count(2)
