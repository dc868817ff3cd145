"""What a policy permits: its tables as the database has them, and the requests that questions become."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pkdp_pipeline.duckdb.cells import public_type, read_domain
from pkdp_pipeline.duckdb.gate.policy import Policy, TablePolicy
from pkdp_pipeline.duckdb.gate.worker import Job
from pkdp_pipeline.duckdb.releases import request_of
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import TableRef, column_named, lowered, resolve, table_named
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.keys import json_key
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.publish import read_through

if TYPE_CHECKING:
    import duckdb

__all__ = ["PermittedTable", "find_tables", "permitted"]

#: Says the same of columns that the table does not have and of those that the policy leaves out.
_LACKING = "which this gate does not offer"
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
    domains : mapping of str to tuple
        By the catalog's spelling of the columns.
    rules : Question
        What holds for every question about it.
    """

    name: str
    policy: TablePolicy
    found: TableRef
    columns: Mapping[str, str]
    domains: Mapping[str, tuple[Any, ...]]
    rules: Question

    def reading(self) -> Job:
        """Return the job that reads what may be asked of it, without any question.

        `units` of the policy is held to here: no question may fail because of how people's names are spelled.
        """
        people = self.request(Spec(table=self.name, count=True, k=1))
        histograms = [
            self.request(Spec(table=self.name, histogram=(column,), k=1))
            for column, kind in self.columns.items()
            if _names_cells(kind)
        ]
        requests = (replace(people, units=self.policy.units), *histograms)
        return Job(task="read", table=self.found.sql, requests=requests, columns=tuple(self.columns))

    def request(self, spec: Spec) -> Question:
        """Return what a question that is permitted asks of the table."""
        return request_of(spec, self.found, self.rules)


def find_tables(policy: Policy, connection: duckdb.DuckDBPyConnection) -> dict[str, PermittedTable]:
    """Hold a policy against a database's catalog; return its tables by their names in lower case.

    Raises
    ------
    ConfigError
        If the policy does not fit; the message names its key.
    """
    tables: dict[str, PermittedTable] = {}
    seen: dict[str, str] = {}
    for name, asked in policy.tables.items():
        try:
            with closing(connection.cursor()) as cursor:
                table = _found(name, asked, policy, cursor)
                people = table.request(Spec(table=name, count=True, k=1))
                read_through(cursor.sql(f"SELECT * FROM {table.found.sql} LIMIT 0"), people)
        except ArgumentError as error:
            raise ConfigError(f"the policy's tables.{name} does not fit the database: {error}") from None
        sql = table.found.sql
        if sql in seen:
            raise ConfigError(f"the policy's tables.{name} and tables.{seen[sql]} are the same table; keep one.")
        seen[sql] = name
        tables[lowered(name)] = table
    return tables


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
    table: PermittedTable = table_named(spec.table, {one.name: one for one in tables.values()})
    # Of the columns that the policy leaves out nothing is said, not even that they are there.
    offered = replace(table.found, columns=table.columns)
    by = None
    if spec.histogram is not None:
        by = tuple(column_named("histogram", name, offered.columns, lacking=_LACKING) for name in spec.histogram)
    if spec.filter is not None:
        from pkdp_pipeline.duckdb.filters import from_sql

        from_sql(spec.filter, offered.columns, lacking=_LACKING)
    _check_numbers(table, spec, noise=bool(budgets))
    domain = None if by is None else _domain(table, by, policy.limits.cells)
    public = by is None or domain is not None
    alone = public and spec.noise is not None and spec.k is None and spec.k_complement is None
    if alone:
        _check_pure_noise(table, cast("float", spec.noise), budgets)
    asked = replace(
        spec,
        table=table.found.sql,
        histogram=by,
        k=table.policy.k if spec.k is None and not alone else spec.k,
        domain=domain,
        protects=None if by is None else table.policy.protects,
        undeclared=None if domain is None else table.policy.undeclared,
    )
    return table, asked, table.request(asked)


def _found(name: str, asked: TablePolicy, policy: Policy, cursor: duckdb.DuckDBPyConnection) -> PermittedTable:
    found = resolve(cursor, name)
    unit = tuple(column_named("unit", one, found.columns) for one in asked.unit)
    columns = [column_named("columns", one, found.columns) for one in asked.columns]
    order_by = [column_named("order_by", one, found.columns) for one in asked.order_by or ()]
    if unit and set(unit) <= set(columns):
        raise ArgumentError("columns has the whole unit: an analyst could ask about one person. Leave it out.")
    domains = {}
    for given, values in asked.domains.items():
        column = column_named("domains", given, found.columns)
        read_domain(_as_json({column: values}), {column: public_type(column, found.columns[column])})
        domains[column] = values
    return PermittedTable(
        name=name,
        policy=asked,
        found=found,
        columns={column: found.columns[column] for column in columns},
        domains=domains,
        rules=Question(
            mechanism=Histogram(k=1),
            unit=unit or asked.privacy_unit,
            by="cell",
            period=policy.period_of(asked),
            missing_unit=asked.missing_unit,
            units="exact",  # no answer may fail because of the data
            one_cell=asked.one_cell,
            order_by=order_by or None,
        ),
    )


def _check_numbers(table: PermittedTable, spec: Spec, *, noise: bool) -> None:
    for argument in ("k", "k_complement"):
        value = getattr(spec, argument)
        if value is not None and value < table.policy.k:
            raise ArgumentError(
                f"{argument} must be at least {table.policy.k} for table {table.name!r}: the policy allows nothing "
                "smaller."
            )
    for argument in ("k", "k_complement", "release_threshold"):
        value = getattr(spec, argument)
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


def _domain(table: PermittedTable, by: tuple[str, ...], most: int) -> str | None:
    """Return the public cells of these columns as JSON, None where the policy has no values for any of them."""
    if not any(name in table.domains for name in by):
        return None
    values = {}
    for name in by:
        known = table.domains.get(name)
        if known is None and table.columns[name] == "BOOLEAN":
            known = (False, True)
        if known is None:
            declared = ", ".join(repr(one) for one in by if one in table.domains)
            raise ArgumentError(
                f"histogram names {declared}, whose public values the policy lists, beside {name!r}, which has none: "
                "their cells cannot be listed. Ask for each alone, or ask the curator for the public values."
            )
        values[name] = known
    if math.prod(map(len, values.values())) > most:
        raise ArgumentError(
            f"histogram asks for every combination of the public values of {', '.join(map(repr, by))}: more than the "
            f"{most} cells that the policy allows. Ask for fewer columns."
        )
    return _as_json(values)


def _names_cells(kind: str) -> bool:
    try:
        public_type("column", kind)
    except ArgumentError:
        return False
    return True


def _as_json(values: Mapping[str, tuple[Any, ...]]) -> str:
    import decimal

    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, decimal.Decimal) else json_key(value)

    return json.dumps({name: [plain(value) for value in listed] for name, listed in values.items()})
