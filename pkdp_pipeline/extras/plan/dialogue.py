"""The questions of ``pkdp plan`` where nothing is given, and what is made of the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pkdp_pipeline.certificates.composed import compose
from pkdp_pipeline.cli.dialogue import Asker, ask_attacker, ask_evidence, exact_certificate, whole
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError
from pkdp_pipeline.extras.plan.answers import Plan
from pkdp_pipeline.extras.plan.question import Assumed, CountsFile, Question
from pkdp_pipeline.model.evidence import Evidence


def ask_question(asker: Asker) -> Question:
    """Return what was answered, as a question."""
    asker.begin(
        "pkdp plan: which k, or which noise, keeps a promise",
        "No data are read, but for a file of public counts that you may name, and nothing is written.",
    )
    kind = asker("kind")
    table = kind == "histogram"
    protects: Any = asker("protects") if table else "presence"
    noise = asker("noise")
    declared_cells = not (table and noise) or asker("declared_cells")
    attacker = ask_attacker(asker, table=table, protects=protects, noise=noise)
    days = asker("days")

    def adds_up(evidence: tuple[Evidence, ...]) -> None:
        try:
            if not noise:
                compose([(exact_certificate(kind, attacker, protects), 2)], evidence)
        except NoEvidenceError:
            raise ArgumentError(
                "Then exact counts of several releases promise nothing together: answer what can be argued, or go back "
                "to allow noise, which adds up without evidence."
            ) from None

    return Question(
        kind=kind,
        attacker=attacker,
        protects=protects,
        days=days,
        evidence=ask_evidence(asker, adds_up) if days > 1 else (),
        epsilon=asker("epsilon"),
        delta=asker("delta"),
        counts=_counts(asker, table),
        noise=noise,
        declared_cells=declared_cells,
    )


def ask_choice(asker: Asker, plan: Plan) -> Plan:
    """Return the plan with the choice that is looked at closely."""
    if len(plan.choices) == 1:
        return plan

    def check(answer: str) -> Plan:
        number = whole(1)(answer)
        if number > len(plan.choices):
            raise ArgumentError(f"Answer with a number from 1 to {len(plan.choices)}.")
        return plan if number == 1 else plan.choosing(number)

    chosen: Plan = asker("choice", read=check)
    return chosen


def _counts(asker: Asker, table: bool) -> CountsFile | Assumed | None:
    chosen = asker("counts")
    if chosen == "none":
        return None
    if chosen == "file":
        file: CountsFile = asker("file", _file)
        return file if file.has("count") else asker("column", lambda name: _readable(replace(file, column=name)))
    if not table:
        return Assumed(cells=1, people=asker("people_counted"))
    return Assumed(people=asker("people"), cells=asker("cells", _cells), spread=asker("spread"))


def _file(path: str) -> CountsFile:
    """Return a file that can be read, if its column of counts is not to be asked for."""
    file = CountsFile(path=path)
    return _readable(file) if file.has("count") else file


def _readable(file: CountsFile) -> CountsFile:
    file.read()
    return file


def _cells(answer: str) -> int:
    """Return a number of cells that counts may be assumed for."""
    return Assumed(cells=whole(1)(answer), people=0).cells
