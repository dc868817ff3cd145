"""When the theorems on histograms hold that rest on how many people may be in each cell, and on no threshold."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.wording import Worded
from pkdp_pipeline.theorems import formal, whom
from pkdp_pipeline.theorems.bound import MAX_NOISE, Applied
from pkdp_pipeline.theorems.counting import Counting
from pkdp_pipeline.theorems.options import Options
from pkdp_pipeline.theorems.reached import ReachedBetween
from pkdp_pipeline.theorems.record import PAPER, Theorem
from pkdp_pipeline.theorems.rounding import float_below


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


def _in_a_table(bound: Options, cells: float) -> Options | Counting:
    """Return what people of a table of `cells` cells reach; of infinitely many: of some table that they fit."""
    least, p = Fraction(bound.p_min), Fraction(bound.p)
    if bound.noise is None:
        others = min(math.floor((1 - least / p) / least), cells - 1)
        elsewhere = least * p / (1 - p) * Fraction(others)
        return replace(bound, p=min(bound.p, float_below((least + elsewhere) / (1 + elsewhere))))
    # The other cells have noise, too, so that nobody sees who is in them: a table of one cell tells more.
    others = 0 if cells == math.inf else cells - 1
    p_max = max(bound.p_min, float_below(p * (1 - Fraction(others) * least)))
    return Counting(theorem=bound.theorem, unknown=bound.unknown, p_min=bound.p_min, p_max=p_max, noise=bound.noise)


def _declared(applied: Applied, cells: int) -> Applied:
    """Return what theorem F says of a table of this many declared cells; one cell is a count in a box."""
    assert isinstance(applied.bound, Options)
    attack = None if applied.attack is None else _in_a_table(applied.bound, cells)
    if cells > 1:
        return replace(applied, attack=attack)
    options = applied.bound
    box = Counting(
        theorem=options.theorem, unknown=options.unknown, p_min=options.p_min, p_max=options.p, noise=options.noise
    )
    return Applied(bound=box, attack=attack and box)


def _noised(mechanism: Histogram, attacker: AttackerModel, left: frozenset[str], *, value: bool) -> Applied | None:
    """With noise and nothing suppressed before it; the exact table's theorem says why not."""
    applied = (_which_option if value else _in_a_cell)(mechanism, attacker, left)
    if mechanism.noise is None or mechanism.k is not None or not isinstance(applied, Applied):
        return None
    assert isinstance(applied.bound, Options)
    noise = mechanism.noise.epsilon
    if noise > MAX_NOISE / 2.0:
        return None
    # Two looks at one number tell no more than one with half of the noise.
    looks = 2 if value else 1
    bound = replace(applied.bound, theorem=f"noisy_{applied.bound.theorem}", noise=looks * noise, looks=looks)
    assert attacker.p_min is not None
    if value:
        # The others' cells have noise, too, so that nobody sees who is no coin: the table has two cells.
        alone = attacker.p_max is None and attacker.p_max_between is None
        attack = ReachedBetween(
            theorem="attack",
            p=float_below(1 - Fraction(attacker.p_min)),
            noise=noise,
            release_threshold=mechanism.release_threshold,
            unknown=applied.bound.unknown,
            cap=attacker.unknown_max,
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
    formal=formal.IN_A_CROWD,
    against=whom.in_cells,
    assumes=(TOLD_ABSENT,),
    rests_on=("p_max", "unknown"),
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
    formal=formal.OPTIONS,
    against=whom.options,
    rests_on=("unknown",),
    reveals_who=True,
    about=(Histogram, "value"),
    rule=_which_option,
)

WITHOUT_A_THRESHOLD = (
    _IN_A_CELL,
    replace(
        _IN_A_CELL,
        key="noisy_cell_counting",
        noised_below=False,
        title="Theorem F on the sum of a cell's count and its noise",
        formal=None,
        against=whom.in_noisy_cells,
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
