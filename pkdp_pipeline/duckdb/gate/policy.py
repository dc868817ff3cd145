"""Policy: what analysts may ask of which tables, read strictly from a dictionary or a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from pkdp_pipeline.duckdb.gate.client import MOST_BYTES
from pkdp_pipeline.duckdb.gate.complaints import complaint
from pkdp_pipeline.duckdb.tables import lowered
from pkdp_pipeline.errors import ArgumentError, ConfigError, LedgerError
from pkdp_pipeline.ledger import Budget, Ledger
from pkdp_pipeline.ledger.sqlite_database import resolved_file
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, read_evidence
from pkdp_pipeline.model.keys import canonical_key, kind_of_values
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.unit import EACH_ROW, EachRow
from pkdp_pipeline.releases.options import AttackerTable, BudgetTable, Columns, Declared, Name, Table

__all__ = ["Limits", "Policy", "TablePolicy", "check_ledger"]

#: Rows that come from somewhere else than the table's own people, told apart by who may be surprised by an error.
_TELLING = {
    "missing_unit": ('"error"', '"drop"', "whether rows have no privacy unit"),
    "one_cell": ('"error"', '"most_frequent", "first" or "hash"', "whether people have rows in several cells"),
    "undeclared": ('"error"', '"absent"', "whether people have values outside the domain"),
}


def _unit(value: object) -> object:
    if isinstance(value, EachRow):
        return ()
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("must be a column name, a list of column names or pkdp.EACH_ROW.")
    if len({lowered(name) for name in names}) < len(names):
        raise ValueError("names a column twice.")
    return tuple(names)


def _values(value: object) -> object:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be a non-empty list of the column's public values.")
    keys = tuple(canonical_key(one) for one in value)
    kind_of_values("it", keys)
    if len(set(keys)) < len(keys):
        raise ValueError("lists a value twice.")
    return keys


def _attacker(value: object) -> object:
    return value.to_dict() if isinstance(value, AttackerModel) else value


def _period(value: object) -> object:
    return None if value is None else Period.parse(value).text


PeriodName = Annotated[str | None, BeforeValidator(_period)]


class Limits(Table):
    """``[limits]``: what one question may use."""

    seconds: float = Field(default=30.0, gt=0, le=3_600, allow_inf_nan=False)
    memory: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5} ?(MB|MiB|GB|GiB)$")] = "1GB"
    cells: int = Field(default=100_000, gt=0, description="The most public cells that a histogram may have.")
    answer_bytes: int = Field(default=2**24, gt=0, le=MOST_BYTES)


class TablePolicy(Table):
    """One table of ``tables``: whom it is about, and what of it may be asked.

    Notes
    -----
    What an analyst asks may not fail because of the data, so the rules for rows have no "error": rows without
    a unit are dropped, `one_cell` always chooses, people outside a domain are absent.
    """

    unit: Annotated[tuple[str, ...], BeforeValidator(_unit)]
    columns: Columns = Field(description="Columns that by and filter may name.")
    k: int = Field(ge=1, description="The smallest k that an analyst may use, and the one used when none is given.")
    domains: dict[Name, Annotated[tuple[Any, ...], BeforeValidator(_values)]] = Field(
        default_factory=dict, description="Public values of columns; always used where a column has them."
    )
    period: PeriodName = Field(default=None, description="Overrides the policy's period.")
    protects: Literal["presence", "value"] = "presence"
    missing_unit: Literal["drop"] = "drop"
    units: Literal["checked", "exact"] = Field(
        default="checked",
        description="Names of people that differ only by spaces around them make a gate refuse the table; with exact "
        "they are different people.",
    )
    one_cell: Literal["most_frequent", "first", "hash"] = "most_frequent"
    order_by: Columns | None = None
    undeclared: Literal["absent"] = "absent"

    @field_validator("columns", "order_by", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return list(value) if isinstance(value, tuple) else value

    @field_validator(*_TELLING, mode="before")
    @classmethod
    def _tells_nothing(cls, value: object, info: Any) -> object:
        refused, instead, what = _TELLING[info.field_name]
        if value == "error":
            raise ValueError(f"{refused} would tell an analyst {what}; write {instead}.")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        columns = {lowered(column) for column in self.columns}
        if len(columns) < len(self.columns):
            raise ValueError("columns names a column twice, in different letter case.")
        if self.unit and {lowered(name) for name in self.unit} <= columns:
            raise ValueError("columns has the whole unit: an analyst could ask about one person. Leave it out.")
        for column in self.domains:
            if column not in self.columns:
                raise ValueError(f"domains has values of {column!r}, which columns does not name; add it there.")
        if (self.one_cell == "first") != (self.order_by is not None):
            raise ValueError('one_cell = "first" and order_by belong together: order_by says which row comes first.')
        return self

    @property
    def privacy_unit(self) -> tuple[str, ...] | EachRow:
        """The unit as `Request` takes it."""
        return self.unit or EACH_ROW


class Policy(Table):
    """What a gate lets analysts ask. Read it with `Policy.read`.

    Parameters
    ----------
    attacker : table, optional
        The fields of `AttackerModel`. Without it nothing is assumed, and only noise can be certified.
    tables : dict of str → TablePolicy
        By the name under which analysts ask; a table or a view of the database.
    ledger : str, optional
        A ledger file, relative to the policy file, or a ``postgresql://`` URL. Without it what was published
        is forgotten when the gate is closed: opened again, the gate would answer another question about the
        same people.
    dataset : str, default "default"
    period : str, optional
        The period all tables are about; needed with a ledger, for each table.
    budget, evidence : table or list of tables, optional
        As in job files. Noise is only available under a budget.
    limits : Limits
    """

    attacker: Annotated[AttackerTable | None, BeforeValidator(_attacker)] = None
    tables: dict[Name, TablePolicy] = Field(min_length=1)
    ledger: Name | None = None
    dataset: Name = "default"
    period: PeriodName = None
    budget: tuple[BudgetTable, ...] = Field(default=(), strict=False)
    evidence: tuple[Declared, ...] = Field(default=(), strict=False)
    limits: Limits = Limits()

    @field_validator("evidence", "budget", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, dict) else value

    @field_validator("ledger", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self.declared()
        if len({lowered(name) for name in self.tables}) < len(self.tables):
            raise ValueError("tables names a table twice, in different letter case.")
        for name, table in self.tables.items():
            if self.ledger is not None and self.period is None and table.period is None:
                raise ValueError(
                    f"period is needed with a ledger: say which period the table {name!r} is about, for the policy or "
                    "for the table."
                )
            for column, values in table.domains.items():
                if len(values) > self.limits.cells:
                    raise ValueError(
                        f"tables.{name}.domains.{column} has more values than the {self.limits.cells} of "
                        "limits.cells: write a larger limits.cells, or leave the column out."
                    )
        return self

    @classmethod
    def read(cls, policy: Policy | Mapping[str, Any] | str | os.PathLike[str]) -> Policy:
        """Read a policy, without looking at any data.

        Parameters
        ----------
        policy : dict or path-like
            The path of a TOML file, or the same shape as a dictionary. A ledger's path is relative to the file.

        Raises
        ------
        ConfigError
            If it cannot be read or says something a policy cannot mean; the message names the key.
        """
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return cls._checked(policy, "the policy")
        if not isinstance(policy, (str, os.PathLike)):
            raise ConfigError(f"policy must be a dictionary or the path of a TOML file, not {type(policy).__name__}.")
        file = Path(policy)
        name = f"the policy {str(file)!r}"
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{name} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{name} is not UTF-8 text.") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name} is not valid TOML: {error}.") from error
        read = cls._checked(content, name)
        if read.ledger_file is None:
            return read
        return read.model_copy(update={"ledger": str(file.resolve().parent / read.ledger_file)})

    @property
    def ledger_file(self) -> Path | None:
        """The ledger's path; None where it is a URL, or none is named."""
        return None if self.ledger is None or "://" in self.ledger else Path(self.ledger)

    def remembering(self, file: os.PathLike[str]) -> Policy:
        """Return the policy of a service: its ledger outlives the process, beside the policy where it names none."""
        if self.ledger is not None:
            return self
        return self.model_copy(update={"ledger": str(Path(file).resolve().with_suffix(".ledger.sqlite"))})

    @classmethod
    def _checked(cls, content: Mapping[str, Any], name: str) -> Policy:
        try:
            return cls.model_validate(_plain(content))
        except ValidationError as error:
            complaints = [complaint(detail) for detail in error.errors(include_url=False)]
            raise ConfigError("\n".join([f"{name} cannot be used:", *complaints])) from None
        except ArgumentError as error:
            raise ConfigError(f"{name} cannot be used: {error}") from None

    def attacker_model(self) -> AttackerModel:
        """Return the declared attacker; without one, an attacker about whom nothing is assumed."""
        return AttackerModel() if self.attacker is None else self.attacker.model()

    def budgets(self) -> tuple[Budget, ...]:
        """Return the declared budgets."""
        return tuple(table.budget() for table in self.budget)

    def declared(self) -> tuple[Evidence, ...]:
        """Return the declared evidence."""
        return read_evidence([table.evidence() for table in self.evidence])

    def period_of(self, table: TablePolicy) -> str:
        """Return the period that a table's releases are about."""
        return table.period or self.period or "all"


def _plain(value: Any) -> Any:
    """Return mappings as dictionaries, all the way down; strict validation takes nothing else."""
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def check_ledger(policy: Policy, *, make: bool = False) -> None:
    """Check that the policy's ledger can be a file where it is; `make` it if it is not there, for its owner alone.

    Raises
    ------
    LedgerError
        If its folder does not exist, it is a folder itself, or it cannot be made.
    """
    file = policy.ledger_file
    if file is None:
        return
    resolved_file(str(file))
    try:
        if make and not file.exists():
            with Ledger.open(file):  # nothing stands in it yet; it will say what was asked and published
                file.chmod(0o600)
    except OSError as error:
        raise LedgerError(f"the ledger {str(file)!r} cannot be opened: {error.strerror}.") from error
