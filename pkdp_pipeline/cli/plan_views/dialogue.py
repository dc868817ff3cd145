"""Dialogue: what ``pkdp plan`` asks in plain words when nothing is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pkdp_pipeline.cli.plan_views.asking import Ask, Asker, above_zero, at_least_zero, share, whole, yes
from pkdp_pipeline.cli.plan_views.plan import Plan
from pkdp_pipeline.cli.plan_views.question import Assumed, CountsFile, Question
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up

__all__ = ["ask_choice", "ask_question"]


def _after(epsilon: float) -> str:
    """Return how sure somebody can be who was undecided, rounded up."""
    return f"{rounded_up(100.0 / (1.0 + math.exp(-epsilon)))} %"


_KIND = Ask(
    "What is published?",
    "A table in which every person is in one group or in none, or a single number.",
    options={
        "histogram": "counts per group: people by district, by diagnosis, by carrier",
        "count": "one count: how many people …",
    },
)
_PROTECTS = Ask(
    "What has to be hidden?",
    "Presence: being in the table is the secret, as in a disease registry, and people may be absent from it. "
    "Value: the group is the secret, as in an election, where everybody knows who voted.",
    options={
        "presence": "whether a person is in the table at all",
        "value": "which group a person is in, even from somebody who knows that the person is there",
    },
)
_NOISE = Ask(
    "May the published numbers carry noise?",
    "Noise changes every number a little, at random. It needs no assumption about the attacker, and it adds "
    "up over many releases without evidence. Without noise the numbers are exact, small ones are missing, and the "
    "promise is only against attackers who fit the assumptions that you argue.",
    yes,
    "yes",
)
_LIST = Ask(
    "Is there a public list of all groups, fixed in advance?",
    "With such a list noise is enough, and empty groups are published too. Where the names of groups are "
    "found in the data, a name alone tells that somebody is there, and noise needs a release threshold as well.",
    yes,
    "yes",
)
_ABSENT = Ask(
    "Can everybody credibly be absent from the table?",
    "In a sample, one provider's customers, or one day, anybody may be absent. In a census, an election or a "
    "full register nobody is: then what matters is how sure an attacker can be between two groups.",
    yes,
    "no",
)
_TOLD = Ask(
    "Told that a person is either in this group or absent, how sure can an attacker be at most that it is the group?",
    "For every person, every group and every attacker you want to be protected against: the largest such probability. "
    "It is conditional: told that it is this group or absence. Where nobody is ever absent it is 100 %. Base rate from "
    "elsewhere, times the strongest clue; never estimated from the data to be protected. docs/attacker.md is a guide.",
)
_BETWEEN = Ask(
    "Told that a person is in one of two groups, how sure can an attacker be at most which?",
    "For every person and every two groups, the largest such probability; at least 50 %. Nothing is assumed about "
    "absence, and exact totals may stand beside the table. docs/attacker.md is a guide.",
)
_COUNTED = Ask(
    "How sure can an attacker be, at most, that another person is counted?",
    "For every other person whom the attacker does not know for certain: the largest such probability, argued from "
    "elsewhere and never estimated from the data to be protected. docs/attacker.md is a guide.",
)
_AT_LEAST = Ask(
    "And at least? With this, a count can be published exactly even where it is small.",
    "How sure the attacker is, at least, that another person is counted. With it, and with a number of people "
    "about whom the attacker is in this doubt, no threshold is needed. Leave it out where it cannot be argued.",
    default="",
)
_UNKNOWN = Ask(
    "About how many other people, at least, is the attacker in this doubt?",
    "People whose records the attacker does not know, for whom both numbers hold; all others may be known.",
    default="",
)
_KNOWN = Ask(
    "How many people does an attacker know to be {where}, or can put there?",
    "Everybody knows her own record, so a reader who took part knows 1 at least. Count everybody of whom the "
    "attacker is surer than the number above. 0 claims that the attacker knows nobody.",
    whole(0),
    "1",
)
_WHY_KNOWN = Ask(
    "Why are they known?",
    "When in doubt, the first. The second counts on only some of them being there.",
    options={
        "active": "because they are there, or put there: patients of a nurse, members, own accounts",
        "passive": "for other reasons: picked before it was known who would be there",
    },
)
_DAYS = Ask(
    "How many times will it be published about the same people, such as 365 days?",
    "The promise is for all of them together: what the releases of a year tell, one beside the other.",
    whole(1),
    "1",
)
_EVIDENCE = Ask(
    "What can be argued about how a person's releases depend on one another?",
    "Without evidence exact counts of several releases promise nothing together. It is argued, like the "
    "numbers before, and false evidence voids the promise: an illness or a trip links a person's days. "
    "'Told her past' is never enough. docs/composition.md has the rules and what breaks them.",
    options={
        "none": "none of these: only noise adds up",
        "independent_given_habits": "given what is fixed about each person (habits, which may be known), the days are "
        "independent",
        "once_per_unit": "everybody appears in one of them at most: registrations, first diagnoses, votes",
        "disjoint_units": "they are about different people, by a public list fixed in advance",
        "one_day_protected": "the numbers hold for one day of a person, told all her other days, before and after",
        "bounded_participation": "nobody takes part in more than so many of them",
        "bounded_dependence": "each depends on all earlier ones together by at most (ε, δ)",
    },
)
_NUMBERS = {
    "bounded_participation": {
        "times": Ask(
            "In how many does anybody take part, at most?",
            "The largest number for any person. Without noise, a person's releases have to be independent given her "
            "habits as well, after any capping.",
            whole(1),
        )
    },
    "bounded_dependence": {
        "epsilon": Ask(
            "By which ε does each depend on all earlier ones together, at most?",
            "Evidence about pairs of days, or about consecutive ones, is not enough.",
            at_least_zero,
        ),
        "delta": Ask("And by which δ?", "0 where the ε always holds.", share, "0"),
    },
}
_HABITS = Ask(
    "Are her releases independent as well, given what is fixed about each person?",
    "Without noise this is needed too. A program that caps how often people take part links their days.",
    yes,
    "no",
)
_EPSILON = Ask(
    "Which ε is promised, for all of it together?",
    f"50 % sure before, and after at most, {'; '.join(f'ε = {exactly(e)}: {_after(e)}' for e in (0.5, 1, 2, 4, 8))}. "
    "Choose what can be defended to those in the table.",
    at_least_zero,
    "1",
    note="How much the table may change what an attacker thinks: odds by a factor of e^ε at most. At ε = 1, "
    f"whoever was 50 % sure of something about a person is at most {_after(1.0)} sure of it afterwards.",
)
_DELTA = Ask(
    "Up to which δ?",
    "What a table tells is no more than this would: with probability δ everything about a person, otherwise a "
    "hint that moves the odds by e^ε at most. With 100,000 people concerned, 1e-6 for each leaves at most one in "
    "ten that it is everything for any of them.",
    above_zero,
    "1e-6",
    note="With this probability the table may tell more, even everything; far below one in the number of people.",
)
_COUNTS = Ask(
    "By which counts shall suppression be estimated? Never by the data to be protected.",
    "How much of the table is missing below k depends on the counts. A k that is chosen by a look at the "
    "protected counts voids its certificate; so counts must be public, or assumed.",
    options={
        "none": "by none: it is not estimated",
        "file": "a CSV of counts that are public already: last year's table, a census",
        "assumed": "numbers that you assume",
    },
)
_FILE = Ask(
    "Which file? By naming it you declare that it is public.",
    "A CSV with a header, a row for each cell and a column of whole numbers called count, or named next.",
)
_COLUMN = Ask("Which column has the counts?", "The name of a column of whole numbers, as in the file's header.")
_PEOPLE = Ask("How many people are there in all?", "An assumption; it is repeated beside every estimate.", whole(0))
_CELLS = Ask(
    "In how many groups?", "An assumption, too.", lambda answer: Assumed(cells=whole(1)(answer), people=0).cells
)
_SPREAD = Ask(
    "How are they spread?",
    "Sizes of towns and frequencies of diagnoses are roughly of the second kind.",
    options={"even": "evenly", "zipf": "a few large groups and many small ones: in proportion to 1/rank"},
)
_CHOICE = Ask(
    "Which choice shall be looked at closely, and written as a job file?",
    "Its number in the table. Exact counts are better where the assumptions can be defended; noise is better "
    "where they cannot, and where small cells matter.",
    default="1",
)


def ask_question(asker: Asker, screen: Screen) -> Question:
    """Return what was answered, as a question."""
    screen.title("pkdp plan: which k, or which noise, keeps a promise")
    screen.say(
        "Enter takes what stands in brackets, ? explains, Ctrl-C leaves. No data are read, but for a file of public "
        "counts that you may name, and nothing is written.",
        indent=0,
    )
    kind = asker(_KIND)
    table = kind == "histogram"
    protects = asker(_PROTECTS) if table else "presence"
    noise = asker(_NOISE)
    declared_cells = not (table and noise) or asker(_LIST)
    attacker = _attacker(asker, table, protects, noise)
    days = asker(_DAYS)
    return Question(
        kind=kind,
        attacker=attacker,
        protects=protects,
        days=days,
        evidence=_evidence(asker) if days > 1 else (),
        epsilon=asker(_EPSILON),
        delta=asker(_DELTA),
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

    chosen: Plan = asker(replace(_CHOICE, check=check))
    return chosen


def _attacker(asker: Asker, table: bool, protects: str, noise: bool) -> AttackerModel:
    """Ask what can be argued; where noise is acceptable nothing has to be."""
    asked = _COUNTED if not table else _TOLD if protects == "presence" or asker(_ABSENT) else _BETWEEN
    name = "p_max_between" if asked is _BETWEEN else "p_max"
    if noise:
        why = f"{asked.help} If nothing can be argued, leave it out: noise protects without it."
        asked = replace(asked, help=why, default="")
    attacker = _declared(asker, asked, AttackerModel(), name, share)
    if not table and attacker.p_max not in (None, 1.0):
        attacker = _declared(asker, _AT_LEAST, attacker, "p_min", share)
        if attacker.p_min:
            attacker = _declared(asker, _UNKNOWN, attacker, "unknown", whole(0))
    if attacker.p_max is None and attacker.p_max_between is None:
        return attacker  # one about whom nothing is argued may know everybody
    where = "in the table" if table else "counted"
    known = asker(replace(_KNOWN, question=_KNOWN.question.format(where=where)))
    return replace(attacker, known=known, influence=asker(_WHY_KNOWN)) if known else attacker


def _declared(
    asker: Asker, asked: Ask, attacker: AttackerModel, name: str, read: Callable[[str], float]
) -> AttackerModel:
    """Ask for one field of the attacker; without an answer it stays as it is."""

    def check(answer: str) -> AttackerModel:
        declared: dict[str, Any] = {name: read(answer)} if answer else {}
        return replace(attacker, **declared)

    made: AttackerModel = asker(replace(asked, check=check))
    return made


def _evidence(asker: Asker) -> tuple[Evidence, ...]:
    kind = asker(_EVIDENCE)
    if kind == "none":
        return ()
    documents = [{"kind": kind, **{name: asker(asked) for name, asked in _NUMBERS.get(kind, {}).items()}}]
    if kind == "bounded_participation" and asker(_HABITS):
        documents.append({"kind": "independent_given_habits"})
    return evidence_from_dicts(documents)


def _counts(asker: Asker, table: bool) -> CountsFile | Assumed | None:
    chosen = asker(_COUNTS)
    if chosen == "none":
        return None
    if chosen == "file":
        file: CountsFile = asker(replace(_FILE, check=partial(_public_file, asker)))
        return file
    if not table:
        return Assumed(cells=1, people=asker(replace(_PEOPLE, question="How large may the count be?")))
    return Assumed(people=asker(_PEOPLE), cells=asker(_CELLS), spread=asker(_SPREAD))


def _public_file(asker: Asker, path: str) -> CountsFile:
    file = CountsFile(path=path)
    if not file.has("count"):
        file = replace(file, column=asker(_COLUMN))
    file.read()
    return file
