"""What a pandas query string may ask about times: nothing that pandas would answer wrongly without a word."""

from __future__ import annotations

import pandas as pd
import pytest

from pkdp_pipeline.engines import Question, engine_for
from pkdp_pipeline.errors import ArgumentError

TIMES = pd.DataFrame(
    {
        "u": [1, 2, 3],
        "d": pd.to_datetime(["2020-01-01", "2020-01-02", None]),
        "on day": pd.to_datetime(["2020-01-01", "2020-01-02", None]),
        "at": pd.to_datetime(["2020-01-01", "2020-01-02", None], utc=True),
        "long": pd.to_timedelta(["1D", "2D", None]),
        "month": pd.PeriodIndex(["2020-01", "2020-02", None], freq="M"),
        "arrow": pd.to_datetime(pd.Series(["2020-01-01", "2020-01-02", None])).astype("timestamp[us][pyarrow]"),
        "text": ["2020-01-01", "d == 'x'", None],
    }
)


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("d == '2020-01-01'", "column 'd'"),
        ("d != '2020-01-01'", "column 'd'"),
        ("'2020-01-01' == d", "column 'd'"),
        ("d in ['2020-01-01']", "column 'd'"),
        ("d not in ('2020-01-01',)", "column 'd'"),
        ("d == ['2020-01-01']", "column 'd'"),
        ("d.isin(['2020-01-01'])", "column 'd'"),
        ("~(d == '2020-01-01') & u == 1", "column 'd'"),
        ("u == 1 | d == '2020-01-01'", "column 'd'"),
        ("'2019-01-01' < d == '2020-01-01'", "column 'd'"),
        ("text == '`' and `on day` == '2020-01-01'", "column 'on day'"),
        ("d.dt.normalize() == '2020-01-01'", "an expression"),
        ("at == '2020-01-01 00:00:00+00:00'", "column 'at'"),
        ("long == '1D'", "column 'long'"),
        ("month == '2020-01'", "column 'month'"),
    ],
)
def test_pandas_is_not_asked_whether_a_time_equals_a_text(query, column):
    engine = engine_for(TIMES)
    with pytest.raises(ArgumentError, match=f"{column}, which has dtype .*; in a query string pandas finds") as caught:
        engine.tally(TIMES, Question(unit=("u",), where=query))
    assert "d >= '2020-01-01' and d <= '2020-01-01'" in str(caught.value)


@pytest.mark.parametrize(
    ("query", "satisfying"),
    [
        ("d >= '2020-01-01' and d <= '2020-01-01'", 1),
        ("'2020-01-01' <= `on day` <= '2020-01-01'", 1),
        ("arrow == '2020-01-01'", 1),
        ("arrow in ['2020-01-01']", 1),
        ("text == '2020-01-01'", 1),
        ("text == \"d == 'x'\" | u == 1", 2),
        ("d.dt.day_name() == 'Wednesday'", 1),
        ("d.dt.strftime('%Y') in ['2020']", 2),
        ("d == d", 2),
    ],
)
def test_pandas_answers_whatever_else_is_asked_about_times(query, satisfying):
    assert engine_for(TIMES).tally(TIMES, Question(unit=("u",), where=query)).satisfying == satisfying
