"""The gate as a service: ``POST /ask``, ``GET /policy`` and ``GET /health``, for analysts in processes of their own.

Running the gate's service: the socket, the server, and how it stops.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import math
import os
import re
import secrets
import signal
import socket
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.extras.gate.client import REFUSALS, is_loopback
from pkdp_pipeline.extras.gate.gate import MAX_WORKERS, Gate
from pkdp_pipeline.extras.gate.records import AuditLog, name_of
from pkdp_pipeline.releases.publish import LOGGER
from pkdp_pipeline.sql.spec import Spec

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

JSON, PARQUET = "application/json", "application/vnd.apache.parquet"
_UNANSWERED = "the question was not answered; ask the curator, and name the incident."
_BUSY = "the service cannot answer at the moment; the same question may succeed later."
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?", re.ASCII)
_PATHS = {"/ask": "POST", "/policy": "GET", "/health": "GET"}
_CHUNK_BYTES = 2**16
_WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """How much the service takes on.

    Attributes
    ----------
    running : int
        Requests that are answered at once, of all tokens together; of one token one is, until its answer is sent.
    wait_seconds : float
        How long a request waits for the one before it of the same token, and while so many are being answered.
    body_bytes, body_seconds : int, float
        The size of a request's body, and how long it may take to arrive.
    answer_bytes, send_seconds : int, float
        The size of an answer, and how long it may take to be sent.
    failures : int
        Requests without a valid token a minute from one address, before they are told to wait.
    """

    running: int = MAX_WORKERS
    wait_seconds: float = 1.0
    body_bytes: int = 65_536
    body_seconds: float = 10.0
    answer_bytes: int = 2**24
    send_seconds: float = 60.0
    failures: int = 10


class _RefusedError(Exception):
    """A request that is not answered: status, type and text of the error it gets."""

    def __init__(
        self, status: int, kind: str, message: str, *, incident: str | None = None, retry: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.incident, self.retry = status, kind, incident, retry

    def response(self) -> Response:
        """Return it in the one shape that all errors have."""
        error = {"type": self.kind, "message": str(self)}
        if self.incident is not None:
            error["incident"] = self.incident
        headers = {} if self.retry is None else {"Retry-After": str(self.retry)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(json.dumps({"error": error}), self.status, headers, JSON)


class Service:
    """An ASGI application that asks a gate on behalf of analysts with a token.

    Parameters
    ----------
    describe : callable
        Returns what ``GET /policy`` answers, as what `json` writes.
    token_file : path-like
        Read for every request: a token that is deleted there, or has expired, is not let in any more.
    audit : AuditLog
        Every question is written there before it is counted, and its outcome before it is answered; so is what was
        refused before it was a question.
    hosts : collection of str
        The names that requests may call this host by, in lower case and without a port.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        describe: Callable[[], dict[str, Any]],
        token_file: str | os.PathLike[str],
        audit: AuditLog,
        hosts: Collection[str],
        limits: ServiceLimits | None = None,
    ) -> None:
        self._gate, self._describe, self._token_file, self._audit = gate, describe, token_file, audit
        self._hosts, self._limits = frozenset(hosts), limits or ServiceLimits()
        self._running: set[str] = set()
        self._freed = asyncio.Event()
        self._failures = _Failures(self._limits.failures)
        self._pool = ThreadPoolExecutor(self._limits.running, "question")

    def close(self) -> None:
        """Take no more questions; those that are counted are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it; the place of its token is held until the answer is sent."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        asking = _Asking(Request(scope, receive))
        try:
            try:
                response = await self._answered(asking)
            except ClientDisconnect:
                raise
            except Exception as error:
                response = await self._refused(asking, error)
            await response(scope, receive, _in_pieces(send, self._limits.send_seconds))
        except (TimeoutError, ClientDisconnect):
            return  # nobody reads the answer: the server closes a connection whose answer is not complete
        finally:
            if asking.running:
                self._running.discard(asking.token or "")
                self._freed.set()
                self._freed = asyncio.Event()

    async def _refused(self, asking: _Asking, error: Exception) -> Response:
        """Write down what was refused before it was a question, unless somebody without a token does it too often."""
        problem = _refusal(error, asking.id)
        if asking.token is None:
            wait = self._failures.wait(asking.address)
            if wait is not None:
                too_many = "too many wrong requests from this address; wait."
                return _RefusedError(429, "Unauthorized", too_many, retry=wait).response()
        LOGGER.warning("not answered: a request to the gate (%s)", problem.kind)
        try:
            await asyncio.to_thread(
                self._audit.write,
                {401: "unauthorized", 500: "failed"}.get(problem.status, "refused"),
                request=asking.id,
                token=asking.token,
                address=asking.address,
                error=problem.kind if problem.incident is None else error,
                incident=problem.incident,
                status=problem.status,
            )
        except TemporaryError as unwritten:
            problem = _refusal(unwritten, asking.id)
        return problem.response()

    async def _answered(self, asking: _Asking) -> Response:
        request = asking.request
        self._check_origin(request)
        path = request.url.path
        if path not in _PATHS or request.method != _PATHS[path]:
            status, kind = (405, "MethodNotAllowed") if path in _PATHS else (404, "NotFound")
            raise _RefusedError(status, kind, "there are POST /ask, GET /policy and GET /health.")
        if path == "/health":
            return Response('{"status":"ok"}', media_type=JSON)
        asking.token = await self._authenticated(request)
        if path == "/policy":
            await self._take_place(asking)
            return await self._in_thread(
                lambda: Response(json.dumps(self._describe(), allow_nan=False), media_type=JSON)
            )
        spec = Spec.read(await self._body(request))  # what is no question takes no place
        await self._take_place(asking)
        return await self._in_thread(lambda: self._ask(asking, spec))

    def _check_origin(self, request: Request) -> None:
        """Let only requests through that call this host by its name and that no foreign web page has sent.

        A page that an analyst's browser shows could otherwise send requests here (cross-site request forgery) and,
        by giving its own name this host's address (DNS rebinding), read the answers.
        """
        given = [host.lower() for host in request.headers.getlist("host")]
        match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if match is None or match[1].strip("[]") not in self._hosts:
            raise _RefusedError(400, "WrongHost", "the request's Host header is not a name of this service.")
        own = {f"http://{given[0]}", f"https://{given[0]}"}
        from_elsewhere = any(origin.lower() not in own for origin in request.headers.getlist("origin"))
        if from_elsewhere or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise _RefusedError(400, "WrongOrigin", "the request comes from a web page of another origin.")
        if request.url.query:
            raise _RefusedError(400, "BadRequest", "nothing is read from a URL: tokens go into a header.")

    async def _authenticated(self, request: Request) -> str:
        """Return the name of the request's token."""
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        name = None
        if scheme.lower() == "bearer":
            try:
                name = await asyncio.to_thread(name_of, self._token_file, token.strip())
            except ConfigError:  # somebody is writing the file, or has spoilt it
                raise _RefusedError(503, "TemporaryError", _BUSY, retry=5) from None
        if name is None:
            raise _RefusedError(401, "Unauthorized", "send a valid token, as the header 'Authorization: Bearer TOKEN'.")
        return name

    async def _take_place(self, asking: _Asking) -> None:
        token = asking.token or ""
        # Most answers take less: to be told to come again, which is written down as well, costs more than to wait.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.wait_seconds):
                # First come, first served: an event wakes who waits in their order.
                while token in self._running or len(self._running) >= self._limits.running:
                    await self._freed.wait()
        if token in self._running:
            raise _RefusedError(429, "Busy", "a question of this token is still being answered; wait.", retry=1)
        if len(self._running) >= self._limits.running:
            raise _RefusedError(503, "Busy", "too many questions are being answered; try again.", retry=5)
        self._running.add(token)
        asking.running = True

    async def _body(self, request: Request) -> bytes:
        kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
        encoded = request.headers.get("content-encoding", "identity").lower()
        if kind.strip() != JSON or parameters.strip() not in ("", "charset=utf-8") or encoded != "identity":
            raise _RefusedError(415, "UnsupportedMediaType", f"send the header 'Content-Type: {JSON}' and UTF-8.")
        too_large = _RefusedError(413, "TooLarge", f"a request's body may have {self._limits.body_bytes} bytes.")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > self._limits.body_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._limits.body_bytes:
                        raise too_large
        except TimeoutError:
            raise _RefusedError(400, "BadRequest", "the request's body did not arrive in time.") from None
        return bytes(body)

    async def _in_thread(self, work: Callable[[], Response]) -> Response:
        try:
            working = asyncio.get_running_loop().run_in_executor(self._pool, work)
        except RuntimeError:  # the service is being stopped
            raise _RefusedError(503, "TemporaryError", _BUSY, retry=5) from None
        return await working

    def _ask(self, asking: _Asking, spec: Spec) -> Response:
        """Ask the gate, between two lines of the audit log; those of what needs no work are stored together."""
        facts: dict[str, Any] = {"request": asking.id, "token": asking.token, "question": spec.to_dict()}
        lines = [self._audit.line("asked", **facts)]

        def logged() -> None:
            self._audit.store(*lines)
            lines.clear()

        try:
            release = self._gate.ask(spec, before=logged)
            content = release.to_bytes()
            facts["release"] = release.id
            if len(content) > self._limits.answer_bytes:
                raise ArgumentError(
                    f"the answer is larger than the {self._limits.answer_bytes} bytes that the policy allows; ask for "
                    "fewer columns, or for a larger k."
                )
            replayed = {"Pkdp-Replayed": str(release.replayed).lower()}
            response, outcome = Response(content, headers=replayed, media_type=PARQUET), "answered"
        except Exception as error:
            problem = _refusal(error, asking.id)
            facts |= {"error": error, "incident": problem.incident}
            response, outcome = problem.response(), "failed" if problem.status >= 500 else "refused"
        self._audit.store(*lines, self._audit.line(outcome, status=response.status_code, **facts))
        return response


class _Asking:
    """A request, and what is known about it so far."""

    def __init__(self, request: Request) -> None:
        self.request, self.id = request, secrets.token_hex(8)
        self.address = request.client.host if request.client else ""
        self.token: str | None = None
        self.running = False


class _Failures:
    """How many requests without a valid token came from each address within this minute.

    A right token is let in all the same: 256 random bits need no lock against guessing, and a lock would let anybody
    who can connect shut the analysts out. The bound is on how much a guesser can make the audit log grow: from all
    addresses together, which a guesser may have many of, ten times as much as from one.
    """

    def __init__(self, most: int) -> None:
        self._max_failures, self._began, self._failures = most, monotonic(), Counter[str]()

    def wait(self, address: str) -> int | None:
        """Count one failure, and return how many seconds to wait, or None while there are not too many."""
        if monotonic() >= self._began + _WINDOW_SECONDS:
            self._began = monotonic()
            self._failures.clear()
        if self._failures[address] >= self._max_failures or self._failures.total() >= 10 * self._max_failures:
            return int(self._began + _WINDOW_SECONDS - monotonic()) + 1
        self._failures[address] += 1
        return None


def _in_pieces(send: Send, seconds: float) -> Send:
    """Return `send` as every answer is sent: in pieces, in time, and not to be stored or guessed at.

    The server takes a piece when the one before it is on its way: after the last one, which is empty, all is.
    """
    ends = monotonic() + seconds

    async def send_in_time(message: Message) -> None:
        async with asyncio.timeout(ends - monotonic()):
            await send(message)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"connection", b"close"))
            await send_in_time({**message, "headers": [*message.get("headers", ()), *more]})
            return
        body = message.get("body", b"")
        for start in range(0, len(body), _CHUNK_BYTES):
            await send_in_time({**message, "body": body[start : start + _CHUNK_BYTES], "more_body": True})
        await send_in_time({**message, "body": b"", "more_body": message.get("more_body", False)})

    return sending


def _refusal(error: Exception, request: str) -> _RefusedError:
    """Return what an analyst is told about an error; only our own texts about question and policy are passed on."""
    if isinstance(error, _RefusedError):
        return error
    if isinstance(error, ArgumentError):
        return _RefusedError(400, "ArgumentError", str(error))
    if isinstance(error, REFUSALS):
        return _RefusedError(403, type(error).__name__, str(error))
    if isinstance(error, TemporaryError):
        return _RefusedError(503, "TemporaryError", _BUSY, retry=5)
    # Also what a ledger, a source or a configuration is blamed for: that is for the curator.
    return _RefusedError(500, "InternalError", _UNANSWERED, incident=request)


_MAX_CONNECTIONS = 128
_HEADER_SECONDS = 10.0


def service_names(host: str, *, allow_remote: bool = False, names: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the names that requests may call the service by.

    Raises `ArgumentError` if other machines would reach it and that was not asked for, or nobody says by which name.
    `host`: the address it listens on. `allow_remote`: whether that may be one that other machines reach. `names`: the
    names of a proxy in front of it.
    """
    given = frozenset(name.lower().strip("[]") for name in names)
    if any(not name or set(name) & set("/:@ ") for name in names):
        raise ArgumentError("--name must be a host name, such as gate.example.org, without http:// and without a port.")
    if is_loopback(host):
        return given | {"localhost", "127.0.0.1", "::1"} | {host.lower()}
    if not allow_remote:
        raise ArgumentError(
            f"--host {host} lets other machines connect, and the service speaks plain HTTP: anybody on the way reads "
            f"the tokens. Listen on 127.0.0.1 and put a proxy with TLS in front of it; if that is on another machine, "
            f"give --allow-remote."
        )
    if not given:
        raise ArgumentError(
            "--allow-remote needs --name, the host name by which analysts call the service: requests for any other are "
            "refused."
        )
    return given


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one.

    Raises `ConfigError` if the address cannot be listened on, `TemporaryError` if another process listens there.
    """
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise TemporaryError(
                f"port {port} of {host} is taken by another process: stop it, or choose another --port."
            ) from error
        raise ConfigError(f"port {port} of --host {host} cannot be listened on: {error.strerror}.") from error


def server(app: ASGIApp, *, patience: float, longest: float, header_seconds: float = _HEADER_SECONDS) -> uvicorn.Server:
    """Return a server whose connections end.

    `patience`: for how many seconds running requests are waited for when it stops. `longest`: how many seconds any
    connection may last. `header_seconds`: how long the headers of a request may take to arrive.
    """
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http=_protocol(header_seconds, longest),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=math.ceil(patience),
        )
    )


def run(serving: uvicorn.Server, listening: socket.socket, *, on_start: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered then are answered first.

    For a process that does nothing else: warnings and all logging but that of releases, which goes to standard error,
    are switched off. `on_start` is called once signals are heeded.
    """
    # Neither requests nor texts of errors, which may quote the data, get to the terminal or into the journal.
    for other in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(other, logging.Logger) and other is not LOGGER:
            other.handlers[:] = [logging.NullHandler()]
    logging.raiseExceptions = False
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOGGER.addHandler(shown)
    LOGGER.setLevel(logging.INFO)
    warnings.simplefilter("ignore")
    sys.excepthook = lambda kind, *_: _only_the_type(kind)
    threading.excepthook = lambda given: _only_the_type(given.exc_type)

    # The server stops at these signals and then raises them once more, for the handlers that were there before.
    # With these the process ends with exit code 0, for being told to stop is no failure, and a signal that comes
    # before the server listens to it is not lost.
    def stop(_: int, __: FrameType | None) -> None:
        serving.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        on_start()
        serving.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _only_the_type(kind: type[BaseException]) -> None:
    sys.stderr.write(f"pkdp: a defect of pkdp_pipeline: {kind.__name__}. Please report it.\n")


def _protocol(header_seconds: float, seconds: float) -> Any:
    """Return uvicorn's protocol, for connections that end: without headers in time, and in the end anyway."""
    from asyncio import Transport

    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            # What is sent is on its way before more is taken: an answer is sent when its last piece is.
            transport.set_write_buffer_limits(0)

            def without_headers() -> None:
                if not self.cycle:
                    transport.abort()

            self._ends = (
                self.loop.call_later(header_seconds, without_headers),
                self.loop.call_later(seconds, transport.abort),
            )

        def connection_lost(self, exc: Exception | None) -> None:
            for end in self._ends:
                end.cancel()
            super().connection_lost(exc)

    return Connection
