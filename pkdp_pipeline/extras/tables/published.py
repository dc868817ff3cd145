"""The rows of a public table as other programs' formats need them: keys, counts, and what is known of each count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.keys import Key, plain
from pkdp_pipeline.model.mechanisms import key_columns, noised_below, value_columns
from pkdp_pipeline.model.spelling import MISSING

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of a public table.

    Parameters
    ----------
    keys : tuple of Key
        The values of the by-columns, None where missing.
    count : int or None
        None where it is not published.
    exact : bool
        Whether the count has no noise; False where it is not published.
    """

    keys: tuple[Key, ...]
    count: int | None
    exact: bool


@dataclass(frozen=True, slots=True)
class PublishedRows:
    """A public table: the names of its by-columns and its rows, in the published order.

    Parameters
    ----------
    marked : bool
        Whether counts with noise stand beside exact ones.
    rough : bool
        Whether a rule of display shows other numbers than were counted.
    bands : Bands or None
        The bands that counts are shown in.
    number : {"count", "sum"}
        The name of the column of numbers.
    """

    by: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    marked: bool
    rough: bool
    bands: Bands | None
    number: str

    @classmethod
    def of(cls, release: Release) -> PublishedRows:
        """Return the rows of a release."""
        mechanism = release.certificate.mechanism
        by = tuple(key_columns(name for name, _ in release.sealed.cells.columns))
        marked, number = noised_below(mechanism), len(by)
        rows = []
        for *keys, count in (row[: number + 1] for row in release.sealed.rows):
            rows.append((tuple(keys), None if count is None else int(count)))
        exact = [bool(row[-1]) for row in release.sealed.rows] if marked else [mechanism.noise is None] * len(rows)
        return cls(
            by=by,
            rows=tuple(
                PublishedRow(keys, count, sure and count is not None)
                for (keys, count), sure in zip(rows, exact, strict=True)
            ),
            marked=marked,
            rough=mechanism.display is not None,
            bands=mechanism.display if isinstance(mechanism.display, Bands) else None,
            number=value_columns(mechanism)[0],
        )

    def shown(self, row: PublishedRow) -> int | str | None:
        """Return a count as it is printed: the number, or the text of its band; None where it is not published."""
        return row.count if row.count is None or self.bands is None else self.bands.text(row.count)


def told_apart(value: Key) -> Key:
    """Return a key; a text that could be taken for a missing key is in quotation marks."""
    return f'"{value}"' if value == MISSING else value


def labelled(value: Key) -> str:
    """Return a key as one text, which is different for different keys of a column, also for a missing one."""
    return MISSING if value is None else plain(told_apart(value))


def safe(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: an apostrophe stands before one that begins so."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
