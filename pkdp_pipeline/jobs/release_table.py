"""``[[release]]``: what is published."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Kind, Mechanism, kind_of
from pkdp_pipeline.releases.options import AttackerTable, Cells, Columns, FileName, Name, Table

__all__ = ["NoiseTable", "OneCell", "ReleaseTable"]

OneCell = Literal["error", "most_frequent", "first", "hash"]
"""Which of its own cells a person with rows in several is counted in."""


class NoiseTable(Table):
    """``noise``: two-sided geometric noise."""

    epsilon: float = Field(description="The smaller, the more noise; one person changes a cell by 1.", examples=[0.5])


class ReleaseTable(Table):
    """``[[release]]``: a histogram when it has ``by``, a count otherwise."""

    name: FileName = Field(
        description="The name of the release's files and tables: letters, digits, _ and -.",
        examples=["aircraft_by_carrier"],
    )
    by: Columns | None = Field(default=None, description="Columns whose values are the cells; without it, a count.")
    where: Name | None = Field(
        default=None,
        description='Which rows count: a boolean column\'s name, or a query such as "distance > 500".',
    )
    domain: Cells | None = Field(
        default=None,
        description="The public cells, in the order in which they are published; without it, only cells that reach k "
        "appear.",
    )
    undeclared: Literal["error", "absent"] = Field(
        default="error", description="What happens to people whose cell is not in the domain."
    )
    one_cell: OneCell | None = Field(default=None, description="Overrides the job's one_cell.")
    order_by: Columns | None = Field(default=None, description="Overrides the job's order_by.")
    k: int | None = Field(default=None, description="Published only when the count is at least k.", examples=[50])
    k_complement: int | None = Field(
        default=None, description="A count: published only when at least so many people are not counted."
    )
    noise: NoiseTable | None = Field(default=None, description="Noise that is added before anything is published.")
    release_threshold: int | None = Field(
        default=None, description="With noise: published only when the noisy count is at least this.", examples=[80]
    )
    protects: Literal["presence", "value"] = Field(
        default="presence",
        description='Whether a person is there, or which cell she is in. With "value", a count of '
        "everybody is an exact total; [[attacker.leakage]] has to declare that attackers know it.",
    )
    attacker: AttackerTable | None = Field(
        default=None, description="Instead of the job's [attacker], as a whole; its keys are not mixed with these."
    )

    @model_validator(mode="after")
    def _is_a_mechanism(self) -> Self:
        if self.by is None:
            for key in ("domain", "one_cell", "order_by"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} is about the cells of a histogram: add by, or remove {key}.")
            if self.protects == "value" and not self._counts_everybody():
                raise ValueError(
                    'protects = "value" is about the cells of a histogram: add by, or remove protects. A count has it '
                    "where it is the exact number of all people: without where, k, k_complement, noise and "
                    "release_threshold."
                )
        elif self.k_complement is not None:
            raise ValueError("k_complement is for counts: remove it, or remove by.")
        self.mechanism()
        return self

    def _counts_everybody(self) -> bool:
        rules = (self.where, self.k, self.k_complement, self.noise, self.release_threshold)
        return all(rule is None for rule in rules)

    @property
    def kind(self) -> Kind:
        """How it stands beside other releases about the same people; see `kind_of`."""
        return kind_of(self.mechanism(), self.protects)

    def mechanism(self) -> Mechanism:
        """Return the mechanism this release runs."""
        noise = None if self.noise is None else GeometricNoise(self.noise.epsilon)
        if self.by is not None:
            return Histogram(k=self.k, noise=noise, release_threshold=self.release_threshold)
        return Count(k=self.k, k_complement=self.k_complement, noise=noise, release_threshold=self.release_threshold)
