"""The proxy: which hosts it admits, what it puts in and takes out, and what it does not swallow."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from limpet.config.paths import Home
from limpet.config.schema import EgressSecret, EgressSettings
from limpet.egress.configured import egress_of
from limpet.egress.grants import grant
from limpet.egress.hosts import Host
from limpet.egress.proxy import Caps
from limpet.errors import ConfigError
from limpet.net.guard import Guard
from tests.egress.parts import HERE, VALUE, ask, canary, connect, get, granted, proxy


def test_an_admitted_host_is_reached_and_no_other(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, list[bytes], int]:
        async with canary() as good, canary(host="127.0.0.2") as bad:
            async with proxy(tmp_path, f"127.0.0.1:{good.port}") as egress:
                reached = await ask(egress, get(f"http://127.0.0.1:{good.port}/a?b=c"))
                refused = [await ask(egress, get(f"http://127.0.0.2:{bad.port}/"))]
                refused.append(await ask(egress, connect(f"127.0.0.2:{bad.port}")))
                refused.append(await ask(egress, connect("127.0.0.1:22")))
            return reached, refused, bad.visits

    reached, refused, visits = asyncio.run(main())
    assert b"GET /a?b=c HTTP/1.1" in reached
    assert b"Host: 127.0.0.1" in reached, "the host is that of the address, whatever the command says"
    assert visits == 0
    assert all(b" 403 " in one and b"egress.hosts" in one for one in refused)


def test_private_addresses_are_refused_unless_the_settings_allow_them(tmp_path: Path) -> None:
    async def main() -> tuple[list[bytes], int]:
        async with canary() as bird:
            names = ("127.0.0.1", "localhost", "[::1]", "2130706433", "169.254.169.254")
            async with proxy(tmp_path, *(f"{name}:{bird.port}" for name in names), guard=Guard()) as egress:
                answers = [await ask(egress, connect(f"{name}:{bird.port}")) for name in names]
                answers += [await ask(egress, get(f"http://{name}:{bird.port}/")) for name in names]
            return answers, bird.visits

    answers, visits = asyncio.run(main())
    assert visits == 0
    assert all(one.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 502 ")) for one in answers)
    assert b"net.allow_cidrs" in answers[0]


def test_a_host_without_secrets_is_tunnelled_unseen(tmp_path: Path) -> None:
    async def main() -> bytes:
        async with canary(secure=True) as bird, proxy(tmp_path, f"127.0.0.1:{bird.port}") as egress:
            assert egress.network.shown == ()
            return await ask(egress, connect(f"127.0.0.1:{bird.port}"), tls="127.0.0.1", more=get("/x"))

    assert b"GET /x HTTP/1.1\r\nHost: example.invalid" in asyncio.run(main())


def test_the_value_goes_in_at_the_boundary_and_its_echo_comes_out_redacted(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, bytes]:
        async with canary(secure=True) as bird:
            one = granted(f"127.0.0.1:{bird.port}")
            async with proxy(tmp_path, grants=[one]) as egress:
                basic = base64.b64encode(f"user:{one.stand_in}".encode()).decode()
                request = get(
                    f"/find?key={one.stand_in}",
                    f"Authorization: Bearer {one.stand_in}",
                    f"X-Other: Basic {basic}",
                    "Range: bytes=0-5",
                )
                shown = await ask(egress, connect(f"127.0.0.1:{bird.port}"), tls="127.0.0.1", more=request)
                return bird.heard[0], shown

    heard, shown = asyncio.run(main())
    assert f"GET /find?key={VALUE} HTTP/1.1".encode() in heard
    assert f"Bearer {VALUE}".encode() in heard
    assert base64.b64encode(f"user:{VALUE}".encode()) in heard
    assert b"Host: 127.0.0.1" in heard
    assert b"Range" not in heard, "in parts, an echo would not be recognised"
    assert VALUE.encode() not in shown
    assert base64.b64encode(f"user:{VALUE}".encode()) not in shown
    assert shown.count(b"[secret:SEARCH_KEY]") == 3
    assert shown.endswith(b"0\r\n\r\n")


def test_the_value_goes_to_no_other_host_and_not_into_a_body(tmp_path: Path) -> None:
    async def main() -> bytes:
        async with canary() as good, canary(host="127.0.0.2") as other:
            one = granted(f"127.0.0.1:{good.port}")
            async with proxy(tmp_path, f"127.0.0.2:{other.port}", grants=[one]) as egress:
                auth = f"Authorization: {one.stand_in}"
                await ask(egress, get(f"http://127.0.0.2:{other.port}/?k={one.stand_in}", auth))
                size = f"Content-Length: {len(one.stand_in)}"
                await ask(egress, get(f"http://127.0.0.1:{good.port}/", size) + one.stand_in.encode())
            return b"".join(good.heard + other.heard)

    heard = asyncio.run(main())
    assert VALUE.encode() not in heard
    assert heard.count(b"limpet_") == 3


def test_a_host_named_without_a_port_gets_its_secret_only_encrypted() -> None:
    one = grant("K", VALUE, (Host("example.org"),))
    assert one.admits("example.org", 443)
    assert not one.admits("example.org", 80)


def test_an_echo_split_over_chunks_and_packed_answers(tmp_path: Path) -> None:
    pieces = [VALUE[:5].encode(), VALUE[5:].encode() + b" end"]
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nSet-Cookie: k=" + VALUE.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"

    async def main(answer: bytes) -> bytes:
        async with canary(answer=answer) as bird:
            async with proxy(tmp_path, grants=[granted(f"127.0.0.1:{bird.port}")]) as egress:
                return await ask(egress, get(f"http://127.0.0.1:{bird.port}/"))

    shown = asyncio.run(main(chunked))
    assert VALUE[5:].encode() not in shown
    assert b"[secret:SEARCH_KEY] en" in shown
    assert b"k=[secret:SEARCH_KEY]" in shown
    assert asyncio.run(main(packed)).startswith(b"HTTP/1.1 502 ")


def test_bodies_go_up_in_chunks_and_by_length(tmp_path: Path) -> None:
    async def main() -> list[bytes]:
        async with canary() as bird, proxy(tmp_path, f"127.0.0.1:{bird.port}") as egress:
            url = f"http://127.0.0.1:{bird.port}/"
            await ask(egress, get(url, "Content-Length: 5", "Expect: 100-continue") + b"hello")
            await ask(egress, get(url, "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n")
            return bird.heard

    assert all(b"hello" in one for one in asyncio.run(main()))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", 400),
        (b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"CONNECT 127.0.0.1:{port}x HTTP/1.1\r\n\r\n", 403),
        (b"GET https://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, request_: bytes, status: int) -> None:
    async def main() -> tuple[bytes, int]:
        async with canary() as bird, proxy(tmp_path, f"127.0.0.1:{bird.port}") as egress:
            return await ask(egress, request_.replace(b"{port}", b"%d" % bird.port)), len(bird.heard)

    answer, heard = asyncio.run(main())
    assert (int(answer.split()[1]), heard) == (status, 0)


def test_upstream_certificates_are_verified(tmp_path: Path) -> None:
    async def main() -> bytes:
        async with canary(secure=True) as bird:
            async with proxy(tmp_path, grants=[granted(f"localhost:{bird.port}")]) as egress:
                there = f"localhost:{bird.port}"  # its certificate is that of 127.0.0.1
                return await ask(egress, connect(there), tls="localhost", more=get("/"))

    assert b"cannot be trusted" in asyncio.run(main())


def test_too_many_and_silent_connections_are_ended(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, bytes]:
        async with proxy(tmp_path, "127.0.0.1", caps=Caps(connections=1, head=0.3)) as egress:
            silent = asyncio.create_task(ask(egress, b"GET"))
            await asyncio.sleep(0.05)
            return await ask(egress, get("http://127.0.0.1/")), await silent

    full, silent = asyncio.run(main())
    assert full.startswith(b"HTTP/1.1 503 ")
    assert silent == b""


def test_nothing_is_left_and_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    (folder / "egress-999999999-ab.sock").touch()

    async def main() -> list[str]:
        async with proxy(folder, grants=[granted("example.org")]) as egress:
            modes = [path.stat().st_mode & 0o077 for path in folder.iterdir()]
            assert (len(modes), set(modes)) == (2, {0})
            assert VALUE not in str(egress.network.env)
        return os.listdir(folder)

    assert asyncio.run(main()) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (EgressSettings(hosts=("*",)), "egress.hosts"),
        (EgressSettings(hosts=("http://x",)), "egress.hosts"),
        (EgressSettings(secrets={"K": EgressSecret("value-of-it")}), "hosts is empty"),
        (EgressSettings(secrets={"K": EgressSecret("short", ("x.org",))}), "under 8"),
        (EgressSettings(secrets={"K": EgressSecret("line\nbreak-in-it", ("x.org",))}), "ASCII"),
        (EgressSettings(secrets={"K": EgressSecret("secret:nowhere", ("x.org",))}), "no secret nowhere"),
        (EgressSettings(secrets={"A=B": EgressSecret("value-of-it", ("x.org",))}), "no name"),
    ],
)
def test_settings_that_will_not_do_name_themselves(tmp_path: Path, settings: EgressSettings, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        egress_of(settings, Home(tmp_path, tmp_path / "c"), {}, guard=HERE)
