"""Terms: what a curator has declared about a data set, recorded with every release that is charged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.budget import Budget
from pkdp_pipeline.model.evidence import (
    BoundedSensitivity,
    Evidence,
    SamePeople,
    SameTable,
    evidence_from_dicts,
    evidence_to_dicts,
    read_evidence,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Evidence and budgets in force.

    Parameters
    ----------
    evidence : tuple of Evidence
        How the releases of the data set depend on one another.
    budgets : tuple of Budget
        The most its releases may add up to, for each privacy unit.

    Raises
    ------
    ArgumentError
        If they are something else, or evidence that no rule takes together.
    """

    evidence: tuple[Evidence, ...] = ()
    budgets: tuple[Budget, ...] = ()

    def __post_init__(self) -> None:
        budgets, evidence = given(self.budgets, self.evidence)
        object.__setattr__(self, "evidence", evidence)
        object.__setattr__(self, "budgets", budgets)

    def to_dict(self) -> dict[str, Any]:
        """Return the terms as a JSON-ready dictionary."""
        return {
            "evidence": evidence_to_dicts(self.evidence),
            "budgets": [budget.to_dict() for budget in self.budgets],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Terms:
        """Rebuild terms from the `fields` of `to_dict`.

        Raises
        ------
        ArgumentError
            If a field is unknown, missing or malformed.
        """
        if not isinstance(fields, Mapping) or set(fields) != {"evidence", "budgets"}:
            raise ArgumentError("terms must have the fields evidence and budgets, and no others.")
        if not isinstance(fields["budgets"], list):
            raise ArgumentError("the budgets of terms must be a list.")
        return cls(
            evidence=evidence_from_dicts(fields["evidence"]),
            budgets=tuple(Budget.from_dict(budget) for budget in fields["budgets"]),
        )


def given(budget: object, evidence: object) -> tuple[tuple[Budget, ...] | None, tuple[Evidence, ...] | None]:
    """Read what is given when a ledger is opened; None stays None, for "as recorded".

    Raises `ArgumentError` if it is neither a budget nor a list of them, or no evidence that a ledger can use.
    """
    return None if budget is None else _budgets(budget), None if evidence is None else _evidence(evidence)


def _budgets(budget: object) -> tuple[Budget, ...]:
    listed = [budget] if isinstance(budget, Budget) else budget
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        raise ArgumentError("budget must be a Budget or a list of them: write pkdp.Budget(1.0, 1e-6).")
    budgets = tuple(listed)
    if not all(isinstance(item, Budget) for item in budgets):
        raise ArgumentError("budget must be a Budget or a list of them: write pkdp.Budget(1.0, 1e-6).")
    return tuple(dict.fromkeys(budgets))


def _evidence(evidence: object) -> tuple[Evidence, ...]:
    declared = read_evidence(evidence)
    own = next(
        (type(declaration).__name__ for declaration in declared if isinstance(declaration, SamePeople | SameTable)),
        None,
    )
    if own is not None:
        raise ArgumentError(
            f"evidence may not be {own} for a ledger: it finds out itself which releases are about the same "
            "people in the same period, and which certificates about the same table. Leave it out."
        )
    if any(isinstance(declaration, BoundedSensitivity) for declaration in declared):
        raise ArgumentError(
            "evidence may not be BoundedSensitivity for a ledger: it is about counts of one period, and a ledger's "
            "evidence about all of them. Leave it out, and compose the certificates of one period with it."
        )
    return declared
