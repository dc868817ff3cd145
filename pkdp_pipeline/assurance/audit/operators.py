"""The operators under audit: the real ways to publish, each given frames of its engine and looked at from outside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from pkdp_pipeline.assurance.audit.cases import Case
from pkdp_pipeline.assurance.audit.observing import Seen, observed, of_release, of_rows
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.mechanisms import GeometricNoise

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.releases.release import Release

__all__ = [
    "ENGINES",
    "PACE",
    "SQL",
    "STANDARD",
    "FrameOperator",
    "Operator",
    "SqlOperator",
    "check_engine",
    "engine_frame",
    "installed",
]

SQL = "sql"
"""DuckDB's macros: no frame is given, a statement is run."""


def _relation(frame: pd.DataFrame) -> Any:
    return _connection().from_df(frame)


@cache
def _connection() -> Any:
    import duckdb

    return duckdb.connect()


def _polars(frame: pd.DataFrame) -> Any:
    import polars

    return polars.from_pandas(frame)


def _arrow(frame: pd.DataFrame) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def _ibis(frame: pd.DataFrame) -> Any:
    import ibis

    return ibis.memtable(frame.reset_index(drop=True))


def _spark(frame: pd.DataFrame) -> Any:
    return _session().createDataFrame(frame.astype(object).where(frame.notna(), None))


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[1]").getOrCreate()


_MAKERS: Mapping[str, tuple[str, Callable[[pd.DataFrame], Any]]] = MappingProxyType(
    {
        "pandas": ("pandas", lambda frame: frame),
        "duckdb": ("duckdb", _relation),
        "polars": ("polars", _polars),
        "pyarrow": ("pyarrow", _arrow),
        "ibis": ("ibis", _ibis),
        "spark": ("pyspark", _spark),
    }
)

STANDARD = ("pandas", "duckdb", SQL, "polars", "pyarrow")
"""What a battery audits where no engine is named; the others take long to start."""
ENGINES = (*STANDARD, "ibis", "spark")

PACE: Mapping[str, float] = MappingProxyType({"duckdb": 0.4, "pyarrow": 0.15, SQL: 0.07, "ibis": 0.05, "spark": 0.05})
"""Of a battery, slower engines get this share of the samples; what differs between engines is only how they count."""


def installed(engines: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of `engines` whose package is there."""
    return tuple(name for name in engines if find_spec("duckdb" if name == SQL else _MAKERS[name][0]) is not None)


def check_engine(engine: str) -> str:
    """Return the name of an engine, if it is one and installed.

    Raises
    ------
    ArgumentError
        If it is not.
    """
    if engine not in ENGINES:
        raise ArgumentError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
    if not installed((engine,)):
        raise ArgumentError(f"engine {engine!r} needs the package {_MAKERS[engine][0]}; install it.")
    return engine


def engine_frame(engine: str, frame: pd.DataFrame) -> Any:
    """Return a frame of `engine` with the rows of a pandas frame, in their order."""
    return _MAKERS[engine][1](frame)


_DAY = "2020-01-{:02d}"
_UNIT = "person"


class Operator(Protocol):
    """A way to publish."""

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """Return everything that is seen when these frames are published, one for each day."""
        ...

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """Return what is certified about it; `frames` are published for that."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameOperator:
    """``df.pkdp`` for pandas, ``pkdp.count`` and ``pkdp.histogram`` for other frames."""

    engine: str
    case: Case
    keys: Sequence[tuple[Any, ...]]

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """See `Operator.seen`."""
        if self.case.scenario == "once":
            return (observed(lambda: of_release(self._release(frames[0]))),)
        with self._ledger() as ledger:
            return tuple(observed(partial(self._logged, *call)) for call in self._calls(frames, ledger))

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """See `Operator.certificate`: the release's own, or the total of the ledger that holds all of them."""
        if self.case.scenario == "once":
            return self._release(frames[0]).certificate
        with self._ledger() as ledger:
            for given, frame in self._calls(frames, ledger):
                self._release(frame, **given)
            return ledger.total()

    def _calls(self, frames: Sequence[pd.DataFrame], ledger: Ledger) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        days = len(frames) if self.case.scenario == "days" else 2
        for day in range(days):
            period = _DAY.format(day + 1 if self.case.scenario == "days" else 1)
            again = {"revise": True} if day and self.case.scenario == "revised" else {}
            yield {"ledger": ledger, "period": period, **again}, frames[min(day, len(frames) - 1)]

    def _logged(self, given: dict[str, Any], frame: pd.DataFrame) -> Seen:
        return of_release(self._release(frame, **given), sealed=False)

    def _ledger(self) -> contextlib.AbstractContextManager[Ledger]:
        from pkdp_pipeline.ledger import Ledger

        return Ledger.open(":memory:", dataset="audit", evidence=self.case.evidence)

    def _release(self, frame: pd.DataFrame, **ledger: Any) -> Release:
        from pkdp_pipeline.releases.publish import count, histogram, publish

        case = self.case
        if case.request is not None:
            source = partial(engine_frame, self.engine, frame)
            return publish(source, case.request, attacker=case.attacker, alone=case.alone, target=case.target)
        # What promises little is audited too.
        given = {**case.arguments(self.keys), "unit": _UNIT, "attacker": case.attacker, "target": None, **ledger}
        if self.engine == "pandas":
            accessor: Any = frame.pkdp
            release: Release = (accessor.count if case.is_count else accessor.histogram)(**given)
            return release
        asked = engine_frame(self.engine, frame)
        return count(asked, **given) if case.is_count else histogram(asked, **given)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SqlOperator:
    """The macros ``pkdp_count`` and ``pkdp_histogram`` on a DuckDB connection."""

    case: Case
    keys: Sequence[tuple[Any, ...]]

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """See `Operator.seen`."""
        with self._installed(frames[0]) as connection:
            return tuple(
                observed(lambda: self._selected(connection)) for _ in range(1 if self.case.scenario == "once" else 2)
            )

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """See `Operator.certificate`: that of the release in the connection's own ledger."""
        with self._installed(frames[0]) as connection:
            self._selected(connection)
            ((text,),) = connection.execute("SELECT certificate FROM pkdp_releases()").fetchall()
        return Certificate.from_json(text)

    @contextlib.contextmanager
    def _installed(self, frame: pd.DataFrame) -> Iterator[Any]:
        import duckdb

        from pkdp_pipeline.duckdb import install
        from pkdp_pipeline.ledger import Ledger

        rules = {name: self.case.options[name] for name in _OF_INSTALLING if name in self.case.options}
        with duckdb.connect() as connection, Ledger.open(":memory:", dataset="audit", target=None) as ledger:
            connection.register("given", frame)
            connection.execute("CREATE TABLE people AS FROM given")
            attacker, period = self.case.attacker, _DAY.format(1)
            install(connection, attacker=attacker, unit=_UNIT, ledger=ledger, period=period, **rules)
            yield connection

    def _selected(self, connection: Any) -> Seen:
        given = {
            {"where": "filter"}.get(name, name): value
            for name, value in self.case.arguments(self.keys).items()
            if value is not None and name not in (*_OF_INSTALLING, "by")
        }
        macro = "pkdp_count('people'" if self.case.is_count else "pkdp_histogram('people', 'cell'"
        arguments = "".join(f", {name} := {_sql(value)}" for name, value in given.items())
        found = connection.execute(f"FROM {macro}{arguments})")
        columns = tuple(column[0] for column in found.description)
        return of_rows(columns, found.fetchall(), tuple(str(column[1]) for column in found.description))


_OF_INSTALLING = ("missing_unit", "one_cell", "order_by")


def _sql(value: Any) -> str:
    if isinstance(value, GeometricNoise):
        return repr(value.epsilon)
    if isinstance(value, list):
        return f"[{', '.join(map(_sql, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value)
