"""A strict fake of Anthropic Messages."""

from __future__ import annotations

import hashlib

import msgspec

from limpet.testing.fakes.marks import check_marks, marks_in
from limpet.testing.fakes.schemas import check_schema
from limpet.testing.fakes.script import Reply, Rules, Script, Seen, pieces
from limpet.testing.fakes.server import FakeServer, sse
from limpet.testing.fakes.shape import Refused, fields, items, name, need, text

_FIELDS = frozenset(
    [
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "thinking",
        "output_config",
        "metadata",
        "top_p",
        "top_k",
        "stop_sequences",
        "service_tier",
    ]
)


class FakeAnthropic(FakeServer):
    """`async with FakeAnthropic([Reply(text=("Hi",))]) as server:`; a profile takes `server.base_url`, `server.key`.

    Reasoning is only taken back from the model that made it: unless a reply sets a `signature`, the fake signs with
    the model's name and checks that on every later request.
    """

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(AnthropicService(), script, rules=rules, port=port)


class AnthropicService:
    name = "anthropic"
    path = "/v1/messages"
    root = "/v1"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._used = 0
        self._signed: dict[str, tuple[str, str]] = {}

    def check(self, seen: Seen, rules: Rules) -> None:
        if seen.headers.get("x-api-key") != rules.key:
            raise Refused("invalid x-api-key", status=401, type="authentication_error")
        need(seen.headers.get("anthropic-version"), "anthropic-version: header is required")
        if seen.body is None:
            raise Refused("The request body is not valid JSON")
        body = seen.body
        model = text(body.get("model"), "model")
        need(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        for field in body:
            need(field in _FIELDS and field not in rules.forbidden, f"{field}: Extra inputs are not permitted")
        messages = [fields(item, f"messages.{at}") for at, item in enumerate(items(body.get("messages"), "messages"))]
        need(messages, "messages: at least one message is required")
        if rules.max_characters and (size := len(msgspec.json.encode(messages))) > rules.max_characters:
            raise Refused(f"prompt is too long: {size // 4} tokens > {rules.max_characters // 4} maximum")
        if "system" in body and not isinstance(body["system"], str):
            _check_blocks(items(body["system"], "system"), "system", kinds=("text",))
        need(body.get("system") != "", "system: text content blocks must be non-empty")
        _check_tools(body)
        self._check_messages(messages, model)
        check_marks([mark for part in ("tools", "system", "messages") for mark in marks_in(body.get(part))])

    def _check_messages(self, messages: list[dict[str, object]], model: str) -> None:
        need(messages[0].get("role") == "user", "messages: first message must use the user role")
        open_ids: list[str] = []
        seen_ids: set[str] = set()
        before = ""
        for at, message in enumerate(messages):
            where = f"messages.{at}"
            role = text(message.get("role"), f"{where}.role")
            need(role in ("user", "assistant"), f"{where}.role: Input should be 'user' or 'assistant'")
            need(role != before, f'{where}: roles must alternate between "user" and "assistant"')
            before = role
            content = message.get("content")
            plain: list[object] = [{"type": "text", "text": content}]
            blocks = plain if isinstance(content, str) else items(content, where)
            need(blocks, f"{where}: content must be non-empty")
            kinds = ("text", "image", "tool_result") if role == "user" else _ASSISTANT
            found = _check_blocks(blocks, where, kinds=kinds)
            if role == "user":
                _check_results(found, open_ids, where=where)
                open_ids = []
                continue
            self._check_thinking(found, model, where=where)
            open_ids = [_check_use(block, where) for block in found if block.get("type") == "tool_use"]
            for use in open_ids:
                need(use not in seen_ids, f"{where}: `tool_use` ids must be unique")
                seen_ids.add(use)
        need(not open_ids, f"`tool_use` ids were found without `tool_result` blocks: {', '.join(open_ids)}")

    def _check_thinking(self, blocks: list[dict[str, object]], model: str, *, where: str) -> None:
        for at, block in enumerate(blocks):
            if block.get("type") != "thinking":
                continue
            signature = text(block.get("signature"), f"{where}.content.{at}.signature")
            maker, said = self._signed.get(signature, ("", ""))
            good = maker == model and said == block.get("thinking")
            need(good, f"{where}.content.{at}: Invalid `signature` in `thinking` block")

    def error(self, refused: Refused) -> object:
        inner = {"type": refused.type, "message": str(refused)}
        return {"type": "error", "error": inner, "request_id": "req_fake"}

    def ping(self) -> bytes:
        return sse({"type": "ping"}, event="ping")

    def models(self) -> object:
        return {"data": [{"type": "model", "id": "fake-claude", "display_name": "Fake"}], "has_more": False}

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        model = str((seen.body or {}).get("model", ""))
        if reply.chunks:
            return [sse(chunk, event=str(fields(chunk, "chunk").get("type", ""))) for chunk in reply.chunks]
        prompt, output = reply.usage
        usage = {"input_tokens": prompt, "output_tokens": 1, "cache_read_input_tokens": reply.cached}
        usage["cache_creation_input_tokens"] = 0
        message: dict[str, object] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": (),
        }
        events: list[dict[str, object]] = [
            {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
            {"type": "ping"},
        ]
        for index, (start, deltas) in enumerate(self._blocks(reply, model)):
            events.append({"type": "content_block_start", "index": index, "content_block": start})
            events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
            events.append({"type": "content_block_stop", "index": index})
        stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
        ending = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": output}})
        events.append({"type": "message_stop"})
        return [sse(event, event=str(event["type"])) for event in events]

    def _blocks(self, reply: Reply, model: str) -> list[tuple[dict[str, object], list[dict[str, object]]]]:
        blocks: list[tuple[dict[str, object], list[dict[str, object]]]] = []
        if reply.thinking or reply.signature:
            signature = reply.signature or hashlib.sha256(f"{model}\0{reply.thinking}".encode()).hexdigest()[:24]
            self._signed[signature] = (model, reply.thinking)
            parts: list[dict[str, object]] = [
                {"type": "thinking_delta", "thinking": part} for part in pieces(reply.thinking, 3) if part
            ]
            parts.append({"type": "signature_delta", "signature": signature})
            blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, parts))
        if reply.text:
            blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in reply.text]))
        for call in reply.calls:
            self._used += 1
            made = f"toolu_{self._used:02d}"
            start: dict[str, object] = {"type": "tool_use", "id": call.id or made, "name": call.name, "input": {}}
            deltas: list[dict[str, object]] = [
                {"type": "input_json_delta", "partial_json": part} for part in pieces(call.arguments, call.pieces)
            ]
            blocks.append((start, deltas))
        return blocks


_ASSISTANT = ("text", "tool_use", "thinking", "redacted_thinking")


def _check_blocks(blocks: list[object], where: str, *, kinds: tuple[str, ...]) -> list[dict[str, object]]:
    found = [fields(item, f"{where}.{at}") for at, item in enumerate(blocks)]
    for at, block in enumerate(found):
        spot = f"{where}.content.{at}"
        kind = block.get("type")
        need(kind in kinds, f"{spot}: Input tag {kind!r} does not match {', '.join(kinds)}")
        if kind == "text":
            need(text(block.get("text"), spot).strip(), f"{spot}: text content blocks must contain non-whitespace text")
        if kind == "image":
            source = fields(block.get("source"), f"{spot}.source")
            need(source.get("type") == "base64" and source.get("data"), f"{spot}.source: no data")
            need(str(source.get("media_type")).startswith("image/"), f"{spot}.source.media_type: no image type")
    return found


def _check_use(block: dict[str, object], where: str) -> str:
    fields(block.get("input"), f"{where}.tool_use.input")
    name(block.get("name"), f"{where}.tool_use.name")
    found = text(block.get("id"), f"{where}.tool_use.id")
    need(
        found and all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in found),
        f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    )
    return found


def _check_results(blocks: list[dict[str, object]], open_ids: list[str], *, where: str) -> None:
    answered: list[str] = []
    for at, block in enumerate(blocks):
        if block.get("type") != "tool_result":
            continue
        need(
            all(other.get("type") == "tool_result" for other in blocks[:at]), f"{where}: tool_result blocks come first"
        )
        found = text(block.get("tool_use_id"), f"{where}.{at}.tool_use_id")
        need(found in open_ids, f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {found}")
        need(found not in answered, f"{where}: each tool_use must have a single result: {found}")
        answered.append(found)
        content = block.get("content")
        if content is not None and not isinstance(content, str):
            _check_blocks(items(content, f"{where}.{at}"), f"{where}.{at}", kinds=("text", "image"))
    missing = [found for found in open_ids if found not in answered]
    need(not missing, f"{where}: `tool_use` ids were found without `tool_result` blocks: {', '.join(missing)}")


def _check_tools(body: dict[str, object]) -> None:
    names: set[str] = set()
    for at, item in enumerate(items(body.get("tools", []), "tools")):
        tool = fields(item, f"tools.{at}")
        found = name(tool.get("name"), f"tools.{at}.name")
        need(found not in names, "tools: Tool names must be unique.")
        names.add(found)
        check_schema(tool.get("input_schema"), f"tools.{at}.input_schema", dialect="anthropic")
    need(names or "tool_choice" not in body, "tool_choice may only be specified while providing tools")
