"""Rules 1 to 5: what evidence about people and days makes of the releases of a schedule."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.group_privacy import GroupPrivacy
from pkdp_pipeline.composition.loss_laws import ProfileLosses, directions
from pkdp_pipeline.composition.maximum import Maximum, WorstMaximum, best_attack
from pkdp_pipeline.composition.part import Part, Total, at_once, has_cells, hides_presence, series_of, what_is_hidden
from pkdp_pipeline.composition.split_sum import SplitSum
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal, SmallerTotal
from pkdp_pipeline.model.evidence import BoundedDependence, BoundedParticipation, Evidence
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.thresholding import Thresholding

__all__ = [
    "bounded_dependence",
    "bounded_participation",
    "convolved",
    "disjoint_units",
    "independent_given_habits",
    "largest",
    "noise_total",
    "one_day_protected",
    "plain_sum",
    "trajectory",
    "worst_largest",
]


def independent_given_habits(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Convolve the losses of all parts; with `BoundedParticipation`, of those in which two lives can differ."""
    most = next((one.times for one in evidence if isinstance(one, BoundedParticipation)), None)
    releases = None if most is None else most * at_once(parts)
    return Total(
        rule="independent_given_habits",
        partial=convolved("independent_given_habits", parts, releases),
        worst=noise_total("worst_case_parts", parts, most),
        protection=trajectory(parts, most),
    )


def trajectory(parts: tuple[Part, ...], participation: int | None) -> str:
    """Return what is protected of everything a person did, as one sentence."""
    periods = "1 period" if participation == 1 else f"{participation} periods"
    these = "these releases" if participation is None else f"these releases (of at most {periods})"
    if not has_cells(parts):
        return f"Protects in which of {these} a person is counted, all of them together."
    if parts and parts[0].aim == "presence":
        return (
            f"Protects in which of {these} a person is included, all of them together; it does not protect which cell "
            "she is in once that is known."
        )
    if hides_presence(parts):
        return f"Protects in which of {these} a person is included, and in which cells, all of them together."
    return (
        f"Protects in which cells of {these} a person is, all of them together; it does not protect in which releases "
        "she is included."
    )


def convolved(theorem: str, parts: tuple[Part, ...], participation: int | None) -> tuple[Applied, ...]:
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
    often = tuple((part.bounds, part.times) for part in parts)
    return total, Applied(bound=SplitSum(theorem=theorem, parts=often, extra_epsilon=0.0, extra_delta=0.0), attack=None)


def _repeatable(part: Part) -> list[Bound]:
    """Return the attacks that a declared attacker can make on every day, with any number of unknown people."""
    attacks = [applied.attack for applied in part.partial if applied.attack is applied.bound]
    return [attack for attack in attacks if isinstance(attack, Thresholding) and attack.least_unknown == 0]


def noise_total(theorem: str, parts: tuple[Part, ...], participation: int | None = None) -> WorstCase | None:
    """Return the total of the worst-case guarantees; None where a part has none.

    With `participation`, of the periods in which two lives can differ, each at the joint cost of its releases.
    """
    everything = plain_sum(theorem, parts)
    if participation is None or everything is None:
        return everything
    known, loose = series_of(parts)
    totals: list[NoiseTotal] = []
    for series in [known, *loose] if known else loose:
        bounds = ((_joint(theorem, group), times) for group, times in series)
        totals.append(NoiseTotal(theorem=theorem, parts=_counted(bounds), participation=participation))
    # A period of every series may be one and the same.
    several = ((total.parts[0][0], total.releases) if len(total.parts) == 1 else (total, 1) for total in totals)
    few = totals[0] if len(totals) == 1 else NoiseTotal(theorem=theorem, parts=_counted(several))
    # Different periods are all taken for the most telling one.
    return few if len(few.parts) == 1 else SmallerTotal(theorem=theorem, few=few, everything=everything)


def plain_sum(theorem: str, parts: tuple[Part, ...]) -> NoiseTotal | None:
    """Return the total of the worst-case guarantees of all parts; None where one has none."""
    if any(part.worst is None for part in parts) or not parts:
        return None
    return NoiseTotal(theorem=theorem, parts=_counted((part.worst, part.times) for part in parts))


def _joint(theorem: str, group: tuple[Part, ...]) -> WorstCase | None:
    """Return what the releases of one period tell together."""
    if len(group) == 1 and group[0].times == 1:
        return group[0].worst
    return noise_total(theorem, group)


def _counted(bounds: Iterable[tuple[WorstCase | None, int]]) -> tuple[tuple[WorstCase, int], ...]:
    often: dict[WorstCase, int] = {}
    for bound, times in bounds:
        if bound is not None:
            often[bound] = often.get(bound, 0) + times
    return tuple(often.items())


def disjoint_units(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Take the largest guarantee: one part only concerns any given person, and the others are independent of it."""
    del evidence
    return Total(
        rule="disjoint_units",
        partial=largest("disjoint_units", parts),
        worst=worst_largest("disjoint_units", parts),
        protection=what_is_hidden(parts, "the one part that she belongs to, whatever the other parts publish"),
    )


def largest(theorem: str, parts: tuple[Part, ...]) -> tuple[Applied, ...]:
    """Return the pointwise largest profile; none where no part rests on the attacker model."""
    if not any(part.partial for part in parts):
        return ()
    bound = Maximum(theorem=theorem, parts=tuple(dict.fromkeys(part.bounds for part in parts)))
    attack = best_attack(theorem, (applied for part in parts for applied in part.partial))
    return (Applied(bound=bound, attack=attack),)


def worst_largest(theorem: str, parts: tuple[Part, ...]) -> WorstMaximum | None:
    """Return the pointwise largest worst-case guarantee; None where a part has none."""
    bounds = [part.worst for part in parts]
    if None in bounds:
        return None
    return WorstMaximum(theorem=theorem, parts=tuple(dict.fromkeys(bound for bound in bounds if bound is not None)))


def one_day_protected(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Take the largest guarantee; with `BoundedParticipation`, that of all the releases in which lives can differ."""
    single = largest("one_day_protected", parts)
    most = next((one.times for one in evidence if isinstance(one, BoundedParticipation)), None)
    if most is None:
        return Total(
            rule="one_day_protected",
            partial=single,
            worst=worst_largest("one_day_protected", parts),
            protection=(
                f"{what_is_hidden(parts, 'any one of these releases, whatever her other records are')} What several "
                "releases tell together about her is not protected."
            ),
        )
    steps = min(2 * most * at_once(parts), sum(part.times for part in parts))
    partial = tuple(
        Applied(bound=GroupPrivacy(theorem="one_day_protected", one=applied.bound, steps=steps), attack=applied.attack)
        for applied in single
    )
    return Total(
        rule="group_privacy",
        partial=partial,
        worst=noise_total("worst_case_parts", parts, most),
        protection=trajectory(parts, most),
    )


def bounded_dependence(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up all ε and δ, and ε′ and δ′ for every release after the first."""
    declared = next(one for one in evidence if isinstance(one, BoundedDependence))
    partial: tuple[Applied, ...] = ()
    if any(part.partial for part in parts):
        bound = SplitSum(
            theorem="bounded_dependence",
            parts=tuple((part.bounds, part.times) for part in parts),
            extra_epsilon=declared.epsilon,
            extra_delta=declared.delta,
        )
        attack = best_attack("bounded_dependence", (applied for part in parts for applied in part.partial))
        partial = (Applied(bound=bound, attack=attack),)
    return Total(
        rule="bounded_dependence",
        partial=partial,
        worst=noise_total("worst_case_parts", parts),
        protection=trajectory(parts, None),
    )


_REASON = (
    "bounded participation alone says nothing about how people's records depend on one another: declare as well that "
    "they are independent given people's habits, for the data after any capping"
)


def bounded_participation(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up the worst-case guarantees of as many periods as two lives can differ in.

    Noiseless parts need `IndependentGivenHabits` or `OneDayProtected` as well; alone the rule gives several of them
    nothing, and a single one is what it is.
    """
    if len(parts) == 1 and parts[0].times == 1:
        return without_evidence(parts, evidence)
    most = next(one.times for one in evidence if isinstance(one, BoundedParticipation))
    worst = noise_total("worst_case_parts", parts, most)
    return Total(
        rule="bounded_participation",
        partial=(),
        worst=worst,
        protection=trajectory(parts, most),
        reason=_REASON if worst is None or any(part.partial for part in parts) else "",
    )


def without_evidence(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Add up worst-case guarantees; where a part has none there is no total."""
    del evidence
    if len(parts) == 1 and parts[0].times == 1:
        part = parts[0]
        return Total(rule="single", partial=part.partial, worst=part.worst, protection=trajectory(parts, None))
    return Total(
        rule="worst_case_parts",
        partial=(),
        worst=noise_total("worst_case_parts", parts),
        protection=trajectory(parts, None),
        reason="no evidence says how the releases depend on one another",
    )
