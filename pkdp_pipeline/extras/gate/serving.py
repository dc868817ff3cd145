"""Running the gate's service: the socket, the server, and how it stops."""

from __future__ import annotations

import errno
import logging
import math
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.extras.gate.client import is_loopback
from pkdp_pipeline.releases.publish import LOGGER

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

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
