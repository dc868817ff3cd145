"""The JSON form of a plan; `pkdp_pipeline/schemas/plan.v1.json` describes it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from pkdp_pipeline.certificates.statement import Scenario
from pkdp_pipeline.cli.plan_views.curves import Curve
from pkdp_pipeline.cli.plan_views.job_fragment import job_fragment
from pkdp_pipeline.cli.plan_views.planned import Inverse, Planned
from pkdp_pipeline.model.evidence import evidence_to_dicts
from pkdp_pipeline.model.mechanisms import mechanism_to_dict
from pkdp_pipeline.model.version import VERSION
from pkdp_pipeline.planning import Choice

__all__ = ["SCHEMA", "plan_document"]

SCHEMA = "pkdp-plan/1"


def plan_document(
    made: Planned, inverse: Sequence[Inverse], scenarios: Sequence[Scenario], drawn: Sequence[Curve]
) -> str:
    """Return a plan as JSON. Where there is no ε, it is null."""
    question = made.question
    document = {
        "schema": SCHEMA,
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "question": {
            "kind": question.kind,
            "protects": question.protects,
            "attacker": question.attacker.to_dict(),
            "epsilon": question.epsilon,
            "delta": question.delta,
            "days": question.days,
            "evidence": evidence_to_dicts(question.evidence),
            "noise": question.noise,
            "declared_cells": question.declared_cells,
            "counts": None
            if made.counts is None
            else {"source": made.counts.source, "cells": len(made.counts.counts), "people": made.counts.people},
        },
        "command": question.command(),
        "choices": [_choice(made, one) for one in made.choices],
        "without_noise": made.without_noise,
        "chosen": made.chosen,
        "sentence": made.choice.together.sentence(delta=question.delta),
        "limits": [{"field": one.field, "declared": one.declared, "limit": one.limit} for one in inverse],
        "what_if": [
            {
                "kind": one.kind,
                "attacker": one.words,
                "epsilon": _number(one.epsilon),
                "delta": one.delta,
                "delta_at_one": one.delta_at_one,
                "verdict": one.verdict,
            }
            for one in scenarios
        ],
        "curves": [
            {
                "field": one.field,
                "words": one.words,
                "declared": one.declared,
                "points": [
                    {"value": value, "epsilon": _number(epsilon)}
                    for value, epsilon in zip(one.values, one.epsilons, strict=True)
                ],
            }
            for one in drawn
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _choice(made: Planned, one: Choice) -> dict[str, Any]:
    question = made.question
    return {
        "way": one.way,
        "mechanism": mechanism_to_dict(one.mechanism),
        "against_anyone": one.against_anyone,
        "epsilon_at_delta": _number(one.together.epsilon(question.delta)),
        "delta_at_epsilon": one.together.delta(question.epsilon),
        "of_one_release": {
            "epsilon_at_delta": _number(one.certificate.epsilon(question.delta)),
            "delta_at_epsilon": one.certificate.delta(question.epsilon),
        },
        "mean_absolute_error": one.outcome.mean_absolute_error,
        "suppressed_cells": one.outcome.suppressed_cells,
        "suppressed_people": one.outcome.suppressed_people,
        "basis": one.outcome.basis,
        "job": job_fragment(question, one),
    }


def _number(value: float) -> float | None:
    return None if value == math.inf else value
