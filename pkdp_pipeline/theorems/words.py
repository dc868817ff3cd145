"""Words on theorems: the attackers that each holds against, and how much of it Coq has checked.

Everything that limits the attackers stands in the first sentence, which is quoted alone; what they may know follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.wording import listed, percent

_NO_TOTAL = "while no exact total of those present is published, nor anything from which it follows"


def others(number: int) -> str:
    """Return this many other people, in words."""
    return "1 other" if number == 1 else f"{number} others"


def independent(attacker: AttackerModel) -> str:
    """Return the start of every description of an attacker about whom something is assumed."""
    if attacker.dependent is None:
        return "anyone who regards people's records as independent"
    return f"anyone who regards records as independent from one {attacker.dependent} to another"


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def _knows(attacker: AttackerModel, where: str) -> str:
    """Say how many people the attacker knows or controls.

    Somebody who is merely known is there only with some probability before the attacker learns it: a bound that
    averages over that says nothing about an attacker who is sure of as many who are there.
    """
    if attacker.known == 0:
        return f"knows nobody {where}"
    number = _people(attacker.known)
    if attacker.influence == "active":
        return f"knows or controls at most {number} {where}"
    return f"knows the records of at most {number}"


def _provided(attacker: AttackerModel, *while_: str, limited: bool = True) -> str:
    """Say what else must hold: also of those who are merely known, who else may be there for certain."""
    conditions = list(while_)
    if attacker.known and attacker.influence == "passive":
        single = attacker.known == 1
        chosen = "the person known was chosen for reasons unrelated to her record"
        if not single:
            chosen = "those known were chosen for reasons unrelated to their records"
        before = f" and the same limit held for {'her' if single else 'them'} before the attacker knew "
        conditions.insert(0, f"if {chosen}{before + ('it' if single else 'these') if limited else ''}")
    return f"; this holds only {', and only '.join(conditions)}" if conditions else ""


def _chance(attacker: AttackerModel) -> str:
    if attacker.known == 0 or attacker.influence == "active":
        return ""
    return f". δ includes the chance of what {'her record says' if attacker.known == 1 else 'their records say'}"


def _another(attacker: AttackerModel) -> str:
    return "another person" if attacker.known == 0 else "somebody else"


def _bounded(attacker: AttackerModel) -> str:
    if attacker.unknown_max is None:
        return ""
    are = "is" if attacker.unknown_max == 1 else "are"
    return f" (and at most {others(attacker.unknown_max)} {are} unknown to them)"


def thresholding(attacker: AttackerModel) -> str:
    """Say whom a threshold on the people who count holds against."""
    # An attacker who may be certain is bounded by the number of unknown people alone.
    sure = "" if attacker.p_max == 1.0 else f"is never more than {percent(attacker.p_max)} sure"
    return f"{_about_group(attacker, 'in', sure)}. The attacker may know who is not in the group"


def thresholding_complement(attacker: AttackerModel) -> str:
    """Say whom a threshold on the people who do not count holds against."""
    sure = "" if attacker.p_min == 0.0 else f"is always at least {percent(attacker.p_min, up=True)} sure"
    return f"{_about_group(attacker, 'outside', sure)}. The attacker may know who is in the group"


def _about_group(attacker: AttackerModel, side: str, sure: str) -> str:
    knows = _knows(attacker, f"{side} the group")
    does = f", {knows} and {sure} that {_another(attacker)} is in the group" if sure else f" and {knows}"
    return (
        f"{independent(attacker)}{does}{_bounded(attacker)}{_provided(attacker, limited=bool(sure))}{_chance(attacker)}"
    )


def through_absence(attacker: AttackerModel) -> str:
    """Say whom a histogram holds against in which people may be absent."""
    return (
        f"{independent(attacker)}, {_knows(attacker, 'in the table')} and, told that {_another(attacker)} is either "
        f"absent or in a given cell, is at most {percent(attacker.p_max)} sure of the cell{_bounded(attacker)}"
        f"{_provided(attacker, _NO_TOTAL)}{_chance(attacker)}. The attacker may know who is absent"
    )


def between(attacker: AttackerModel) -> str:
    """Say whom a histogram holds against in which nobody need be absent."""
    # Known people move the thresholds of both cells by as many, whether they are controlled or merely known.
    knows = f"knows the cells of at most {_people(attacker.known)}"
    if attacker.known == 0:
        knows = "knows nobody's cell"
    elif attacker.influence == "active":
        knows = _knows(attacker, "in the table")
    premise, who = f"{_another(attacker)} is in one of two cells", "who is present"
    if attacker.groups:
        premise, who = f"{premise} with the same {_groups(attacker)}", f"{who}, everybody's {_groups(attacker)}"
    return (
        f"{independent(attacker)}, {knows} and, told that {premise}, is at most "
        f"{percent(attacker.p_max_between)} sure which{_bounded(attacker)}. The attacker may know {who} and how many "
        "people there are"
    )


def _groups(attacker: AttackerModel) -> str:
    return listed(list(map(repr, attacker.groups)))


def sampled(attacker: AttackerModel) -> str:
    """Say whom a release of a secret sample holds against."""
    knows = "" if not attacker.known else f" but for at most {_people(attacker.known)}"
    return (
        f"anyone who does not know who was drawn into the sample{knows}, each person independently with a chance of at "
        f"most {percent(attacker.sampled)}. The attacker may know everybody's record"
    )


def in_several_cells(attacker: AttackerModel) -> str:
    """Say whom a histogram holds against in which people may be in several cells."""
    return (
        f"{independent(attacker)} and each person's cells as independent given everybody's habits, "
        f"{_knows(attacker, 'in the table')} and, told in which other cells "
        f"{_another(attacker)} is, is at most {percent(attacker.p_max)} sure of any further cell{_bounded(attacker)}"
        f"{_provided(attacker, _NO_TOTAL)}{_chance(attacker)}. The attacker may know everybody's habits and who is "
        "absent"
    )


def counting(attacker: AttackerModel) -> str:
    """Say whom a bound on an exact or noised count holds against."""
    return (
        f"{_uncertain(attacker)}: between {percent(attacker.p_min, up=True)} and {percent(attacker.p_max)} sure that "
        "each is in the group. The attacker may know everybody else"
    )


def thresholding_in_box(side: str, attacker: AttackerModel) -> str:
    """Say whom a threshold on the people on one side, "in" the group or "outside" it, holds against in a box."""
    return (
        f"{_in_box(f'{side} the group', attacker)}. "
        f"The attacker may know who is {'in' if side == 'outside' else 'not in'} the group"
    )


def two_thresholds_in_box(attacker: AttackerModel) -> str:
    """Say whom a threshold on either side holds against in a box."""
    return _in_box("in the group or outside it", attacker)


def _in_box(where: str, attacker: AttackerModel) -> str:
    # It holds whatever merely known people turn out to say.
    knows = _knows(replace(attacker, influence="active"), where)
    return (
        f"{independent(attacker)}, {knows} and is uncertain about at least "
        f"{others(attacker.unknown or 0)}: between {percent(attacker.p_min, up=True)} and {percent(attacker.p_max)} "
        f"sure that each is in the group{_bounded(attacker)}"
    )


def options(attacker: AttackerModel) -> str:
    """Say whom exact counts of several options hold against; beside totals of groups only those of one group hide."""
    whose, where, also = "", "", ""
    if attacker.groups:
        named = _groups(attacker)
        whose, where, also = f" with the same {named} as a person", f" with that {named}", f", and everybody's {named}"
    return (
        f"{_uncertain(attacker)}{whose}: each of these chooses any given option{where} with probability at least "
        f"{percent(attacker.p_min, up=True)}. The attacker may know what everybody else chose{also}"
    )


def in_cells(attacker: AttackerModel) -> str:
    """Say whom theorem F holds against."""
    return f"{_may_be_anywhere(attacker)}. The attacker may know where everybody else is"


def in_noisy_cells(attacker: AttackerModel) -> str:
    """Say whom theorem F holds against where every cell has noise of its own."""
    return f"{_may_be_anywhere(attacker)}; this holds only {_NO_TOTAL}. The attacker may know where everybody else is"


def _may_be_anywhere(attacker: AttackerModel) -> str:
    return (
        f"{independent(attacker)}, is uncertain about at least {others(attacker.unknown or 0)} (each of these is in "
        f"any given cell with probability at least {percent(attacker.p_min, up=True)}) and, told that such a person is "
        f"either absent or in a given cell, is at most {percent(attacker.p_max)} sure of the cell"
    )


def _uncertain(attacker: AttackerModel) -> str:
    return f"{independent(attacker)}, and is uncertain about at least {others(attacker.unknown or 0)}"


@dataclass(frozen=True, slots=True)
class Formal:
    """How far the proof of a theorem is checked by machine.

    Parameters
    ----------
    statements : tuple of (str, str, str)
        The file, the name that the statement has in it, and what it says of the theorem, in words.
    rest : str
        The part of the theorem that is proved on its page only, in words.
    """

    statements: tuple[tuple[str, str, str], ...]
    rest: str

    def sentences(self) -> tuple[str, ...]:
        """Return the same in words, a sentence for every statement."""
        checked = (f"Checked by machine: {file}, {name}: {what}." for file, name, what in self.statements)
        return (*checked, f"Proved on its page only: {self.rest}.")


UNCHECKED = ("No part of its proof is checked by machine.",)
"""The words for any other theorem."""

NOT_CODE = "Coq has checked proofs, not the code and its floating point: docs/proofs.md."

_BETWEEN, _COMPOSITION, _HISTOGRAM = "proofs/between.v", "proofs/composition.v", "proofs/histogram.v"
_NOISE, _VALUE, _VERTEX = "proofs/noise.v", "proofs/value.v", "proofs/vertex.v"
_WAITING, _DISPLAY, _MARKED = "proofs/waiting_time.v", "proofs/display.v", "proofs/exact_or_noised.v"
_SAMPLE, _CROWD = "proofs/sample.v", "proofs/crowd.v"
_PEOPLE = "for a bounded number of people, all of them unknown"
_CHANNEL = "for any steps after the count that have finitely many outcomes"

THRESHOLD = Formal(
    (
        (_WAITING, "theorem_A", f"the bound holds, {_PEOPLE}"),
        (_WAITING, "theorem_A_reached", "some of these attackers reach it"),
        (_DISPLAY, "larger_threshold", "a larger threshold gives no larger bound"),
        (_DISPLAY, "theorem_R_reached", "it is also reached where a rule of display takes the place of k"),
    ),
    "numbers of people without a bound, the closed form of δ, and known people",
)
COMPLEMENT = Formal(
    ((_WAITING, "theorem_A", f"the bound holds for a count of those who are not counted, {_PEOPLE}"),),
    "that a threshold for the rest is a threshold for that count, numbers of people without a bound, the closed form "
    "of δ, and known people",
)
PRESENCE = Formal(
    (
        (_HISTOGRAM, "theorem_B_presence", f"the bound holds, {_PEOPLE}"),
        (_DISPLAY, "theorem_R", "so it does where a rule of display, also a random one, takes the place of k"),
    ),
    "numbers of people without a bound, the closed form of δ, known people, and that the bound is reached",
)
VALUE = Formal(
    ((_VALUE, "theorem_B_value", f"the bound holds for two cells, {_PEOPLE}"),),
    "that people in other cells can be revealed, that the cells can be exchanged for the other order of the two lives, "
    "numbers of people without a bound, and known people",
)
BETWEEN = Formal(
    ((_BETWEEN, "theorem_C", f"the bound holds, {_PEOPLE}, also against somebody who sees the list of those present"),),
    PRESENCE.rest,
)
BEHIND_NOISE = Formal(
    ((_VERTEX, "lemma_2", f"the worst attacker is m equal people, {_CHANNEL}"),),
    "the numerical bounds between numbers of people and beyond them, noise without bounds, and known people",
)
CELL_BEHIND_NOISE = Formal(
    (
        *BEHIND_NOISE.statements,
        (_DISPLAY, "cell_as_count", f"a table hides a person's cell as one count does, {_CHANNEL}"),
    ),
    BEHIND_NOISE.rest,
)
NOISED_BELOW = Formal(
    (
        (_MARKED, "theorem_I_right", f"present against absent, the bound holds from the noise's ε on, {_PEOPLE}"),
        (
            _MARKED,
            "theorem_I_left",
            "so it does for absent against present where e^ε (1 - p_max) ≤ 1 and people are enough for theorem A's "
            "worst number of them",
        ),
        (_MARKED, "theorem_I_least", "in each order some of these attackers reach theorem A's bound"),
    ),
    "absent against present at other ε and numbers of people, the profile below the noise's ε, cells found in the "
    "data, numbers of people and noise without bounds, the closed form of δ, and known people",
)
_SAMPLED_REST = "numbers of people without a bound, theorem A's closed form of δ, drawn people who are known, and noise"
SAMPLED = Formal(
    (
        (_SAMPLE, "theorem_S", "the pair dominates the table, for a bounded number of others"),
        (_SAMPLE, "theorem_S_delta", "its δ is that of theorem A at the ε of the page"),
        (_SAMPLE, "theorem_S_reached", "some of these attackers reach it"),
    ),
    _SAMPLED_REST,
)
SAMPLED_VALUE = Formal(
    ((_SAMPLE, "theorem_S_value", "the pair in both directions dominates the table, for a bounded number of others"),),
    _SAMPLED_REST,
)
_CROWD_REST = "numbers of people without a bound, the δ of the mean as it is computed, and that the bound is reached"
IN_A_CROWD = Formal(((_CROWD, "theorem_F", "the bound holds, for a bounded number of people"),), _CROWD_REST)
OPTIONS = Formal(((_CROWD, "several_options", "the bound holds, for a bounded number of people"),), _CROWD_REST)
VERTICES = Formal(
    ((_VERTEX, "lemma_2", f"the worst attacker is at a vertex of the box, {_CHANNEL}"),),
    "lemmas 1 and 3, noise without bounds, and that more unknown people hide no less",
)
BEHIND_NOISE_IN_A_BOX = Formal(VERTICES.statements, BEHIND_NOISE.rest)
IN_A_BOX = Formal(
    VERTICES.statements, "that a threshold is as good as more unknown people, lemmas 1 and 3, and known people"
)
NOISE = Formal(
    (
        (_NOISE, "noise_presence", "(ε0, δ0) holds for presence behind a threshold, against anybody"),
        (_NOISE, "noise_value", "and (2 ε0, δ0) for value"),
        (_NOISE, "noise_alone", "without a threshold both hold with δ = 0"),
        (_NOISE, "geometric_noise", "all this is about noise with bounds: values beyond them are shown as the bounds"),
    ),
    "noise without bounds, every δ below ε0 and 2 ε0, and people in several cells",
)
RULES = {
    "independent_given_habits": Formal(
        ((_COMPOSITION, "all_steps", "products of dominating pairs dominate, once all habits are revealed"),),
        "that habits can be revealed, outcomes without bounds, and which directions are worst",
    ),
    "worst_case_parts": Formal(
        ((_COMPOSITION, "rule_6_all", "the sum holds, also for releases that are chosen after seeing earlier ones"),),
        "outcomes without bounds, every total below the sum, and rule 5",
    ),
}
"""Of rules that add certificates up, by key."""
