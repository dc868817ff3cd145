from __future__ import annotations

import gzip
import zoneinfo
from datetime import UTC, date, datetime, timedelta

import duckdb
import pandas as pd
import pytest
from local_spark import local_spark
from source_jobs import job_of
from thorough import one_in, thinned

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.tables import PeriodTable

DAY = date(2013, 1, 2)
AT = PeriodTable(column="at")


@pytest.fixture
def opened(engine):
    """Return a function that opens a source with the engine."""
    sources = []

    def build(source, **keys):
        sources.append(open_source(job_of(source, engine, **keys)))
        return sources[-1]

    yield build
    for source in sources:
        source.close()


def parquet(path, select: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")
    return str(path)


def rows(source, columns=("n",), day=DAY, **period):
    """Return the rows of a day as the engine's own frame has them, in order."""
    frame = source.day(PeriodTable(**({"column": "at"} | period)), day)
    if isinstance(frame, duckdb.DuckDBPyRelation):
        fetched = frame.project(", ".join(f'"{column}"' for column in columns)).fetchall()
    else:
        fetched = [tuple(row) for row in frame.select(*(f"`{column}`" for column in columns)).collect()]
    assert source.counts(PeriodTable(**({"column": "at"} | period)), day, ()) == (len(fetched), 0)
    return sorted(fetched, key=repr)


# Several Parquet files


def test_a_pattern_reads_all_files_by_the_names_of_their_columns(opened, tmp_path):
    parquet(tmp_path / "in" / "a.parquet", f"SELECT DATE '{DAY}' AS at, 1 AS n, 'x' AS t")
    parquet(tmp_path / "in" / "b.parquet", f"SELECT 'y' AS t, 2 AS n, DATE '{DAY}' AS at")
    parquet(tmp_path / "in" / "deep" / "c.parquet", f"SELECT DATE '{DAY}' AS at, 3 AS n, 'z' AS t")
    keys = {"release": [{"name": "a", "by": "t", "k": 5}]}
    assert rows(opened(str(tmp_path / "in" / "*.parquet"), **keys), ("n", "t")) == [(1, "x"), (2, "y")]
    assert rows(opened(str(tmp_path / "in" / "**" / "*.parquet"))) == [(1,), (2,), (3,)]
    listed = [str(tmp_path / "in" / "b.parquet"), str(tmp_path / "in" / "*.parquet")]
    assert rows(opened({"files": listed})) == [(1,), (2,)]


def test_a_column_that_a_file_lacks_or_holds_otherwise_is_an_error_where_the_job_needs_it(opened, tmp_path):
    parquet(tmp_path / "a.parquet", f"SELECT DATE '{DAY}' AS at, 1 AS n, 'Secretville' AS other, 7 AS mine")
    parquet(tmp_path / "b.parquet", f"SELECT DATE '{DAY}' AS at, 2 AS n, 5 AS other")
    pattern = str(tmp_path / "*.parquet")
    source = opened(pattern)
    assert rows(source) == [(1,), (2,)]
    assert list(source.columns) == ["at", "n"]
    for column, words in (
        (
            "other",
            f"of source {pattern!r} must agree on their columns: 'other' is VARCHAR in 'a.parquet' and ",
        ),
        ("other", "INTEGER in 'b.parquet';"),
        ("mine", "missing in 'b.parquet'"),
    ):
        with pytest.raises(ConfigError, match="must agree on their columns") as caught:
            opened(pattern, release=[{"name": "a", "by": column, "k": 5}])
        assert repr(column) in str(caught.value)
        assert words in str(caught.value)
        assert "Secretville" not in str(caught.value)
    with pytest.raises(ConfigError, match="'mine'"):
        opened(pattern, release=[{"name": "a", "where": "mine > 3", "k": 5}])


def test_two_files_of_many_that_disagree_are_named_and_no_others(opened, tmp_path):
    for name, kind in {"a": 1, "b": 1, "c": "'x'", "d": 1.5, "e": 1}.items():
        parquet(tmp_path / f"{name}.parquet", f"SELECT DATE '{DAY}' AS at, 1 AS n, {kind} AS t")
    with pytest.raises(ConfigError, match=r"is INTEGER in 'a\.parquet' and VARCHAR in 'c\.parquet';") as caught:
        opened(str(tmp_path / "*.parquet"), release=[{"name": "a", "by": "t", "k": 5}])
    assert str(caught.value).count(".parquet") == 3


def test_text_may_be_stored_as_categories_in_some_files(opened, tmp_path):
    for name, dtype in (("a", "category"), ("b", "str")):
        frame = pd.DataFrame({"at": [DAY], "n": [name], "t": pd.Series(["x"], dtype=dtype)})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    source = opened(str(tmp_path / "*.parquet"), release=[{"name": "a", "by": "t", "k": 5}])
    assert rows(source, ("n", "t")) == [("a", "x"), ("b", "x")]


def test_a_pattern_that_matches_nothing_is_an_error_that_names_it(opened, tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    for name in ("2013-*.parquet", "**/x?.parquet", "*.parquet"):
        with pytest.raises(ConfigError, match="matches no file") as caught:
            opened(str(tmp_path / name))
        assert name in str(caught.value)


def test_a_folder_named_like_a_date_adds_no_column(opened, tmp_path):
    for day in ("2013-01-01", "2013-01-02"):
        parquet(tmp_path / f"at={day}" / "a.parquet", f"SELECT DATE '{DAY}' AS at, 1 AS n")
    assert rows(opened(str(tmp_path / "*" / "a.parquet"))) == [(1,), (1,)]


# The newest day, and rows as a frame


def test_the_newest_day_is_over_all_rows_and_cut_in_the_zone(opened, tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        "SELECT * FROM (VALUES (DATE '2013-01-02', TIMESTAMPTZ '2013-01-05 23:30:00+00', 1.5, "
        "TIMESTAMP '2013-01-04 10:00:00', NULL::DATE), (DATE '2013-01-03', NULL, NULL, NULL, NULL)) "
        'AS v("at", instant, n, local, never)',
    )
    source = opened(path)
    assert source.newest(AT, "at") == date(2013, 1, 3)
    assert source.newest(AT, "local") == date(2013, 1, 4)
    assert source.newest(AT, "never") is None
    assert source.newest(PeriodTable(column="instant", time_zone="UTC"), "instant") == date(2013, 1, 5)
    with pytest.raises(ConfigError, match="time_zone"):
        source.newest(AT, "instant")
    assert source.newest(PeriodTable(column="instant", time_zone="Europe/Oslo"), "instant") == date(2013, 1, 6)
    with pytest.raises(ConfigError, match="not dates"):
        source.newest(AT, "n")
    with pytest.raises(ConfigError, match="no column 'nowhere'"):
        source.newest(AT, "nowhere")
    with pytest.raises(ConfigError, match="no column 'nowhere'"):
        source.day(PeriodTable(column="nowhere"), DAY)


def test_a_frame_of_a_day_has_dtypes_of_its_columns_alone(opened, tmp_path):
    path = parquet(
        tmp_path / "a.parquet",
        "SELECT * FROM (VALUES (DATE '2013-01-02', 1::BIGINT, 'x', true, 1.5::DOUBLE, "
        "TIMESTAMP '2013-01-02 10:00:00', TIMESTAMPTZ '2013-01-02 10:00:00+00'), "
        "(DATE '2013-01-02', NULL, NULL, NULL, NULL, NULL, NULL), "
        "(DATE '2013-01-03', 9007199254740993, 'y', false, 2.5, NULL, NULL)) AS v(\"at\", n, t, b, r, local, instant)",
    )
    source = opened(path)
    columns = ["t", "n", "b", "r", "at", "local", "instant"]
    first, second = source.pandas(AT, DAY, columns), source.pandas(AT, date(2013, 1, 3), columns)
    none = source.pandas(AT, date(2014, 1, 1), columns)
    assert len(first) == 2
    assert second["n"].tolist() == [9007199254740993]
    assert len(none) == 0
    expected = ["str", "Int64", "boolean", "float64", "datetime64[us]", "datetime64[us]", "datetime64[us, UTC]"]
    for frame in (first, second, none):
        assert list(frame.columns) == columns
        assert [str(dtype) for dtype in frame.dtypes] == expected
    assert first["instant"].dropna().tolist()[0].isoformat() == "2013-01-02T10:00:00+00:00"


# CSV

FLIGHTS = """at,n,tail,distance,late,delay
2013-01-02,1,00123,500,true,1.5
2013-01-02,2,"N""1,2",,false,
2013-01-03,3,NA,7,true,-2e3
"""
TYPES = {"n": "number", "distance": "number", "late": "boolean", "delay": "real"}


def csv(tmp_path, text: str | bytes, name: str = "a.csv") -> str:
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_is_read_as_text_but_for_what_is_declared(opened, tmp_path, name):
    source = opened(
        {"files": csv(tmp_path, FLIGHTS, name), "types": TYPES},
        release=[{"name": "a", "by": ["tail", "distance", "late", "delay"], "k": 5}],
    )
    assert source.columns == {
        "at": "date", "n": "number", "tail": "text", "distance": "number", "late": "boolean", "delay": "real"
    }  # fmt: skip
    assert rows(source, ("n", "tail", "distance", "late", "delay")) == [
        (1, "00123", 500, True, 1.5),
        (2, 'N"1,2', None, False, None),
    ]
    assert source.counts(AT, DAY, ("distance",)) == source.counts(AT, DAY, ("delay",)) == (2, 1)
    assert source.newest(AT, "at") == date(2013, 1, 3)
    # With the second day the files are kept in memory; it is the same answer.
    assert rows(source, ("tail", "delay"), date(2013, 1, 3)) == [("NA", -2000.0)]
    assert rows(source, ("n",)) == [(1,), (2,)]
    assert source.pandas(AT, DAY, ["tail"])["tail"].tolist() == ["00123", 'N"1,2']


def test_what_stands_for_a_missing_value_is_declared(opened, tmp_path):
    text = "at;n;t\n2013-01-02;1;NA\n2013-01-02;2;\n2013-01-02;3;x\nNA;4;x\n"
    path = csv(tmp_path, text)
    keys = {"release": [{"name": "a", "by": "t", "k": 5}]}
    both = opened({"files": path, "delimiter": ";", "null": ["", "NA"]}, **keys)
    assert rows(both, ("n", "t")) == [("1", None), ("2", None), ("3", "x")]
    na = opened({"files": path, "delimiter": ";", "null": ["NA"]}, **keys)
    assert rows(na, ("n", "t")) == [("1", None), ("2", ""), ("3", "x")]
    with pytest.raises(ConfigError, match="column 'at' must hold dates"):
        rows(opened({"files": path, "delimiter": ";", "null": []}, **keys))


@thinned(2)
@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    one_in(
        2,
        [
            ("number", ["7", "-7", "+07"], ["7.0", "1e3", " 7", "0x7", "99999999999999999999", "1,000", "inf"]),
            ("real", ["7", "1.5", "-1e3", ".5"], ["1,5", "inf", "nan", "1.5 ", "1e", "--1"]),
            ("boolean", ["true", "FALSE"], ["1", "yes", "t"]),
            (
                "date",
                ["2013-01-31"],
                ["2013-1-31", "2013-02-30", "31.01.2013", "2013-01-31 00:00:00", "infinity", "today"],
            ),
            ("timestamp", ["2013-01-31 10:00", "2013-01-31T10:00:00.123456"], ["2013-01-31", "2013-01-31T10:00:00Z"]),
            ("timestamp", ["2013-01-31 10:00:07"], ["2013-01-31 25:00:00", "2013-01-31T10:00:00.1234567", "-infinity"]),
            ("instant", ["2013-01-31T10:00:00Z", "2013-01-31 10:00:00+0530"], ["2013-01-31T10:00:00", "2013-01-31"]),
            ("instant", ["2013-01-31T10:00+01", "2013-01-31T10:00:00-03:30"], ["2013-01-31T10:00:00 UTC"]),
        ],
    ),
)
def test_a_value_that_is_not_of_its_type_stops_without_being_told(tmp_path, kind, good, bad):
    for value in good + bad:
        path = csv(tmp_path, f'at,n\n2013-01-02,"{value}"\n2013-01-02,\n')
        source = open_source(job_of({"files": path, "types": {"n": kind}}))
        try:
            if value in good:
                assert source.pandas(AT, DAY, ["n"])["n"].notna().tolist() == [True, False]
                continue
            with pytest.raises(ConfigError, match="column 'n' must hold") as caught:
                rows(source)
            said = str(caught.value).partition("correct the file")[0]
            assert f"{value}," not in said
            assert f" {value} " not in said.replace("such as 1.5,", "")
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
        finally:
            source.close()


def test_a_wrong_value_on_another_day_does_not_matter_but_its_day_must_be_readable(opened, tmp_path):
    path = csv(tmp_path, "at,n\n2013-01-02,1\n2013-01-03,many\n2013-01-04,2\n")
    source = opened({"files": path, "types": {"n": "number"}})
    for _ in range(2):
        assert rows(source) == [(1,)]
        with pytest.raises(ConfigError, match="whole numbers"):
            rows(source, day=date(2013, 1, 3))
        assert rows(source, day=date(2013, 1, 4)) == [(2,)]
    path = csv(tmp_path, "at,n\n2013-01-02,1\nsoon,2\n")
    with pytest.raises(ConfigError, match="column 'at' must hold dates"):
        rows(opened({"files": path}))


def test_what_is_said_of_a_period_column_that_holds_something_else_leads_to_a_job_that_runs(opened, tmp_path):
    def refusal(source, **keys):
        with pytest.raises(ConfigError) as caught:
            rows(source, **keys)
        assert '= "text"' not in str(caught.value)
        return str(caught.value)

    instants = csv(tmp_path, "at,n\n2013-01-01T23:30:00Z,1\n")
    zone = {"column": "at", "time_zone": "Europe/Oslo"}
    assert "period.time_zone" in refusal(opened({"files": instants}))
    assert rows(opened({"files": instants}, period=zone), time_zone="Europe/Oslo") == [("1",)]
    assert 'types = { at = "date" } in source for dates' in refusal(
        opened({"files": instants, "types": {"at": "timestamp"}})
    )
    times = csv(tmp_path, "at,n\n2013-01-02T23:30:00,1\n")
    said = refusal(opened({"files": times}, period=zone), time_zone="Europe/Oslo")
    assert 'types = { at = "timestamp" }' in said
    assert rows(opened({"files": times, "types": {"at": "timestamp"}})) == [("1",)]


def test_decimals_where_whole_numbers_are_declared_are_told_their_type(opened, tmp_path):
    path = csv(tmp_path, "at,n\n2013-01-02,1.5\n")
    with pytest.raises(ConfigError, match=r'types = \{ n = "real" \}'):
        rows(opened({"files": path, "types": {"n": "number"}}))
    assert rows(opened({"files": path, "types": {"n": "real"}})) == [(1.5,)]


def test_periods_of_csv_follow_their_declared_type_and_zone(opened, tmp_path):
    path = csv(
        tmp_path,
        "at,n\n2013-01-01T22:59:59Z,1\n2013-01-02T00:00:00+01:00,2\n2013-01-02 23:59:59+01,3\n"
        "2013-01-02T18:00:00-0500,4\n",
    )
    zone = {"column": "at", "time_zone": "Europe/Oslo"}
    for types in ({}, {"at": "instant"}):
        source = opened({"files": path, "types": types}, period=zone)
        assert source.columns["at"] == "instant"
        assert rows(source, time_zone="Europe/Oslo") == [("2",), ("3",)]
        assert rows(source, time_zone="UTC") == [("3",), ("4",)]
        assert source.newest(PeriodTable(**zone), "at") == date(2013, 1, 3)
    path = csv(tmp_path, "at,n\n2013-01-02T00:00,1\n2013-01-02 23:59:59,2\n2013-01-03 00:00:00,3\n")
    assert rows(opened({"files": path, "types": {"at": "timestamp"}})) == [("1",), ("2",)]
    with pytest.raises(ConfigError, match="column 'at' must hold dates"):
        rows(opened({"files": path}))


def test_files_of_csv_agree_by_name_and_may_end_their_lines_as_they_like(opened, tmp_path):
    csv(tmp_path, "at,n,t\r\n2013-01-02,1,Ås\r\n", "a.csv")
    csv(tmp_path, b'\xef\xbb\xbft,at,n,more\n"B\xc3\xb8",2013-01-02,2,x', "b.csv")
    csv(tmp_path, "n,t,at\n3,x,2013-01-02\n", "c.csv.gz")
    csv(tmp_path, "n,t,at\n", "empty.csv")
    keys = {"release": [{"name": "a", "by": "t", "k": 5}]}
    source = opened({"files": [str(tmp_path / "*.csv"), str(tmp_path / "*.csv.gz")], "format": "csv"}, **keys)
    assert rows(source, ("n", "t")) == [("1", "Ås"), ("2", "Bø"), ("3", "x")]
    with pytest.raises(ConfigError, match="'more'"):
        opened(str(tmp_path / "*.csv"), release=[{"name": "a", "by": "more", "k": 5}])


@pytest.mark.parametrize(
    "content",
    [
        "at,n\n2013-01-02,Ås\n".encode("latin-1"),
        "at,n\n2013-01-02,Ås\n".encode("utf-16"),
        b"at,n\n2013-01-02,1,secret\n",
        b"at,n\n2013-01-02\n",
        b'at,n\n2013-01-02,"open\n',
        b"at,\n2013-01-02,1\n",
        b"at,at\n2013-01-02,1\n",
        b"",
    ],
)
def test_what_is_no_csv_file_is_an_error_without_its_content(opened, tmp_path, content):
    with pytest.raises(ConfigError) as caught:
        rows(opened(csv(tmp_path, content)))
    assert "a.csv" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@thinned(4)
@pytest.mark.parametrize(
    "content",
    [
        b"at,n\n2013-01-02,1,secret\n",
        b"at,n\n2013-01-02\n",
        "at,n\n2013-01-02,Ås\n".encode("latin-1"),
        b"at,\n2013-01-02,1\n",
        b"",
        b"at,n\nsecret,1\n",
        b"at,n\n2013-01-02,secret\n",
    ],
)
@pytest.mark.parametrize("days", [1, 3])
def test_of_several_files_the_one_that_is_wrong_is_named(opened, tmp_path, content, days):
    csv(tmp_path, "at,n\n2013-01-02,1\n", "a.csv")
    csv(tmp_path, content, "b.csv")
    csv(tmp_path, "n,at\n1,2013-01-02\n", "c.csv")

    def read():
        source = opened({"files": str(tmp_path / "*.csv"), "types": {"n": "number"}})
        for day in range(days, 0, -1):  # with the second day, what the files hold is kept
            rows(source, day=date(2013, 1, 1 + day))

    with pytest.raises(ConfigError) as caught:
        read()
    assert repr(str(tmp_path / "b.csv")) in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_type_for_a_column_that_is_not_there_is_an_error(opened, tmp_path):
    with pytest.raises(ConfigError, match=r"no column 'm' \(source.types\)"):
        opened({"files": csv(tmp_path, "at,n\n"), "types": {"m": "number"}})


def test_a_broken_gzip_file_is_an_error(opened, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"at,n\n" + b"2013-01-02,1\n" * 9000)[:-20])
    with pytest.raises(ConfigError, match="cannot be read to its end as CSV"):
        rows(opened(str(path)))
    path.write_bytes(b"at,n\n")
    with pytest.raises(ConfigError, match="cannot be read to its end as CSV"):
        opened(str(path))


def test_a_day_of_csv_has_both_its_parts_where_clocks_go_back_over_midnight(tmp_path):
    begin = datetime(2010, 11, 7, 2, 0, 30, tzinfo=UTC)
    moments = [begin + timedelta(minutes=30 * n) for n in range(50)]
    text = "at,n\n" + "".join(f"{moment.isoformat()},{n}\n" for n, moment in enumerate(moments))
    source = open_source(
        job_of({"files": csv(tmp_path, text)}, period={"column": "at", "time_zone": "America/St_Johns"})
    )
    local = zoneinfo.ZoneInfo("America/St_Johns")
    try:
        for day in (date(2010, 11, 6), date(2010, 11, 7)):
            expected = [(str(n),) for n, moment in enumerate(moments) if moment.astimezone(local).date() == day]
            assert expected
            assert rows(source, day=day, time_zone="America/St_Johns") == sorted(expected, key=repr)
    finally:
        source.close()


@pytest.mark.spark
def test_csv_at_an_address_is_refused_with_what_to_do(tmp_path):
    local_spark()
    with pytest.raises(ConfigError, match="store it as Parquet"):
        open_source(job_of((tmp_path / "a.csv").as_uri(), "spark"))
