"""What a policy names, looked up in the database's catalog: no data are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pkdp_pipeline.duckdb.gate.permitted import PermittedReleases
from pkdp_pipeline.duckdb.gate.policy import Policy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.duckdb.tables import column_named, resolve, type_name
from pkdp_pipeline.duckdb.views import linking_parts
from pkdp_pipeline.errors import LedgerError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.sqlite_database import resolved_file

__all__ = ["Catalogued", "check_ledger", "look_up", "make_ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogued:
    """What the catalog says about a table of a policy.

    Attributes
    ----------
    unit : tuple of str
        The columns of the privacy unit in the catalog's spelling; empty where each row is a person.
    types : mapping of str to str
        The SQL types of the columns that may be asked about, without the values of an ENUM.
    links : tuple of str
        What in it, if it is a view, makes rows depend on other rows or on chance.
    """

    unit: tuple[str, ...]
    types: Mapping[str, str]
    links: tuple[str, ...] = ()


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
            table_found = resolve(connection, name)
            columns = table_found.columns
            found[name] = Catalogued(
                unit=tuple(column_named("unit", one, columns) for one in table.unit),
                types={
                    one: type_name(columns[one])
                    for one in (column_named("columns", given, columns) for given in table.columns)
                },
                links=tuple(linking_parts(connection, f"FROM {table_found.sql}")),
            )
        return found
    finally:
        connection.close()


def check_ledger(policy: Policy) -> None:
    """Check that the policy's ledger can be a file where it is, and write nothing.

    Raises
    ------
    LedgerError
        If its folder does not exist, or it is a folder itself; as when it is opened.
    """
    if policy.ledger_file is not None:
        resolved_file(str(policy.ledger_file))


def make_ledger(policy: Policy) -> None:
    """Make the file of a ledger that is not there yet, for its owner alone: it says what was asked and published.

    Raises
    ------
    LedgerError
        As of `check_ledger`, or if the file cannot be made.
    """
    file = policy.ledger_file
    if file is None:
        return
    check_ledger(policy)
    try:
        if not file.exists():
            with Ledger.open(file):  # nothing stands in it yet
                file.chmod(0o600)
    except OSError as error:
        raise LedgerError(f"the ledger {str(file)!r} cannot be opened: {error.strerror}.") from error
