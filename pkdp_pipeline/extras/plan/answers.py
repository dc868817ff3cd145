"""Plan: the answer to a question, the choices first and then what is asked about one of them: limits and curves.

Offer: releases that reach a target, as they are written in a job file, in Python, in SQL and as commands.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

from pkdp_pipeline.certificates.release_certificate import Target, certify
from pkdp_pipeline.certificates.stronger import (
    effort,
    rests_on,
    threshold_of,
)
from pkdp_pipeline.cli.options import COMMAND, attacker_flags, evidence_flags, mechanism_flags
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError, PkdpError
from pkdp_pipeline.extras.plan.planning import (
    Choice,
    PublicCounts,
    bare_mechanism,
    choices,
    largest_p_max,
    largest_p_max_between,
    smallest_unknown,
)
from pkdp_pipeline.extras.plan.planning.searching import Goal
from pkdp_pipeline.extras.plan.planning.thresholds import least_k
from pkdp_pipeline.extras.plan.question import Question
from pkdp_pipeline.jobs.tables import toml_text
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_to_dicts
from pkdp_pipeline.model.mechanisms import Counts, Histogram, mechanism_name, noised_below
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import ANALYST, JOB_FILE, PYTHON, Speech, percent, reason_of, worded_for
from pkdp_pipeline.plugins import view

_MAX_LINE_LENGTH = 76


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One mechanism, published once or several times. Words in capitals in its texts are to be filled in.

    Parameters
    ----------
    mechanism : Count or Histogram
        The cells of a histogram with a `k` are found in the data; those of others are declared.
    protects : {"presence", "value"}
    epsilon, delta : float
        The numbers that all releases together reach.
    """

    mechanism: Counts
    attacker: AttackerModel
    protects: str
    days: int
    evidence: tuple[Evidence, ...]
    epsilon: float
    delta: float

    @property
    def above(self) -> list[str]:
        """The lines that belong above the first ``[table]`` of a job file."""
        evidence = evidence_to_dicts(self.evidence)
        top = [f"evidence = {toml_text(evidence if len(evidence) > 1 else evidence[0])}  # argued"] if evidence else []
        return [*top, *([] if self._target is None else [f"target = {{ delta = {self.delta!r} }}"])]

    def job(self) -> str:
        """Return TOML to be pasted into a job file; what comes first belongs above its first ``[table]``."""
        attacker = self.attacker
        declared = {name: value for name, value in attacker.to_dict().items() if value is not None}
        declared.pop("leakage", None)
        if not attacker.known:
            del declared["known"], declared["influence"]
        blocks = ["\n".join(self.above)] if self.above else []
        if declared:
            blocks.append(_table("[attacker]  # argued, and never estimated from these data", declared))
        known = "[[attacker.leakage]]  # known besides, whatever is published here"
        blocks += [_table(known, leakage.to_dict()) for leakage in attacker.leakage]
        release = ["[[release]]", 'name = "NAME"', *self._by('by = "COLUMN"'), *self._settings(JOB_FILE)]
        return "\n\n".join([*blocks, "\n".join(release)])

    def python(self) -> str:
        """Return the call that publishes one of them."""
        given = ["FRAME", *self._by('"COLUMN"'), 'unit="UNIT"', *self._settings(PYTHON), *self._terms()]
        return _call(f"pkdp.{mechanism_name(self.mechanism)}", given)

    def install(self) -> str:
        """Return the call after which `sql` publishes one of them."""
        return _call("pkdp.duckdb.install", ["CONNECTION", 'unit="UNIT"', *self._terms()])

    def sql(self) -> str:
        """Return the query that publishes one of them."""
        given = ["'TABLE'", *self._by("'COLUMN'"), *self._settings(ANALYST, "'")]
        return _call(f"FROM pkdp_{mechanism_name(self.mechanism)}", given)

    def command(self) -> str:
        """Return the command that publishes one of them."""
        cells = ["--cell", "CELL", "--cell", "CELL"] if self._declares else []
        words = ["FILE", *self._by("--by", "COLUMN"), *cells, "--unit", "UNIT", *self._flags()]
        if self.days > 1:
            words += ["--ledger", "LEDGER", "--dataset", "DATASET", "--period", "PERIOD"]
            words += evidence_flags(self.evidence)
        words += [] if self._target is None else ["--delta", exactly(self.delta)]
        return shlex.join(["pkdp", mechanism_name(self.mechanism), *words])

    def certify(self) -> str:
        """Return the command that certifies all of them."""
        words = [*self.options(), *([] if self.days == 1 else ["--days", str(self.days)])]
        words += [*evidence_flags(self.evidence), "--epsilon", exactly(self.epsilon), "--delta", exactly(self.delta)]
        return shlex.join(["pkdp", "certify", mechanism_name(self.mechanism), *words])

    def options(self) -> list[str]:
        """Return the options that name the mechanism and the attacker where no data say which cells there are."""
        return self._flags() + (["--cells-from-data"] if self._shown != self.mechanism else [])

    def _by(self, *words: str) -> tuple[str, ...]:
        return words if isinstance(self.mechanism, Histogram) else ()

    @property
    def _declares(self) -> bool:
        return isinstance(self.mechanism, Histogram) and (self.mechanism.k is None or self.mechanism.below == "noise")

    @property
    def _shown(self) -> Counts:
        """The mechanism without a k, or a count of 0 that is left out, that follow from the rest."""
        if noised_below(self.mechanism):
            return replace(self.mechanism, below="noise")
        bare = replace(self.mechanism, k=None)
        return bare if isinstance(bare, Histogram) and bare.of_found_cells() == self.mechanism else self.mechanism

    @property
    def _target(self) -> Target | None:
        """The target of a release, where it may promise less than is otherwise required."""
        return Target(delta=self.delta) if Target().delta < self.delta < 1.0 else None

    def _flags(self) -> list[str]:
        protects = [] if self.protects == "presence" else ["--protects", self.protects]
        return [*mechanism_flags(self._shown), *protects, *attacker_flags(self.attacker)]

    def _settings(self, say: Speech, quote: str = '"') -> list[str]:
        """Return what is set of a release, as a speech writes it."""
        shown, cell = self._shown, f"{quote}CELL{quote}"
        words = [say.setting("domain", f"[{cell}, {cell}]")] if self._declares else []
        words += [] if shown.noise is None else [say.noise(shown.noise.epsilon)]
        given = ((field.name, getattr(shown, field.name), field.default) for field in fields(shown))
        words += [say.setting(name, value) for name, value, usual in given if type(value) is int and value != usual]
        words += [say.setting("below", f"{quote}noise{quote}")] if noised_below(shown) else []
        hidden = [] if self.protects == "presence" else [say.setting("protects", f"{quote}{self.protects}{quote}")]
        return words + hidden

    def _terms(self) -> list[str]:
        """Return what is declared beside a release, in Python."""
        words = [] if self.attacker == AttackerModel() else [f"attacker={_python(self.attacker)}"]
        words += [] if self._target is None else [f"target={_python(self._target)}"]
        if self.days > 1:
            evidence = f", evidence={_python(self.evidence)}" if self.evidence else ""
            words += [f'ledger=pkdp.Ledger.open("LEDGER", dataset="DATASET"{evidence})', 'period="PERIOD"']
        return words


def _call(name: str, given: list[str]) -> str:
    """Return a call, on several lines where one would be long."""
    line = ", ".join(given)
    if len(f"{name}({line})") <= _MAX_LINE_LENGTH:
        return f"{name}({line})"
    inside = line if len(line) + 4 <= _MAX_LINE_LENGTH else ",\n    ".join(given)
    return f"{name}(\n    {inside}\n)"


def _table(head: str, values: Mapping[str, object]) -> str:
    return "\n".join((head, *(f"{name} = {toml_text(value)}" for name, value in values.items())))


def _python(value: object) -> str:
    """Return a value as it is written in Python."""
    if is_dataclass(value):
        given = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
        words = (f"{name}={_python(set_to)}" for name, set_to, plain in given if set_to != plain)
        return f"pkdp.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_python, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


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
