"""The claim of the proxy, tried like those of the sandbox: named hosts are reached, others are not."""

from __future__ import annotations

import tempfile
from pathlib import Path

from limpet.egress.hosts import Host
from limpet.egress.proxy import Egress
from limpet.net.guard import Guard, NetworkRules
from limpet.sandbox.claims import Verdict, ground
from limpet.sandbox.limits import Limits
from limpet.sandbox.run import Sandbox

CLAIM = "an allow-list admits only its hosts"
_ASK = """python3 - <<'END'
import socket
for host in ("127.0.0.1", "127.0.0.2"):
    try:
        one = socket.create_connection(("127.0.0.1", 3128), 5)
        one.sendall(("CONNECT " + host + ":{port} HTTP/1.1\\r\\n\\r\\n").encode())
        print(one.recv(100).split()[1].decode())
    except OSError as error:
        print(error)
try:
    socket.create_connection(("127.0.0.2", {port}), 1)
    print("around it")
except OSError:
    print("none")
END"""


async def only_named_hosts() -> Verdict:
    """Two addresses of a server on loopback, of which one is on the list."""
    report = Sandbox().report
    if report.kind == "none":
        return Verdict(CLAIM, "not tried", report.reason)
    with tempfile.TemporaryDirectory(prefix="limpet-claims-") as folder:
        async with ground() as named:
            here = Guard(NetworkRules(allow_cidrs=("127.0.0.0/8",)))
            async with Egress((Host("127.0.0.1", named.port),), (), guard=here, folder=Path(folder)) as egress:
                _, out = await named.run(_ASK, limits=Limits(), timeout=20.0, network=egress.network)
    if out.split() == ["200", "403", "none"]:
        return Verdict(CLAIM, "holds")
    return Verdict(CLAIM, "fails", " ".join(out.split())[:200])
