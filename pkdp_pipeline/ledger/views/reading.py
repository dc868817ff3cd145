"""Reading: a ledger that exists, opened to be read, and its events as JSON; nothing is created or written in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.adding_up import unit_named
from pkdp_pipeline.ledger.chain import Event, checked
from pkdp_pipeline.ledger.database import open_database
from pkdp_pipeline.ledger.rows import unit_text
from pkdp_pipeline.model import VERSION
from pkdp_pipeline.model.spelling import folded


@contextmanager
def open_for_reading(location: str, dataset: str | None = None) -> Iterator[Ledger]:
    """Open one data set of a ledger.

    Parameters
    ----------
    location : str
        A path or a ``postgresql://`` URL.
    dataset : str, optional
        None: the only one there is.

    Raises
    ------
    ArgumentError
        If there are several data sets and none, or one that is not there, is named.
    LedgerError, TemporaryError
        If there is no ledger, or it cannot be used.
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

    Parameters
    ----------
    units : sequence of str
        See `unit_text`.
    columns : sequence of str
        Columns of the one asked for.
    each_row : bool
        Whether the one in which every row is a person is asked for.

    Raises
    ------
    ArgumentError
        If there is no such unit.
    """
    if each_row and columns:
        raise ArgumentError("--unit and --each-row exclude each other: a person is a value of columns, or a row.")
    if not each_row and not columns:
        return list(units)
    asked = unit_text(() if each_row else columns)
    if asked not in units:
        named = "; ".join(map(unit_named, units)) or "none, nothing is published"
        raise ArgumentError(f"--unit must be a privacy unit the data set has releases for: {named}.")
    return [asked]


SCHEMA = "pkdp-ledger/1"
"""Name and version of the JSON form; `pkdp_pipeline/schemas/ledger.v1.json` describes it."""


def exported(ledger: Ledger) -> Iterator[str]:
    """Yield the JSON text piece by piece; each event is a line, checked to continue the chain.

    Raises
    ------
    LedgerError
        If the chain is broken; the text ends there and is no JSON.
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

    Raises
    ------
    ArgumentError
        If the file is the ledger.
    ConfigError
        If it cannot be written.
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
