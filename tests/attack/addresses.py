"""Every spelling of an address that is not public, on everything that fetches (case C64 and beyond); canaries count."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from limpet.egress.hosts import parse_all
from limpet.egress.proxy import Egress
from limpet.errors import LimpetError
from limpet.net.client import Web
from limpet.net.guard import Guard
from limpet.testing.context import tool_context
from limpet.tools.web_fetch import make_web_fetch
from tests.attack.played import Played
from tests.egress.parts import ask, canary, connect, get

HOSTS = (
    "127.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "[::1]",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7F.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "127.255.255.254",
    "0",
    "0.0.0.0",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:db8::5efe:127.0.0.1]",
    "[0:0:0:0:0:0:0:1]",
    "[::1%25lo]",
    "[fe80::1%25lo]",
    "169.254.169.254",
    "[fd00:ec2::254]",
    "100.64.0.1",
    "100.100.100.200",
    "198.18.0.1",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "user:pass@127.0.0.1",
    "example.com@127.0.0.1",
    "127.0.0.1#@example.com",
    "example.com%40127.0.0.1",
    "ip6-localhost",
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "127\u30020\u30020\u30021",
    "\u2460\u2461\u2466.0.0.1",
    "\uff4cocalhost",
    "127.0.0.1\\@example.com",
    "127.0.0.1%00.example.com",
    "127.0.0.1%20",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0x7f.1]",
    "[2001:0:7f00:1::]",
    "[2001:0:0:0:0:0:80ff:fffe]",
)
SCHEMES = (
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/",
    "data:text/plain,x",
    "unix:///run/docker.sock",
    "jar:http://127.0.0.1:{port}/!/",
    "http:127.0.0.1:{port}",
    "http:/127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "\thttp://127.0.0.1:{port}/",
    "ht\ntp://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "view-source:http://127.0.0.1:{port}/",
)


def forms() -> list[str]:
    """Addresses with `{port}` for the canary's."""
    return [f"http://{host}:{{port}}/" for host in HOSTS] + [f"https://{host}/" for host in HOSTS[:4]] + list(SCHEMES)


async def fetch(folder: Path) -> list[Played]:
    """`web_fetch`, and the client itself as other tools use it (GET and POST)."""
    played: list[Played] = []
    async with canary() as bird:
        web = Web(Guard())
        try:
            tool = make_web_fetch(web)
            for form in forms():
                url = form.replace("{port}", str(bird.port))
                bound = tool.bind(json.dumps({"url": url}), workspace=str(folder))
                for way in (bound.run(tool_context(folder)), web.get(url), web.post(url, b"x")):
                    before, text = bird.visits, ""
                    try:
                        found = await asyncio.wait_for(way, 10)
                        text = getattr(found, "text", "answered")
                    except LimpetError:
                        pass
                    played.append(Played("private addresses", url, bird.visits != before or bool(text)))
        finally:
            await web.close()
    return played


async def through_the_proxy(folder: Path) -> list[Played]:
    """The proxy of commands, told to admit every spelling: the guard still says no."""
    played: list[Played] = []
    async with canary() as bird:
        for host in HOSTS:
            try:
                admitted = parse_all((f"{host}:{bird.port}",), setting="egress.hosts")
            except LimpetError:
                admitted = ()
            async with Egress(admitted, (), guard=Guard(), folder=folder) as egress:
                for request in (get(f"http://{host}:{bird.port}/"), connect(f"{host}:{bird.port}")):
                    before = bird.visits
                    answer = await ask(egress, request.replace(b"\0", b""))
                    played.append(
                        Played(
                            "private addresses, proxy",
                            host,
                            bird.visits != before or answer.startswith(b"HTTP/1.1 200"),
                        )
                    )
    return played
