"""Question: what ``pkdp plan`` is asked, by flags, and the command that asks it again."""

from __future__ import annotations

import csv
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pkdp_pipeline.cli.options import attacker_flags, evidence_flags
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.plan.planning import PublicCounts
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.period import exactly

Kind = Literal["histogram", "count"]

SPREADS = ("even", "zipf")

_MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsFile:
    """A CSV of public counts: a header, a row for each cell, a column of whole numbers.

    `column`: the column of the counts; without it the one that is called ``count``.
    """

    path: str
    column: str | None = None

    @property
    def options(self) -> list[str]:
        """Return the flags that name it."""
        return ["--public-counts", self.path, *(["--count-column", self.column] if self.column is not None else [])]

    def has(self, column: str) -> bool:
        """Return whether the header has a column; a `ConfigError` where the file cannot be read."""
        return column in self._rows()[0]

    def read(self) -> PublicCounts:
        """Return the counts.

        Raises `ConfigError` if the file cannot be read, or does not hold one count for each cell. Messages name columns
        and rules, and no value: somebody may have given a file that is not public after all.
        """
        header, *rows = self._rows()
        wanted = "count" if self.column is None else self.column
        if header.count(wanted) != 1:
            # A first line of values is no header; values are not repeated.
            several = "several columns" if wanted in header else "no column"
            raise self._refused(
                f"has {several} {wanted!r}: name the column of the counts with --count-column; {_CELLS}"
            )
        if not rows:
            raise self._refused(f"has no rows below its header: {_CELLS}")
        if len(rows) > _MAX_ROWS:
            raise self._refused(f"has more than {_MAX_ROWS:,} rows; give the counts of fewer cells")
        if any(len(row) != len(header) for row in rows):
            raise self._refused("has rows with more or fewer fields than its header has columns")
        place = header.index(wanted)
        if len(header) > 1 and len({(*row[:place], *row[place + 1 :]) for row in rows}) < len(rows):
            raise self._refused(f"has several rows for the same values of its other columns: {_CELLS}")
        texts = [row[place].strip().removesuffix(".0") for row in rows]
        if not all(re.fullmatch(r"[0-9]{1,15}", text) for text in texts):
            raise self._refused(
                f"has a value of {wanted!r} that is no count: every one must be a whole number of at least 0; where "
                "one is suppressed, write what is assumed"
            )
        counts = tuple(map(int, texts))
        if len(counts) > 1 and max(counts) <= 1:
            raise self._refused(f"has no value of {wanted!r} above 1, as a file with one row for each person: {_CELLS}")
        return PublicCounts(counts=counts, source=f"{Path(self.path).name}, declared public")

    def _rows(self) -> list[list[str]]:
        """Return the header and the rows that are not empty."""
        try:
            text = Path(self.path).read_text(encoding="utf-8-sig")
            first = text.partition("\n")[0]
            rows = [*csv.reader(io.StringIO(text), delimiter=max(",;\t|", key=first.count))]
        except OSError as error:
            raise self._refused(f"cannot be read: {error.strerror or 'no such file'}") from None
        except UnicodeDecodeError:
            raise self._refused("is no text in UTF-8: give a CSV file") from None
        except csv.Error:
            raise self._refused("cannot be read as CSV") from None
        header = [name.strip() for name in rows[0]] if rows else []
        if not any(header):
            raise self._refused(f"is empty: {_CELLS}")
        return [header, *(row for row in rows[1:] if any(field.strip() for field in row))]

    def _refused(self, rule: str) -> ConfigError:
        return ConfigError(f"--public-counts {self.path} {rule}.")


_CELLS = (
    "it must have a header and one row for each cell, with the count of people in it, and not one row for each person "
    "or event"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Counts that are assumed: this many people, spread over this many cells.

    `spread`: all cells alike, or the cell of rank r in proportion to 1/r.
    """

    cells: int
    people: int
    spread: str = "even"

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= _MAX_ROWS:
            raise ArgumentError(f"--assumed-cells must be a whole number from 1 to {_MAX_ROWS:,}.")
        if self.people < 0:
            raise ArgumentError("--assumed-people must be a whole number, at least 0.")
        if self.spread not in SPREADS:
            raise ArgumentError(f"--assumed-spread must be one of {', '.join(SPREADS)}, got {self.spread!r}.")

    @property
    def options(self) -> list[str]:
        """Return the flags that name it."""
        spread = [] if self.spread == "even" else ["--assumed-spread", self.spread]
        # A count has one cell, and no flag for it.
        cells = ["--assumed-cells", str(self.cells)] if self.cells > 1 else []
        return [*cells, "--assumed-people", str(self.people), *spread]

    def read(self) -> PublicCounts:
        """Return the counts."""
        if self.cells == 1:
            people = "1 person" if self.people == 1 else f"{self.people} people"
            return PublicCounts(counts=(self.people,), source=f"the assumption of {people}")
        return PublicCounts.assumed(cells=self.cells, people=self.people, shape=self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The task of a plan.

    Parameters
    ----------
    kind : {"histogram", "count"}
    epsilon, delta : float
        The numbers that all releases together are to reach.
    protects : {"presence", "value"}
    counts : CountsFile or Assumed, optional
        Public expectations of the counts.
    noise : bool
        Whether noise is acceptable.
    declared_cells : bool
        Whether all cells of a histogram are known in advance; otherwise their names are taken from the data.
    cells_per_unit : int
        The most cells of a histogram that a person may be in.
    choice : int, optional
        Which of the choices is looked at closely, from 1.
    """

    kind: Kind
    attacker: AttackerModel
    epsilon: float
    delta: float
    protects: Literal["presence", "value"] = "presence"
    days: int = 1
    evidence: tuple[Evidence, ...] = ()
    counts: CountsFile | Assumed | None = None
    noise: bool = True
    declared_cells: bool = True
    cells_per_unit: int = 1
    choice: int | None = None

    @property
    def goal(self) -> dict[str, Any]:
        """The target, as keywords of the functions of `planning`."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "protects", "days", "evidence")}

    def command(self) -> str:
        """Return the command that asks this, to be pasted."""
        words = ["pkdp", "plan", self.kind, *attacker_flags(self.attacker)]
        words += [] if self.protects == "presence" else ["--protects", self.protects]
        words += [] if self.days == 1 else ["--days", str(self.days)]
        words += evidence_flags(self.evidence)
        words += ["--epsilon", exactly(self.epsilon), "--delta", exactly(self.delta)]
        words += [] if self.counts is None else self.counts.options
        words += [] if self.noise else ["--no-noise"]
        words += [] if self.declared_cells else ["--cells-from-data"]
        words += [] if self.cells_per_unit == 1 else ["--cells-per-unit", str(self.cells_per_unit)]
        words += [] if self.choice is None else ["--choice", str(self.choice)]
        return shlex.join(words)


def read_counts(
    public_counts: str | None,
    count_column: str | None,
    assumed_people: int | None,
    assumed_cells: int | None = None,
    assumed_spread: str = "even",
) -> CountsFile | Assumed | None:
    """Return by which counts the choices are judged, from the flags of these names."""
    if count_column is not None and public_counts is None:
        raise ArgumentError("--count-column names a column of the file of public counts: give --public-counts as well.")
    if public_counts is not None:
        if assumed_cells is not None or assumed_people is not None:
            raise ArgumentError("counts are either read or assumed: give --public-counts or --assumed-…, not both.")
        return CountsFile(path=public_counts, column=count_column)
    if assumed_people is None:
        if assumed_cells is None:
            return None
        raise ArgumentError(
            "--assumed-cells says over how many cells people are spread: give --assumed-people as well."
        )
    return Assumed(cells=1 if assumed_cells is None else assumed_cells, people=assumed_people, spread=assumed_spread)
