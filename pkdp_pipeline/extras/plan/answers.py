"""Plan: the answer to a question, the choices first and then what is asked about one of them: limits and curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.certificates.stronger import (
    effort,
    rests_on,
    threshold_of,
)
from pkdp_pipeline.cli.options import COMMAND
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.extras.plan.offer import Offer
from pkdp_pipeline.extras.plan.planning import (
    Choice,
    PublicCounts,
    choices,
    largest_p_max,
    largest_p_max_between,
    smallest_unknown,
)
from pkdp_pipeline.extras.plan.planning.choices import bare_mechanism
from pkdp_pipeline.extras.plan.planning.searching import Goal
from pkdp_pipeline.extras.plan.planning.thresholds import least_k
from pkdp_pipeline.extras.plan.question import Question
from pkdp_pipeline.model.mechanisms import Counts, noised_below
from pkdp_pipeline.model.spelling import exactly
from pkdp_pipeline.model.wording import percent, reason_of, worded_for
from pkdp_pipeline.plugins import view

_POINTS, _POINTS_OF_SEVERAL, _MIN_POINTS = 24, 16, 8
_MAX_QUICK_WEIGHT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The choices that reach a target.

    Attributes
    ----------
    counts : PublicCounts or None
        The counts by which shares and errors are estimated.
    without_noise : str or None
        Why no choice does without noise; None where one does.
    chosen : int
        The place of the choice that is looked at closely, from 0.
    """

    question: Question
    counts: PublicCounts | None
    choices: tuple[Choice, ...]
    without_noise: str | None
    chosen: int = 0

    @property
    def choice(self) -> Choice:
        """The choice that is looked at closely."""
        return self.choices[self.chosen]

    @property
    def scenarios(self) -> tuple[Any, ...]:
        """The numbers certified when the attacker differs from the declared one."""
        scenarios: tuple[Any, ...] = view("what_if")(self.choice.together, delta=self.question.delta)
        return scenarios

    def choosing(self, place: int) -> Plan:
        """Return the same with another choice, counted from 1."""
        if not 1 <= place <= len(self.choices):
            least = "there is 1 choice" if len(self.choices) == 1 else f"there are {len(self.choices)} choices"
            raise ArgumentError(f"--choice must be the number of a choice: {least}, counted from 1.")
        return replace(self, question=replace(self.question, choice=place), chosen=place - 1)


class Limit(NamedTuple):
    """How far one field of the attacker, p_max, p_max_between or unknown, may move before a choice fails."""

    field: str
    declared: float
    limit: float

    @property
    def words(self) -> str:
        """It in one sentence, rounded so that nothing is promised that does not hold."""
        if self.field != "unknown":
            return (
                f"It holds as it is up to {self.field} = {percent(self.limit)}; {percent(self.declared)} is declared."
            )
        if self.limit == 0:
            return "It holds however few people are unknown."
        return f"It holds as it is down to unknown = {self.limit:.0f}; {self.declared:.0f} are declared."


class Curve(NamedTuple):
    """The certified ε as one number moves, with the fields of a `KnowledgeCurve`; `field` may be k as well."""

    field: str
    words: str
    declared: float
    values: tuple[float, ...]
    epsilons: tuple[float, ...]


def planned(question: Question) -> Plan:
    """Return the choices for a question.

    Raises `NotCertifiableError` or `NoEvidenceError` if none reaches the target; the message names the nearest that
    would, as flags; `ArgumentError` or `ConfigError` if the question is malformed, or its public counts cannot be read.
    """
    counts = None if question.counts is None else question.counts.read()
    named = ("kind", "declared_cells", "cells_per_unit")
    details: dict[str, Any] = {"counts": counts, **{name: getattr(question, name) for name in named}}
    try:
        available = choices(question.attacker, **question.goal, **details)
    except (NotCertifiableError, NoEvidenceError) as error:
        raise type(error)(_said(error)) from None
    exact = tuple(choice for choice in available if choice.mechanism.noise is None)
    reason = None if exact else _why_not(question)
    if reason is not None and not question.noise:
        raise type(reason)(f"{_said(reason)}{_noise_offered(question, available)}")
    why = None if reason is None else _said(reason)
    if why is not None and question.attacker == question.attacker.against_anyone():
        why = "exact counts need an argument about what an attacker can know, and none is given; noise needs none."
    plan = Plan(question=question, counts=counts, choices=available if question.noise else exact, without_noise=why)
    return plan if question.choice is None else plan.choosing(question.choice)


def noised_instead(plan: Plan) -> tuple[Counts, float] | None:
    """Return what several releases with a k are where smaller counts have noise instead, and their ε together.

    The noise is that of the choice of noise alone. None for one release, to which such noise adds nothing.
    """
    question, ways = plan.question, {choice.way: choice.mechanism for choice in plan.choices}
    noised = ways.get("noise", ways.get("noise_against_anyone"))
    if question.days == 1 or question.cells_per_unit > 1 or "k" not in ways or noised is None:
        return None
    mechanism = replace(ways["k"], noise=noised.noise, below="noise")
    return mechanism, _epsilon(plan, mechanism)


def limits(plan: Plan) -> tuple[Limit, ...]:
    """Return how far the attacker may differ from the declared one before the chosen mechanism misses its target."""
    choice, question, attacker = plan.choice, plan.question, plan.question.attacker
    if choice.against_anyone:
        return ()
    listed: list[Limit] = []
    if rests_on(choice.certificate, "unknown") and attacker.unknown is not None:
        least = smallest_unknown(choice.mechanism, attacker, **question.goal)
        listed.append(Limit("unknown", attacker.unknown, least))
    if threshold_of(choice.certificate) is None:
        return tuple(listed)
    between = {"histogram_between", "noised_below_between"} & set(choice.certificate.partial_theorems)
    if between and attacker.p_max_between is not None:
        goal = {name: value for name, value in question.goal.items() if name != "protects"}
        most = largest_p_max_between(choice.mechanism, attacker, **goal)
        listed.append(Limit("p_max_between", attacker.p_max_between, most))
    elif attacker.p_max is not None:
        listed.append(Limit("p_max", attacker.p_max, largest_p_max(choice.mechanism, attacker, **question.goal)))
    return tuple(listed)


def curves(plan: Plan) -> tuple[Curve, ...]:
    """Return the curves of the chosen mechanism; none where it holds against anyone at all."""
    choice, question = plan.choice, plan.question
    if choice.against_anyone:
        return ()
    number = max(_MIN_POINTS, (_POINTS if question.days == 1 else _POINTS_OF_SEVERAL) // _weight(plan))
    k = threshold_of(choice.certificate)
    drawn = [_against_k(plan, k, number)] if k is not None and choice.mechanism.k == k else []
    moved = view("knowledge_curves")(choice.together, delta=question.delta, points=number)
    return (*drawn, *(Curve(*(getattr(curve, name) for name in Curve._fields)) for curve in moved))


def takes_long(plan: Plan) -> bool:
    """Return whether a curve takes seconds; by theorem and size, never by a clock."""
    return _weight(plan) > _MAX_QUICK_WEIGHT


def _against_k(plan: Plan, k: int, number: int) -> Curve:
    attacker = plan.question.attacker
    controlled = attacker.known if attacker.influence == "active" else 0
    low, high = max(2, controlled + (k - controlled) // 2), controlled + 2 * (k - controlled)
    values = sorted({k, *(round(low + (high - low) * step / (number - 1)) for step in range(number))})
    epsilons = [_epsilon(plan, replace(plan.choice.mechanism, k=value)) for value in values]
    # A larger k hides more; raising a certified number keeps it true.
    for place in range(len(epsilons) - 2, -1, -1):
        epsilons[place] = max(epsilons[place], epsilons[place + 1])
    return Curve("k", "the threshold k", float(k), tuple(map(float, values)), tuple(epsilons))


def _epsilon(plan: Plan, mechanism: Counts) -> float:
    question = plan.question
    try:
        certificate = certify(mechanism, question.attacker, protects=question.protects)
    except NotCertifiableError:
        return math.inf
    return Goal(**question.goal).together(certificate).epsilon(question.delta)


def _weight(plan: Plan) -> int:
    """Return about how long a point of a curve takes."""
    return effort(plan.choice.together, more_known=True) * (1 if plan.question.days == 1 else 2)


def _why_not(question: Question) -> NotCertifiableError | NoEvidenceError:
    """Return why no table without noise reaches the target."""
    try:
        bare = bare_mechanism(question.kind, question.cells_per_unit)
        least_k(question.attacker, Goal(**question.goal, cells_per_unit=question.cells_per_unit), bare)
    except (NotCertifiableError, NoEvidenceError) as error:
        return error
    raise AssertionError("a threshold reaches the target, and was not among the choices")


def _said(error: PkdpError) -> str:
    """Return why something is refused; the ways out of a refusal are those of one release, and not of the plan."""
    return worded_for(error, COMMAND) if isinstance(error, NoEvidenceError) else reason_of(error)


def _noise_offered(question: Question, available: Sequence[Choice]) -> str:
    """Return what noise would do, to somebody who did not ask for it."""
    noised, offered = [choice for choice in available if choice.against_anyone], []
    for noisy in noised:
        error = noisy.outcome.mean_absolute_error
        off = "" if error is None else f" (a number is off by {estimate(error)} on average)"
        offered.append(f"{' '.join(offer_of(question, noisy).options())}{off}")
    if not offered:
        return ""
    return f" Where noise is acceptable, it reaches the target against {noised[0].whom}: {'; or '.join(offered)}."


def offer_of(question: Question, choice: Choice) -> Offer:
    """Return a choice as it is written to be published."""
    return Offer(mechanism=choice.mechanism, attacker=choice.certificate.attacker, **question.goal)


def mechanism_phrase(mechanism: Counts) -> str:
    """Return what is published, in few words."""
    if mechanism.noise is None:
        return "no noise, every count" if mechanism.k is None else f"no noise, k = {mechanism.k}"
    noise = f"noise of ε = {exactly(mechanism.noise.epsilon)}"
    if noised_below(mechanism):
        noise = f"exact from k = {mechanism.k}, else {noise}"
    return noise if mechanism.release_threshold is None else f"{noise}, from {mechanism.release_threshold}"


def estimate(value: float) -> str:
    """Return an expected error; an estimate, and no claim."""
    return f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"
