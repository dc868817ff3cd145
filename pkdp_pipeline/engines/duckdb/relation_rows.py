"""The rows of a DuckDB relation that a question is about, and what is asked of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.errors import ConfigError, TemporaryError

if TYPE_CHECKING:
    import duckdb

Answer = TypeVar("Answer")

#: Rows in a batch of a stream: their arrays stay in the processor's caches.
_BATCH = 1 << 17
#: The operators of a plan that reads stored rows once, one by one.
_SCANS = frozenset({"PROJECTION", "FILTER", "SEQ_SCAN", "TABLE_SCAN", "PARQUET_SCAN", "READ_PARQUET"})


@dataclass(frozen=True, slots=True, eq=False)
class RelationRows:
    """What ``pkdp_rows`` names in a statement: columns of a relation, where a condition holds.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    selected : tuple of str
        SQL for the columns, such as ``"id" AS u0``.
    condition : str
        SQL.
    """

    relation: duckdb.DuckDBPyRelation
    selected: tuple[str, ...]
    condition: str = "true"

    def run(self, statement: str) -> Any:
        """Return the answer to what follows ``WITH pkdp_rows AS (…)`` as an Arrow table."""
        with self._query(statement) as query:
            return asked(lambda: query().to_arrow_table())

    def batches(self, statement: str) -> Iterator[Any]:
        """Yield such an answer as Arrow record batches, while DuckDB goes on reading."""
        with self._query(statement) as query:
            batches = iter(asked(lambda: query().to_arrow_reader(_BATCH)))
            while (batch := asked(lambda: next(batches, None))) is not None:
                yield batch

    def is_stored(self) -> bool:
        """Return whether the rows are read from storage one by one, so that reading them twice is cheap.

        Anything unknown is not, such as a join, a sample, a stream that can be read only once, and all rows in
        DuckDB 1, which gives no plan here.
        """
        with self._query("SELECT * FROM pkdp_rows", explain=True) as query:
            plan = asked(query)
            nodes = json.loads(asked(plan.fetchall)[0][1]) if plan is not None else [{"name": "UNKNOWN"}]
        names = set()
        while nodes:
            node = nodes.pop()
            names.add(node["name"].strip().upper().replace(" ", "_"))
            nodes.extend(node.get("children", ()))
        return names <= _SCANS

    @contextmanager
    def _query(self, statement: str, *, explain: bool = False) -> Iterator[Callable[[], Any]]:
        import duckdb

        # A name that no table the relation reads can have.
        source = f"pkdp_source_{secrets.token_hex(8)}"
        rows = f"SELECT {', '.join(self.selected)} FROM {source} WHERE {self.condition}"
        verb = "EXPLAIN (FORMAT JSON) " if explain else ""
        query = f"{verb}WITH pkdp_rows AS NOT MATERIALIZED ({rows}) {statement}"
        try:
            yield lambda: self.relation.query(source, query)
        finally:
            # DuckDB 1 leaves the name behind as a temporary view.
            with suppress(duckdb.Error):
                self.relation.query(source, f"DROP VIEW IF EXISTS {source}")


def asked(question: Callable[[], Answer]) -> Answer:
    """Return what DuckDB answers; what it says when it cannot could quote the data, and is not passed on."""
    import duckdb
    import pyarrow as pa

    problem, memory = "", False
    try:
        return question()
    except duckdb.Error as error:
        problem, memory = type(error).__name__, isinstance(error, duckdb.OutOfMemoryException)
    except (pa.ArrowException, OSError) as error:
        problem = "stopped while its rows were read"
        memory = isinstance(error, MemoryError) or "Out of Memory Error" in str(error)
    if memory:
        raise TemporaryError("there is not enough memory to count the relation now; try again when more is free.")
    raise ConfigError(
        f"the relation could not be counted ({problem}); check that its connection is open and free, that it can be "
        "read from start to end, and that where compares columns with constants of their own type."
    )
