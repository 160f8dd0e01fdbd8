"""Commands that write to the session: they wait for their place in the inbox and run under the lease."""

from __future__ import annotations

from typing import get_args

from limpet.assistant.archive import summary_before
from limpet.assistant.orders import Order
from limpet.assistant.reduce import Place, Reducer
from limpet.assistant.turn import session_sampling
from limpet.assistant.view import next_request
from limpet.session.export import markdown
from limpet.store import commits, entries, outbox, sessions, turns
from limpet.store.sql import Connection
from limpet.types.entry import ModelChange
from limpet.types.envelope import Attachment, Beside, Part, QueueMode
from limpet.types.ids import new_id

TERMINAL = "cli"
MODES = get_args(QueueMode)
LEVELS = ("off", "low", "medium", "high")


async def new(order: Order) -> str:
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    now = conversation.services.clock.now()
    await conversation.services.store.write(lambda connection: sessions.end(connection, lease, reason="new", now=now))
    conversation.forget()
    return "A new conversation. What was said before is kept (`limpet sessions list`)."


async def compact(order: Order) -> str:
    """Summarise now, on the owner's word. Nothing changes when no summary can be made."""
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    services, log = conversation.services, conversation.log()
    if log.prompt is None:
        return "There is nothing to summarise yet."
    model = await services.models.get(conversation.model_reference())
    sampling = session_sampling(services, lease.session, model.profile)
    reducer = Reducer(
        services,
        log,
        Place(conversation.key, lease),
        model=model,
        build=lambda: next_request(log, key=conversation.key, session=lease.session, sampling=sampling),
    )
    made = await reducer.compact(order.arguments)
    if made is None:
        return "There is too little to summarise."
    return f"Summarised: {made[0]:,} tokens are {made[1]:,} now. All of it stays in the log."


async def reload(order: Order) -> str:
    """Make the prompt anew from the workspace as it is now."""
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    services = conversation.services
    profile = (await services.models.get(conversation.model_reference())).profile
    before = summary_before(services.store, conversation.key)
    made = services.prompting.snapshot(profile, reason="/reload", before=before.text, key=conversation.key)
    now = services.clock.now()
    await services.store.write(
        lambda connection: entries.append(connection, lease, made, turn="", now=now, trust=before.trust)
    )
    return "The workspace files are read anew. The provider has to read the whole conversation once more."


async def model(order: Order) -> str:
    lease, conversation, reference = order.lease, order.conversation, order.arguments
    assert lease is not None
    services = conversation.services
    if not reference:
        model = await services.models.get(conversation.model_reference())
        return f"{model.profile.reference}. Change it with /model provider/model, or /model default."
    default = reference == "default"
    model = await services.models.get("" if default else reference)
    reference = model.profile.reference
    now = services.clock.now()

    def work(connection: Connection) -> None:
        sessions.set_model(connection, lease, "" if default else reference)
        entries.append(connection, lease, ModelChange(reference), turn="", now=now)

    await services.store.write(work)
    conversation.name_model("")
    return f"From here on this conversation speaks to {reference}."


async def think(order: Order) -> str:
    lease, level = order.lease, order.arguments.lower()
    assert lease is not None
    store, key = order.conversation.services.store, order.conversation.key
    if not level:
        live = store.read(lambda connection: sessions.live(connection, key))
        return f"Thinking: {(live.thinking if live else '') or 'as the settings say'}. Change it with /think LEVEL."
    if level not in (*LEVELS, "default"):
        return f"There is no level {level}. There are: {', '.join(LEVELS)}, and default for what the settings say."
    wanted = "" if level == "default" else level
    await store.write(lambda connection: sessions.set_thinking(connection, lease, wanted))
    return f"Thinking: {wanted or 'as the settings say'}, from the next message on."


async def queue(order: Order) -> str:
    lease, mode = order.lease, order.arguments.lower()
    assert lease is not None
    services = order.conversation.services
    usual = services.rules.queueing(order.conversation.key).mode
    if not mode:
        now = services.store.read(lambda connection: sessions.queue_of(connection, lease.session)) or usual
        return f"Messages while I work: {now}. Change it with /queue MODE: {', '.join(MODES)}."
    if mode not in (*MODES, "default"):
        return f"There is no mode {mode}. There are: {', '.join(MODES)}, and default, which is {usual}."
    wanted = "" if mode == "default" else mode
    await services.store.write(lambda connection: sessions.set_queue(connection, lease, wanted))
    return f"Messages while I work: {wanted or usual}."


async def retry(order: Order) -> str | None:
    lease, conversation = order.lease, order.conversation
    assert lease is not None
    services = conversation.services
    newest = services.store.read(lambda connection: turns.newest(connection, lease.session))
    if newest is None or newest.state not in ("failed", "interrupted", "cancelled"):
        return "There is nothing to try again: the last turn was finished."
    name, now = new_id("t"), services.clock.now()

    def work(connection: Connection) -> None:
        commits.begin_again(connection, lease, turn=name, row=order.row.id, now=now)

    await services.store.write(work)
    await conversation.run_begun(lease, name)
    return None


async def export(order: Order) -> str:
    """Send this conversation as a Markdown file; in a terminal, keep it in the workspace."""
    conversation, row = order.conversation, order.row
    services, now = conversation.services, conversation.services.clock.now()
    text = markdown(conversation.log().path())
    if not text.strip():
        return "There is nothing to export yet."
    data = services.redactor.redact(text).encode()
    attached = Attachment(await services.blobs.put(data), "conversation.md", "text/markdown", len(data))
    if row.inbound.address.channel == TERMINAL:
        return f"The conversation as Markdown: {services.blobs.path(attached.blob)}"
    part = Part(row.inbound.address, "", f"export:{row.id}", beside=Beside(attachments=(attached,)))
    await services.store.write(lambda connection: outbox.queue(connection, part, session="", turn="", now=now))
    return f"This conversation, {len(data):,} bytes:"


async def restart(order: Order) -> str:
    """Have the gateway end in good order and begin anew."""
    ask = order.conversation.services.rules.restart
    if ask is None:
        return "Only the gateway can be restarted; this is another process."
    ask()
    return "I begin anew. What runs is put aside and goes on afterwards."
