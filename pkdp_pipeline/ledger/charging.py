"""Charging: a reservation made or taken over, held to the budgets; the caller's transaction holds it together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import ReleaseCertificate
from pkdp_pipeline.errors import BudgetExceededError, NoEvidenceError
from pkdp_pipeline.ledger.account import Account, Bundles, add_up, unit_named
from pkdp_pipeline.ledger.admission import Admission, admit
from pkdp_pipeline.ledger.chain import Budget, Terms, json_text
from pkdp_pipeline.ledger.records import Records
from pkdp_pipeline.ledger.rows import Entry, Reservation, Row
from pkdp_pipeline.ledger.totals import LedgerTotals, delta_of, drawn, epsilon_of
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.model.wording import Speech, Worded, rounded_up

Result = TypeVar("Result")

_MAX_NAMED = 10
"""How many other data sets are named."""


class Work(Protocol):
    """Something to be computed that needs no ledger and can be pickled."""

    @property
    def key(self) -> Hashable:
        """All that the result depends on."""

    def __call__(self) -> Any:
        """Compute it."""


Run = Callable[[Work], Any] | None
"""A function that does a `Work`, in another process for example; None: it is done where it is wanted."""


class Outside:
    """Has what a transaction needs computed while no transaction is open, so that nobody waits for it.

    Inside, what is not computed yet ends the transaction, which changes nothing; then it is computed, and the
    transaction begun anew: what others have charged meanwhile is then something else to be computed. `run` computes;
    where it is None, it is done inside.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._results = run, dict[Hashable, Any]()

    def __call__(self, work: Work) -> Any:
        """Return the result of some work, inside a transaction."""
        if self._run is None:
            return work()
        if work.key not in self._results:
            raise _WantedError(work, self._run)
        return self._results[work.key]

    def through(self, transaction: Callable[[], Result]) -> Result:
        """Return what `transaction` does, a function that begins one, and asks this object inside."""
        # Optimistic retry: a result counts only where the transaction asks for that very work once more.
        while True:
            try:
                return transaction()
            except _WantedError as wanted:
                work, run = wanted.work, wanted.run
            self._results[work.key] = run(work)


class _WantedError(Exception):
    def __init__(self, work: Work, run: Callable[[Work], Any]) -> None:
        super().__init__()
        self.work, self.run = work, run


@dataclass(frozen=True, slots=True, kw_only=True)
class Charging:
    """The charge of one release. Use it only inside `Records.transaction`.

    Parameters
    ----------
    offer : callable
        See `Ledger.reserve`.
    terms : Terms
        Those in force.
    total_is_known : bool
        Whether the release is to be certified against attackers who know who is there.
    compute : callable
        Returns the result of a `Work`: the certificate, and the sums that the release is held to.
    """

    records: Records
    key: str
    standing: Facts
    offer: Callable[[Admission, str], Any]
    terms: Terms
    total_is_known: bool
    compute: Callable[[Work], Any]

    def charge(self, *, revise: bool) -> Reservation | Entry:
        """Reserve the release, or take a reservation over; the entry where it is published and not to be revised.

        Raises `PkdpError` if it may not be published, see `Ledger.reserve`; the caller rolls the transaction back.
        """
        latest = self.records.charged(self.key)
        published = None if revise or latest is None else self.records.published(self.key)
        if published is not None:
            return published
        if latest is not None and latest.state == "reserved":
            return self._taken_over(latest)
        return self._reserved(1 if latest is None else latest.revision + 1)

    def _reserved(self, revision: int) -> Reservation:
        # Write-ahead: the charge is committed before any data are read, so no crash can leave a release uncharged.
        certificate = self._offered(self.records.head())
        facts, terms, text = self.standing, self.terms, certificate.to_json()
        texts = {"standing": json_text(facts.to_dict()), "terms": json_text(terms.to_dict()), "certificate": text}
        row, event = self.records.record("reserved", self.key, revision, **texts)
        entry = Entry(row, facts, terms, text, None, None, event.created_at, event.previous, event.hash)
        self._hold(entry)
        return Reservation(entry, certificate)

    def _hold(self, entry: Entry) -> None:
        """Refuse a release just charged that does not add up with the others, or exceeds a budget."""
        new = _is_new(self.records, entry.row, self.terms)
        if self.terms.budgets or new or self.terms.evidence:
            whole = bool(self.terms.budgets) or new
            totals = LedgerTotals.read(self.records, self.terms, beside=None if whole else entry.row)
            check = ChargeCheck(totals=totals, entry=entry, new=new, budgets=self.terms)
            if not check.holds_as_drawn:
                self.compute(check)

    def _taken_over(self, left: Row) -> Reservation:
        """Finish what another run of the same request has reserved, charged once.

        The release is admitted, certified and held to the budgets anew, as if nothing had been reserved. Where
        terms and certificate are those of the reservation, it stands, and its own run may still publish it;
        otherwise it is given back and the release is charged again.
        """
        entry = self.records.read(left.id)
        certificate = self._offered(entry.head, instead_of=left.id)
        if (self.terms, certificate.to_json()) == (entry.terms, entry.certificate):
            self._hold(entry)
            return Reservation(entry, certificate, taken_over=True)
        self.records.record("given_back", self.key, left.revision)
        return self._reserved(left.revision)

    def _offered(self, head: str, instead_of: int | None = None) -> ReleaseCertificate:
        allowed = admit(
            self.records, self.standing, self.terms, total_is_known=self.total_is_known, instead_of=instead_of
        )
        offered = self.offer(allowed, head)
        certificate: ReleaseCertificate = (self.compute(offered) if callable(offered) else offered).written()
        allowed.check_told(certificate)
        return certificate


def name_others(records: Records, does: str = "starts in") -> None:
    """Name the ledger's other data sets where one is new: a name mistyped would be about other people."""
    others = [name for name in records.datasets() if name != records.dataset]
    if others:
        more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
        named = ", ".join(map(repr, others[:_MAX_NAMED])) + more
        warnings.warn(
            f"data set {records.dataset!r} {does} a ledger that holds {named}; "
            "releases of different data sets are never added up. Where the same people are meant, give that name.",
            stacklevel=2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeCheck:
    """The sums that a release is held to, just charged or certified anew; what they need of the ledger is in it.

    Parameters
    ----------
    totals : LedgerTotals
        With the release, under the terms by which releases add up; where there is no budget, and it is not `new`, those
        of its component are enough.
    entry : Entry
        The release as it is.
    new : bool
        Whether it may take the total away; see `_is_new`.
    budgets : Terms
        Those whose budgets hold.
    former : Row, optional
        The release as it was charged before it was certified anew; nothing takes that off the totals.
    """

    totals: LedgerTotals
    entry: Entry
    new: bool
    budgets: Terms
    former: Row | None = None

    @property
    def key(self) -> Hashable:
        """All that the outcome depends on, messages aside: the same release is the same one under another number."""
        row = self.entry.row
        rows = frozenset(other if other.id != row.id else other._replace(id=0) for other in self.totals.account.rows)
        return row.part, self.former, self.new, self.totals.terms, self.budgets, rows

    @property
    def holds_as_drawn(self) -> bool:
        """Whether nothing but budgets is asked, and exact sums of the noise, which take no time, fit into them."""
        return not self.new and not self.totals.terms.evidence and self._budgeted.holds_as_drawn

    @property
    def _budgeted(self) -> BudgetCheck:
        others = self.totals.account.without(self.entry.row.id)
        before = others if self.former is None else others.plus(self.former)
        under_budgets = replace(self.totals, terms=self.budgets)
        return BudgetCheck(under_budgets, self.entry, before, others, again=self.former is not None)

    def __call__(self) -> None:
        """Do the sums.

        Raises `BudgetExceededError` if a budget is exceeded, with what was spent, what is asked for and what is
        allowed; `NoEvidenceError` if the release cannot be added up with the evidence declared, or takes the total away
        that there was, or there is a budget and no total.
        """
        row, totals = self.entry.row, self.totals
        if totals.terms.evidence and self.former is None:
            # The evidence may be about another kind of release, which no total could hold.
            component = Account(totals.account.component(row.id))
            for unit in component.units:
                add_up(component.bundles(unit), totals.parts, totals.terms.evidence, beside_others=False)
        if self.budgets.budgets or self.new:
            budgeted = self._budgeted
            if self.new:
                _check_still_adds_up(totals, budgeted.before, row)
            budgeted.hold()


def check_recertified(
    records: Records, entry: Entry, former: Row, *, recorded: Terms, terms: Terms
) -> ChargeCheck | None:
    """Return what a release's new certificate is held to; None where it counts as before.

    Parameters
    ----------
    entry : Entry
        The release as it is.
    former : Row
        As it was.
    recorded : Terms
        Under which the releases must add up as before.
    terms : Terms
        The budgets the totals may not exceed.
    """
    new = entry.row.part != former.part and _is_new(records, entry.row, recorded)
    if entry.row.part == former.part or not (new or terms.budgets):
        return None
    totals = LedgerTotals.read(records, recorded)
    totals.parts[former.part] = records.promise(former)  # `before` may be all that counts with it
    return ChargeCheck(totals=totals, entry=entry, new=new, budgets=terms, former=former)


def _is_new(records: Records, row: Row, terms: Terms) -> bool:
    """Return whether a release may take the total away.

    One more of a kind that is there already adds up as the others do, however many they are; and without evidence
    whatever is admitted adds up, unless something leaks beside some of it.
    """
    others = (
        "SELECT 1 FROM entry WHERE dataset = :dataset AND unit = :unit AND state <> 'given_back' AND id <> :id AND "
    )
    known = bool(records.execute(f"{others} part = :part LIMIT 1", **row._asdict()))
    if known or terms.evidence:
        return not known
    return bool(row.leaks) or bool(records.execute(f"{others} leaks = 1 LIMIT 1", **row._asdict()))


def _check_still_adds_up(totals: LedgerTotals, before: Account, row: Row) -> None:
    """Refuse what takes the unit's total away; where there was none before, nothing is lost."""
    own = before.bundles(row.unit)
    if not own:
        return
    try:
        totals.of(totals.account.bundles(row.unit))
    except NoEvidenceError:
        try:
            totals.of(own)  # the total before, but beside the units there are now
        except NoEvidenceError:
            return
        raise


_ADVICE = "Ask for less (more noise, a larger k, fewer releases)"
_ADVICE_DELTA = "Delta is used up: a larger release_threshold takes less of it, and more noise does not"
_ADVICE_AGAIN = "The table keeps the certificate it has. Ask about an attacker who knows less"
_MEASURES = {"partial_knowledge": "partial-knowledge total", "worst_case": "worst-case total"}


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """The total of one release and all others, held to the budgets.

    The release is in `totals`. `before` has the releases charged already; `prior` has the same without the release
    itself, where it was charged already and gets another certificate (`again`).
    """

    totals: LedgerTotals
    entry: Entry
    before: Account
    prior: Account
    again: bool = False

    def hold(self) -> None:
        """Hold the totals to the budgets.

        Raises `BudgetExceededError` if one is exceeded, `NoEvidenceError` if the releases do not add up.
        """
        for budget, unit, start, bundles in self._sums():
            self._compare(budget, unit, start, bundles)

    @property
    def holds_as_drawn(self) -> bool:
        """Whether the exact sums of the noise as it is drawn are within all budgets."""
        return all(self.totals.within_as_drawn(bundles, budget) for budget, _, _, bundles in self._sums())

    def _sums(self) -> Iterator[tuple[Budget, str, int | None, Bundles]]:
        """Yield each budget with a unit whose releases are held to it, the first day of the window, and its bundles."""
        account, row, units = self.totals.account, self.entry.row, self.before.units
        changed: dict[str, list[Row] | None] = {row.unit: [row]}
        for first, *others in self.before.met(row):
            if not others:  # what stood alone until now counts with its worst case only
                changed[first.unit] = [*(changed.get(first.unit) or ()), first]
        if not self.totals.terms.evidence and len(units) == 1 and units != [row.unit]:
            changed[units[0]] = None  # from now on all of these count beside another unit's
        for unit, rows in changed.items():
            for budget in self.totals.terms.budgets:
                if budget.window_days is None:
                    yield budget, unit, None, account.bundles(unit)
                    continue
                for start, bundles in account.windows(unit, budget.window_days, rows):
                    yield budget, unit, start, bundles

    def _compare(self, budget: Budget, unit: str, start: int | None, bundles: Bundles) -> None:
        """Hold releases of a unit, in a window that begins on the day `start`, to a budget."""
        if self.totals.within(bundles, budget):
            return
        total = self.totals.of(bundles)
        for measure in budget.measures:
            if delta_of(total, measure, budget.epsilon) <= budget.delta:
                continue
            where, prior = f"data set {self.entry.dataset!r}, unit {unit_named(unit)}", self.prior.bundles(unit)
            if budget.window_days is not None:
                where += f", {budget.window_days} days"
                where += "" if start is None else f" from {date.fromordinal(max(1, start)).isoformat()}"
                prior = self.prior.window(unit, budget.window_days, start)
            raise BudgetExceededError(self._refusal(budget, measure, where, total, prior=prior, bundles=bundles))

    def _refusal(
        self, budget: Budget, measure: str, where: str, total: Certificate, *, prior: Bundles, bundles: Bundles
    ) -> Worded:
        """Return the message."""
        subject = f"{self.entry.label!r} (period {self.entry.period})"
        if measure == "worst_case" and total.worst_case_bound is None:
            start = (
                f"{subject} has no guarantee against any attacker, or stands in a total that has none, and the budget "
                f"of {where} holds the worst-case total to epsilon = {budget.epsilon!r}: "
            )

            def remedy(say: Speech) -> str:
                if budget.part is not None:
                    return "put noise with a finite worst case on it"
                other = say.budget_of_part("partial_knowledge")
                return f"hold only the other total to it with {other}, or put noise on it"

            return Worded(lambda say: f"{start}{remedy(say)}. Nothing was charged.")
        part = self.totals.parts[self.entry.row.part]
        alone = _requested_epsilon(part, measure, budget)
        together = self.totals.epsilon(bundles, measure, budget.delta)
        excess = self._excess_remark(bundles, budget)
        named = _MEASURES[measure] if total.has_partial_knowledge else _MEASURES["worst_case"]
        message = (
            f"{subject} would exceed the budget of {where} for the {named}: prior: epsilon = "
            f"{_printed(self.totals.epsilon(prior, measure, budget.delta))}, requested: {alone}, together: "
            f"{_printed(together)}, allowed: {budget.epsilon!r} (all at delta = {budget.delta!r}){excess}. "
        )

        by_noise = together == math.inf and named == _MEASURES["worst_case"]
        hides = by_noise and getattr(getattr(part, "mechanism", None), "release_threshold", None) is not None
        usual = _ADVICE_DELTA if hides else _ADVICE

        def refused(say: Speech) -> str:
            advice = _ADVICE_AGAIN if self.again else f"{say.untouched}. {usual}"
            return f"{message}{advice}, or {say.larger_budget}, where you can argue it."

        return Worded(refused)

    def _excess_remark(self, bundles: Bundles, budget: Budget) -> str:
        """Return a remark where the exact sum is above the budget by less than anybody can see."""
        exact = self.totals.drawn(bundles)
        if exact is None or exact[1] > Fraction(repr(budget.delta)):
            return ""
        excess = exact[0] - Fraction(repr(budget.epsilon))
        if not 0 < excess < Fraction(1, 10**9):
            return ""
        return (
            f"; the exact sum is above the budget by {float(excess):.1g}, because the declared noise is no binary "
            "fraction: allow that much more, or a delta above 0"
        )


def _printed(epsilon: float) -> str:
    """Return an amount rounded up, the last bits of its float aside: 0.25 and 0.1 make 0.35, not 0.351."""
    return "none" if epsilon == math.inf else rounded_up(epsilon * (1.0 - 1e-12))


def _requested_epsilon(certificate: Certificate, measure: str, budget: Budget) -> str:
    """Return what a release asks for; where no ε reaches the budget's δ, the δ that it has at the budget's ε."""
    certified = epsilon_of(certificate, measure, budget.delta)
    epsilon = LedgerTotals.least(certified, drawn([(certificate, 1)]), budget.delta)
    if epsilon < math.inf:
        return _printed(epsilon)
    least = rounded_up(delta_of(certificate, measure, budget.epsilon))
    return f"none (its delta is {least} at epsilon = {budget.epsilon!r})"
