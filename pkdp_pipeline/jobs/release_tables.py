"""The table ``[[release]]`` of a job file: by-columns, domain, and the steps of its mechanism.

With ``margins`` a job publishes exact totals by some of a table's columns, which every attacker then knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    model_serializer,
    model_validator,
)

from pkdp_pipeline.jobs.tables import local, placed
from pkdp_pipeline.model.attacker import Leakage
from pkdp_pipeline.model.columns import Bins, Calendar, OneCell, with_groups
from pkdp_pipeline.model.display import Display, Mode, PerturbationTable, read_display
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism, Protects, Sum
from pkdp_pipeline.model.question import Undeclared
from pkdp_pipeline.releases.options import (
    AttackerTable,
    Cells,
    Columns,
    FileName,
    Name,
    Table,
    TableOf,
    keys_of,
    one_or_list,
)
from pkdp_pipeline.schemas import field_texts


def _rows_of_file(value: Any, info: ValidationInfo) -> Any:
    """Return the rows of the CSV file that is named, as they would be written; anything else as it is."""
    if not isinstance(value, str):
        return value
    return PerturbationTable.read_csv(placed(str(local(value)), info)).to_dict()["perturbation"]


class DisplayTable(TableOf[Any]):
    """``display``: how every published count is shown; one rule."""

    rounding: int | None = Field(default=None, description="As multiples of this number.", examples=[5])
    mode: Mode | None = Field(
        default=None, description="Of rounding: to the nearest multiple (default), down, or the middle between two."
    )
    bands: list[int] | None = Field(
        default=None,
        description='In bands, by the first count of each: "0–9", "10–19" and so on. A table holds that count.',
        examples=[[0, 10, 20, 50]],
    )
    random_rounding: int | None = Field(
        default=None, description="As a neighbouring multiple of this number, drawn without bias.", examples=[3]
    )
    perturbation: Annotated[
        list[list[int | float]] | None,
        BeforeValidator(_rows_of_file, json_schema_input_type=list[list[int | float]] | str | None),
    ] = Field(
        default=None,
        description="Drawn from a public table: rows of count, shown number and probability, or the path of a CSV file "
        "with these columns.",
        examples=["table.csv"],
    )

    @staticmethod
    def _value_of(**given: Any) -> Display:
        return read_display({name: value for name, value in given.items() if value is not None})


_STEPS: dict[str, Any] = {
    **keys_of(Count, {"noise": None, "display": None}),
    **keys_of(
        Histogram,
        {
            "noise": TableOf[GeometricNoise] | None,
            "below": Literal["suppress", "noise"],
            "cells_per_unit": int | None,
            "display": DisplayTable | None,
            "totals": None,
        },
    ),
    "bounds": (
        Annotated[tuple[int, int], Field(strict=False)] | None,
        Field(default=None, description=field_texts(Sum)["bounds"], examples=[[0, 5]]),
    ),
}
"""The steps of a mechanism, as keys; those of a count, of a histogram and of a sum together."""

if TYPE_CHECKING:

    class _StepsTable(Table):
        display: DisplayTable | None
        bounds: tuple[int, int] | None

else:
    _StepsTable = create_model("_StepsTable", __base__=Table, **_STEPS)


def _checked_edges(edges: Any) -> Any:
    Bins("column", edges)
    return edges if isinstance(edges, str) else tuple(edges)


_EDGES = TypeAdapter(Annotated[tuple[int | float, ...], Field(min_length=1)] | Calendar).json_schema()


class BinsTable(Table):
    """An entry of ``by``: a column whose values are counted in groups."""

    column: Name = Field(description="The column.")
    bins: Annotated[Any, AfterValidator(_checked_edges), WithJsonSchema(_EDGES)] = Field(
        description='Public edges, as in [0, 18, 65]; or "week", "month", "quarter" or "year" of a date.'
    )

    @cached_property
    def value(self) -> Bins:
        """The by-column and its groups."""
        return Bins(self.column, self.bins)


def _one_or_several(value: object) -> object:
    entries = value if isinstance(value, list | tuple) else [value]
    names = [entry.get("column") if isinstance(entry, dict) else getattr(entry, "column", entry) for entry in entries]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("must be a column name or a list of column names, or of { column = …, bins = … }.")
    if len(set(names)) < len(names):
        raise ValueError("names a column twice.")
    return tuple(entries)


class ReleaseTable(_StepsTable):
    """``[[release]]``: a histogram when it has ``by``, a count otherwise; with ``bounds``, sums."""

    name: FileName = Field(
        description="The name of the release's files and tables: letters, digits, _ and -.",
        examples=["aircraft_by_carrier"],
    )
    grouped_by: (
        Annotated[
            tuple[
                Annotated[
                    Annotated[Name, Tag("")] | Annotated[BinsTable, Tag(" ")],
                    Discriminator(lambda entry: "" if isinstance(entry, str) else " "),
                ],
                ...,
            ],
            BeforeValidator(_one_or_several),
            Field(strict=False, min_length=1, json_schema_extra=one_or_list),
        ]
        | None
    ) = Field(
        default=None,
        alias="by",
        description='Columns whose values are the cells, also in groups, as { column = "age", bins = [0, 18, 65] }; '
        "without it, a count.",
    )
    sum_of: Name | None = Field(
        default=None,
        alias="sum",
        description="The column of whole numbers that is summed, with noise: a person adds what her rows add up to, "
        "clamped to bounds.",
        examples=["visits"],
    )
    rows: Literal["count"] | None = Field(
        default=None, description="Instead of sum: a person adds the number of her rows, clamped to bounds."
    )
    where: Name | None = Field(
        default=None,
        description='Which rows count: a boolean column\'s name, or a query such as "distance > 500".',
    )
    domain: Cells | None = Field(
        default=None,
        description="The public cells, in the order in which they are published; without it, only cells that reach k "
        "appear.",
    )
    undeclared: Undeclared = Field(
        default="error", description="People whose cell is not in the domain: the job stops, or they count as absent."
    )
    margins: Columns | None = Field(
        default=None,
        description="Columns in by by which exact totals are published as a release of their own, NAME_totals, and "
        'which every attacker of the job then knows. Needs protects = "value", k and domain.',
        examples=["region"],
    )
    one_cell: OneCell | None = Field(default=None, description="Overrides the job's one_cell.")
    order_by: Columns | None = Field(default=None, description="Overrides the job's order_by.")
    protects: Protects = Field(
        default="presence",
        description='Whether a person is there, or which cell she is in. With "value", a count of '
        "everybody is an exact total; [[attacker.leakage]] has to declare that attackers know it.",
    )
    attacker: AttackerTable | None = Field(
        default=None, description="Instead of the job's [attacker], as a whole; its keys are not mixed with these."
    )

    @model_validator(mode="after")
    def _is_a_mechanism(self) -> Self:
        if self.bounds or self.sum_of or self.rows:
            self._check_sum()
        if self.by is None:
            for key in ("domain", "margins", "one_cell", "order_by", "cells_per_unit"):
                if getattr(self, key) is not None:
                    raise ValueError(f"{key} is about the cells of a histogram: add by, or remove {key}.")
            if not self.bounds and self.protects == "value" and (self.where is not None or self.mechanism != Count()):
                raise ValueError(
                    'protects = "value" is about the cells of a histogram: add by, or remove protects. A count has it '
                    "where it is the exact number of all people: without where, k, k_complement, noise and "
                    "release_threshold."
                )
        elif "k_complement" in self._steps:
            raise ValueError("k_complement is for counts: remove it, or remove by.")
        self.mechanism  # noqa: B018 - its rules are checked when it is made
        return self

    @model_validator(mode="after")
    def _has_margins(self) -> Self:
        """Refuse margins beside which a table promises nothing, or that tell nothing more of its hidden cells."""
        if self.margins is None or self.by is None:
            return self
        follows = "what totals tell of hidden cells follows only"
        if not set(self.margins) < set(self.by):
            raise ValueError("margins must name some of the columns in by, not all: the others are hidden.")
        if self.protects != "value":
            raise ValueError(
                'margins are exact numbers of people present, and so tell what protects = "presence" hides; no number '
                'holds beside them. Write protects = "value", with p_max_between in the attacker, or remove margins: '
                "intervals of the totals follow from the table itself, at no cost."
            )
        if self.mechanism != Histogram(k=self.mechanism.k) or self.domain is None:
            raise ValueError(
                f"margins with noise, display, cells_per_unit or without a domain: {follows} from exact counts of at "
                "least k in declared cells. Leave these out and write domain, or remove margins."
            )
        if self.where is not None or self.undeclared != "error" or self.one_cell not in (None, "error"):
            raise ValueError(
                f"margins with where, undeclared or one_cell: {follows} where both count the same people, everybody in "
                "one cell. Leave these out and mend the rows in the source, or remove margins."
            )
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `rows` out where nobody writes it: it is no part of the hash of jobs that did not have it."""
        return {key: value for key, value in written(self).items() if key != "rows" or value is not None}

    def _check_sum(self) -> None:
        if not self.bounds or (self.sum_of is None) is (self.rows is None):
            raise ValueError(
                'a sum has bounds = [0, 5], the least and the most that a person adds, and either sum = "column" or '
                'rows = "count".'
            )
        for key in ("k", "k_complement", "display"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is about counts: remove it from a sum.")
        if self._steps["below"] != "suppress" or "noise" not in self._steps:
            raise ValueError("a sum is published with noise alone: write noise = { epsilon = 1.0 }, without below.")

    @property
    def summed(self) -> tuple[str, ...] | None:
        """The column that is summed, none where rows are; None where people are counted."""
        return None if not self.bounds else () if self.sum_of is None else (self.sum_of,)

    @property
    def by(self) -> tuple[str, ...] | None:
        """The names of the columns whose values are the cells; None for a count."""
        if self.grouped_by is None:
            return None
        return tuple(entry if isinstance(entry, str) else entry.column for entry in self.grouped_by)

    @property
    def cells_by(self) -> tuple[str | Bins, ...] | None:
        """The same columns, with their groups."""
        if self.grouped_by is None:
            return None
        return tuple(entry if isinstance(entry, str) else entry.value for entry in self.grouped_by)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism this release runs."""
        kind: type[Mechanism] = Sum if self.bounds else Count if self.by is None else Histogram
        own = {field.name for field in fields(kind)}
        mechanism: Mechanism = kind(**{name: step for name, step in self._steps.items() if name in own})
        if isinstance(mechanism, Count) or self.by is None or self.domain is not None:
            return mechanism
        return mechanism.of_found_cells()

    @property
    def _steps(self) -> dict[str, Any]:
        """The steps that are written, as values."""
        steps = ((name, getattr(self, name)) for name in _STEPS)
        return {name: step.value if isinstance(step, TableOf) else step for name, step in steps if step is not None}


def with_margins(content: Mapping[str, Any], tables: tuple[ReleaseTable, ...]) -> dict[str, Any]:
    """Return what a job file says where a release of totals stands for each ``margins``, as somebody writes it by hand.

    `content`: of the file, from which `tables` were read. Totals come last, and once where two tables ask for the same.
    """
    leakage: dict[str, Leakage] = {}
    totals: dict[str, dict[str, Any]] = {}
    for table, written in zip(tables, content["release"], strict=True):
        if table.margins is None:
            continue
        by = [entry for entry in table.cells_by or () if _column(entry) in table.margins]
        known = Leakage.totals(by)
        leakage[known.name] = known
        release: dict[str, Any] = {
            "by": [{"column": entry.column, "bins": entry.edges} if isinstance(entry, Bins) else entry for entry in by],
            "domain": _domain(table, [_column(entry) for entry in by]),
            "protects": "value",
            **({"attacker": {}} if "attacker" in written else {}),
        }
        if release not in totals.values():
            totals[str(made_of(table))] = release
    releases = [*content["release"], *({"name": name, **release} for name, release in totals.items())]
    if not all("attacker" in release for release in releases):
        content = {"attacker": {}, **content}
    releases = [_with_leakage(release, leakage.values()) for release in releases]
    return {**_with_leakage(content, leakage.values()), "release": releases}


def made_of(table: ReleaseTable) -> str | None:
    """Return the name of the release of a table's margins; None where it has none."""
    return None if table.margins is None else f"{table.name}_totals"


def _with_leakage(table: Mapping[str, Any], totals: Iterable[Leakage]) -> dict[str, Any]:
    """Return a table whose attacker, if it has one, knows these totals, too."""
    if "attacker" not in table:
        return {**table}
    written = table["attacker"].get("leakage", [])
    known = [written] if isinstance(written, dict) else list(written)
    groups = [frozenset([by] if isinstance(by := entry.get("by", ()), str) else by) for entry in known]
    more = [leakage.to_dict() for leakage in totals if frozenset(leakage.by) not in groups]
    return {**table, "attacker": {**table["attacker"], "leakage": [*known, *more]}}


def _domain(table: ReleaseTable, columns: list[str]) -> Any:
    """Return the groups of a table's domain, in its order."""
    domain = with_groups(table.domain, [entry for entry in table.cells_by or () if isinstance(entry, Bins)])
    if isinstance(domain, Mapping):
        return {column: list(domain[column]) for column in columns}
    places = [(table.by or ()).index(column) for column in columns]
    groups = dict.fromkeys(tuple(cell[place] for place in places) for cell in domain)
    return [group[0] if len(group) == 1 else list(group) for group in groups]


def _column(entry: str | Bins) -> str:
    return entry.column if isinstance(entry, Bins) else entry
