"""What in the definition of a view makes a row depend on other rows, or on chance; the data are not read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.duckdb.tables import Place, literal, lowered, places, quoted

if TYPE_CHECKING:
    import duckdb

_NAME = r'(?:"(?:[^"]|"")+"|[^\s".(),]+)'
#: How the catalog writes what comes before the query of a view.
_HEAD = re.compile(
    rf"\ACREATE (?:TEMP )?VIEW (?:IF NOT EXISTS )?{_NAME}(?:\.{_NAME})* (?:\({_NAME}(?:, {_NAME})*\) )?AS "
)
_VIEWS = "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
_FUNCTIONS = """
SELECT DISTINCT lower(function_name), function_type = 'aggregate' FROM duckdb_functions()
WHERE function_type = 'aggregate' OR (stability = 'VOLATILE' AND function_name <> 'error')
"""


def link_warning(name: str, parts: Collection[str]) -> str:
    """Return what to say about something whose rows are linked by these parts."""
    return (
        f"{name} uses {', '.join(parts)}: one person's rows can then change the rows of others, or chance does, and no "
        "certificate about it holds. Let every row come from the rows of one person alone."
    )


def linking_views(connection: duckdb.DuckDBPyConnection, unit: Collection[str]) -> dict[str, list[str]]:
    """Return the views of a connection that have all columns of the unit and link rows: the names, and what does it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    unit : collection of str
        Empty where each row is a person.
    """
    views = _views(connection)
    if not views:
        return {}
    functions = _functions(connection)
    columns: dict[Place, set[str]] = {}
    for *place, column in connection.execute(
        "SELECT database_name, schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    ).fetchall():
        columns.setdefault((place[0], place[1], place[2]), set()).add(lowered(column))
    asked = {lowered(name) for name in unit}
    found = {
        ".".join(place[1:]): linking_parts(connection, f"FROM {'.'.join(map(quoted, place))}", (views, functions))
        for place in views
        if asked <= columns.get(place, set())
    }
    return {name.removeprefix("main."): parts for name, parts in found.items() if parts}


def linking_parts(connection: duckdb.DuckDBPyConnection, query: str, catalog: _Catalog | None = None) -> list[str]:
    """Return the parts of a query, and of the views that it reads, that make rows depend on others or on chance.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    query : str
        A SELECT.
    catalog : optional
        What the connection has, looked up before.

    Returns
    -------
    list of str
        In words, each once; empty where nothing was found. What macros and tables of other kinds do is not seen.
    """
    views, functions = catalog or (_views(connection), _functions(connection))
    ((database, schema),) = connection.execute("SELECT current_database(), current_schema()").fetchall()
    found: dict[str, None] = {}
    waiting, seen = [(query, (database, schema))], set()
    while waiting:
        text, at = waiting.pop()
        ((written,),) = connection.execute(f"SELECT json_serialize_sql({literal(text)})").fetchall()
        tree = json.loads(written)
        if tree.get("error"):
            found["a definition that cannot be looked at"] = None
            continue
        for node in _nodes(tree):
            found.update(dict.fromkeys(_parts(node, functions)))
            view = _view(node, views, at)
            if view is not None and view not in seen:
                seen.add(view)
                waiting.append((_HEAD.sub("", views[view], count=1), view[:2]))
    return list(found)


#: The views of a connection with their SQL; and which functions do not look at one row alone: whether they aggregate.
_Catalog = tuple[dict[Place, str], dict[str, bool]]


def _views(connection: duckdb.DuckDBPyConnection) -> dict[Place, str]:
    return {(row[0], row[1], row[2]): row[3] for row in connection.execute(_VIEWS).fetchall()}


def _functions(connection: duckdb.DuckDBPyConnection) -> dict[str, bool]:
    return dict(connection.execute(_FUNCTIONS).fetchall())


def _view(node: dict[str, Any], views: Iterable[Place], home: tuple[str, str]) -> Place | None:
    """Return the view that a node of a syntax tree names, None where it names something else."""
    if node.get("type") != "BASE_TABLE":
        return None
    parts = [part for key in ("catalog_name", "schema_name", "table_name") if (part := node.get(key))]
    known = {(lowered(one[0]), lowered(one[1]), lowered(one[2])): one for one in views}
    wanted = [*places(parts, *home), {("temp", "main", lowered(parts[-1]))}]
    return next((known[one] for turn in wanted for one in sorted(turn) if one in known), None)


def _parts(node: dict[str, Any], functions: dict[str, bool]) -> Iterator[str]:
    kind, group = node.get("type"), node.get("class")
    if kind in ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"):
        yield "LIMIT"
    if kind == "DISTINCT_MODIFIER" and node.get("distinct_on_targets"):
        yield "DISTINCT ON"
    if node.get("sample") is not None:
        yield "a sample"
    if group == "WINDOW":
        yield "a window"
    if group == "SUBQUERY":
        yield "a subquery in an expression"
    if group == "FUNCTION" and functions.get(lowered(node.get("function_name") or "")) is False:
        yield f"{lowered(node['function_name'])}()"
    if kind == "SELECT_NODE" and not node.get("group_expressions"):
        forced = node.get("aggregate_handling") == "FORCE_AGGREGATES"  # GROUP BY ALL
        if not forced and _aggregates(node.get("select_list"), functions):
            yield "an aggregate of all rows"


def _aggregates(value: Any, functions: dict[str, bool]) -> bool:
    """Whether an aggregate function is among these expressions, outside the queries within them."""
    if isinstance(value, list):
        return any(_aggregates(one, functions) for one in value)
    if not isinstance(value, dict) or value.get("class") in ("SUBQUERY", "WINDOW"):
        return False
    if value.get("class") == "FUNCTION" and functions.get(lowered(value.get("function_name") or "")):
        return True
    return any(_aggregates(one, functions) for one in value.values())


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a syntax tree."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
