"""From a question to the SELECT that a table macro runs: column names and types now, the release when it runs."""

from __future__ import annotations

from collections.abc import Sequence

from pkdp_pipeline.duckdb.spec import Spec
from pkdp_pipeline.duckdb.tables import literal, quoted

__all__ = ["planned"]


def planned(spec: Spec, columns: Sequence[tuple[str, str]], release: str) -> str:
    """Return a SELECT of the typed key columns and ``count``.

    Parameters
    ----------
    spec : Spec
    columns : sequence of (name, SQL type)
        The by-columns; the types come from a closed list, never from a user.
    release : str
        Name of the SQL function that publishes or replays. It is volatile: DuckDB calls it when the statement
        runs, and not under EXPLAIN.
    """
    keys = [
        f"CAST(cell.keys[{position}] AS {kind}) AS {quoted(name)}, "
        for position, (name, kind) in enumerate(columns, start=1)
    ]
    question = literal(spec.to_json())
    return f"SELECT {''.join(keys)}cell.count AS count FROM (SELECT unnest({release}({question})) AS cell)"
