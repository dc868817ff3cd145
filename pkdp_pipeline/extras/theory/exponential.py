"""The exponential mechanism with a coupled utility: a good output, given what leaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from types import MappingProxyType

import flint

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.extras.theory.leakage_pair import LeakagePair, Neighbours, Observation, read_neighbours
from pkdp_pipeline.extras.theory.numbers import (
    BITS,
    ball_of,
    exact_above,
    exact_end,
    read_growth,
    read_law,
    read_number,
)

_BASE_BITS = 64
"""Binary digits after the point of the base of exact weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """An output is drawn with a chance that grows with its utility u(x, y, o) for the database, given what leaked.

    Parameters
    ----------
    outputs : tuple
        All outputs y that there are.
    utility : callable
        Of database, output and leaked value; an int or a `Fraction`. Called only for values that the database can
        leak.
    leakage : mapping
        For each database the law of what leaks: from leaked values to probabilities, each a `Fraction`.
    neighbours : iterable of (database, database)
        Which databases the promise is about; see `one_record_apart`.
    growth : Fraction or int
        e^ε, above 1; ``growth_below(epsilon)`` for a float.

    Raises
    ------
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    The mechanism is printed with weights ``exp(ε u/(2 Δ(o)))``, the sensitivity Δ(o) taken over all neighbours. Here
    only neighbours count that can both leak o, and in place of ``2 Δ(o)`` stands `spread`, R(o), which is at most
    ``2 Δ(o)``: better outputs for the same promise. `ideal_law` has the weights ``growth^(u/R(o))``; `law` has rational
    ones close by, which can be drawn exactly.

    *Guarantee*: (ln growth, 0)-bounded-leakage private with respect to the leakage, exactly: Theorem 36. *Rounding*:
    none in `law`; outward in `ideal_law` and `shortfall`. *Source*: `docs/bounded_leakage.md`, "The exponential
    mechanism".
    """

    outputs: tuple[Hashable, ...]
    utility: Callable[[Hashable, Hashable, Hashable], Fraction | int]
    leakage: Mapping[Hashable, Mapping[Hashable, Fraction]]
    neighbours: Neighbours
    growth: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.outputs, tuple) or not self.outputs or len(set(self.outputs)) < len(self.outputs):
            raise ArgumentError("outputs must be a tuple of different outputs, at least one.")
        if not callable(self.utility):
            raise ArgumentError("utility must be a function of database, output and leaked value.")
        if not isinstance(self.leakage, Mapping) or not self.leakage:
            raise ArgumentError("leakage must be a mapping from databases to the law of what leaks.")
        laws = {database: MappingProxyType(read_law("the leakage", law)) for database, law in self.leakage.items()}
        object.__setattr__(self, "leakage", MappingProxyType(laws))
        object.__setattr__(self, "neighbours", read_neighbours(self.neighbours, laws))
        object.__setattr__(self, "growth", read_growth("growth", self.growth))
        if self.growth == 1:
            raise ArgumentError("growth must be above 1: at ε = 0 no output can be preferred.")

    def sensitivity(self, leaked: Hashable) -> Fraction:
        """Return Δ(o): the most that the utility of an output differs between neighbours that can both leak `leaked`.

        Raises
        ------
        NotCertifiableError
            If no two neighbours share this value.
        """
        return max(max(map(abs, gains)) for gains in self._gains(leaked))

    def spread(self, leaked: Hashable) -> Fraction:
        """Return R(o): how differently one neighbour's change moves the utilities of two outputs, at most 2 Δ(o).

        It is the largest ``max d - min d`` of the differences ``d(y) = u(x, y, o) - u(x′, y, o)``, over neighbours that
        can both leak `leaked`. Where the utility can only rise from x to x′ it is at most Δ(o).

        Raises
        ------
        NotCertifiableError
            If no two neighbours share this value: given it nothing is promised, whatever is drawn.
        """
        return max(max(gains) - min(gains) for gains in self._gains(leaked))

    def law(self, database: Hashable, leaked: Hashable) -> dict[Hashable, Fraction]:
        """Return the law of the output of `database` when `leaked` leaks: rational, and (ln growth, 0) holds exactly.

        Weights are powers of a rational base at or below ``growth^(unit/R(o))``. Where ``R(o)`` is 0 the neighbours
        agree on which outputs are best: one of these is drawn, each with the same chance.
        """
        scores, best = self._scores(database, leaked)
        if self.spread(leaked) == 0:
            winners = sum(score == best for score in scores.values())
            return {output: Fraction(int(score == best), winners) for output, score in scores.items()}
        base, unit = self._base(leaked)
        weights = {output: base ** int((score - best) / unit) for output, score in scores.items()}
        total = sum(weights.values(), Fraction(0))
        return {output: weight / total for output, weight in weights.items()}

    def ideal_law(self, database: Hashable, leaked: Hashable) -> dict[Hashable, tuple[Fraction, Fraction]]:
        """Return the probabilities with weights ``growth^(u/R(o))`` between two rationals each.

        These weights are no rational numbers in general; `law` is what can be drawn exactly.
        """
        spread = self.spread(leaked)
        if spread == 0:
            return {output: (chance, chance) for output, chance in self.law(database, leaked).items()}
        scores, best = self._scores(database, leaked)
        with flint.ctx.workprec(BITS):
            rate = ball_of(self.growth).log() / ball_of(spread)
            weights = {output: (rate * ball_of(score - best)).exp() for output, score in scores.items()}
            total = sum(weights.values(), flint.arb(0))
            chances = {output: weight / total for output, weight in weights.items()}
            return {
                output: (max(Fraction(0), exact_end(ball.lower())), min(Fraction(1), exact_end(ball.upper())))
                for output, ball in chances.items()
            }

    def shortfall(self, database: Hashable, leaked: Hashable, t: float) -> float:
        """Return how far below the best utility an output drawn from `law` falls with probability at most ``e^{-t}``.

        Parameters
        ----------
        database, leaked
            A database and a value that it can leak.
        t : float
            At least 0 and finite.

        Returns
        -------
        float
            ``R(o)/ε (ln(|outputs|/|best outputs|) + t)`` (Theorem 38), raised a little, by less than 1e-15 of it, for
            the rational base.

        Notes
        -----
        *Guarantee*: ``P[u ≤ max u - shortfall] ≤ e^{-t}``. *Rounding*: up.
        """
        further = read_number("t", t)
        scores, best = self._scores(database, leaked)
        if self.spread(leaked) == 0:
            return math.ulp(0.0)  # only best outputs are drawn
        base, unit = self._base(leaked)
        winners = sum(score == best for score in scores.values())
        with flint.ctx.workprec(BITS):
            needed = ball_of(Fraction(len(self.outputs), winners)).log() + flint.arb(further)
            return exact_above(ball_of(unit) * needed / ball_of(base).log())

    def pair(self) -> LeakagePair:
        """Return the mechanism with its leakage as a `LeakagePair`, drawn from `law`."""
        laws: dict[Hashable, dict[Observation, Fraction]] = {
            database: {
                (output, leaked): chance * part
                for leaked, chance in law.items()
                for output, part in self.law(database, leaked).items()
            }
            for database, law in self.leakage.items()
        }
        return LeakagePair(laws=laws, neighbours=self.neighbours)

    def _scores(self, database: Hashable, leaked: Hashable) -> tuple[dict[Hashable, Fraction], Fraction]:
        """Return the utility of each output, and the best."""
        if leaked not in self.leakage.get(database, {}):
            raise ArgumentError("database must be one that can leak this value.")
        scores = {output: self.utility(database, output, leaked) for output in self.outputs}
        if any(isinstance(score, bool) or not isinstance(score, Rational) for score in scores.values()):
            raise ArgumentError("utility must return an int or a Fraction.")
        exact = {output: Fraction(score) for output, score in scores.items()}
        return exact, max(exact.values())

    def _gains(self, leaked: Hashable) -> list[list[Fraction]]:
        """Return, for neighbours that share `leaked`, by how much the utility of each output differs."""
        can = {database for database, law in self.leakage.items() if leaked in law}
        scores = {database: self._scores(database, leaked)[0] for database in can}
        shared = [
            (scores[first], scores[second]) for first, second in self.neighbours if first in can and second in can
        ]
        gains = [[first[output] - second[output] for output in self.outputs] for first, second in shared]
        if not gains:
            raise NotCertifiableError(
                "no two neighbours share this leaked value: given it nothing is promised, whatever is drawn. Let less "
                "leak, or add noise to what leaks."
            )
        return gains

    def _base(self, leaked: Hashable) -> tuple[Fraction, Fraction]:
        """Return a rational base and the unit of utility; R(o) is a multiple of it: ``base^(R(o)/unit) ≤ growth``."""
        scored = [self._scores(database, leaked) for database, law in self.leakage.items() if leaked in law]
        unit = _unit(score - best for scores, best in scored for score in scores.values())
        steps = int(self.spread(leaked) / unit)
        # The base is above 1 by about ln(growth)/steps, of which this many binary digits are kept.
        bits = _BASE_BITS + steps.bit_length() + math.ceil(1 / (self.growth - 1)).bit_length()
        with flint.ctx.workprec(BITS + bits):
            exponent = (ball_of(self.growth).log() / steps).exp()
            base = Fraction(math.floor(exact_end(exponent.lower()) * 2**bits), 2**bits)
        # The ball's lower end makes this true; it is checked because the promise rests on it.
        if base**steps > self.growth:  # pragma: no cover
            raise AssertionError("the base of the weights is too large")
        return base, unit


def _unit(numbers: Iterable[Fraction]) -> Fraction:
    """Return the largest number of which all `numbers` are multiples."""
    listed = list(numbers)
    below = math.lcm(*(number.denominator for number in listed))
    return Fraction(math.gcd(*(int(number * below) for number in listed)), below)
