"""The OpenAPI document of the API, made of the shapes that requests are read with."""

from __future__ import annotations

from functools import cache

import msgspec

from limpet import __version__
from limpet.server.api import chat, embeddings, messages, responses
from limpet.server.api.shapes import encode

BODIES = {
    "/v1/chat/completions": (chat.Body, "OpenAI's Chat Completions: an agent, or its model with your tools, answers."),
    "/v1/responses": (responses.Body, "OpenAI's Responses: the same."),
    "/v1/messages": (messages.Body, "Anthropic's Messages: the same."),
    "/v1/embeddings": (embeddings.Body, "OpenAI's Embeddings, by the embedder of the memory."),
}
STREAMS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
ERRORS = {
    "400": "The request cannot be used.",
    "401": "No token, or a wrong one.",
    "402": "A budget would not hold.",
    "403": "The token's scopes do not allow it, or a page of another site asks.",
    "404": "There is no such model, answer or embedder.",
    "408": "The request has not come completely.",
    "413": "The request is too large.",
    "422": "The Idempotency-Key was used for another message.",
    "429": "Too many wrong tokens, or the model's service is busy.",
    "502": "The model's service failed.",
    "503": "It cannot be answered right now; what was said is kept.",
    "504": "The answer is not there in time; the turn goes on.",
}


@cache
def document() -> bytes:
    """As JSON."""
    paths: dict[str, object] = {}
    schemas: dict[str, object] = {}
    for path, (body, about) in BODIES.items():
        unit = body.__module__.rpartition(".")[2]  # the dialects have shapes of the same name
        where = f"#/components/schemas/{unit}.{{name}}"
        (schema,), parts = msgspec.json.schema_components([body], schema_hook=_anything, ref_template=where)
        schemas |= {f"{unit}.{name}": part for name, part in parts.items()}
        paths[path] = {"post": _post(path, schema, about)}
    paths["/v1/models"] = {"get": _get("The agents, as models.", "models")}
    one = _get("One agent, as a model.", "model")
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    paths["/v1/models/{model}"] = {"get": {**one, "parameters": [name]}}
    return encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Limpet", "version": __version__, "description": "See docs/api.md."},
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                },
            },
            "security": [{"token": []}, {"key": []}],
        }
    )


def _anything(kind: type) -> dict[str, object]:
    """The schema of what is taken as it is."""
    return {"description": "Taken as it is."}


def _post(path: str, schema: object, about: str) -> dict[str, object]:
    headers = ("X-Limpet-Session", "Idempotency-Key") if path in STREAMS else ()
    kinds = ("application/json", "text/event-stream") if path in STREAMS else ("application/json",)
    return {
        "operationId": path.removeprefix("/v1/").replace("/", "_"),
        "summary": about,
        "parameters": [
            {"name": name, "in": "header", "required": False, "schema": {"type": "string", "maxLength": 200}}
            for name in headers
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": _answers(*kinds),
    }


def _get(about: str, name: str) -> dict[str, object]:
    return {"operationId": name, "summary": about, "responses": _answers("application/json")}


def _answers(*kinds: str) -> dict[str, object]:
    good: dict[str, object] = {"description": "The answer.", "content": {kind: {} for kind in kinds}}
    bad: dict[str, object] = {
        code: {"description": text, "content": {"application/json": {}}} for code, text in ERRORS.items()
    }
    return {"200": good, **bad}
