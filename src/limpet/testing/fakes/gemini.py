"""A strict fake of Gemini's own API."""

from __future__ import annotations

import hashlib
import re

import msgspec

from limpet.testing.fakes.schemas import check_schema
from limpet.testing.fakes.script import Reply, Rules, Script, Seen
from limpet.testing.fakes.server import FakeServer, sse
from limpet.testing.fakes.shape import Refused, fields, items, need, text

STAND_IN = "skip_thought_signature_validator"
_FIELDS = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings")
_CONFIG = ("temperature", "maxOutputTokens", "thinkingConfig", "topP", "topK", "stopSequences", "candidateCount")
_DATA = ("text", "inlineData", "functionCall", "functionResponse")
_PART = (*_DATA, "thought", "thoughtSignature")


class FakeGemini(FakeServer):
    """`async with FakeGemini([Reply(text=("Hi",))]) as server:`; a profile takes `server.base_url`, `server.key`.

    The first call of each answer carries a signature, made of the model and the call unless the reply sets one. It
    must come back as it was, on that call only; the first call of another's answer carries the stand-in.
    """

    def __init__(self, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        super().__init__(GeminiService(), script, rules=rules, port=port)


class GeminiService:
    name = "gemini"
    path = "/v1beta/models/{model}:streamGenerateContent"
    root = "/v1beta"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self._used = 0
        self._calls: dict[str, tuple[str, str]] = {}
        self._signatures: set[tuple[str, str]] = set()

    def check(self, seen: Seen, rules: Rules) -> None:
        if seen.headers.get("x-goog-api-key") != rules.key:
            raise Refused("API key not valid. Please pass a valid API key.", type="INVALID_ARGUMENT", code="API_KEY")
        need("alt=sse" in seen.query.split("&"), "this fake streams server-sent events only: alt=sse")
        if seen.body is None:
            raise Refused("Invalid JSON payload received.")
        body = seen.body
        _known(body, _FIELDS, "")
        config = fields(body.get("generationConfig", {}), "generation_config")
        for field in rules.forbidden:
            known = field not in body and field not in config
            need(known, f'Invalid JSON payload received. Unknown name "{field}": Cannot find field.')
        _known(config, _CONFIG, "generation_config")
        contents = [fields(item, f"contents[{at}]") for at, item in enumerate(items(body.get("contents"), "contents"))]
        need(contents, "contents is not specified")
        if rules.max_characters and (size := len(msgspec.json.encode(contents))) > rules.max_characters:
            limit = rules.max_characters // 4
            raise Refused(
                f"The input token count ({size // 4}) exceeds the maximum number of tokens allowed ({limit})."
            )
        if "systemInstruction" in body:
            system = items(fields(body["systemInstruction"], "system").get("parts"), "system.parts")
            need(system and all(fields(part, "system").get("text") for part in system), "system: text is empty")
        _check_tools(body)
        self._check_contents(contents, _model(seen))

    def _check_contents(self, contents: list[dict[str, object]], model: str) -> None:
        need(contents[0].get("role") == "user", "Please ensure that multiturn requests start with a user turn")
        waiting: list[dict[str, object]] = []
        before = ""
        for at, content in enumerate(contents):
            where = f"contents[{at}]"
            role = text(content.get("role"), f"{where}.role")
            need(role in ("user", "model"), f"{where}: Please use a valid role: user, model.")
            parts = [fields(part, where) for part in items(content.get("parts", []), f"{where}.parts")]
            need(parts, f"{where}.parts: must include at least one parts field")
            for part in parts:
                _check_part(part, where)
            answers = [fields(part["functionResponse"], where) for part in parts if "functionResponse" in part]
            if waiting or answers:
                _check_answers(waiting, answers, alone=len(answers) == len(parts) and role == "user", where=where)
            waiting = [fields(part["functionCall"], where) for part in parts if "functionCall" in part]
            need(not waiting or role == "model", f"{where}: function call in a user turn")
            need(not waiting or before == "user", "a function call turn comes right after a user or response turn")
            if role == "model":
                self._check_signatures(parts, model, where=where)
            before = role
        need(not waiting, "the number of function response parts must equal the number of function call parts")

    def _check_signatures(self, parts: list[dict[str, object]], model: str, *, where: str) -> None:
        first = True
        for part in parts:
            found = str(part.get("thoughtSignature", ""))
            if "functionCall" not in part:
                need(not found or (model, found) in self._signatures, f"{where}: Corrupted thought signature.")
                continue
            id = str(fields(part["functionCall"], where).get("id", ""))
            maker, given = self._calls.get(id, ("", ""))
            if maker == model:
                need(found == given, f"{where}: the thought_signature of {id} is not the one it came with")
            else:
                need(found in ("", STAND_IN), f"{where}: Corrupted thought signature.")
                need(found or not first, f"Function call in {where} is missing a thought_signature")
            first = False

    def error(self, refused: Refused) -> object:
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        error: dict[str, object] = {"code": refused.status, "message": str(refused), "status": "INVALID_ARGUMENT"}
        return {"error": {**error, "details": details} if refused.code == "API_KEY" else error}

    def ping(self) -> bytes:
        return b": ping\n\n"

    def models(self) -> object:
        return {"models": [{"name": "models/fake-gemini", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}]}

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        if reply.chunks:
            return [sse(chunk) for chunk in reply.chunks]
        model = _model(seen)
        parts = [[part] for part in self._parts(reply, model)] or [[]]
        prompt, output = reply.usage
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}
        usage["cachedContentTokenCount"] = reply.cached
        events: list[bytes] = []
        for at, part in enumerate(parts):
            content: dict[str, object] = {"role": "model", "parts": part} if part else {"role": "model"}
            candidate: dict[str, object] = {"content": content, "index": 0}
            if at == len(parts) - 1:
                candidate["finishReason"] = reply.stop or "STOP"
            events.append(sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}))
        return events

    def _parts(self, reply: Reply, model: str) -> list[dict[str, object]]:
        parts: list[dict[str, object]] = []
        if reply.thinking:
            parts.append({"text": reply.thinking, "thought": True})
        parts.extend({"text": piece} for piece in reply.text)
        if reply.signature and not reply.calls:
            self._signatures.add((model, reply.signature))
            parts.append({"text": "", "thoughtSignature": reply.signature})
        for at, call in enumerate(reply.calls):
            self._used += 1
            id = call.id or f"fc{self._used:04d}"
            arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, object])
            part: dict[str, object] = {"functionCall": {"id": id, "name": call.name, "args": arguments}}
            signature = ""
            if not at:
                signature = reply.signature or hashlib.sha256(f"{model}\0{id}".encode()).hexdigest()[:24]
                part["thoughtSignature"] = signature
            self._calls[id] = (model, signature)
            parts.append(part)
        return parts


def _model(seen: Seen) -> str:
    return seen.path.rpartition("/")[2].partition(":")[0]


def _known(value: dict[str, object], names: tuple[str, ...], where: str) -> None:
    for field in value:
        need(
            field in names, f"Invalid JSON payload received. Unknown name \"{field}\" at '{where}': Cannot find field."
        )


def _check_part(part: dict[str, object], where: str) -> None:
    _known(part, _PART, where)
    data = [field for field in _DATA if field in part]
    need(len(data) == 1, f"{where}.parts: required oneof field 'data' must have one initialized field")
    if "text" in part:
        need(text(part["text"], where) or "thoughtSignature" in part, f"{where}: text is empty")
    if "inlineData" in part:
        blob = fields(part["inlineData"], where)
        need(str(blob.get("mimeType")).startswith("image/") and blob.get("data"), f"{where}: no image")
    if "functionCall" in part:
        call = fields(part["functionCall"], where)
        _check_name(call.get("name"), where)
        fields(call.get("args", {}), f"{where}.function_call.args")
    if "functionResponse" in part:
        answer = fields(part["functionResponse"], where)
        _check_name(answer.get("name"), where)
        fields(answer.get("response"), f"{where}.function_response.response")


def _check_name(value: object, where: str) -> None:
    found = text(value, f"{where}.name")
    need(re.fullmatch(r"[a-zA-Z_0-9][a-zA-Z0-9_.:-]{0,63}", found), f"{where}: Invalid function name {found!r}")


def _check_answers(
    calls: list[dict[str, object]], answers: list[dict[str, object]], *, alone: bool, where: str
) -> None:
    need(
        alone and len(calls) == len(answers),
        f"{where}: the number of function response parts must equal the number of function call parts",
    )
    for call, answer in zip(calls, answers, strict=True):
        same = call.get("name") == answer.get("name") and call.get("id") == answer.get("id")
        need(same, f"{where}: function response {answer.get('id')} answers no function call")


def _check_tools(body: dict[str, object]) -> None:
    names: set[str] = set()
    for at, item in enumerate(items(body.get("tools", []), "tools")):
        where = f"tools[{at}].function_declarations"
        for tool in items(fields(item, "tools").get("functionDeclarations"), where):
            found = fields(tool, where)
            _known(found, ("name", "description", "parameters"), where)
            _check_name(found.get("name"), where)
            need(found["name"] not in names, f"{where}: Duplicate function declaration found: {found['name']}")
            names.add(str(found["name"]))
            if "parameters" in found:
                check_schema(found["parameters"], f"{where}.{found['name']}.parameters", dialect="gemini")
    need(names or "toolConfig" not in body, "Function calling config is set without function_declarations.")
