"""What a policy names, looked up in the database's catalog: no data are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pkdp_pipeline.duckdb.gate.permitted import PermittedReleases
from pkdp_pipeline.duckdb.gate.policy import Policy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.duckdb.tables import column_named, resolve
from pkdp_pipeline.ledger import Ledger

if TYPE_CHECKING:
    import duckdb

__all__ = ["column_types"]


def column_types(policy: Policy, database: Path) -> dict[str, dict[str, str]]:
    """Return the SQL types of the columns that a policy names, by table and as the policy spells them.

    Raises
    ------
    ConfigError
        If the database cannot be opened, or the policy does not fit it; the message names the policy's key.
    TemporaryError
        If another process is writing to the database.
    """
    connection = open_vault(database)
    try:
        with Ledger.open(":memory:") as ledger:  # the policy's own is not touched
            PermittedReleases(policy, connection.cursor, ledger)
        return {name: _types(connection, policy, name) for name in policy.tables}
    finally:
        connection.close()


def _types(connection: duckdb.DuckDBPyConnection, policy: Policy, name: str) -> dict[str, str]:
    found = resolve(connection, name).columns
    return {column: found[column_named("columns", column, found)] for column in policy.tables[name].columns}
