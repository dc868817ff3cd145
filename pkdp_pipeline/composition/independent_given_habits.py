"""Rule 2: independent given habits; the losses of the releases are convolved, the whole trajectory is protected."""

from __future__ import annotations

from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.evidence import BoundedParticipation, Evidence
from pkdp_pipeline.composition.loss_laws import directions
from pkdp_pipeline.composition.maximum import best_attack
from pkdp_pipeline.composition.part import Part, Total, hides_presence
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal
from pkdp_pipeline.profiles import Applied, Bound
from pkdp_pipeline.profiles.thresholding import Thresholding

__all__ = ["convolved", "independent_given_habits", "noise_total", "trajectory"]


def independent_given_habits(parts: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> Total:
    """Convolve the losses of all parts; with `BoundedParticipation`, of those in which two lives can differ."""
    most = next((one.times for one in evidence if isinstance(one, BoundedParticipation)), None)
    return Total(
        rule="independent_given_habits",
        partial=convolved("independent_given_habits", parts, most),
        worst=noise_total("worst_case_parts", parts, most),
        protection=trajectory(parts, most),
    )


def trajectory(parts: tuple[Part, ...], participation: int | None) -> str:
    """Return what is protected of everything a person did, as one sentence."""
    these = "these releases" if participation is None else f"these releases (at most {participation})"
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
    laws = tuple(
        (directions(part.bounds, part.certificate.protects, attacks=_repeatable(part)), part.times) for part in parts
    )
    bound = Convolved(theorem=theorem, parts=laws, participation=participation)
    single = tuple(applied for part in parts for applied in part.partial)
    return (Applied(bound=bound, attack=best_attack(theorem, (*single, Applied(bound=bound, attack=bound)))),)


def _repeatable(part: Part) -> list[Bound]:
    """Return the attacks that a declared attacker can make on every day, with any number of unknown people."""
    attacks = [applied.attack for applied in part.partial if applied.attack is applied.bound]
    return [attack for attack in attacks if isinstance(attack, Thresholding) and attack.least_unknown == 0]


def noise_total(theorem: str, parts: tuple[Part, ...], participation: int | None = None) -> NoiseTotal | None:
    """Return the total of the worst-case guarantees; None where a part has none."""
    often: dict[object, int] = {}
    bounds = {}
    for part in parts:
        if part.worst is None:
            return None
        bounds[part.worst] = part.worst
        often[part.worst] = often.get(part.worst, 0) + part.times
    if not bounds:
        return None
    listed = tuple((bound, often[bound]) for bound in bounds.values())
    return NoiseTotal(theorem=theorem, parts=listed, participation=participation)
