"""Page: an explanation as a fragment of HTML, for notebooks; it takes its colours from the page it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from pkdp_pipeline.releases.explaining.words import heading, ledger_table, publication_sentences

if TYPE_CHECKING:
    from pkdp_pipeline.releases.explaining.explanation import Explanation

__all__ = ["html_of"]

_CELL = "text-align:left;vertical-align:top;padding:0.15em 1.2em 0.15em 0;border-bottom:1px solid currentColor"


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
