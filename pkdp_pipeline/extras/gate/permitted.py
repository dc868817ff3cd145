"""Which questions a policy permits, and the requests that they become."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.gate.policy import PermittedTable, Policy, TablePolicy
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.sql.curator import request_of
from pkdp_pipeline.sql.spec import Spec
from pkdp_pipeline.sql.tables import NOT_OFFERED, column_named, table_named

#: Certificates of larger numbers take many seconds.
_MAX_NUMBER = 10**8


def permitted(
    question: object, policy: Policy, tables: Mapping[str, PermittedTable], budgets: Sequence[Budget]
) -> tuple[PermittedTable, Spec, Question]:
    """Return the table, the question as the policy has it, and the request it becomes.

    Raises `ArgumentError` if the question is malformed, or the policy does not allow it.
    """
    spec = Spec.read(question).for_a_gate()
    table = table_named(spec.table, tables)
    _check_numbers(table, spec, noise=bool(budgets))
    total = bool(spec.count) and spec.protects == "value"
    if total and not (answers_total(policy, table.policy) and spec.mechanism == Count()):
        raise ArgumentError(
            "protects = 'value' of a count asks for all people's exact number, where a policy allows it: leave it out."
        )
    by = domain = None
    if spec.is_sum:
        spec = _with_bounds(table, spec)
    if spec.cells is not None:
        argument = "by" if spec.is_sum else "histogram"
        by = tuple(column_named(argument, name, table.columns, lacking=NOT_OFFERED) for name in spec.cells)
        domain = _domain(table, by, policy.limits.cells)
        if spec.is_sum and domain is None:
            raise ArgumentError("by of a sum names columns that have public values in the policy: leave it out.")
    # Small counts that are noised are as open as those without k, and need one above which others are exact.
    below = spec.below == "noise"
    alone = (by is None or domain is not None) and spec.k is None and spec.k_complement is None and not below
    if spec.noise is not None and (alone or below):
        _check_noise_alone(table, spec.noise, budgets, below=below)
    if spec.k is None and not total and not (spec.noise is not None and alone):
        spec = spec.model_copy(update={"k": table.policy.k})
    decided = {
        "protects": spec.protects if spec.count else table.policy.protects,
        "undeclared": None if domain is None else "absent",
    }
    request = spec.model_copy(update=decided)
    return table, request, request_of(request, table.found, table.rules, domain=domain, offered=table.columns)


def _with_bounds(table: PermittedTable, spec: Spec) -> Spec:
    """Return a question about a sum with the bounds that the policy has for it."""
    column = None if spec.sum is None else column_named("sum", spec.sum, table.sums, lacking=NOT_OFFERED)
    bounds = table.policy.rows if column is None else table.sums[column]
    if bounds is None:
        raise ArgumentError("rows is not for sums here: the policy has no bounds for a person's rows.")
    if spec.bounds not in (None, bounds):
        raise ArgumentError(f"bounds is not for analysts to choose: the policy has {list(bounds)}. Leave it out.")
    return spec.model_copy(update={"sum": column, "bounds": bounds})


def answers_total(policy: Policy, table: TablePolicy) -> bool:
    """Return whether a gate tells the exact number of all people: where its attacker is declared to know it."""
    return table.protects == "value" and _knows_total(policy.attacker.value)


@lru_cache(maxsize=8)  # asked of every count, and a certificate takes its time
def _knows_total(attacker: AttackerModel) -> bool:
    try:
        return bool(certify(Count(), attacker, protects="value"))
    except ArgumentError:
        return False


def _check_numbers(table: PermittedTable, spec: Spec, *, noise: bool) -> None:
    for argument in ("k", "k_complement", "release_threshold"):
        value = getattr(spec, argument)
        if value is not None and argument != "release_threshold" and value < table.policy.k:
            raise ArgumentError(
                f"{argument} must be at least {table.policy.k} for table {table.name!r}: the policy allows nothing "
                "smaller."
            )
        if value is not None and abs(value) > _MAX_NUMBER:
            raise ArgumentError(f"{argument} must be at most {_MAX_NUMBER}.")
    if spec.noise is not None and not noise:
        raise ArgumentError(
            "noise is not available: the policy sets no budget, and without one the same people's noised counts could "
            "be asked for again and again until the noise averages away. Leave noise out, or ask the curator for a "
            "budget."
        )


def _check_noise_alone(table: PermittedTable, noise: float, budgets: Sequence[Budget], *, below: bool) -> None:
    """Refuse noise that would show small counts nearly as they are, which no threshold holds back here.

    A budget for the worst case refuses it by itself; one for partial knowledge alone does not.
    """
    most = min(budget.epsilon for budget in budgets)
    if noise > most and not any("worst_case" in budget.measures for budget in budgets):
        which, way = "below k", "leave below out"
        if not below:
            which, way = "without k", f"k = {table.policy.k} as well"
        raise ArgumentError(
            f"noise {which} must be at most {exactly(most)}, the smallest ε of the policy's budgets: a larger ε is "
            f"less noise, and small counts would show through it. Write a smaller one, or {way}."
        )


def _domain(table: PermittedTable, by: tuple[str, ...], most: int) -> dict[str, list[Any]] | None:
    """Return the public cells of these columns, None where the policy has no values for any of them."""
    if not any(name in table.domains for name in by):
        return None
    both = {name: [False, True] for name in by if table.columns[name] == "BOOLEAN"}
    values = {name: listed for name in by if (listed := table.domains.get(name, both.get(name))) is not None}
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
