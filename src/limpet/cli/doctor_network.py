"""What `limpet doctor` asks of others: is there a network, each model service with each key, and their clocks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

from msgspec import Struct

from limpet.cli.doctor import Finding, Situation
from limpet.cli.doctor_home import settings_or_none
from limpet.llm.choose import ModelSettings, ProviderSettings
from limpet.llm.configured import model_settings
from limpet.llm.profiles import profile_of, services
from limpet.llm.reach import Reached, reach
from limpet.types.profile import Profile

SKEW = 90.0
"""Seconds that a clock may be wrong before schedules and signatures suffer."""
NOWHERE = ("192.0.2.1", 9)
"""An address of RFC 5737 for documents: whether there is a way there is known without a packet."""


class Asked(Struct, frozen=True):
    """A service with one of its keys; `where` says which."""

    profile: Profile
    key: str
    where: str


async def check_network(situation: Situation) -> list[Finding]:
    if situation.offline:
        return [Finding("network", "note", "was not looked at", "Leave out --offline.", "network.skipped")]
    proxies = [name for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY") if _set(situation, name)]
    through = f", through the proxy of {', '.join(proxies)}" if proxies else ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect(NOWHERE)
        except OSError as error:
            remedy = "Connect this machine; until then only models on it answer."
            return [Finding("network", "warning", f"there is no way out: {error.strerror}", remedy, "network.none")]
    return [Finding("network", "ok", f"there is a way out{through}")]


def _set(situation: Situation, name: str) -> bool:
    return bool(situation.environ.get(name) or situation.environ.get(name.lower()))


async def check_providers(situation: Situation) -> list[Finding]:
    """Each model service that is configured or has a key in the environment, with each of its keys."""
    settings = settings_or_none(situation)
    if situation.offline or settings is None:
        return []
    models = model_settings(settings, situation.home.root, situation.environ, on_missing=lambda _: None)
    asked = list(_asked(models, situation))
    if not asked:
        return []
    answers = await asyncio.gather(*(reach(one.profile, one.key) for one in asked))
    in_use = settings.agent.model.partition("/")[0]
    found = [_finding(one, answer, in_use=in_use) for one, answer in zip(asked, answers, strict=True)]
    skews = sorted((answer.skew for answer in answers if answer.skew is not None), key=abs)
    return [*found, *_clock(skews)]


def _asked(models: ModelSettings, situation: Situation) -> Iterator[Asked]:
    environ = situation.environ
    for name in dict.fromkeys((*models.providers, *services())):
        own, service = models.providers.get(name, ProviderSettings()), services().get(name)
        url = own.base_url or (environ.get(service.url_env, "").strip() if service and service.url_env else "")
        keys = [(f"providers.{name}", key) for key in (own.api_key, *own.further_keys) if key]
        variable = service.key_env if service and service.auto else ""
        if not keys and variable and environ.get(variable, "").strip():
            keys = [(variable, environ[variable].strip())]
        if not keys and own.base_url:
            keys = [(f"providers.{name}", "")]
        if not (url or (service and service.base_url)):
            continue
        profile = profile_of(name, own.model or "any", base_url=url, wire=own.wire, catalog=models.catalog)
        yield from (Asked(profile, key, where) for where, key in keys)


def _finding(asked: Asked, answer: Reached, *, in_use: str) -> Finding:
    name = asked.profile.provider
    text = f"{name} ({asked.where}): {answer.text}"
    if answer.state in ("works", "unsure"):
        return Finding("provider", "ok", text)
    if answer.state == "refused":
        remedy = f"Set the right key: limpet onboard --provider {name} --api-key secret:{name}"
        return Finding("provider", "broken", text, remedy, "provider.refused")
    if answer.state == "limited":
        return Finding("provider", "warning", text, "Look at the account there.", "provider.limited")
    remedy = f"Check network, proxy and the address {asked.profile.base_url}."
    return Finding("provider", "broken" if name == in_use else "warning", text, remedy, "provider.unreachable")


def _clock(skews: list[float]) -> Iterator[Finding]:
    if not skews:
        return
    skew = skews[0]  # the service that agrees most with us
    if abs(skew) > SKEW:
        text = f"this machine's clock is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}"
        remedy = "Set the clock, and let it be kept (timedatectl set-ntp true; macOS: Date & Time)."
        yield Finding("clock", "warning", text, remedy, "clock.skew")
    else:
        yield Finding("clock", "ok", "agrees with that of the services", id="clock.skew")
