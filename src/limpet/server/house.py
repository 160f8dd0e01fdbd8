"""What the server knows of the gateway it stands before."""

from __future__ import annotations

from collections.abc import Sequence

from limpet import __version__
from limpet.gateway.gateway import Gateway
from limpet.gateway.watch import Watch
from limpet.server.channel import WebChannel, address
from limpet.server.protocol import Health, Said
from limpet.session import keys
from limpet.session.export import plain
from limpet.store import entries, inbox, outbox, outlook, sessions
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.outbox import Place
from limpet.store.sql import Connection
from limpet.types.channel import File
from limpet.types.entry import AssistantEntry, UserEntry
from limpet.types.envelope import Address, OutboxRow

LOOK_BACK = 8
"""Entries that are looked through for each message of a history."""


class House:
    """The gateway's conversations as the channel `web` shows them. `agent` answers there."""

    def __init__(self, gateway: Gateway, channel: WebChannel, *, store: Store, nudges: Nudges, watch: Watch) -> None:
        self.name = f"limpet {__version__}"
        self.gateway = gateway
        self.store = store
        self.nudges = nudges
        self.watch = watch
        self._channel = channel
        self._agent = "main"

    def key_of(self, chat: str) -> str:
        """The session key of a chat."""
        return keys.web(self._agent, chat)

    async def say(self, chat: str, text: str, key: str, *, files: Sequence[File] = ()) -> bool:
        """Whether it is new. Raises `StoreError`, `NotReadyError`."""
        known = self.store.read(lambda connection: inbox.find_event(connection, address(chat), key))
        if known is None:
            await self._channel.say(chat, text, key, files=files)
        return known is None

    def address_of(self, chat: str) -> Address:
        return address(chat)

    def newest(self, chat: str) -> Place:
        return self.store.read(lambda connection: outbox.newest(connection, address(chat)))

    def messages(self, chat: str, after: Place, *, limit: int) -> list[OutboxRow]:
        return self.store.read(lambda connection: outbox.after(connection, address(chat), after, limit=limit))

    def history(self, chat: str, limit: int) -> tuple[Said, ...]:
        """The newest messages of the live conversation, oldest first."""

        def look(connection: Connection) -> tuple[Said, ...]:
            live = sessions.live(connection, self.key_of(chat))
            if live is None:
                return ()
            start = max(0, entries.last_seq(connection, live.id) - limit * LOOK_BACK)
            found: list[Said] = []
            for entry in entries.load(connection, live.id, after=start):
                match entry.payload:
                    case UserEntry(message=message):
                        found.append(Said("user", "".join(map(plain, message.content)), entry.at))
                    case AssistantEntry(message=message) if message.text.strip():
                        found.append(Said("assistant", message.text, entry.at))
                    case _:
                        pass
            return tuple(found[-limit:])

        return self.store.read(look)

    def health(self) -> Health:
        snapshot = self.gateway.snapshot()
        channels = {f"{one.channel}:{one.account}": str(one.state) for one in snapshot.channels}
        channels |= {f"{kind}:{account}".rstrip(":"): "fault" for kind, account, _ in snapshot.faults}
        return Health(all(one == "connected" for one in channels.values()), channels, len(snapshot.running))

    def metrics(self) -> str:
        """In Prometheus's text format."""
        found, health = self.store.read(outlook.look), self.health()
        lines = [
            *_gauge("limpet_inbox_waiting", found.inbox, "Messages that wait for their turn."),
            *_gauge("limpet_outbox_waiting", found.outbox, "Messages that wait to be delivered."),
            *_gauge("limpet_outbox_dead", found.dead, "Messages that did not arrive in the last week."),
            *_gauge("limpet_turns_running", found.running, "Turns that run."),
            *_gauge("limpet_turns_waiting", found.waiting, "Turns that wait for the owner's word."),
            *_gauge("limpet_ready", int(health.is_ready), "Whether every channel is connected."),
            "# HELP limpet_channel_connected Whether messages flow.",
            "# TYPE limpet_channel_connected gauge",
        ]
        for name, state in health.channels.items():
            kind, _, account = name.partition(":")
            labels = f'channel="{_label(kind)}",account="{_label(account)}"'
            lines.append(f"limpet_channel_connected{{{labels}}} {int(state == 'connected')}")
        return "\n".join(lines) + "\n"


def _gauge(name: str, value: int, about: str) -> tuple[str, ...]:
    return f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
