"""Claim and Verification: what a file claims, and what came of checking it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

__all__ = ["SCHEMA", "Claim", "Kind", "Outcome", "Verification", "failed", "not_checked", "passed"]

Outcome = Literal["pass", "fail", "not_checked"]

Kind = Literal["release", "certificate", "report"]

SCHEMA = "pkdp-verification/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/verification.v1.json` describes it."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_SHOWN: Mapping[Outcome, str] = MappingProxyType({"pass": "pass", "fail": "FAIL", "not_checked": "not checked"})


@dataclass(frozen=True, slots=True, kw_only=True)
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
    evidence: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

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
            "claims": [
                {
                    "key": claim.key,
                    "words": claim.words,
                    "outcome": claim.outcome,
                    "detail": claim.detail,
                    "evidence": dict(claim.evidence),
                }
                for claim in self.claims
            ],
        }
        return json.dumps(document, ensure_ascii=False, indent=1)

    def __str__(self) -> str:
        lines = [f"{_SHOWN[claim.outcome]:<11}  {claim.key}: {claim.detail}" for claim in self.claims]
        return "\n".join((f"{self.file} ({self.kind})", *lines, self.verdict))


def passed(key: str, words: str, detail: str, **evidence: Any) -> Claim:
    """Return a claim that holds."""
    return Claim(key=key, words=words, outcome="pass", detail=detail, evidence=evidence)


def failed(key: str, words: str, detail: str, **evidence: Any) -> Claim:
    """Return a claim that does not hold."""
    return Claim(key=key, words=words, outcome="fail", detail=detail, evidence=evidence)


def not_checked(key: str, words: str, detail: str, **evidence: Any) -> Claim:
    """Return a claim that could not be checked; `detail` says why."""
    return Claim(key=key, words=words, outcome="not_checked", detail=detail, evidence=evidence)


def _claims(number: int) -> str:
    return "1 claim" if number == 1 else f"{number} claims"
