"""Settings: what ``profiles.yml`` says to the dbt plugin, read strictly."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.evidence import read_evidence
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.releases.options import AttackerTable, BudgetTable, Columns, Declared, Name, Table

__all__ = ["Settings"]


def _period(value: object) -> object:
    # YAML reads 2013-01-02 as a date, Jinja writes text.
    return value if value is None else Period.parse(value).text


class Settings(Table):
    """The plugin's ``config``. Read it with `Settings.read`.

    Parameters
    ----------
    unit : str or list of str
        Columns that name a person, the same in every table.
    ledger : str
        A SQLite file, relative to the folder of the database, or a ``postgresql://`` URL.
    attacker : table, optional
        The fields of `AttackerModel`. Without it nothing is assumed, and only noise can be certified.
    dataset : str, default "default"
    period : str or date, optional
        What the data are about, where a call does not say.
    missing_unit, one_cell, order_by : optional
        As of `pkdp_pipeline.histogram`.
    budget, evidence : table or list of tables, optional
        As in job files.
    """

    unit: Columns
    ledger: Name
    attacker: AttackerTable = AttackerTable()
    dataset: Name = "default"
    period: Annotated[str | None, BeforeValidator(_period)] = None
    missing_unit: Literal["error", "drop"] = "error"
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error"
    order_by: Columns | None = None
    evidence: tuple[Declared, ...] = Field(default=(), strict=False)
    budget: tuple[BudgetTable, ...] = Field(default=(), strict=False)

    @field_validator("evidence", "budget", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _evidence_fits_together(self) -> Self:
        read_evidence([table.evidence() for table in self.evidence])
        return self

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Check what ``profiles.yml`` says.

        Raises
        ------
        ConfigError
            That names every key that is wrong, and what to write.
        """
        try:
            return cls.model_validate(dict(config))
        except ValidationError as error:
            complaints = map(_complaint, error.errors(include_url=False))
        raise ConfigError("\n".join(["the pkdp plugin's config in profiles.yml cannot be used:", *complaints]))

    def open_ledger(self, database: str) -> Ledger:
        """Open the ledger that belongs to a database file.

        Raises
        ------
        LedgerError, TemporaryError
            As of `Ledger.open`.
        """
        place = self.ledger
        if "://" not in place and place != ":memory:":
            # Beside the data: the same ledger, wherever dbt is started.
            place = str(Path(database).parent / place if _is_file(database) else Path(place))
        return Ledger.open(
            place,
            dataset=self.dataset,
            budget=[table.budget() for table in self.budget] or None,
            evidence=[table.evidence() for table in self.evidence] or None,
        )


def _is_file(database: str) -> bool:
    return database != ":memory:" and not database.startswith("md:")


def _complaint(detail: ErrorDetails) -> str:
    """Return one line: where in the config, and what is wrong."""
    place = ""
    for step in detail["loc"]:
        place += f"[{step + 1}]" if isinstance(step, int) else f".{step}"
    message, given = detail["msg"].removeprefix("Value error, "), detail.get("input")
    if detail["type"] == "missing":
        message = "is required."
    elif detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        message = "kind must name the evidence, such as {kind: one_day_protected}."
    elif detail["type"] == "float_type" and isinstance(given, str) and _is_number(given):
        message = "is text in YAML: write a number, with a decimal point (1.0e-6, not 1e-6) and without quotes."
    elif isinstance(given, datetime.date):
        message = f"{message.removesuffix('.')}; YAML reads it as a date: write it in quotes."
    return f"  {place.lstrip('.')}: {message}" if place else f"  {message}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
