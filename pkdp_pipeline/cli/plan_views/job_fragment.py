"""The piece of a job file that publishes what was planned."""

from __future__ import annotations

import json

from pkdp_pipeline.cli.plan_views.question import Question
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import evidence_to_dicts
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.planning import Choice

__all__ = ["job_fragment"]


def job_fragment(question: Question, choice: Choice) -> str:
    """Return TOML to be pasted into a job file: what is declared, against whom, and the release.

    The evidence comes first: it belongs above the first ``[table]`` of the job. Names of columns and cells are to be
    filled in.
    """
    lines = []
    if question.evidence:
        tables = [_table(document) for document in evidence_to_dicts(question.evidence)]
        listed = tables[0] if len(tables) == 1 else f"[{', '.join(tables)}]"
        lines += [f"evidence = {listed}  # argued", ""]
    attacker = question.attacker.against_anyone() if choice.against_anyone else question.attacker
    if assumed := _assumed(attacker):
        lines += ["[attacker]  # argued, and never estimated from these data"]
        lines += [f"{name} = {_value(value)}" for name, value in assumed.items()]
        lines += [""]
    for leakage in attacker.leakage:
        lines += ["[[attacker.leakage]]  # known besides, whatever is published here"]
        lines += [f"{name} = {_value(value)}" for name, value in leakage.to_dict().items()]
        lines += [""]
    mechanism = choice.mechanism
    lines += ["[[release]]", 'name = "NAME"']
    if not isinstance(mechanism, Count):
        lines += ['by = "COLUMN"']
        if mechanism.k is None:
            lines += ['domain = ["CELL", "CELL"]  # all public cells']
    for name in ("k", "k_complement", "release_threshold"):
        value = getattr(mechanism, name, None)
        if value is not None:
            lines += [f"{name} = {value}"]
    if mechanism.noise is not None:
        lines += [f"noise = {_table({'epsilon': mechanism.noise.epsilon})}"]
    if question.protects != "presence":
        lines += [f"protects = {_value(question.protects)}"]
    return "\n".join(lines)


def _assumed(attacker: AttackerModel) -> dict[str, object]:
    """Return the fields that are declared, without what is known besides."""
    named = {name: value for name, value in attacker.to_dict().items() if name != "leakage" and value is not None}
    if not attacker.known:
        named.pop("known"), named.pop("influence")
    return named


def _table(values: dict[str, object]) -> str:
    return f"{{ {', '.join(f'{name} = {_value(value)}' for name, value in values.items())} }}"


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list) else repr(value)
