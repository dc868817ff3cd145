"""Explanation: as plain text of 80 characters a line, and as HTML for notebooks in the colours of their page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pkdp_pipeline.releases.explaining.words import heading, in_short, ledger_table, publication_sentences

if TYPE_CHECKING:
    from pkdp_pipeline.releases.explaining.explanation import Explanation

__all__ = ["html_of", "text_of"]

_CELL = "text-align:left;vertical-align:top;padding:0.15em 1.2em 0.15em 0;border-bottom:1px solid currentColor"
_WIDTH = 80
_BOUND = "\ue000"
"""Stands for a blank at which no line may end."""


def text_of(explained: Explanation) -> str:
    """Return the explanation as plain text."""
    from rich.console import Console

    from pkdp_pipeline.display.terminal.screen import Screen

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


def html_of(explained: Explanation) -> str:
    """Return the explanation as HTML."""
    parts = [f"<p><strong>{escape(heading(explained))}</strong></p>"]
    if explained.refused is not None:
        parts.append(f"<p>{escape(str(explained.refused))}</p>")
    if explained.statement is not None:
        if explained.refused is not None:
            parts.append("<p>What it would have promised:</p>")
        parts.append(explained.statement.to_html())
    parts += [f"<p>{escape(sentence)}</p>" for sentence in publication_sentences(explained)]
    if explained.scenarios:
        left = [(one.words, one.verdict) for one in explained.scenarios]
        parts.append(_table(("If the attacker …", "what is left"), left))
    if explained.context.dataset is not None:
        header, rows = ledger_table(explained)
        parts.append(_table((f"The ledger of {explained.context.dataset!r}", *header[1:]), rows))
    return f'<div style="max-width:48em;line-height:1.5">{"".join(parts)}</div>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<table style="border-collapse:collapse;margin:0.5em 0"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'
