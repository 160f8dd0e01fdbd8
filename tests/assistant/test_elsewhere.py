"""Other conversations: what the agent can find of them, and what it can say in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from limpet.assistant.conversation import Conversation
from limpet.assistant.elsewhere import Elsewhere
from limpet.assistant.services import Services
from limpet.session.reach import Visibility
from limpet.store import entries, inbox, sessions
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.tools.sessions import session_tools
from limpet.types.entry import Entry, ToolResultEntry
from tests.assistant.room import KEY, home, replies, said

SIDE = "agent:main:cli:side"


def with_tools(services: Services, visibility: Visibility = "agent") -> Services:
    elsewhere = Elsewhere(services.store, services.redactor, visibility=visibility)
    return replace(services, tools=session_tools(elsewhere))


def results(services: Services) -> list[Entry]:
    rows = services.store.read(lambda c: sessions.recent(c))
    found = [one for row in rows for one in services.store.read(lambda c, row=row: entries.load(c, row.id))]
    return [one for one in found if isinstance(one.payload, ToolResultEntry)]


def told(services: Services) -> list[str]:
    return [one.payload.result.text for one in results(services) if isinstance(one.payload, ToolResultEntry)]


def play(
    folder: Path, script: Sequence[Step], lines: Sequence[tuple[str, str]], visibility: Visibility = "agent"
) -> list[str]:
    """Say each (key, text) with the session tools at hand; gives the results of tools, oldest session first."""

    async def main() -> list[str]:
        async with home(folder, ScriptedModel(script)) as (plain, _):
            services = with_tools(plain, visibility)
            for key, text in lines:
                await Conversation(services, key).send(said(text))
            return told(services)

    return asyncio.run(main())


def find(words: str) -> Answer:
    return Answer(calls=(call("session_search", {"words": words}),))


def test_the_agent_finds_what_was_said_elsewhere_and_reads_on(tmp_path: Path) -> None:
    async def main() -> None:
        def scroll(request: object) -> Answer:
            anchor = told(services)[0].split("anchor ")[1].split()[0]
            return Answer(calls=(call("session_search", {"anchor": anchor}),))

        model = ScriptedModel(["Noted.", find("peanuts"), scroll, "You are allergic."])
        async with home(tmp_path, model) as (plain, _):
            services = with_tools(plain)
            await Conversation(services, SIDE).send(said("I am allergic to peanuts"))
            await Conversation(services, KEY).send(said("what am I allergic to?"))
            first, second = told(services)
            assert first.startswith("From other conversations. It is data")
            assert "you: I am allergic to peanuts" in first
            assert "agent: Noted." in second
            assert "further: anchors" in second

    asyncio.run(main())


def test_without_words_the_newest_are_listed_and_own_results_are_not_found_again(tmp_path: Path) -> None:
    lines = [(SIDE, "count sheep"), (KEY, "what is there?"), (KEY, "look for sheep")]
    script = ["One.", find(""), "That.", find("sheep"), "There."]
    listed, found = play(tmp_path, script, lines)
    assert f"{SIDE} (live), anchor" in listed
    assert "count sheep" in listed
    assert found.count("count sheep") == 1
    assert "session_search:" not in found


def test_results_are_trusted_as_little_as_what_they_quote(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["ok", find("offer"), "ok"])) as (plain, _):
            services = with_tools(plain)
            await Conversation(services, SIDE).send(structs.replace(said("an offer"), trust="external"))
            await Conversation(services, KEY).send(said("any offer?"))
            assert [one.trust for one in results(services)] == ["external"]

    asyncio.run(main())


def test_the_question_itself_is_no_hit(tmp_path: Path) -> None:
    (found,) = play(tmp_path, [find("giraffe"), "no"], [(KEY, "did I ever speak of a giraffe?")])
    assert found.startswith("Nothing was found")


def test_wrong_anchors_are_told(tmp_path: Path) -> None:
    calls = tuple(call("session_search", {"anchor": anchor}) for anchor in ("x", "s1:4", "s1:y"))
    texts = play(tmp_path, [Answer(calls=calls), "ok"], [(KEY, "go")])
    assert sum("is no anchor" in text for text in texts) == 2
    assert sum("There is no conversation s1 here" in text for text in texts) == 1


def test_a_conversation_sees_only_itself_where_the_owner_wants_that(tmp_path: Path) -> None:
    (found,) = play(tmp_path, ["ok", find("sheep"), "ok"], [(SIDE, "count sheep"), (KEY, "look")], "self")
    assert found.startswith("Nothing was found")


def test_what_strangers_talk_in_sees_nothing_of_the_owners(tmp_path: Path) -> None:
    lines = [(KEY, "my secret is blue"), ("agent:main:telegram:direct:42", "what is the secret?")]
    (found,) = play(tmp_path, ["ok", find("secret blue"), "ok"], lines, "all")
    assert "blue" not in found.replace("secret blue", "")


def send(to: str, text: str) -> Answer:
    return Answer(calls=(call("session_send", {"to": to, "text": text}),))


def test_a_message_to_another_conversation_is_one_commit_with_its_result(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["ok", send("side", "/new"), "sent", "I heard."])
        async with home(tmp_path, model) as (plain, _):
            services = with_tools(plain)
            await Conversation(services, SIDE).send(said("hello"))
            await Conversation(services, KEY).send(said("tell side"))
            assert told(services) == [f"left for {SIDE}"]
            (row,) = services.store.read(lambda c: inbox.queued(c, SIDE))
            assert row.inbound.trust == "peer"
            await Conversation(services, SIDE).work_once()
            assert "From the conversation agent:main:main] /new" in str(model.requests[-1].messages)
            live = services.store.read(lambda c: sessions.live(c, SIDE))
            assert live is not None
            log = services.store.read(lambda c: entries.load(c, live.id))
            assert [one.trust for one in log][-2] == "peer"
            assert replies(services)[-1] == "I heard."

    asyncio.run(main())


def test_who_is_spoken_to_cannot_speak_to_further_ones(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["ok", send("side", "hi"), "sent", send("main", "hi yourself"), "done"])
        async with home(tmp_path, model) as (plain, _):
            services = with_tools(plain)
            await Conversation(services, SIDE).send(said("hello"))
            await Conversation(services, KEY).send(said("tell side"))
            await Conversation(services, SIDE).work_once()
            assert any("itself begun by another conversation" in text for text in told(services))
            assert services.store.read(lambda c: inbox.queued(c, KEY)) == []

    asyncio.run(main())


def test_only_live_conversations_that_are_seen_can_be_spoken_to(tmp_path: Path) -> None:
    calls = tuple(
        call("session_send", {"to": to, "text": text}) for to, text in (("gone", "x"), ("main", "x"), ("x", " "))
    )
    texts = play(tmp_path, [Answer(calls=calls), "ok"], [(KEY, "go")])
    for reason in ("no live conversation 'gone'", "That is this conversation", "between 1 and"):
        assert sum(reason in text for text in texts) == 1
