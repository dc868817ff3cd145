"""Question: what ``pkdp plan`` is asked, by flags or in a dialogue, and the command that asks it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from pkdp_pipeline.cli.options import attacker_flags
from pkdp_pipeline.cli.plan_views.public_file import Assumed, CountsFile
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import KINDS, Evidence, evidence_from_dicts, evidence_to_dicts
from pkdp_pipeline.model.plain_text import exactly

__all__ = ["EVIDENCE", "Kind", "Question", "read_evidence_flags"]

Kind = Literal["histogram", "count"]

EVIDENCE = {
    key: tuple(field.name for field in fields(kind))
    for key, kind in KINDS.items()
    if key not in ("same_people", "bounded_sensitivity")  # they are about the releases of one period
}
"""What may be declared about several releases, and the numbers it takes, as in ``bounded_participation:5``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be planned.

    Parameters
    ----------
    kind : {"histogram", "count"}
    attacker : AttackerModel
    epsilon, delta : float
        What all releases together are to reach.
    protects : {"presence", "value"}
    days : int
    evidence : tuple of Evidence
    counts : CountsFile or Assumed, optional
        Public expectations of the counts.
    noise : bool
        Whether noise is acceptable.
    declared_cells : bool
        Whether all cells of a histogram are known in advance; otherwise their names are taken from the data.
    choice : int, optional
        Which of the choices is looked at closely, from 1.
    """

    kind: Kind
    attacker: AttackerModel
    epsilon: float
    delta: float
    protects: str = "presence"
    days: int = 1
    evidence: tuple[Evidence, ...] = ()
    counts: CountsFile | Assumed | None = None
    noise: bool = True
    declared_cells: bool = True
    choice: int | None = None

    @property
    def goal(self) -> dict[str, Any]:
        """What is to be reached, as keywords of the functions of `planning`."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "protects", "days", "evidence")}

    def command(self) -> str:
        """Return the command that asks this, to be pasted."""
        words = ["pkdp", "plan", self.kind, *attacker_flags(self.attacker)]
        if self.protects != "presence":
            words += ["--protects", self.protects]
        if self.days != 1:
            words += ["--days", str(self.days)]
        for document in evidence_to_dicts(self.evidence):
            numbers = [exactly(value) for name, value in document.items() if name != "kind"]
            words += ["--evidence", ":".join((document["kind"], *([",".join(numbers)] if numbers else [])))]
        words += ["--epsilon", exactly(self.epsilon), "--delta", exactly(self.delta)]
        words += [] if self.counts is None else self.counts.options
        words += [] if self.noise else ["--no-noise"]
        words += [] if self.declared_cells else ["--cells-from-data"]
        words += [] if self.choice is None else ["--choice", str(self.choice)]
        return shlex.join(words)


def read_evidence_flags(given: Sequence[str]) -> tuple[Evidence, ...]:
    """Return what is declared: each is a kind, with its numbers behind a colon where it takes some.

    Raises
    ------
    ArgumentError
        If it is not known, or its numbers are none.
    """
    return evidence_from_dicts([_document(one) for one in given])


def _document(text: str) -> dict[str, object]:
    kind, _, numbers = text.partition(":")
    name = kind.strip().lower().replace("-", "_")
    numbered = EVIDENCE.get(name)
    if numbered is None:
        raise ArgumentError(f"--evidence must be one of {', '.join(EVIDENCE)}, got {kind!r}.")
    given = [number.strip() for number in numbers.split(",")] if numbers.strip() else []
    least = 1 if numbered else 0
    if not least <= len(given) <= len(numbered):
        how = f"--evidence {name}:{','.join(field.upper() for field in numbered)}" if numbered else f"--evidence {name}"
        raise ArgumentError(f"--evidence {name} takes {'its numbers' if numbered else 'no number'}: write {how}.")
    return {"kind": name, **{field: _number(name, field, one) for field, one in zip(numbered, given, strict=False)}}


def _number(kind: str, field: str, text: str) -> float | int:
    try:
        return int(text) if field == "times" else float(text)
    except ValueError:
        what = "a whole number" if field == "times" else "a number"
        raise ArgumentError(f"--evidence {kind}: {field} must be {what}, got {text!r}.") from None
