"""The summary of a date, in Markdown: its public tables, their guarantees, and what everything about it adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkdp_pipeline.model.spelling import in_markdown, printable, table_line
from pkdp_pipeline.model.wording import fitting
from pkdp_pipeline.releases.printed import asked_sentence, following_beside, noise_sentence, published_table

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.records import JobResult
    from pkdp_pipeline.jobs.release_tables import ReleaseTable
    from pkdp_pipeline.releases.release import Release


def summarise(result: JobResult, head: str) -> str:
    """Return the summary; it is made from what is public only, so a replay makes the same one.

    `head` is the hash of the ledger's event that holds the last release, for `pkdp ledger verify --head`.
    """
    period = result.job.period.text(result.day)

    def text(words: str) -> str:
        # Names, predicates and labels stand in all of it.
        return in_markdown(printable(words))

    lines = [f"# {text(result.job.dataset)}, {period}", ""]
    releases = [published.release for published in result.releases]
    for declared, release in ((published.asked, published.release) for published in result.releases):
        lines += [f"## {text(declared.name)}", "", text(describe(result.job, declared)), ""]
        lines += markdown_table(release, beside=releases)
        lines += [line for remark in remarks(release, releases) for line in ("", text(remark))]
        lines += ["", text(release.certificate.sentence()), "", f"Release `{release.id}`.", ""]
    if result.together is not None:
        lines += ["## Together", "", text(result.together.sentence(period)), ""]
    lines += [
        f"Hash of the last of these releases in the ledger's chain: `{head}`. Whether a ledger still has it, and all "
        "before it: `pkdp ledger verify LEDGER --head` with this hash.",
        "",
    ]
    return "\n".join(lines)


def markdown_table(release: Release, most: int | None = None, beside: Sequence[Release] = ()) -> list[str]:
    """Return the lines of a public table in Markdown; see `public_rows`."""
    header, rows, more = public_rows(release, len(release.sealed.rows) if most is None else most, beside)
    listed = [header, ["---"] * (len(header) - 1) + ["---:"], *rows]
    lines = [table_line([*map(in_markdown, cells)]) for cells in listed]
    lines += [] if rows else ["", "Nothing reached the rule for publishing."]
    return [*lines, "", f"{more} rows more are in the files."] if more else lines


def describe(job: Job, declared: ReleaseTable) -> str:
    """Return one sentence on what is counted and what is published."""
    return asked_sentence(", ".join(job.unit), declared.by, declared.where, declared.mechanism, declared.summed)


def remarks(release: Release, beside: Sequence[Release]) -> list[str]:
    """Return sentences on how far noise may have moved the counts, and on exact totals from which nothing follows."""
    rules = release.certificate.mechanism
    noise = "" if rules.noise is None else noise_sentence(release.error, rules)
    return [*filter(None, (noise, following_beside(release, beside).remark))]


def public_rows(release: Release, most: int, beside: Sequence[Release] = ()) -> tuple[list[str], list[list[str]], int]:
    """Return a public table as a report shows it: columns, about `most` rows, and how many rows more there are.

    `beside`: the releases of the same run, whose exact totals may tell of suppressed counts.
    """
    table = published_table(release, len(release.sealed.rows))
    follows = following_beside(release, beside).texts
    counts = [word if text is None else f"{word}: {text}" for word, text in zip(table.words, follows, strict=True)]
    number = fitting(len(counts), most)
    rows = [[*keys, count] for keys, count in zip(table.keys[:number], counts, strict=False)]
    return [*table.columns, table.number], rows, len(counts) - number
