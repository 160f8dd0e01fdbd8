"""Which model speaks when: what was named, what is configured, what the environment has a key for, what runs here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, structs

from limpet.errors import ConfigError, NoModelError, UnreachableError
from limpet.llm.catalog import Catalog
from limpet.llm.endpoint import check_address, check_values
from limpet.llm.profiles import facts_of, owner_of, profile_of, service_at, services, with_facts, with_window
from limpet.types.profile import Profile, Wire

CHANGE = "Change it with LIMPET_MODEL=provider/model, or `limpet models set provider/model`."


class ProviderSettings(Struct, frozen=True, omit_defaults=True):
    """What the configuration says of one provider. Keys are the secrets themselves, references are resolved before.

    `further_keys` are used when `api_key` will not do; `headers` go with every request.
    """

    api_key: str = ""
    further_keys: tuple[str, ...] = ()
    base_url: str = ""
    model: str = ""
    window: int = 0
    wire: Wire | None = None
    local: bool | None = None
    streaming: bool = True
    headers: dict[str, str] = {}


class ModelSettings(Struct, frozen=True, omit_defaults=True):
    """What the configuration says of models: `model` is `provider/model`, `aliases` are short names for such.

    `catalog` is where facts of models are looked up.
    """

    model: str = ""
    providers: dict[str, ProviderSettings] = {}
    aliases: dict[str, str] = {}
    catalog: Catalog = Catalog()


class Choice(Struct, frozen=True):
    """A model to build. `reason` is a sentence that says which and why, and how to change it."""

    profile: Profile
    key: str
    reason: str


FindLocal = Callable[[], Awaitable[Profile | None]]


async def choose(
    settings: ModelSettings,
    env: Mapping[str, str],
    *,
    named: str = "",
    find: FindLocal | None = None,
    embedded: Callable[[], str] | None = None,
) -> Choice:
    """The model to use; `named` (a reference from the command line) wins over everything.

    Nothing is asked over the network where a name, a key or the configuration decides it all. Raises `NoModelError`
    with the ways to get a model, `ConfigError` for a reference that cannot be understood, `UnreachableError` when a
    configured server that must tell its models does not answer.
    """
    for reference, where in (
        (named, "you named it"),
        (env.get("LIMPET_MODEL", ""), "LIMPET_MODEL names it"),
        (settings.model, "the configuration names it"),
    ):
        if reference.strip():
            name = reference.strip()
            return _choice(await _referenced(settings.aliases.get(name, name), settings, env=env), where)
    at_hand = _Sources(settings, env)
    for provider, where in at_hand.providers():
        return _choice(await at_hand.default(provider), where)
    if host := env.get("OLLAMA_HOST", "").strip():
        listed = await _listed("ollama", ollama_url(host), key="")
        return _choice((at_hand.profile("ollama", listed, own=at_hand.of("ollama")), ""), "OLLAMA_HOST is set")
    from limpet.llm.embedded import find_embedded  # what follows is for machines without a key
    from limpet.llm.local import find_local

    if (local := await (find or find_local)()) is not None:
        if (facts := facts_of(local.provider, local.model, settings.catalog)) is not None:
            local = with_window(with_facts(local, facts), local.window)
        return _choice((local, ""), f"{services()[local.provider].name} runs on this machine")
    if path := (embedded or find_embedded)():
        return _choice((profile_of("embedded", "smollm2-135m", base_url=path), ""), "no other model is at hand")
    raise NoModelError("There is no model to talk to.", hint=THREE_WAYS)


THREE_WAYS = """\
Three ways to get one:
  1. a key in the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, … (all: `limpet models list`)
  2. a local server: start Ollama, LM Studio, llama.cpp, vLLM or SGLang on its usual port
  3. the small embedded model: `limpet models install-local`"""


def ollama_url(host: str) -> str:
    """The base URL that `OLLAMA_HOST` stands for (host, host:port or an address; 0.0.0.0 means this machine)."""
    address = host if "://" in host else f"http://{host}"
    scheme, _, rest = address.rstrip("/").partition("://")
    rest = rest.replace("0.0.0.0", "127.0.0.1", 1)
    name, _, path = rest.partition("/")
    has_port = ":" in name.rpartition("]")[2]
    return f"{scheme}://{name}{'' if has_port else ':11434'}{'/' + path if path else ''}/v1".replace("//v1", "/v1")


class _Sources:
    """What configuration and environment hold for each provider: configuration first."""

    def __init__(self, settings: ModelSettings, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._env = env

    def of(self, provider: str) -> ProviderSettings:
        """Key, address and model of `provider`, empty where nothing says them. Raises `ConfigError`."""
        found = self._merged(provider)
        check_address(provider, found.base_url)
        check_values(provider, (found.api_key, *found.further_keys, *found.headers.values()))
        return found

    def _merged(self, provider: str) -> ProviderSettings:
        found = self._settings.providers.get(provider, ProviderSettings())
        service = services().get(provider)
        if service is None:
            return found
        key, url = self._env.get(service.key_env, ""), self._env.get(service.url_env, "")
        if provider == "ollama" and (host := self._env.get("OLLAMA_HOST", "").strip()):
            url = ollama_url(host)
        model = self._env.get("LLM_MODEL", "") if provider == "custom" else ""
        return structs.replace(
            found,
            api_key=found.api_key or key.strip(),
            base_url=found.base_url or url.strip(),
            model=found.model or model.strip(),
        )

    def providers(self) -> list[tuple[str, str]]:
        """Providers that can be used, the first choice first, each with the reason."""
        found: list[tuple[str, str]] = []
        if self._env.get("LLM_BASE_URL") or self._env.get("LLM_MODEL"):
            found.append(("custom", "LLM_BASE_URL or LLM_MODEL is set"))
        for name, settings in self._settings.providers.items():
            if settings.api_key or settings.base_url:
                found.append((name, "the configuration has it"))
        for name, service in services().items():
            if not service.auto or not service.default:
                continue
            if service.key_env and self._env.get(service.key_env, "").strip():
                found.append((name, f"{service.key_env} is set"))
            elif service.url_env and self._env.get(service.url_env, "").strip():
                found.append((name, f"{service.url_env} is set"))
        return found

    async def default(self, provider: str) -> tuple[Profile, str]:
        """The model to take from `provider` when none is named."""
        own = self.of(provider)
        elsewhere = bool(own.base_url) and service_at(own.base_url) != provider
        if elsewhere and provider != "anthropic" and (there := service_at(own.base_url)) != "custom":
            provider, elsewhere = there, False
        service = services().get(provider)
        if provider == "custom" and own.model and not own.base_url:
            return await _referenced(own.model, self._settings, env=self._env)
        if own.model:
            model = own.model
        elif service is not None and service.default and (not elsewhere or provider == "anthropic"):
            model = service.default
        else:
            base_url = own.base_url or (service.base_url if service else "")
            model = await _listed(provider, base_url, key=own.api_key)
        return self.profile(provider, model, own=own), own.api_key

    def profile(self, provider: str, model: str, *, own: ProviderSettings) -> Profile:
        """The profile of `model` with what the configuration says of its provider."""
        profile = profile_of(
            provider,
            model,
            base_url=own.base_url,
            window=own.window,
            wire=own.wire,
            catalog=self._settings.catalog,
        )
        local = profile.local if own.local is None else own.local
        return structs.replace(profile, local=local, streaming=profile.streaming and own.streaming)


async def _referenced(reference: str, settings: ModelSettings, *, env: Mapping[str, str]) -> tuple[Profile, str]:
    """The model a reference names. Raises `NoModelError` when its provider lacks a key."""
    sources = _Sources(settings, env)
    provider, slash, model = reference.partition("/")
    if provider == "embedded":
        from limpet.llm.embedded import find_embedded  # rare

        path = find_embedded()
        if not path:
            raise NoModelError(
                "The embedded model is not installed.", hint="Install it: `limpet models install-local`."
            )
        return profile_of("embedded", model or "smollm2-135m", base_url=path), ""
    if not slash or (provider not in services() and provider not in settings.providers):
        provider, model = _guess(reference, sources), reference
    if not model.strip():
        raise ConfigError(f"{reference!r} names no model", hint="Write provider/model; `limpet models list` has them.")
    own = sources.of(provider)
    service = services().get(provider)
    if not own.api_key and not (service is None or service.keyless or own.base_url):
        raise NoModelError(
            f"{reference} needs a key for {service.name}.",
            hint=f"Set {service.key_env}, or `limpet config set providers.{provider}.api_key env:{service.key_env}`.",
        )
    if not own.base_url and (service is None or not service.base_url):
        raise ConfigError(f"{reference}: providers.{provider}.base_url is not set")
    return sources.profile(provider, model, own=own), own.api_key


def _guess(reference: str, sources: _Sources) -> str:
    """The provider of a reference that names none."""
    bare = reference.rpartition("/")[2]
    if sources.of("custom").base_url:
        return "custom"
    if "/" in reference and sources.of("openrouter").api_key:
        return "openrouter"
    if "/" not in reference and (owner := owner_of(bare)):
        return owner
    known = ", ".join(name for name in services() if name != "embedded")
    raise ConfigError(f"{reference!r} names no known provider", hint=f"Write provider/model; providers are {known}.")


async def _listed(provider: str, base_url: str, *, key: str) -> str:
    """The first chat model that the server at `base_url` lists."""
    from limpet.llm.local import models_at  # rare

    try:
        names = await models_at(base_url, key=key)
    except OSError as error:
        raise UnreachableError(f"cannot reach {base_url}: {error}", provider=provider) from error
    service = services().get(provider)
    if not names and not (service and service.default):
        raise NoModelError(f"{base_url} lists no chat model.", hint=f"Name one: LIMPET_MODEL={provider}/model.")
    return names[0] if names else service.default if service else ""


def _choice(found: tuple[Profile, str], why: str) -> Choice:
    profile, key = found
    return Choice(profile=profile, key=key, reason=f"Using {profile.reference}, because {why}. {CHANGE}")
