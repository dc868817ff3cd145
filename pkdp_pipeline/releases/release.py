"""Release: a published table, its certificate and the hash that binds them, as one Parquet file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger.parquet_sizes import MAX_ROWS
from pkdp_pipeline.ledger.sealed import Sealed, opened, parquet_bytes
from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.model.mechanisms import Count, key_columns
from pkdp_pipeline.model.spelling import key_text
from pkdp_pipeline.model.wording import fitting, rounded_up
from pkdp_pipeline.plugins import view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.display import Display
    from pkdp_pipeline.releases.derived import ExpectedError

_DELTA = 1e-6
_MAX_ROWS_SHOWN = 60
"""A notebook shows this many rows; all are in `Release.table`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
    """A published release. Made by `publish`, or read back by `read_release`; it holds public content alone.

    Attributes
    ----------
    certificate : ReleaseCertificate
    id : str
        sha256, in hex, of the canonical table and the certificate.
    replayed : bool
        Whether a ledger had it already: no data was read for it.
    sealed : Sealed
        The file, and what it says.
    """

    certificate: ReleaseCertificate
    id: str
    replayed: bool
    sealed: Sealed

    @classmethod
    def seal(cls, table: pd.DataFrame, certificate: ReleaseCertificate) -> Release:
        """Bind a public table to its certificate.

        Parameters
        ----------
        table : pandas.DataFrame
            The by-columns and ``count`` (Int64), and ``exact`` (boolean) where small counts are noised, under a plain
            index.
        certificate : ReleaseCertificate

        Returns
        -------
        Release
        """
        certificate = certificate.written()
        # The table is the one that readers of the file see.
        sealed = opened(parquet_bytes(table, certificate.to_json()))
        return cls(certificate, sealed.identity, False, sealed)

    @classmethod
    def from_bytes(cls, content: bytes, *, replayed: bool = False, rows: int | None = None) -> Release:
        """Read a release from the bytes of its Parquet file.

        Parameters
        ----------
        content : bytes
        replayed : bool, default False
            Whether a ledger had it already.
        rows : int, optional
            The most rows that are read. None: any number, from who is trusted.

        Raises
        ------
        ArgumentError
            If the bytes are not a release, or its table and certificate are not those of its id, or it is larger.
        """
        from pkdp_pipeline.certificates.release_certificate import release_certificate

        sealed = opened(content, rows=rows)
        return cls(release_certificate(sealed.text), sealed.identity, replayed, sealed)

    def to_bytes(self, *, period_column: bool = False) -> bytes:
        """Return the Parquet file's bytes; equal public content has equal bytes.

        Parameters
        ----------
        period_column : bool, default False
            Whether the file begins with a column ``period``, which names the certificate's period in each row: tables
            of several periods can be read together. `read_release` leaves it out. Needs a period.
        """
        return self.sealed.file(names_period=period_column)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the table, with its certificate inside, as a Parquet file.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        ConfigError
            If the file cannot be written.
        """
        try:
            Path(path).write_bytes(self.to_bytes())
        except OSError as error:
            raise ConfigError(f"the release cannot be written to {str(path)!r}: {error.strerror}.") from error

    @property
    def table(self) -> pd.DataFrame:
        """The by-columns and ``count``; ``<NA>`` in suppressed cells of a declared domain. A copy each time.

        Where small counts are noised, ``exact`` (boolean) says which counts are not.
        """
        table = self.sealed.frame.copy()
        table.attrs = {"release_id": self.id}
        return table

    @property
    def value(self) -> int | None:
        """The value of a count; None when it is suppressed.

        Raises
        ------
        ArgumentError
            If the release is a histogram.
        """
        if not isinstance(self.certificate.mechanism, Count):
            raise ArgumentError("value is of a count; a histogram's counts are in table.")
        ((value, *_),) = self.sealed.rows
        return None if value is None else int(value)

    @property
    def error(self) -> ExpectedError:
        """The error that the noise adds, and when a count is published at all; from public parameters alone."""
        from pkdp_pipeline.releases.derived import expected_error

        return expected_error(self.certificate.mechanism)

    def rollup(self, by: str | Sequence[str]) -> pd.DataFrame:
        """Return totals over groups of cells, derived from what is public: no data are read, nothing is charged.

        Parameters
        ----------
        by : str or sequence of str
            The by-columns to keep; ``[]`` for the grand total. A missing value is a key of its own.

        Returns
        -------
        pandas.DataFrame
            A row for each group that has rows in the table, in the order of its first row, with

            - the columns of `by`;
            - ``count`` (Int64): the number of people, ``<NA>`` where suppressed cells leave it open. With
              noise an estimate: the sum of the published values, ``<NA>`` where one is suppressed;
            - ``error`` (Float64, only with noise): the standard deviation of the noise in ``count``;
            - ``least`` and ``most`` (Int64): the fewest and the most people that the table allows, with
              certainty; ``most`` is ``<NA>`` where it is not bounded.

        Raises
        ------
        ArgumentError
            If `by` names anything but by-columns.

        Notes
        -----
        A total counts people because every person is in one cell only. A suppressed cell has 0 to k - 1
        people. Without a declared domain an unknown number of cells may have no row, so a total is bounded
        only where every by-column is kept (or all others are boolean): declare the cells with ``domain=`` where totals
        are wanted. Noise has no bounds: a noised cell that is
        shown has at least k people, and nothing else is certain of it.

        Suppressed counts stay so: the intervals say what any reader could work out.
        """
        from pkdp_pipeline.releases.derived import rollup

        return self._derived(rollup, by)

    def shares(self, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return each cell's share of its group, derived from what is public, as `rollup` is.

        Parameters
        ----------
        by : str or sequence of str, optional
            The by-columns that name a group. None: the group is the whole table.

        Returns
        -------
        pandas.DataFrame
            A row for each of the table's, with its by-columns and, as Float64,

            - ``share``: of all people in the group's cells, suppressed ones included; ``<NA>`` where these leave
              it open. With noise an estimate: the ratio of published values, ``<NA>`` where one of the group
              is suppressed or their sum is not above 0;
            - ``least`` and ``most``: between which the share is with certainty, if anybody is in the group;
              rounded outward. Without noise, a published cell's ``most`` is its share of the people in published
              cells.

        Raises
        ------
        ArgumentError
            If the release is a count, or `by` names anything but by-columns.
        """
        from pkdp_pipeline.releases.derived import shares

        return self._derived(shares, by)

    def rounded(self, base: int, by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return counts as multiples of `base`, for showing; the certificate is no better for it.

        Parameters
        ----------
        base : int
            At least 1.
        by : str or sequence of str, optional
            Round the totals of ``rollup(by)``, which are better than totals of rounded counts. None: the
            table's own cells.

        Returns
        -------
        pandas.DataFrame
            As of `rollup`; ``count`` is rounded to the nearest multiple (halves to the even one), ``least`` down
            and ``most`` up, so that they still hold. ``error`` is of the noise alone.

        Raises
        ------
        ArgumentError
            If `base` is not a whole number above 0, or `by` names anything but by-columns.
        """
        from pkdp_pipeline.releases.derived import rounded

        return self._derived(rounded, base, by)

    def within(self, totals: Release | pd.DataFrame) -> pd.DataFrame:
        """Return the cells beside exact totals of their groups, which bound what is suppressed; nothing is charged.

        Parameters
        ----------
        totals : Release or pandas.DataFrame
            Some of the by-columns and ``count``: the exact totals of the groups (`Leakage.totals`), as released, or
            as others have published them; ``count`` alone, or a count, is the total of everybody.

        Returns
        -------
        pandas.DataFrame
            A row for each of the table's, with its by-columns, ``count``, the fewest and the most people in the cell
            that the table and the totals allow (``least``, ``most``), and ``total``, that of its group; as Int64.

        Raises
        ------
        ArgumentError
            If the totals are about other columns or people, or have noise; if the table has noise, cells found in the
            data, or people in several cells.

        Notes
        -----
        A single suppressed cell of a group follows from its total, exactly. The certificate counts that in: it is
        about a person's cell, not about counts.
        """
        from pkdp_pipeline.releases.within import check_same_people, within_totals

        if isinstance(totals, Release):
            other = totals.certificate
            if other.mechanism.noise is not None:
                raise ArgumentError("totals have noise, and only exact ones bound suppressed counts.")
            counted = isinstance(other.mechanism, Count)
            check_same_people(self.certificate.context, other.context, counted=counted)
            totals = totals.table
        return self._derived(within_totals, totals)

    def _derived(self, derive: Callable[..., pd.DataFrame], *arguments: Any) -> pd.DataFrame:
        context = self.certificate.context
        # Whether the table lists every cell there is.
        declared = context is not None and context.cells == "declared"
        derived = derive(self.sealed.frame, self.certificate.mechanism, *arguments, declared=declared)
        derived.attrs = {"release_id": self.id}
        return derived

    def verify(self) -> bool:
        """Check that the certificate is what its assumptions give (of another version's, the numbers), and every count.

        Returns
        -------
        bool
            True. A difference raises, so that it cannot be overlooked.

        Raises
        ------
        ArgumentError
            If something does not fit; the release was altered or is not ours.
        """
        self.sealed.cells.check(self.certificate)
        return self.certificate.verify(any_version=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the table as bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ConfigError
            If matplotlib is not installed.
        """
        drawn: Axes = view("plot.release")(self, axes=ax)
        return drawn

    def __repr__(self) -> str:
        epsilon = self.certificate.epsilon(_DELTA)
        promise = f"ε = {rounded_up(epsilon, 4)}" if epsilon < math.inf else "no ε"
        head = f"Release(id={self.id!r}, replayed={self.replayed})"
        promise += f" at δ = {_DELTA:g}; against whom, and what it does not protect: certificate.sentence()"
        return f"{head}\n{_in_words(self.sealed.frame, self.certificate.mechanism.display)}\n{promise}"

    def _repr_html_(self) -> str:
        state = " It was replayed from the ledger." if self.replayed else ""
        table = _shown(self.sealed.frame, self.certificate.mechanism.display)
        return (
            f"<div>{table}<p>{escape(self.error.suppression)}</p>"
            f'{view("statement.html")(self.certificate)}<p style="overflow-wrap:anywhere">'
            f"<small>Release {self.id}.{state}</small></p></div>"
        )


def _in_words(table: pd.DataFrame, display: Display | None) -> pd.DataFrame:
    """Return a public table as text: missing, suppressed and noised are told apart, as in every report."""
    keys = key_columns(table.columns)
    words = {name: [key_text(value) for value in table[name].array] for name in keys}
    marked = "exact" in table.columns[len(keys) :]
    exact = table["exact"].array if marked else [True] * len(table)
    counts = [count_text(value, sure, display) for value, sure in zip(table["count"].array, exact, strict=True)]
    return pd.DataFrame({**words, "count": counts}, index=table.index)


def count_text(count: Any, exact: Any = True, display: Display | None = None) -> str:
    """Return a published count as text: the word where it is suppressed, "≈" before one that is marked as noised.

    With bands it is the text of the band.
    """
    if pd.isna(count):
        return "suppressed"
    text = str(count) if display is None else display.text(int(count))
    return text if exact else f"≈ {text}"


def _shown(table: pd.DataFrame, display: Display | None) -> str:
    """Return the first rows of a public table as HTML."""
    shown = _in_words(table.head(fitting(len(table), _MAX_ROWS_SHOWN)), display)
    more = len(table) - len(shown)
    left = f"<p>… {more} more rows</p>" if more else ""
    with pd.option_context("display.max_colwidth", None):
        return shown.to_html(index=False, border=0, justify="left") + left


def read_release(path: str | PathLike[str], *, rows: int = MAX_ROWS) -> Release:
    """Read a release from its Parquet file and check it.

    Parameters
    ----------
    path : path-like
    rows : int, default 200,000
        A file with more rows, or more than a kilobyte for each of so many, is not read.

    Returns
    -------
    Release

    Raises
    ------
    ConfigError
        If the file cannot be read.
    ArgumentError
        If it is not a release, its table or certificate was altered, a count breaks the certificate's rule, or it is
        larger than allowed.
    """
    whole_number("rows", rows, least=1)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"the release {str(path)!r} cannot be read: {error.strerror}.") from error
    release = Release.from_bytes(content, rows=rows)
    release.verify()
    return release
