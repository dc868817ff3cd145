"""Filter trees, the many SQL spellings of each, and a table on which they differ."""

from __future__ import annotations

import datetime
import decimal
import random
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd
from hypothesis import strategies as st

from pkdp_pipeline.model.predicate import from_query
from pkdp_pipeline.sql.filters import from_sql

COLUMNS = {
    "n": "INTEGER",
    "x": "DOUBLE",
    "s": "VARCHAR",
    "b": "BOOLEAN",
    "Odd Flag": "BOOLEAN",
    "d": "DATE",
    "t": "TIMESTAMP",
    "m": "DECIMAL(6,2)",
    "Grö ße": "BIGINT",
}
TEXTS = [
    "a",
    "b",
    "A",
    "",
    "it's",
    'say "x"',
    "`n`",
    "@n",
    "a\\",
    "\\x60",
    "n",
    "ä",
    "ａ",
    "%",
    "-- x",
    "a\nb",
    "' OR 1=1",
]
DAYS = [datetime.date(2020, 2, 29), datetime.date(2020, 3, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]
TIMES = [
    datetime.datetime(2020, 2, 29),
    datetime.datetime(2020, 2, 29, 12, 30, 1),
    datetime.datetime(2020, 2, 29, 12, 30, 1, 250_000),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
]
NUMBERS = [
    decimal.Decimal(text) for text in ("-2", "-1", "0", "1", "2", "3", "0.5", "1.25", "-0.01", "2.005", "5000000000")
]
VALUES: dict[str, list[Any]] = {
    "n": [-2, -1, 0, 1, 2, 3],
    "x": [-1.0, -0.0, 0.5, 1.0, 1.25, 3.0, float("inf"), 5e9],
    "s": TEXTS,
    "b": [True, False],
    "Odd Flag": [False, True],
    "d": DAYS,
    "t": TIMES,
    "m": [decimal.Decimal(text) for text in ("-0.01", "0", "0.5", "1", "1.25", "2", "2.01", "-1")],
    "Grö ße": [-1, 0, 1, 2, 5_000_000_000],
}


def to_where(sql: str, columns: dict[str, str]) -> str | None:
    """Return the text of a SQL filter's predicate, which as a query string is the same predicate."""
    predicate = from_sql(sql, columns)
    if predicate is None:
        return None
    assert from_query(str(predicate)) == predicate
    return str(predicate)


def rows() -> list[tuple[Any, ...]]:
    """Return rows with every value of every column, NULL too, in many combinations."""
    chosen = random.Random(5)
    complete = [[*values, None] for values in VALUES.values()]
    longest = max(len(values) for values in complete)
    each = [tuple(values[i % len(values)] for values in complete) for i in range(longest)]
    return each + [tuple(chosen.choice(values) for values in complete) for _ in range(300)]


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def filled(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the table `people` with the columns, and `id`."""
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE people (id INTEGER, {declared})")
    places = ", ".join("?" * (len(COLUMNS) + 1))
    connection.executemany(f"INSERT INTO people VALUES ({places})", [[i, *row] for i, row in enumerate(rows())])


def frame() -> pd.DataFrame:
    """Return the same rows as a pandas frame of dtypes that can be missing."""
    columns = dict(zip(COLUMNS, zip(*rows(), strict=True), strict=True))
    dtypes = {"INTEGER": "Int32", "DOUBLE": "float64", "VARCHAR": "str", "BOOLEAN": "boolean", "BIGINT": "Int64"}
    dtypes |= {"DATE": "datetime64[us]", "TIMESTAMP": "datetime64[us]", "DECIMAL(6,2)": "float64"}
    return pd.DataFrame({name: pd.Series(list(columns[name]), dtype=dtypes[kind]) for name, kind in COLUMNS.items()})


@dataclass(frozen=True)
class Leaf:
    """A test of one column: what it is, the constants it has, and of what part of a date it is."""

    test: str
    column: str
    constants: tuple[Any, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class Node:
    """AND, OR or NOT."""

    word: str
    parts: tuple[Any, ...]


_OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
#: Spellings of the parts of a date, and numbers that they may be.
PARTS = {
    "year": (["year({})", "extract(year FROM {})", "date_part('year', {})"], [1969, 2020, 9999]),
    "month": (["month({})", "extract('month' FROM {})", "datepart('MONTH', {})"], [2, 3, 12, 13]),
    "day": (["day({})", "dayofmonth({})", "extract(day FROM {})"], [1, 29, 31]),
    "isodow": (["isodow({})", "date_part('isodow', {})"], [1, 3, 6, 7]),
}
_PIECES = ["%", "_", "a", "say", '"', "'", "ä", "\\", "\n", "OR"]


@st.composite
def _leaves(draw: st.DrawFn) -> Leaf:
    column = draw(st.sampled_from(list(COLUMNS)))
    kind, part = COLUMNS[column], ""
    if kind == "VARCHAR" and draw(st.booleans()):
        pattern = "".join(draw(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=5)))
        return Leaf(draw(st.sampled_from(["like", "not like"])), column, (pattern,))
    if kind in ("DATE", "TIMESTAMP") and draw(st.booleans()):
        part = draw(st.sampled_from(list(PARTS)))
    if kind == "BOOLEAN":
        test = draw(st.sampled_from(["=", "<>", "in", "is", "is not", "missing", "distinct"]))
        values: st.SearchStrategy[Any] = st.booleans()
    else:
        test = draw(st.sampled_from([*_OPERATORS, "in", "not in", "between", "missing", "distinct"]))
        numbers = [decimal.Decimal(number) for number in PARTS[part][1]] if part else NUMBERS
        texts = {} if part else {"VARCHAR": TEXTS, "DATE": DAYS, "TIMESTAMP": TIMES}
        values = st.sampled_from(texts.get(kind, numbers))
    several = {"in": st.lists(values, min_size=1, max_size=4), "not in": st.lists(values, min_size=1, max_size=4)}
    several |= {"between": st.lists(values, min_size=2, max_size=2), "missing": st.just([])}
    return Leaf(test, column, tuple(draw(several.get(test, st.lists(values, min_size=1, max_size=1)))), part)


def trees() -> st.SearchStrategy[Any]:
    """Return filter trees over the columns."""
    return st.recursive(
        st.one_of(_leaves(), _leaves(), st.sampled_from([Leaf("true", ""), Leaf("false", "")])),
        lambda inner: st.one_of(
            st.builds(lambda part: Node("not", (part,)), inner),
            st.builds(
                lambda word, parts: Node(word, tuple(parts)),
                st.sampled_from(["and", "or"]),
                st.lists(inner, min_size=2, max_size=4),
            ),
        ),
        max_leaves=10,
    )


class Speller:
    """Writes trees as SQL, each time otherwise, always with the same meaning."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def spelled(self, tree: Any) -> str:
        """Return one spelling of a tree."""
        return self._loose(self._tree(tree))

    def _pick(self, *options: str) -> str:
        return self._chance.choice(options)

    def _loose(self, text: str) -> str:
        return f"{self._pick('', ' ', chr(10))}{text}{self._pick('', ' ', chr(9))}"

    def _word(self, word: str) -> str:
        cased = "".join(self._chance.choice((letter.upper(), letter.lower())) for letter in word)
        return self._pick(word.upper(), word, cased).replace(" ", self._pick(" ", "  ", "\n"))

    def _group(self, text: str) -> str:
        return f"({self._loose(text)})"

    def _maybe_group(self, text: str) -> str:
        return self._group(text) if self._chance.random() < 0.2 else text

    def _tree(self, tree: Any) -> str:
        if isinstance(tree, Leaf):
            text = self._leaf(tree)
        elif tree.word == "not":
            text = self._negated(tree.parts[0])
        else:
            parts = list(tree.parts)
            self._chance.shuffle(parts)
            if self._chance.random() < 0.3:
                parts.append(self._chance.choice(parts))
            text = f" {self._word(tree.word)} ".join(self._group(self._tree(part)) for part in parts)
        if self._chance.random() < 0.1:
            text = f"{self._word('not')} {self._word('not')} {self._group(text)}"
        return self._maybe_group(text)

    def _negated(self, tree: Any) -> str:
        """Return NOT of a tree, sometimes by De Morgan's rules."""
        word = self._word("not")
        if isinstance(tree, Node) and tree.word != "not" and self._chance.random() < 0.5:
            other = self._word("or" if tree.word == "and" else "and")
            return f" {other} ".join(self._group(f"{word} {self._group(self._tree(part))}") for part in tree.parts)
        return f"{word} {self._group(self._tree(tree))}"

    def _leaf(self, leaf: Leaf) -> str:
        test = leaf.test
        if test in ("true", "false"):
            return self._word(test)
        column = self._tested(leaf)
        if test in ("like", "not like"):
            return self._like(column, leaf)
        if test == "missing":
            return self._pick(
                f"{column} {self._word('is null')}", f"{self._word('not')} {column} {self._word('is not null')}"
            )
        constants = list(leaf.constants)
        if test in ("is", "is not", "distinct"):
            return self._two_valued(test, column, leaf)
        if COLUMNS[leaf.column] == "BOOLEAN" and (test == "=" or len(set(constants)) == 1):
            return self._boolean(column, value=constants[0] != (test == "<>"))
        if test in ("in", "not in"):
            return self._members(column, leaf)
        if test == "between":
            low, high = (self._constant(leaf.column, value) for value in constants)
            if self._chance.random() < 0.5:
                return f"{column} {self._word('between')} {low} {self._word('and')} {high}"
            return self._group(f"{column} >= {low} {self._word('and')} {high}>={self._tested(leaf)}")
        return self._comparison(column, test, self._constant(leaf.column, constants[0]))

    def _comparison(self, column: str, operator: str, constant: str) -> str:
        flipped = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
        opposite = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
        before = ""
        if self._chance.random() < 0.3:
            before, operator = self._word("not") + " ", opposite[operator]
        left, right = column, constant
        if self._chance.random() < 0.4:
            left, operator, right = constant, flipped[operator], column
        signs = {"=": ("=", "=="), "<>": ("<>", "!=")}.get(operator, (operator,))
        space = self._pick(" ", "", "  ")
        return f"{before}{self._maybe_group(left)}{space}{self._pick(*signs)} {self._maybe_group(right)}"

    def _two_valued(self, test: str, column: str, leaf: Leaf) -> str:
        (value,) = leaf.constants
        constant = self._constant(leaf.column, value)
        if test == "distinct":
            return self._pick(
                f"{column} {self._word('is distinct from')} {constant}",
                self._group(f"{column} <> {constant} {self._word('or')} {column} {self._word('is null')}"),
            )
        word = "true" if value else "false"
        return self._pick(
            f"{column} {self._word(test)} {self._word(word)}",
            f"{self._word('not')} {column} {self._word('is' if test == 'is not' else 'is not')} {self._word(word)}",
        )

    def _boolean(self, column: str, *, value: bool) -> str:
        yes, no = ("true", "false") if value else ("false", "true")
        return self._pick(
            column if value else f"{self._word('not')} {column}",
            f"{column} = {self._word(yes)}",
            f"{self._word(yes)} == {column}",
            f"{column} <> {self._word(no)}",
            f"{self._word('not')} {column}={self._word(no)}",
            f"{column} {self._word('in')} ({self._word(yes)})",
        )

    def _members(self, column: str, leaf: Leaf) -> str:
        values = list(leaf.constants)
        self._chance.shuffle(values)
        values += values[: self._chance.randrange(2)]
        constants = [self._constant(leaf.column, value) for value in values]
        inside = leaf.test == "in"
        if self._chance.random() < 0.4:
            sign, word = ("=", "or") if inside else ("<>", "and")
            return self._group(f" {self._word(word)} ".join(f"{column} {sign} {each}" for each in constants))
        members = f"({self._pick(',', ', ').join(constants)})"
        if not inside and self._chance.random() < 0.5:
            return f"{self._word('not')} {column} {self._word('in')} {members}"
        return f"{column} {self._word(leaf.test)} {members}"

    def _like(self, column: str, leaf: Leaf) -> str:
        (pattern,) = leaf.constants
        word = self._word(leaf.test)
        if self._chance.random() < 0.5:
            return f"{column} {word} {self._constant(leaf.column, pattern)}"
        doubled = pattern.replace("%", "%%") if self._chance.random() < 0.5 else pattern
        escaped = doubled.replace("a", "!a")  # a letter that means itself anyhow
        return f"{column} {word} {self._constant(leaf.column, escaped)} {self._word('escape')} '!'"

    def _tested(self, leaf: Leaf) -> str:
        column = self._column(leaf.column)
        return self._pick(*PARTS[leaf.part][0]).format(column) if leaf.part else column

    def _column(self, name: str) -> str:
        cased = "".join(letter.upper() if letter.isascii() else letter for letter in name)
        name = self._pick(name, cased)
        plain = name.isascii() and name.isidentifier()
        return name if plain and self._chance.random() < 0.7 else quoted(name)

    def _constant(self, column: str, value: Any) -> str:
        if isinstance(value, bool):
            return self._word(str(value))
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, datetime.datetime):
            return self._time(value)
        if isinstance(value, datetime.date):
            return self._pick("", self._word("date") + self._pick(" ", "")) + f"'{value}'"
        return self._number(value)

    def _time(self, value: datetime.datetime) -> str:
        texts = [str(value), value.isoformat()]
        if value.time() == datetime.time(0):
            texts += [str(value.date()), f"{value.date()} 00:00"]
        text = f"'{self._pick(*texts)}'"
        if value.time() == datetime.time(0) and self._chance.random() < 0.2:
            return f"{self._word('date')} '{value.date()}'"
        return self._pick("", self._word("timestamp") + " ") + text

    def _number(self, value: decimal.Decimal) -> str:
        texts = [str(value), f"{value}0" if "." in str(value) else f"{value}.0", f"{value}e0", f"{value * 10}e-1"]
        if value >= 0:
            texts += [f"+{value}", f"00{value}"]
        text = self._pick(*texts)
        return text.replace("-", "- ", 1) if text.startswith("-") and self._chance.random() < 0.2 else text
