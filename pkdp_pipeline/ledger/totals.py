"""LedgerTotals: what a data set's charged releases add up to, and whether that fits a budget."""

from __future__ import annotations

import json
import math
import pickle
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, compose, promised_by, releases_in
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, release_certificate
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError
from pkdp_pipeline.ledger.account import Account, Bundles, add_up, kind_counted, knows_total, unit_named, whole_parts
from pkdp_pipeline.ledger.chain import Budget, Terms
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.rows import Entry, Row, counted, unit_text
from pkdp_pipeline.model.columns import EachRow
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.evidence import SamePeople
from pkdp_pipeline.model.mechanisms import SMALLEST_EPSILON, GeometricNoise, noise_scale, noised_below
from pkdp_pipeline.theorems.bound import WorstCase
from pkdp_pipeline.theorems.numerics import float_above
from pkdp_pipeline.theorems.worst_case import NoiseCurve, SumCurve, WorstBesidePrivate

_SHARE_WITH_MARGIN = 1.0 - 1e-3
"""A total within this share of a budget's ε leaves more room than rounding on a grid takes (0.05 %)."""

_SAFE_SHARE = 0.99
"""This share of a number that fits without room to spare leaves that room."""

_MAX_KNOWN_TOTALS = 512


@dataclass(slots=True)
class _KnownTotals:
    """The facts known about totals of the same bundles.

    `roomy` fits with room to spare, `largest` fits, `excess` does not; `computed` is the last one added up.
    """

    computed: Bundles = field(default_factory=dict)
    roomy: Bundles = field(default_factory=dict)
    largest: Bundles = field(default_factory=dict)
    excess: Bundles | None = None


_known_totals: OrderedDict[Hashable, _KnownTotals] = OrderedDict()
_known_totals_lock = threading.Lock()


def fits_budget(bundles: Bundles, budget: Budget, total_of: Callable[[Bundles], Certificate], by: Hashable) -> bool:
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
    key = (by, budget.epsilon, budget.delta, budget.measures, frozenset(bundles))
    with _known_totals_lock:
        known = _known_totals.get(key)
        if known is not None:
            _known_totals.move_to_end(key)
    if known is not None:
        # Data processing: who sees some of the bundles sees a function of them all, so what fits for more fits here.
        if bundles == known.largest or _is_part(bundles, known.roomy) or _is_part(bundles, known.largest, _SAFE_SHARE):
            return True
        # Doubling, then halving towards what is too much, so that a series is added up a few times only.
        further = _further(bundles, known)
        if further is not None:
            if _fits_easily(further, budget, total_of):
                known.computed, known.roomy = dict(bundles), further
                return True
            known.excess = further
    if not _within(total_of(bundles), budget, 1.0):
        return False
    if known is None:
        known = _KnownTotals()
        with _known_totals_lock:
            _known_totals[key] = known
            while len(_known_totals) > _MAX_KNOWN_TOTALS:
                _known_totals.popitem(last=False)
    known.computed = dict(bundles)
    if not _is_part(bundles, known.largest):
        known.largest = known.computed
    return True


def _further(bundles: Bundles, known: _KnownTotals) -> Bundles | None:
    """Return more than is asked about: half of the way to what is too much, or twice what came since the last time."""
    if known.excess is not None and _is_part(bundles, known.excess):
        further = {bundle: (times + known.excess[bundle]) // 2 for bundle, times in bundles.items()}
        return further if further != bundles else None
    grown = Counter(bundles) - Counter(known.computed)
    return {bundle: times + 2 * grown[bundle] for bundle, times in bundles.items()} if grown else None


def _is_part(part: Bundles, whole: Bundles, share: float = 1.0) -> bool:
    return all(times <= share * whole.get(bundle, 0) for bundle, times in part.items())


def _fits_easily(bundles: Bundles, budget: Budget, total_of: Callable[[Bundles], Certificate]) -> bool:
    try:
        return _within(total_of(bundles), budget, _SHARE_WITH_MARGIN)
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
    def read(cls, records: Records, terms: Terms, *, beside: Row | None = None) -> LedgerTotals:
        """Return those of a data set as it is charged now, with `beside` of that release's component only.

        Call it inside a transaction or a snapshot.
        """
        account = records.account(beside)
        parts = {row.part: records.parts[row.part] for row in account.rows}
        return cls(dataset=records.dataset, account=account, parts=parts, terms=terms)

    def __reduce__(self) -> tuple[object, ...]:
        """Return what is pickled, each part apart: a process that has read one before does not read it again."""
        parts = {key: _part_sent(part) for key, part in self.parts.items()}
        return _totals_received, (self.dataset, self.account, parts, self.terms)

    def of(self, bundles: Bundles) -> Certificate:
        """Return what bundles of one unit add up to; raises a `NoEvidenceError` where they do not."""
        return add_up(bundles, self.parts, self.terms.evidence, beside_others=len(self.account.units) > 1)

    def total(self, unit: str | None) -> Certificate:
        """Return what everything adds up to for one privacy unit (see `asked_unit`), with what limits it."""
        if unit is None or unit not in self.account.units:
            return compose([])
        return self.of(self.account.bundles(unit)).with_caveats(*self._limits(unit))

    def hidden_below(self, unit: str) -> Certificate | None:
        """Return the total as it would be had counts below k been suppressed, not noised; None where none are noised.

        None, too, where that is not certified or does not add up.
        """
        keys = {key for bundle in self.account.bundles(unit) for key, _ in bundle.parts}
        noised = {key for key in keys if any(noised_below(each.mechanism) for each in releases_in(self.parts[key]))}
        try:
            changed = {key: promised_by([*map(_hidden_below, releases_in(self.parts[key]))]) for key in noised}
            return replace(self, parts={**self.parts, **changed}).total(unit) if noised else None
        except (NoEvidenceError, NotCertifiableError):
            return None

    def known(self, unit: Sequence[str], first: date | None = None, last: date | None = None) -> Certificate | None:
        """Return the total of one unit, or of what is about any of the days from `first` to `last`.

        None where the releases do not add up; the total of nothing where there are none.
        """
        try:
            if first is None or last is None:
                return self.total(unit_text(unit))
            bundles = self.account.window(unit_text(unit), (last - first).days + 1, first.toordinal())
            return self.of(bundles) if bundles else compose([])
        except NoEvidenceError:
            return None

    def epsilon(self, bundles: Bundles, measure: str, delta: float) -> float:
        """Return the ε at `delta` that bundles add up to, `math.inf` where there is none; rounded up."""
        total = self._or_none(bundles) if bundles else compose([])
        return math.inf if total is None else self.least(epsilon_of(total, measure, delta), self.drawn(bundles), delta)

    @staticmethod
    def least(epsilon: float, exact: tuple[Fraction, Fraction] | None, delta: float) -> float:
        """Return the smaller of a certified ε and the exact sum: the first number that is not below it as written."""
        if exact is None or exact[1] > Fraction(repr(delta)):
            return epsilon
        # Three times 0.1 are the 0.3 that a budget allows, and no float above it.
        above = float_above(exact[0])
        below = math.nextafter(above, 0.0)
        return min(epsilon, below if Fraction(repr(below)) >= exact[0] else above)

    def at_one(self, bundles: Bundles, measure: str) -> float | None:
        """Return the δ at ε = 1 that bundles add up to; None where they do not."""
        total = self._or_none(bundles)
        return None if total is None else delta_of(total, measure, 1.0)

    def drawn(self, bundles: Bundles) -> tuple[Fraction, Fraction] | None:
        """Return the exact sums of ε and δ of bundles; see `drawn`."""
        return drawn(whole_parts(bundles, self.parts))

    def within(self, bundles: Bundles, budget: Budget) -> bool:
        """Return whether bundles of one unit fit into a budget."""
        by = self.terms.evidence, len(self.account.units) > 1
        return self.within_as_drawn(bundles, budget) or fits_budget(bundles, budget, self.of, by)

    def within_as_drawn(self, bundles: Bundles, budget: Budget) -> bool:
        """Return whether the exact sums of `drawn` fit into a budget."""
        epsilon, delta = self.drawn(bundles) or (math.inf, math.inf)
        return epsilon <= Fraction(repr(budget.epsilon)) and delta <= Fraction(repr(budget.delta))

    def all_within(self, bundles: Bundles, budgets: Iterable[Budget]) -> bool:
        """Return whether bundles add up, and fit into all budgets."""
        try:
            return all(self.within(bundles, budget) for budget in budgets)
        except NoEvidenceError:
            return False

    def extrapolated(self, before: Account, unit: Sequence[str], days: int, budgets: Sequence[Budget]) -> bool | None:
        """Return whether `days` like the one charged since `before` fit; None where days are not alike."""
        then, now = (account.bundles(unit_text(unit)) for account in (before, self.account))
        if len(self.account.units) > 1 or any(budget.window_days is not None for budget in budgets) or then - now:
            return None
        return self.all_within(
            then + Counter({bundle: times * days for bundle, times in (now - then).items()}), budgets
        )

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

    def _or_none(self, bundles: Bundles) -> Certificate | None:
        try:
            return self.of(bundles)
        except NoEvidenceError:
            return None

    def _limits(self, unit: str) -> list[str]:
        listed = [Context(unit=tuple(json.loads(unit))).facts()[0]]
        others = [unit_named(other) for other in self.account.units if other != unit]
        if others:
            listed.append(
                f"Releases of this data set for other privacy units ({'; '.join(others)}) are not in it: what they "
                "tell about the same people comes on top."
            )
        return listed


# What is charged stays charged: the same certificates are sent to a worker with every question, and read there.
@lru_cache(maxsize=4096)
def _part_sent(part: Certificate) -> bytes:
    return pickle.dumps(part)


@lru_cache(maxsize=4096)
def _part_received(content: bytes) -> Certificate:
    part: Certificate = pickle.loads(content)
    return part


def _totals_received(dataset: str, account: Account, sent: dict[str, bytes], terms: Terms) -> LedgerTotals:
    parts = {key: _part_received(content) for key, content in sent.items()}
    return LedgerTotals(dataset=dataset, account=account, parts=parts, terms=terms)


def _hidden_below(release: ReleaseCertificate) -> ReleaseCertificate:
    """Return what is certified where counts below k are suppressed in place of noised."""
    mechanism = release.mechanism
    if noised_below(mechanism):
        hidden = replace(mechanism, noise=None, release_threshold=None, below="suppress")
        return replace(release, mechanism=hidden)
    return release


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
    ratios, delta = [(0, 1)], Fraction(0)
    listed = list(parts)
    total_known = all(knows_total(certificate) for certificate, _ in listed)
    for certificate, times in listed:
        if total_known and kind_counted(certificate) == "total":
            continue  # the others are certified given what it tells, so it adds nothing
        pair = _drawn(certificate.worst_case_bound)
        if pair is None:
            return None
        ratios.append((times * pair[0].numerator, pair[0].denominator))
        delta += times * pair[1]
    while len(ratios) > 1:  # two by two, so that few are long, and reduced at the end
        pairs = zip(ratios[::2], ratios[1::2], strict=False)
        ratios = ratios[len(ratios) // 2 * 2 :] + [(a * d + c * b, b * d) for (a, b), (c, d) in pairs]
    return Fraction(*ratios[0]), min(delta, Fraction(1))


# Every charge asks for those of all releases.
@lru_cache(maxsize=4096)
def _drawn(bound: WorstCase | None) -> tuple[Fraction, Fraction] | None:
    """Return ε and δ of one release's worst case, the noise as it is drawn; None where only its profile is known."""
    if isinstance(bound, WorstBesidePrivate):
        pair = _drawn(bound.base)
        if pair is None:
            return None
        return pair[0] + Fraction(repr(bound.epsilon)), pair[1] + Fraction(bound.delta)
    if isinstance(bound, SumCurve):
        scale = Fraction(noise_scale(GeometricNoise(bound.noise), bound.sensitivity))
        return bound.units / scale, Fraction(bound.parameters[1])
    if not isinstance(bound, NoiseCurve) or bound.noise < SMALLEST_EPSILON:
        return None
    return bound.units / Fraction(noise_scale(GeometricNoise(bound.noise))), Fraction(bound.parameters[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    `total`: their sum; None when they protect different units, or do not add up. `reason`: why there is no
    total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry], known: Iterable[ReleaseCertificate] = ()) -> Together | None:
        """Add up ledger entries, without reading `known` certificates again; None for one, whose own says it all."""
        if len(entries) < 2:
            return None
        total, reason = None, ""
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
        else:
            # An exact total takes nothing from the one release that is certified given it. Beside another release
            # only the noise of a noised one stands.
            single = sum(not entry.standing.total for entry in entries) == 1
            try:
                read = {certificate.to_json(): certificate for certificate in known}
                total = compose([_promised(entry, read, alone=single) for entry in entries], SamePeople())
            except NoEvidenceError:
                reason = "nothing declared says what they add up to"
        return cls(releases=len(entries), total=total, reason=reason)

    def sentence(self, period: str) -> str:
        """Return the total of a period in words; numbers are rounded up."""
        when = f"{'on' if period.count('-') == 2 else 'in'} {period}"
        start = f"The ledger holds {self.releases} releases about these people {when}"
        if self.total is None:
            return f"{start}; {self.reason}."
        return f"{start}. {self.total.sentence()} The ledger's total states what several periods add up to."


def _promised(entry: Entry, read: Mapping[str, ReleaseCertificate], *, alone: bool) -> Certificate:
    """Return the largest promise that a release ever made; only that of its noise, where others stand beside it."""
    counting = [read.get(text) or release_certificate(text) for text in counted(entry.certificates)]
    if alone or any(certificate.worst_case_bound is None for certificate in counting):
        return promised_by(counting)
    return promised_by([certificate.worst_case_only() for certificate in counting])
