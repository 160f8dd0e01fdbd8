"""Logging in to a server over HTTP: OAuth as the SDK speaks it (PKCE, dynamic registration, refresh), tokens kept.

What a login gives stands in the encrypted store of secrets and nowhere else. It belongs to one address: a server of the
same name elsewhere never gets it. Without a person at hand nothing is begun: the error says how to log in.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, structs

from limpet.config.vault import Vault
from limpet.errors import ConfigError
from limpet.mcp.callback import Callback

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken
    from pydantic import BaseModel

_PREFIX = "mcp-login."


class Login(Struct, frozen=True):
    """What is kept of a login at `url`: documents of the protocol as JSON. `expires` is UTC seconds, 0 = not known."""

    url: str = ""
    tokens: str = ""
    expires: float = 0.0
    client: str = ""
    server: str = ""
    resource: str = ""


class Logins:
    """The logins of the home `root`, in its store of secrets."""

    def __init__(self, root: Path) -> None:
        self._vault = Vault(root)

    def find(self, server: str, url: str) -> Login | None:
        """The login of `server` at `url`; None where there is none that can be read."""
        try:
            if _secret(server) not in self._vault.names():
                return None
            found = msgspec.json.decode(self._vault.value(_secret(server)), type=Login)
        except (ConfigError, msgspec.MsgspecError):
            return None
        return found if found.url == url else None

    def keep(self, server: str, login: Login) -> None:
        """Raises `ConfigError`."""
        self._vault.put(_secret(server), msgspec.json.encode(login).decode())

    def forget(self, server: str) -> bool:
        """Whether there was one. Raises `ConfigError`."""
        if _secret(server) not in self._vault.names():
            return False
        self._vault.remove(_secret(server))
        return True


def _secret(server: str) -> str:
    """A name of a secret of its own for each server, whatever it is called."""
    return _PREFIX + re.sub(r"[^A-Za-z0-9_-]", lambda found: f".{ord(found[0]):x}.", server)[:80]


class _Storage:
    """Implements the SDK's `TokenStorage` over the login of one server; `known` is what stands there now."""

    def __init__(self, logins: Logins, server: str, *, known: Login) -> None:
        self._logins = logins
        self._server = server
        self.known = known
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        found = await asyncio.to_thread(self._logins.find, self._server, self.known.url)
        self.known = found or self.known  # another process may have refreshed it
        return OAuthToken.model_validate_json(self.known.tokens) if self.known.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self.provider.context if self.provider else None
        self.known = structs.replace(
            self.known,
            tokens=_json(tokens),
            expires=time.time() + tokens.expires_in if tokens.expires_in else 0.0,
            server=_json(context.oauth_metadata if context else None),
            resource=_json(context.protected_resource_metadata if context else None),
        )
        await asyncio.to_thread(self._logins.keep, self._server, self.known)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        raw = self.known.client
        return OAuthClientInformationFull.model_validate_json(raw) if raw else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.known = structs.replace(self.known, client=_json(client_info))


def _json(document: BaseModel | None) -> str:
    return "" if document is None else document.model_dump_json(exclude_none=True)


def known_login(logins: Logins, server: str, url: str, *, refusals: list[str]) -> OAuthClientProvider | None:
    """How requests to `url` are signed, after an earlier login; None where there was none.

    When that does not suffice any more, `refusals` is told how to log in again.
    """
    login = logins.find(server, url)
    if login is None:
        return None

    async def nobody(*_: object) -> AuthorizationCodeResult:
        refusals.append(f"the login is over (limpet mcp login {server} renews it)")
        raise ConfigError(refusals[-1])

    async def unseen(address: str) -> None:
        await nobody()

    return _provider(
        _Storage(logins, server, known=login), url, redirect="http://127.0.0.1/callback", ask=(unseen, nobody)
    )


def new_login(
    logins: Logins, server: str, url: str, *, callback: Callback, show: Callable[[str], None]
) -> OAuthClientProvider:
    """How requests to `url` are signed after a login that begins now; `show` is given the address for the browser."""
    from mcp.shared.auth import AuthorizationCodeResult

    async def shown(address: str) -> None:
        show(address)

    async def answered() -> AuthorizationCodeResult:
        values = await callback.wait()
        return AuthorizationCodeResult(code=values.get("code", ""), state=values.get("state"), iss=values.get("iss"))

    storage = _Storage(logins, server, known=Login(url=url))
    return _provider(storage, url, redirect=callback.url, ask=(shown, answered))


def _provider(
    storage: _Storage,
    url: str,
    *,
    redirect: str,
    ask: tuple[Callable[[str], Awaitable[None]], Callable[[], Awaitable[AuthorizationCodeResult]]],
) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata
    from pydantic import AnyUrl

    class Provider(OAuthClientProvider):
        """The SDK's, which forgets over a restart when a token ends and where it is renewed."""

        async def _initialize(self) -> None:
            await super()._initialize()
            known, context = storage.known, self.context
            context.token_expiry_time = known.expires or None
            if known.server:
                context.oauth_metadata = OAuthMetadata.model_validate_json(known.server)
            if known.resource:
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate_json(known.resource)

    metadata = OAuthClientMetadata(
        client_name="Limpet",
        redirect_uris=[AnyUrl(redirect)],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    storage.provider = provider = Provider(url, metadata, storage, ask[0], ask[1])
    return provider
