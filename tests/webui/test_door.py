"""Who gets in, and with what a browser may do with what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from limpet.config import page_password
from limpet.errors import UserError
from limpet.gateway import link
from limpet.server.guard import Guard
from limpet.testing.clock import FakeClock
from limpet.webui.door import Door
from limpet.webui.logins import IDLE, LONGEST, Logins
from tests.webui.asgi import Answer, ask, knock

TOKEN = "the token of the server"
OURS = {"origin": "http://127.0.0.1:8790"}
PAGE = '<script type="importmap">{}</script><script>one</script><p>&lt;script&gt;</p>'


class House:
    """A door before a page that only says who asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.loads = 0
        self.fault: UserError | None = None
        self.scopes: list[Scope] = []
        self.door = self.opened()

    def opened(self) -> Door:
        """The door as a new process would have it."""
        self.logins = Logins(self.root, TOKEN, clock=self.clock)
        guard = Guard(TOKEN, host="127.0.0.1", clock=self.clock)
        return Door(guard, self.logins, self._load, has_password=lambda: page_password.is_set(self.root), file=str)

    async def _load(self) -> ASGIApp:
        self.loads += 1
        if self.fault is not None:
            raise self.fault
        return self._page

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        await HTMLResponse(PAGE, headers={"X-NiceGUI-Content": "page"})(scope, receive, send)

    async def enter(self, secret: str, **headers: str) -> Answer:
        body = f"secret={secret}".encode()
        return await ask(self.door, "/web/login", method="POST", body=body, headers={**OURS, **headers})

    async def cookie(self) -> dict[str, str]:
        answer = await self.enter(TOKEN)
        assert answer.status == 303
        return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def run(main: Callable[[House], Awaitable[None]], root: Path) -> None:
    async def work() -> None:
        await main(House(root))

    asyncio.run(work())


def test_nothing_of_the_page_is_given_to_who_is_not_logged_in(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        assert (await ask(house.door, "/web/")).status == 401
        shown = await ask(house.door, "/web/", headers={"accept": "text/html"})
        assert (shown.status, shown.headers["location"]) == (303, "/web/login")
        assert await knock(house.door, OURS) == ["websocket.close"]
        assert house.loads == 0

    run(main, tmp_path)


def test_the_token_lets_in_and_a_restart_logs_nobody_out(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        cookie = await house.cookie()
        assert (await ask(house.door, "/web/", headers=cookie)).status == 200
        assert (await ask(house.opened(), "/web/", headers=cookie)).status == 200
        assert TOKEN not in (tmp_path / "web-logins.json").read_text()
        assert (tmp_path / "web-logins.json").stat().st_mode & 0o777 == 0o600

    run(main, tmp_path)


def test_a_password_lets_in_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        page_password.keep(tmp_path, "many limpets on one rock")
        assert (await house.enter("many+limpets+on+one+rock")).status == 303
        assert (await house.enter("few+limpets")).status == 403
        assert "limpets" not in (tmp_path / "web-password").read_text()

    run(main, tmp_path)


def test_ten_wrong_tries_and_nobody_is_listened_to_for_a_minute(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        for _ in range(10):
            assert (await house.enter("wrong")).status == 403
        assert (await house.enter(TOKEN)).status == 429
        house.clock.advance(61)
        assert (await house.enter(TOKEN)).status == 303

    run(main, tmp_path)


def test_a_link_is_good_once_and_for_five_minutes(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        first = f"/web/login/{link.make(TOKEN, now=house.clock.now())}"
        assert (await ask(house.door, first)).headers["location"] == "/web/"
        assert (await ask(house.door, first)).status == 403
        second = f"/web/login/{link.make(TOKEN, now=house.clock.now())}"
        house.clock.advance(301)
        assert (await ask(house.door, second)).status == 403
        forged = f"/web/login/{link.make('another token', now=house.clock.now())}"
        assert (await ask(house.door, forged)).status == 403

    run(main, tmp_path)


def test_a_link_that_is_older_than_the_gateway_may_have_been_used(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        made = f"/web/login/{link.make(TOKEN, now=house.clock.now())}"
        house.clock.advance(1)
        assert (await ask(house.opened(), made)).status == 403

    run(main, tmp_path)


def test_logins_end_unused_and_in_the_end(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        cookie = await house.cookie()
        for _ in range(LONGEST // (IDLE - 3_600_000)):
            house.clock.advance((IDLE - 3_600_000) / 1000)
            assert (await ask(house.door, "/web/", headers=cookie)).status == 200
        house.clock.advance((IDLE - 3_600_000) / 1000)
        assert (await ask(house.door, "/web/", headers=cookie)).status == 401
        cookie = await house.cookie()
        house.clock.advance(IDLE / 1000)
        assert (await ask(house.door, "/web/", headers=cookie)).status == 401

    run(main, tmp_path)


def test_who_logs_out_is_out_with_his_sockets(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        cookie = await house.cookie()
        name = house.logins.find(cookie["cookie"].partition("=")[2])
        waiting = asyncio.create_task(house.logins.ended(name))
        await asyncio.sleep(0)
        assert (await ask(house.door, "/web/logout", method="POST", headers={**OURS, **cookie})).status == 303
        async with asyncio.timeout(5):
            await waiting
        assert (await ask(house.door, "/web/", headers=cookie)).status == 401

    run(main, tmp_path)


def test_pages_of_others_may_ask_for_nothing(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        cookie = await house.cookie()
        evil = {"origin": "http://evil.example"}
        assert (await ask(house.door, "/web/x", method="POST", headers={**cookie, **evil})).status == 403
        assert (await ask(house.door, "/web/x", method="POST", headers=cookie)).status == 403
        assert (await ask(house.door, "/web/", headers={**cookie, "host": "evil.example"})).status == 403
        assert await knock(house.door, {**cookie, **evil}) == ["websocket.close"]
        assert await knock(house.door, cookie) == ["websocket.close"]
        assert (await knock(house.door, {**cookie, **OURS}))[0] == "websocket.accept"
        assert (await house.enter(TOKEN, origin="http://evil.example")).status == 403

    run(main, tmp_path)


def test_a_page_runs_our_scripts_and_no_others(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        answer = await ask(house.door, "/web/", headers={**await house.cookie(), "x-forwarded-prefix": "/evil"})
        policy = answer.headers["content-security-policy"]
        nonce = policy.partition("'nonce-")[2].partition("'")[0]
        assert "default-src 'none'" in policy
        assert "'unsafe-inline'" not in policy.partition("script-src")[2]
        assert answer.body.count(f'nonce="{nonce}"'.encode()) == 2
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in policy
        assert not any(name == b"x-forwarded-prefix" for name, _ in house.scopes[0]["headers"])

    run(main, tmp_path)


def test_a_page_that_cannot_be_loaded_says_so(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        cookie = await house.cookie()
        house.fault = UserError("It is not installed.", hint="Install it.")
        answer = await ask(house.door, "/web/", headers=cookie)
        assert (answer.status, answer.body) == (503, b"It is not installed.\nInstall it.\n")

    run(main, tmp_path)


def test_the_form_has_no_script_and_shows_what_was_wrong(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        answer = await ask(house.door, "/web/login")
        assert "script-src 'none'" in answer.headers["content-security-policy"]
        assert b"<script" not in answer.body
        assert b'role="alert"' in (await house.enter("wrong")).body

    run(main, tmp_path)
