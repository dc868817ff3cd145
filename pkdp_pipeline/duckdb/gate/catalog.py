"""What a policy names, looked up in the database's catalog: no data are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.duckdb.gate.policy import Policy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.duckdb.tables import column_named, resolve
from pkdp_pipeline.errors import ArgumentError, ConfigError

if TYPE_CHECKING:
    import duckdb

__all__ = ["column_types"]


def column_types(policy: Policy, database: Path) -> dict[str, dict[str, str]]:
    """Return the SQL types of the columns that a policy names, by table and as the policy spells them.

    Raises
    ------
    ConfigError
        If the database cannot be opened, or lacks a table or a column; the message names the policy's key.
    TemporaryError
        If another process writes the database at the moment.
    """
    connection = open_vault(database)
    try:
        return {name: _types(connection, policy, name) for name in policy.tables}
    finally:
        connection.close()


def _types(connection: duckdb.DuckDBPyConnection, policy: Policy, name: str) -> dict[str, str]:
    table = policy.tables[name]
    try:
        found = resolve(connection, name).columns
        for key, columns in (("unit", table.unit), ("order_by", table.order_by or ())):
            for column in columns:
                column_named(key, column, found)
        return {column: found[column_named("columns", column, found)] for column in table.columns}
    except ArgumentError as error:
        raise ConfigError(f"the policy's tables.{name} does not fit the database: {error}") from None
