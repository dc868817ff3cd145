"""A public table as it is printed and as other programs' formats need it: rows, what is known of each count, and words.

The words are the marker in the place of a count that is not published, a title, and notes.

Cross-tables: a histogram with some by-columns down and some across, margins, and intervals of what is hidden.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.columns import group_order
from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.keys import Key, canonical_key, plain
from pkdp_pipeline.model.mechanisms import Mechanism, key_columns, noised_below, value_columns
from pkdp_pipeline.model.period import MISSING, Period
from pkdp_pipeline.model.question import column_names
from pkdp_pipeline.releases.derived import check_counts, hidden_below
from pkdp_pipeline.releases.estimates import hidden_bounds, not_together
from pkdp_pipeline.releases.printed import counted_words
from pkdp_pipeline.releases.release import Release, count_text

if TYPE_CHECKING:
    from pkdp_pipeline.releases.derivations import Derivations


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
    """Return a key; a text that could be taken for a missing key is in quotation marks, one pair more than it had."""
    return f'"{value}"' if isinstance(value, str) and value.strip('"') == MISSING else value


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
        others = "are exact" if mechanism.display is None else "have none"
        sentences.append(f"≈ stands before a count that has noise; other counts {others}.")
    sentences.append(error.suppression)
    if mechanism.noise is not None:
        sentences.append(f"95 % of the noise is within ±{error.bound_95}.")
    return sentences


def notes(release: Release, mark: str) -> list[str]:
    """Return these sentences, what is promised, and the release's id."""
    return [*marks(release, mark), release.certificate.sentence(), f"Release {release.id}."]


_MARGIN = "Total"
_MAX_CELLS = 1_000_000
"""A wide table has at most so many cells: found cells of two columns with many values have no use side by side."""

_Group = tuple[Key, ...]


def crosstab(
    release: Release,
    rows: str | Sequence[str],
    columns: str | Sequence[str],
    *,
    margins: bool | str,
    suppressed: str | None,
    totals: Derivations | pd.DataFrame | Sequence[Derivations | pd.DataFrame],
    weights: Mapping[str, Mapping[Any, float]] | None,
) -> pd.DataFrame:
    """Return a histogram as a wide table; see `Release.crosstab`."""
    check_counts(release.certificate.mechanism)
    by = key_columns(name for name, _ in release.sealed.cells.columns)
    down, across = column_names("rows", rows), column_names("columns", columns)
    if not down or not across or not {*down, *across} <= set(by) or len({*down, *across}) < len(down + across):
        raise ArgumentError("rows and columns must each name by-columns of this histogram, none of them twice.")
    if not isinstance(margins, bool) and not (isinstance(margins, str) and margins.strip()):
        raise ArgumentError("margins must be True, False, or the text that names them, such as 'All'.")
    known = list(totals) if isinstance(totals, Sequence) else [totals]
    if weights is not None and known:
        raise ArgumentError("totals are numbers of people, and weights change these: give one of both.")
    mark = marker(release.certificate.mechanism, suppressed)
    if weights is not None and any(character.isdigit() for character in mark):
        # A hidden count is below k; what it weighs may be more.
        if suppressed is not None:
            raise ArgumentError("suppressed must not name a number in a weighted table: write 'c' or '*'.")
        mark = "suppressed"
    cells = _Cells(release, (*down, *across), known, mark, weights)
    lines, texts = cells.groups(down), cells.texts((*down, *across))
    columns_shown = cells.groups(across)
    if len(lines) * len(columns_shown) > _MAX_CELLS:
        raise ArgumentError(f"the table would have more than {_MAX_CELLS:,} cells: name columns with fewer values.")
    body = [[texts.get((*line, *column), cells.unlisted) for column in columns_shown] for line in lines]
    if margins:
        label = _MARGIN if margins is True else margins
        if any(label in group for group in (*lines, *columns_shown)):
            raise ArgumentError(f"margins: a value of the table is {label!r}, too; give margins another text.")
        at_right, below, corner = (cells.texts(names) for names in (down, across, ()))
        body = [[*cells_of_line, at_right[line]] for line, cells_of_line in zip(lines, body, strict=True)]
        body.append([*(below[column] for column in columns_shown), corner.get((), cells.mark)])
        lines, columns_shown = (
            [*keys, (label, *[""] * (len(keys[0]) - 1 if keys else 0))] for keys in (lines, columns_shown)
        )
    table = pd.DataFrame(body, index=_axis(lines, down), columns=_axis(columns_shown, across), dtype=object)
    table.attrs = {"release_id": release.id, "suppressed": cells.mark}
    return table


class _Cells:
    """The cells of a table, with all that is public of them, and the text of each.

    Parameters
    ----------
    names : tuple of str
        The by-columns that are shown; over others is added up.
    totals : list
        Exact totals of groups.
    mark : str
        Stands in the place of what is hidden.
    weights : mapping or None
        Public weights of one by-column's values.
    """

    def __init__(self, release: Release, names: tuple[str, ...], totals: list[Any], mark: str, weights: Any) -> None:
        self.release, self.names, self.totals, self.mark, self.weights = release, names, totals, mark, weights
        self.mechanism, table = release.certificate.mechanism, release.sealed.frame
        by = key_columns(table.columns)
        self.frame = release.rollup(list(names))
        self.published = table if set(by) == set(names) else None
        if totals and self.published is None:
            raise ArgumentError(
                f"totals bound single cells: name every by-column in rows or columns ({', '.join(by)})."
            )
        known = []
        for total in totals:
            within, by = release.within(total), [name for name in _frame(total) if name != "count"]
            known.append((_keys(within, by), dict(zip(_keys(within, by), within["total"], strict=True))))
        if known:
            counts = [None if pd.isna(count) else int(count) for count in self.frame["count"]]
            for name, ends in zip(
                ("least", "most"), zip(*hidden_bounds(counts, self.mechanism.k, known), strict=True), strict=True
            ):
                self.frame[name] = pd.array(ends, dtype="Int64")
        context = release.certificate.context
        # A cell without a row is left out by the declared domain; otherwise it is hidden, if it is there at all.
        self.unlisted = "" if context is not None and context.cells == "declared" else mark

    def groups(self, names: Sequence[str]) -> list[_Group]:
        """Return the groups in the domain's order, or sorted where cells were found in the data."""
        groups = self.frame[list(names)].drop_duplicates()
        if self.unlisted:
            groups = groups.sort_values(by=list(names), na_position="last", key=_in_group_order)
        return _keys(groups, names)

    def texts(self, names: tuple[str, ...]) -> Mapping[_Group, float | str]:
        """Return what stands in each cell, or at each margin of the groups that `names` name."""
        if self.weights is not None:
            return self._weighted(names)
        if names == self.names:
            frame, counts = self.frame, self.published
            exact = counts["exact"] if counts is not None and noised_below(self.mechanism) else None
        else:
            frame, counts, exact = self._margin(names), None, None
        shown = frame if counts is None else counts
        texts = {}
        for place, group in enumerate(_keys(frame, names)):
            count, least, most = shown["count"].iloc[place], frame["least"].iloc[place], frame["most"].iloc[place]
            if not pd.isna(count) and counts is not None:
                text = count_text(count, True if exact is None else bool(exact.iloc[place]), self.mechanism.display)
            elif not pd.isna(count):
                rough = least is pd.NA or most is pd.NA or least != most
                if rough and self.mechanism.noise is None:
                    text = self._hidden(least, most, single=False)
                else:
                    text = f"≈ {count}" if rough and noised_below(self.mechanism) else str(count)
            else:
                text = self._hidden(least, most, single=counts is not None)
            texts[group] = int(text) if text.removeprefix("-").isdecimal() else text
        return texts

    def _weighted(self, names: tuple[str, ...]) -> Mapping[_Group, float | str]:
        """Return weighted totals, rounded, and intervals that hidden counts leave, rounded outward."""
        frame, noised = self.release.weighted(self.weights, list(names)), self.mechanism.noise is not None
        texts: dict[_Group, float | str] = {}
        for group, (total, least, most) in zip(
            _keys(frame, names), frame[["weighted", "least", "most"]].itertuples(index=False), strict=True
        ):
            if not pd.isna(total) and (noised or least == most):
                value = round(float(total), 2)
                texts[group] = f"≈ {value}" if noised and noised_below(self.mechanism) and least != most else value
            elif least == 0 and pd.isna(total) and names == self.names and self.published is not None:
                texts[group] = self.mark
            else:
                low = math.floor(least * 100) / 100
                texts[group] = self._or_more(low) if pd.isna(most) else f"{low} to {math.ceil(most * 100) / 100}"
        return texts

    def _hidden(self, least: Any, most: Any, *, single: bool) -> str:
        """Return the interval that follows of a hidden count, the marker where it says no more than that."""
        k = hidden_below(self.mechanism)
        if most is pd.NA:
            return self.mark if single and least == 0 else self._or_more(least)
        if single and (least, most) == (0, (k or 1) - 1):
            return self.mark
        return f"{least} follows exactly" if least == most else f"{least} to {most}"

    def _or_more(self, least: Any) -> str:
        """Return a bound from below; where that of noised cells only says how many are shown, why there is no total."""
        if self.mechanism.noise is None or noised_below(self.mechanism):
            return f"{least} or more"
        return "cells may be missing" if self.unlisted else "no total"

    def _margin(self, names: tuple[str, ...]) -> pd.DataFrame:
        """Return totals of groups: exact where one was published, else the interval that the cells leave."""
        frame = self.release.rollup(list(names))
        if not self.totals:
            return frame
        # Declared cells without noise: every cell has an interval, and those of a group add up to one of its total.
        cells = pd.DataFrame(
            {"group": _keys(self.frame, names), "least": self.frame["least"], "most": self.frame["most"]}
        )
        sums = cells.groupby("group", sort=False)[["least", "most"]].sum().reset_index(drop=True)
        frame["least"], frame["most"] = (
            frame["least"].combine(sums["least"], max),
            frame["most"].combine(sums["most"], min),
        )
        for known in self.totals:
            table = _frame(known)
            of = [name for name in table.columns if name != "count"]
            if set(names) <= set(of):
                listed = set(_keys(self.frame, of))
                counts = dict.fromkeys(_keys(frame, names), 0)
                for whole, group, count in zip(_keys(table, of), _keys(table, names), table["count"], strict=True):
                    counts[group] = counts.get(group, 0) + (int(count) if whole in listed else 0)
                values = pd.array([counts[group] for group in _keys(frame, names)], dtype="Int64")
                if bool(((values < frame["least"]) | (values > frame["most"])).any()):
                    raise not_together(self.totals)
                for column in ("count", "least", "most"):
                    frame[column] = values
        # Where the interval is a single number the total follows.
        frame["count"] = frame["count"].where(
            frame["count"].notna() | (frame["least"] != frame["most"]), frame["least"]
        )
        return frame


def _frame(totals: Derivations | pd.DataFrame) -> pd.DataFrame:
    return totals if isinstance(totals, pd.DataFrame) else totals.sealed.frame


def _in_group_order(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return what a column is sorted by: of groups of values, as "5–9" and "10 or more", where these stand."""
    places = group_order(column.dropna())
    return column if places is None else column.map(places)


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> list[_Group]:
    columns = [map(canonical_key, frame[name].array) for name in names]
    return list(zip(*columns, strict=True)) if names else [()] * len(frame)


def _axis(groups: Sequence[_Group], names: Sequence[str]) -> pd.Index[Any]:
    values = [tuple(MISSING if value is None else told_apart(value) for value in group) for group in groups]
    if len(names) == 1:
        return pd.Index([value for (value,) in values], name=names[0], dtype=None if values else object)
    return pd.MultiIndex.from_tuples(values, names=list(names))
