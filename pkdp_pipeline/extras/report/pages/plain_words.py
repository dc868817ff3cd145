"""The meaning of ε and δ for a reader who has met neither; every number is rounded so that no promise sounds better."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.certificates import sentences
from pkdp_pipeline.extras.report.content import EVERYTHING, BudgetLine
from pkdp_pipeline.extras.report.statement import GuaranteeCurve, Statement
from pkdp_pipeline.ledger.history import number_of
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.mechanisms import Mechanism, noised_below
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import PYTHON, Speech, capital, listed, rounded_up
from pkdp_pipeline.releases.printed import PublishedTable, following, withheld

if TYPE_CHECKING:
    from pkdp_pipeline.extras.report.content import About, LedgerAccount, Promise, ReleaseView, Report, Series


class _Plain(Speech):
    """Words in the place of symbols, or beside them."""

    epsilon, delta, deltas = "strength (ε)", "leak probability (δ)", "leak probabilities (δ)"

    def threshold(self, k: int) -> str:
        return str(k)

    def of_threshold(self, k: int | None) -> str:
        return "the threshold"

    def added(self, epsilon: float) -> str:
        return f"random noise is added, for a hint strength (ε) of {epsilon!r}"


PLAIN: Speech = _Plain()

DECLARED = (
    "How releases add up rests on what the publisher declares and argues. Nothing checks it: the program never "
    "compares the people of one release with those of another."
)
"""The caution that stands beside evidence."""


def plain_number(value: float) -> str:
    """Return a number that claims nothing as text, without an exponent where there is room."""
    return exactly(float(f"{value:.15g}"))


def factor(epsilon: float) -> str:
    """Return e to the power of ε as it is shown, rounded up to two digits; ``infinity`` where it is too large."""
    shown = float(rounded_up(epsilon))
    if shown == 0.0:
        return "1"
    # A little more than what `exp` may be wrong by.
    return rounded_up(math.exp(shown) * (1.0 + 1e-12) if shown < 700.0 else math.inf, 2)


def sureness(epsilon: float) -> str | None:
    """Return how sure, in whole per cent, fifty-fifty can become at ε as shown; None above 99 %."""
    percent = math.ceil(100.0 / (1.0 + math.exp(-float(rounded_up(epsilon)))) - 1e-12) if epsilon < 700.0 else 100
    return f"{percent} %" if percent <= 99 else None


def chance(delta: float) -> str:
    """Return a small probability as ``one in N``, N rounded down to two digits; empty where that says nothing."""
    if not 1e-15 <= delta <= 0.1:
        return ""
    number = math.floor(1 / Fraction(repr(float(delta))))
    unit = 10 ** max(0, len(str(number)) - 2)
    return f"one in {number // unit * unit:,}"


def named(statement: Statement) -> tuple[float, float] | None:
    """Return the pair (ε, δ) that a reader meets first; None where nothing is certified at the δ given, or at ε = 1."""
    if statement.worst_case == (0.0, 0.0):
        return statement.worst_case
    if statement.epsilon < math.inf:
        return statement.named
    at_one = dict(statement.numbers)[1.0]  # which the sentence names where no ε reaches its δ
    return statement.worst_case or (None if rounded_up(at_one) == "1" else (1.0, at_one))


def is_weak(statement: Statement) -> bool:
    """Return whether a larger δ than that of the statement is named, at ε = 1, since no ε reaches that one."""
    return statement.epsilon == math.inf and statement.worst_case is None and named(statement) is not None


def anyone(statement: Statement) -> bool:
    """Return whether the pair that a reader meets first, as it is shown, holds against anyone at all."""
    pair = named(statement)
    if pair is None or statement.worst_case is None:
        return False
    epsilon, delta = statement.worst_case
    return epsilon <= float(rounded_up(pair[0])) and delta <= pair[1]


def given(statement: Statement | None) -> str:
    """Return what may be known exactly besides, on which `worst_case` depends; empty where nothing may be."""
    return listed(statement.given) if statement is not None and statement.given else ""


def whom(statement: Statement | None) -> str:
    """Return whom `worst_case` holds against, in a few words."""
    known, if_declared = ((), False) if statement is None else (statement.given, statement.if_declared)
    return sentences.anyone(known, if_declared=if_declared, short=True)


def attackers(statement: Statement | None) -> list[str]:
    """Return whom a statement is about, in its own words; empty where that is anyone, or not said in one place."""
    if statement is None or anyone(statement):
        return []
    return list(map(str, statement.attackers))


def is_about_the_attacker(statement: Statement, assumption: str) -> bool:
    """Return whether an assumption says whom the statement is about."""
    said = (replace(attacker, text=sentences.the_attacker_is(attacker.text)) for attacker in statement.attackers)
    return assumption in map(str, said)


def protected(statement: Statement) -> str:
    """Return what is protected, in the words of the sentence."""
    if statement.hides:
        return statement.hides
    if statement.worst_case == (0.0, 0.0):
        return "in which cell a person is"  # a total: there are no cells in it
    return (
        "which of two published cells a person is in" if statement.protects == "value" else "whether a person is there"
    )


def strength(epsilon: float) -> str:
    """Return an ε beside its word."""
    return f"ε (strength of the strongest hint) = {rounded_up(epsilon)}"


def leak(delta: float) -> str:
    """Return a δ beside its word."""
    rare = f", {chance(delta)}" if chance(delta) else ""
    return f"δ (probability that the hint leaks everything) = {rounded_up(delta)}{rare}"


def apart(total: Statement | None) -> str:
    """Return what a total protects one at a time, ``release`` or ``period``; empty where it is about all together."""
    return "" if total is None else total.apart


def scope(total: Statement) -> str:
    """Return what a total is about."""
    unit = apart(total)
    return f"Each {unit} by itself, and nothing about several together" if unit else "Everything together"


def _abouts(report: Report) -> dict[str, str]:
    """Return the names that a total may have, each with the period that it is about."""
    return {EVERYTHING: "", f"{EVERYTHING} about {report.period}": f" about {report.period}"}


def titled(promise: Promise, report: Report) -> str:
    """Return what a promise is about: a total that protects one release at a time is not about everything."""
    unit, abouts = apart(promise.statement), _abouts(report)
    return f"each {unit} by itself{abouts[promise.name]}" if unit and promise.name in abouts else promise.name


def headed(promise: Promise, report: Report) -> str:
    """Return what a promise is about as a heading; names of releases keep their letters."""
    title = titled(promise, report)
    return capital(title) if promise.name in _abouts(report) else title


def ledger_total(account: LedgerAccount) -> str:
    """Return what the ledger holds, and what that adds up to."""
    total, start = account.total, f"The ledger holds {number_of(account.releases, 'release')} about these people"
    if total is None:
        return f"{start}. They do not add up to one number: {account.reason}"
    pair = named(total)
    none = f"no strength is certified at {leak(total.delta)}"
    about = "It promises" if account.releases == 1 else scope(total)
    return f"{start}. {about}: {none if pair is None else f'{strength(pair[0])}; {leak(pair[1])}'}."


def meaning(statement: Statement, say: Speech = PYTHON) -> str:
    """Return in plain words what (ε, δ) of a statement means for one person.

    Any two laws within (ε, δ) of each other are what somebody who sees the following can work out: with probability δ
    the truth, else a hint that changes the odds by a factor of e^ε. That is what the words say.
    """
    pair, alone = named(statement), f"{scope(statement)}. " if apart(statement) else ""
    if pair is None:
        elsewhere = f" The guarantee curve shows what is certified at other {say.deltas}."
        has_curve = say is not PLAIN and statement.numbers[-1][1] < 1.0  # the officer's pages have none
        return (
            f"{alone}At {say.delta} = {rounded_up(statement.delta)} no {say.epsilon} is certified: whatever "
            f"{say.epsilon}, a larger probability is left in which the published tables may tell anything about a "
            f"person.{elsewhere if has_curve else ''}"
        )
    always = anyone(statement)
    who = "Nobody who fits the assumptions"
    if always:
        declared = "If what was declared is true, nobody" if statement.if_declared else "Nobody"
        who = f"{declared}, even knowing {_everything(statement)},"
    more = " It is about one privacy unit: of several that share a fate the table may tell more." if always else ""
    if is_weak(statement):
        more = f" At {say.delta} = {rounded_up(statement.delta)} no {say.epsilon} is certified."
    return (
        f"{alone}Take any one person, and what is protected: {protected(statement)}. {who} learns more "
        f"about it than {_hint(pair[0], say)}{_but(pair[1], say)}{more}{_apart(statement) if always else ''}"
    )


def worst_meaning(statement: Statement, say: Speech = PYTHON) -> str:
    """Return in plain words what remains against anyone at all."""
    if statement.worst_case is None:
        return (
            "Against somebody who already knows everybody else's records nothing is certified: what protects a person "
            "is that others are unknown to the attacker, and nothing else does."
        )
    epsilon, delta = statement.worst_case
    return (
        f"{'If what was declared is true, even' if statement.if_declared else 'Even'} somebody who already "
        f"knows {_everything(statement)} learns no more about it than {_hint(epsilon, say)}"
        f"{_but(delta, say)}{_apart(statement)}"
    )


def _everything(statement: Statement) -> str:
    beside = given(statement)
    return f"everybody else's records and {beside}" if beside else "everybody else's records"


def _apart(statement: Statement) -> str:
    """Say what a promise given something is not about."""
    beside = given(statement)
    if not beside:
        return ""
    return f" It does not protect what {beside} and everybody else's records tell by themselves."


def _hint(epsilon: float, say: Speech) -> str:
    odds = factor(epsilon)
    if odds == "1":
        return "before"
    power = f"e to the power {rounded_up(epsilon)}, rounded up"
    if odds == "infinity":
        return f"from a hint that may change the odds by {power}: that is no limit in practice"
    power = "" if say is PLAIN else f" ({power})"
    sure = sureness(epsilon)
    after = f"somebody who thought it fifty-fifty is then at most {sure} sure"
    if sure is None:
        after = "that is hardly a limit, for somebody who thought it fifty-fifty may become practically certain"
    return f"from a hint that changes the odds by a factor of at most {odds}{power}: {after}"


def _but(delta: float, say: Speech) -> str:
    if delta == 0.0:
        return "."
    rare = f" ({chance(delta)})" if chance(delta) else ""
    number = f"probability {'(δ) of' if say is PLAIN else 'δ ='} {rounded_up(delta)}"
    return f". The hint comes with a leak: with {number}{rare} it tells everything. The table tells no more than that."


def attained_at(curve: GuaranteeCurve, shown: str) -> float | None:
    """Return a δ that some attacker attains at an ε as it is shown; None where none is known.

    The ε shown is rounded up, and less is attained there: the δ attained at the next ε of the curve.
    """
    shown_epsilon = float(shown)
    attained = next(
        (delta for epsilon, delta in zip(curve.epsilons, curve.attained, strict=True) if epsilon >= shown_epsilon), 0.0
    )
    certified = min(
        delta for epsilon, delta in zip(curve.epsilons, curve.certified, strict=True) if epsilon <= shown_epsilon
    )
    return attained if attained or not certified else None


def budget_lines(account: LedgerAccount) -> Iterator[tuple[str, BudgetLine]]:
    """Yield the budgets, each with the total that it limits; once, where both totals hold against anyone alike."""
    total, limits = account.total, [replace(budget, words="") for budget in account.budgets]
    for budget in account.budgets:
        if budget.part == "worst_case":
            yield f"against {whom(total)}", budget
        elif total is None or not anyone(total):
            yield "against the declared attacker", budget
        elif replace(budget, part="worst_case", words="") not in limits:
            yield "for all that is promised", budget


def over_time(report: Report) -> list[Series]:
    """Return the series that have something to show over time."""
    return [series for series in report.series if len(series.periods) > 1]


def publishing(report: Report) -> list[tuple[str, str]]:
    """Return who publishes, with what each is called; some may be empty."""
    about = report.about
    said = ("", "") if about is None else (about.publisher, about.contact)
    return [*zip(("Publisher", "Contact"), said, strict=True), ("Data set", report.title)]


def argued(about: About | None) -> str:
    """Return who argued the attacker, and when; and when that was last checked. Empty where nothing is said of it."""
    if about is None:
        return ""
    by, on = (f" {word} {name}" if name else "" for word, name in (("by", about.argued_by), ("on", about.argued_on)))
    checked = f"Last checked on {about.checked_on}" if about.checked_on else ""
    if about.outdated:
        checked += ", more than a year before this report: check whether it is still true"
    return " ".join(f"{text}." for text in (f"Argued{by}{on}" if by or on else "", checked) if text)


def exact_note(release: ReleaseView, report: Report) -> str:
    """Return which counts of a table are exact, and how far the noise may have moved the others."""
    if release.table.exact is None or release.error is None:
        return ""
    within = f"within ±{release.error.bound_95} in 95 % of cases"
    how = "exact" if report.mechanism(release).display is None else "without noise"
    return f"Counts of at least {release.k} are {how}; smaller ones, with ≈ before them, have noise: {within}."


def is_exact(marks: Sequence[bool | None] | None, place: int, mechanism: Mechanism | None = None) -> bool:
    """Return whether the count at a place has no noise, given the marks where only small ones have.

    Without `mechanism` only those are told apart that are beside exact ones.
    """
    return (mechanism is None or mechanism.noise is None) if marks is None else bool(marks[place])


def margin(release: ReleaseView) -> int:
    """Return within what the noise of a release is in 95 % of cases."""
    return 0 if release.error is None else release.error.bound_95


def absent_note(release: ReleaseView, report: Report) -> str:
    """Return what a reader of a table has to know about what is not in it; never how much of it there is."""
    certificate, mechanism = report.promises[release.promise].certificate, report.mechanism(release)
    tells = following(release.table, certificate, _beside(report, release))
    follows = f" {tells.remark}" if tells.apart else ""
    hides_small = None if noised_below(mechanism) else mechanism.k
    thresholds = (hides_small, getattr(mechanism, "k_complement", None), mechanism.release_threshold)
    if sum(threshold is not None for threshold in thresholds) > 1:
        means = "the table does not tell which of the reasons it is, nor whether anybody is there"
    elif release.table.exact is not None:
        means = f"there are fewer than {release.k}, possibly none"
    elif release.k is not None and release.error is None:
        means = f"there are fewer than {release.k}, possibly none"
        hidden = [text for count, text in zip(release.table.counts, tells.texts, strict=True) if count is None]
        if any(hidden):
            means = f"there are fewer than {release.k}"
            follows += " The numbers beside the word follow from exact totals of this report."
            follows += " Where none stands there, possibly nobody is there." if None in hidden else ""
        elif totals := [leak.name for leak in _leakage(certificate) if leak.tells_total]:
            means += f", as long as {listed(totals)} tell no more: where no other cell is open, a count follows exactly"
    else:
        means = "the table does not tell whether anybody is there"
    if None in release.table.counts:
        return f"“Suppressed” says that this rule is not met: {means}.{follows}"
    if release.table.columns and (certificate.get("context") or {}).get("cells") != "declared":
        return f"Cells that do not meet this rule leave no trace; where a cell is not listed, {means}."
    return ""


def _leakage(certificate: Mapping[str, Any]) -> list[Leakage]:
    return [Leakage.from_dict(fields) for fields in certificate["attacker"].get("leakage", ())]


def withheld_in(report: Report, release: ReleaseView) -> list[str]:
    """Return `withheld` of one of a report's tables, beside all about its period."""
    return withheld(release.table, report.promises[release.promise].certificate, _beside(report, release))


def _beside(report: Report, release: ReleaseView) -> list[tuple[PublishedTable, Mapping[str, Any]]]:
    return [
        (other.table, report.promises[other.promise].certificate)
        for other in report.releases
        if other.period == release.period
    ]
