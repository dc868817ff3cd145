"""Words: attackers who are stronger than declared, in plain English."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.certificates.statement.stronger import (
    THRESHOLDS,
    UNCERTAIN,
    Change,
    are_surely_there,
    keys_of,
    threshold_of,
)
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.wording import percent

__all__ = ["fewer_unknown", "listed", "more_known", "more_sure", "people_known", "place", "surely_there"]

_KNOWS_CELLS = "knows the cells of"

_TOLD = ("histogram_presence", "histogram_value")


def listed(clauses: Iterable[str]) -> str:
    """Return clauses joined by ``and``, each once."""
    return ", and ".join(dict.fromkeys(clauses))


def place(found: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return where people are whose number matters to a threshold; `each` of several releases has such a place."""
    places = {_place(keys_of(leaf), "each" if each else "the") for leaf in found}
    return places.pop() if len(places) == 1 else "counted in each release"


def _place(keys: tuple[str, ...], the: str) -> str:
    if "thresholding" in keys:
        other = " or outside it" if "thresholding_complement" in keys else ""
        return f"in {the} group{other}"
    return f"outside {the} group" if "thresholding_complement" in keys else f"in {the} table"


def people_known(found: tuple[ReleaseCertificate, ...], *, each: bool) -> str:
    """Return what an axis that counts known people is called."""
    if not are_surely_there(found):
        return "people whose records the attacker knows"
    if _knows(found) == _KNOWS_CELLS:
        return f"people {place(found, each=each)} whose cells the attacker knows"
    return f"people {place(found, each=each)} whom the attacker {_knows(found)}"


def _knows(found: tuple[ReleaseCertificate, ...]) -> str:
    """Return what the attacker does about known people: knowing a record is less than knowing that it counts."""
    if not are_surely_there(found):
        return "knows the records of"
    if all(leaf.attacker.influence == "active" and leaf.attacker.known > 0 for leaf in found):
        return "controls"
    # Theorem C lets the attacker know who is present: what counts is whose cell is known.
    between = all({"histogram_between"} == set(THRESHOLDS).intersection(keys_of(leaf)) for leaf in found)
    return _KNOWS_CELLS if between else "knows"


def more_known(found: tuple[ReleaseCertificate, ...], share: Fraction, *, each: bool) -> str:
    """Return the clause for knowing more people, by a share of k; empty where no theorem counts the known."""
    counting = tuple(leaf for leaf in found if any(key in THRESHOLDS for key in keys_of(leaf)))
    if not counting:
        return ""
    verb, where = _knows(counting), place(counting, each=each)
    more = "more " if any(leaf.attacker.known > 0 for leaf in counting) else ""
    numbers = {threshold_of(leaf) or 0 for leaf in counting}
    if len(numbers) > 1:
        return f"{verb} {more}people {_are(verb)}{where} ({_share(share)} of its threshold k)"
    k = numbers.pop()
    number = math.ceil(share * k)
    who = f"1 {more}person {_are(verb, 'is')}" if number == 1 else f"{number} {more}people {_are(verb)}"
    return f"{verb} {who}{where} ({_share(share)} of k = {k})"


def _are(verb: str, are: str = "are") -> str:
    return {"controls": "", _KNOWS_CELLS: "", "knows": f"who {are} "}.get(verb, "who may be ")


def surely_there(found: tuple[ReleaseCertificate, ...], share: Fraction, *, each: bool) -> str:
    """Return the clause for known people who surely count; empty where the other rows say as much."""
    if are_surely_there(found):
        return ""
    counting = tuple(leaf for leaf in found if any(key in THRESHOLDS for key in keys_of(leaf)))
    where = place(counting, each=each)
    numbers = {(threshold_of(leaf) or 0, leaf.attacker.known) for leaf in counting}
    if len(numbers) > 1:
        return f"knows people who are surely {where} ({_share(share)} of its threshold k more), or controls them"
    k, known = numbers.pop()
    return f"knows {known + math.ceil(share * k)} people who are surely {where}, or controls them"


def fewer_unknown(found: tuple[ReleaseCertificate, ...], share: Fraction) -> str:
    """Return the clause for being uncertain about a share fewer; empty where no theorem counts the unknown."""
    counting = tuple(leaf for leaf in found if any(key in UNCERTAIN for key in keys_of(leaf)))
    if not counting:
        return ""
    numbers = {leaf.attacker.unknown or 0 for leaf in counting}
    if len(numbers) > 1:
        return f"is uncertain about {_share(share)} fewer people in each release"
    declared = numbers.pop()
    left = math.floor(declared * (1 - share))
    return f"is uncertain about {_share(share)} fewer people ({left} instead of {declared})"


def more_sure(found: tuple[ReleaseCertificate, ...], change: Change) -> str:
    """Return the clause for an attacker who is twice as sure; empty where that changes nothing."""
    clauses: dict[str, None] = {}
    for leaf in found:
        for clause in _surer(leaf, change(leaf)):
            clauses[clause] = None
    if not clauses:
        return ""
    if len(found) > 1 and len(clauses) > 1:
        return "is twice as sure in each release (the odds are doubled)"
    return f"is twice as sure {listed(clauses)}"


def _surer(leaf: ReleaseCertificate, other: AttackerModel) -> list[str]:
    keys, attacker = keys_of(leaf), leaf.attacker
    clauses = []
    at_most = _changed(attacker.p_max, other.p_max)
    at_least = _changed(attacker.p_min, other.p_min, up=True)
    if at_most and at_least and any(key in keys for key in UNCERTAIN if key != "options"):
        return [
            f"whether each other person is counted: between {percent(other.p_min or 0.0, up=True)} and "
            f"{percent(other.p_max or 0.0)} instead of between {percent(attacker.p_min or 0.0, up=True)} and "
            f"{percent(attacker.p_max or 0.0)}"
        ]
    if at_most and "thresholding" in keys:
        clauses.append(f"that another person is in the group: {at_most}")
    if at_most and any(key in keys for key in _TOLD):
        clauses.append(f"of another person's cell, told that it is that or absent: {at_most}")
    if at_least and "thresholding_complement" in keys:
        clauses.append(f"that another person is outside the group: {at_least} that the person is in it")
    between = _changed(attacker.p_max_between, other.p_max_between)
    if between and "histogram_between" in keys:
        clauses.append(f"which of two cells another person is in: {between}")
    if at_least and "options" in keys:
        clauses.append(f"which options other people did not choose: at least {at_least} for every option")
    return clauses


def _changed(old: float | None, new: float | None, *, up: bool = False) -> str:
    if old is None or new is None or old == new:
        return ""
    return f"{percent(new, up=up)} instead of {percent(old, up=up)}"


def _share(share: Fraction) -> str:
    return f"{float(100 * share):g} %"
