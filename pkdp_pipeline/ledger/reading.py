"""Reading: a ledger that exists, opened to be read, its events as JSON, and a copy to try a release on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.account import unit_named
from pkdp_pipeline.ledger.chain import Event, checked
from pkdp_pipeline.ledger.database import Database, NoLedgerError
from pkdp_pipeline.ledger.records import Records, open_database
from pkdp_pipeline.ledger.rows import unit_text
from pkdp_pipeline.ledger.sqlite_database import SqliteDatabase
from pkdp_pipeline.model.period import folded
from pkdp_pipeline.schemas import VERSION


def is_begun(location: str) -> bool:
    """Return whether there is a ledger at a path or a ``postgresql://`` URL; none is created.

    Raises `LedgerError` or `TemporaryError` if the database that a URL names cannot be used.
    """
    if "://" not in location:
        return Path(location).exists()
    try:
        open_database(location, create=False).close()
    except NoLedgerError:
        return False
    return True


@contextmanager
def open_for_reading(location: str, dataset: str | None = None) -> Iterator[Ledger]:
    """Open one data set of a ledger.

    `location`: a path or a ``postgresql://`` URL. `dataset`: None is the only one there is. Raises `ArgumentError` if
    there are several data sets and none, or one that is not there, is named; `LedgerError` or `TemporaryError` if there
    is no ledger, or it cannot be used.
    """
    with closing(open_database(location, create=False)) as database:
        names = [str(name) for (name,) in database.execute("SELECT name FROM dataset ORDER BY name")]
        listed = ", ".join(map(repr, names))
        if dataset is None and len(names) > 1:
            raise ArgumentError(f"the ledger holds several data sets, name one with --dataset: {listed}.")
        if dataset is not None and names and folded(dataset) not in map(folded, names):
            raise ArgumentError(f"--dataset must be one that the ledger holds: {listed}.")
        yield Ledger(database, dataset=dataset or (names or ["default"])[0])


def chosen_units(units: Sequence[str], columns: Sequence[str], *, each_row: bool) -> list[str]:
    """Return the privacy units asked for, out of those the data set has releases for; all of them by default.

    It is asked for by its columns, or `each_row` asks for the one in which every row is a person. Units are as
    `unit_text` writes them. Raises `ArgumentError` if there is no such unit.
    """
    if each_row and columns:
        raise ArgumentError("--unit and --each-row exclude each other: a person is a value of columns, or a row.")
    if not each_row and not columns:
        return list(units)
    unit = unit_text(() if each_row else columns)
    if unit not in units:
        named = "; ".join(map(unit_named, units)) or "none, nothing is published"
        raise ArgumentError(f"--unit must be a privacy unit the data set has releases for: {named}.")
    return [unit]


SCHEMA = "pkdp-ledger/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/ledger.v1.json` describes it."""


def exported(ledger: Ledger) -> Iterator[str]:
    """Yield the JSON text piece by piece; each event is a line, checked to continue the chain.

    Raises `LedgerError` if the chain is broken; the text ends there and is no JSON.
    """
    opening = {
        "schema": SCHEMA,
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "dataset": ledger.dataset,
        "head": ledger.head(),
        "terms": ledger.terms.to_dict(),
    }
    yield json.dumps(opening, indent=1).removesuffix("\n}") + ',\n "events": ['
    before = "\n"
    for event in checked(ledger.records.events(), dataset=ledger.dataset):
        yield before + json.dumps(_facts(event))
        before = ",\n"
    yield "\n]}\n"


def write_out(pieces: Iterable[str], out: Path, *, ledger: str) -> None:
    """Write a text to a file, which appears when it is complete; a device or a pipe is written to as it is.

    Raises `ArgumentError` if the file is the ledger, `ConfigError` if it cannot be written.
    """
    with suppress(OSError):
        if out.exists() and Path(ledger).exists() and out.samefile(ledger):
            raise ArgumentError("--out is the ledger itself; name another file.")
    try:
        out = out.resolve()  # where a symbolic link leads is what is meant
        whole = not out.exists() or out.is_file() or out.is_dir()
        target = out.with_name(f".{out.name}.{os.getpid()}.partial") if whole else out
        try:
            with target.open("w", encoding="utf-8") as stream:
                stream.writelines(pieces)
            if whole:
                os.replace(target, out)
        except BaseException:
            if whole:
                target.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"--out {str(out)!r} cannot be written: {error.strerror}.") from error


def _facts(event: Event) -> dict[str, Any]:
    """Return an event with its JSON texts as JSON; the released bytes stand by their sha256."""
    facts = {name: getattr(event, name) for name in _PUBLIC}
    facts |= {name: json.loads(facts[name]) for name in ("standing", "terms", "certificate") if facts[name] is not None}
    digest = None if event.content is None else hashlib.sha256(event.content).hexdigest()
    return {**facts, "content_sha256": digest}


_PUBLIC = tuple(name for name in Event.__dataclass_fields__ if name not in ("sequence", "dataset", "content"))


@contextmanager
def charging_together(ledger: Ledger) -> Iterator[Ledger]:
    """Yield a ledger in the same state, under the same terms: all that is done with it is one transaction.

    It is committed at the end, with one wait for the disk, or nothing is. The data set is locked meanwhile, so no data
    may be read inside. Raises `LedgerError` or `TemporaryError` if the ledger cannot be used or is locked.
    """
    database = _Within(ledger.records.database)
    with ledger.records.transaction():
        terms = ledger.terms  # of now: others may have recorded theirs while the lock was waited for
        inside = Ledger(database, dataset=ledger.dataset, budget=list(terms.budgets), evidence=list(terms.evidence))
        inside.target = ledger.target
        inside.records.parts = ledger.records.parts  # named by what they hold, so what is read stays true
        inside.records.accounts = ledger.records.accounts
        yield inside
        ledger.records.accounts = inside.records.accounts


@contextmanager
def rehearsal(ledger: Ledger) -> Iterator[Ledger]:
    """Yield a ledger as `charging_together` does, whose changes are taken back at the end.

    Several releases that are reserved inside are held to the rules and the budgets together, as if they were
    charged one after the other.
    """
    with suppress(_TakenBack), charging_together(ledger) as trial:
        yield trial
        raise _TakenBack


class _TakenBack(Exception):  # noqa: N818 - it tells of no error
    """Rolls the transaction back."""


class _Within:
    """A database inside a transaction that somebody else began and will end."""

    def __init__(self, database: Database) -> None:
        self.execute, self.check, self.location = database.execute, database.check, database.location

    def transaction(self, dataset: str) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Leave it open: it is not ours."""


@contextmanager
def copied(location: str, *, dataset: str, budget: Any = None, evidence: Any = None) -> Iterator[Ledger]:
    """Yield a copy of a ledger, in memory: a new one where there is none.

    An SQLite file is read as it is, page by page, and nothing is created beside it. Of a PostgreSQL database the
    data set's events are read, in one read-only transaction, and the copy is made from them. Raises `LedgerError` or
    `TemporaryError` if there is a ledger that cannot be read.
    """
    if "://" not in location:
        database = SqliteDatabase(location, copy=True)
    else:
        database = SqliteDatabase(":memory:")
        with (
            suppress(NoLedgerError),
            closing(Records(open_database(location, create=False), dataset)) as source,
            source.snapshot(),
        ):
            replay(source, database)
    with Ledger(database, dataset=dataset, budget=budget, evidence=evidence) as ledger:
        yield ledger


def replay(source: Records, database: Database) -> None:
    """Record in an empty ledger what the events of a data set say, held to no budget; its chain is the same."""
    target = Records(database, source.dataset)
    with target.transaction():
        for event in source.events():
            target.register()
            target.copy(event)
