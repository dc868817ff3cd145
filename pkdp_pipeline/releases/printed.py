"""A release as text: its public table, words in the place of suppressed counts, and sentences on what is counted.

Explaining: what a release would be, before anything is read, charged or published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.codec import parsed
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    DifferencingError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.context import Context, one_reading
from pkdp_pipeline.model.display import Bands
from pkdp_pipeline.model.mechanisms import (
    Count,
    Mechanism,
    Protects,
    Sum,
    cells_per_unit,
    key_columns,
    mechanism_from_dict,
    noised_below,
    value_columns,
)
from pkdp_pipeline.model.period import key_text
from pkdp_pipeline.model.wording import Speech, Worded, fitting
from pkdp_pipeline.plugins import view
from pkdp_pipeline.releases.derived import ExpectedError, expected_error
from pkdp_pipeline.releases.estimates import check_same_people, hidden_bounds
from pkdp_pipeline.releases.publish import Publication
from pkdp_pipeline.releases.release import Release, count_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.ledger.history import Spent

SUPPRESSED = "suppressed"
"""The word in the place of a count that is not published, where nothing else tells more of it."""

MAX_ROWS = 1000
"""So many rows of a table are shown; the others are in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A published table, as text.

    Parameters
    ----------
    columns : tuple of str
        The by-columns; none for a count.
    keys : tuple of tuple of str
        One tuple for each row, in the published order.
    counts : tuple of (int or None)
        None where the count is suppressed.
    more : int
        Rows that are left out here for their number; they are in the files.
    exact : tuple of (bool or None), optional
        Where small counts are noised: whether each count is exact, None where it is suppressed.
    bands : tuple of int, optional
        Where counts are shown in bands: the first count of each band.
    number : {"count", "sum"}
        The name of the column of numbers.
    reading : str, optional
        The mark of the reading of the data that it was counted from.
    """

    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    counts: tuple[int | None, ...]
    more: int = 0
    exact: tuple[bool | None, ...] | None = None
    bands: tuple[int, ...] | None = None
    number: str = "count"
    reading: str | None = None

    def words(self, mechanism: Mechanism) -> tuple[str, ...]:
        """Return the counts as text, given what made them: "≈" stands before a noised one, and a band is one."""
        exact = self.exact or [mechanism.noise is None] * len(self.counts)
        display = None if self.bands is None else Bands(self.bands)
        return tuple(count_text(count, sure, display) for count, sure in zip(self.counts, exact, strict=True))


def published_table(release: Release, most: int = MAX_ROWS) -> PublishedTable:
    """Return a public table as text, with about `most` rows."""
    rows, names = release.sealed.rows, key_columns(name for name, _ in release.sealed.cells.columns)
    number, place = fitting(len(rows), most), len(names)
    marked, context = noised_below(release.certificate.mechanism), release.certificate.context
    return PublishedTable(
        columns=tuple(map(key_text, names)),
        keys=tuple(tuple(map(key_text, row[:place])) for row in rows[:number]),
        counts=tuple(row[place] for row in rows[:number]),
        more=len(rows) - number,
        exact=tuple(row[-1] for row in rows[:number]) if marked else None,
        bands=bands_of(release.certificate.mechanism),
        number=value_columns(release.certificate.mechanism)[0],
        reading=None if context is None else context.reading,
    )


def bands_of(mechanism: Mechanism) -> tuple[int, ...] | None:
    """Return the first count of each band in which counts are shown, None where they are not."""
    return mechanism.display.edges if isinstance(mechanism.display, Bands) else None


def shown_count(count: int, bands: Sequence[int] | None) -> str:
    """Return a published count as a report prints it: in figures, or its band."""
    return f"{count:,}" if bands is None else Bands(tuple(bands)).text(count)


def withheld(
    table: PublishedTable, certificate: Mapping[str, Any], beside: Iterable[tuple[PublishedTable, Mapping[str, Any]]]
) -> list[str]:
    """Return what stands in the place of each suppressed count: the word, and what exact totals tell; else nothing.

    Parameters
    ----------
    table : PublishedTable
    certificate : mapping
        Its certificate's document.
    beside : iterable of (PublishedTable, mapping)
        Other tables about the same period, and their certificates' documents.
    """
    words = [SUPPRESSED if count is None else "" for count in table.counts]
    return [
        word if text is None else f"{word}: {text}"
        for word, text in zip(words, following(table, certificate, beside).texts, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Following:
    """The numbers that follow of suppressed counts from exact totals beside their table.

    Parameters
    ----------
    texts : list of (str or None)
        For each count, None where it is published, or nothing follows.
    apart : bool
        Whether totals were left out, because nothing says that they were counted from the table's reading of the data.
    totals : tuple of int
        The places of the tables beside it that are such totals.
    """

    texts: list[str | None]
    apart: bool = False
    totals: tuple[int, ...] = ()

    @property
    def remark(self) -> str:
        """A sentence on totals that were left out; empty where none were."""
        return _APART if self.apart else ""


_APART = (
    "Exact totals of these people are published, and nothing says that they were counted from the same reading of the "
    "data: people may have been corrected in between, so no interval of a suppressed count follows from them."
)


def following(
    table: PublishedTable, certificate: Mapping[str, Any], beside: Iterable[tuple[PublishedTable, Mapping[str, Any]]]
) -> Following:
    """Return what exact totals of the same reading of the data tell of each suppressed count, as text.

    The parameters are those of `withheld`.
    """
    nothing: list[str | None] = [None] * len(table.counts)
    if None not in table.counts or table.more or (terms := _terms(certificate))[0].k is None or not _adds_up(*terms):
        return Following(nothing)
    context, k = terms[1], terms[0].k or 0
    apart, bounds = False, [(0, k - 1)] * len(nothing)
    totals: list[tuple[list[tuple[str, ...]], dict[tuple[str, ...], int | None]]] = []
    fitting: list[int] = []
    for number, (other, document) in enumerate(beside):
        exact, about = _terms(document)
        if other.more or not _adds_up(exact, about) or not set(other.columns) < set(table.columns):
            continue
        places = [table.columns.index(name) for name in other.columns]
        groups = [tuple(key[place] for place in places) for key in table.keys]
        with suppress(ArgumentError):  # they are of other people, or suppressed themselves
            check_same_people(context, about, counted=not other.columns)
            if not one_reading(table.reading, other.reading):
                apart = True
                continue
            known = dict(zip(other.keys, other.counts, strict=True))
            bounds = hidden_bounds(table.counts, k, [*totals, (groups, known)])
            totals.append((groups, known))
            fitting.append(number)
    texts = [
        None
        if count is not None or (least, most) == (0, k - 1)
        else f"{least:,} follows exactly"
        if least == most
        else f"{least:,} to {most:,}"
        for count, (least, most) in zip(table.counts, bounds, strict=True)
    ]
    return Following(texts, apart, tuple(fitting))


def following_beside(release: Release, beside: Sequence[Release]) -> Following:
    """Return `following` of a release's table beside others of the same run."""

    def described(each: Release) -> tuple[PublishedTable, Mapping[str, Any]]:
        return published_table(each, len(each.sealed.rows)), parsed(each.certificate.to_json())

    # One by one: the others are read only where a count is suppressed.
    return following(*described(release), map(described, beside))


def _terms(certificate: Mapping[str, Any]) -> tuple[Mechanism, Context | None]:
    """Return the mechanism of a certificate's document, and its context without what several periods do not share."""
    context = certificate.get("context")
    about = None if context is None else replace(Context.from_dict(context), period=None, reading=None)
    return mechanism_from_dict(certificate["mechanism"]), about


def _adds_up(mechanism: Mechanism, context: Context | None) -> bool:
    """Return whether what is published without noise adds up to the people of declared cells, or counts them."""
    declared = isinstance(mechanism, Count) or (context is not None and context.cells == "declared")
    exact = mechanism.noise is None and mechanism.display is None
    return exact and declared and cells_per_unit(mechanism) == 1


def asked_sentence(
    unit: str,
    by: Sequence[str] | None,
    where: str | None,
    rules: Mechanism,
    summed: Sequence[str] | None = None,
) -> Worded:
    """Return one sentence on what is counted or summed, and what its mechanism does before it is published."""
    filtered = "" if where is None else f", where {where}"
    return Worded(lambda say: f"{counted_words(unit, by, summed)}{filtered}{steps_words(by, rules, say)}")


def counted_words(unit: str, by: Sequence[str] | None, summed: Sequence[str] | None = None) -> str:
    """Return what is counted, or `summed` as a context has it, to be followed by a filter."""
    what = f"Distinct {unit}" if summed is None else f"Sum of {', '.join(summed) or 'rows'}"
    return what + (f" by {', '.join(by)}" if by else "")


def steps_words(by: Sequence[str] | None, rules: Mechanism, say: Speech) -> str:
    """Return what a mechanism does before anything is published, to follow what is counted."""
    subject, steps = "a cell" if by else "the sum" if isinstance(rules, Sum) else "the count", []
    if isinstance(rules, Sum):
        there = " to a cell" if by else ""
        steps.append(f"a person adds {rules.bounds[0]} to {rules.bounds[1]}{there}")
    if (cells := getattr(rules, "cells_per_unit", None) or 1) > 1:
        steps.append(f"a person is counted in at most {cells} cells")
    marked = noised_below(rules)
    if marked:
        steps.append(f"{subject} of at least {say.threshold(rules.k or 0)} is exact, and a smaller one is marked")
    elif rules.k is not None:
        steps.append(f"{subject} is published only when it is at least {say.threshold(rules.k)}")
    if (complement := getattr(rules, "k_complement", None)) is not None:
        steps.append(f"{subject} is published only when the rest is at least {complement}")
    if rules.noise is not None:
        steps.append(f"{say.added(rules.noise.epsilon)}{' to marked ones' if marked else ''}")
    if rules.release_threshold is not None:
        shown = "a marked one" if marked else "it"
        steps.append(f"{shown} is shown only when the noisy number is at least {rules.release_threshold}")
    if rules.display is not None:
        steps.append(f"every published number is shown {rules.display.words}")
    return f": {'; '.join(steps)}." if steps else "."


def noise_sentence(error: ExpectedError, mechanism: Mechanism) -> str:
    """Return how far noise may have moved the published counts."""
    least = mechanism.release_threshold
    which = "Numbers with ≈ have noise" if noised_below(mechanism) else "With noise"
    if least is None and mechanism.display is not None:
        return f"{which}: 95 % of it is within ±{error.bound_95}; then numbers are shown {mechanism.display.words}."
    if least is None:
        return f"{which}: 95 % of such numbers are within ±{error.bound_95} of the counted ones."
    return (
        f"{which}: 95 % of it is within ±{error.bound_95}. Only noisy numbers of at least {least} are shown, so "
        f"those near {least} lean high."
    )


def corrected(revision: int) -> str:
    """Return that a table corrects others of its period; empty for the first. All before a revision are public."""
    if revision == 1:
        return ""
    earlier = "an earlier table is" if revision == 2 else f"{revision - 1:,} earlier tables are"
    return f"This is a correction: {earlier} public, too, and charged as well."


Outcome = Literal["publish", "replay", "refused"]
DELTA = 1e-6
"""Where ε is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """One budget, and how much of it is used for one of the totals that it holds.

    Attributes
    ----------
    budget : Budget
    part : {"partial_knowledge", "worst_case"}
    before : float
        The ε that the releases add up to at the budget's δ; for a budget of some days, in the fullest window.
        `math.inf` where no ε reaches that δ, and where they do not add up.
    after : float
        The same, with the release.
    complete : bool
        Whether every window was looked at; if not, the fullest one may hold more.
    """

    budget: Budget
    part: Literal["partial_knowledge", "worst_case"]
    before: float
    after: float
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """A release as it would be; made by `explain`. Printing it says it in words.

    Attributes
    ----------
    asked : str
        The publication, in the words of a ledger's entry.
    mechanism : Count or Histogram
    attacker : AttackerModel
    protects : {"presence", "value"}
    context : Context
        The facts of the publication: unit, rules for rows, period and data set.
    outcome : {"publish", "replay", "refused"}
    refused : PkdpError or None
        The error that publishing would raise.
    certificate : ReleaseCertificate or None
        The certificate that the release would carry. Of one that the ledger refuses for its budget or for want of
        evidence, the one that it refused; None where there is no honest one.
    statement : Statement or None
        The statement of that certificate, at δ = 1e-6.
    scenarios : tuple of Scenario
        The guarantees left where the attacker is stronger than declared; see `what_if`.
    error : ExpectedError
        The error that the noise would make, and when a count would be published at all; from public parameters alone.
    before : Certificate or None
        The total of the ledger's releases for this unit now.
    after : Certificate or None
        The total that they would have then; the same where nothing would be charged.
        None without a ledger, and where they do not add up.
    budgets : tuple of BudgetUse
        The budgets in force, and how much of each is used.

    Notes
    -----
    It is true of the ledger as it was. Where another release comes first, the certificate names another head of the
    chain, and it may be refused.
    """

    asked: str
    mechanism: Mechanism
    attacker: AttackerModel
    protects: Protects
    context: Context
    outcome: Outcome
    refused: PkdpError | None
    certificate: ReleaseCertificate | None
    statement: Any
    scenarios: tuple[Any, ...]
    error: ExpectedError
    before: Certificate | None = None
    after: Certificate | None = None
    budgets: tuple[BudgetUse, ...] = ()

    def plot(self, *, delta: float = DELTA, ax: Axes | None = None) -> Axes:
        """Draw what the release would guarantee; see `Certificate.plot`.

        Raises
        ------
        NotCertifiableError, DifferencingError, NoEvidenceError
            The error that publishing would raise, where there is no certificate.
        ConfigError
            If matplotlib is not installed.
        """
        if self.certificate is None:
            assert self.refused is not None
            raise self.refused
        return self.certificate.plot(delta=delta, ax=ax)

    def __repr__(self) -> str:
        return f"<Explanation: {view('explanation.heading')(self)}>"

    def __str__(self) -> str:
        return str(view("explanation.text")(self))

    def _repr_html_(self) -> str:
        return str(view("explanation.html")(self))


def explanation_of(publication: Publication) -> Explanation:
    """Return what publishing would do; the ledger stays as it is. See `pkdp_pipeline.explain`."""
    question, ledger = publication.question, publication.ledger
    sums: dict[str, Any] = {}
    if ledger is None:
        outcome, certificate, refused = _foreseen(publication)
        context = question.context()
    else:
        from pkdp_pipeline.ledger.reading import rehearsal

        with rehearsal(ledger) as trial:
            now = then = _sums(trial, question.unit)
            outcome, certificate, refused = _foreseen(replace(publication, ledger=trial))
            if refused is None:
                then = _sums(trial, question.unit)
            context = question.context(trial.dataset)
        budgets = tuple(_use(*both) for both in zip(now[1], then[1], strict=True))
        sums = {"before": now[0], "after": then[0], "budgets": budgets}
    return Explanation(
        asked=question.description,
        mechanism=question.mechanism,
        attacker=publication.attacker,
        protects=question.protects,
        context=(certificate and certificate.context) or context,
        outcome=outcome,
        refused=refused,
        certificate=certificate,
        statement=None if certificate is None else view("statement").of(certificate, DELTA),
        scenarios=() if certificate is None else view("what_if")(certificate.stated(DELTA), delta=DELTA),
        error=expected_error(question.mechanism),
        **sums,
    )


def _sums(ledger: Ledger, unit: tuple[str, ...]) -> tuple[Certificate | None, list[Spent]]:
    """Return what a unit's releases add up to, and what is used of the budgets."""
    from pkdp_pipeline.ledger.history import spent
    from pkdp_pipeline.ledger.rows import unit_text

    return ledger.known_total(unit), spent(ledger.totals(), unit_text(unit))


def _use(before: Spent, after: Spent) -> BudgetUse:
    return BudgetUse(
        budget=before.budget,
        part=before.measure,  # type: ignore[arg-type]  # a budget's measures are these parts
        before=before.epsilon,
        after=after.epsilon,
        complete=before.complete and after.complete,
    )


def _foreseen(publication: Publication) -> tuple[Outcome, ReleaseCertificate | None, PkdpError | None]:
    """Return what would become of a publication, and charge it: its ledger is a rehearsal."""
    from pkdp_pipeline.ledger import Entry

    offered: list[ReleaseCertificate] = []
    try:
        if publication.ledger is None:
            return "publish", publication.certified_alone(), None
        answer = publication.reserve(offered.append)
        if not isinstance(answer, Entry):
            return "publish", offered[-1], None
        return "replay", publication.replayed(answer).certificate, None
    except (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError) as error:
        error.__cause__ = error.__context__ = None  # an explanation holds on to nothing that its error passed through
        return "refused", offered[-1] if offered else None, error.with_traceback(None)
