"""``source``: files, a table of a DuckDB file, or a table of a PostgreSQL database."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from pkdp_pipeline.jobs.environment import Address, public_address
from pkdp_pipeline.jobs.tables import ColumnKind, Columns, Name, Table

__all__ = ["DuckDBSourceTable", "FileSourceTable", "PostgresSourceTable", "SourceTable"]

Format = Literal["parquet", "csv"]

_SUFFIXES: Mapping[str, Format] = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}


class FileSourceTable(Table):
    """Files: a path, a pattern such as ``data/*.parquet``, or a list of them."""

    files: Columns
    format: Format = Field(default="parquet", description="By the files' suffix when left out.")
    delimiter: str = ","
    null: tuple[str, ...] = Field(default=("",), strict=False)
    types: dict[Name, ColumnKind] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _format_by_suffix(cls, content: Any) -> Any:
        if isinstance(content, dict) and "format" not in content and content.get("files"):
            files = content["files"] if isinstance(content["files"], list) else [content["files"]]
            found = {kind for suffix, kind in _SUFFIXES.items() for file in files if str(file).lower().endswith(suffix)}
            return {**content, "format": found.pop() if len(found) == 1 else "parquet"}
        return content

    @property
    def public_name(self) -> str:
        """What may be shown: the last part of each path."""
        return ", ".join(file.rstrip("/").rpartition("/")[2] for file in self.files)

    def relative_to(self, folder: Path) -> FileSourceTable:
        """Return the same table with absolute paths; a folder's own brackets are no pattern."""
        place = Path(glob.escape(str(folder)))
        files = tuple(file if "://" in file else str(place / file) for file in self.files)
        return self.model_copy(update={"files": files})


class _DatabaseTable(Table):
    """A table of a database, or a query."""

    table: Name | None = None
    query: Name | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError('needs either table = "schema.name" or query = "SELECT …", and not both.')
        return self

    @property
    def _what(self) -> str:
        return self.table or "query"


class DuckDBSourceTable(_DatabaseTable):
    """A table, a view or a query of a DuckDB file, which is opened read-only."""

    duckdb: Name

    @property
    def public_name(self) -> str:
        """What may be shown: the file's name and the table."""
        return f"{Path(self.duckdb).name}, {self._what}"

    def relative_to(self, folder: Path) -> DuckDBSourceTable:
        """Return the same table with an absolute path."""
        return self.model_copy(update={"duckdb": str(folder / self.duckdb)})


class PostgresSourceTable(_DatabaseTable):
    """A table, a view or a query of a PostgreSQL database."""

    postgres: Address = Field(repr=False)

    @property
    def address(self) -> str:
        """The whole address, which may hold a password."""
        return self.postgres

    @property
    def public_name(self) -> str:
        """What may be shown: host, database and table."""
        return f"{public_address(self.postgres)}, {self._what}"

    def relative_to(self, folder: Path) -> PostgresSourceTable:
        """Return the same table; an address is not relative to anything."""
        return self


def _as_table(value: object) -> object:
    return {"files": value} if isinstance(value, str | list) else value


def _tag(value: object) -> str | None:
    if isinstance(value, FileSourceTable | DuckDBSourceTable | PostgresSourceTable):
        value = dict(value)
    if not isinstance(value, dict):
        return None
    return next((key for key in ("files", "duckdb", "postgres") if key in value), None)


def _text_or_table(schema: dict[str, Any]) -> None:
    """Say in the JSON schema that a text or a list of texts stands for a table."""
    texts = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}
    schema["anyOf"] = [{"type": "string", "minLength": 1}, texts, *schema.pop("oneOf")]


SourceTable = Annotated[
    Annotated[FileSourceTable, Tag("files")]
    | Annotated[DuckDBSourceTable, Tag("duckdb")]
    | Annotated[PostgresSourceTable, Tag("postgres")],
    Discriminator(_tag),
    Field(json_schema_extra=_text_or_table),
    BeforeValidator(_as_table),
]
"""What a job reads from; a text or a list of texts stands for ``{ files = … }``."""
