"""The dbt-duckdb plugin: models select from ``pkdp_histogram`` and ``pkdp_count``; see `docs/dbt.md`."""

from __future__ import annotations

from typing import Any

import duckdb
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt_common.exceptions import DbtRuntimeError

from pkdp_pipeline.errors import PkdpError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.sql.curator import install
from pkdp_pipeline.sql.spec import Settings

#: How profiles name this module, and where it lies.
_NAMES = ("pkdp_pipeline.duckdb.dbt", __name__)


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt is not installed where types are checked
    """Gives the connections of a dbt run the pkdp macros; the keys of its config are those of `Settings`.

    dbt makes it once for each run, and calls `configure_connection` when it opens the database. All threads of a
    run have cursors of that connection, and with them the macros.
    """

    settings: Settings
    ledger: Ledger | None = None

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Read the config.

        Raises
        ------
        DbtRuntimeError
            If it cannot be used.
        """
        used = [plugin for plugin in (self.creds and self.creds.plugins) or [] if plugin.module in _NAMES]
        if len(used) > 1:
            raise DbtRuntimeError(
                f"{_NAMES[0]} is listed {len(used)} times under plugins, and a connection has one attacker, unit and "
                "ledger: list it once, and give each of the others a target of its own."
            )
        # dbt-duckdb mixes the target's DuckDB settings into the config of every plugin.
        foreign = set((self.creds and self.creds.settings) or {}) - set(Settings.model_fields)
        try:
            self.settings = Settings.read({key: plugin_config[key] for key in plugin_config if key not in foreign})
        except PkdpError as error:
            raise DbtRuntimeError(str(error)) from error

    def configure_connection(self, conn: duckdb.DuckDBPyConnection) -> None:
        """Open the ledger and install the macros.

        Raises
        ------
        DbtRuntimeError
            If either cannot be done.
        """
        settings = self.settings
        try:
            if self.ledger is None:
                self.ledger = settings.open_ledger(":memory:" if self.creds is None else self.creds.path)
            install(
                conn,
                attacker=settings.attacker.value,
                unit=settings.unit,
                ledger=self.ledger,
                period=settings.period,
                missing_unit=settings.missing_unit,
                one_cell=settings.one_cell,
                order_by=settings.order_by,
            )
        except PkdpError as error:
            raise DbtRuntimeError(str(error)) from error
