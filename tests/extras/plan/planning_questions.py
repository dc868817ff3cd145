"""Random questions to the planner, each with a check that its answer holds and that the neighbour fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from pkdp_pipeline import (
    AttackerModel,
    Count,
    GeometricNoise,
    Histogram,
    IndependentGivenHabits,
    NoEvidenceError,
    NotCertifiableError,
    certify,
    compose,
    largest_p_max,
    largest_p_max_between,
    smallest_k,
    smallest_noise,
    smallest_release_threshold,
    smallest_unknown,
)


def reaches(mechanism, attacker, goal):
    """Whether the target holds, by the public certificates alone."""
    days, evidence = goal.get("days", 1), goal.get("evidence")
    try:
        certificate = certify(mechanism, attacker, protects=goal.get("protects", "presence"))
        whole = certificate if days == 1 else compose([(certificate, days)], evidence)
    except (NotCertifiableError, NoEvidenceError):
        return False
    return whole.delta(goal["epsilon"]) <= goal["delta"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A call of a function of the planner, and what its answer is put into."""

    ask: Callable
    put: Callable  # answer -> (mechanism, attacker)
    neighbour: Callable  # answer -> the one that must fail, or None where there is none
    goal: dict

    def answered(self):
        """Return the answer after checking it; None where the planner says that there is none."""
        try:
            answer = self.ask()
        except NotCertifiableError:
            return None
        assert reaches(*self.put(answer), self.goal), (answer, self)
        beside = self.neighbour(answer)
        assert beside is None or not reaches(*self.put(beside), self.goal), (answer, beside, self)
        return answer


def one_less(least):
    return lambda number: number - 1 if number > least else None


def next_up(most):
    # Nothing between 0 and 1e-12 is looked at.
    return lambda share: (math.nextafter(share, 2.0) if share > 0.0 else 1e-12) if share < most else None


def target(draw, *, days=True, widest=3.0):
    goal = {"epsilon": draw.choice([0.0, draw.uniform(0.05, widest)]), "delta": 10 ** draw.uniform(-12, -1)}
    if goal["epsilon"] == 0.0:
        goal["delta"] = 10 ** draw.uniform(-2.5, -0.5)
    if days and draw.random() < 0.2:
        goal |= {"days": draw.choice([2, 7, 30, 365]), "evidence": IndependentGivenHabits()}
        goal["epsilon"] += 1.0
    return goal


def crowd(draw, **fields):
    """Return an attacker who may know or control a few people, with few or many unknown ones."""
    fields.setdefault("known", draw.choice([0, 0, 0, 1, 5]))
    fields.setdefault("influence", draw.choice(["active", "passive"]))
    fields.setdefault("unknown_max", draw.choice([None, None, None, 20, 400]))
    return AttackerModel(**fields)


def about_k(draw):
    goal = target(draw)
    kind = draw.choice(["presence", "presence", "value", "between"])
    if kind == "between":
        attacker = crowd(draw, p_max_between=draw.uniform(0.5, 0.95))
    elif kind == "value":
        attacker = crowd(draw, p_max=draw.uniform(0.01, 0.6), known=draw.choice([0, 0, 1]), influence="active")
    else:
        attacker = crowd(draw, p_max=draw.uniform(0.001, 0.9))
    goal["protects"] = "presence" if kind == "presence" else "value"
    return Question(
        ask=lambda: smallest_k(attacker, **goal),
        put=lambda k: (Histogram(k=k), attacker),
        neighbour=one_less(1),
        goal=goal,
    )


def about_unknown(draw):
    kind = draw.choice(["exact", "exact", "noisy", "options", "cells", "threshold"])
    goal = target(draw, days=False)
    goal["epsilon"] = max(goal["epsilon"], 0.1)
    low = draw.uniform(0.02, 0.5)
    attacker, mechanism = AttackerModel(p_min=low, p_max=draw.uniform(low, 0.98)), Count()
    if kind == "noisy":
        mechanism = Count(noise=GeometricNoise(draw.uniform(1.0, 4.0) * goal["epsilon"]))
    elif kind == "options":
        mechanism, goal["protects"] = Histogram(), "value"
    elif kind == "cells":
        mechanism = Histogram()
    elif kind == "threshold":
        mechanism = Count(k=draw.randrange(2, 40))
    return Question(
        ask=lambda: smallest_unknown(mechanism, attacker, **goal),
        put=lambda people: (mechanism, replace(attacker, unknown=people)),
        neighbour=one_less(0),
        goal=goal,
    )


def about_p_max(draw):
    kind = draw.choice(["presence", "presence", "count", "value", "box"])
    goal = target(draw)
    k = draw.choice([draw.randrange(1, 30), draw.randrange(30, 2000)])
    mechanism, attacker = Histogram(k=k), crowd(draw)
    if kind == "count":
        mechanism = Count(k=k)
        attacker = crowd(draw, p_min=draw.choice([None, 0.0, draw.uniform(0.0, 0.3)]))
    elif kind == "value":
        goal["protects"] = "value"
        # Known people and many days together take seconds.
        attacker = crowd(draw, known=0 if "days" in goal else draw.choice([0, 0, 1]), influence="active")
    elif kind == "box":
        for name in ("days", "evidence"):
            goal.pop(name, None)
        mechanism = Count()
        attacker = AttackerModel(p_min=draw.uniform(0.01, 0.6), unknown=draw.randrange(50, 5000))
    if "days" in goal:
        # Averages over whom the attacker knows, and caps near a p_max of 1, take long to add up.
        attacker = replace(attacker, influence="active", unknown_max=None)
    return Question(
        ask=lambda: largest_p_max(mechanism, attacker, **goal),
        put=lambda share: (mechanism, replace(attacker, p_max=share)),
        neighbour=next_up(1.0),
        goal=goal,
    )


def about_p_max_between(draw):
    goal = target(draw)
    mechanism, attacker = Histogram(k=draw.choice([draw.randrange(2, 50), draw.randrange(50, 5000)])), crowd(draw)
    return Question(
        ask=lambda: largest_p_max_between(mechanism, attacker, **goal),
        put=lambda share: (mechanism, replace(attacker, p_max_between=share)),
        neighbour=next_up(1.0),
        goal=goal | {"protects": "value"},
    )


def about_noise(draw):
    kind = draw.choice(["presence", "value", "count", "kept", "box"])
    goal = target(draw)
    attacker, mechanism = AttackerModel(), Histogram()
    if kind in ("value", "kept"):
        goal["protects"] = draw.choice(["presence", "value"]) if kind == "kept" else "value"
    if kind == "count":
        mechanism = Count()
    elif kind == "kept":
        k = draw.randrange(1, 40)
        mechanism = Histogram(k=k, noise=GeometricNoise(1.0), release_threshold=k + draw.randrange(0, 400))
    elif kind == "box":
        for name in ("days", "evidence"):
            goal.pop(name, None)
        mechanism = Count()
        attacker = AttackerModel(p_min=0.2, p_max=draw.uniform(0.2, 0.8), unknown=draw.randrange(20, 100))
        goal["epsilon"] = max(goal["epsilon"], 0.7)
    return Question(
        ask=lambda: smallest_noise(mechanism, attacker, **goal),
        put=lambda noise: (
            replace(mechanism, noise=noise, release_threshold=mechanism.release_threshold if noise else None),
            attacker,
        ),
        neighbour=lambda noise: noise and GeometricNoise(math.nextafter(noise.epsilon, math.inf)),
        goal=goal,
    )


def about_release_threshold(draw):
    goal = target(draw)
    goal["protects"] = draw.choice(["presence", "value"])
    cells = 1 if goal["protects"] == "presence" else 2
    share = goal["epsilon"] / goal.get("days", 1) / cells * draw.uniform(0.3, 1.05)
    noise = GeometricNoise(max(share, 1e-3))
    make = draw.choice([Count, Histogram]) if cells == 1 else Histogram
    mechanism = make(k=draw.randrange(1, 60), noise=noise)
    return Question(
        ask=lambda: smallest_release_threshold(mechanism, **goal),
        put=lambda threshold: (replace(mechanism, release_threshold=threshold), AttackerModel()),
        neighbour=one_less(0),
        goal=goal,
    )


KINDS = {
    "smallest_k": about_k,
    "smallest_unknown": about_unknown,
    "largest_p_max": about_p_max,
    "largest_p_max_between": about_p_max_between,
    "smallest_noise": about_noise,
    "smallest_release_threshold": about_release_threshold,
}


def answered(name, number, seed):
    """Ask `number` random questions of one kind; return how many had an answer."""
    return sum(KINDS[name](Random(f"{name}/{seed}/{place}")).answered() is not None for place in range(number))
