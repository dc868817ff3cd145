"""How much noise: the least at which a target holds, for one release or for several together.

Bounds of a sum against its error: wider ones need more noise, narrower ones cut more off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import NoEvidenceError, NotCertifiableError
from pkdp_pipeline.extras.plan.planning.searching import Goal, guessed_noise, guessed_noise_alone, last_float, read_goal
from pkdp_pipeline.extras.plan.planning.thresholds import least_release_threshold
from pkdp_pipeline.model.attacker import AttackerModel, read_attacker
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import (
    SMALLEST_EPSILON,
    Count,
    Counts,
    GeometricNoise,
    Mechanism,
    Protects,
    Sum,
    cell_noise,
    cells_per_unit,
    mean_absolute,
    mechanism_name,
)
from pkdp_pipeline.model.wording import whole_number

_MAX_NOISE = math.nextafter(math.inf, 0.0)
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_MAX_EVALUATIONS = 40
_MAX_ROUNDS = 8

_RELATIVE_TOLERANCE = 1e-3
"""Several noisy counts, or one of very many unknown people, take long: there it is enough to fail soon above."""

_MANY_UNKNOWN = 1_000


def smallest_noise(
    mechanism: Mechanism,
    attacker: AttackerModel | None = None,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
) -> GeometricNoise | None:
    """Return the least noise (that of the largest ε) at which a release, or `days` of them together, reach the target.

    Parameters
    ----------
    mechanism : Count, Histogram or Sum
        With its thresholds; whatever it says about noise is not used. A `k` needs a `release_threshold` as well:
        give one together with any noise, for instance that of `smallest_release_threshold`.
    attacker : AttackerModel, optional
        The attacker's uncertainty can take the place of some of the noise: for a `Count` without `k` whose
        `p_min`, `p_max` and `unknown` are declared, sum and noise are certified together. None: nothing is
        declared, and the answer holds against anyone.
    epsilon, delta, days
        See `smallest_k`.
    protects : {"presence", "value"}, default "presence"
        A person who changes cells changes two of them, which takes about twice the noise.
    evidence : Evidence or list of Evidence, optional
        The evidence declared so that they add up, see `compose`; what noise guarantees by itself needs none.

    Returns
    -------
    GeometricNoise or None
        The target holds with it, and fails at the next larger ε (for a count without `k` against an attacker whose
        `p_min`, `p_max` and `unknown` are declared, where there are several releases or more than a thousand unknown
        people: at an ε that is larger by at most 0.1 %). None where the mechanism reaches the target without any noise.

    Raises
    ------
    NotCertifiableError
        If no noise reaches the target; the message names what would.
    NoEvidenceError
        If several releases are asked about that do not add up with what is declared.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: the target holds with the answer, as certified. *Rounding*: the ε of the noise is rounded down, to a
    float. The δ of noise by itself grows with its ε. Where attackers are searched (`p_min` and `unknown`
    declared), or many releases are added up on a grid, the certified δ follows the true one with a slack, up to 1 %;
    there slightly less noise may reach the target too.
    """
    mechanism_name(mechanism)
    goal = read_goal(epsilon, delta, protects, days, evidence)
    return least_noise(mechanism, read_attacker(attacker), replace(goal, cells_per_unit=cells_per_unit(mechanism)))


def least_noise(mechanism: Mechanism, attacker: AttackerModel, goal: Goal) -> GeometricNoise | None:
    """Return what `smallest_noise` does."""
    anyone, after = attacker.against_anyone(), _before_suppression(mechanism)
    if not isinstance(mechanism, Sum):
        try:
            if goal.loss(replace(mechanism, noise=None, release_threshold=None), attacker) <= goal.delta:
                return None
        except NoEvidenceError:
            pass  # noise adds up without evidence

    @cache
    def loss(noise: float) -> float:
        return goal.loss(replace(mechanism, noise=GeometricNoise(noise)), attacker)

    if after is not None:
        bounded = mechanism.release_threshold is not None and getattr(mechanism, "k_complement", None) is None
        epsilon = _after_suppression(loss, after, anyone, goal) if bounded else None
    else:
        helped = guessed_noise(attacker, goal) if isinstance(mechanism, Count) else None
        long = helped is not None and (goal.days > 1 or (attacker.unknown or 0) > _MANY_UNKNOWN)
        epsilon = _alone(loss, goal, helped or guessed_noise_alone(goal), _RELATIVE_TOLERANCE if long else 0.0)
    if epsilon is None:
        if attacker.leakage:
            # What is known besides may leave nothing to promise, whatever the noise.
            certify(replace(mechanism, noise=GeometricNoise(1.0)), attacker, protects=goal.protects)
        raise NotCertifiableError(_unreachable(mechanism, goal, attacker.against_anyone()))
    return GeometricNoise(epsilon)


def _before_suppression(mechanism: Mechanism) -> Mechanism | None:
    """Return a mechanism without what is suppressed before its noise; None where nothing is."""
    if isinstance(mechanism, Sum):
        return replace(mechanism, release_threshold=None, cells_found=False) if mechanism.cells_found else None
    nothing = mechanism.k is None and getattr(mechanism, "k_complement", None) is None
    return None if nothing else replace(mechanism, k=None, release_threshold=None)


def _alone(loss: Callable[[float], float], goal: Goal, helped: float | None, close: float = 0.0) -> float | None:
    """Return the largest ε of noise before which nothing is suppressed: the narrower it is, the less it hides.

    It lies about at `helped`, where less noise will do than the sum over the releases needs. None where none will do.
    """
    sure = _first_guess(goal)
    holds, stride = (helped, 0.03) if helped is not None and helped > sure else (sure, 2.0**-20)
    fails, shrink = math.inf, 0.97
    while not loss(holds) <= goal.delta:
        fails = holds
        if holds > sure:
            # Come down by ever larger strides, to what the noise alone makes sure.
            holds, shrink = max(holds * shrink, sure), shrink * shrink
        elif 0.5 * holds < SMALLEST_EPSILON:
            return None
        else:
            holds *= 0.5
    while fails == math.inf and holds < _MAX_NOISE:
        probe = min(holds * (1.0 + stride), _MAX_NOISE)
        if loss(probe) <= goal.delta:
            holds, stride = probe, 32.0 * stride
        else:
            fails = probe
    return holds if fails == math.inf else _last(loss, goal, holds, fails, close)


def _after_suppression(
    loss: Callable[[float], float], bare: Mechanism, anyone: AttackerModel, goal: Goal
) -> float | None:
    """Return the largest ε of noise after a `k`: too wide noise lifts what has just reached k over the threshold.

    `bare`: the mechanism with nothing suppressed.
    """

    def bare_loss(noise: float) -> float:
        return goal.loss(replace(bare, noise=GeometricNoise(noise)), anyone)

    most = _alone(bare_loss, goal, guessed_noise_alone(goal))
    if most is None or loss(most) <= goal.delta:
        return most
    # Golden-section search for the smallest δ below, up to the first that reaches the goal.
    low, high = math.log(most) - 3.0, math.log(most)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    for _ in range(_MAX_EVALUATIONS):
        best = min(left, right, key=lambda point: loss(math.exp(point)))
        if loss(math.exp(best)) <= goal.delta:
            return _last(loss, goal, math.exp(best), most)
        if best == left:
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
    return None


def _first_guess(goal: Goal) -> float:
    """Return an ε that one release's noise may have: exact for one release, the sum's share for several."""
    share, delta = goal.epsilon / goal.days, goal.delta / goal.days
    if delta >= 1.0:
        return max(share / goal.cells, 1.0)
    growth = math.exp(min(share, 700.0))
    if goal.cells > 2:
        guess = share / goal.cells
    elif goal.cells == 1:
        guess = math.log((growth + delta) / (1.0 - delta))
    else:
        # The positive root of α²(e^ε + δ) + 2δα + δ - 1.
        root = math.sqrt(delta * delta + (1.0 - delta) * (growth + delta))
        guess = math.log((growth + delta) / (root - delta))
    return max(guess * (1.0 - 2.0**-40), 2.0 * SMALLEST_EPSILON)


def _last(loss: Callable[[float], float], goal: Goal, holds: float, fails: float, close: float = 0.0) -> float:
    """Narrow a bracket; below the share of ε that every release has when δ is 0, none is lost."""
    free = goal.epsilon / (goal.days * goal.cells)
    start = free if free < holds else 0.0
    scale = (lambda noise: math.log(noise - start), lambda height: start + math.exp(min(height, 709.0)))
    return last_float(loss, goal.delta, holds, fails, scale=scale, close=close)


def _unreachable(mechanism: Mechanism, goal: Goal, anyone: AttackerModel) -> str:
    """Say why no noise reaches the goal, and what would, with numbers."""
    start, k = f"no noise reaches {goal.words}: ", mechanism.k
    if getattr(mechanism, "k_complement", None) is not None:
        return start + "noise guarantees nothing after k_complement. Leave k_complement out."
    if isinstance(mechanism, Sum) and mechanism.cells_found:
        often = f"with release_threshold = {mechanism.release_threshold}, one person alone in a cell shows it too often"
        return f"{start}{often}. Raise release_threshold."
    if k is None or isinstance(mechanism, Sum):
        leaks = any(leak.is_private for leak in anyone.leakage)
        why = "what leaks besides counts as part of it" if leaks else "it would be too wide to be drawn"
        return f"{start}{why}. Allow a larger epsilon or delta."
    offered, offer = noise_after(replace(mechanism, noise=None, release_threshold=None), goal, anyone), ""
    if offered is not None and offered.noise is not None:
        noise = f"noise of epsilon {offered.noise.epsilon!r}"
        offer = f", for instance release_threshold = {offered.release_threshold} with {noise}"
    threshold = mechanism.release_threshold
    if threshold is None:
        need = "Give the mechanism release_threshold and any noise"
        return f"{start}after k = {k} it guarantees nothing without a release threshold. {need}{offer}."
    often = f"with release_threshold = {threshold}, a count that has just reached k = {k} shows itself too often"
    return f"{start}{often}. Raise release_threshold{offer}."


def noise_after(mechanism: Counts, goal: Goal, anyone: AttackerModel) -> Counts | None:
    """Return the mechanism, which has a `k`, with noise and a release threshold that reach the goal for `anyone`.

    The noise is the least that it needs by itself, where a threshold can be had beside it; else it leaves half of δ
    to the threshold, or loses no δ at all, and is then the least that goes with that threshold.
    """
    # A little less than an equal share of ε, so that the sum of the shares is not rounded above it.
    share = goal.epsilon / (goal.days * goal.cells) * (1.0 - 2.0**-40)
    for delta in (goal.delta, 0.5 * goal.delta, 0.0):
        try:
            if delta > 0.0:
                bare = replace(mechanism, k=None, release_threshold=None, noise=None)
                noise = least_noise(bare, anyone, replace(goal, delta=delta))
            else:
                noise = GeometricNoise(share) if share > SMALLEST_EPSILON else None
            if noise is not None:
                return _settled(replace(mechanism, noise=noise), goal, anyone)
        except NotCertifiableError:
            continue
    return None


def _settled(mechanism: Counts, goal: Goal, anyone: AttackerModel) -> Counts:
    """Return the mechanism with the least threshold for its noise, and with less noise as long as that lowers it."""
    least = None
    for _ in range(_MAX_ROUNDS):
        threshold = least_release_threshold(mechanism, anyone, goal)
        if threshold == least:
            break
        least = threshold
        mechanism = replace(mechanism, release_threshold=threshold)
        noise = least_noise(mechanism, anyone, goal)
        if noise is None or noise == mechanism.noise:
            break
        mechanism = replace(mechanism, noise=noise)
    return mechanism


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
