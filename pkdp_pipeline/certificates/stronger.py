"""Stronger attackers: a certificate computed again for one who knows more or is surer, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate, compose, releases_in
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify_again
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.theorems.bound import Knowledge
from pkdp_pipeline.theorems.theorems import THEOREMS

Change = Callable[[ReleaseCertificate], AttackerModel]

_DIGITS = 3
"""Significant digits of a probability that is not declared but derived; rounded to the attacker's advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The numbers certified at one δ: ε there (`math.inf` where none), δ at ε = 1, and whether noise alone gives it."""

    epsilon: float
    delta_at_one: float
    is_noise: bool
    is_nothing: bool

    @classmethod
    def of(cls, certificate: Certificate | None, delta: float) -> Reading:
        """Return what `certificate` gives at `delta`; None is no certificate at all."""
        if certificate is None:
            return cls(epsilon=math.inf, delta_at_one=1.0, is_noise=False, is_nothing=True)
        epsilon, floor = certificate.epsilon(delta), certificate.worst_case.epsilon(delta)
        return cls(
            epsilon=epsilon,
            delta_at_one=certificate.delta(1.0),
            is_noise=floor < math.inf and epsilon >= floor,
            is_nothing=False,
        )


def leaves(certificate: Certificate) -> tuple[ReleaseCertificate, ...]:
    """Return the different releases of a certificate whose guarantee rests on what the attacker does not know."""
    return tuple(dict.fromkeys(release for release in releases_in(certificate) if release.has_partial_knowledge))


def rests_on(leaf: ReleaseCertificate, field: Knowledge) -> bool:
    """Return whether some theorem of one release rests on this field of the attacker."""
    return any(field in THEOREMS[key].rests_on for key in leaf.partial_theorems)


_OF_THE_REST = ("thresholding_complement", "complement_in_box", "two_thresholds_in_box")
"""Theorems on k_complement; the first of them holds wherever the second does."""


def threshold_of(leaf: ReleaseCertificate) -> int | None:
    """Return the threshold whose theorem one release rests on; None where it rests on none."""
    keys, mechanism = leaf.partial_theorems, leaf.certified_mechanism
    if any("known" in THEOREMS[key].rests_on for key in keys if key not in _OF_THE_REST):
        return mechanism.k if mechanism.k is not None else mechanism.release_threshold
    return getattr(mechanism, "k_complement", None) if "thresholding_complement" in keys else None


def are_surely_there(releases: tuple[ReleaseCertificate, ...]) -> bool:
    """Return whether attackers of these releases who know more people shall know that those count.

    They shall where nobody is known before, or where known people are chosen: that is what "knows five people" says,
    and it is the larger number. Where some are declared whose records are merely known, more of the same are meant.
    """

    def averages(leaf: ReleaseCertificate) -> bool:
        attacker = leaf.attacker
        is_averaged = any(THEOREMS[key].averages for key in leaf.partial_theorems)
        return is_averaged and attacker.known > 0 and attacker.influence == "passive"

    return not any(averages(leaf) for leaf in releases)


def again(certificate: Certificate, change: Change, *, with_evidence: bool = True) -> Certificate | None:
    """Certify once more, every attacker being changed in the same way; None where nothing is certified then.

    `change`: release certificate → the attacker in the place of its own. `with_evidence`: whether what was
    declared about several releases still holds.
    """
    if isinstance(certificate, ReleaseCertificate):
        try:
            attacker, protects = change(certificate), certificate.protects
            return certify_again(certificate.certified_mechanism, attacker, protects=protects, cells=certificate.cells)
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


def knows_more(
    people: Callable[[ReleaseCertificate], int] | None, share: Fraction = Fraction(0), *, surely: bool = False
) -> Change:
    """Return the change to attackers who know `people` more, if any, and are uncertain about `share` fewer.

    With `surely` the known people count for certain, which is what an attacker who controls them brings about.
    """

    def change(leaf: ReleaseCertificate) -> AttackerModel:
        attacker = leaf.attacker
        if people is not None and rests_on(leaf, "known"):
            influence = "active" if surely else attacker.influence
            attacker = replace(attacker, known=attacker.known + people(leaf), influence=influence)
        if share > 0 and attacker.unknown is not None and rests_on(leaf, "unknown"):
            attacker = replace(attacker, unknown=math.floor(attacker.unknown * (1 - share)))
        return attacker

    return change


def surer(factor: Fraction | None, *names: str) -> Change:
    """Return the change to attackers whose odds are `factor` times the declared ones.

    `names`: of the probabilities in which they are; without names in all that are about one person's record.
    """

    def change(leaf: ReleaseCertificate) -> AttackerModel:
        attacker = leaf.attacker
        least = {"p_max": attacker.p_min or 0.0, "p_max_between": 0.5}
        fields: dict[str, float] = {}
        for name in names or (*least, "p_min"):
            value = getattr(attacker, name)
            if value is not None:
                by = 1 / factor if factor and name == "p_min" else factor
                fields[name] = max(least.get(name, 0.0), likelier(value, by))
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
    chance = odds / (1 + odds)
    is_up = factor > 1
    if chance < Fraction(1, 2):
        return float(_short(chance, up=is_up))
    return float(1 - _short(1 - chance, up=not is_up))


def _short(share: Fraction, *, up: bool) -> Fraction:
    """Return a share rounded to a few significant digits."""
    step = Fraction(1)
    while share / step < 10 ** (_DIGITS - 1):
        step /= 10
    count = share / step
    return (math.ceil(count) if up else math.floor(count)) * step


SLOW = 4
"""From here on an evaluation takes a large part of a second."""

_MANY_UNKNOWN = 100_000
_MANY_KNOWN = 100
_LARGE_K = 500


def effort(certificate: Certificate, *, more_known: bool = False) -> int:
    """Return how much one evaluation costs: 1 for a few milliseconds, 2 and 3 for some tens, 4 for more.

    Of people who are merely known it is an average over how many of them count. `more_known` asks about attackers who
    know more people than the declared one.
    """
    if isinstance(certificate, ComposedCertificate):
        mixed = 2 if len({part for part, _ in certificate.parts}) > 1 else 1
        return max((mixed, *(effort(part, more_known=more_known) for part, _ in certificate.parts)))
    if not isinstance(certificate, ReleaseCertificate):
        return SLOW
    keys, attacker, mechanism = certificate.theorems, certificate.attacker, certificate.mechanism
    if rests_on(certificate, "unknown"):
        if (attacker.unknown or 0) > _MANY_UNKNOWN or "noisy_thresholding_in_box" in keys:
            return SLOW
        return 2 if mechanism.noise is None else 3
    if "noisy_between" in keys:
        return SLOW
    is_averaged = not are_surely_there((certificate,))
    if "histogram_value" in keys and (is_averaged or more_known):
        return SLOW
    if not is_averaged:
        return 1
    if {"noisy_thresholding", "noisy_presence"} & set(keys):
        return 3
    largest = max(mechanism.k or 0, getattr(mechanism, "k_complement", None) or 0)
    return SLOW if largest > _LARGE_K else 3 if max(largest, attacker.known) > _MANY_KNOWN else 2
