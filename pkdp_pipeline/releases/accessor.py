"""The questions on a frame: `count`, `histogram` and `sum`, and ``df.pkdp``, which asks them of its own; and `explain`.

The docstring of `histogram` describes every option. This module is loaded with the package, so it loads the
others when something is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.releases.calls import of_its_frame, of_people, publication_of, published

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.columns import Bins
    from pkdp_pipeline.model.display import Display
    from pkdp_pipeline.model.mechanisms import GeometricNoise
    from pkdp_pipeline.releases.explain import Explanation
    from pkdp_pipeline.releases.release import Release


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
    from pkdp_pipeline.releases.explain import explanation_of

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
