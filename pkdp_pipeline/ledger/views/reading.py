"""Reading: a ledger that exists, opened to be read; nothing is created or written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.account import unit_text
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.database import Database, open_database
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase
from pkdp_pipeline.model.spelling import folded

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.ledger.postgres_database import PostgresDatabase


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One data set of an open ledger, and the database it is in."""

    ledger: Ledger
    database: Database


class _ExistingFile(SqliteDatabase):
    """An SQLite ledger as it is: neither its tables nor its journal mode are touched."""

    def _use_write_ahead_log(self) -> None:
        """Leave the journal mode: a copy made for reading may have another one."""


@contextmanager
def open_for_reading(location: str, dataset: str | None = None) -> Iterator[Reading]:
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
    database = _opened(location)
    try:
        with Ledger(database, dataset=_dataset(database, dataset)) as ledger:
            yield Reading(ledger=ledger, database=database)
    finally:
        database.close()


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


def stated_total(reading: Reading, unit: str) -> Certificate:
    """Return what everything charged adds up to for one unit, with all that limits it; inside a snapshot.

    Raises
    ------
    NoEvidenceError
        If the releases do not add up.
    """
    return reading.ledger.totals().total(reading.ledger.dataset, tuple(json.loads(unit)))


def _opened(location: str) -> Database:
    scheme, mark, _ = location.partition("://")
    if mark and scheme.partition("+")[0] in ("postgresql", "postgres"):
        return _existing_database(location)
    if mark or not location.strip() or "\0" in location:
        return open_database(location)  # refuses it, in its own words
    if not Path(location).exists():
        raise LedgerError(f"there is no ledger at {location!r}; give the path of one, or a postgresql:// URL.")
    return _ExistingFile(location)


def _existing_database(url: str) -> PostgresDatabase:
    from pkdp_pipeline.ledger.postgres_database import PostgresDatabase

    class ExistingDatabase(PostgresDatabase):
        """A PostgreSQL database that holds a ledger."""

        def _create(self, connection: Any) -> NoReturn:
            raise LedgerError(f"the database {self.location} holds no ledger; give the URL of one that does.")

    return ExistingDatabase(url)


def _dataset(database: Database, asked: str | None) -> str:
    names = [str(name) for (name,) in database.execute("SELECT name FROM dataset ORDER BY name")]
    listed = ", ".join(map(repr, names))
    if asked is not None:
        if names and folded(asked) not in {folded(name) for name in names}:
            raise ArgumentError(f"--dataset must be one that the ledger holds: {listed}.")
        return asked
    if len(names) > 1:
        raise ArgumentError(f"the ledger holds several data sets, name one with --dataset: {listed}.")
    return names[0] if names else "default"
