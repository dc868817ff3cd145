"""Gathering: a report from a ledger, which holds all that is public; no data are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pkdp_pipeline.display.content import Audience, Provenance, ReleaseView, Report, Series
from pkdp_pipeline.display.report.account import account_of, total_of
from pkdp_pipeline.display.report.promises import Guarantees, promise_of
from pkdp_pipeline.display.report.published import Published, ReadRelease
from pkdp_pipeline.display.report.subject import DayTotal, Subject
from pkdp_pipeline.display.report.tables import MOST_PERIODS, published_table, series_of
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.ledger.account import unit_text
from pkdp_pipeline.ledger.views.history import History
from pkdp_pipeline.ledger.views.reading import Reading
from pkdp_pipeline.model.plain_text import printable
from pkdp_pipeline.model.version import VERSION

__all__ = ["gather"]


def gather(
    reading: Reading,
    history: History,
    subject: Subject,
    *,
    period: str | None = None,
    together: DayTotal | None = None,
    audience: Audience = "public",
    delta: float = 1e-6,
) -> Report:
    """Return the report of one date, or of all that the job has published.

    Parameters
    ----------
    reading : Reading
        Inside a snapshot.
    history : History
        Of the same snapshot.
    subject : Subject
        Of a job that has published something.
    period : str, optional
        None: all dates.
    together : DayTotal, optional
        What everything public about the date adds up to; None where it is a single release, and for all dates.
    audience : {"public", "auditor"}, default "public"
    delta : float, default 1e-6
        At which every ε is stated.

    Raises
    ------
    ArgumentError
        If nothing is published of that date.
    """
    published = Published(ledger=reading.ledger, history=history, subject=subject)
    if period is not None and period not in published.periods:
        raise ArgumentError(
            f"nothing is published of {period}: the ledger holds releases of this job, as its file is now, for "
            f"{_stretch(published.periods)}. Name a date of these, or publish this one first."
        )
    shown = published.about(published.periods[-1] if period is None else period)
    guarantees = Guarantees(published.everything() if period is None else shown)
    total, reason = total_of(reading, subject)
    # To the public a ledger's other periods are nothing that has been published.
    periods = None if audience == "auditor" else published.periods
    account = account_of(
        reading, history, subject, audience=audience, delta=delta, total=total, reason=reason, periods=periods
    )
    if period is None and len(history.lines) > 1:
        unit = unit_text(subject.unit)
        own = all(line.holding.entry in subject.held for line in history.lines if line.holding.unit == unit)
        together = DayTotal(total=total, reason=reason, own=own)
    about = "" if period is None else f" about {printable(period)}"
    promises = guarantees.promises(delta)
    first = 0
    if together is not None and together.total is not None:
        documented = audience == "auditor" or together.own
        everything = promise_of(f"everything published{about}", together.total, delta, documented=documented)
        promises, first = (everything, *promises), 1
    return Report(
        title=printable(subject.title),
        period=_stretch(published.periods) if period is None else printable(period),
        audience=audience,
        lead=promises[0].statement if together is None or first else None,
        lead_reason="" if together is None else together.reason,
        promises=promises,
        releases=tuple(_view(one, subject, first + guarantees.place(one), delta) for one in shown),
        series=tuple(_series(published)) if period is None else (),
        ledger=account,
        checks=subject.checks if audience == "auditor" else (),
        provenance=Provenance(
            job=subject.job,
            digest=subject.digest,
            version=VERSION,
            theorems=tuple(dict.fromkeys(one for promise in promises for one in promise.statement.theorems)),
            head=published.last_of(shown if period is not None else None).hash,
        ),
    )


def _stretch(periods: Sequence[str]) -> str:
    return periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"


def _view(one: ReadRelease, subject: Subject, promise: int, delta: float) -> ReleaseView:
    release = one.release()
    mechanism = release.certificate.mechanism
    (asked,) = (asked.asked for asked in subject.releases if asked.name == one.name)
    return ReleaseView(
        name=one.name,
        period=one.period,
        asked=printable(asked),
        rule=release.error.suppression,
        table=published_table(release.table),
        k=mechanism.k,
        error=None if mechanism.noise is None else release.error,
        sentence=one.certificate().sentence(delta),
        promise=promise,
        id=release.id,
        revision=one.entry.revision,
        files=tuple(
            file for suffix in subject.suffixes if (file := f"{one.period}/{one.name}.{suffix}") in subject.files
        ),
    )


def _series(published: Published) -> Iterator[Series]:
    for asked in published.subject.releases:
        periods = published.named(asked.name)
        if periods:
            shown = periods[-MOST_PERIODS:]
            releases = {period: published.read(period, asked.name).release() for period in shown}
            yield series_of(asked.name, releases, more_periods=len(periods) - len(shown))
