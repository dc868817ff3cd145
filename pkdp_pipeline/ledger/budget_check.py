"""Budget check: what a release would add up to with everything charged before it, held to the budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import BudgetExceededError, NoEvidenceError
from pkdp_pipeline.ledger.account import EVERYTHING, Account, Bundle, Span, unit_text
from pkdp_pipeline.ledger.ceilings import fits_budget
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import read_parts
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.totals import add_up, unit_named, whole_parts
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.mechanisms import GeometricNoise, kind_of
from pkdp_pipeline.model.mechanisms.noise_law import SMALLEST_EPSILON, noise_scale
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up
from pkdp_pipeline.theorems import WorstCase
from pkdp_pipeline.theorems.beside_leakage import WorstBesidePrivate
from pkdp_pipeline.theorems.worst_case import NoiseCurve

__all__ = ["BudgetCheck", "drawn", "drawn_within"]

_LESS = "Nothing was read or charged. Ask for less (more noise, a larger k, fewer releases)"
_AGAIN = "The table keeps the certificate it has. Ask about an attacker who knows less"
_MEASURES = {"partial_knowledge": "partial-knowledge total", "worst_case": "worst-case total"}


def drawn(parts: Iterable[tuple[ReleaseCertificate, int]]) -> tuple[Fraction, Fraction] | None:
    """Return the sum of worst-case ε and δ with the noise as it is drawn, exactly; None where a part has none.

    Notes
    -----
    The sampler's scale is a float s with ``s * epsilon >= 1``, so what is drawn is (1/s)-private, 1/s being at
    most the declared ε. A budget is a decimal: ten releases with noise declared as 0.1, drawn with scale 10, are
    exactly 1-private together, although ten times the float 0.1 is more than 1. What leaks beside a release is
    declared in decimals, and counted as written. *Guarantee*: all parts together, with what leaks beside them, are
    private at these numbers against any attacker (basic composition). *Rounding*: none for ε; each δ is rounded up.
    """
    epsilon, delta = Fraction(0), Fraction(0)
    listed = list(parts)
    told = all(certificate.attacker.total_is_known for certificate, _ in listed)
    for certificate, times in listed:
        if told and kind_of(certificate.mechanism, certificate.protects) == "total":
            continue  # given what it tells, it costs nothing
        pair = _drawn(certificate.worst_case_bound)
        if pair is None:
            return None
        epsilon, delta = epsilon + times * pair[0], delta + times * pair[1]
    return epsilon, min(delta, Fraction(1))


def _drawn(bound: WorstCase | None) -> tuple[Fraction, Fraction] | None:
    """Return ε and δ of one release's worst case, the noise as it is drawn; None where only its profile is known."""
    if isinstance(bound, WorstBesidePrivate):
        pair = _drawn(bound.one)
        if pair is None:
            return None
        return pair[0] + Fraction(repr(bound.epsilon)), pair[1] + Fraction(bound.delta)
    if not isinstance(bound, NoiseCurve) or bound.noise < SMALLEST_EPSILON:
        return None
    return bound.cells / Fraction(noise_scale(GeometricNoise(bound.noise))), Fraction(bound.parameters[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is held to a budget: the releases, the unit, and the window they are in."""

    unit: str
    held: Mapping[Bundle, int]
    start: int | None = None


class BudgetCheck:
    """What one release would add up to, held to the budgets.

    Parameters
    ----------
    db : Database
    dataset : str
    standing : Standing
        The release to be charged.
    terms : Terms
    before : Account
        What is charged already.
    others : Account
        The same without the release itself, where it is charged already.
    again : bool
        Whether it is charged already, and gets another certificate.
    """

    def __init__(
        self,
        db: Database,
        dataset: str,
        standing: Standing,
        terms: Terms,
        before: Account,
        others: Account,
        *,
        again: bool = False,
    ) -> None:
        self._db, self._dataset, self._standing, self._terms = db, dataset, standing, terms
        self._again, self._prior = again, others
        unit, span = unit_text(standing.unit), Span.of(standing)
        self._changed: dict[str, list[Span]] = {unit: [span]}
        for group in before.met(span):
            if len(group) == 1:  # what stood alone until now counts with its worst case only
                self._changed.setdefault(group[0].unit, []).append(group[0].span)
        if not terms.evidence and len(before.units) == 1 and before.units != [unit]:
            # From now on these count beside another unit's.
            self._changed[before.units[0]] = [EVERYTHING]

    def hold(self, certificate: ReleaseCertificate, account: Account) -> None:
        """Hold the totals of an account to the budgets; the release is in it.

        Raises
        ------
        BudgetExceededError
            If one is exceeded.
        NoEvidenceError
            If the releases do not add up.
        """
        others = len(account.units) > 1
        for unit in self._changed:
            for budget in self._terms.budgets:
                for asked in self._asked(account, unit, budget):
                    self._compare(budget, asked, certificate, others=others)

    def _asked(self, account: Account, unit: str, budget: Budget) -> Iterator[_Asked]:
        if budget.window_days is None:
            yield _Asked(unit=unit, held=account.bundles(unit))
            return
        for start, held in account.windows(unit, budget.window_days, self._changed[unit]):
            yield _Asked(unit=unit, held=held, start=start)

    def _compare(self, budget: Budget, asked: _Asked, certificate: ReleaseCertificate, *, others: bool) -> None:
        parts = self._parts(asked.held)
        if drawn_within(drawn(whole_parts(asked.held, parts)), budget):
            return
        if fits_budget(asked.held, parts, self._terms.evidence, budget, beside_others=others):
            return
        total = add_up(asked.held, parts, self._terms.evidence, beside_others=others)
        for measure in budget.measures:
            if not _delta(total, measure, budget.epsilon) <= budget.delta:
                raise BudgetExceededError(self._refusal(budget, measure, asked, total, certificate, others=others))

    def _parts(self, held: Mapping[Bundle, int]) -> Mapping[str, ReleaseCertificate]:
        return read_parts(self._db, held)

    def _refusal(
        self,
        budget: Budget,
        measure: str,
        asked: _Asked,
        total: Certificate,
        certificate: ReleaseCertificate,
        *,
        others: bool,
    ) -> Worded:
        """Return the message."""
        where = f"data set {self._dataset!r}, unit {unit_named(asked.unit)}"
        if budget.window_days is not None:
            where += f", {budget.window_days} days"
            where += "" if asked.start is None else f" from {date.fromordinal(max(1, asked.start)).isoformat()}"
        subject = f"{self._standing.label!r} (period {self._standing.period})"
        if measure == "worst_case" and total.worst_case_bound is None:
            start = (
                f"{subject} has no guarantee against any attacker, or stands in a total that has none, and the budget "
                f"of {where} holds the worst-case total to epsilon = {budget.epsilon!r}: "
            )

            def way(say: Speech) -> str:
                if budget.part is not None:
                    return "put noise with a finite worst case on it"
                other = say.budget_of_part("partial_knowledge")
                return f"hold only the other total to it with {other}, or put noise on it"

            return Worded(lambda say: f"{start}{way(say)}. Nothing was charged.")
        prior = (
            self._prior.bundles(asked.unit)
            if budget.window_days is None
            else self._prior.window(asked.unit, budget.window_days, asked.start)
        )
        amounts = (self._amount(prior, measure, budget, others=others), _epsilon(certificate, measure, budget.delta))
        alone = _lesser(amounts[1], drawn([(certificate, 1)]), budget)
        together = _lesser(_epsilon(total, measure, budget.delta), self._drawn(asked.held), budget)
        excess = self._hair(asked.held, budget)
        named = _MEASURES[measure] if total.has_partial_knowledge else _MEASURES["worst_case"]
        message = (
            f"{subject} would exceed the budget of {where} for the {named}: prior: epsilon = "
            f"{_shown(amounts[0])}, requested: {_asked_for(alone, certificate, measure, budget)}, together: "
            f"{_shown(together)}, allowed: {budget.epsilon!r} (all at delta = {budget.delta!r}){excess}. "
            f"{_AGAIN if self._again else _LESS}, or "
        )
        return Worded(lambda say: f"{message}{say.larger_budget}, where you can argue it.")

    def _amount(self, held: Mapping[Bundle, int], measure: str, budget: Budget, *, others: bool) -> float:
        if not held:
            return 0.0
        try:
            total = add_up(held, self._parts(held), self._terms.evidence, beside_others=others)
        except NoEvidenceError:
            return math.inf
        return _lesser(_epsilon(total, measure, budget.delta), self._drawn(held), budget)

    def _drawn(self, held: Mapping[Bundle, int]) -> tuple[Fraction, Fraction] | None:
        return drawn(whole_parts(held, self._parts(held)))

    def _hair(self, held: Mapping[Bundle, int], budget: Budget) -> str:
        """Return a remark where the exact sum is above the budget by less than anybody can see."""
        exact = self._drawn(held)
        if exact is None or exact[1] > Fraction(repr(budget.delta)):
            return ""
        excess = exact[0] - Fraction(repr(budget.epsilon))
        if not 0 < excess < Fraction(1, 10**9):
            return ""
        return (
            f"; the exact sum is above the budget by {float(excess):.1g}, because the declared noise is no binary "
            "fraction: allow that much more, or a delta above 0"
        )


def _shown(epsilon: float) -> str:
    """Return an amount rounded up, the last bits of its float aside: 0.25 and 0.1 make 0.35, not 0.351."""
    return "none" if epsilon == math.inf else rounded_up(epsilon * (1.0 - 1e-12))


def _asked_for(epsilon: float, certificate: Certificate, measure: str, budget: Budget) -> str:
    """Return what a release asks for; where no ε reaches the budget's δ, the δ that it has at the budget's ε."""
    if epsilon < math.inf:
        return _shown(epsilon)
    least = rounded_up(_delta(certificate, measure, budget.epsilon))
    return f"none (its delta is {least} at epsilon = {budget.epsilon!r})"


def drawn_within(exact: tuple[Fraction, Fraction] | None, budget: Budget) -> bool:
    """Return whether the noise alone, added up exactly, is within a budget written in decimals."""
    if exact is None:
        return False
    return exact[0] <= Fraction(repr(budget.epsilon)) and exact[1] <= Fraction(repr(budget.delta))


def _delta(total: Certificate, measure: str, epsilon: float) -> float:
    return float(total.delta(epsilon) if measure == "partial_knowledge" else total.worst_case.delta(epsilon))


def _epsilon(total: Certificate, measure: str, delta: float) -> float:
    return total.epsilon(delta) if measure == "partial_knowledge" else total.worst_case.epsilon(delta)


def _lesser(epsilon: float, exact: tuple[Fraction, Fraction] | None, budget: Budget) -> float:
    """Return the smaller of a certified ε and the exact sum, as the first float above it."""
    if exact is None or exact[1] > Fraction(repr(budget.delta)):
        return epsilon
    rounded = float(exact[0])
    return min(epsilon, rounded if Fraction(rounded) >= exact[0] else math.nextafter(rounded, math.inf))
