"""Settings: what files say about people, the attacker and the ledger, read strictly; and those of the dbt plugin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationError

from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import OneCell
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.question import MissingUnit
from pkdp_pipeline.releases.complaints import complaints, unusable
from pkdp_pipeline.releases.options import AttackerTable, Columns, Declarations, Name

PeriodName = Annotated[str | None, BeforeValidator(lambda value: value if value is None else Period.parse(value).text)]


class LedgerSettings(Declarations):
    """The keys of every such file: the attacker, the data set, the ledger and its terms.

    Parameters
    ----------
    attacker : table, optional
        The fields of `AttackerModel`. Without it nothing is assumed, and only noise can be certified.
    ledger : str, optional
        A ledger file or a ``postgresql://`` URL.
    period : str or date, optional
        The period of the data, where nothing else says it.
    budget, evidence : table or list of tables, optional
        As in job files.
    """

    attacker: Annotated[
        AttackerTable, BeforeValidator(lambda value: value.to_dict() if isinstance(value, AttackerModel) else value)
    ] = AttackerTable()
    ledger: Annotated[
        Name | None, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)
    ] = Field(default=None, repr=False)
    dataset: Name = "default"
    period: PeriodName = None

    @classmethod
    def checked(cls, content: Mapping[str, Any], name: str) -> Self:
        """Check what a file says. Raises a `ConfigError` that names every key that is wrong, and what to write."""
        try:
            return cls.model_validate(dict(content))
        except ValidationError as error:
            wrong = complaints(error)
        raise unusable(name, wrong)

    def opened(self, ledger: str) -> Ledger:
        """Open a ledger with the terms that are declared here."""
        budget, evidence = self.budgets() or None, self.declared() or None
        return Ledger.open(ledger, dataset=self.dataset, budget=budget, evidence=evidence)


class Settings(LedgerSettings):
    """The ``config`` of the dbt plugin in ``profiles.yml``.

    Parameters
    ----------
    unit : str or list of str
        Columns that name a person, the same in every table.
    ledger : str
        A SQLite file, relative to the folder of the database, or a ``postgresql://`` URL.
    missing_unit, one_cell, order_by : optional
        As of `pkdp_pipeline.histogram`.
    """

    unit: Columns
    ledger: Name = Field(repr=False)
    missing_unit: MissingUnit = "error"
    one_cell: OneCell = "error"
    order_by: Columns | None = None

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Self:
        """Check what ``profiles.yml`` says; see `LedgerSettings.checked`."""
        return cls.checked(config, "the pkdp plugin's config in profiles.yml")

    def open_ledger(self, database: str) -> Ledger:
        """Open the ledger that belongs to a database file; see `LedgerSettings.opened`."""
        place = self.ledger
        if "://" not in place and place != ":memory:" and database != ":memory:" and not database.startswith("md:"):
            place = str(Path(database).parent / place)  # beside the data: the same, wherever dbt is started
        return self.opened(place)
