"""CSV as it is written in Europe, and rows that have too few or too many values."""

from __future__ import annotations

import csv
import gzip
import re
from contextlib import closing
from datetime import date

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_jobs import job_of
from thorough import few, spread, thinned

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.tables import PeriodTable

DAY = date(2026, 2, 1)
TYPES = {"dose": "real", "at": "timestamp"}
EUROPEAN = (
    "Tag;Person;Stadt;dose;at\r\n"
    "01.02.2026;Müller;Köln;1,5;01.02.2026 13:45\r\n"
    '1.2.2026;"O;Neill";;-,25;1.2.2026T23:59:59,5\r\n'.replace(",5\r\n", ".5\r\n")
    + "02.02.2026;Ærø;„Bø“ €;2e3;02.02.2026 00:00\r\n"
)
KEYS = {"delimiter": ";", "decimal": ",", "date_format": "%d.%m.%Y"}


@pytest.fixture
def opened(engine):
    """Return a function that opens a source with the engine."""
    sources = []

    def build(source, column="Tag", **keys):
        sources.append(open_source(job_of(source, engine, period={"column": column}, unit="Person", **keys)))
        return sources[-1]

    yield build
    for source in sources:
        source.close()


def written(tmp_path, text: str, encoding: str = "utf-8", name: str = "visits.csv") -> str:
    content = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(tmp_path / name)


def rows(source, columns, day=DAY, column="Tag"):
    frame = source.day(PeriodTable(column=column), day)
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return sorted(frame.project(", ".join(f'"{name}"' for name in columns)).fetchall(), key=str)
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=str)


@thinned(2)
@pytest.mark.parametrize(
    ("encoding", "name"), spread(2, ["utf-8", "windows-1252", "cp1252", "utf-16"], ["visits.csv", "visits.csv.gz"])
)
def test_a_european_file_is_read_by_its_keys(opened, tmp_path, encoding, name):
    text = EUROPEAN.replace("Ærø", "Aero") if encoding == "latin-1" else EUROPEAN
    file = {"files": written(tmp_path, text, encoding, name), "encoding": encoding, "types": TYPES, **KEYS}
    release = [{"name": "a", "by": ["Stadt", "dose", "at"], "k": 5}]
    source = opened(file, release=release)
    assert source.newest(PeriodTable(column="Tag"), "Tag") == date(2026, 2, 2)
    read = rows(source, ("Person", "Stadt", "dose"))
    assert read == [("Müller", "Köln", 1.5), ("O;Neill", None, -0.25)]
    assert rows(source, ("Person", "Stadt"), date(2026, 2, 2)) == [("Ærø", "„Bø“ €")]
    times = [str(moment) for (moment,) in rows(source, ("at",))]
    assert times == ["2026-02-01 13:45:00", "2026-02-01 23:59:59.500000"]
    assert source.counts(PeriodTable(column="Tag"), DAY, ("Person",)) == (2, 0)


@pytest.mark.parametrize(
    ("text", "encoding", "keys", "message"),
    [
        (EUROPEAN, "utf-8", {}, 'delimiter = ";"'),
        (EUROPEAN.replace(";", "\t"), "utf-8", {}, r'delimiter = "\\t"'),
        (EUROPEAN, "windows-1252", KEYS, 'encoding = "windows-1252"'),
        ("Größe;Tag;Person\r\n1;01.02.2026;a\r\n", "latin-1", KEYS, 'encoding = "windows-1252"'),
        (EUROPEAN, "utf-8", {**KEYS, "date_format": None}, 'date_format = "%d.%m.%Y"'),
        (EUROPEAN, "utf-8", {**KEYS, "date_format": "%Y-%m-%d"}, 'date_format = "%d.%m.%Y"'),
        (EUROPEAN.replace("02.2026", "02/2026").replace(".02/", "/02/"), "utf-8", {"delimiter": ";"}, "date_format = "),
        (EUROPEAN, "utf-8", {**KEYS, "decimal": "."}, 'decimal = ","'),
        (EUROPEAN, "utf-16", KEYS, "encoding = "),
    ],
)
def test_what_a_european_file_needs_is_told_without_its_values(opened, tmp_path, text, encoding, keys, message):
    keys = {key: value for key, value in keys.items() if value is not None}
    file = {"files": written(tmp_path, text, encoding), "types": {"dose": "real"}, **keys}
    with pytest.raises(ConfigError) as caught:
        rows(opened(file, release=[{"name": "a", "by": "dose", "k": 5}]), ("Person", "dose"))
    assert message.replace("\\\\", "\\") in str(caught.value)
    for value in ("Müller", "Köln", "1,5", "13:45", "Neill"):
        assert value not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "text", ["2026-02-01", "01.02.26", "31.02.2026", "01.13.2026", "01.02.2026x", "1/2/2026", "heute"]
)
def test_dates_in_another_form_than_declared_are_refused(opened, tmp_path, text):
    source = opened({"files": written(tmp_path, f"Tag;Person\n{text};a\n"), **KEYS})
    with pytest.raises(ConfigError, match=r"must hold dates such as 31\.01\.2013"):
        rows(source, ("Person",))


@pytest.mark.parametrize("text", ["1.5", "1.000,5", "1,5,5", "1 5", "eins", ","])
def test_numbers_in_another_form_than_declared_are_refused(opened, tmp_path, text):
    path = written(tmp_path, f"Tag;Person;dose\n01.02.2026;a;{text}\n")
    source = opened({"files": path, "types": {"dose": "real"}, **KEYS}, release=[{"name": "a", "by": "dose", "k": 5}])
    with pytest.raises(ConfigError, match="must hold numbers such as 1,5"):
        rows(source, ("dose",))


@thinned(2)
@pytest.mark.parametrize(
    ("encoding", "wrong"),
    spread(2, ["utf-8", "windows-1252"], ["02.02.2026;b", "02.02.2026;b;Bø;x", '02.02.2026;"b', ";b", "02.02.2026"]),
)
def test_a_row_of_another_period_with_too_few_or_too_many_values_does_not_stop_this_one(
    opened, tmp_path, encoding, wrong
):
    text = f"Tag;Person;Stadt\n01.02.2026;a;Ås\n{wrong}\n03.02.2026;c;Bø\n"
    source = opened({"files": written(tmp_path, text, encoding), "encoding": encoding, **KEYS})
    if '"' in wrong:  # it swallows what comes after it
        with pytest.raises(ConfigError, match="cannot be read to its end as CSV"):
            rows(source, ("Person",))
        return
    for _ in range(2):
        assert rows(source, ("Person",)) == [("a",)]
        assert rows(source, ("Person",), date(2026, 2, 3)) == [("c",)]
    assert source.newest(PeriodTable(column="Tag"), "Tag") == date(2026, 2, 3)
    if wrong.startswith(";"):  # of no day
        assert rows(source, ("Person",), date(2026, 2, 2)) == []
        return
    with pytest.raises(ConfigError, match="as many values as the header has names") as caught:
        rows(source, ("Person",), date(2026, 2, 2))
    assert "b;" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252"])
def test_a_row_whose_day_cannot_be_read_stops_every_period(opened, tmp_path, encoding):
    for wrong in ("b", "b;x;02.02.2026", "bald;b"):
        text = f"Tag;Person;Stadt\n01.02.2026;a;Ås\n{wrong}\n"
        source = opened({"files": written(tmp_path, text, encoding), "encoding": encoding, **KEYS})
        with pytest.raises(ConfigError, match=r"as many values as|must hold dates"):
            rows(source, ("Person",))
    last = "Person;Tag\na;01.02.2026\nb\n"
    with pytest.raises(ConfigError, match="as many values as"):
        rows(opened({"files": written(tmp_path, last, encoding), "encoding": encoding, **KEYS}), ("Person",))


def test_months_are_read_as_a_whole_and_belong_to_no_shorter_period(engine, tmp_path):
    text = "Monat;Person\n2026-01;a\n2026-2;b\n2026-02;c\n2026-02-03;d\n"
    source = {"files": written(tmp_path, text.rpartition("2026-02-03")[0]), "delimiter": ";", "date_format": "%Y-%m"}
    month = PeriodTable(column="Monat", every="month")
    for every in ("month", "quarter", "year"):
        with closing(
            open_source(job_of(source, engine, period={"column": "Monat", "every": every}, unit="Person"))
        ) as opened_source:
            assert opened_source.newest(month, "Monat") == date(2026, 2, 1)
            assert opened_source.counts(month, date(2026, 2, 20), ("Person",)) == (2, 0)
    for every in ("day", "week"):
        with pytest.raises(ValueError, match=r'source\.date_format has no %d.*write every = "month"'):
            job_of(source, engine, period={"column": "Monat", "every": every}, unit="Person")
    source["files"] = written(tmp_path, text)  # a day is no month
    again = job_of(source, engine, period=month.model_dump(), unit="Person")
    with (
        closing(open_source(again)) as opened_source,
        pytest.raises(ConfigError, match="must hold dates such as 2013-01,"),
    ):
        opened_source.newest(month, "Monat")


def test_many_misshapen_rows_are_no_csv(opened, tmp_path):
    text = "Tag;Person;Stadt\n01.02.2026;a;Ås\n" + "02.02.2026;b\n" * 1000
    with pytest.raises(ConfigError, match="cannot be read to its end as CSV"):
        rows(opened({"files": written(tmp_path, text), **KEYS}), ("Person",))


_VALUES = st.text(st.sampled_from([chr(n) for n in (*range(1, 128), *range(160, 256))] + list("€„“–")), max_size=6)


@given(cells=st.lists(st.tuples(_VALUES, _VALUES), max_size=6))
@settings(max_examples=few(25, 3))
def test_both_ways_of_reading_give_the_same_rows(tmp_path_factory, cells):
    folder, results = tmp_path_factory.mktemp("both"), []
    for encoding in ("utf-8", "windows-1252"):
        path = folder / f"{encoding}.csv"
        with path.open("w", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL)
            writer.writerows([("Tag", "Person", "Stadt"), *(("01.02.2026", *cell) for cell in cells)])
        keys = {"files": str(path), "encoding": encoding, **KEYS}
        job = job_of(keys, period={"column": "Tag"}, unit="Person", release=[{"name": "a", "by": "Stadt", "k": 5}])
        source = open_source(job)
        try:
            results.append(rows(source, ("Person", "Stadt")))
        finally:
            source.close()
    assert results[0] == results[1] == sorted(((a or None, b or None) for a, b in cells), key=str)


WRONG = [
    ({"encoding": "latin-99"}, "must be the name of a text encoding"),
    ({"encoding": "rot13"}, "must be the name of a text encoding"),
    ({"encoding": "base64"}, "must be the name of a text encoding"),
    ({"encoding": ""}, "must be the name of a text encoding"),
    ({"encoding": 1252}, "encoding"),
    ({"decimal": ";", "delimiter": "|"}, "decimal"),
    ({"decimal": ","}, "delimiter and decimal are the same character"),
    ({"decimal": True}, "decimal"),
    ({"date_format": "%d.%m"}, "must hold %d, %m and %Y"),
    ({"date_format": "%d.%m.%y"}, "must hold %d, %m and %Y"),
    ({"date_format": "%d%m%Y%d"}, "must hold %d, %m and %Y"),
    ({"date_format": "%d.%m.%Y %H:%M"}, "must hold %d, %m and %Y"),
    ({"date_format": "dd.mm.yyyy"}, "must hold %d, %m and %Y"),
    ({"date_format": "%dT%m.%Y"}, "must hold %d, %m and %Y"),
    ({"date_format": ""}, "must hold %d, %m and %Y"),
    ({"dateformat": "%d.%m.%Y"}, "did you mean 'date_format'"),
    ({"decimals": ","}, "did you mean 'decimal'"),
    ({"format": "parquet", "encoding": "latin-1"}, "encoding is for CSV files"),
    ({"format": "parquet", "date_format": "%d.%m.%Y"}, "date_format is for CSV files"),
    ({"format": "parquet", "decimal": ","}, "decimal is for CSV files"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG)
def test_wrong_keys_of_a_csv_file_are_one_clear_error(keys, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        job_of({"files": "visits.csv", **keys})


SHAPES = {
    "ends its lines in different ways": [
        "Tag,Person\r\n2026-02-01,Secretville\n2026-02-01,b\n",
        "Tag,Person\n2026-02-01,Secretville\n2026-02-01,b\r\n",
        "Tag,Person\n2026-02-01,Secretville\n2026-02-01,b\r2026-02-01,c\r",
    ],
    "has two columns 'Person'; rename one": ["Tag,Person,Person\n2026-02-01,Secretville,a\n"],
    "has columns 'Person' and 'person': capitals": ["Tag,Person,person\n2026-02-01,Secretville,a\n"],
    "has a delimiter at the end of its lines": [
        "Tag,Person\n2026-02-01,Secretville,\n2026-02-01,b,\n",
        "Tag,Person\r\n\r\n2026-02-01,Secretville,\r\n2026-02-01,,\r\n",
    ],
}


@pytest.mark.parametrize(("message", "text"), [(message, text) for message, texts in SHAPES.items() for text in texts])
def test_what_is_wrong_with_a_file_s_shape_is_named(opened, tmp_path, message, text):
    for name in ("visits.csv", "visits.csv.gz"):
        file = {"files": written(tmp_path, text, name=name)}
        with pytest.raises(ConfigError, match=message) as caught:
            rows(opened(file), ("Person",))
        assert "Secretville" not in str(caught.value)


def test_line_breaks_in_quotes_and_last_values_that_are_empty_are_no_matter(opened, tmp_path):
    text = 'Tag,Person,Stadt\n2026-02-01,"a\r\nb",\n2026-02-01,b,x\n2026-02-01,c,'
    source = opened({"files": written(tmp_path, text)}, release=[{"name": "a", "by": "Stadt", "k": 5}])
    assert rows(source, ("Person", "Stadt")) == [("a\r\nb", None), ("b", "x"), ("c", None)]


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("timestamp", "2026-02-01T24:00"),
        ("timestamp", "2026-02-01 24:00:00.000"),
        ("instant", "2026-02-01T24:00Z"),
        ("instant", "2026-02-01 24:00:00+01:00"),
    ],
)
def test_no_day_ends_at_24_00(opened, tmp_path, kind, moment):
    """DuckDB would read the day after, and a person of that evening would be counted a day late."""
    text = f"Tag,Person\n2026-02-01T23:59Z,a\n{moment},b\n".replace("Z,a", "Z,a" if kind == "instant" else ",a")
    zone = {"time_zone": "UTC"} if kind == "instant" else {}
    file = {"files": written(tmp_path, text), "types": {"Tag": kind}}
    source = open_source(job_of(file, period={"column": "Tag", **zone}, unit="Person"))
    with closing(source), pytest.raises(ConfigError, match=r"write 00:00 of the next day instead of 24:00"):
        source.day(PeriodTable(column="Tag", **zone), DAY).fetchall()
