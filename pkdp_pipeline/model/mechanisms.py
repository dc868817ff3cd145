"""The publications: the mechanisms, and the registry that names them in JSON, SQL and job files.

Two-sided geometric noise: the declaration, its errors, and the scale at which it is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from fractions import Fraction
from itertools import takewhile
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeGuard, get_args

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.display import Display, check_display, read_display
from pkdp_pipeline.model.wording import (
    RARE,
    check_types,
    choice,
    in_python,
    known_fields,
    positive_real,
    whole_number,
    written,
)


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise: ``P[Z = z] = (1-α)/(1+α) · α^|z|`` with ``α = exp(-epsilon)``.

    Parameters
    ----------
    epsilon : float
        Above 0. The noise alone gives `epsilon`-differential privacy to a number that one person changes by
        at most 1. Certificates are computed at exactly this value; the sampler may add slightly more noise,
        never less.

    Raises
    ------
    ArgumentError
        If `epsilon` is not a finite number above 0.

    Notes
    -----
    Desfontaines et al., Definition 19; `docs/mathematics.md`, section "Two-sided geometric noise".
    """

    epsilon: float = field(metadata={"examples": [0.5]})
    """The smaller, the more noise; one person changes a cell by 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_real("noise epsilon", self.epsilon))


#: Below this epsilon a draw could leave the 64-bit integers; above it that has probability below 1e-4000.
SMALLEST_EPSILON = 1e-15
#: Above this epsilon fewer than one draw in 1e21 differs from 0.
LARGEST_EPSILON = 50.0


def check_noise(noise: GeometricNoise | None, *, published: bool = False) -> None:
    """Raise `ArgumentError` where noise does not fit 64-bit integers, or would change no count that is `published`."""
    if noise is not None and published and noise.epsilon > LARGEST_EPSILON:
        raise ArgumentError(
            f"noise epsilon must be at most {LARGEST_EPSILON:g} to be published, got {noise.epsilon!r}: it "
            "would change no count in a lifetime. Write noise with epsilon = 1, or leave noise out."
        )
    if noise is not None and noise.epsilon < SMALLEST_EPSILON:
        raise ArgumentError(
            f"noise epsilon must be at least {SMALLEST_EPSILON!r} to be drawn, got {noise.epsilon!r}: wider noise does "
            "not fit 64-bit integers."
        )


def mean_absolute(noise: GeometricNoise) -> float:
    """Return ``E|Z| = 2α / (1 - α²)`` with ``α = exp(-epsilon)``."""
    alpha, gap = math.exp(-noise.epsilon), -math.expm1(-noise.epsilon)
    return 2.0 * alpha / (gap * (1.0 + alpha))


def chance_of_at_least(noise: GeometricNoise, least: int) -> float:
    """Return ``P[Z >= least]``."""
    if least > 0:
        return math.exp(-noise.epsilon * least) / (1.0 + math.exp(-noise.epsilon))
    return 1.0 - chance_of_at_least(noise, 1 - least)


def mean_absolute_where_at_least(noise: GeometricNoise, least: int) -> float:
    """Return ``E[|Z|; Z >= least]``, not divided by the chance of it."""
    if least <= 0:
        # By symmetry: all of it but what lies below `least`.
        return mean_absolute(noise) - mean_absolute_where_at_least(noise, 1 - least)
    alpha, gap = math.exp(-noise.epsilon), -math.expm1(-noise.epsilon)
    return math.exp(-noise.epsilon * least) * (least * gap + alpha) / (gap * (1.0 + alpha))


def noise_scale(noise: GeometricNoise, sensitivity: int = 1) -> float:
    """Return the sampler's scale, ``sensitivity / epsilon`` rounded up.

    *Rounding*: ``scale * epsilon >= sensitivity`` exactly, by less than one part in 2^50, for the float and for the
    decimal it is written as, so the noise drawn is never less than declared. Certificates hold for every noise within
    that leeway (`pkdp_pipeline.theorems.worst_case.SAMPLER_LEEWAY`).
    """
    scale = sensitivity / noise.epsilon
    least = min(Fraction(noise.epsilon), Fraction(repr(noise.epsilon)))
    while Fraction(scale) * least < sensitivity:
        scale = math.nextafter(scale, math.inf)
    return scale


_MAX_PEOPLE = 10**10  # more than there are
MAX_CELLS_PER_UNIT = 100


Below = Literal["suppress", "noise", "noise_from_1"]
"""The fate of a count below k; "noise_from_1" leaves out a count of 0, as where cells are found in the data."""


def check_steps(mechanism: Any) -> None:
    """Store the checked thresholds, noise and rule of display of a mechanism."""
    check_types(mechanism)
    noise = mechanism.noise
    if noise is not None and not isinstance(noise, GeometricNoise):
        raise ArgumentError(
            f"noise must be a GeometricNoise or None, not {type(noise).__name__}: write noise=pkdp.GeometricNoise(0.5)."
        )
    if mechanism.release_threshold is not None and noise is None:
        raise ArgumentError(
            "release_threshold acts on the noisy count and needs noise; without noise, use k (published only "
            "when count >= k)."
        )
    # A suppression threshold of 0 would hide nothing.
    for name, least in (("k", 1), ("k_complement", 1), ("release_threshold", 0)):
        if (given := getattr(mechanism, name, None)) is not None:
            threshold = whole_number(name, given, least=least)
            if threshold > (most := _MAX_PEOPLE * sensitivity(mechanism)):
                raise ArgumentError(f"{name} must be at most {most}: there are fewer people; choose a smaller one.")
            object.__setattr__(mechanism, name, threshold)
    if not isinstance(mechanism, Count):
        cells = whole_number("cells_per_unit", mechanism.cells_per_unit, least=1)
        if cells > MAX_CELLS_PER_UNIT:
            raise ArgumentError(
                f"cells_per_unit must be at most {MAX_CELLS_PER_UNIT}, got {cells}: what many cells tell of a person "
                "adds up. Make cells coarser, or count a person in fewer of them."
            )
        object.__setattr__(mechanism, "cells_per_unit", cells)
    if mechanism.display is not None:
        object.__setattr__(mechanism, "display", check_display(mechanism.display))
    if choice("below", mechanism.below, get_args(Below)) != "suppress" and (mechanism.k is None or noise is None):
        raise ArgumentError(
            f"below={mechanism.below!r} publishes counts from k on exactly and smaller ones with noise: give k and "
            "noise as well, or leave below out."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A count, published exactly, thresholded, noised, or both.

    The steps act in this order: count, suppress below `k` (and near the full population, see
    `k_complement`), add `noise`, suppress below `release_threshold`. A suppressed count shows no reason.

    Parameters
    ----------
    k : int, optional
        Published only when ``count >= k``.
    k_complement : int, optional
        Published only when ``n - count >= k_complement``, where `n`, the number of privacy units in the
        population, is public. Counts near 100 % disclose as counts near 0 do.
    noise : GeometricNoise, optional
    release_threshold : int, optional
        Published only when ``noisy count >= release_threshold``; needs noise.
    display : Rounding, Bands, RandomRounding or PerturbationTable, optional
        How every published number is shown; without `k`, `k_complement` and noise its first boundary takes the place
        of `k`.
    below : {"suppress", "noise"}, default "suppress"
        The fate of a count below `k`. "noise": counts from `k` on are published exactly and without noise, smaller
        ones with it, and marked; `release_threshold` acts on the noised ones only. Needs `k` and `noise`.

    Raises
    ------
    ArgumentError
        If a threshold is not a whole number in range, `release_threshold` comes without noise, or `below` without `k`
        and noise or beside `k_complement`.
    """

    k: int | None = None
    k_complement: int | None = None
    """A count: published only when at least this many people are not counted."""
    noise: GeometricNoise | None = None
    release_threshold: int | None = None
    below: Below = field(default="suppress", metadata=RARE)
    display: Display | None = field(default=None, metadata=RARE)

    __repr__ = in_python

    def __post_init__(self) -> None:
        check_steps(self)
        if self.below != "suppress" and self.k_complement is not None:
            raise ArgumentError(
                f"below={self.below!r} beside k_complement: what is near 100 % would still be suppressed. Leave "
                "k_complement out, or below."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts per cell; every privacy unit is in one cell, or in at most `cells_per_unit`, or absent.

    In every cell the steps act in this order: count, suppress below `k`, add `noise`, suppress below
    `release_threshold`. A suppressed cell looks like one that nobody is in; no total of those present is published.

    Parameters
    ----------
    k : int, optional
        A cell is published only when its ``count >= k``.
    noise : GeometricNoise, optional
        Independent noise in every cell. One person changes a cell by 1.
    release_threshold : int, optional
        A cell is published only when its ``noisy count >= release_threshold``; needs noise.
    display : Rounding, Bands, RandomRounding or PerturbationTable, optional
        How every published number is shown; without `k` and noise its first boundary takes the place of
        `k`.
    below : {"suppress", "noise", "noise_from_1"}, default "suppress"
        See `Count`. "noise_from_1": the same where cells are found in the data: one that nobody is in has no row.
    cells_per_unit : int, default 1
        The most cells a person may be in, from 1 to 100. With noise a person with more cells is counted in that many of
        them, which a hash of her own name and cells draws. Without noise nothing is left out: that nobody is in more
        is declared, and checked.
    totals : bool, default False
        Whether the cells are groups of which every attacker is declared to know the exact number of people present
        (`Leakage.totals`); they are published as that, without k and noise.

    Raises
    ------
    ArgumentError
        If a threshold is not a whole number in range, `release_threshold` comes without noise, `below` without `k` and
        noise or beside `cells_per_unit`, or `totals` beside anything else.
    """

    k: int | None = field(default=None, metadata={"examples": [50]})
    """Published only when the count is at least k."""
    noise: GeometricNoise | None = None
    """Noise that is added before anything is published."""
    release_threshold: int | None = field(default=None, metadata={"examples": [80]})
    """With noise: published only when the noisy count is at least this."""
    below: Below = field(default="suppress", metadata=RARE)
    """A count below k is hidden, or with "noise" published with noise and marked in a column exact, while counts from k
    on are exact. Needs k and noise; release_threshold acts on noised ones."""
    cells_per_unit: int = field(default=1, metadata=RARE | {"examples": [3]})
    """The most cells a person may be in. With noise a hash draws that many of hers; without it nobody may be in more,
    and the attacker needs independent_cells."""
    totals: bool = field(default=False, metadata=RARE)
    display: Display | None = field(default=None, metadata=RARE | {"examples": [{"rounding": 5}]})
    """How every published count is shown, after k or in its place: without k and noise, counts before the first
    boundary look alike."""

    __repr__ = in_python

    def __post_init__(self) -> None:
        check_steps(self)
        rules = self.k, self.noise, self.display
        if self.totals and (rules != (None, None, None) or self.cells_per_unit != 1):
            raise ArgumentError(
                "totals are published exactly, as what is known anyway: leave k, noise, display and cells_per_unit out."
            )
        if self.below != "suppress" and self.cells_per_unit > 1:
            raise ArgumentError(
                f"below={self.below!r} with cells_per_unit = {self.cells_per_unit}: exact cells of one person "
                "together tell more than is certified. Leave below out, or count a person in one cell."
            )

    def of_found_cells(self) -> Histogram:
        """Return the mechanism where no domain is declared: with noise and a release threshold k is at least 1.

        Where small counts are noised, one of 0 is left out; of a rule of display, cells before its first boundary are.
        """
        first = None if self.display is None else self.display.first_boundary
        if self.k is None and self.noise is None and first not in (None, 1):
            return replace(self, k=first)
        if self.below == "noise":
            return replace(self, below="noise_from_1")
        implied = self.k is None and self.noise is not None and self.release_threshold is not None
        return replace(self, k=1) if implied else self


MAX_BOUND = 10**8  # so that 64-bit integers hold every sum and its noise


@dataclass(frozen=True, slots=True)
class Sum:
    """Sums of whole numbers with noise, per cell or in all: visits by clinic, items by category.

    In a cell a person adds the sum of her rows there, clamped to `bounds`, or 0 if she is absent. These are summed,
    noise is added, and a noisy sum below `release_threshold` is suppressed.

    Parameters
    ----------
    bounds : tuple of two int
        The least and the most that a person adds to a cell, at most 10^8 in size and not both 0.
    noise : GeometricNoise
        Independent noise in every cell, for what one person changes: ``α = exp(-epsilon / Δ)``, Δ the larger size of
        the `bounds`.
    release_threshold : int, optional
        A cell is published only when its ``noisy sum >= release_threshold``; needed where cells are found in the data.
    cells_per_unit : int, default 1
        See `Histogram`.
    cells_found : bool, default False
        Whether the cells are found in the data, so that one that nobody is in has no row.

    Raises
    ------
    ArgumentError
        If an argument is out of range, noise is too wide to be drawn, or `cells_found` lacks `release_threshold`.
    """

    bounds: tuple[int, int] = field(metadata={"examples": [[0, 5]]})
    """The least and the most that a person adds to a cell, as a public rule: what she adds is clamped to them."""
    noise: GeometricNoise
    """Noise that is added before anything is published, for the most that one person adds."""
    release_threshold: int | None = field(default=None, kw_only=True, metadata={"examples": [80]})
    """Published only when the noisy sum is at least this."""
    cells_per_unit: int = field(default=1, kw_only=True, metadata=RARE | {"examples": [3]})
    """The most cells a person may be in. A hash draws that many of hers."""
    cells_found: bool = field(default=False, kw_only=True, metadata=RARE)

    k: ClassVar[None] = None
    below: ClassVar[Below] = "suppress"
    display: ClassVar[None] = None
    totals: ClassVar[bool] = False

    __repr__ = in_python

    def __post_init__(self) -> None:
        pair = self.bounds if isinstance(self.bounds, tuple | list) and len(self.bounds) == 2 else (0, 0)
        lower, upper = (whole_number("each of bounds", bound, least=-MAX_BOUND) for bound in pair)
        if lower > upper or not 0 < max(-lower, upper) <= MAX_BOUND:
            raise ArgumentError(
                f"bounds must be two whole numbers in order, at most {MAX_BOUND} in size and not both 0: (0, 5), not "
                f"{self.bounds!r}."
            )
        object.__setattr__(self, "bounds", (lower, upper))
        if self.noise is None:
            raise ArgumentError("a sum is published with noise only: write noise=pkdp.GeometricNoise(1.0).")
        check_steps(self)
        check_noise(cell_noise(self))
        if self.cells_found and self.release_threshold is None:
            raise ArgumentError(
                "cells that are found in the data need release_threshold: otherwise a cell's mere appearance has no "
                "noise. Give release_threshold, or declare the public cells."
            )

    def of_found_cells(self) -> Sum:
        """Return the mechanism where no domain is declared."""
        return replace(self, cells_found=True)


def sensitivity(mechanism: Mechanism) -> int:
    """Return by how much one person's being there changes a number of what is published, at most."""
    return max(map(abs, mechanism.bounds)) if isinstance(mechanism, Sum) else 1


def cell_noise(mechanism: Mechanism) -> GeometricNoise | None:
    """Return the noise of one published number, about as it is drawn: for a change by 1."""
    return None if (noise := mechanism.noise) is None else GeometricNoise(noise.epsilon / sensitivity(mechanism))


Counts = Count | Histogram
Mechanism = Counts | Sum
Protects = Literal["presence", "value"]
Kind = Literal["total", "exact count", "noiseless", "pure noise", "noised"]
NOISELESS: tuple[Kind, ...] = ("total", "exact count", "noiseless")
"""Kinds without noise that gives a finite worst case."""

MECHANISMS: Mapping[str, type[Mechanism]] = MappingProxyType({"count": Count, "histogram": Histogram, "sum": Sum})


def mechanism_name(mechanism: Mechanism) -> str:
    """Return the registered name of `mechanism`."""
    for name, kind in MECHANISMS.items():
        if type(mechanism) is kind:
            return name
    known = ", ".join(kind.__name__ for kind in MECHANISMS.values())
    raise ArgumentError(f"mechanism must be one of {known}, not {type(mechanism).__name__}.")


def mechanism_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Return the mechanism as a JSON-ready dictionary with its registered name under ``"mechanism"``."""
    return {"mechanism": mechanism_name(mechanism), **written(mechanism)}


def cells_per_unit(mechanism: Mechanism) -> int:
    """Return how many numbers of what is published one person's being there changes, at most."""
    return 1 if isinstance(mechanism, Count) else mechanism.cells_per_unit


def noised_below(mechanism: Mechanism) -> TypeGuard[Counts]:
    """Return whether counts below k are published with noise, and marked as noised."""
    return mechanism.below != "suppress"


def value_columns(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the columns of a public table beside those that name cells."""
    counts = ("count", "exact") if noised_below(mechanism) else ("count",)
    return ("sum",) if isinstance(mechanism, Sum) else counts


def value_column(columns: Iterable[Any]) -> str:
    """Return the name of the column of numbers: "count", as no by-column is called, or "sum" in a table of sums."""
    return "count" if "count" in columns else "sum"


def key_columns(columns: Iterable[Any]) -> list[Any]:
    """Return the columns of a public table that name cells: those before the one of numbers."""
    names = list(columns)
    return list(takewhile(lambda name: name != value_column(names), names))


def without_display(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism of which what is shown is a function: suppressed below the first boundary (theorem R).

    Beside `k_complement` small counts are shown, and so look otherwise than those that it suppresses.
    """
    if mechanism.display is None:
        return mechanism
    bare = mechanism.k is None and mechanism.noise is None and getattr(mechanism, "k_complement", None) is None
    return replace(mechanism, k=mechanism.display.first_boundary if bare else mechanism.k, display=None)


def within_table(mechanism: Mechanism, cells: int | None) -> Mechanism:
    """Return what the mechanism is in a table of this many cells, None for any: nobody is in more than there are."""
    if isinstance(mechanism, Count) or cells is None or cells >= mechanism.cells_per_unit:
        return mechanism
    return replace(mechanism, cells_per_unit=cells)


def single_cell(mechanism: Mechanism) -> Mechanism:
    """Return what happens to one of the cells in which a person may be."""
    return mechanism if isinstance(mechanism, Count) else replace(mechanism, cells_per_unit=1)


def mechanism_from_dict(content: Mapping[str, Any]) -> Mechanism:
    """Rebuild a mechanism from `mechanism_to_dict`; unknown names and fields are an `ArgumentError`."""
    arguments = dict(content)
    name = arguments.pop("mechanism", None)
    if not isinstance(name, str) or name not in MECHANISMS:
        raise ArgumentError(f"mechanism must be one of {', '.join(sorted(MECHANISMS))}, got {name!r}.")
    kind = MECHANISMS[name]
    known_fields(kind, arguments, f"a {name}")
    if lacking := [field.name for field in fields(kind) if field.default is MISSING and field.name not in arguments]:
        raise ArgumentError(f"a {name} needs {lacking[0]}.")
    noise = arguments.get("noise")
    if isinstance(noise, Mapping):
        if set(noise) != {"epsilon"}:
            raise ArgumentError("noise must have the one field 'epsilon'.")
        arguments["noise"] = GeometricNoise(noise["epsilon"])
    if arguments.get("display") is not None:
        arguments["display"] = read_display(arguments["display"])
    return kind(**arguments)


def kind_of(mechanism: Mechanism, protects: str = "presence") -> Kind:
    """Return how what `mechanism` publishes stands beside other releases about the same people.

    "noised" has a finite worst case; "pure noise" is noised with δ = 0, because the noise acts on the exact count
    (a threshold after it looks at the noisy count only, which costs nothing). The other kinds are noiseless; an
    "exact count" has no threshold either. A "total" is the exact count of everybody who is there, or of every group,
    published as what is known of them: it protects the value alone.
    """
    if isinstance(mechanism, Sum):  # which looks at the noisy sum only, but for the cells that are found
        return "noised" if mechanism.cells_found else "pure noise"
    if isinstance(mechanism, Histogram) and mechanism.totals:
        return "total"
    mechanism = without_display(mechanism)
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    if mechanism.noise is None:
        if not isinstance(mechanism, Count) or mechanism.k is not None or complement is not None:
            return "noiseless"
        return "total" if protects == "value" else "exact count"
    alone = mechanism.k is not None and mechanism.release_threshold is None
    if complement is not None or noised_below(mechanism) or alone:
        return "noiseless"
    return "pure noise" if mechanism.k is None else "noised"
