"""``source``: files, or a table of a DuckDB file.

Other sources are plugins: each a `SourceTable` under the key by which a job file names it.
"""

from __future__ import annotations

import codecs
import difflib
import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from pkdp_pipeline.engines.rows import quoted
from pkdp_pipeline.jobs.tables import PathName, local
from pkdp_pipeline.ledger.database import public_address
from pkdp_pipeline.plugins import hook, hooks, load
from pkdp_pipeline.releases.options import ColumnKind, Name, Names, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pkdp_pipeline.jobs.sources.source import Needs, Source
    from pkdp_pipeline.jobs.tables import OutputTable, RecordsTable, RetentionTable

Format = Literal["parquet", "csv", "excel"]

_SUFFIXES: Mapping[str, Format] = MappingProxyType(
    {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv", ".xlsx": "excel"}
)
_OF_CSV = ("delimiter", "encoding", "decimal", "date_format", "null", "types")


class SourceTable(Table):
    """The source of a job, as its file says it."""

    rows_stay: ClassVar[str] = ""
    """Where no row leaves the source: what to say of a job that asks for rows."""

    @property
    def public_name(self) -> str:
        """The name that may be shown."""
        raise NotImplementedError

    reader: ClassVar[str] = ""
    """The function that opens it, as ``module:function``, imported when needed; it takes the table and `Needs`."""

    def open(self, needs: Needs) -> Source:
        """Return it open for reading."""
        source: Source = load(self.reader)(self, needs)
        return source

    def check_engine(self, engine: str) -> None:
        """Raise `ValueError` where the engine of the job does not read it."""
        if engine != "duckdb":
            raise ValueError('engine: databases are read with engine = "duckdb": write that, or leave engine out.')

    def counted_by(self, engine: str) -> str:
        """Return which engine of `engines` counts its rows in a job with this one."""
        return engine

    def own_files(self) -> Iterator[Path]:
        """Yield the files of this machine that it reads."""
        yield from ()


class FileSourceTable(SourceTable):
    """Files: a path, a pattern such as ``data/*.parquet``, or a list of them."""

    def open(self, needs: Needs) -> Source:
        """Return them open for reading: with the reader of their format, or of a plugin for the engine of the job."""
        if needs.engine != "duckdb":
            source: Source = hook("sources", f"files:{needs.engine}")(self, needs)
        elif self.format == "parquet":
            source = load("pkdp_pipeline.jobs.sources.files:open_parquet")(self, needs)
        else:
            source = load("pkdp_pipeline.jobs.sources.csv_files:CsvSource")(self, needs.of, needs.period)
        return source

    files: Names = Field(
        description="A file, a pattern such as data/*.parquet, or a list of them, relative to the job file; with "
        'engine = "spark" also a folder or an address.',
        examples=["data/*.parquet", ["in/2013.csv", "in/2014.csv"]],
    )
    format: Format = Field(default="parquet", description="By the files' suffix when left out.")
    sheet: Name | None = Field(
        default=None, description="Excel: which sheet of the workbook, where it has several.", examples=["2026"]
    )
    delimiter: str = Field(default=",", description="CSV: the sign between two values.", examples=[";"])
    encoding: str = Field(
        default="utf-8",
        description="CSV: how the text is encoded; text other than UTF-8 is read into memory.",
        examples=["windows-1252", "latin-1"],
    )
    decimal: Literal[".", ","] = Field(default=".", description="CSV: the decimal sign of a number.", examples=[","])
    date_format: str | None = Field(
        default=None,
        description="CSV: how dates are written, with %d, %m and %Y, and the dates before times; as ISO 8601 has them "
        "when left out. Without %d a value is a whole month.",
        examples=["%d.%m.%Y"],
    )
    null: Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)] = (
        Field(default=("",), strict=False, description="CSV: the texts of a missing value.", examples=[["", "NA"]])
    )
    types: dict[Name, ColumnKind] = Field(
        default_factory=dict,
        description="CSV: what columns hold; all others hold text, and the period column dates.",
        examples=[{"tailnum": "text", "date": "date"}],
    )

    @model_validator(mode="before")
    @classmethod
    def _format_by_suffix(cls, content: Any) -> Any:
        if not isinstance(content, dict) or "format" in content:
            return content
        files = content.get("files")
        names = [str(file).lower() for file in (files if isinstance(files, list) else [files])]
        formats = {next((kind for end, kind in _SUFFIXES.items() if name.endswith(end)), None) for name in names}
        if len(formats - {None}) > 1:
            raise ValueError("the files are of several formats: keep those of one.")
        return {**content, "format": formats.pop()} if len(formats) == 1 and None not in formats else content

    @field_validator("files")
    @classmethod
    def _can_be_read(cls, files: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        # Brackets in the folder's own name are no pattern.
        folder = "" if info.context is None else glob.escape(str(info.context))
        return tuple(file if "://" in file else os.path.join(folder, str(local(file))) for file in files)

    hive: dict[Name, Literal["text", "number", "boolean", "date"]] = Field(
        default_factory=dict,
        description="Parquet: columns that the names of folders tell, as in date=2013-01-02, and what they hold.",
        examples=[{"date": "date"}],
    )

    @field_validator("encoding")
    @classmethod
    def _is_an_encoding(cls, name: str) -> str:
        try:
            "a".encode(name)
        except (LookupError, UnicodeError, ValueError):
            raise ValueError(
                "must be the name of a text encoding that Python knows, such as 'utf-8', 'windows-1252' or 'latin-1'."
            ) from None
        return "utf-8" if codecs.lookup(name).name in ("utf-8", "utf-8-sig", "ascii") else name

    @field_validator("date_format")
    @classmethod
    def _has_day_month_and_year(cls, form: str | None) -> str | None:
        parts = re.findall("%.?", form or "")
        signs = re.sub("%.?", "", form or "")
        months = sorted(parts) == ["%Y", "%m"]
        if form is not None and (not (months or sorted(parts) == ["%Y", "%d", "%m"]) or re.search(r"[\w+:]", signs)):
            raise ValueError(
                "must hold %d, %m and %Y, each once, and signs between them, as in '%d.%m.%Y'; without %d a value is a "
                "whole month."
            )
        return form

    @model_validator(mode="after")
    def _options_of_csv(self) -> Self:
        given = [key for key in _OF_CSV if key in self.model_fields_set]
        if given and self.format == "parquet":
            raise ValueError(f'{given[0]} is for CSV files: remove it, or write format = "csv".')
        if self.format == "excel" and {*given} & {"delimiter", "encoding"}:
            raise ValueError("delimiter and encoding are for CSV files: remove them; a workbook has neither.")
        if self.sheet is not None and self.format != "excel":
            raise ValueError('sheet is for Excel workbooks: remove it, or write format = "excel".')
        if self.hive and self.format != "parquet":
            raise ValueError("hive is for Parquet files: remove it; the columns of other files lie in them.")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise ValueError("delimiter must be one character, and neither a quote nor the end of a line.")
        if self.delimiter == self.decimal and self.format == "csv":
            raise ValueError("delimiter and decimal are the same character: write the delimiter that the files have.")
        return self

    def check_engine(self, engine: str) -> None:
        """See `SourceTable.check_engine`; Spark reads folders and addresses, too."""
        if engine == "spark":
            if self.hive:
                raise ValueError(
                    "hive: Spark finds the columns of folders itself: remove hive, and write the folder above them as "
                    "source."
                )
            return
        if any("://" in file for file in self.files):
            raise ValueError('source: must be a file; addresses are for engine = "spark".')
        if "format" not in self.model_fields_set:
            raise ValueError(
                "source: must be files that end in .parquet, .pq, .csv, .csv.gz or .xlsx; of a folder write "
                '"folder/*.parquet", and for another suffix source = { files = "…", format = "csv" }.'
            )

    @property
    def public_name(self) -> str:
        """The last part of each path."""
        return ", ".join(file.rstrip("/").rpartition("/")[2] for file in self.files)

    def own_files(self) -> Iterator[Path]:
        """See `SourceTable.own_files`."""
        for pattern in self.files:
            yield from () if "://" in pattern else map(Path, glob.iglob(pattern, recursive=True))


class DatabaseTable(SourceTable):
    """A table of a database, or a query."""

    _levels: ClassVar[int] = 2

    table: Name | None = Field(
        default=None, description="A table or a view: its name, or schema.name.", examples=["public.flights"]
    )
    query: Name | None = Field(
        default=None,
        description="One SELECT statement instead of a table.",
        examples=["SELECT date, tailnum, carrier FROM flights WHERE NOT cancelled"],
    )

    @field_validator("table")
    @classmethod
    def _is_a_name(cls, table: str | None) -> str | None:
        if table is not None and (not all(table.split(".")) or table.count(".") >= cls._levels or '"' in table):
            raise ValueError('must be the name of a table, such as "flights" or "public.flights", without quotes.')
        return table

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.table is not None and self.query is not None:
            raise ValueError("has table and query: remove one of them.")
        if self.table is None and self.query is None:
            raise ValueError('says not what to read: write table = "schema.name" or query = "SELECT …".')
        return self

    @property
    def rows_sql(self) -> str:
        """SQL that stands for the rows after FROM; a name is taken as it is written, capitals and all."""
        if self.query is not None:
            # A comment at its end must not take the bracket with it.
            return f"({self.query}\n)"
        return ".".join(map(quoted, str(self.table).split(".")))

    @property
    def _what(self) -> str:
        return self.table or "query"

    @property
    def postgres_database(self) -> str:
        """The public name of the PostgreSQL database that it lies in; empty for another."""
        return ""


class DuckDBSourceTable(DatabaseTable):
    """A table, a view or a query of a DuckDB file, which is opened read-only."""

    reader: ClassVar[str] = "pkdp_pipeline.jobs.sources.relations:open_duckdb"

    duckdb: PathName = Field(
        description="The file, relative to the job file; opened read-only.", examples=["warehouse.duckdb"]
    )

    def own_files(self) -> Iterator[Path]:
        """See `SourceTable.own_files`."""
        yield Path(self.duckdb)

    @property
    def public_name(self) -> str:
        """The file's name and the table."""
        return f"{Path(self.duckdb).name}, {self._what}"


def sources() -> Mapping[str, type[SourceTable]]:
    """Return the sources that a job file can name, by the key that tells them apart: ours, and those of plugins."""
    others = {name: load(place) for name, place in hooks("sources") if ":" not in name}
    return MappingProxyType({"files": FileSourceTable, "duckdb": DuckDBSourceTable} | others)


def one_of(sources: Mapping[str, type[SourceTable]]) -> Any:
    """Return the type of a value that is a table of one of these sources; texts stand for ``{ files = … }``."""

    def as_table(value: object) -> object:
        if isinstance(value, str | list):
            return {"files": value}
        if isinstance(value, dict):
            given = [key for key in sources if key in value]
            if len(given) > 1:
                raise ValueError(f"has {' and '.join(given)}: a job reads one source, remove the others.")
            if not given:
                close = next((match for key in value for match in difflib.get_close_matches(key, sources, n=1)), None)
                hint = f"; did you mean {close!r}?" if close else "."
                raise ValueError(f"says not what to read: write one of {', '.join(sources)}{hint}")
        return value

    def tag(value: object) -> str | None:
        matches = (key for key, kind in sources.items() if isinstance(value, kind))
        return next((key for key in sources if isinstance(value, dict) and key in value), next(matches, None))

    def text_or_table(schema: dict[str, Any]) -> None:
        texts = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}
        schema["anyOf"] = [{"type": "string", "minLength": 1}, texts, *schema.pop("oneOf")]

    return Annotated[
        Union[tuple(Annotated[kind, Tag(key)] for key, kind in sources.items())],  # noqa: UP007 (made of a tuple)
        Discriminator(tag),
        Field(json_schema_extra=text_or_table),
        BeforeValidator(as_table),
    ]


class _OneOfAll:
    """Reads a table of any source that there is when the first job is read: plugins may import all of this package."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(one_of(sources()))


AnySource = Annotated[SourceTable, _OneOfAll()]
"""The source of a job; a text or a list of texts stands for ``{ files = … }``."""


def misplaced(
    source: SourceTable,
    output: OutputTable,
    retention: RetentionTable | None,
    records: RecordsTable | None,
    ledger: str,
    releases: Sequence[str],
) -> list[str]:
    """Return what is wrong with where the files of a job lie, which has absolute paths; one line for each.

    `releases`: their names.
    """
    kept = None if retention is None else retention.directory
    beside = [
        ("retention.directory", kept, "output.directory", output.directory),
        ("output.directory", output.directory, "retention.directory", kept),
        ("output.duckdb", output.duckdb, "retention.directory", kept),
    ]
    if records is not None:
        places = (("records.directory", records.directory), ("records.lineage", records.lineage))
        beside += [(key, place, "output.directory", output.directory) for key, place in places]
    problems = [
        f"{key}: lies inside {other}, and what is private must not lie where the public is: put one beside the other."
        for key, place, other, folder in beside
        if place and folder and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    ]
    read = {os.path.realpath(file) for file in source.own_files()}
    ledger_file = "" if "://" in ledger else os.path.realpath(ledger)
    written = "" if output.duckdb is None else os.path.realpath(output.duckdb)
    same = [
        ("output.duckdb", "source", written in read),
        ("ledger", "source", ledger_file in read),
        ("output.duckdb", "ledger", bool(written) and written == ledger_file),
    ]
    problems += [f"{key}: is the {other}'s file: write another." for key, other, is_same in same if is_same]
    if isinstance(source, DatabaseTable) and output.postgres is not None and source.table is not None:
        schema, _, table = source.table.rpartition(".")
        together = source.postgres_database == public_address(output.postgres)
        if together and (schema or "public") == (output.schema_ or "public"):
            problems += [
                f"release[{number}].name: its table {name!r} would replace the source's: rename the release, "
                "or write another schema under [output]."
                for number, name in enumerate(releases, 1)
                if name == table
            ]
    return problems
