"""Verification of reports: each is made again from its content, that from its certificates, and held to a ledger.

The ledger settles whether releases, total and points are its own.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import SEARCHED, Rounding, Steps, differences
from pkdp_pipeline.certificates.composed import ComposedCertificate, releases_in
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.extras.assurance.verification import ledger_claims, without_ledger
from pkdp_pipeline.extras.assurance.verification.claims import (
    BrokenError,
    Claim,
    Nested,
    UncheckedError,
    checked,
    follows,
    no_bolder,
)
from pkdp_pipeline.extras.assurance.verification.files import Opened, is_found, least_noised, least_shown
from pkdp_pipeline.extras.report.content import EVERYTHING
from pkdp_pipeline.extras.report.figures import need_matplotlib
from pkdp_pipeline.extras.report.pages import document_of, render, report_of_document
from pkdp_pipeline.extras.report.pages.gathering import promise_of
from pkdp_pipeline.extras.report.statement import Statement
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.history import History, budget_words, read_history, spending
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.display import least_shown as least_displayed
from pkdp_pipeline.model.mechanisms import Count, Sum, key_columns, noised_below, value_columns
from pkdp_pipeline.model.period import joined, key_text, printable
from pkdp_pipeline.model.wording import PYTHON, names_guarantee, rounded_up
from pkdp_pipeline.releases.derived import expected_error
from pkdp_pipeline.releases.printed import bands_of, counted_words, published_table, steps_words
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.schemas import VERSION

_NUMBERS = ("protects", "delta", "epsilon", "numbers", "worst_case")
_COMPUTED = {"statement", "curve", "knowledge", "scenarios", "certificate", "sentence", "theorems"}
_COMPUTED |= {"lead", "total", "declared", "budgets", "keys"}
"""Members whose texts are computed again; and the keys of tables, which are data."""

_MIN_RATIO = 0.98
"""A total may be evaluated a little more closely than the promise of one release in it, by no more than this."""

Promised = Sequence[Certificate | None]
"""The certificate of each promise, made again; None where the report withholds it, or it cannot be certified."""


def page_claims(file: Opened) -> Iterator[Claim]:
    """Yield whether a report is built as its schema says, and is what its content renders to."""
    document = file.document
    structure = next(checked({"report.structure": lambda: follows(document, "report.v1.json")}))
    yield structure
    if structure.outcome == "pass":
        yield from checked({"report.page": lambda: _page(file)})


def content_claims(document: dict[str, Any], promised: Promised) -> Iterator[Claim]:
    """Yield whether the content of a report is what its certificates give."""
    yield from checked(
        {
            "report.content": lambda: _content(document, promised),
            "releases.tables": lambda: _tables(document, promised),
            "report.total": lambda: _stated_total(document, promised),
        }
    )
    yield from checked({"report.texts": lambda: _texts(document)})
    yield Claim("report.origin", "not_checked", "They are copied, and neither job nor ledger is in the report.")


def _page(file: Opened) -> str:
    if file.form == "html" and file.reader == "everybody":
        need_matplotlib()
    try:
        rendered = render(report_of_document(file.document), file.form, file.reader).encode()
    except Exception as error:  # a template or a drawing meets values that no report has
        raise BrokenError(f"Its content cannot be rendered ({type(error).__name__}).") from None
    if rendered == file.content:
        return f"Rendered again: the same {len(rendered)} bytes."
    lines = zip(rendered.splitlines(), file.content.splitlines(), strict=False)
    first = next((number for number, (own, other) in enumerate(lines, 1) if own != other), None)
    where = "its end" if first is None else f"line {first}"
    named = file.document["provenance"]["version"]
    other = "" if named == VERSION else f" It names version {named}, and this is {VERSION}: verify it with that one."
    raise BrokenError(f"It is another one from {where} on.{other}")


def _content(document: dict[str, Any], promised: Promised) -> str:
    fresh = _again(document, promised)
    rounding = _rounding(fresh, promised)
    outcome = no_bolder(
        differences("", document, fresh, skip={"certificate"}, none_is_infinite=True, rounding=rounding)
    )
    if None in promised:
        place = list(promised).index(None)
        raise UncheckedError(f"The certificate of promises[{place}] is not in it; the others give {outcome}.")
    return f"Computed again from {len(promised)} certificates: {outcome}."


def _again(document: dict[str, Any], promised: Promised) -> dict[str, Any]:
    """Return the content, with all that certificates give computed again."""
    fresh = copy.deepcopy(document)
    for promise, certificate in zip(fresh["promises"], promised, strict=True):
        if certificate is not None:
            delta = float(promise["statement"]["delta"])
            recomputed = promise_of(promise["name"], certificate, delta, documented=False)
            promise.update(document_of(recomputed))
    for place, release in enumerate(fresh["releases"]):
        own = _promise_of(release, promised, place)
        if own is not None:
            delta = float(fresh["promises"][release["promise"]]["statement"]["delta"])
            error, about = expected_error(own.mechanism), own.context
            if about is not None:
                own = own.in_context(replace(about, period=release["period"]))
                fresh["ledger"]["unit"] = ", ".join(map(printable, about.unit))
                fresh["title"] = fresh["title"] if about.dataset is None else printable(about.dataset)
            noised = None if own.mechanism.noise is None else asdict(error)
            release.update(rule=error.suppression, k=own.mechanism.k, error=noised, sentence=own.sentence(delta))
    first, account = fresh["promises"][0], fresh["ledger"]
    if fresh["lead"] is not None:
        fresh["lead"], fresh["lead_reason"] = first["statement"], ""
    if account["total"] is not None:
        account["reason"] = ""
    total = promised[0] if first["name"] == EVERYTHING else None
    if account["total"] is not None and first["name"] == EVERYTHING:
        account["total"] = first["statement"]
    elif account["total"] is not None and account["releases"] == len(promised) == 1 and not account["remarks"]:
        account["total"] |= {name: first["statement"][name] for name in _NUMBERS}
    if isinstance(total, ComposedCertificate):
        account["declared"] = [declaration.declares for declaration in total.evidence]
    _last_point(account)
    for budget in account["budgets"]:
        declared = Budget(budget["epsilon"], budget["delta"], part=budget["part"], window_days=budget["window_days"])
        budget["words"] = budget_words(declared, (budget["part"],))
        budget.update(_spent(budget, account, total))
    theorems: list[dict[str, str]] = []
    for promise in fresh["promises"]:
        theorems += [theorem for theorem in promise["statement"]["theorems"] if theorem not in theorems]
    fresh["provenance"]["theorems"] = theorems
    return fresh


def _promise_of(release: dict[str, Any], promised: Promised, place: int) -> ReleaseCertificate | None:
    """Return the certificate of the promise that a release points to; None where the report withholds it."""
    certificate = promised[release["promise"]] if release["promise"] < len(promised) else False
    if certificate is None or isinstance(certificate, ReleaseCertificate):
        return certificate
    raise BrokenError(f"releases[{place}] points to no promise of one release")


def _last_point(account: dict[str, Any]) -> None:
    """Put the total's numbers into the last point, where they are at its δ."""
    total, points = account["total"], account["points"]
    if total is None or not points or total["delta"] != account["delta"]:
        return
    points[-1]["epsilon"] = total["epsilon"]
    worst, last = total["worst_case"], points[-1]["worst_case"]
    if worst is None:
        return
    # Where δ = 0 is certified, the pair has the ε that is shown.
    pure = worst["delta"] == 0.0 and account["releases"] > 1
    if worst["delta"] == account["delta"] or (pure and (last is None or float(rounded_up(last)) != worst["epsilon"])):
        points[-1]["worst_case"] = worst["epsilon"]


def _spent(budget: dict[str, Any], account: dict[str, Any], total: Certificate | None) -> dict[str, Any]:
    """Return what the total gives of a budget; what is stored where only the ledger gives it."""
    state, own = budget["spent_state"], budget["part"] == "partial_knowledge"
    if (budget["spent"] is None) == (state == "certified"):
        raise BrokenError("a budget says two different things about what is spent")
    if budget["window_days"] is not None or state == "not known":
        return {}
    if total is not None:
        spent = (total if own else total.worst_case).epsilon(float(budget["delta"]))
    elif own and account["total"] is not None and budget["delta"] == account["total"]["delta"]:
        spent = _infinite(account["total"]["epsilon"])
    else:
        return {}
    if math.isinf(spent):
        return {"spent": None, "spent_state": "none"}
    return {"spent": spent, "spent_state": "certified"}


def _rounding(fresh: dict[str, Any], promised: Promised) -> Rounding:
    """Return by what share a number may differ elsewhere: as ε does, or as the curve at its ε."""

    @functools.cache
    def shares(place: int) -> dict[str, Any]:
        certificate, promise = promised[place], fresh["promises"][place]
        assert certificate is not None  # what is withheld is not computed again
        epsilons = np.array(promise["curve"]["epsilons"], dtype=np.float64)
        stated = certificate.stated(float(promise["statement"]["delta"]))
        return dict(zip(("attained", "certified"), stated.rounding(epsilons), strict=True))

    def rounding(steps: Steps) -> float:
        match steps:
            case ("promises", int(promise), "curve", "attained" | "certified" as side, int(place)):
                return max(SEARCHED, float(shares(promise)[side][place]))
        return SEARCHED

    return rounding


def _tables(document: dict[str, Any], promised: Promised) -> tuple[str, dict[str, int]]:
    faults: list[tuple[str, Iterator[str]]] = []
    for place, release in enumerate(document["releases"]):
        certificate = _promise_of(release, promised, place)
        faults.append((f"releases[{place}]", _table_faults(release, document["ledger"]["unit"], certificate)))
    least = [least_shown(promise) for promise in promised if isinstance(promise, ReleaseCertificate)]
    lowest = None if None in least else min((threshold for threshold in least if threshold is not None), default=None)
    for place, series in enumerate(document["series"]):
        faults.append((f"series[{place}]", _series_faults(series, document["releases"], lowest)))
    for where, messages in faults:
        for fault in messages:
            raise BrokenError(f"{where}: {fault}.")
    rows = sum(len(release["table"]["counts"]) for release in document["releases"])
    older = " Counts of older periods were held to the lowest threshold only." if document["series"] else ""
    return f"{rows} counts in {len(document['releases'])} tables.{older}", {"rows": rows}


def _table_faults(release: dict[str, Any], unit: str, certificate: ReleaseCertificate | None) -> Iterator[str]:
    """Yield which rules a release's table breaks, then its question. Without a certificate, the table's shape alone."""
    columns, keys, counts = (release["table"][name] for name in ("columns", "keys", "counts"))
    marks = release["table"].get("exact")
    if not len(keys) == len(counts) == len(set(map(tuple, keys))) or any(len(key) != len(columns) for key in keys):
        yield "it has not one key and one count for every cell"
    yield from _mark_faults(counts, marks)
    if certificate is None:
        return
    is_count = isinstance(certificate.mechanism, Count) or (isinstance(certificate.mechanism, Sum) and not columns)
    if is_count == bool(columns) or (is_count and (len(counts) != 1 or release["table"]["more"])):
        yield "its columns are not those of what the certificate is about"
    if is_found(certificate) and None in counts:
        yield "cells are found in the data, so a suppressed one has no row; here one has"
    if noised_below(certificate.mechanism) != (marks is not None):
        yield "its marks of which counts are exact are not those of what the certificate is about"
    elif marks is not None:
        exact = [count for count, mark in zip(counts, marks, strict=True) if mark]
        least_exact = least_displayed(certificate.mechanism.display, certificate.mechanism.k or 0)
        if any(count < least_exact for count in exact):
            yield f"a count below {least_exact} is marked as exact"
        counts = [count for count, mark in zip(counts, marks, strict=True) if mark is False]
    bands = bands_of(certificate.mechanism)
    if release["table"].get("bands") != (None if bands is None else list(bands)):
        yield "its bands are not those of what the certificate is about"
    least = least_noised(certificate.mechanism) if marks is not None else least_shown(certificate)
    if least is not None and any(count is not None and count < least for count in counts):
        yield f"a count is below {least}, which the mechanism never publishes"
    question = release["asked"]
    summed = None if certificate.context is None else certificate.context.summed
    begins, ends = counted_words(unit, columns, summed), steps_words(columns, certificate.mechanism, PYTHON)
    # A filter is the job's own.
    filtered = question.startswith(f"{begins}, where ") and question.endswith(ends)
    if question != f"{begins}{ends}" and not filtered:
        yield "the question is not that of its table and its promise"


def _mark_faults(counts: Sequence[int | None], marks: Sequence[bool | None] | None) -> Iterator[str]:
    """Yield whether some counts have no mark, or some marks no count."""
    if marks is not None and [count is None for count in counts] != [mark is None for mark in marks]:
        yield "it does not mark which counts are exact"


def _series_faults(series: dict[str, Any], releases: Sequence[dict[str, Any]], lowest: int | None) -> Iterator[str]:
    """Yield what is wrong with a series: its shape, a low count, or the period whose table the report shows."""
    periods, counts, cells = series["periods"], series["counts"], series["cells"]
    if len(counts) != len(periods) or any(len(row) != len(cells) for row in counts):
        yield "it has not one count for every period and cell"
    marks = series.get("exact")
    if marks is not None and len(marks) != len(counts):
        yield "it does not mark which counts are exact"
    for row, marks_of_row in zip(counts, marks or (), strict=False):
        yield from _mark_faults(row, marks_of_row)
    if len(set(periods)) < len(periods) or len(set(cells)) < len(cells):
        yield "a period or a cell is named twice"
    if lowest is not None and any(count is not None and count < lowest for row in counts for count in row):
        yield f"a count is below {lowest}, which no mechanism of the report publishes"
    for release in releases:
        if release["name"] == series["name"] and release["period"] in periods:
            names = [joined(key) or series.get("number", "count") for key in release["table"]["keys"]]
            shown = dict(zip(names, release["table"]["counts"], strict=True))
            # Names in quotation marks are made where texts and numbers would look the same.
            clear = '"' not in "".join((*names, *cells)) and len(shown) == len(names) and not release["table"]["more"]
            if clear and [shown.get(cell) for cell in cells] != counts[periods.index(release["period"])]:
                yield "its last period is not what the table of that release says"
            last = periods.index(release["period"])
            shown = dict(zip(names, release["table"].get("exact") or (), strict=False))
            if clear and [shown.get(cell) for cell in cells] != (marks or {last: [None] * len(cells)})[last]:
                yield "its marks of which counts are exact are not those of the table of that release"


def _stated_total(document: dict[str, Any], promised: Promised) -> str:
    """Return whether the total counts what is charged; its numbers are compared with the rest of the content."""
    account = document["ledger"]
    total, points, first = account["total"], account["points"], promised[0]
    numbers = [point["releases"] for point in points]
    if numbers != sorted(numbers) or (numbers and numbers[-1] != account["releases"]):
        raise BrokenError("The points do not count up to the releases that are charged.")
    if total is None:
        raise UncheckedError("There is none; whether the releases really do not add up is in the ledger.")
    if document["promises"][0]["name"] == EVERYTHING and first is not None:
        counted = first.releases if isinstance(first, ComposedCertificate) else 1
        if counted != account["releases"]:
            raise BrokenError(f"The total adds up {counted} releases, and {account['releases']} are charged.")
        parts = {release.mechanism for release in releases_in(first)}
        if any(
            isinstance(certificate, ReleaseCertificate) and certificate.mechanism not in parts
            for certificate in promised
        ):
            raise BrokenError("The total has no part like one of the promises.")
    else:
        for place, promise in enumerate(document["promises"]):
            if _is_below(total, promise["statement"], promised[place]):
                raise BrokenError(f"It is lower than promises[{place}], which is part of it.")
    if first is None or (document["promises"][0]["name"] != EVERYTHING and account["releases"] > 1):
        raise UncheckedError(
            "Not all certificates of what is charged are in the report. The ledger has them: give it with --ledger."
        )
    if len(points) > 1 or any(budget["window_days"] is not None for budget in account["budgets"]):
        raise UncheckedError("The total is; earlier points and windows are computed from the ledger only.")
    return "They are."


def _texts(document: dict[str, Any]) -> str:
    copied = list(_copied(document))
    for text in copied:
        if names_guarantee(text):
            raise BrokenError(f"Nothing here certifies what one says: {text}")
    return f"{len(copied)} texts were read."


def _copied(value: Any) -> Iterator[str]:
    """Yield all texts that are copied from elsewhere."""
    if isinstance(value, str):
        yield value
    for inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if inner[0] not in _COMPUTED:
            yield from _copied(inner[1])


def _is_below(total: dict[str, Any], part: dict[str, Any], certificate: Certificate | None) -> bool:
    """Return whether a number of a total is lower than that of one of its parts."""
    if total["protects"] != part["protects"] or total["delta"] != part["delta"]:
        return False
    # A statement of what noise gives leaves out what is smaller against the declared attacker.
    known = {
        pair["epsilon"]: pair["delta"] if certificate is None else certificate.delta(float(pair["epsilon"]))
        for pair in part["numbers"]
    }
    return _infinite(total["epsilon"]) < _infinite(part["epsilon"]) * _MIN_RATIO or any(
        pair["delta"] < known.get(pair["epsilon"], 0.0) * _MIN_RATIO for pair in total["numbers"]
    )


def _infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)


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
