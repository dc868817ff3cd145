"""Content: what a report says, as frozen values; every format shows these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pkdp_pipeline.extras.report.statement import GuaranteeCurve, KnowledgeCurve, Scenario, Statement
from pkdp_pipeline.ledger.chain import Budget
from pkdp_pipeline.ledger.history import Point
from pkdp_pipeline.ledger.words import budget_words
from pkdp_pipeline.model.mechanisms import Mechanism, mechanism_from_dict
from pkdp_pipeline.releases.derived import ExpectedError
from pkdp_pipeline.releases.printed import PublishedTable

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
