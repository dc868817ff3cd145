"""Database: what a ledger needs of one; and what addresses and errors of PostgreSQL mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from pkdp_pipeline.errors import LedgerError

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
