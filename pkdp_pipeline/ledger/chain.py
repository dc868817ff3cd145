"""Chain: the events of a ledger, whose hashes name the event before, and the terms and budgets that they record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.model.evidence import (
    BoundedSensitivity,
    Evidence,
    SamePeople,
    SameTable,
    evidence_from_dicts,
    evidence_to_dicts,
    read_evidence,
)
from pkdp_pipeline.model.wording import choice, loss, probability, whole_number, written


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that the releases of a data set may add up to, for each privacy unit.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        At least 0 and below 1.
    part : {"partial_knowledge", "worst_case"}, optional
        Which total is held to it: the best bound there is, which rests on the attacker models, or the guarantee
        against any attacker. None: both.
    window_days : int, optional
        Hold the releases whose periods meet any run of this many days to it, instead of all releases. A
        period that is a label without dates is in every window.

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Notes
    -----
    A release that would exceed a budget is refused before any data is read. A total equal to the budget is
    within it.
    """

    epsilon: float = field(metadata={"examples": [1.0]})
    """The most that ε may add up to, at this delta."""
    delta: float = field(metadata={"examples": [1e-6]})
    """The delta at which it is measured."""
    _: KW_ONLY
    part: Literal["partial_knowledge", "worst_case"] | None = None
    """Which total is held to it; both when left out."""
    window_days: int | None = None
    """Hold every run of this many days to it, instead of the whole history."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", loss("epsilon of a budget", self.epsilon, limit=True))
        object.__setattr__(self, "delta", probability("delta of a budget", self.delta, limit=True))
        if self.delta >= 1.0:
            raise ArgumentError("delta of a budget must be below 1: at 1 nothing is protected.")
        if self.part is not None:
            choice("part of a budget", self.part, ("partial_knowledge", "worst_case"))
        if self.window_days is not None:
            days = whole_number("window_days of a budget", self.window_days, least=1)
            if days > 1_000_000:
                raise ArgumentError("window_days of a budget must be at most 1000000: leave it out for all releases.")
            object.__setattr__(self, "window_days", days)

    @property
    def measures(self) -> tuple[str, ...]:
        """The totals that are held to it."""
        return ("partial_knowledge", "worst_case") if self.part is None else (self.part,)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a JSON-ready dictionary."""
        return written(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Budget:
        """Rebuild a budget from the `fields` of `to_dict`; unknown or missing ones are an `ArgumentError`."""
        if not isinstance(fields, Mapping) or set(fields) != {"epsilon", "delta", "part", "window_days"}:
            raise ArgumentError("a budget must have the fields epsilon, delta, part and window_days.")
        return cls(fields["epsilon"], fields["delta"], part=fields["part"], window_days=fields["window_days"])


GENESIS = "0" * 64
"""The stand-in for a hash before the first event of a data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the ledger: something that happened to one key, never changed afterwards.

    Attributes
    ----------
    sequence : int
        Position in the whole ledger. It is given by the database and is not hashed.
    position : int
        1, 2, … within the data set.
    kind : str
        ``"reserved"``, ``"published"``, ``"given_back"``, ``"recertified"`` or ``"unreadable"``.
    key : str
        The key of the question; of an unreadable table its name.
    standing, certificate, terms : str or None
        JSON texts, hashed as they are written.
    content : bytes or None
        The released bytes.
    created_at : str
        UTC, ISO 8601. Clocks go wrong: it is for reading, and decides nothing.
    previous : str
        Hash of the event before it in the data set.
    """

    sequence: int
    dataset: str
    position: int
    kind: str
    key: str
    revision: int
    standing: str | None
    certificate: str | None
    terms: str | None
    release_id: str | None
    content: bytes | None
    created_at: str
    previous: str
    hash: str

    def recomputed(self) -> str:
        """Return the hash that the other fields give."""
        return event_hash(**{name: getattr(self, name) for name in FIELDS})


FIELDS = tuple(name for name in Event.__dataclass_fields__ if name not in ("sequence", "hash"))
"""The text that an event's hash covers."""


def event_hash(*, content: bytes | None, **fields: str | int | None) -> str:
    """Return the sha256, in hex, of an event's fields as JSON with sorted names, the content by its own sha256.

    Everything hashed is public: the content is what was released.
    """
    digest = None if content is None else hashlib.sha256(content).hexdigest()
    return hashlib.sha256(json_text({**fields, "content": digest}).encode()).hexdigest()


def json_text(content: object) -> str:
    """Return the JSON text under which a value is recorded: sorted names, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def checked(events: Iterable[Event], *, dataset: str, head: str | None = None) -> Iterator[Event]:
    """Yield the events of one data set in order, each after it was found to continue the chain.

    `events`: in the order of their positions. `head`: a hash that must be among those of the chain, known from
    elsewhere. A chain alone cannot show that its end is missing. Raises `LedgerError` where an event was altered,
    inserted, moved or removed; at the end, when `head` was not met.
    """
    previous, sequence = GENESIS, 0
    met = head is None or head == GENESIS
    for position, event in enumerate(events, start=1):
        if event.position != position or event.sequence <= sequence or event.previous != previous:
            raise LedgerError(
                f"the chain of data set {dataset!r} is broken at position {position}: an event before it was removed, "
                "inserted or moved. Restore the ledger from a backup."
            )
        if event.dataset != dataset or event.recomputed() != event.hash:
            raise LedgerError(
                f"event {event.sequence} of data set {dataset!r} was altered: its hash is not the one of its fields. "
                "Restore the ledger from a backup."
            )
        previous, sequence = event.hash, event.sequence
        met = met or event.hash == head
        yield event
    if not met:
        raise LedgerError(
            f"the chain of data set {dataset!r} does not hold the given head: its end was cut off, or this is another "
            "ledger. Restore the ledger from a backup that holds it."
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
