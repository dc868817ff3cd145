"""Rule 2: independent given habits; the losses of the releases are convolved, the whole trajectory is protected."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.loss_laws import ProfileLosses, directions
from pkdp_pipeline.composition.maximum import best_attack
from pkdp_pipeline.composition.part import Part, Total, has_cells, hides_presence
from pkdp_pipeline.composition.periods import at_once, series_of
from pkdp_pipeline.composition.split_sum import SplitSum
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal, SmallerTotal
from pkdp_pipeline.model.evidence import BoundedParticipation, Evidence
from pkdp_pipeline.theorems import Applied, Bound, WorstCase
from pkdp_pipeline.theorems.thresholding import Thresholding

__all__ = ["convolved", "independent_given_habits", "noise_total", "plain_sum", "trajectory"]


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
