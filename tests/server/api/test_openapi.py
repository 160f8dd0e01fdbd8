"""The OpenAPI document is true of the API: nothing that is made of it ends in a fault of ours."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck

from tests.server.test_server import Here, served

EXAMPLES = 6


@contextmanager
def beside(home: Path) -> Generator[Here]:
    """A served gateway whose loop runs in a thread of its own: what asks is not asynchronous."""
    begun, ending = threading.Event(), asyncio.Event()
    found: list[Here] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        async with served(home) as here:
            found.append(here)
            loops.append(asyncio.get_running_loop())
            begun.set()
            await ending.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert begun.wait(60)
        yield found[0]
    finally:
        if loops:
            loops[0].call_soon_threadsafe(ending.set)
        thread.join(60)


@pytest.mark.filterwarnings("ignore")  # what the libraries of schemathesis warn of
def test_no_request_ends_in_a_fault_of_ours(home: Path) -> None:
    with beside(home) as here:
        base = f"http://127.0.0.1:{here.port}"
        schema = schemathesis.openapi.from_url(f"{base}/openapi.json")
        headers = {"Authorization": f"Bearer {here.token}"}
        paths: set[str] = set()
        for one in schema.get_all_operations():
            operation = one.ok()
            paths.add(operation.path)

            @hypothesis.settings(
                max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
            )
            @hypothesis.given(case=operation.as_strategy())
            def check(case: schemathesis.Case) -> None:
                answer = case.call(base_url=base, headers={**(case.headers or {}), **headers}, timeout=30)
                assert answer.status_code < 500, (answer.status_code, answer.text)

            check()
        assert {"/v1/models", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"} <= paths


def test_the_document_names_every_shape(home: Path) -> None:
    with beside(home) as here:

        async def get() -> str:
            return (await here.get("/openapi.json"))[1]

        text = asyncio.run(get())
        document = json.loads(text)
        names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(part.split('"')[0] for part in text.split('"$ref":"')[1:]) <= names
