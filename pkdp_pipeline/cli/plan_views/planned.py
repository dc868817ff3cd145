"""Planned: the answer to a question, the choices first and then what is asked about one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.certificates.statement.stronger import keys_of, rests_on, threshold_of
from pkdp_pipeline.cli.plan_views.question import Question
from pkdp_pipeline.cli.plan_views.words import in_flags, offered
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError
from pkdp_pipeline.model.mechanisms import Count
from pkdp_pipeline.model.wording import percent
from pkdp_pipeline.planning import (
    Choice,
    PublicCounts,
    choices,
    largest_p_max,
    largest_p_max_between,
    smallest_k,
    smallest_unknown,
)

__all__ = ["Inverse", "Planned", "inverse_answers", "planned"]

_EXACT = ("exact", "k")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The choices that reach a target.

    Attributes
    ----------
    question : Question
    counts : PublicCounts or None
        What shares and errors are estimated by.
    choices : tuple of Choice
    without_noise : str or None
        Why no choice does without noise; None where one does.
    chosen : int
        The place of the choice that is looked at closely, from 0.
    """

    question: Question
    counts: PublicCounts | None
    choices: tuple[Choice, ...]
    without_noise: str | None
    chosen: int

    @property
    def choice(self) -> Choice:
        """The choice that is looked at closely."""
        return self.choices[self.chosen]

    def choosing(self, place: int) -> Planned:
        """Return the same with another choice, counted from 1.

        Raises
        ------
        ArgumentError
            If there is none of this number.
        """
        if not 1 <= place <= len(self.choices):
            least = "there is 1 choice" if len(self.choices) == 1 else f"there are {len(self.choices)} choices"
            raise ArgumentError(f"--choice must be the number of a choice: {least}, counted from 1.")
        return replace(self, question=replace(self.question, choice=place), chosen=place - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverse:
    """How far one field of the attacker may move before a choice misses its target.

    Attributes
    ----------
    field : {"p_max", "p_max_between", "unknown"}
    declared : float or int
    limit : float or int
        The largest p_max, or the smallest number of unknown people.
    """

    field: str
    declared: float
    limit: float

    @property
    def words(self) -> str:
        """It in one sentence, rounded so that nothing is promised that does not hold."""
        if self.field == "unknown":
            if self.limit == 0:
                return "It holds however few people are unknown."
            return f"It holds as it is down to unknown = {self.limit:.0f}; {self.declared:.0f} are declared."
        return f"It holds as it is up to {self.field} = {percent(self.limit)}; {percent(self.declared)} is declared."


def planned(question: Question) -> Planned:
    """Return the choices for a question.

    Raises
    ------
    NotCertifiableError, NoEvidenceError
        If none reaches the target; the message names the nearest that would.
    ArgumentError, ConfigError
        If the question is malformed, or its public counts cannot be read.
    """
    counts = None if question.counts is None else question.counts.read()
    found = choices(
        question.attacker,
        **question.goal,
        counts=counts,
        kind=question.kind,
        declared_cells=question.declared_cells,
    )
    exact = tuple(one for one in found if one.way in _EXACT)
    reason = None if exact else _why_not(question)
    if not question.noise:
        if reason is not None:
            _refuse(reason, [one for one in found if one.against_anyone])
        found = exact
    why = None if reason is None else in_flags(reason)
    made = Planned(question=question, counts=counts, choices=found, without_noise=why, chosen=0)
    return made if question.choice is None else made.choosing(question.choice)


def inverse_answers(made: Planned) -> tuple[Inverse, ...]:
    """Return how far the attacker may differ from the declared one before the chosen mechanism misses its target."""
    choice, question = made.choice, made.question
    if choice.against_anyone:
        return ()
    attacker, keys = question.attacker, keys_of(choice.certificate)
    found = []
    if rests_on(choice.certificate, "unknown") and attacker.unknown is not None:
        least = smallest_unknown(choice.mechanism, attacker, **question.goal)
        found.append(Inverse(field="unknown", declared=attacker.unknown, limit=least))
    if threshold_of(choice.certificate) is None:
        return tuple(found)
    if "histogram_between" in keys and attacker.p_max_between is not None:
        goal = {name: value for name, value in question.goal.items() if name != "protects"}
        most = largest_p_max_between(choice.mechanism, attacker, **goal)
        found.append(Inverse(field="p_max_between", declared=attacker.p_max_between, limit=most))
    elif attacker.p_max is not None:
        most = largest_p_max(choice.mechanism, attacker, **question.goal)
        found.append(Inverse(field="p_max", declared=attacker.p_max, limit=most))
    return tuple(found)


def _why_not(question: Question) -> NotCertifiableError | NoEvidenceError:
    """Return why no table without noise reaches the target."""
    try:
        smallest_k(question.attacker, **question.goal)
    except NoEvidenceError as error:
        return error
    except NotCertifiableError as error:
        return error if question.kind == "histogram" else _of_a_count(question) or error
    raise AssertionError("a threshold reaches the target, and was not among the choices")


def _of_a_count(question: Question) -> NotCertifiableError | None:
    """Return the refusal of a count, which has other choices than a histogram."""
    try:
        certify(Count(k=question.attacker.known + 2), question.attacker, protects=question.protects)
    except NotCertifiableError as error:
        return error
    return None


def _refuse(reason: NotCertifiableError | NoEvidenceError, noised: Sequence[Choice]) -> None:
    """Raise the refusal, with what noise would do."""
    ways = "; or ".join(map(offered, noised))
    whom = next((one.whom for one in noised), "anyone at all")
    raise type(reason)(
        f"{in_flags(reason)} Where noise is acceptable, it reaches the target against {whom}: {ways}."
    ) from None
