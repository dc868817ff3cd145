"""Database: what a ledger needs of one; and what addresses and errors of PostgreSQL mean.

PostgresDatabase: the ledger in a PostgreSQL database, safe for the processes of several machines.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from pkdp_pipeline.errors import ArgumentError, LedgerError, PkdpError, TemporaryError
from pkdp_pipeline.model.period import folded
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA_VERSION = 1

LOCK_SECONDS = 30.0
"""How long a transaction waits for those of other processes before it is a `TemporaryError`."""

WAIT_SECONDS = 0.25
"""How long it waits before it looks up; see `while_waiting`."""

_LOOKS: ContextVar[Callable[[], None] | None] = ContextVar("_LOOKS", default=None)


@contextmanager
def while_waiting(look: Callable[[], None]) -> Iterator[None]:
    """Call `look` again and again while a transaction waits for those of others; what it raises ends the wait.

    It is called only where nothing has been changed yet.
    """
    before = _LOOKS.set(look)
    try:
        yield
    finally:
        _LOOKS.reset(before)


def waiting() -> None:
    """Call what `while_waiting` has given; a database calls it between its tries to get a lock."""
    look = _LOOKS.get()
    if look is not None:
        look()


class NoLedgerError(LedgerError):
    """There is no ledger, and none is to be created."""


class Database(Protocol):
    """One database that holds a ledger, safe for many processes and for the threads of each.

    Every method raises `TemporaryError` when the database is locked or unreachable and `LedgerError` when it
    cannot be used otherwise; messages name no password.
    """

    @property
    def location(self) -> str:
        """Where it is, for messages."""

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with ``:name`` placeholders and return its rows.

        Outside `transaction` and `snapshot` the statement is a transaction of its own.
        """

    def transaction(self, dataset: str) -> AbstractContextManager[None]:
        """Hold the data set's write lock: all that happens inside is committed at the end, or nothing is."""

    def snapshot(self) -> AbstractContextManager[None]:
        """See one state of the ledger throughout, and write nothing; writers are not held up."""

    def check(self) -> None:
        """Check what the database itself knows to be wrong: damaged pages, a schema that was changed."""

    def close(self) -> None:
        """Close it; a closed database cannot be used."""


def schema_script(dialect: str) -> str:
    """Return the SQL text that creates the tables, which is kept in ``sql/ledger``."""
    package = Path(__file__).resolve().parents[1]
    # A wheel carries sql/ inside the package; an editable install reads it beside the package.
    for folder in (package / "sql", package.parent / "sql"):
        file = folder / "ledger" / f"{dialect}.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise LedgerError(
        f"the installation is incomplete: sql/ledger/{dialect}.sql is missing; install the package again."
    )


Trouble = Literal["passing", "refused", "malformed", "other"]

LOCKED = "55P03"
"""PostgreSQL's word for a lock that was not to be had in time."""


def public_address(address: str) -> str:
    """Return ``host:port/database`` of a database's address: no user, no password, no options."""
    parts = urlsplit(address)
    host = parts.hostname or "local"
    if ":" in host:
        host = f"[{host}]"
    port = "" if parts.port is None else f":{parts.port}"
    return f"{host}{port}{unquote(parts.path)}"


def public_url(address: str) -> str:
    """Return an address of any database without user, password and options."""
    return f"{urlsplit(address).scheme}://{public_address(address)}"


_NO_FILE = re.compile(r"\s*postgres(ql)?(\+\w+)?:|.*\b(password|passwd|pwd|sslpassword|host|dbname)\s*=", re.I | re.S)


def is_misspelt_address(text: str) -> bool:
    """Return whether a text is meant for a PostgreSQL server and no address; as a file's name it shows its password."""
    return "://" not in text and _NO_FILE.match(text) is not None


_PASSING = ("08", "40", "55", "57", "53300", "25P03")
"""Connection lost, serialization, locks, server starting or stopping, too many connections, idle for too long.

A full disk (53100), no memory (53200) and a failing disk (58) do not pass: somebody must make room first.
"""

_REFUSED = (
    "authentication failed",
    "does not exist",
    "is not permitted to log in",
    "no pg_hba.conf entry",
    "no password supplied",
    "permission denied for database",
)
_MALFORMED = re.compile(
    r'\bURI\b|invalid (?:[\w"]+ value|port number|connection option|percent-encoded)|for connection option|'
    r"weak sslmode|sslmode value .* invalid|definition of service"
)
"""The words of libpq about an address that it does not understand; no server was asked."""


def trouble_of(state: str, said: str, *, lost: bool) -> Trouble:
    """Return what an error means for who meets it.

    `state`: the SQLSTATE; empty where the error came before a server answered. `said`: the words of the server or of
    libpq. `lost`: whether the connection is lost, or none was had.

    Returns
    -------
    str
        "passing": try again later. "refused": the server knows no such user, password or database. "malformed":
        libpq does not understand the address. "other": see the SQLSTATE.
    """
    if not state and _MALFORMED.search(said):
        return "malformed"
    if state[:2] in ("28", "3D") or (not state and any(hint in said for hint in _REFUSED)):
        return "refused"
    return "passing" if state.startswith(_PASSING) or lost else "other"


_INDEX = "the unique index of "
_UNIQUE = (
    "schema_version (version)",
    "event (sequence)",
    "event (hash)",
    "event (dataset position)",
    "dataset (folded)",
    "dataset (name)",
    "entry (id)",
)
#: A trigger's table, whether it is on and calls the ledger's own function, and the bits of pg_trigger.tgtype: a row's
#: deletion and update before it happens (1 + 2 + 8 + 16), and emptying the table before it happens (2 + 32).
_EXPECTED = {
    ("trigger event_is_never_changed", "event true 27"),
    ("trigger event_is_never_emptied", "event true 34"),
    *((f"{_INDEX}table {columns}", "") for columns in _UNIQUE),
    (f"{_INDEX}table entry (dataset key revision)", "(state <> 'given_back'::text)"),
}

_CATALOGUE = f"""
WITH relation AS (
    SELECT c.* FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = :namespace
), named AS (
    SELECT t.*, c.relname, CAST(t.tgenabled AS text) IN ('O', 'A') AS enabled, p.proname = 'refuse_change'
        AND p.pronamespace = c.relnamespace AND t.tgqual IS NULL AND CAST(t.tgattr AS text) = '' AS own
    FROM pg_trigger AS t JOIN relation AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
)
SELECT 'table ' || relname, CAST(relkind AS text) || CAST(relpersistence AS text) || CASE WHEN relrowsecurity
    OR EXISTS (SELECT 1 FROM pg_inherits AS i WHERE oid IN (i.inhparent, i.inhrelid)) THEN ' rewritten' ELSE '' END
FROM relation WHERE relkind NOT IN ('i', 'S', 't', 'I', 'c')
UNION ALL SELECT 'the foreign keys of table ' || relname, 'off' FROM named WHERE tgisinternal AND NOT enabled
UNION ALL SELECT 'trigger ' || tgname, relname || ' ' || CAST(enabled AND own AS text) || ' ' || tgtype
FROM named WHERE NOT tgisinternal
UNION ALL SELECT 'function ' || p.proname, l.lanname || ' ' || p.prosrc FROM pg_proc AS p
    JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
WHERE n.nspname = :namespace
UNION ALL SELECT 'rule ' || rulename, '' FROM pg_rules WHERE schemaname = :namespace
UNION ALL SELECT '{_INDEX}table ' || c.relname || ' (' || string_agg(a.attname, ' ' ORDER BY k.place) || ')',
    coalesce(pg_get_expr(i.indpred, i.indrelid), '')
FROM pg_index AS i JOIN relation AS c ON c.oid = i.indrelid
    CROSS JOIN unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS k (attribute, place)
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attribute
WHERE i.indisunique AND i.indisvalid AND i.indislive
GROUP BY i.indexrelid, c.relname, i.indpred, i.indrelid
"""


def changed_objects(execute: Callable[..., list[tuple[Any, ...]]], namespace: str) -> list[str]:
    """Return what was changed, added or removed, in words; nothing where the ledger is as it was made.

    `execute` is as `Database.execute`. `namespace`: the PostgreSQL schema that holds the tables.

    Notes
    -----
    Compared are tables, triggers, functions, rules, row policies and unique indexes: with them somebody could make
    the ledger forget, or keep less than it is given. Further indexes do no harm. Checks and foreign keys only refuse
    rows that `verify` finds; and the catalogue writes them differently from one version of PostgreSQL to the next.
    """
    script = schema_script("postgresql")
    functions = re.findall(r"CREATE FUNCTION (\w+)\(\) RETURNS trigger LANGUAGE (\w+) AS \$\$(.*?)\$\$", script, re.S)
    expected = _EXPECTED | {(f"table {name}", "rp") for name in re.findall(r"^CREATE TABLE (\w+)", script, re.M)}
    expected |= {(f"function {name}", _plain(f"{language} {body}")) for name, language, body in functions}
    actual = {(str(name), _plain(text)) for name, text in execute(_CATALOGUE, namespace=namespace)}
    return sorted({name for name, text in expected ^ actual if not name.startswith(_INDEX) or (name, text) in expected})


def _plain(text: object) -> str:
    return " ".join(str(text).split())


NAMESPACE = "pkdp"
"""The PostgreSQL schema that holds the ledger's tables, so that they meet no others."""

_IDLE_SECONDS = 300
_UNREAD = "the PostgreSQL ledger"
_SECRET = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
"""Options of an address whose values stand in no message, even within another word."""

_QUOTED = re.compile('["“„«»][^"“”„«»]*["”“«»]')
"""The server and libpq quote users, databases, files and other options so, besides names of tables."""


class PostgresDatabase:
    """One PostgreSQL database, reached through psycopg; see `Database`.

    A transaction takes an advisory lock of its data set, so that the releases of one data set are charged one
    after another, whichever machine they come from. Raises `LedgerError` if the extra ``postgres`` is not installed, or
    the database is not one this version knows, or cannot be used; `TemporaryError` if the server cannot be reached, or
    another process holds the data set's lock for longer than `LOCK_SECONDS`.

    Parameters
    ----------
    url : str
        ``postgresql://user@host/database``; libpq's own ways of giving a password work, and keep it out of
        job files: ``PGPASSWORD``, ``~/.pgpass``, a service file.
    create : bool, default True
        Create the tables where there are none.

    Notes
    -----
    Every transaction sets what it needs by itself, READ COMMITTED and ``synchronous_commit = on`` among it: a
    snapshot taken before the lock would not see the charges made while waiting for it, and a publication must
    not outlive the charge that a crashing server forgets. Pooling proxies such as PgBouncer do no harm. A standby
    that lags behind and is promoted does: let it follow synchronously, and check `verify` with a noted head.
    """

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._location, self._may_create = _UNREAD, create
        self._secrets: tuple[str, ...] = ()
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._open = threading.local()
        self._url = self._read(url)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def location(self) -> str:
        """The address without user, password and options."""
        return self._location

    def close(self) -> None:
        """Close all connections; a closed database cannot be used."""
        if os.getpid() == self._process:  # a forked child must not end its parent's connections
            self._closed = True
            with self._lock:
                while self._idle:
                    self._idle.pop().close()

    def execute(self, sql: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement with ``:name`` placeholders and return its rows."""
        connection: Connection | None = getattr(self._open, "connection", None)
        if connection is not None:
            with self._errors():
                return self._rows(connection, sql, parameters)
        with self._begun() as fresh, self._errors():
            return self._rows(fresh, sql, parameters)

    @contextmanager
    def transaction(self, dataset: str) -> Iterator[None]:
        """Hold the data set's advisory lock: all that happens inside is committed at the end, or nothing is."""
        with self._begun() as connection:
            self._take_lock(connection, folded(dataset))
            with self._errors():
                # A machine that vanished without a word must not hold the lock for hours.
                self._rows(connection, f"SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'", {})
            with self._current(connection):
                yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the ledger throughout, and write nothing; writers are not held up."""
        with self._begun("REPEATABLE_READ") as connection:
            with self._errors():
                self._rows(connection, "SET TRANSACTION READ ONLY", {})
            with self._current(connection):
                yield

    def check(self) -> None:
        """Check that tables, triggers, functions and unique indexes are those of the schema."""
        changed = changed_objects(self.execute, NAMESPACE)
        if changed:
            raise LedgerError(
                f"the ledger {self._location} has another schema than it was made with: {', '.join(changed)} was "
                "changed, added, removed or switched off. Somebody has worked on the database; restore it from a "
                "backup."
            )

    def _read(self, url: str) -> str:
        """Return the address as libpq takes it, and keep what may be shown of it."""
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise LedgerError(
                f"a ledger in PostgreSQL needs psycopg, which is not installed: {INSTALLED.format('postgres')}."
            ) from None
        self._psycopg = psycopg
        with suppress(ValueError):
            address = urlsplit(url)
            _ = address.port
            given = parse_qsl(address.query, keep_blank_values=True)
            plain = [value for option, value in given if option in _SECRET] + [unquote(address.password or "")]
            forms = {form for secret in plain for form in (secret, quote(secret, ""), quote_plus(secret))}
            self._secrets = tuple((forms | {address.password or ""}) - {""})
            url = address._replace(scheme="postgresql").geturl()
            self._location = public_url(url)
        if self._location == _UNREAD:
            raise ArgumentError(
                "the ledger's URL cannot be read; write postgresql://user@host:5432/database, and percent-encode "
                "special characters."
            )
        defaults: dict[str, Any] = {"connect_timeout": 10, "application_name": "pkdp_pipeline ledger"}
        with self._errors():
            known = conninfo_to_dict(url)
        self._defaults = {option: value for option, value in defaults.items() if option not in known}
        return url

    def _taken(self) -> Connection:
        """Return a connection that works: one that is idle, or a new one."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                # Prepared statements do not survive a pooling proxy.
                return self._psycopg.connect(self._url, prepare_threshold=None, **self._defaults)
            with suppress(self._psycopg.Error):
                connection.execute("SELECT 1")
                connection.rollback()
                return connection
            connection.close()

    def _given_back(self, connection: Connection) -> None:
        """Roll back what is not committed, and keep one connection for the next call."""
        with suppress(self._psycopg.Error):
            connection.rollback()
            with self._lock:
                if not connection.closed and not self._idle and not self._closed:
                    self._idle.append(connection)
                    return
        connection.close()

    def _prepare(self) -> None:
        if self._version() is None:
            with self._begun() as connection, self._errors():
                self._take_lock(connection, "")  # no data set has this name; another process may create as well
                with self._current(connection):
                    if self._version() is None:
                        self._create(connection)
        version = self._version()
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger {self._location} has schema {version}, this version of pkdp_pipeline reads schema "
                f"{SCHEMA_VERSION}: use the version that wrote it, or a newer one."
            )

    def _version(self) -> int | None:
        # Read from the catalogue: to_regclass would answer from a cache that is older than the lock.
        known = "SELECT 1 FROM pg_tables WHERE schemaname = :name AND tablename = 'schema_version'"
        if not self.execute(known, name=NAMESPACE):
            return None
        rows = self.execute(f"SELECT max(version) FROM {NAMESPACE}.schema_version")
        return int(rows[0][0] or 0)

    def _create(self, connection: Connection) -> None:
        if not self._may_create:
            raise NoLedgerError(f"the database {self.location} holds no ledger; give the URL of one that does.")
        if self.execute("SELECT 1 FROM pg_tables WHERE schemaname = :name LIMIT 1", name=NAMESPACE):
            raise LedgerError(
                f"the database {self._location} has tables of something else under the name {NAMESPACE!r}; use another "
                "database."
            )
        if not self.execute("SELECT 1 FROM pg_namespace WHERE nspname = :name", name=NAMESPACE):
            self.execute(f"CREATE SCHEMA {NAMESPACE}")
        connection.execute(schema_script("postgresql").encode())

    @contextmanager
    def _begun(self, isolation: str = "READ_COMMITTED") -> Iterator[Connection]:
        if self._closed:
            raise LedgerError(f"the ledger {self._location} cannot be used: it is closed; open it again.")
        if os.getpid() != self._process:
            raise ArgumentError("this ledger was opened by the parent of this process; open it again in each process.")
        if getattr(self._open, "connection", None) is not None:
            raise ArgumentError("a ledger cannot be changed from inside one of its own transactions.")
        with self._errors():
            connection = self._taken()
        try:
            connection.isolation_level = self._psycopg.IsolationLevel[isolation]
            with self._errors():
                self._rows(
                    connection,
                    "SELECT pg_catalog.set_config('search_path', :namespace, true), "
                    "pg_catalog.set_config('synchronous_commit', 'on', true), "
                    "pg_catalog.set_config('lock_timeout', :limit, true)",
                    {"namespace": NAMESPACE, "limit": f"{int(LOCK_SECONDS * 1000)}ms"},
                )
            yield connection
            with self._errors():
                connection.commit()
        finally:
            self._given_back(connection)

    @contextmanager
    def _current(self, connection: Connection) -> Iterator[None]:
        self._open.connection = connection
        try:
            yield
        finally:
            self._open.connection = None

    def _take_lock(self, connection: Connection, dataset: str) -> None:
        # An advisory lock has 64 bits: data sets whose hashes agree only wait for each other.
        digest = hashlib.sha256(b"pkdp ledger:" + dataset.encode()).digest()
        lock = {"lock": int.from_bytes(digest[:8], "big", signed=True)}
        with self._errors():
            if self._rows(connection, "SELECT pg_try_advisory_xact_lock(:lock)", lock) == [(True,)]:
                return
            self._wait_for_lock(connection, lock)

    def _wait_for_lock(self, connection: Connection, lock: dict[str, Any]) -> None:
        """Wait for an advisory lock, little by little: who waits can be told to stop."""
        deadline = time.monotonic() + LOCK_SECONDS
        limits = [min(WAIT_SECONDS, LOCK_SECONDS), LOCK_SECONDS]
        wait, usual = (f"SET LOCAL lock_timeout = '{int(seconds * 1000)}ms'" for seconds in limits)
        while True:
            try:
                # A savepoint: a try that times out leaves the transaction as it was.
                with connection.transaction():
                    self._rows(connection, wait, {})
                    self._rows(connection, "SELECT pg_advisory_xact_lock(:lock)", lock)
                    self._rows(connection, usual, {})
                return
            except self._psycopg.errors.LockNotAvailable:
                if time.monotonic() >= deadline:
                    raise
            waiting()

    @staticmethod
    def _rows(connection: Connection, sql: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(_statement(sql), parameters)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn psycopg's errors into ours, without the statement, its values or a password."""
        try:
            yield
        except self._psycopg.Error as error:
            lost = not error.sqlstate and isinstance(error, self._psycopg.OperationalError)
            self._refuse(error, error.sqlstate or "", lost=lost)
        except (OverflowError, UnicodeError):  # psycopg's own words quote what it was given
            _raise_alone(
                LedgerError(
                    f"the ledger {self._location} cannot hold what it was given: a text that is not valid Unicode, or "
                    "a number too large."
                )
            )

    def _refuse(self, error: BaseException, state: str, *, lost: bool) -> NoReturn:
        said = str(error).strip().partition("\n")[0].rstrip(".")
        for secret in self._secrets:
            said = said.replace(secret, "***")
        start = f"the ledger {self._location} "
        if state == LOCKED:
            _raise_alone(
                TemporaryError(start + "is locked by another process; this call changed nothing: try again later.")
            )
        trouble, said = trouble_of(state, said, lost=lost), _QUOTED.sub('"***"', said)
        if trouble == "passing":
            _raise_alone(
                TemporaryError(
                    f"{start}cannot be reached: {said}. Run again later: what this call charged, if anything, is "
                    "charged once."
                )
            )
        fix = _FIXES.get(trouble) or _FIXES.get(state) or _FIXES.get(state[:2], "")
        _raise_alone(LedgerError(f"{start}cannot be used: {said}.{fix}"))


def _raise_alone(error: PkdpError) -> NoReturn:
    """Raise an error that does not carry the driver's own, whose words may quote values or a password."""
    try:
        raise error
    except PkdpError:
        error.__context__ = None
        raise


@functools.lru_cache(maxsize=512)
def _statement(sql: str) -> bytes:
    """Return a statement with psycopg's placeholders."""
    return re.sub(r"(?<![:\w]):([a-z_]\w*)", r"%(\1)s", sql.replace("%", "%%")).encode()


_FIXES = {
    "42501": " Grant its user the right to use and create in the schema pkdp.",
    "25006": " The server is read-only, a standby perhaps: connect to the primary.",
    "53": " The server has run out of room: make room. The same call, run again, continues where this one stopped.",
    "23": " It refuses the entry: it was changed by something else, or the entry is malformed. This call changed "
    "nothing; check the ledger with verify().",
    "refused": " Check user, password and database.",
    "malformed": " Correct its URL, or the environment variables that libpq reads.",
    "42": " Its tables are not those it was made with; restore it from a backup.",
    "XX": " It is damaged: restore it from a backup, and check it with verify(head=…) and a head that a release names.",
}
