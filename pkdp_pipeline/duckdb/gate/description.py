"""What a policy allows, in words and as JSON: for analysts, who ask, and for curators, who answer for it."""

from __future__ import annotations

import datetime
import json
import math
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.duckdb.gate.permitted import PermittedTable, find_tables
from pkdp_pipeline.duckdb.gate.policy import Policy, TablePolicy
from pkdp_pipeline.duckdb.gate.vault import open_vault
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import type_name
from pkdp_pipeline.duckdb.views import link_warning, linking_parts
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.ledger import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Count, Histogram
from pkdp_pipeline.model.unit import EACH_ROW
from pkdp_pipeline.planning import smallest_k

__all__ = ["describe", "file_warnings", "look_up", "threshold_warnings", "totals"]

_EACH_ROW = "each row"
_EACH_UNIT = "each privacy unit"


def describe(policy: Policy, tables: Mapping[str, PermittedTable]) -> dict[str, Any]:
    """Return what analysts may ask and what is promised about the answers, as what `json` writes.

    Nothing in it depends on data, and no path is in it.

    Parameters
    ----------
    policy : Policy
    tables : mapping of str to PermittedTable
        Its tables, as the database has them.
    """
    attacker = policy.attacker_model()
    return {
        "tables": {table.name: _table(policy, attacker, table) for table in tables.values()},
        "attacker": attacker.to_dict(),
        "noise": bool(policy.budget),
        "noiseless": not _worst_case_budgets(policy),
        "budgets": [budget.to_dict() for budget in policy.budgets()],
        "budgets_hold_for": _EACH_UNIT if policy.budget else None,
        "units": [list(unit) or _EACH_ROW for unit in _units(tables)],
        "evidence": [evidence.declares for evidence in policy.declared()],
        "limits": policy.limits.model_dump(),
    }


def totals(total: Callable[[object], Certificate], tables: Mapping[str, PermittedTable]) -> list[dict[str, Any]]:
    """Return what all releases so far promise together, for each privacy unit, as what `json` writes.

    Parameters
    ----------
    total : callable
        Returns the total of a privacy unit.
    tables : mapping of str to PermittedTable
    """
    return [{"unit": list(unit) or _EACH_ROW, **_total(partial(total, unit or EACH_ROW))} for unit in _units(tables)]


def _total(total: Callable[[], Certificate]) -> dict[str, Any]:
    try:
        found = total()
    except NoEvidenceError as none:
        return {"sentence": str(none), "certificate": None}
    return {"sentence": found.sentence(), "certificate": json.loads(found.to_json())}


def file_warnings(policy: Policy, database: Path, policy_file: Path) -> list[str]:
    """Return who else could read the data or change what protects them, one sentence each.

    The process of the service is the boundary between analysts and data: it holds only where the analysts'
    own processes can open none of its files.
    """
    ledger = policy.ledger_file
    found = []
    written = [policy_file, database.absolute().parent, policy_file.absolute().parent]
    if ledger is not None:
        written += [ledger, ledger.absolute().parent]
    for one in dict.fromkeys(written):
        mode = _mode(one)
        # In a folder with the sticky bit nobody replaces another one's files.
        if mode & 0o022 and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
            found.append(f"Others than the owner may write {str(one)!r}, and so change what the gate allows or knows.")
    if policy.ledger is not None and "://" in policy.ledger and "@" in policy.ledger and _mode(policy_file) & 0o044:
        found.append(f"Others than the owner may read {str(policy_file)!r}, which holds the ledger's address.")
    return found


def threshold_warnings(policy: Policy) -> list[str]:
    """Return for which tables the policy's k lets nothing be certified, one sentence each."""
    if _worst_case_budgets(policy):
        return []  # nothing is answered without noise
    attacker = policy.attacker_model()
    found = []
    for name, table in policy.tables.items():
        if any(
            _certifiable(one(k=table.k), attacker, how)
            for one, how in ((Histogram, table.protects), (Count, "presence"))
        ):
            continue
        try:
            enough = smallest_k(attacker, epsilon=1.0, delta=1e-6, protects=table.protects)
        except NotCertifiableError:
            way = "no k reaches ε = 1 at δ = 1e-6: declare another attacker, or a budget, under which noise may be used"
        else:
            way = f"the smallest k that reaches ε = 1 at δ = 1e-6 is {enough}"
        found.append(
            f"Table {name}: with k = {table.k} nothing without noise can be certified against this attacker; {way}."
        )
    return found


def look_up(policy: Policy, database: Path) -> tuple[dict[str, PermittedTable], list[str]]:
    """Hold a policy against a database, whose data are not read.

    Returns
    -------
    dict of str to PermittedTable
    list of str
        Which tables are views that link people's rows, one sentence each.

    Raises
    ------
    ConfigError
        If the database cannot be opened, or the policy does not fit it; the message names the policy's key.
    TemporaryError
        If another process is writing to the database.
    """
    with closing(open_vault(database)) as vault:
        tables = find_tables(policy, vault)
        links = {table.name: linking_parts(vault, f"FROM {table.found.sql}") for table in tables.values()}
    return tables, [link_warning(f"View {name}", parts) for name, parts in links.items() if parts]


def _certifiable(mechanism: Histogram | Count, attacker: AttackerModel, protects: str) -> bool:
    try:
        certify(mechanism, attacker, protects=protects)
    except NotCertifiableError:
        return False
    return True


def _units(tables: Mapping[str, PermittedTable]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(table.rules.unit for table in tables.values()))


def _table(policy: Policy, attacker: AttackerModel, permitted: PermittedTable) -> dict[str, Any]:
    table = permitted.policy
    return {
        "unit": list(permitted.rules.unit) or _EACH_ROW,
        "columns": {column: type_name(kind) for column, kind in permitted.columns.items()},
        "k": table.k,
        "k_with_noise": _with_noise(table) if policy.budget else None,
        "domains": {column: [_value(one) for one in values] for column, values in table.domains.items()},
        "period": policy.period_of(table),
        "protects": table.protects,
        "missing_unit": table.missing_unit,
        "one_cell": table.one_cell,
        "order_by": None if table.order_by is None else list(table.order_by),
        "undeclared": table.undeclared,
        "examples": _examples(policy, attacker, permitted),
    }


def _examples(policy: Policy, attacker: AttackerModel, permitted: PermittedTable) -> list[dict[str, Any]]:
    """Return questions that may be asked, and what the answer to each promises by itself."""
    table, more = permitted.policy, {}
    held = _worst_case_budgets(policy)
    if held:
        epsilon = float(f"{min(0.5, min(budget.epsilon for budget in held) / 2):.2g}") or 0.1
        delta = min(min(budget.delta for budget in held) or 1e-9, 1e-3)
        more = {"noise": epsilon, "release_threshold": table.k + math.ceil(math.log(100.0 / delta) / epsilon)}
    questions: list[tuple[dict[str, Any], str]] = [
        ({"table": permitted.name, "histogram": next(iter(permitted.columns)), "k": table.k, **more}, table.protects),
        ({"table": permitted.name, "count": True, "k": table.k, **more}, "presence"),
    ]
    return [
        {"question": question, "promise": _promise(Spec.read(question).mechanism(), attacker, protects)}
        for question, protects in questions
    ]


def _with_noise(table: TablePolicy) -> str:
    """Return where noise takes the place of k."""
    counts = f"counts and histograms by {', '.join(table.domains)} alone" if table.domains else "counts"
    return f"{counts} need no k beside noise: every one of them is answered, with its noise"


def _worst_case_budgets(policy: Policy) -> list[Budget]:
    """Return the budgets that allow nothing without noise: it has no guarantee against any attacker."""
    return [budget for budget in policy.budgets() if "worst_case" in budget.measures]


def _promise(mechanism: Histogram | Count, attacker: AttackerModel, protects: str) -> str:
    """Return what an answer promises by itself, or why there is none."""
    try:
        return certify(mechanism, attacker, protects=protects).sentence()
    except NotCertifiableError as refused:
        return str(refused)


def _value(value: Any) -> Any:
    """Return a value of a domain as JSON has it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _mode(path: Path) -> int:
    """Return a file's mode; 0, which lets nobody in, where there is no file."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0
