"""A filter as DuckDB's parser reads it: a tree, whose listed forms are read and everything else is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.sql.constants import SqlConstant

if TYPE_CHECKING:
    import duckdb

#: The longest filter that is read, in characters, and how many parentheses may be open at once.
_MAX_LENGTH, _MAX_DEPTH = 4_000, 50
#: The largest exponent a number may have either way: beyond it lies no number of any column.
_MAX_EXPONENT = 400
_ALLOWED = (
    "A filter may use columns; year(...), month(...), day(...) and isodow(...) of dates, or extract(... FROM ...); "
    "comparisons (=, <>, <, <=, >, >=) with a constant; BETWEEN; IN (...); LIKE; IS [NOT] NULL, TRUE or FALSE; AND, "
    "OR, NOT and parentheses. Constants are numbers, 'text', TRUE, FALSE, "
    "DATE '...' and TIMESTAMP '...'. Anything else: make a view with a boolean column, and filter by that."
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
#: What stands outside quotes in no filter: comments, texts with a prefix, and all signs but those of comparisons.
_FOREIGN = re.compile(r"--|\b[A-Za-z]'|[^\w\s.,()<>=!'\"+-]", re.ASCII)
_NUMBER = re.compile(r"([-\s]*)((?:\d[\d_]*\.?[\d_]*|\.[\d_]+)(?:e([-+]?\d+))?)", re.ASCII | re.IGNORECASE)
_STATEMENT = "SELECT 1 FROM t WHERE "
_TIMES = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "instant",
    "TIMESTAMP WITH TIME ZONE": "instant",
}


def refuse(what: str) -> NoReturn:
    """Raise `ArgumentError`, which says what a filter has and what it may have."""
    raise ArgumentError(f"filter has {what}. {_ALLOWED}")


def check_characters(text: str) -> None:
    """Refuse what no filter may hold and a parser leaves out of its tree, and what is long or deep."""
    if not isinstance(text, str):
        raise ArgumentError(f"filter must be a text, not {type(text).__name__}.")
    if len(text) > _MAX_LENGTH:
        raise ArgumentError(
            f"filter is longer than {_MAX_LENGTH} characters; make a view with a boolean column instead."
        )
    if not text.strip():
        raise ArgumentError("filter is empty; leave it out where every row is meant.")
    if re.search("[\0\ud800-\udfff]", text):
        refuse("a character that no text may hold")
    outside = _QUOTED.sub(lambda match: match[0][0] * 2, text)
    if (foreign := _FOREIGN.search(outside)) is not None:
        refuse(f"{foreign[0]!r} outside quotes")
    depth = 0
    for character in outside:
        depth += (character == "(") - (character == ")")
        if depth > _MAX_DEPTH:
            raise ArgumentError(f"filter has more than {_MAX_DEPTH} parentheses within each other; write it flatter.")


@cache
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """Return the connection of this process in which filters are parsed; it holds no data and reads none."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": "false", "temp_directory": ""})


def parsed(text: str) -> dict[str, Any]:
    """Return the condition of a filter as DuckDB parses it, alone and in parentheses: none of it may end either."""
    import duckdb

    statements = [f"{_STATEMENT}true", f"{_STATEMENT}{text}", f"{_STATEMENT}(\n{text}\n)"]
    with _parser(os.getpid()).cursor() as cursor:
        try:
            row = cursor.execute(f"SELECT {', '.join(['json_serialize_sql(?::VARCHAR)'] * 3)}", statements).fetchone()
        except duckdb.Error:
            row = None
    if row is None:
        refuse("what cannot be read")
    template, alone, enclosed = (
        _without_places(json.loads(answer), statement.encode())
        for answer, statement in zip(row, statements, strict=True)
    )
    for answer in (alone, enclosed):
        if answer["error"]:
            refuse(f"what cannot be read ({str(answer.get('error_message')).splitlines()[0]})")
    (statement,) = template["statements"]
    del statement["node"]["where_clause"]
    conditions = [
        statement_tree["node"].pop("where_clause", None)
        for statement_tree in (*alone["statements"], *enclosed["statements"])
    ]
    if alone != template or enclosed != template or conditions[0] != conditions[1]:
        refuse("more than a condition")
    condition: dict[str, Any] = conditions[0]
    return condition


def _without_places(node: Any, statement: bytes) -> Any:
    """Return a node without what says where in the statement it stands, and with its numbers as they are written."""
    if isinstance(node, list):
        return [_without_places(value, statement) for value in node]
    if not isinstance(node, dict):
        return node
    kept = {name: _without_places(value, statement) for name, value in node.items() if "query_location" not in name}
    if node.get("class") == "CONSTANT" and isinstance(node.get("value", {}).get("value"), float):
        # DuckDB before 2 makes doubles of numbers with an exponent, and of those with more than 38 digits.
        written = _NUMBER.match(statement[node["query_location"] :].decode())
        kept["value"]["value"] = "" if written is None else written[0]
    return kept


def fields(node: Mapping[str, Any], *names: str) -> list[Any]:
    """Return fields of a node whose other fields are empty."""
    if any(value for name, value in node.items() if name not in (*names, "class", "type")):
        refuse(f"an unknown form of {node['type']}")
    return [node[name] for name in names]


def call(node: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the name of a function or operator of DuckDB's own, and its arguments."""
    given = "children" if "children" in node else "arguments"  # before DuckDB 2
    more = ("schema", "order_bys", "is_operator", "qualified_name")
    name, arguments, home, order = fields(
        node, "function_name", given, *(name_of_field for name_of_field in more if name_of_field in node)
    )[:4]
    if home not in ("", "main") or order["orders"] or any(argument.get("name") for argument in arguments):
        refuse(f"a function or operator, {name}")
    return name, arguments if given == "children" else [argument["expression"] for argument in arguments]


def named(node: Mapping[str, Any]) -> str:
    """Return what a node is, in words."""
    if node["class"] == "FUNCTION":
        return f"a function or operator, {node['function_name']},"
    words = {"COLUMN_REF": "column", "OPERATOR": "condition", "CONJUNCTION": "condition"}
    return f"a {words.get(node['class'], node['class'].lower())}"


def cast(node: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return what is cast, and the name of the type."""
    if "cast_type" in node:  # before DuckDB 2
        child, kind = fields(node, "child", "cast_type")
        return child, "" if kind["type_info"] else kind["id"]
    child, kind = fields(node, "child", "type_expr")
    name, path = fields(kind, "type_name", "qualified_name")
    return child, name.upper() if path == {"path": [name]} else ""


def literal_of(node: Mapping[str, Any]) -> SqlConstant:
    """Return a constant as it is written."""
    if node["class"] == "CAST":
        child, kind = cast(node)
        text = literal_of(child).value if child["class"] == "CONSTANT" else None
        if kind in _TIMES and isinstance(text, str):
            return SqlConstant(_TIMES[kind], text)
        if kind == "BOOLEAN" and text in ("t", "f"):  # TRUE and FALSE before DuckDB 2
            return SqlConstant("boolean", text == "t")
    if node["class"] == "FUNCTION" and node["function_name"] == "+":
        _, signed = call(node)
        if len(signed) == 1 and (number := literal_of(signed[0])).kind == "number":
            return number
    if node["class"] != "CONSTANT":
        refuse(f"{named(node)} where a constant must stand")
    if "literal" in node:
        (literal,) = fields(node, "literal")
        kind, value = literal["kind"], literal["text"]
    else:  # before DuckDB 2
        (constant,) = fields(node, "value")
        kind, value = constant["type"]["id"], constant.get("value")
        if isinstance(value, dict):
            value = value["upper"] * 2**64 + value["lower"]
        if kind == "DECIMAL":
            value = Fraction(value, 10 ** constant["type"]["type_info"]["scale"])
    if kind in ("STRING", "VARCHAR"):
        return SqlConstant("text", value)
    if kind == "BOOLEAN":
        return SqlConstant("boolean", value in (True, "true"))
    if kind.startswith("NULL"):
        refuse("NULL among constants; what is missing is asked for with IS NULL")
    if kind in ("NUMERIC", "DECIMAL", "DOUBLE") or kind.endswith(("INTEGER", "INT")):
        return SqlConstant("number", _number(value))
    refuse(f"a constant of type {kind}")


def _number(value: str | int | Fraction) -> Fraction:
    """Return a number exactly as it is written."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    written = _NUMBER.fullmatch(value)
    if written is None or abs(int((written[3] or "0")[:6])) > _MAX_EXPONENT:
        refuse("a number too large or too small for any column")
    number = Fraction(written[2].replace("_", ""))
    return -number if written[1].count("-") % 2 else number
