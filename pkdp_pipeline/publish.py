"""publish: the one way out, from a frame to a `Release`; `count` and `histogram` are its two questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.attacker import AttackerModel
from pkdp_pipeline.errors import ArgumentError, LedgerError
from pkdp_pipeline.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.public_table import public_table
from pkdp_pipeline.release import Release
from pkdp_pipeline.request import EACH_ROW, Request

if TYPE_CHECKING:
    from pkdp_pipeline.certificate import Certificate
    from pkdp_pipeline.ledger import Entry, Ledger

__all__ = ["EACH_ROW", "Request", "count", "histogram", "publish"]


def publish(
    source: Callable[[], Any],
    request: Request,
    *,
    attacker: AttackerModel,
    ledger: Ledger | None = None,
    alone: bool = True,
) -> Release:
    """Publish what `request` asks for, certified against `attacker`.

    What can be refused is refused before any data is read, and what the ledger holds is replayed without
    reading any.

    Parameters
    ----------
    source : callable
        Returns the frame (a `pandas.DataFrame` or a `duckdb.DuckDBPyRelation`); called once, and only when
        data must be read.
    request : Request
    attacker : AttackerModel
    ledger : Ledger, optional
        Charges and publishes in one transaction, replays the same request, and refuses what cannot stand
        beside what it holds.
    alone : bool, default True
        False where something else, noised as this is, is published about these people and this period:
        then only the worst-case guarantee is claimed.

    Returns
    -------
    Release

    Raises
    ------
    ArgumentError
        If an argument is malformed, or names what the frame does not have.
    DifferencingError, NotCertifiableError
        If it may not be published; no data was read.
    InputCheckError
        If the data are not as the request declares them; nothing was charged.
    LedgerError, TemporaryError
        If the ledger cannot be used; nothing was charged.
    """
    from pkdp_pipeline.certificate import certify

    if ledger is None:
        certificate = certify(request.mechanism, attacker if alone else AttackerModel(), protects=request.protects)
        return Release.seal(
            public_table(source(), request), certificate.with_caveats(*_caveats(request, None, certificate))
        )
    from pkdp_pipeline.ledger import Ledger

    if not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"ledger must be a Ledger, not {type(ledger).__name__}: open one with pkdp.Ledger.open(path)."
        )
    key, standing = request.key(ledger.dataset), request.standing()
    entry = ledger.find(key)
    if entry is None:
        ledger.check(standing)
        alone = alone and not ledger.beside(standing)
        certificate = certify(request.mechanism, attacker if alone else AttackerModel(), protects=request.protects)
        certificate = certificate.with_caveats(*_caveats(request, standing.period, certificate))
        release = Release.seal(public_table(source(), request), certificate)
        text, content = release.certificate.to_json(), release.to_bytes()
        entry, replayed = ledger.publish(
            key, standing, text, content, release.id, alone=certificate.has_partial_knowledge
        )
        if not replayed:
            return release
    return _replayed(entry)


def count(
    frame: Any,
    where: Any = None,
    *,
    unit: Any,
    attacker: AttackerModel,
    k: int | None = None,
    k_complement: int | None = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    missing_unit: str = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
) -> Release:
    """Publish how many people satisfy a predicate.

    All people in the frame are the population. A person with several rows satisfies the predicate when any
    of them does.

    Parameters
    ----------
    frame : pandas.DataFrame or duckdb.DuckDBPyRelation
    where : boolean Series, str or callable, optional
        The predicate: a boolean Series, a boolean column's name, a pandas query string, or a callable that
        is given the frame and returns a boolean Series. A missing answer is "no". A relation takes a column
        or a query string. None: every person.
    unit : str, sequence of str, or EACH_ROW
        Columns that name a person.
    attacker : AttackerModel
    k, k_complement, noise, release_threshold : optional
        See `Count`. For `k_complement` the number of people in the frame is taken as public.
    missing_unit : {"error", "drop"}, default "error"
        What happens to rows whose unit is missing.
    ledger : Ledger, optional
    period : str or datetime.date, optional
        The period the data are about; needed with a ledger.
    label : str, optional
        Names a predicate that is a Series or a callable; needed for them with a ledger.

    Returns
    -------
    Release

    Raises
    ------
    PkdpError
        See `publish`.
    """
    mechanism = Count(k=k, k_complement=k_complement, noise=noise, release_threshold=release_threshold)
    request = Request(
        mechanism=mechanism, unit=unit, where=where, missing_unit=missing_unit, period=period, label=label
    )
    return publish(lambda: frame, request, attacker=attacker, ledger=ledger)


def histogram(
    frame: Any,
    by: str | Sequence[str],
    *,
    unit: Any,
    attacker: AttackerModel,
    k: int | None = None,
    domain: Any = None,
    noise: GeometricNoise | None = None,
    release_threshold: int | None = None,
    protects: str = "presence",
    where: Any = None,
    missing_unit: str = "error",
    one_cell: str = "error",
    order_by: str | Sequence[str] | None = None,
    undeclared: str = "error",
    ledger: Ledger | None = None,
    period: Any = None,
    label: str | None = None,
) -> Release:
    """Publish how many people are in each cell.

    Every person is in one cell or absent. Rows are read in this order: `where` keeps rows, `missing_unit`
    drops rows, `one_cell` chooses one cell for each person, `undeclared` makes people absent whose cell is
    not public. A rule looks at a person's own rows only.

    Parameters
    ----------
    frame : pandas.DataFrame or duckdb.DuckDBPyRelation
    by : str or sequence of str
        Columns that name a cell. A missing value is a key of its own, as in SQL's ``GROUP BY``; with a domain
        it is undeclared unless the domain has None.
    unit : str, sequence of str, or EACH_ROW
        Columns that name a person.
    attacker : AttackerModel
    k, noise, release_threshold : optional
        See `Histogram`.
    domain : list, or dict of column → list, optional
        The public cells, published in this order, empty ones as suppressed. For several columns a list of
        tuples, or a dict whose combinations are the cells. None: only cells that reach `k` appear, and no
        trace of the others.
    protects : {"presence", "value"}, default "presence"
    where : boolean Series, str or callable, optional
        Which rows count; see `count`.
    missing_unit : {"error", "drop"}, default "error"
    one_cell : {"error", "most_frequent", "first", "hash"}, default "error"
        Which of its own cells a person with rows in several is counted in; see `Request`.
    order_by : str or sequence of str, optional
        For ``one_cell="first"``.
    undeclared : {"error", "absent"}, default "error"
    ledger : Ledger, optional
    period : str or datetime.date, optional
        The period the data are about; needed with a ledger.
    label : str, optional
        Names a predicate that is a Series or a callable; needed for them with a ledger.

    Returns
    -------
    Release

    Raises
    ------
    PkdpError
        See `publish`.
    """
    request = Request(
        mechanism=Histogram(k=k, noise=noise, release_threshold=release_threshold),
        unit=unit,
        protects=protects,
        by=by,
        domain=domain,
        where=where,
        missing_unit=missing_unit,
        one_cell=one_cell,
        order_by=order_by,
        undeclared=undeclared,
        period=period,
        label=label,
    )
    return publish(lambda: frame, request, attacker=attacker, ledger=ledger)


def _replayed(entry: Entry) -> Release:
    """Return the release a ledger holds, from its stored bytes."""
    try:
        release = Release.from_bytes(entry.content, replayed=True)
    except ArgumentError as error:
        raise LedgerError(f"the ledger's entry {entry.sequence} cannot be replayed: {error}") from error
    if release.id != entry.release_id:
        raise LedgerError(f"the ledger's entry {entry.sequence} holds another release than it says: it was altered.")
    return release


def _caveats(request: Request, period: str | None, certificate: Certificate) -> list[str]:
    """Return what limits the statement, from the request alone."""
    caveats = []
    if request.unit:
        caveats.append(f"A person is one value of {', '.join(map(repr, request.unit))}.")
    else:
        caveats.append("Every row is taken for a person: a person with several rows is protected in one of them only.")
    if period is None:
        # Theorem C reveals who is in the table in its proof, so totals of them may stand beside it.
        totals = ", exact totals aside" if certificate.theorems == ("histogram_between",) else ""
        caveats.append(f"This holds only if nothing else is published about these people{totals}.")
        return caveats
    caveats.append(
        f"This statement is about the period {period} alone; what several periods add up to is not stated here."
    )
    if request.mechanism.noise is not None and certificate.has_partial_knowledge:
        caveats.append(
            "What it says about an attacker who is unsure of other people holds only while nothing else is published "
            "about these people and this period; the guarantees that noise alone gives add up."
        )
    return caveats
