"""C64 for the browser: every connection passes the guard, whatever a page tries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.egress.gate import Gate
from limpet.errors import NetworkRefusedError, ToolError
from limpet.net.guard import Guard
from tests.tools.browser.pages import GUARD, chromium, needs_chromium, site

FORMS = [
    "http://127.0.0.1:{port}",
    "http://localhost:{port}",
    "http://LocalHost:{port}",
    "http://[::1]:{port}",
    "http://0x7f000001:{port}",
    "http://2130706433:{port}",
    "http://0177.0.0.1:{port}",
    "http://[::ffff:127.0.0.1]:{port}",
    "http://[64:ff9b::7f00:1]:{port}",
    "http://[2001:db8::5efe:127.0.0.1]:{port}",
    "http://0.0.0.0:{port}",
    "http://user:pass@127.0.0.1:{port}",
    "https://127.0.0.1:{port}",
    "http://169.254.169.254",
    "http://100.64.0.1",
    "http://198.18.0.1",
]
EVERYTHING = """<title>Page</title><link rel=preconnect href="http://{evil}"><link rel=dns-prefetch href="http://{evil}">
<link rel=prefetch href="http://{evil}/prefetch"><img src="http://{evil}/img"><iframe src="http://{evil}/frame"></iframe>
<script src="http://{evil}/script"></script><video src="http://{evil}/video"></video>
<script>
fetch('http://{evil}/fetch', {{mode: 'no-cors'}}).catch(() => 0);
navigator.sendBeacon('http://{evil}/beacon', 'x');
new WebSocket('ws://{evil}/socket');
new EventSource('http://{evil}/events');
try {{ const pc = new RTCPeerConnection({{iceServers: [
  {{urls: 'stun:{evil}'}}, {{urls: 'turn:{evil}?transport=tcp', username: 'a', credential: 'b'}}]}});
pc.createDataChannel('x'); pc.createOffer().then(offer => pc.setLocalDescription(offer)); }} catch (error) {{ }}
navigator.serviceWorker && navigator.serviceWorker.register('/worker.js').catch(() => 0);
</script>"""


@needs_chromium
def test_c64_no_form_of_a_private_address_is_reached(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(GUARD), site({"/": "secret"}) as canary, chromium(tmp_path, cidrs=()) as hands:
            for form in FORMS:
                with pytest.raises(NetworkRefusedError, match="Only public addresses"):
                    await hands.do("open", url=form.format(port=canary.port))
            assert canary.connections == 0

    asyncio.run(main())


@needs_chromium
def test_c64_nothing_that_a_page_starts_gets_past_the_guard(tmp_path: Path) -> None:
    """The page itself is at 127.0.0.1, which is allowed here; the canary listens at 127.0.0.2, which is not."""

    async def main() -> None:
        seen: list[str] = []

        async def canary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append("tcp")
            writer.close()

        class Datagrams(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: object) -> None:
                seen.append("udp")

        server = await asyncio.start_server(canary, "127.0.0.2", 0)
        port = server.sockets[0].getsockname()[1]
        udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, local_addr=("127.0.0.2", port))
        evil = f"127.0.0.2:{port}"
        pages = {
            "/": EVERYTHING.format(evil=evil),
            "/away": f"HTTP/1.1 302 x\r\nLocation: http://{evil}/\r\nContent-Length: 0\r\n\r\n",
            "/refresh": f"<meta http-equiv=refresh content='0; url=http://{evil}/'>",
            "/worker.js": "self.addEventListener('fetch', () => 0)",
        }
        async with asyncio.timeout(GUARD), site(pages) as there, chromium(tmp_path, cidrs=("127.0.0.1/32",)) as hands:
            told = await hands.do("open", url=there.url)
            await asyncio.sleep(0.2)
            told += await hands.do("snapshot")
            with pytest.raises(NetworkRefusedError, match=r"127\.0\.0\.2"):
                await hands.do("open", url=f"{there.url}/away")
            await hands.do("open", url=f"{there.url}/refresh")
            told += await hands.do("snapshot")
        server.close()
        udp.close()
        assert "[Refused: 127.0.0.2: this machine itself" in told
        assert not seen
        assert "/worker.js" not in there.asked

    asyncio.run(main())


@needs_chromium
def test_a_page_of_the_web_cannot_show_files_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hidden words")
    page = f"<iframe src='file://{tmp_path}/secret.txt'></iframe><script>location = 'file://{tmp_path}/secret.txt'</script>"

    async def main() -> None:
        async with asyncio.timeout(GUARD), site({"/": page}) as there, chromium(tmp_path) as hands:
            assert "hidden words" not in await hands.do("open", url=there.url) + await hands.do("snapshot")

    asyncio.run(main())


def test_the_gate_is_for_its_own_browser_only(tmp_path: Path) -> None:
    async def ask(gate: Gate, *headers: str) -> bytes:
        host, _, port = gate.address.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write("\r\n".join(("GET http://127.0.0.1:1/ HTTP/1.1", *headers, "", "")).encode())
        try:
            return await reader.read()
        finally:
            writer.close()

    async def main() -> None:
        async with asyncio.timeout(20), Gate(Guard()) as gate:
            assert b"407" in await ask(gate)
            answer = await ask(gate, "Proxy-Authorization: Basic bGltcGV0Ong=")
            assert b"407" in answer
            assert b"Proxy-Authenticate: Basic" in answer
            assert gate.refusals() == ()

    asyncio.run(main())


def test_the_gate_refuses_a_private_name_beforehand() -> None:
    async def main() -> None:
        async with Gate(Guard()) as gate:
            with pytest.raises(ToolError, match="this machine itself"):
                await gate.check("localhost")
            await gate.check("no-such-name.invalid")

    asyncio.run(main())
