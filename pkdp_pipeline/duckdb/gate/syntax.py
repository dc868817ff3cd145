"""Reading DuckDB's syntax tree: fields that are all accounted for, constants, names, types, and where a walk ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pkdp_pipeline.duckdb.gate.allowed import TYPES
from pkdp_pipeline.duckdb.tables import lowered
from pkdp_pipeline.errors import ArgumentError

__all__ = [
    "Fields",
    "arguments",
    "check_groups",
    "check_type",
    "constant",
    "function_name",
    "is_all",
    "pieces",
    "refused",
]

#: Where in the text a node is, and what its result is called.
_IGNORED = ("query_location", "query_location_length", "alias")


def refused(what: str, instead: str = "") -> ArgumentError:
    """Return the error for something that statements may not use."""
    return ArgumentError(
        f"the statement uses {what}, which the gate does not allow. "
        + (instead or "It answers one SELECT over pkdp_histogram and pkdp_count, and over what they return.")
    )


class Fields:
    """The fields of one node, taken one by one; what nobody takes must be empty.

    DuckDB adds fields from version to version. A new one that says something is refused until it is known here.
    """

    def __init__(self, node: object) -> None:
        if not isinstance(node, dict):
            raise refused("syntax that is not known")
        self._rest = {name: value for name, value in node.items() if name not in _IGNORED}

    def take(self, name: str) -> Any:
        """Return a field, None where there is none."""
        return self._rest.pop(name, None)

    def peek(self, name: str) -> Any:
        """Return a field that somebody else will take."""
        return self._rest.get(name)

    def one_of(self, name: str, *values: object, what: str) -> None:
        """Refuse a field that has none of these values; one that is missing is fine."""
        if name in self._rest and self._rest.pop(name) not in values:
            raise refused(what)

    def close(self, what: str) -> None:
        """Refuse the node if it says anything that nobody has taken."""
        for name, value in self._rest.items():
            if not _blank(value):
                raise refused(f"{what} with {name.replace('_', ' ')}")


def _blank(value: object) -> bool:
    if isinstance(value, dict):
        return all(_blank(one) for name, one in value.items() if name != "type")
    return value is None or value is False or value in ("", [])


def function_name(fields: Fields) -> str:
    """Take a function's name, in small letters; it may not say in which catalog or schema it is looked up."""
    name, schema, catalog = (fields.take(one) for one in ("function_name", "schema", "catalog"))
    path = (fields.take("qualified_name") or {}).get("path", [name])
    # DuckDB 1 writes the constructor of a list as main.list_value.
    own = schema == "main" and name in ("list_value", "trim", "position", "substring", "date_part")
    if not isinstance(name, str) or catalog or (schema and not own) or path[-1:] != [name] or len(path) > 1 + own:
        raise refused("a function's name with a schema", "Write the name alone.")
    return lowered(name)


def arguments(fields: Fields) -> list[tuple[str, Any]]:
    """Take a call's arguments, each with its name in small letters, or an empty one."""
    given = fields.take("arguments")
    if given is not None:  # DuckDB 2
        listed = []
        for one in given:
            argument = Fields(one)
            listed.append((lowered(argument.take("name") or ""), argument.take("expression")))
            argument.close("an argument")
        return listed
    return [(lowered(child.get("alias") or ""), child) for child in fields.take("children") or []]


def constant(node: object) -> Iterator[str]:
    """Yield the texts of a constant, a cast of one, or a list of them; anything else is refused."""
    fields = Fields(node)
    kind = fields.take("type")
    fields.take("class")
    if kind == "VALUE_CONSTANT":
        literal, value = fields.take("literal"), fields.take("value")  # of DuckDB 2 and 1
        yield str(literal.get("text") if isinstance(literal, dict) else (value or {}).get("value"))
    elif kind == "OPERATOR_CAST":
        check_type(fields)
        fields.take("try_cast")
        yield from constant(fields.take("child"))
    elif kind == "ARRAY_CONSTRUCTOR" or (kind == "FUNCTION" and function_name(fields) == "list_value"):
        fields.one_of("is_operator", False, True, what="an operator")
        for name, value in arguments(fields):
            if name:
                raise refused("a named value in a list")
            yield from constant(value)
    else:
        raise refused("a computed argument", "Write the arguments of pkdp_histogram and pkdp_count as constants.")
    fields.close("a constant")


def check_groups(select: Fields) -> None:
    """Refuse a count among what is selected of each group: it is about the whole table, the same in every group."""
    grouped = (
        select.peek("group_expressions") or select.peek("aggregate_handling") == "FORCE_AGGREGATES"
    )  # GROUP BY ALL
    if grouped and _counts(select.peek("select_list")):
        raise refused(
            "pkdp_count of each group, which is the count of the whole table every time",
            "Each group's own counts are FROM pkdp_histogram('table', 'column', k := 20); where the whole is meant, "
            "write (SELECT pkdp_count('table', k := 20)).",
        )


def _counts(node: object) -> bool:
    if isinstance(node, list):
        return any(map(_counts, node))
    if not isinstance(node, dict) or node.get("class") == "SUBQUERY":
        return False
    name = node.get("function_name")
    return (isinstance(name, str) and lowered(name) == "pkdp_count") or any(map(_counts, node.values()))


def check_type(fields: Fields) -> None:
    """Take the type of a cast, and refuse one that is not a plain type of numbers, text or time."""
    resolved, written = fields.take("cast_type"), fields.take("type_expr")
    if written is not None:  # DuckDB 2
        kind = Fields(written)
        name = kind.take("type_name")
        path = (kind.take("qualified_name") or {}).get("path", [name])
        kind.take("class"), kind.take("type")
        for modifier in kind.take("children") or []:
            for text in constant(modifier):
                if not re.fullmatch(r"\d{1,3}", text):
                    raise refused("a type's modifier that is not a number")
        kind.close("a type")
        if path != [name]:
            raise refused("a type's name with a schema")
    else:
        kind = Fields(resolved)
        name, details = kind.take("id"), kind.take("type_info")
        if details is not None and details.get("type") != "DECIMAL_TYPE_INFO":
            raise refused("a type that is not a plain one")
        kind.close("a type")
    if not isinstance(name, str) or lowered(name) not in TYPES:
        raise refused("a cast to a type that is not a plain one", "Cast to a type of numbers, text or time.")


def pieces(given: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return what a concatenation is of, however its operators are nested."""
    found = []
    for _, value in given:
        fields = Fields(value)
        if value.get("class") == "FUNCTION" and value.get("function_name") == "||":
            found += pieces(arguments(fields))
        else:
            found.append(value)
    return found


def is_all(expression: object) -> bool:
    """Whether it is the ALL of ORDER BY ALL, which is written as COLUMNS(*)."""
    plain = {"class": "STAR", "type": "STAR", "columns": True, "relation_name": ""}
    fields = Fields(expression)
    if any(fields.take(name) != value for name, value in plain.items()):
        return False
    fields.close("ORDER BY ALL")
    return True
