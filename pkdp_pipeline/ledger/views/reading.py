"""Reading: a ledger that exists, opened to be read; nothing is created or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.database import open_database
from pkdp_pipeline.ledger.rows import unit_text
from pkdp_pipeline.model.spelling import folded


@contextmanager
def open_for_reading(location: str, dataset: str | None = None) -> Iterator[Ledger]:
    """Open one data set of a ledger.

    Parameters
    ----------
    location : str
        A path or a ``postgresql://`` URL.
    dataset : str, optional
        None: the only one there is.

    Raises
    ------
    ArgumentError
        If there are several data sets and none, or one that is not there, is named.
    LedgerError, TemporaryError
        If there is no ledger, or it cannot be used.
    """
    with closing(open_database(location, create=False)) as database:
        names = [str(name) for (name,) in database.execute("SELECT name FROM dataset ORDER BY name")]
        listed = ", ".join(map(repr, names))
        if dataset is None and len(names) > 1:
            raise ArgumentError(f"the ledger holds several data sets, name one with --dataset: {listed}.")
        if dataset is not None and names and folded(dataset) not in map(folded, names):
            raise ArgumentError(f"--dataset must be one that the ledger holds: {listed}.")
        yield Ledger(database, dataset=dataset or (names or ["default"])[0])


def chosen_units(units: Sequence[str], columns: Sequence[str], *, each_row: bool) -> list[str]:
    """Return the privacy units asked for, out of those the data set has releases for; all of them by default.

    Parameters
    ----------
    units : sequence of str
        See `unit_text`.
    columns : sequence of str
        Columns of the one asked for.
    each_row : bool
        Whether the one in which every row is a person is asked for.

    Raises
    ------
    ArgumentError
        If there is no such unit.
    """
    if each_row and columns:
        raise ArgumentError("--unit and --each-row exclude each other: a person is a value of columns, or a row.")
    if not each_row and not columns:
        return list(units)
    asked = unit_text(() if each_row else columns)
    if asked not in units:
        named = "; ".join(map(unit_named, units)) or "none, nothing is published"
        raise ArgumentError(f"--unit must be a privacy unit the data set has releases for: {named}.")
    return [asked]
