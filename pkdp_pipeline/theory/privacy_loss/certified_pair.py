"""From a certificate to the two sides of a pair that dominates every pair it speaks of."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.composition.convolution import Convolved
from pkdp_pipeline.composition.hull import hull_atoms
from pkdp_pipeline.composition.loss_laws import Losses, NoiseLosses, PairLosses, ProfileLosses, directions, pair_atoms
from pkdp_pipeline.composition.maximum import WorstMaximum
from pkdp_pipeline.composition.worst_case_parts import NoiseTotal
from pkdp_pipeline.theorems import Bound, Protects, WorstCase
from pkdp_pipeline.theorems.waiting_pair import waiting_pair
from pkdp_pipeline.theorems.worst_case import NoiseCurve
from pkdp_pipeline.theory.privacy_loss.noise_product import MOST_COUNTS, noise_side
from pkdp_pipeline.theory.privacy_loss.side import LossSide

__all__ = ["certified_sides"]

_LOST = 1e-90
"""Mass of a waiting time that may be left out of its atoms and counted as disclosed."""

_FINE = 0.01
"""Cells of a grid, in standard deviations of the loss; it widens the loss by a few millionths."""

_NARROWEST = 1e-9


def certified_sides(certificate: Certificate) -> tuple[LossSide, LossSide]:
    """Return the losses above 0, in either order, of a pair that dominates what the certificate is about.

    Notes
    -----
    Theorem A's waiting times, noise and products of noise are known as pairs; theorem B's product and the envelope of
    theorem C are taken on a fine grid. For everything else the pair is the one, its own mirror image, whose profile
    is the convex hull of the certified δ(ε). *Guarantee*: for every attacker the certificate speaks of, the profile
    of the first order of the two lives is nowhere above one side's, that of the second order nowhere above the
    other's. *Rounding*: up.
    """
    worst = certificate.worst_case_bound
    partial = tuple(applied.bound for applied in certificate.partial_bounds)
    return _sides((*partial, *(() if worst is None else (worst,))), certificate.protects)


@lru_cache(maxsize=16)
def _sides(bounds: tuple[Bound, ...], protects: Protects) -> tuple[LossSide, LossSide]:
    law = directions(bounds, protects)
    first = _side(law.right)
    second = first if law.left is None else _side(law.left)
    ends = [bound.parameters[0] for bound in bounds if isinstance(bound, WorstCase) and bound.parameters[1] == 0.0]
    if not ends:
        return first, second
    return first.ending_at(min(ends)), second.ending_at(min(ends))


def _side(law: Losses) -> LossSide:
    if isinstance(law, PairLosses) and law.known == 0:
        return LossSide.of_masses(*pair_atoms(waiting_pair(law.k - 1, law.p, law.cap, _LOST), law.order))
    if isinstance(law, NoiseLosses):
        return noise_side([(law.noise, law.cells)])
    if isinstance(law, ProfileLosses):
        counts = _noisy_counts(law.bounds[0]) if len(law.bounds) == 1 else None
        if counts is not None and sum(times for _, times in counts) <= MOST_COUNTS:
            return noise_side(counts)
        return LossSide.of_masses(*hull_atoms(law.bounds))
    step = max(_NARROWEST, _FINE * law.spread())
    grid = law.on_grid(step)
    cells = np.arange(max(1, grid.start), grid.last + 1, dtype=np.float64)
    masses = grid.masses[max(1, grid.start) - grid.start :]
    return LossSide.of_masses(np.nextafter(cells * step, np.inf), masses, grid.infinite)


def _noisy_counts(bound: Bound) -> list[tuple[float, int]] | None:
    """Return the ε0 of independent noisy counts, and how many have it, where a bound is about just these."""
    if isinstance(bound, NoiseCurve):
        return [(bound.noise, bound.cells)] if bound.appears_at is None else None
    if isinstance(bound, WorstMaximum):
        curves = _curves(bound.parts)
        if not curves or len({curve.cells for curve in curves}) > 1:
            return None
        return [(max(curve.noise for curve in curves), curves[0].cells)]
    if isinstance(bound, NoiseTotal):
        return _total_counts(bound)
    if isinstance(bound, Convolved) and bound.participation is None:
        laws = [part.right for part, _ in bound.parts if part.left is None]
        noisy = [law for law in laws if isinstance(law, NoiseLosses)]
        if len(noisy) < len(bound.parts):
            return None
        return [(law.noise, law.cells * times) for law, (_, times) in zip(noisy, bound.parts, strict=True)]
    return None


def _total_counts(total: NoiseTotal) -> list[tuple[float, int]] | None:
    curves = _curves(tuple(bound for bound, _ in total.parts))
    if not curves:
        return None
    listed = [(curve, times) for curve, (_, times) in zip(curves, total.parts, strict=True)]
    left = total.releases
    if left < sum(times for _, times in listed) and len({curve.cells for curve in curves}) > 1:
        return None
    # Of equally many cells, those with the least noise tell the most.
    found = []
    for curve, times in sorted(listed, key=lambda part: -part[0].noise):
        taken = min(times, left)
        left -= taken
        if taken:
            found.append((curve.noise, curve.cells * taken))
    return found


def _curves(bounds: tuple[WorstCase, ...]) -> list[NoiseCurve]:
    """Return bounds that are all noise with nothing suppressed before it; none otherwise."""
    curves = [bound for bound in bounds if isinstance(bound, NoiseCurve) and bound.appears_at is None]
    return curves if len(curves) == len(bounds) else []
