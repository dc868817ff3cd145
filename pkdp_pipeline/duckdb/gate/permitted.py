"""PermittedReleases: the curator's releases behind the policy, which every question has to pass, however it is sent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.duckdb.cells import public_type, read_domain
from pkdp_pipeline.duckdb.filters import from_sql
from pkdp_pipeline.duckdb.gate.allowed import ARGUMENTS
from pkdp_pipeline.duckdb.gate.policy import Policy, TablePolicy
from pkdp_pipeline.duckdb.releases import CuratorReleases
from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import TableRef, column_named, lowered, resolve
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    LedgerError,
    NoEvidenceError,
    NotCertifiableError,
    PkdpError,
    TemporaryError,
)
from pkdp_pipeline.ledger import Entry, Ledger
from pkdp_pipeline.ledger.unreadable import mark_unreadable, unreadable_tables
from pkdp_pipeline.ledger.views.words import exactly
from pkdp_pipeline.model.keys import json_key
from pkdp_pipeline.model.wording import ANALYST, worded_for
from pkdp_pipeline.releases.publish import publish
from pkdp_pipeline.releases.release import Release
from pkdp_pipeline.releases.request import Request

if TYPE_CHECKING:
    import duckdb

__all__ = ["UNANSWERED", "PermittedReleases"]

Answer = TypeVar("Answer")

UNANSWERED = "the statement could not be answered; ask the curator."
#: Refusals that are about the question, the policy and what is published already; their texts may be read by anybody.
_REFUSALS = (BudgetExceededError, DifferencingError, NoEvidenceError, NotCertifiableError)
#: Says the same of columns that the table does not have and of those that the policy leaves out.
_LACKING = "which this gate does not offer"
#: Certificates of larger numbers take many seconds.
_MOST = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table of the policy, as the database has it."""

    name: str
    policy: TablePolicy
    found: TableRef
    allowed: Mapping[str, str]
    domains: Mapping[str, tuple[Any, ...]]
    curator: CuratorReleases


class PermittedReleases:
    """Answers the macros of an analyst's connection.

    Parameters
    ----------
    policy : Policy
    cursor : callable
        Returns a fresh cursor of the vault.
    ledger : Ledger

    Raises
    ------
    ConfigError
        If the policy does not fit the database; the message names the policy's key.

    Notes
    -----
    A question is first asked of no rows at all. What fails then is about the question, and an analyst is told. What
    fails only with rows may owe itself to somebody's data. So `read_tables` reads all rows before any question, and
    a table that cannot be read, then or later, answers no new one. The ledger remembers it: failures spell nothing out.
    """

    def __init__(self, policy: Policy, cursor: Callable[[], duckdb.DuckDBPyConnection], ledger: Ledger) -> None:
        self._policy, self._cursor, self._ledger = policy, cursor, ledger
        self._tables: dict[str, _Table] = {}
        self._unreadable: set[str] = set()
        self._shown: set[str] = set()
        self._made: dict[str, Release] = {}
        self._answered: dict[str, Release] = {}
        self._proceed: Callable[[], object] = tuple
        self.problem: PkdpError | None = None
        self._find_tables()

    def read_tables(self) -> None:
        """Read what may be asked of each table, without any question; refuse from now on what cannot be read.

        Raises
        ------
        LedgerError, TemporaryError
            If the ledger cannot be used.
        """
        for name in self._tables.keys() - self._refused():
            table = self._tables[name]
            try:
                table.curator.read(table.found, tuple(table.allowed), units=table.policy.units)
            except Exception:
                self._refuse(table)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The tables, as the policy names them, that answer no new question."""
        refused = self._refused()
        return tuple(table.name for name, table in self._tables.items() if name in refused)

    def _refused(self) -> set[str]:
        """Return the keys of the tables that could not be read: here, or by another gate of the same ledger."""
        known = self._unreadable | unreadable_tables(self._ledger)
        return {name for name, table in self._tables.items() if table.found.name in known}

    def _refuse(self, table: _Table) -> None:
        self._unreadable.add(table.found.name)
        mark_unreadable(self._ledger, table.found.name)

    def begin(self, proceed: Callable[[], None]) -> None:
        """Begin a statement; `proceed` raises when its time is over."""
        self._proceed, self.problem = proceed, None
        self._made, self._answered = {}, {}

    @property
    def made(self) -> tuple[Release, ...]:
        """The releases that the statement made or replayed, each once."""
        return tuple(self._made.values())

    def plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        """See `Releases.plan`."""
        return self.noted(lambda: self._plan(spec))

    def release(self, spec: Spec) -> Release:
        """See `Releases.release`."""
        return self.noted(lambda: self._release(spec))

    def published(self) -> Iterator[Entry]:
        """See `Releases.published`; only what this gate has shown, not all that the ledger holds."""
        entries = self.noted(lambda: list(self._ledger.entries()))
        return (entry for entry in entries if entry.state == "published" and entry.release_id in self._shown)

    def noted(self, answer: Callable[[], Answer]) -> Answer:
        """Return what is answered; DuckDB changes errors that pass through it, so they are kept here."""
        try:
            self._proceed()
            return answer()
        except PkdpError as error:
            self.problem = error
            raise
        except Exception as error:
            self.problem = unanswered(error)
        raise self.problem

    def _plan(self, spec: Spec) -> tuple[tuple[str, str], ...]:
        table, permitted = self._permitted(spec)
        by = self._request(table, permitted).by or ()
        return tuple((name, public_type(name, table.found.columns[name])) for name in by)

    def _release(self, spec: Spec) -> Release:
        table, permitted = self._permitted(spec)
        key = permitted.to_json()
        if key not in self._answered:
            self._answered[key] = release = self._publish(table, permitted)
            self._made[release.id] = release
            self._shown.add(release.id)
        return self._answered[key]

    def _publish(self, table: _Table, spec: Spec) -> Release:
        request = self._request(table, spec)
        if self._ledger.find(request.key(self._ledger.dataset)) is None:  # what is public goes on being replayed
            if lowered(table.name) in self._refused():
                raise ArgumentError(
                    f"table {table.name!r} cannot be read in full, so no new question about it is answered: ask the "
                    "curator for one that can."
                )
            self._rehearse(table, request)
        try:
            return table.curator.release(spec)
        except _REFUSALS as error:
            raise type(error)(worded_for(error, ANALYST) + _about_the_threshold(spec)) from None
        except TemporaryError:
            raise TemporaryError("the ledger is busy; ask the same again later.") from None
        except Exception as error:
            if not isinstance(error, LedgerError):
                with suppress(PkdpError):  # refused here, also where the ledger cannot tell others
                    self._refuse(table)
            raise unanswered(error) from None

    def _rehearse(self, table: _Table, request: Request) -> None:
        """Ask the question of no rows, so that what is wrong with it is told before any data are read."""
        cursor, curator = self._cursor(), table.curator
        try:
            asked = replace(request, target=curator.ledger.target)
            publish(lambda: cursor.sql(f"SELECT * FROM {table.found.sql} LIMIT 0"), asked, attacker=curator.attacker)
        except _REFUSALS as error:
            raise type(error)(worded_for(error, ANALYST)) from None
        finally:
            cursor.close()

    def _request(self, table: _Table, spec: Spec) -> Request:
        return table.curator.request(spec, table.found)

    # -- the policy ---------------------------------------------------------------------------------------------

    def _permitted(self, spec: Spec) -> tuple[_Table, Spec]:
        """Return the table, and the question as the policy has it; refuse what the policy does not allow."""
        table = self._table(spec.table)
        for argument, reason in ARGUMENTS.items():
            if reason is not None and getattr(spec, argument) is not None:
                raise ArgumentError(f"{argument} is not for analysts to choose: {reason}. Leave it out.")
        by = (
            None
            if spec.by is None
            else tuple(column_named("by", name, table.allowed, lacking=_LACKING) for name in spec.by)
        )
        if spec.filter is not None:
            from_sql(spec.filter, table.allowed, lacking=_LACKING)
        self._check_numbers(table, spec)
        domain = None if by is None else self._domain(table, by)
        pure = spec.k is None and spec.k_complement is None and (by is None or domain is not None)
        if pure and spec.noise is not None:
            self._check_pure_noise(table, spec.noise)
        return table, replace(
            spec,
            table=table.found.sql,
            database=None,
            schema=None,
            schemas=None,
            by=by,
            k=table.policy.k if spec.k is None and not (pure and spec.noise is not None) else spec.k,
            domain=domain,
            protects=None if by is None else table.policy.protects,
            undeclared=None if domain is None else table.policy.undeclared,
        )

    def _table(self, name: str) -> _Table:
        plain = name.strip()
        if len(plain) > 2 and plain[0] == plain[-1] == '"' and '"' not in plain[1:-1]:
            plain = plain[1:-1]
        table = self._tables.get(lowered(plain))
        if table is None:
            raise ArgumentError(
                f"table {name!r} is not in the policy; its tables are "
                f"{', '.join(repr(one.name) for one in self._tables.values())}."
            )
        return table

    def _check_numbers(self, table: _Table, spec: Spec) -> None:
        least = table.policy.k
        for argument in ("k", "k_complement"):
            value = getattr(spec, argument)
            if value is not None and value < least:
                raise ArgumentError(
                    f"{argument} must be at least {least} for table {table.name!r}: the policy allows nothing smaller."
                )
        for argument in ("k", "k_complement", "release_threshold"):
            value = getattr(spec, argument)
            if value is not None and abs(value) > _MOST:
                raise ArgumentError(f"{argument} must be at most {_MOST}.")
        if spec.noise is not None and not self._policy.budget:
            raise ArgumentError(
                "noise is not available: the policy sets no budget, and without one the same people's noised counts "
                "could be asked for again and again until the noise averages away. Leave noise out, or ask the curator "
                "for a budget."
            )

    def _check_pure_noise(self, table: _Table, noise: float) -> None:
        """Refuse noise that would show small counts nearly as they are, which no threshold holds back here.

        A budget for the worst case refuses it by itself; one for partial knowledge alone does not.
        """
        budgets = self._policy.budgets()
        most = min(budget.epsilon for budget in budgets)
        if noise > most and not any("worst_case" in budget.measures for budget in budgets):
            raise ArgumentError(
                f"noise without k must be at most {exactly(most)}, the smallest ε of the policy's budgets: a larger ε "
                f"is less noise, and small counts would show through it. Write a smaller one, or k := "
                f"{table.policy.k} as well."
            )

    def _domain(self, table: _Table, by: tuple[str, ...]) -> str | None:
        """Return the public cells of these columns as JSON, None where the policy has no values for any of them."""
        if not any(name in table.domains for name in by):
            return None
        values = {}
        for name in by:
            known = table.domains.get(name)
            if known is None and table.found.columns[name] == "BOOLEAN":
                known = (False, True)
            if known is None:
                declared = ", ".join(repr(one) for one in by if one in table.domains)
                raise ArgumentError(
                    f"by names {declared}, whose public values the policy lists, beside {name!r}, which has none: "
                    "their cells cannot be listed. Ask for each alone, or ask the curator for the public values."
                )
            values[name] = known
        if math.prod(map(len, values.values())) > self._policy.limits.rows:
            raise ArgumentError(
                f"by asks for every combination of the public values of {', '.join(map(repr, by))}: more cells than "
                f"the {self._policy.limits.rows} rows that the policy allows. Ask for fewer columns."
            )
        return _as_json(values)

    # -- the policy against the database ------------------------------------------------------------------------

    def _find_tables(self) -> None:
        seen: dict[str, str] = {}
        for name, policy in self._policy.tables.items():
            try:
                with closing(self._cursor()) as cursor:
                    table = self._found(name, policy, cursor)
                table.curator.check(table.found)
            except ArgumentError as error:
                raise ConfigError(f"the policy's tables.{name} does not fit the database: {error}") from None
            if table.found.sql in seen:
                raise ConfigError(
                    f"the policy's tables.{name} and tables.{seen[table.found.sql]} are the same table; keep one."
                )
            seen[table.found.sql] = name
            self._tables[lowered(name)] = table

    def _found(self, name: str, policy: TablePolicy, cursor: duckdb.DuckDBPyConnection) -> _Table:
        found = resolve(cursor, name)
        unit = tuple(column_named("unit", one, found.columns) for one in policy.unit)
        columns = [column_named("columns", one, found.columns) for one in policy.columns]
        order_by = [column_named("order_by", one, found.columns) for one in policy.order_by or ()]
        if unit and set(unit) <= set(columns):
            raise ArgumentError("columns has the whole unit: an analyst could ask about one person. Leave it out.")
        domains = {}
        for given, values in policy.domains.items():
            column = column_named("domains", given, found.columns)
            kinds = {column: public_type(column, found.columns[column])}
            read_domain(_as_json({column: values}), kinds)
            domains[column] = values
        return _Table(
            name=name,
            policy=policy,
            found=found,
            allowed={column: found.columns[column] for column in columns},
            domains=domains,
            curator=CuratorReleases(
                cursor=self._cursor,
                attacker=self._policy.attacker_model(),
                ledger=self._ledger,
                unit=unit or policy.privacy_unit,
                period=self._policy.period_of(policy),
                missing_unit=policy.missing_unit,
                units="exact",  # no answer may fail because of the data
                one_cell=policy.one_cell,
                order_by=order_by or None,
                trusted=False,
            ),
        )


def _about_the_threshold(spec: Spec) -> str:
    """Return what to add to a refusal where a threshold is what gives a noised release no worst case."""
    if spec.noise is None or spec.release_threshold is not None or (spec.k is None and spec.k_complement is None):
        return ""
    if spec.k_complement is not None:
        return (
            " (Which counts reach k_complement is decided by the exact ones, so the noise does not count here: leave "
            "k_complement out.)"
        )
    pure = "leave k out" if spec.kind == "count" or spec.domain is not None else "ask without k about listed columns"
    return (
        f" (Which counts reach k = {spec.k} is decided by the exact ones, so the noise does not count here: {pure}, or "
        "add a release_threshold well above k.)"
    )


def unanswered(error: BaseException | None = None) -> PkdpError:
    """Return the error for a failure that may owe itself to the data; a note for the curator has its type alone."""
    told = PkdpError(UNANSWERED)
    if error is not None:
        told.add_note(f"For the curator: {type(error).__module__}.{type(error).__name__}.")
    return told


def _as_json(values: Mapping[str, tuple[Any, ...]]) -> str:
    import decimal

    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, decimal.Decimal) else json_key(value)

    return json.dumps({name: [plain(value) for value in listed] for name, listed in values.items()})
