"""Public counts: one count for each cell is read, anything else is refused without repeating a value."""

from __future__ import annotations

import pytest

from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.plan.question import Assumed, CountsFile

SECRET = "Nakamura"


def written(tmp_path, text: str, *, encoding: str = "utf-8") -> str:
    path = tmp_path / "public.csv"
    path.write_bytes(text.encode(encoding))
    return str(path)


@pytest.mark.parametrize(
    "text",
    [
        "cell,count\na,10\nb,0\nc,7\n",
        "cell;count\na;10\nb;0\nc;7\n",
        "count\tcell\n10\ta\n0\tb\n7\tc\n",
        "\ufeffcell, count\r\n\r\na, 10\r\n'b', 0\r\nc, 7\r\n\r\n",
        "count\n10\n0\n7\n",
        'cell,count\n"a, b",10\n"c\nd",0\ne,7.0\n',
    ],
)
def test_counts_are_read(tmp_path, text):
    file = CountsFile(path=written(tmp_path, text))
    assert file.has("count")
    assert file.read().counts == (10, 0, 7)
    assert file.read().basis == "If the counts are those of public.csv, declared public."
    assert not file.read().protected


def test_another_column_can_hold_the_counts(tmp_path):
    path = written(tmp_path, "cell,n,count\na,5,1\nb,6,2\n")
    assert CountsFile(path=path, column="n").read().counts == (5, 6)
    assert CountsFile(path=path, column="n").options == ["--public-counts", path, "--count-column", "n"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("cell,count\n", "has no rows below its header"),
        (f"name,age\n{SECRET},41\nSato,37\n", "no column 'count'"),
        (f"{SECRET},41\nSato,37\n", "no column 'count'"),
        (f"count,count\n{SECRET},41\n", "several columns 'count'"),
        (f"name,count\n{SECRET},{SECRET}\n", "a whole number of at least 0"),
        (f"name,count\n{SECRET},-41\n", "a whole number of at least 0"),
        (f"name,count\n{SECRET},41.5\n", "a whole number of at least 0"),
        (f"name,count\n{SECRET},\n", "where one is suppressed, write what is assumed"),
        (f"name,count\n{SECRET},٤١\n", "a whole number of at least 0"),
        (f"name,count\n{SECRET},{'9' * 5000}\n", "a whole number of at least 0"),
        (f"name,count\n{SECRET},41,42\n", "more or fewer fields"),
        (f"name,count\n{SECRET},41\n{SECRET},42\n", "several rows for the same values"),
        (f"name,count\n{SECRET},1\nSato,1\n", "one row for each person"),
    ],
)
def test_what_is_no_table_of_counts_is_refused_without_its_values(tmp_path, text, rule):
    with pytest.raises(ConfigError) as refused:
        CountsFile(path=written(tmp_path, text)).read()
    message = str(refused.value)
    assert rule in message
    assert "--public-counts" in message
    for value in (SECRET, "41", "42", "Sato", "٤١", "999"):
        assert value not in message.replace(str(tmp_path), "")


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        CountsFile(path=str(tmp_path / "nowhere.csv")).read()
    with pytest.raises(ConfigError, match="cannot be read"):
        CountsFile(path=str(tmp_path)).read()
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        CountsFile(path=written(tmp_path, "cell,count\n\xe9,3\n", encoding="latin-1")).read()
    with pytest.raises(ConfigError, match=r"several rows|cannot be read as CSV"):
        CountsFile(path=written(tmp_path, f"cell,count\n{'x' * 200_000},3\n")).read()


def test_assumed_counts():
    even, zipf = Assumed(cells=3, people=10), Assumed(cells=3, people=11, spread="zipf")
    assert sorted(even.read().counts) == [3, 3, 4]
    assert zipf.read().counts == (6, 3, 2)
    assert even.options == ["--assumed-cells", "3", "--assumed-people", "10"]
    assert zipf.options[-2:] == ["--assumed-spread", "zipf"]
    single = Assumed(cells=1, people=40)
    assert (single.read().counts, single.read().basis) == (
        (40,),
        "If the counts are those of the assumption of 40 people.",
    )
    assert single.options == ["--assumed-people", "40"]
    for wrong in ({"cells": 0, "people": 1}, {"cells": 1, "people": -1}, {"cells": 10**7, "people": 1}):
        with pytest.raises(ArgumentError, match="--assumed"):
            Assumed(**wrong)
    with pytest.raises(ArgumentError, match="--assumed-spread"):
        Assumed(cells=1, people=1, spread="odd")
