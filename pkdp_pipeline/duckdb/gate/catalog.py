"""What a policy names, looked up in the database's catalog: no data are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pkdp_pipeline.duckdb.gate.permitted import PermittedReleases
from pkdp_pipeline.duckdb.gate.policy import Policy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.duckdb.tables import column_named, resolve, type_name
from pkdp_pipeline.ledger import Ledger

__all__ = ["Catalogued", "look_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogued:
    """What the catalog says about a table of a policy.

    Attributes
    ----------
    unit : tuple of str
        The columns of the privacy unit in the catalog's spelling; empty where each row is a person.
    types : mapping of str to str
        The SQL types of the columns that may be asked about, without the values of an ENUM.
    """

    unit: tuple[str, ...]
    types: Mapping[str, str]


def look_up(policy: Policy, database: Path) -> dict[str, Catalogued]:
    """Check a policy against a database, and return what the catalog says about its tables.

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
        found = {}
        for name, table in policy.tables.items():
            columns = resolve(connection, name).columns
            found[name] = Catalogued(
                unit=tuple(column_named("unit", one, columns) for one in table.unit),
                types={
                    one: type_name(columns[one])
                    for one in (column_named("columns", given, columns) for given in table.columns)
                },
            )
        return found
    finally:
        connection.close()
