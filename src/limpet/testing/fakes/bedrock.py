"""A strict fake of Amazon Bedrock's ConverseStream, which checks signatures as AWS does."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import quote, unquote

import msgspec

from limpet.llm.eventstream import frame
from limpet.testing.fakes.schemas import check_schema
from limpet.testing.fakes.script import Reply, Rules, Script, Seen, pieces
from limpet.testing.fakes.server import FakeServer
from limpet.testing.fakes.shape import Refused, fields, items, name, need, text

ACCESS_KEY, SECRET_KEY = "AKIAFAKE", "secret-test"
_FIELDS = ("messages", "system", "toolConfig", "inferenceConfig", "additionalModelRequestFields", "guardrailConfig")
_SCHEME = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([a-z0-9-]+)/bedrock/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KINDS = {
    "user": ("text", "image", "toolResult", "cachePoint"),
    "assistant": ("text", "toolUse", "reasoningContent", "cachePoint"),
}


class FakeBedrock(FakeServer):
    """`async with FakeBedrock([Reply(text=("Hi",))]) as server:`; a profile takes `server.base_url`.

    It takes the bearer token `server.key`, or requests signed with `ACCESS_KEY` and `SECRET_KEY`. Reasoning is only
    taken back from the model that made it.
    """

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(BedrockService(), script, rules=rules, port=port)


class BedrockService:
    name = "bedrock"
    path = "/model/{model}/converse-stream"
    root = ""
    content_type = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self._used = 0
        self._signed: dict[str, tuple[str, str]] = {}

    def check(self, seen: Seen, rules: Rules) -> None:
        try:
            self._check(seen, rules)
        except Refused as refused:
            kind = "UnrecognizedClientException" if refused.status == 403 else "ValidationException"
            refused.headers = {"x-amzn-ErrorType": f"{kind}:http://internal.amazon.com/"}
            raise

    def _check(self, seen: Seen, rules: Rules) -> None:
        given = seen.headers.get("authorization", "")
        if given.startswith("AWS4"):
            check_signature(seen)
        elif given != f"Bearer {rules.key}":
            raise Refused("The security token included in the request is invalid.", status=403)
        if seen.body is None:
            raise Refused("The request body is not valid JSON")
        body = seen.body
        for field in body:
            need(field in _FIELDS, f"extraneous key [{field}] is not permitted")
        for field in rules.forbidden:
            known = field not in body and field not in fields(body.get("inferenceConfig", {}), "inferenceConfig")
            need(known, f"extraneous key [{field}] is not permitted")
        messages = [fields(item, f"messages.{at}") for at, item in enumerate(items(body.get("messages"), "messages"))]
        need(messages, "A conversation must start with a user message. Try again with one.")
        if rules.max_characters and len(msgspec.json.encode(messages)) > rules.max_characters:
            raise Refused("Input is too long for requested model.")
        for item in items(body.get("system", []), "system"):
            block = fields(item, "system")
            need("cachePoint" in block or str(block.get("text", "")).strip(), "system: the text is blank")
        tools = _check_tools(body)
        self._check_messages(messages, unquote(seen.path.split("/")[2]), tools=tools)
        _check_points(body, messages)

    def _check_messages(self, messages: list[dict[str, object]], model: str, *, tools: bool) -> None:
        before = "assistant"
        open_ids: list[str] = []
        for at, message in enumerate(messages):
            where = f"messages.{at}"
            role = text(message.get("role"), f"{where}.role")
            need(role in _KINDS and role != before, f"{where}: roles must alternate, the first is user")
            before = role
            blocks = [fields(item, where) for item in items(message.get("content"), f"{where}.content")]
            need(blocks, f"The content field in the Message object at {where} is empty.")
            for block in blocks:
                _check_block(block, where, kinds=_KINDS[role])
            uses = [fields(block["toolUse"], where) for block in blocks if "toolUse" in block]
            results = [fields(block["toolResult"], where) for block in blocks if "toolResult" in block]
            need(
                tools or not (uses or results), "The toolConfig field must be defined when using toolUse and toolResult"
            )
            found = [str(result.get("toolUseId")) for result in results]
            need(sorted(found) == sorted(open_ids), f"{where}: Expected toolResult blocks for the Ids: {open_ids}")
            open_ids = [_check_use(use, where) for use in uses]
            need(len(set(open_ids)) == len(open_ids), f"{where}: toolUse ids must be unique")
            for block in blocks:
                if "reasoningContent" in block:
                    self._check_reasoning(fields(block["reasoningContent"], where), model, where=where)
        need(not open_ids, f"Expected toolResult blocks for the following Ids: {', '.join(open_ids)}")

    def _check_reasoning(self, content: dict[str, object], model: str, *, where: str) -> None:
        if "redactedContent" in content:
            return
        thought = fields(content.get("reasoningText"), where)
        maker, said = self._signed.get(str(thought.get("signature")), ("", ""))
        need(maker == model and said == thought.get("text"), f"{where}: Invalid `signature` in `thinking` block")

    def error(self, refused: Refused) -> object:
        return {"message": str(refused)}

    def ping(self) -> bytes:
        return frame({":message-type": "event", ":event-type": "initial-response"}, b"{}")

    def models(self) -> object:
        return {"modelSummaries": [{"modelId": "fake.bedrock-v1:0"}]}

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        if reply.chunks:
            named = [fields(chunk, "chunk") for chunk in reply.chunks]
            return [_frame(kind, payload) for chunk in named for kind, payload in chunk.items()]
        events = [_frame("messageStart", {"role": "assistant"})]
        for index, (start, deltas) in enumerate(self._blocks(reply, unquote(seen.path.split("/")[2]))):
            if start:
                events.append(_frame("contentBlockStart", {"contentBlockIndex": index, "start": start}))
            events += [_frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}) for delta in deltas]
            events.append(_frame("contentBlockStop", {"contentBlockIndex": index}))
        stop = reply.stop or ("tool_use" if reply.calls else "end_turn")
        events.append(_frame("messageStop", {"stopReason": stop}))
        prompt, output = reply.usage
        usage = {"inputTokens": prompt, "outputTokens": output, "totalTokens": prompt + output}
        usage["cacheReadInputTokens"] = reply.cached
        events.append(_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
        return events

    def _blocks(self, reply: Reply, model: str) -> list[tuple[dict[str, object], list[dict[str, object]]]]:
        blocks: list[tuple[dict[str, object], list[dict[str, object]]]] = []
        if reply.thinking or reply.signature:
            signature = reply.signature or hashlib.sha256(f"{model}\0{reply.thinking}".encode()).hexdigest()[:24]
            self._signed[signature] = (model, reply.thinking)
            parts: list[dict[str, object]] = [{"text": part} for part in pieces(reply.thinking, 3) if part]
            parts.append({"signature": signature})
            blocks.append(({}, [{"reasoningContent": part} for part in parts]))
        if reply.text:
            blocks.append(({}, [{"text": part} for part in reply.text]))
        for call in reply.calls:
            self._used += 1
            use = {"toolUseId": call.id or f"tooluse_{self._used:02d}", "name": call.name}
            deltas: list[dict[str, object]] = [
                {"toolUse": {"input": part}} for part in pieces(call.arguments, call.pieces)
            ]
            blocks.append(({"toolUse": use}, deltas))
        return blocks


def _frame(kind: str, payload: object) -> bytes:
    exception = kind.endswith("Exception")
    name = ":exception-type" if exception else ":event-type"
    headers = {name: kind, ":content-type": "application/json", ":message-type": "exception" if exception else "event"}
    return frame(headers, msgspec.json.encode(payload))


def check_signature(seen: Seen) -> None:
    """Signature Version 4, computed anew from the request as it came. Raises `Refused` (403)."""
    match = _SCHEME.fullmatch(seen.headers.get("authorization", ""))
    stamp = seen.headers.get("x-amz-date", "")
    if match is None or not re.fullmatch(r"\d{8}T\d{6}Z", stamp) or not stamp.startswith(match[2]):
        raise Refused("Authorization header is malformed, or its date is not that of x-amz-date.", status=403)
    access, date, region, signed, signature = match.groups()
    names = signed.split(";")
    if access != ACCESS_KEY or not {"host", "x-amz-date"} <= set(names):
        raise Refused("The security token included in the request is invalid.", status=403)
    body = hashlib.sha256(seen.raw).hexdigest()
    headers = "".join(f"{name}:{' '.join(seen.headers.get(name, '').split())}\n" for name in names)
    canonical = "\n".join(["POST", quote(seen.path, safe="/~"), seen.query, headers, signed, body])
    scope = f"{date}/{region}/bedrock/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET_KEY}".encode()
    for step in (date, region, "bedrock", "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    if not hmac.compare_digest(hmac.digest(key, to_sign.encode(), "sha256").hex(), signature):
        raise Refused("The request signature we calculated does not match the signature you provided.", status=403)


def _check_points(body: dict[str, object], messages: list[dict[str, object]]) -> None:
    """Cache points: at most four, none before all content, and none that lives longer than one before it."""
    tools = fields(body.get("toolConfig", {}), "toolConfig").get("tools", [])
    lives: list[bool] = []
    for part in (tools, body.get("system", []), *(message["content"] for message in messages)):
        for at, item in enumerate(items(part, "")):
            if "cachePoint" in (block := fields(item, "")):
                need(at > 0, "cachePoint cannot be the first block")
                point = fields(block["cachePoint"], "cachePoint")
                need(point.get("type") == "default", "cachePoint.type: must be default")
                need(point.get("ttl", "5m") in ("5m", "1h"), "cachePoint.ttl: must be 5m or 1h")
                lives.append(point.get("ttl") == "1h")
    need(len(lives) <= 4, "too many cachePoint blocks")
    need(lives == sorted(lives, reverse=True), "a cachePoint of 1h must not come after one of 5m")


def _check_block(block: dict[str, object], where: str, *, kinds: tuple[str, ...]) -> None:
    need(len(block) == 1 and next(iter(block)) in kinds, f"{where}: one of {', '.join(kinds)}, got {list(block)}")
    if "text" in block:
        need(text(block["text"], where).strip(), f"The text field in the ContentBlock object at {where} is blank.")
    if "image" in block:
        image = fields(block["image"], where)
        need(image.get("format") in ("png", "jpeg", "gif", "webp"), f"{where}: image format")
        need(fields(image.get("source"), where).get("bytes"), f"{where}: image without bytes")
    if "toolResult" in block:
        result = fields(block["toolResult"], where)
        need(result.get("status", "success") in ("success", "error"), f"{where}: status")
        content = items(result.get("content"), f"{where}.toolResult.content")
        need(content, f"{where}.toolResult.content is empty")
        for item in content:
            _check_block(fields(item, where), where, kinds=("text", "image", "json"))


def _check_use(use: dict[str, object], where: str) -> str:
    name(use.get("name"), f"{where}.toolUse.name")
    fields(use.get("input"), f"{where}.toolUse.input")
    id = text(use.get("toolUseId"), f"{where}.toolUse.toolUseId")
    need(_ID.fullmatch(id), f"{where}.toolUse.toolUseId: failed to satisfy pattern [a-zA-Z0-9_-]+")
    return id


def _check_tools(body: dict[str, object]) -> bool:
    if "toolConfig" not in body:
        return False
    config = fields(body["toolConfig"], "toolConfig")
    names: list[str] = []
    for item in items(config.get("tools"), "toolConfig.tools"):
        tool = fields(item, "toolConfig.tools")
        if "cachePoint" in tool:
            continue
        spec = fields(tool.get("toolSpec"), "toolSpec")
        names.append(name(spec.get("name"), "toolSpec.name"))
        need(spec.get("description", "x"), "toolSpec.description: must not be empty")
        schema = fields(spec.get("inputSchema"), "toolSpec.inputSchema").get("json")
        check_schema(schema, f"toolSpec.{names[-1]}.inputSchema", dialect="anthropic")
    need(names and len(set(names)) == len(names), "toolConfig.tools: empty, or a name twice")
    return True
