"""Tables of databases as a job file names them: SQL for a name, or for a query as it stands."""

from __future__ import annotations

import re

from pkdp_pipeline.engines.duckdb.statements import quoted
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.source_tables import DuckDBSourceTable, PostgresSourceTable

__all__ = ["rows_sql"]

_PART = re.compile(r'"((?:[^"]|"")+)"|([^."][^.]*)')


def rows_sql(table: DuckDBSourceTable | PostgresSourceTable) -> str:
    """Return SQL that stands for the rows after FROM.

    The name of a table is taken as it is written, capitals and all; a part with a dot in it stands in double quotes.

    Raises
    ------
    ConfigError
        If it is no name of a table.
    """
    if table.query is not None:
        # A comment at its end must not take the bracket with it.
        return f"({table.query.strip().rstrip(';')}\n)"
    parts: list[str] = []
    name, position = str(table.table), 0
    while (found := _PART.match(name, position)) is not None:
        parts.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        position = found.end()
        if position == len(name) and len(parts) <= 2:
            return ".".join(map(quoted, parts))
        if name[position : position + 1] != ".":
            break
        position += 1
    raise ConfigError(
        f'source.table {name!r} is no name of a table: write "schema.table", and a part that has a dot in it in double '
        "quotes."
    )
