"""Releases as tables of a DuckDB file or a PostgreSQL database, one transaction a period; and events for OpenLineage.

An event tells of a job's run what was read, what was written, and what that guarantees. Events are appended to a file,
and sent to ``OPENLINEAGE_URL`` where that is set, by openlineage-python's transports themselves. Its client, which
would send them to wherever a file or another variable says, is not used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pandas as pd

from pkdp_pipeline.clock import instant, midnight
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.outputs import PublicColumn, TableStore, check_names, does_not_fit
from pkdp_pipeline.jobs.outputs.files import FORMATS, is_writable, make_folder
from pkdp_pipeline.jobs.steps import PeriodStep
from pkdp_pipeline.jobs.tables import refusal
from pkdp_pipeline.ledger.database import public_address
from pkdp_pipeline.model.wording import INSTALLED
from pkdp_pipeline.schemas import VERSION

if TYPE_CHECKING:
    import duckdb
    import psycopg
    from openlineage.client.event_v2 import RunEvent

    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.steps import JobResult

_DUCKDB = "output.duckdb"
_DUCKDB_TYPES = {
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "natural": "UBIGINT",
    "decimal": "DECIMAL({digits},{scale})",
    "real": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "instant": "TIMESTAMP WITH TIME ZONE",
}
_COLUMN_TYPES = re.compile(
    r"VARCHAR|BOOLEAN|U?BIGINT|HUGEINT|DECIMAL\(.*\)|DOUBLE|DATE|TIMESTAMP(_NS| WITH TIME ZONE)?"
)
#: What may become what DuckDB takes for both: numbers, and points in time.
_FAMILIES = (re.compile(r"U?BIGINT|HUGEINT|DECIMAL\(.*\)|DOUBLE"), re.compile(r"TIMESTAMP(_NS)?"))
_MAX_DECIMAL_DIGITS = 38
_ROWS = "__pkdp_rows"


def in_duckdb(job: Job, work: Callable[[TableStore], None], writing: bool) -> None:
    """Do `work` in one transaction of the job's DuckDB file; where there is none it is created by `writing` alone."""
    assert job.output.duckdb is not None
    file = Path(job.output.duckdb)
    check_names(job, _DUCKDB, longest=10_000, reserved=("rowid",))
    if file.exists() or writing:
        if not file.exists():
            _create(file)
        _in_transaction(job, file, work)
    elif not is_writable(file):
        raise _cannot_be_created(file)


def _create(file: Path) -> None:
    """Create an empty database; a kill leaves the whole file or none."""
    import duckdb

    temporary = file.with_name(f".{file.name}.partial")
    with suppress(duckdb.Error, OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        duckdb.connect(str(temporary)).close()
        os.replace(temporary, file)
        return
    raise _cannot_be_created(file)


def _cannot_be_created(file: Path) -> ConfigError:
    return ConfigError(f"{_DUCKDB} {str(file)!r} cannot be created: check the permissions of its folder.")


def _in_transaction(job: Job, file: Path, work: Callable[[TableStore], None]) -> None:
    import duckdb

    refusal: PkdpError | None = None
    connection: duckdb.DuckDBPyConnection | None = None
    try:
        connection = duckdb.connect(str(file))
        connection.execute("BEGIN")
        work(_DuckDBStore(connection, job.output.schema_ or "main"))
        connection.execute("COMMIT")
    except duckdb.Error as error:
        refusal = _refusal(file, error)
    finally:
        if connection is not None:
            connection.close()  # what is not committed is rolled back
    if refusal is not None:
        raise refusal


def _refusal(file: Path, error: Exception) -> PkdpError:
    """Return our own error; DuckDB's words may quote what it was given."""
    said = str(error)
    if "Could not set lock" in said or "different configuration" in said or "already attached" in said:
        return TemporaryError(
            f"{_DUCKDB} {str(file)!r} is open in another program, which locks it: close it there, or try again later."
        )
    if "not a valid DuckDB database" in said:
        return ConfigError(f"{_DUCKDB} {str(file)!r} is not a DuckDB file: choose another.")
    return ConfigError(
        f"{_DUCKDB} {str(file)!r} cannot be used ({type(error).__name__}): check its permissions, the room on its "
        "disk, and that no newer version of DuckDB wrote it."
    )


class _DuckDBStore(TableStore):
    """See `TableStore`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, schema: str) -> None:
        self._connection = connection
        self._kinds: dict[str, bool] | None = None
        # The file's own name: without it, a schema of the same name would be ambiguous.
        self._names = (str(self.run("SELECT current_database()")[0][0]), schema)
        super().__init__(_DUCKDB, "DuckDB", _DUCKDB_TYPES, self._names)

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, list(values)).fetchall()

    def make_schema(self) -> None:
        self.run(f"CREATE SCHEMA IF NOT EXISTS {self.place()}")

    def columns(self, table: str) -> Mapping[str, str] | None:
        if self._kinds is None:  # asked once: DuckDB looks at all it has, its own views included, to answer
            about = "WHERE database_name = $1 AND lower(schema_name) = lower($2)"
            rows = self.run(
                f"SELECT lower(table_name), true FROM duckdb_tables() {about} "
                f"UNION ALL SELECT lower(view_name), false FROM duckdb_views() {about}",
                *self._names,
            )
            self._kinds = dict(rows)
        is_table = self._kinds.get(table.lower())
        if not is_table:
            return None if is_table is None else {}
        return {row[0]: row[1] for row in self.run(f"DESCRIBE {self.place(table)}")}

    def problem(self, column: PublicColumn) -> str | None:
        if column.kind == "decimal" and column.digits > _MAX_DECIMAL_DIGITS:
            return f"have more than {_MAX_DECIMAL_DIGITS} digits"
        return "are instants with nanoseconds" if column.kind == "instant" and column.nanoseconds else None

    def type_of(self, column: PublicColumn) -> str:
        plain = super().type_of(column)
        return "TIMESTAMP_NS" if column.nanoseconds else plain.format(digits=column.digits, scale=column.scale)

    def wider(self, existing: str, wanted: str) -> str | None:
        if existing == wanted:
            return existing if _COLUMN_TYPES.fullmatch(existing) else None
        if not any(family.fullmatch(existing) and family.fullmatch(wanted) for family in _FAMILIES):
            return None
        values = f"SELECT NULL::{existing} AS v UNION ALL SELECT NULL::{wanted}"
        both = str(self.run(f"SELECT typeof(v) FROM ({values}) LIMIT 1")[0][0])
        # Where the digits of both are too many, DuckDB would cut those behind the point.
        return both if both == "DOUBLE" or _scale(both) >= max(_scale(existing), _scale(wanted)) else None

    def insert(self, table: str, period: date, columns: Sequence[tuple[PublicColumn, str]], release_id: str) -> None:
        import duckdb
        import pyarrow as pa

        rows = pa.table([column.arrow for column, _ in columns], names=[f"c{place}" for place in range(len(columns))])
        self._connection.register(_ROWS, rows)
        listed = [f"CAST(c{place} AS {kind})" for place, (_, kind) in enumerate(columns)]
        into = f"INSERT INTO {self.place(table)} SELECT $1::DATE, {', '.join(listed)}, $2 FROM {_ROWS}"
        with suppress(duckdb.DataError):  # which would quote a key
            self.run(into, period, release_id)
            self._connection.unregister(_ROWS)
            return
        raise does_not_fit(_DUCKDB, table, columns[0][0], columns[0][1])


def _scale(kind: str) -> int:
    """Return how many digits a type of numbers has behind the point."""
    match = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", kind)
    return 0 if match is None else int(match[1])


_POSTGRES = "output.postgres"
_LEDGER = "pkdp"
_MAX_NAME_LENGTH = 63
_LOCK_SECONDS = 30
_SYSTEM = ("cmax", "cmin", "ctid", "tableoid", "xmax", "xmin")
_MOMENTS = ("timestamp without time zone", "timestamp with time zone")
_POSTGRES_TYPES = {
    "text": "text",
    "boolean": "boolean",
    "integer": "bigint",
    "natural": "numeric",
    "decimal": "numeric",
    "real": "double precision",
    "date": "DATE",
    "timestamp": _MOMENTS[0],
    "instant": _MOMENTS[1],
}
_NUMBERS = ("bigint", "numeric", "double precision")
"""From the narrowest to the widest; a change to the last is checked value by value."""

_FIXES = {
    "42501": "grant its user the right to create and change tables in the schema",
    "25006": "the server is read-only, a standby perhaps: connect to the primary",
    "22P05": "a key holds a character that the database's encoding lacks: use a database in UTF-8",
    "": "check user, rights and schema",
}


def in_postgres(job: Job, work: Callable[[TableStore], None], writing: bool) -> None:
    """Do `work` in one transaction of the job's PostgreSQL database."""
    if importlib.util.find_spec("psycopg") is None:
        raise ConfigError(f"{_POSTGRES} needs psycopg, which is not installed: {INSTALLED.format('postgres')}.")
    if job.output.schema_ == _LEDGER:
        raise ConfigError(f"output.schema {_LEDGER!r} is where ledgers are kept in PostgreSQL: choose another.")
    check_names(job, _POSTGRES, longest=_MAX_NAME_LENGTH, reserved=_SYSTEM)
    import psycopg

    assert job.output.postgres is not None
    location = public_address(job.output.postgres)
    scheme, mark, rest = job.output.postgres.partition("://")
    address = f"{scheme.partition('+')[0]}{mark}{rest}"
    problem: PkdpError | None = None
    connection: psycopg.Connection[Any] | None = None
    try:
        given = psycopg.conninfo.conninfo_to_dict(address)
        defaults = {"connect_timeout": "10", "application_name": "pkdp_pipeline"}
        connection = psycopg.connect(
            psycopg.conninfo.make_conninfo("", **{**defaults, **given, "client_encoding": "utf8"}),
            prepare_threshold=None,  # prepared statements do not survive a pooling proxy
            cursor_factory=psycopg.RawCursor,
        )
        work(_PostgresStore(connection, job.output.schema_ or "public", writing=writing))
        connection.commit()
    except psycopg.Error as error:
        problem = refusal(f"{_POSTGRES}, the database {location},", error, _FIXES)
    finally:
        if connection is not None:
            connection.close()  # what is not committed is rolled back
    if problem is not None:
        raise problem


class _PostgresStore(TableStore):
    """See `TableStore`."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str, *, writing: bool) -> None:
        super().__init__(_POSTGRES, "PostgreSQL", _POSTGRES_TYPES, [schema])
        self._connection, self._schema = connection, schema
        own = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), "  # every other name is a full one
        self.run(f"{own}pg_catalog.set_config('lock_timeout', $1, true)", f"{_LOCK_SECONDS}s")
        if writing:  # to one schema one after another, also while there is no table yet
            digest = hashlib.sha256(b"pkdp outputs:" + schema.encode()).digest()
            self.run("SELECT pg_advisory_xact_lock($1)", int.from_bytes(digest[:8], "big", signed=True))

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description is not None else []

    def make_schema(self) -> None:
        # Asked first: IF NOT EXISTS needs the right to create schemas, also where there is one.
        if not self.run("SELECT 1 FROM pg_namespace WHERE nspname = $1", self._schema):
            self.run(f"CREATE SCHEMA {self.place()}")

    def columns(self, table: str) -> Mapping[str, str] | None:
        rows = self.run(
            "SELECT c.oid, c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relname = $2",
            *(self._schema, table),
        )
        if not rows:
            return None
        table_id, kind = rows[0]
        if kind not in (b"r", b"p", "r", "p"):
            return {}
        columns = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            table_id,
        )
        return {name: "DATE" if column_type == "date" else column_type for name, column_type in columns}

    def problem(self, column: PublicColumn) -> str | None:
        if column.nanoseconds:
            return "have nanoseconds"
        has_null = column.kind == "text" and any(value is not None and "\x00" in value for value in column.values)
        return "hold a character, U+0000" if has_null else None

    def wider(self, existing: str, wanted: str) -> str | None:
        if existing == wanted:
            return existing if existing in _POSTGRES_TYPES.values() else None
        if existing in _NUMBERS and wanted in _NUMBERS:
            return max(existing, wanted, key=_NUMBERS.index)
        return None

    def insert(self, table: str, period: date, columns: Sequence[tuple[PublicColumn, str]], release_id: str) -> None:
        values = [map(_plain, column.values) for column, _ in columns]
        statement = f"COPY {self.place(table)} FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in zip(*values, strict=True):
                copy.write_row((period, *row, release_id))


def _plain(value: Any) -> Any:
    """Return a key as psycopg writes it: it knows datetimes, and not those of pandas."""
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value


_PRODUCER = f"urn:pkdp-pipeline:{VERSION}"


class LineageStep(PeriodStep):
    """Appends an event when the run of a period begins, and one when it ends."""

    def check(self, job: Job) -> None:
        """See `PeriodStep.check`."""
        need_openlineage()

    def began(self, result: JobResult) -> None:
        """See `PeriodStep.began`."""
        append_event(result, "START")

    def ended(self, result: JobResult) -> None:
        """See `PeriodStep.ended`."""
        append_event(result, "COMPLETE" if result.error is None else "FAIL")


def need_openlineage() -> None:
    """Refuse to go on without openlineage-python: a `ConfigError`."""
    with suppress(ImportError):
        if importlib.util.find_spec("openlineage.client") is not None:
            return
    raise ConfigError(
        f"records.lineage needs openlineage-python, which is not installed: {INSTALLED.format('lineage')}."
    )


def append_event(result: JobResult, kind: str) -> None:
    """Append the event `kind` of a run, START, COMPLETE or FAIL, where the job keeps lineage, and send it.

    Raises `ConfigError` if it cannot be written. One that cannot be sent is a warning: the file has it.
    """
    records = result.job.records
    if records is None or records.lineage is None:
        return
    from openlineage.client.transport.file import FileConfig, FileTransport

    problem, event = "", _event(result, kind, records.namespace)
    try:
        make_folder(Path(records.lineage).parent)
        os.close(os.open(records.lineage, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))  # the curator's alone
        transport = FileTransport(FileConfig(log_file_path=records.lineage, append=True))
        transport.emit(event)
    except OSError as error:
        problem = str(error.strerror)
    except RuntimeError:  # the transport turns every error into this
        problem = "the disk may be full"
    if problem:
        raise ConfigError(f"records.lineage {records.lineage!r} cannot be written: {problem}.")
    if url := os.environ.get("OPENLINEAGE_URL"):
        _send(event, url)


def _send(event: RunEvent, url: str) -> None:
    """Send an event; a server that does not take it stops no job."""
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    settings: dict[str, Any] = {"url": url, "retry": {"total": 1, "allowed_methods": ["POST"]}}
    if endpoint := os.environ.get("OPENLINEAGE_ENDPOINT"):
        settings["endpoint"] = endpoint
    if key := os.environ.get("OPENLINEAGE_API_KEY"):
        settings["auth"] = {"type": "api_key", "apiKey": key}
    try:
        transport = HttpTransport(HttpConfig.from_dict(settings))
        transport.emit(event)
        transport.close()
    except Exception as error:  # of the transport, of requests, of urllib3: each has its own
        warnings.warn(
            f"an event of lineage was not sent to OPENLINEAGE_URL ({type(error).__name__}); records.lineage has it.",
            stacklevel=2,
        )


def _event(result: JobResult, kind: str, namespace: str) -> RunEvent:
    import attr
    from openlineage.client import event_v2
    from openlineage.client.facet_v2 import RunFacet, error_message_run, nominal_time_run

    @attr.define
    class ReleasesRunFacet(RunFacet):
        """The run facet ``pkdp_releases``: what was published, and what it guarantees."""

        releases: list[dict[str, Any]] = attr.field(factory=list)

        @staticmethod
        def _get_schema() -> str:
            # The $id of schemas/lineage_releases.v1.json, which the package holds; it lies at no web address.
            return "urn:pkdp-pipeline:schemas:lineage_releases.v1"

    job = result.job
    first, last = job.period.span(result.day)
    start, end = (midnight(day, job.period.time_zone).isoformat() for day in (first, last + timedelta(1)))
    facets: dict[str, RunFacet] = {"nominalTime": nominal_time_run.NominalTimeRunFacet(start, end, producer=_PRODUCER)}
    if result.releases:
        released = [release.facts() for release in result.releases]
        published = [{key: facts[key] for key in ("name", "id", "charged", "sentence")} for facts in released]
        facets["pkdp_releases"] = ReleasesRunFacet(releases=published, producer=_PRODUCER)
    if result.error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=result.message or type(result.error).__name__, programmingLanguage="python", producer=_PRODUCER
        )
    return event_v2.RunEvent(
        eventType=event_v2.RunState[kind],
        eventTime=instant(result.ended or result.started),
        producer=_PRODUCER,
        run=event_v2.Run(runId=result.run, facets=facets),
        job=event_v2.Job(namespace=namespace, name=job.name),
        inputs=[event_v2.InputDataset(namespace=namespace, name=job.source.public_name)],
        outputs=[event_v2.OutputDataset(namespace=place, name=name) for place, name in _outputs(result)],
    )


def _outputs(result: JobResult) -> Iterator[tuple[str, str]]:
    """Yield where the releases of a run went: files, and tables by OpenLineage's rules for naming them."""
    output = result.job.output
    yield from (("file", str(path)) for path in result.for_offices)
    for name in (release.declared.name for release in result.releases):
        for suffix in (form for form in output.formats if form in FORMATS):
            yield "file", str(result.summary.with_name(f"{name}.{suffix}"))
        if output.duckdb is not None:
            file = Path(output.duckdb)
            yield f"duckdb://{file}", f"{file.stem}.{output.schema_ or 'main'}.{name}"
        if output.postgres is not None:
            parts = urlsplit(output.postgres)
            database = unquote(parts.path).lstrip("/")
            server = f"postgres://{parts.hostname or 'localhost'}:{parts.port or 5432}"
            yield server, f"{database}.{output.schema_ or 'public'}.{name}"
