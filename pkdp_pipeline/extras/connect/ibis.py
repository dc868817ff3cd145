"""Tables of Ibis, counted by their backend; those of a database that a job reads, of which counts and a day leave it.

The period is cut by moments that are computed here, so that no database's idea of time zones has a part in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw

from pkdp_pipeline.engines import NO_DOUBTS, Doubts, Tally, numbered, wrong_where
from pkdp_pipeline.engines.narwhals_columns import BYTES
from pkdp_pipeline.engines.narwhals_engine import FrameColumns, NarwhalsEngine, guarded
from pkdp_pipeline.engines.narwhals_queries import backend_of, doubted, looked_at
from pkdp_pipeline.errors import ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.extras.connect.postgres import SHADOWING, refuse_shadowed
from pkdp_pipeline.jobs.sources.source import (
    DAYS,
    Answer,
    Kind,
    Needs,
    Source,
    check_unique,
    newest_kind,
    period_kind,
)
from pkdp_pipeline.jobs.tables import refusal
from pkdp_pipeline.model.columns import Selection
from pkdp_pipeline.model.comparisons import ordered_columns
from pkdp_pipeline.model.predicate import Predicate
from pkdp_pipeline.model.wording import INSTALLED

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.extras.connect.postgres import IbisSourceTable
    from pkdp_pipeline.jobs.tables import PeriodTable


#: The backends whose regular expressions are RE2's.
_READ_RE2 = ("duckdb", "bigquery")
#: The backends that order text as a language does, where their database is made so.
_ORDER_BY_LANGUAGE = ("postgres",)
#: The backends in which text is compared by its bytes, unless a column says otherwise, and each question takes long.
_COMPARE_BYTES = ("bigquery", "snowflake")
#: SQL for the functions and operators that a backend may call in the place of its own.
_SHADOWING = {
    "duckdb": "SELECT system.main.lower(function_name) AS name FROM system.main.duckdb_functions() WHERE internal OR "
    "system.main.list_contains(system.main.current_schemas(true), schema_name) "
    "GROUP BY name HAVING system.main.bool_or(internal) AND NOT system.main.bool_and(internal)",
    "postgres": SHADOWING,
}
#: What DuckDB calls where no name is written: count(*), EXTRACT, AT TIME ZONE, IN, […], {…} and INTERVAL.
_UNWRITTEN = (
    *("count_star", "date_part", "timezone", "contains", "array_extract", "list_value", "struct_pack"),
    *("to_days", "to_microseconds"),
)


class IbisEngine(NarwhalsEngine):
    """Counts the distinct units of an `ibis.Table`; ``where`` may be a boolean column of it, or what `ibis._` makes."""

    def _source(self, frame: Any, question: Selection) -> FrameColumns:
        kinds = frame.schema()
        empty = [name for name, kind in kinds.items() if _is_null(kind)]
        spelled = {name: frame[name].cast("string") for name, kind in kinds.items() if name in empty or kind.is_uuid()}
        frame = frame.mutate(**spelled) if spelled else frame
        backend = backend_of(frame)
        if backend in _ORDER_BY_LANGUAGE and isinstance(question.where, Predicate):
            texts = {BYTES + name: name for name in ordered_columns(question.where) if _is_text(frame, name)}
            frame = guarded(lambda: _with_bytes(frame, texts))
        return FrameColumns(frame, empty=empty, regex=backend in _READ_RE2)

    def _counted(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts = NO_DOUBTS) -> Any:
        for short, name in zip(numbered("b", len(question.by)), question.by, strict=True):
            if name not in question.bins:
                _check_collation(rows.to_native(), short, name)
        if question.one_cell != "first" or backend_of(frame) not in _ORDER_BY_LANGUAGE:
            return super()._counted(rows, question, frame, doubts)
        # Keys are ordered as well, and are bytes until they are here.
        native = rows.to_native()
        texts = {name: name for name in native.columns if name[0] in "bo" and _is_text(native, name)}
        answer = super()._counted(nw.from_native(_with_bytes(native, texts)).lazy(), question, frame, doubts)
        for place, name in enumerate(answer.column_names):
            if name in texts:
                answer = answer.set_column(place, name, answer[name].cast("string"))
        return answer

    def _tallied(self, rows: nw.LazyFrame[Any], question: Selection, frame: Any, doubts: Doubts) -> Tally:
        alone = len(question.unit) == 1 and not question.everybody and not doubts.texts
        if not alone or backend_of(rows.to_native()) not in _ORDER_BY_LANGUAGE:
            return super()._tallied(rows, question, frame, doubts)
        # Numbers are sorted there in less time than they are grouped, and text in more.
        table = looked_at(rows, doubts).to_native()
        satisfying, looks = table.u0.nunique(where=table.hit), {name: table[name].any() for name in doubted(doubts)}
        answer = table.aggregate(satisfying=satisfying, missing_unit=table.u0.isnull().any(), **looks)
        return self._tally_of(self._collected(nw.from_native(answer).lazy()), rows, question, doubts)

    def _collected(self, query: nw.LazyFrame[Any]) -> Any:
        _check_own_functions(query.to_native())
        return super()._collected(query)

    def _marked(self, frame: Any, where: Any, name: str) -> Any:
        import ibis

        if isinstance(where, (ibis.Deferred, ibis.ir.BooleanValue)):
            return frame.mutate(**{name: where})
        raise wrong_where(where, "a column name, a query string or an expression of Ibis for this table")


def _check_own_functions(table: Any) -> None:
    """Refuse a query that calls what has the name of a function of its backend, and may be another: a `ConfigError`."""
    name = backend_of(table)
    if name not in _SHADOWING:
        return
    backend = table.get_backend()
    # Temporary macros are those of one connection.
    with nullcontext(backend.con) if name == "duckdb" else backend.begin() as cursor:
        shadowing = {function for function, *_ in cursor.execute(_SHADOWING[name]).fetchall()}
    if shadowing:
        called = {*re.findall(r"(\w+)\(", str(backend.compile(table)).lower()), *_UNWRITTEN}
        refuse_shadowed(function for function in shadowing if function in called or not function.isidentifier())


def _check_collation(table: Any, short: str, name: str) -> None:
    """Refuse a by-column of text that takes two spellings for one, by its collation: one person's would name a cell.

    No row is read: a column's type and collation go with its largest value among none.
    """
    backend = backend_of(table)
    if not _is_text(table, short) or backend in _COMPARE_BYTES:
        return
    import ibis

    spellings = ("a", "A", "a-", *(["á"] if backend == "duckdb" else []))  # not every encoding has it
    nothing = table.filter(ibis.literal(False)).select(spelling=table[short])
    missing = nothing.aggregate(key=nothing.spelling.max())  # one row
    keys = [ibis.coalesce(missing.key, ibis.literal(text, missing.key.type())) for text in spellings]
    texts = ibis.union(nothing, *(missing.select(spelling=key) for key in keys), distinct=True)
    if texts.count().to_pyarrow().as_py() < len(spellings):
        raise ConfigError(
            f"by column {name!r} has a type or a collation that takes several spellings for one, and one person's "
            f"spelling would name a cell: compare it by its bytes, in a view or a query of the database (PostgreSQL: "
            f'CAST({name} AS text) COLLATE "C"; DuckDB: {name} COLLATE C; MySQL: {name} COLLATE utf8mb4_bin).'
        )


def _is_null(kind: Any) -> bool:
    """Return whether a column has no type and no value; the DuckDB backend does not know that type, but names it."""
    return bool(kind.is_null()) or str(getattr(kind, "raw_type", "")).strip('"') == "NULL"


def _is_text(table: Any, name: str) -> bool:
    return name in table.columns and bool(table[name].type().is_string())


def _with_bytes(table: Any, texts: Mapping[str, str]) -> Any:
    """Return a table with columns of the bytes of these texts, which PostgreSQL orders by code points."""
    import ibis

    signature = (("string", "string"), "binary")
    convert_to = ibis.udf.scalar.builtin(lambda text, encoding: None, name="convert_to", signature=signature)
    return table.mutate(**{name: convert_to(table[text], "UTF8") for name, text in texts.items()}) if texts else table


#: Nothing is written: not to the file, and not beside it what does not fit into memory.
_QUIET: Mapping[str, Mapping[str, object]] = {"duckdb": {"read_only": True, "temp_directory": ""}}
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31)
#: Between them no moment of a day, in any zone, lies outside of Python's years.
_EDGES = date(1, 1, 4), date(9999, 12, 27)
_CHECK = "check the names of tables and columns, and that source.query is one SELECT that can be read to its end"
_FIXES = {"42501": "its user may not read it; grant SELECT on what is read", "": _CHECK}


class IbisSource(Source):
    """A table or a query of a database that Ibis connects to, open for reading until `close`; see `Source`.

    Each question is one statement. In PostgreSQL, and of a DuckDB file, all see one state of the data. Raises
    `ConfigError` if Ibis or the database's client is not installed, the database refuses, or there is no such table or
    query; `TemporaryError` if the database cannot be reached, or is locked.
    """

    def __init__(self, table: IbisSourceTable, needs: Needs) -> None:
        self._table = table
        self._backend: Any = None
        try:
            self._rows = self.guarded(self._open)
            schema = self._rows.schema()
            check_unique(schema.names)
            self.columns: Mapping[str, Kind] = {name: _kind(kind) for name, kind in schema.items()}
            self._needed = needs.of(self.columns)
            self._check(column for key, column in needs.declared if key != "period.column")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """See `Source.close`."""
        with suppress(Exception):  # it may be gone, and whatever is said of that does not matter any more
            if self._backend is not None:
                self._backend.disconnect()

    def is_one_state(self) -> bool:
        """See `Source.is_one_state`; in other databases each question is a statement of its own."""
        return self._table.scheme == "postgres"

    def interrupt(self) -> None:
        """See `Source.interrupt`; where the database's client can."""
        connection = getattr(self._backend, "con", None)
        for name in ("interrupt", "cancel"):  # DuckDB's, PostgreSQL's
            if callable(stop := getattr(connection, name, None)):
                stop()

    def rows(self, period: PeriodTable, first: date, last: date, columns: Collection[str] = ()) -> Any:
        """See `Source.rows`."""
        import ibis

        self._check(columns)
        chosen, selected = self._rows.filter(self._within(period, first, last)), {}
        for name in (name for name in self.columns if name in {*columns, *self._needed}):
            column, kind = chosen[name], self.columns[name]
            if kind in DAYS:  # infinity, and years that have no name in Python, are no values
                plain = column.cast("timestamp('UTC')") if kind == "instant" else column
                selected[name] = ibis.ifelse(_is_named(column, kind), plain, ibis.null())
            elif kind != "other":
                selected[name] = column
        return chosen.select(**selected)

    def newest(self, period: PeriodTable, column: str) -> date | None:
        """See `Source.newest`."""
        kind = newest_kind(self.columns, column, period)
        values = self._rows[column]
        named = self._rows.filter(_is_named(values, kind))
        newest: date | None = self.guarded(lambda: named[column].max().to_pyarrow().as_py())
        if not isinstance(newest, datetime):
            return newest
        if kind != "instant":
            return newest.date()
        zone = str(period.time_zone)
        day = newest.astimezone(ZoneInfo(zone)).date()
        # Where clocks have just gone back over midnight, an earlier moment can be of a later day.
        later = [span for span in moments(day + timedelta(1), day + timedelta(1), zone) if span[0] <= newest]
        of_later = later and self.guarded(lambda: self._rows.filter(_in(values, later)).count().to_pyarrow().as_py())
        return day + timedelta(1) if of_later else day

    def pandas(self, period: PeriodTable, day: date, columns: Sequence[str]) -> pd.DataFrame:
        """Refuse: no row leaves the database."""
        raise ConfigError(self._table.rows_stay)

    def _within(self, period: PeriodTable, first: date, last: date) -> Any:
        """Return whether a row is of these days."""
        kind = period_kind(self.columns, period)
        column = self._rows[period.column]
        if kind == "date":
            return column.between(first, last)
        first, last = max(first, _EDGES[0]), min(last, _EDGES[1])
        if kind == "instant":
            return _in(column, moments(first, last, str(period.time_zone)))
        return _in(column, [(datetime.combine(first, time()), datetime.combine(last, time()) + timedelta(1))])

    def _check(self, columns: Iterable[str]) -> None:
        """Refuse columns that cannot be counted."""
        for column in columns:
            if self.columns.get(column) == "other":
                raise ConfigError(
                    f"column {column!r} has a type that a job cannot read; cast it in source.query, or in a view: "
                    f"SELECT …, CAST({column} AS VARCHAR) AS {column}, or AS DECIMAL(18, 2)."
                )

    def _open(self) -> Any:
        """Connect, and return the table or the query."""
        import ibis

        scheme = self._table.scheme
        self._backend = ibis.connect(self._table.ibis, **_QUIET.get(scheme, {}))
        if self._backend.name == "postgres":
            _in_one_transaction(self._backend.con)
        if self._table.query is None:
            *places, name = str(self._table.table).split(".")
            return self._backend.table(name, database=(places[0] if len(places) == 1 else tuple(places) or None))
        import sqlglot

        statements = sqlglot.parse(self._table.query, read=self._backend.dialect)
        if len(statements) != 1 or not isinstance(statements[0], sqlglot.exp.Query):
            raise ConfigError(f"source.query must be one SELECT statement, as {scheme} writes it.")
        return self._backend.sql(self._table.query, schema=_described(self._backend, self._table.query))

    def guarded(self, question: Callable[[], Answer]) -> Answer:
        """See `Source.guarded`; what the database says could hold the address, too."""
        name, scheme = self._table.public_name, self._table.scheme
        problem: PkdpError
        try:
            import ibis  # noqa: F401 (that it is there)
        except ImportError:
            raise ConfigError(
                f"a source that Ibis connects to needs Ibis: {INSTALLED.format('ibis')}, and the database's own "
                f'client: pip install "ibis-framework[{scheme}]".'
            ) from None
        try:
            return question()
        except PkdpError as error:
            problem = error
        except ImportError:
            problem = ConfigError(f'source {name!r} needs its client: pip install "ibis-framework[{scheme}]".')
        except Exception as error:
            if hasattr(error, "sqlstate"):
                problem = refusal(f"the source {name!r}", error, _FIXES)
            elif "Could not set lock" in str(error):
                problem = TemporaryError(f"source {name!r} is in use by something that may write to it; run again.")
            elif "Don't know how to connect" in str(error):
                problem = ConfigError(f"source.ibis: Ibis has no database {scheme!r}; correct the address.")
            else:
                problem = ConfigError(
                    f"source {name!r} cannot be used ({type(error).__name__}): check the address; {_CHECK}."
                )
        raise problem


def _in_one_transaction(connection: Any) -> None:
    """Let all that is asked of PostgreSQL see one state, and write nothing; what Ibis begins is a part of it."""
    from psycopg import IsolationLevel

    connection.autocommit, connection.read_only = False, True
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


def _described(backend: Any, query: str) -> Mapping[str, Any] | None:
    """Return the types of a query's columns, None where Ibis finds them out.

    Ibis 12 does not with DuckDB 2; in PostgreSQL it makes a view, which a reader may not.
    """
    described: list[Any]
    if backend.name == "duckdb":
        described = backend.con.execute(f"DESCRIBE {query}").fetchall()
    elif backend.name == "postgres":
        with backend.con.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}\n) AS pkdp_rows LIMIT 0")
            described = [(column.name, column.type_display) for column in cursor.description]
    else:
        return None
    # A type of the database's own, such as an enumeration, has a number there, and is read as text.
    types = {name: "text" if kind.isdigit() else kind for name, kind, *_ in described}
    check_unique([name for name, *_ in described])
    return {name: backend.compiler.type_mapper.from_string(kind) for name, kind in types.items()}


def moments(first: date, last: date, zone: str) -> list[tuple[datetime, datetime]]:
    """Return when clocks of a zone show these days, as spans of UTC without their ends.

    Where clocks go back over midnight, a day has two parts.
    """
    info = ZoneInfo(zone)

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(info).utcoffset() or timedelta()

    def changed(since: datetime, seconds: int) -> bool:
        return offset(since + timedelta(seconds=seconds)) != offset(since)

    instant = datetime.combine(first, time(), UTC) - timedelta(2)
    end, cuts = datetime.combine(last, time(), UTC) + timedelta(3), [instant]
    while instant < end:
        after = instant + timedelta(hours=1)
        if offset(instant) != offset(after):  # when exactly, to a second
            cuts.append(instant + timedelta(seconds=bisect_left(range(3600), True, key=partial(changed, instant))))
        instant = after
    spans: list[tuple[datetime, datetime]] = []
    for start, stop in pairwise([*cuts, end]):
        shift = offset(start)
        begin = max(start, datetime.combine(first, time(), UTC) - shift)
        until = min(stop, datetime.combine(last, time(), UTC) + timedelta(1) - shift)
        if begin < until and spans and spans[-1][1] == begin:
            spans[-1] = (spans[-1][0], until)
        elif begin < until:
            spans.append((begin, until))
    return spans


def _in(column: Any, spans: Collection[tuple[datetime, datetime]]) -> Any:
    """Return whether a column lies in one of these spans."""
    import ibis

    return ibis.or_(*((column >= ibis.literal(begin)) & (column < ibis.literal(end)) for begin, end in spans))


def _is_named(column: Any, kind: Kind) -> Any:
    """Return whether a column of days holds one that has a name in Python."""
    if kind == "date":
        return column.between(_FIRST.date(), _LAST.date())
    zone = UTC if kind == "instant" else None
    return _in(column, [(_FIRST.replace(tzinfo=zone), _LAST.replace(tzinfo=zone))])


def _kind(kind: Any) -> Kind:
    """Return what a column of a type of Ibis holds; "other" where it cannot be counted."""
    if kind.is_timestamp():
        return "timestamp" if kind.timezone is None else "instant"
    if kind.is_decimal():
        return "other" if kind.precision is None or kind.scale is None else "number"
    plain: Mapping[Kind, bool] = {
        "date": kind.is_date(),
        "text": kind.is_string() and not kind.is_json(),
        "boolean": kind.is_boolean(),
        "number": kind.is_integer(),
        "real": kind.is_floating(),
    }
    return next((name for name, is_it in plain.items() if is_it), "other")
