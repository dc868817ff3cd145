"""Query strings: one predicate for equal spellings, and nothing that looks at more than a row."""

from __future__ import annotations

import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.predicate import from_query
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.sql.filters import from_sql

EQUAL = {
    "a in [1, 2]": ["a == 1 or 2 == a", "a in (2, 1.0, 2)", "not (a != 1 and a != 2)", "a == 2 | a == 1"],
    "a > 5 and b != 'x'": ["5 < a and not b == 'x'", 'not (b == "x" or not a > 5)', "(a > 5) & (b != 'x') & (a > 5)"],
    "a > 5": ["a.notna() and a > 5.0", "not not (a > 5)"],
    "a < b": ["b > a", "`b` > `a`"],
    "`a b`": ["`a b` == True", "not `a b` != True"],
    "a.str.like('A%')": ["a.str.startswith('A')", "a.str.like('A%%')", 'a.str.startswith("A") and a.notna()'],
    r"a.str.like('%50\\%%')": ["a.str.contains('50%')", "a.str.contains('50%', regex=False)"],
    "`a b`.str.like('%é')": ["`a b`.str.endswith('é')"],
    "a == 'x'": ["a.str.like('x')"],
    "not a.str.like('a_%b')": ["~a.str.like('a%_b')"],
    "a.dt.year == 2013": ["2013 == a.dt.year", "a.dt.year in [2013]", "a.notna() and a.dt.year == 2013.0"],
    "a.dt.isocalendar().day in [1, 7]": ["a.dt.day_of_week in [0, 6]", "a.dt.weekday == 0 or a.dt.dayofweek == 6"],
    "a.dt.isocalendar().day < 6": ["a.dt.dayofweek < 5", "6 > a.dt.isocalendar().day"],
    "a.dt.month in [1, 2] or a.isna()": ["a.dt.month == 2 or a.isna() or a.dt.month == 1"],
}
REFUSED = [
    *("v > v.mean()", "abs(v - v.mean()) > 8", "v > v.shift(1)", "v.duplicated()", "v > v.iloc[0]", "v > v[0]"),
    *("v in u", "v.isin(u)", "s == s.str.cat()", "v + 1 > 2", "v == @w", "v > 1 # and u", "f'{v}' == 'x'", "b'x' == v"),
    *("__import__('os')", "v == 1; u", "lambda: v", "'''v''' == v", "v == 1e999", "v in [1, 'x']", "(v == 1) == True"),
    *(
        "s.str.contains('a.c')",
        "s.str.len() > 3",
        "s.str.startswith(('a', 'b'))",
        "s.str.startswith(u)",
        "s.startswith('a')",
    ),
    *(
        "s.str.like('a', case=False)",
        "s.str.like('a\\\\')",
        "d.dt.hour == 3",
        "d.dt.year == u",
        "d.dt.year",
        "d.year == 2013",
    ),
    *(
        "d.dt.year.isna(1)",
        "d.dt.date == '2013-01-02'",
        "s.str.like('" + "_" * 201 + "')",
        "d.dt.year.notna() and d.isna()",
    ),
    *("not " * 5_000 + "v", "(" * 300 + "v" + ")" * 300, "1 == 1", "True", "", "`v == 1", "v and not v.notna()"),
]


@pytest.mark.parametrize(("text", "other"), [(text, other) for text, others in EQUAL.items() for other in others])
def test_equal_query_strings_are_one_predicate(text, other):
    assert str(from_query(other)) == text
    assert from_query(text) == from_query(other)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_what_is_no_comparison_of_columns_is_refused(text):
    with pytest.raises(ArgumentError, match=r"^where"):
        from_query(text)


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        ("town == 'Ely' and age > 18", "AGE > 18.5 AND \"town\" = 'Ely'"),
        ("age in [3, 1] or age.isna()", "age = 1 OR age IS NULL OR age = 3.0"),
        ("age != 1 and age.notna()", "NOT age IN (1)"),
        ("town.str.startswith('E') and day.dt.year == 2020", "town LIKE 'E%' AND extract(year FROM day) = 2020"),
        ("not town.str.like('E_y%') and town.notna()", "town NOT LIKE 'E_y%%'"),
        ("day.dt.day_of_week >= 5", "isodow(day) >= 6"),
        ("day >= '2020-01-31' and adult", "adult IS TRUE AND DATE '2020-01-31' <= day"),
    ],
)
def test_one_question_has_one_key_in_python_and_in_sql(query, sql):
    columns = {"age": "TINYINT", "town": "VARCHAR", "day": "DATE", "adult": "BOOLEAN"}
    fields = {"mechanism": pkdp.Count(k=5), "unit": "person", "period": "2020"}
    in_python, in_sql = (Question(where=where, **fields) for where in (query, from_sql(sql, columns)))
    assert in_python.key("d") == in_sql.key("d")
    assert in_python.key("d") != Question(where=f"not ({query})", **fields).key("d")
