"""Which statements of the folder ``proofs`` Coq has checked, and how much of a theorem each of them is."""

from __future__ import annotations

from dataclasses import dataclass


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
