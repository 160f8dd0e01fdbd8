"""What the configuration says of models, in the words of this unit: secrets resolved, nothing asked of anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from limpet.config.schema import FactSettings, Settings
from limpet.config.secrets import resolve
from limpet.errors import ConfigError
from limpet.llm.catalog import FETCHED, Catalog, Dollars, Facts
from limpet.llm.choose import ModelSettings, ProviderSettings


def model_settings(
    settings: Settings,
    root: Path,
    environ: Mapping[str, str],
    *,
    on_missing: Callable[[ConfigError], None] | None = None,
) -> ModelSettings:
    """The model settings of the home `root`.

    Raises `ConfigError` for a key that cannot be resolved, unless `on_missing` is told of it and it is left empty.
    """

    def secret(reference: str, key: str) -> str:
        try:
            return resolve(reference, key=key, root=root, environ=environ)
        except ConfigError as error:
            if on_missing is None:
                raise
            on_missing(error)
            return ""

    providers = {
        name: ProviderSettings(
            api_key=secret(one.api_key, f"providers.{name}.api_key"),
            further_keys=tuple(
                secret(key, f"providers.{name}.api_keys.{number}") for number, key in enumerate(one.api_keys)
            ),
            base_url=one.base_url,
            model=one.model,
            window=one.window,
            wire=one.wire or None,
            local=one.local,
            streaming=one.streaming,
            headers={
                header: secret(value, f"providers.{name}.headers.{header}") for header, value in one.headers.items()
            },
        )
        for name, one in settings.providers.items()
    }
    return ModelSettings(
        model=settings.agent.model,
        providers=providers,
        aliases=settings.models.aliases,
        catalog=catalog_of(settings, root),
    )


def catalog_of(settings: Settings, root: Path) -> Catalog:
    """The catalogs of the home `root`, and what the configuration says of models. Raises `ConfigError`."""
    own = {reference: _facts(reference, one) for reference, one in settings.models.catalog.items()}
    return Catalog(own=own, fetched=str(root / FETCHED))


def _facts(reference: str, said: FactSettings) -> Facts:
    price = said.price
    if (price.input is None) != (price.output is None):
        raise ConfigError(f'models.catalog."{reference}".price: input and output must be set together')
    dollars = None
    if price.input is not None and price.output is not None:
        dollars = Dollars(price.input, price.output, cache_read=price.cache_read, cache_write=price.cache_write)
    takes = () if said.images is None else ("text", "image") if said.images else ("text",)
    return Facts(window=said.window, max_output=said.max_output, input=takes, price=dollars)
