"""Scenario: what a certificate is worth when the attacker is stronger than declared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement.effort import SLOW, slowness
from pkdp_pipeline.certificates.statement.stronger import (
    Change,
    Reading,
    again,
    are_surely_there,
    everything_known,
    knows_more,
    leaves,
    surer,
    threshold_of,
)
from pkdp_pipeline.certificates.statement.words import fewer_unknown, listed, more_known, more_sure, surely_there
from pkdp_pipeline.model.arguments import probability
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.wording import rounded_up

__all__ = ["SHARES", "Kind", "Scenario", "more_by", "what_if"]

Kind = Literal["declared", "knows_more", "surer", "no_evidence", "everything_known"]

SHARES = tuple(Fraction(tenths, 10) for tenths in range(1, 6))
"""How much more the attacker knows: shares of k, or of the people who are unknown. Every other one where slow."""

_TWICE = Fraction(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way in which the attacker may differ from the declared one, and what is certified then.

    Attributes
    ----------
    kind : {"declared", "knows_more", "surer", "no_evidence", "everything_known"}
    words : str
        The attacker in plain English, to follow "if the attacker …".
    epsilon : float
        Certified at `delta`; `math.inf` where there is none.
    delta : float
    delta_at_one : float
        Certified δ at ε = 1; 1.0 where there is nothing.
    verdict : str
        What is left, as a short phrase.
    """

    kind: Kind
    words: str
    epsilon: float
    delta: float
    delta_at_one: float
    verdict: str


def what_if(certificate: Certificate, *, delta: float = 1e-6) -> tuple[Scenario, ...]:
    """Return what is certified when the attacker is stronger than declared.

    Parameters
    ----------
    certificate : Certificate
    delta : float, default 1e-6
        The δ at which ε is asked for.

    Returns
    -------
    tuple of Scenario
        The declared attacker; one who knows more people who surely count, by 10 % to 50 % of the threshold k, or is
        uncertain about 10 % to 50 % fewer people, or both, whichever the theorems rest on (fewer steps where each
        takes long); one whose odds are doubled; one who profits from a false declaration; one who knows everything.
        Where the records of some people are declared to be known to a passive attacker, more records are known
        instead, and then half of k people who surely count. Where nothing rests on what the attacker does not
        know, the first and the last.

    Raises
    ------
    ArgumentError
        If `delta` is not in [0, 1].

    Notes
    -----
    Every number is that of a certificate for the changed attacker, made by `certify` and, for several releases,
    `compose`; and at least that of weaker attackers in the table, so that more knowledge never looks like less.
    *Rounding*: up.
    """
    target = probability("delta", delta)
    if isinstance(certificate, ComposedCertificate) and certificate.rule == "single":
        return what_if(certificate.parts[0][0], delta=target)
    declared = Reading.of(certificate, target)
    if not certificate.has_partial_knowledge:
        return _without_assumptions(certificate, declared, target)
    rows = [_scenario("declared", "is as declared", declared, target)]
    weaker = declared
    for words, change in _knowing_more(certificate):
        weaker = _raised(Reading.of(again(certificate, change), target, weaker.epsilon), weaker)
        rows.append(_scenario("knows_more", words, weaker, target))
    twice = surer(_TWICE)
    words = more_sure(leaves(certificate), twice)
    most = weaker
    if words:
        reading = _raised(Reading.of(again(certificate, twice), target, declared.epsilon), declared)
        rows.append(_scenario("surer", words, reading, target))
        most = _raised(weaker, reading)
    words, broken = _without_evidence(certificate)
    reading = _raised(Reading.of(broken, target), declared)
    rows.append(_scenario("no_evidence", words, reading, target))
    reading = _raised(Reading.of(again(certificate, everything_known), target), most)
    rows.append(_scenario("everything_known", "knows everything about everybody else", reading, target))
    return tuple(rows)


def more_by(share: Fraction, *, surely: bool = False) -> Change:
    """Return the change to attackers who know more by a share of k, and are uncertain about that share fewer."""

    def people(leaf: ReleaseCertificate) -> int:
        return math.ceil(share * (threshold_of(leaf) or 0))

    return knows_more(people, share, surely=surely)


def _knowing_more(certificate: Certificate) -> Iterator[tuple[str, Change]]:
    found, each = leaves(certificate), isinstance(certificate, ComposedCertificate)
    surely = are_surely_there(found)
    for share in _affordable_shares(certificate, found):
        clauses = (more_known(found, share, each=each), fewer_unknown(found, share))
        words = listed(clause for clause in clauses if clause)
        if words:
            yield words, more_by(share, surely=surely)
    words = surely_there(found, SHARES[-1], each=each)
    if words:
        unknown = fewer_unknown(found, SHARES[-1])
        yield listed((words, unknown) if unknown else (words,)), more_by(SHARES[-1], surely=True)


def _affordable_shares(certificate: Certificate, found: tuple[ReleaseCertificate, ...]) -> tuple[Fraction, ...]:
    surely = are_surely_there(found)
    if not any(slowness(leaf, surely=surely) >= SLOW for leaf in found):
        return SHARES
    return SHARES[-1:] if isinstance(certificate, ComposedCertificate) else SHARES[::2]


def _without_evidence(certificate: Certificate) -> tuple[str, Certificate | None]:
    """Return the declaration that may be false, and what is left without it."""
    if isinstance(certificate, ComposedCertificate):
        false = [one.if_false for one in certificate.evidence if one.if_false]
        if false:
            return f"can use that {' or that '.join(false)}", again(certificate, _as_declared, with_evidence=False)
    # Noise hides one unit: of several that share a fate it hides the fate no longer.
    return "can use that people's records depend on one another (families, copied rows, common habits)", None


def _as_declared(leaf: ReleaseCertificate) -> AttackerModel:
    return leaf.attacker


def _without_assumptions(certificate: Certificate, declared: Reading, delta: float) -> tuple[Scenario, ...]:
    """Return the rows of a guarantee that holds against anyone: whatever the attacker knows, it is the same."""
    whom = certificate.anyone.replace(", whatever they know", "")
    verdict = f"holds against {whom.replace(' at all', '')}: ε = {rounded_up(declared.epsilon)}"
    if declared.epsilon == math.inf:
        verdict = _unreached(declared, delta)
    words = (f"is as declared: {whom}", "knows everything about everybody else")
    kinds: tuple[Kind, Kind] = ("declared", "everything_known")
    return tuple(
        Scenario(
            kind=kind,
            words=text,
            epsilon=declared.epsilon,
            delta=delta,
            delta_at_one=declared.delta_at_one,
            verdict=verdict,
        )
        for kind, text in zip(kinds, words, strict=True)
    )


def _raised(reading: Reading, least: Reading) -> Reading:
    """Return `reading`, not below that of a weaker attacker: raising a certified number keeps it true."""
    return Reading(
        epsilon=max(reading.epsilon, least.epsilon),
        delta_at_one=max(reading.delta_at_one, least.delta_at_one),
        is_noise=reading.is_noise,
        is_nothing=reading.is_nothing,
    )


def _scenario(kind: Kind, words: str, reading: Reading, delta: float) -> Scenario:
    if reading.is_nothing:
        verdict = "nothing is certified"
    elif reading.epsilon == math.inf:
        verdict = _unreached(reading, delta)
    elif reading.is_noise:
        verdict = f"only the noise protects: ε = {rounded_up(reading.epsilon)}"
    else:
        verdict = f"holds: ε = {rounded_up(reading.epsilon)}"
    return Scenario(
        kind=kind,
        words=words,
        epsilon=reading.epsilon,
        delta=delta,
        delta_at_one=reading.delta_at_one,
        verdict=verdict,
    )


def _unreached(reading: Reading, delta: float) -> str:
    reach, least = f"no ε reaches δ = {rounded_up(delta)}", rounded_up(reading.delta_at_one)
    return reach if least == "1" else f"{reach}; δ = {least} at ε = 1"
