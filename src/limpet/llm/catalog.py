"""What is known of models: window, limit of the output, modalities, price. Facts only; ways are in `profiles.json`.

Three layers, each wins over the one before, fact by fact: `catalog.json` beside this module, `catalog.json` in the home
(`limpet models update` writes it), the table `models.catalog` of the configuration.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from limpet.types.profile import Price

log = logging.getLogger(__name__)

SHIPPED = Path(__file__).with_name("catalog.json")
FETCHED = "catalog.json"
"""The name of the fetched catalog in the home."""
_MICRO = 1_000_000
_DATED = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d\d-\d\d|\d{4}|latest))?(?:-v\d+)?(?::\w+)?$")

Modality = Literal["text", "image", "audio", "video", "pdf"]


class Dollars(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Dollars per million tokens. Without a price of its own, what is read from a cache or written to it is input."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0

    @property
    def price(self) -> Price:
        return Price(
            input=round(self.input * _MICRO),
            output=round(self.output * _MICRO),
            cache_read=round(self.cache_read * _MICRO),
            cache_write=round(self.cache_write * _MICRO),
        )


class Facts(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One model. Tokens; 0, empty or None = not known. `source` is named where it is not that of the catalog.

    `input` and `output` are what it takes and gives, `thinking` whether it reasons before it answers.
    """

    window: int = 0
    max_output: int = 0
    input: tuple[Modality, ...] = ()
    output: tuple[Modality, ...] = ()
    thinking: bool | None = None
    price: Dollars | None = None
    source: str = ""

    def over(self, below: Facts) -> Facts:
        """These facts, and those of `below` where these say nothing."""
        return Facts(
            window=self.window or below.window,
            max_output=self.max_output or below.max_output,
            input=self.input or below.input,
            output=self.output or below.output,
            thinking=below.thinking if self.thinking is None else self.thinking,
            price=below.price if self.price is None else self.price,
            source=self.source or below.source,
        )


class Book(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A catalog as it is stored: facts by provider and model, since when (YYYY-MM-DD) and where from."""

    date: str
    source: str
    models: dict[str, dict[str, Facts]]


class _Shelf(Struct, frozen=True):
    """The same, its facts not decoded yet."""

    models: dict[str, dict[str, Raw]] = {}


class Catalog(Struct, frozen=True):
    """Where facts are looked up. `own` are those of the configuration by `provider/model`, `fetched` is the file."""

    own: dict[str, Facts] = {}
    fetched: str = ""

    def facts(self, provider: str, model: str) -> Facts | None:
        """What is known of `model` at `provider`, None when nothing is. A dated version is the model without date."""
        found = _in(_shelf(str(SHIPPED)), provider, model)
        if self.fetched and (newer := _in(_shelf(self.fetched), provider, model)) is not None:
            found = newer.over(found) if found is not None else newer
        if (own := self.own.get(f"{provider}/{model}")) is not None:
            found = own.over(found) if found is not None else own
        return found


def read_book(path: str | Path) -> Book | None:
    """The catalog in a file, None when there is none. Raises `msgspec.DecodeError` for one that is none."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Book)
    except OSError:
        return None


@cache
def _shelf(path: str) -> _Shelf:
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=_Shelf)
    except FileNotFoundError:
        return _Shelf()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("the catalog %s is not used: %s; `limpet models update` writes a new one", path, error)
        return _Shelf()


def _in(shelf: _Shelf, provider: str, model: str) -> Facts | None:
    models = shelf.models.get(provider)
    if not models:
        return None
    raw = models.get(model)
    if raw is None:
        undated = _DATED.sub("", model.lower())
        wanted = (model.lower(), undated, undated.replace(".", "-"))
        raw = next((one for name, one in models.items() if name.lower() in wanted), None)
    try:
        return msgspec.json.decode(raw, type=Facts) if raw is not None else None
    except msgspec.DecodeError as error:
        log.warning("what the catalog says of %s/%s is not used: %s", provider, model, error)
        return None
