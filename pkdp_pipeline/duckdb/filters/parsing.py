"""From the words of a filter to its tree; everything that is not in the grammar is refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from fractions import Fraction
from typing import NoReturn, TypeAlias

from pkdp_pipeline.duckdb.filters.tokens import Token, refuse, tokens
from pkdp_pipeline.duckdb.filters.tree import (
    FLIPPED,
    Both,
    Column,
    Compare,
    Condition,
    Constant,
    Either,
    Known,
    Member,
    Missing,
    Negation,
    Null,
    Operator,
)
from pkdp_pipeline.duckdb.tables import LACKING, lowered, type_name
from pkdp_pipeline.errors import ArgumentError

__all__ = ["DEEPEST", "parsed"]

#: How many parentheses may be open at once.
DEEPEST = 50
#: The largest exponent a number may have either way: beyond it lies no number of any column.
_LARGEST_EXPONENT = 400

_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "between"})
_TRUE = Constant(kind="boolean", value=True)
_FALSE = Constant(kind="boolean", value=False)

_Operand: TypeAlias = Column | Constant | Null | Condition


def parsed(text: str, columns: Mapping[str, str], *, lacking: str = LACKING) -> Condition:
    """Return the tree of a filter over these columns and their SQL types; `lacking` says what is with others.

    Raises
    ------
    ArgumentError
        If it holds anything a filter may not, or names a column that is not there.
    """
    return _Parser(tokens(text), columns, lacking).whole()


class _Parser:
    """Reads OR before AND before NOT before comparisons, as SQL binds them."""

    def __init__(self, words: list[Token], columns: Mapping[str, str], lacking: str) -> None:
        self._words = words
        self._next = 0
        self._depth = 0
        self._columns, self._lacking = columns, lacking

    def whole(self) -> Condition:
        condition = self._condition(self._either())
        if self._word.kind != "end":
            self._unexpected()
        return condition

    @property
    def _word(self) -> Token:
        return self._words[self._next]

    def _take(self) -> Token:
        word = self._word
        self._next += 1
        return word

    def _keyword(self, *options: str) -> bool:
        """Take these keywords where they come next, all of them or none."""
        ahead = self._words[self._next : self._next + len(options)]
        if [word.text.lower() for word in ahead if word.kind == "word"] != list(options):
            return False
        self._next += len(options)
        return True

    def _sign(self, sign: str) -> bool:
        if self._word.kind != "sign" or self._word.text != sign:
            return False
        self._next += 1
        return True

    def _unexpected(self) -> NoReturn:
        word = self._word
        if word.kind == "end":
            refuse("nothing where something must follow, at its end")
        if word.kind == "sign" and word.text in "+-":
            refuse("arithmetic", word.position)
        if word.kind == "sign" and word.text == "(":
            refuse("a function or an unexpected parenthesis", word.position)
        refuse(f"{word.text[:40]!r}, which cannot stand there", word.position)

    def _either(self) -> _Operand:
        first = self._both()
        if not self._keyword("or"):
            return first
        parts = [self._condition(first), self._condition(self._both())]
        while self._keyword("or"):
            parts.append(self._condition(self._both()))
        return Either(parts=tuple(parts))

    def _both(self) -> _Operand:
        first = self._negation()
        if not self._keyword("and"):
            return first
        parts = [self._condition(first), self._condition(self._negation())]
        while self._keyword("and"):
            parts.append(self._condition(self._negation()))
        return Both(parts=tuple(parts))

    def _negation(self) -> _Operand:
        negations = 0
        while self._keyword("not"):
            negations += 1
        inner = self._predicate()
        if not negations:
            return inner
        condition = self._condition(inner)
        return Negation(condition=condition) if negations % 2 else condition

    def _condition(self, operand: _Operand) -> Condition:
        """Return what stands alone as a condition: a bare column must be boolean."""
        if isinstance(operand, Column):
            self._must_be_boolean(operand.name)
            return Compare(column=operand.name, operator="=", constant=_TRUE)
        if isinstance(operand, Constant):
            if isinstance(operand.value, bool):
                return Known(value=operand.value)
            refuse(f"a {operand.kind} where a condition must stand")
        if isinstance(operand, Null):
            refuse("NULL where a condition must stand; what is missing is asked for with IS NULL")
        return operand

    def _must_be_boolean(self, name: str) -> None:
        kind = self._columns[name]
        if kind != "BOOLEAN":
            raise ArgumentError(
                f"filter uses column {name!r} as a condition, but it has type {type_name(kind)}: compare it with a "
                "constant."
            )

    def _predicate(self) -> _Operand:
        left = self._operand()
        condition = self._tested(left)
        if condition is not None and self._tests_next():
            refuse("one comparison of another; join them with AND", self._word.position)
        if not self._ends():
            self._unexpected()
        return left if condition is None else condition

    def _ends(self) -> bool:
        word = self._word
        if word.kind == "word":
            return word.text.lower() in ("and", "or")
        return word.kind == "end" or (word.kind == "sign" and word.text in "),")

    def _tests_next(self) -> bool:
        word = self._word
        if word.kind == "sign":
            return word.text in _OPERATORS
        return word.kind == "word" and word.text.lower() in ("is", "in", "between", "not")

    def _tested(self, left: _Operand) -> Condition | None:
        word = self._word
        if word.kind == "sign" and word.text in _OPERATORS:
            self._take()
            return _comparison(left, _OPERATORS[word.text], self._operand(), word)
        if self._keyword("is"):
            return self._is(_column(left, word))
        negated = self._keyword("not")
        if self._keyword("between"):
            column = _column(left, word)
            low = self._constant()
            if not self._keyword("and"):
                self._unexpected()
            high = self._constant()
            inside: Condition = Both(
                parts=(
                    Compare(column=column, operator=">=", constant=low),
                    Compare(column=column, operator="<=", constant=high),
                )
            )
        elif self._keyword("in"):
            inside = Member(column=_column(left, word), constants=self._list())
        elif negated:
            self._unexpected()
        else:
            return None
        return Negation(condition=inside) if negated else inside

    def _is(self, column: str) -> Condition:
        negated = self._keyword("not")
        missing = Missing(column=column)
        tested: Condition
        if self._keyword("null"):
            tested = missing
        elif self._keyword("distinct", "from"):
            # The other way round: IS DISTINCT FROM is true where IS NOT DISTINCT FROM is not.
            tested = Negation(condition=_surely(Compare(column=column, operator="=", constant=self._constant())))
        elif self._keyword("true"):
            self._must_be_boolean(column)
            tested = _surely(Compare(column=column, operator="=", constant=_TRUE))
        elif self._keyword("false"):
            self._must_be_boolean(column)
            tested = _surely(Compare(column=column, operator="=", constant=_FALSE))
        else:
            self._unexpected()
        return Negation(condition=tested) if negated else tested

    def _list(self) -> tuple[Constant, ...]:
        if not self._sign("("):
            self._unexpected()
        found = [self._constant()]
        while self._sign(","):
            found.append(self._constant())
        if not self._sign(")"):
            self._unexpected()
        return tuple(found)

    def _constant(self) -> Constant:
        position = self._word.position
        operand = self._operand()
        if isinstance(operand, Null):
            refuse("NULL among constants; what is missing is asked for with IS NULL", position)
        if not isinstance(operand, Constant):
            refuse("something else where a constant must stand", position)
        return operand

    def _operand(self) -> _Operand:
        word = self._word
        if self._sign("("):
            return self._inside(word)
        if word.kind == "sign" and word.text in "+-" and self._words[self._next + 1].kind == "number":
            self._take()
            number = _number(self._take())
            return Constant(kind="number", value=-number if word.text == "-" else number)
        if word.kind == "number":
            return Constant(kind="number", value=_number(self._take()))
        if word.kind == "text":
            return Constant(kind="text", value=self._take().text)
        if word.kind == "name":
            return Column(name=self._resolved(self._take().text))
        if word.kind != "word":
            self._unexpected()
        return self._worded(word)

    def _inside(self, opening: Token) -> _Operand:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ArgumentError(f"filter has more than {DEEPEST} parentheses within each other; write it flatter.")
        operand = self._either()
        if not self._sign(")"):
            if self._word.kind == "end":
                refuse("a parenthesis that is not closed", opening.position)
            self._unexpected()
        self._depth -= 1
        return operand

    def _worded(self, word: Token) -> _Operand:
        keyword = word.text.lower()
        if self._keyword("null"):
            return Null()
        if self._keyword("true"):
            return _TRUE
        if self._keyword("false"):
            return _FALSE
        if keyword in _KEYWORDS:
            self._unexpected()
        following = self._words[self._next + 1]
        if keyword in ("date", "timestamp", "timestamptz") and following.kind == "text":
            self._take()
            text = self._take().text
            if keyword == "date":
                return Constant(kind="date", value=text)
            return Constant(kind="timestamp" if keyword == "timestamp" else "instant", value=text)
        if following.kind == "text":
            refuse(f"{word.text[:40]} before a text", word.position)
        if following.kind == "sign" and following.text == "(":
            refuse(f"a function, {word.text[:40]}()", word.position)
        if keyword in ("select", "case", "exists", "interval", "array", "with"):
            refuse(f"{keyword.upper()}", word.position)
        return Column(name=self._resolved(self._take().text))

    def _resolved(self, name: str) -> str:
        """Return the catalog's spelling: names are equal whatever the case of their ASCII letters, as in DuckDB."""
        if name in self._columns:
            return name
        found = [column for column in self._columns if lowered(column) == lowered(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ArgumentError(f"filter names column {name!r}, which could be any of {', '.join(sorted(found))}.")
        close = difflib.get_close_matches(name, list(self._columns), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ArgumentError(f"filter names column {name[:80]!r}, {self._lacking}.{hint} Texts are written with '...'.")


def _surely(comparison: Compare) -> Both:
    """Return a comparison that is false, not unknown, where the column is NULL."""
    return Both(parts=(comparison, Negation(condition=Missing(column=comparison.column))))


def _column(operand: _Operand, word: Token) -> str:
    if not isinstance(operand, Column):
        refuse(f"{word.text.upper()} after something that is not a column", word.position)
    return operand.name


def _comparison(left: _Operand, operator: Operator, right: _Operand, word: Token) -> Compare:
    if isinstance(left, Null) or isinstance(right, Null):
        refuse("a comparison with NULL, which is never true; what is missing is asked for with IS NULL", word.position)
    if isinstance(left, Constant) and isinstance(right, Column):
        left, operator, right = right, FLIPPED[operator], left
    if isinstance(left, Column) and isinstance(right, Column):
        refuse("a comparison of two columns", word.position)
    if not isinstance(left, Column) or not isinstance(right, Constant):
        refuse("a comparison that is not of a column with a constant", word.position)
    return Compare(column=left.name, operator=operator, constant=right)


def _number(word: Token) -> Fraction:
    _, _, exponent = word.text.lower().partition("e")
    digits = exponent.lstrip("+-").lstrip("0")
    if len(digits) > 3 or abs(int(exponent or "0")) > _LARGEST_EXPONENT:
        refuse("a number too large or too small for any column", word.position)
    return Fraction(word.text)
