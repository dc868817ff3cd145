"""Dialogue: what ``pkdp plan`` asks in plain words when nothing is given."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pkdp_pipeline.cli.plan_views.asking import Asker, Option, real_number, share, whole
from pkdp_pipeline.cli.plan_views.planned import Planned
from pkdp_pipeline.cli.plan_views.public_file import SPREADS, Assumed, CountsFile
from pkdp_pipeline.cli.plan_views.question import Kind, Question
from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts
from pkdp_pipeline.model.plain_text import exactly
from pkdp_pipeline.model.wording import rounded_up

__all__ = ["ask_choice", "ask_question"]

_NOTHING = "cannot say"


def ask_question(asker: Asker, screen: Screen) -> Question:
    """Return what was answered, as a question."""
    screen.title("pkdp plan: which k, or which noise, keeps a promise")
    screen.say(
        "Enter takes what stands in brackets, ? explains, Ctrl-C leaves. No data are read, but for a file of public "
        "counts that you may name, and nothing is written.",
        indent=0,
    )
    kind = _kind(asker)
    protects = _protects(asker) if kind == "histogram" else "presence"
    noise = asker.agree(
        "May the published numbers carry noise?",
        help="Noise changes every number a little, at random. It needs no assumption about the attacker, and it adds "
        "up over many releases without evidence. Without noise the numbers are exact, small ones are missing, and the "
        "promise is only against attackers who fit the assumptions that you argue.",
        default=True,
    )
    declared_cells = kind == "count" or _declared_cells(asker, noise=noise)
    attacker = _known(asker, _sureness(asker, kind, protects, noise=noise), kind)
    days = asker.ask(
        "How many times will it be published about the same people, such as 365 days?",
        whole(1),
        help="The promise is for all of them together: what the releases of a year tell, one beside the other.",
        default="1",
    )
    evidence = _evidence(asker, noise=noise) if days > 1 else ()
    epsilon = _epsilon(asker)
    delta = _delta(asker)
    return Question(
        kind=kind,
        attacker=attacker,
        epsilon=epsilon,
        delta=delta,
        protects=protects,
        days=days,
        evidence=evidence,
        counts=_counts(asker, kind),
        noise=noise,
        declared_cells=declared_cells,
    )


def ask_choice(asker: Asker, made: Planned) -> Planned:
    """Return the plan with the choice that is looked at closely."""
    if len(made.choices) == 1:
        return made

    def check(answer: str) -> Planned:
        number = whole(1)(answer)
        if number > len(made.choices):
            raise ArgumentError(f"Answer with a number from 1 to {len(made.choices)}.")
        return made if number == 1 else made.choosing(number)

    return asker.ask(
        "Which choice shall be looked at closely, and written as a job file?",
        check,
        help="Its number in the table. Exact counts are better where the assumptions can be defended; noise is better "
        "where they cannot, and where small cells matter.",
        default="1",
    )


def _kind(asker: Asker) -> Kind:
    chosen = asker.choose(
        "What is published?",
        (
            Option("histogram", "counts per group: people by district, by diagnosis, by carrier"),
            Option("count", "one count: how many people …"),
        ),
        help="A table in which every person is in one group or in none, or a single number.",
    )
    return "count" if chosen == "count" else "histogram"


def _protects(asker: Asker) -> str:
    return asker.choose(
        "What has to be hidden?",
        (
            Option("presence", "whether a person is in the table at all"),
            Option("value", "which group a person is in, even from somebody who knows that the person is there"),
        ),
        help="Presence: being in the table is the secret, as in a disease registry, and people may be absent from it. "
        "Value: the group is the secret, as in an election, where everybody knows who voted.",
    )


def _declared_cells(asker: Asker, *, noise: bool) -> bool:
    if not noise:
        return True
    return asker.agree(
        "Is there a public list of all groups, fixed in advance?",
        help="With such a list noise is enough, and empty groups are published too. Where the names of groups are "
        "found in the data, a name alone tells that somebody is there, and noise needs a release threshold as well.",
        default=True,
    )


@dataclass(frozen=True, slots=True)
class _Sure:
    """One question about how sure an attacker can be: the field, the words, and what helps to answer."""

    field: str
    question: str
    help: str


_TOLD = _Sure(
    "p_max",
    "Told that a person is either in this group or absent, how sure can an attacker be at most that it is the group?",
    "For every person, every group and every attacker you want to be protected against: the largest such probability. "
    "It is conditional: told that it is this group or absence. Where nobody is ever absent it is 100 %. Base rate from "
    "elsewhere, times the strongest clue; never estimated from the data to be protected. docs/attacker.md is a guide.",
)
_BETWEEN = _Sure(
    "p_max_between",
    "Told that a person is in one of two groups, how sure can an attacker be at most which?",
    "For every person and every two groups, the largest such probability; at least 50 %. Nothing is assumed about "
    "absence, and exact totals may stand beside the table. docs/attacker.md is a guide.",
)
_COUNTED = _Sure(
    "p_max",
    "How sure can an attacker be, at most, that another person is counted?",
    "For every other person whom the attacker does not know for certain: the largest such probability, argued from "
    "elsewhere and never estimated from the data to be protected. docs/attacker.md is a guide.",
)


def _sureness(asker: Asker, kind: Kind, protects: str, *, noise: bool) -> AttackerModel:
    """Ask what can be argued; where noise is acceptable nothing has to be."""
    if kind == "count":
        return _box(asker, _asked_share(asker, _COUNTED, AttackerModel(), noise=noise))
    if protects == "presence":
        return _asked_share(asker, _TOLD, AttackerModel(), noise=noise)
    absent = asker.agree(
        "Can everybody credibly be absent from the table?",
        help="In a sample, one provider's customers, or one day, anybody may be absent. In a census, an election or a "
        "full register nobody is: then what matters is how sure an attacker can be between two groups.",
        default=False,
    )
    return _asked_share(asker, _TOLD if absent else _BETWEEN, AttackerModel(), noise=noise)


def _asked_share(asker: Asker, sure: _Sure, attacker: AttackerModel, *, noise: bool) -> AttackerModel:
    def check(answer: str) -> AttackerModel:
        if not answer:
            return attacker
        declared: dict[str, Any] = {sure.field: share(answer)}
        return replace(attacker, **declared)

    optional = "If nothing can be argued, leave it out: noise protects without it." if noise else ""
    return asker.ask(
        sure.question,
        check,
        help=f"{sure.help} {optional}".strip(),
        default="" if noise else None,
        means=_NOTHING if noise else "",
    )


def _box(asker: Asker, attacker: AttackerModel) -> AttackerModel:
    """Ask what lets a count be published exactly, small or not."""
    if attacker.p_max is None or attacker.p_max == 1.0:
        return attacker
    least = asker.ask(
        "And at least? With this, a count can be published exactly even where it is small.",
        lambda answer: replace(attacker, p_min=share(answer)) if answer else attacker,
        help="How sure the attacker is, at least, that another person is counted. With it, and with a number of people "
        "about whom the attacker is in this doubt, no threshold is needed. Leave it out where it cannot be argued.",
        default="",
        means=_NOTHING,
    )
    if not least.p_min:
        return least
    return asker.ask(
        "About how many other people, at least, is the attacker in this doubt?",
        lambda answer: replace(least, unknown=whole(0)(answer)) if answer else least,
        help="People whose records the attacker does not know, for whom both numbers hold; all others may be known.",
        default="",
        means=_NOTHING,
    )


def _known(asker: Asker, attacker: AttackerModel, kind: Kind) -> AttackerModel:
    """Ask about people who are known; an attacker about whom nothing is argued may know everybody."""
    if attacker.p_max is None and attacker.p_max_between is None:
        return attacker
    where = "counted" if kind == "count" else "in the table"
    number = asker.ask(
        f"How many people does an attacker know to be {where}, or can put there?",
        whole(0),
        help="Everybody knows her own record, so a reader who took part knows 1 at least. Count everybody of whom the "
        "attacker is surer than the number above. 0 claims that the attacker knows nobody.",
        default="1",
    )
    if number == 0:
        return attacker
    influence = asker.choose(
        "Why are they known?",
        (
            Option("active", "because they are there, or put there: patients of a nurse, members, own accounts"),
            Option("passive", "for other reasons: picked before it was known who would be there"),
        ),
        help="When in doubt, the first. The second counts on only some of them being there.",
    )
    return replace(attacker, known=number, influence="active" if influence == "active" else "passive")


_NO_EVIDENCE = Option("none", "none of these: only noise adds up")
_RULES = (
    Option(
        "independent_given_habits",
        "given what is fixed about each person (habits, which may be known), the days are independent",
    ),
    Option("once_per_unit", "everybody appears in one of them at most: registrations, first diagnoses, votes"),
    Option("disjoint_units", "they are about different people, by a public list fixed in advance"),
    Option("one_day_protected", "the numbers hold for one day of a person, told all her other days, before and after"),
    Option("bounded_participation", "nobody takes part in more than so many of them"),
    Option("bounded_dependence", "each depends on all earlier ones together by at most (ε, δ)"),
)
_HABITS = {"kind": "independent_given_habits"}


def _evidence(asker: Asker, *, noise: bool) -> tuple[Evidence, ...]:
    chosen = asker.choose(
        "What can be argued about how a person's releases depend on one another?",
        (_NO_EVIDENCE, *_RULES),
        help="Without evidence exact counts of several releases promise nothing together. It is argued, like the "
        "numbers before, and false evidence voids the promise: an illness or a trip links a person's days. "
        "'Told her past' is never enough. docs/composition.md has the rules and what breaks them.",
    )
    if chosen == "none":
        return ()
    if chosen == "bounded_participation":
        return _participation(asker)
    if chosen == "bounded_dependence":
        return _dependence(asker)
    return evidence_from_dicts([{"kind": chosen}])


def _participation(asker: Asker) -> tuple[Evidence, ...]:
    times = asker.ask(
        "In how many does anybody take part, at most?",
        whole(1),
        help="The largest number for any person. Without noise, a person's releases have to be independent given her "
        "habits as well, after any capping.",
        default=None,
    )
    habits = asker.agree(
        "Are her releases independent as well, given what is fixed about each person?",
        help="Without noise this is needed too. A program that caps how often people take part links their days.",
        default=False,
    )
    bounded = {"kind": "bounded_participation", "times": times}
    return evidence_from_dicts([_HABITS, bounded] if habits else [bounded])


def _dependence(asker: Asker) -> tuple[Evidence, ...]:
    epsilon = asker.ask(
        "By which ε does each depend on all earlier ones together, at most?",
        _at_least_zero,
        help="Evidence about pairs of days, or about consecutive ones, is not enough.",
        default=None,
    )
    delta = asker.ask("And by which δ?", share, help="0 where the ε always holds.", default="0")
    return evidence_from_dicts([{"kind": "bounded_dependence", "epsilon": epsilon, "delta": delta}])


def _epsilon(asker: Asker) -> float:
    examples = "; ".join(f"ε = {exactly(one)}: {_after(one)}" for one in (0.5, 1.0, 2.0, 4.0, 8.0))
    return asker.ask(
        "Which ε is promised, for all of it together?",
        _at_least_zero,
        note="How much the table may change what an attacker thinks: odds by a factor of e^ε at most. At ε = 1, "
        f"whoever was 50 % sure of something about a person is at most {_after(1.0)} sure of it afterwards.",
        help=f"50 % sure before, and after at most, {examples}. Choose what can be defended to those in the table.",
        default="1",
    )


def _after(epsilon: float) -> str:
    """Return how sure somebody can be who was undecided, rounded up."""
    return f"{rounded_up(100.0 / (1.0 + math.exp(-epsilon)))} %"


def _delta(asker: Asker) -> float:
    def check(answer: str) -> float:
        value = share(answer)
        if value == 0.0:
            raise ArgumentError("δ must be above 0: a threshold always leaves some probability; 1e-9 is small.")
        return value

    return asker.ask(
        "Up to which δ?",
        check,
        note="With this probability the table may tell more, even everything; far below one in the number of people.",
        help="What a table tells is no more than this would: with probability δ everything about a person, otherwise a "
        "hint that moves the odds by e^ε at most. With 100,000 people concerned, 1e-6 for each leaves at most one in "
        "ten that it is everything for any of them.",
        default="1e-6",
    )


def _at_least_zero(answer: str) -> float:
    value = real_number(answer)
    if value < 0.0:
        raise ArgumentError("It must be at least 0.")
    return value


def _counts(asker: Asker, kind: Kind) -> CountsFile | Assumed | None:
    chosen = asker.choose(
        "By which counts shall suppression be estimated? Never by the data to be protected.",
        (
            Option("none", "by none: it is not estimated"),
            Option("file", "a CSV of counts that are public already: last year's table, a census"),
            Option("assumed", "numbers that you assume"),
        ),
        help="How much of the table is missing below k depends on the counts. A k that is chosen by a look at the "
        "protected counts voids its certificate; so counts must be public, or assumed.",
    )
    if chosen == "file":
        return asker.ask(
            "Which file? By naming it you declare that it is public.",
            _public_file(asker),
            help="A CSV with a header, a row for each cell and a column of whole numbers called count, or named next.",
            default=None,
        )
    return _assumed(asker, kind) if chosen == "assumed" else None


def _public_file(asker: Asker) -> Callable[[str], CountsFile]:
    def check(answer: str) -> CountsFile:
        file = CountsFile(path=answer)
        if not file.has("count"):
            column = asker.ask(
                "Which column has the counts?",
                str,
                help="The name of a column of whole numbers, as in the file's header.",
                default=None,
            )
            file = replace(file, column=column)
        file.read()
        return file

    return check


def _assumed(asker: Asker, kind: Kind) -> Assumed:
    people = "How many people are there in all?" if kind == "histogram" else "How large may the count be?"
    number = asker.ask(people, whole(0), help="An assumption; it is repeated beside every estimate.", default=None)
    if kind == "count":
        return Assumed(cells=1, people=number)
    cells = asker.ask(
        "In how many groups?",
        lambda answer: Assumed(cells=whole(1)(answer), people=number).cells,
        help="An assumption, too.",
        default=None,
    )
    spread = asker.choose(
        "How are they spread?",
        (
            Option(SPREADS[0], "evenly"),
            Option(SPREADS[1], "a few large groups and many small ones: in proportion to 1/rank"),
        ),
        help="Sizes of towns and frequencies of diagnoses are roughly of the second kind.",
    )
    return Assumed(cells=cells, people=number, spread=spread)
