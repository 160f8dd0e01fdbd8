"""What the configuration says of models, in the words of this unit: secrets resolved, nothing asked of anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from limpet.config.schema import Settings
from limpet.config.secrets import resolve
from limpet.errors import ConfigError
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
            headers={
                header: secret(value, f"providers.{name}.headers.{header}") for header, value in one.headers.items()
            },
        )
        for name, one in settings.providers.items()
    }
    return ModelSettings(model=settings.agent.model, providers=providers, aliases=settings.models.aliases)
