"""Accounts: which releases may stand together, what they add up to, and what a budget allows.

The functions work inside a transaction of the ledger's; what they store is derived from its chain of events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.errors import ArgumentError, BudgetExceededError, LedgerError, NoEvidenceError
from pkdp_pipeline.ledger.account import (
    Account,
    Bundle,
    Holding,
    read_account,
    store_holding,
    unit_text,
)
from pkdp_pipeline.ledger.admission import Admission, admission_of, admit, least_admission
from pkdp_pipeline.ledger.budget_check import BudgetCheck
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.parts import certificate_of, compared, counted, describe, read_parts, store_part
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.ledger.terms import Terms
from pkdp_pipeline.ledger.totals import add_up, unit_named

__all__ = [
    "Admission",
    "admission_of",
    "admit",
    "asked_unit",
    "charge",
    "least_admission",
    "recertified",
    "total",
    "withdraw",
]


def charge(
    db: Database,
    dataset: str,
    standing: Standing,
    certificate: Certificate | str,
    terms: Terms | None,
    entry: int,
) -> None:
    """Charge a release, and hold the totals to the budgets.

    Parameters
    ----------
    db : Database
    dataset : str
    standing : Standing
    certificate : Certificate or str
        That of the release, or its JSON text.
    terms : Terms or None
        None: what is charged is published already, and held to no budget.
    entry : int

    Raises
    ------
    BudgetExceededError
        If a budget is exceeded, with what was spent, what is asked for and what is allowed. The caller rolls the
        transaction back.
    NoEvidenceError
        If the release cannot be added up with the evidence declared, or takes the total away that there was, or
        there is a budget and no total. The caller rolls the transaction back.
    LedgerError
        If the certificate is not that of the release.
    """
    description = describe(certificate)
    certified = certificate_of(description)
    if certified.mechanism != standing.mechanism or certified.protects != standing.protects:
        raise LedgerError("the certificate to be charged is not that of the release: certify what is published.")
    holding = Holding.of(entry, standing, store_part(db, description))
    if terms is not None and terms.evidence:
        _check_adds_up(db, read_account(db, dataset, holding.span).plus(holding), entry, terms)
    if terms is not None and (terms.budgets or _is_new(db, dataset, holding, terms)):
        before = read_account(db, dataset)
        after = before.plus(holding)
        _check_still_adds_up(db, dataset, before, after, holding, terms)
        if terms.budgets:
            BudgetCheck(db, dataset, standing, terms, before, before).hold(certified, after)
    store_holding(db, dataset, holding, standing)


def withdraw(db: Database, dataset: str, entry: int) -> None:
    """Take a release that was given back out of the account.

    Raises
    ------
    LedgerError
        If it was not charged.
    """
    charged = "FROM holding WHERE entry = :entry AND dataset = :dataset"
    if not db.execute(f"SELECT entry {charged}", entry=entry, dataset=dataset):
        raise LedgerError("an entry to be given back was never charged: the ledger was altered.")
    db.execute(f"DELETE {charged}", entry=entry, dataset=dataset)


def recertified(
    db: Database,
    dataset: str,
    entry: int,
    certificate: Certificate | str,
    terms: Terms | None = None,
    held: Terms | None = None,
) -> None:
    """Let a release count with its new certificate, unless one it had was bolder; the totals are held to the budgets.

    Parameters
    ----------
    db : Database
    dataset : str
    entry : int
    certificate : Certificate or str
    terms : Terms, optional
        Under which the releases must add up as before.
    held : Terms, optional
        Whose budgets the totals may not exceed; a milder certificate takes nothing off the totals.

    Raises
    ------
    BudgetExceededError
        If the totals with the new certificate exceed a budget, or nobody can say that they do not. The caller rolls
        the transaction back.
    NoEvidenceError
        If terms are given, and with the new certificate the releases do not add up any more.
    LedgerError
        If it was not charged.
    """
    rows = db.execute(
        "SELECT h.standing, p.description FROM holding h JOIN part p ON p.sha256 = h.part "
        "WHERE h.entry = :entry AND h.dataset = :dataset",
        entry=entry,
        dataset=dataset,
    )
    if not rows:
        raise LedgerError("an entry to be certified again was never charged: the ledger was altered.")
    ((text, former),) = rows
    description = describe(certificate)
    if counted((former, description)) == former:
        return
    standing = Standing.from_dict(json.loads(text))
    how = compared(description, former)
    limited = held is not None and held.budgets and how != "as bold"
    if limited and how == "neither":
        raise BudgetExceededError(
            f"{standing.label!r} (period {standing.period}) counts in the budgets with a certificate that it has, "
            "and the new one promises more in one respect and less in another: certify it for an attacker who "
            "knows more in every respect, or less."
        )
    before, holding = read_account(db, dataset), Holding.of(entry, standing, store_part(db, description))
    others = before.without(entry)
    after = others.plus(holding)
    if terms is not None:
        _check_still_adds_up(db, dataset, before, after, holding, terms)
    if held is not None and limited:
        BudgetCheck(db, dataset, standing, held, before, others, again=True).hold(certificate_of(description), after)
    db.execute("UPDATE holding SET part = :part WHERE entry = :entry", part=holding.part, entry=entry)


def total(db: Database, dataset: str, unit: object, terms: Terms) -> Certificate:
    """Return what the data set's releases add up to for one privacy unit, with the evidence declared.

    Parameters
    ----------
    db : Database
    dataset : str
    unit : str, sequence of str, EACH_ROW or None
        Columns that name a person; None where the data set has releases for one unit only.
    terms : Terms

    Raises
    ------
    NoEvidenceError
        If `unit` is None and there are several, or the releases do not add up.
    ArgumentError
        If the data set has no releases for `unit`.
    """
    account = read_account(db, dataset)
    asked = _asked_unit(account, dataset, unit)
    if asked is None or asked not in account.units:
        return compose([])
    return _sum_of(db, account, account.bundles(asked), terms).with_caveats(*_limits(asked, account.units))


def asked_unit(db: Database, dataset: str, unit: object) -> str | None:
    """Return the privacy unit that is asked for (see `unit_text`), or the only one; None where there is none.

    Raises
    ------
    NoEvidenceError, ArgumentError
        See `total`.
    """
    return _asked_unit(read_account(db, dataset), dataset, unit)


def _asked_unit(account: Account, dataset: str, unit: object) -> str | None:
    units = account.units
    named = "; ".join(unit_named(one) for one in units)
    if unit is None and len(units) > 1:
        raise NoEvidenceError(
            f"data set {dataset!r} has releases for several privacy units ({named}), and nothing says how one person's "
            "records are spread over them: ask for one of them, as in total(unit=…)."
        )
    if unit is None:
        return units[0] if units else None
    asked = unit_text(_columns(unit))
    if asked not in units and units:
        raise ArgumentError(f"unit must be one of those that data set {dataset!r} has releases for: {named}.")
    return asked


def _check_adds_up(db: Database, account: Account, entry: int, terms: Terms) -> None:
    """Refuse a release that no total could hold: the evidence may be about another kind of release."""
    component = Account(account.component(entry))
    for unit in component.units:
        held = component.bundles(unit)
        add_up(held, read_parts(db, held), terms.evidence, beside_others=False)


def _is_new(db: Database, dataset: str, holding: Holding, terms: Terms) -> bool:
    """Return whether a release may take the total away.

    One more of a kind that is there already adds up as the others do, however many they are; and without evidence
    whatever is admitted adds up, unless something leaks beside some of it.
    """
    known = "SELECT 1 FROM holding WHERE dataset = :dataset AND unit = :unit AND part = :part LIMIT 1"

    def is_charged(part: str) -> bool:
        return bool(db.execute(known, dataset=dataset, unit=holding.unit, part=part))

    if is_charged(holding.part) or terms.evidence:
        return not is_charged(holding.part)
    marked = db.execute("SELECT sha256 FROM part WHERE description LIKE :mark", mark='%"leakage":%')
    return any(key == holding.part or is_charged(key) for (key,) in marked)


def _check_still_adds_up(
    db: Database, dataset: str, before: Account, after: Account, holding: Holding, terms: Terms
) -> None:
    """Refuse what takes the unit's total away; where there was none before, nothing is lost."""
    own = before.bundles(holding.unit)
    if not own or not _is_new(db, dataset, holding, terms):
        return
    try:
        _sum_of(db, after, after.bundles(holding.unit), terms)
    except NoEvidenceError:
        try:
            # Beside the units there are now.
            others = len(after.units) > 1
            add_up(own, read_parts(db, own), terms.evidence, beside_others=others)
        except NoEvidenceError:
            return
        raise


def _sum_of(db: Database, account: Account, held: Mapping[Bundle, int], terms: Terms) -> Certificate:
    return add_up(held, read_parts(db, held), terms.evidence, beside_others=len(account.units) > 1)


def _limits(unit: str, units: Sequence[str]) -> list[str]:
    columns = json.loads(unit)
    if columns:
        listed = [f"A person is one value of {', '.join(map(repr, columns))}."]
    else:
        listed = ["Every row is taken for a person: a person with several rows is protected in one of them only."]
    others = [unit_named(one) for one in units if one != unit]
    if others:
        listed.append(
            f"Releases of this data set for other privacy units ({'; '.join(others)}) are not in it: what they tell "
            "about the same people comes on top."
        )
    return listed


def _columns(unit: object) -> tuple[str, ...]:
    from pkdp_pipeline.model.unit import EachRow

    if isinstance(unit, EachRow):
        return ()
    listed = (unit,) if isinstance(unit, str) else unit
    if not isinstance(listed, Sequence) or not all(isinstance(column, str) for column in listed):
        raise ArgumentError("unit must be a column name, a list of column names, pkdp.EACH_ROW, or None.")
    return tuple(listed)
