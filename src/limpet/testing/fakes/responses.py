"""A strict fake of OpenAI Responses."""

from __future__ import annotations

import re

import msgspec

from limpet.testing.fakes.schemas import check_schema
from limpet.testing.fakes.script import Reply, Rules, Script, Seen, pieces
from limpet.testing.fakes.server import FakeServer, sse
from limpet.testing.fakes.shape import Refused, fields, items, name, need, text

_FIELDS = frozenset(
    [
        *("model", "input", "instructions", "stream", "store", "tools", "tool_choice", "parallel_tool_calls"),
        *("include", "temperature", "max_output_tokens", "prompt_cache_key", "reasoning", "text", "metadata"),
        *("truncation", "top_p", "user", "service_tier", "safety_identifier"),
    ]
)
_IDS = {"message": "msg_", "function_call": "fc_", "reasoning": "rs_"}


class FakeResponses(FakeServer):
    """`async with FakeResponses([Reply(text=("Hi",))]) as server:`; a profile takes `server.base_url`, `server.key`.

    Reasoning (an item with encrypted content) is only taken back as it was given, from the model that made it, and
    followed by what it led to; an item with an id only beside the reasoning that it came with.
    """

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(ResponsesService(), script, rules=rules, port=port)


class ResponsesService:
    name = "openai"
    path = "/v1/responses"
    root = "/v1"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._used = 0
        self._given: dict[str, tuple[str, object]] = {}
        self._needs: dict[str, str] = {}

    def check(self, seen: Seen, rules: Rules) -> None:
        if seen.headers.get("authorization") != f"Bearer {rules.key}":
            raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")
        if seen.body is None:
            raise Refused("We could not parse the JSON body of your request.")
        body = seen.body
        model = text(body.get("model"), "model")
        for field in body:
            if field in rules.forbidden or field not in _FIELDS:
                raise Refused(f"Unsupported parameter: '{field}'", code="unsupported_parameter")
        found = [fields(item, f"input[{at}]") for at, item in enumerate(items(body.get("input"), "input"))]
        need(found, "input: [] is too short")
        if rules.max_characters and len(msgspec.json.encode(found)) > rules.max_characters:
            what = "Your input exceeds the context window of this model."
            raise Refused(what, code="context_length_exceeded")
        need(len(str(body.get("prompt_cache_key", ""))) <= 64, "prompt_cache_key: longer than 64")
        limit = body.get("max_output_tokens", 16)
        need(isinstance(limit, int) and limit >= 16, "max_output_tokens: below the minimum of 16")
        for wanted in items(body.get("include", []), "include"):
            need(wanted == "reasoning.encrypted_content", f"include: {wanted!r} is unknown")
        _check_tools(body)
        self._check_input(found, model)

    def _check_input(self, found: list[dict[str, object]], model: str) -> None:
        open_ids: list[str] = []
        for at, item in enumerate(found):
            where = f"input[{at}]"
            kind = str(item.get("type", "message"))
            prefix = _IDS.get(kind, "")
            if "id" in item:
                id = text(item["id"], f"{where}.id")
                need(
                    id.startswith(prefix), f"Invalid '{where}.id': '{id}'. Expected an ID that begins with '{prefix}'."
                )
                need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id), f"Invalid '{where}.id': '{id}'.")
            match kind:
                case "message":
                    need(item.get("role") == "assistant" or not open_ids, f"No tool output found for {open_ids}.")
                    _check_message(item, where)
                case "function_call":
                    open_ids.append(_check_call(item, where, open_ids=open_ids))
                case "function_call_output":
                    id = text(item.get("call_id"), f"{where}.call_id")
                    need(id in open_ids, f"No tool call found for function call output with call_id {id}.")
                    open_ids.remove(id)
                    _check_output(item.get("output"), f"{where}.output")
                case "reasoning":
                    self._check_reasoning(item, model, following=found[at + 1 : at + 2], where=where)
                case _:
                    raise Refused(f"{where}.type: {kind!r} is unknown")
            self._check_company(found[:at], item, where=where)
        need(not open_ids, f"No tool output found for function call {', '.join(open_ids)}.")

    def _check_reasoning(
        self, item: dict[str, object], model: str, *, following: list[dict[str, object]], where: str
    ) -> None:
        id = str(item.get("id", ""))
        need(item.get("encrypted_content"), f"Item with id '{id}' not found. Items are not persisted.")
        items(item.get("summary"), f"{where}.summary")
        maker, given = self._given.get(id, ("", None))
        need(maker == model and given == item, f"{where}: the encrypted content could not be verified")
        after = str(following[0].get("type", "message")) if following else ""
        good = after in ("reasoning", "function_call") or (after and following[0].get("role") == "assistant")
        need(good, f"Item '{id}' of type 'reasoning' was provided without its required following item.")

    def _check_company(self, before: list[dict[str, object]], item: dict[str, object], *, where: str) -> None:
        needed = self._needs.get(str(item.get("id", "")))
        present = needed is None or any(other.get("id") == needed for other in before)
        need(present, f"Item '{item.get('id')}' was provided without its required 'reasoning' item: '{needed}'.")

    def error(self, refused: Refused) -> object:
        return {"error": {"message": str(refused), "type": refused.type, "param": None, "code": refused.code or None}}

    def ping(self) -> bytes:
        return b": ping\n\n"

    def models(self) -> object:
        return {"object": "list", "data": [{"id": "fake-responses", "object": "model", "owned_by": "limpet"}]}

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        if reply.chunks:
            return [sse(chunk, event=str(fields(chunk, "chunk").get("type", ""))) for chunk in reply.chunks]
        model = str((seen.body or {}).get("model", ""))
        events: list[dict[str, object]] = [_event("response.created", response=_response("in_progress", model))]
        done: list[dict[str, object]] = []
        for at, (item, between, whole) in enumerate(self._items(reply, model)):
            events.append(_event("response.output_item.added", output_index=at, item=item))
            events.extend({**event, "output_index": at, "item_id": item["id"]} for event in between)
            events.append(_event("response.output_item.done", output_index=at, item=whole))
            done.append(whole)
        status = "incomplete" if reply.stop else "completed"
        prompt, output = reply.usage
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": reply.cached},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + output,
        }
        response = {**_response(status, model), "output": done, "usage": usage}
        if reply.stop:
            response["incomplete_details"] = {"reason": reply.stop}
        events.append(_event(f"response.{status}", response=response))
        return [sse({**event, "sequence_number": at}, event=str(event["type"])) for at, event in enumerate(events)]

    def _items(
        self, reply: Reply, model: str
    ) -> list[tuple[dict[str, object], list[dict[str, object]], dict[str, object]]]:
        """Items of an answer: how each begins, what comes between, and the whole."""
        made: list[tuple[dict[str, object], list[dict[str, object]], dict[str, object]]] = []
        thought = ""
        if reply.thinking or reply.signature:
            thought = self._new("rs_")
            summary = [{"type": "summary_text", "text": reply.thinking}] if reply.thinking else []
            whole: dict[str, object] = {"id": thought, "type": "reasoning", "summary": summary}
            whole["encrypted_content"] = reply.signature or f"sealed-{model}-{thought}"
            self._given[thought] = (model, msgspec.json.decode(msgspec.json.encode(whole)))
            parts = [
                _event("response.reasoning_summary_text.delta", summary_index=0, delta=part)
                for part in pieces(reply.thinking, 3)
                if part
            ]
            made.append(({"id": thought, "type": "reasoning", "summary": []}, parts, whole))
        if reply.text:
            id = self._new("msg_", thought)
            item: dict[str, object] = {"id": id, "type": "message", "role": "assistant", "content": []}
            parts = [_event("response.output_text.delta", content_index=0, delta=part) for part in reply.text]
            content = [{"type": "output_text", "text": "".join(reply.text), "annotations": ()}]
            made.append(({**item, "status": "in_progress"}, parts, {**item, "content": content, "status": "completed"}))
        for call in reply.calls:
            id = self._new("fc_", thought)
            item = {"id": id, "type": "function_call", "name": call.name, "arguments": ""}
            item["call_id"] = call.id or f"call_{self._used:02d}"
            parts = [
                _event("response.function_call_arguments.delta", delta=part)
                for part in pieces(call.arguments, call.pieces)
            ]
            whole = {**item, "arguments": call.arguments, "status": "completed"}
            made.append(({**item, "status": "in_progress"}, parts, whole))
        return made

    def _new(self, prefix: str, thought: str = "") -> str:
        self._used += 1
        id = f"{prefix}{self._used:04d}"
        if thought:
            self._needs[id] = thought
        return id


def _event(kind: str, **values: object) -> dict[str, object]:
    return {"type": kind, **values}


def _response(status: str, model: str) -> dict[str, object]:
    return {"id": "resp_1", "object": "response", "status": status, "model": model, "output": (), "error": None}


def _check_tools(body: dict[str, object]) -> None:
    names: set[str] = set()
    for at, item in enumerate(items(body.get("tools", []), "tools")):
        tool = fields(item, f"tools[{at}]")
        need(tool.get("type") == "function", f"tools[{at}].type: unknown")
        found = name(tool.get("name"), f"tools[{at}].name")
        need(found not in names, f"tools[{at}].name: {found!r} twice")
        names.add(found)
        strict = tool.get("strict", True) is not False  # left out, it is true
        where = f"tools[{at}].parameters"
        check_schema(tool.get("parameters"), where, dialect="strict" if strict else "openai")
    need("tools" not in body or names, "tools: [] is too short")
    need(names or "tool_choice" not in body, "tool_choice is only allowed when tools are specified")


def _check_message(item: dict[str, object], where: str) -> None:
    role = item.get("role")
    need(role in ("user", "assistant"), f"{where}.role: {role!r} is unknown")
    kinds = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image")
    parts = items(item.get("content"), f"{where}.content")
    need(parts, f"{where}.content: must not be empty")
    for part in parts:
        _check_part(fields(part, where), where, kinds=kinds)


def _check_part(part: dict[str, object], where: str, *, kinds: tuple[str, ...]) -> None:
    kind = part.get("type")
    need(kind in kinds, f"Invalid value: {kind!r} at {where}. Supported values are: {', '.join(kinds)}.")
    if kind == "input_image":
        url = text(part.get("image_url"), f"{where}.image_url")
        need(re.match(r"data:image/\w+;base64,[A-Za-z0-9+/]+=*$|https?://", url), f"{where}: no image")
    elif kind != "refusal":
        need(text(part.get("text"), f"{where}.text"), f"{where}.text: must not be empty")


def _check_call(item: dict[str, object], where: str, *, open_ids: list[str]) -> str:
    id = text(item.get("call_id"), f"{where}.call_id")
    need(id and len(id) <= 64 and id not in open_ids, f"{where}.call_id: empty, too long or twice")
    name(item.get("name"), f"{where}.name")
    try:
        msgspec.json.decode(text(item.get("arguments"), f"{where}.arguments"), type=dict[str, object])
    except msgspec.DecodeError:
        raise Refused(f"{where}.arguments: no JSON object") from None
    return id


def _check_output(output: object, where: str) -> None:
    if isinstance(output, str):
        return
    parts = items(output, where)
    need(parts, f"{where}: must not be empty")
    for part in parts:
        _check_part(fields(part, where), where, kinds=("input_text", "input_image"))
