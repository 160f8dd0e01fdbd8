"""The picture behind an address that a service answered with."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from limpet.errors import StalledError, UnreachableError, UpstreamError
from limpet.llm.http import is_loopback
from limpet.types.profile import Profile

LARGEST = 64 << 20
SECONDS = 120.0


async def fetch_picture(url: str, *, profile: Profile) -> bytes:
    """The bytes at `url`: https, or the service's own address. No key goes along, no redirect is followed.

    Raises `ModelError`.
    """
    import aiohttp  # only for services that answer with addresses

    provider = profile.provider
    parts, own = urlsplit(url), urlsplit(profile.base_url)
    if parts.scheme != "https" and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
        raise UpstreamError("the service answered with an address that is not fetched (no https)", provider=provider)
    data = bytearray()
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=not is_loopback(url)) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise UpstreamError(
                    f"the picture could not be fetched: HTTP {response.status}",
                    provider=provider,
                    status=response.status,
                )
            async for chunk in response.content.iter_chunked(1 << 18):
                data += chunk
                if len(data) > LARGEST:
                    raise UpstreamError(f"the picture is over {LARGEST >> 20} MB", provider=provider)
    except TimeoutError as error:
        raise StalledError(f"the picture was not there after {SECONDS:g} s", provider=provider) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise UnreachableError(f"the picture could not be fetched: {error}", provider=provider) from error
    return bytes(data)
