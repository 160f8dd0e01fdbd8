"""A strict registry of skills on loopback, with the two requests of ClawHub's API that an install makes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from aiohttp import web


class FakeRegistry:
    """`async with FakeRegistry({name: {version: zip}}) as registry`: then `registry.url` is its address.

    The last version is the newest. Every request that is otherwise than documented is answered with 400.
    """

    def __init__(
        self,
        skills: Mapping[str, Mapping[str, bytes]],
        *,
        suspicious: Collection[str] = (),
        blocked: Collection[str] = (),
    ) -> None:
        self._skills = skills
        self._suspicious = suspicious
        self._blocked = blocked
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/api/v1/skills/{slug}", self._skill)
        app.router.add_get("/api/v1/download", self._download)
        app.router.add_get("/files/{slug}/{version}.zip", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _skill(self, request: web.Request) -> web.Response:
        slug = request.match_info["slug"]
        if request.query_string:
            return web.Response(status=400, text="no parameters are known here")
        if slug not in self._skills and slug not in self._blocked:
            return web.Response(status=404, text="Not found")
        newest = [*self._skills.get(slug, {"1.0.0": b""})][-1]
        odd = slug in self._suspicious or slug in self._blocked
        verdict = {"isSuspicious": odd, "isMalwareBlocked": slug in self._blocked, "summary": None}
        return web.json_response(
            {
                "skill": {"slug": slug, "displayName": slug, "summary": "", "tags": {"latest": newest}},
                "latestVersion": {"version": newest, "createdAt": 0, "changelog": ""},
                "owner": {"handle": "someone"},
                "moderation": verdict if odd else None,
            }
        )

    async def _download(self, request: web.Request) -> web.Response:
        if set(request.query) != {"slug", "version"}:
            return web.Response(status=400, text="slug and version are needed")
        return self._zip(request.query["slug"], request.query["version"])

    async def _file(self, request: web.Request) -> web.Response:
        return self._zip(request.match_info["slug"], request.match_info["version"])

    def _zip(self, slug: str, version: str) -> web.Response:
        data = self._skills.get(slug, {}).get(version)
        if data is None:
            return web.Response(status=404, text="Not found")
        return web.Response(body=data, content_type="application/zip")
