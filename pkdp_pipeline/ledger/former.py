"""Former names: what schema 1 called the data set and the period of a release that is asked for otherwise today.

A request's key covers both names as they were written, so the same request has another key today. The release is
found by asking under its former names; where nobody can tell whether its period is the one asked about, the
request is refused, lest the same numbers are drawn twice.
"""

from __future__ import annotations

import copy
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from pkdp_pipeline.errors import ArgumentError, DifferencingError
from pkdp_pipeline.ledger.database import Database
from pkdp_pipeline.ledger.entries import Entries
from pkdp_pipeline.ledger.overlap_cases import unnamed
from pkdp_pipeline.ledger.standing import Standing
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.model.spelling import folded
from pkdp_pipeline.model.wording import Speech, Worded

if TYPE_CHECKING:
    from pkdp_pipeline.ledger.entry import Entry
    from pkdp_pipeline.ledger.ledger import Ledger
    from pkdp_pipeline.releases.request import Request

__all__ = ["Former", "find_former", "former_entry", "renamed"]

_MARK = "in schema 1 "
_LABEL = "label of entry no. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """The names under which schema 1 published a release, as they were written."""

    dataset: str
    period: str

    def to_where(self) -> str:
        """Return what a standing records in place of its predicate, which schema 1 did not keep."""
        return _MARK + json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, standing: Standing) -> Former | None:
        """Return the former names that a standing records, or None."""
        if not standing.opaque or standing.where is None or not standing.where.startswith(_MARK):
            return None
        try:
            return cls(**json.loads(standing.where.removeprefix(_MARK)))
        except (TypeError, ValueError):
            return None

    def may_be(self, period: Period) -> bool:
        """Return whether a period that was a label, and would be taken for a date today, may be `period`.

        Only the years it names can tell, one more on either side: a fiscal year begins in the year before.
        """
        years = [int(year) for year in re.findall(r"(?=((?:19|20)\d\d))", unicodedata.normalize("NFKC", self.period))]
        if not years or period.first is None or period.last is None:
            return True
        return period.first.year <= max(years) + 1 and period.last.year >= min(years) - 1


def renamed(text: str, sequence: int) -> str:
    """Return a period of schema 1 in today's spelling.

    One that was a label then, and would be taken for a date today, gets another name. Like every label it
    overlaps all periods with dates.
    """
    try:
        return Period.parse(text).text
    except ArgumentError:
        return _LABEL + "".join("abcdefghij"[int(digit)] for digit in str(sequence))


def find_former(ledger: Ledger, request: Request) -> Entry | None:
    """Return the entry that `ledger` holds for a request under former names, or None; see `former_entry`.

    Ask when `Ledger.find` knows nothing under the request's own key.
    """
    entry = former_entry(ledger._database, ledger.dataset, request)
    return None if entry is None else ledger._entries.read(entry)


def former_entry(db: Database, dataset: str, request: Request) -> int | None:
    """Return the id of the entry that schema 1 published for this very request under other names, or None.

    Parameters
    ----------
    db : Database
    dataset : str
        In the spelling the ledger keeps.
    request : Request
        One that is not found under its own key, and is not to be published anew.

    Raises
    ------
    DifferencingError
        If the same question was published about a period whose name cannot be compared any more, and which may
        be the period asked about.
    """
    period = Period.parse(request.period)
    entries = Entries(db)
    for standing in _marked(db, dataset, period):
        former = Former.of(standing)
        compared = not standing.period.startswith(_LABEL)
        if former is None or (compared and standing.period != period.text):
            continue
        entry = entries.published(dataset, _under(request, former.period).key(former.dataset))
        if entry is None:
            continue
        if compared:
            return entry
        if former.may_be(period):
            start = (
                f"the same question was published for data set {dataset!r} under the period {former.period!r}, which a "
                f"former version took for a label; it may be {period.text!r}, and its numbers would be drawn a second "
                f"time. Read the published ones with pkdp ledger show (entry {entry}); if it is another time, "
            )
            raise DifferencingError(Worded(partial(_maybe_published, request.description, start)))
    return None


def _marked(db: Database, dataset: str, period: Period) -> Iterator[Standing]:
    """Yield the standings of releases that had other names, of this period or of one that cannot be compared."""
    days = period.days()
    values: dict[str, object]
    if days is None:
        named, values = "label = :label", {"label": folded(period.text)}
    else:
        named, values = "first_day = :first AND last_day = :last", {"first": days[0], "last": days[1]}
    for condition, given in (
        (named, values),
        ("label >= :start AND label < :stop", {"start": _LABEL, "stop": _LABEL[:-1] + "!"}),
    ):
        rows = db.execute(
            f"SELECT standing FROM holding WHERE dataset = :dataset AND {condition} AND standing LIKE :mark "
            "ORDER BY entry",
            dataset=dataset,
            mark=f'%"where":"{_MARK}%',
            **given,
        )
        for row in rows:
            yield Standing.from_dict(json.loads(row[0]))


def _under(request: Request, period: str) -> Request:
    """Return the request with its period as it was written, which its constructor would spell anew."""
    former = copy.copy(request)
    object.__setattr__(former, "period", period)
    return former


def _maybe_published(asked: str, start: str, say: Speech) -> str:
    if not say.names_releases:
        return unnamed(repr(asked))
    return f"{start}{say.revise}, which charges another release."
