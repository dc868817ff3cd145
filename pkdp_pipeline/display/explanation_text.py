"""Plain text: an explanation in lines of at most 80 characters."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.releases.explaining.words import heading, in_short, ledger_table, publication_sentences

if TYPE_CHECKING:
    from pkdp_pipeline.releases.explaining.explanation import Explanation

__all__ = ["text_of"]

_WIDTH = 80
_BOUND = "\ue000"
"""Stands for a blank at which no line may end."""


def text_of(explained: Explanation) -> str:
    """Return the explanation as plain text."""
    sink = io.StringIO()
    screen = Screen(Console(file=sink, width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False))
    screen.say(heading(explained), indent=0)
    if explained.refused is not None:
        screen.head("Why")
        screen.say(str(explained.refused))
    if explained.statement is not None:
        screen.head("What it promises" if explained.refused is None else "What it would have promised")
        screen.say(explained.statement.sentence)
        screen.say(in_short(explained))
    screen.head("What is published")
    for sentence in publication_sentences(explained):
        screen.say(sentence)
    if explained.scenarios:
        screen.head("What if the attacker is stronger")
        screen.table(
            ("if the attacker …", "what is left"), [(one.words, _bound(one.verdict)) for one in explained.scenarios]
        )
    if explained.context.dataset is not None:
        screen.head(f"The ledger of {explained.context.dataset!r}")
        screen.table(*ledger_table(explained))
    text = sink.getvalue().replace(_BOUND, " ")
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def _bound(text: str) -> str:
    """Return a text of which no line begins or ends with an equals sign."""
    return text.replace(" = ", f"{_BOUND}={_BOUND}")
