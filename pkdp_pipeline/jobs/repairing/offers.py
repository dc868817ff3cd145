"""Offers: changes of a refused job that were tried, in the order in which they are worth considering."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from pkdp_pipeline.jobs.repairing.bench import Bench, Edits, Trial
from pkdp_pipeline.jobs.repairing.edits import at, fragment, keys_changed, said

__all__ = ["Kind", "Offer", "in_order", "offer_of", "until"]

Kind = Literal["change", "less", "question"]
"""What is published otherwise; what is not published; what has to be argued first, and is nobody's to assume."""

_RANKS = ("change", "less", "question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One change that makes a refused job certifiable.

    Parameters
    ----------
    kind : {"change", "less", "question"}
    words : str
        What changes.
    claim : str
        Of a question: what has to be true, and has to be argued.
    edits : tuple of Edit
    keys : int
        How many keys of the file get another value, come or go.
    factor : float
        How far the numbers go that change, as the sum of ``|ln(new / old)|``; infinite where a key comes or goes.
    fragment : str
        The changed lines, after ``-`` and ``+``; of a question empty, because what is not argued is not to be pasted.
    trial : Trial or None
        The changed job as it was tried; None where nothing changes but the days.
    last_day : datetime.date or None
        The last day that can be published as the job is.
    """

    kind: Kind
    words: str
    claim: str = ""
    edits: Edits = ()
    keys: int = 0
    factor: float = 0.0
    fragment: str = ""
    trial: Trial | None = None
    last_day: date | None = None


def offer_of(bench: Bench, kind: Kind, edits: Edits, words: str = "", claim: str = "") -> Offer | None:
    """Return a change as an offer; None where it is refused when it is tried."""
    trial = bench.tried(edits)
    if trial is None:
        return None
    content, made = bench.content, trial.edits
    return Offer(
        kind=kind,
        words=words or said(content, made),
        claim=claim,
        edits=made,
        keys=keys_changed(content, made),
        factor=_factor(content, made),
        fragment="" if kind == "question" else fragment(content, made),
        trial=trial,
    )


def until(day: date) -> Offer:
    """Return the offer to stop with a day; what comes before it was tried when the job itself was."""
    return Offer(kind="less", words=f"the job as it is, up to {day.isoformat()}", last_day=day)


def in_order(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the offers, the smallest first; without those that hold a smaller one.

    Changes come first, then publishing less, then questions. In each the one that changes the fewest keys is first;
    of several, the one whose numbers go least far; of several, the one that stands first in the file.
    """
    found = list({(one.words, one.fragment): one for one in offers}.values())
    places = [{edit.path for edit in one.edits} for one in found]

    def is_more(number: int) -> bool:
        return any(
            places[other] and places[other] < places[number] and _rank(found[other]) <= _rank(found[number])
            for other in range(len(found))
        )

    kept = [one for number, one in enumerate(found) if not is_more(number)]
    return tuple(sorted(kept, key=lambda one: (_rank(one), one.keys, one.factor)))


def _rank(offer: Offer) -> int:
    return _RANKS.index(offer.kind)


def _factor(content: Mapping[str, Any], edits: Edits) -> float:
    total = 0.0
    for edit in edits:
        old, new = at(content, edit.path), edit.value
        if not all(isinstance(one, int | float) and one > 0 for one in (old, new)):
            return math.inf
        total += abs(math.log(new / old))
    return total
