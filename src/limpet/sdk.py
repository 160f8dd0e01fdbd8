"""The SDK: an agent in your own program, on the same home, log and guarantees as `limpet agent`.

    async with Agent(home="bot", tools=[tide]) as agent:
        reply = await agent.ask("When should I be at the harbour?")

`Agent.ask` and `Agent.stream` are its main session; `Agent.session(name)` is any other. `ask` is one question from a
program without an event loop, or from a notebook. Examples: `examples/`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Literal, Self, TypeVar

from msgspec import Struct

from limpet import errors
from limpet.assistant.services import Services
from limpet.assistant.tidying import tidy
from limpet.cli.door import Entrance
from limpet.cli.group import Invocation
from limpet.cli.message import attach
from limpet.cli.talk import Talk
from limpet.config.channels import ChannelSettings
from limpet.config.load import Loaded, load_settings
from limpet.config.paths import Home, find_home
from limpet.gateway.gateway import Opening
from limpet.llm.metered import Countable
from limpet.session.export import markdown
from limpet.store import turns, usage
from limpet.types.approval import Approval
from limpet.types.approval import Reply as Word
from limpet.types.channel import Channel
from limpet.types.envelope import Attachment, OutboxRow
from limpet.types.event import Event, Notice
from limpet.types.ports import Tool
from limpet.types.usage import NO_USAGE, Usage

log = logging.getLogger(__name__)

T = TypeVar("T")
Approve = Callable[[Approval], Awaitable[bool] | bool]
"""Asked whether a call may run; `approval.wanted` says which."""
Settings = Mapping[str, str | int | float | bool]

_listener: ContextVar[Callable[[Event], None] | None] = ContextVar("listener", default=None)


class Reply(Struct, frozen=True):
    """What came back: the answer, files the agent sent along, notices beside it, and what it cost.

    `turn` is empty for a slash command.
    """

    text: str
    state: Literal["done", "cancelled"] = "done"
    turn: str = ""
    files: tuple[Attachment, ...] = ()
    notices: tuple[str, ...] = ()
    usage: Usage = NO_USAGE

    def __str__(self) -> str:
        return self.text


class Agent:
    """An agent that works between `async with Agent(…)` and its end.

    `home` is the folder of everything it keeps (default: `LIMPET_HOME`, else `~/.limpet`), `name` which of its agents;
    `model` a reference such as `anthropic/claude-sonnet-5`, or a model object; `tools` are your own, which run
    unasked; `approve` decides about calls that need a word (without it those are refused); `settings` go over those of
    the file, by dotted name. Entering raises `ConfigError`, `UserError`, `StoreError`.
    """

    def __init__(
        self,
        home: str | Path = "",
        *,
        model: str | Countable = "",
        tools: Sequence[Tool] = (),
        approve: Approve | None = None,
        settings: Settings | None = None,
        name: str = "main",
    ) -> None:
        self._invocation = Embedded(folder=str(home), given=dict(settings or {}))
        named = model if isinstance(model, str) else ""
        self._entrance = Entrance(
            emit=_emit,
            approvals=_Asker(approve),
            model=named,
            agent=name,
            announce=False,
            stays=True,
            given=None if isinstance(model, str) else model,
            tools=tuple(tools),
        )
        self._stack = AsyncExitStack()
        self._services: Services | None = None
        self._sessions: dict[str, Session] = {}

    async def __aenter__(self) -> Self:
        from limpet.wiring import open_assistant  # the rest of Limpet, when it is used

        opened = open_assistant(self._invocation, self._entrance)
        self._services = await self._stack.enter_async_context(opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._services is not None:
                for one in self._sessions.values():
                    await tidy(self._services, one.key)
        finally:
            self._sessions.clear()
            self._services = None
            await self._stack.aclose()

    @property
    def services(self) -> Services:
        """What everything is made of, for programs that need more. Raises `UserError` outside `async with`."""
        if self._services is None:
            raise errors.UserError("The agent is not open.", hint="Use it inside `async with Agent(…) as agent:`.")
        return self._services

    @property
    def workspace(self) -> Path:
        """The folder of Markdown files that it works in."""
        return Path(self.services.workspace)

    def session(self, name: str = "main") -> Session:
        """The conversation `name`; `main` is the one that `limpet agent` and `limpet chat` have."""
        if name not in self._sessions:
            self._sessions[name] = Session(self.services, name, model=self._entrance.model)
        return self._sessions[name]

    async def ask(self, text: str, *, files: Sequence[str | Path] = ()) -> Reply:
        """Say something in the main session; see `Session.ask`."""
        return await self.session().ask(text, files=files)

    def stream(self, text: str, *, files: Sequence[str | Path] = ()) -> AsyncGenerator[Event]:
        """The same, with all that happens meanwhile; see `Session.stream`."""
        return self.session().stream(text, files=files)

    async def serve(
        self, *channels: Channel, owners: Sequence[str] = (), everyone: bool = False, stop: asyncio.Event | None = None
    ) -> None:
        """Be a gateway until `stop` is set or this is cancelled, with your own `channels` beside those of the settings.

        `owners` are the ids of those who may do everything there; others are paired first, unless `everyone` may speak.
        Not inside `async with`. Raises `UserError`, also where a gateway runs already.
        """
        from limpet.household import open_gateway  # the rest of Limpet, when it is used

        settings = ChannelSettings(owners=tuple(owners), direct="open" if everyone else "pairing")

        def beside(usual: Opening) -> Opening:
            return _OwnDoors({(one.name, one.account): one for one in channels}, settings, usual)

        async with open_gateway(self._invocation, entrance=self._entrance, beside=beside) as gateway:
            await gateway.run(stop or asyncio.Event())


class _OwnDoors:
    """Implements the port `Opening`: the channels of a program, then the `usual` ones."""

    def __init__(self, own: Mapping[tuple[str, str], Channel], settings: ChannelSettings, usual: Opening) -> None:
        self._own = own
        self._settings = settings
        self._usual = usual

    def configured(self) -> Mapping[tuple[str, str], ChannelSettings]:
        return {**self._usual.configured(), **dict.fromkeys(self._own, self._settings)}

    def open(self, kind: str, account: str) -> Channel:
        own = self._own.get((kind, account))
        return own if own is not None else self._usual.open(kind, account)


class Session:
    """One conversation. What is said at the same time is said one after the other."""

    def __init__(self, services: Services, name: str, *, model: str = "") -> None:
        self._services = services
        self._rows: list[OutboxRow] = []
        self._talk = Talk(services, name, self._rows.append, model=model)
        self._turn = asyncio.Lock()

    @property
    def key(self) -> str:
        """Its session key, such as `agent:main:main`."""
        return self._talk.conversation.key

    async def ask(self, text: str, *, files: Sequence[str | Path] = ()) -> Reply:
        """Say something, and wait for the answer, also to what helpers report. `files` go along.

        Slash commands work as in a chat. Raises `InputError` for what cannot be taken, and what ended the turn:
        `ModelError`, `BudgetError`, `StoreError`, …
        """
        async with self._turn:
            async with self._talk.helped():
                await self._talk.check_model()
                await self._talk.catch_up()
                names = [f"@{Path(one)}" for one in files]
                services = self._services
                said = await attach(text, names, piped="", blobs=services.blobs, transcriber=services.studio)
                self._rows.clear()
                if not await self._talk.say(said.text, images=said.images):
                    await self._talk.finish()
            return self._reply()

    async def stream(self, text: str, *, files: Sequence[str | Path] = ()) -> AsyncGenerator[Event]:
        """Say something; yields every event until the turn is over, `TurnEnded` among the last.

        Leaving early stops the turn. Raises as `ask` does, after the last event.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        token = _listener.set(events.put_nowait)
        task = asyncio.create_task(self.ask(text, files=files))
        _listener.reset(token)
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                self.stop()
                await asyncio.wait((task,))

    def stop(self) -> None:
        """Stop the turn that runs: what was said so far stays in the log."""
        self._talk.conversation.stop()

    def transcript(self) -> str:
        """The conversation as Markdown."""
        return markdown(self._talk.conversation.log().path())

    def _reply(self) -> Reply:
        rows = tuple(self._rows)
        turn = next(
            (row.turn for row in reversed(rows) if row.turn), self._talk.turn
        )  # one that was stopped says nothing
        found = self._services.store.read(lambda connection: turns.find(connection, turn)) if turn else None
        if found is not None and found.state in ("failed", "interrupted"):
            kind, _, text = found.error.partition(": ")
            raise errors.class_of(kind)(text or kind)
        spent = self._services.store.read(lambda connection: usage.of_turn(connection, turn)) if turn else NO_USAGE
        return Reply(
            text="\n\n".join(row.text for row in rows if row.kind == "reply" and row.text),
            state="cancelled" if found is not None and found.state == "cancelled" else "done",
            turn=turn,
            files=tuple(file for row in rows for file in row.beside.attachments),
            notices=tuple(row.text for row in rows if row.kind != "reply"),
            usage=spent,
        )


def ask(text: str, *, files: Sequence[str | Path] = (), **options: object) -> Reply:
    """One question to a new `Agent(**options)`, without `await`: for scripts and notebooks."""

    async def once() -> Reply:
        async with Agent(**options) as agent:  # pyright: ignore[reportArgumentType] (as `Agent` says)
            return await agent.ask(text, files=files)

    return _finished(once())


def _finished(work: Coroutine[None, None, T]) -> T:
    """The result of `work`, in a thread of its own where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


class Embedded(Invocation, frozen=True, kw_only=True):
    """What commands are given, for a program: the home `folder`, and settings over those of its file."""

    folder: str = ""
    given: Mapping[str, str | int | float | bool] = {}

    def home(self) -> Home:
        environ = {**os.environ, "LIMPET_HOME": self.folder, "LIMPET_CONFIG": ""} if self.folder else os.environ
        return find_home(environ)

    def read(self) -> Loaded:
        """Raises `ConfigError`, also for a setting that there is not."""
        overlay = {f"LIMPET_{name.replace('.', '__').upper()}": name for name in self.given}
        environ = {**os.environ, **{variable: _text(self.given[name]) for variable, name in overlay.items()}}
        try:
            loaded = load_settings(self.home().config, environ)
        except errors.ConfigError as error:
            raise _said_of(overlay, error) from None
        for warning in loaded.warnings:
            if any(variable in warning for variable in overlay):
                raise _said_of(overlay, errors.ConfigError(warning, hint="See docs/config.md for all settings."))
        return loaded

    def settings(self) -> Loaded:
        """As above, with its warnings in the log."""
        loaded = self.read()
        for warning in loaded.warnings:
            log.warning("%s", warning)
        return loaded


def _said_of(overlay: Mapping[str, str], error: errors.ConfigError) -> errors.ConfigError:
    """The error with the names of settings where it has those of variables."""
    text = str(error)
    for variable, name in overlay.items():
        text = text.replace(f"environment variable {variable}", f"setting {name}").replace(variable, name)
    return errors.ConfigError(text, hint=error.hint.replace("Correct or unset it", "Correct it"))


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Asker:
    """Implements the port `Asker` by a function of the program."""

    def __init__(self, approve: Approve | None) -> None:
        self._approve = approve

    @property
    def can_ask(self) -> bool:
        return self._approve is not None

    async def ask(self, approval: Approval) -> Word | None:
        if self._approve is None:
            return None
        said = self._approve(approval)
        return Word("once" if (said if isinstance(said, bool) else await said) else "deny")


def _emit(event: Event) -> None:
    """Tell whoever streams the turn in which it happens."""
    listener = _listener.get()
    if listener is not None:
        listener(event)
    elif isinstance(event, Notice):
        log.log(logging.WARNING if event.level == "warning" else logging.INFO, "%s", event.text)
