"""The operators under audit: the real ways to publish, each given frames of its engine and looked at from outside."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.audit.cases import Case
from pkdp_pipeline.model.mechanisms import GeometricNoise, Mechanism, mechanism_name, noised_below

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.releases.release import Release

SQL = "sql"
"""DuckDB's macros: no frame is given, a statement is run."""


@cache
def _connection() -> Any:
    return import_module("duckdb").connect()


@cache
def _session() -> Any:
    return import_module("pyspark.sql").SparkSession.builder.master("local[1]").getOrCreate()


_MAKERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "pandas": ("pandas", lambda frame: frame),
        "duckdb": ("duckdb", lambda frame: _connection().from_df(frame)),
        SQL: ("duckdb", lambda frame: frame),
        "polars": ("polars", lambda frame: import_module("polars").from_pandas(frame)),
        "pyarrow": ("pyarrow", lambda frame: import_module("pyarrow").Table.from_pandas(frame, preserve_index=False)),
        "ibis": ("ibis", lambda frame: import_module("ibis").memtable(frame.reset_index(drop=True))),
        "spark": ("pyspark", lambda frame: _session().createDataFrame(frame.astype(object).where(frame.notna(), None))),
    }
)

STANDARD = ("pandas", "duckdb", SQL, "polars", "pyarrow")
"""The engines of a battery where none is named; the others take long to start."""
ENGINES = (*STANDARD, "ibis", "spark")

PACE: Mapping[str, float] = MappingProxyType({"duckdb": 0.4, "pyarrow": 0.15, SQL: 0.07, "ibis": 0.05, "spark": 0.05})
"""Of a battery, slower engines get this share of the samples; what differs between engines is only how they count."""


def installed(engines: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of `engines` whose package is there."""
    return tuple(name for name in engines if find_spec(_MAKERS[name][0]) is not None)


def check_engine(engine: str) -> str:
    """Return the name of an engine, if it is one and installed."""
    if engine not in ENGINES:
        raise ArgumentError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
    if not installed((engine,)):
        raise ArgumentError(f"engine {engine!r} needs the package {_MAKERS[engine][0]}; install it.")
    return engine


_DAY = "2020-01-{:02d}"
_UNIT = "person"

HIDDEN = None
"""The count of a row that is there, and whose number is not."""

_HEAD = re.compile(r'"(head|reading)":\s*"[0-9a-f]*"')
_ID = re.compile(r"\b[0-9a-f]{64}\b")
_OURS = (b"pkdp.certificate", b"pkdp.release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Everything that one publication shows.

    Attributes
    ----------
    rows : tuple
        The rows in their order: the keys of each, then its count, `HIDDEN` where it is suppressed.
    exact : tuple of bool or None
        Of each row, whether its count is marked as exact; empty where none is marked.
    form : tuple
        Columns, dtypes, index, attributes, the file's own description, the certificate.
    said : tuple of str
        The error, if there is one, with its type; warnings, log records and whatever was printed.
    digest : str
        Of the file's bytes, where equal public content has equal bytes.
    """

    rows: tuple[tuple[Any, ...], ...] = ()
    exact: tuple[bool | None, ...] = ()
    form: tuple[Any, ...] = ()
    said: tuple[str, ...] = ()
    digest: str = ""


class _Recorder(logging.Handler):
    """Writes down what is logged."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.NOTSET)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        # Ids differ with every draw, and are looked at in what is shown.
        self._said.append(f"log {record.name} {record.levelname}: {_ID.sub('', record.getMessage())}")


def observed(publish: Callable[[], Output]) -> Output:
    """Return what `publish` shows, with everything that is said meanwhile; an error is shown like anything else."""
    shown, failed, said, out, err = Output(), list[str](), list[str](), io.StringIO(), io.StringIO()
    recorder, ours, root = _Recorder(said), logging.getLogger("pkdp_pipeline"), logging.getLogger()
    level = ours.level
    root.addHandler(recorder)
    ours.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            shown = publish()
    except Exception as error:
        # The operator is a black box: whatever it raises, of ours or not, is seen by the one who asked.
        failed = [f"error {type(error).__name__}: {error}"]
    finally:
        root.removeHandler(recorder)
        ours.setLevel(level)
    said += [f"warning {warning.category.__name__}: {warning.message}" for warning in caught]
    said += [f"printed: {text}" for text in (out.getvalue(), err.getvalue()) if text]
    return replace(shown, said=(*shown.said, *said, *failed))


def _of_release(release: Release, *, sealed: bool = True) -> Output:
    """Return what a release shows.

    `sealed`: whether equal public content has equal bytes. With a ledger it has not: the certificate names the head of
    a chain that is different every time.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, content = release.table, release.to_bytes()
    index, file = table.index, pq.read_metadata(pa.BufferReader(content))
    plain = type(index).__name__ == "RangeIndex" and list(index) == list(range(len(index)))
    form = (
        tuple(table.columns),
        tuple(map(str, table.dtypes)),
        "plain" if plain else tuple(map(str, index)),
        tuple(map(str, index.names)),
        repr(sorted(table.attrs.items())),
        # What the file says beside the table and the certificate; the schema's first line is an address in memory.
        file.num_row_groups,
        str(file.schema).partition("\n")[2],
        tuple(sorted((key, value) for key, value in (file.metadata or {}).items() if key not in _OURS)),
        _HEAD.sub("", release.certificate.to_json()),
        release.replayed,
        repr(release),
    )
    columns = (table.iloc[:, place].tolist() for place in range(table.shape[1]))
    values = (tuple(None if pd.isna(value) else value for value in row) for row in zip(*columns, strict=True))
    rows, exact = _apart(values, release.certificate.mechanism)
    return Output(rows=rows, exact=exact, form=form, digest=hashlib.sha256(content).hexdigest() if sealed else "")


def _apart(
    rows: Iterable[tuple[Any, ...]], mechanism: Mechanism
) -> tuple[tuple[tuple[Any, ...], ...], tuple[bool | None, ...]]:
    """Return the rows of a public table up to their counts, and the marks of which are exact."""
    listed = tuple(rows)
    if not noised_below(mechanism):
        return listed, ()
    return tuple(row[:-1] for row in listed), tuple(row[-1] for row in listed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameOperator:
    """``df.pkdp`` for pandas, ``pkdp.count``, ``pkdp.histogram`` and ``pkdp.sum`` for other frames."""

    engine: str
    case: Case
    keys: Sequence[tuple[Any, ...]]

    def outputs(self, frames: Sequence[pd.DataFrame]) -> tuple[Output, ...]:
        """Return everything that is seen when these frames are published, one for each day."""
        with self._calls(frames) as (_, calls):
            sealed = self.case.scenario == "once"
            return tuple(observed(partial(self._shown, *call, sealed=sealed)) for call in calls)

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """Return the certificate of the release, published for that, or the total of the ledger with all of them."""
        with self._calls(frames) as (ledger, calls):
            releases = [self._release(*call) for call in calls]
            return releases[0].certificate if ledger is None else ledger.total()

    @contextlib.contextmanager
    def _calls(
        self, frames: Sequence[pd.DataFrame]
    ) -> Iterator[tuple[Ledger | None, list[tuple[pd.DataFrame, dict[str, Any]]]]]:
        """Open a ledger where the scenario has one; with it, what is published: frames and arguments about a ledger."""
        from pkdp_pipeline.ledger import Ledger

        scenario = self.case.scenario
        if scenario == "once":
            yield None, [(frames[0], {})]
            return
        with Ledger.open(":memory:", dataset="audit", evidence=self.case.evidence) as ledger:
            days = range(len(frames) if scenario == "days" else 2)
            given = [{"ledger": ledger, "period": _DAY.format(day + 1 if scenario == "days" else 1)} for day in days]
            if scenario == "revised":
                given[1]["revise"] = True
            yield ledger, [(frames[min(day, len(frames) - 1)], given[day]) for day in days]

    def _shown(self, frame: pd.DataFrame, given: dict[str, Any], *, sealed: bool) -> Output:
        return _of_release(self._release(frame, given), sealed=sealed)

    def _release(self, frame: pd.DataFrame, ledger: dict[str, Any]) -> Release:
        from pkdp_pipeline.releases import accessor
        from pkdp_pipeline.releases.publish import Publication, publish

        case = self.case
        if case.layout.request is not None:
            source = partial(_MAKERS[self.engine][1], frame)
            publication = Publication(
                question=case.layout.request, attacker=case.attacker, alone=case.alone, target=case.target
            )
            return publish(source, publication)
        # What promises little is audited too.
        given = {**case.arguments(self.keys), "unit": _UNIT, "attacker": case.attacker, "target": None, **ledger}
        name = mechanism_name(case.mechanism)
        if self.engine == "pandas":
            release: Release = getattr(frame.pkdp, name)(**given)
        else:
            release = getattr(accessor, name)(_MAKERS[self.engine][1](frame), **given)
        return release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SqlOperator:
    """The macros ``pkdp_count``, ``pkdp_histogram`` and ``pkdp_sum`` on a DuckDB connection."""

    case: Case
    keys: Sequence[tuple[Any, ...]]

    def outputs(self, frames: Sequence[pd.DataFrame]) -> tuple[Output, ...]:
        """Return everything that is seen when these frames are published, one for each day."""
        with self._installed(frames[0]) as connection:
            return tuple(
                observed(lambda: self._selected(connection)) for _ in range(1 if self.case.scenario == "once" else 2)
            )

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """Return the certificate of the release, published for that, from the connection's own ledger."""
        with self._installed(frames[0]) as connection:
            self._selected(connection)
            ((text,),) = connection.execute("SELECT certificate FROM pkdp_releases()").fetchall()
        return Certificate.from_json(text)

    @contextlib.contextmanager
    def _installed(self, frame: pd.DataFrame) -> Iterator[Any]:
        import duckdb

        from pkdp_pipeline.ledger import Ledger
        from pkdp_pipeline.sql.curator import install

        rules = {name: self.case.options[name] for name in _OF_INSTALLING if name in self.case.options}
        with duckdb.connect() as connection, Ledger.open(":memory:", dataset="audit", target=None) as ledger:
            connection.register("given", frame)
            connection.execute("CREATE TABLE people AS FROM given")
            attacker, period = self.case.attacker, _DAY.format(1)
            install(connection, attacker=attacker, unit=_UNIT, ledger=ledger, period=period, **rules)
            yield connection

    def _selected(self, connection: Any) -> Output:
        given = {
            {"where": "filter"}.get(name, name): value
            for name, value in self.case.arguments(self.keys).items()
            if value is not None and name not in (*_OF_INSTALLING, "by")
        }
        name = mechanism_name(self.case.mechanism)
        own = {"count": "", "histogram": ", 'cell'", "sum": ", 'visits', by := 'cell'"}[name]
        arguments = "".join(f", {name} := {_sql(value)}" for name, value in given.items() if name != "column")
        result = connection.execute(f"FROM pkdp_{name}('people'{own}{arguments})")
        names, types = (tuple(str(column[place]) for column in result.description) for place in (0, 1))
        rows, exact = _apart(map(tuple, result.fetchall()), self.case.mechanism)
        return Output(rows=rows, exact=exact, form=(names, *types))


Operator = FrameOperator | SqlOperator
"""A way to publish."""

_OF_INSTALLING = ("missing_unit", "one_cell", "order_by")


def _sql(value: Any) -> str:
    if isinstance(value, GeometricNoise):
        return repr(value.epsilon)
    if isinstance(value, list):
        return f"[{', '.join(map(_sql, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value)
