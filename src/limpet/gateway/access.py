"""Access: whose messages are for us. People are known by stable ids, never by names they give themselves."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limpet.config.channels import ChannelSettings
from limpet.store.peers import CONFIGURED, Peer
from limpet.types.channel import Arrival
from limpet.types.envelope import Trust
from limpet.types.ports import Clock

ALL = "*"


class Access(Struct, frozen=True):
    """`taken`: it is for us, trusted so far. `pair`: a stranger, who may ask to be let in. Else `ignored`, and why."""

    kind: Literal["taken", "pair", "ignored"]
    trust: Trust = "peer"
    why: str = ""


def judge(settings: ChannelSettings, arrival: Arrival, peer: Peer | None) -> Access:
    """Whether `arrival` is for us; `peer` is who the sender is known as."""
    if not arrival.sender:
        return Access("ignored", why="nobody said it")
    peer = None if peer is not None and peer.by == CONFIGURED else peer
    is_owner = arrival.sender in settings.owners or (peer is not None and peer.role == "owner")
    trust: Trust = "owner" if is_owner else "peer"
    if arrival.in_group:
        return _in_group(settings, arrival, trust=trust)
    if is_owner or settings.direct == "open":
        return Access("taken", trust)
    if settings.direct == "disabled":
        return Access("ignored", why="direct chats are disabled")
    if arrival.sender in settings.allow or peer is not None:
        return Access("taken", trust)
    if settings.direct == "pairing":
        return Access("pair", why="a stranger")
    return Access("ignored", why="not on the list")


def _in_group(settings: ChannelSettings, arrival: Arrival, *, trust: Trust) -> Access:
    places = (arrival.address.chat, arrival.parent, arrival.space)
    if ALL not in settings.groups and not any(place in settings.groups for place in places if place):
        return Access("ignored", why="the group is not on the list")
    if settings.group_allow and trust != "owner" and arrival.sender not in settings.group_allow:
        return Access("ignored", why="not one of the people who may speak in groups")
    meant = arrival.mentioned or arrival.pressed or (arrival.to_all and settings.to_all)
    if settings.mention and not meant:
        return Access("ignored", why="not meant")
    return Access("taken", trust)


class Pace:
    """How fast people write: at most so many messages of one person in a minute."""

    MINUTE = 60.0
    FORGET = 10_000
    """People after whom those are forgotten who have been silent for a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[tuple[str, str, str], list[float]] = {}

    def allows(self, arrival: Arrival, *, most: int) -> Literal["yes", "no", "first no"]:
        """`first no`: the first message of the minute that is too many, of which its sender is told."""
        now = self._clock.monotonic()
        if len(self._times) > self.FORGET:
            self._times = {key: times for key, times in self._times.items() if times[-1] > now - self.MINUTE}
        address = arrival.address
        times = self._times.setdefault((address.channel, address.account, arrival.sender), [])
        times[:] = [one for one in times if one > now - self.MINUTE]
        if len(times) > most:
            return "no"
        times.append(now)
        return "yes" if len(times) <= most else "first no"
