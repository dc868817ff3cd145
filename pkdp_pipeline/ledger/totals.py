"""LedgerTotals: what a data set's charged releases add up to, and whether that fits a budget."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.ledger.account import Account, Held, add_up, kind_counted, knows_total, unit_named, whole_parts
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.rows import Row, unit_text
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import SMALLEST_EPSILON, GeometricNoise, noise_scale
from pkdp_pipeline.model.question import EachRow
from pkdp_pipeline.theorems import WorstCase
from pkdp_pipeline.theorems.rounding import float_above
from pkdp_pipeline.theorems.worst_case import NoiseCurve, WorstBesidePrivate

_SPARE = 1.0 - 1e-3
"""A total within this share of a budget's ε leaves more room than rounding on a grid takes (0.05 %)."""

_LESS = 0.99
"""This share of a number that fits without room to spare leaves that room."""

_MOST_LINES = 512


@dataclass(slots=True)
class _Line:
    """The facts known about totals of the same bundles.

    `most` fits with room to spare, `rim` fits, `excess` does not, and `computed` is the last one that was added up.
    """

    computed: Held = field(default_factory=dict)
    most: Held = field(default_factory=dict)
    rim: Held = field(default_factory=dict)
    excess: Held | None = None


_lines: OrderedDict[Hashable, _Line] = OrderedDict()
_one_at_a_time = threading.Lock()


def fits_budget(held: Held, budget: Budget, total_of: Callable[[Held], Certificate], by: Hashable) -> bool:
    """Return whether what bundles add up to is within a budget, for each total that is held to it.

    `total_of` adds bundles up, by all that is in `by`; see `add_up`. Raises `NoEvidenceError` if
    the releases do not add up.

    Notes
    -----
    *Guarantee*: where it returns True, all releases together are within the budget. An attacker who sees some of them
    sees less than one who sees more: what was certified for more of the same bundles holds for these. So a long series
    of releases is added up a few times only, each time for about twice as many as there are, and near the budget one by
    one. Bundles are named by what they hold, so nothing remembered can be about another certificate. *Rounding*: up.
    """
    key = (by, budget.epsilon, budget.delta, budget.measures, frozenset(held))
    with _one_at_a_time:
        line = _lines.get(key)
        if line is not None:
            _lines.move_to_end(key)
    if line is not None:
        if held == line.rim or _is_part(held, line.most) or _is_part(held, line.rim, _LESS):
            return True
        further = _further(held, line)
        if further is not None:
            if _fits_easily(further, budget, total_of):
                line.computed, line.most = dict(held), further
                return True
            line.excess = further
    if not _within(total_of(held), budget, 1.0):
        return False
    if line is None:
        line = _Line()
        with _one_at_a_time:
            _lines[key] = line
            while len(_lines) > _MOST_LINES:
                _lines.popitem(last=False)
    line.computed = dict(held)
    if not _is_part(held, line.rim):
        line.rim = line.computed
    return True


def _further(held: Held, line: _Line) -> Held | None:
    """Return more than is asked about: half of the way to what is too much, or twice what came since the last time."""
    if line.excess is not None and _is_part(held, line.excess):
        further = {bundle: (times + line.excess[bundle]) // 2 for bundle, times in held.items()}
        return further if further != held else None
    grown = Counter(held) - Counter(line.computed)
    return {bundle: times + 2 * grown[bundle] for bundle, times in held.items()} if grown else None


def _is_part(some: Held, more: Held, share: float = 1.0) -> bool:
    return all(times <= share * more.get(bundle, 0) for bundle, times in some.items())


def _fits_easily(held: Held, budget: Budget, total_of: Callable[[Held], Certificate]) -> bool:
    try:
        return _within(total_of(held), budget, _SPARE)
    except NoEvidenceError:
        return False


def _within(total: Certificate, budget: Budget, share: float) -> bool:
    epsilon = budget.epsilon * share
    return all(
        (total if measure == "partial_knowledge" else total.worst_case).delta(epsilon) <= budget.delta
        for measure in budget.measures
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTotals:
    """The totals of charged releases under some terms; charges, totals, views and dry runs ask it.

    `dataset`: for messages. `parts`: what the account's releases count with.
    """

    dataset: str
    account: Account
    parts: dict[str, Certificate]
    terms: Terms

    @classmethod
    def read(cls, records: Records, terms: Terms, *, near: Row | None = None) -> LedgerTotals:
        """Return those of a data set as it is charged now, or `near` a release; inside a transaction or a snapshot."""
        account = records.account(near)
        parts = {row.part: records.parts[row.part] for row in account.rows}
        return cls(dataset=records.dataset, account=account, parts=parts, terms=terms)

    def of(self, held: Held) -> Certificate:
        """Return what bundles of one unit add up to; raises a `NoEvidenceError` where they do not."""
        return add_up(held, self.parts, self.terms.evidence, beside_others=len(self.account.units) > 1)

    def total(self, unit: str | None) -> Certificate:
        """Return what everything adds up to for one privacy unit (see `asked_unit`), with what limits it."""
        if unit is None or unit not in self.account.units:
            return compose([])
        return self.of(self.account.bundles(unit)).with_caveats(*self._limits(unit))

    def known(self, unit: Sequence[str], first: date | None = None, last: date | None = None) -> Certificate | None:
        """Return the total of one unit, or of what is about any of the days from `first` to `last`.

        None where the releases do not add up; the total of nothing where there are none.
        """
        try:
            if first is None or last is None:
                return self.total(unit_text(unit))
            held = self.account.window(unit_text(unit), (last - first).days + 1, first.toordinal())
            return self.of(held) if held else compose([])
        except NoEvidenceError:
            return None

    def epsilon(self, held: Held, measure: str, delta: float) -> float:
        """Return the ε at `delta` that bundles add up to, `math.inf` where there is none; rounded up."""
        total = self._or_none(held) if held else compose([])
        return math.inf if total is None else self.least(epsilon_of(total, measure, delta), self.drawn(held), delta)

    @staticmethod
    def least(epsilon: float, exact: tuple[Fraction, Fraction] | None, delta: float) -> float:
        """Return the smaller of a certified ε and the exact sum, as the first float above it."""
        if exact is None or exact[1] > Fraction(repr(delta)):
            return epsilon
        return min(epsilon, float_above(exact[0]))

    def at_one(self, held: Held, measure: str) -> float | None:
        """Return the δ at ε = 1 that bundles add up to; None where they do not."""
        total = self._or_none(held)
        return None if total is None else delta_of(total, measure, 1.0)

    def drawn(self, held: Held) -> tuple[Fraction, Fraction] | None:
        """Return the exact sums of ε and δ of bundles; see `drawn`."""
        return drawn(whole_parts(held, self.parts))

    def within(self, held: Held, budget: Budget) -> bool:
        """Return whether bundles of one unit fit into a budget."""
        epsilon, delta = self.drawn(held) or (math.inf, math.inf)
        if epsilon <= Fraction(repr(budget.epsilon)) and delta <= Fraction(repr(budget.delta)):
            return True
        return fits_budget(held, budget, self.of, (self.terms.evidence, len(self.account.units) > 1))

    def all_within(self, held: Held, budgets: Iterable[Budget]) -> bool:
        """Return whether bundles add up, and fit into all budgets."""
        try:
            return all(self.within(held, budget) for budget in budgets)
        except NoEvidenceError:
            return False

    def extrapolated(self, before: Account, unit: Sequence[str], days: int, budgets: Sequence[Budget]) -> bool | None:
        """Return whether `days` like the one charged since `before` fit; None where days are not alike."""
        then, now = (account.bundles(unit_text(unit)) for account in (before, self.account))
        if len(self.account.units) > 1 or any(budget.window_days is not None for budget in budgets) or then - now:
            return None
        return self.all_within(then + Counter({one: times * days for one, times in (now - then).items()}), budgets)

    def asked_unit(self, unit: object) -> str | None:
        """Return the privacy unit that is asked for (see `unit_text`), or the only one; None where there is none.

        `unit`: columns that name a person; None where the data set has releases for one unit only. Raises
        `NoEvidenceError` if `unit` is None and there are several, `ArgumentError` if the data set has no releases for
        `unit`.
        """
        units = self.account.units
        named = "; ".join(map(unit_named, units))
        if unit is None:
            if len(units) > 1:
                raise NoEvidenceError(
                    f"data set {self.dataset!r} has releases for several privacy units ({named}), and nothing says how "
                    "one person's records are spread over them: ask for one of them, as in total(unit=…)."
                )
            return units[0] if units else None
        columns = () if isinstance(unit, EachRow) else (unit,) if isinstance(unit, str) else unit
        if not isinstance(columns, Sequence) or not all(isinstance(column, str) for column in columns):
            raise ArgumentError("unit must be a column name, a list of column names, pkdp.EACH_ROW, or None.")
        if unit_text(columns) not in units and units:
            raise ArgumentError(f"unit must be one of those that data set {self.dataset!r} has releases for: {named}.")
        return unit_text(columns)

    def _or_none(self, held: Held) -> Certificate | None:
        try:
            return self.of(held)
        except NoEvidenceError:
            return None

    def _limits(self, unit: str) -> list[str]:
        listed = [Context(unit=tuple(json.loads(unit))).facts()[0]]
        others = [unit_named(one) for one in self.account.units if one != unit]
        if others:
            listed.append(
                f"Releases of this data set for other privacy units ({'; '.join(others)}) are not in it: what they "
                "tell about the same people comes on top."
            )
        return listed


def delta_of(total: Certificate, measure: str, epsilon: float) -> float:
    """Return the δ at `epsilon` of one of a certificate's two guarantees."""
    return float(total.delta(epsilon) if measure == "partial_knowledge" else total.worst_case.delta(epsilon))


def epsilon_of(total: Certificate, measure: str, delta: float) -> float:
    """Return the ε at `delta` of one of a certificate's two guarantees."""
    return total.epsilon(delta) if measure == "partial_knowledge" else total.worst_case.epsilon(delta)


def drawn(parts: Iterable[tuple[Certificate, int]]) -> tuple[Fraction, Fraction] | None:
    """Return the sum of worst-case ε and δ with the noise as it is drawn, exactly; None where a part has none.

    Notes
    -----
    The sampler's scale is a float s with ``s * epsilon >= 1``, so what is drawn is (1/s)-private, 1/s being at
    most the declared ε. A budget is a decimal: ten releases with noise declared as 0.1, drawn with scale 10, are
    exactly 1-private together, although ten times the float 0.1 is more than 1. A leakage beside a release is
    declared in decimals, and counted as written. *Guarantee*: all parts together, with what leaks beside them, are
    private at these numbers against any attacker (basic composition). *Rounding*: none for ε; each δ is rounded up.
    """
    epsilon, delta = Fraction(0), Fraction(0)
    listed = list(parts)
    told = all(knows_total(certificate) for certificate, _ in listed)
    for certificate, times in listed:
        if told and kind_counted(certificate) == "total":
            continue  # given what it tells, it costs nothing
        pair = _drawn(certificate.worst_case_bound)
        if pair is None:
            return None
        epsilon, delta = epsilon + times * pair[0], delta + times * pair[1]
    return epsilon, min(delta, Fraction(1))


def _drawn(bound: WorstCase | None) -> tuple[Fraction, Fraction] | None:
    """Return ε and δ of one release's worst case, the noise as it is drawn; None where only its profile is known."""
    if isinstance(bound, WorstBesidePrivate):
        pair = _drawn(bound.base)
        if pair is None:
            return None
        return pair[0] + Fraction(repr(bound.epsilon)), pair[1] + Fraction(bound.delta)
    if not isinstance(bound, NoiseCurve) or bound.noise < SMALLEST_EPSILON:
        return None
    return bound.changes / Fraction(noise_scale(GeometricNoise(bound.noise))), Fraction(bound.parameters[1])
