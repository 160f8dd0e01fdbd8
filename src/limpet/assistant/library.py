"""The library of an agent, from the settings: where its index lies, and what makes its vectors."""

from __future__ import annotations

import time
from datetime import datetime

from limpet.config.paths import Home, find_workspace
from limpet.config.schema import Settings
from limpet.llm.media.studio import Studio, Vectors
from limpet.memory.library import Library
from limpet.memory.shelf import Shelf
from limpet.memory.sources import Talks
from limpet.prompt.runtime import local_moment
from limpet.types.ports import Embedder


def library_of(settings: Settings, home: Home, *, agent: str, studio: Studio) -> Library:
    """To be closed by the caller. Nothing is opened before it is used."""

    def local(at: int) -> datetime:
        return local_moment(at, settings.user.timezone)

    workspace = str(find_workspace(settings.agent.workspace, home))
    return Library(
        Shelf(str(home.index(agent)), workspace, Talks(str(home.database), agent, local)),
        today=lambda: local(time.time_ns() // 1_000_000).date(),
        embedder=_embedder(settings, studio),
    )


def _embedder(settings: Settings, studio: Studio) -> Embedder | None:
    """The configured model, else the local one where it is installed."""
    model = settings.models.purposes.embedding.model
    if settings.memory.vectors == "off":
        return None
    if model:
        return Vectors(studio, model)
    from limpet.memory.local_embedder import LocalEmbedder, is_installed  # not beside another one

    return LocalEmbedder() if is_installed() else None
