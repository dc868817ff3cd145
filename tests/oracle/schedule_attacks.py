"""Setting random crowds on the total of a schedule."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np

from oracle.dependent_schedules import SCHEDULES
from oracle.joint import joint_losses
from oracle.laws import BITS, exact_exp, lower_end
from oracle.schedules import Schedule
from pkdp_pipeline.certificates.composed import compose

__all__ = ["attack"]


def _exactly(schedule: Schedule, column: int, epsilon: float) -> Fraction:
    """Return the truth for one crowd in ball arithmetic; its law is the nearest one of exact floats."""

    def exact(person: Any) -> dict[Any, Any]:
        drawn = {place: float(np.ravel(p)[column if np.size(p) > 1 else 0]) for place, p in person.items()}
        numbers = {place: flint.arb(max(0.0, weight)) for place, weight in drawn.items()}
        total = sum(numbers.values())
        return {place: weight / total for place, weight in numbers.items()}

    with flint.ctx.workprec(BITS):
        people, known = [exact(p) for p in schedule.people], [exact(p) for p in schedule.known]
        sides = joint_losses(people, schedule.days, schedule.lives, epsilon, exact_exp, known)
        return max(lower_end(flint.arb(side)) for side in sides)


def attack(family: str, *, schedules: int, batch: int, seed: int) -> tuple[int, float]:
    """Compare the truth about random crowds with the total of their schedule, best bound and worst case.

    Returns
    -------
    (crowds, worst truth/certified) : the latter where 0 < certified < 0.9
    """
    crowds, worst = 0, 0.0
    for number in range(schedules):
        rng = np.random.default_rng([seed, number])
        schedule = SCHEDULES[family](rng, batch)
        total = compose(schedule.certificates(), schedule.evidence)
        grid = np.array(schedule.epsilons)
        bounds = [total.delta(grid)]
        if total.worst_case.parameters is not None:
            bounds.append(total.worst_case.delta(grid))
        for index, epsilon in enumerate(schedule.epsilons):
            sides = joint_losses(schedule.people, schedule.days, schedule.lives, epsilon, np.exp, schedule.known)
            truth = np.maximum(*sides) + np.zeros(1)
            for certified in (float(bound[index]) for bound in bounds):
                column = int(truth.argmax())
                if truth[column] > certified * (1.0 - 1e-9) - 1e-14:
                    # The law's own rounding moves the truth by a few parts in 1e16.
                    exact = _exactly(schedule, column, epsilon)
                    assert exact <= Fraction(certified) * (1 + Fraction(1, 10**14)) + Fraction(1, 10**17), (
                        f"{family} {seed}/{number}: {schedule.parts}, {schedule.days}, {schedule.evidence}, lives "
                        f"{schedule.lives}, {schedule.protects}, ε = {epsilon}: true {float(exact)!r}, certified "
                        f"{certified!r}"
                    )
                if 0.0 < certified < 0.9:
                    worst = max(worst, float(truth[column]) / certified)
        crowds += batch
    return crowds, worst
