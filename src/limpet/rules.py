"""The owner's rules for conversations, helpers and memory, as the settings say them. Part of the composition root."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from limpet.agent.limits import Limits
from limpet.assistant.services import HelperRules, Keeping, MemoryRules, Resets, Rules
from limpet.config import schema
from limpet.config.channels import accounts
from limpet.config.paths import Home
from limpet.memory.library import Library
from limpet.prompt.runtime import local_moment
from limpet.session import keys
from limpet.session.resets import Reset, due
from limpet.store.commits import Queueing
from limpet.store.subagents import Crowd


def rules_of(settings: schema.Settings, home: Home) -> Rules:
    return Rules(
        resets=_resets(settings),
        sliding=settings.context.mode == "sliding",
        refresh_when_cold=settings.prompt.refresh_when_cold,
        keeping=_keeping(settings, home),
        approval=round(settings.approvals.minutes * 60_000),
        queueing=_queueing(settings),
        helpers=helper_rules(settings),
    )


def limits_of(settings: schema.Limits) -> Limits:
    return Limits(steps=settings.steps, minutes=settings.minutes, dollars=settings.dollars)


def helper_rules(settings: schema.Settings) -> HelperRules:
    wanted = settings.helpers
    limits = Limits(steps=wanted.steps, minutes=wanted.minutes, dollars=wanted.dollars)
    return HelperRules(wanted.depth, Crowd(wanted.each, wanted.all), limits)


def memory_rules(settings: schema.Settings, library: Library) -> MemoryRules:
    wanted = settings.memory

    async def forgotten(files: Sequence[str]) -> None:
        for file in files:
            await library.forget(file)

    return MemoryRules(
        local=lambda at: local_moment(at, settings.user.timezone),
        cap=wanted.cap,
        bound=wanted.bound,
        every=wanted.consolidate_hours * 3_600_000,
        lines=wanted.consolidate_lines,
        forgotten=forgotten,
    )


def _queueing(settings: schema.Settings) -> Callable[[str], Queueing]:
    """By the key of a session what becomes of messages while a turn runs: as its channel says, else as all do."""
    wanted = settings.gateway
    usual = Queueing(wanted.queue, round(wanted.debounce * 1000), wanted.most)
    own = {kind: one.queue for (kind, _), one in accounts(settings.channels).items() if one.queue}

    def queueing(key: str) -> Queueing:
        if keys.kind_of(key) in (*keys.UNASKED, keys.API):
            return structs.replace(usual, mode="followup")  # each run of a job or hook, each request, has its own turn
        parts = key.split(":")
        mode = own.get(parts[2]) if len(parts) > 2 else None
        return structs.replace(usual, mode=mode) if mode else usual

    return queueing


def _keeping(settings: schema.Settings, home: Home) -> Keeping:
    """How long things are kept."""
    return Keeping(
        sessions=settings.sessions.keep_days,
        archives=settings.sessions.archive_days,
        rows=settings.store.keep_days,
        runs=settings.schedule.keep_days,
        archive=str(home.archive),
        blobs=str(home.blobs),
    )


def _resets(settings: schema.Settings) -> Resets:
    """The rules by which conversations begin anew, by the kind of their key."""
    rules = {"": settings.sessions.reset, **settings.sessions.reset_by_kind}

    def resets(key: str, last: int, now: int) -> str:
        rule = rules.get(keys.kind_of(key), rules[""])
        daily = None if rule.daily < 0 else rule.daily
        zone = local_moment(now, settings.user.timezone).tzinfo
        assert zone is not None
        return due(Reset(idle=rule.idle, daily=daily), last, now, zone=zone)

    return resets
