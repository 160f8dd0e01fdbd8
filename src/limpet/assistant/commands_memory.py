"""`/memory`: what is remembered, and the owner's word on it. `limpet memory` says the same on a terminal."""

from __future__ import annotations

from limpet.assistant.consolidate import Consolidated, consolidate, spent
from limpet.assistant.orders import Order
from limpet.assistant.remembering import Forgotten, Remembering, shown
from limpet.errors import InputError
from limpet.memory.changes import Change

LISTED = 30
RECORDS = 5
"""Names of records that a list shows, the newest."""
STEPS = 20
USAGE = (
    "/memory list [words], add TEXT, forget ID or words, edit ID TEXT, undo [n], confirm ID or all, reject ID or all, "
    "history [words], consolidate [--dry-run], status."
)
UNREACHED = (
    "Not reached: what was said in conversations (limpet sessions erase), exports, archives, backups, copies for "
    "/rollback, what the model's provider keeps, and what says the same in other words."
)
_ACTS = ("add", "add today", "forget", "edit", "undo", "confirm", "reject")


async def memory(order: Order) -> str:
    """Raises `InputError`, `WorkspaceError`."""
    services = order.conversation.services
    known = Remembering(services, order.conversation.key)
    act, _, rest = order.arguments.strip().partition(" ")
    rest = rest.strip()
    is_owner = order.row.inbound.trust == "owner"
    if not is_owner and (act == "consolidate" or (act in _ACTS and not known.scope.name)):
        return "Only the owner can change what is remembered here."
    return services.redactor.redact(await said(known, act or "list", rest))


async def said(known: Remembering, act: str, rest: str) -> str:
    """Do `act` and say what came of it. Raises `InputError`, `WorkspaceError`."""
    match act:
        case "list":
            return listing(known, rest)
        case "status":
            return status(known)
        case "history":
            return history(known, rest)
        case "consolidate":
            return tidied(await consolidate(known, dry_run=rest == "--dry-run"))
        case "undo":
            return await undone(known, rest)
        case _ if act not in _ACTS:
            raise InputError(f"/memory knows no {act}.", hint=USAGE)
        case _ if not rest:
            raise InputError(f"{act} needs something to work on.", hint=USAGE)
        case _:
            return await _changed(known, act, rest)


async def _changed(known: Remembering, act: str, rest: str) -> str:
    match act:
        case "edit":
            word, _, text = rest.partition(" ")
            if not text.strip():
                raise InputError("edit needs an id and the new words.", hint=USAGE)
            return f"Changed {shown(await known.edit(word, text))}."
        case "confirm" | "reject":
            settled = await known.settle(rest, confirm=act == "confirm")
            did = "Confirmed" if act == "confirm" else "Thrown away"
            return "\n".join([f"{did}:", *map(shown, settled)]) if settled else "Nothing waits for your word."
        case "forget":
            return forgotten(await known.forget(rest))
        case _:
            added = await known.add(rest, "today" if act == "add today" else "lasting")
            return f"{'Remembered' if added.fresh else 'Remembered already'} in {added.file} ({added.id})."


def tidied(done: Consolidated) -> str:
    """What a consolidation did, or would do."""
    lines = [done.diff or "Nothing has changed in what lasts.", *done.left]
    return "\n".join([*lines, f"{done.notes} notes were looked at." if done.notes else "No notes wait."])


def listing(known: Remembering, words: str = "", *, limit: int = LISTED) -> str:
    """The entries, or those with `words` in them, the newest last; then what waits for the owner."""
    wanted = words.casefold()
    entries = [one for one in known.book.entries() if wanted in one.text.casefold()]
    waiting = [one for one in known.book.waiting() if wanted in one.text.casefold()]
    lines: list[str] = []
    if len(entries) > limit:
        lines.append(f"({len(entries) - limit} before these)")
    file = ""
    for one in entries[-limit:]:
        if one.file != file:
            lines.append(f"{one.file}:")
        file = one.file
        lines.append(shown(one))
    if waiting:
        lines += ["These wait for your word (/memory confirm ID, /memory reject ID):", *map(shown, waiting)]
    told = _records(known, wanted)
    lines += [f"Records that hold it too: {told}." if wanted else f"Searched too: {told}."] if told else []
    return "\n".join(lines) or ("Nothing like that is remembered." if words else "Nothing is remembered yet.")


def _records(known: Remembering, wanted: str) -> str:
    """The records with `wanted` in them: what is searched and forgotten besides entries."""
    found = [file for file in known.book.records() if wanted in known.book.read(file).casefold()]
    rest = len(found) - RECORDS
    return ", ".join(found[-RECORDS:]) + (f" and {rest} more" if rest > 0 else "")


def status(known: Remembering) -> str:
    """How much is remembered."""
    book, limit = known.book, known.services.memory.cap
    size, could_go = book.could_go(limit)
    lines = [
        f"{book.scope.lasting[0]}: {size:,} of {limit:,} characters",
        f"day notes: {len(book.days())} in {book.scope.folder}/",
        f"entries: {len(book.entries())}, waiting for your word: {len(book.waiting())}",
        spent(known),
    ]
    if could_go:
        lines += ["These could go:", *map(shown, could_go)]
    return "\n".join(lines)


def history(known: Remembering, words: str = "", *, limit: int = LISTED) -> str:
    """The newest paragraphs of the history, or those with `words` in them."""
    text = known.book.read(known.scope.history)
    found = [part.strip() for part in text.split("\n\n") if part.strip() and words.casefold() in part.casefold()]
    return "\n\n".join(found[-limit:]) or "There is nothing like that in the history."


async def undone(known: Remembering, word: str) -> str:
    """Take back the newest change, or several."""
    if word and not (word.isdecimal() and 0 < int(word[:4]) <= STEPS):
        raise InputError(f"undo takes a number from 1 to {STEPS}.")
    done = await known.undo(int(word or 1))
    if not done:
        return "There is no change that could be taken back."
    return "\n".join(line for change, left in done for line in _taken_back(change, left))


def _taken_back(change: Change, left: list[str]) -> list[str]:
    lines = [f"Taken back ({change.source}):"]
    for hunk in change.hunks:
        lines += [f"{hunk.file}:"]
        lines += [f"- {line}" for line in hunk.after if line.strip() and line not in left]
        lines += [f"+ {line}" for line in hunk.before if line.strip()]
    if left:
        lines += ["Changed or gone since, so left alone:", *(f"  {line}" for line in left)]
    return lines


def forgotten(found: Forgotten) -> str:
    """What was forgotten, and what could not be reached."""
    lines = [f"Forgotten: {' '.join(text.split())}" for text in found.entries]
    lines.append(f"It stood in {', '.join(found.files)}.")
    if found.quoted:
        lines.append(f"Taken out of {found.quoted} prompts and notes of conversations, which are made anew.")
    return "\n".join([*lines, UNREACHED])
