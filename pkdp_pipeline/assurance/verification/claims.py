"""Claim and Verification: what a file claims, and what came of checking it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pkdp_pipeline.display.ledger.words import number_of
from pkdp_pipeline.errors import PkdpError, TemporaryError
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

Outcome = Literal["pass", "fail", "not_checked"]

Kind = Literal["release", "certificate", "report"]

SCHEMA = "pkdp-verification/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/verification.v1.json` describes it."""

WORDS: Mapping[str, str] = {
    "release.id": "The id is that of this table and this certificate.",
    "release.content": "The file holds the table, the certificate and the id, and nothing else.",
    "table.columns": "The columns are those that the mechanism publishes; their types tell nothing that is withheld.",
    "table.cells": "Every cell is named once, in the order of publication, and only suppressed as declared.",
    "table.counts": "Every count obeys the thresholds of the mechanism.",
    "certificate.structure": "The certificate is built as its published schema says.",
    "certificate.numbers": "Every stored number is what the mechanism and the declared attacker give.",
    "certificate.words": "Sentence, assumptions and theorems are those of what is certified.",
    "certificate.own_texts": "No text that was written into it by hand promises anything.",
    "certificate.enumerated": "No declared attacker who was tried by exact enumeration learns more than the file says.",
    "certificate.simulated": "No declared attacker who was tried by simulation learns more than the file says.",
    "certificate.anyone": "No attacker who was tried and knows everybody else learns more than the noise allows.",
    "certificate.together": "No attacker who was tried on several releases together learns more than the total says.",
    "report.structure": "The report is built as its published schema says.",
    "report.page": "The file is, byte by byte, what its content renders to.",
    "report.content": "What follows from the certificates that the report carries is what they give.",
    "releases.tables": "Every table and series keeps the rules of the mechanism that its certificate names.",
    "report.total": "The ledger's total, its points over time and its budgets are what the certificates add up to.",
    "report.texts": "No text that is copied from the job or the ledger speaks of a guarantee.",
    "report.origin": "Names, questions, files, checks, remarks and reasons are those of its job and its ledger.",
    "ledger.chain": "The ledger's chain and everything derived from it are intact.",
    "ledger.head": "The chain holds the head that the certificate names.",
    "ledger.holds": "The ledger holds exactly what the file shows.",
    "ledger.standing": "Nothing that the ledger holds undoes what is certified.",
    "ledger.series": "The ledger holds a release for every period of every series, with these counts.",
    "ledger.total": "The report's total is what the ledger's releases add up to.",
    "ledger.points": "The points over time are what the ledger's releases add up to after each period.",
    "counts.published": "The counts are those that were published.",
    "assumptions.declared": "The declared attacker and releases are those that the curator declared before looking.",
}
"""What is claimed, by key; a report's promises claim what a certificate does, as ``promises.0.numbers``."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a file claims.

    Attributes
    ----------
    key : str
        A stable name, such as ``certificate.numbers``.
    outcome : {"pass", "fail", "not_checked"}
    detail : str
        What was done; why it fails; or why it was not checked.
    evidence : mapping
        The numbers behind `detail`, as JSON values.
    """

    key: str
    outcome: Outcome
    detail: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a file says of itself may be quoted here, and must not steer a terminal.
        object.__setattr__(self, "detail", printable(self.detail))

    @property
    def words(self) -> str:
        """What is claimed, as one plain sentence."""
        return WORDS[re.sub(r"^promises\.\d+\.", "certificate.", self.key)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What checking a file has found; made by `verify`.

    Attributes
    ----------
    kind : {"release", "certificate", "report"}
        What the file is, by its content.
    file : str
        Its name, without the folder.
    claims : tuple of Claim
    """

    kind: Kind
    file: str
    claims: tuple[Claim, ...]

    @property
    def passed(self) -> bool:
        """Whether no claim failed; some may not have been checked."""
        return not self.failures

    @property
    def failures(self) -> tuple[Claim, ...]:
        """The claims that failed."""
        return tuple(claim for claim in self.claims if claim.outcome == "fail")

    @property
    def unchecked(self) -> tuple[Claim, ...]:
        """The claims that were not checked."""
        return tuple(claim for claim in self.claims if claim.outcome == "not_checked")

    @property
    def verdict(self) -> str:
        """Return what was found in all, as one sentence."""
        of = number_of(len(self.claims), "claim")
        left = f"; {len(self.unchecked)} not checked" if self.unchecked else ""
        if self.failures:
            first = self.failures[0].key
            return f"This {self.kind} does not hold: {len(self.failures)} of {of} failed{left}. The first is {first}."
        held = len(self.claims) - len(self.unchecked)
        return f"Nothing failed: {held} of {of} of this {self.kind} were checked and hold{left}."

    def to_json(self) -> str:
        """Return it as JSON; `pkdp_pipeline/schemas/verification.v1.json` describes it."""
        document = {
            "schema": SCHEMA,
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "kind": self.kind,
            "file": self.file,
            "passed": self.passed,
            "verdict": self.verdict,
            "claims": [{"key": claim.key, "words": claim.words, **asdict(claim)} for claim in self.claims],
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    def __str__(self) -> str:
        shown = {"pass": "pass", "fail": "FAIL", "not_checked": "not checked"}
        lines = [f"{shown[claim.outcome]:<11}  {claim.key}: {claim.detail}" for claim in self.claims]
        return "\n".join((f"{self.file} ({self.kind})", *lines, self.verdict))


class BrokenError(Exception):
    """A claim does not hold: why, and the numbers behind that."""

    outcome: Outcome = "fail"

    def __init__(self, detail: str, **evidence: Any) -> None:
        super().__init__(detail)
        self.evidence = evidence


class UncheckedError(BrokenError):
    """A claim could not be checked: why."""

    outcome: Outcome = "not_checked"


BREAKS: tuple[type[Exception], ...] = (
    PkdpError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What code that expects a sound document may raise where it meets another one. Each is a failure of the file."""

Check = Callable[[], "str | tuple[str, Mapping[str, Any]]"]
"""What checks a claim: it returns what was done, perhaps with numbers, or raises what it found."""


def claim_of(key: str, check: Check) -> Claim:
    """Return what came of a check; what breaks it is raised."""
    try:
        found = check()
    except BrokenError as error:
        return Claim(key, error.outcome, str(error), error.evidence)
    return Claim(key, "pass", *((found,) if isinstance(found, str) else found))


def checked(checks: Mapping[str, Check]) -> Iterator[Claim]:
    """Yield what came of each check, by key; the rest is left out where the file breaks one."""
    for key, check in checks.items():
        try:
            yield claim_of(key, check)
        except TemporaryError:
            raise  # of the ledger: nothing is known yet
        except PkdpError as error:
            yield Claim(key, "fail", str(error))
        except BREAKS as error:
            yield Claim(key, "fail", f"It is not one of ours: it cannot be read so ({type(error).__name__}).")
            return
