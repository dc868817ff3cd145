"""The tree of a predicate, in one form for equal questions, and the text by which a ledger knows it.

Its leaves are conditions on a column; NOT is at the leaves only. A comparison with a missing value is false, and its
negation true: every node is true or false for every row. Patterns of LIKE have one spelling, and tests and a regular
expression that mean the same in every engine.

Predicates are made from query strings, of which everything but comparisons of columns is refused before any data are
read.
"""

from __future__ import annotations

import ast
import io
import keyword
import math
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, TypeAlias

from pkdp_pipeline.errors import ArgumentError

#: The longest pattern that is read, in characters.
_MAX_PATTERN_LENGTH = 200
_ESCAPE = "\\"


def like_pattern(argument: str, text: str, escape: str = _ESCAPE) -> str:
    r"""Return a pattern in its one spelling: ``\`` stands before a ``%``, ``_`` or ``\`` that means itself.

    Of neighbouring wildcards ``_`` comes first, and one ``%`` says what several do. `argument` is what an
    error names. `escape`: the character before one that means itself; empty where all ``%`` and ``_`` are wildcards.
    Raises `ArgumentError` if it is too long, or ends with the escape character.
    """
    if len(text) > _MAX_PATTERN_LENGTH:
        raise ArgumentError(
            f"{argument} has a pattern of more than {_MAX_PATTERN_LENGTH} characters; write a shorter one, or make a "
            "boolean column."
        )
    spelled, ones, many = "", 0, False
    characters = iter(text)
    for character in characters:
        itself = bool(escape) and character == escape
        if itself:
            character = next(characters, "")  # noqa: PLW2901
            if not character:
                raise ArgumentError(f"{argument} has a pattern that ends with its escape character; write it twice.")
        elif character in "%_":
            ones, many = ones + (character == "_"), many or character == "%"
            continue
        spelled, ones, many = spelled + "_" * ones + "%" * many + literally(character), 0, False
    return spelled + "_" * ones + "%" * many


def literally(text: str) -> str:
    """Return the pattern of this text alone."""
    return re.sub(r"[%_\\]", r"\\\g<0>", text)


def plain_pieces(pattern: str) -> tuple[str, ...] | None:
    """Return the texts around the ``%`` of a pattern; None where it has a ``_``."""
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    if "_" in tokens:
        return None
    return tuple("".join(token[-1] for token in piece) for piece in _split(tokens))


def _split(tokens: list[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token == "%":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def like_regex(pattern: str) -> str:
    """Return a regular expression, found in just the texts that a pattern matches.

    It is one that RE2 (DuckDB, Arrow, BigQuery), Rust (Polars) and Java (Spark) read alike; all but Java take time in
    proportion to the text, whatever the pattern.
    """
    wildcards = {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    return r"(?s)\A" + "".join(wildcards.get(token) or _character(token[-1]) for token in tokens) + r"\z"


def _character(character: str) -> str:
    plain = character.isascii() and character.isalnum()
    return character if plain else rf"\x{{{ord(character):x}}}"


#: A real number is finite. No text has a Decimal: it is what a column of decimals is compared with in the end.
Constant: TypeAlias = str | bool | int | float | Decimal
Operator: TypeAlias = Literal["==", "<", "<=", ">", ">=", "in", "isna", "like"]
Part: TypeAlias = Literal["year", "month", "day", "weekday"]
#: The parts of a date, as query strings spell them; a weekday is ISO's, from 1 for Monday to 7 for Sunday.
PARTS: Mapping[Part, str] = MappingProxyType(
    {"year": "dt.year", "month": "dt.month", "day": "dt.day", "weekday": "dt.isocalendar().day"}
)
#: The operators that say the same with both sides exchanged.
FLIPPED: Mapping[Operator, Operator] = MappingProxyType({"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="})


@dataclass(frozen=True, slots=True)
class Column:
    """A column that another one is compared with."""

    name: str

    def __str__(self) -> str:
        return _name(self.name)


@dataclass(frozen=True, slots=True)
class Condition:
    """One test of a column, or its negation.

    Parameters
    ----------
    operator : {"==", "<", "<=", ">", ">=", "in", "isna", "like"}
    operand : Column, constant or tuple of constants
        Several constants for "in", none for "isna", for "like" a pattern as `like_pattern` spells it.
    part : {"year", "month", "day", "weekday"}, optional
        The part of the column's dates that is tested, instead of the column itself.
    """

    column: str
    operator: Operator
    operand: Column | Constant | tuple[Constant, ...] = ()
    negated: bool = False
    part: Part | None = None

    @property
    def term(self) -> str:
        """The tested term, a column or a part of its dates, as query strings spell it."""
        return _name(self.column) + (f".{PARTS[self.part]}" if self.part else "")

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The constants that the column is compared with."""
        if isinstance(self.operand, Column):
            return ()
        return self.operand if isinstance(self.operand, tuple) else (self.operand,)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset([self.column, *([self.operand.name] if isinstance(self.operand, Column) else [])])

    @property
    def conditions(self) -> Iterator[Condition]:
        """The conditions of the tree."""
        yield self

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        tested = self.negated == (self.operator == "isna")
        return frozenset([self.term, *map(_name, self.columns)]) if tested else frozenset()

    def __str__(self) -> str:
        name = self.term
        if self.operator == "isna":
            return f"{name}.notna()" if self.negated else f"{name}.isna()"
        if self.operator == "in":
            return f"{name} {'not in' if self.negated else 'in'} [{', '.join(map(repr, self.constants))}]"
        operand = str(self.operand) if isinstance(self.operand, Column) else repr(self.operand)
        if self.operator == "==":
            flag = self.operand is True and not self.negated
            return name if flag else f"{name} {'!=' if self.negated else '=='} {operand}"
        tested = f"{name}.str.like({operand})" if self.operator == "like" else f"{name} {self.operator} {operand}"
        return f"not {tested}" if self.negated else tested


@dataclass(frozen=True, slots=True)
class _Several:
    parts: tuple[Predicate, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset().union(*(part.columns for part in self.parts))

    @property
    def conditions(self) -> Iterator[Condition]:
        """The conditions of the tree."""
        return (condition for part in self.parts for condition in part.conditions)


class Conjunction(_Several):
    """All of several predicates; of none, it is true of every row."""

    __slots__ = ()

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        return frozenset().union(*(part.present for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(map(_enclosed, self.parts))


class Disjunction(_Several):
    """Any of several predicates; of none, it is true of no row."""

    __slots__ = ()

    @property
    def present(self) -> frozenset[str]:
        """Terms that have a value wherever it is true."""
        return frozenset.intersection(*(part.present for part in self.parts)) if self.parts else frozenset()

    def __str__(self) -> str:
        return " or ".join(map(_enclosed, self.parts))


Predicate: TypeAlias = Condition | Conjunction | Disjunction


def among(column: str, constants: Iterable[Constant], *, negated: bool = False, part: Part | None = None) -> Condition:
    """Return whether a column equals one of some constants, of which there is at least one."""
    distinct = {repr(constant): constant for constant in constants}
    values = sorted(distinct.values(), key=lambda value: (constant_family(value), value))
    if len(values) == 1:
        return Condition(column, "==", values[0], negated, part)
    return Condition(column, "in", tuple(values), negated, part)


def like(column: str, pattern: str, *, negated: bool = False) -> Condition:
    """Return whether a column's text has a pattern, as `like_pattern` spells it."""
    if pattern == "%":
        return Condition(column, "isna", negated=not negated)
    pieces = plain_pieces(pattern)
    if pieces is not None and len(pieces) == 1:
        return Condition(column, "==", pieces[0], negated)
    return Condition(column, "like", pattern, negated)


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """Return the AND of predicates in its one form."""
    members = [member for part in parts for member in (part.parts if isinstance(part, Conjunction) else (part,))]
    present = Conjunction(tuple(members)).present
    # Where a column has a value, it may be unequal to several constants at once, however missing values are negated.
    unequal: dict[tuple[str, Part | None], list[Constant]] = {}
    kept: list[Predicate] = []
    for member in members:
        if isinstance(member, Condition) and _equals(member) and member.negated and member.term in present:
            unequal.setdefault((member.column, member.part), []).extend(member.constants)
        else:
            kept.append(member)
    kept += [among(column, constants, negated=True, part=part) for (column, part), constants in unequal.items()]
    missing = _terms(filter(_is_missing, kept))
    flags = {(member.column, member.operand) for member in kept if isinstance(member, Condition) and _is_flag(member)}
    contradiction = missing & present or len(flags) > len({column for column, _ in flags})
    if contradiction or any(isinstance(member, Disjunction) and not member.parts for member in kept):
        return Disjunction(())
    implied = Conjunction(tuple(member for member in kept if not _is_notna(member))).present
    return _joined(Conjunction, [member for member in kept if not (_is_notna(member) and _terms([member]) <= implied)])


def disjunction(parts: Iterable[Predicate], *, booleans: Collection[str] = ()) -> Predicate:
    """Return the OR of predicates in its one form; a column of `booleans` is true or false wherever it has a value."""
    equal: dict[tuple[str, Part | None], list[Constant]] = {}
    kept: list[Predicate] = []
    for each in parts:
        for member in each.parts if isinstance(each, Disjunction) else (each,):
            if isinstance(member, Condition) and _equals(member) and not member.negated:
                equal.setdefault((member.column, member.part), []).extend(member.constants)
            else:
                kept.append(member)
    for (column, part), constants in equal.items():
        every = column in booleans and len(set(constants)) > 1
        kept.append(Condition(column, "isna", negated=True) if every else among(column, constants, part=part))
    notna, missing = _terms(filter(_is_notna, kept)), _terms(filter(_is_missing, kept))
    if missing & notna or any(isinstance(member, Conjunction) and not member.parts for member in kept):
        return Conjunction(())
    return _joined(Disjunction, [member for member in kept if _is_notna(member) or not member.present & notna])


def constant_family(constant: Constant) -> str:
    """Return what a constant can be compared with."""
    if isinstance(constant, bool):
        return "boolean"
    return "text" if isinstance(constant, str) else "number"


def _equals(condition: Condition) -> bool:
    return condition.operator in ("==", "in") and not isinstance(condition.operand, Column)


def _is_flag(condition: Condition) -> bool:
    return condition.operator == "==" and isinstance(condition.operand, bool) and not condition.negated


def _is_missing(predicate: Predicate) -> bool:
    return isinstance(predicate, Condition) and predicate.operator == "isna" and not predicate.negated


def _is_notna(predicate: Predicate) -> bool:
    return isinstance(predicate, Condition) and predicate.operator == "isna" and predicate.negated


def _terms(predicates: Iterable[Predicate]) -> frozenset[str]:
    return frozenset(condition.term for predicate in predicates for condition in predicate.conditions)


def _joined(kind: type[Conjunction | Disjunction], parts: Iterable[Predicate]) -> Predicate:
    distinct = {str(part): part for part in parts}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    return kind(tuple(distinct[text] for text in sorted(distinct)))


def _enclosed(predicate: Predicate) -> str:
    return str(predicate) if isinstance(predicate, Condition) else f"({predicate})"


def _name(name: str) -> str:
    """Return a column's name as query strings spell it."""
    plain = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else "`" + name.replace("`", "``") + "`"


_OPERATORS: dict[type[ast.cmpop], Operator] = {
    ast.Eq: "==",
    ast.NotEq: "==",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: Texts, names in backticks, and words that are not ASCII, which Python would read by their compatibility form. What
#: is left of quotes and comments cannot be read.
_WORDS = re.compile(
    r"""(?P<unreadable>'''|\"{3}|\#)|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|`(?P<name>(?:[^`]|``)+)`|(?P<word>\w*[^\W\x00-\x7f]\w*)|(?P<alone>['"`])""",
    re.DOTALL,
)
_MISSING = {"isna": False, "isnull": False, "notna": True, "notnull": True}
#: The parts of a date as they may be written, each with what is added to the number.
_PARTS: dict[str, tuple[Part, int]] = {
    **{spelling: (part, 0) for part, spelling in PARTS.items()},
    **{f"dt.{name}": ("weekday", 1) for name in ("dayofweek", "day_of_week", "weekday")},
}
#: The patterns of methods of text, around what they are given.
_TEXTS = {"startswith": ("", "%"), "endswith": ("%", ""), "contains": ("%", "%")}

#: What a query string does that it may not, by the kind of node.
_DOES: dict[type[ast.AST], str] = {
    ast.Call: "calls a function",
    ast.BinOp: "calculates",
    ast.UnaryOp: "calculates",
    ast.Attribute: "asks for a part of a column",
    ast.Subscript: "asks for a part of a column",
    ast.Compare: "compares a comparison",
    ast.BoolOp: "compares a condition",
    ast.cmpop: "compares by 'is'",
    ast.Name: "has a column where a constant is needed",
}


def from_query(text: str) -> Predicate | None:
    """Return the predicate of a query string; None where it is true of every row, whatever the rows are.

    Equal texts are equal predicates: a column's name means that column, in backticks where it is no plain word. Raises
    `ArgumentError` if it uses anything but columns, the year, month, day and weekday of dates, constants, comparisons,
    in and not in lists, isna() and notna(), str.startswith(), str.endswith(), str.contains() and str.like(), and, or,
    not and parentheses, compares constants, or is true of no row.
    """
    query = _Query(text)
    try:
        predicate = query.predicate()
    except RecursionError:
        predicate = None
    if predicate is None:
        raise ArgumentError("where is nested too deeply; write it with fewer parentheses.")
    if not isinstance(predicate, Condition) and not predicate.parts:
        if predicate == disjunction(()):
            raise ArgumentError("where is true of no row, whatever the rows are; correct it or leave it out.")
        return None
    return predicate


class _Query:
    def __init__(self, text: str) -> None:
        self._names: list[str] = []
        self._text = _loosened(_WORDS.sub(self._placeholder, text))
        tree = None if self._text is None else _parsed(self._text)
        if tree is None:
            raise ArgumentError(
                "where cannot be read as a query string; check its syntax: it is written like age >= 65 and "
                "town == 'Ely', and a column whose name is no plain word stands in backticks."
            )
        self._tree = tree

    def predicate(self) -> Predicate:
        return self._predicate(self._tree, negated=False)

    def _placeholder(self, match: re.Match[str]) -> str:
        """Return a word for a name that Python would not read as it is written."""
        if match["unreadable"] or match["alone"]:
            return "\0"
        if match["text"]:
            return match[0]
        self._names.append(match["word"] or match["name"].replace("``", "`"))
        # No word of the query itself is left that is not ASCII.
        return f" é{len(self._names) - 1} "

    def _predicate(self, node: ast.expr, *, negated: bool) -> Predicate:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._predicate(node.operand, negated=not negated)
        if isinstance(node, ast.BoolOp):
            parts = [self._predicate(part, negated=negated) for part in node.values]
            return conjunction(parts) if isinstance(node.op, ast.And) != negated else disjunction(parts)
        if isinstance(node, ast.Compare):
            sides = pairwise([node.left, *node.comparators])
            compared = [
                self._compared(left, operator, right, negated=negated)
                for operator, (left, right) in zip(node.ops, sides, strict=True)
            ]
            return disjunction(compared) if negated else conjunction(compared)
        if isinstance(node, ast.Call):
            return self._called(node, negated=negated)
        return Condition(self._name(node), "==", True, negated)

    def _compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr, *, negated: bool) -> Condition:
        negated ^= isinstance(operator, (ast.NotEq, ast.NotIn))
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not right.elts:
                raise ArgumentError("where: write 'in' with a list of constants, for example column in ['a', 'b'].")
            name, part, more = self._term(left)
            constants = [_moved(self._constant(value), more) for value in right.elts]
            families = {constant_family(constant) for constant in constants}
            if len(families) > 1:
                raise ArgumentError(f"where has a list of {' and '.join(sorted(families))}; write one type.")
            inside = among(name, constants, part=part)
            return replace(inside, operator="in", operand=inside.constants, negated=True) if negated else inside
        if type(operator) not in _OPERATORS:
            raise self._refused(operator)
        sign = _OPERATORS[type(operator)]
        if _is_term(left) and _is_term(right):
            (first, part, _), (second, other, _) = self._term(left), self._term(right)
            if part or other:
                raise ArgumentError("where compares a part of a date with a column; compare it with a constant.")
            ordered = (first, sign, second) if first <= second else (second, FLIPPED[sign], first)
            return Condition(ordered[0], ordered[1], Column(ordered[2]), negated)
        if _is_term(right):
            left, right, sign = right, left, FLIPPED[sign]
        if not _is_term(left):
            self._constant(left)
            self._constant(right)
            raise ArgumentError("where compares a constant with a constant; compare a column with one.")
        name, part, more = self._term(left)
        return Condition(name, sign, _moved(self._constant(right), more), negated, part)

    def _called(self, node: ast.Call, *, negated: bool) -> Predicate:
        """Return what a method says of a term: that it is missing, or that its text has a pattern."""
        method = node.func
        if not isinstance(method, ast.Attribute):
            raise self._refused(node)
        if method.attr in _MISSING and not node.args and not node.keywords and _is_term(method.value):
            name, part, _ = self._term(method.value)
            return Condition(name, "isna", negated=negated != _MISSING[method.attr], part=part)
        if not isinstance(method.value, ast.Attribute) or method.value.attr != "str":
            raise self._refused(node)
        given = [self._constant(value) for value in node.args]
        keywords = {
            argument.arg: argument.value.value for argument in node.keywords if isinstance(argument.value, ast.Constant)
        }
        if len(given) != 1 or not isinstance(given[0], str) or len(keywords) < len(node.keywords):
            raise self._refused(node)
        name, text = self._name(method.value.value), given[0]
        if method.attr == "contains" and keywords != {"regex": False} and re.search(r"[\\.^$*+?{}\[\]|()]", text):
            raise ArgumentError(
                f"where calls a function: {self._shown(node)}. It would read the text as a regular expression: write "
                "regex=False beside it, or str.like() with % and _ as of SQL."
            )
        if keywords and (method.attr != "contains" or keywords != {"regex": False}):
            raise self._refused(node)
        if method.attr == "like":
            return like(name, like_pattern("where", text), negated=negated)
        if method.attr in _TEXTS:
            before, after = _TEXTS[method.attr]
            return like(name, like_pattern("where", f"{before}{literally(text)}{after}"), negated=negated)
        raise self._refused(node)

    def _term(self, node: ast.expr) -> tuple[str, Part | None, int]:
        """Return a column, what of its dates is meant, and what is added to a number that it is compared with."""
        column, spelling = _written(node)
        if not _is_term(node):
            raise self._refused(node)
        return self._name(column), *_PARTS.get(spelling, (None, 0))

    def _name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self._refused(node)
        return node.id if node.id.isascii() else self._names[int(node.id[1:])]

    def _constant(self, node: ast.expr) -> Constant:
        negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        constant = node.operand if isinstance(node, ast.UnaryOp) and negative else node
        value = constant.value if isinstance(constant, ast.Constant) else None
        if isinstance(value, (bool, str)) and not negative:
            return value
        if isinstance(value, float) and math.isfinite(value):
            self._check_written(constant, value)
            value = int(value) if value.is_integer() and abs(value) < 2**53 else value
            return -value if negative else value
        if isinstance(value, int) and not isinstance(value, bool):
            return -value if negative else value
        raise self._refused(constant)

    def _check_written(self, node: ast.expr, value: float) -> None:
        """Refuse a number of which Python keeps other digits: what it is compared with would be another."""
        written = ast.get_source_segment(self._text or "", node) or ""
        if Decimal(written) != Decimal(repr(value)):
            raise ArgumentError("where has a number of more digits than are kept; write at most 15 of them.")

    def _refused(self, node: ast.expr | ast.cmpop) -> ArgumentError:
        does = next((words for kind, words in _DOES.items() if isinstance(node, kind)), "holds")
        shown = "" if isinstance(node, ast.cmpop) else f": {self._shown(node)}"
        return ArgumentError(
            f"where {does}{shown}. A query string may use columns, constants, comparisons, in and not in lists, isna() "
            "and notna(), dt.year, dt.month, dt.day and dt.day_of_week, str.startswith(), str.endswith(), "
            "str.contains() and str.like(), and, or, not, &, |, ~ and parentheses. Anything else: filter the frame "
            "itself, or add a boolean column to it."
        )

    def _shown(self, node: ast.expr) -> str:
        return re.sub(r"\bé(\d+)\b", lambda match: f"`{self._names[int(match[1])]}`", ast.unparse(node))


def _written(node: ast.expr) -> tuple[ast.expr, str]:
    """Return what attributes and methods without arguments are asked of, and how they are written."""
    spelling = ""
    while True:
        if isinstance(node, ast.Attribute):
            spelling = f".{node.attr}{spelling}"
            node = node.value
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            spelling = f"(){spelling}"
            node = node.func
        else:
            return node, spelling.removeprefix(".")


def _is_term(node: ast.expr) -> bool:
    """Return whether it is a column, or a part of its dates."""
    column, spelling = _written(node)
    return isinstance(column, ast.Name) and (not spelling or spelling in _PARTS)


def _moved(constant: Constant, more: int) -> Constant:
    return constant if isinstance(constant, (str, bool)) else constant + more


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _loosened(query: str) -> str | None:
    """Give & and | the precedence of `and` and `or`, as pandas does in query strings; None if it has no tokens."""
    words = {"&": "and", "|": "or", "~": "not"}
    tokens = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(query.strip()).readline):
            word = words.get(token.string) if token.type == tokenize.OP else None
            tokens.append((tokenize.NAME, word) if word else (token.type, token.string))
    except (SyntaxError, tokenize.TokenError):
        return None
    return tokenize.untokenize(tokens).strip()
