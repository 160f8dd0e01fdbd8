from __future__ import annotations

import asyncio

import pytest

from limpet.errors import ConfigError, NoModelError, UnreachableError
from limpet.llm.build import build
from limpet.llm.choose import Choice, ModelSettings, ProviderSettings, choose, ollama_url
from limpet.llm.profiles import profile_of, services
from limpet.testing.fakes import FakeAnthropic, FakeOpenAI, Reply
from limpet.testing.wires import answer_of, ask
from limpet.types.profile import Profile


async def nobody() -> Profile | None:
    return None


async def unasked() -> Profile | None:
    raise AssertionError("no server may be asked")


def pick(env: dict[str, str] | None = None, settings: ModelSettings | None = None, **rest) -> Choice:
    rest = {"find": unasked, "embedded": lambda: "", **rest}
    return asyncio.run(choose(settings or ModelSettings(), env or {}, **rest))


KEYED = ModelSettings(model="deepseek/deepseek-v4-pro", providers={"deepseek": ProviderSettings(api_key="k1")})


@pytest.mark.parametrize(
    ("env", "settings", "named", "reference", "key"),
    [
        ({"ANTHROPIC_API_KEY": "a"}, None, "", "anthropic/claude-sonnet-5-5", "a"),
        ({"OPENAI_API_KEY": "o"}, None, "", "openai/gpt-5.6-terra", "o"),
        ({"OPENROUTER_API_KEY": "r"}, None, "", "openrouter/openrouter/auto", "r"),
        ({"DEEPSEEK_API_KEY": "d"}, None, "", "deepseek/deepseek-v4-flash", "d"),
        ({"OPENAI_API_KEY": "o"}, KEYED, "", "deepseek/deepseek-v4-pro", "k1"),
        ({"OPENAI_API_KEY": "o", "LIMPET_MODEL": "openai/gpt-4o"}, KEYED, "", "openai/gpt-4o", "o"),
        (
            {"OPENAI_API_KEY": "o", "LIMPET_MODEL": "openai/gpt-4o"},
            KEYED,
            "openai/gpt-5-mini",
            "openai/gpt-5-mini",
            "o",
        ),
        ({"OPENAI_API_KEY": "o", "LIMPET_MODEL": "gpt-4o"}, None, "", "openai/gpt-4o", "o"),
        ({"OPENROUTER_API_KEY": "r", "LIMPET_MODEL": "mistralai/x"}, None, "", "openrouter/mistralai/x", "r"),
        ({"LLM_BASE_URL": "http://x.test/v1", "LLM_MODEL": "m", "LLM_API_KEY": "l"}, None, "", "custom/m", "l"),
        ({"LIMPET_MODEL": "ollama/llama3"}, None, "", "ollama/llama3", ""),
        ({"OPENAI_API_KEY": "o", "LLM_MODEL": "openai/gpt-4o"}, None, "", "openai/gpt-4o", "o"),
        (
            {},
            ModelSettings(providers={"lab": ProviderSettings(base_url="http://l.test/v1", model="m")}),
            "",
            "lab/m",
            "",
        ),
    ],
)
def test_who_decides(env, settings, named, reference, key):
    choice = pick(env, settings, named=named)
    assert (choice.profile.reference, choice.key) == (reference, key)
    assert reference in choice.reason
    assert "LIMPET_MODEL" in choice.reason


@pytest.mark.parametrize("name", [name for name, one in services().items() if one.auto and one.default])
def test_the_key_of_any_provider_is_enough(name: str):
    service = services()[name]
    choice = pick({service.key_env: "k"})
    assert (choice.profile.reference, choice.key) == (f"{name}/{service.default}", "k")
    assert service.key_env in choice.reason


def test_of_several_keys_the_first_row_decides():
    env = {"GEMINI_API_KEY": "g", "XAI_API_KEY": "x", "GITHUB_TOKEN": "t"}
    assert pick(env).profile.reference == "gemini/gemini-3.8-flash"


def test_a_token_that_is_there_for_other_reasons_chooses_nothing():
    with pytest.raises(NoModelError):
        pick({"GITHUB_TOKEN": "t"}, find=nobody)
    assert pick({"GITHUB_TOKEN": "t", "LIMPET_MODEL": "github/openai/gpt-4.1"}).key == "t"


def test_what_the_configuration_says_of_a_provider_is_used():
    own = ProviderSettings(base_url="https://lab.test/v1", streaming=False, wire="openai_responses")
    profile = pick(settings=ModelSettings(model="lab/m", providers={"lab": own})).profile
    assert (profile.streaming, profile.wire, profile.base_url) == (False, "openai_responses", "https://lab.test/v1")


def test_addresses_come_from_the_environment_too():
    env = {"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "https://proxy.test/v1", "LIMPET_MODEL": "openai/gpt-4o"}
    assert pick(env).profile.base_url == "https://proxy.test/v1"


def test_configuration_wins_over_the_environment():
    settings = ModelSettings(providers={"openai": ProviderSettings(api_key="conf", model="gpt-4o", window=9_000)})
    choice = pick({"OPENAI_API_KEY": "env"}, settings)
    assert (choice.key, choice.profile.model, choice.profile.window) == ("conf", "gpt-4o", 9_000)


def test_a_local_server_is_next():
    async def found() -> Profile:
        return profile_of("ollama", "qwen3")

    choice = pick(find=found)
    assert choice.profile.reference == "ollama/qwen3"
    assert "Ollama runs on this machine" in choice.reason


def test_the_embedded_model_is_the_last_resort():
    choice = pick(find=nobody, embedded=lambda: "/x/model.gguf")
    assert (choice.profile.wire, choice.profile.base_url) == ("embedded", "/x/model.gguf")
    assert not choice.profile.tools


def test_without_anything_the_three_ways_are_named():
    with pytest.raises(NoModelError) as caught:
        pick(find=nobody)
    assert all(way in caught.value.hint for way in ("ANTHROPIC_API_KEY", "Ollama", "limpet models install-local"))
    assert caught.value.exit_code == 2


def test_a_named_model_without_its_key_says_which():
    with pytest.raises(NoModelError, match="needs a key for OpenAI") as caught:
        pick({"LIMPET_MODEL": "openai/gpt-4o"})
    assert "OPENAI_API_KEY" in caught.value.hint


def test_an_unknown_provider_lists_the_known_ones():
    with pytest.raises(ConfigError) as caught:
        pick({"LIMPET_MODEL": "nobody/x"})
    assert "anthropic" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("box:8000", "http://box:8000/v1"),
        ("https://o.test/", "https://o.test:11434/v1"),
        ("http://[::1]:5", "http://[::1]:5/v1"),
    ],
)
def test_the_address_of_ollama(host: str, url: str):
    assert ollama_url(host) == url


def test_a_server_in_the_place_of_openai_is_asked_for_its_models_and_answers():
    async def run():
        async with FakeOpenAI([Reply(text=("hi",))]) as server:
            env = {"OPENAI_API_KEY": server.key, "OPENAI_BASE_URL": server.base_url}
            choice = await choose(ModelSettings(), env, find=unasked)
            model = build(choice)
            try:
                return choice.profile.model, (await answer_of(model, ask())).text
            finally:
                await model.close()

    assert asyncio.run(run()) == ("fake-chat", "hi")


def test_a_server_in_the_place_of_anthropic_answers():
    async def run():
        async with FakeAnthropic([Reply(text=("hi",))]) as server:
            env = {"ANTHROPIC_API_KEY": server.key, "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1")}
            model = build(await choose(ModelSettings(), env, find=unasked))
            try:
                return (await answer_of(model, ask())).text
            finally:
                await model.close()

    assert asyncio.run(run()) == "hi"


def test_a_configured_server_that_does_not_answer_is_named():
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/v1"):
        pick({"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
