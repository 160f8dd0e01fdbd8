"""Who may, what goes wrong, who leaves: the API as any program sees it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import openai as sdk
import pytest

from limpet.assistant.scope import person_of
from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.cli.sessions_find import reading
from limpet.store import inbox, tokens, turns
from limpet.testing.fakes.script import Reply, Seen
from limpet.types.envelope import InboxRow
from tests.gateway.house import echo, messages
from tests.server.api.clients import PIXEL, made, openai, scripted
from tests.server.api.clients import turns as asked
from tests.server.test_server import Here, served

HELLO: list[object] = [{"role": "user", "content": "hello"}]


async def post(here: Here, path: str, body: object, **headers: str) -> tuple[int, str]:
    given = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {here.token}", **headers}) as session,
        session.post(f"http://127.0.0.1:{here.port}{path}", data=given) as answer,
    ):
        return answer.status, await answer.text()


def test_a_token_may_what_its_scopes_say(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            async with openai(here, await made(here, "reader", ["read"])) as client:
                assert [one.id async for one in client.models.list()]
                with pytest.raises(sdk.PermissionDeniedError, match="scope 'chat'"):
                    await client.chat.completions.create(model="limpet", messages=HELLO)  # type: ignore
            async with openai(here, await made(here, "phone", ["chat"])) as client:
                answer = await client.chat.completions.create(model="limpet", messages=HELLO)  # type: ignore
                assert answer.choices[0].message.content == "echo: hello"
                with pytest.raises(sdk.PermissionDeniedError):
                    await client.models.list()

    asyncio.run(main())


def test_a_token_of_one_agent_is_for_that_one(home: Path) -> None:
    async def main() -> None:
        async with served(home, config="[agents.second]\n[agents.third]\n") as here:
            async with openai(here, await made(here, agent="second")) as client:
                assert [one.id async for one in client.models.list()] == ["limpet", "limpet/second"]
                with pytest.raises(sdk.NotFoundError):
                    await client.chat.completions.create(model="limpet/third", messages=HELLO)  # type: ignore

    asyncio.run(main())


def test_a_revoked_token_is_worthless_at_once(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            async with openai(here, await made(here)) as client:
                await client.models.list()
                where = Invocation(config=str(here.home / "config.toml")).home()
                await asyncio.to_thread(change, where, lambda one: tokens.revoke(one, "phone", now=2))
                with pytest.raises(sdk.AuthenticationError):
                    await client.models.list()

    asyncio.run(main())


def test_wrong_tokens_are_listened_to_ten_times(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            found = [(await post(here, "/v1/messages", {}, Authorization="Bearer no"))[0] for _ in range(11)]
            assert found == [401] * 10 + [429]

    asyncio.run(main())


def test_a_program_is_not_the_owner(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            shown = await made(here)
            await post(here, "/v1/chat/completions", {"model": "limpet", "messages": HELLO, "user": "u"})
            own = _rows(here)
            async with openai(here, shown) as client:
                await client.chat.completions.create(model="limpet", messages=HELLO, user="u")  # type: ignore
            theirs = [row for row in _rows(here) if row not in own]
            assert [(row.key, row.inbound.trust) for row in own] == [("agent:main:api:server:u", "owner")]
            assert [(row.key, row.inbound.trust) for row in theirs] == [("agent:main:api:phone:u", "peer")]

    asyncio.run(main())


def test_no_name_of_a_token_makes_it_the_owner(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here, await made(here, "session")) as client:
            await client.chat.completions.create(model="limpet", messages=HELLO)  # type: ignore
            (row,) = _rows(here)
            assert not person_of(row.inbound).is_owner

    asyncio.run(main())


def _rows(here: Here) -> list[InboxRow]:
    with reading(Invocation(config=str(here.home / "config.toml"))) as connection:
        assert connection is not None
        found = [inbox.find(connection, id) for id in range(1, 10)]
        return [one for one in found if one is not None]


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"{", 400, "cannot be used"),
        (b"[" * 100_000, 400, "cannot be used"),
        ({"model": "limpet", "messages": []}, 400, "messages"),
        ({"model": "limpet", "messages": [{"role": "assistant", "content": "x"}]}, 400, "newest message"),
        ({"model": "limpet", "messages": HELLO, "n": 2}, 400, "`n` is 1"),
        ({"model": "limpet", "messages": HELLO, "stop": "x"}, 400, "stop sequences"),
        ({"model": "limpet", "messages": HELLO, "temperature": 9}, 400, "temperature"),
        ({"model": "limpet", "messages": HELLO, "tool_choice": "required"}, 400, "tool_choice"),
        ({"model": "limpet", "messages": HELLO, "response_format": {"type": "json_object"}}, 400, "format"),
        (
            {"model": "limpet", "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]},
            400,
            "which there is",
        ),
        (
            {"model": "limpet", "messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            400,
            "input_audio",
        ),
        (
            {
                "model": "limpet",
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/x"}}]}
                ],
            },
            400,
            "could not be fetched",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(home: Path, body: object, status: int, why: str) -> None:
    async def main() -> None:
        async with served(home) as here:
            found, text = await post(here, "/v1/chat/completions", body)
            assert found == status
            assert why in json.loads(text)["error"]["message"]
            assert asked(here) == 0

    asyncio.run(main())


def test_a_history_that_is_not_known_is_told_to_the_agent(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            said = [
                {"role": "user", "content": "My boat is called Heron."},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": "What is it called?"},
            ]
            status, _ = await post(here, "/v1/chat/completions", {"model": "limpet", "messages": said})
            assert status == 200
            assert "user: My boat is called Heron." in str(messages(here.model.requests[-1].body))

    asyncio.run(main())


def test_what_the_model_refuses_is_an_error(home: Path) -> None:
    async def main() -> None:
        refused = Reply(status=400, body={"error": {"message": "no such thing", "type": "invalid_request_error"}})
        async with served(home, script=scripted(*[refused] * 4)) as here:
            for stream in (False, True):
                body = {"model": "limpet", "messages": HELLO, "stream": stream}
                status, text = await post(here, "/v1/chat/completions", body)
                assert status in (200, 400)
                assert "no such thing" in text
                assert '"error"' in text

    asyncio.run(main())


@pytest.mark.parametrize("gone", ["finish", "stop"])
def test_who_leaves_loses_nothing_or_stops_it(home: Path, gone: str) -> None:
    async def main() -> None:
        begun = asyncio.Event()

        def slow(seen: Seen) -> Reply:
            begun.set()
            return Reply(text=("one", " two", " three"), gap=0.4)

        async with served(home, script=slow, config=f'[api]\ngone = "{gone}"\n') as here, openai(here) as client:
            stream = await client.chat.completions.create(
                model="limpet",
                messages=HELLO,
                stream=True,
                user="u",  # type: ignore
            )
            await begun.wait()
            await stream.close()
            state = await _ended(here)
            assert state == ("done" if gone == "finish" else "cancelled")

    asyncio.run(main())


async def _ended(here: Here) -> str:
    """How the only turn there is has ended."""
    async with asyncio.timeout(30):
        while True:
            with reading(Invocation(config=str(here.home / "config.toml"))) as connection:
                assert connection is not None
                row = inbox.find(connection, 1)
                turn = turns.find(connection, row.turn) if row is not None else None
                if turn is not None and turn.ended:
                    return turn.state
            await asyncio.sleep(0.05)


def test_fields_without_meaning_are_named(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here, openai(here) as client:
            raw = await client.chat.completions.with_raw_response.create(
                model="limpet",
                messages=HELLO,
                seed=1,
                top_p=0.5,  # type: ignore
            )
            assert raw.headers["X-Limpet-Ignored"] == "seed, top_p"

    asyncio.run(main())


def test_a_request_may_not_be_larger_than_the_settings_say(home: Path) -> None:
    async def main() -> None:
        async with served(home, config="[api]\nsize = 100\n") as here:
            assert (await post(here, "/v1/responses", b"x" * 101))[0] == 413

    asyncio.run(main())


def test_what_takes_too_long_is_had_later(home: Path) -> None:
    async def main() -> None:
        def slow(seen: Seen) -> Reply:
            return Reply(text=("late",), delay=1.0)

        async with served(home, script=slow, config="[api]\nminutes = 0.005\n") as here:
            body = {"model": "limpet", "messages": HELLO}
            status, text = await post(here, "/v1/chat/completions", body, **{"Idempotency-Key": "k"})
            assert status == 504
            assert "goes on" in text
            async with asyncio.timeout(30):
                while status != 200:
                    status, text = await post(here, "/v1/chat/completions", body, **{"Idempotency-Key": "k"})
            assert "late" in text
            assert asked(here) == 1

    asyncio.run(main())


@pytest.mark.parametrize("vectors", ["auto", "off"])
def test_embeddings_come_from_the_memory_or_it_is_said_what_to_install(home: Path, vectors: str) -> None:
    async def main() -> None:
        async with served(home, config=f'[memory]\nvectors = "{vectors}"\n') as here, openai(here) as client:
            if vectors == "off":
                with pytest.raises(sdk.NotFoundError, match="limpet\\[vectors\\]"):
                    await client.embeddings.create(model="limpet", input="tide")
                return
            found = await client.embeddings.create(model="limpet", input=["tide", "boat"])
            plain = await client.embeddings.create(model="limpet", input="tide", encoding_format="float")
            assert [one.index for one in found.data] == [0, 1]
            assert len(found.data[0].embedding) == len(plain.data[0].embedding) > 100
            assert found.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-5)

    asyncio.run(main())


def test_pages_of_others_are_refused(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            assert (await post(here, "/v1/responses", {}, Origin="http://evil.example"))[0] == 403
            assert (await here.get("/openapi.json", Origin="http://evil.example"))[0] == 403

    asyncio.run(main())


def test_two_requests_of_one_conversation_have_an_answer_each(home: Path) -> None:
    async def main() -> None:
        def slow(seen: Seen) -> Reply:
            return Reply(text=echo(seen).text, delay=0.1)

        async with served(home, script=slow) as here:
            bodies = [
                {"model": "limpet", "user": "u", "messages": [{"role": "user", "content": text}]}
                for text in ("one", "two")
            ]
            found = await asyncio.gather(*(post(here, "/v1/chat/completions", body) for body in bodies))
            assert ["echo: one" in found[0][1], "echo: two" in found[1][1]] == [True, True]

    asyncio.run(main())


def test_the_picture_is_one(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            for url, code in (
                ("data:image/png;base64,!!", "invalid_base64"),
                ("data:image/png;base64,aGVsbG8=", "invalid_image"),
                ("ftp://x/y", "invalid_image_url"),
                (f"data:image/png;base64,{PIXEL}", ""),
            ):
                part = {"type": "image_url", "image_url": {"url": url}}
                body = {"model": "limpet", "messages": [{"role": "user", "content": [part]}]}
                _, text = await post(here, "/v1/chat/completions", body)
                assert (json.loads(text).get("error") or {"code": ""})["code"] == code

    asyncio.run(main())


def test_a_command_of_the_owner_is_answered_each_time_alike(home: Path) -> None:
    async def main() -> None:
        async with served(home) as here:
            answers: list[str] = []
            for key in ("k1", "k2", "k1"):
                said = {"k1": "/whoami", "k2": "/help"}[key]
                body = {"model": "limpet", "user": "u", "messages": [{"role": "user", "content": said}]}
                status, text = await post(here, "/v1/chat/completions", body, **{"Idempotency-Key": key})
                assert status == 200
                answer = json.loads(text)["choices"][0]["message"]["content"]
                answers.append(answer)
            assert answers[0] == answers[2] != answers[1]
            assert all(answers)
            assert asked(here) == 0

    asyncio.run(main())


def test_without_a_model_it_is_said_and_kept(home: Path) -> None:
    async def main() -> None:
        async with served(home, config='[agents.second]\nmodel = "nowhere/none"\n') as here:
            status, text = await post(here, "/v1/chat/completions", {"model": "limpet/second", "messages": HELLO})
            assert status == 503
            assert "nowhere" in text

    asyncio.run(main())
