"""Changes: when the evidence and the budgets that are recorded with every reservation became others."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pkdp_pipeline.display.ledger.words import class_call, number_of
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.views.reading import Reading

__all__ = ["Change", "changed_since", "term_changes", "terms_words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Terms that differ from those recorded just before them.

    Attributes
    ----------
    position : int
        The event, within the data set, that recorded them first.
    created_at : str
    terms : Terms
    """

    position: int
    created_at: str
    terms: Terms

    @property
    def words(self) -> str:
        """The change, as one line."""
        return f"terms changed with event {self.position:,} ({self.created_at[:10]}): {terms_words(self.terms)}"


def terms_words(terms: Terms) -> str:
    """Return evidence and budgets, as one line."""
    evidence = ", ".join(map(class_call, terms.evidence)) or "none"
    budgets = ", ".join(map(class_call, terms.budgets)) or "none"
    return f"evidence {evidence}; budgets {budgets}"


def term_changes(reading: Reading) -> list[Change]:
    """Return the terms of the first reservation and all that follow them, in order; those of given-back ones too."""
    rows = reading.database.execute(
        "SELECT position, created_at, terms FROM event WHERE dataset = :dataset AND terms IS NOT NULL "
        "ORDER BY position",
        dataset=reading.ledger.dataset,
    )
    found: list[Change] = []
    before = None
    for position, created_at, text in rows:
        if text == before:
            continue
        before, terms = text, Terms.from_dict(json.loads(text))
        if not found or terms != found[-1].terms:
            found.append(Change(position=int(position), created_at=str(created_at), terms=terms))
    return found


def changed_since(changes: list[Change]) -> str:
    """Return one sentence where the terms in force are not those of the first release; else nothing."""
    if not changes or changes[-1].terms == changes[0].terms:
        return ""
    last = f"with event {changes[-1].position:,} ({changes[-1].created_at[:10]})"
    when = last if len(changes) == 2 else f"{number_of(len(changes) - 1, 'time')}, the last time {last}"
    return f"The terms in force are not those of the first release: they changed {when}."
