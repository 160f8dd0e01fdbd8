"""Topics with a place for the id of a device."""

from __future__ import annotations

from dataclasses import dataclass

from limpet.errors import ConfigError

DEVICE = "{device}"
_SPECIAL = frozenset("+#\0")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A topic of which one level is the device's id."""

    levels: tuple[str, ...]

    @property
    def filter(self) -> str:
        """What to subscribe to."""
        return "/".join("+" if level == DEVICE else level for level in self.levels)

    def topic(self, device: str) -> str:
        return "/".join(device if level == DEVICE else level for level in self.levels)

    def device(self, topic: str) -> str:
        """Whose topic it is; empty: it is none of these."""
        levels = topic.split("/")
        return levels[self.levels.index(DEVICE)] if self._covers(levels) else ""

    def meets(self, other: Pattern) -> bool:
        """Whether a topic can be one of both."""
        return self._covers(other.levels)

    def _covers(self, levels: tuple[str, ...] | list[str]) -> bool:
        pairs = zip(self.levels, levels, strict=False)
        return len(levels) == len(self.levels) and all(a == b or DEVICE in (a, b) for a, b in pairs)


def pattern(topic: str, where: str) -> Pattern:
    """Reads the setting `where`. Raises `ConfigError`."""
    levels = tuple(topic.split("/"))
    if levels.count(DEVICE) != 1 or topic.count("{") != 1 or _SPECIAL & set(topic):
        raise ConfigError(
            f"{where} is {topic!r}.", hint=f"Name a topic without wildcards in which one level is {DEVICE}."
        )
    return Pattern(levels)


def is_device(id: str) -> bool:
    """Whether `id` can stand in a topic."""
    return bool(id) and "/" not in id and not _SPECIAL & set(id) and len(id.encode()) <= 1_000
