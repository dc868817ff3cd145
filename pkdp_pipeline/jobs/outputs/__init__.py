"""Where releases go: files in a folder for each period, with a summary, tables in databases, and files for offices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.jobs.outputs.files import (
    Format,
    files_with,
    for_offices,
    make_folder,
    remove_file,
    remove_leftovers_in,
    write_atomically,
    write_together,
)
from pkdp_pipeline.jobs.outputs.tables import TableStore, check_tables, replace_period
from pkdp_pipeline.model.spelling import in_markdown, printable, table_line
from pkdp_pipeline.model.wording import fitting
from pkdp_pipeline.plugins import hook, view
from pkdp_pipeline.releases.printed import asked_sentence, following_beside, noise_sentence, published_table
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.release_tables import ReleaseTable
    from pkdp_pipeline.jobs.steps import JobResult
    from pkdp_pipeline.releases.release import Release


__all__ = [
    "Format",
    "Output",
    "check_outputs",
    "describe",
    "markdown_table",
    "public_rows",
    "remarks",
    "summarise",
    "write_for_offices",
    "write_outputs",
    "write_period",
]

Output = Callable[["Job", Callable[[TableStore], None], bool], None]
"""A database that holds public tables, by its key in ``[output]``: it does work in one transaction.

Its parameters are the job, the work, and whether this writes: a database is then created where there is none.
"""


def check_outputs(job: Job) -> None:
    """Refuse whatever is wrong with a job's outputs, before anything is charged; nothing is written.

    Raises `ConfigError` if a place cannot be used, or holds what is not this job's; `TemporaryError` if a database is
    locked or cannot be reached.
    """
    _in_databases(job, lambda store: check_tables(store, job))
    for _ in for_offices(job.output.formats, {}, None, {}):
        pass  # what is not installed is said
    if job.output.suppressed is not None:
        for release in job.release:
            try:
                view("tables.marker")(release.mechanism, job.output.suppressed)
            except ArgumentError as error:
                raise ConfigError(f"output, release {release.name!r}: {error}") from None


def write_outputs(
    job: Job, day: date, releases: Sequence[tuple[ReleaseTable, Release]]
) -> Mapping[str, tuple[Path, ...]]:
    """Write releases of one period to all of a job's outputs; what is there already is left or replaced.

    `day`: in the period. `releases`: all of the period's releases, or those that exist so far. Raises `ConfigError` if
    an output cannot hold a release, `TemporaryError` if a database is locked or cannot be reached.

    Returns
    -------
    mapping of str to tuple of pathlib.Path
        The files of each release, by its name.
    """
    folder = job.folder(day)
    make_folder(folder)
    remove_leftovers_in(folder)
    files_of = partial(files_with, folder, formats=job.output.formats, named=job.output.layout == "plain")
    files = {table.name: files_of(table.name, release) for table, release in releases}
    write_together({path: content for contents in files.values() for path, content in contents.items()})
    named = [(table.name, release) for table, release in releases]
    _in_databases(job, lambda store: replace_period(store, job, day, named), writing=True)
    return {name: tuple(contents) for name, contents in files.items()}


def write_for_offices(
    job: Job, day: date, releases: Sequence[tuple[ReleaseTable, Release]]
) -> tuple[tuple[Path, ...], Mapping[str, str]]:
    """Write the further formats that a job names, of these releases of one period.

    Return where, and why files are not written whose format cannot hold a table, by their names. Raises `ConfigError`
    if a file cannot be written.
    """
    written, unwritten = list[Path](), dict[str, str]()
    named = {table.name: release for table, release in releases}
    about = {} if job.about is None else job.about.model_dump(exclude_none=True)
    for name, content in for_offices(job.output.formats, named, job.output.suppressed, about):
        path = job.folder(day) / name
        if isinstance(content, str):
            remove_file(path)  # it may hold a table that this one replaces
            unwritten[name] = content
        else:
            write_atomically(path, content)
            written.append(path)
    return tuple(written), unwritten


def write_period(result: JobResult) -> None:
    """Write all releases of a period to all of its job's outputs, and note their files in the result."""
    releases = [(published.declared, published.release) for published in result.releases]
    files = write_outputs(result.job, result.day, releases)
    result.for_offices, result.unwritten = write_for_offices(result.job, result.day, releases)
    result.releases = tuple(replace(published, files=files[published.declared.name]) for published in result.releases)


def _in_databases(job: Job, work: Callable[[TableStore], None], *, writing: bool = False) -> None:
    for name in job.output.databases():
        in_database: Output = hook("outputs", name)
        in_database(job, work, writing)


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
    for declared, release in ((published.declared, published.release) for published in result.releases):
        lines += [f"## {text(declared.name)}", "", text(describe(result.job, declared)), ""]
        lines += markdown_table(release, beside=releases)
        lines += [line for remark in remarks(release, releases) for line in ("", text(remark))]
        lines += ["", text(release.certificate.sentence()), "", f"Release `{release.id}`.", ""]
    for name, reason in result.unwritten.items():
        lines += [f"The file `{name}` is not written: {text(reason)}", ""]
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
