"""The questions on a frame: `count`, `histogram`, and ``df.pkdp``, which asks them of its own.

The options of a release beside its columns and its predicate stand here once: names, meanings and types, which
these functions and `explain` take as ``**options`` and show in signature and help. This module is loaded with the
package, so it loads the others when something is asked.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, TypeVar, Unpack, cast

import pandas as pd

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.display import Display
    from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
    from pkdp_pipeline.releases.explain import Explanation
    from pkdp_pipeline.releases.publish import Publication
    from pkdp_pipeline.releases.release import Release

F = TypeVar("F", bound=Callable[..., Any])

_MEANINGS = """
unit : str, sequence of str, or EACH_ROW
    Columns that name a person; of a pandas frame also levels of its index.
attacker : AttackerModel, optional
    May be left out where there is noise, which asks nothing of an attacker.
k, noise, release_threshold : optional
    See `Count` and `Histogram`.
below : {"suppress", "noise"}, default "suppress"
    A count below `k` is hidden, or published with `noise` and marked in a column ``exact``, while counts
    from `k` on are exact. Without a `domain` it needs `release_threshold`, which then acts on the noised ones only.
display : Rounding, Bands, RandomRounding or PerturbationTable, optional
    How every published count is shown, after `k` or in its place.
k_complement : int, optional
    See `Count`. The number of people in the frame is taken as public.
domain : list, or dict of column → list, optional
    The public cells, published in this order, empty ones as suppressed. For several columns a list of tuples, or a
    dict whose combinations are the cells. None: only cells that reach `k` appear, and no trace of the others.
protects : {"presence", "value"}, default "presence"
    ``"value"`` for a count: publish the exact number of all people as a total, against an attacker whose `leakage`
    says that it is known. It hides nothing about who is there, and takes nothing from histograms that are certified
    against such an attacker and protect the value too.
where : boolean Series, str or callable, optional
    Which rows count; see `count`.
missing_unit : {"error", "drop"}, default "error"
    The treatment of rows whose unit is missing.
units : {"checked", "exact"}, default "checked"
    Names of people that differ only by spaces around them are refused; ``"exact"`` says that they are different
    people.
one_cell : {"error", "most_frequent", "first", "hash"}, default "error"
    Which of its own cells a person with rows in several is counted in; see `Question`. A hash draws by the text of
    her name: text 0017 that is read as a number is 17, and draws otherwise.
order_by : str or sequence of str, optional
    For ``one_cell="first"``.
cells_per_unit : int, default 1
    The most cells a person may be in; she counts in each. With noise a hash draws that many of a person's cells;
    without noise nobody may have more, and `attacker` has to say that cells are independent. See `Histogram`.
undeclared : {"error", "absent"}, default "error"
    The treatment of people whose cell is not in the domain, after `one_cell` has chosen it.
ledger : Ledger, optional
period : str, datetime.date or pandas.Period, optional
    The period the data are about; needed with a ledger.
label : str, optional
    Names a predicate that is a Series, an expression or a callable; needed for them with a ledger.
revise : bool, default False
    With a ledger that has published this question: publish the changed data as a new, charged release.
target : Target or None, optional
    The least it has to promise: without it the ledger's, or a finite ε at δ = 1e-6. None: nothing.
"""
_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "below": "suppress",
        "protects": "presence",
        "missing_unit": "error",
        "units": "checked",
        "one_cell": "error",
        "cells_per_unit": 1,
        "undeclared": "error",
        "revise": False,
        "target": "default",
    }
)


class _Options(TypedDict, total=False):
    unit: Required[Any]
    attacker: AttackerModel | None
    k: int | None
    noise: GeometricNoise | None
    release_threshold: int | None
    below: Literal["suppress", "noise"]
    display: Display | None
    protects: Literal["presence", "value"]
    missing_unit: Literal["error", "drop"]
    units: Literal["checked", "exact"]
    period: Any
    label: str | None
    ledger: Ledger | None
    revise: bool
    target: Asked


class _Cells(_Options, total=False):
    domain: Any
    one_cell: Literal["error", "most_frequent", "first", "hash"]
    order_by: Any
    cells_per_unit: int
    undeclared: Literal["error", "absent"]


class CountOptions(_Options, total=False):
    """Options of `count`."""

    k_complement: int | None


class HistogramOptions(_Cells, total=False):
    """Options of `histogram`."""

    where: Any


class ExplainOptions(_Cells, total=False):
    """Options of `explain`."""

    k_complement: int | None


def shows(options: Any) -> Callable[[F], F]:
    """Return a decorator that writes the fields of a TypedDict into the signature and the docstring of ``**options``.

    A call that does not fit the signature is a TypeError, as with every function; without a unit it is our error, which
    says what to write.
    """
    types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in options.__annotations__.items()}
    meanings = re.split(r"\n(?=\w)", _MEANINGS.strip())
    listed = [text for text in meanings if text.partition(" :")[0].split(", ")[0] in types]
    ordered = [name for text in listed for name in text.partition(" :")[0].split(", ")]
    keywords = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name == "unit" else _DEFAULTS.get(name),
            annotation=re.sub(r"^Required\[(.*)\]$", r"\1", types[name]),
        )
        for name in ordered
    ]

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        signature = signature.replace(parameters=[*own, *keywords])

        @functools.wraps(function)
        def called(*values: Any, **given: Any) -> Any:
            if "unit" not in given:
                from pkdp_pipeline.errors import ArgumentError

                raise ArgumentError(
                    'unit is needed: name the column of the protected person, as in unit="patient", or write '
                    "unit=pkdp.EACH_ROW where every row is a person of its own."
                )
            signature.bind(*values, **given)
            return function(*values, **given)

        before, returns, after = inspect.cleandoc(function.__doc__ or "").partition("\n\nReturns\n")
        called.__doc__ = "\n".join([before, *listed]) + returns + after
        called.__signature__ = signature  # type: ignore[attr-defined]  # what inspect reads
        return cast("F", called)

    return decorated


def publication_of(by: object, options: Mapping[str, Any]) -> Publication:
    """Return what the keywords of a call ask for; without `by` it is a count."""
    from pkdp_pipeline.model.mechanisms import Count, Histogram
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.releases.publish import Publication

    kind: type[Count | Histogram] = Count if by is None else Histogram
    arguments: tuple[dict[str, Any], ...] = ({}, {}, {})
    of_kinds = [{field.name for field in fields(owner)} for owner in (kind, Publication)]
    for name, value in options.items():
        place = next((place for place, names in enumerate(of_kinds) if name in names), 2)
        arguments[place][name] = value
    mechanism, terms, rest = arguments
    return Publication(question=Question(mechanism=kind(**mechanism), by=by, **rest), **terms)


def _published(frame: Any, by: object, options: Mapping[str, Any]) -> Release:
    from pkdp_pipeline.releases.frames import of_frame, warn_of_another_frame
    from pkdp_pipeline.releases.publish import publish

    publication = publication_of(by, of_frame(frame, by, options))
    release = publish(lambda: frame, publication)
    warn_of_another_frame(frame, publication, release)
    return release


@shows(CountOptions)
def count(frame: Any, where: Any = None, **options: Unpack[CountOptions]) -> Release:
    """Publish how many people satisfy a predicate.

    All people in the frame are the population. A person with several rows satisfies the predicate when any
    of them does.

    Parameters
    ----------
    frame : DataFrame or table
        A `pandas.DataFrame`, `duckdb.DuckDBPyRelation`, `polars.DataFrame`, `polars.LazyFrame`, `pyarrow.Table`,
        PySpark `DataFrame` or `ibis.Table`, or one of these wrapped by Narwhals. The same data give the same
        release; only aggregated counts leave the frame's engine.
    where : boolean Series or array, str or callable, optional
        The predicate: a boolean Series or array, a boolean column's name, a pandas query string, or a callable that
        is given the frame and returns a boolean Series. A missing answer is "no". All frames but pandas' take
        a column or a query string; those of Polars and Ibis also an expression of their own, such as
        ``pl.col("age") > 17``. None: every person. Whether a person counts must depend on her own rows alone: a
        query string that asks for a column's mean or rank is refused, the others are taken at your word.

    Returns
    -------
    Release

    Raises
    ------
    PkdpError
        See `publish`.

    Warns
    -----
    UserWarning
        If the ledger replays what this process has asked of another frame object: it is not looked at.
    """
    return _published(frame, None, {"where": where, **options})


@shows(HistogramOptions)
def histogram(frame: Any, by: str | Sequence[str], **options: Unpack[HistogramOptions]) -> Release:
    """Publish how many people are in each cell.

    Every person is in one cell, or in at most `cells_per_unit`, or absent. Rows are read in this order: `where` keeps
    rows, `missing_unit` drops rows, `one_cell` chooses one cell for each person, `undeclared` makes people absent whose
    cell is not public. A rule looks at a person's own rows only.

    Parameters
    ----------
    frame : DataFrame or table
        As of `count`.
    by : str or sequence of str
        Columns that name a cell; of a pandas frame also levels of its index. A missing value is a key of its own, as
        in SQL's ``GROUP BY``; with a domain it is undeclared unless the domain has None. Intervals, as `pandas.cut`
        makes them, are keys by their text.

    Returns
    -------
    Release

    Raises
    ------
    PkdpError
        See `publish`.

    Warns
    -----
    UserWarning
        If the ledger replays what this process has asked of another frame object: it is not looked at.
    """
    return _published(frame, () if by is None else by, options)


@shows(ExplainOptions)
def explain(by: str | Sequence[str] | None = None, where: Any = None, **options: Unpack[ExplainOptions]) -> Explanation:
    """Say what a release would be, before anything is read, charged or published.

    A ledger is asked what it would say, and stays as it is. While it is asked, no other release of the data set can be
    charged.

    Parameters
    ----------
    by : str or sequence of str, optional
        Columns that name a cell: what `histogram` would publish is explained. None: what `count` would.
    where : boolean Series, str or callable, optional
        The predicate. It is not looked at, beyond its text; see `count`.

    Returns
    -------
    Explanation
        A refusal is its outcome and not raised.

    Raises
    ------
    ArgumentError
        If an argument is malformed, as when publishing. Columns that the frame lacks are found out when publishing.
    LedgerError, TemporaryError
        If the ledger cannot be used or is locked.

    Notes
    -----
    *Guarantee*: the certificate is the one that publishing makes, unless the ledger changes in between. Whether the
    data pass the rules for rows is not known: no data are touched.
    """
    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.releases.explain import explanation_of

    if by is not None and options.pop("k_complement", None) is not None:
        raise ArgumentError("k_complement is about a count; a histogram has none: leave it out, or leave by out.")
    return explanation_of(publication_of(by, {"where": where, **options}))


@pd.api.extensions.register_dataframe_accessor("pkdp")
class PkdpAccessor:
    """``df.pkdp.count``, ``histogram`` and ``explain``; see the functions of these names in `pkdp_pipeline`."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @shows(CountOptions)
    def count(self, where: Any = None, **options: Unpack[CountOptions]) -> Release:
        """Publish how many people satisfy a predicate; see `pkdp_pipeline.count`.

        Parameters
        ----------
        where : boolean Series, str or callable, optional
            The predicate: a query string, a boolean column's name, a boolean Series, or a callable that returns one.

        Returns
        -------
        Release
        """
        return count(self._frame, where, **options)

    @shows(HistogramOptions)
    def histogram(self, by: str | Sequence[str], **options: Unpack[HistogramOptions]) -> Release:
        """Publish how many people are in each cell; see `pkdp_pipeline.histogram`.

        Parameters
        ----------
        by : str or sequence of str
            Columns that name a cell.

        Returns
        -------
        Release
        """
        return histogram(self._frame, by, **options)

    @shows(ExplainOptions)
    def explain(
        self, by: str | Sequence[str] | None = None, where: Any = None, **options: Unpack[ExplainOptions]
    ) -> Explanation:
        """Return what a release would be; the frame is not looked at. See `pkdp_pipeline.explain`.

        Parameters
        ----------
        by : str or sequence of str, optional
            Columns that name a cell, as for `histogram`. None: a count is explained.
        where : boolean Series, str or callable, optional
            The predicate.

        Returns
        -------
        Explanation
        """
        return explain(by, where, **options)
