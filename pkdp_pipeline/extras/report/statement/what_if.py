"""Scenario: what a certificate is worth when the attacker is stronger than declared, in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.sentences import anyone, known_exactly
from pkdp_pipeline.certificates.stronger import (
    SLOW,
    Change,
    Reading,
    again,
    are_surely_there,
    effort,
    knows_more,
    leaves,
    rests_on,
    surer,
    threshold_of,
)
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, cells_per_unit
from pkdp_pipeline.model.wording import Worded, joined_texts, percent, probability, rounded_up, spoken
from pkdp_pipeline.theorems.theorems import THEOREMS

_KNOWS_CELLS = "knows the cells of"

OF_GROUPS = frozenset({"thresholding", "noisy_thresholding", "thresholding_in_box", "noised_below"})
"""Theorems on one number of people in a group."""


def listed(clauses: Iterable[str]) -> Worded:
    """Return clauses joined by ``and``, each once."""
    kept = tuple(dict.fromkeys(clauses))
    return Worded(lambda say: ", and ".join(spoken(clause, say) for clause in kept))


def place(releases: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return where people are whose number matters to a threshold; `each` of several releases has such a place."""
    places = {_place(leaf.partial_theorems, "each" if each else "the") for leaf in releases}
    return places.pop() if len(places) == 1 else "counted in each release"


def _place(keys: tuple[str, ...], the: str) -> str:
    if OF_GROUPS & set(keys):
        other = " or outside it" if "thresholding_complement" in keys else ""
        return f"in {the} group{other}"
    return f"outside {the} group" if "thresholding_complement" in keys else f"in {the} table"


def people_known(releases: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return what an axis that counts known people is called."""
    if not are_surely_there(releases):
        return "people whose records the attacker knows"
    if _knows(releases) == _KNOWS_CELLS:
        return f"people {place(releases, each=each)} whose cells the attacker knows"
    return f"people {place(releases, each=each)} whom the attacker {_knows(releases)}"


def _knows(releases: tuple[ReleaseCertificate, ...]) -> str:
    """Return what the attacker does about known people: knowing a record is less than knowing that it counts."""
    if not are_surely_there(releases):
        return "knows the records of"
    if all(leaf.attacker.influence == "active" and leaf.attacker.known > 0 for leaf in releases):
        return "controls"
    # Theorem C lets the attacker know who is present: what counts is whose cell is known.
    between = all(rests_on(leaf, "p_max_between") and not rests_on(leaf, "p_max") for leaf in releases)
    return _KNOWS_CELLS if between else "knows"


def more_known(releases: tuple[ReleaseCertificate, ...], share: Fraction, *, each: bool) -> str:
    """Return the clause for knowing more people, by a share of k; empty where no theorem counts the known."""
    counting = tuple(leaf for leaf in releases if rests_on(leaf, "known"))
    if not counting:
        return ""
    verb, where = _knows(counting), place(counting, each=each)
    more = "more " if any(leaf.attacker.known > 0 for leaf in counting) else ""
    numbers = {threshold_of(leaf) or 0 for leaf in counting}
    if len(numbers) > 1:
        several = f"{verb} {more}people {_are(verb)}{where} ({_share(share)} of"
        return Worded(lambda say: f"{several} {say.of_threshold(None)})")
    k = numbers.pop()
    number = math.ceil(share * k)
    who = f"1 {more}person {_are(verb, 'is')}" if number == 1 else f"{number} {more}people {_are(verb)}"
    start = f"{verb} {who}{where} ({_share(share)} of"
    if all(leaf.mechanism.k is None and leaf.mechanism.noise for leaf in counting):
        return f"{start} the release threshold = {k})"
    return Worded(lambda say: f"{start} {say.of_threshold(k)})")


def _are(verb: str, are: str = "are") -> str:
    return {"controls": "", _KNOWS_CELLS: "", "knows": f"who {are} "}.get(verb, "who may be ")


def surely_there(releases: tuple[ReleaseCertificate, ...], share: Fraction, *, each: bool) -> str:
    """Return the clause for known people who surely count; empty where the other rows say as much."""
    if are_surely_there(releases):
        return ""
    counting = tuple(leaf for leaf in releases if rests_on(leaf, "known"))
    where = place(counting, each=each)
    numbers = {(threshold_of(leaf) or 0, leaf.attacker.known) for leaf in counting}
    if len(numbers) > 1:
        start = f"knows people who are surely {where} ({_share(share)} of"
        return Worded(lambda say: f"{start} {say.of_threshold(None)} more), or controls them")
    k, known = numbers.pop()
    return f"knows {known + math.ceil(share * k)} people who are surely {where}, or controls them"


def fewer_unknown(releases: tuple[ReleaseCertificate, ...], share: Fraction) -> str:
    """Return the clause for being uncertain about a share fewer; empty where no theorem counts the unknown."""
    counting = tuple(leaf for leaf in releases if rests_on(leaf, "unknown"))
    if not counting:
        return ""
    numbers = {leaf.attacker.unknown or 0 for leaf in counting}
    if len(numbers) > 1:
        return f"is uncertain about {_share(share)} fewer people in each release"
    declared = numbers.pop()
    left = math.floor(declared * (1 - share))
    return f"is uncertain about {_share(share)} fewer people ({left} instead of {declared})"


def more_sure(releases: tuple[ReleaseCertificate, ...], change: Change) -> str:
    """Return the clause for an attacker of twice the odds; empty where that changes nothing."""
    clauses: dict[str, None] = {}
    for leaf in releases:
        for clause in _surer(leaf, change(leaf)):
            clauses[clause] = None
    if not clauses:
        return ""
    if len(releases) > 1 and len(clauses) > 1:
        return "is surer in each release, at twice the odds, rounded up"
    return f"is surer, at twice the odds, rounded up, {listed(clauses)}"


def _surer(leaf: ReleaseCertificate, other: AttackerModel) -> list[str]:
    keys, attacker = leaf.partial_theorems, leaf.attacker
    clauses = []
    at_most = _changed(attacker.p_max, other.p_max)
    at_least = _changed(attacker.p_min, other.p_min, up=True)
    if at_most and at_least and rests_on(leaf, "unknown") and isinstance(leaf.mechanism, Count):
        return [
            f"whether each other person is counted: between {percent(other.p_min or 0.0, up=True)} and "
            f"{percent(other.p_max or 0.0)} instead of between {percent(attacker.p_min or 0.0, up=True)} and "
            f"{percent(attacker.p_max or 0.0)}"
        ]
    if at_most and OF_GROUPS & {*keys} - {"thresholding_in_box"}:
        clauses.append(f"that another person is in the group: {at_most}")
    if at_most and any(THEOREMS[key].told_absent for key in keys):
        clauses.append(f"of another person's cell, told that it is that or absent: {at_most}")
    if at_most and cells_per_unit(leaf.mechanism) > 1:
        clauses.append(f"of a further cell of another person, told all her other cells: {at_most}")
    if at_least and "thresholding_complement" in keys:
        clauses.append(f"that another person is outside the group: {at_least} that the person is in it")
    between = _changed(attacker.p_max_between, other.p_max_between)
    if between and {"histogram_between", "noised_below_between"} & set(keys):
        clauses.append(f"which of two cells another person is in: {between}")
    if at_least and "options" in keys:
        clauses.append(f"which options other people did not choose: at least {at_least} for every option")
    if at_least and "cell_counting" in keys:
        clauses.append(f"in which cells other people are not: at least {at_least} for every cell")
    return clauses


def _changed(old: float | None, new: float | None, *, up: bool = False) -> str:
    if old is None or new is None or old == new:
        return ""
    return f"{percent(new, up=up)} instead of {percent(old, up=up)}"


def _share(share: Fraction) -> str:
    return f"{float(100 * share):g} %"


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
        The guarantee left, as a short phrase.
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
    words: str
    for words, change in _knowing_more(certificate):
        weaker = _raised(Reading.of(again(certificate, change), target), weaker)
        rows.append(_scenario("knows_more", words, weaker, target))
    twice = surer(_TWICE)
    words = more_sure(leaves(certificate), twice)
    most = weaker
    if words:
        reading = _raised(Reading.of(again(certificate, twice), target), declared)
        rows.append(_scenario("surer", words, reading, target))
        most = _raised(weaker, reading)
    words, broken = _without_evidence(certificate)
    reading = _raised(Reading.of(broken, target), declared)
    rows.append(_scenario("no_evidence", words, reading, target))
    reading = _raised(Reading.of(again(certificate, lambda leaf: leaf.attacker.against_anyone()), target), most)
    rows.append(_scenario("everything_known", "knows everything about everybody else", reading, target))
    return tuple(rows)


def more_by(share: Fraction, *, surely: bool = False) -> Change:
    """Return the change to attackers who know more by a share of k, and are uncertain about that share fewer."""

    def people(leaf: ReleaseCertificate) -> int:
        return math.ceil(share * (threshold_of(leaf) or 0))

    return knows_more(people, share, surely=surely)


def _knowing_more(certificate: Certificate) -> Iterator[tuple[str, Change]]:
    releases, each = leaves(certificate), isinstance(certificate, ComposedCertificate)
    surely = are_surely_there(releases)
    is_slow = effort(certificate, more_known=True) >= SLOW
    shares = SHARES if not is_slow else SHARES[-1:] if each else SHARES[::2]
    # Shares of a small k that are as many people are one row, that of the largest.
    for share in {tuple(map(more_by(share, surely=surely), releases)): share for share in shares}.values():
        clauses = (more_known(releases, share, each=each), fewer_unknown(releases, share))
        if words := listed(clause for clause in clauses if clause):
            yield words, more_by(share, surely=surely)
    if clause := surely_there(releases, SHARES[-1], each=each):
        unknown = fewer_unknown(releases, SHARES[-1])
        yield listed((clause, unknown) if unknown else (clause,)), more_by(SHARES[-1], surely=True)


def words_of(certificate: Certificate) -> Iterator[str]:
    """Yield the attackers of `what_if` who know more, in words."""
    if isinstance(certificate, ComposedCertificate) and certificate.rule == "single":
        yield from words_of(certificate.parts[0][0])
    elif certificate.has_partial_knowledge:
        yield from (words for words, _ in _knowing_more(certificate))


def _without_evidence(certificate: Certificate) -> tuple[str, Certificate | None]:
    """Return the declaration that may be false, and what is left without it."""
    if isinstance(certificate, ComposedCertificate):
        false = [item.if_false for item in certificate.evidence if item.if_false]
        if false:
            left = again(certificate, lambda leaf: leaf.attacker, with_evidence=False)
            return f"can use that {' or that '.join(false)}", left
    if all(leaf.attacker.sampled is not None for leaf in leaves(certificate)):
        return "can use that draws depend on one another (a fixed size, quotas, clusters)", None
    # Noise hides one unit: of several that share a fate it hides the fate no longer.
    words = "can use that people's records depend on one another (families, copied rows, common habits)"
    several = any(cells_per_unit(leaf.mechanism) > 1 for leaf in leaves(certificate))
    return f"{words}, or that a person's cells do" if several else words, None


def _without_assumptions(certificate: Certificate, declared: Reading, delta: float) -> tuple[Scenario, ...]:
    """Return the rows of a guarantee that holds against anyone: whatever the attacker knows, it is the same."""
    given, if_declared = known_exactly(certificate.leakage), certificate.if_declared
    whom = anyone(given, if_declared=if_declared, short=True)
    holds = f"holds against {anyone(given, if_declared=if_declared, whom='anyone', short=True)}"
    return (
        _scenario("declared", f"is as declared: {whom}", declared, delta, holds),
        _scenario("everything_known", "knows everything about everybody else", declared, delta, holds),
    )


def _raised(reading: Reading, least: Reading) -> Reading:
    """Return `reading`, not below that of a weaker attacker: raising a certified number keeps it true."""
    most = {name: max(getattr(reading, name), getattr(least, name)) for name in ("epsilon", "delta_at_one")}
    return replace(reading, **most)


def only_noise(epsilon: float) -> Worded:
    """Return the verdict where nothing but noise protects."""
    return Worded(lambda say: f"only the noise protects: ε = {say.number(epsilon)}")


def _scenario(kind: Kind, words: str, reading: Reading, delta: float, holds: str = "") -> Scenario:
    """Return a row; where something `holds` it says so, without it whether only the noise is left."""
    epsilon, at_one = reading.epsilon, reading.delta_at_one
    verdict: str
    if reading.is_nothing:
        verdict = "nothing is certified"
    elif epsilon == math.inf:
        verdict = f"no ε reaches δ = {rounded_up(delta)}"
        if rounded_up(at_one) != "1":
            verdict = joined_texts((f"{verdict};", Worded(lambda say: f"δ = {say.number(at_one)} at ε = 1")))
    elif reading.is_noise and not holds:
        verdict = only_noise(epsilon)
    else:
        verdict = Worded(lambda say: f"{holds or 'holds'}: ε = {say.number(epsilon)}")
    return Scenario(
        kind=kind,
        words=words,
        epsilon=reading.epsilon,
        delta=delta,
        delta_at_one=reading.delta_at_one,
        verdict=verdict,
    )
