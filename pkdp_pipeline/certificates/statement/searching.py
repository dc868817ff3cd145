"""Searching: a certified ε of a certificate against a stronger attacker, as closely as a row or a curve needs it."""

from __future__ import annotations

import functools
import math

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate

__all__ = ["certified_epsilon"]

_CLOSE = 3e-3
"""How far above the smallest certified ε the answer may be, as a share of it, where the search is short."""

_EVALUATIONS = 12
_STRETCH = (1.01, 3.0)


def certified_epsilon(certificate: Certificate, delta: float, least: float = 0.0) -> float:
    """Return an ε certified at `delta`, or `least` where even that is; `math.inf` where there is none.

    Parameters
    ----------
    certificate : Certificate
    delta : float
    least : float, default 0.0
        The ε against a weaker attacker, from which the search may start.

    Notes
    -----
    It is the smallest one that `Certificate.epsilon` finds, except for noisy counts without a threshold, each of
    whose evaluations takes long: there it may be larger by a third of a percent. *Rounding*: up.
    """
    if not isinstance(certificate, ReleaseCertificate) or "noisy_counting" not in certificate.theorems:
        return certificate.epsilon(delta)
    return _short_search(certificate, delta, least)


@functools.lru_cache(maxsize=256)
def _short_search(certificate: ReleaseCertificate, delta: float, least: float) -> float:
    # The table and the curve ask about the same attackers.
    most = certificate.worst_case.epsilon(delta)
    if not 0.0 < least < most < math.inf or not 0.0 < delta < 1.0:
        return certificate.epsilon(delta)
    below, above = (least, certificate.delta(least)), (most, 0.0)
    if below[1] <= delta:
        return least
    guess = _bell(below, delta)
    for _ in range(_EVALUATIONS):
        if guess >= most * (1.0 - _CLOSE):
            guess = most * (1.0 - _CLOSE)
            if below[0] >= guess:
                break
        value = certificate.delta(guess)
        if value <= delta:
            above = (guess, value)
        else:
            below = (guess, value)
        crossing = _chord(below, above, delta) if above[1] > 0.0 else _bell(below, delta)
        if above[0] <= max(below[0], crossing if above[1] > 0.0 else 0.0) * (1.0 + _CLOSE):
            break
        guess = crossing * (1.0 + 0.3 * _CLOSE)
        if not below[0] < guess < above[0]:
            guess = math.sqrt(below[0] * above[0])
    return above[0]


def _bell(point: tuple[float, float], delta: float) -> float:
    """Return where δ is reached if the logarithm of δ(ε) falls with the square of ε."""
    epsilon, value = point
    growth = math.sqrt(math.log(delta) / math.log(value)) if value < 1.0 else _STRETCH[1]
    return epsilon * min(max(growth, _STRETCH[0]), _STRETCH[1])


def _chord(below: tuple[float, float], above: tuple[float, float], delta: float) -> float:
    """Return where δ is reached between two points, on the same scale."""
    high, low = math.log(below[1] / delta), math.log(delta / above[1])
    return math.sqrt((below[0] ** 2 * low + above[0] ** 2 * high) / (high + low))
