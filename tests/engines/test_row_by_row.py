"""Query strings over pandas answer for each row by itself: what looks at a whole column is refused."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.engines import engine_for
from pkdp_pipeline.engines.question import Question
from pkdp_pipeline.errors import ArgumentError

ROWS = pd.DataFrame(
    {
        "u": [1, 2, 3, 4],
        "v": [1.0, 2.0, 3.0, 40.0],
        "o u": [40.0, 1.0, 1.0, 1.0],
        "s": ["ab", "b", "cd", None],
        "d": pd.to_datetime(["2020-01-01", "2020-06-01", "2021-01-01", None]),
    }
)
WHOLE = [
    "v > v.mean()",
    "abs(v - v.mean()) > 8",
    "v > 1 and (u == 1 | v.rank() > 2)",
    "v > v.shift(1)",
    "v.duplicated()",
    "v > v.iloc[0]",
    "v > v[0]",
    "v < v.size",
    "v == v.T.shape[0]",
    "v in `o u`",
    "v not in `o u`",
    "v.isin(`o u`)",
    "v.isin(`o u`.head(1))",
    "v.between(0, `o u`.max())",
    "s == s.str.cat()",
    "v > index.size",
    "`o u`.cumsum() > 1",
    "s.fillna('b', limit=1) == 'b'",
    "v.fillna(`o u`.mean()) > 1",
]
EACH_ROW = {
    "v > 2": 2,
    "v > `o u`": 3,
    "v.between(1, 2) and u != 1": 1,
    "v.isin([1.0, -40.0])": 1,
    "v in [1, 2] and u in (2, 3)": 1,
    "sqrt(v) > 1.5": 2,
    "(v - 2).abs() < 1.5": 3,
    "s.str.len() == 2": 2,
    "s.str.startswith('a') | s.isna()": 2,
    "s.str[0] == 'c'": 1,
    "d.dt.year == 2020": 2,
    "d.dt.strftime('%Y') in ['2020']": 2,
    "s == 'v.mean()'": 0,
    "s.fillna('b') == 'b'": 2,
    "v.round().eq(2) or -v > -2": 2,
}


@pytest.mark.parametrize("query", WHOLE)
def test_what_looks_at_a_whole_column_is_refused(query):
    with pytest.raises(ArgumentError, match="looks at more than a row") as caught:
        engine_for(ROWS).tally(ROWS, Question(unit=("u",), where=query))
    assert "pkdp_name" not in str(caught.value)


@pytest.mark.parametrize("query", EACH_ROW)
def test_what_is_computed_row_by_row_is_counted(query):
    assert engine_for(ROWS).tally(ROWS, Question(unit=("u",), where=query)).satisfying == EACH_ROW[query]


@pytest.mark.parametrize("query", EACH_ROW)
def test_other_rows_change_no_answer(query):
    apart = [
        engine_for(ROWS).tally(ROWS.iloc[[row]], Question(unit=("u",), where=query)).satisfying for row in range(4)
    ]
    assert sum(apart) == EACH_ROW[query]


def test_why_one_person_would_move_all_answers():
    # Noise of ε = 1 hides a person in a count that she changes by one. She changes this one by all of its people.
    others = pd.DataFrame({"u": range(100), "v": 1.0})
    with_her = pd.concat([others, pd.DataFrame({"u": [100], "v": [1e6]})])
    far = [int((frame["v"] - frame["v"].mean()).abs().gt(8).sum()) for frame in (others, with_her)]
    assert far == [0, 101]
    for mechanism in ({"noise": pkdp.GeometricNoise(1.0)}, {"k": 20}):
        attacker = pkdp.AttackerModel(p_max=0.1)
        with pytest.raises(ArgumentError, match=r"v\.mean"):
            with_her.pkdp.count("abs(v - v.mean()) > 8", unit="u", attacker=attacker, **mechanism)
