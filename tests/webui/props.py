"""What stands on the stage: conversations, memories, jobs, people. Much of it says what must not be run."""

from __future__ import annotations

import json
from pathlib import Path

from limpet.schedule import desk as jobs_desk
from limpet.schedule.desk import Maker, Timing, Wish
from limpet.session import keys
from limpet.store import entries, jobs, peers, sessions
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.clock import SystemClock
from limpet.types.content import Text, ToolCall
from limpet.types.entry import AssistantEntry, PromptEntry, Section, ToolResultEntry, UserEntry
from limpet.types.envelope import Address
from limpet.types.message import AssistantMessage, Producer, UserMessage
from limpet.types.tool import Details, text_result
from limpet.types.usage import Usage

PROBE = (
    "<img src=x onerror=\"window.pwned='img'\"><script>window.pwned='script'</script>"
    "[link](javascript:window.pwned='link') <svg onload=\"window.pwned='svg'\">"
    " {{constructor.constructor('window.pwned=1')()}}"
    " \" :onclick=\"window.pwned='prop'\" ' `${window.pwned='template'}`"
)
"""Would show itself in `window.pwned` if any of it were taken for more than text."""
NOW = 1_790_000_000_000
SESSIONS = 10_000
TURNS = 2_000
LONG = "long"
"""The chat with so many turns."""
MODEL = Producer("lab", "openai_chat", "dreamer")


async def lay_out(home: Path) -> None:
    """Fill the home before the gateway opens it."""
    for folder in (home, home / "run", home / "logs", home / "workspace"):
        folder.mkdir(exist_ok=True, mode=0o700)
    owner = Owner(str(home / "run"))
    store = Store.open(str(home / "limpet.db"), process=owner.name)
    try:
        await store.write(_many_sessions)
        await store.write(lambda connection: _long_chat(connection, owner))
        await store.write(lambda connection: _hostile_chat(connection, owner))
        await store.write(_people_and_jobs)
    finally:
        await store.close()
        owner.close()
    (home / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n- Ann likes limpets\n- {PROBE}\n")
    (home / "logs" / "limpet.log").write_text(f'{{"time":{NOW},"level":"error","from":"x","text":"<b>odd</b>"}}\n')


def _many_sessions(connection: Connection) -> None:
    for number in range(SESSIONS):
        connection.execute(
            "INSERT INTO sessions (id, key, agent, title, created, updated, ended, end_reason)"
            " VALUES (?, ?, 'main', ?, ?, ?, ?, 'new')",
            (f"s-old-{number}", f"agent:main:cli:old-{number}", f"Old talk {number}", number, number, number + 1),
        )


def _long_chat(connection: Connection, owner: Owner) -> None:
    row = sessions.open_live(connection, keys.web("main", LONG), agent="main", now=NOW)
    lease = sessions.claim(connection, row.id, owner=owner)
    for number in range(TURNS):
        said = UserEntry(UserMessage((Text(f"Question {number}"),)), "owner")
        entries.append(connection, lease, said, turn="", now=NOW + number)
        answer = AssistantMessage((Text(f"Answer {number}"),), MODEL, usage=Usage(10, 5, cost=12))
        entries.append(connection, lease, AssistantEntry(answer), turn="", now=NOW + number)
    sessions.release(connection, lease)


def _hostile_chat(connection: Connection, owner: Owner) -> None:
    """A conversation in which everything tries to be more than text."""
    row = sessions.open_live(connection, keys.web("main", "hostile"), agent="main", now=NOW)
    connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (PROBE, row.id))
    lease = sessions.claim(connection, row.id, owner=owner)
    prompt = PromptEntry((Section("identity", PROBE), Section(PROBE, "x")), ())
    call = ToolCall("1", "exec", json.dumps({"command": PROBE}))
    result = text_result(PROBE, details=Details(diff=f"+{PROBE}\n-{PROBE}"))
    payloads = (
        prompt,
        UserEntry(UserMessage((Text(PROBE),)), "owner"),
        AssistantEntry(AssistantMessage((Text(f"Hello {PROBE}"), call), MODEL)),
    )
    made = [entries.append(connection, lease, one, turn="", now=NOW) for one in payloads]
    entries.append(connection, lease, ToolResultEntry(made[-1].id, 0, "exec", result), turn="", now=NOW)
    code = f"# {PROBE}\n\n```{PROBE[:20]}\n{PROBE}\n```\n\n| {PROBE.replace('|', '')} |\n|---|\n| x |\n"
    answer = AssistantMessage((Text(code),), MODEL)
    entries.append(connection, lease, AssistantEntry(answer), turn="", now=NOW)
    sessions.release(connection, lease)


def _people_and_jobs(connection: Connection) -> None:
    now = SystemClock().now()
    for number in range(2):
        peers.ask(connection, Address("telegram", f"bot{number}", "c"), f"u{number}", name=PROBE, now=now)
    wish = Wish(PROBE, Timing(every="2h"), name="probe")
    jobs.apply(connection, jobs_desk.make(connection, wish, Maker("main", zone="UTC"), now=now))


async def lay_out_neatly(home: Path) -> None:
    """For pictures: what a home looks like after a while."""
    for folder in (home, home / "run", home / "workspace"):
        folder.mkdir(exist_ok=True, mode=0o700)
    owner = Owner(str(home / "run"))
    store = Store.open(str(home / "limpet.db"), process=owner.name)
    try:
        await store.write(_neat_jobs)
    finally:
        await store.close()
        owner.close()
    memory = "- Ann counts limpets on the north rock\n- The tide table hangs in the kitchen\n- Coffee without milk\n"
    (home / "workspace" / "MEMORY.md").write_text(f"# Memory\n\n{memory}")


def _neat_jobs(connection: Connection) -> None:
    now = SystemClock().now()
    for name, text, timing in (
        ("tide-times", "Tell me today's tides", Timing(cron="30 7 * * *")),
        ("weekly-count", "Sum up the week's limpets", Timing(cron="0 18 * * 5")),
    ):
        made = jobs_desk.make(connection, Wish(text, timing, name=name), Maker("main", zone="UTC"), now=now)
        jobs.apply(connection, made)
