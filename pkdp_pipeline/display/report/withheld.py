"""Withheld: what stands in the place of a suppressed count, and what exact totals in the same report tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.context import Context
from pkdp_pipeline.model.mechanisms import Count, Mechanism, cells_per_unit, mechanism_from_dict
from pkdp_pipeline.releases.within import check_same_people, hidden_bounds

if TYPE_CHECKING:
    from pkdp_pipeline.display.content import PublishedTable, ReleaseView, Report

SUPPRESSED = "suppressed"
"""The word in the place of a count that is not published, where nothing else tells more of it."""


def withheld_in(report: Report, release: ReleaseView) -> list[str]:
    """Return `withheld` of one of a report's tables, beside all about its period."""
    beside = [
        (other.table, report.promises[other.promise].certificate)
        for other in report.releases
        if other.period == release.period
    ]
    return withheld(release.table, report.promises[release.promise].certificate, beside)


def withheld(
    table: PublishedTable, certificate: Mapping[str, Any], beside: Iterable[tuple[PublishedTable, Mapping[str, Any]]]
) -> list[str]:
    """Return what stands in the place of each suppressed count: the word, and what exact totals tell; else nothing.

    Parameters
    ----------
    table : PublishedTable
    certificate : mapping
        Its certificate's document.
    beside : iterable of (PublishedTable, mapping)
        Other tables about the same period, and their certificates' documents.
    """
    words = [SUPPRESSED if count is None else "" for count in table.counts]
    mechanism, context = _terms(certificate)
    if not any(words) or table.more or mechanism.k is None or not _adds_up(mechanism, context):
        return words
    bounds = [(0, mechanism.k - 1)] * len(words)
    for other, document in beside:
        exact, about = _terms(document)
        if other.more or not _adds_up(exact, about) or not set(other.columns) < set(table.columns):
            continue
        places = [table.columns.index(name) for name in other.columns]
        groups = [tuple(key[place] for place in places) for key in table.keys]
        with suppress(ArgumentError):  # they are of other people, or suppressed themselves
            check_same_people(context, about, counted=not other.columns)
            limits = hidden_bounds(groups, table.counts, mechanism.k, dict(zip(other.keys, other.counts, strict=True)))
            bounds = [
                (max(low, least), min(high, most)) for (low, high), (least, most) in zip(bounds, limits, strict=True)
            ]
    return [
        word
        if not word or (least, most) == (0, mechanism.k - 1)
        else f"{word}: {f'{least:,} follows exactly' if least == most else f'{least:,} to {most:,}'}"
        for word, (least, most) in zip(words, bounds, strict=True)
    ]


def _terms(certificate: Mapping[str, Any]) -> tuple[Mechanism, Context | None]:
    """Return the mechanism of a certificate's document, and its context without the period, which a group has not."""
    context = certificate.get("context")
    about = None if context is None else replace(Context.from_dict(context), period=None)
    return mechanism_from_dict(certificate["mechanism"]), about


def _adds_up(mechanism: Mechanism, context: Context | None) -> bool:
    """Return whether what is published without noise adds up to the people of declared cells, or counts them."""
    declared = isinstance(mechanism, Count) or (context is not None and context.cells == "declared")
    return mechanism.noise is None and declared and cells_per_unit(mechanism) == 1
