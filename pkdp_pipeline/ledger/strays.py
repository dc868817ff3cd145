"""Strays: rows of the derived tables that belong to no data set, to another one, or to no release."""

from __future__ import annotations

from typing import NoReturn

from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import describe, sha256

__all__ = ["altered", "check_strays"]

_PAGE = 200


def altered(what: str) -> NoReturn:
    """Raise the error for a ledger that was altered."""
    raise LedgerError(f"the ledger was altered: {what}. Restore it from a backup, with a head that a release names.")


def check_strays(database: Database) -> None:
    """Check what belongs to no data set that has events, and would be overlooked when one is compared.

    Parameters
    ----------
    database : Database
        Only read; call it in a snapshot.

    Raises
    ------
    LedgerError
        Naming the table.
    """
    for table in ("entry", "holding"):
        if database.execute(f"SELECT dataset FROM {table} EXCEPT SELECT name FROM dataset"):
            altered(f"table {table} has rows of a data set that has no events")
    _check_parts(database)


def _check_parts(database: Database) -> None:
    """Check that every part is that of a release; one that was given back or certified again leaves its part."""
    left = {str(row[0]) for row in database.execute("SELECT sha256 FROM part EXCEPT SELECT part FROM holding")}
    for key in left:
        ((description,),) = database.execute("SELECT description FROM part WHERE sha256 = :key", key=key)
        if sha256(str(description)) != key:
            altered("table part has rows that are not what their keys say")
    after = -1
    while left:
        rows = database.execute(
            "SELECT sequence, certificate FROM event WHERE certificate IS NOT NULL AND sequence > :after "
            f"ORDER BY sequence LIMIT {_PAGE}",
            after=after,
        )
        if not rows:
            altered("table part has rows that no release was ever charged with")
        left -= {sha256(describe(str(certificate))) for _, certificate in rows}
        after = rows[-1][0]
