"""`limpet doctor --fix`: the changes that can lose nothing, each told before it is made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from limpet.cli.doctor import Finding, Fix


def fixes_of(findings: Iterable[Finding]) -> list[Fix]:
    """All changes that would mend something, each once."""
    return list(dict.fromkeys(fix for finding in findings for fix in finding.fixes))


def apply(fix: Fix) -> str:
    """Make the change; gives why it could not be made, empty when it was. Links are never followed."""
    try:
        if fix.act == "mkdir":
            os.makedirs(fix.path, mode=fix.mode, exist_ok=True)
        elif fix.act == "chmod":
            _set_mode(fix)
        elif os.path.isdir(fix.path) and not os.path.islink(fix.path):
            shutil.rmtree(fix.path)
        else:
            os.unlink(fix.path)
    except FileNotFoundError:
        return ""  # somebody else was faster
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _set_mode(fix: Fix) -> None:
    """Of the file itself: what has become a link meanwhile is refused."""
    fd = os.open(fix.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(fd, fix.mode)
    finally:
        os.close(fd)
