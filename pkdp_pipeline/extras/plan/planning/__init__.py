"""The inverse questions: what to choose so that a target (ε, δ) holds.

Choices: the ways to reach one target, no noise at this k against noise at that ε, with what each of them costs.

PublicCounts: how many people the cells may hold, by assumption or from public data, with the source in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate, certify
from pkdp_pipeline.certificates.sentences import anyone, known_exactly
from pkdp_pipeline.errors import ArgumentError, NoEvidenceError, NotCertifiableError
from pkdp_pipeline.extras.plan.planning.noise_width import (
    SumChoice,
    least_noise,
    noise_after,
    smallest_noise,
    sum_choices,
)
from pkdp_pipeline.extras.plan.planning.searching import Goal, first_whole, guessed_threshold, read_goal
from pkdp_pipeline.extras.plan.planning.thresholds import (
    largest_p_max,
    largest_p_max_between,
    least_k,
    smallest_k,
    smallest_release_threshold,
    smallest_unknown,
)
from pkdp_pipeline.model.attacker import AttackerModel, read_attacker
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import (
    SMALLEST_EPSILON,
    Count,
    Counts,
    GeometricNoise,
    Histogram,
    Protects,
    chance_of_at_least,
    mean_absolute,
    mean_absolute_where_at_least,
    noised_below,
)
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import choice, shortened, whole_number

_MAX_CELLS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCounts:
    """Counts per cell by which a choice is judged: how much of the table it would show.

    They must be known without the data that are to be protected: an assumption, or a data set that is public
    anyway. A `k` or a noise that was chosen by looking at the protected counts voids its certificate.

    Parameters
    ----------
    counts : tuple of int
        One per cell, each at least 0.
    source : str
        Where they are from, in words: ``"the census of 2011"``. It is repeated wherever they are used.
    protected : bool, default False
        Whether they are the protected counts after all, as in a look back at what a table would have shown. It is then
        said wherever they are used.

    Raises
    ------
    ArgumentError
        If there is no cell, a count is not a whole number of at least 0, or the source is empty.
    """

    counts: tuple[int, ...]
    source: str
    protected: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source.strip():
            raise ArgumentError('source must say where the counts are from, for instance "the census of 2011".')
        if not isinstance(self.protected, bool):
            raise ArgumentError("protected must be True or False: whether these are the counts to be protected.")
        object.__setattr__(self, "counts", _whole_numbers(self.counts))

    @classmethod
    def of(cls, counts: Any, *, source: str, protected: bool = False) -> PublicCounts:
        """Return the counts of a mapping (cell to count), a series, a sequence, or a table with a column ``count``.

        Parameters
        ----------
        counts : mapping, series, sequence or data frame
        source : str
        protected : bool, default False

        Raises
        ------
        ArgumentError
            If they are not whole numbers of at least 0. A table with suppressed cells is one of these: write down
            what is assumed about them instead.
        """
        if hasattr(counts, "columns"):
            if "count" not in list(counts.columns):
                raise ArgumentError("a table of counts needs a column named 'count', one row per cell.")
            counts = counts["count"]
        values: Any = counts.values() if isinstance(counts, Mapping) else counts
        return cls(counts=values, source=source, protected=protected)

    @classmethod
    def assumed(cls, *, cells: int, people: int, shape: str = "even") -> PublicCounts:
        """Return counts by assumption: this many people, spread over this many cells.

        Parameters
        ----------
        cells : int
            At least 1.
        people : int
            At least 0.
        shape : {"even", "zipf"}, default "even"
            ``"even"``: all cells alike. ``"zipf"``: the cell of rank r holds a share that goes with 1/r, as sizes of
            towns and frequencies of diagnoses roughly do.
        """
        many, everybody = whole_number("cells", cells, least=1), whole_number("people", people, least=0)
        if many > _MAX_CELLS:
            raise ArgumentError(f"cells must be at most {_MAX_CELLS}.")
        choice("shape", shape, ("even", "zipf"))
        weights = [1.0] * many if shape == "even" else [1.0 / rank for rank in range(1, many + 1)]
        spread = "evenly" if shape == "even" else "as 1/rank"
        source = f"the assumption of {everybody} people, spread {spread} over {many} cells"
        return cls(counts=_shared(everybody, weights), source=source)

    @property
    def people(self) -> int:
        """How many people there are in all cells."""
        return sum(self.counts)

    @property
    def basis(self) -> str:
        """Whence the numbers are, as one sentence."""
        if self.protected:
            return (
                f"If the counts are those of {self.source}; these are the protected counts themselves, so nothing here "
                "may be published, nor k or noise be chosen by it."
            )
        return f"If the counts are those of {self.source}."


def _whole_numbers(counts: object) -> tuple[int, ...]:
    if isinstance(counts, str | bytes) or not isinstance(counts, Iterable):
        raise ArgumentError("counts must be whole numbers, one per cell: a sequence, or a mapping from cell to count.")
    values = [int(count) if isinstance(count, float) and count.is_integer() else count for count in counts]
    if any(isinstance(count, bool) or not isinstance(count, Integral) or count < 0 for count in values):
        raise ArgumentError(
            "every count must be a whole number of at least 0; where a cell is suppressed, write what is assumed."
        )
    if not values:
        raise ArgumentError("counts must name at least one cell.")
    return tuple(map(int, values))


def _shared(people: int, weights: list[float]) -> tuple[int, ...]:
    """Share people out by weight, the largest remainders first."""
    total = sum(weights)
    exact = [people * weight / total for weight in weights]
    shares = [int(share) for share in exact]
    order = sorted(range(len(exact)), key=lambda cell: (shares[cell] - exact[cell], cell))
    for cell in order[: max(0, people - sum(shares))]:
        shares[cell] += 1
    return tuple(shares)


_DIGITS = 4
_UNSAID = "Nothing was said about the counts."

Way = Literal["exact", "k", "noise_below_k", "noise", "noise_against_anyone", "noise_and_k"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The expectations of a table; estimates, and no certified numbers.

    Attributes
    ----------
    mean_absolute_error : float or None
        How far a published cell is from the counted one, by the law of the noise; None where none is published.
    suppressed_cells : float or None
        The expected share of cells that are not published, among those that hold somebody; None where nothing is known
        about the counts.
    suppressed_people : float or None
        The expected share of people in such cells.
    basis : str
        Whence these expectations are, in words.
    """

    mean_absolute_error: float | None
    suppressed_cells: float | None
    suppressed_people: float | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to reach a target, with its certificate and with what it costs.

    Attributes
    ----------
    way : str
        ``"exact"``: exact counts, nothing suppressed. ``"k"``: exact counts from k on. ``"noise_below_k"``: the same,
        with noise on smaller ones, of the ε that is promised. ``"noise"``: noise, helped by what the attacker does not
        know. ``"noise_against_anyone"``: noise that needs no assumption.
        ``"noise_and_k"``: noise and a release threshold, for cells whose names are taken from the data; it needs no
        assumption either.
    mechanism : Count or Histogram
    certificate : ReleaseCertificate
        Of one release; where the target is reached whatever the attacker knows, nothing is declared in it either.
    together : Certificate
        Of all of them; the same as `certificate` for one.
    against_anyone : bool
        Whether the target is reached whatever the attacker knows.
    outcome : Outcome
        Its expected cost.
    """

    way: Way
    mechanism: Counts
    certificate: ReleaseCertificate
    together: Certificate
    against_anyone: bool
    outcome: Outcome

    @property
    def words(self) -> str:
        """The publication, its cost and the attackers it holds against, in one sentence."""
        only = "" if self.against_anyone else " only"
        return f"{self._shown()}{self._lost()}; against {self.whom}{only}."

    @property
    def whom(self) -> str:
        """Against whom it holds, in a few words."""
        if not self.against_anyone:
            return "the declared attacker"
        return anyone(self.given, short=True)

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what whoever attacks knows exactly, whatever noise there is."""
        return known_exactly(self.certificate.leakage)

    def _shown(self) -> str:
        counts, noise, k = (
            "count" if isinstance(self.mechanism, Count) else "counts",
            self.mechanism.noise,
            self.mechanism.k,
        )
        if noise is None:
            return f"exact {counts}" if k is None else f"exact {counts} from k = {k} on"
        error, threshold = self.outcome.mean_absolute_error, self.mechanism.release_threshold
        off = "" if error is None else f", off by {error:.3g} on average"
        reached = "" if threshold is None else f", published from {threshold} on"
        if noised_below(self.mechanism):
            smaller = "a smaller one" if counts == "count" else "smaller ones"
            wide = f"with noise of epsilon {exactly(noise.epsilon)}{reached}"
            return f"exact {counts} from k = {k} on, {smaller} {wide}{off}"
        subject = "the count" if counts == "count" else counts
        return f"{subject} with noise of epsilon {exactly(noise.epsilon)}{off}{reached}"

    def _lost(self) -> str:
        cells, people = self.outcome.suppressed_cells, self.outcome.suppressed_people
        if cells is None or people is None:
            return ", how many cells are suppressed is not known"
        if cells == 0.0 and self.mechanism.release_threshold is None:
            return ", nothing suppressed"
        return f", {_share(cells)} of cells with {_share(people)} of people suppressed"


def choices(
    attacker: AttackerModel | None,
    *,
    epsilon: float,
    delta: float,
    protects: Protects = "presence",
    days: int = 1,
    evidence: Evidence | Iterable[Evidence] | None = None,
    counts: PublicCounts | None = None,
    kind: str = "histogram",
    declared_cells: bool = True,
    cells_per_unit: int = 1,
) -> tuple[Choice, ...]:
    """Return the ways in which a release, or `days` of them together, can reach a target, and what each costs.

    Each is minimal: one person fewer in k or in a release threshold, or noticeably less noise, and the target fails.
    The ε of the noise has as few digits, from four on, as reach the target: what is typed as it is shown is certified.

    Parameters
    ----------
    attacker : AttackerModel or None
        None: nothing is declared; then noise alone is left.
    epsilon, delta, protects, days, evidence
        See `smallest_k`. Without evidence, only noise adds up.
    counts : PublicCounts, optional
        The basis of estimated errors and suppressed shares; for a count, its one number. None: shares that depend on
        counts are None, never guessed.
    kind : {"histogram", "count"}, default "histogram"
    declared_cells : bool, default True
        Whether all cells are declared. If not, their names are taken from the data, and noise needs a release
        threshold.
    cells_per_unit : int, default 1
        The most cells of a histogram that a person may be in.

    Returns
    -------
    tuple of Choice
        Exact counts first, then by expected error.

    Raises
    ------
    NotCertifiableError, NoEvidenceError
        If there is no way; the error is that of the last one tried.
    ArgumentError
        If an argument is malformed.

    Notes
    -----
    *Guarantee*: every choice's `together` reaches the target, as certified. Errors and shares are expectations under
    the exact law of the noise, for the counts that were given.
    """
    model, goal = read_attacker(attacker), read_goal(epsilon, delta, protects, days, evidence)
    choice("kind", kind, ("count", "histogram"))
    if counts is not None and not isinstance(counts, PublicCounts):
        raise ArgumentError(
            "counts must be PublicCounts, which say where they are from: write "
            'pkdp_pipeline.planning.PublicCounts.of({"North": 120}, source="the census of 2011").'
        )
    bare, anyone = bare_mechanism(kind, cells_per_unit), model.against_anyone()
    if isinstance(bare, Histogram) and declared_cells and counts is not None:
        model.check_cells(len(counts.counts), cells_per_unit)
    goal = replace(goal, cells_per_unit=cells_per_unit)
    from_data = isinstance(bare, Histogram) and not declared_cells  # then noise needs a threshold
    model = model.among(None) if from_data else model  # and a release leaves out p_min
    options: list[Choice] = []
    refused: list[NotCertifiableError | NoEvidenceError] = []
    ways: dict[Way, Callable[[], Counts | None]] = {
        "exact": lambda: bare if goal.loss(bare, model) <= goal.delta else None,
        "k": lambda: None if options else replace(bare, k=least_k(model, goal, bare)),
        "noise_below_k": lambda: _noised_below(options, model, goal, from_data=from_data),
        "noise": lambda: None if from_data else _noise(model, goal, bare),
        "noise_against_anyone": lambda: None if from_data else _noise(anyone, goal, bare),
        # A count has no name that could give somebody away.
        "noise_and_k": lambda: noise_after(replace(bare, k=1), goal, anyone) if isinstance(bare, Histogram) else None,
    }
    for way, mechanism_of in ways.items():
        try:
            mechanism = mechanism_of()
        except (NotCertifiableError, NoEvidenceError) as error:
            refused.append(error)
            continue
        if mechanism is not None and mechanism.noise is not None:
            mechanism = _typed(mechanism, model if way in ("noise", "noise_below_k") else anyone, goal)
        if mechanism is not None and all(mechanism != other.mechanism for other in options):
            options.append(_chosen(way, mechanism, model, goal, counts))
    if not options:
        raise refused[-1]
    return tuple(sorted(options, key=_order))


def _noised_below(options: Sequence[Choice], attacker: AttackerModel, goal: Goal, *, from_data: bool) -> Counts | None:
    """Return exact counts from k on, and noise on smaller ones of an ε that adds nothing to what k promises.

    That is for one release: several of them pay for noised cells as noise is paid for. Names of cells that come from
    the data need a release threshold.
    """
    exact = next((choice.mechanism for choice in options if choice.way == "k"), None)
    epsilon = goal.epsilon / goal.cells
    if exact is None or exact.k is None or goal.days > 1 or goal.cells_per_unit > 1 or epsilon < SMALLEST_EPSILON:
        return None
    mechanism = replace(exact, noise=GeometricNoise(epsilon), below="noise")
    if from_data and isinstance(mechanism, Histogram) and mechanism.noise is not None:
        # A tenth of δ is left to one who is alone in a cell, and appears.
        threshold = guessed_threshold(mechanism.noise, 1, replace(goal, delta=0.1 * goal.delta))
        mechanism = replace(mechanism.of_found_cells(), release_threshold=threshold or 1)
    least = first_whole(
        lambda k: goal.loss(replace(mechanism, k=k), attacker), goal.delta, exact.k, 3 * exact.k + 10, exact.k + 1
    )
    return None if least is None else replace(mechanism, k=least)


def _typed(mechanism: Counts, attacker: AttackerModel, goal: Goal) -> Counts:
    """Return the mechanism with the shortest ε of its noise, not above what it has, that reaches the target."""
    assert mechanism.noise is not None
    for digits in range(_DIGITS, 17):
        short = replace(mechanism, noise=GeometricNoise(shortened(mechanism.noise.epsilon, digits)))
        if goal.loss(short, attacker) <= goal.delta:
            return short
    return mechanism


def _order(choice: Choice) -> tuple[float, float]:
    error = choice.outcome.mean_absolute_error
    # As it is shown: noise that is typed with more digits is not smaller for that.
    return math.inf if error is None else float(f"{error:.3g}"), choice.outcome.suppressed_people or 0.0


def _chosen(way: Way, mechanism: Counts, attacker: AttackerModel, goal: Goal, counts: PublicCounts | None) -> Choice:
    certificate = certify(mechanism, attacker, protects=goal.protects)
    anyone = goal.together(certificate).worst_case.delta(goal.epsilon) <= goal.delta
    if anyone:
        # What is said to hold against anyone must not be smaller for what the declared attacker does not know.
        certificate = certify(mechanism, attacker.against_anyone(), protects=goal.protects)
    return Choice(
        way=way,
        mechanism=mechanism,
        certificate=certificate,
        together=goal.together(certificate),
        against_anyone=anyone,
        outcome=expected_outcome(mechanism, counts),
    )


def bare_mechanism(kind: str, cells_per_unit: int = 1) -> Counts:
    """Return exact counts of a kind, before anything is done to them."""
    if kind == "histogram":
        return Histogram(cells_per_unit=cells_per_unit)
    if cells_per_unit != 1:
        raise ArgumentError("cells_per_unit is about the cells of a histogram; a count has none: leave it out.")
    return Count()


def _noise(attacker: AttackerModel, goal: Goal, bare: Counts) -> Counts | None:
    noise, nothing = least_noise(bare, attacker, goal), attacker.against_anyone()
    if noise is None:
        return None
    # Where what the attacker does not know saves no noise, that against anyone is as little.
    anyone = least_noise(bare, nothing, goal) if attacker != nothing else noise
    return replace(bare, noise=noise if anyone is None or anyone.epsilon < noise.epsilon else anyone)


def expected_outcome(mechanism: Counts, counts: PublicCounts | None) -> Outcome:
    """Return what is expected of a table, by the law of its noise.

    Without counts the error is that of the noise, whatever is published; shares are not known, unless nothing is
    suppressed at all.
    """
    noise, k, threshold = mechanism.noise, mechanism.k, mechanism.release_threshold
    error, basis = 0.0 if noise is None else mean_absolute(noise), _UNSAID if counts is None else counts.basis
    complement = mechanism.k_complement if isinstance(mechanism, Count) else None
    below = noised_below(mechanism)
    nothing_hidden = threshold is None and complement is None and (k is None or (below and counts is None))
    if nothing_hidden:
        return Outcome(mean_absolute_error=error, suppressed_cells=0.0, suppressed_people=0.0, basis=basis)
    if counts is None or complement is not None:
        # How many people are not counted is not among the counts.
        return Outcome(mean_absolute_error=error, suppressed_cells=None, suppressed_people=None, basis=basis)

    def shown(count: int) -> tuple[float, float]:
        """Return the chance that a cell with this count is published, and E[|Z|; it is]."""
        if k is not None and (count < k) != below:
            return float(below), 0.0
        if mechanism.below == "noise_from_1" and count == 0:
            return 0.0, 0.0
        if noise is None or threshold is None:
            return 1.0, error
        return chance_of_at_least(noise, threshold - count), mean_absolute_where_at_least(noise, threshold - count)

    cells = Counter(counts.counts)
    chances = {count: shown(count) for count in cells}
    published, missed = (math.fsum(chances[count][part] * often for count, often in cells.items()) for part in (0, 1))
    lost = [((1.0 - chances[count][0]) * often, count) for count, often in cells.items() if count > 0]
    occupied = len(counts.counts) - cells[0]
    return Outcome(
        mean_absolute_error=missed / published if published > 0.0 else None,
        suppressed_cells=math.fsum(share for share, _ in lost) / occupied if occupied else 0.0,
        suppressed_people=math.fsum(share * count for share, count in lost) / counts.people if occupied else 0.0,
        basis=basis,
    )


def _share(value: float) -> str:
    """Return a share in percent, as an estimate is written."""
    if 0.0 < value < 1e-4:
        return "under 0.01 %"
    return f"{100.0 * value:.3g} %"


__all__ = [
    "Choice",
    "PublicCounts",
    "SumChoice",
    "choices",
    "largest_p_max",
    "largest_p_max_between",
    "smallest_k",
    "smallest_noise",
    "smallest_release_threshold",
    "smallest_unknown",
    "sum_choices",
]
