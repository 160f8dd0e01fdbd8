"""A strict fake of OpenAI's endpoints for sound and pictures."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import struct
import wave
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePath
from typing import Self

import msgspec
from aiohttp import BodyPartReader, web
from msgspec import Struct

from limpet.testing.fakes.script import Reply
from limpet.testing.fakes.shape import Refused, need, text

LARGEST = 25 << 20
_RECORDINGS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
_VOICES = ("alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "verse")
_SIZES = {
    "dall-e-2": ("256x256", "512x512", "1024x1024"),
    "dall-e-3": ("1024x1024", "1792x1024", "1024x1792"),
    "gpt-image-1": ("1024x1024", "1536x1024", "1024x1536", "auto"),
}


class MediaSeen(Struct, frozen=True):
    """A request as it came: its path and fields; of a recording its name, type and size."""

    path: str
    fields: dict[str, object]
    file: str = ""
    mime: str = ""
    size: int = 0


class FakeMedia:
    """`async with FakeMedia([...]) as server`: `server.base_url` and `server.key` are what a profile takes.

    Replies are used up in order; past their end everything succeeds. Of a `Reply` count `text` (the transcript),
    `status`, `headers`, `body`, `raw` (a 200 with that text), `delay`, and `cut_after` (the connection breaks).
    """

    key = "sk-test"

    def __init__(self, script: Sequence[Reply] = ()) -> None:
        self._script = list(script)
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.requests: list[MediaSeen] = []
        self.refusals: list[str] = []
        self.base_url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/audio/transcriptions", self._guarded(self._transcription))
        app.router.add_post("/v1/audio/speech", self._guarded(self._speech))
        app.router.add_post("/v1/images/generations", self._guarded(self._images))
        app.router.add_post("/v1/embeddings", self._guarded(self._embeddings))
        app.router.add_get("/v1/files/picture.png", self._file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def _guarded(
        self, handle: Callable[[web.Request, Reply], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            reply = self._script.pop(0) if self._script else Reply(text=("Hello there.",))
            try:
                if request.headers.get("Authorization") != f"Bearer {self.key}":
                    raise Refused("Incorrect API key provided.", status=401, code="invalid_api_key")
                good = await handle(request, reply)
            except Refused as refused:
                self.refusals.append(str(refused))
                error = {"message": str(refused), "type": refused.type, "code": refused.code or None}
                return web.json_response({"error": error}, status=refused.status)
            return await self._play(request, reply, good)

        return answer

    async def _play(self, request: web.Request, reply: Reply, good: web.Response) -> web.StreamResponse:
        if reply.delay:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), reply.delay)
        if reply.raw:
            return web.Response(text="".join(reply.raw))
        if reply.status != 200 or reply.body is not None:
            return web.json_response(reply.body, status=reply.status, headers=reply.headers)
        if reply.cut_after < 0:
            return good
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b'{"text": "Hel')
        if request.transport is not None:
            request.transport.close()
        return response

    async def _transcription(self, request: web.Request, reply: Reply) -> web.Response:
        need(request.content_type == "multipart/form-data", "expected multipart/form-data")
        fields: dict[str, object] = {}
        name, mime, size = "", "", 0
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            if part.name == "file":
                name, mime, size = part.filename or "", part.headers.get("Content-Type", ""), len(await part.read())
            else:
                fields[part.name or ""] = await part.text()
        self.requests.append(MediaSeen(request.path, fields, name, mime, size))
        if size > LARGEST:
            raise Refused(f"Maximum content size limit ({LARGEST}) exceeded ({size} bytes read)", status=413)
        need(name, "file: field required")
        model = text(fields.get("model"), "model")
        language = "languages[]" if model == "gpt-transcribe" else "language"
        known = {"model", language, "prompt", "response_format", "temperature"}
        need(set(fields) <= known, f"Unknown parameter: {sorted(set(fields) - known)}")
        need(PurePath(name).suffix.lstrip(".").lower() in _RECORDINGS, f"Invalid file format. Supported: {_RECORDINGS}")
        need(mime.startswith(("audio/", "video/")), f"file has the type {mime or 'none'}")
        need(size, "Audio file is too short. Minimum audio length is 0.1 seconds.")
        if model.startswith("gpt-4o"):
            need(fields.get("response_format", "json") == "json", f"response_format is not supported with {model}")
            usage: dict[str, object] = {"type": "tokens", "input_tokens": 1000, "output_tokens": 100}
        else:
            usage = {"type": "duration", "seconds": 30}
        return web.json_response({"text": "".join(reply.text), "usage": usage})

    async def _embeddings(self, request: web.Request, reply: Reply) -> web.Response:
        """A vector of the length of each text and 1, the last text first."""
        fields = msgspec.json.decode(await request.read(), type=dict[str, object])
        self.requests.append(MediaSeen(request.path, fields))
        need(set(fields) <= {"model", "input", "encoding_format", "dimensions", "user"}, "Unknown parameter")
        need(fields.get("encoding_format", "float") == "float", "encoding_format is not supported")
        model = text(fields.get("model"), "model")
        texts = msgspec.convert(fields.get("input"), list[str])
        need(texts and all(texts), "input: must not be empty")
        data = [
            {"object": "embedding", "index": place, "embedding": [float(len(one)), 1.0]}
            for place, one in reversed(list(enumerate(texts)))
        ]
        usage = {"prompt_tokens": sum(map(len, texts)) // 4, "total_tokens": sum(map(len, texts)) // 4}
        return web.json_response({"object": "list", "model": model, "data": data, "usage": usage})

    async def _speech(self, request: web.Request, reply: Reply) -> web.Response:
        fields = await self._object(request)
        known = {"model", "input", "voice", "response_format", "speed", "instructions"}
        need(set(fields) <= known, f"Unknown parameter: {sorted(set(fields) - known)}")
        text(fields.get("model"), "model")
        said = text(fields.get("input"), "input")
        need(0 < len(said) <= 4096, "input: String should have at most 4096 characters")
        need(fields.get("voice") in _VOICES, f"voice: Input should be one of {_VOICES}")
        kind = fields.get("response_format", "mp3")
        need(kind in ("mp3", "opus", "aac", "flac", "wav", "pcm"), "response_format: unknown")
        body = wav(len(said)) if kind == "wav" else b"ID3" + said.encode()
        return web.Response(body=body, content_type="audio/wav" if kind == "wav" else "audio/mpeg")

    async def _images(self, request: web.Request, reply: Reply) -> web.Response:
        fields = await self._object(request)
        known = {"model", "prompt", "n", "size", "quality", "response_format", "style", "background", "output_format"}
        need(set(fields) <= known, f"Unknown parameter: {sorted(set(fields) - known)}")
        model = text(fields.get("model"), "model")
        prompt = text(fields.get("prompt"), "prompt")
        longest = {"dall-e-2": 1000, "dall-e-3": 4000}.get(model, 32_000)
        need(0 < len(prompt) <= longest, f"prompt: at most {longest} characters")
        need("size" not in fields or fields["size"] in _SIZES.get(model, (fields["size"],)), "size: unsupported")
        data = base64.b64encode(png()).decode()
        if model.startswith("gpt-image"):
            if "response_format" in fields:
                raise Refused("Unknown parameter: 'response_format'.", code="unknown_parameter")
            usage = {"input_tokens": 100, "output_tokens": 4000, "total_tokens": 4100}
            return web.json_response({"created": 1, "data": [{"b64_json": data}], "usage": usage})
        if fields.get("response_format") == "b64_json":
            return web.json_response({"created": 1, "data": [{"b64_json": data}]})
        return web.json_response({"created": 1, "data": [{"url": f"{self.base_url}/files/picture.png"}]})

    async def _object(self, request: web.Request) -> dict[str, object]:
        need(request.content_type == "application/json", "expected application/json")
        try:
            fields = msgspec.json.decode(await request.read(), type=dict[str, object])
        except msgspec.DecodeError:
            raise Refused("We could not parse the JSON body of your request.") from None
        self.requests.append(MediaSeen(request.path, fields))
        return fields

    async def _file(self, request: web.Request) -> web.Response:
        need("Authorization" not in request.headers, "a key was sent to the file server")
        return web.Response(body=png(), content_type="image/png")


def png() -> bytes:
    """A picture of one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\x80")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def wav(frames: int) -> bytes:
    """Silence of so many frames."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(24_000)
        sound.writeframes(b"\0\0" * frames)
    return file.getvalue()
