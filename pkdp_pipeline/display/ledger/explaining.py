"""Explaining: how a total comes about, step by step, for whoever must defend it; and what may be published next."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from pkdp_pipeline.certificates.sentences import protection
from pkdp_pipeline.display.ledger.showing import opening, rule_lines, statements
from pkdp_pipeline.display.ledger.words import (
    Change,
    alone_words,
    amount,
    attacker_words,
    class_call,
    mechanism_words,
    noise_words,
    number_of,
    term_changes,
    terms_words,
    verify_command,
)
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.ledger.account import Holding
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.differencing import allows_overlap, covers_periods
from pkdp_pipeline.ledger.views.history import History
from pkdp_pipeline.ledger.views.reading import Reading, stated_total
from pkdp_pipeline.ledger.views.spent import MOST_MORE, Spent, how_many_more, spent
from pkdp_pipeline.model.evidence import (
    BoundedDependence,
    BoundedParticipation,
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import JOB_FILE as SAY

__all__ = ["explain_total"]

_GROUPS = 10
_FEW = 5

_CHOICES: tuple[Evidence, ...] = (IndependentGivenHabits(), OneDayProtected(), DisjointUnits(), OncePerUnit())
_LEAKAGE = SAY.leakage_of_total
_PROTECTS = SAY.setting("protects", '"value"')
_GIVEN_IT = f"all with {_PROTECTS} and certified given it ({_LEAKAGE}) from the first"
_LIKE_THE_OTHERS = f", protects the value and is certified given the totals ({_LEAKAGE})"
_NOISED = "noise with a finite worst case (noise without k, or with a release_threshold)"


def explain_total(
    screen: Screen, reading: Reading, history: History, units: Sequence[str], *, delta: float, seconds: float = 1.5
) -> None:
    """Print how the totals of these units come about.

    Parameters
    ----------
    screen : Screen
    reading : Reading
        Inside a snapshot.
    history : History
    units : sequence of str
        See `unit_text`.
    delta : float
    seconds : float
        See `spent`.
    """
    title, held = opening(history, reading.ledger.location)
    screen.title(title)
    screen.say(held, indent=0)
    if not history.lines:
        screen.say("Nothing is published, so there is nothing to add up.", indent=0)
    else:
        _declared(screen, history, term_changes(reading))
    for unit in units:
        if len(history.units) > 1:
            screen.head(f"Privacy unit {unit_named(unit)}")
        _people(screen, history, unit)
        _parts(screen, history, unit, delta)
        _together(screen, history, unit)
        budgets = spent(history.totals, unit, seconds=seconds)
        _total(screen, reading, history, unit, budgets, delta)
    if len(history.units) > 1:
        screen.say(
            "Totals of different units are not added up: nothing says how one person's records are spread over them."
        )
    screen.head("What the next release may be")
    for text in _next_steps(history):
        screen.item(text)
    screen.head("What this rests on")
    screen.item(
        "The ledger knows only what is published through it. What anybody publishes about these people elsewhere is "
        "not in the total."
    )
    screen.item(
        f"The head of its chain is {history.head}; keep it elsewhere. That its end was not cut off is checked with"
    )
    screen.command(verify_command(reading, history.head))


def _declared(screen: Screen, history: History, changes: Sequence[Change]) -> None:
    screen.head("What is declared")
    if not history.evidence:
        screen.item(
            "No evidence: nothing is assumed about how the releases depend on one another, so what rests on an "
            "attacker's uncertainty does not add up, and only what noise gives against anybody does."
        )
    for one in history.evidence:
        screen.item(f"{class_call(one)}. {one.declares}")
    if history.evidence:
        screen.item(
            "The curator argues and publishes this; it cannot be read off the data, and the total is worth no more "
            "than the argument. What would break it is shown, with numbers, in the project's docs/composition.md."
        )
    for budget in history.terms.budgets:
        screen.item(f"{class_call(budget)}.")
    if history.terms.budgets:
        screen.item("A release that would exceed a budget is refused before any data are read.")
    for change in changes[1:]:
        screen.item(f"{change.words[0].upper()}{change.words[1:]}.")
    if len(changes) > 1:
        screen.item(
            f"They began with {terms_words(changes[0].terms)}. What is charged under older terms stays as it was "
            "certified; the total and the budgets go by the terms in force."
        )
    revisions = len({(line.key, line.revision) for line in history.lines if line.revision > 1})
    if revisions:
        verb = "revises" if revisions == 1 else "revise"
        screen.item(f"{number_of(revisions, 'release')} {verb} an earlier one: each revision is charged as a release.")


def _people(screen: Screen, history: History, unit: str) -> None:
    columns = json.loads(unit)
    own = sum(line.holding.unit == unit for line in history.lines)
    screen.head("Who is protected")
    person = f"one value of {', '.join(map(repr, columns))}" if columns else "one row; whoever has several is several"
    screen.item(
        f"A person is {person}. {number_of(own, 'release')} are about them." if own > 1 else f"A person is {person}."
    )


def _parts(screen: Screen, history: History, unit: str, delta: float) -> None:
    screen.head("From which parts")
    counts = Counter(line.holding.part for line in history.lines if line.holding.unit == unit)
    columns = ["times", "published", "noise", "attacker", "alone", "against anyone, ε"]
    rows = []
    for part, times in counts.most_common(_GROUPS):
        one = history.parts[part]
        rows.append(
            [
                f"{times:,}",
                f"{mechanism_words(one.mechanism, one.protects)}; {one.protects}",
                noise_words(one.mechanism),
                attacker_words(one.attacker),
                alone_words(one, delta),
                amount(one.worst_case.epsilon(delta)),
            ]
        )
    if screen.width >= 90:
        screen.table(columns, rows, right=("times", "against anyone, ε"))
    else:
        for often, published, noise, attacker, alone, worst in rows:
            more = "" if noise == "none" else f", noise {noise}"
            screen.item(
                f"{often} × {published}{more}. Attacker: {attacker}. Alone: {alone}; against anyone: "
                f"{'none' if worst == 'none' else f'ε = {worst}'}."
            )
    rest = len(counts) - _GROUPS
    if rest > 0:
        times = counts.total() - sum(number for _, number in counts.most_common(_GROUPS))
        screen.say(f"and {number_of(rest, 'other kind')} of part, in {number_of(times, 'release')}.")
    screen.say(f"ε at δ = {exactly(delta)}, each release by itself.")
    for text in dict.fromkeys(_protects(history, part) for part in counts):
        screen.say(text)


def _protects(history: History, part: str) -> str:
    one = history.parts[part]
    kind = "count" if isinstance(one.mechanism, Count) else "histogram"
    return f"A {kind} by itself: {protection(one.mechanism, one.protects, one.theorems[0], one.attacker)}"


def _together(screen: Screen, history: History, unit: str) -> None:
    """Print which releases are about overlapping periods, and how each counts because of it."""
    screen.head("Which stand together")
    groups = [group for group in history.components() if any(one.unit == unit for one in group)]
    single = sum(len(group) == 1 for group in groups)
    several = [group for group in groups if len(group) > 1]
    if allows_overlap(history.evidence):
        screen.item(
            "What is declared covers releases about the same period too: every one counts with all it promises."
        )
        return
    own = "all its certificate promises" if covers_periods(history.evidence) else "what its noise gives against anybody"
    if len(history.lines) == 1:
        own = "all its certificate promises"
    if single:
        stand, each = (f"{single:,} releases stand", "each") if single > 1 else ("1 release stands", "it")
        screen.item(f"{stand} alone, no other about the same days: {each} counts with {own}.")
    if not several:
        return
    releases = sum(len(group) for group in several)
    screen.item(
        f"{releases:,} releases stand in {number_of(len(several), 'group')} of overlapping periods. There one "
        "release tells something about the people whose being unknown protects in another, so each counts only with "
        "what its noise gives against anybody. A single exact count beside pure noise keeps its own numbers "
        "(docs/composition.md, rule 7: an exact count beside noised releases about the same people)."
    )
    if any(line.standing.total for line in history.lines):
        screen.item(
            "An exact total takes nothing from what is certified given it: a single release beside it counts with all "
            "its certificate promises, several count as without it."
        )
    for group in several[:_FEW]:
        screen.item(f"{_span(group)}: {_listed(history, group)}", indent=4)
    if len(several) > _FEW:
        screen.say(f"and {number_of(len(several) - _FEW, 'more group')}.", indent=4)


def _span(group: Sequence[Holding]) -> str:
    days = [day for one in group for day in (one.first, one.last) if day is not None]
    if not days:
        return repr(group[0].label)
    first, last = date.fromordinal(min(days)).isoformat(), date.fromordinal(max(days)).isoformat()
    return first if first == last else f"{first} to {last}"


def _listed(history: History, group: Sequence[Holding]) -> str:
    entries = {one.entry for one in group}
    labels = Counter(
        f"{line.standing.label} ({mechanism_words(line.standing.mechanism, line.standing.protects)})"
        for line in history.lines
        if line.holding.entry in entries
    )
    return "; ".join(label if times == 1 else f"{times} × {label}" for label, times in labels.most_common(_GROUPS))


def _total(
    screen: Screen, reading: Reading, history: History, unit: str, budgets: Sequence[Spent], delta: float
) -> None:
    screen.head("What they add up to")
    try:
        total = stated_total(reading, unit)
    except NoEvidenceError as error:
        screen.item(f"They do not add up. {error}")
        return
    screen.pairs([*rule_lines(total, history.terms), *statements(total, delta)])
    screen.say(total.sentence(delta))
    if budgets:
        screen.head("Budgets")
        screen.budgets(budgets)


def _next_steps(history: History) -> Iterator[str]:
    """Yield what the next release of the data set may be, one sentence or two each."""
    if not history.lines:
        yield "Any release that can be certified: nothing stands that it could undo."
        return
    yield from _elsewhere(history)
    yield from _same_period(history)
    yield "What follows from published tables (release.rollup, shares, rounded) costs nothing, at any time."
    last = history.lines[-1]
    more = how_many_more(history.totals, last.holding.unit, last.holding.part)
    if more is not None and (covers_periods(history.evidence) or not last.standing.noiseless):
        what = mechanism_words(last.standing.mechanism, last.standing.protects)
        like = f"like the last one ({last.standing.label}, {what})"
        room = f"room for {number_of(more, 'more release')}" if more else "no room for another release"
        if more == MOST_MORE:
            room = f"room for at least {MOST_MORE:,} more releases"
        each = "each in a period of its own" if more > 1 else "in a period of its own"
        yield f"The budgets of the whole history have {room} {like}, {each}."
    if any(budget.window_days is not None for budget in history.terms.budgets):
        yield "Budgets of some days allow more once earlier periods have left their window."


def _elsewhere(history: History) -> Iterator[str]:
    """Yield what may be published about other periods."""
    noiseless = [line for line in history.lines if line.standing.noiseless and not line.standing.total]
    total = any(line.standing.total for line in history.lines)
    if covers_periods(history.evidence):
        yield (
            "About a period that no release is about yet: anything that can be certified, with noise or without; the "
            "evidence declared covers it, and it counts with its whole certificate."
        )
        return
    if not noiseless:
        yield (
            f"About a period that no release is about yet: what carries {_NOISED}"
            f"{_LIKE_THE_OTHERS if total else ''}. Without noise it would need "
            "evidence about how people's periods depend on one another."
        )
    else:
        yield (
            f"About another period: nothing yet. {noiseless[0].standing.label!r} ({noiseless[0].standing.period}) has "
            "no noise, and who crosses its threshold from one table to the next would show."
        )
    # Beside what leaks nothing adds up by OncePerUnit.
    leaks = any(part.leakage for part in history.parts.values())
    for one in _CHOICES:
        if leaks and isinstance(one, OncePerUnit):
            continue
        when = "With" if noiseless else "Without noise, with"
        yield f"{when} {SAY.evidence(type(one))}, if this is true: {one.declares}"
    once = f"with {SAY.evidence_name(OncePerUnit)} that of one histogram over all of them; "
    yield (
        f"Or {SAY.evidence(BoundedDependence)}, if each release depends on all earlier ones together by at most so "
        f"much. With {SAY.evidence_name(DisjointUnits)} and {SAY.evidence_name(OneDayProtected)} the total is that "
        f"of the largest release; {'' if leaks else once}with the others it grows with every release. The project's "
        "docs/composition.md has the rules, and what breaks each of them."
    )
    if any(isinstance(one, BoundedParticipation) for one in history.evidence):
        yield (
            f"{SAY.evidence_name(BoundedParticipation)} by itself covers noised releases only; "
            f"{SAY.evidence_name(IndependentGivenHabits)} goes with it."
        )


def _same_period(history: History) -> Iterator[str]:
    """Yield what may be published about periods that have a release."""
    if allows_overlap(history.evidence):
        declared = next(one for one in history.evidence if isinstance(one, BoundedDependence))
        yield (
            "About a period that has a release already, or overlaps one: anything that can be certified, as long as "
            f"this stays true of it: {declared.declares}"
        )
        return
    kinds = {line.standing.kind for line in history.lines}
    where = "About a period that has a release already, or overlaps one (another query, filter or window)"
    if kinds & {"noiseless"}:
        yield (
            f"{where}: nothing beside a release without noise, not even a noisy one, which tells about the people who "
            "protect by being unknown. Publish one cross-tabulated histogram, its cells declared in domain, and derive "
            f"the rest with release.rollup; or plan {_NOISED} for all of them; or declare "
            f"{SAY.evidence(BoundedDependence)}."
            + (
                ""
                if "total" in kinds
                else f" Only the exact total of the same people may stand beside it: {_GIVEN_IT}."
            )
        )
    if "total" in kinds:
        yield (
            f"{where}: beside the exact total of the same people, what protects the value and is certified given it "
            f"({_LEAKAGE}), as if the total did not stand there."
        )
    if "exact count" in kinds:
        yield f"{where}: beside one exact count, pure noise (noise without k) about the same unit."
    if kinds & {"pure noise", "noised"}:
        also = "; beside pure noise also one exact count" if "pure noise" in kinds else ""
        yield (
            f"{where}: beside noised releases, what carries {_NOISED}{also}. From then on each of them counts only "
            "with what its noise gives against anybody."
        )
