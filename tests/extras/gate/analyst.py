"""A database with people in it, a policy for analysts, and what may not change when an analyst tries something."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.releases.release import Release

PEOPLE = """
CREATE TABLE events AS
SELECT i AS uid, ['US', 'NO', 'DE', 'SE'][1 + i % 4] AS country, i % 3 = 0 AS flag, (i % 7)::TINYINT AS age,
    DATE '2020-01-01' + (i % 2)::INT AS day, 'secret' || i AS note
FROM range(400) t(i);
CREATE TABLE hidden AS FROM events;
CREATE VIEW adults AS FROM events WHERE age > 2;
"""


def policy(**further: Any) -> dict[str, Any]:
    """Return the policy of the public interface, with what a test adds."""
    table = {"unit": "uid", "columns": ["country", "flag"], "k": 20, "domains": {"country": ["US", "NO", "DE"]}}
    return {"attacker": {"p_max": 0.1}, "tables": {"events": table}, **further}


@cache
def _people() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(PEOPLE)
        return path.read_bytes()


def database(folder: Path) -> Path:
    """Make the database."""
    path = folder / "people.duckdb"
    path.write_bytes(_people())
    path.chmod(0o600)
    return path


def histogram(by: Any = "country", **further: Any) -> dict[str, Any]:
    """Return a question for a histogram of the people."""
    return {"table": "events", "histogram": by, **further}


def count(**further: Any) -> dict[str, Any]:
    """Return a question for a count of the people."""
    return {"table": "events", "count": True, **further}


def rows(release: Release) -> list[tuple[Any, ...]]:
    """Return a release's rows; None where suppressed."""
    table = release.table.astype(object).where(release.table.notna(), None)
    return list(table.itertuples(index=False, name=None))


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A gate, and the files around it."""

    gate: Gate
    folder: Path
    ledger: Ledger

    def state(self) -> tuple[object, ...]:
        """Return what a refused question leaves as it was: files, data and ledger."""
        files = sorted(path for path in self.folder.rglob("*") if "ledger" not in path.name)
        contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.is_file()]
        return files, contents, self.ledger.head(), len(list(self.ledger.entries(given_back=True)))
