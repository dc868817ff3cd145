"""``source``: a table of a PostgreSQL database, or of one that Ibis connects to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field

from pkdp_pipeline.jobs.environment import Address, AnyAddress
from pkdp_pipeline.jobs.source_tables import DatabaseTable
from pkdp_pipeline.ledger.database import public_address, public_url


class PostgresSourceTable(DatabaseTable):
    """A table, a view or a query of a PostgreSQL database."""

    reader: ClassVar[str] = "pkdp_pipeline.extras.connect.postgres:PostgresSource"

    postgres: Address = Field(
        repr=False, description='The address, or "${NAME}": an environment variable that holds it.'
    )

    @property
    def postgres_database(self) -> str:
        """See `DatabaseTable`."""
        return public_address(self.postgres)

    @property
    def public_name(self) -> str:
        """Host, database and table."""
        return f"{self.postgres_database}, {self._what}"


class IbisSourceTable(DatabaseTable):
    """A table, a view or a query of a database that Ibis connects to; it is counted there."""

    reader: ClassVar[str] = "pkdp_pipeline.extras.connect.ibis:IbisSource"
    rows_stay: ClassVar[str] = (
        "rows of a source that Ibis connects to stay in its database: remove retention and the expectations of "
        "[checks], and write checks.rows, checks.columns and checks.fresh."
    )
    _levels: ClassVar[int] = 3

    ibis: AnyAddress = Field(
        repr=False, description='The address, as ibis.connect takes it, or "${NAME}": an environment variable.'
    )

    @property
    def scheme(self) -> str:
        """How the address begins: the name of the database's kind."""
        return urlsplit(self.ibis).scheme.replace("postgresql", "postgres")

    @property
    def postgres_database(self) -> str:
        """See `DatabaseTable`."""
        return public_address(self.ibis) if self.scheme == "postgres" else ""

    def counted_by(self, engine: str) -> str:
        """See `SourceTable.counted_by`; the database of the address is not asked by an audit."""
        return "ibis"

    def own_files(self) -> Iterator[Path]:
        """See `SourceTable.own_files`."""
        if self.scheme == "duckdb":
            yield Path(self.ibis.removeprefix("duckdb://").partition("?")[0])

    @property
    def public_name(self) -> str:
        """The kind of the database, its file's name or host and database, and the table."""
        files = [f"duckdb://{file.name}" for file in self.own_files()]
        return f"{(files or [public_url(self.ibis)])[0]}, {self._what}"
