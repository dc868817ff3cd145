"""Which questions a policy permits: the requests that they become, and what of them is said, in words and as JSON.

Analysts, who ask, read the description, and curators, who answer for it.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError
from pkdp_pipeline.extras.gate.policy import PermittedTable, Policy, TablePolicy, find_tables
from pkdp_pipeline.extras.gate.worker import open_vault
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import EACH_ROW
from pkdp_pipeline.model.keys import json_key
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, Protects
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.plugins import view
from pkdp_pipeline.sql.curator import request_of
from pkdp_pipeline.sql.spec import STEPS, Spec
from pkdp_pipeline.sql.tables import NOT_OFFERED, column_named, link_warning, linking_parts, table_named, type_name

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
    if spec.k is None and not (spec.is_sum or total or (spec.noise is not None and alone)):
        spec = spec.model_copy(update={"k": table.policy.k})
    decided = {
        "protects": spec.protects if spec.count else table.policy.protects,
        "undeclared": None if domain is None else "absent",
    }
    request = spec.model_copy(update=decided)
    return table, request, request_of(request, table.in_catalog, table.rules, domain=domain, offered=table.columns)


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
    for argument in (step for step, kind in STEPS.items() if kind is int):
        value = getattr(spec, argument)
        if value is not None and argument in ("k", "k_complement") and value < table.policy.k:
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


_EACH_ROW = "each row"


def describe(policy: Policy, tables: Mapping[str, PermittedTable]) -> dict[str, Any]:
    """Return what analysts may ask and what is promised about the answers, as what `json` writes.

    Nothing in it depends on data, and no path is in it. `tables`: its tables, as the database has them.
    """
    attacker = policy.attacker.value
    return {
        "tables": {table.name: _table(policy, attacker, table) for table in tables.values()},
        "attacker": attacker.to_dict(),
        "noise": bool(policy.budget),
        "noiseless": not _worst_case_budgets(policy),
        "budgets": [budget.to_dict() for budget in policy.budgets()],
        "budgets_hold_for": "each privacy unit" if policy.budget else None,
        "units": [list(unit) or _EACH_ROW for unit in _units(tables)],
        "evidence": [evidence.declares for evidence in policy.declared()],
        "limits": policy.limits.model_dump(),
    }


def _table(policy: Policy, attacker: AttackerModel, permitted: PermittedTable) -> dict[str, Any]:
    table, with_noise, below = permitted.policy, None, None
    if policy.budget and not _worst_case_budgets(policy):
        below = 'with k, noise and below = "noise" counts from k on are exact, and smaller ones noised and marked'
    if policy.budget:
        histograms = f" and histograms by {', '.join(table.domains)} alone" if table.domains else ""
        with_noise = f"counts{histograms} need no k beside noise: every one of them is answered, with its noise"
    return {
        "unit": list(permitted.rules.unit) or _EACH_ROW,
        "columns": {column: type_name(kind) for column, kind in permitted.columns.items()},
        "k": table.k,
        "k_with_noise": with_noise,
        "below": below,
        "sums": {column: list(bounds) for column, bounds in permitted.sums.items()},
        "rows": None if table.rows is None else list(table.rows),
        "domains": {column: [json_key(value) for value in values] for column, values in table.domains.items()},
        "period": policy.period_of(table),
        "protects": table.protects,
        "total": answers_total(policy, table),
        "one_cell": table.one_cell,
        "order_by": None if table.order_by is None else list(table.order_by),
        "examples": _examples(policy, attacker, permitted),
    }


def _examples(policy: Policy, attacker: AttackerModel, permitted: PermittedTable) -> list[dict[str, Any]]:
    """Return questions that may be asked, and what the answer to each promises by itself."""
    table, more = permitted.policy, {}
    budgets = _worst_case_budgets(policy)
    if budgets:
        epsilon = float(f"{min(0.5, min(budget.epsilon for budget in budgets) / 2):.2g}") or 0.1
        delta = min(min(budget.delta for budget in budgets) or 1e-9, 1e-3)
        more = {"noise": epsilon, "release_threshold": table.k + math.ceil(math.log(100.0 / delta) / epsilon)}
    groups = attacker.groups
    column = next((name for name in permitted.columns if name not in groups), next(iter(permitted.columns)))
    by = [*groups, column] if groups else column
    questions: list[tuple[dict[str, Any], Protects]] = [
        ({"table": permitted.name, "histogram": by, "k": table.k, **more}, table.protects),
        ({"table": permitted.name, "count": True, "k": table.k, **more}, "presence"),
    ]
    if answers_total(policy, table):
        questions.append(({"table": permitted.name, "count": True, "protects": "value"}, "value"))
    return [
        {"question": question, "promise": _certified(Spec.read(question).mechanism, attacker, protects)[1]}
        for question, protects in questions
    ]


def _certified(mechanism: Mechanism, attacker: AttackerModel, protects: Protects) -> tuple[bool, str]:
    """Return whether an answer promises anything by itself, and what, or why not."""
    try:
        return True, certify(mechanism, attacker, protects=protects).sentence()
    except NotCertifiableError as refused:
        return False, str(refused)


def _worst_case_budgets(policy: Policy) -> list[Budget]:
    """Return the budgets that allow nothing without noise: it has no guarantee against any attacker."""
    return [budget for budget in policy.budgets() if "worst_case" in budget.measures]


def _units(tables: Mapping[str, PermittedTable]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(table.rules.unit for table in tables.values()))


def totals(total: Callable[[object], Certificate], tables: Mapping[str, PermittedTable]) -> list[dict[str, Any]]:
    """Return what all releases so far promise together, for each privacy unit, as what `json` writes.

    `total` returns the total of a privacy unit.
    """
    entries: list[dict[str, Any]] = []
    for unit in _units(tables):
        try:
            document = json.loads(total(unit or EACH_ROW).to_json())
            said = {"sentence": document["sentence"], "certificate": document}
        except NoEvidenceError as none:
            said = {"sentence": str(none), "certificate": None}
        entries.append({"unit": list(unit) or _EACH_ROW, **said})
    return entries


def threshold_warnings(policy: Policy) -> list[str]:
    """Return for which tables the policy's k lets nothing be certified, one sentence each."""
    if _worst_case_budgets(policy):
        return []  # nothing is answered without noise
    attacker = policy.attacker.value
    sentences = []
    for name, table in policy.tables.items():
        questions: tuple[tuple[Histogram | Count, Protects], ...] = (
            (Histogram(k=table.k), table.protects),
            (Count(k=table.k), "presence"),
        )
        if any(_certified(mechanism, attacker, protects)[0] for mechanism, protects in questions):
            continue
        try:
            enough = view("smallest_k")(attacker, epsilon=1.0, delta=1e-6, protects=table.protects)
            way = f"the smallest k that reaches ε = 1 at δ = 1e-6 is {enough}"
        except NotCertifiableError:
            way = "no k reaches ε = 1 at δ = 1e-6: declare another attacker, or a budget, under which noise may be used"
        sentences.append(
            f"Table {name}: with k = {table.k} nothing without noise can be certified against this attacker; {way}."
        )
    return sentences


def file_warnings(policy: Policy, database: Path, policy_file: Path) -> list[str]:
    """Return who else could read the data or change what protects them, one sentence each.

    The process of the service is the boundary between analysts and data: it holds only where the analysts'
    own processes can open none of its files.
    """
    ledger = policy.ledger_file
    files = [policy_file, database.absolute().parent, policy_file.absolute().parent]
    files += [] if ledger is None else [ledger, ledger.absolute().parent]
    modes = {file: file.stat().st_mode for file in files if file.exists()}
    sentences = [
        f"Users other than the owner may write {str(file)!r}, and so change what the gate allows or knows."
        for file, mode in modes.items()
        # In a folder with the sticky bit nobody replaces another one's files.
        if mode & 0o022 and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX)
    ]
    if policy.ledger is not None and "://" in policy.ledger and "@" in policy.ledger and modes[policy_file] & 0o044:
        sentences.append(f"Users other than the owner may read {str(policy_file)!r}, which holds the ledger's address.")
    return sentences


def look_up(policy: Policy, database: Path) -> tuple[dict[str, PermittedTable], list[str]]:
    """Hold a policy against a database, whose data are not read.

    Raises `ConfigError` if the database cannot be opened, or the policy does not fit it; the message names the policy's
    key; `TemporaryError` if another process is writing to the database.

    Returns
    -------
    dict of str to PermittedTable
    list of str
        Which tables are views that link people's rows, one sentence each.
    """
    with closing(open_vault(database)) as vault:
        tables = find_tables(policy, vault)
        links = {table.name: linking_parts(vault, f"FROM {table.in_catalog.sql}") for table in tables.values()}
    return tables, [link_warning(f"View {name}", parts) for name, parts in links.items() if parts]
