"""A client that drives an ASGI application without a network, byte by byte where a test needs it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        document = self.json
        assert list(document) == ["error"]
        assert {"type", "message"} <= set(document["error"]) <= {"type", "message", "incident"}
        return document["error"]


def scope_of(method: str, path: str, headers: list[tuple[str, str]], address: str = "127.0.0.1") -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": (address, 50000),
        "server": ("127.0.0.1", 8765),
    }


async def ask_async(app, method, path, headers, chunks=(b"",), *, ends=True, address="127.0.0.1") -> Reply:
    """Send one request; a body that never `ends` leaves the service waiting for more."""
    waiting = list(chunks)
    sent: list[dict[str, Any]] = []

    async def receive():
        if waiting:
            chunk = waiting.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(waiting) or not ends}
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await app(scope_of(method, path, headers, address), receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    received = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], received, body)


def ask(app, method, path, headers, chunks=(b"",), **more) -> Reply:
    return asyncio.run(ask_async(app, method, path, headers, chunks, **more))
