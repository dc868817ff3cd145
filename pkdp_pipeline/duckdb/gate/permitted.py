"""What a policy permits: its tables as the database has them, and the requests that questions become."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.cells import public_values
from pkdp_pipeline.duckdb.constants import type_of_keys
from pkdp_pipeline.duckdb.curator import request_of
from pkdp_pipeline.duckdb.gate.policy import Policy, TablePolicy, check_unit
from pkdp_pipeline.duckdb.gate.worker import Job
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import NOT_OFFERED, TableRef, column_named, resolve, table_named
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.question import EACH_ROW, Question
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.releases.publish import read_through

if TYPE_CHECKING:
    import duckdb

#: Certificates of larger numbers take many seconds.
_MOST = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class PermittedTable:
    """A table of the policy, as the database has it.

    Attributes
    ----------
    name : str
        As the policy spells it.
    policy : TablePolicy
    found : TableRef
    columns : mapping of str to str
        The columns that may be asked about, with their SQL types.
    domains : mapping of str to list
        By the catalog's spelling of the columns.
    rules : Question
        What holds for every question about it.
    """

    name: str
    policy: TablePolicy
    found: TableRef
    columns: Mapping[str, str]
    domains: Mapping[str, list[Any]]
    rules: Question

    def reading(self) -> Job:
        """Return the job that reads what may be asked of it, without any question.

        `units` of the policy is held to here: no question may fail because of how people's names are spelled.
        """
        histograms = [
            request_of(Spec(table=self.name, histogram=(column,), k=1), self.found, self.rules)
            for column, kind in self.columns.items()
            if type_of_keys(kind) is not None
        ]
        requests = (replace(self.people(), units=self.policy.units), *histograms)
        return Job(task="read", table=self.found.sql, requests=requests, columns=tuple(self.columns))

    def people(self) -> Question:
        """Return the request for the number of all people."""
        return request_of(Spec(table=self.name, count=True, k=1), self.found, self.rules)


def find_tables(policy: Policy, connection: duckdb.DuckDBPyConnection) -> dict[str, PermittedTable]:
    """Hold a policy against a database's catalog; return its tables by the policy's names.

    Raises
    ------
    ConfigError
        If the policy does not fit; the message names its key.
    """
    tables: dict[str, PermittedTable] = {}
    for name, asked in policy.tables.items():
        try:
            with closing(connection.cursor()) as cursor:
                table = _found(name, asked, policy, cursor)
                read_through(cursor.sql(f"SELECT * FROM {table.found.sql} LIMIT 0"), table.people())
        except ValueError as error:
            raise ConfigError(f"the policy's tables.{name} does not fit the database: {error}") from None
        for other in tables.values():
            if other.found.sql == table.found.sql:
                raise ConfigError(f"the policy's tables.{name} and tables.{other.name} are the same table; keep one.")
        tables[name] = table
    return tables


def _found(name: str, asked: TablePolicy, policy: Policy, cursor: duckdb.DuckDBPyConnection) -> PermittedTable:
    found = resolve(cursor, name)
    unit = tuple(column_named("unit", one, found.columns) for one in asked.unit)
    columns = tuple(column_named("columns", one, found.columns) for one in asked.columns)
    order_by = [column_named("order_by", one, found.columns) for one in asked.order_by or ()]
    check_unit(unit, columns)
    domains = {column_named("domains", given, found.columns): values for given, values in asked.domains.items()}
    return PermittedTable(
        name=name,
        policy=asked,
        found=found,
        columns={column: found.columns[column] for column in columns},
        domains={column: public_values(column, found.columns[column], values) for column, values in domains.items()},
        rules=Question(
            mechanism=Histogram(k=1),
            unit=unit or EACH_ROW,
            by="cell",
            period=policy.period_of(asked),
            missing_unit="drop",
            units="exact",  # no answer may fail because of the data
            one_cell=asked.one_cell,
            order_by=order_by or None,
        ),
    )


def permitted(
    question: object, policy: Policy, tables: Mapping[str, PermittedTable], budgets: Sequence[Budget]
) -> tuple[PermittedTable, Spec, Question]:
    """Return the table, the question as the policy has it, and the request it becomes.

    Raises
    ------
    ArgumentError
        If the question is malformed, or the policy does not allow it.
    """
    spec = Spec.read(question).for_a_gate()
    table = table_named(spec.table, tables)
    _check_numbers(table, spec, noise=bool(budgets))
    by = domain = None
    if spec.histogram is not None:
        by = tuple(column_named("histogram", name, table.columns, lacking=NOT_OFFERED) for name in spec.histogram)
        domain = _domain(table, by, policy.limits.cells)
    alone = (by is None or domain is not None) and spec.k is None and spec.k_complement is None
    if spec.noise is not None and alone:
        _check_pure_noise(table, spec.noise, budgets)
    elif spec.k is None:
        spec = spec.model_copy(update={"k": table.policy.k})
    decided = {
        "protects": None if by is None else table.policy.protects,
        "undeclared": None if domain is None else "absent",
    }
    asked = spec.model_copy(update=decided)
    return table, asked, request_of(asked, table.found, table.rules, domain=domain, offered=table.columns)


def _check_numbers(table: PermittedTable, spec: Spec, *, noise: bool) -> None:
    for argument in ("k", "k_complement", "release_threshold"):
        value = getattr(spec, argument)
        if value is not None and argument != "release_threshold" and value < table.policy.k:
            raise ArgumentError(
                f"{argument} must be at least {table.policy.k} for table {table.name!r}: the policy allows nothing "
                "smaller."
            )
        if value is not None and abs(value) > _MOST:
            raise ArgumentError(f"{argument} must be at most {_MOST}.")
    if spec.noise is not None and not noise:
        raise ArgumentError(
            "noise is not available: the policy sets no budget, and without one the same people's noised counts could "
            "be asked for again and again until the noise averages away. Leave noise out, or ask the curator for a "
            "budget."
        )


def _check_pure_noise(table: PermittedTable, noise: float, budgets: Sequence[Budget]) -> None:
    """Refuse noise that would show small counts nearly as they are, which no threshold holds back here.

    A budget for the worst case refuses it by itself; one for partial knowledge alone does not.
    """
    most = min(budget.epsilon for budget in budgets)
    if noise > most and not any("worst_case" in budget.measures for budget in budgets):
        raise ArgumentError(
            f"noise without k must be at most {exactly(most)}, the smallest ε of the policy's budgets: a larger ε is "
            f"less noise, and small counts would show through it. Write a smaller one, or k = {table.policy.k} as well."
        )


def _domain(table: PermittedTable, by: tuple[str, ...], most: int) -> dict[str, list[Any]] | None:
    """Return the public cells of these columns, None where the policy has no values for any of them."""
    if not any(name in table.domains for name in by):
        return None
    both = {name: [False, True] for name in by if table.columns[name] == "BOOLEAN"}
    values = {name: found for name in by if (found := table.domains.get(name, both.get(name))) is not None}
    for name in by:
        if name not in values:
            raise ArgumentError(
                f"histogram names {name!r}, which has no public values in the policy, beside a column that has: their "
                "cells cannot be listed. Ask for each alone, or ask the curator for the public values."
            )
    if math.prod(map(len, values.values())) > most:
        raise ArgumentError(
            f"histogram asks for every combination of the public values of {', '.join(map(repr, by))}: more than the "
            f"{most} cells that the policy allows. Ask for fewer columns."
        )
    return values
