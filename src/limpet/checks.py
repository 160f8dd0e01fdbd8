"""What `limpet doctor` looks at that needs more than the command line: sandbox, model, database."""

from __future__ import annotations

import asyncio
import os

import apsw

from limpet.cli.doctor import Finding, Situation
from limpet.config.load import load_settings
from limpet.errors import LimpetError
from limpet.llm.choose import choose
from limpet.llm.configured import model_settings
from limpet.llm.http import is_loopback
from limpet.llm.local import CUTS_SILENTLY, true_window
from limpet.prompt.snapshot import tier_for
from limpet.sandbox.probe import probe
from limpet.store import snapshot
from limpet.store.migrations import MIGRATIONS
from limpet.undo.copies import Copies

NEWER = "newer"


async def check_sandbox(situation: Situation) -> list[Finding]:
    """Whether commands are isolated, and which limits hold."""
    report = await probe()
    limits = "; ".join(report.limits)
    if report.kind == "none":
        return [Finding("sandbox", "warning", f"every command will ask: {report.reason} ({limits})", report.remedy)]
    return [Finding("sandbox", "ok", f"{report.kind} {report.version} at {report.path} ({limits})")]


async def check_model(situation: Situation) -> list[Finding]:
    """Which model speaks when none is named, and its true window."""
    loaded = load_settings(situation.home.config, situation.environ)
    try:
        settings = model_settings(loaded.settings, situation.home.root, situation.environ)
        choice = await choose(settings, situation.environ)
    except LimpetError as error:
        return [Finding("model", "broken", str(error), error.hint)]
    profile = choice.profile
    findings = [Finding("model", "ok", choice.reason)]
    asked = profile.local and profile.wire != "embedded" and (is_loopback(profile.base_url) or not situation.offline)
    told = await true_window(profile, key=choice.key) if asked else 0
    if told and profile.window and told < profile.window:
        remedy = f"Raise it in the server (Ollama: OLLAMA_CONTEXT_LENGTH={profile.window}), or set the smaller one."
        findings.append(
            Finding("window", "broken", f"the server gives {told} tokens, {profile.window} are configured", remedy)
        )
    elif told and profile.provider in CUTS_SILENTLY and tier_for(told) == "tiny":
        remedy = "Raise it for the server: OLLAMA_CONTEXT_LENGTH=32768, or `num_ctx` in the model's Modelfile."
        what = f"{told} tokens; the server drops what does not fit without saying so, so the prompt is the tiny one"
        findings.append(Finding("window", "warning", what, remedy))
    elif window := told or profile.window:
        findings.append(Finding("window", "ok", f"{window} tokens, so the prompt is the {tier_for(window)} one"))
    return findings


async def check_database(situation: Situation) -> list[Finding]:
    """Whether the database is whole."""
    path = situation.home.database
    if not path.exists():
        return [Finding("database", "ok", f"{path} will be made when it is needed")]
    if not os.access(path, os.R_OK | os.W_OK):
        remedy = f"Make it yours (chown, chmod 600 {path}), or set LIMPET_HOME."
        return [Finding("database", "broken", f"{path} may not be read and written by you", remedy)]
    try:
        faults = await asyncio.to_thread(_integrity, str(path))
    except (apsw.CorruptError, apsw.NotADBError) as error:
        faults = [str(error)]
    except apsw.Error as error:
        remedy = "Look at the disk, and at the permissions of the folder and of the files limpet.db*."
        return [Finding("database", "broken", f"{path} cannot be read: {error}", remedy)]
    if faults[-1:] == [NEWER]:
        remedy = "Update Limpet, or set LIMPET_HOME to another folder."
        return [Finding("database", "broken", f"{path} was written by a newer Limpet", remedy)]
    if faults:
        remedy = "Copy it away, then restore a backup; copies from before upgrades lie beside it (*.bak)."
        return [Finding("database", "broken", f"{path} is damaged: {'; '.join(faults[:3])}", remedy)]
    return [Finding("database", "ok", f"{path} is whole (SQLite {apsw.sqlite_lib_version()})")]


async def check_undo(situation: Situation) -> list[Finding]:
    """How much is kept to take turns back."""
    settings = load_settings(situation.home.config, situation.environ).settings.undo
    copies = Copies(str(situation.home.undo))
    if not settings.days:
        return [Finding("undo", "note", "switched off: no turn can be taken back", "Set undo.days to 14.")]
    limits = f"for {settings.days} days, up to {settings.total_mb:,} MB"
    if not copies.exist:
        return [Finding("undo", "ok", f"nothing is kept yet ({limits})")]
    try:
        count, size = await asyncio.to_thread(copies.sums)
    except (apsw.Error, OSError) as error:
        remedy = f"Delete {copies.path}: turns so far can then not be taken back, nothing else is lost."
        return [Finding("undo", "warning", f"{copies.path} cannot be read: {error}", remedy)]
    finally:
        copies.close()
    return [Finding("undo", "ok", f"{count:,} copies, {size / 1e6:,.1f} MB ({limits})")]


def _integrity(path: str) -> list[str]:
    return [*snapshot.faults(path), *([NEWER] if snapshot.schema(path) > len(MIGRATIONS) else [])]
