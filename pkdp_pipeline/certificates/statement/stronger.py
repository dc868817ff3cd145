"""Stronger attackers: a certificate computed again for an attacker who knows more, or is surer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, compose
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.certificates.statement.searching import certified_epsilon
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel

__all__ = [
    "THRESHOLDS",
    "UNCERTAIN",
    "Change",
    "Reading",
    "again",
    "are_surely_there",
    "everything_known",
    "keys_of",
    "knows_fewer_unknown",
    "knows_more",
    "leaves",
    "likelier",
    "surer",
    "threshold_of",
]

Change = Callable[[ReleaseCertificate], AttackerModel]

THRESHOLDS = (
    "thresholding",
    "thresholding_complement",
    "histogram_presence",
    "histogram_value",
    "histogram_between",
)
"""Theorems that rest on how many people are known."""

_AVERAGED = ("thresholding", "thresholding_complement", "histogram_presence", "histogram_value")
"""Of them those that average over how many of the merely known people count."""

UNCERTAIN = ("counting", "counting_beside_leakage", "noisy_counting", "options")
"""Theorems that rest on how many people are unknown."""

_DIGITS = 3
"""Significant digits of a probability that is not declared but derived; rounded to the attacker's advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is certified at one δ: ε there (`math.inf` where none), δ at ε = 1, and whether noise alone gives it."""

    epsilon: float
    delta_at_one: float
    is_noise: bool
    is_nothing: bool

    @classmethod
    def of(cls, certificate: Certificate | None, delta: float, least: float = 0.0) -> Reading:
        """Return what `certificate` gives at `delta`; None is no certificate at all. A weaker attacker has `least`."""
        if certificate is None:
            return cls(epsilon=math.inf, delta_at_one=1.0, is_noise=False, is_nothing=True)
        epsilon, floor = certified_epsilon(certificate, delta, least), certificate.worst_case.epsilon(delta)
        return cls(
            epsilon=epsilon,
            delta_at_one=certificate.delta(1.0),
            is_noise=floor < math.inf and epsilon >= floor,
            is_nothing=False,
        )


def leaves(certificate: Certificate) -> tuple[ReleaseCertificate, ...]:
    """Return the different releases of a certificate whose guarantee rests on what the attacker does not know."""
    if isinstance(certificate, ReleaseCertificate):
        return (certificate,) if certificate.has_partial_knowledge else ()
    found: list[ReleaseCertificate] = []
    if isinstance(certificate, ComposedCertificate):
        for part, _ in certificate.parts:
            found += leaves(part)
    return tuple(dict.fromkeys(found))


def keys_of(leaf: ReleaseCertificate) -> tuple[str, ...]:
    """Return the keys of the theorems of one release that rest on what the attacker does not know."""
    return tuple(dict.fromkeys(applied.bound.theorem for applied in leaf.partial_bounds))


def threshold_of(leaf: ReleaseCertificate) -> int | None:
    """Return the threshold whose theorem one release rests on; None where it rests on none."""
    keys = keys_of(leaf)
    if any(key in keys for key in THRESHOLDS if key != "thresholding_complement"):
        return leaf.mechanism.k
    return getattr(leaf.mechanism, "k_complement", None) if "thresholding_complement" in keys else None


def are_surely_there(found: tuple[ReleaseCertificate, ...]) -> bool:
    """Return whether attackers of these releases who know more people shall know that those count.

    They shall where nobody is known before, or where known people are chosen: that is what "knows five people" says,
    and it is the larger number. Where some are declared whose records are merely known, more of the same are meant.
    """

    def averages(leaf: ReleaseCertificate) -> bool:
        attacker = leaf.attacker
        is_averaged = any(key in _AVERAGED for key in keys_of(leaf))
        return is_averaged and attacker.known > 0 and attacker.influence == "passive"

    return not any(averages(leaf) for leaf in found)


def again(certificate: Certificate, change: Change, *, with_evidence: bool = True) -> Certificate | None:
    """Certify once more, every attacker being changed in the same way; None where nothing is certified then.

    Parameters
    ----------
    certificate : Certificate
    change : callable
        Release certificate → the attacker in the place of its own.
    with_evidence : bool, default True
        Whether what was declared about several releases still holds.
    """
    if isinstance(certificate, ReleaseCertificate):
        try:
            return certify(certificate.mechanism, change(certificate), protects=certificate.protects)
        except NotCertifiableError:
            return None
    assert isinstance(certificate, ComposedCertificate)
    parts: list[tuple[Certificate, int]] = []
    for part, times in certificate.parts:
        changed = again(part, change, with_evidence=with_evidence)
        if changed is None:
            return None
        parts.append((changed, times))
    try:
        return compose(parts, certificate.evidence if with_evidence else None)
    except NoEvidenceError:
        return None


def everything_known(leaf: ReleaseCertificate) -> AttackerModel:
    """Return an attacker about whom nothing is assumed; what leaks beside the release leaks to this one as well."""
    return leaf.attacker.against_anyone()


def knows_more(
    people: Callable[[ReleaseCertificate], int], share: Fraction = Fraction(0), *, surely: bool = False
) -> Change:
    """Return the change to attackers who know `people` more, and are uncertain about `share` fewer.

    With `surely` the known people count for certain, which is what an attacker who controls them brings about.
    """

    def change(leaf: ReleaseCertificate) -> AttackerModel:
        attacker, keys = leaf.attacker, keys_of(leaf)
        if any(key in keys for key in THRESHOLDS):
            influence = "active" if surely else attacker.influence
            attacker = replace(attacker, known=attacker.known + people(leaf), influence=influence)
        if share > 0 and attacker.unknown is not None and any(key in keys for key in UNCERTAIN):
            attacker = replace(attacker, unknown=math.floor(attacker.unknown * (1 - share)))
        return attacker

    return change


def knows_fewer_unknown(share: Fraction) -> Change:
    """Return the change to attackers who are uncertain about `share` fewer people, and know nobody else."""

    def change(leaf: ReleaseCertificate) -> AttackerModel:
        attacker, keys = leaf.attacker, keys_of(leaf)
        if attacker.unknown is None or not any(key in keys for key in UNCERTAIN):
            return attacker
        return replace(attacker, unknown=math.floor(attacker.unknown * (1 - share)))

    return change


def surer(factor: Fraction) -> Change:
    """Return the change to attackers whose odds are `factor` times the declared ones, in every probability."""

    def change(leaf: ReleaseCertificate) -> AttackerModel:
        attacker = leaf.attacker
        fields: dict[str, float] = {}
        for name in ("p_max", "p_max_between"):
            value = getattr(attacker, name)
            if value is not None:
                fields[name] = likelier(value, factor)
        if attacker.p_min is not None:
            fields["p_min"] = likelier(attacker.p_min, 1 / factor)
        return replace(attacker, **fields)  # type: ignore[arg-type]

    return change


def likelier(p: float, factor: Fraction | None) -> float:
    """Return the probability whose odds are `factor` times those of `p`; None stands for infinitely many times.

    It is short, as a sentence names it, and rounded away from `p`: an attacker who is told of is never stronger than
    the one that is certified.
    """
    exact = Fraction(Decimal(repr(p)))
    if exact in (0, 1) or factor == 1:
        return p
    if factor is None:
        return 1.0
    odds = exact / (1 - exact) * factor
    found = odds / (1 + odds)
    is_up = factor > 1
    if found < Fraction(1, 2):
        return float(_short(found, up=is_up))
    return float(1 - _short(1 - found, up=not is_up))


def _short(share: Fraction, *, up: bool) -> Fraction:
    """Return a share rounded to a few significant digits."""
    step = Fraction(1)
    while share / step < 10 ** (_DIGITS - 1):
        step /= 10
    count = share / step
    return (math.ceil(count) if up else math.floor(count)) * step
