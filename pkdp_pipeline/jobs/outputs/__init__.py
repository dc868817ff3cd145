"""Where releases go: files in a folder for each period, with a summary, tables in databases, and files for offices.

Releases as tables: one for each release's name, with the rows of a period replaced as a whole.

All of this holds for every database; a `TableStore` is one of them. Beside the tables of the releases lies
``pkdp_releases``, which says what each period's rows are.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.engines.rows import quoted
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
from pkdp_pipeline.model.keys import Key, canonical_key
from pkdp_pipeline.model.mechanisms import value_columns
from pkdp_pipeline.model.period import folded, in_markdown, printable, table_line
from pkdp_pipeline.model.wording import fitting
from pkdp_pipeline.plugins import hook, view
from pkdp_pipeline.releases.printed import asked_sentence, corrected, following_beside, noise_sentence, published_table
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.job import Job
    from pkdp_pipeline.jobs.release_tables import ReleaseTable
    from pkdp_pipeline.jobs.steps import JobResult
    from pkdp_pipeline.ledger import Entry

REGISTRY = "pkdp_releases"
"""The table that says which release a period's rows are."""

_MAX_DECIMAL_DIGITS = 38
_OWN = ("period", "release_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicColumn:
    """One column of a release: of keys, of counts, or of which counts are exact.

    Parameters
    ----------
    kind : str
        ``text``, ``boolean``, ``integer``, ``natural`` (above a signed 64-bit integer), ``decimal``, ``real``,
        ``date``, ``timestamp`` or ``instant``.
    arrow : pyarrow.ChunkedArray
        The values as the release's file has them.
    values : tuple
        The same as canonical keys, None where missing.
    digits, scale : int
        Of decimals: all digits, and those behind the point.
    nanoseconds : bool
        Of timestamps and instants: whether one of them is finer than a microsecond.
    """

    name: str
    kind: str
    arrow: Any
    values: tuple[Key, ...]
    digits: int = 0
    scale: int = 0
    nanoseconds: bool = False


class TableStore:
    """One database in one transaction: its types, and how it is asked and written to.

    Parameters
    ----------
    key : str
        The key that names it in the job file.
    database : str
        The program's name.
    types : mapping of str to str
        The type of each kind of column, as `columns` returns it.
    places : sequence of str
        The names before that of a table: of its schema, and of what holds that.
    """

    def __init__(self, key: str, database: str, types: Mapping[str, str], places: Sequence[str]) -> None:
        self.key, self.types, self._database, self._places = key, types, database, places

    def place(self, table: str = "") -> str:
        """Return a table's quoted name with its schema, or that of the schema."""
        return ".".join(map(quoted, (*self._places, *filter(None, [table]))))

    def type_of(self, column: PublicColumn) -> str:
        """Return the type that holds a column, or raise `ConfigError` where there is none."""
        if (problem := self.problem(column)) is not None:
            raise ConfigError(
                f"{self.key}: the keys of {column.name!r} {problem}, which {self._database} cannot hold: remove "
                f"{self.key}, or change them in the source."
            )
        return self.types[column.kind]

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, whose placeholders are ``$1``, ``$2`` and so on, and return its rows."""
        raise NotImplementedError

    def make_schema(self) -> None:
        """Create the schema unless it exists."""
        raise NotImplementedError

    def columns(self, table: str) -> Mapping[str, str] | None:
        """Return names and types of a table's columns; None where there is none, none of them for a view."""
        raise NotImplementedError

    def problem(self, column: PublicColumn) -> str | None:
        """Return what the keys of a column are that it cannot hold; None where it holds them."""
        raise NotImplementedError

    def wider(self, existing: str, wanted: str) -> str | None:
        """Return the type that holds what both hold; None where values would not stay what they are."""
        raise NotImplementedError

    def insert(self, table: str, period: date, columns: Sequence[tuple[PublicColumn, str]], release_id: str) -> None:
        """Add rows; each column comes with the table's type."""
        raise NotImplementedError


def check_names(job: Job, key: str, *, longest: int, reserved: Sequence[str] = ()) -> None:
    """Refuse names of releases and columns that a database cannot have, without opening it.

    `longest`: of names, in bytes; the database cuts longer ones. `reserved`: names that no column can have.
    """
    own = {*_OWN, *reserved}
    for release in job.release:
        by = [column.lower() for column in release.by or ()]
        problem = ""
        if release.name.casefold() == REGISTRY:
            problem = f"is named {REGISTRY!r}, as the table of all releases is"
        elif long := [name for name in (release.name, *(release.by or ())) if len(name.encode()) > longest]:
            problem = f"has the name {long[0]!r}, which is longer than {longest} bytes"
        elif taken := [column for column in by if column in {*own, *value_columns(release.mechanism)}]:
            problem = f"has a column {taken[0]!r}, which is a name of the table's own"
        elif twice := [column for column in by if by.count(column) > 1]:
            problem = f"has columns whose names differ in letter case only, {twice[0]!r} among them"
        if problem:
            raise ConfigError(f"{key}: release {release.name!r} {problem}: rename it, or remove {key}.")


def check_tables(store: TableStore, job: Job) -> None:
    """Refuse tables that are not this job's: of another shape, of another data set, or with rows of others."""
    registry = store.columns(REGISTRY)
    if registry is not None and dict(registry) != _registry_columns(store):
        raise ConfigError(
            f"{store.key}: there is a table {REGISTRY!r} of something else: choose another schema with output.schema."
        )
    for release in job.release:
        if registry is not None:
            _check_dataset(store, job, release.name)
        columns = store.columns(release.name)
        if columns is not None:
            _check_shape(store, release.name, release.by or (), value_columns(release.mechanism), columns)
            _check_rows(store, release.name, registered=registry is not None)


def replace_period(store: TableStore, job: Job, day: date, releases: Sequence[tuple[str, Release]]) -> None:
    """Write the releases of one period, in place of the rows that their tables hold of it, under its first day."""
    day = job.period.span(day)[0]
    store.make_schema()
    if store.columns(REGISTRY) is None:
        _create(store, REGISTRY, _registry_columns(store))
    for name, release in releases:
        _check_dataset(store, job, name)
        table = store.place(name)
        columns = _columns(release)
        types = _fitted(store, name, columns, value_columns(release.certificate.mechanism))
        store.run(f"DELETE FROM {table} WHERE period = $1", day)
        store.insert(name, day, list(zip(columns, types, strict=True)), release.id)
        store.run(f"DELETE FROM {store.place(REGISTRY)} WHERE name = $1 AND period = $2", name, day)
        certificate = release.certificate
        store.run(
            f"INSERT INTO {store.place(REGISTRY)} VALUES ($1, $2, $3, $4, $5, $6)",
            *(job.dataset, name, day, release.id, certificate.sentence(), certificate.to_json()),
        )


def does_not_fit(key: str, table: str, column: PublicColumn, existing: str) -> ConfigError:
    """Return the error of a column that cannot hold a release's keys."""
    return ConfigError(
        f"{key}: the column {column.name!r} of the table {table!r} has the type {existing}, which cannot hold this "
        f"release's keys ({column.kind}): has the column changed in the source? Drop the table, so that pkdp backfill "
        "writes it again from the ledger, or choose another schema with output.schema."
    )


def _registry_columns(store: TableStore) -> dict[str, str]:
    texts = dict.fromkeys(("release_id", "sentence", "certificate"), store.types["text"])
    return {"dataset": store.types["text"], "name": store.types["text"], "period": "DATE", **texts}


def _create(store: TableStore, table: str, columns: Mapping[str, str]) -> None:
    written = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    store.run(f"CREATE TABLE {store.place(table)} ({written})")


def _check_dataset(store: TableStore, job: Job, name: str) -> None:
    for (other,) in store.run(f"SELECT DISTINCT dataset FROM {store.place(REGISTRY)} WHERE name = $1", name):
        if folded(other) != folded(job.dataset):
            raise ConfigError(
                f"{store.key}: the table {name!r} holds releases of the data set {other!r}, this job's is "
                f"{job.dataset!r}: rename the release, or choose another schema with output.schema."
            )


def _check_shape(
    store: TableStore, table: str, by: Sequence[str], own: Sequence[str], existing: Mapping[str, str]
) -> None:
    expected = ["period", *by, *own, "release_id"]
    types = {"period": "DATE", own[0]: store.types["integer"], "release_id": store.types["text"]}
    types |= {"exact": store.types["boolean"]} if "exact" in own else {}
    keys = [kind for name, kind in existing.items() if name in by]
    if (
        list(existing) != expected
        or any(existing[name] != kind for name, kind in types.items())
        or any(store.wider(kind, kind) is None for kind in keys)
    ):
        columns = ", ".join(expected)
        raise ConfigError(
            f"{store.key}: the table {table!r} exists but lacks the columns ({columns}) with the types of this "
            "release: drop it, so that pkdp backfill writes it again from the ledger, rename the release, or choose "
            "another schema with output.schema."
        )


def _check_rows(store: TableStore, table: str, *, registered: bool) -> None:
    strangers = f"SELECT 1 FROM {store.place(table)} AS held"
    if registered:
        strangers += (
            f" WHERE NOT EXISTS (SELECT 1 FROM {store.place(REGISTRY)} AS known WHERE known.name = $1"
            " AND known.period = held.period AND known.release_id = held.release_id)"
        )
    if store.run(f"{strangers} LIMIT 1", *([table] if registered else [])):
        raise ConfigError(
            f"{store.key}: the table {table!r} holds rows that {REGISTRY!r} does not know, so they are not this job's: "
            "rename the release, choose another schema with output.schema, or delete these rows."
        )


def _fitted(store: TableStore, table: str, columns: Sequence[PublicColumn], own: Sequence[str]) -> list[str]:
    """Create the table or widen its key columns, so that it holds these values; return the types of its columns.

    `own`: those of the columns that hold no keys, which come last.
    """
    wanted = [store.type_of(column) for column in columns]
    existing = store.columns(table)
    if existing is None:
        types = {column.name: kind for column, kind in zip(columns, wanted, strict=True)}
        _create(store, table, {"period": "DATE", **types, "release_id": store.types["text"]})
        return wanted
    _check_shape(store, table, [column.name for column in columns[: -len(own)]], own, existing)
    fitted = []
    for column, kind in zip(columns, wanted, strict=True):
        before = existing[column.name]
        after = store.wider(before, kind)
        if after is None or (after == store.types["real"] and not _stays(store, table, column, before)):
            raise does_not_fit(store.key, table, column, before)
        if after != before:
            store.run(f"ALTER TABLE {store.place(table)} ALTER COLUMN {quoted(column.name)} TYPE {after}")
        fitted.append(after)
    return fitted


def _stays(store: TableStore, table: str, column: PublicColumn, before: str) -> bool:
    """Return whether old and new keys stay what they are in a column of floats."""
    if before == store.types["real"]:
        return _exactly_real(column.values)
    old = store.run(f"SELECT DISTINCT {quoted(column.name)} FROM {store.place(table)}")
    return _exactly_real([*column.values, *(value for (value,) in old)])


def _columns(release: Release) -> tuple[PublicColumn, ...]:
    """Return the columns of a release, in its order, with the types that its Parquet file has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(release.to_bytes())).read(use_threads=False)
    return tuple(_column(name, table.column(place)) for place, name in enumerate(table.column_names))


def _exactly_real(values: Iterable[Key]) -> bool:
    """Return whether each of these numbers is one that a column of floats holds as it is."""
    return all(
        value is None or isinstance(value, float) or decimal.Decimal(float(value)) == decimal.Decimal(value)
        for value in values
    )


def _column(name: str, keys: Any) -> PublicColumn:
    import pyarrow as pa

    kinds = {
        "boolean": pa.types.is_boolean,
        "natural": pa.types.is_unsigned_integer,
        "integer": pa.types.is_integer,
        "real": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "date": pa.types.is_date,
        "instant": lambda candidate: pa.types.is_timestamp(candidate) and candidate.tz is not None,
        "timestamp": pa.types.is_timestamp,
    }
    arrow_type = keys.type
    kind = next((kind for kind, matches in kinds.items() if matches(arrow_type)), "text")
    values = tuple(map(canonical_key, keys.to_pylist()))
    digits, scale = (arrow_type.precision, arrow_type.scale) if kind == "decimal" else (0, 0)
    if pa.types.is_decimal256(arrow_type) and digits <= _MAX_DECIMAL_DIGITS:  # which Arrow alone knows
        keys = keys.cast(pa.decimal128(digits, scale))
    fine = kind in ("timestamp", "instant") and any(value is not None and value.nanosecond for value in values)
    return PublicColumn(name=name, kind=kind, arrow=keys, values=values, digits=digits, scale=scale, nanoseconds=fine)


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


def summarise(result: JobResult, beside: Sequence[Entry]) -> str:
    """Return the summary; it is made from what is public only, so a replay makes the same one.

    `beside`: the ledger's published entries about the period, the last one last.
    """
    period, revisions = result.job.period.text(result.day), {entry.release_id: entry.revision for entry in beside}

    def text(words: str) -> str:
        # Names, predicates and labels stand in all of it.
        return in_markdown(printable(words))

    lines = [f"# {text(result.job.dataset)}, {period}", ""]
    releases = [published.release for published in result.releases]
    for declared, release in ((published.declared, published.release) for published in result.releases):
        lines += [f"## {text(declared.name)}", "", text(describe(result.job, declared)), ""]
        lines += markdown_table(release, beside=releases)
        said = filter(None, (*remarks(release, releases), corrected(revisions.get(release.id, 1))))
        lines += [line for remark in said for line in ("", text(remark))]
        lines += ["", text(release.certificate.sentence()), "", f"Release `{release.id}`.", ""]
    for name, reason in result.unwritten.items():
        lines += [f"The file `{name}` is not written: {text(reason)}", ""]
    if result.together is not None:
        lines += ["## Together", "", text(result.together.sentence(period)), ""]
    lines += [
        f"Hash of the last of these releases in the ledger's chain: `{beside[-1].hash}`. Whether a ledger still "
        "has it, and all before it: `pkdp ledger verify LEDGER --head` with this hash.",
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
    words, follows = table.words(release.certificate.mechanism), following_beside(release, beside).texts
    counts = [word if text is None else f"{word}: {text}" for word, text in zip(words, follows, strict=True)]
    number = fitting(len(counts), most)
    rows = [[*keys, count] for keys, count in zip(table.keys[:number], counts, strict=False)]
    return [*table.columns, table.number], rows, len(counts) - number
