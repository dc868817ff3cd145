"""Counts that are public: read from a file that its owner declares to be public, or assumed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.planning import PublicCounts

__all__ = ["SPREADS", "Assumed", "CountsFile"]

SPREADS = ("even", "zipf")

_FLAG = "--public-counts"
_COUNT = "count"
_DELIMITERS = ",;\t|"
_MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsFile:
    """A CSV of public counts: a header, a row for each cell, a column of whole numbers.

    Parameters
    ----------
    path : str
    column : str, optional
        The column of the counts; without it the one that is called ``count``.
    """

    path: str
    column: str | None = None

    @property
    def options(self) -> list[str]:
        """Return the flags that name it."""
        return [_FLAG, self.path, *(["--count-column", self.column] if self.column is not None else [])]

    def has(self, column: str) -> bool:
        """Return whether the header has a column; a `ConfigError` where the file cannot be read."""
        return column in self._rows()[0]

    def read(self) -> PublicCounts:
        """Return the counts.

        Raises
        ------
        ConfigError
            If the file cannot be read, or does not hold one count for each cell. Messages name columns and rules,
            and no value: somebody may have given a file that is not public after all.
        """
        header, rows = self._rows()
        place = self._place(header)
        counts: list[int] = []
        cells: set[tuple[str, ...]] = set()
        for row in rows:
            if len(row) != len(header):
                raise ConfigError(f"{self._subject} has rows with more or fewer fields than its header has columns.")
            cell = (*row[:place], *row[place + 1 :])
            if cell and cell in cells:
                raise ConfigError(
                    f"{self._subject} has several rows for the same values of its other columns: it must have one row "
                    "for each cell, with the count of people in it, and not one row for each person or event."
                )
            cells.add(cell)
            counts.append(_whole(row[place].strip(), header[place], self._subject))
            if len(counts) > _MOST_ROWS:
                raise ConfigError(f"{self._subject} has more than {_MOST_ROWS:,} rows; give the counts of fewer cells.")
        self._check(counts, header[place])
        return PublicCounts(counts=tuple(counts), source=f"{Path(self.path).name}, declared public")

    @property
    def _subject(self) -> str:
        return f"{_FLAG} {self.path}"

    def _rows(self) -> tuple[list[str], Iterator[list[str]]]:
        try:
            text = Path(self.path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise ConfigError(f"{self._subject} cannot be read: {error.strerror or 'no such file'}.") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{self._subject} is no text in UTF-8: give a CSV file.") from None
        first = text.partition("\n")[0]
        delimiter = max(_DELIMITERS, key=first.count)
        lines = csv.reader(io.StringIO(text), delimiter=delimiter)
        try:
            header = [name.strip() for name in next(lines, [])]
        except csv.Error:
            raise ConfigError(f"{self._subject} cannot be read as CSV.") from None
        if not any(header):
            raise ConfigError(f"{self._subject} is empty: it must have a header and a row for each cell.")
        return header, self._full(lines)

    def _full(self, lines: Iterator[list[str]]) -> Iterator[list[str]]:
        """Yield the rows that are not empty."""
        try:
            yield from (row for row in lines if any(field.strip() for field in row))
        except csv.Error:
            raise ConfigError(f"{self._subject} cannot be read as CSV.") from None

    def _place(self, header: Sequence[str]) -> int:
        wanted = _COUNT if self.column is None else self.column
        if header.count(wanted) == 1:
            return header.index(wanted)
        # A first line of values is no header; values are not repeated.
        how = (
            "name the column of the counts with --count-column"
            if self.column is None
            else "check --count-column against the file's header"
        )
        several = "several columns" if wanted in header else "no column"
        raise ConfigError(
            f"{self._subject} has {several} {wanted!r}: {how}. It must have one row for each cell and a column that "
            "says how many people are in it; a file with one row for each person is none of that kind."
        )

    def _check(self, counts: Sequence[int], column: str) -> None:
        if not counts:
            raise ConfigError(f"{self._subject} has no rows below its header: it must have one for each cell.")
        if len(counts) > 1 and max(counts) <= 1:
            raise ConfigError(
                f"{self._subject}: no value of {column!r} exceeds 1, as in a file with one row for each person; it "
                "must have one row for each cell, with the count of people in it."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Counts that are assumed: so many people, spread over so many cells.

    Parameters
    ----------
    cells, people : int
    spread : {"even", "zipf"}, default "even"
        All cells alike, or the cell of rank r in proportion to 1/r.
    """

    cells: int
    people: int
    spread: str = "even"

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= _MOST_ROWS:
            raise ArgumentError(f"--assumed-cells must be a whole number from 1 to {_MOST_ROWS:,}.")
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


def _whole(text: str, column: str, subject: str) -> int:
    """Return a count; what is none is an error that does not repeat it."""
    plain = text.removesuffix(".0")
    if not (plain.isascii() and plain.isdigit()) or len(plain) > 15:
        raise ConfigError(
            f"{subject}: every value of {column!r} must be a whole number of at least 0, the count of people in the "
            "row's cell; where one is suppressed, write what is assumed."
        )
    return int(plain)
