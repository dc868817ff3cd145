"""The statements a gate answers: one SELECT, of which every part of the syntax tree is on a list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pkdp_pipeline.duckdb.gate.checking import DEPTH, TOO_DEEP, Check
from pkdp_pipeline.duckdb.gate.syntax import refused
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    import duckdb

__all__ = ["read_statement"]

_ONE_SELECT = "the gate answers one SELECT at a time, over pkdp_histogram, pkdp_count and what they return."


def read_statement(connection: duckdb.DuckDBPyConnection, text: str, *, characters: int) -> duckdb.Statement:
    """Return the one statement in `text`, after every part of it was found on the list of what is allowed.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Reads the text as it will run it.
    text : str
    characters : int
        The longest text that is read at all.

    Raises
    ------
    ArgumentError
        If it is anything but one allowed SELECT.
    """
    import duckdb

    if not isinstance(text, str):
        raise ArgumentError(f"the statement must be a text, not {type(text).__name__}.")
    if len(text) > characters:
        raise ArgumentError(f"the statement is longer than {characters} characters, which the policy allows.")
    if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text):
        raise ArgumentError("the statement holds characters that no SQL text has.")
    _check_brackets(text)
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise ArgumentError(f"the statement is no SQL: {_first_line(error)}") from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ArgumentError(_ONE_SELECT)
    if statements[0].named_parameters:
        raise refused("parameters", "Write the values into the statement.")
    try:
        ((written,),) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
        tree = json.loads(written)
        if tree.get("error") or len(tree["statements"]) != 1:
            raise ArgumentError(_ONE_SELECT)
        Check().statement(tree["statements"][0])
    except duckdb.Error as error:
        raise ArgumentError(f"the statement cannot be read: {_first_line(error)}") from None
    except RecursionError:
        raise ArgumentError(TOO_DEEP) from None
    return statements[0]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]


def _check_brackets(text: str) -> None:
    """Refuse text whose brackets are so deep that reading it could exhaust the parser's stack."""
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(depth - 1, 0)
    if deepest > DEPTH:
        raise ArgumentError(TOO_DEEP)
