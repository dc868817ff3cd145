"""GuaranteeCurve: a certificate's δ(ε) with what attackers attain, as the points of a drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.statement.effort import affordable
from pkdp_pipeline.model.arguments import probability, whole_number
from pkdp_pipeline.theorems.rounding import Array

__all__ = ["GuaranteeCurve"]

_LEAST_POINTS = 16
_FARTHEST = 50.0
"""No drawing goes beyond this ε, except to the ε that the sentence names."""

_FLAT = 4.0
"""How far to look where no ε reaches the δ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteeCurve:
    """The guarantee at many ε, for a drawing or a table.

    Attributes
    ----------
    epsilons : tuple of float
        Increasing, from 0.
    attained : tuple of float
        δ that some declared attacker reaches; 0 where no attack is known.
    certified : tuple of float
        δ that none exceeds.
    worst_case : tuple of float or None
        δ of the guarantee against anyone at all; None where there is none.
    mark : (float, float) or None
        The certified ε and the δ that the sentence names; None where no ε reaches it.

    Notes
    -----
    None of the three increases with ε. Between two points only what holds at the left one is certified: a drawing
    takes steps, or the chord in ``e^ε`` (`between`), never a straight line.
    """

    epsilons: tuple[float, ...]
    attained: tuple[float, ...]
    certified: tuple[float, ...]
    worst_case: tuple[float, ...] | None
    mark: tuple[float, float] | None

    @classmethod
    def of(cls, certificate: Certificate, delta: float = 1e-6, points: int = 61) -> Self:
        """Return the curve of `certificate` from ε = 0 to somewhat beyond the ε that the sentence names.

        Parameters
        ----------
        certificate : Certificate
        delta : float, default 1e-6
            The δ that the sentence is about.
        points : int, default 61
            How many at most, besides the marked ε and the end of the noise's curve; certificates that cost
            much to evaluate get fewer. At least 2.

        Raises
        ------
        ArgumentError
            If a number is out of range.
        """
        target = probability("delta", delta)
        number = affordable(certificate, whole_number("points", points, least=2), _LEAST_POINTS)
        found = certificate.epsilon(target)
        noise = _noise_end(certificate)
        end = _end(found, noise)
        special = {value for value in (found, noise) if value is not None and value <= end}
        # A point that is one of these but for roundoff would be there twice, on some processors.
        even = np.linspace(0.0, end, number).tolist()
        even = [at for at in even if not any(math.isclose(at, one, rel_tol=1e-9) for one in special)]
        epsilons = np.array(sorted({*even, *special}))
        attained, certified = (_falling(side) for side in certificate.delta_bounds(epsilons))
        anyone = None
        if noise is not None or certificate.worst_case.epsilon(target) < math.inf:
            anyone = tuple(_falling(certificate.worst_case.delta(epsilons)).tolist())
        return cls(
            epsilons=tuple(epsilons.tolist()),
            attained=tuple(attained.tolist()),
            certified=tuple(certified.tolist()),
            worst_case=anyone,
            mark=None if found == math.inf else (found, target),
        )

    def between(self, parts: int = 8) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return ε and certified δ with `parts` steps for each of the curve's, without evaluating anything.

        The true δ is a convex function of ``e^ε``, so a chord of certified points is certified too. Drawn as steps
        (each value up to the next ε), these are a smooth line that is nowhere below the truth.
        """
        number = whole_number("parts", parts, least=1)
        epsilons, values = [self.epsilons[0]], [self.certified[0]]
        for left, right, high, low in zip(
            self.epsilons, self.epsilons[1:], self.certified, self.certified[1:], strict=False
        ):
            for step in range(1, number):
                at = left + (right - left) * step / number
                share = math.expm1(at - left) / math.expm1(right - left)
                epsilons.append(at)
                values.append(min(high, math.nextafter((high - (high - low) * share) * (1.0 + 1e-12), math.inf)))
            epsilons.append(right)
            values.append(low)
        return tuple(epsilons), tuple(values)


def _falling(values: Array) -> Array:
    """Return `values` raised where a later one is larger; δ(ε) does not increase, so both sides stay true."""
    largest: Array = np.maximum.accumulate(values[::-1])[::-1]
    return largest


def _noise_end(certificate: Certificate) -> float | None:
    """Return the ε beyond which the guarantee against anyone is flat."""
    pair = certificate.worst_case.parameters
    return None if pair is None or pair[0] == math.inf or pair[1] >= 1.0 else pair[0]


def _end(found: float, noise: float | None) -> float:
    """Return the largest ε to show: enough to see the curve fall, and ε = 1 where that is not far out."""
    if found == math.inf:
        wanted = _FLAT
    elif found == 0.0:
        wanted = 1.0
    else:
        wanted = max(1.5 * found, min(1.0, 4.0 * found))
    if noise is not None:
        wanted = max(wanted, 1.1 * noise)
    return min(wanted, max(_FARTHEST, 1.05 * found if found < math.inf else 0.0))
