"""Replies that real services were seen to give, by what is wrong with them: for tests of whole turns."""

from __future__ import annotations

from limpet.testing.fakes.script import Call, Reply


def delta(**fields: object) -> dict[str, object]:
    """One Chat Completions chunk with a delta."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def end(reason: str = "stop") -> dict[str, object]:
    """The Chat Completions chunk that ends an answer."""
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def piece(arguments: object = None, *, index: int | None = 0, id: str | None = "", name: str | None = "") -> object:
    """One piece of a tool call, as the deltas of a chunk carry it. `arguments` None leaves the key out."""
    function: dict[str, object] = {"name": name}
    if arguments is not None:
        function["arguments"] = arguments
    return {"index": index, "id": id, "type": "function", "function": function}


def odd_arguments(name: str, arguments: object, *, id: str = "call_a") -> Reply:
    """C01: one call whose arguments are empty, `null`, blank, an object … (`None`: the key is absent)."""
    return Reply(chunks=(delta(tool_calls=[piece(arguments, id=id, name=name)]), end("tool_calls")))


def null_arguments(name: str, *, id: str = "call_a") -> Reply:
    """C01 (b): the arguments are JSON null."""
    call = {"index": 0, "id": id, "function": {"name": name, "arguments": None}}
    return Reply(chunks=(delta(tool_calls=[call]), end("tool_calls")))


def blank_later_pieces(name: str, *arguments: str, id: str = "call_8") -> Reply:
    """C02: id and name stand in the first piece only and are empty texts in the others."""
    first, *others = arguments
    pieces = [piece(first, id=id, name=name), *(piece(part) for part in others)]
    return Reply(chunks=(*(delta(tool_calls=[part]) for part in pieces), end("tool_calls")))


def one_index(*calls: Call) -> Reply:
    """C03 (a): several complete calls, all with index 0."""
    deltas = [delta(tool_calls=[piece(call.arguments, id=call.id, name=call.name)]) for call in calls]
    return Reply(chunks=(*deltas, end("tool_calls")))


def run_together(name: str, *, id: str = "call_a") -> Reply:
    """C03 (b): two objects in the arguments of one call."""
    return odd_arguments(name, '{"p":1}{"p":2}', id=id)


def cut_off(name: str, arguments: str, *, stop: str = "length", id: str = "") -> Reply:
    """C04: arguments that break off; `stop` is what the service says of it."""
    return Reply(calls=(Call(name, arguments, id=id),), stop=stop)


def error_in_200(message: str = "upstream", *, code: int = 502) -> Reply:
    """C14 (a)."""
    return Reply(body={"error": {"code": code, "message": message}})


def no_choices() -> Reply:
    """C14 (b)."""
    return Reply(body={"choices": None})


def error_in_stream(*text: str, message: str = "upstream") -> Reply:
    """C14 (c): some text, then an error object."""
    failed = {"error": {"code": 502, "message": message}}
    return Reply(chunks=(*(delta(content=part) for part in text), failed), bare=True)


def empty() -> Reply:
    """C14 (d): an answer without text and calls."""
    return Reply()


def no_credits() -> Reply:
    """C14 (e)."""
    return Reply(status=402, body={"error": {"message": "no credits", "code": 402}})


def headers_only() -> Reply:
    """C15 (a): a 200 and then nothing."""
    return Reply(stall_after=0)


def comments_only(text: str = "some", *, every: float = 1.0) -> Reply:
    """C15 (b): one piece of text, then only comments (pings) every so many seconds."""
    return Reply(chunks=(delta(content=text),), stall_after=1, pings=every, bare=True)
