"""Policy: what analysts may ask of which tables, read strictly, and held against the database."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator, model_validator

from pkdp_pipeline.errors import ConfigError, LedgerError
from pkdp_pipeline.extras.gate.client import MAX_ANSWER_BYTES
from pkdp_pipeline.extras.gate.worker import Job
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.sqlite_database import resolved_file
from pkdp_pipeline.model.columns import EACH_ROW, EachRow
from pkdp_pipeline.model.keys import canonical_key, kind_of_values
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram, Protects, Sum
from pkdp_pipeline.model.question import Question, Spelling
from pkdp_pipeline.releases.options import Columns, Name, Table, text_of, toml_of
from pkdp_pipeline.releases.publish import read_through
from pkdp_pipeline.sql.curator import request_of
from pkdp_pipeline.sql.spec import LedgerSettings, PeriodName, Spec, public_values
from pkdp_pipeline.sql.tables import TableRef, column_named, lowered, resolve, type_of_keys

if TYPE_CHECKING:
    import duckdb


def _unit(value: object, columns: Callable[[object], tuple[str, ...]]) -> tuple[str, ...]:
    return () if isinstance(value, EachRow) else columns(value)


def _values(value: object) -> object:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError("must be a non-empty list of the column's public values.")
    keys = tuple(canonical_key(item) for item in value)
    kind_of_values("it", keys)
    if len(set(keys)) < len(keys):
        raise ValueError("lists a value twice.")
    return keys


def _bounds(value: Any) -> tuple[int, int]:
    return Sum(value, GeometricNoise(1.0)).bounds


BoundsOfPerson = Annotated[tuple[int, int], BeforeValidator(_bounds)]


def _size(value: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,5} ?(MB|MiB|GB|GiB)", value):
        raise ValueError('must be a size, such as "1GB" or "500 MiB".')
    return value


class Limits(Table):
    """``[limits]``: what one question may use."""

    seconds: float = Field(default=30.0, gt=0, le=3_600, allow_inf_nan=False)
    memory: Annotated[str, AfterValidator(_size)] = "1GB"
    cells: int = Field(default=100_000, gt=0, description="The most public cells that a histogram may have.")
    answer_bytes: int = Field(default=2**24, gt=0, le=MAX_ANSWER_BYTES)


class TablePolicy(Table):
    """One table of ``tables``: whom it is about, and what of it may be asked.

    Notes
    -----
    An analyst's question may not fail because of the data, so no rule for rows is "error": rows without a unit are
    dropped, `one_cell` always chooses, people outside a domain are absent.
    """

    unit: Annotated[Columns, WrapValidator(_unit)] = Field(description="Empty where each row is a person.")
    columns: Columns = Field(description="Columns that histogram and filter may name.")
    k: int = Field(ge=1, description="The smallest k that an analyst may use, and the one used when none is given.")
    domains: dict[Name, Annotated[tuple[Any, ...], BeforeValidator(_values)]] = Field(
        default_factory=dict, description="Public values of columns; always used where a column has them."
    )
    sums: dict[Name, BoundsOfPerson] = Field(
        default_factory=dict,
        description="Columns of whole numbers that may be summed, each with the bounds of what a person adds.",
    )
    rows: BoundsOfPerson | None = Field(
        default=None, description="The bounds of a person's number of rows, where it may be summed."
    )
    period: PeriodName = Field(default=None, description="Overrides the policy's period.")
    protects: Protects = "presence"
    units: Spelling = Field(
        default="checked",
        description="Names of people that differ only by spaces around them make a gate refuse the table; with exact "
        "they are different people.",
    )
    one_cell: Literal["most_frequent", "first", "hash"] = "most_frequent"
    order_by: Columns | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for key, names in (("unit", self.unit), ("columns", self.columns)):
            if len(set(map(lowered, names))) < len(names):
                raise ValueError(f"{key} names a column twice, in different letter case.")
        check_unit(self.unit, self.columns)
        for column in self.domains:
            if column not in self.columns:
                raise ValueError(f"domains has values of {column!r}, which columns does not name; add it there.")
        if (self.one_cell == "first") != (self.order_by is not None):
            raise ValueError('one_cell = "first" and order_by belong together: order_by says which row comes first.')
        return self


def check_unit(unit: tuple[str, ...], columns: tuple[str, ...]) -> None:
    """Refuse columns that together name a person."""
    if unit and set(map(lowered, unit)) <= set(map(lowered, columns)):
        raise ValueError("columns has the whole unit: an analyst could ask about one person. Leave it out.")


class Policy(LedgerSettings):
    """The questions that a gate allows. Read it with `Policy.read`.

    Parameters
    ----------
    tables : dict of str → TablePolicy
        By the name under which analysts ask; a table or a view of the database.
    ledger : str, optional
        A ledger file, relative to the policy file, or a ``postgresql://`` URL. Without it what was published
        is forgotten when the gate is closed: opened again, the gate would answer another question about the
        same people.
    period : str, optional
        The period all tables are about; needed with a ledger, for each table.
    budget : table or list of tables, optional
        As in job files. Noise is only available under a budget.
    """

    tables: dict[Name, TablePolicy] = Field(min_length=1)
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(map(lowered, self.tables))) < len(self.tables):
            raise ValueError("tables names a table twice, in different letter case.")
        for name, table in self.tables.items():
            if self.ledger is not None and self.period is None and table.period is None:
                raise ValueError(f"period is needed with a ledger: say which period the table {name!r} is about.")
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

        `policy`: the path of a TOML file, or the same shape as a dictionary. A ledger's path is relative to the file.
        Raises `ConfigError` if it cannot be read or says something a policy cannot mean; the message names the key.
        """
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return cls.checked(policy, "the policy")
        if not isinstance(policy, (str, os.PathLike)):
            raise ConfigError(f"policy must be a dictionary or the path of a TOML file, not {type(policy).__name__}.")
        file = Path(policy)
        name = f"the policy {str(file)!r}"
        content = toml_of(text_of(file, name), name)
        read = cls.checked(content, name)
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

    def period_of(self, table: TablePolicy) -> str:
        """Return the period that a table's releases are about."""
        return table.period or self.period or "all"


def check_ledger(policy: Policy, *, make: bool = False) -> None:
    """Check that the policy's ledger can be a file where it is; `make` it if it is not there, for its owner alone."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PermittedTable:
    """A table of the policy, as the database has it.

    Attributes
    ----------
    name : str
        As the policy spells it.
    columns : mapping of str to str
        The columns that may be asked about, with their SQL types.
    domains : mapping of str to list
        By the catalog's spelling of the columns.
    sums : mapping of str to tuple of two int
        The columns that may be summed, in that spelling, and the bounds of what a person adds.
    rules : Question
        The rules for every question about it.
    """

    name: str
    policy: TablePolicy
    in_catalog: TableRef
    columns: Mapping[str, str]
    domains: Mapping[str, list[Any]]
    sums: Mapping[str, tuple[int, int]]
    rules: Question

    def reading(self) -> Job:
        """Return the job that reads what may be asked of it, without any question.

        `units` of the policy is held to here: no question may fail because of how people's names are spelled.
        """
        histograms = [
            self._request(histogram=column, k=1)
            for column, kind in self.columns.items()
            if type_of_keys(kind) is not None
        ]
        sums = [self._request(sum=column, bounds=bounds, noise=1.0) for column, bounds in self.sums.items()]
        requests = (replace(self.people(), units=self.policy.units), *histograms, *sums)
        return Job(task="read", table=self.in_catalog.sql, requests=requests, columns=(*self.columns, *self.sums))

    def people(self) -> Question:
        """Return the request for the number of all people."""
        return self._request(count=True, k=1)

    def _request(self, **keys: Any) -> Question:
        return request_of(Spec.read({"table": self.name, **keys}), self.in_catalog, self.rules)


def find_tables(policy: Policy, connection: duckdb.DuckDBPyConnection) -> dict[str, PermittedTable]:
    """Hold a policy against a database's catalog; return its tables by the policy's names.

    Raises `ConfigError` if the policy does not fit; the message names its key.
    """
    tables: dict[str, PermittedTable] = {}
    for name, table_policy in policy.tables.items():
        try:
            with closing(connection.cursor()) as cursor:
                table = _permitted_table(name, table_policy, policy, cursor)
                rows = cursor.sql(f"SELECT * FROM {table.in_catalog.sql} LIMIT 0")
                for request in (table.people(), *(sum_ for sum_ in table.reading().requests if sum_.bounds)):
                    read_through(rows, request)
        except ValueError as error:
            raise ConfigError(f"the policy's tables.{name} does not fit the database: {error}") from None
        for other in tables.values():
            if other.in_catalog.sql == table.in_catalog.sql:
                raise ConfigError(f"the policy's tables.{name} and tables.{other.name} are the same table; keep one.")
        tables[name] = table
    return tables


def _permitted_table(
    name: str, table_policy: TablePolicy, policy: Policy, cursor: duckdb.DuckDBPyConnection
) -> PermittedTable:
    reference = resolve(cursor, name)
    unit = tuple(column_named("unit", column, reference.columns) for column in table_policy.unit)
    columns = tuple(column_named("columns", column, reference.columns) for column in table_policy.columns)
    order_by = [column_named("order_by", column, reference.columns) for column in table_policy.order_by or ()]
    check_unit(unit, columns)
    domains = {
        column_named("domains", given, reference.columns): values for given, values in table_policy.domains.items()
    }
    return PermittedTable(
        name=name,
        policy=table_policy,
        in_catalog=reference,
        columns={column: reference.columns[column] for column in columns},
        domains={
            column: public_values(column, reference.columns[column], values) for column, values in domains.items()
        },
        sums={column_named("sums", column, reference.columns): bounds for column, bounds in table_policy.sums.items()},
        rules=Question(
            mechanism=Histogram(k=1),
            unit=unit or EACH_ROW,
            by="cell",
            period=policy.period_of(table_policy),
            missing_unit="drop",
            units="exact",  # no answer may fail because of the data
            one_cell=table_policy.one_cell,
            order_by=order_by or None,
        ),
    )
