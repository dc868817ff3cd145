"""Exact totals of groups that attackers know: what a histogram beside them counts by, and which one is these totals."""

from __future__ import annotations

from collections.abc import Sequence

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, Protects


def asks_for_totals(
    mechanism: Mechanism, by: Sequence[str] | None, protects: Protects, attacker: AttackerModel
) -> bool:
    """Return whether a histogram by columns `by` is exact totals of groups that an attacker knows."""
    bare = mechanism in (Histogram(), Histogram(totals=True))
    return bare and protects == "value" and bool(by) and frozenset(by or ()) in attacker.totals_known


def beside_groups(
    mechanism: Mechanism, by: Sequence[str] | None, protects: Protects, attacker: AttackerModel
) -> Mechanism:
    """Return what is published of columns `by` where an attacker knows exact totals of groups.

    A bare histogram by the very columns of such totals asks for the totals themselves; any other has these columns and
    at least one more, which alone is hidden. Raises `ArgumentError` if the columns say otherwise.
    """
    if asks_for_totals(mechanism, by, protects, attacker):
        return Histogram(totals=True)
    groups, columns = attacker.groups, tuple(by or ())
    if not isinstance(mechanism, Histogram) or protects != "value":
        return mechanism
    if mechanism.totals:
        raise ArgumentError(
            "totals of groups are published as what everybody is declared to know: declare "
            f"leakage=pkdp.Leakage.totals(by={list(columns)!r}), or leave totals out."
        )
    lacking = [column for column in groups if column not in columns]
    if lacking:
        raise ArgumentError(
            f"leakage has exact totals by {', '.join(map(repr, lacking))}, by which the histogram does not count: two "
            "cells are hidden from one another only where they agree in the columns of such totals. Add these to by, "
            "or leave the totals out of the leakage where nobody knows them."
        )
    if groups and len(groups) == len(columns):
        raise ArgumentError(
            f"leakage has exact totals by {', '.join(map(repr, groups))}, which are all columns of the histogram: no "
            "two cells agree in all of them, and totals by one column link the groups of another, so that suppressed "
            "counts follow. Totals may be known by some columns of by only: leave those of the others (the answer) "
            "out, or add the column that is to be hidden. The known totals themselves are published by their own "
            "columns, without k and noise."
        )
    return mechanism
