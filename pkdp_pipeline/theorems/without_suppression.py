"""Theorems that need nothing suppressed: theorem F, exact counts of options, with the bound of both; and theorem I.

In a histogram without a threshold a share of everybody who is unknown are coins between two of a person's lives.
Theorem I rests on counts that are exact from k on and noised below; see `noised_below`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram, Mechanism, noised_below
from pkdp_pipeline.model.wording import Worded
from pkdp_pipeline.theorems import words
from pkdp_pipeline.theorems.bound import MAX_NOISE, PAPER, Applied, Bound, Largest, Theorem
from pkdp_pipeline.theorems.counting import MAX_HIDDEN, Counting, Passed, Uncertain
from pkdp_pipeline.theorems.hull import TwoCells, told_apart
from pkdp_pipeline.theorems.noised_below import NoisedBelow
from pkdp_pipeline.theorems.noisy_between import MAX_LOOKED_AT, brackets_of
from pkdp_pipeline.theorems.numerics import UNIT, Array, Whole, binomial_below, binomial_weights, float_below
from pkdp_pipeline.theorems.reached import ReachedBesideOthers, ReachedBetween
from pkdp_pipeline.theorems.thresholding import Threshold
from pkdp_pipeline.theorems.tilted_inversion import TwoCoinTails


def _which_option(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    p_min, unknown = attacker.p_min, attacker.unknown
    obstacle = "p_min = 0 or unknown = 0 lets the attacker know what everybody else chose"
    if p_min is None or unknown is None:
        obstacle = (
            "exact counts of several options hide which one a person chose when p_min > 0 (each unknown person "
            "chooses each option with at least this probability) and unknown are declared"
        )
    elif p_min > 0.5:
        raise ArgumentError(
            f"p_min = {p_min!r} cannot hold for a histogram: every one of at least two options would be chosen with "
            "more than probability 1/2. For histograms p_min bounds each option's probability from below."
        )
    if not p_min or not unknown:
        return None if mechanism.k is not None else obstacle
    bound = Options(theorem="options", unknown=unknown, p_min=p_min)
    free = attacker.p_max is None and attacker.p_max_between is None
    return Applied(bound=bound, attack=bound if mechanism.k is None and mechanism.noise is None and free else None)


def _in_a_cell(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str]) -> Applied | str | None:
    """Theorem F."""
    p_min, p, unknown = attacker.p_min, attacker.p_max, attacker.unknown
    if not p_min or p is None or p == 1.0 or not unknown:
        return None if mechanism.k is not None else _SHOWS_WHO_IS_THERE
    bound = Options(theorem="cell_counting", unknown=unknown, p_min=p_min, p=p)
    alone = mechanism.k is None and mechanism.noise is None
    return Applied(bound=bound, attack=_in_a_table(bound, math.inf) if alone else None)


_WHO_IS_THERE = (
    "a histogram without k publishes how many people are present, and gives away whether one more person is there "
    "unless enough others might be in her cell, or absent: that takes p_min > 0 (each unknown person is in each cell "
    "with at least this probability), p_max < 1 (how sure the attacker can be, at most, of a cell when told that a "
    "person is either in it or absent) and unknown"
)
_ASKS = "protects='value' asks whether it hides which cell a person is in"
_SHOWS_WHO_IS_THERE = Worded(lambda say: f"{_WHO_IS_THERE}; {_ASKS}", _WHO_IS_THERE)


def _in_a_table(bound: Options, cells: float) -> Bound:
    """Return what people of a table of `cells` cells reach; of infinitely many: of some table that they fit."""
    least, p = Fraction(bound.p_min), Fraction(bound.p)
    others = math.floor((1 + Fraction(UNIT) - least / p) / least) if cells == math.inf else int(cells) - 1
    if bound.noise is None:
        elsewhere = least * p / (1 - p) * Fraction(others)
        return replace(bound, p=min(bound.p, float_below((least + elsewhere) / (1 + elsewhere))))
    # The other cells have noise, too, which hides who is in them: a table of one cell tells more, or their sum does.
    alone = 0 if cells == math.inf else int(cells) - 1
    people = _people(bound)
    box = Counting(**people, p_max=max(bound.p_min, float_below(p * (1 - Fraction(alone) * least))))
    return Largest(theorem=bound.theorem, parts=(box, ReachedBesideOthers(**people, p=bound.p, others=others)))


def _people(bound: Options) -> dict[str, Any]:
    return {"theorem": bound.theorem, "unknown": bound.unknown, "p_min": bound.p_min, "noise": bound.noise}


def _declared(applied: Applied, cells: int) -> Applied:
    """Return what is said of a table of this many declared cells; one cell is a count in a box."""
    options, attack = applied.bound, applied.attack
    if isinstance(options, Passed):
        alone = _declared(Applied(bound=options.base, attack=None), cells).bound
        assert isinstance(alone, Uncertain)
        return replace(applied, bound=replace(options, base=alone))
    assert isinstance(options, Options)
    if cells > 1:
        fits = _fits(options, cells + 1 / Fraction(options.p) - 1)
        return replace(applied, attack=_in_a_table(options, cells) if attack and fits else None)
    box = Counting(**_people(options), p_max=options.p)
    return Applied(bound=box, attack=attack and box)


def _declared_options(applied: Applied, cells: int) -> Applied:
    """Return the same of several options. Beside noise no third cell of two shows anything, and of many their sum."""
    options, attack = applied.bound, applied.attack
    if attack is None:
        return applied
    assert isinstance(options, Options)
    if isinstance(attack, Largest):
        beside: Any = attack.parts[1]
        attack = attack.parts[0] if cells < 3 else replace(beside, others=cells - 2)
    alone = cells > 2 and isinstance(attack, ReachedBetween)
    return replace(applied, attack=None if alone or not _fits(options, Fraction(cells)) else attack)


def _fits(options: Options, cells: Fraction) -> bool:
    """Return whether anybody is in so many cells with `p_min` each; ten of 0.1 fit, as floats nearly do."""
    return Fraction(options.p_min) * cells <= 1 + Fraction(UNIT)


def _noised(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str], *, value: bool) -> Applied | None:
    """With noise, and a k before it that enough people pass, or none; the exact table's theorem says why not."""
    applied = (_which_option if value else _in_a_cell)(mechanism, attacker, left)
    if mechanism.noise is None or not isinstance(applied, Applied):
        return None
    assert isinstance(applied.bound, Options)
    noise = mechanism.noise.epsilon
    if noise > MAX_NOISE / 2.0:
        return None
    # Two looks at one number tell no more than one with half of the noise.
    looks = 2 if value else 1
    bound = replace(applied.bound, theorem=f"noisy_{applied.bound.theorem}", noise=looks * noise, looks=looks)
    assert attacker.p_min is not None
    if mechanism.k is not None:
        hidden = looks * binomial_below(applied.bound.unknown, attacker.p_min, mechanism.k) * (1.0 + 1e-12)
        passed = Passed(theorem=bound.theorem, base=bound, hidden=hidden, cells=looks)
        return Applied(bound=passed, attack=None) if hidden <= MAX_HIDDEN else None
    if value:
        # The others' cells have noise, too, so that nobody sees exactly who is no coin: the table has two cells.
        alone = attacker.p_max is None and attacker.p_max_between is None
        people: dict[str, Any] = {"theorem": "attack", "noise": noise, "unknown": applied.bound.unknown}
        release, p = mechanism.release_threshold, float_below(1 - Fraction(attacker.p_min))
        attack: Bound = ReachedBetween(p=p, release_threshold=release, cap=attacker.unknown_max, **people)
        if release is None and attacker.p_min <= 1.0 / 3.0:
            # Or three, of which the third shows how many are in neither, within its noise.
            attack = Largest(
                theorem="attack", parts=(attack, ReachedBesideOthers(p_min=attacker.p_min, others=1, **people))
            )
        return Applied(bound=bound, attack=attack if alone else None)
    return Applied(bound=bound, attack=_in_a_table(bound, math.inf) if mechanism.release_threshold is None else None)


TOLD_ABSENT = (
    "p_max is a conditional probability about the published cells, after any binning: every "
    "person's absence is likely enough that being told 'this cell or absent' does not settle it."
)

_IN_A_CELL = Theorem(
    key="cell_counting",
    noised_below=True,
    title="Theorem F: an exact histogram hides whether a person is in it where enough others may be",
    citation="docs/mathematics.md, section 5, theorem F",
    formal=words.IN_A_CROWD,
    against=words.in_cells,
    assumes=(TOLD_ABSENT,),
    rests_on=("p_max", "unknown"),
    needs=("p_min", "unknown"),
    told_absent=True,
    about=(Histogram, "presence"),
    rule=_in_a_cell,
    declared=_declared,
)
_OPTIONS = Theorem(
    key="options",
    noised_below=True,
    title="Exact counts of several options hide which one a person chose",
    citation=f"docs/mathematics.md, section 5; Corollary 1 of {PAPER}",
    formal=words.OPTIONS,
    against=words.options,
    rests_on=("unknown",),
    needs=("p_min", "unknown"),
    reveals_who=True,
    about=(Histogram, "value"),
    rule=_which_option,
    declared=_declared_options,
)

WITHOUT_A_THRESHOLD = (
    _IN_A_CELL,
    replace(
        _IN_A_CELL,
        key="noisy_cell_counting",
        noised_below=False,
        title="Theorem F on the sum of a cell's count and its noise",
        formal=None,
        against=words.in_noisy_cells,
        rule=partial(_noised, value=False),
    ),
    _OPTIONS,
    replace(
        _OPTIONS,
        key="noisy_options",
        noised_below=False,
        title="Counts of several options with noise: two noisy looks at one number",
        formal=None,
        citation="docs/mathematics.md, section 6, two looks",
        rule=partial(_noised, value=True),
    ),
)
"""Their records, in the order in which they are tried."""


_SLACK = 0.004
"""The average is divided until it is known this closely, relatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Uncertain):
    """Privacy profile of counts per cell, with or without noise, against learning in which of two lives a person is.

    Parameters
    ----------
    theorem, unknown, noise
        See `Uncertain`.
    p_min : float
        Every unknown person is in each cell with at least this probability; above 0, at most `p`.
    p : float, default 1/2
        The chance of a coin: 1/2 between two cells; between a cell and absence, `p_max`.
    looks : int, default 1
        How many noised cells show the coins; with two, `noise` is that of the one look that stands for both.

    Notes
    -----
    Between two lives every unknown person is, with weight exactly ``p_min / p``, a coin that is in the first of them
    with chance `p`; everything else is revealed. Hence ``δ(ε) ≤ E[δ_N(ε)]`` in either order, where N is
    ``Bin(unknown, p_min / p)`` and ``δ_N`` is the profile of counting N such coins, which does not increase with N.

    With noise both cells are two looks at one number: for few coins their law is computed, for many one look with twice
    the ε0 stands for both.

    *Guarantee*: the certified side is never below the divergence of any declared attacker. Between two cells it is
    attained where a third one fits (`p_min` ≤ 1/3) and at `p_min` = 1/2; in between the attained side is that of fair
    coins only. Between a cell and absence it is attained by people who are in the cell with `p_min`, absent with
    ``p_min (1 - p) / p``, and elsewhere with the rest. With noise nothing of this is: it hides how many people are
    coins. *Rounding*: outward, within 1 % where it is attained.
    *Source*: `docs/mathematics.md`, "Several options" and theorem F; Corollary 1 of Desfontaines et al.
    """

    p_min: float
    p: float = 0.5
    looks: int = 1

    @property
    def slack(self) -> float:
        """Return how far above the best attacker found the search may stop."""
        return _SLACK

    @property
    def weight(self) -> float:
        """Return the share of people who are coins, rounded down: fewer only help the attacker."""
        return min(1.0, float_below(Fraction(self.p_min) / Fraction(self.p)))

    def _search(self, epsilons: Array) -> tuple[Array, Array]:
        if self.unknown * self.weight < 1e-12:
            # Almost surely nobody is a coin.
            attained = 1.0 - 1e-11 if self.noise is None else 0.0
            return np.full(len(epsilons), attained), np.ones(len(epsilons))
        # Coins of 1/2 are their own mirror image.
        ways = (False,) if self.p == 0.5 else (False, True)
        sides = np.array([[self._average(float(epsilon), way) for epsilon in epsilons] for way in ways])
        lower, upper = sides.reshape(len(ways), len(epsilons), 2).max(axis=0).T
        if self.p == 0.5 and 1.0 / 3.0 < self.p_min < 0.5:
            # Only two options fit; the attacker for whom both are equally likely is one of the declared ones.
            lower = np.array([self._coins(np.array([self.unknown]), float(epsilon))[0][0] for epsilon in epsilons])
        return lower, np.minimum(upper, 1.0)

    def _average(self, epsilon: float, mirrored: bool) -> tuple[float, float]:
        """Return the bracket of the average in one order of the two lives."""
        weight = self.weight
        if weight == 1.0 or self.unknown == 0:
            low, high = self._coins(np.array([self.unknown]), epsilon, mirrored)
            return float(low[0]), float(high[0])
        mean = self.unknown * weight
        spread = math.sqrt(mean * (1.0 - weight)) + 1.0
        # δ at the mean is a fair guess of the expectation's size (Jensen: roughly a lower bound).
        guess, _ = self._coins(np.array([math.ceil(mean)]), epsilon, mirrored)
        reach = 20.0 - math.log(max(float(guess[0]), 1e-280))
        first = max(0, math.floor(mean - math.sqrt(2.0 * reach) * spread - reach))
        last = min(self.unknown, math.ceil(mean + math.sqrt(2.0 * reach) * spread + reach))
        weights = binomial_weights(self.unknown, weight, first, last)
        width = (20.0 * len(weights) + 100.0) * UNIT
        # Chernoff bounds on the chances of fewer and of more coins than are looked at.
        before = binomial_below(self.unknown, weight, first)
        after = binomial_below(self.unknown, 1.0 - weight, self.unknown - last)
        edges = np.unique(np.linspace(first, last + 1, 65).astype(np.int64))
        low, high = self._coins(edges, epsilon, mirrored)
        # Upper and lower sums, refined where they differ most. δ_N does not increase with N: a block's mass times δ at
        # its first N is at or above its part, and times δ at the next block's first N at or below it.
        while True:
            mass = np.add.reduceat(weights, edges[:-1] - first)
            above = mass * high[:-1]
            below = mass * low[1:]
            total = float(above.sum())
            gaps = above - below
            wide = (gaps > _SLACK * total / len(gaps)) & (np.diff(edges) > 1)
            if float(gaps.sum()) <= _SLACK * total or not wide.any():
                break
            middles = (edges[:-1][wide] + edges[1:][wide]) // 2
            new_low, new_high = self._coins(middles, epsilon, mirrored)
            edges = np.append(edges, middles)
            order = np.argsort(edges)
            edges, low, high = edges[order], np.append(low, new_low)[order], np.append(high, new_high)[order]
        upper = total * (1.0 + width) + before + after * float(high[-1])
        # Inside a block of single N the lower side is that N's own.
        single = np.diff(edges) == 1
        lower = float(np.where(single, mass * low[:-1], below).sum())
        # Rounding the weight down makes few coins likelier, by no more than this.
        drift = 4.0 * UNIT * (self.unknown - first) * weight / (1.0 - weight)
        return max(0.0, lower * (1.0 - 4.0 * width - drift)), math.nextafter(upper, math.inf)

    def _coins(self, counts: Whole, epsilon: float, mirrored: bool = False) -> tuple[Array, Array]:
        """Return brackets of one order of the profile of counting N coins, for every N in `counts`."""
        if self.looks == 2 and self.noise is not None and counts.max() <= MAX_LOOKED_AT:
            return brackets_of(counts, 0.5 * self.noise, epsilon)
        p, complement = (1.0 - self.p, self.p) if mirrored else (self.p, 1.0 - self.p)
        tails = TwoCoinTails(low=p, low_complement=complement, high=p, high_complement=complement, noise=self.noise)
        return tails.right_tails(counts.astype(np.float64), np.zeros(len(counts)), np.full(len(counts), epsilon))


def exact_from_k(theorem: str, mechanism: Mechanism, looks: int = 1, **people: Any) -> NoisedBelow | str:
    """Return theorem I's bound for a mechanism and the people of a threshold's, or why the noise is none."""
    noise = mechanism.noise
    assert noise is not None
    if noise.epsilon * looks > MAX_NOISE:
        return f"noise epsilon above {MAX_NOISE / looks:g} changes nothing: leave noise and below out"
    return NoisedBelow(
        theorem=theorem,
        **people,
        noise=noise.epsilon,
        release_threshold=mechanism.release_threshold,
        from_one=mechanism.below == "noise_from_1",
        looks=looks,
    )


def _noised_below(
    suppressed: Theorem, key: str, looks: int, mechanism: Mechanism, attacker: AttackerModel, left: frozenset[str]
) -> Applied | str | None:
    """Take the place of the theorem on the same threshold without noise, which says when that holds.

    For the value through absence both cells' pairs are taken in opposite orders; each known person is taken for
    controlled, and for one in both.
    """
    if not noised_below(mechanism) or suppressed.rule is None:
        return None
    both = suppressed.hides_presence_too
    outcome = suppressed.rule(mechanism, replace(attacker, influence="active") if both else attacker, left)
    if not isinstance(outcome, Applied):
        return outcome
    assert isinstance(outcome.bound, Threshold)
    same = {name: getattr(outcome.bound, name) for name in ("k", "p", "cap", "known", "active")}
    bound = exact_from_k(key, mechanism, looks, **same)
    if isinstance(bound, str):
        return bound
    if not both:
        return Applied(bound=bound, attack=bound if looks == 1 and not attacker.p_min else None)
    alone = attacker.known == 0 and attacker.p_max_between is None and not attacker.p_min
    # A count of 0 has no row, as one that release_threshold hides, but for certain.
    release = bound.release_threshold if bound.from_one else None
    added = 0.0 if release is None else told_apart(bound.noise, release - 1)
    cells = TwoCells(theorem=key, presence=bound, added=added)
    return Applied(bound=cells, attack=cells if alone else None)


def noised_below_records(count: Theorem, presence: Theorem, value: Theorem, between: Theorem) -> tuple[Theorem, ...]:
    """Return theorem I's records, given those of the same thresholds without noise."""
    exact = "exact from k on, noised below"
    rows = (
        (count, "noised_below", f"Theorem I: a count, {exact}", 1),
        (presence, "noised_below_presence", f"Theorem I for a cell: a histogram, {exact}", 1),
        (between, "noised_below_between", f"Theorem I, value: {exact}, nothing assumed about absence", 2),
        (value, "noised_below_value", f"Theorem I, value: {exact}, where absence is possible", 1),
    )
    return tuple(
        replace(
            suppressed,
            key=key,
            title=title,
            citation="docs/mathematics.md, section 6, theorem I",
            formal=words.NOISED_BELOW if suppressed in (count, presence) else None,
            averages=suppressed.averages and suppressed is not value,
            noised_below=True,
            needs=("noise",),
            rule=partial(_noised_below, suppressed, key, looks),
        )
        for suppressed, key, title, looks in rows
    )
