"""PublicCounts: how many people the cells may hold, by assumption or from public data, with the source in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.arguments import choice, whole_number

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
