"""Single: one release explained: what it promises, on which terms it was charged, and its place in the chain."""

from __future__ import annotations

from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.display.ledger.explaining import pages
from pkdp_pipeline.display.ledger.words import amount, command, mechanism_words, noise_words, state_words
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.rows import certificate_of, counted, describe
from pkdp_pipeline.model.plain_text import exactly

_LEAST = 4


def found_entry(ledger: Ledger, *, key: str | None, entry: int | None) -> Entry:
    """Return the release that a key or the number of an entry names; of several revisions the latest.

    Raises
    ------
    ArgumentError
        If there is none, or `key` is the start of several keys.
    """
    if entry is not None:
        for one in ledger.entries(given_back=True):
            if one.sequence == entry:
                return one
        raise ArgumentError(
            f"--entry {entry}: data set {ledger.dataset!r} has no such entry. This lists them: "
            f"{command('show', ledger.location, '--all')}"
        )
    start = (key or "").strip().lower()
    if len(start) < _LEAST:
        raise ArgumentError(f"--key must be the start of a key or of a release's id, {_LEAST} characters at least.")
    found = [
        one
        for one in ledger.entries(given_back=True)
        if one.key.lower().startswith(start) or (one.release_id or "").lower().startswith(start)
    ]
    if not found:
        raise ArgumentError(f"--key: data set {ledger.dataset!r} has no key and no id that starts so.")
    if len({one.key for one in found}) > 1:
        raise ArgumentError("--key is the start of several: give more of it, or --entry.")
    return found[-1]


def explain_entry(screen: Screen, ledger: Ledger, entry: Entry, *, delta: float) -> None:
    """Print what one release promises, its terms and its events."""
    standing = entry.standing
    screen.title(f"Entry {entry.sequence}: {entry.label}, {entry.period}")
    screen.head("What it is")
    who = f"one value of {', '.join(map(repr, entry.unit))}" if entry.unit else "every row"
    where = "a predicate that was not written down" if standing.opaque else standing.where
    rows = [
        ("State", state_words(entry.state)),
        ("Published", mechanism_words(standing.mechanism, standing.protects)),
        ("Noise", noise_words(standing.mechanism)),
        ("A person", who),
        ("Cells", ", ".join(standing.by) if standing.by else "none: one number"),
        ("Rows", where or "all"),
        ("Revision", str(entry.revision)),
        ("Key", entry.key),
        ("Release id", entry.release_id or "none yet"),
    ]
    screen.pairs(rows)
    former = counted(map(describe, entry.certificates))
    earlier = "" if former == describe(entry.certificate) else amount(certificate_of(former).epsilon(delta))
    total, events = _events(ledger, entry)
    sentence = Certificate.from_json(entry.certificate).sentence(delta)
    screen.page(pages(entry=entry).single(sentence, earlier, exactly(delta), total, events))


def _events(ledger: Ledger, entry: Entry) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many events the chain has, and those of one entry."""
    ((total,),) = ledger.records.execute("SELECT count(*) FROM event WHERE dataset = :dataset")
    rows = ledger.records.execute(
        "SELECT position, kind, created_at, hash FROM event WHERE dataset = :dataset AND key = :key "
        "AND revision = :revision AND sequence >= :id ORDER BY position",
        **entry.row._asdict(),
    )
    # What was given back may have been reserved again under the same revision.
    own: list[tuple[Any, ...]] = []
    for row in rows:
        if own and row[1] == "reserved":
            break
        own.append(row)
    return int(total), own
