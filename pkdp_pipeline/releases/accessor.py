"""The questions on a frame: `count`, `histogram` and `sum`, and ``df.pkdp``, which asks them of its own; and `explain`.

The options of a question, and what pandas users hand in, become a publication here. The docstring of `histogram`
describes every option. A caller is warned where another frame was given for a release that is a replay. This module
is loaded when pandas or Polars is, so it loads the others when something is asked.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.columns import Bins
    from pkdp_pipeline.model.display import Display
    from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Sum
    from pkdp_pipeline.releases.printed import Explanation
    from pkdp_pipeline.releases.publish import Publication
    from pkdp_pipeline.releases.release import Release

P = ParamSpec("P")
R = TypeVar("R")


_NEEDED = {
    "unit": 'unit is needed: name the column of the protected person, as in unit="patient", or write '
    "unit=pkdp.EACH_ROW where every row is a person of its own.",
    "bounds": "bounds is needed: the least and the most that a person adds, a public rule, as in bounds=(0, 5).",
    "noise": "noise is needed: a sum is published with noise only, as in noise=pkdp.GeometricNoise(1.0).",
}


_WEIGHTED = (
    "weights are fixed beforehand, and given to what is published: release.weighted(…). A weight in a person's own "
    "record tells of it as any value does: publish counts by the stratum that it follows from, or by groups of it, as "
    "pkdp.bins, and weight these."
)


def of_people(function: Callable[P, R]) -> Callable[P, R]:
    """Say how `unit`, and whatever else is needed, is written to a caller who leaves it out."""
    parameters = inspect.signature(function).parameters
    needed = [name for name in _NEEDED if name in parameters and parameters[name].default is inspect.Parameter.empty]

    @functools.wraps(function)
    def called(*values: P.args, **options: P.kwargs) -> R:
        for name in needed:
            if name not in options:
                from pkdp_pipeline.errors import ArgumentError

                raise ArgumentError(_NEEDED[name])
        if {"weight", "weights"} & options.keys():
            from pkdp_pipeline.errors import ArgumentError

            raise ArgumentError(_WEIGHTED)
        return function(*values, **options)

    called.__doc__ = inspect.cleandoc(function.__doc__ or "")
    return called


def of_its_frame(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return the method that asks a function of the accessor's frame: its parameters but the frame."""

    @functools.wraps(function)
    def method(self: Any, /, *values: P.args, **options: P.kwargs) -> R:
        return function(self._frame, *values, **options)

    _, *others = inspect.signature(function).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = inspect.signature(function).replace(parameters=[own, *others])  # type: ignore[attr-defined]
    return method


def publication_of(by: object = None, **options: Any) -> Publication:
    """Return what is asked for by the options of a call; without `by` it is a count, with `bounds` a sum."""
    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.model.mechanisms import Count, Histogram, Sum
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.model.wording import choice
    from pkdp_pipeline.releases.publish import Publication

    kind: type[Count | Histogram | Sum] = Count if by is None else Histogram
    column, rows, bounds = options.pop("column", None), options.pop("rows", None), options.pop("bounds", None)
    if not (column is rows is bounds is None):
        if rows is not None:
            choice("rows", rows, ("count",))
        if (column is None) is (rows is None):
            raise ArgumentError('a sum is of a column, or of rows: name the column, or write rows="count", not both.')
        for name, default in (("k", None), ("below", "suppress"), ("display", None), ("k_complement", None)):
            if options.pop(name, default) != default:
                raise ArgumentError(f"{name} is about counts; a sum has none: leave it out.")
        kind, options = Sum, {**options, "summed": column, "bounds": bounds}
    steps, terms = (
        {field.name: options.pop(field.name) for field in fields(owner) if field.name in options}
        for owner in (kind, Publication)
    )
    return Publication(question=Question(mechanism=kind(**steps), by=by, **options), **terms)


def published(frame: Any, by: object = None, **options: Any) -> Release:
    """Publish what the options of a call ask of a frame."""
    from pkdp_pipeline.releases.publish import publish

    publication = publication_of(by, **of_frame(frame, by, options))
    release = publish(lambda: frame, publication)
    warn_of_another_frame(frame, publication, release)
    return release


def of_frame(frame: Any, by: object, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options with an array of booleans under the index of a pandas frame; warn of cells found by `cut`."""
    import numpy as np
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        return options
    from pkdp_pipeline.engines.pandas_engine import holds_intervals
    from pkdp_pipeline.errors import ArgumentError

    named = [by] if isinstance(by, str) else by if isinstance(by, Sequence) else ()
    if options.get("domain") is None and any(map(partial(holds_intervals, frame), named)):
        warnings.warn(
            "the cells are intervals: their edges must be fixed before anybody looks at the data. Those of pd.qcut, "
            "and of pd.cut with a number of bins, look at everybody, which the certificate does not cover: give pd.cut "
            "its edges, or declare the cells in domain=.",
            UserWarning,
            stacklevel=_callers_level(),
        )
    where = options.get("where")
    if isinstance(where, Sequence) and not isinstance(where, str):
        where = np.asarray(where)
    if isinstance(where, np.ndarray | pd.api.extensions.ExtensionArray):
        if where.ndim != 1 or len(where) != len(frame):
            raise ArgumentError("where must give one boolean per row of the frame.")
        return {**options, "where": pd.Series(where, index=frame.index)}
    return options


#: By question and table, the frame of which this process asked for it first; it may be gone by now. A table may have
#: several certificates, and so several ids.
_FRAMES: dict[tuple[str, str], weakref.ref[object]] = {}


def warn_of_another_frame(frame: object, publication: Publication, release: Release) -> None:
    """Warn where a release is a replay, and this process has it of another frame object. No data are read.

    Publications of another process are not known here: of each, only the first frame that asks for it is remembered.
    """
    ledger, question = publication.ledger, publication.question
    if ledger is None:
        return
    identity = question.key(ledger.dataset), release.sealed.cells.identity("")
    known = [_FRAMES[identity]] if identity in _FRAMES else []
    if release.certificate.derived_from is not None:
        published = replace(question, mechanism=release.certificate.derived_from).key(ledger.dataset)
        known = [reference for (key, _), reference in _FRAMES.items() if key == published]
    if release.replayed and known:
        if all(reference() is not frame for reference in known):
            warnings.warn(
                f"{question.description!r} of {question.period} was asked of another frame before: what is returned is "
                "what was published, and this frame was not read. Put restrictions in where=, or publish changed data "
                "with revise=True.",
                UserWarning,
                stacklevel=_callers_level(),
            )
        return
    with suppress(TypeError):  # no reference can be kept to a frame of this kind
        _FRAMES[identity] = weakref.ref(frame)


def _callers_level() -> int:
    """Return how far up the stack the code is that called this library, as seen from where it warns."""
    level, caller = 1, sys._getframe(1)
    while caller.f_back is not None and caller.f_globals.get("__name__", "").startswith("pkdp_pipeline"):
        level, caller = level + 1, caller.f_back
    return level


@of_people
def histogram(
    frame: Any,
    by: str | Bins | Sequence[str | Bins],
    *,
    unit: Any,
    attacker: AttackerModel | None = None,
    k: int | None = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    below: Literal["suppress", "noise"] = "suppress",
    display: Display | None = None,
    domain: Any = None,
    protects: Literal["presence", "value"] = "presence",
    where: Any = None,
    missing_unit: Literal["error", "drop"] = "error",
    units: Literal["checked", "exact"] = "checked",
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error",
    order_by: Any = None,
    cells_per_unit: int = 1,
    undeclared: Literal["error", "absent"] = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
    revise: bool = False,
    target: Asked = "default",
) -> Release:
    """Publish how many people are in each cell.

    `frame` is what `count` takes; that of ``df.pkdp`` is its own. Every person is in one cell, or in at most
    `cells_per_unit`, or absent. Rows are read in this order: `where` keeps rows, `missing_unit` drops rows, `one_cell`
    chooses one cell for each person, `undeclared` makes people absent whose cell is not public. A rule looks at a
    person's own rows only.

    Parameters
    ----------
    by : str, Bins or sequence of them
        Columns that name a cell; of a pandas frame also levels of its index. A missing value is a key of its own, as
        in SQL's ``GROUP BY``; with a domain it is undeclared unless the domain has None. `bins` counts values in groups
        with public edges. Intervals, as `pandas.cut` makes them, are keys by their text.
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
    domain : list, or dict of column → list, optional
        The public cells, published in this order, empty ones as suppressed. For several columns a list of tuples, or a
        dict whose combinations are the cells; columns of `bins` may be left out of it, they have all groups from the
        first edge on. None: only cells that reach `k`, or `release_threshold`, appear, and no trace of the others.
    protects : {"presence", "value"}, default "presence"
        Whether a person is there, or which cell she is in, and of a sum what she adds. ``"value"`` for a count: publish
        the exact number of all people as a total, against an attacker whose `leakage` says that it is known. It hides
        nothing about who is there, and takes nothing from histograms that are certified against such an attacker and
        protect the value too.
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
    by = () if by is None else by
    return published(**locals())


@of_people
def count(
    frame: Any,
    where: Any = None,
    *,
    unit: Any,
    attacker: AttackerModel | None = None,
    k: int | None = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    below: Literal["suppress", "noise"] = "suppress",
    display: Display | None = None,
    k_complement: int | None = None,
    protects: Literal["presence", "value"] = "presence",
    missing_unit: Literal["error", "drop"] = "error",
    units: Literal["checked", "exact"] = "checked",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
    revise: bool = False,
    target: Asked = "default",
) -> Release:
    """Publish how many people satisfy a predicate.

    `frame` is a `pandas.DataFrame`, `duckdb.DuckDBPyRelation`, `polars.DataFrame`, `polars.LazyFrame`, `pyarrow.Table`,
    PySpark `DataFrame` or `ibis.Table`, or one of these wrapped by Narwhals; that of ``df.pkdp`` is its own. The same
    data give the same release; only aggregated counts leave the frame's engine. All people in the frame are the
    population. A person with several rows satisfies the predicate when any of them does.

    Parameters
    ----------
    where : boolean Series or array, str or callable, optional
        The predicate: a boolean Series or array, a boolean column's name, a pandas query string, or a callable that
        is given the frame and returns a boolean Series. A missing answer is "no". All frames but pandas' take
        a column or a query string; those of Polars and Ibis also an expression of their own, such as
        ``pl.col("age") > 17``. None: every person. Whether a person counts must depend on her own rows alone: a
        query string that asks for a column's mean or rank is refused, the others are taken at your word.
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
    protects : {"presence", "value"}, default "presence"
        Whether a person is there, or which cell she is in, and of a sum what she adds. ``"value"`` for a count: publish
        the exact number of all people as a total, against an attacker whose `leakage` says that it is known. It hides
        nothing about who is there, and takes nothing from histograms that are certified against such an attacker and
        protect the value too.
    missing_unit : {"error", "drop"}, default "error"
        The treatment of rows whose unit is missing.
    units : {"checked", "exact"}, default "checked"
        Names of people that differ only by spaces around them are refused; ``"exact"`` says that they are different
        people.
    ledger : Ledger, optional
    period : str, datetime.date or pandas.Period, optional
        The period the data are about; needed with a ledger.
    label : str, optional
        Names a predicate that is a Series, an expression or a callable; needed for them with a ledger.
    revise : bool, default False
        With a ledger that has published this question: publish the changed data as a new, charged release.
    target : Target or None, optional
        The least it has to promise: without it the ledger's, or a finite ε at δ = 1e-6. None: nothing.

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
    return published(**locals())


@of_people
def sum(
    frame: Any,
    column: str | None = None,
    by: str | Bins | Sequence[str | Bins] | None = None,
    *,
    rows: Literal["count"] | None = None,
    unit: Any,
    bounds: tuple[int, int],
    noise: GeometricNoise,
    attacker: AttackerModel | None = None,
    release_threshold: int | None = None,
    domain: Any = None,
    protects: Literal["presence", "value"] = "presence",
    where: Any = None,
    missing_unit: Literal["error", "drop"] = "error",
    units: Literal["checked", "exact"] = "checked",
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error",
    order_by: Any = None,
    cells_per_unit: int = 1,
    undeclared: Literal["error", "absent"] = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
    revise: bool = False,
    target: Asked = "default",
) -> Release:
    """Publish the sum of a column of whole numbers with noise, in each cell or in all, as in visits by clinic.

    `frame` is what `count` takes; that of ``df.pkdp`` is its own. A person adds to her cell the sum over her rows
    there, of those that `where` keeps, clamped to `bounds`. A missing value adds nothing, and one beyond ±10^12 counts
    as that. The table has a column ``sum``, which may be negative.

    Parameters
    ----------
    column : str, optional
        The summed column. Its type is one of whole numbers: reals, decimals with a scale, text and truth values are
        refused, whatever they hold; in pandas, ``.astype("Int64")`` converts.
    by : str, Bins or sequence of them, optional
        As of `histogram`; None: one sum of everybody.
    rows : {"count"}, optional
        Instead of a column: a person adds the number of her rows.
    bounds : tuple of two int
        The least and the most that a person adds to a cell: a public rule, fixed before anybody looks at the data. Sums
        lack the rest beyond them; wider ones need more noise.
    noise : GeometricNoise
        Two-sided geometric noise for the larger size of the bounds Δ: ``exp(-epsilon / Δ)`` is its α.
    release_threshold : int, optional
        A cell is published only when its noisy sum is at least this. Needed without a `domain`, where a cell has a row
        only if somebody is in it.
    unit, attacker, protects, domain, where, missing_unit, units, one_cell, order_by : as of `histogram`
    cells_per_unit, undeclared, ledger, period, label, revise, target : as of `histogram`

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
        As `histogram` does.
    """
    return published(**locals())


@of_people
def explain(
    by: str | Bins | Sequence[str | Bins] | None = None,
    where: Any = None,
    *,
    unit: Any,
    column: str | None = None,
    rows: Literal["count"] | None = None,
    bounds: tuple[int, int] | None = None,
    attacker: AttackerModel | None = None,
    k: int | None = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    below: Literal["suppress", "noise"] = "suppress",
    display: Display | None = None,
    k_complement: int | None = None,
    domain: Any = None,
    protects: Literal["presence", "value"] = "presence",
    missing_unit: Literal["error", "drop"] = "error",
    units: Literal["checked", "exact"] = "checked",
    one_cell: Literal["error", "most_frequent", "first", "hash"] = "error",
    order_by: Any = None,
    cells_per_unit: int = 1,
    undeclared: Literal["error", "absent"] = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
    revise: bool = False,
    target: Asked = "default",
) -> Explanation:
    """Say what a release would be, before anything is read, charged or published.

    A ledger is asked what it would say, and stays as it is. While it is asked, no other release of the data set can be
    charged.

    Parameters
    ----------
    by : str or sequence of str, optional
        Columns that name a cell: what `histogram` would publish is explained. None: what `count` would.
    where : boolean Series, str or callable, optional
        The predicate. It is not looked at, beyond its text; see `count`.
    column, rows, bounds : optional
        As of `sum`: with them, what that would publish is explained.
    k_complement : int, optional
        See `Count`. The number of people in the frame is taken as public.
    unit, attacker, k, noise, release_threshold, below, display, domain, protects : as of `histogram`
    missing_unit, units, one_cell, order_by, cells_per_unit, undeclared : as of `histogram`
    ledger, period, label, revise, target : as of `histogram`

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
    options = locals()
    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.releases.printed import explanation_of

    if by is not None and options.pop("k_complement") is not None:
        raise ArgumentError("k_complement is about a count; a histogram has none: leave it out, or leave by out.")
    return explanation_of(publication_of(**options))


class PkdpAccessor:
    """``df.pkdp.count``, ``histogram``, ``sum`` and ``explain``: the functions of these names, asked of this frame."""

    count = of_its_frame(count)
    histogram = of_its_frame(histogram)
    sum = of_its_frame(sum)
    explain = staticmethod(explain)

    def __init__(self, frame: Any) -> None:
        self._frame = frame


def register(library: str) -> None:
    """Give the frames of pandas or Polars, which is loaded, the accessor ``pkdp``."""
    api = import_module(library).api
    if library == "pandas":
        api.extensions.register_dataframe_accessor("pkdp")(PkdpAccessor)
    else:
        api.register_dataframe_namespace("pkdp")(PkdpAccessor)
        api.register_lazyframe_namespace("pkdp")(PkdpAccessor)
