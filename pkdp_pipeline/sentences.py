"""The guarantee in words: one template per theorem, its assumptions, and what it does not protect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from types import MappingProxyType

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.mechanisms import Count, Mechanism
from pkdp_pipeline.profiles import Protects

__all__ = ["against", "assumptions", "percent", "protection", "rounded_up", "suppression"]


def rounded_up(value: float, digits: int = 3) -> str:
    """Return `value` as text, rounded up to `digits` significant digits."""
    if value == math.inf:
        return "infinity"
    if value == 0.0:
        return "0"
    mantissa, _, exponent = (
        f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(repr(float(value)))):e}".partition("e")
    )
    if -4 <= int(exponent) < 6:
        return f"{float(mantissa + 'e' + exponent):g}"
    return f"{float(mantissa):g}e{int(exponent)}"


def percent(share: float | None, *, up: bool = False) -> str:
    """Return a share as a percentage of at most six digits, rounded so that fewer attackers are named."""
    exact = Decimal(repr(share or 0.0)) * 100
    short = Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR).create_decimal(exact).normalize()
    return f"{short:f} %" if short == 0 or short >= Decimal("1e-6") else f"{short:e} %"


def _people(number: int) -> str:
    return "nobody" if number == 0 else "1 person" if number == 1 else f"{number} people"


def _knows(attacker: AttackerModel, where: str, *, counted: bool = False) -> str:
    """Say how many people the attacker knows or controls; `counted` where all of them may surely be `where`.

    Somebody who is merely known is there only with some probability before the attacker learns it: a bound that
    averages over that says nothing about an attacker who is sure of as many who are there.
    """
    controls = attacker.influence == "active" and attacker.known > 0
    number = _people(attacker.known)
    if attacker.known == 0:
        return f"knows {number} {where}"
    if controls or counted:
        return f"{'controls' if controls else 'knows'} at most {number} {where}"
    return f"knows the records of at most {number} who may be {where}"


def _bounded(attacker: AttackerModel) -> str:
    if attacker.unknown_max is None:
        return ""
    return f" (and at most {_people(attacker.unknown_max)} are unknown to them)"


def _thresholding(attacker: AttackerModel) -> str:
    return (
        f"anyone who is never more than {percent(attacker.p_max)} sure that another person is in the group, and "
        f"{_knows(attacker, 'in it')}{_bounded(attacker)}; they may know for certain who is not"
    )


def _thresholding_complement(attacker: AttackerModel) -> str:
    return (
        f"anyone who is always at least {percent(attacker.p_min, up=True)} sure that another person is "
        f"in the group, and {_knows(attacker, 'outside it')}{_bounded(attacker)}; they may know for certain who is"
    )


def _counting(attacker: AttackerModel) -> str:
    return (
        f"anyone who is uncertain about at least {_people(attacker.unknown or 0)}, between "
        f"{percent(attacker.p_min, up=True)} and {percent(attacker.p_max)} for each; they may know "
        "everybody else"
    )


def _through_absence(attacker: AttackerModel) -> str:
    return (
        "anyone who, told that another person is either absent or in a given cell, is at most "
        f"{percent(attacker.p_max)} sure that it is the cell, and {_knows(attacker, 'in the table')}"
        f"{_bounded(attacker)}; they may know for certain who is absent"
    )


def _between(attacker: AttackerModel) -> str:
    return (
        "anyone who, told that another person is in one of two cells, is at most "
        f"{percent(attacker.p_max_between)} sure which, and {_knows(attacker, 'in the table', counted=True)}"
        f"{_bounded(attacker)}; they may know who is present and how many people there are"
    )


def _options(attacker: AttackerModel) -> str:
    return (
        f"anyone who is uncertain about at least {_people(attacker.unknown or 0)}, each of whom chooses every option "
        f"with probability at least {percent(attacker.p_min, up=True)}; they may know what everybody "
        "else chose"
    )


def _noise(_: AttackerModel) -> str:
    return "anyone at all, whatever they know"


_AGAINST: Mapping[str, Callable[[AttackerModel], str]] = MappingProxyType(
    {
        "thresholding": _thresholding,
        "thresholding_complement": _thresholding_complement,
        "counting": _counting,
        "noisy_counting": _counting,
        "histogram_presence": _through_absence,
        "histogram_value": _through_absence,
        "histogram_between": _between,
        "options": _options,
        "noise": _noise,
    }
)


def against(theorem: str, attacker: AttackerModel) -> str:
    """Return whom the guarantee holds against, for the theorem with this key."""
    return _AGAINST[theorem](attacker)


def protection(mechanism: Mechanism, protects: Protects, theorem: str) -> str:
    """Return what the statement protects and what it does not, as one sentence."""
    if isinstance(mechanism, Count):
        return (
            "Protects whether a person is counted in this release; it does not protect what this release and others "
            "about the same people tell together, nor people whose records depend on one another."
        )
    if protects == "presence":
        return (
            "Protects whether a person is there on this day; it does not protect which cell a person is in once it is "
            "known that she is there, nor what several days or tables tell together."
        )
    asking = "" if theorem == "histogram_between" else " (ask for protects='presence')"
    also = f"whether a person is there{asking}"
    return (
        f"Protects which of two published cells a person is in; it does not protect {also}, nor what several days or "
        "tables tell together."
    )


def assumptions(theorem: str, attacker: AttackerModel) -> tuple[str, ...]:
    """Return what is assumed about the attacker, one plain sentence each."""
    if theorem == "noise":
        return ("Nothing is assumed about what the attacker knows.",)
    listed = [
        "From the attacker's point of view people's records are independent of one another, given what the attacker "
        "knows; whoever shares a record's fate belongs to the same privacy unit.",
        f"The attacker is {against(theorem, attacker)}.",
        "These numbers were declared before looking at the data, and not estimated from them.",
    ]
    if theorem in ("histogram_presence", "histogram_value"):
        listed.append(
            "p_max is a conditional probability about the published cells, after any binning: nobody's absence is so "
            "unlikely that being told 'this cell or absent' would settle it."
        )
        listed.append("No total of the people present is published, nor anything from which it follows.")
    if theorem == "histogram_between":
        listed.append("Nothing is assumed about absence; totals may be published beside the table.")
    return tuple(listed)


def suppression(mechanism: Mechanism) -> str:
    """Return the order of the steps that made the table, in words."""
    subject = "The count is" if isinstance(mechanism, Count) else "Every cell is"
    steps = []
    if mechanism.k is not None:
        steps.append(f"published only when it is at least {mechanism.k}")
    if isinstance(mechanism, Count) and mechanism.k_complement is not None:
        steps.append(f"published only when at least {mechanism.k_complement} people are not counted")
    if mechanism.noise is not None:
        steps.append(f"given two-sided geometric noise with epsilon {mechanism.noise.epsilon!r}")
    if mechanism.release_threshold is not None:
        steps.append(f"published only when the noisy value is at least {mechanism.release_threshold}")
    return f"{subject} {', then '.join(steps)}." if steps else f"{subject} published exactly."
