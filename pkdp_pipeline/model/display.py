"""Rules of display: what is shown of every published count, in multiples, bands, or drawn from a public table."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, ClassVar, Literal, get_args

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.wording import RARE, choice, whole_number, written
from pkdp_pipeline.plugins import view

Mode = Literal["nearest", "down", "midpoint"]

_MAX_BASE = 10**6
_MAX_TABLE_ROWS = 100_000
_SUM_TOLERANCE = 1e-9
"""The probabilities of a row may miss 1 by this much, as decimals do."""


class _Rule:
    """A rule of display as JSON has it, and in tables, where most show plain numbers."""

    __slots__ = ()
    key: ClassVar[str]

    def text(self, value: int) -> str:
        """Return what is read in a table for `value`."""
        return str(value)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        (_, first), *others = written(self).items()
        return {self.key: first, **dict(others)}


@dataclass(frozen=True, slots=True)
class Rounding(_Rule):
    """Counts are shown as multiples of `base`, or as midpoints between two of them.

    Parameters
    ----------
    base : int
        From 2 on.
    mode : {"nearest", "down", "midpoint"}, default "nearest"
        "nearest": the nearest multiple, halves up; "down": the multiple at or below; "midpoint": the middle of the
        counts from one multiple up to the next, ``base // 2`` above the multiple.

    Raises
    ------
    ArgumentError
        If `base` is not a whole number from 2 on, or `mode` another one.

    Notes
    -----
    The first count that is shown apart from 0 takes the place of `k`: `docs/mathematics.md`, theorem R.
    """

    key: ClassVar[str] = "rounding"

    base: int
    mode: Mode = field(default="nearest", metadata=RARE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _base("Rounding's base", self.base))
        choice("Rounding's mode", self.mode, get_args(Mode))

    @property
    def first_boundary(self) -> int:
        """The first count that is shown otherwise than the one before."""
        return -(-self.base // 2) if self.mode == "nearest" else self.base

    def shown(self, count: int) -> int:
        """Return the number that stands for `count`."""
        if self.mode == "nearest":
            return (2 * count + self.base) // (2 * self.base) * self.base
        return count // self.base * self.base + (self.base // 2 if self.mode == "midpoint" else 0)

    def interval(self, value: int) -> tuple[int, int | None]:
        """Return the smallest and the largest count that is shown as `value`."""
        below = {"nearest": self.base // 2, "down": 0, "midpoint": self.base // 2}[self.mode]
        return max(0, value - below), value - below + self.base - 1

    @property
    def words(self) -> str:
        """The words for it, after "shown"."""
        midpoint = f"as the middle of {self.base} counts, such as {self.shown(0)} for 0 to {self.base - 1}"
        return {"nearest": f"to the nearest {self.base}", "down": f"rounded down to {self.base}", "midpoint": midpoint}[
            self.mode
        ]


@dataclass(frozen=True, slots=True)
class Bands(_Rule):
    """Counts are shown in bands: "0–9", "10–19", …, "100 or more".

    Parameters
    ----------
    edges : sequence of int
        The first count of each band, from 0 on; the last band has no end. A table's `count` holds the first count of
        the band.

    Raises
    ------
    ArgumentError
        If the edges are not increasing whole numbers from 0 on, at least two.
    """

    key: ClassVar[str] = "bands"

    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        given: Any = self.edges
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ArgumentError("Bands must have the first count of each band: write pkdp.Bands([0, 10, 20, 50]).")
        edges = tuple(whole_number("each edge of Bands", edge, least=0) for edge in given)
        if len(edges) < 2 or edges[0] != 0 or any(first >= second for first, second in pairwise(edges)):
            raise ArgumentError(
                "Bands must begin with 0, and each edge must be larger than the one before, or bands overlap: write "
                "pkdp.Bands([0, 10, 20, 50])."
            )
        object.__setattr__(self, "edges", edges)

    @property
    def first_boundary(self) -> int:
        """The first count that is shown otherwise than the one before."""
        return self.edges[1]

    def shown(self, count: int) -> int:
        """Return the number that stands for `count`: the first of its band."""
        return self.edges[max(0, bisect_right(self.edges, count) - 1)]

    def interval(self, value: int) -> tuple[int, int | None]:
        """Return the smallest and the largest count that is shown as `value`."""
        after = [edge for edge in self.edges if edge > value]
        return value, after[0] - 1 if after else None

    def text(self, value: int) -> str:
        """Return what is read in a table for `value`."""
        _, most = self.interval(value)
        return f"{value} or more" if most is None else str(value) if most == value else f"{value}–{most}"

    @property
    def words(self) -> str:
        """The words for it, after "shown"."""
        return f"in the bands {', '.join(map(self.text, self.edges))}"


@dataclass(frozen=True, slots=True)
class RandomRounding(_Rule):
    """Counts are shown as a neighbouring multiple of `base`, drawn so that the mean is the count.

    Parameters
    ----------
    base : int
        From 2 on. The draw is made once for a release, from the system's source of randomness.

    Raises
    ------
    ArgumentError
        If `base` is not a whole number from 2 on.

    Notes
    -----
    Without `k` a count of 1 is shown as `base` with a chance of 1 in `base`, where a count of 0 never is: that is no
    promise. Behind `k` it is theorem A's: `docs/mathematics.md`, theorem R.
    """

    key: ClassVar[str] = "random_rounding"

    base: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _base("RandomRounding's base", self.base))

    @property
    def first_boundary(self) -> int:
        """The first count that is shown otherwise than the one before."""
        return 1

    def chances(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return what may stand for `count`, and how likely each is."""
        low, rest = count // self.base * self.base, count % self.base
        return ((low, 1.0),) if not rest else ((low, 1.0 - rest / self.base), (low + self.base, rest / self.base))

    def interval(self, value: int) -> tuple[int, int | None]:
        """Return the smallest and the largest count that is shown as `value`."""
        return max(0, value - self.base + 1), value + self.base - 1

    @property
    def words(self) -> str:
        """The words for it, after "shown"."""
        return f"as one of the neighbouring multiples of {self.base}, drawn at random"


@dataclass(frozen=True, slots=True)
class PerturbationTable(_Rule):
    """The number that stands for a count is drawn from a public table of probabilities, independently for every count.

    Parameters
    ----------
    table : DataFrame, sequence of (int, int, float) or path
        Rows (count, shown, probability): of each count from 0 on what may be shown, and how likely. Of counts larger
        than all in the table the difference ``shown - count`` is drawn as of the largest. A path is that of a CSV file,
        see `read_csv`.

    Raises
    ------
    ArgumentError
        If counts are missing, a probability is not between 0 and 1, or those of a count do not sum to 1.
    ConfigError
        If a file cannot be read.

    Notes
    -----
    The same people counted in several tables are perturbed anew in each: "same people, same noise" (cell keys) is not
    certified.
    """

    key: ClassVar[str] = "perturbation"

    table: tuple[tuple[int, int, float], ...]

    def __post_init__(self) -> None:
        rows: Any = self.table
        if hasattr(rows, "itertuples"):
            rows = rows.itertuples(index=False, name=None)
        elif isinstance(rows, str) or hasattr(rows, "__fspath__"):
            object.__setattr__(self, "table", self.read_csv(rows).table)
            return
        if not isinstance(rows, Iterable):
            raise ArgumentError("PerturbationTable must have rows of (count, shown, probability).")
        listed = [tuple(row) for row in rows]
        if not listed or len(listed) > _MAX_TABLE_ROWS or any(len(row) != 3 for row in listed):
            raise ArgumentError("PerturbationTable must have rows of (count, shown, probability).")
        read = tuple(
            sorted(
                (
                    whole_number("a count of PerturbationTable", count, least=0),
                    whole_number("a shown value of PerturbationTable", value, least=0),
                    _chance(chance),
                )
                for count, value, chance in listed
            )
        )
        counts = sorted({count for count, _, _ in read})
        if counts != list(range(len(counts))) or len({row[:2] for row in read}) < len(read):
            raise ArgumentError("PerturbationTable must have every count from 0 on, and each (count, shown) once.")
        for count, group in groupby(read, key=lambda row: row[0]):
            if abs(math.fsum(chance for *_, chance in group) - 1.0) > _SUM_TOLERANCE:
                raise ArgumentError(
                    f"PerturbationTable: the probabilities of count {count} must sum to 1; each row of the table is "
                    "the chance of one shown value."
                )
        object.__setattr__(self, "table", read)

    @classmethod
    def read_csv(cls, path: Any) -> PerturbationTable:
        """Read the table from a CSV file; what it says is part of mechanism and certificate, its path is not.

        Parameters
        ----------
        path : path-like
            The first line names the columns ``count``, ``shown`` and ``probability``, in any order.

        Returns
        -------
        PerturbationTable

        Raises
        ------
        ArgumentError
            If it has other columns, a value is not what its column holds, or the rows are no table of chances.
        ConfigError
            If it cannot be read.
        """
        rows = view("perturbation.read")(path)
        try:
            return cls(rows)
        except ArgumentError as error:
            raise ArgumentError(f"the perturbation table {str(path)!r}: {error}") from None

    @property
    def first_boundary(self) -> int:
        """The first count whose law differs from that of the one before."""
        count = 1
        while count <= self.table[-1][0] and self.chances(count) == self.chances(count - 1):
            count += 1
        return count

    def chances(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return what may stand for `count`, and how likely each is."""
        largest = min(max(count, 0), self.table[-1][0])
        return tuple((value + max(count, 0) - largest, chance) for row, value, chance in self.table if row == largest)

    def interval(self, value: int) -> tuple[int, int | None]:
        """Return the smallest and the largest count that may be shown as `value`."""
        last, counts = self.table[-1][0], [count for count, shown, _ in self.table if shown == value]
        beyond = [value - shown + last for count, shown, _ in self.table if count == last and value > shown]
        possible = counts + beyond or [0]
        return min(possible), max(possible)

    @property
    def words(self) -> str:
        """The words for it, after "shown"."""
        return "as drawn from a public perturbation table"


Display = Rounding | Bands | RandomRounding | PerturbationTable


def read_display(content: object) -> Display:
    """Return the rule that is written as JSON, or its text, in SQL or in a job file, or raise `ArgumentError`."""
    kinds: dict[str, Any] = {kind.key: kind for kind in get_args(Display)}
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            content = None
    given = dict(content) if isinstance(content, Mapping) else {}
    named = [name for name in given if name in kinds]
    if len(named) != 1 or set(given) - {named[0], *(["mode"] if named == ["rounding"] else [])}:
        raise ArgumentError(
            'display must be one rule, as in {"rounding": 5}, {"rounding": 5, "mode": "down"}, {"bands": [0, 10, 20]}, '
            '{"random_rounding": 3} or {"perturbation": [[0, 0, 1.0], …]}.'
        )
    value = given.pop(named[0])
    if named == ["perturbation"] and isinstance(value, str):
        # What is asked in SQL, or read in a certificate, names no file of this machine.
        raise ArgumentError(f"{named[0]} of display must not be a text: write its numbers.")
    display: Display = kinds[named[0]](value, **given)
    return display


def check_display(value: object) -> Display | None:
    """Return the rule of display of a mechanism, or None; anything else is an error that shows how to write it."""
    if value is None or isinstance(value, Display):
        return value
    raise ArgumentError(
        f"display must be a rule of display, not {type(value).__name__}: write display=pkdp.Rounding(5), "
        "pkdp.Bands([0, 10, 20]), pkdp.RandomRounding(3) or pkdp.PerturbationTable(table)."
    )


def least_shown(display: Display | None, count: int) -> int:
    """Return the smallest number that may stand for counts from `count` on."""
    if display is None:
        return count
    if isinstance(display, Rounding | Bands):
        return display.shown(count)
    if isinstance(display, RandomRounding):
        return display.chances(count)[0][0]
    last = max(count, display.table[-1][0])
    return min(value for each in range(count, last + 1) for value, _ in display.chances(each))


def _base(name: str, value: object) -> int:
    base = whole_number(name, value, least=2)
    if base > _MAX_BASE:
        raise ArgumentError(f"{name} must be at most {_MAX_BASE}.")
    return base


def _chance(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ArgumentError("a probability of PerturbationTable must be a number between 0 and 1.")
    return float(value)
