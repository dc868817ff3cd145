"""Overlap rules: releases that stand beside one another, and whether they may; it looks at no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.model.mechanisms import Kind
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import folded

__all__ = ["Company", "Member", "has_noiseless", "may_stand_apart", "may_stand_together"]

_NOISELESS = ("total", "exact count", "noiseless")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One release, as far as others beside it matter.

    Parameters
    ----------
    kind : str
        See `pkdp_pipeline.ledger.standing.kind_of`.
    unit : tuple of str
        Columns of the privacy unit, sorted.
    people : tuple, optional
        Which people it is about: the table and the period. They matter beside a total only.
    told : bool
        Whether its certificate is about an attacker to whom `AttackerModel.total_is_known`.
    """

    kind: Kind
    unit: tuple[str, ...]
    people: tuple[object, ...] = ()
    told: bool = False

    @classmethod
    def of(cls, standing: Standing, *, told: bool = False) -> Member:
        """Return a release as a member of a company."""
        period = Period.parse(standing.period)
        time = period.days() or folded(period.text)
        return cls(kind=standing.kind, unit=tuple(sorted(standing.unit)), people=(standing.table, time), told=told)


Company = Mapping[Member, int]
"""Releases that stand beside one another, and how many there are of each."""


def has_noiseless(company: Iterable[Member]) -> bool:
    """Return whether any of them has no noise that gives a finite worst case."""
    return any(one.kind in _NOISELESS for one in company)


def may_stand_together(company: Company) -> bool:
    """Return whether releases whose periods overlap, one leading to the next, may all stand without evidence.

    They may when there is one of them, when all are noised, or when a single exact count stands beside pure
    noise about the same unit. One total may stand beside any of these but an exact count, where all are about the
    same unit, table and period, and about attackers who are told it (`docs/composition.md`, rule 7).
    """
    if sum(company.values()) <= 1 or not has_noiseless(company):
        return True
    totals = sum(number for one, number in company.items() if one.kind == "total")
    others = Counter({one: number for one, number in company.items() if one.kind != "total"})
    if totals:
        same = len({(one.unit, one.people) for one in company}) == 1
        told = all(one.told for one in company) and all(one.kind != "exact count" for one in others)
        return totals == 1 and same and told and may_stand_together(others)
    exact = sum(number for one, number in others.items() if one.kind == "exact count")
    others_pure = all(one.kind in ("exact count", "pure noise") for one in others)
    return exact == 1 and others_pure and len({one.unit for one in others}) == 1


def may_stand_apart(everything: Iterable[Member]) -> bool:
    """Return whether releases about different periods may stand without evidence about how periods depend.

    They may when all are noised. Totals may be among them where all are about one unit and about attackers who are
    told: what noise gives against anybody is then given all totals, and adds up.
    """
    members = list(everything)
    if not has_noiseless(members):
        return True
    noised = all(one.kind == "total" or one.kind not in _NOISELESS for one in members)
    return noised and all(one.told for one in members) and len({one.unit for one in members}) == 1
