"""Bounds of a sum against its error: wider ones need more noise, narrower ones cut more off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pkdp_pipeline.extras.plan.planning.noise_width import smallest_noise
from pkdp_pipeline.model.arguments import whole_number
from pkdp_pipeline.model.mechanisms import Sum, cell_noise
from pkdp_pipeline.model.noise import GeometricNoise, mean_absolute
from pkdp_pipeline.theorems import Protects


@dataclass(frozen=True, slots=True, kw_only=True)
class SumChoice:
    """Bounds of a sum, with the least noise that reaches a target.

    Attributes
    ----------
    mechanism : Sum
    mean_absolute_error : float
        Of the noise in one cell.
    cut_off : int or None
        By how much the bounds change the sum of a cell whose people add what was given; None where nothing was.
    """

    mechanism: Sum
    mean_absolute_error: float
    cut_off: int | None

    @property
    def error(self) -> float:
        """The mean absolute error and what is cut off, added up."""
        return self.mean_absolute_error + abs(self.cut_off or 0)


def sum_choices(
    bounds: Iterable[tuple[int, int]],
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    cells_per_unit: int = 1,
    contributions: Mapping[int, int] | None = None,
) -> tuple[SumChoice, ...]:
    """Return what sums with each of these bounds cost for a target, the smallest error first.

    Parameters
    ----------
    bounds : iterable of two int
    epsilon, delta, protects
        See `smallest_noise`.
    cells_per_unit : int, default 1
        See `Sum`.
    contributions : mapping of int to int, optional
        How many people of a typical cell add how much, from a public source and never from the data themselves: what
        bounds cut off these is no secret then.

    Raises
    ------
    NotCertifiableError
        If no noise reaches the target.
    ArgumentError
        If an argument is malformed.
    """
    people = dict(contributions or {})
    for added, number in people.items():
        whole_number("each of contributions", added, least=-(10**18))
        whole_number("how many people add it", number, least=0)
    choices = []
    for lower, upper in bounds:
        mechanism = Sum((lower, upper), GeometricNoise(1.0), cells_per_unit=cells_per_unit)
        noise = smallest_noise(mechanism, epsilon=epsilon, delta=delta, protects=protects)
        assert noise is not None  # a sum without noise is none
        mechanism = replace(mechanism, noise=noise)
        error = mean_absolute(cell_noise(mechanism) or noise)
        cut = sum(number * (min(max(added, lower), upper) - added) for added, number in people.items())
        choices.append(SumChoice(mechanism=mechanism, mean_absolute_error=error, cut_off=cut))
    if contributions is None:
        choices = [replace(choice, cut_off=None) for choice in choices]
    return tuple(sorted(choices, key=lambda choice: choice.error))
