from __future__ import annotations

from pathlib import Path

import pytest

from limpet.llm.catalog import SHIPPED, Book, Catalog, Dollars, Facts, read_book
from limpet.llm.choose import ModelSettings
from limpet.llm.profiles import facts_of, profile_of, services
from limpet.types.profile import Price

BOOK = read_book(SHIPPED)
assert BOOK is not None
DEFAULTS = [(name, service.default) for name, service in services().items() if service.default]


def fetched(path: Path, **models: dict[str, Facts]) -> Catalog:
    import msgspec

    path.write_bytes(msgspec.json.encode(Book(date="2026-11-01", source="a test", models=models)))
    return Catalog(fetched=str(path))


def test_the_shipped_catalog_is_dated_and_names_its_source():
    assert BOOK.date >= "2026-10-01"
    assert BOOK.source
    assert set(BOOK.models) <= set(services())
    assert all(models for models in BOOK.models.values())


@pytest.mark.parametrize(("provider", "model"), DEFAULTS, ids=[name for name, _ in DEFAULTS])
def test_the_default_of_every_provider_is_in_the_catalog(provider: str, model: str):
    assert facts_of(provider, model, Catalog()) is not None


@pytest.mark.parametrize("provider", list(BOOK.models))
def test_facts_are_plausible(provider: str):
    for name, facts in BOOK.models[provider].items():
        assert facts != Facts(), name
        assert facts.max_output <= (facts.window or facts.max_output), name
        if facts.price is not None:
            assert 0 <= facts.price.cache_read <= facts.price.input <= facts.price.output, name


@pytest.mark.parametrize(
    ("provider", "model", "window"),
    [
        ("openai", "gpt-5-mini-2025-08-07", 400_000),
        ("openai", "GPT-4o-2024-11-20", 128_000),
        ("anthropic", "claude-haiku-4-5-20251001", 200_000),
        ("mistral", "mistral-medium-latest", 262_144),
        ("minimax", "minimax-m3", 1_048_576),
        ("openrouter", "anthropic/claude-opus-5.5", 1_000_000),
        ("bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("moonshot-cn", "kimi-k2.6", 262_144),
        ("openai", "gpt-5-pro", 0),
        ("ollama", "qwen3", 0),
    ],
)
def test_a_model_is_found_under_its_other_names(provider: str, model: str, window: int):
    assert profile_of(provider, model).window == window


def test_the_price_of_the_owner_counts_only_where_it_is_asked():
    assert profile_of("openrouter", "openai/gpt-5-mini").price == profile_of("openai", "gpt-5-mini").price
    assert profile_of("moonshot-cn", "kimi-k2.6").price is None
    assert profile_of("ollama", "kimi-k2.6").price is None


def test_the_fetched_catalog_wins_over_the_shipped_one_and_the_configuration_over_both(tmp_path: Path):
    newer = {"gpt-4o": Facts(window=64_000, price=Dollars(1, 2))}
    catalog = fetched(tmp_path / "catalog.json", openai=newer, lab={"m": Facts(window=9_000)})
    profile = profile_of("openai", "gpt-4o", catalog=catalog)
    assert (profile.window, profile.max_output, profile.price) == (64_000, 16_384, Price(1_000_000, 2_000_000))
    assert profile_of("lab", "m", base_url="http://lab.test/v1", catalog=catalog).window == 9_000
    own = Catalog(own={"openai/gpt-4o": Facts(window=50_000, input=("text",))}, fetched=catalog.fetched)
    profile = profile_of("openai", "gpt-4o", catalog=own)
    assert (profile.window, profile.images, profile.price) == (50_000, False, Price(1_000_000, 2_000_000))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"models": {"openai": {"gpt-4o": {"window": "much"}}}}'])
def test_a_damaged_catalog_is_left_out_and_logged(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "catalog.json"
    path.write_text(text)
    assert profile_of("openai", "gpt-4o", catalog=Catalog(fetched=str(path))).window == 128_000
    assert "is not used" in caplog.text


def test_settings_without_catalogs_use_the_shipped_one():
    assert ModelSettings().catalog.facts("openai", "gpt-4o") is not None
