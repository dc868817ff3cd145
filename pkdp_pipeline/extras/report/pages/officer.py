"""Officer: a report on two pages, for somebody who answers for the protection of data; every symbol beside its word."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pkdp_pipeline.certificates import sentences
from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.extras.report.content import BudgetLine, Promise, ReleaseView, Report
from pkdp_pipeline.extras.report.pages.plain_words import (
    DECLARED,
    PLAIN,
    absent_note,
    anyone,
    argued,
    attackers,
    budget_lines,
    chance,
    exact_note,
    factor,
    is_about_the_attacker,
    is_exact,
    is_weak,
    leak,
    ledger_total,
    meaning,
    named,
    strength,
    sureness,
    withheld_in,
    worst_meaning,
)
from pkdp_pipeline.extras.report.statement import Scenario, Statement
from pkdp_pipeline.extras.report.statement.what_if import only_noise, words_of
from pkdp_pipeline.ledger.history import amount, number_of
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.evidence import evidence_from_dicts
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import capital, fitting, rounded_up, spoken
from pkdp_pipeline.releases.printed import asked_sentence, corrected, noise_sentence, shown_count
from pkdp_pipeline.theorems.without_suppression import TOLD_ABSENT

_MAX_ROWS = (12, 10, 5)  # of one table, of each of two, and of three; beside a long argument half as many
_MAX_TABLES = len(_MAX_ROWS)
_MAX_COLUMNS = 4
_MAX_LETTERS = 32  # of a name in a table
_LONG_ARGUMENT, _MAX_ARGUMENT = 700, 1000  # letters of an argument

_FIXED = {
    sentences.BEFORE_LOOKING: "The attacker's numbers were declared before looking at the data, and not estimated from "
    "them.",
    sentences.CELLS_DECLARED: "The promise holds only for cells that are declared beforehand, not taken from the data.",
    sentences.FIXED_BEFOREHAND: "Which releases are made, and with which parameters, was fixed before the first of "
    "them; where later ones were chosen after seeing earlier ones, only the sums of worst-case strengths (ε) and leaks "
    "(δ) hold.",
    TOLD_ABSENT: "Told that a person is either absent or in one given published cell, the attacker cannot be sure "
    "which: absence is likely enough. The declared limit of sureness (p_max) is for the cells as they are published, "
    "after any grouping.",
}
"""Sentences with symbols that are always the same, and in words."""

_Item = TypeVar("_Item")

Kind = Literal["text", "lead", "list", "quote", "table", "steps", "codes", "sign"]


Block = tuple[Kind, Any]
Blocks = Iterator[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the pages.

    Parameters
    ----------
    title : str
    blocks : tuple of (str, object)
        Its pieces, in order: the kind of each and its texts.
    """

    title: str
    blocks: tuple[Block, ...]


class _Words:
    """Every sentence of a report in words; one that follows from no certificate of the report as it stands."""

    def __init__(self, report: Report) -> None:
        documents = [promise.certificate for promise in report.promises if promise.certificate]
        texts = [text for document in documents for text in _with_numbers(document)]
        if report.promises[0].certificate:
            texts += words_of(Certificate.from_json(json.dumps(report.promises[0].certificate)))
        self._plain = _FIXED | {str(text): spoken(text, PLAIN) for text in texts}

    def __call__(self, text: str) -> str:
        return self._plain.get(text, text)


def _nested(certificate: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a certificate's document, and those of its parts."""
    yield certificate
    for part in certificate.get("parts", ()):
        yield from _nested(part["certificate"])


def _with_numbers(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences with symbols that follow from the values of a certificate's document."""
    for document in _nested(certificate):
        leakage = document.get("attacker", {}).get("leakage", ())
        yield from sentences.leaking(tuple(map(Leakage.from_dict, leakage)))
        yield from (declaration.declares for declaration in evidence_from_dicts(list(document.get("evidence", ()))))


def leading(items: Sequence[_Item], kind: str, most: int) -> tuple[Sequence[_Item], list[str]]:
    """Return the first items, and a sentence on the others; the pages are two, whatever a job does."""
    more = len(items) - most
    return items[:most], [f"And {number_of(more, f'more {kind}')}: see the report."] if more > 0 else []


def sections(report: Report, form: Literal["html", "md"] = "html") -> tuple[Section, ...]:
    """Return the pages, all but their heading; in Markdown they carry nothing that could be checked."""
    first, words = report.promises[0], _Words(report)
    parts: dict[str, Iterable[Block]] = {
        "Published": _published(report),
        "Against whom": _attacker(first),
        "The promise": _promised(report, first),
        "The assumptions, and who argued them": _assumed(report, first.statement, words),
        "If an assumption is wrong": _wrong(first, words),
        "Over time": _together(report, words),
        "Not protected": _unprotected(report, first.statement, words),
        "How to check it": _checking(report, carries=form == "html"),
        "Read and answered for": [("sign", ("Name", "Role", "Date", "Signature"))],
    }
    return tuple(Section(title=title, blocks=tuple(blocks)) for title, blocks in parts.items())


def _published(report: Report) -> Blocks:
    releases, more_tables = leading(report.releases, "table", _MAX_TABLES)
    long = report.about is not None and len(report.about.argument) > _LONG_ARGUMENT
    most = _MAX_ROWS[len(releases) - 1] // (2 if long else 1)
    for release in releases:
        note, words = absent_note(release, report), withheld_in(report, release)
        mechanism, context = report.mechanism(release), _context(report, release)
        noise = exact_note(release, report)
        if not noise and release.error is not None:
            noise = noise_sentence(release.error, mechanism)
        filtered = None if context is None else context.where
        summed = None if context is None else context.summed
        question = asked_sentence(report.ledger.unit, release.table.columns, filtered, mechanism, summed)
        yield "text", " ".join(filter(None, (spoken(question, PLAIN), note, noise, corrected(release.revision))))
        table = release.table
        shown = fitting(len(table.counts), most)
        rows = [
            (*_few_columns(key), word or f"{'' if is_exact(table.exact, place, mechanism) else '≈ '}{figures}")
            for place, (key, count, word) in enumerate(zip(table.keys[:shown], table.counts, words, strict=False))
            for figures in ("" if count is None else shown_count(count, table.bands),)
        ]
        yield "table", (f"{release.name}, {release.period}", (*_few_columns(table.columns), table.number), rows)
        if more := len(table.counts) + table.more - len(rows):
            yield "text", f"And {number_of(more, 'more row')}: see the report."
        elif not rows:
            yield "text", "Nothing reached the rule for publishing."
    yield from (("text", sentence) for sentence in more_tables)
    counted: dict[str, list[str]] = {}
    for release in releases:
        context = _context(report, release)
        for limit in () if context is None else context.rows():
            counted.setdefault(limit, []).append(release.name)
    rules = [
        limit if len(names) == len(releases) else f"{', '.join(names)}: {limit}" for limit, names in counted.items()
    ]
    if rules:
        yield "text", " ".join(rules)
    periods = [len(series.periods) + series.more_periods for series in report.series]
    if max(periods, default=1) > 1:
        yield "text", f"These are the newest. Published so far, {report.period}: {number_of(sum(periods), 'table')}."


def _context(report: Report, release: ReleaseView) -> Context | None:
    context = report.promises[release.promise].certificate.get("context")
    return None if context is None else Context.from_dict(context)


def _few_columns(names: Sequence[str]) -> list[str]:
    """Return what names a row, or its columns, short enough for a page."""
    short = [name if len(name) <= _MAX_LETTERS else f"{name[: _MAX_LETTERS - 1]}…" for name in names]
    return short if len(short) <= _MAX_COLUMNS else [*short[: _MAX_COLUMNS - 1], "…"]


def _attacker(promise: Promise) -> Blocks:
    statement = promise.statement
    if anyone(statement):
        yield "text", f"{capital(statement.anyone)}."
        return
    described = [
        f"{capital(attacker)}." for attacker in attackers(statement) or ["anyone who fits the assumptions below"]
    ]
    if len(described) > 1:
        yield "text", "An attacker fits all of these descriptions, each of which is about some of the releases:"
        yield "list", described
    else:
        yield "text", described[0]
    declared = [document.get("attacker", {}) for document in _nested(promise.certificate)]
    if any(attacker.get("known") and attacker.get("influence") == "passive" for attacker in declared):
        yield "text", "In this, δ (the probability that the hint leaks everything) is that of the promise."


def _promised(report: Report, first: Promise) -> Blocks:
    statement, pair = first.statement, named(first.statement)
    if report.lead is None:
        yield "lead", f"The releases do not add up to one promise: {report.lead_reason}"
        yield "text", f"The rest of this page is about {first.name} alone."
    yield "lead", meaning(statement, PLAIN)
    if pair is not None:
        yield "text", f"In numbers: {strength(pair[0])}; {leak(pair[1])}. Both are certified, and rounded up."
    for budget in report.ledger.budgets if is_weak(statement) and statement == report.ledger.total else ():
        spent = math.inf if budget.spent is None or budget.window_days is not None else budget.spent
        if budget.part == "partial_knowledge" and spent < math.inf:
            yield "text", f"At the budget's leak probability (δ), {exactly(budget.delta)}: {strength(spent)}."
    if not anyone(statement):
        yield "text", worst_meaning(statement, PLAIN)


def _assumed(report: Report, statement: Statement, words: _Words) -> Blocks:
    others = (text for text in statement.assumptions if not is_about_the_attacker(statement, text))
    yield "list", list(map(words, others))
    about = report.about
    if who := argued(about):
        yield "text", who
    if about is not None and about.argument:
        yield "quote", textwrap.shorten(about.argument, _MAX_ARGUMENT, placeholder=" …")
        if len(about.argument) > _MAX_ARGUMENT:
            yield "text", "The argument goes on in the report: read the rest of it there before you sign."
    elif not anyone(statement):
        yield "text", "The job file has no argument for it: ask the publisher."


def _wrong(first: Promise, words: _Words) -> Blocks:
    if anyone(first.statement):
        yield "text", "It rests on nothing that an attacker does not know: whatever they know, the promise is the same."
        return
    weak = is_weak(first.statement)
    same, unless = ("strength (ε)", "and names its own leak") if weak else ("leak", "unless it names another beside it")
    yield "text", f"Every row {'with a limit ' if weak else ''}is about the same {same} as above, {unless}."
    head = ("if the attacker …", "the hint may change the odds by a factor of at most", "fifty-fifty becomes at most")
    rows = [(words(row.words), *_left(row, weak=weak)) for row in first.scenarios if row.kind != "declared"]
    yield "table", ("", head, rows)


def _left(scenario: Scenario, *, weak: bool) -> tuple[str, str]:
    """Return what a hint may do to the odds where the attacker is not as declared, and to fifty-fifty.

    A `weak` promise is named at ε = 1, and so is what is left of it.
    """
    odds = factor(scenario.epsilon)
    if odds == "infinity":
        odds, at_one = "no limit", rounded_up(scenario.delta_at_one)
        if at_one != "1":
            rare = f"{factor(1.0)} if everything leaks with probability {chance(scenario.delta_at_one) or at_one}"
            if weak:
                return rare, str(sureness(1.0))
            odds += f"; {rare}"
    elif scenario.verdict == only_noise(scenario.epsilon):
        odds += ", by the noise alone"
    # Fifty-fifty at the same leak in every row, so that rows compare.
    return odds, sureness(scenario.epsilon) or "practically certain"


def _together(report: Report, words: _Words) -> Blocks:
    account = report.ledger
    yield "text", ledger_total(account)
    for remark in account.remarks:
        yield "text", remark
    budgets, more = leading([_budget(*line) for line in budget_lines(account)], "budget", 4)
    yield "list", [*budgets, *more] or ["No budget is declared."]
    if account.declared:
        yield "text", DECLARED
        yield "list", list(map(words, account.declared))


def _budget(against: str, budget: BudgetLine) -> str:
    spent = "not known" if budget.spent is None else amount(budget.spent)
    days = "" if budget.window_days is None else f" in any {budget.window_days} days"
    return (
        f"Budget {against}{days}: strength (ε) at most {exactly(budget.epsilon)}, at a leak probability (δ) of "
        f"{exactly(budget.delta)}. Spent: {spent}. The ledger refuses what would exceed it."
    )


def _unprotected(report: Report, statement: Statement, words: _Words) -> Blocks:
    listed = [f"The promise does not cover {clause}." for clause in statement.shows]
    listed += map(words, statement.besides)
    if not anyone(statement):
        whom = "an attacker who knows everything about everybody else"
        left = f"Against {whom} no more is promised than what is said of that above."
        listed.append(f"Nobody is protected against {whom}." if statement.worst_case is None else left)
    contexts = (_context(report, release) for release in report.releases)
    above = {text for context in contexts if context is not None for text in (*context.unit_words(), *context.rows())}
    of_some = {str(item): item.text for item in statement.of_some}
    listed += [words(limit) for limit in statement.limits[1:] if of_some.get(limit, limit) not in above]
    listed += [
        "People who share a fate, such as a household, are protected one privacy unit at a time, not all together.",
        "Nobody is protected from what else is published about them, past the ledger: a total, an earlier table, "
        "another register.",
        "Nothing is protected from those who run the program: they see the data, and are trusted.",
    ]
    yield "list", listed


def _checking(report: Report, *, carries: bool) -> Blocks:
    files = [file for release in report.releases for file in release.files if file.endswith(".parquet")]
    page = "This page, against the content and the certificates it carries:"
    steps = [(page if carries else "The report that says the same, in HTML or JSON:", "pkdp verify FILE")]
    if files:
        steps.append(("A published file, its hash, and every number of its certificate:", f"pkdp verify {files[0]}"))
    steps.append(("With the ledger: nothing in it was altered or cut off:", report.ledger.verify))
    yield "steps", steps
    releases, more = leading(report.releases, "id", _MAX_TABLES)
    ids = [(f"Id of {release.name}, {release.period}:", release.id) for release in releases]
    yield "codes", [*ids, *more, ("SHA-256 of what the job file says:", report.provenance.digest)]
    yield "text", "Nobody can check from outside whether the assumptions are true. Judge the argument."
