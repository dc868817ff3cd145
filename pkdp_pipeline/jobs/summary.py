"""The readable summary of one date, in Markdown: what is public, and what it guarantees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pkdp_pipeline.certificates.composed import ComposedCertificate, compose
from pkdp_pipeline.certificates.release_certificate import release_certificate
from pkdp_pipeline.display.report.plain_words import asked_sentence, noise_sentence
from pkdp_pipeline.errors import NoEvidenceError
from pkdp_pipeline.jobs.job import Job, ReleaseTable
from pkdp_pipeline.ledger import Entry
from pkdp_pipeline.model.evidence import SamePeople
from pkdp_pipeline.model.plain_text import key_text, printable, table_line

if TYPE_CHECKING:
    import pandas as pd

    from pkdp_pipeline.releases.release import Release

__all__ = ["Together", "describe", "markdown_table", "noise_line", "public_rows", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The total of everything that stands about some people in one period.

    Parameters
    ----------
    releases : int
    total : ComposedCertificate or None
        What they add up to; None when they protect different units, or do not add up.
    reason : str
        Why there is no total; empty where there is one.
    """

    releases: int
    total: ComposedCertificate | None
    reason: str = ""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Together | None:
        """Add up ledger entries; None for a single one, whose own certificate says everything."""
        if len(entries) < 2:
            return None
        if len({entry.unit for entry in entries}) > 1:
            reason = "they protect different units, so their guarantees are not added up here"
            return cls(releases=len(entries), total=None, reason=reason)
        parts = []
        # An exact total takes nothing from the one release that is certified given it.
        single = sum(not entry.standing.total for entry in entries) == 1
        for entry in entries:
            certificate = release_certificate(entry.certificate)
            noised = certificate.worst_case_bound is not None
            # Beside another release only the noise of a noised one stands.
            parts.append(certificate.worst_case_only() if noised and not single else certificate)
        try:
            return cls(releases=len(entries), total=compose(parts, SamePeople()))
        except NoEvidenceError:
            return cls(releases=len(entries), total=None, reason="nothing declared says what they add up to")

    def sentence(self, day: date) -> str:
        """Return the total in words; numbers are rounded up."""
        held = f"The ledger holds {self.releases} releases about these people on {day.isoformat()}"
        if self.total is None:
            return f"{held}; {self.reason}."
        return f"{held}. {self.total.sentence()} What several periods add up to is stated by the ledger's total."


def summarise(
    job: Job,
    day: date,
    releases: Sequence[tuple[ReleaseTable, Release]],
    together: Together | None,
    head: str,
) -> str:
    """Return the summary; it is made from what is public only, so a replay makes the same one.

    `head` is the hash of the ledger's event that holds the last release, for `pkdp ledger verify --head`.
    """
    lines = [f"# {job.dataset}, {day.isoformat()}", ""]
    for asked, release in releases:
        lines += [f"## {asked.name}", "", describe(job, asked), "", *markdown_table(release.table)]
        lines += ["", *noise_line(release), release.certificate.sentence(), "", f"Release `{release.id}`.", ""]
    if together is not None:
        lines += ["## Together", "", together.sentence(day), ""]
    lines += [
        f"Hash of the last of these releases in the ledger's chain: `{head}`. Whether a ledger still has it, and all "
        "before it: `pkdp ledger verify LEDGER --head` with this hash.",
        "",
    ]
    return "\n".join(lines)


def markdown_table(table: pd.DataFrame, most: int | None = None) -> list[str]:
    """Return the lines of a public table in Markdown, with `most` rows at most."""
    header, rows = public_rows(table)
    lines = [_table_line(header), _table_line(["---"] * (len(header) - 1) + ["---:"])]
    lines += [_table_line(row) for row in rows[:most]] or ["", "Nothing reached the rule for publishing."]
    if most is not None and len(rows) > most:
        lines += ["", f"{len(rows) - most} rows more are in the files."]
    return lines


def describe(job: Job, asked: ReleaseTable) -> str:
    """Return one sentence on what is counted and what is published."""
    return asked_sentence(", ".join(job.unit), asked.by, asked.where, asked)


def noise_line(release: Release) -> list[str]:
    """Return a line on how far noise may have moved the counts, and an empty one; nothing without noise."""
    if release.certificate.mechanism.noise is None:
        return []
    return [noise_sentence(release.error), ""]


def public_rows(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return a public table as text: column names, then rows; a missing count reads "suppressed".

    Keys are shown as in a report: different texts stay different.
    """
    import pandas as pd

    rows = []
    for row in table.itertuples(index=False, name=None):
        *cell, count = row
        rows.append([*map(key_text, cell), "suppressed" if pd.isna(count) else str(count)])
    return [printable(column) for column in table.columns], rows


def _table_line(cells: Sequence[str]) -> str:
    return table_line([re.sub(r"([\\|<`*_])", r"\\\1", cell) for cell in cells])
