"""A report held against the ledger it was made from: its releases, its total and its points over time."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.assurance.verification.claims import BrokenError, Claim, UncheckedError, checked
from pkdp_pipeline.certificates.differences import SEARCHED, described, differences, outcome_of
from pkdp_pipeline.certificates.statement import Statement
from pkdp_pipeline.display.report.json_form import document_of
from pkdp_pipeline.display.report.tables import published_table
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.plain_text import joined, key_text, printable
from pkdp_pipeline.model.wording import moved
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.ledger import Entry
    from pkdp_pipeline.ledger.views.history import History
    from pkdp_pipeline.ledger.views.reading import Reading

__all__ = ["report_ledger_claims"]

_HOLDS = "The ledger holds every release that the report shows, with this table and these terms."
_TOTAL = "The report's total is what the ledger's releases add up to."
_SERIES = "The ledger holds a release for every period of every series, with these counts."
_POINTS = "The points over time are what the ledger's releases add up to after each period."
_SECONDS = 600.0


def report_ledger_claims(reading: Reading, document: dict[str, Any]) -> Iterator[Claim]:
    """Yield whether a report's releases, total and points are those of the ledger."""
    from pkdp_pipeline.ledger.views.history import read_history

    with reading.database.snapshot():
        entries = {entry.release_id: entry for entry in reading.ledger.entries() if entry.state == "published"}
        history = read_history(reading.ledger)
        yield from checked(("ledger.holds", _HOLDS, functools.partial(_releases, entries, document)))
        yield from checked(("ledger.series", _SERIES, functools.partial(_series, list(entries.values()), document)))
        unit = _unit(history, document["ledger"])
        total = next(checked(("ledger.total", _TOTAL, functools.partial(_total, reading, history, unit, document))))
        yield total
        if unit is not None and document["ledger"]["head"] == history.head:
            yield from checked(("ledger.points", _POINTS, functools.partial(_points, history, unit, document)))


def _releases(entries: dict[str | None, Entry], document: dict[str, Any]) -> str:
    for place, shown in enumerate(document["releases"]):
        path, entry = f"releases[{place}]", entries.get(shown["id"])
        if entry is None or entry.content is None:
            raise BrokenError(f"{path} is not in the ledger: no published release has its id.")
        if entry.period != shown["period"] or entry.revision != shown["revision"]:
            raise BrokenError(f"{path} is about another period or revision there.")
        try:
            release = Release.from_bytes(entry.content)
        except ArgumentError as error:
            raise BrokenError(f"{path}: {error}") from None
        table = published_table(release.table)
        fresh = {
            "columns": list(table.columns),
            "keys": [list(row) for row in table.keys],
            "counts": list(table.counts),
            "more": table.more,
        }
        found = differences(f"{path}.table", shown["table"], fresh)
        if found:
            raise BrokenError(f"{described(found)}.")
        fault = _other_terms(json.loads(entry.certificate), document["promises"], shown["promise"])
        if fault:
            raise BrokenError(f"{path}: {fault}")
    return f"{len(document['releases'])} of them, each with its id, its table and its terms."


def _other_terms(stored: dict[str, Any], promises: list[dict[str, Any]], place: int) -> str:
    """Return how the promise a release points to departs from its certificate; empty where it does not."""
    its = promises[place]["certificate"] if place < len(promises) else None
    if its is None:
        return "the report carries no certificate to compare with the ledger's."
    if any(its.get(name) != stored[name] for name in ("mechanism", "protects")):
        return "its promise is about another mechanism than the ledger's certificate."
    # Where others undo it, the report promises what the noise alone gives, against anyone.
    if its["attacker"] not in (stored["attacker"], _anyone(stored["attacker"])):
        return "its promise is about another attacker than the ledger's certificate."
    return ""


def _anyone(attacker: dict[str, Any]) -> dict[str, Any]:
    """Return anybody at all, to whom the same is told beside the releases."""
    return AttackerModel.from_dict(attacker).against_anyone().to_dict()


def _unit(history: History, account: dict[str, Any]) -> str | None:
    for unit in history.units:
        if ", ".join(map(printable, json.loads(unit))) == account["unit"]:
            return unit
    return None


def _total(reading: Reading, history: History, unit: str | None, document: dict[str, Any]) -> str:
    from pkdp_pipeline.ledger.chain import Journal
    from pkdp_pipeline.ledger.views.reading import stated_total

    account = document["ledger"]
    if account["head"] != history.head:
        known = account["head"] in {event.hash for event in Journal(reading.database).events(history.dataset)}
        raise (UncheckedError if known else BrokenError)(
            f"The report names {'an earlier head of' if known else 'no head of'} the ledger, so its total cannot be "
            "compared: make the report again."
        )
    if unit is None:
        raise BrokenError("The ledger holds no releases for the unit that the report names.")
    stored = account["total"]
    try:
        total = stated_total(reading, unit)
    except NoEvidenceError:
        if stored is None:
            return "There is none: the releases do not add up."
        raise BrokenError("The releases do not add up, and the report states a total.") from None
    if stored is None:
        raise BrokenError("The releases add up, and the report says that they do not.")

    def rewritten(share: float) -> Any:
        with moved(share):
            return json.loads(json.dumps(document_of(Statement.of(total, float(stored["delta"])))))

    fresh = rewritten(0.0)
    found = differences(
        "ledger.total", stored, fresh, none_is_infinite=True, rounding=lambda path: SEARCHED, rewritten=rewritten
    )
    if not all(one.is_weaker for one in found):
        raise BrokenError(f"{described(found)}.")
    return f"Added up again from {account['releases']} releases: {outcome_of(found)}."


def _points(history: History, unit: str, document: dict[str, Any]) -> str:
    from pkdp_pipeline.ledger.views.history import spending

    account, stored = document["ledger"], document["ledger"]["points"]
    if not stored:
        raise UncheckedError("The report has none.")
    named = {printable(line.standing.period): line.standing.period for line in history.lines}
    strangers = [point for point in stored if point["period"] not in named]
    if strangers:
        raise BrokenError("One is at a period of which the ledger holds nothing.")
    periods = {named[point["period"]] for point in stored}
    found = spending(history, unit, float(account["delta"]), most=len(stored) + 1, periods=periods, seconds=_SECONDS)
    fresh = [
        {
            "period": printable(point.period),
            "releases": point.releases,
            "epsilon": None if point.epsilon == math.inf else point.epsilon,
            "worst_case": None if point.worst_case == math.inf else point.worst_case,
        }
        for point in found
    ]
    different = differences("ledger.points", stored, fresh, none_is_infinite=True, rounding=lambda path: SEARCHED)
    if not all(one.is_weaker for one in different):
        raise BrokenError(f"{described(different)}.")
    return f"{len(stored)} points added up again: {outcome_of(different)}."


def _series(entries: Sequence[Entry], document: dict[str, Any]) -> str:
    """Return whether every period of every series has a published release that shows these counts."""
    tables: dict[str, list[dict[str, int | None]]] = {}
    wanted = {period for series in document["series"] for period in series["periods"]}
    for entry in entries:
        period = printable(entry.period)
        if period in wanted and entry.content is not None:
            tables.setdefault(period, []).append(_named(Release.from_bytes(entry.content).table))
    rows = 0
    for place, series in enumerate(document["series"]):
        if {len(counts) for counts in series["counts"]} - {len(series["cells"])}:
            raise BrokenError(f"series[{place}] has not one count for every period and cell.")
        for period, counts in zip(series["periods"], series["counts"], strict=False):
            row = dict(zip(series["cells"], counts, strict=True))
            complete = not series["more_cells"]
            if not any(_shows(table, row, complete=complete) for table in tables.get(period, ())):
                raise BrokenError(
                    f"series[{place}]: no published release about {period} has these counts.", period=period
                )
            rows += 1
    return f"{rows} periods of series: each is in the ledger."


def _shows(table: dict[str, int | None], row: dict[str, int | None], *, complete: bool) -> bool:
    """Return whether a table has the counts of a row, and, where all cells are said to be in it, no others."""
    if any(table.get(name) != count for name, count in row.items()):
        return False
    return not complete or all(count is None or name in row or _twin(name, row) for name, count in table.items())


def _twin(name: str, row: dict[str, int | None]) -> bool:
    """Return whether a cell is in the row under its other name."""
    return name.replace('"', "") in {known.replace('"', "") for known in row}


def _named(table: pd.DataFrame) -> dict[str, int | None]:
    """Return the counts of a table by the names of its cells, those with quotation marks included."""
    import pandas as pd

    found: dict[str, int | None] = {}
    plain: Counter[str] = Counter()
    for *cell, count in table.itertuples(index=False, name=None):
        number = None if pd.isna(count) else int(count)
        name = joined([key_text(value) for value in cell]) or "count"
        plain[name] += 1
        found[name] = number
        found[joined([key_text(value, quoted=isinstance(value, str)) for value in cell]) or "count"] = number
    return {name: number for name, number in found.items() if plain[name] < 2}
