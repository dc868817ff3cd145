"""Release: a published table, its certificate and the hash that binds them, as one Parquet file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger.sealed import MAX_ROWS, Sealed, opened, parquet_bytes
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, key_columns, value_column
from pkdp_pipeline.model.period import exactly, key_text
from pkdp_pipeline.model.wording import fitting, rounded_up, whole_number
from pkdp_pipeline.plugins import view
from pkdp_pipeline.releases.derivations import Derivations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.model.display import Display
    from pkdp_pipeline.releases.derived import ExpectedError

_DELTA = 1e-6
_MAX_ROWS_SHOWN = 60
"""A notebook shows this many rows; all are in `Release.table`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Derivations):
    """A published release. Made by `publish`, or read back by `read_release`; it holds public content alone.

    Attributes
    ----------
    certificate : ReleaseCertificate
    id : str
        sha256, in hex, of the canonical table and the certificate.
    replayed : bool
        Whether a ledger had it already, or one from which it follows: no data was read for it.
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
            The by-columns and ``count``, or ``sum`` (Int64), and ``exact`` (boolean) where small counts are noised,
            under a plain index.
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
        _write(path, self.to_bytes())

    def to_csv(self, path: str | PathLike[str], *, suppressed: str | None = None) -> None:
        """Write the table as CSV for spreadsheets, and its metadata, "CSV on the Web", beside it.

        Parameters
        ----------
        path : path-like
            The metadata has this name and ``-metadata.json``: the rule, the certificate, and the types of columns.
        suppressed : str, optional
            The text in the place of counts that are not published, as in `crosstab`.

        Raises
        ------
        ArgumentError
            If the marker could be taken for a count, or names another number than k.
        ConfigError
            If a file cannot be written.

        Notes
        -----
        A text that begins with ``=``, ``+``, ``-`` or ``@`` has an apostrophe before it, so that no spreadsheet takes
        it for a formula. `to_parquet` has every key as it is.
        """
        table, metadata = view("tables.csv")(self, Path(path).name, suppressed)
        _write(path, table)
        _write(f"{path}-metadata.json", metadata)

    def to_excel(
        self,
        path: str | PathLike[str],
        *,
        suppressed: str | None = None,
        estimates: bool | Mapping[str, Mapping[Any, float]] = False,
    ) -> None:
        """Write a workbook: a cover, notes with the rule and the guarantee, and the table on a sheet of its own.

        Counts by two columns or more have a second sheet: the cross-table, with the last column's values across.

        Parameters
        ----------
        path : path-like
        suppressed : str, optional
            As in `to_csv`.
        estimates : bool or mapping of str to mapping, default False
            Whether the table has the columns of `estimate`; or weights, for those of `weighted`.

        Raises
        ------
        ArgumentError
            As of `to_csv`, `estimate` or `weighted`, or if the table has over a million rows.
        ConfigError
            If xlsxwriter is not installed, or the file cannot be written.
        """
        frames, name = {}, Path(path).stem
        if estimates is not False:
            by = key_columns(self.sealed.frame.columns)
            frames[name] = self.estimate() if estimates is True else self.weighted(estimates, by)
        _write(path, view("tables.workbook")({name: self}, suppressed, estimates=frames))

    def to_json_stat(self, path: str | PathLike[str], *, suppressed: str | None = None) -> None:
        """Write the table as a JSON-stat 2.0 dataset, which has the certificate as its extension.

        Parameters
        ----------
        path : path-like
        suppressed : str, optional
            The status of counts that are not published, whose value is null; as in `to_csv`.

        Raises
        ------
        ArgumentError
            As of `to_csv`, or if there are over a million combinations of keys.
        ConfigError
            If the file cannot be written.
        """
        _write(path, view("tables.json_stat")(self, suppressed))

    def to_sdmx_csv(
        self, path: str | PathLike[str], *, suppressed: str | None = None, dataflow: str = "LOCAL:COUNTS(1.0)"
    ) -> None:
        """Write the table as SDMX-CSV 2.0, with the status of each observation, and its certificate beside it.

        Parameters
        ----------
        path : path-like
            The certificate's file has this name and ``.certificate.json``.
        suppressed : str, optional
            The comment on counts that are not published, of status Q and confidentiality C; as in `to_csv`.
        dataflow : str
            Agency, dataflow and version.

        Raises
        ------
        ArgumentError
            As of `to_csv`, or if `dataflow` is no such name.
        ConfigError
            If a file cannot be written.
        """
        _write(path, view("tables.sdmx_csv")(self, suppressed, dataflow))
        _write(f"{path}.certificate.json", f"{self.certificate.to_json().rstrip()}\n".encode())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table to what reads Arrow, such as Polars, DuckDB and PyArrow; the schema carries the certificate.

        It is the capsule of Arrow's PyCapsule interface.
        """
        return self.sealed.arrow.__arrow_c_stream__(requested_schema)

    @property
    def table(self) -> pd.DataFrame:
        """The by-columns and ``count``, or ``sum``; ``<NA>`` where suppressed in a declared domain. A copy each time.

        Where small counts are noised, ``exact`` (boolean) says which counts are not.
        """
        table = self.sealed.frame.copy()
        table.attrs = {"release_id": self.id}
        return table

    @property
    def value(self) -> int | None:
        """The value of a count, or of a sum in all; None when it is suppressed.

        Raises
        ------
        ArgumentError
            If the release has cells.
        """
        by = key_columns(name for name, _ in self.sealed.cells.columns)
        if by or isinstance(self.certificate.mechanism, Histogram):
            raise ArgumentError("value is of one number; those of cells are in table.")
        ((value, *_),) = self.sealed.rows
        return None if value is None else int(value)

    @property
    def error(self) -> ExpectedError:
        """The error that the noise adds, and when a count is published at all; from public parameters alone."""
        from pkdp_pipeline.releases.derived import expected_error

        return expected_error(self.certificate.mechanism)

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
        promise = f"ε = {rounded_up(epsilon, 4)} at δ = {exactly(_DELTA)}"
        if epsilon == math.inf:
            from pkdp_pipeline.ledger.history import no_epsilon

            promise = no_epsilon(_DELTA, self.certificate.delta(1.0))
        head = f"Release(id={self.id!r}, replayed={self.replayed})"
        promise += "; against whom, and what it does not protect: certificate.sentence()"
        return f"{head}\n{_in_words(self.sealed.frame, self.certificate.mechanism)}\n{promise}"

    def _repr_html_(self) -> str:
        state = " It was replayed from the ledger." if self.replayed else ""
        table = _shown(self.sealed.frame, self.certificate.mechanism)
        return (
            f"<div>{table}<p>{escape(self.error.suppression)}</p>"
            f'{view("statement.html")(self.certificate)}<p style="overflow-wrap:anywhere">'
            f"<small>Release {self.id}.{state}</small></p></div>"
        )


def _write(path: str | PathLike[str], content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ConfigError(f"the release cannot be written to {str(path)!r}: {error.strerror}.") from error


def _in_words(table: pd.DataFrame, mechanism: Mechanism) -> pd.DataFrame:
    """Return a public table as text: missing, suppressed and noised are told apart, as in every report."""
    keys, own = key_columns(table.columns), value_column(table.columns)
    words = {name: [key_text(value) for value in table[name].array] for name in keys}
    marked = "exact" in table.columns[len(keys) :]
    exact = table["exact"].array if marked else [mechanism.noise is None] * len(table)
    counts = [count_text(value, sure, mechanism.display) for value, sure in zip(table[own].array, exact, strict=True)]
    return pd.DataFrame({**words, own: counts}, index=table.index)


def count_text(count: Any, exact: Any = True, display: Display | None = None) -> str:
    """Return a published count as text: the word where it is suppressed, "≈" before a noised one.

    With bands it is the text of the band.
    """
    if pd.isna(count):
        return "suppressed"
    text = str(count) if display is None else display.text(int(count))
    return text if exact else f"≈ {text}"


def _shown(table: pd.DataFrame, mechanism: Mechanism) -> str:
    """Return the first rows of a public table as HTML."""
    shown = _in_words(table.head(fitting(len(table), _MAX_ROWS_SHOWN)), mechanism)
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
