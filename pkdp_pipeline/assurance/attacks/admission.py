"""Whether a crowd keeps to what a certificate declares about the attacker, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

from pkdp_pipeline.assurance.attacks.crowd import Crowd, Group
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.theorems import Protects

__all__ = ["is_admitted", "keeps"]


def is_admitted(crowd: Crowd, certificate: ReleaseCertificate) -> bool:
    """Return whether `crowd` is one of the attackers that `certificate` is about.

    Parameters
    ----------
    crowd : Crowd
    certificate : ReleaseCertificate
        Where it rests on nothing that is declared (noise alone), every crowd of the right form is admitted.

    Notes
    -----
    Unknown people have to keep to `p_min`, `p_max` and `p_max_between`, known people as well unless they are
    controlled. At least `unknown` people are unknown; of them at most `unknown_max` are uncertain (who is surely
    absent is no unknown person). Where the secret is a record given those it depends on (`secret`), everybody but the
    unknown may be known. Who sees the total has to be declared to (`leakage`). *Rounding*: none; chances are compared
    as the exact values of their floats.
    """
    attacker = certificate.attacker
    counted = isinstance(certificate.mechanism, Count)
    if not _right_form(crowd, counted, certificate.protects):
        return False
    if crowd.sees_total and not attacker.total_is_known:
        return False
    if not certificate.has_partial_knowledge:
        return True
    active = attacker.influence == "active"
    controlled = sum(crowd.controlled)
    known = sum(group.people for group in crowd.known) + controlled
    if attacker.secret == "record" and (known > attacker.known or (controlled > 0 and not active)):
        return False
    uncertain = sum(group.people for group in crowd.unknown if not group.is_certain)
    if attacker.unknown_max is not None and uncertain > attacker.unknown_max:
        return False
    if attacker.unknown is not None and sum(group.people for group in crowd.unknown) < attacker.unknown:
        return False
    bound = crowd.unknown if active or attacker.secret == "conditional" else (*crowd.unknown, *crowd.known)
    return all(keeps(group, attacker, counted, certificate.protects) for group in bound if group.people)


def _right_form(crowd: Crowd, counted: bool, protects: Protects) -> bool:
    absent = (crowd.first, crowd.second).count(None)
    if counted and protects == "presence":
        return crowd.cells == 1 and absent == 1
    return absent == (1 if protects == "presence" else 0)


def keeps(group: Group, attacker: AttackerModel, counted: bool, protects: Protects) -> bool:
    """Return whether the chances of `group` keep to what `attacker` declares about a person, exactly."""
    chances = [Fraction(chance) for chance in group.chances]
    least, most = (None if p is None else Fraction(p) for p in (attacker.p_min, attacker.p_max))
    if least is not None and min(chances) < least:
        return False
    if counted:
        return most is None or max(chances) <= most
    absence = group.absence
    # P[v | v or absent] ≤ p_max, for every cell; a person who can be neither does not matter.
    if most is not None and any(chance * (1 - most) > most * absence for chance in chances):
        return False
    if attacker.p_max_between is None or protects == "presence":
        return True
    # P[v | v or w] ≤ p_max_between, for every two cells; cells that the crowd leaves out have the chance 0.
    between = Fraction(attacker.p_max_between)
    others = [*chances, Fraction(0)] if len(chances) == 1 else chances
    return all(
        one * (1 - between) <= between * other
        for at, one in enumerate(others)
        for to, other in enumerate(others)
        if at != to
    )
