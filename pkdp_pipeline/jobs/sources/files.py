"""The files of a source: which a pattern finds, what columns they agree on, and Parquet as DuckDB reads it.

How CSV files are written: encoding, header, and the forms of numbers, dates and times; and what to say of them.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeVar
from urllib.parse import unquote

from pkdp_pipeline.engines.memory import DIGITS
from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.jobs.sources.source import DAYS, Kind, Needs, check_unique
from pkdp_pipeline.plugins import hook

if TYPE_CHECKING:
    import duckdb

    from pkdp_pipeline.jobs.source_tables import FileSourceTable

Answer = TypeVar("Answer")

_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"


@dataclass(frozen=True, slots=True)
class Form:
    """How values of a kind are written, under which type they are read, and how to say so."""

    pattern: str
    sql_type: str
    example: str

    def words(self, date_format: str | None = None) -> str:
        """Return how values are written, dates in a form of theirs."""
        return self.example.format(day=date(2013, 1, 31).strftime(date_format or "%Y-%m-%d"))


FORMS: Mapping[Kind, Form] = {
    "number": Form(r"[+-]?[0-9]+", "BIGINT", "whole numbers of at most 64 bits"),
    "real": Form(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", "DOUBLE", "numbers such as 1.5, with a point"),
    "boolean": Form(r"(?i)true|false", "BOOLEAN", "true or false"),
    "date": Form(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "DATE", "dates such as {day}"),
    "timestamp": Form(_TIME, "TIMESTAMP", "timestamps such as {day}T23:59:00, without a time zone"),
    "instant": Form(
        _TIME + r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)",
        "TIMESTAMP WITH TIME ZONE",
        "timestamps with an offset, such as {day}T23:59:00+01:00",
    ),
}

_PARTS: Mapping[str, str] = {"%Y": "([0-9]{4})", "%m": "([0-9]{1,2})", "%d": "([0-9]{1,2})"}
DATE_FORMATS = ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%m/%Y")
"""Forms of dates that are told apart in an error."""

MIDNIGHT = r".*[T ]24:00.*"
"""The end of a day, which DuckDB reads as the day after, and others not at all."""

DECIMAL_COMMA = r"[+-]?[0-9]*,[0-9]+"


@cache
def date_pattern(date_format: str) -> str:
    """Return the pattern of dates of a format; its groups are its parts, in their order."""
    return "".join(_PARTS.get(part, re.escape(part)) for part in re.split(r"(%[Ymd])", date_format))


def other_order(date_format: str | None) -> str | None:
    """Return the key for the same form with day and month exchanged; None where nobody writes it so."""
    match = re.fullmatch(r"(%[dm])([/-])(%[dm])(\W%Y)", date_format or "")
    return match and f'date_format = "{match[3]}{match[2]}{match[1]}{match[4]}" in source'


def likely_kind(texts: Sequence[str], date_format: str | None = None) -> tuple[Kind, str | None]:
    """Return what texts look like, and the form of their dates where they are not written as ISO 8601 has them.

    `date_format`: the only form that is looked for.
    """
    if not texts:
        return "text", None
    plain: tuple[tuple[Kind, str], ...] = (
        ("number", FORMS["number"].pattern),
        ("real", FORMS["real"].pattern),
        ("boolean", FORMS["boolean"].pattern),
        ("real", DECIMAL_COMMA),
    )
    for kind, pattern in plain:
        if all(re.fullmatch(pattern, text) for text in texts):
            return kind, None
    turned = ("%m/%d/%Y", "%m-%d-%Y")
    for form in (date_format,) if date_format else ("%Y-%m-%d", *DATE_FORMATS, *turned):
        days = [re.match(date_pattern(form), text) for text in texts]
        with suppress(ValueError):
            isos = [datetime.strptime(day[0], form).date().isoformat() + day.string[day.end() :] for day in days if day]
            for kind in DAYS:
                if len(isos) == len(texts) and all(re.fullmatch(FORMS[kind].pattern, iso) for iso in isos):
                    return kind, None if form == "%Y-%m-%d" else form
    return "text", None


def as_iso(name: str, date_format: str) -> str:
    """Return SQL that writes what begins with a date of a format as ISO 8601 does; NULL for what does not.

    A month stands for its first day.
    """
    pattern, parts = date_pattern(date_format), re.findall(r"%[Ymd]", date_format)
    groups = {part: f"regexp_extract({name}, {literal('^' + pattern)}, {parts.index(part) + 1})" for part in parts}
    padded = [f"lpad({groups[part]}, 2, '0')" if part in groups else "'01'" for part in ("%m", "%d")]
    rest = f"regexp_replace({name}, {literal('^' + pattern)}, '')"
    iso = " || '-' || ".join([groups["%Y"], *padded])
    return f"CASE WHEN regexp_matches({name}, {literal('^' + pattern)}) THEN {iso} || {rest} END"


ENCODED = (
    ' It is no text in the declared encoding, or none at all: write encoding = "windows-1252" in source, or '
    "another one."
)


def no_csv(file: str, why: str = "") -> ConfigError:
    """Return what to say of a file that is no CSV as declared."""
    return ConfigError(
        f"source {file!r} cannot be read to its end as CSV: a file must be text (UTF-8, or in the declared encoding) "
        'with a header that names every column, the declared delimiter, " around texts that hold a delimiter, a quote '
        f"or a line break, and in every line as many values as the header has names.{why}"
    )


def ends_differ(file: str, table: FileSourceTable) -> bool:
    """Return whether lines of a file end in more than one way, line breaks within quotes aside."""
    ends: set[str] = set()
    quoted = False
    try:
        with _opened(file, table.encoding) as text:
            for line in text:
                quoted ^= line.count('"') % 2 == 1
                ends |= set() if quoted else {line[len(line.rstrip("\r\n")) :]} - {""}
                if len(ends) > 1:
                    return True
    except _UNREADABLE:
        pass
    return False


_UNREADABLE = (OSError, EOFError, UnicodeError, csv.Error, zlib.error)


class Utf8:
    """Files as UTF-8: what is something else, such as a workbook, is read into memory, until `close`."""

    def __init__(self, table: FileSourceTable) -> None:
        self._table = table
        self._copies: dict[str, tuple[str, IO[bytes]]] = {}

    def header(self, file: str) -> tuple[str, ...]:
        """Return the names of a file's columns; a workbook is read for it.

        Raises `ConfigError` if it has no header, or one that the declared delimiter or encoding does not fit.
        """
        if self._table.format != "excel":
            return _read_header(file, self._table)
        write_as_csv = hook("sources", "files:excel")
        return self._write(file, partial(write_as_csv, file, self._table))

    def path(self, file: str) -> tuple[str, bool]:
        """Return the path under which a file is UTF-8, and whether it is compressed there.

        Raises `ConfigError` if it is no text in the declared encoding.
        """
        if file not in self._copies and self._table.encoding == "utf-8":
            return file, _is_compressed(file)
        problem = None
        if file not in self._copies:
            try:
                with _opened(file, self._table.encoding) as text:
                    self._write(file, partial(shutil.copyfileobj, text))
            except _UNREADABLE as error:
                problem = no_csv(file, ENCODED if isinstance(error, UnicodeError) else "")
        if problem is not None:
            raise problem
        return self._copies[file][0], False

    def file(self, path: str) -> str:
        """Return the file that has this path."""
        return next((file for file, (copied_path, _) in self._copies.items() if copied_path == path), path)

    def close(self) -> None:
        """Forget what is in memory."""
        for _, stream in self._copies.values():
            stream.close()

    def _write(self, file: str, write: Callable[[Any], Answer]) -> Answer:
        path, stream = _in_memory()
        try:
            answer = write(codecs.getwriter("utf-8")(stream))
            stream.flush()
        except BaseException:
            stream.close()
            raise
        self._copies[file] = path, stream
        return answer


def _is_compressed(file: str) -> bool:
    """Return whether a file is compressed, by its name."""
    return file.lower().endswith(".gz")


def _opened(file: str, encoding: str) -> TextIO:
    """Return a file open for reading as text."""
    how: Any = gzip.open if _is_compressed(file) else open
    text: TextIO = how(file, "rt", encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline="")
    return text


def _in_memory() -> tuple[str, IO[bytes]]:
    """Return the path of a new file, and the file: in memory alone where the system has that, else gone when closed."""
    create = getattr(os, "memfd_create", None)
    if create is None:
        stream = tempfile.NamedTemporaryFile()  # noqa: SIM115 (closed with the source)
        return stream.name, stream
    memory = os.fdopen(create("pkdp"), "w+b")
    return f"/proc/self/fd/{memory.fileno()}", memory


def _read_header(file: str, table: FileSourceTable) -> tuple[str, ...]:
    """Return the names of a file's columns.

    Raises `ConfigError` if it has no header, or one that the declared delimiter or encoding does not fit.
    """
    header: list[str] = []
    first: list[str] = []
    why = ""
    try:
        with _opened(file, table.encoding) as lines:
            rows = csv.reader(lines, delimiter=table.delimiter, strict=True)
            header = next(rows, [])
            first = next((row for row in rows if row), [])
    except _UNREADABLE as error:
        why = ENCODED if isinstance(error, UnicodeError) else ""
    if len(header) == 1 and (other := next((sign for sign in ";\t|," if sign in header[0]), None)) is not None:
        raise ConfigError(
            f"source {file!r} has one column when it is cut at {table.delimiter!r}, and {other!r} in its name: write "
            f"delimiter = {json.dumps(other)} in source."
        )
    if not header or not all(header):
        raise no_csv(file, why)
    check_unique(header, f"source {file!r}")
    if len(first) == len(header) + 1 and not first[-1]:  # which DuckDB drops
        raise ConfigError(
            f"source {file!r} has a delimiter at the end of its lines, and none at the end of its header: one value "
            "too many for the columns that are named. Name a last column, or remove the delimiters."
        )
    return tuple(header)


_MISSING = "__HIVE_DEFAULT_PARTITION__"
_NO_COLUMNS: Mapping[str, Kind] = MappingProxyType({})


def open_parquet(table: FileSourceTable, needs: Needs) -> RelationSource:
    """Return Parquet files, open for reading: one relation of the columns on which they agree.

    Raises `ConfigError` if they do not exist, are no Parquet files, disagree on what the job needs, or do not lie in
    the folders that name columns.
    """
    import duckdb

    name, files = shown(table.files), files_of(table.files)
    opened = states_of(files)
    check_parquet_columns(files, needs.of, needs.unit)
    _check_folders(files, table.hive)
    connection = connect()
    try:
        # A year of days is read from one connection: what the files say about themselves is read once.
        connection.execute("SET parquet_metadata_cache = true")
        columns = agreed_parquet_columns(connection, files, needs, name, table.hive)
        with suppress(duckdb.Error):
            relation = _read(connection, files, table.hive).project(", ".join(map(quoted, columns)))
            broken = no_parquet(name, "to its end ")
            # DuckDB opens the files anew for each question.
            return RelationSource(
                connection, relation, broken, lambda: opened is not None and states_of(files) == opened
            )
        raise no_parquet(name)
    except BaseException:
        connection.close()
        raise


def files_of(patterns: Sequence[str], *, folders: bool = False) -> tuple[str, ...]:
    """Return the files that paths and patterns stand for, each once, by name.

    `patterns`: absolute paths. The path of a file is no pattern. `folders`: whether a path may be a folder. Raises
    `ConfigError` if one of them stands for no file, or a file may not be read.
    """
    files: dict[str, None] = {}
    for pattern in patterns:
        path = _exact(pattern)
        if Path(path).is_file() or (folders and Path(path).is_dir()):
            files[path] = None
            continue
        matches = sorted(match for match in glob.glob(pattern, recursive=True) if Path(match).is_file())
        if not matches:
            is_pattern = glob.has_magic(re.sub(r"\[[*?\[]\]", "", pattern))
            problem = "matches no file" if is_pattern else "does not exist or is not a file"
            raise ConfigError(f"source {path!r} {problem}; correct the path.")
        files.update(dict.fromkeys(matches))
    for path in files:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"source {path!r} may not be read by this user: check the permissions of the file.")
    return tuple(files)


def states_of(files: Sequence[str]) -> tuple[tuple[int, ...], ...] | None:
    """Return what tells states of files apart: a file that is replaced or written has another one; None: unknown."""
    try:
        states = map(os.stat, files)
        return tuple(
            (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns) for state in states
        )
    except OSError:
        return None


def _exact(pattern: str) -> str:
    """Return a path as it is written without the signs by which a pattern names itself."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def escaped(file: str) -> str:
    """Return the pattern that stands for one file in DuckDB."""
    return re.sub(r"([*?\[])", r"[\1]", file)


def shown(patterns: Sequence[str]) -> str:
    """Return how a source is named in messages."""
    return ", ".join(map(_exact, patterns))


def agreed_columns(
    schemas: Mapping[str, Mapping[str, str]], needed: Callable[[Collection[str]], Sequence[str]], source: str
) -> tuple[str, ...]:
    """Return the columns that all files have under one type, in the order of the first file.

    `schemas` holds for each file its column names and their types; `needed` returns which columns are needed. Raises
    `ConfigError`, naming a column that is needed and some files lack, or hold under another type, and one of these
    files.
    """
    first = next(iter(schemas.values()))
    somewhere = list(dict.fromkeys(column for schema in schemas.values() for column in schema))
    for column in needed(somewhere):
        types: dict[str | None, str] = {}
        for file, schema in schemas.items():
            types.setdefault(schema.get(column), os.path.basename(file))
        if len(types) > 1:
            listed = " and ".join(f"{kind or 'missing'} in {file!r}" for kind, file in [*types.items()][:2])
            raise ConfigError(
                f"the files of source {source!r} must agree on their columns: {column!r} is {listed}; store it in all "
                "of them, under one type."
            )
    return tuple(column for column, kind in first.items() if all(s.get(column) == kind for s in schemas.values()))


def check_parquet_columns(
    files: Sequence[str], needed: Callable[[Sequence[str]], Collection[str]], unit: Collection[str]
) -> None:
    """Refuse files whose columns an engine would read as others, or as other values.

    Raises `ConfigError` if two columns have one name, letter case aside, or one that is needed holds decimals of more
    than 38 digits, which DuckDB reads as floating-point numbers: several would be one. So may be whole numbers kept as
    half floats, which it reads as longer ones: of `unit` they are refused as well.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        schema = pa.schema([])
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            schema = pq.read_schema(file)
        check_unique(schema.names, f"source {file!r}")
        for column in needed(schema.names):
            kind = schema.field(column).type
            if pa.types.is_decimal(kind) and kind.precision > DIGITS:
                raise ConfigError(
                    f"column {column!r} of source {file!r} holds decimals of up to {kind.precision} digits, and more "
                    f"than {DIGITS} are not told apart; store it as text, or as decimals of at most {DIGITS} digits."
                )
            if column in unit and pa.types.is_float16(kind):
                raise ConfigError(
                    f"unit column {column!r} of source {file!r} holds half floats, among which whole numbers may not "
                    "be told apart; store it as whole numbers or as text."
                )


def agreed_parquet_columns(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    needs: Needs,
    name: str,
    hive: Mapping[str, Kind] = _NO_COLUMNS,
) -> tuple[str, ...]:
    """Return the columns that all Parquet files have under one type; `name` is that of the source in messages.

    Raises `ConfigError` if one is no Parquet file, or they do not agree on a column that the job needs.
    """
    import duckdb

    schemas: dict[str, dict[str, str]] = {}
    for file in files:
        with suppress(duckdb.Error):
            relation = _read(connection, [file], hive)
            schemas[file] = dict(zip(relation.columns, map(str, relation.types), strict=True))
        if file not in schemas:
            raise no_parquet(file)
    return agreed_columns(schemas, needs.of, name)


def _check_folders(files: Sequence[str], hive: Mapping[str, Kind]) -> None:
    """Refuse files that do not lie in the folders that name columns, each once, or hold such a column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files if hive else ():
        folders = [folder.split("=", 1) for folder in Path(file).parts[:-1] if "=" in folder]
        if sorted(name for name, _ in folders) != sorted(hive):
            raise ConfigError(
                f"source {file!r} must lie in folders {', '.join(f'{name}=…' for name in hive)}, each once, and in no "
                "others of this form: correct hive under source in the job file, or the folders."
            )
        for name, value in folders:
            form = FORMS.get(hive[name])
            if form is not None and value != _MISSING and not re.fullmatch(form.pattern, unquote(value)):
                raise ConfigError(f"source {file!r}: the folder {name}=… must name {form.words()}, as hive says.")
        inside: list[str] = []
        with suppress(pa.ArrowException, OSError):  # what cannot be read, the engine says
            inside = [name for name in pq.read_schema(file).names if name in hive]
        if inside:
            raise ConfigError(
                f"source {file!r} has a column {inside[0]!r}, and lies in a folder of that name: remove one of them."
            )


def _read(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], hive: Mapping[str, Kind]
) -> duckdb.DuckDBPyRelation:
    paths = list(map(escaped, files))
    if not hive:  # the names of folders say nothing about columns
        return connection.read_parquet(paths, hive_partitioning=False)
    kinds = {name: FORMS[kind].sql_type if kind in FORMS else "VARCHAR" for name, kind in hive.items()}
    types = ", ".join(f"{literal(name)}: {kind}" for name, kind in kinds.items())
    listed = ", ".join(map(literal, paths))
    return connection.sql(f"FROM read_parquet([{listed}], hive_partitioning = true, hive_types = {{{types}}})")


def no_parquet(path: str, how_far: str = "") -> ConfigError:
    """Return what to say of data that are no Parquet, or break off."""
    return ConfigError(f"source {path!r} cannot be read {how_far}as a Parquet file.")
