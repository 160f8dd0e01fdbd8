from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from limpet.errors import CredentialError, ModelError, StalledError, UnreachableError, UpstreamError
from limpet.llm.http import Deadlines, Http, _proxy, is_loopback
from limpet.testing.fakes import FakeOpenAI, Reply, faults
from limpet.testing.wires import answer_of, ask, user, wire_at
from limpet.types.profile import Profile

PROFILE = Profile(provider="openai", wire="openai_chat", model="m1")


def answer(reply: Reply, deadlines: Deadlines):
    async def run():
        async with FakeOpenAI([reply]) as server, wire_at(server, PROFILE, deadlines=deadlines) as model:
            return await answer_of(model, ask())

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("reply", "deadlines", "words"),
    [
        (Reply(stall_after=0), Deadlines(idle=0.1), "no content for 0.1 s"),
        (Reply(text=("a", "b"), stall_after=2, pings=0.02), Deadlines(idle=0.1), "no content for 0.1 s"),
        (Reply(text=("a",) * 50, gap=0.02), Deadlines(total=0.1), "not complete after 0.1 s"),
        (Reply(text=("a",), delay=5), Deadlines(connect=0.05, first_byte=0.05), "sent nothing within"),
        (Reply(chunks=(faults.delta(content=""),) * 99, gap=0.02), Deadlines(idle=0.1), "no content for 0.1 s"),
        (
            Reply(chunks=(faults.delta(tool_calls=[faults.piece("")]),) * 99, gap=0.02),
            Deadlines(idle=0.1),
            "no content for 0.1 s",
        ),
    ],
    ids=[
        "headers only",
        "comments are no progress",
        "total",
        "no headers",
        "empty text is no progress",
        "empty pieces of calls are no progress",
    ],
)
def test_stalls_end_at_their_deadline(reply: Reply, deadlines: Deadlines, words: str):
    with pytest.raises(StalledError, match=words):
        answer(reply, deadlines)


def test_content_keeps_a_slow_answer_alive():
    got = answer(Reply(text=("a",) * 8, gap=0.03), Deadlines(idle=0.15))
    assert got.text == "a" * 8


@pytest.mark.parametrize("end", [Reply(text=("a",), stall_after=3), Reply(text=("a",), cut_after=3)])
def test_a_stall_or_cut_after_the_last_piece_does_no_harm(end: Reply):
    assert answer(end, Deadlines(finish=0.1)).text == "a"


def test_a_cut_in_the_middle_is_an_error():
    with pytest.raises(UpstreamError, match="cut off"):
        answer(Reply(text=("a", "b", "c"), cut_after=3), Deadlines())


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_bytes_split_anywhere_make_the_same_answer(size: int):
    assert (
        answer(Reply(text=("Grüße ", "\U0001f600", " 你好"), split=size), Deadlines()).text == "Grüße \U0001f600 你好"
    )


def test_stopping_during_a_stall_is_immediate_and_leaves_the_server():
    async def run():
        async with FakeOpenAI([Reply(text=("a",), stall_after=2)]) as server, wire_at(server, PROFILE) as model:
            shown = asyncio.Event()

            async def read():
                async with aclosing(model.stream(ask())) as events:
                    async for _ in events:
                        shown.set()

            task = asyncio.create_task(read())
            await shown.wait()
            started = time.monotonic()
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled(), time.monotonic() - started

    cancelled, seconds = asyncio.run(run())
    assert cancelled
    assert seconds < 5  # a guard against hanging


def test_a_body_over_a_megabyte_is_sent_whole():
    async def run():
        async with FakeOpenAI([Reply(text=("ok",))]) as server, wire_at(server, PROFILE) as model:
            await answer_of(model, ask(user("x" * 5_000_000)))
            return len(server.requests[0].raw)

    assert asyncio.run(run()) > 5_000_000


def test_connections_are_kept_for_the_next_request():
    async def run():
        async with FakeOpenAI([Reply(text=("a",)), Reply(text=("b",))]) as server, wire_at(server, PROFILE) as model:
            texts = [(await answer_of(model, ask())).text for _ in range(2)]
            return texts, len({seen.peer for seen in server.requests})

    assert asyncio.run(run()) == (["a", "b"], 1)


def test_proxies_of_the_environment_are_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")
    assert _proxy("https://api.test/v1") == "http://proxy.test:3128"
    assert _proxy("https://inside.test/v1") is None
    assert _proxy("http://127.0.0.1:1234/v1") is None
    assert is_loopback("http://[::1]:80/")


def test_local_servers_get_five_times_as_long():
    assert Deadlines().times(5) == Deadlines(connect=10, first_byte=300, idle=300, total=3000, finish=5)


def refused(url: str, *, headers: dict[str, str] | None = None) -> ModelError:
    async def run():
        async with FakeOpenAI([]) as server:
            http = Http("openai", deadlines=Deadlines(connect=0.5))
            try:
                async with http.post(url.format(server.base_url.partition("://")[2]), [b"{}"], headers=headers or {}):
                    pass
            finally:
                await http.close()

    with pytest.raises(ModelError) as caught:
        asyncio.run(run())
    return caught.value


def test_a_failed_handshake_and_an_unknown_host_are_unreachable_and_name_the_address():
    tls = refused("https://{}/chat/completions")
    assert isinstance(tls, UnreachableError)
    assert "https://127.0.0.1:" in str(tls)
    host = refused("http://nowhere.invalid/v1")
    assert isinstance(host, UnreachableError)
    assert "nowhere.invalid" in str(host)


@pytest.mark.parametrize("url", ["no address", "ftp://x.test/", "http://"])
def test_what_is_no_address_is_unreachable(url: str):
    assert isinstance(refused(url), UnreachableError)


def test_a_key_with_a_line_break_is_told_and_not_shown():
    error = refused("http://{}/chat/completions", headers={"Authorization": "Bearer se\ncret"})
    assert isinstance(error, CredentialError)
    assert "cret" not in error.present()
