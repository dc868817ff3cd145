"""A public table as it is printed and as other programs' formats need it: rows, what is known of each count, and words.

The words are the marker in the place of a count that is not published, a title, and notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.keys import Key, plain
from pkdp_pipeline.model.mechanisms import Mechanism, key_columns, noised_below, value_columns
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import MISSING
from pkdp_pipeline.releases.derived import hidden_below
from pkdp_pipeline.releases.printed import counted_words

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


_SUPPRESSED = "suppressed"
_LONGEST = 40
_LIMIT = re.compile(r"(<=|<|≤|below|under|fewer than|less than)\s*(\d+)", re.IGNORECASE)


def marker(mechanism: Mechanism, suppressed: str | None = None) -> str:
    """Return the text in the place of counts that are not published, the same for all of them, zeros included.

    Parameters
    ----------
    mechanism : Mechanism
    suppressed : str, optional
        The text. None: ``<k`` where all of them are below k, otherwise "suppressed".

    Raises
    ------
    ArgumentError
        If it is no short text, could be taken for a count, or names another number than k.
    """
    k = hidden_below(mechanism)
    # Exact totals hide nothing, so that a marker stands for nothing in them.
    hides = {mechanism.k, mechanism.release_threshold, mechanism.display, getattr(mechanism, "k_complement", None)}
    if suppressed is None:
        return _SUPPRESSED if k is None else f"<{k}"
    if not isinstance(suppressed, str) or not suppressed.strip() or len(suppressed) > _LONGEST:
        raise ArgumentError(f"suppressed must be a text of at most {_LONGEST} letters, such as '<30', 'c' or '*'.")
    if not suppressed.isprintable() or suppressed != suppressed.strip() or suppressed.startswith(("=", "+", "-", "@")):
        raise ArgumentError("suppressed must be one line, without blanks around it, and no formula of a spreadsheet.")
    if re.fullmatch(r"[-+≈\s]*[\d\s.,']+%?", suppressed):
        raise ArgumentError(
            "suppressed must not be a number, which a reader would take for a count: write '<30' or 'c'."
        )
    limit = _LIMIT.fullmatch(suppressed)
    names_k = limit is not None and int(limit[2]) + (limit[1] in ("≤", "<=")) == k
    if any(character.isdigit() for character in suppressed) and not names_k and hides != {None}:
        rule = "not only small counts are hidden; write 'c' or '*'" if k is None else f"counts below k = {k} are hidden"
        raise ArgumentError(f"suppressed must not name a number that is not the rule's: {rule}.")
    return suppressed


def title(release: Release) -> str:
    """Return what a table counts, in a line: its unit, by-columns, population and period."""
    context = release.certificate.context
    by = key_columns(name for name, _ in release.sealed.cells.columns)
    unit = "people" if context is None else ", ".join(context.unit) or "rows"
    words = counted_words(unit, by, None if context is None else context.summed)
    if context is not None and context.groups:
        words += f" ({'; '.join(context.groups)})"
    if context is not None and context.where is not None:
        words += f", where {context.where}"
    return words if period(release) is None else f"{words}, {period(release)}"


def period(release: Release) -> str | None:
    """Return the name of the period that a release is about, as in ``2026-W15``."""
    context = release.certificate.context
    return None if context is None or context.period is None else str(Period.parse(context.period).value)


def marks(release: Release, mark: str) -> list[str]:
    """Return sentences on the marks of a table, and on what is done to a count before it is published."""
    mechanism, error = release.certificate.mechanism, release.error
    k, marked = hidden_below(mechanism), noised_below(mechanism)
    sentences = []
    if mechanism.release_threshold is not None or (mechanism.below != "noise" if marked else mechanism.k is not None):
        number = value_columns(mechanism)[0]
        hidden = f"a {number} that is not published" if k is None else f"a count below {k}, zero included"
        sentences.append(f"{mark} stands for {hidden}.")
    if marked:
        sentences.append("≈ stands before a count that has noise; other counts are exact.")
    sentences.append(error.suppression)
    if mechanism.noise is not None:
        sentences.append(f"95 % of the noise is within ±{error.bound_95}.")
    return sentences


def notes(release: Release, mark: str) -> list[str]:
    """Return these sentences, what is promised, and the release's id."""
    return [*marks(release, mark), release.certificate.sentence(), f"Release {release.id}."]
