"""The analyst's own DuckDB: her SQL runs there, and the pkdp macros fetch releases from a gate."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.sql.curator import register
from pkdp_pipeline.sql.spec import Spec, public_type
from pkdp_pipeline.sql.tables import NOT_OFFERED, column_named, table_named

if TYPE_CHECKING:
    import duckdb

#: No answer of a gate is larger.
MAX_ANSWER_BYTES = 2**26
#: Refusals that are about the question, the policy and what is published already; their texts may be read by anybody.
REFUSALS = (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError)


def connect(url: str, *, token: str) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection in memory, on which ``pkdp_histogram`` and ``pkdp_count`` ask a gate's service.

    Parameters
    ----------
    url : str
        Such as ``https://gate.example.org``; without TLS only on this machine: ``http://127.0.0.1:8765``.
    token : str
        The token that the curator's ``pkdp gate token`` printed.

    Raises
    ------
    ArgumentError
        If the URL or the token cannot be one.
    ConfigError
        If the service does not know the token, or is no gate.
    TemporaryError
        If it cannot be reached, or is busy.
    """
    service = _Service(url, token)
    content, _ = service.fetched("GET", "/policy", None)
    try:
        policy = json.loads(content)
        columns = {name: dict(table["columns"]) for name, table in policy["tables"].items()}
        service.seconds = 4 * min(max(0, policy["limits"]["seconds"]), 3_600) + 60  # it waits its turn, and is counted
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ConfigError("no gate answers at this address; check url.") from None

    def ask(spec: Spec) -> Release:
        content, replayed = service.fetched("POST", "/ask", spec.to_json().encode())
        release = Release.from_bytes(content, replayed=replayed)
        release.verify()
        return release

    return connected(ask, columns)


def connected(ask: Callable[[Spec], Release], tables: Mapping[str, Mapping[str, str]]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection in memory whose macros ask `ask` about these columns of these tables."""
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        register(connection, _FetchedReleases(ask, tables))
    except BaseException:
        connection.close()
        raise
    return connection


class _FetchedReleases:
    """Answers the macros with releases of a gate; each is fetched once."""

    def __init__(self, ask: Callable[[Spec], Release], tables: Mapping[str, Mapping[str, str]]) -> None:
        self._ask, self._tables = ask, tables
        self._lock = threading.Lock()
        self._fetched: dict[str, Release] = {}

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """See `Releases.plan`."""
        request = spec.for_a_gate()
        columns = table_named(request.table, self._tables)
        by = [column_named("histogram", name, columns, lacking=NOT_OFFERED) for name in request.cells or ()]
        # Values of an ENUM are not told: its keys are text.
        return tuple((n, "VARCHAR" if columns[n] == "ENUM" else public_type(n, columns[n])) for n in by)

    def release(self, spec: Spec) -> Release:
        """See `Releases.release`."""
        request = spec.for_a_gate()
        key = request.to_json()
        with self._lock:  # one question at a time: the service runs one of each token
            if key not in self._fetched:
                self._fetched[key] = self._ask(request)
            return self._fetched[key]

    def published(self) -> Iterator[tuple[str, Release]]:
        """See `Releases.published`: what was fetched on this connection; the label is the question."""
        return iter(list(self._fetched.items()))


class _Service:
    """A gate's service, as HTTP has it; redirects are not followed, for a token is for one host alone."""

    def __init__(self, url: str, token: str) -> None:
        self.seconds = 60.0
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise ArgumentError("token must be a text such as 'pkdp_…', as pkdp gate token printed it.")
        self._token = token.strip()
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            host.encode("idna")  # as it is looked up
            parts.path.encode("ascii")
            wrong = not url.isprintable() or " " in url or "@" in parts.netloc or bool(parts.query or parts.fragment)
        except (ValueError, TypeError, AttributeError):
            wrong = True
        if wrong or not host or parts.scheme not in ("https", "http"):
            raise ArgumentError("url must be a gate's address, such as 'https://gate.example.org'.")
        if parts.scheme == "http" and not is_loopback(host):
            raise ArgumentError("url must begin with https://: over http anybody on the way reads the token.")
        self._host, self._port, self._path = host, port, parts.path.rstrip("/")
        tls = partial(http.client.HTTPSConnection, context=ssl.create_default_context())
        self._connection: Callable[..., http.client.HTTPConnection] = (
            tls if parts.scheme == "https" else http.client.HTTPConnection
        )

    def fetched(self, method: str, path: str, body: bytes | None) -> tuple[bytes, bool]:
        """Return what the service answers, and whether it was a replay."""
        connection = self._connection(self._host, self._port, timeout=self.seconds)
        try:
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            connection.request(method, self._path + path, body, headers)
            response = connection.getresponse()
            content = response.read(MAX_ANSWER_BYTES + 1)
            if response.length and len(content) <= MAX_ANSWER_BYTES:
                raise http.client.IncompleteRead(b"")
        except (OSError, http.client.HTTPException) as error:
            raise TemporaryError(
                f"the gate at {self._host!r} cannot be reached ({type(error).__name__}): ask again later."
            ) from None
        finally:
            connection.close()
        if len(content) > MAX_ANSWER_BYTES:
            raise PkdpError(f"the gate's answer is larger than {MAX_ANSWER_BYTES} bytes; ask for fewer columns.")
        if response.status != 200:
            raise _refusal_of(response.status, content)
        return content, response.headers.get("Pkdp-Replayed") == "true"


def _refusal_of(status: int, content: bytes) -> PkdpError:
    """Return the service's error as one of ours."""
    try:
        error = json.loads(content)["error"]
        kind, message = str(error["type"]), str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ConfigError(f"no gate answers at this address (status {status}); check url.")
    for refusal in (ArgumentError, *REFUSALS):
        if kind == refusal.__name__:
            return refusal(message)
    if status in (429, 503):
        return TemporaryError(message)
    if status in (401, 404, 405):
        return ConfigError(message)
    return PkdpError(f"{message} (incident {error['incident']})" if "incident" in error else message)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
