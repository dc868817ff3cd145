"""Dialogue: what ``pkdp plan`` asks in plain words when nothing is given; plan_questions.toml has the questions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pkdp_pipeline.cli.options import share
from pkdp_pipeline.cli.plan import Plan
from pkdp_pipeline.cli.plan_question import EVIDENCE, Assumed, CountsFile, Question
from pkdp_pipeline.display.screen import Screen
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts


@cache
def _questions() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("plan_questions.toml").read_text(encoding="utf-8"))


class Asker:
    """Asks one question after another, each again until the answer keeps to the rule that is named.

    Parameters
    ----------
    screen : Screen
    read : callable
        Prompt → the line that was typed; raises `EOFError` at the end of the input.
    """

    def __init__(self, screen: Screen, read: Callable[[str], str] = input) -> None:
        self._screen = screen
        self._read = read

    def __call__(self, name: str, read: Callable[[str], Any] | None = None, **words: str) -> Any:
        """Return what a question's reader, or `read`, makes of the answer; `words` take the place of the file's."""
        asked = {"note": "", "options": {}, "default": None, "reads": "text", **_questions()[name], **words}
        options: dict[str, str] = asked["options"]
        self._screen.head(asked["question"].strip())
        if asked["note"]:
            self._screen.say(asked["note"])
        for place, meaning in enumerate(options.values(), start=1):
            self._screen.hanging(f"{place}  {meaning}", margin=5)
        default = "1" if options else asked["default"]
        made = read or ((lambda answer: _key(list(options), answer)) if options else _READERS[asked["reads"]])
        prompt = "  > " if default is None else f"  [{default or 'cannot say'}] > "
        while True:
            answer = self._read(prompt).strip()
            if answer == "?":
                self._screen.say(asked["help"], indent=4)
                continue
            if not answer and default is None:
                self._screen.say("There is no default: this has to be answered; ? explains.", indent=4)
                continue
            try:
                return made(answer or default or "")
            except (ArgumentError, ConfigError) as error:
                self._screen.say(str(error), indent=4)


def ask_question(asker: Asker, screen: Screen) -> Question:
    """Return what was answered, as a question."""
    screen.title("pkdp plan: which k, or which noise, keeps a promise")
    screen.say(
        "Enter takes what stands in brackets, ? explains, Ctrl-C leaves. No data are read, but for a file of public "
        "counts that you may name, and nothing is written.",
        indent=0,
    )
    kind = asker("kind")
    table = kind == "histogram"
    protects: Any = asker("protects") if table else "presence"
    noise = asker("noise")
    declared_cells = not (table and noise) or asker("declared_cells")
    attacker = _attacker(asker, table, protects, noise)
    days = asker("days")
    return Question(
        kind=kind,
        attacker=attacker,
        protects=protects,
        days=days,
        evidence=_evidence(asker) if days > 1 else (),
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


def _attacker(asker: Asker, table: bool, protects: str, noise: bool) -> AttackerModel:
    """Ask what can be argued; where noise is acceptable nothing has to be."""
    name = asked = "p_max"
    if table:
        asked = "p_max_of_cells"
        if protects == "value" and not asker("absent"):
            name = asked = "p_max_between"
    free = {}
    if noise:
        why = "If nothing can be argued, leave it out: noise protects without it."
        free = {"default": "", "help": f"{_questions()[asked]['help']} {why}"}
    attacker = _declared(asker, asked, AttackerModel(), name, **free)
    if not table and attacker.p_max not in (None, 1.0):
        attacker = _declared(asker, "p_min", attacker)
        if attacker.p_min:
            attacker = _declared(asker, "unknown", attacker)
    if attacker.p_max is None and attacker.p_max_between is None:
        return attacker  # one about whom nothing is argued may know everybody
    where = "in the table" if table else "counted"
    known = asker("known", question=_questions()["known"]["question"].format(where=where))
    return replace(attacker, known=known, influence=asker("influence")) if known else attacker


def _declared(
    asker: Asker, asked: str, attacker: AttackerModel, name: str | None = None, **words: str
) -> AttackerModel:
    """Ask for one field of the attacker; without an answer it stays as it is."""
    reader = _READERS[_questions()[asked]["reads"]]

    def read(answer: str) -> AttackerModel:
        return replace(attacker, **({name or asked: reader(answer)} if answer else {}))

    made: AttackerModel = asker(asked, read, **words)
    return made


def _evidence(asker: Asker) -> tuple[Evidence, ...]:
    kind = asker("evidence")
    if kind == "none":
        return ()
    numbers = {name: asker(f"{kind}.{name}") for name in EVIDENCE[kind]}
    documents = [{"kind": kind, **numbers}]
    if kind == "bounded_participation" and asker("habits"):
        documents.append({"kind": "independent_given_habits"})
    return evidence_from_dicts(documents)


def _counts(asker: Asker, table: bool) -> CountsFile | Assumed | None:
    chosen = asker("counts")
    if chosen == "none":
        return None
    if chosen == "file":
        file: CountsFile = asker("file", lambda path: _public_file(asker, path))
        return file
    if not table:
        return Assumed(cells=1, people=asker("people_counted"))
    return Assumed(people=asker("people"), cells=asker("cells"), spread=asker("spread"))


def _public_file(asker: Asker, path: str) -> CountsFile:
    file = CountsFile(path=path)
    if not file.has("count"):
        file = replace(file, column=asker("column"))
    file.read()
    return file


def _key(keys: list[str], answer: str) -> str:
    if answer.isdecimal() and 1 <= int(answer) <= len(keys):
        return keys[int(answer) - 1]
    if answer.lower() in keys:
        return answer.lower()
    raise ArgumentError(f"Answer with a number from 1 to {len(keys)}; ? explains.")


def _yes(answer: str) -> bool:
    """Return whether the answer is yes."""
    if answer.lower() in ("y", "yes", "n", "no"):
        return answer.lower() in ("y", "yes")
    raise ArgumentError("Answer yes or no; ? explains.")


def real_number(answer: str) -> float:
    """Return a finite number."""
    try:
        value = float(answer)
    except ValueError:
        raise ArgumentError("It must be a number, such as 0.1 or 1e-6.") from None
    if not -1e300 < value < 1e300:
        raise ArgumentError("It must be a finite number.")
    return value


def whole(least: int) -> Callable[[str], int]:
    """Return the check for whole numbers of at least `least`."""

    def check(answer: str) -> int:
        text = answer.replace(",", "").replace("_", "")
        if not text.isdecimal() or len(text) > 15 or int(text) < least:
            raise ArgumentError(f"It must be a whole number of at least {least}.")
        return int(text)

    return check


def _at_least_zero(answer: str) -> float:
    """Return a number of at least 0."""
    value = real_number(answer)
    if value < 0.0:
        raise ArgumentError("It must be at least 0.")
    return value


def _above_zero(answer: str) -> float:
    """Return a probability that is not 0."""
    value = share(answer)
    if value == 0.0:
        raise ArgumentError("δ must be above 0: a threshold always leaves some probability; 1e-9 is small.")
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "yes": _yes,
    "probability": share,
    "epsilon": _at_least_zero,
    "delta": _above_zero,
    "whole": whole(0),
    "several": whole(1),
    "cells": lambda answer: Assumed(cells=whole(1)(answer), people=0).cells,
}
