"""The question `sum` on a frame: sums of whole numbers with noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.releases.calls import of_people, published

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.columns import Bins
    from pkdp_pipeline.model.mechanisms import GeometricNoise
    from pkdp_pipeline.releases.release import Release


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
    unit : str, sequence of str, or EACH_ROW
        Columns that name a person; of a pandas frame also levels of its index.
    attacker : AttackerModel, optional
        May be left out where there is noise, which asks nothing of an attacker.
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
    domain : list, or dict of column → list, optional
        The public cells, published in this order, empty ones as suppressed. For several columns a list of tuples, or a
        dict whose combinations are the cells; columns of `bins` may be left out of it, they have all groups from the
        first edge on. None: only cells that reach `k`, or `release_threshold`, appear, and no trace of the others.

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
