"""Tables and views in SQL, looked up in the catalog only, and what in a view makes a row depend on others."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pkdp_pipeline.engines.rows import literal, quoted
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import duckdb


#: What is said about a column that nobody has; by a gate also about one that it leaves out.
LACKING = "which the table does not have"
NOT_OFFERED = "which this gate does not offer"

_PART = r'"(?:[^"]|"")+"|[^".]*[^".\s][^".]*'

_TABLES = "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal"

Known = TypeVar("Known")
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table or view that the catalog has.

    Parameters
    ----------
    name : str
        Its one public spelling: the catalog's, qualified only as far as it is not in the main schema of the
        database that was opened. The same table has the same name, wherever the caller's connection stands.
    sql : str
        Its database, schema and name as quoted SQL identifiers.
    columns : mapping of str to str
        SQL type of every column, in the table's order and the catalog's spelling.
    """

    name: str
    sql: str
    columns: Mapping[str, str]


def lowered(name: str) -> str:
    """Return a name with its ASCII letters small: DuckDB takes names to be equal up to these alone.

    `str.lower` makes an ASCII letter of others, such as the Kelvin sign, and so would take two names for one.
    """
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def resolve(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    database: str | None = None,
    schema: str | None = None,
    schemas: Sequence[str] | None = None,
) -> TableRef:
    """Find a table or view by its name as written in SQL.

    Raises `ArgumentError` if the catalog has no such table, or several, or a view that cannot be read.

    Parameters
    ----------
    cursor : duckdb.DuckDBPyConnection
        A fresh cursor: it stands in the main schema of the database that was opened.
    name : str
        ``events``, ``schema.events``, ``database.events`` or ``database.schema.events``; parts may be quoted as
        identifiers are. Letter case does not matter.
    database, schema : str, optional
        Where the caller stands: looked up first there, then in the schema ``main``. Default: where `cursor` stands.
    schemas : sequence of str, optional
        The caller's search path. Where it has several schemas, names are only looked up in the first of them.
    """
    parts = _parts(name)
    ((home, main),) = cursor.execute("SELECT current_database(), current_schema()").fetchall()
    database, schema = database or home, schema or main
    known: list[Place] = sorted([*cursor.execute(_TABLES).fetchall(), *_views(cursor)])
    for wanted in places(parts, database, schema):
        # Letter case decides nothing, so at most one table is in a place.
        matches = [place for place in known if tuple(map(lowered, place)) in wanted]
        if len(matches) > 1:
            raise ArgumentError(f"table {name!r} names several tables; write it as 'database.schema.table'.")
        if matches:
            (place,) = matches
            sql = ".".join(map(quoted, place))
            return TableRef(name=_public(place, home), sql=sql, columns=_columns(cursor, name, sql))
        if len(parts) == 1 and len(schemas or ()) > 1:
            raise ArgumentError(
                f"table {name!r} is not in {schema!r}, the first schema of the search path; the others are not looked "
                "through: write it as 'schema.table'."
            )
    others = [public for place in known if lowered(public := _public(place, home)) != lowered(name.strip())]
    raise ArgumentError(
        f"table {name!r} is not in the catalog.{suggestion(name, others)} Temporary tables, registered frames, Python "
        "variables, files and what is not committed yet are not read: make a table of it with CREATE TABLE events AS "
        "FROM …, and commit."
    )


def is_enum(kind: str) -> bool:
    """Return whether a SQL type is an ENUM, not a list of one."""
    return kind.startswith("ENUM(") and kind.endswith(")")


def type_name(kind: str) -> str:
    """Return a SQL type as it may be told: without the values of an ENUM or what else is nested in it."""
    if kind.startswith("DECIMAL("):
        return kind
    return kind.partition("(")[0] + ("[]" if kind.endswith("]") and "(" in kind else "")


def column_named(argument: str, name: str, columns: Iterable[str], *, lacking: str = LACKING) -> str:
    """Return the catalog's spelling of a column's name, letter case aside; `lacking` says what is with others.

    Raises `ArgumentError` if the table does not have it.
    """
    known = list(columns)
    if name in known:
        return name
    matches = [column for column in known if lowered(column) == lowered(name)]
    if len(matches) == 1:
        return matches[0]
    raise ArgumentError(f"{argument} names column {name[:80]!r}, {lacking}.{suggestion(name, known)}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question after the nearest of the known names, letter case aside; empty where none is near."""
    spelled = {lowered(candidate): candidate for candidate in known}
    close = difflib.get_close_matches(lowered(name), list(spelled), n=1)
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


def table_named(name: str, known: Mapping[str, Known]) -> Known:
    """Return what is known under a table's name, letter case and one pair of quotes aside.

    Raises `ArgumentError` if the policy has no such table; a table that exists is not told from one that does not.
    """
    plain = name.strip()
    if len(plain) > 2 and plain[0] == plain[-1] == '"' and '"' not in plain[1:-1]:
        plain = plain[1:-1]
    table = {lowered(known_name): value for known_name, value in known.items()}.get(lowered(plain))
    if table is None:
        raise ArgumentError(
            f"table {name!r} is not in the policy; its tables are {', '.join(repr(key) for key in known)}."
        )
    return table


def _parts(name: str) -> list[str]:
    if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART})){{,2}}", name.strip()):
        raise ArgumentError(
            f"table {name!r} is not a table's name; write 'events', 'schema.events' or 'database.schema.events', with "
            "double quotes around parts that hold dots or quotes."
        )
    parts = re.findall(_PART, name.strip())
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part.strip() for part in parts]


def places(parts: Sequence[str], database: str, schema: str) -> list[set[Place]]:
    """Return where to look for a table, in turn and in lower case; places of one turn are equally near.

    `parts`: its name, perhaps after its schema, or its database and schema. `database` and `schema`: where the caller
    stands.
    """
    name = parts[-1]
    if len(parts) == 3:
        turns = [[(parts[0], parts[1], name)]]
    elif len(parts) == 2:
        turns = [[(database, parts[0], name), (parts[0], "main", name)]]
    else:
        turns = [[(database, schema, name)], [(database, "main", name)]]
    return [{(lowered(a), lowered(b), lowered(c)) for a, b, c in turn} for turn in turns]


def _columns(cursor: duckdb.DuckDBPyConnection, name: str, sql: str) -> dict[str, str]:
    """Return the columns as they are now: of a view, the catalog keeps those that it had when it was made."""
    import duckdb

    try:
        described = cursor.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()
        return {row[0]: row[1] for row in described}
    except duckdb.Error as error:
        problem = type(error).__name__
    raise ArgumentError(f"table {name!r} is a view that cannot be read ({problem}); correct the view.")


def _public(place: Place, home: str) -> str:
    """Return the public spelling of a table's name; see `TableRef`."""
    database, schema, table = place
    given = place if database != home else (table,) if schema == "main" else (schema, table)
    return ".".join(part if not re.search(r'[."]|^\s|\s$', part) else quoted(part) for part in given)


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

    `unit`: empty where each row is a person.
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
    unit_columns = {lowered(name) for name in unit}
    parts_of_views = {
        ".".join(place[1:]): linking_parts(connection, f"FROM {'.'.join(map(quoted, place))}", (views, functions))
        for place in views
        if unit_columns <= columns.get(place, set())
    }
    return {name.removeprefix("main."): parts for name, parts in parts_of_views.items() if parts}


def linking_parts(connection: duckdb.DuckDBPyConnection, query: str, catalog: _Catalog | None = None) -> list[str]:
    """Return the parts of a query, and of the views that it reads, that make rows depend on others or on chance.

    In words, each once; empty where nothing was found. Macros and tables of other kinds are not looked into. `query`: a
    SELECT. `catalog`: the connection's views and functions, looked up before.
    """
    views, functions = catalog or (_views(connection), _functions(connection))
    ((database, schema),) = connection.execute("SELECT current_database(), current_schema()").fetchall()
    parts: dict[str, None] = {}
    waiting, visited = [(query, (database, schema))], set()
    while waiting:
        text, home = waiting.pop()
        ((written,),) = connection.execute(f"SELECT json_serialize_sql({literal(text)})").fetchall()
        tree = json.loads(written)
        if tree.get("error"):
            parts["a definition that cannot be looked at"] = None
            continue
        for node in _nodes(tree):
            parts.update(dict.fromkeys(_table_parts(node, functions)))
            view = _view(node, views, home)
            if view is not None and view not in visited:
                visited.add(view)
                waiting.append((_HEAD.sub("", views[view], count=1), view[:2]))
    return list(parts)


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
    known = {(lowered(view[0]), lowered(view[1]), lowered(view[2])): view for view in views}
    wanted = [*places(parts, *home), {("temp", "main", lowered(parts[-1]))}]
    return next((known[place] for turn in wanted for place in sorted(turn) if place in known), None)


def _table_parts(node: dict[str, Any], functions: dict[str, bool]) -> Iterator[str]:
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
        return any(_aggregates(item, functions) for item in value)
    if not isinstance(value, dict) or value.get("class") in ("SUBQUERY", "WINDOW"):
        return False
    if value.get("class") == "FUNCTION" and functions.get(lowered(value.get("function_name") or "")):
        return True
    return any(_aggregates(item, functions) for item in value.values())


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a syntax tree."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
