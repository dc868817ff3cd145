"""The operators under audit: the real ways to publish, each given frames and looked at from outside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pkdp_pipeline.assurance.audit.frames import engine_frame
from pkdp_pipeline.assurance.audit.observing import Seen, observed, of_release, of_rows
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Mechanism

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.releases.release import Release
    from pkdp_pipeline.releases.request import Request

__all__ = ["FrameOperator", "Operator", "Question", "Scenario", "SqlOperator"]

Scenario = Literal["once", "again", "revised", "days"]
"""Asked once; twice, with a ledger; twice, the second time as a revision; once for each of several days."""

_DAY = "2020-01-{:02d}"
UNIT = "person"


class Operator(Protocol):
    """A way to publish."""

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """Return everything that is seen when these frames are published, one for each day."""
        ...

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """Return what is certified about it; `frames` are published for that."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """What is asked of every frame.

    Parameters
    ----------
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}
    options : mapping
        Further arguments of `pkdp_pipeline.count` or `pkdp_pipeline.histogram`.
    request : Request, optional
        A job's, which is published as it is; then nothing else is read.
    alone : bool
        As of `publish`, for a request.
    """

    mechanism: Mechanism
    attacker: AttackerModel
    protects: str = "presence"
    options: Mapping[str, Any] = field(default_factory=dict)
    request: Request | None = None
    alone: bool = True

    @property
    def is_count(self) -> bool:
        """Whether one number is asked for."""
        return isinstance(self.mechanism, Count)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the call."""
        given = {"k": self.mechanism.k, "noise": self.mechanism.noise}
        given["release_threshold"] = self.mechanism.release_threshold
        if isinstance(self.mechanism, Count):
            # The number of everybody, or of those whom a filter keeps.
            asked = {"protects": "value"} if self.protects == "value" else {"where": "counted"}
            return {**given, "k_complement": self.mechanism.k_complement, **asked, **self.options}
        return {**given, "by": "cell", "protects": self.protects, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameOperator:
    """``df.pkdp`` for pandas, ``pkdp.count`` and ``pkdp.histogram`` for other frames."""

    engine: str
    question: Question
    scenario: Scenario = "once"
    evidence: Any = None

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """See `Operator.seen`."""
        if self.scenario == "once":
            return (observed(lambda: of_release(self._release(frames[0]))),)
        with self._ledger() as ledger:
            return tuple(observed(partial(self._logged, *call)) for call in self._calls(frames, ledger))

    def certificate(self, frames: Sequence[pd.DataFrame]) -> Certificate:
        """See `Operator.certificate`: the release's own, or the total of the ledger that holds all of them."""
        if self.scenario == "once":
            return self._release(frames[0]).certificate
        with self._ledger() as ledger:
            for given, frame in self._calls(frames, ledger):
                self._release(frame, **given)
            return ledger.total()

    def _calls(self, frames: Sequence[pd.DataFrame], ledger: Ledger) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        days = len(frames) if self.scenario == "days" else 2
        for day in range(days):
            period = _DAY.format(day + 1 if self.scenario == "days" else 1)
            again = {"revise": True} if day and self.scenario == "revised" else {}
            yield {"ledger": ledger, "period": period, **again}, frames[min(day, len(frames) - 1)]

    def _logged(self, given: dict[str, Any], frame: pd.DataFrame) -> Seen:
        return of_release(self._release(frame, **given), sealed=False)

    def _ledger(self) -> contextlib.AbstractContextManager[Ledger]:
        from pkdp_pipeline.ledger import Ledger

        return Ledger.open(":memory:", dataset="audit", evidence=self.evidence)

    def _release(self, frame: pd.DataFrame, **ledger: Any) -> Release:
        from pkdp_pipeline.releases.publish import count, histogram, publish

        request = self.question.request
        if request is not None:
            attacker, alone = self.question.attacker, self.question.alone
            return publish(lambda: engine_frame(self.engine, frame), request, attacker=attacker, alone=alone)
        # What promises little is audited too.
        given = {
            **self.question.arguments(),
            "unit": UNIT,
            "attacker": self.question.attacker,
            "target": None,
            **ledger,
        }
        if self.engine == "pandas":
            accessor: Any = frame.pkdp
            release: Release = (accessor.count if self.question.is_count else accessor.histogram)(**given)
            return release
        asked = engine_frame(self.engine, frame)
        return count(asked, **given) if self.question.is_count else histogram(asked, **given)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SqlOperator:
    """The macros ``pkdp_count`` and ``pkdp_histogram`` on a DuckDB connection."""

    question: Question
    scenario: Scenario = "once"

    def seen(self, frames: Sequence[pd.DataFrame]) -> tuple[Seen, ...]:
        """See `Operator.seen`."""
        with self._installed(frames[0]) as connection:
            return tuple(
                observed(lambda: self._selected(connection)) for _ in range(1 if self.scenario == "once" else 2)
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

        rules = {name: self.question.options[name] for name in _OF_INSTALLING if name in self.question.options}
        with duckdb.connect() as connection, Ledger.open(":memory:", dataset="audit", target=None) as ledger:
            connection.register("given", frame)
            connection.execute("CREATE TABLE people AS FROM given")
            attacker, period = self.question.attacker, _DAY.format(1)
            install(connection, attacker=attacker, unit=UNIT, ledger=ledger, period=period, **rules)
            yield connection

    def _selected(self, connection: Any) -> Seen:
        given = {
            {"where": "filter"}.get(name, name): value
            for name, value in self.question.arguments().items()
            if value is not None and name not in (*_OF_INSTALLING, "by")
        }
        macro = "pkdp_count('people'" if self.question.is_count else "pkdp_histogram('people', 'cell'"
        arguments = "".join(f", {name} := {_sql(value)}" for name, value in given.items())
        found = connection.execute(f"FROM {macro}{arguments})")
        columns = tuple(column[0] for column in found.description)
        return of_rows(columns, found.fetchall(), tuple(str(column[1]) for column in found.description))


_OF_INSTALLING = ("missing_unit", "one_cell", "order_by")


def _sql(value: Any) -> str:
    from pkdp_pipeline.model.mechanisms import GeometricNoise

    if isinstance(value, GeometricNoise):
        return repr(value.epsilon)
    if isinstance(value, list):
        return f"[{', '.join(map(_sql, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value)
