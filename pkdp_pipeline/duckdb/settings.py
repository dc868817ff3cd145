"""Settings: what files say about people, the attacker and the ledger, read strictly; and those of the dbt plugin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.ledger import Budget, Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, read_evidence
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.releases.options import AttackerTable, BudgetTable, Columns, Declared, Name, Table

PeriodName = Annotated[str | None, BeforeValidator(lambda value: value if value is None else Period.parse(value).text)]

#: What may stand under a key, by its name.
_EXAMPLES = {
    "attacker": "{ p_max = 0.1 }",
    "columns": '["country"]',
    "delta": "1.0e-6",
    "domains": '{ country = ["US", "NO"] }',
    "epsilon": "1.0",
    "evidence": '{ kind = "one_day_protected" }',
    "k": "20",
    "ledger": '"ledger.sqlite"',
    "limits": "{ seconds = 30 }",
    "memory": '"1GB"',
    "name": '"the number of people present"',
    "p_max": "0.1",
    "tables": '{ visits = { unit = "person", columns = ["country"], k = 20 } }',
    "times": "10",
    "unit": '"person"',
}
#: What is wrong, by the type of pydantic's error; others are told in its words.
_RULES = {
    "missing": "is required",
    "float_type": "must be a number, without quotes and in YAML with a decimal point",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be a text, in quotes",
    "string_pattern_mismatch": "must be a size",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "tuple_type": "must be a table, or a list of tables",
    "union_tag_invalid": "has a kind that there is not",
    "union_tag_not_found": "must say its kind",
}


class LedgerSettings(Table):
    """What every such file says of the attacker, the data set, the ledger and its terms.

    Parameters
    ----------
    attacker : table, optional
        The fields of `AttackerModel`. Without it nothing is assumed, and only noise can be certified.
    ledger : str, optional
        A ledger file or a ``postgresql://`` URL.
    dataset : str, default "default"
    period : str or date, optional
        What the data are about, where nothing else says it.
    budget, evidence : table or list of tables, optional
        As in job files.
    """

    attacker: Annotated[
        AttackerTable, BeforeValidator(lambda value: value.to_dict() if isinstance(value, AttackerModel) else value)
    ] = AttackerTable()
    ledger: Annotated[
        Name | None, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)
    ] = None
    dataset: Name = "default"
    period: PeriodName = None
    budget: tuple[BudgetTable, ...] = Field(default=(), strict=False)
    evidence: tuple[Declared, ...] = Field(default=(), strict=False)

    @field_validator("evidence", "budget", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _evidence_fits_together(self) -> Self:
        self.declared()
        return self

    @classmethod
    def checked(cls, content: Mapping[str, Any], name: str) -> Self:
        """Check what a file says.

        Raises
        ------
        ConfigError
            That names every key that is wrong, and what to write.
        """
        try:
            return cls.model_validate(dict(content))
        except ValidationError as error:
            complaints = [_complaint(detail) for detail in error.errors(include_url=False)]
        raise ConfigError("\n".join([f"{name} cannot be used:", *complaints]))

    def budgets(self) -> tuple[Budget, ...]:
        """Return the declared budgets."""
        return tuple(table.budget() for table in self.budget)

    def declared(self) -> tuple[Evidence, ...]:
        """Return the declared evidence."""
        return read_evidence([table.evidence() for table in self.evidence])

    def opened(self, ledger: str) -> Ledger:
        """Open a ledger with the terms that are declared here.

        Raises
        ------
        LedgerError, TemporaryError
            As of `Ledger.open`.
        """
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
    ledger: Name
    missing_unit: Literal["error", "drop"] = "error"
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error"
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


def _complaint(detail: ErrorDetails) -> str:
    """Return one line: which key, what is wrong, and what may stand there."""
    place = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in detail["loc"]).lstrip(".")
    if detail["type"] == "value_error":
        message = detail["msg"].removeprefix("Value error, ")
    else:
        key = next((step for step in reversed(detail["loc"]) if isinstance(step, str)), "")
        message = _RULES.get(detail["type"], detail["msg"].replace("Input should be", "must be", 1))
        message += f": write, for example, {_EXAMPLES[key]}." if key in _EXAMPLES else "."
    return f"  {place}: {message}" if place else f"  {message}"
