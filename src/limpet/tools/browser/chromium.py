"""The Chromium that is there: where it is, and how it is started so that it reaches the network by our proxy alone."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

from limpet.sandbox.survivors import MARK

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PASSED = ("PATH", "LANG", "LC_ALL", "TZ", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "XAUTHORITY", "TMPDIR")
ARGUMENTS = (
    "--disable-quic",
    "--dns-prefetch-disable",
    # It resolves no name itself: the proxy does, and looks at the address it then connects to.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-pings",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-notifications",
    "--disable-gpu",
)


def find_chromium(setting: str) -> str:
    """The program that `setting` names, else one of the usual names on the path; empty when there is none."""
    if setting.strip():
        return shutil.which(os.path.expanduser(setting.strip())) or ""
    return next(filter(None, map(shutil.which, NAMES)), "")


def is_available(setting: str) -> bool:
    """Whether both halves are there: a Chromium, and what drives it (the extra `browser`)."""
    return bool(find_chromium(setting)) and find_spec("playwright") is not None


def environment(folder: str, mark: str) -> dict[str, str | float | bool]:
    """What the browser gets: nothing that holds a secret, a home of its own, and the mark by which it is found."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {**passed, "HOME": folder, MARK: mark}
