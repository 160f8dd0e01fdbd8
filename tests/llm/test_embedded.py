from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from limpet.errors import ModelError, NoModelError, StalledError, UpstreamError
from limpet.llm.embedded import NOTICE, Embedded, EmbeddedLimits, find_embedded
from limpet.llm.profiles import profile_of
from limpet.testing.wires import answer_of, ask, collect, user
from limpet.types.content import Text
from limpet.types.event import Notice, TextDelta
from limpet.types.message import AssistantMessage, Message, Request
from limpet.types.usage import Usage

FAKE = Path(__file__).with_name("embedded_fake.py")


def embedded(mode: str = "good", **limits) -> Embedded:
    profile = profile_of("embedded", "fake", base_url=str(FAKE))
    return Embedded(profile, limits=EmbeddedLimits(**limits), command=(sys.executable, str(FAKE), mode))


def play(model: Embedded, *requests: Request) -> list[AssistantMessage]:
    async def run():
        try:
            return [await answer_of(model, request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(run())


def test_an_answer_streams_from_the_child_and_a_second_uses_the_same():
    model = embedded()

    async def run():
        try:
            events = await collect(model, ask(user("Hi", runtime="[now]")))
            return events, await answer_of(model, ask(user("long")))
        finally:
            await model.close()

    (notice, *deltas, done), second = asyncio.run(run())
    assert notice == Notice(NOTICE)
    assert deltas == [TextDelta("su 200 "), TextDelta("Hi\n\n[now]")]
    assert done.message.usage == Usage(input=5, output=2, cost=0)
    assert (second.text, second.stop) == ("su 200 long", "length")


def test_system_and_history_are_cut_to_their_share():
    history: list[Message] = [user("first")]
    for n in range(200):
        history += [
            AssistantMessage((Text(f"answer {n} " * 10),), profile_of("embedded", "m").producer),
            user(f"q {n} " * 10),
        ]
    model = embedded()
    question = model._messages(ask(*history, system="rule " * 2_000))
    assert len(question[0]["content"]) < 2_000
    assert question[1]["role"] == "user"
    assert 4 < len(question) < 40
    (long_one,) = model._messages(ask(user("word " * 9_000), system=""))
    assert len(long_one["content"]) < 4_000


def test_a_stop_takes_the_question_back_and_the_child_goes_on():
    model = embedded()

    async def run():
        shown = asyncio.Event()

        async def read():
            async with aclosing(model.stream(ask(user("wait")))) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        shown.set()

        try:
            task = asyncio.create_task(read())
            await shown.wait()
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled(), (await answer_of(model, ask())).text
        finally:
            await model.close()

    assert asyncio.run(run()) == (True, "su 200 Hi")


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("broken", ModelError, "does not load: RuntimeError"),
        ("dead", UpstreamError, "ended"),
        ("dies", UpstreamError, "ended"),
    ],
)
def test_a_child_that_fails_says_why(mode: str, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        play(embedded(mode), ask())


def test_a_child_that_is_silent_is_ended():
    with pytest.raises(StalledError):
        play(embedded("silent", piece=0.3), ask())


def test_a_missing_file_says_how_to_install():
    with pytest.raises(NoModelError) as caught:
        play(Embedded(profile_of("embedded", "m", base_url="/nowhere.gguf")), ask())
    assert "install-local" in caught.value.hint


@pytest.mark.skipif(not find_embedded(), reason="the embedded model is not installed")
def test_the_real_model_answers_and_ends_with_its_pipe():
    model = Embedded(profile_of("embedded", "smollm2-135m", base_url=find_embedded()), limits=EmbeddedLimits(answer=8))
    (answer,) = play(model, ask(user("Hello, who are you?")))
    assert answer.text
    assert 0 < answer.usage.output <= 8


PARENT = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from test_embedded import embedded
from limpet.testing.wires import ask, user

async def main():
    model = embedded()
    async for event in model.stream(ask(user("wait"))):
        if getattr(event, "text", "") == "some":
            print(model._process.pid, flush=True)

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_a_child_ends_with_its_killed_parent():
    code = PARENT.format(tests=str(FAKE.parent))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split(")")[1][:3]:
            return
        time.sleep(0.05)
    raise AssertionError("the child still lives")
