"""The words of a printed table: the marker in the place of a count that is not published, a title, and notes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.mechanisms import Mechanism, key_columns, noised_below, value_columns
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.releases.derived import hidden_below
from pkdp_pipeline.releases.printed import counted_words

if TYPE_CHECKING:
    from pkdp_pipeline.releases.release import Release

_SUPPRESSED = "suppressed"
_LONGEST = 40
_LIMIT = re.compile(r"(<=|<|≤|below|under|fewer than|less than)\s*(\d+)", re.IGNORECASE)


def marker(mechanism: Mechanism, suppressed: str | None = None) -> str:
    """Return the text in the place of counts that are not published, the same for all of them, zeros included.

    Parameters
    ----------
    mechanism : Mechanism
    suppressed : str, optional
        The text. None: ``<k`` where all of them are below k, otherwise "suppressed".

    Raises
    ------
    ArgumentError
        If it is no short text, could be taken for a count, or names another number than k.
    """
    k = hidden_below(mechanism)
    # Exact totals hide nothing, so that a marker stands for nothing in them.
    hides = {mechanism.k, mechanism.release_threshold, mechanism.display, getattr(mechanism, "k_complement", None)}
    if suppressed is None:
        return _SUPPRESSED if k is None else f"<{k}"
    if not isinstance(suppressed, str) or not suppressed.strip() or len(suppressed) > _LONGEST:
        raise ArgumentError(f"suppressed must be a text of at most {_LONGEST} letters, such as '<30', 'c' or '*'.")
    if not suppressed.isprintable() or suppressed != suppressed.strip() or suppressed.startswith(("=", "+", "-", "@")):
        raise ArgumentError("suppressed must be one line, without blanks around it, and no formula of a spreadsheet.")
    if re.fullmatch(r"[-+≈\s]*[\d\s.,']+%?", suppressed):
        raise ArgumentError(
            "suppressed must not be a number, which a reader would take for a count: write '<30' or 'c'."
        )
    limit = _LIMIT.fullmatch(suppressed)
    names_k = limit is not None and int(limit[2]) + (limit[1] in ("≤", "<=")) == k
    if any(character.isdigit() for character in suppressed) and not names_k and hides != {None}:
        rule = "not only small counts are hidden; write 'c' or '*'" if k is None else f"counts below k = {k} are hidden"
        raise ArgumentError(f"suppressed must not name a number that is not the rule's: {rule}.")
    return suppressed


def title(release: Release) -> str:
    """Return what a table counts, in a line: its unit, by-columns, population and period."""
    context = release.certificate.context
    by = key_columns(name for name, _ in release.sealed.cells.columns)
    unit = "people" if context is None else ", ".join(context.unit) or "rows"
    words = counted_words(unit, by, None if context is None else context.summed)
    if context is not None and context.groups:
        words += f" ({'; '.join(context.groups)})"
    if context is not None and context.where is not None:
        words += f", where {context.where}"
    return words if period(release) is None else f"{words}, {period(release)}"


def period(release: Release) -> str | None:
    """Return the name of the period that a release is about, as in ``2026-W15``."""
    context = release.certificate.context
    return None if context is None or context.period is None else str(Period.parse(context.period).value)


def marks(release: Release, mark: str) -> list[str]:
    """Return sentences on the marks of a table, and on what is done to a count before it is published."""
    mechanism, error = release.certificate.mechanism, release.error
    k, marked = hidden_below(mechanism), noised_below(mechanism)
    sentences = []
    if mechanism.release_threshold is not None or (mechanism.below != "noise" if marked else mechanism.k is not None):
        number = value_columns(mechanism)[0]
        hidden = f"a {number} that is not published" if k is None else f"a count below {k}, zero included"
        sentences.append(f"{mark} stands for {hidden}.")
    if marked:
        sentences.append("≈ stands before a count that has noise; other counts are exact.")
    sentences.append(error.suppression)
    if mechanism.noise is not None:
        sentences.append(f"95 % of the noise is within ±{error.bound_95}.")
    return sentences


def notes(release: Release, mark: str) -> list[str]:
    """Return these sentences, what is promised, and the release's id."""
    return [*marks(release, mark), release.certificate.sentence(), f"Release {release.id}."]
