"""A strict fake of OpenAI Chat Completions."""

from __future__ import annotations

import re

import msgspec

from limpet.testing.fakes.marks import check_marks, marks_in
from limpet.testing.fakes.schemas import check_schema
from limpet.testing.fakes.script import Reply, Rules, Script, Seen, pieces
from limpet.testing.fakes.server import FakeServer, sse
from limpet.testing.fakes.shape import Refused, fields, items, name, need, text

STAND_IN = "skip_thought_signature_validator"
_FIELDS = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "prompt_cache_key",
        "reasoning_effort",
        "enable_thinking",
        "reasoning_split",
        "enable_thinking",
        "thinking",
        "reasoning",
        "parallel_tool_calls",
        "chat_template_kwargs",
        "top_p",
        "stop",
        "seed",
        "user",
        "metadata",
    ]
)


class FakeOpenAI(FakeServer):
    """`async with FakeOpenAI([Reply(text=("Hi",))]) as server:`; a profile takes `server.base_url`, `server.key`."""

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(OpenAIService(), script, rules=rules, port=port)


class FakeAzure(FakeServer):
    """The same behind Azure's addresses: a profile's `path` names the deployment, `query` the version of the API."""

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(OpenAIService(azure=True), script, rules=rules, port=port)


class OpenAIService:
    name = "openai"
    content_type = "text/event-stream"

    def __init__(self, *, azure: bool = False) -> None:
        self.path = "/openai/deployments/{model}/chat/completions" if azure else "/v1/chat/completions"
        self.root = "" if azure else "/v1"
        self._azure = azure
        self._used = 0
        self._signed: dict[str, str] = {}
        self._signs = False

    def _check_key(self, seen: Seen, rules: Rules) -> None:
        if self._azure:
            need("api-version=" in seen.query, "api-version query parameter is not specified")
            if seen.headers.get("api-key") != rules.key or "authorization" in seen.headers:
                raise Refused("Access denied due to invalid subscription key", status=401, code="401")
        elif seen.headers.get("authorization") != f"Bearer {rules.key}":
            raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")

    def check(self, seen: Seen, rules: Rules) -> None:
        self._check_key(seen, rules)
        if seen.body is None:
            raise Refused("We could not parse the JSON body of your request.")
        body = seen.body
        text(body.get("model"), "model")
        for field in body:
            if field in rules.forbidden or field not in _FIELDS:
                raise Refused(f"Unsupported parameter: '{field}'", code="unsupported_parameter")
        need(rules.streams or not body.get("stream"), "streaming is not supported")
        messages = [fields(item, f"messages[{at}]") for at, item in enumerate(items(body.get("messages"), "messages"))]
        need(messages, "messages: [] is too short")
        if rules.max_characters and _size(messages) > rules.max_characters:
            limit = rules.max_characters // 4
            raise Refused(f"This model's maximum context length is {limit} tokens.", code="context_length_exceeded")
        marks = marks_in(body)
        need(rules.cache_marks or not marks, "Unknown parameter: 'cache_control'.")
        check_marks(marks)
        self._signs = rules.signatures
        _check_tools(body, rules)
        _check_messages(messages, rules)
        self._check_signatures(messages, rules)

    def _check_signatures(self, messages: list[dict[str, object]], rules: Rules) -> None:
        """Signatures come back exactly where this fake gave them, a call of another carries the stand-in."""
        for message in messages:
            for at, item in enumerate(items(message.get("tool_calls") or [], "tool_calls")):
                call = fields(item, "tool_calls")
                if not rules.signatures:
                    need("extra_content" not in call, "Unknown parameter: 'extra_content'")
                    continue
                google = fields(fields(call.get("extra_content", {}), "extra").get("google", {}), "google")
                wanted = self._signed.get(str(call.get("id")), STAND_IN if not at else "")
                found = google.get("thought_signature", "")
                need(found == wanted or (at and found == STAND_IN), "Function call is missing a thought_signature")

    def error(self, refused: Refused) -> object:
        inner = {"message": str(refused), "type": refused.type, "param": None, "code": refused.code or None}
        return {"error": inner}

    def ping(self) -> bytes:
        return b": ping\n\n"

    def models(self) -> object:
        return {"object": "list", "data": [{"id": "fake-chat", "object": "model", "owned_by": "limpet"}]}

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        model = str((seen.body or {}).get("model", ""))
        if reply.chunks:
            events = [sse(chunk) for chunk in reply.chunks]
            return events if reply.bare else [*events, sse("[DONE]")]
        if not (seen.body or {}).get("stream"):
            return [msgspec.json.encode(self._whole(reply, model))]
        deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
        deltas.extend({"reasoning_content": part} for part in pieces(reply.thinking, 3) if part)
        deltas.extend({"content": part} for part in reply.text)
        for index, call in enumerate(reply.calls):
            self._used += 1
            first = {"name": call.name, "arguments": ""}
            id = call.id or f"call_{self._used}"
            piece: dict[str, object] = {"index": index, "id": id, "type": "function", "function": first}
            if (reply.signature or self._signs) and not index:
                self._signed[id] = reply.signature or f"sig-{model}-{id}"
                piece["extra_content"] = {"google": {"thought_signature": self._signed[id]}}
            deltas.append({"tool_calls": [piece]})
            for part in pieces(call.arguments, call.pieces):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        events = [sse(_chunk(model, delta)) for delta in deltas]
        stop = reply.stop or ("tool_calls" if reply.calls else "stop")
        events.append(sse(_chunk(model, {}, stop=stop)))
        if fields((seen.body or {}).get("stream_options", {}), "stream_options").get("include_usage"):
            events.append(sse({**_head(model), "choices": [], "usage": _usage(reply)}))
        return [*events, sse("[DONE]")]

    def _whole(self, reply: Reply, model: str) -> dict[str, object]:
        """The answer to a request that does not stream."""
        calls: list[dict[str, object]] = []
        for call in reply.calls:
            self._used += 1
            function = {"name": call.name, "arguments": call.arguments}
            calls.append({"id": call.id or f"call_{self._used}", "type": "function", "function": function})
        message: dict[str, object] = {"role": "assistant", "content": "".join(reply.text) or None}
        message |= {"reasoning_content": reply.thinking} if reply.thinking else {}
        message |= {"tool_calls": calls} if calls else {}
        stop = reply.stop or ("tool_calls" if calls else "stop")
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return {**_head(model), "object": "chat.completion", "choices": [choice], "usage": _usage(reply)}


def _head(model: str) -> dict[str, object]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_750_000_000, "model": model}


def _chunk(model: str, delta: dict[str, object], *, stop: str | None = None) -> dict[str, object]:
    return {**_head(model), "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def _usage(reply: Reply) -> dict[str, object]:
    prompt, output = reply.usage
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
    }


def _size(messages: list[dict[str, object]]) -> int:
    return sum(len(msgspec.json.encode(message.get("content"))) for message in messages)


def _check_tools(body: dict[str, object], rules: Rules) -> None:
    names: set[str] = set()
    for at, item in enumerate(items(body.get("tools", []), "tools")):
        where = f"tools[{at}]"
        tool = fields(item, where)
        need(tool.get("type") == "function", f"{where}.type: must be 'function'")
        function = fields(tool.get("function"), f"{where}.function")
        found = name(function.get("name"), f"{where}.function.name")
        need(found not in names, f"{where}.function.name: {found!r} twice")
        names.add(found)
        dialect = "moonshot" if rules.kimi else "strict" if function.get("strict") else "openai"
        check_schema(function.get("parameters"), f"{where}.function.parameters", dialect=dialect)
    need("tools" not in body or names, "tools: [] is too short")
    need(names or "tool_choice" not in body, "tool_choice is only allowed when tools are specified")


def _check_messages(messages: list[dict[str, object]], rules: Rules) -> None:
    open_ids: list[str] = []
    before = ""
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        role = message.get("role")
        need(role in ("system", "user", "assistant", "tool"), f"{where}.role: {role!r} is unknown")
        need(role != "system" or at == 0, f"{where}: a system message must be the first")
        if role == "tool":
            found = text(message.get("tool_call_id"), f"{where}.tool_call_id")
            need(found in open_ids, f"{where}: no preceding tool call with id {found!r}, or answered twice")
            open_ids.remove(found)
            if rules.cache_marks:
                _check_content(message.get("content"), f"{where}.content")
            else:
                text(message.get("content"), f"{where}.content")
        else:
            need(not open_ids, f"{where}: tool calls {open_ids} have no tool message")
        if role == "assistant":
            open_ids = _check_assistant(message, where, rules=rules)
        elif role == "user":
            _check_content(message.get("content"), f"{where}.content")
        need(not rules.alternate or role == "tool" or role != before, f"{where}: roles must alternate")
        before = str(role)
    need(not open_ids, f"tool calls {open_ids} have no tool message")
    need(any(message.get("role") == "user" for message in messages), "there is no user message")


def _check_content(content: object, where: str) -> None:
    if isinstance(content, str):
        need(content, f"{where}: must not be empty")
        return
    parts = items(content, where)
    need(parts, f"{where}: must not be empty")
    for at, item in enumerate(parts):
        part = fields(item, f"{where}[{at}]")
        if part.get("type") == "text":
            need(text(part.get("text"), f"{where}[{at}].text"), f"{where}[{at}].text: must not be empty")
        else:
            need(part.get("type") == "image_url", f"{where}[{at}].type: unknown")
            url = text(fields(part.get("image_url"), f"{where}[{at}]").get("url"), f"{where}[{at}].url")
            need(re.match(r"data:image/\w+;base64,[A-Za-z0-9+/]+=*$|https?://", url), f"{where}[{at}]: no image")


def _check_assistant(message: dict[str, object], where: str, *, rules: Rules) -> list[str]:
    calls = items(message.get("tool_calls") or [], f"{where}.tool_calls")
    need("tool_calls" not in message or calls, f"{where}.tool_calls: [] is too short")
    content = message.get("content")
    need(content is None or (isinstance(content, str) and content), f"{where}.content: must be null or not empty")
    need(calls or content, f"{where}: neither content nor tool calls")
    if rules.deepseek and calls:
        need("reasoning_content" in message, "Missing `reasoning_content` field in the assistant message.")
    if rules.kimi and calls:
        need(message.get("reasoning_content"), f"thinking is enabled but reasoning_content is missing in {where}")
    ids: list[str] = []
    for at, item in enumerate(calls):
        spot = f"{where}.tool_calls[{at}]"
        call = fields(item, spot)
        found = text(call.get("id"), f"{spot}.id")
        need(found and found not in ids, f"{spot}.id: empty or twice")
        need(not rules.id_pattern or re.fullmatch(rules.id_pattern, found), f"{spot}.id: must match {rules.id_pattern}")
        ids.append(found)
        function = fields(call.get("function"), f"{spot}.function")
        name(function.get("name"), f"{spot}.function.name")
        try:
            msgspec.json.decode(text(function.get("arguments"), f"{spot}.arguments"), type=dict[str, object])
        except msgspec.DecodeError:
            raise Refused(f"{spot}.function.arguments: no JSON object") from None
    return ids
