"""Verification of reports: each is made again from its content, that from its certificates, and held to a ledger.

A ledger settles its releases, its total and its points: they are those of the ledger.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import SEARCHED, differences
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.extras.assurance.verification.claims import (
    BrokenError,
    Claim,
    Nested,
    UncheckedError,
    checked,
    no_bolder,
)
from pkdp_pipeline.extras.assurance.verification.files import Opened
from pkdp_pipeline.extras.assurance.verification.ledgers import ledger_claims, without_ledger
from pkdp_pipeline.extras.report.pages import document_of
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.extras.report.verification.pages import content_claims, page_claims
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.history import History, read_history, spending
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import key_columns, noised_below, value_columns
from pkdp_pipeline.model.spelling import joined, key_text, printable
from pkdp_pipeline.releases.printed import published_table
from pkdp_pipeline.releases.release import Release

__all__ = ["report_claims"]

Certified = Callable[[dict[str, Any], str, int], tuple[list[Claim], list[Nested]]]
"""Returns the claims of one certificate, and it with its parts: its document, the key it has, among so many."""


def report_claims(file: Opened, ledger: str | None, certified: Certified) -> Iterator[Claim]:
    """Yield the claims of a report, of all certificates in it, and of the ledger where one is given."""
    document, claims = file.document, list(page_claims(file))
    yield from claims
    if claims[0].outcome == "fail":  # its structure is not that of a report
        return
    promised: list[Certificate | None] = []
    carried = sum(promise["certificate"] is not None for promise in document["promises"])
    for place, promise in enumerate(document["promises"]):
        nested: list[Nested] = []
        if promise["certificate"] is not None:
            claims, nested = certified(promise["certificate"], f"promises.{place}", carried)
            yield from claims
        promised.append(nested[-1].certificate if nested else None)
    yield from content_claims(document, promised)
    if ledger is None:
        yield from without_ledger(file.kind)
    else:
        further = functools.partial(report_ledger_claims, document=document)
        yield from ledger_claims(ledger, document["title"], None, further)


_SECONDS = 600.0


def report_ledger_claims(ledger: Ledger, document: dict[str, Any]) -> Iterator[Claim]:
    """Yield whether a report's releases, total and points are those of the ledger."""
    with ledger.records.snapshot():
        entries = {entry.release_id: entry for entry in ledger.entries() if entry.state == "published"}
        history = read_history(ledger)
        checks = {"ledger.holds": lambda: _releases(entries, document)}
        checks["ledger.series"] = lambda: _series(entries.values(), document)
        account = document["ledger"]
        units = (unit for unit in history.units if ", ".join(map(printable, json.loads(unit))) == account["unit"])
        unit = next(units, None)
        yield from checked(checks)
        yield from checked({"ledger.total": lambda: _total(ledger, history, unit, document)})
        if unit is not None and account["head"] == history.head:
            yield from checked({"ledger.points": lambda: _points(history, unit, document)})


def _releases(entries: dict[str | None, Entry], document: dict[str, Any]) -> str:
    for place, shown in enumerate(document["releases"]):
        path, entry = f"releases[{place}]", entries.get(shown["id"])
        if entry is None or entry.content is None:
            raise BrokenError(f"{path} is not in the ledger: no published release has its id.")
        if (entry.period, entry.revision) != (shown["period"], shown["revision"]):
            raise BrokenError(f"{path} is about another period or revision there.")
        fresh = document_of(published_table(Release.from_bytes(entry.content)))
        no_bolder(differences(f"{path}.table", shown["table"], fresh))
        stored, reported = json.loads(entry.certificate), document["promises"][shown["promise"]]["certificate"]
        if reported is None:
            raise BrokenError(f"{path}: the report carries no certificate to compare with the ledger's.")
        # Where others undo it, the report promises what the noise alone gives, against anyone.
        anyone = AttackerModel.from_dict(stored["attacker"]).against_anyone().to_dict()
        same = all(reported[name] == stored[name] for name in ("mechanism", "protects"))
        if not same or reported["attacker"] not in (stored["attacker"], anyone):
            raise BrokenError(f"{path}: its promise is about other terms than the ledger's certificate.")
    return f"{len(document['releases'])} of them, each with its id, its table and its terms."


_differences = functools.partial(differences, none_is_infinite=True, rounding=lambda steps: SEARCHED)


def _total(ledger: Ledger, history: History, unit: str | None, document: dict[str, Any]) -> str:
    account = document["ledger"]
    if account["head"] != history.head:
        known = account["head"] in {event.hash for event in ledger.records.events()}
        raise (UncheckedError if known else BrokenError)(
            f"The report names {'an earlier head of' if known else 'no head of'} the ledger, so its total cannot be "
            "compared: make the report again."
        )
    if unit is None:
        raise BrokenError("The ledger holds no releases for the unit that the report names.")
    stored = account["total"]
    try:
        total = ledger.totals().total(unit)
    except NoEvidenceError:
        if stored is None:
            return "There is none: the releases do not add up."
        raise BrokenError("The releases do not add up, and the report states a total.") from None
    if stored is None:
        raise BrokenError("The releases add up, and the report says that they do not.")
    deviations = _differences("ledger.total", stored, document_of(Statement.of(total, float(stored["delta"]))))
    return f"Added up again from {account['releases']} releases: {no_bolder(deviations)}."


def _points(history: History, unit: str, document: dict[str, Any]) -> str:
    account, stored = document["ledger"], document["ledger"]["points"]
    if not stored:
        raise UncheckedError("The report has none.")
    named = {printable(line.standing.period): line.standing.period for line in history.lines}
    if any(point["period"] not in named for point in stored):
        raise BrokenError("One is at a period of which the ledger holds nothing.")
    periods = {named[point["period"]] for point in stored}
    points = spending(
        history, unit, float(account["delta"]), max_points=len(stored) + 1, periods=periods, seconds=_SECONDS
    )
    fresh = [document_of(replace(point, period=printable(point.period))) for point in points]
    return f"{len(stored)} points added up again: {no_bolder(_differences('ledger.points', stored, fresh))}."


def _series(entries: Iterable[Entry], document: dict[str, Any]) -> str:
    """Return whether every period of every series has a published release that shows these counts."""
    wanted = {period for series in document["series"] for period in series["periods"]}
    releases: dict[str, list[Release]] = {period: [] for period in wanted}
    for entry in entries:
        if printable(entry.period) in wanted and entry.content is not None:
            releases[printable(entry.period)].append(Release.from_bytes(entry.content))
    rows = 0
    for place, series in enumerate(document["series"]):
        for number, (period, counts) in enumerate(zip(series["periods"], series["counts"], strict=True)):
            shown = counts if "exact" not in series else list(zip(counts, series["exact"][number], strict=True))
            row = dict(zip(series["cells"], shown, strict=True))
            if not any(_shows(release, row, complete=not series["more_cells"]) for release in releases[period]):
                raise BrokenError(
                    f"series[{place}]: no published release about {period} has these counts.", period=period
                )
            rows += 1
    return f"{rows} periods of series: each is in the ledger."


def _shows(release: Release, row: dict[str, Any], *, complete: bool) -> bool:
    """Return whether a release has the counts of a row, and, where all cells are said to be in it, no others.

    Where small counts are noised, each count stands beside whether it is exact.
    """
    by, cells = len(key_columns(name for name, _ in release.sealed.cells.columns)), []
    for values in release.sealed.rows:
        quoted = joined([key_text(value, quoted=isinstance(value, str)) for value in values[:by]])
        plain = joined([key_text(value) for value in values[:by]])
        count, *exact = values[by:]
        number = value_columns(release.certificate.mechanism)[0]
        cells.append((plain or number, quoted or number, (count, *exact) if exact else count))
    nothing = (None, None) if noised_below(release.certificate.mechanism) else None
    # Where the plain names of two cells are the same, a series has the others.
    counts = Counter(plain for plain, _, _ in cells)
    named = [({quoted, plain} if counts[plain] == 1 else {quoted}, count) for plain, quoted, count in cells]
    known = {name: count for names, count in named for name in names}
    if any(known.get(name, nothing) != count for name, count in row.items()):
        return False
    return not complete or all(count == nothing or names & set(row) for names, count in named)
