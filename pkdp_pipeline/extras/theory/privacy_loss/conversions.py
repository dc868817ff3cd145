"""Known conversions between definitions of privacy, each in one direction, which its name states.

Every function takes the parameters of one definition and returns those of another one that follows for every mechanism.
*Guarantee*: the mechanism that satisfies the first definition satisfies the second with what is returned. *Rounding*:
up, from ball arithmetic, in every function. Where a printed statement can be sharpened with a short proof, the sharper
one is here. `docs/privacy_loss.md` proves what the sources named here do not, and says which conversions are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.theory.privacy_loss.side import read_number
from pkdp_pipeline.model.wording import positive_real, probability, whole_number
from pkdp_pipeline.theorems.numerics import ball_above, sum_above

_BITS = 192
_MAX_STEPS = 90
"""Steps of a search for the best order; any order is sound."""


def pure_to_total_variation(epsilon: float) -> float:
    """Return ``tanh(ε/2)``: ε-differential privacy bounds the total variation.

    *Source*: randomised response dominates every ε-private pair and attains it.
    """
    return min(1.0, _above(lambda: flint.arb.tanh(_ball("epsilon", epsilon) / 2)))


def pure_to_kl(epsilon: float) -> float:
    """Return ``ε tanh(ε/2)``: ε-differential privacy bounds the Kullback–Leibler divergence.

    *Source*: randomised response attains it; it is at most the ``ε²/2`` and ``ε (e^ε - 1)`` that are in print.
    """
    return _above(lambda: _ball("epsilon", epsilon) * (_ball("epsilon", epsilon) / 2).tanh())


def pure_to_renyi(epsilon: float, alpha: float) -> float:
    """Return ``log(cosh((2α-1)ε/2)/cosh(ε/2))/(α - 1)``, what randomised response has at an α above 1."""
    half, order = _ball("epsilon", epsilon) / 2, _order(alpha)
    # No divergence is above the largest loss; far out, cosh is above all balls.
    return min(_above(lambda: (((2 * order - 1) * half).cosh() / half.cosh()).log() / (order - 1)), float(epsilon))


def pure_to_zero_concentrated(epsilon: float) -> float:
    """Return ``ρ = ε tanh(ε/2)``: ε-differential privacy is (0, ρ)-zero-concentrated.

    *Source*: attained by randomised response, as α falls to 1. It is at most the ``ε²/2`` of Bun and Steinke,
    "Concentrated differential privacy: simplifications, extensions, and lower bounds" (2016), Proposition 1.4.
    """
    return pure_to_kl(epsilon)


def pure_to_mean_concentrated(epsilon: float) -> tuple[float, float]:
    """Return ``(μ, τ) = (ε tanh(ε/2), ε)``: ε-differential privacy is mean-concentrated.

    *Source*: Dwork and Rothblum, "Concentrated differential privacy" (2016), Theorem 3.5, which has ``ε (e^ε - 1)/2``
    for μ; τ is Hoeffding's lemma for a loss between -ε and ε.
    """
    return pure_to_kl(epsilon), _above(lambda: _ball("epsilon", epsilon))


def mean_to_zero_concentrated(mu: float, tau: float) -> tuple[float, float]:
    """Return ``(ξ, ρ) = (μ - τ²/2, τ²/2)``: mean-concentrated privacy is zero-concentrated; ξ may be negative.

    *Source*: Bun and Steinke (2016), Lemma 4.2. The other direction, Lemma 4.3, has constants that are not given.
    """
    return _above(lambda: _ball("mu", mu) - _ball("tau", tau) ** 2 / 2), _above(lambda: _ball("tau", tau) ** 2 / 2)


def zero_concentrated_to_kl(rho: float, xi: float = 0.0) -> float:
    """Return ``ξ + ρ``: what (ξ, ρ)-zero-concentrated privacy says in the limit α → 1."""
    return max(0.0, _above(lambda: _shift(xi) + _ball("rho", rho)))


def zero_concentrated_to_renyi(rho: float, alpha: float, xi: float = 0.0) -> float:
    """Return ``ξ + ρ α``: what (ξ, ρ)-zero-concentrated privacy says at one α above 1."""
    return max(0.0, _above(lambda: _shift(xi) + _ball("rho", rho) * _order(alpha)))


def zero_concentrated_of_group(rho: float, size: int) -> float:
    """Return ``ρ size²``: what (0, ρ)-zero-concentrated privacy of one person gives for a group.

    *Source*: Bun and Steinke (2016), Proposition 1.9. Every step between neighbours must be one of the mechanism's own.
    """
    return _above(lambda: _ball("rho", rho) * whole_number("size", size, least=1) ** 2)


def renyi_to_epsilon_simple(alpha: float, divergence: float, delta: float) -> float:
    """Return ``D + log(1/δ)/(α - 1)``: Rényi privacy of order α is (ε, δ)-differential privacy.

    *Source*: Mironov, "Rényi differential privacy" (2017), Proposition 3.
    """
    order, size, rare = _order(alpha), _ball("divergence", divergence), _positive(delta)
    return max(0.0, _above(lambda: size - rare.log() / (order - 1)))


def renyi_to_epsilon(alpha: float, divergence: float, delta: float) -> float:
    """Return ``D + log(1 - 1/α) + (log(1/δ) - log α)/(α - 1)``, or 0: the sharper one for a single order.

    *Source*: Balle et al., "Hypothesis testing interpretations and Rényi differential privacy" (2020), Theorem 21;
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (2020), Proposition 12.
    """
    return max(0.0, _above(lambda: _sharp(_order(alpha), _ball("divergence", divergence), _positive(delta))))


def renyi_to_delta(alpha: float, divergence: float, epsilon: float) -> float:
    """Return ``e^{(α-1)(D - ε)} (1 - 1/α)^{α-1}/α``, at most 1: `renyi_to_epsilon` the other way round."""
    order, size, point = _order(alpha), _ball("divergence", divergence), _ball("epsilon", epsilon)
    return min(1.0, _above(lambda: _sharp_delta(order, size, point)))


def zero_concentrated_to_epsilon_simple(rho: float, delta: float, xi: float = 0.0) -> float:
    """Return ``ξ + ρ + sqrt(4 ρ log(1/δ))``: zero-concentrated privacy is (ε, δ)-differential privacy.

    *Source*: Bun and Steinke (2016), Lemma 3.5.
    """
    spread, shift, rare = _ball("rho", rho), _shift(xi), _positive(delta)
    return max(0.0, _above(lambda: shift + spread + _root(4 * spread * -rare.log())))


def zero_concentrated_to_epsilon(rho: float, delta: float, xi: float = 0.0) -> float:
    """Return the smallest ε of `renyi_to_epsilon` over all orders α, at most `zero_concentrated_to_epsilon_simple`."""
    simple = zero_concentrated_to_epsilon_simple(rho, delta, xi)

    def objective(order: float) -> float:
        return _above(lambda: _sharp(flint.arb(order), _line(rho, xi, order), flint.arb(probability("delta", delta))))

    return max(0.0, min(simple, _least(objective)))


def zero_concentrated_to_delta(rho: float, epsilon: float, xi: float = 0.0) -> float:
    """Return the smallest δ of `renyi_to_delta` over all orders α, at most 1.

    *Source*: as `renyi_to_epsilon`; Lemma 3.6 of Bun and Steinke (2016) refines Lemma 3.5 in another way.
    """
    exact = _above(lambda: _ball("epsilon", epsilon) + _ball("rho", rho) + _shift(xi))
    if math.isinf(exact):
        raise ArgumentError("epsilon, rho and xi must be finite.")

    def objective(order: float) -> float:
        return _above(lambda: _sharp_delta(flint.arb(order), _line(rho, xi, order), flint.arb(epsilon)))

    return min(1.0, _least(objective))


def approximate_to_approximately_zero_concentrated(epsilon: float, delta: float) -> tuple[float, float]:
    """Return ``(δ, ρ)`` with ``ρ = ε tanh(ε/2)``: (ε, δ)-privacy is δ-approximately (0, ρ)-zero-concentrated.

    *Source*: Bun and Steinke (2016), Lemma 8.3, which has ``ε²/2``.
    """
    return probability("delta", delta), pure_to_kl(epsilon)


def approximately_zero_concentrated_to_delta(dropped: float, rho: float, epsilon: float, xi: float = 0.0) -> float:
    """Return ``δ + (1 - δ) δ′`` for δ = `dropped`, with δ′ what the rest gives at ε.

    *Source*: Bun and Steinke (2016), section 8.
    """
    gone = probability("dropped", dropped)
    rest = zero_concentrated_to_delta(rho, epsilon, xi)
    return min(1.0, _above(lambda: flint.arb(gone) + (1 - flint.arb(gone)) * flint.arb(rest)))


def approximate_to_probabilistic(epsilon: float, delta: float, threshold: float) -> float:
    """Return ``δ/(1 - e^{ε-t})``, at most 1: how probable a loss above t > ε is under (ε, δ)-differential privacy.

    At t = ε nothing follows: (ε, δ)-differential privacy does *not* imply (ε, δ)-probabilistic differential privacy.
    """
    start, end, chance = _ball("epsilon", epsilon), _ball("threshold", threshold), probability("delta", delta)
    if not end > start:
        raise ArgumentError("threshold must be above epsilon: at epsilon itself nothing follows.")
    return min(1.0, _above(lambda: chance / -(start - end).expm1()))


def probabilistic_to_approximate(epsilon: float, delta: float) -> tuple[float, float]:
    """Return (ε, δ) as they are: (ε, δ)-probabilistic differential privacy is (ε, δ)-differential privacy.

    *Source*: Meiser, "Approximate and probabilistic differential privacy definitions" (2018).
    """
    return _above(lambda: _ball("epsilon", epsilon)), probability("delta", delta)


def truncated_to_epsilon(rho: float, omega: float, delta: float) -> float:
    """Return the ε at δ of (ρ, ω)-truncated concentrated privacy: ``D_α ≤ ρ α`` for 1 < α < ω only.

    It is ``ρ + 2 sqrt(ρ log(1/δ))`` where ``log(1/δ) ≤ (ω - 1)² ρ``, and ``ρ ω + log(1/δ)/(ω - 1)`` elsewhere.

    *Source*: Bun, Dwork, Rothblum and Steinke, "Composable and versatile privacy via truncated CDP" (2018), Lemma 6.
    """

    def bound() -> Any:
        spread, most, rarity = _ball("rho", rho), _order(omega, "omega"), -_positive(delta).log()
        if rarity <= (most - 1) ** 2 * spread:
            return spread + 2 * _root(spread * rarity)
        # The second form holds on both sides of the border.
        return spread * most + rarity / (most - 1)

    return _above(bound)


def kl_to_total_variation(divergence: float) -> float:
    """Return the smaller of ``sqrt(D/2)`` and ``sqrt(1 - e^{-D})``: the divergence in nats bounds the total variation.

    *Source*: Pinsker's inequality; Bretagnolle and Huber's.
    """
    pinsker = _above(lambda: _root(_ball("divergence", divergence) / 2))
    return min(pinsker, _above(lambda: _root(-(-_ball("divergence", divergence)).expm1())), 1.0)


def kl_to_mutual_information(divergence: float, records: int | None = None) -> float:
    """Return ``(1 - 1/r) D`` nats, ``D/4`` for r = 2, or ``log r`` if it is less: a divergence bounds the information.

    The mutual information is that of a record and the output, given all other records, whatever the prior: the worst
    over all laws of a record that can have r = `records` values; None: any number. The divergence is that of any two
    values, in both orders. In the limits of small D for r = 2, and of many values, nothing smaller holds.

    *Source*: Cuff and Yu, "Differential privacy as a mutual information constraint" (2016), Lemma 1, which has ``D``.
    """
    if records is None:
        return read_number("divergence", divergence)
    values = whole_number("records", records, least=2)
    share = flint.fmpq(1, 4) if values == 2 else flint.fmpq(values - 1, values)
    return min(_above(lambda: _ball("divergence", divergence) * share), _above(lambda: flint.arb(values).log()))


def approximate_to_mutual_information(epsilon: float, delta: float) -> float:
    """Return ``δ log 2 + (1 - δ) (log 2 - h(1/(1 + e^ε)))`` nats: what (ε, δ)-privacy tells of which life is true.

    Here ``h(x) = -x log x - (1 - x) log(1 - x)``. The mutual information of the target's life, one of two, and the
    output is at most this for every prior, given whatever else is known. Divided by log 2 it is in bits.

    *Source*: the pair R(ε, δ), which dominates all others, attains it with equal chances.
    """
    gone, size = probability("delta", delta), _ball("epsilon", epsilon)

    def bound() -> Any:
        return gone * flint.arb(2).log() + (1 - flint.arb(gone)) * _binary_information((size / 2).tanh())

    # No information about two lives is above log 2; far out, the bit is certain.
    return min(_above(bound), _above(lambda: flint.arb(2).log()))


def mutual_information_to_total_variation(information: float) -> float:
    """Return the δ with ``log 2 - h((1 + δ)/2) = I``, or 1: mutual information of at most I nats is (0, δ)-privacy.

    The information of a record and the output, given all other records, is at most I for every prior. A binary channel
    that is wrong with probability ``(1 - δ)/2`` attains it.

    *Source*: Cuff and Yu (2016), Lemma 2, which has the larger ``sqrt(2 I)``.
    """
    most = _ball("information", information)
    low, high = 0.0, min(1.0, _above(lambda: _root(2 * most)))
    for _ in range(_MAX_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        # What is known to carry I or more cannot be exceeded by what carries I at most.
        low, high = (low, middle) if _carries(middle, most) else (middle, high)
    return high


def relaxed_to_approximate(dropped: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Return ``(ε, δ + γ)``, δ at most 1, for γ = `dropped`: relaxed privacy is approximate privacy.

    A mechanism is (γ, ε, δ)-relaxed private if outputs of probability γ at most can be left out such that
    (ε, δ)-privacy holds for the events of the others: with δ = 0, (ε, γ)-probabilistic privacy. A pair that tells the
    lives apart with probability γ, and else has δ at ε, attains it.

    *Source*: ``P(S) ≤ P(S_1) + P(S ∖ S_1)``, S_1 being what is left out; for the definition Desfontaines, "Lowering the
    cost of anonymization" (2020), section 2.2.2.
    """
    gone, rare = probability("dropped", dropped), probability("delta", delta)
    return read_number("epsilon", epsilon), min(1.0, sum_above([gone, rare]))


def _binary_information(apart: Any) -> Any:
    """Return log 2 - h((1 + v)/2) in balls: what a fair bit tells through a symmetric channel of total variation v."""
    # Where the ball of the total variation reaches 1, the bit is certain.
    return apart * apart.atanh() + (-(apart**2)).log1p() / 2 if apart < 1 else flint.arb(2).log()


def _carries(apart: float, information: Any) -> bool:
    with flint.ctx.workprec(_BITS):
        return bool(_binary_information(flint.arb(apart)) >= information)


def _root(ball: Any) -> Any:
    return ball.nonnegative_part().sqrt()


def _line(rho: float, xi: float, order: float) -> Any:
    return flint.arb(xi) + flint.arb(rho) * flint.arb(order)


def _sharp(order: Any, divergence: Any, delta: Any) -> Any:
    return divergence + (-1 / order).log1p() - (delta.log() + order.log()) / (order - 1)


def _sharp_delta(order: Any, divergence: Any, epsilon: Any) -> Any:
    exponent = (order - 1) * (divergence - epsilon + (-1 / order).log1p())
    return exponent.exp() / order


def _above(bound: Callable[[], Any]) -> float:
    """Return a float at or above what `bound` gives in balls."""
    with flint.ctx.workprec(_BITS):
        ball = bound()
        if ball == 0:
            return 0.0
        return ball_above(ball) if ball.is_finite() else math.inf


def _least(objective: Callable[[float], float]) -> float:
    """Return the smallest value found over orders above 1: golden section in the logarithm of α - 1."""
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    coarse = [-24.0 + step for step in range(65)]
    values = [objective(1.0 + math.exp(point)) for point in coarse]
    best = min(range(len(coarse)), key=values.__getitem__)
    low, high = coarse[max(0, best - 1)], coarse[min(len(coarse) - 1, best + 1)]
    smallest = values[best]
    for _ in range(_MAX_STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = objective(1.0 + math.exp(left)), objective(1.0 + math.exp(right))
        smallest = min(smallest, at_left, at_right)
        low, high = (low, right) if at_left <= at_right else (left, high)
        if high - low < 1e-9:
            break
    return smallest


def _ball(name: str, value: object) -> Any:
    return flint.arb(read_number(name, value))


def _shift(xi: object) -> Any:
    """Return ξ, which may be below 0: what mean-concentrated privacy gives is."""
    return flint.arb(read_number("xi", xi, -math.inf))


def _order(alpha: object, name: str = "alpha") -> Any:
    number = positive_real(name, alpha)
    if number <= 1.0:
        raise ArgumentError(f"{name} must be above 1.")
    return flint.arb(number)


def _positive(delta: object) -> Any:
    number = probability("delta", delta)
    if number == 0.0:
        raise ArgumentError("delta must be above 0: at 0 nothing finite follows.")
    return flint.arb(number)
