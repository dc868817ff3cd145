"""Rules 1 to 5: what evidence about people and days makes of the releases of a schedule, and the sums it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import Directions, directions
from pkdp_pipeline.composition.part import (
    GroupPrivacy,
    NoiseTotal,
    Part,
    SmallerTotal,
    Total,
    WorstMaximum,
    at_once,
    best_attack,
    in_words,
    maximum,
    series_of,
    what_is_hidden,
)
from pkdp_pipeline.model.evidence import BoundedDependence, BoundedParticipation, Evidence
from pkdp_pipeline.model.wording import Protection
from pkdp_pipeline.theorems.bound import Applied, Bound, Guarantee, WorstCase
from pkdp_pipeline.theorems.hull import ProfileLosses
from pkdp_pipeline.theorems.numerics import EVALUATED, Array, float_below, sum_above
from pkdp_pipeline.theorems.theorems import THEOREMS
from pkdp_pipeline.theorems.thresholding import Thresholding

Parts = tuple[Part, ...]
_WORST = "worst_case_parts"

_SLOW_THEOREM = "noisy_thresholding_in_box"
"""A profile that takes a second at every ε is not read off at hundreds of them; others hold beside it."""

_MAX_KINDS_SUMMED = 32
"""Of up to so many different releases it is looked at what all tell, where nobody takes part in all of them."""


def independent_given_habits(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Convolve the losses of all parts; with `BoundedParticipation`, of up to twice as many periods as it says."""
    rule, most = "independent_given_habits", _most(evidence)
    return _whole(rule, parts, most, convolved(rule, parts, None if most is None else most * at_once(parts)))


def independent_draws(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Convolve the losses of all parts, each of a secret sample of its own."""
    return _whole("independent_draws", parts, None, convolved("independent_draws", parts, None))


def _laws(part: Part, *, own: bool = False, hulls: bool = False) -> tuple[tuple[Directions, int], ...]:
    """Return the losses of a part, and how often each; those of a person's several cells one by one.

    `own`: bounds that do not give losses of their own are left out where others do. `hulls`: the hull of what is
    certified takes the place of a pair that averages over how many known people count.
    """
    cells = [bound for bound in part.bounds if isinstance(bound, Convolved) and THEOREMS[bound.theorem].about]
    if cells and len(cells) == len(part.bounds):
        # Where there are two, the second is made of hulls.
        return tuple((law, times * part.times) for law, times in cells[-1 if hulls else 0].parts)
    bounds = _quick(part)
    giving = tuple(bound for bound in bounds if own and bound.losses(part.protects))
    bounds = giving if any(bound is not part.worst for bound in giving) else bounds
    law = directions(bounds, part.protects)
    law = Directions(right=ProfileLosses(bounds=bounds)) if hulls and law.averages else law
    return ((replace(law, attack=_repeatable(part)), part.times),)


def _whole(
    rule: str, parts: Parts, most: int | None = None, partial: tuple[Applied, ...] = (), reason: str = ""
) -> Total:
    """Return a total about everything that a person did, in `most` periods at most where that is declared."""
    worst, hidden = noise_total(parts, most), trajectory(parts, most, rests_on_draws=bool(partial))
    return Total(rule=rule, partial=partial, worst=worst, protection=hidden, reason=reason)


def _most(evidence: Sequence[Evidence]) -> int | None:
    """Return in how many periods anybody takes part, where that is declared."""
    return next((item.times for item in evidence if isinstance(item, BoundedParticipation)), None)


def trajectory(parts: Parts, participation: int | None = None, *, rests_on_draws: bool = True) -> Protection:
    """Return what is protected of everything a person did; `rests_on_draws`: also where parts are of secret samples."""
    periods = "1 period" if participation == 1 else f"{participation} periods"
    these = "these releases" if participation is None else f"these releases (of at most {periods})"
    return in_words(
        parts,
        counted=f"in which of {these} a person is counted, all of them together",
        included=f"in which of {these} a person is included, all of them together",
        both=f"in which of {these} a person is included, and in which cells, all of them together",
        cell=(f"in which cells of {these} a person is, all of them together", "in which releases she is included"),
        drawn=f"in the populations of which of {these} a person is, all of them together" if rests_on_draws else "",
    )


def convolved(theorem: str, parts: Parts, participation: int | None) -> tuple[Applied, ...]:
    """Return the convolution of all parts' losses; none where no part rests on the attacker model."""
    if not any(part.partial for part in parts):
        return ()
    single = tuple(applied for part in parts for applied in part.partial)
    laws = tuple(law for part in parts for law in _laws(part))
    if participation is not None:
        # A period that somebody takes part in has a law for each of her cells, inside of a total as well.
        participation *= max(sum(times for _, times in _laws(part)) // part.times for part in parts)
    bound = Convolved(theorem=theorem, parts=laws, participation=participation)
    total = Applied(bound=bound, attack=best_attack(theorem, (*single, Applied(bound=bound, attack=bound))))
    # Where noise or a box adds little to a threshold, its own losses are closer than those of the better profile; where
    # known people count by chance, hulls are closer.
    exact = tuple(law for part in parts for law in _laws(part, own=True))
    hulls = tuple(law for part in parts for law in _laws(part, hulls=True))
    others = [each for each in dict.fromkeys((exact, hulls)) if each != laws]
    several = participation is not None and len(laws) > 1
    if not several and not others and not any(isinstance(law.right, ProfileLosses) for law, _ in laws):
        return (total,)
    # Where laws are read off profiles, or all taken for the most telling ones, the plain sum may be smaller.
    variants = [replace(bound, parts=each) for each in others]
    if several and len(laws) <= _MAX_KINDS_SUMMED:
        variants += [replace(variant, participation=None) for variant in (bound, *variants)]
    return (total, *(Applied(bound=variant, attack=None) for variant in (_split_sum(theorem, parts), *variants)))


def _split_sum(theorem: str, parts: Parts, epsilon: float = 0.0, delta: float = 0.0) -> SplitSum:
    often = tuple((_quick(part), part.times) for part in parts)
    return SplitSum(theorem=theorem, parts=often, extra_epsilon=epsilon, extra_delta=delta)


def _quick(part: Part) -> tuple[Bound, ...]:
    return tuple(bound.quick for bound in part.bounds if bound.theorem != _SLOW_THEOREM)


def _repeatable(part: Part) -> Thresholding | None:
    """Return an attack that a declared attacker can make on every day, with any number of unknown people."""
    attacks = (applied.attack for applied in part.partial if applied.attack is applied.bound)
    able = (
        attack
        for attack in attacks
        if isinstance(attack, Thresholding) and attack.known == 0 and attack.least_unknown == 0
    )
    return next(able, None)


def noise_total(parts: Parts, participation: int | None = None) -> WorstCase | None:
    """Return the total of the worst-case guarantees; None where a part has none.

    `participation`: in how many periods anybody takes part; two lives differ in up to twice as many, each at the joint
    cost of its releases.
    """
    everything = plain_sum(_WORST, parts)
    if participation is None or everything is None:
        return everything
    known, loose = series_of(parts)
    totals: list[NoiseTotal] = []
    for series in [known, *loose] if known else loose:
        bounds = ((_joint(group), times) for group, times in series)
        totals.append(NoiseTotal(theorem=_WORST, parts=_counted(bounds), differing=2 * participation))
    # A period of every series may be one and the same.
    several = ((total.parts[0][0], total.releases) if len(total.parts) == 1 else (total, 1) for total in totals)
    few = totals[0] if len(totals) == 1 else NoiseTotal(theorem=_WORST, parts=_counted(several))
    # Different periods are all taken for the most telling one.
    return few if len(few.parts) == 1 else SmallerTotal(theorem=_WORST, few=few, everything=everything)


def plain_sum(theorem: str, parts: Parts) -> NoiseTotal | None:
    """Return the total of the worst-case guarantees of all parts; None where one has none."""
    if any(part.worst is None for part in parts) or not parts:
        return None
    return NoiseTotal(theorem=theorem, parts=_counted((part.worst, part.times) for part in parts))


def _joint(group: Parts) -> WorstCase | None:
    """Return what the releases of one period tell together."""
    return group[0].worst if len(group) == 1 and group[0].times == 1 else noise_total(group)


def _counted(bounds: Iterable[tuple[WorstCase | None, int]]) -> tuple[tuple[WorstCase, int], ...]:
    often: dict[WorstCase, int] = {}
    for bound, times in bounds:
        if bound is not None:
            often[bound] = often.get(bound, 0) + times
    return tuple(often.items())


def disjoint_units(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Take the largest guarantee: one part only concerns any given person, and the others are independent of it."""
    rule = "disjoint_units"
    hidden = what_is_hidden(parts, "the one part that she belongs to, whatever the other parts publish")
    return largest(rule, parts, hidden)


def largest(rule: str, parts: Parts, hidden: str) -> Total:
    """Return the pointwise largest of the parts' guarantees; none against anyone where a part has none."""
    bounds = [part.worst for part in parts if part.worst is not None]
    worst = WorstMaximum(theorem=rule, parts=tuple(dict.fromkeys(bounds))) if len(bounds) == len(parts) else None
    profile = maximum(rule, (part.bounds for part in parts))
    return Total(rule=rule, partial=_of_parts(profile, parts), worst=worst, protection=hidden)


def _of_parts(bound: Bound, parts: Parts) -> tuple[Applied, ...]:
    """Return a bound on the whole, attacked as its parts are; none where no part rests on the attacker model."""
    single = [applied for part in parts for applied in part.partial]
    return (Applied(bound=bound, attack=best_attack(bound.theorem, single)),) if single else ()


def one_day_protected(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Take the largest guarantee; with `BoundedParticipation`, that of all the releases in which lives can differ."""
    alone, together = "any one of these releases, whatever her other records are", "what several releases together tell"
    hidden = what_is_hidden(parts, alone, (f"{together} about her", f"{together} about a person"))
    single, most = largest("one_day_protected", parts, hidden), _most(evidence)
    if most is None:
        return single
    steps = min(2 * most * at_once(parts), sum(part.times for part in parts))
    partial = tuple(
        replace(applied, bound=GroupPrivacy(theorem=single.rule, base=applied.bound, steps=steps))
        for applied in single.partial
    )
    return _whole("group_privacy", parts, most, partial)


def bounded_dependence(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Add up all ε and δ, and ε′ and δ′ for every release after the first."""
    rule, declared = "bounded_dependence", next(item for item in evidence if isinstance(item, BoundedDependence))
    bound = _split_sum(rule, parts, declared.epsilon, declared.delta)
    if len(parts) == 1:
        # ε is shared equally: no curve is read off at hundreds of ε, so that the closest bounds cost little.
        closest = tuple(item for item in parts[0].bounds if item.theorem != _SLOW_THEOREM)
        bound = replace(bound, parts=((closest, parts[0].times),))
    return _whole(rule, parts, partial=_of_parts(bound, parts))


_REASON = (
    "bounded participation alone says nothing about how people's records depend on one another: declare as well that "
    "they are independent given people's habits, for the data after any capping"
)


def bounded_participation(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Add up the worst-case guarantees of as many periods as two lives can differ in.

    Noiseless parts need `IndependentGivenHabits` or `OneDayProtected` as well; alone the rule gives several of them
    nothing, and a single one is what it is.
    """
    if len(parts) == 1 and parts[0].times == 1:
        return without_evidence(parts, evidence)
    total = _whole("bounded_participation", parts, _most(evidence))
    return replace(total, reason=_REASON) if total.worst is None or any(part.partial for part in parts) else total


def without_evidence(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Add up worst-case guarantees; where a part has none there is no total."""
    if len(parts) == 1 and parts[0].times == 1:
        return Total(rule="single", partial=parts[0].partial, worst=parts[0].worst, protection=trajectory(parts))
    return _whole(_WORST, parts, reason="no evidence says how the releases depend on one another")


_EPSILON_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 256.0, 140)])
"""Where the profiles of parts that differ are looked at to find the split; any split is sound."""

_MIN_LOG_DELTA = -690.0
"""The logarithm of the smallest common δ that is looked for."""

_MAX_LOG_FALL = 5.0
"""A fall of log δ between two points of the table that is no slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSum(Bound):
    """The profile ``δ(Σ ε_i + n ε′) = Σ δ_i(ε_i) + n δ′`` over the splits of ε that give every part the same δ.

    Parameters
    ----------
    parts : tuple of (tuple of Bound, int)
        The bounds that hold for each different part, and how often the part occurs.
    extra_epsilon, extra_delta : float
        ε′ and δ′, paid for each part after the first.

    Notes
    -----
    Every split is a bound; equal δ is a good one, and the best where the parts are equal. *Guarantee*: never below
    the divergence of the whole under rule 4. *Rounding*: up. *Source*: `docs/composition.md`, rule 4.
    """

    parts: tuple[tuple[tuple[Bound, ...], int], ...]
    extra_epsilon: float
    extra_delta: float

    @property
    def slack(self) -> float:
        """Return the largest slack of a part's bounds."""
        return max((bound.slack for bounds, _ in self.parts for bound in bounds), default=0.0)

    def rounding(self, epsilons: Array) -> Array:
        """See `pkdp_pipeline.theorems.bound.Bound`."""
        shares = np.array([self._rounded(epsilon) for epsilon in epsilons.tolist()])
        return np.stack([shares, shares])

    @property
    def _added(self) -> int:
        return sum(times for _, times in self.parts) - 1

    def bracket(self, epsilons: Array) -> tuple[Array, Array]:
        """Return (attained, certified) arrays; see `pkdp_pipeline.theorems.bound.Bound`."""
        return np.zeros(len(epsilons)), np.array([self._delta_at(epsilon) for epsilon in epsilons.tolist()])

    def _delta_at(self, epsilon: float) -> float:
        shares = zip(self.parts, self._split(epsilon), strict=False)
        deltas = [float(Guarantee(bounds).delta(share)) for (bounds, _), share in shares]
        return self._delta(deltas) if deltas else 1.0

    def _rounded(self, epsilon: float) -> float:
        """Return `rounding` at one ε: that of the sum, each part rounded as where it is evaluated."""
        shares = self._split(epsilon)
        if not shares:
            return EVALUATED
        parts = [(Guarantee(bounds), np.array([point])) for (bounds, _), point in zip(self.parts, shares, strict=True)]
        exact = [float(part.delta(point)[0]) for part, point in parts]
        lower = [
            value * (1.0 - float(part.rounding(point)[0])) for value, (part, point) in zip(exact, parts, strict=True)
        ]
        value = self._delta(exact)
        return max(0.0, 1.0 - self._delta(lower) / value) if value else 0.0

    def _split(self, epsilon: float) -> list[float]:
        """Return the ε at which each part is evaluated; none where there is nothing to share."""
        left = Fraction(epsilon) - self._added * Fraction(self.extra_epsilon)
        if left < 0:
            return []
        if len(self.parts) == 1:
            return [float_below(left / self.parts[0][1])]
        curves = [_curve(bounds) for bounds, _ in self.parts]
        times = np.array([times for _, times in self.parts], dtype=np.float64)
        # Bisection on the common log δ: a smaller δ spends more ε. The curves are interpolated, which costs tightness
        # only, as any split that spends no more than ε is a bound (rule 4).
        high, low = 0.0, _MIN_LOG_DELTA
        for _ in range(60):
            middle = (high + low) / 2.0
            spent = times @ [np.interp(-middle, depths, epsilons) for epsilons, depths in curves]
            high, low = (middle, low) if spent <= float(left) else (high, middle)
        shares = [float(np.interp(-high, depths, epsilons)) for epsilons, depths in curves]
        # What no part can use goes to all alike; what rounding has added is taken from all.
        rest = max(0.0, float(left) - float(self._spent(shares))) / (self._added + 1)
        shares = [share + rest for share in shares]
        while self._spent(shares) > left:
            shares = [share * (1.0 - 1e-12) for share in shares]
        return shares

    def _spent(self, shares: list[float]) -> Fraction:
        spent = (Fraction(share) * times for share, (_, times) in zip(shares, self.parts, strict=True))
        return sum(spent, Fraction(0))

    def _delta(self, deltas: list[float]) -> float:
        return min(1.0, sum_above([*deltas, self.extra_delta], [*(times for _, times in self.parts), self._added]))


@lru_cache(maxsize=1024)
def _curve(bounds: tuple[Bound, ...]) -> tuple[Array, Array]:
    """Return ε and -log δ of a profile, both increasing, up to its smallest δ: more ε would buy nothing.

    Between two points one is read from the other as on a line; where δ falls too far for that, at the second point.
    """
    falls = [bound.parameters[0] for bound in bounds if isinstance(bound, WorstCase)]
    epsilons = np.unique([*_EPSILON_GRID, *(epsilon for epsilon in falls if epsilon < _EPSILON_GRID[-1])])
    table = np.minimum.accumulate(Guarantee(bounds).delta(epsilons))
    depths = -np.log(np.maximum(table, math.exp(_MIN_LOG_DELTA)))
    steep = np.flatnonzero(np.diff(depths) > _MAX_LOG_FALL) + 1
    epsilons = np.insert(epsilons, steep, np.nextafter(epsilons[steep], 0.0))
    depths = np.insert(depths, steep, depths[steep - 1])
    lowest = int(np.searchsorted(depths, depths[-1])) + 1
    return epsilons[:lowest], depths[:lowest]
