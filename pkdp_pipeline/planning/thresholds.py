"""The inverse questions: what to choose so that a target (ε, δ) holds."""

from __future__ import annotations

from collections.abc import Iterable

from pkdp_pipeline.arguments import probability, whole_number
from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.composition.compose import compose
from pkdp_pipeline.composition.evidence import Evidence, read_evidence
from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.guarantee import epsilon_points
from pkdp_pipeline.mechanisms import Histogram
from pkdp_pipeline.profiles.inversion import least_whole
from pkdp_pipeline.release_certificate import certify

__all__ = ["smallest_k"]

_MOST = 10_000_000


def smallest_k(
    attacker: AttackerModel,
    *,
    epsilon: float,
    delta: float,
    protects: str = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> int:
    """Return the smallest threshold k at which one release, or `days` of them together, are certified.

    Parameters
    ----------
    attacker : AttackerModel
    epsilon : float
        At least 0 and finite.
    delta : float
        Above 0, at most 1.
    protects : {"presence", "value"}, default "presence"
        For presence the answer holds for a `Count` and for a `Histogram` alike.
    days : int, default 1
        How many equal releases are to be certified together.
    evidence : Evidence or list of Evidence, optional
        What is declared so that they add up, see `compose`; needed when there is more than one.

    Returns
    -------
    int
        ``certify(Histogram(k=k), attacker, protects=protects).delta(epsilon) <= delta`` holds for it, and for
        `compose` of `days` such certificates; it fails for every smaller k.

    Raises
    ------
    NoEvidenceError
        If several releases are asked about without evidence by which noiseless ones add up.
    NotCertifiableError
        If no threshold up to ten million reaches the target, or none can be certified for this attacker.
    ArgumentError
        If a number is out of range.
    """
    target = probability("delta", delta)
    if target == 0.0:
        raise ArgumentError("delta must be above 0: a threshold always leaves some probability, ask for delta = 1e-9.")
    if not epsilon_points(epsilon)[1]:
        raise ArgumentError("epsilon must be one number, at least 0 and finite.")
    controlled = attacker.known if isinstance(attacker, AttackerModel) else 0
    try:
        # Refused for every k or for none: a large k says which.
        certify(Histogram(k=_MOST + controlled), attacker, protects=protects)
    except NotCertifiableError:
        # The choices that a message offers are those beside the k it is about.
        certify(Histogram(k=controlled + 2), attacker, protects=protects)
        raise
    times, declared = whole_number("days", days, least=1), read_evidence(evidence)

    def holds(k: int) -> bool:
        try:
            one = certify(Histogram(k=k), attacker, protects=protects)
        except NotCertifiableError:
            return False
        return compose([(one, times)], declared).delta(epsilon) <= target

    k = least_whole(holds, 1, _MOST)
    if k is None:
        together = "" if times == 1 else f" for {times} releases together"
        raise NotCertifiableError(
            f"no threshold k up to {_MOST} reaches delta = {target!r} at epsilon = {epsilon!r}{together} against this "
            "attacker: allow a larger epsilon or delta, argue a smaller p_max, or add noise."
        )
    return k
