"""From a SQL filter to a predicate: of what DuckDB parsed, listed nodes are read and everything else is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from pkdp_pipeline.duckdb.constants import SqlConstant, compared, members
from pkdp_pipeline.duckdb.tables import LACKING, column_named, type_name
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import (
    FLIPPED,
    Condition,
    Conjunction,
    Disjunction,
    Operator,
    Predicate,
    conjunction,
    disjunction,
)

if TYPE_CHECKING:
    import duckdb

#: The longest filter that is read, in characters, and how many parentheses may be open at once.
_LONGEST, _DEEPEST = 4_000, 50
#: The largest exponent a number may have either way: beyond it lies no number of any column.
_LARGEST_EXPONENT = 400
_ALLOWED = (
    "A filter may use columns; comparisons (=, <>, <, <=, >, >=) of a column with a constant; BETWEEN; IN (...); "
    "IS [NOT] NULL, TRUE or FALSE; AND, OR, NOT and parentheses. Constants are numbers, 'text', TRUE, FALSE, "
    "DATE '...' and TIMESTAMP '...'. Anything else: make a view with a boolean column, and filter by that."
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
#: What stands outside quotes in no filter: comments, texts with a prefix, and all signs but those of comparisons.
_FOREIGN = re.compile(r"--|\b[A-Za-z]'|[^\w\s.,()<>=!'\"+-]", re.ASCII)
_NUMBER = re.compile(r"([-\s]*)((?:\d[\d_]*\.?[\d_]*|\.[\d_]+)(?:e([-+]?\d+))?)", re.ASCII | re.IGNORECASE)
_STATEMENT = "SELECT 1 FROM t WHERE "
_OPERATORS: dict[str, Operator] = {
    "COMPARE_EQUAL": "==",
    "COMPARE_NOTEQUAL": "==",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_OPPOSITE: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TIMES = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "instant",
    "TIMESTAMP WITH TIME ZONE": "instant",
}
_EVERY_ROW, _NO_ROW = Conjunction(()), Disjunction(())


def from_sql(text: str, columns: Mapping[str, str], *, lacking: str = LACKING) -> Predicate | None:
    """Return the predicate that is true of the rows for which a SQL filter is true; None where it is of every row.

    The filter has SQL's meaning: what is unknown because of NULL is not selected, not even by NOT. NaN counts
    as NULL, as it does in keys and units. Numbers, dates and times are compared exactly, whatever the type of
    the column; only for FLOAT and DOUBLE columns, the constant is the nearest number of that type. A time
    compared with a TIMESTAMP WITH TIME ZONE needs its offset from UTC: it must not depend on the session.

    Filters that differ in case, white space, parentheses, the order or repetition of the members of AND, OR and
    IN, in which side the constant is on, in how NOT, BETWEEN, IN, ``<>``, ``IS [NOT] TRUE`` and
    ``IS [NOT] DISTINCT FROM`` are spelled, or in how numbers and dates are spelled, give the same predicate. That
    two predicates differ does not mean that the filters do.

    Parameters
    ----------
    text : str
    columns : mapping of str to str
        The table's column names and their DuckDB types, for example ``{"age": "TINYINT"}``.
    lacking : str, optional
        What an error says about a column that is not among them.

    Raises
    ------
    ArgumentError
        If the filter cannot be read, has anything but columns, comparisons with constants, BETWEEN, IN,
        IS [NOT] NULL, TRUE or FALSE, AND, OR, NOT and parentheses, names a column that does not exist,
        compares a column with a constant of another type, or is true of no row, whatever the rows are.
    """
    _check_characters(text)
    try:
        predicate = _Reader(columns, lacking).predicate(_parsed(text), negated=False)
    except RecursionError:
        predicate = None
    if predicate is None:
        raise ArgumentError("filter is nested too deeply; write it flatter.")
    if predicate == _NO_ROW:
        raise ArgumentError("filter is true of no row, whatever the rows are; correct it or leave it out.")
    return None if predicate == _EVERY_ROW else predicate


def _refuse(what: str) -> NoReturn:
    raise ArgumentError(f"filter has {what}. {_ALLOWED}")


def _check_characters(text: str) -> None:
    """Refuse what no filter may hold and a parser leaves out of its tree, and what is long or deep."""
    if not isinstance(text, str):
        raise ArgumentError(f"filter must be a text, not {type(text).__name__}.")
    if len(text) > _LONGEST:
        raise ArgumentError(f"filter is longer than {_LONGEST} characters; make a view with a boolean column instead.")
    if not text.strip():
        raise ArgumentError("filter is empty; leave it out where every row is meant.")
    if re.search("[\0\ud800-\udfff]", text):
        _refuse("a character that no text may hold")
    outside = _QUOTED.sub(lambda found: found[0][0] * 2, text)
    if (found := _FOREIGN.search(outside)) is not None:
        _refuse(f"{found[0]!r} outside quotes")
    depth = 0
    for character in outside:
        depth += (character == "(") - (character == ")")
        if depth > _DEEPEST:
            raise ArgumentError(f"filter has more than {_DEEPEST} parentheses within each other; write it flatter.")


@cache
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """Return the connection of this process in which filters are parsed; it holds no data and reads none."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": "false", "temp_directory": ""})


def _parsed(text: str) -> dict[str, Any]:
    """Return the condition of a filter as DuckDB parses it, alone and in parentheses: none of it may end either."""
    import duckdb

    statements = [f"{_STATEMENT}true", f"{_STATEMENT}{text}", f"{_STATEMENT}(\n{text}\n)"]
    with _parser(os.getpid()).cursor() as cursor:
        try:
            found = cursor.execute(f"SELECT {', '.join(['json_serialize_sql(?::VARCHAR)'] * 3)}", statements).fetchone()
        except duckdb.Error:
            found = None
    if found is None:
        _refuse("what cannot be read")
    template, alone, enclosed = (
        _without_places(json.loads(answer), statement.encode())
        for answer, statement in zip(found, statements, strict=True)
    )
    for answer in (alone, enclosed):
        if answer["error"]:
            _refuse(f"what cannot be read ({str(answer.get('error_message')).splitlines()[0]})")
    (statement,) = template["statements"]
    del statement["node"]["where_clause"]
    conditions = [each["node"].pop("where_clause", None) for each in (*alone["statements"], *enclosed["statements"])]
    if alone != template or enclosed != template or conditions[0] != conditions[1]:
        _refuse("more than a condition")
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


def _fields(node: Mapping[str, Any], *names: str) -> list[Any]:
    """Return fields of a node whose other fields are empty."""
    if any(value for name, value in node.items() if name not in (*names, "class", "type")):
        _refuse(f"an unknown form of {node['type']}")
    return [node[name] for name in names]


class _Reader:
    def __init__(self, columns: Mapping[str, str], lacking: str) -> None:
        self._columns, self._lacking = columns, lacking
        self._booleans = frozenset(name for name, kind in columns.items() if kind == "BOOLEAN")

    def predicate(self, node: Mapping[str, Any], *, negated: bool) -> Predicate:
        """Return what is true exactly where a condition (where `negated`: its NOT) is true.

        NOT goes down to the comparisons, where it is exact in three-valued logic. Above them are AND and OR only,
        for which an unknown part that counts as false changes no row: both are true only because of parts that are.
        """
        kind = node["type"]
        if kind in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
            (children,) = _fields(node, "children")
            parts = [self.predicate(child, negated=negated) for child in children]
            return conjunction(parts) if (kind == "CONJUNCTION_AND") != negated else self._either(parts)
        if kind == "OPERATOR_NOT":
            ((child,),) = _fields(node, "children")
            return self.predicate(child, negated=not negated)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            ((child,),) = _fields(node, "children")
            return Condition(self._column(child), "isna", negated=negated != (kind == "OPERATOR_IS_NOT_NULL"))
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            ((column, *constants),) = _fields(node, "children")
            negated ^= kind == "COMPARE_NOT_IN"
            return self._members(self._column(column), map(_literal, constants), negated=negated)
        if kind == "COMPARE_BETWEEN":
            tested, low, high = _fields(node, "input", "lower", "upper")
            name = self._column(tested)
            parts = [
                self._compared(name, ">=", _literal(low), negated=negated),
                self._compared(name, "<=", _literal(high), negated=negated),
            ]
            return self._either(parts) if negated else conjunction(parts)
        if kind in ("COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"):
            name, _, literal = self._sides(node, "==")
            distinct = negated != (kind == "COMPARE_DISTINCT_FROM")
            parts = [self._members(name, [literal], negated=distinct), Condition(name, "isna", negated=not distinct)]
            return self._either(parts) if distinct else conjunction(parts)
        if kind in _OPERATORS:
            name, sign, literal = self._sides(node, _OPERATORS[kind])
            return self._compared(name, sign, literal, negated=negated != (kind == "COMPARE_NOTEQUAL"))
        if kind == "COLUMN_REF":
            return self._members(self._boolean(self._column(node)), [SqlConstant("boolean", True)], negated=negated)
        literal = _literal(node)
        if not isinstance(literal.value, bool):
            _refuse(f"a {literal.kind} where a condition must stand")
        return _EVERY_ROW if literal.value != negated else _NO_ROW

    def _either(self, parts: Iterable[Predicate]) -> Predicate:
        return disjunction(parts, booleans=self._booleans)

    def _sides(self, node: Mapping[str, Any], sign: Operator) -> tuple[str, Operator, SqlConstant]:
        """Return the column, the sign and the constant of a comparison, whichever side they are on."""
        left, right = _fields(node, "left", "right")
        if right["class"] == "COLUMN_REF" != left["class"]:
            left, sign, right = right, FLIPPED[sign], left
        return self._column(left), sign, _literal(right)

    def _compared(self, name: str, sign: Operator, literal: SqlConstant, *, negated: bool) -> Predicate:
        if sign == "==":
            return self._members(name, [literal], negated=negated)
        return compared(name, self._columns[name], _OPPOSITE[sign] if negated else sign, literal)

    def _members(self, name: str, literals: Iterable[SqlConstant], *, negated: bool) -> Predicate:
        return members(name, self._columns[name], literals, negated=negated)

    def _column(self, node: Mapping[str, Any]) -> str:
        if node["class"] == "CAST":
            # IS TRUE casts, which says nothing of a column that is boolean.
            child, kind = _cast(node)
            if kind == "BOOLEAN" and child["class"] == "COLUMN_REF":
                return self._boolean(self._column(child))
        if node["class"] != "COLUMN_REF":
            _refuse(f"{_named(node)} where a column must stand")
        (names,) = _fields(node, "column_names")
        if len(names) > 1:
            _refuse("a dot: columns are named without their table")
        lacking = f"{self._lacking} (texts are written with '...')"
        return column_named("filter", names[0], self._columns, lacking=lacking)

    def _boolean(self, name: str) -> str:
        if name not in self._booleans:
            raise ArgumentError(
                f"filter uses column {name!r} as a condition, but it has type {type_name(self._columns[name])}: "
                "compare it with a constant."
            )
        return name


def _named(node: Mapping[str, Any]) -> str:
    if node["class"] == "FUNCTION":
        return f"a function or operator, {node['function_name']},"
    words = {"COLUMN_REF": "column", "OPERATOR": "condition", "CONJUNCTION": "condition"}
    return f"a {words.get(node['class'], node['class'].lower())}"


def _cast(node: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return what is cast, and the name of the type."""
    if "cast_type" in node:  # before DuckDB 2
        child, cast = _fields(node, "child", "cast_type")
        return child, "" if cast["type_info"] else cast["id"]
    child, cast = _fields(node, "child", "type_expr")
    name, path = _fields(cast, "type_name", "qualified_name")
    return child, name.upper() if path == {"path": [name]} else ""


def _literal(node: Mapping[str, Any]) -> SqlConstant:
    """Return a constant as it is written."""
    if node["class"] == "CAST":
        child, kind = _cast(node)
        text = _literal(child).value if child["class"] == "CONSTANT" else None
        if kind in _TIMES and isinstance(text, str):
            return SqlConstant(_TIMES[kind], text)
        if kind == "BOOLEAN" and text in ("t", "f"):  # TRUE and FALSE before DuckDB 2
            return SqlConstant("boolean", text == "t")
    if node["class"] == "FUNCTION" and node["function_name"] == "+" and node["is_operator"]:
        signed = node["children"] if "children" in node else [each["expression"] for each in node["arguments"]]
        if len(signed) == 1 and (number := _literal(signed[0])).kind == "number":
            return number
    if node["class"] != "CONSTANT":
        _refuse(f"{_named(node)} where a constant must stand")
    if "literal" in node:
        (literal,) = _fields(node, "literal")
        kind, value = literal["kind"], literal["text"]
    else:  # before DuckDB 2
        (constant,) = _fields(node, "value")
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
        _refuse("NULL among constants; what is missing is asked for with IS NULL")
    if kind in ("NUMERIC", "DECIMAL", "DOUBLE") or kind.endswith(("INTEGER", "INT")):
        return SqlConstant("number", _number(value))
    _refuse(f"a constant of type {kind}")


def _number(value: str | int | Fraction) -> Fraction:
    """Return a number exactly as it is written."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    written = _NUMBER.fullmatch(value)
    if written is None or abs(int((written[3] or "0")[:6])) > _LARGEST_EXPONENT:
        _refuse("a number too large or too small for any column")
    number = Fraction(written[2].replace("_", ""))
    return -number if written[1].count("-") % 2 else number
