"""publish: the one way out, from a frame to a `Release`; `count` and `histogram` are its two questions."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Unpack, cast

from pkdp_pipeline.errors import PkdpError, TemporaryError
from pkdp_pipeline.ledger.sealed import release_id
from pkdp_pipeline.model.mechanisms import Count, Histogram
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.keywords import CountOptions, HistogramOptions, Publishing, Terms, shows
from pkdp_pipeline.releases.public_table import Counted, count_units, public_table
from pkdp_pipeline.releases.publication import Publication
from pkdp_pipeline.releases.release import Release

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
    from pkdp_pipeline.ledger import Ledger

__all__ = ["Counted", "count", "count_units", "histogram", "publish", "question_of", "read_through"]


def publish(
    source: Callable[[], Any],
    question: Question,
    *,
    check: Callable[[Release], None] | None = None,
    trusted: bool = True,
    **terms: Unpack[Terms],
) -> Release:
    """Publish what `question` asks for.

    What can be refused is refused before any data is read, and what the ledger holds is replayed without
    reading any. With a ledger the charge comes first: it is reserved, then the data are read, then the
    release is stored; only then does it exist.

    Parameters
    ----------
    source : callable
        Returns the frame, of any kind that `histogram` takes, or what `count_units` made of one for this very
        question; called once, and only when data must be read.
    question : Question
    check : callable, optional
        Looks at a new release before it is stored; what it raises stops the publication, and nothing is charged.
    trusted : bool, default True
        False where the asker may not see the data: what fails once they were read stays charged, because a failure
        can tell about them, too.
    **terms
        The other parameters of `Publication`.

    Returns
    -------
    Release

    Raises
    ------
    ArgumentError
        If an argument is malformed, or names what the frame does not have.
    BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError
        If it may not be published; no data was read.
    InputCheckError
        If the data are not as the question declares them; nothing was charged to who is trusted.
    LedgerError, TemporaryError
        If the ledger cannot be used. Nothing was published; where the charge was reserved already, the same
        question, asked again, takes it over and is charged once.
    """

    def made(certificate: ReleaseCertificate) -> Release:
        release = Release.seal(public_table(source(), question), certificate)
        if check is not None:
            check(release)
        return release

    publication = Publication(question=question, **terms)
    ledger = publication.ledger
    if ledger is None:
        return made(publication.certified_alone())
    from pkdp_pipeline.ledger import Entry

    reserved = publication.reserve()
    if isinstance(reserved, Entry):
        return publication.replayed(reserved)
    release = None
    try:
        release = made(reserved.certificate)
        entry, was_there = ledger.publish(reserved, release.to_bytes(), release.id)
    except BaseException as error:
        # What is not stored, nobody has seen; where it was stored before a stop, this changes nothing. A charge that
        # cannot be given back now is taken over by the next run; what went wrong matters more.
        if trusted and (release is None or not isinstance(error, Exception)):
            with suppress(PkdpError):
                ledger.give_back(reserved)
        raise
    if not was_there:
        return release
    if publication.revise:
        # Another run took the same reservation and was first: its table was made from other data.
        raise TemporaryError(
            "another run has published a revision of the same question meanwhile; of this one nothing was "
            "published or charged: run again, which publishes one more revision."
        )
    return publication.replayed(entry)


def read_through(frame: Any, question: Question) -> None:
    """Read a frame as `publish` does for this question, and let nothing out.

    Raises
    ------
    Exception
        Whatever the question could fail with because of the data.
    """
    public_table(frame, question)


def question_of(kind: type[Count | Histogram], options: Mapping[str, Any]) -> tuple[Question, Publishing]:
    """Return the question of a call's keywords, and what `publish` takes beside it."""
    mechanism, publishing = (
        {name: options[name] for name in names if name in options}
        for names in ([field.name for field in fields(kind)], Publishing.__annotations__)
    )
    rest = {name: value for name, value in options.items() if name not in mechanism and name not in publishing}
    return Question(mechanism=kind(**mechanism), **rest), cast("Publishing", publishing)


def _published(frame: Any, kind: type[Count | Histogram], options: Mapping[str, Any]) -> Release:
    question, publishing = question_of(kind, options)
    release = publish(lambda: frame, question, **publishing)
    warn_of_another_frame(frame, question, release, publishing.get("ledger"))
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
    where : boolean Series, str or callable, optional
        The predicate: a boolean Series, a boolean column's name, a pandas query string, or a callable that
        is given the frame and returns a boolean Series. A missing answer is "no". All frames but pandas' take
        a column or a query string. None: every person. Whether a person counts must depend on her own rows alone: a
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
    return _published(frame, Count, {"where": where, **options})


@shows(HistogramOptions)
def histogram(frame: Any, by: str | Sequence[str], **options: Unpack[HistogramOptions]) -> Release:
    """Publish how many people are in each cell.

    Every person is in one cell or absent. Rows are read in this order: `where` keeps rows, `missing_unit`
    drops rows, `one_cell` chooses one cell for each person, `undeclared` makes people absent whose cell is
    not public. A rule looks at a person's own rows only.

    Parameters
    ----------
    frame : DataFrame or table
        As of `count`.
    by : str or sequence of str
        Columns that name a cell. A missing value is a key of its own, as in SQL's ``GROUP BY``; with a domain
        it is undeclared unless the domain has None.

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
    return _published(frame, Histogram, {"by": by, **options})


#: By question and table, the frame of which this process asked for it first; it may be gone by now. A table may have
#: several certificates, and so several ids.
_ASKED: dict[tuple[str, str], weakref.ref[object]] = {}


def warn_of_another_frame(frame: object, question: Question, release: Release, ledger: Ledger | None) -> None:
    """Warn where a release is a replay, and this process has it of another frame object. No data are read.

    What another process published is not known here: of that only the first frame that asks for it is remembered.
    """
    if ledger is None:
        return
    asked = question.key(ledger.dataset), release_id(release.table, "")
    known = _ASKED.get(asked)
    if release.replayed and known is not None:
        if known() is not frame:
            warnings.warn(
                f"{question.description!r} of {question.period} was asked of another frame before: what is returned is "
                "what was published, and this frame was not read. Put restrictions in where=, or publish changed data "
                "with revise=True.",
                UserWarning,
                stacklevel=_callers_level(),
            )
        return
    with suppress(TypeError):  # no reference can be kept to a frame of this kind
        _ASKED[asked] = weakref.ref(frame)


def _callers_level() -> int:
    """Return how far up the stack the code is that called this library, as seen from where it warns."""
    level, caller = 1, sys._getframe(1)
    while caller.f_back is not None and caller.f_globals.get("__name__", "").startswith("pkdp_pipeline"):
        level, caller = level + 1, caller.f_back
    return level
