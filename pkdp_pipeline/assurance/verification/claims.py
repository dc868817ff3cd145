"""Claim and Verification: what a file claims, and what came of checking it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pkdp_pipeline.errors import PkdpError, TemporaryError
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

Outcome = Literal["pass", "fail", "not_checked"]

Kind = Literal["release", "certificate", "report"]

SCHEMA = "pkdp-verification/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/verification.v1.json` describes it."""

_SHOWN: Mapping[Outcome, str] = {"pass": "pass", "fail": "FAIL", "not_checked": "not checked"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that a file claims.

    Attributes
    ----------
    key : str
        A stable name, such as ``certificate.numbers``.
    words : str
        What is claimed, as one plain sentence.
    outcome : {"pass", "fail", "not_checked"}
    detail : str
        What was done; why it fails; or why it was not checked.
    evidence : mapping
        The numbers behind `detail`, as JSON values.
    """

    key: str
    words: str
    outcome: Outcome
    detail: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a file says of itself may be quoted here, and must not steer a terminal.
        object.__setattr__(self, "detail", printable(self.detail))


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
        open_ = len(self.unchecked)
        left = "" if not open_ else f"; {open_} {'was' if open_ == 1 else 'were'} not checked"
        if self.failures:
            first = self.failures[0]
            return (
                f"This {self.kind} does not hold: {len(self.failures)} of {_claims(len(self.claims))} failed{left}. "
                f"The first is {first.key}."
            )
        held = len(self.claims) - open_
        return f"Nothing failed: {held} of {_claims(len(self.claims))} of this {self.kind} were checked and hold{left}."

    def to_json(self) -> str:
        """Return it as JSON; `pkdp_pipeline/schemas/verification.v1.json` describes it."""
        document = {
            "schema": SCHEMA,
            "library": {"name": "pkdp_pipeline", "version": VERSION},
            "kind": self.kind,
            "file": self.file,
            "passed": self.passed,
            "verdict": self.verdict,
            "claims": [asdict(claim) for claim in self.claims],
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    def __str__(self) -> str:
        lines = [f"{_SHOWN[claim.outcome]:<11}  {claim.key}: {claim.detail}" for claim in self.claims]
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


def claim_of(key: str, words: str, check: Check) -> Claim:
    """Return what came of a check; what breaks it is raised."""
    try:
        found = check()
    except BrokenError as error:
        return Claim(key, words, error.outcome, str(error), error.evidence)
    return Claim(key, words, "pass", *((found,) if isinstance(found, str) else found))


def checked(*checks: tuple[str, str, Check]) -> Iterator[Claim]:
    """Yield what came of each check, given key and words; the rest is left out where the file breaks one."""
    for key, words, check in checks:
        try:
            yield claim_of(key, words, check)
        except TemporaryError:
            raise  # of the ledger: nothing is known yet
        except PkdpError as error:
            yield Claim(key, words, "fail", str(error))
        except BREAKS as error:
            yield Claim(key, words, "fail", f"It is not one of ours: it cannot be read so ({type(error).__name__}).")
            return


def _claims(number: int) -> str:
    return "1 claim" if number == 1 else f"{number} claims"
