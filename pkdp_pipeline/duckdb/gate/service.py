"""The gate as a service: ``POST /sql``, ``GET /policy`` and ``GET /health``, for analysts in processes of their own."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pkdp_pipeline.duckdb.gate.audit_log import AuditLog
from pkdp_pipeline.duckdb.gate.slots import Failures, Slots
from pkdp_pipeline.duckdb.gate.tokens import Tokens
from pkdp_pipeline.duckdb.gate.wire import ARROW, JSON, Answered, arrow_stream, json_document
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    TemporaryError,
)

__all__ = ["Answering", "Service", "ServiceLimits"]

_PRIVACY = (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError)
_UNANSWERED = "could not be answered; ask the curator, and name the incident."
_BUSY = "the service cannot answer at the moment; the same statement may succeed later."
_RETRY_SECONDS = 5
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?", re.ASCII)

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Answering(Protocol):
    """What the service asks; `Gate`, which many threads may use at once."""

    def sql(self, text: str, /) -> Answered:
        """Answer one statement, or raise a `PkdpError` whose text an analyst may read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """How much the service takes on.

    Attributes
    ----------
    running : int
        Statements that run at once, of all tokens together; of one token one runs.
    seconds : float
        How long a request waits for its answer. The gate stops statements by the policy's own limit; this one is
        for what it cannot stop.
    body_bytes, body_seconds : int, float
        The size of a request's body, and how long it may take to arrive.
    failures : int
        Failed logins a minute from one address, before they are told to wait.
    """

    running: int = 4
    seconds: float = 120.0
    body_bytes: int = 65536
    body_seconds: float = 10.0
    failures: int = 10


class _RequestError(Exception):
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
    gate : Gate
    describe : callable
        Returns what ``GET /policy`` answers, as what `json` writes.
    tokens : Tokens
    audit : AuditLog
        Every statement is written there before it is run, and its outcome before it is answered.
    hosts : collection of str
        The names that requests may call this host by, in lower case and without a port.
    limits : ServiceLimits, optional
    """

    def __init__(
        self,
        gate: Answering,
        *,
        describe: Callable[[], dict[str, Any]],
        tokens: Tokens,
        audit: AuditLog,
        hosts: Collection[str],
        limits: ServiceLimits | None = None,
    ) -> None:
        self._gate, self._describe, self._tokens, self._audit = gate, describe, tokens, audit
        self._limits = limits or ServiceLimits()
        self._slots = Slots(self._limits.running)
        self._failures = Failures(self._limits.failures)
        self._pool = ThreadPoolExecutor(self._limits.running, "statement")
        self._app = Starlette(
            routes=[
                Route("/sql", self._answering(self._sql), methods=["POST"]),
                Route("/policy", self._answering(self._policy), methods=["GET"]),
                Route("/health", self._health, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _http_error},
            middleware=[Middleware(_Guard, hosts=frozenset(hosts))],
        )
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        await self._app(scope, receive, send)

    def close(self) -> None:
        """Take no more statements; those that run are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answering(self, endpoint: Endpoint) -> Endpoint:
        """Turn everything that an endpoint raises into an error of the one shape."""

        async def answer(request: Request) -> Response:
            request.state.id = secrets.token_hex(8)
            try:
                return await endpoint(request)
            except _RequestError as problem:
                return problem.response()
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:
                return self._incident(request.state.id, error).response()

        return answer

    async def _health(self, _: Request) -> Response:
        return Response('{"status":"ok"}', media_type=JSON)

    async def _policy(self, request: Request) -> Response:
        name = await self._authenticated(request)

        def describe(_: threading.Event) -> Response:
            return Response(json.dumps(self._describe(), allow_nan=False), media_type=JSON)

        return await self._run(name, request.state.id, None, describe)

    async def _sql(self, request: Request) -> Response:
        name = await self._authenticated(request)
        statement = await self._statement(request)
        arrow = _wants_arrow(request)

        def answer(late: threading.Event) -> Response:
            return self._answer(name, request.state.id, statement, late, arrow=arrow)

        return await self._run(name, request.state.id, statement, answer)

    async def _authenticated(self, request: Request) -> str:
        """Return the name of the request's token."""
        given = request.headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        name = self._tokens.name_of(token.strip()) if scheme.lower() == "bearer" else None
        if name is not None:
            return name
        address = request.client.host if request.client else ""
        wait = self._failures.wait(address)
        if wait is not None:
            raise _RequestError(429, "Unauthorized", "too many wrong tokens from this address; wait.", retry=wait)
        await asyncio.to_thread(self._audit.write, "unauthorized", request=request.state.id, address=address)
        raise _RequestError(401, "Unauthorized", "send a valid token, as the header 'Authorization: Bearer TOKEN'.")

    async def _statement(self, request: Request) -> str:
        """Return the statement in a request's body."""
        kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
        encoded = request.headers.get("content-encoding", "identity").lower()
        if kind.strip() != JSON or parameters.strip() not in ("", "charset=utf-8") or encoded != "identity":
            raise _RequestError(415, "UnsupportedMediaType", f"send the header 'Content-Type: {JSON}' and UTF-8.")
        too_large = _RequestError(413, "TooLarge", f"a request's body may have {self._limits.body_bytes} bytes.")
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
            raise _RequestError(400, "BadRequest", "the request's body did not arrive in time.") from None
        return _sql_of(bytes(body))

    async def _run(
        self, name: str, request: str, statement: str | None, work: Callable[[threading.Event], Response]
    ) -> Response:
        """Do the work in a thread of its own, in the place of this token; it is told when nobody waits any more."""
        obstacle = self._slots.take(name)
        if obstacle == "token":
            raise _RequestError(429, "Busy", "a statement of this token is still running; wait for it.", retry=1)
        if obstacle is not None:
            raise _RequestError(503, "Busy", "too many statements are running; try again.", retry=_RETRY_SECONDS)
        late = threading.Event()

        def in_place() -> Response:
            try:
                return work(late)
            finally:
                self._slots.give_back(name)

        try:
            working = asyncio.get_running_loop().run_in_executor(self._pool, in_place)
        except RuntimeError:  # the service is being stopped
            self._slots.give_back(name)
            raise _RequestError(503, "TemporaryError", _BUSY, retry=_RETRY_SECONDS) from None
        done, _ = await asyncio.wait({working}, timeout=self._limits.seconds)
        if done:
            return working.result()
        late.set()
        working.add_done_callback(lambda one: one.cancelled() or one.exception())  # asked for, so that none is printed
        await asyncio.to_thread(
            self._audit.write, "late", request=request, token=name, statement=statement, incident=True
        )
        raise _RequestError(503, "TemporaryError", "the answer took too long.", incident=request, retry=_RETRY_SECONDS)

    def _answer(self, name: str, request: str, statement: str, late: threading.Event, *, arrow: bool) -> Response:
        """Ask the gate, between two lines of the audit log."""
        facts: dict[str, Any] = {"request": request, "token": name, "statement": statement}
        self._audit.write("asked", **facts)
        try:
            answer = self._gate.sql(statement)
            body = arrow_stream(answer) if arrow else json_document(answer)
            response, outcome = Response(body, media_type=ARROW if arrow else JSON), "answered"
            facts["releases"] = [release.id for release in answer.releases]
        except Exception as error:
            problem = _refusal(error, request)
            facts |= {"error": error, "incident": problem.incident is not None}
            response, outcome = problem.response(), "failed" if problem.status >= 500 else "refused"
        self._audit.write(outcome, status=response.status_code, late=late.is_set() or None, **facts)
        return response

    def _incident(self, request: str, error: Exception) -> _RequestError:
        """Return what an analyst is told about an error outside any statement; the curator finds it in the log."""
        problem = _refusal(error, request)
        if problem.incident is not None:
            try:
                self._audit.write("failed", request=request, error=error, incident=True, status=500)
            except TemporaryError:
                return _refusal(TemporaryError(), request)
        return problem


class _Guard:
    """Lets only requests through that call this host by its name and that no foreign web page has sent.

    A page that an analyst's browser shows could otherwise send requests here (cross-site request forgery) and,
    by giving its own name this host's address (DNS rebinding), read the answers.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        problem = self._objection(Request(scope))
        if problem is not None:
            await problem.response()(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _objection(self, request: Request) -> _RequestError | None:
        given = [host.lower() for host in request.headers.getlist("host")]
        match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if match is None or match[1].strip("[]") not in self._hosts:
            return _RequestError(400, "WrongHost", "the request's Host header is not a name of this service.")
        own = {f"http://{given[0]}", f"https://{given[0]}"}
        from_elsewhere = any(origin.lower() not in own for origin in request.headers.getlist("origin"))
        if from_elsewhere or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _RequestError(400, "WrongOrigin", "the request comes from a web page of another origin.")
        if request.url.query:
            return _RequestError(
                400, "BadRequest", "nothing is read from a URL: tokens go into a header, SQL into the body."
            )
        return None


def _with_headers(send: Send) -> Send:
    """Return `send` with the headers of every answer: nothing of it is to be stored or guessed at."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", ()),
                (b"cache-control", b"no-store"),
                (b"x-content-type-options", b"nosniff"),
            ]
        await send(message)

    return sending


async def _http_error(_: Request, error: Exception) -> Response:
    """Answer a path or a method that there is not."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    kind = {404: "NotFound", 405: "MethodNotAllowed"}.get(status, "BadRequest")
    return _RequestError(status, kind, "there are POST /sql, GET /policy and GET /health.").response()


def _refusal(error: Exception, request: str) -> _RequestError:
    """Return what an analyst is told about an error; only our own texts about query and policy are passed on."""
    if isinstance(error, ArgumentError):
        return _RequestError(400, "ArgumentError", str(error))
    if isinstance(error, _PRIVACY):
        return _RequestError(403, type(error).__name__, str(error))
    if isinstance(error, TemporaryError):
        return _RequestError(503, "TemporaryError", _BUSY, retry=_RETRY_SECONDS)
    # Also what a ledger, a source or a configuration is blamed for: that is for the curator.
    return _RequestError(500, "InternalError", _UNANSWERED, incident=request)


def _wants_arrow(request: Request) -> bool:
    """Whether the request's Accept header names Arrow; JSON is the answer to everything else."""
    named = ",".join(request.headers.getlist("accept")).lower().split(",")
    return any(one.partition(";")[0].strip() == ARROW for one in named)


def _sql_of(body: bytes) -> str:
    """Return the statement in ``{"sql": …}``, and nothing else may be there."""
    shape = _RequestError(400, "BadRequest", 'the body must be {"sql": "SELECT …"}, in JSON and UTF-8.')
    try:
        pairs = json.loads(body.decode("utf-8"), object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise shape from None
    if not (isinstance(pairs, list) and len(pairs) == 1 and isinstance(pairs[0], tuple)):
        raise shape
    key, statement = pairs[0]
    if key != "sql" or not isinstance(statement, str):
        raise shape
    if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in statement):
        raise shape
    return statement
