"""Rules 1 to 5: what evidence about people and days makes of the releases of a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import ProfileLosses, directions
from pkdp_pipeline.composition.maximum import Maximum, WorstMaximum, best_attack
from pkdp_pipeline.composition.part import Part, Total, at_once, in_words, series_of, what_is_hidden
from pkdp_pipeline.composition.sums import GroupPrivacy, NoiseTotal, SmallerTotal, SplitSum
from pkdp_pipeline.model.evidence import BoundedDependence, BoundedParticipation, Evidence
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.thresholding import Thresholding

Parts = tuple[Part, ...]
_WORST = "worst_case_parts"


def independent_given_habits(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Convolve the losses of all parts; with `BoundedParticipation`, of those in which two lives can differ."""
    most = _most(evidence)
    partial = convolved("independent_given_habits", parts, None if most is None else most * at_once(parts))
    worst = noise_total(parts, most)
    return Total(rule="independent_given_habits", partial=partial, worst=worst, protection=trajectory(parts, most))


def _most(evidence: Sequence[Evidence]) -> int | None:
    """Return in how many periods anybody takes part, where that is declared."""
    return next((one.times for one in evidence if isinstance(one, BoundedParticipation)), None)


def trajectory(parts: Parts, participation: int | None = None) -> str:
    """Return what is protected of everything a person did, as one sentence."""
    periods = "1 period" if participation == 1 else f"{participation} periods"
    these = "these releases" if participation is None else f"these releases (of at most {periods})"
    return in_words(
        parts,
        counted=f"in which of {these} a person is counted, all of them together",
        included=f"in which of {these} a person is included, all of them together",
        both=f"in which of {these} a person is included, and in which cells, all of them together",
        cell=f"in which cells of {these} a person is, all of them together; it does not protect in which releases she "
        "is included",
    )


def convolved(theorem: str, parts: Parts, participation: int | None) -> tuple[Applied, ...]:
    """Return the convolution of all parts' losses; none where no part rests on the attacker model."""
    if not any(part.partial for part in parts):
        return ()
    laws = tuple((directions(part.bounds, part.protects, attacks=_repeatable(part)), part.times) for part in parts)
    bound = Convolved(theorem=theorem, parts=laws, participation=participation)
    single = tuple(applied for part in parts for applied in part.partial)
    total = Applied(bound=bound, attack=best_attack(theorem, (*single, Applied(bound=bound, attack=bound))))
    several = participation is not None and len(laws) > 1
    if not several and not any(isinstance(law.right, ProfileLosses) for law, _ in laws):
        return (total,)
    # Where laws are read off profiles, or all taken for the most telling ones, the plain sum may be smaller.
    return total, Applied(bound=_split_sum(theorem, parts), attack=None)


def _split_sum(theorem: str, parts: Parts, epsilon: float = 0.0, delta: float = 0.0) -> SplitSum:
    often = tuple((part.bounds, part.times) for part in parts)
    return SplitSum(theorem=theorem, parts=often, extra_epsilon=epsilon, extra_delta=delta)


def _repeatable(part: Part) -> list[Bound]:
    """Return the attacks that a declared attacker can make on every day, with any number of unknown people."""
    attacks = [applied.attack for applied in part.partial if applied.attack is applied.bound]
    return [attack for attack in attacks if isinstance(attack, Thresholding) and attack.least_unknown == 0]


def noise_total(parts: Parts, participation: int | None = None) -> WorstCase | None:
    """Return the total of the worst-case guarantees; None where a part has none.

    With `participation`, of the periods in which two lives can differ, each at the joint cost of its releases.
    """
    everything = plain_sum(_WORST, parts)
    if participation is None or everything is None:
        return everything
    known, loose = series_of(parts)
    totals: list[NoiseTotal] = []
    for series in [known, *loose] if known else loose:
        bounds = ((_joint(group), times) for group, times in series)
        totals.append(NoiseTotal(theorem=_WORST, parts=_counted(bounds), participation=participation))
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
    return Total(rule=rule, partial=largest(rule, parts), worst=worst_largest(rule, parts), protection=hidden)


def largest(theorem: str, parts: Parts) -> tuple[Applied, ...]:
    """Return the pointwise largest profile; none where no part rests on the attacker model."""
    if not any(part.partial for part in parts):
        return ()
    bound = Maximum(theorem=theorem, parts=tuple(dict.fromkeys(part.bounds for part in parts)))
    return (Applied(bound=bound, attack=best_attack(theorem, (one for part in parts for one in part.partial))),)


def worst_largest(theorem: str, parts: Parts) -> WorstMaximum | None:
    """Return the pointwise largest worst-case guarantee; None where a part has none."""
    bounds = [part.worst for part in parts if part.worst is not None]
    return WorstMaximum(theorem=theorem, parts=tuple(dict.fromkeys(bounds))) if len(bounds) == len(parts) else None


def one_day_protected(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Take the largest guarantee; with `BoundedParticipation`, that of all the releases in which lives can differ."""
    rule = "one_day_protected"
    single, most = largest(rule, parts), _most(evidence)
    if most is None:
        hidden = what_is_hidden(parts, "any one of these releases, whatever her other records are")
        hidden += " What several releases tell together about her is not protected."
        return Total(rule=rule, partial=single, worst=worst_largest(rule, parts), protection=hidden)
    steps = min(2 * most * at_once(parts), sum(part.times for part in parts))
    partial = tuple(
        Applied(bound=GroupPrivacy(theorem=rule, one=applied.bound, steps=steps), attack=applied.attack)
        for applied in single
    )
    worst = noise_total(parts, most)
    return Total(rule="group_privacy", partial=partial, worst=worst, protection=trajectory(parts, most))


def bounded_dependence(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Add up all ε and δ, and ε′ and δ′ for every release after the first."""
    rule, partial = "bounded_dependence", tuple[Applied, ...]()
    declared = next(one for one in evidence if isinstance(one, BoundedDependence))
    if any(part.partial for part in parts):
        bound = _split_sum(rule, parts, declared.epsilon, declared.delta)
        partial = (Applied(bound=bound, attack=best_attack(rule, (one for part in parts for one in part.partial))),)
    return Total(rule=rule, partial=partial, worst=noise_total(parts), protection=trajectory(parts))


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
    most = _most(evidence)
    worst = noise_total(parts, most)
    reason = _REASON if worst is None or any(part.partial for part in parts) else ""
    hidden = trajectory(parts, most)
    return Total(rule="bounded_participation", partial=(), worst=worst, protection=hidden, reason=reason)


def without_evidence(parts: Parts, evidence: Sequence[Evidence]) -> Total:
    """Add up worst-case guarantees; where a part has none there is no total."""
    hidden = trajectory(parts)
    if len(parts) == 1 and parts[0].times == 1:
        return Total(rule="single", partial=parts[0].partial, worst=parts[0].worst, protection=hidden)
    reason = "no evidence says how the releases depend on one another"
    return Total(rule=_WORST, partial=(), worst=noise_total(parts), protection=hidden, reason=reason)
