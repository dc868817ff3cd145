"""Content: what a report says, as frozen values; every format shows these and nothing else.

Explanation: as plain text of 80 characters a line, and as HTML for notebooks in the colours of their page.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from pkdp_pipeline.certificates.composed import ComposedCertificate
from pkdp_pipeline.extras.report import environment
from pkdp_pipeline.extras.report.statement import GuaranteeCurve, KnowledgeCurve, Scenario, Statement
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.history import Point, amount, budget_words
from pkdp_pipeline.model.mechanisms import Mechanism, mechanism_from_dict, noised_below
from pkdp_pipeline.model.period import exactly
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.derived import ExpectedError
from pkdp_pipeline.releases.printed import DELTA, PublishedTable

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.releases.printed import BudgetUse, Explanation

Audience = Literal["public", "auditor"]

EVERYTHING = "everything published"
"""Name of the promise about all releases of the ledger together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One guarantee, read in several ways: a certificate, or what several add up to.

    Parameters
    ----------
    name : str
        Its subject: the names of the releases that have it, or ``everything published``.
    knowledge : tuple of KnowledgeCurve
        None where only noise protects.
    scenarios : tuple of Scenario
        The first is the promise as declared.
    certificate : mapping
        The certificate's JSON document, from which every number here can be computed again. Empty for the public
        where it would show other releases than the job's published ones.
    """

    name: str
    statement: Statement
    curve: GuaranteeCurve
    knowledge: tuple[KnowledgeCurve, ...]
    scenarios: tuple[Scenario, ...]
    certificate: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseView:
    """One published release.

    Parameters
    ----------
    name : str
        Its name in the job file.
    asked : str
        The count, and the steps before it is published, in one sentence.
    rule : str
        When a count is published, in words (`ExpectedError.suppression`).
    error : ExpectedError or None
        The error that the noise makes; None without noise.
    sentence : str
        The guarantee in words.
    promise : int
        Which of the report's promises it has.
    files : tuple of str
        Names of its files, relative to the output directory; those that are there.
    """

    name: str
    period: str
    asked: str
    rule: str
    table: PublishedTable
    k: int | None
    error: ExpectedError | None
    sentence: str
    promise: int
    id: str
    revision: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One release over many periods: what was published about each cell in each of them.

    Parameters
    ----------
    name : str
        Its name in the job file.
    cells : tuple of str
        The cells, in the order of their keys; ``count`` or ``sum`` for one number. A cell of several columns is joined
        by `` / ``.
    periods : tuple of str
        In their order.
    counts : tuple of tuple of (int or None)
        For each period and cell; None where nothing is published about it.
    more_cells, more_periods : int
        How many are left out here: the cells published least often, the oldest periods.
    exact : tuple of tuple of (bool or None), optional
        Where small counts are noised: whether each count is exact, None where nothing is published.
    bands : tuple of int, optional
        Where counts are shown in bands: the first count of each band.
    number : {"count", "sum"}
        The kind of the numbers.
    """

    name: str
    cells: tuple[str, ...]
    periods: tuple[str, ...]
    counts: tuple[tuple[int | None, ...], ...]
    more_cells: int = 0
    more_periods: int = 0
    exact: tuple[tuple[bool | None, ...], ...] | None = None
    bands: tuple[int, ...] | None = None
    number: str = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """A declared budget, and how much of it is spent.

    Parameters
    ----------
    part : {"partial_knowledge", "worst_case"}
        Which total it limits; a budget on both is two lines.
    spent : float or None
        The total's ε at this δ, rounded up; for a window that of the fullest one. `math.inf` where none is
        certified, None where the releases do not add up, or not every window could be looked at.
    """

    words: str
    epsilon: float
    delta: float
    part: str
    window_days: int | None
    spent: float | None

    @classmethod
    def of(cls, budget: Budget, part: str, spent: float | None = None) -> Self:
        """Return one of the lines of a budget."""
        return cls(
            words=budget_words(budget, (part,)),
            epsilon=budget.epsilon,
            delta=budget.delta,
            part=part,
            window_days=budget.window_days,
            spent=spent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """The ledger's account of the job's privacy unit.

    Parameters
    ----------
    unit : str
        The privacy unit in words.
    releases : int
        Charged in all; `waiting` of them are not public yet.
    total : Statement or None
        The sum of everything; None where there is none.
    reason : str
        Why there is no total; empty where there is one.
    declared : tuple of str
        The evidence in force, in words.
    delta : float
        The δ at which `points` are.
    points : tuple of Point
        The sum of everything up to the end of a period, at the account's δ, without `at_one`. For the public
        only at periods of which the job has published something; others count in the next point, and after the last
        one in that.
    head : str
        The head of the chain.
    verify : str
        The command that checks the chain, ready to be pasted; for the public, ``LEDGER`` stands for where it is.
    remarks : tuple of str
        Sentences on what else the ledger holds: other jobs' releases, whose tables are not in the report, other
        privacy units, releases that are charged and not public.
    """

    unit: str
    releases: int
    waiting: int
    total: Statement | None
    reason: str
    declared: tuple[str, ...]
    budgets: tuple[BudgetLine, ...]
    delta: float
    points: tuple[Point, ...]
    head: str
    verify: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLine:
    """One rule about the input, and whether the data kept it; nothing of what was found."""

    rule: str
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the report comes from.

    Parameters
    ----------
    job : str
        The job file's name.
    digest : str
        SHA-256 of what the job file says.
    version : str
        Of this library.
    theorems : tuple of (str, str)
        Title and citation of what the promises rest on.
    head : str
        Hash of the ledger's event that holds the last of the releases shown.
    """

    job: str
    digest: str
    version: str
    theorems: tuple[tuple[str, str], ...]
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The publisher, and the author of the argument for the attacker, as declared; empty where nothing is.

    Parameters
    ----------
    title : str
        The report's title.
    argued_by, argued_on : str
        By whom the attacker was argued, and on which date.
    argument : str
        Why what is declared about the attacker is true.
    checked_on : str
        On which date the assumptions were last checked; `outdated` says that it was over a year before the report.
    """

    title: str = ""
    publisher: str = ""
    contact: str = ""
    argued_by: str = ""
    argued_on: str = ""
    argument: str = ""
    checked_on: str = ""
    outdated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a job has published about one date, or about all of them.

    Parameters
    ----------
    title : str
        The data set's name.
    period : str
        The date, or the first and the last one.
    audience : {"public", "auditor"}
        For the public the input checks are left out: that one was passed tells about the data.
    lead : Statement or None
        The guarantee that a reader meets first: that of the only release, or of everything together. None where
        several releases do not add up.
    lead_reason : str
        Why there is none; empty where there is one.
    promises : tuple of Promise
        The different guarantees; where `lead` is a total, its promise is the first.
    releases : tuple of ReleaseView
        The releases of the date; of the newest one where the report is about all of them.
    series : tuple of Series
        All dates; none in the report of one date.
    checks : tuple of CheckLine
        Empty for the public.
    about : About or None
        None where the job says nothing of it.
    """

    title: str
    period: str
    audience: Audience
    lead: Statement | None
    lead_reason: str
    promises: tuple[Promise, ...]
    releases: tuple[ReleaseView, ...]
    series: tuple[Series, ...]
    ledger: LedgerAccount
    checks: tuple[CheckLine, ...]
    provenance: Provenance
    about: About | None = None

    def mechanism(self, release: ReleaseView) -> Mechanism:
        """Return the mechanism of one of the releases."""
        return mechanism_from_dict(self.promises[release.promise].certificate["mechanism"])

    @property
    def heading(self) -> str:
        """The report's name: the title that is declared, else the data set's name."""
        return (self.about and self.about.title) or self.title


Table = list[tuple[str, ...]]

_WIDTH = 80
_BOUND = "\ue000"
"""Stands for a blank at which no line may end."""
_BECOMES = {
    "publish": "would be published",
    "replay": "is published already and would be replayed: no data would be read, nothing charged",
    "refused": "would be refused: nothing would be read or charged",
}


def statement_html(certificate: Certificate) -> str:
    """Return what a certificate says as HTML for notebooks."""
    return Statement.of(certificate).to_html()


def text_of(explained: Explanation) -> str:
    """Return the explanation as plain text."""
    from rich.console import Console

    from pkdp_pipeline.cli.screen import Screen

    sink = io.StringIO()
    screen = Screen(Console(file=sink, width=_WIDTH, color_system=None, markup=False, highlight=False, emoji=False))
    screen.say(heading(explained), indent=0)
    for title, sentences, table in _sections(explained):
        screen.head(title)
        for sentence in sentences:
            screen.say(sentence)
        if table:
            # No line of a cell begins or ends with an equals sign.
            bound = [[cell.replace(" = ", f"{_BOUND}={_BOUND}") for cell in row] for row in table[1:]]
            screen.table(table[0], bound)
    text = sink.getvalue().replace(_BOUND, " ")
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def html_of(explained: Explanation) -> str:
    """Return the explanation as HTML."""
    parts = ((title, texts, *(table[:1] or ((),)), table[1:]) for title, texts, table in _sections(explained))
    template = environment("").get_template("explanation.html.jinja")
    return template.render(heading=heading(explained), parts=parts, statement=explained.statement)


def _sections(explained: Explanation) -> Iterator[tuple[str, Sequence[str], Table]]:
    """Yield titles, each with sentences and a table, which may be empty and begins with its header."""
    if explained.refused is not None:
        yield "Why", [str(explained.refused)], []
    if explained.statement is not None:
        title = "The promise" if explained.refused is None else "The promise it would have made"
        yield title, [explained.statement.sentence, _in_short(explained.statement)], []
    noise = "No noise is added."
    if explained.mechanism.noise is not None:
        error = explained.error
        noise = (
            f"Expected error of the noise: {error.mean_absolute:.3g} on average, standard deviation "
            f"{error.standard_deviation:.3g}; it is within ±{error.bound_95} in 95 % of cases."
        )
    if noised_below(explained.mechanism):
        noise += f" Counts of at least {explained.mechanism.k} have none, and are marked as exact."
    yield "Published", [explained.error.suppression, noise], []
    if explained.scenarios:
        rows = [(scenario.words, scenario.verdict) for scenario in explained.scenarios]
        yield "If the attacker is stronger", [], [("if the attacker …", "what is left"), *rows]
    if explained.context.dataset is not None:
        yield f"The ledger of {explained.context.dataset!r}", [], _ledger_table(explained)


def heading(explained: Explanation) -> str:
    """Return what is asked and what would become of it, as one line."""
    period, dataset = explained.context.period, explained.context.dataset
    about = explained.asked if period is None else f"{explained.asked}, period {period}"
    charged = f", and charged to {dataset!r}" if dataset is not None and explained.outcome == "publish" else ""
    return f"{about}: {_BECOMES[explained.outcome]}{charged}."


def _in_short(statement: Statement) -> str:
    """Return the numbers of the certificate, rounded up."""
    epsilon, delta = statement.named
    reached = f"ε = {amount(epsilon)} at δ = {exactly(delta)}"
    if statement.epsilon == math.inf:
        reached = f"No ε is certified at δ = {exactly(statement.delta)}"
    others = ", ".join(f"{rounded_up(delta)} at ε = {rounded_up(epsilon)}" for epsilon, delta in statement.numbers)
    return f"{reached}. δ is at most {others}."


def _ledger_table(explained: Explanation) -> Table:
    """Return what the ledger's releases add up to, and what is used of every budget; where nothing is charged, now."""
    total = f"everything, ε at δ = {exactly(DELTA)}"
    rows = [("what", "now", "then"), (total, _total(explained.before), _total(explained.after))]
    rows += map(_used, explained.budgets)
    return [row[:2] for row in rows] if explained.outcome == "refused" else [*rows]


def _total(total: Certificate | None) -> str:
    if total is None:
        return "does not add up"
    if isinstance(total, ComposedCertificate) and not total.parts:
        return "nothing yet"
    return amount(total.epsilon(DELTA))


def _used(use: BudgetUse) -> tuple[str, str, str]:
    least = "" if use.complete else "at least "
    now, then = (f"{least}{amount(value)}" for value in (use.before, use.after))
    return f"budget {budget_words(use.budget, (use.part,))}", now, then
