"""Public tables in a DuckDB file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.jobs.outputs.files import is_writable
from pkdp_pipeline.jobs.outputs.tables import PublicColumn, TableStore, check_names, does_not_fit

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.job import Job

_KEY = "output.duckdb"
_TYPES = {
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "natural": "UBIGINT",
    "real": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "instant": "TIMESTAMP WITH TIME ZONE",
}
_HELD = re.compile(r"VARCHAR|BOOLEAN|U?BIGINT|HUGEINT|DECIMAL\(.*\)|DOUBLE|DATE|TIMESTAMP(_NS| WITH TIME ZONE)?")
#: What may become what DuckDB takes for both: numbers, and points in time.
_FAMILIES = (re.compile(r"U?BIGINT|HUGEINT|DECIMAL\(.*\)|DOUBLE"), re.compile(r"TIMESTAMP(_NS)?"))
_MOST_DIGITS = 38
_ROWS = "__pkdp_rows"


def in_duckdb(job: Job, work: Callable[[TableStore], None], *, writing: bool) -> None:
    """Do `work` in one transaction of the job's DuckDB file; where there is none it is created by `writing` alone."""
    assert job.output.duckdb is not None
    file = Path(job.output.duckdb)
    check_names(job, _KEY, longest=10_000, reserved=("rowid",))
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
    return ConfigError(f"{_KEY} {str(file)!r} cannot be created: check the permissions of its folder.")


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
            f"{_KEY} {str(file)!r} is open in another program, which locks it: close it there, or try again later."
        )
    if "not a valid DuckDB database" in said:
        return ConfigError(f"{_KEY} {str(file)!r} is not a DuckDB file: choose another.")
    return ConfigError(
        f"{_KEY} {str(file)!r} cannot be used ({type(error).__name__}): check its permissions, the room on its disk, "
        "and that no newer version of DuckDB wrote it."
    )


class _DuckDBStore:
    """See `TableStore`."""

    key = _KEY
    text = "VARCHAR"
    whole = "BIGINT"

    def __init__(self, connection: duckdb.DuckDBPyConnection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._kinds: dict[str, bool] | None = None
        # The file's own name: without it, a schema of the same name would be ambiguous.
        self._catalog = str(self.run("SELECT current_database()")[0][0])

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, list(values)).fetchall()

    def place(self, table: str) -> str:
        return ".".join(map(quoted, (self._catalog, self._schema, table)))

    def make_schema(self) -> None:
        self.run(f"CREATE SCHEMA IF NOT EXISTS {quoted(self._catalog)}.{quoted(self._schema)}")

    def columns(self, table: str) -> Mapping[str, str] | None:
        if self._kinds is None:  # asked once: DuckDB looks at all it has, its own views included, to answer
            about = "WHERE database_name = $1 AND lower(schema_name) = lower($2)"
            found = self.run(
                f"SELECT lower(table_name), true FROM duckdb_tables() {about} "
                f"UNION ALL SELECT lower(view_name), false FROM duckdb_views() {about}",
                *(self._catalog, self._schema),
            )
            self._kinds = dict(found)
        is_table = self._kinds.get(table.lower())
        if not is_table:
            return None if is_table is None else {}
        return {row[0]: row[1] for row in self.run(f"DESCRIBE {self.place(table)}")}

    def type_of(self, column: PublicColumn) -> str:
        problem = None
        if column.kind == "decimal" and column.digits > _MOST_DIGITS:
            problem = f"have more than {_MOST_DIGITS} digits"
        elif column.kind == "instant" and column.nanoseconds:
            problem = "are instants with nanoseconds"
        if problem is not None:
            raise ConfigError(
                f"{_KEY}: the keys of {column.name!r} {problem}, which DuckDB cannot hold: remove {_KEY}, or change "
                "them in the source."
            )
        if column.kind == "decimal":
            return f"DECIMAL({column.digits},{column.scale})"
        return "TIMESTAMP_NS" if column.nanoseconds else _TYPES[column.kind]

    def wider(self, held: str, wanted: str) -> str | None:
        if held == wanted:
            return held if _HELD.fullmatch(held) else None
        if not any(family.fullmatch(held) and family.fullmatch(wanted) for family in _FAMILIES):
            return None
        values = f"SELECT NULL::{held} AS v UNION ALL SELECT NULL::{wanted}"
        both = str(self.run(f"SELECT typeof(v) FROM ({values}) LIMIT 1")[0][0])
        # Where the digits of both are too many, DuckDB would cut those behind the point.
        return both if both == "DOUBLE" or _scale(both) >= max(_scale(held), _scale(wanted)) else None

    def is_real(self, kind: str) -> bool:
        return kind == "DOUBLE"

    def insert(
        self,
        table: str,
        period: date,
        columns: Sequence[tuple[PublicColumn, str]],
        counts: Sequence[int | None],
        release_id: str,
    ) -> None:
        import duckdb
        import pyarrow as pa

        keys = [column.arrow for column, _ in columns]
        rows = pa.table([*keys, pa.array(counts, pa.int64())], names=[f"c{place}" for place in range(len(keys) + 1)])
        self._connection.register(_ROWS, rows)
        listed = [*(f"CAST(c{place} AS {kind})" for place, (_, kind) in enumerate(columns)), f"c{len(columns)}"]
        into = f"INSERT INTO {self.place(table)} SELECT $1::DATE, {', '.join(listed)}, $2 FROM {_ROWS}"
        with suppress(duckdb.DataError):  # which would quote a key
            self.run(into, period, release_id)
            self._connection.unregister(_ROWS)
            return
        raise does_not_fit(_KEY, table, columns[0][0], columns[0][1])


def _scale(kind: str) -> int:
    """Return how many digits a type of numbers has behind the point."""
    found = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", kind)
    return 0 if found is None else int(found[1])
