"""From a SQL filter to a predicate: of the tree that DuckDB's parser makes, listed nodes are read, others refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pkdp_pipeline.engines.relation_engine import INSTANTS
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import (
    FLIPPED,
    Condition,
    Conjunction,
    Disjunction,
    Operator,
    Part,
    Predicate,
    conjunction,
    disjunction,
    like,
    like_pattern,
)
from pkdp_pipeline.sql.tables import LACKING, SqlConstant, column_named, compared, is_enum, members, type_name

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


_OPERATORS: dict[str, Operator] = {
    "COMPARE_EQUAL": "==",
    "COMPARE_NOTEQUAL": "==",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}
_OPPOSITE: dict[Operator, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
#: What a filter may ask of a date, by the names that DuckDB has for it.
_PARTS: dict[str, Part] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "isodow": "weekday",
}
_LIKES = {"~~": False, "like_escape": False, "!~~": True, "not_like_escape": True}
#: A column, and what of its dates is meant.
_Term: TypeAlias = tuple[str, Part | None]
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
    two predicates differ does not mean that the filters do. `columns`: the table's column names and their DuckDB types,
    for example ``{"age": "TINYINT"}``. `lacking`: the words of an error about a column that is not among them. Raises
    `ArgumentError` if the filter cannot be read, has anything but columns, comparisons with constants, BETWEEN, IN, IS
    [NOT] NULL, TRUE or FALSE, AND, OR, NOT and parentheses, names a column that does not exist, compares a column with
    a constant of another type, or is true of no row, whatever the rows are.
    """
    check_characters(text)
    try:
        predicate = _Reader(columns, lacking).predicate(parsed(text), negated=False)
    except RecursionError:
        predicate = None
    if predicate is None:
        raise ArgumentError("filter is nested too deeply; write it flatter.")
    if predicate == _NO_ROW:
        raise ArgumentError("filter is true of no row, whatever the rows are; correct it or leave it out.")
    return None if predicate == _EVERY_ROW else predicate


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
            (children,) = fields(node, "children")
            parts = [self.predicate(child, negated=negated) for child in children]
            return conjunction(parts) if (kind == "CONJUNCTION_AND") != negated else self._either(parts)
        if kind == "OPERATOR_NOT":
            ((child,),) = fields(node, "children")
            return self.predicate(child, negated=not negated)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            ((child,),) = fields(node, "children")
            name, part = self._term(child)
            return Condition(name, "isna", negated=negated != (kind == "OPERATOR_IS_NOT_NULL"), part=part)
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            ((column, *constants),) = fields(node, "children")
            negated ^= kind == "COMPARE_NOT_IN"
            return self._members(self._term(column), list(map(literal_of, constants)), negated=negated)
        if kind == "COMPARE_BETWEEN":
            tested, low, high = fields(node, "input", "lower", "upper")
            term = self._term(tested)
            parts = [
                self._compared(term, ">=", literal_of(low), negated=negated),
                self._compared(term, "<=", literal_of(high), negated=negated),
            ]
            return self._either(parts) if negated else conjunction(parts)
        if kind in ("COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"):
            term, _, literal = self._sides(node, "==")
            distinct, (name, part) = negated != (kind == "COMPARE_DISTINCT_FROM"), term
            missing = Condition(name, "isna", negated=not distinct, part=part)
            parts = [self._members(term, [literal], negated=distinct), missing]
            return self._either(parts) if distinct else conjunction(parts)
        if kind in _OPERATORS:
            term, sign, literal = self._sides(node, _OPERATORS[kind])
            return self._compared(term, sign, literal, negated=negated != (kind == "COMPARE_NOTEQUAL"))
        if kind == "COLUMN_REF":
            flag = self._boolean(self._column(node)), None
            return self._members(flag, [SqlConstant("boolean", True)], negated=negated)
        if kind == "FUNCTION" and node["function_name"] in _LIKES:
            return self._like(node, negated=negated)
        literal = literal_of(node)
        if not isinstance(literal.value, bool):
            refuse(f"a {literal.kind} where a condition must stand")
        return _EVERY_ROW if literal.value != negated else _NO_ROW

    def _either(self, parts: Iterable[Predicate]) -> Predicate:
        return disjunction(parts, booleans=self._booleans)

    def _sides(self, node: Mapping[str, Any], sign: Operator) -> tuple[_Term, Operator, SqlConstant]:
        """Return the term, the sign and the constant of a comparison, whichever side they are on."""
        left, right = fields(node, "left", "right")
        if _may_be_term(right) and not _may_be_term(left):
            left, sign, right = right, FLIPPED[sign], left
        return self._term(left), sign, literal_of(right)

    def _compared(self, term: _Term, sign: Operator, literal: SqlConstant, *, negated: bool) -> Predicate:
        if sign == "==":
            return self._members(term, [literal], negated=negated)
        name, part = term
        self._check_numbers(term, [literal])
        return _of_part(compared(name, self._kind(term), _OPPOSITE[sign] if negated else sign, literal), part)

    def _members(self, term: _Term, literals: Sequence[SqlConstant], *, negated: bool) -> Predicate:
        name, part = term
        self._check_numbers(term, literals)
        return _of_part(members(name, self._kind(term), literals, negated=negated), part)

    def _kind(self, term: _Term) -> str:
        """Return the SQL type of what is compared; no year that DuckDB has is beyond that of a part."""
        name, part = term
        return self._columns[name] if part is None else "INTEGER"

    def _check_numbers(self, term: _Term, literals: Iterable[SqlConstant]) -> None:
        name, part = term
        for literal in literals if part is not None else ():
            if literal.kind != "number":
                raise ArgumentError(
                    f"filter compares the {part} of column {name!r} with a {literal.kind}: write a number, without "
                    "quotes."
                )

    def _like(self, node: Mapping[str, Any], *, negated: bool) -> Predicate:
        name, (tested, *given) = call(node)
        column, literals = self._column(tested), [literal_of(argument) for argument in given]
        texts = [literal.value for literal in literals if isinstance(literal.value, str) and literal.kind == "text"]
        if len(texts) != len(literals):
            raise ArgumentError(f"filter has a LIKE of column {column!r} with something other than a text.")
        kind = self._columns[column]
        if kind != "VARCHAR" and not is_enum(kind):
            raise ArgumentError(
                f"filter has a LIKE of column {column!r}, which has type {type_name(kind)}: only text has patterns."
            )
        text, escape = (*texts, "")[:2]
        if len(escape) > 1 or escape in ("%", "_"):
            raise ArgumentError("filter has an ESCAPE that is not one character, other than % and _.")
        unlike = negated != _LIKES[name]
        condition = like(column, like_pattern("filter", text, escape), negated=unlike)
        return conjunction([condition, Condition(column, "isna", negated=True)]) if unlike else condition

    def _term(self, node: Mapping[str, Any]) -> _Term:
        """Return a column, and what of its dates is meant."""
        if node["class"] != "FUNCTION":
            return self._column(node), None
        name, arguments = call(node)
        if name in ("date_part", "datepart") and len(arguments) == 2 and arguments[0]["class"] == "CONSTANT":
            name, arguments = str(literal_of(arguments[0]).value).lower(), arguments[1:]
        if name in ("dow", "dayofweek", "weekday"):
            raise ArgumentError(
                f"filter has {name}, which counts from another day elsewhere: write isodow(...), from 1 for Monday to "
                "7 for Sunday."
            )
        if name not in _PARTS or len(arguments) != 1:
            refuse(f"a function or operator, {node['function_name']}, where a column must stand")
        column = self._column(arguments[0])
        kind = self._columns[column]
        if kind in INSTANTS:
            raise ArgumentError(
                f"filter asks for the {_PARTS[name]} of column {column!r}, which has type {kind}: in every time zone "
                "it may be another one. Make a view with the local time, such as timezone('Europe/Oslo', "
                f"{column}), and filter by that."
            )
        if kind != "DATE" and not kind.startswith("TIMESTAMP"):
            raise ArgumentError(
                f"filter asks for the {_PARTS[name]} of column {column!r}, which has type {type_name(kind)}: only "
                "dates and timestamps have one."
            )
        return column, _PARTS[name]

    def _column(self, node: Mapping[str, Any]) -> str:
        if node["class"] == "CAST":
            # IS TRUE casts, which says nothing of a column that is boolean.
            child, kind = cast(node)
            if kind == "BOOLEAN" and child["class"] == "COLUMN_REF":
                return self._boolean(self._column(child))
        if node["class"] != "COLUMN_REF":
            refuse(f"{named(node)} where a column must stand")
        (names,) = fields(node, "column_names")
        if len(names) > 1:
            refuse("a dot: columns are named without their table")
        lacking = f"{self._lacking} (texts are written with '...')"
        return column_named("filter", names[0], self._columns, lacking=lacking)

    def _boolean(self, name: str) -> str:
        if name not in self._booleans:
            raise ArgumentError(
                f"filter uses column {name!r} as a condition, but it has type {type_name(self._columns[name])}: "
                "compare it with a constant."
            )
        return name


def _of_part(predicate: Predicate, part: Part | None) -> Predicate:
    """Return what is said of a column said of a part of its dates."""
    if isinstance(predicate, Conjunction):
        return conjunction(_of_part(member, part) for member in predicate.parts)
    return replace(predicate, part=part) if isinstance(predicate, Condition) else predicate


def _may_be_term(node: Mapping[str, Any]) -> bool:
    return node["class"] == "COLUMN_REF" or (node["class"] == "FUNCTION" and not node["is_operator"])
