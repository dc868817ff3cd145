"""What a query string may not do is told in its own words, and a name that is no column with those that are."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pytest

import pkdp_pipeline as pkdp

FRAME = pd.DataFrame({"person": range(40), "town": "x", "a b": 1})


def refusal(frame, where):
    with pytest.raises(pkdp.ArgumentError) as caught:
        pkdp.count(frame, where, unit="person", k=2, attacker=pkdp.AttackerModel(p_max=0.5))
    return str(caught.value)


@pytest.mark.parametrize("kind", ["pandas", "polars", "relation"])
def test_names_and_functions(kind):
    with duckdb.connect() as connection:
        frame = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "relation": connection.from_df(FRAME)}[kind]
        assert refusal(frame, "city == 'x'").endswith("It has 'person', 'town', 'a b'; a text is written 'city'.")
        assert refusal(frame, "pers == 'x'").endswith("does not have. Did you mean 'person'?")
        assert refusal(frame, "twon == 'x'").endswith("does not have. Did you mean 'town'?")
        assert "written like age >= 65 and town == 'Ely'" in refusal(frame, "town = 'x'")
        for call in ("len(town)", "max(`a b`)"):
            message = refusal(frame, f"{call} > 2")
            assert message.startswith(f"where calls a function: {call}. A query string ")
            assert "may use columns, constants, comparisons" in message


@pytest.mark.parametrize(
    ("where", "start"),
    [
        ("`a b` + 1 > 2", "where calculates: `a b` + 1."),
        ("town is None", "where compares by 'is'."),
        ("town[0] == 'x'", "where asks for a part of a column: town[0]."),
        ("(person == 1) == True", "where compares a comparison: person == 1."),
        ("town == None", "where holds: None."),
    ],
)
def test_other_words(where, start):
    message = refusal(pl.from_pandas(FRAME), where)
    assert message.startswith(start)
    assert "filter the frame itself" in message
