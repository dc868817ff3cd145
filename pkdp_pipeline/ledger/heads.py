"""Heads: what a ledger holds of what was written down elsewhere, where its end was cut off or it is another one."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.ledger.chain import GENESIS
from pkdp_pipeline.ledger.ledger import Ledger

__all__ = ["certificates_after", "held"]

_AT_ONCE = 500


def held(ledger: Ledger, hashes: Iterable[str]) -> set[str]:
    """Return those of `hashes` that are events of the data set's chain."""
    return {str(row[0]) for row in _rows(ledger, "SELECT hash FROM event WHERE dataset = :dataset AND hash", hashes)}


def certificates_after(ledger: Ledger, heads: Iterable[str]) -> dict[str, list[str]]:
    """Return, by head, the certificates that the release charged just after it has had; where there is one."""
    after = (
        "JOIN event b ON b.dataset = a.dataset AND b.position = a.position + 1 WHERE b.kind = 'reserved' "
        "AND a.dataset = :dataset AND a.hash"
    )
    found = _rows(ledger, f"SELECT a.hash, b.key, b.revision, b.certificate FROM event a {after}", heads)
    found += ledger._database.execute(
        "SELECT previous, key, revision, certificate FROM event WHERE dataset = :dataset AND position = 1",
        dataset=ledger.dataset,
    )
    certificates = {str(head): [str(text)] for head, _, _, text in found}
    anew = ledger._database.execute(
        "SELECT key, revision, certificate FROM event WHERE dataset = :dataset AND kind = 'recertified'",
        dataset=ledger.dataset,
    )
    for key, revision, text in anew:
        for head, *charged, _ in found:
            if charged == [key, revision]:
                certificates[str(head)].append(str(text))
    return certificates


def _rows(ledger: Ledger, query: str, hashes: Iterable[str]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    listed = sorted({*hashes} - {GENESIS})
    for start in range(0, len(listed), _AT_ONCE):
        part = listed[start : start + _AT_ONCE]
        marks = ", ".join(f":h{number}" for number in range(len(part)))
        given = {f"h{number}": one for number, one in enumerate(part)}
        rows += ledger._database.execute(f"{query} IN ({marks})", dataset=ledger.dataset, **given)
    return rows
