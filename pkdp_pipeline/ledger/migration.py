"""Migration: a ledger of schema 1 becomes one of schema 2, in one transaction and with nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from pkdp_pipeline.errors import ArgumentError, LedgerError, PkdpError
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.former import Former, renamed
from pkdp_pipeline.ledger.journal import Journal, json_text
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.spelling import folded, is_hidden

__all__ = ["migrate"]

_COLUMNS = "sequence, key, dataset, unit, period, label, release_id, certificate, content, created_at"
_PAGE = 32


def migrate(database: Database, create: Callable[[], None]) -> None:
    """Bring a ledger of schema 1 up to date; inside a transaction, so that a crash leaves schema 1.

    Every published row becomes a reservation and a publication, with its own key, certificate, bytes and time,
    in the order of the rows; the chain is built over them. Names of data sets that mean the same become one
    data set, under the first spelling, and periods get the one spelling they have today; where the same request
    has another key for one of these reasons, the standing records the `Former` names. What a row does not say is
    taken at its worst: its predicate is unknown, so it is recorded as one that cannot be compared. Nothing is
    tried against budgets: it is published.

    Parameters
    ----------
    database : Database
    create : callable
        Creates the tables of the current schema.

    Raises
    ------
    LedgerError
        If a row cannot be read; the ledger stays as it was.
    """
    from pkdp_pipeline.ledger import accounts

    # The old table steps aside: its name, and that of its index, are needed.
    database.execute("ALTER TABLE entry RENAME TO entry_of_schema_1")
    database.execute("DROP INDEX entry_dataset")
    create()
    journal, entries = Journal(database), Entries(database)
    terms = json_text(Terms().to_dict())
    for row in _rows(database):
        name = entries.spelled(written := _visible(row["dataset"]))
        if name is None:
            name = written
            entries.register(name)
        certificate, standing = _read(row, name)
        common: dict[str, Any] = {
            "dataset": name,
            "key": row["key"],
            "revision": 1,
            "created_at": row["created_at"],
        }
        entry = journal.append(
            kind="reserved",
            standing=json_text(standing.to_dict()),
            certificate=row["certificate"],
            terms=terms,
            **common,
        )
        entries.reserved(entry, dataset=name, key=row["key"], revision=1, standing=standing)
        event = journal.append(kind="published", release_id=row["release_id"], content=row["content"], **common)
        entries.published_by(entry, event)
        accounts.charge(database, name, standing, certificate, None, entry)
    database.execute("DROP TABLE entry_of_schema_1")


def _rows(database: Database) -> Iterator[dict[str, Any]]:
    query = f"SELECT {_COLUMNS} FROM entry_of_schema_1 WHERE sequence > :after ORDER BY sequence LIMIT {_PAGE}"
    after = -1
    while rows := database.execute(query, after=after):
        for row in rows:
            yield dict(zip(_COLUMNS.split(", "), row, strict=True))
        after = rows[-1][0]


def _visible(dataset: str) -> str:
    """Return a data set's name; without what nobody sees, so that it can be opened."""
    seen = "".join(letter for letter in dataset if not is_hidden(letter))
    return seen if folded(seen) else "unnamed"


def _read(row: dict[str, Any], dataset: str) -> tuple[Any, Standing]:
    from pkdp_pipeline.certificates.certificate import Certificate

    try:
        certificate = Certificate.from_json(row["certificate"])
        mechanism = certificate.mechanism  # type: ignore[attr-defined]
        unit = json.loads(row["unit"])
        if not isinstance(unit, list):
            raise ArgumentError("its unit is not a list of columns.")
        period = renamed(row["period"], row["sequence"])
        former = Former(dataset=row["dataset"], period=row["period"])
        standing = Standing(
            unit=tuple(unit),
            period=period,
            label=row["label"],
            mechanism=mechanism,
            by=_columns(row["content"]),
            where=None if former == Former(dataset=dataset, period=period) else former.to_where(),
            opaque=True,
            protects=certificate.protects,
        )
    except (PkdpError, AttributeError, TypeError, ValueError) as error:
        raise LedgerError(
            f"entry {row['sequence']} of the ledger's schema 1 cannot be brought up to date: {error} "
            "Nothing was changed; the version that wrote the ledger still reads it."
        ) from error
    return certificate, standing


def _columns(content: bytes) -> tuple[str, ...] | None:
    """Return the by-columns of a stored release; None for a count, or when the bytes cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(pa.BufferReader(content)).names
    except (pa.ArrowException, OSError, ValueError):
        return None
    return tuple(name for name in names if name != "count") or None
