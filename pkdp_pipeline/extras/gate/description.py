"""The questions a policy allows, in words and as JSON: for analysts, who ask, and for curators, who answer for it."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.extras.gate.permitted import answers_total
from pkdp_pipeline.extras.gate.policy import PermittedTable, Policy, find_tables
from pkdp_pipeline.extras.gate.worker import open_vault
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.keys import json_key
from pkdp_pipeline.model.mechanisms import Count, Histogram, Mechanism, Protects
from pkdp_pipeline.model.selection import EACH_ROW
from pkdp_pipeline.plugins import view
from pkdp_pipeline.sql.spec import Spec
from pkdp_pipeline.sql.tables import link_warning, linking_parts, type_name

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
        links = {table.name: linking_parts(vault, f"FROM {table.found.sql}") for table in tables.values()}
    return tables, [link_warning(f"View {name}", parts) for name, parts in links.items() if parts]
