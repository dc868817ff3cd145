"""Tables and views in SQL, looked up in the catalog only, and what in a view makes a row depend on others.

Constants as the columns they are compared with hold them: exact, in range, and in one spelling.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
import json
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pandas as pd

from pkdp_pipeline.engines.relation_engine import INSTANTS, values_of
from pkdp_pipeline.engines.rows import built_in, literal, quoted
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.comparisons import Moment, Values, written_time
from pkdp_pipeline.model.predicate import Condition, Constant, Disjunction, Operator, Predicate, among, conjunction

if TYPE_CHECKING:
    import duckdb

#: What is said about a column that nobody has; by a gate also about one that it leaves out.
LACKING = "which the table does not have"
NOT_OFFERED = "which this gate does not offer"

_PART = r'"(?:[^"]|"")+"|[^".]*[^".\s][^".]*'

_HOME = built_in("SELECT current_database(), current_schema()")
_TABLES = built_in("SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal")

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
    ((home, main),) = cursor.execute(_HOME).fetchall()
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
_VIEWS = built_in(
    "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
)
_FUNCTIONS = built_in(
    "SELECT DISTINCT lower(function_name), function_type = 'aggregate' FROM duckdb_functions() "
    "WHERE function_type = 'aggregate' OR (stability = 'VOLATILE' AND function_name <> 'error')"
)
_COLUMNS = built_in(
    "SELECT database_name, schema_name, table_name, column_name FROM duckdb_columns() WHERE NOT internal"
)


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
    for *place, column in connection.execute(_COLUMNS).fetchall():
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
    ((database, schema),) = connection.execute(_HOME).fetchall()
    parts: dict[str, None] = {}
    waiting, visited = [(query, (database, schema))], set()
    while waiting:
        text, home = waiting.pop()
        ((written,),) = connection.execute(f"SELECT system.main.json_serialize_sql({literal(text)})").fetchall()
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


#: Up to here, a decimal that is compared as a double equals no other.
_MAX_EXACT = 10**15


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """A constant as it is written: a number, text, boolean, date, timestamp or instant."""

    kind: str
    value: Fraction | str | bool


def type_of_keys(kind: str) -> str | None:
    """Return the SQL type of the keys of a column: its own; None where its values cannot name cells.

    An ENUM lists values that no published cell may have, so its keys are text. A column without a type has no value.
    """
    if is_enum(kind) or kind == '"NULL"':
        return "VARCHAR"
    plain = ("VARCHAR", "BOOLEAN", "FLOAT", "DOUBLE", "UUID")
    return kind if kind in plain or (values_of(kind).step is not None and "HUGE" not in kind) else None


def key_of(kind: str, literal: SqlConstant) -> Any:
    """Return a constant as the key of a cell, in a column of this type.

    Raises `ArgumentError` if the column cannot hold it, or no cell of an integer column can: keys are below 2^63.
    """
    values = values_of(kind)
    if values.step is None:
        constant = _off_grid("", kind, literal)
        return float(constant) if kind in ("FLOAT", "DOUBLE") else constant
    exact = _exact("", kind, literal)
    if not values.holds(exact) or (_is_whole(values) and exact >= 2**63):
        _mismatch("", kind, literal)
    if values.family != "number":
        text = written_time(int(exact), zoned=kind in INSTANTS)
        if kind == "DATE":
            return datetime.date.fromisoformat(text)
        return pd.Timestamp(text).tz_convert("UTC") if kind in INSTANTS else pd.Timestamp(text)
    if values.scale is None:
        return int(exact)
    return decimal.Decimal(f"{int(exact / values.step)}e-{values.scale}")


def words_of(kind: str) -> str:
    """Return what a constant must be that is compared with a column of this type, in words."""
    if kind == "BOOLEAN":
        return "TRUE or FALSE"
    if kind in ("VARCHAR", "UUID") or is_enum(kind):
        return "a text, in single quotes (numbers that are text have no order: CAST the column in the table)"
    if kind == "DATE":
        return "a date, such as DATE '2024-01-31'"
    if kind in INSTANTS:
        return "a time with its offset from UTC, such as '2024-01-31 12:00:00+00:00'"
    if values_of(kind).family == "time":
        return "a date or a time, such as '2024-01-31' or '2024-01-31 12:00:00'"
    return "a number that such a column can hold, without quotes"


def compared(column: str, kind: str, sign: Operator, literal: SqlConstant) -> Predicate:
    """Return that a column of this SQL type has a value on one side (<, <=, > or >=) of a constant.

    Raises `ArgumentError` if the constant is of another kind than the column, or the column's values have no order.
    """
    values = values_of(kind)
    if values.step is None:
        constant = _off_grid(column, kind, literal)
        if kind not in ("FLOAT", "DOUBLE", "VARCHAR") and not is_enum(kind):
            raise ArgumentError(
                f"filter orders column {column!r}, which has type {type_name(kind)}: compare it with = or IN instead."
            )
        return Condition(column, sign, constant)
    beside = values.beside(sign, _exact(column, kind, literal))
    if isinstance(beside, bool):
        return Condition(column, "isna", negated=True) if beside else Disjunction(())
    return Condition(column, beside[0], _on_grid(column, kind, beside[1]))


def members(column: str, kind: str, literals: Iterable[SqlConstant], *, negated: bool) -> Predicate:
    """Return that a column of this SQL type has a value that equals one of some constants, or none where `negated`.

    Raises `ArgumentError` if a constant is of another kind than the column, or its values can be compared with none.
    """
    values = values_of(kind)
    constants: list[Constant] = []
    for constant in literals:
        if values.step is None:
            constants.append(_off_grid(column, kind, constant))
        elif values.holds(exact := _exact(column, kind, constant)):
            constants.append(_on_grid(column, kind, exact))
    if kind == "BOOLEAN":
        constants = [value for value in (False, True) if (value in constants) != negated]
        negated = len(constants) > 1
        constants = [] if negated else constants
    if not constants:
        return Condition(column, "isna", negated=True) if negated else Disjunction(())
    condition = among(column, constants, negated=negated)
    return conjunction([condition, Condition(column, "isna", negated=True)]) if negated else condition


def _is_whole(values: Values) -> bool:
    return values.family == "number" and values.scale is None


def _exact(column: str, kind: str, literal: SqlConstant) -> Fraction:
    """Return the number a constant is on the grid of a column; it may lie between two of its values."""
    if values_of(kind).family != "number":
        return Fraction(_nanoseconds(column, kind, literal))
    if literal.kind != "number" or not isinstance(literal.value, Fraction):
        _mismatch(column, kind, literal)
    return literal.value


def _on_grid(column: str, kind: str, exact: Fraction) -> Constant:
    """Return the constant that is `exact` on a column's grid."""
    values = values_of(kind)
    if values.family != "number":
        return written_time(int(exact), zoned=kind in INSTANTS)
    if exact.denominator == 1:
        return exact.numerator
    if abs(exact / (values.step or 1)) > _MAX_EXACT:
        raise ArgumentError(
            f"filter compares column {column!r} with a fraction of more than 15 digits, which cannot be compared "
            "exactly; write fewer digits or a whole number."
        )
    return float(exact)


def _off_grid(column: str, kind: str, literal: SqlConstant) -> Constant:
    """Return the constant of a column whose values have no grid: text, a double, a boolean."""
    value = literal.value
    if kind in ("FLOAT", "DOUBLE"):
        if literal.kind != "number" or not isinstance(value, Fraction):
            _mismatch(column, kind, literal)
        return _floating(column, kind, value)
    if kind == "BOOLEAN":
        if not isinstance(value, bool):
            _mismatch(column, kind, literal)
        return value
    if kind in ("VARCHAR", "UUID") or is_enum(kind):
        try:
            if literal.kind == "text" and isinstance(value, str):
                return str(uuid.UUID(value)) if kind == "UUID" else value
        except ValueError:
            raise ArgumentError(f"filter compares column {column!r}, a UUID, with a text that is not one.") from None
        _mismatch(column, kind, literal)
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}: such columns have only "
        "IS NULL and IS NOT NULL."
    )


def _mismatch(column: str, kind: str, literal: SqlConstant) -> NoReturn:
    raise ArgumentError(
        f"filter compares column {column!r}, which has type {type_name(kind)}, with a {literal.kind}: write "
        f"{words_of(kind)}."
    )


def _floating(column: str, kind: str, exact: Fraction) -> Constant:
    """Return the nearest value that the column can hold."""
    try:
        number = values_of(kind).nearest(exact)
    except OverflowError:
        raise ArgumentError(
            f"filter compares column {column!r} with a number beyond the range of {kind}; leave the comparison out, "
            "or ask for IS NOT NULL."
        ) from None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _nanoseconds(column: str, kind: str, literal: SqlConstant) -> int:
    """Return the nanoseconds since 1970 of a date or time, in UTC for columns with a time zone."""
    zoned = kind in INSTANTS
    # Without an offset, an instant would depend on the time zone of the one who asks.
    moment = Moment.of(literal.value) if isinstance(literal.value, str) else None
    whole_days = literal.kind == "date" or (kind == "DATE" and literal.kind == "text")
    if (
        moment is None
        or literal.kind == ("timestamp" if zoned else "instant")
        or moment.zoned != zoned
        or (moment.timed and whole_days)
    ):
        _mismatch(column, kind, literal)
    first, last = (2, 9998) if zoned else (1, 9999)
    if not first <= moment.year <= last:
        raise ArgumentError(f"filter compares column {column!r} with a year that is not within {first} to {last}.")
    return moment.nanoseconds
