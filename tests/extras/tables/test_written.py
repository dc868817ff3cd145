"""Files for offices say what the release says, as readers that others wrote read them."""

from __future__ import annotations

import datetime
import json
import zipfile

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

openpyxl = pytest.importorskip("openpyxl")

ATTACKER = pkdp.AttackerModel(p_max=0.1)
WRITTEN = {"csv": "to_csv", "xlsx": "to_excel", "json": "to_json_stat", "sdmx.csv": "to_sdmx_csv"}
#: Values that a spreadsheet would take for formulas, and others that are hard to write.
NAMES = ['=HYPERLINK("http://x")', "+5", "-", "@SUM(A1)", 'a "b", c', "Ä\nö", "", None]
COUNTS = {name: 5 + place for place, name in enumerate(NAMES)} | {"few": 2}


def people(counts, column="group"):
    rows = [name for name, number in counts.items() for _ in range(number)]
    return pd.DataFrame({column: pd.Series(rows, dtype=object), "person": range(len(rows))})


@pytest.fixture(scope="module")
def release():
    return people(COUNTS).pkdp.histogram("group", unit="person", domain={"group": list(COUNTS)}, k=5, attacker=ATTACKER)


@pytest.fixture(scope="module")
def noised():
    return people(COUNTS).pkdp.histogram(
        "group",
        unit="person",
        domain={"group": list(COUNTS)},
        k=8,
        below="noise",
        noise=pkdp.GeometricNoise(1.0),
        attacker=ATTACKER,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory, release, noised):
    folder = tmp_path_factory.mktemp("written")
    for name, written in (("release", release), ("noised", noised)):
        for suffix, method in WRITTEN.items():
            getattr(written, method)(folder / f"{name}.{suffix}")
    return folder


@pytest.mark.parametrize("suffix", WRITTEN)
def test_the_same_release_has_the_same_bytes(files, release, tmp_path, suffix) -> None:
    getattr(release, WRITTEN[suffix])(tmp_path / f"release.{suffix}")
    assert (tmp_path / f"release.{suffix}").read_bytes() == (files / f"release.{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", WRITTEN)
def test_hidden_counts_are_alike_and_the_certificate_goes_with_them(files, release, suffix) -> None:
    texts = [path.read_bytes() for path in files.glob("release.*")]
    if suffix == "xlsx":
        with zipfile.ZipFile(files / "release.xlsx") as archive:
            texts = [archive.read(name) for name in archive.namelist()]
    whole = b"".join(texts).decode(errors="ignore")
    assert release.id in whole
    assert release.certificate.sentence()[:40] in whole


def table_rows(path):
    """Return a workbook, and the cells of its first table: the header's, then each row's."""
    book = openpyxl.load_workbook(path)
    (table,) = book["Table 1"].tables.values()
    return book, list(book["Table 1"][table.ref])


def test_a_workbook_as_openpyxl_reads_it(files, release) -> None:
    book, rows = table_rows(files / "release.xlsx")
    assert book.sheetnames == ["Cover", "Notes", "Table 1"]
    assert [cell.value for cell in rows[0]] == ["group", "count"]
    for (key, count), name in zip(rows[1:], COUNTS, strict=True):
        # Nothing is a formula.
        assert key.value == ("(missing)" if name is None else name)
        assert key.data_type in ("s", "n")
        assert count.value == (COUNTS[name] if COUNTS[name] >= 5 else "<5")
    # On paper a sheet is one page wide, and its header is repeated.
    assert all(sheet.page_setup.fitToHeight == 0 and sheet.sheet_properties.pageSetUpPr.fitToPage for sheet in book)
    assert book["Table 1"].print_title_rows == "${0}:${0}".format(rows[0][0].row)
    notes = [row[1].value for row in book["Notes"].iter_rows(min_row=3)]
    assert notes[0] == "<5 stands for a count below 5, zero included."
    assert release.certificate.sentence() in notes


def test_rows_of_notes_are_as_high_as_their_text(files, release, noised) -> None:
    pixel_width = pytest.importorskip("xlsxwriter.utility").xl_pixel_width
    for name in ("release", "noised"):
        sheet = openpyxl.load_workbook(files / f"{name}.xlsx")["Notes"]
        for row in range(3, sheet.max_row + 1):
            lines = [""]
            for word in sheet.cell(row, 2).value.split():
                line = f"{lines[-1]} {word}".strip()
                lines[-1:] = [line] if pixel_width(line) <= pixel_width("0" * 80) else [lines[-1], word]
            assert len(lines) <= (sheet.row_dimensions[row].height or 15) / 15 <= len(lines) + 1


def test_noised_counts_stay_numbers_in_a_workbook(files, noised) -> None:
    _, (_, *rows) = table_rows(files / "noised.xlsx")
    for (_, cell), (count, exact) in zip(rows, noised.table[["count", "exact"]].itertuples(index=False), strict=True):
        assert cell.value == count
        # The mark stands before the sign.
        assert cell.number_format == ("#,##0" if exact else '"≈ "#,##0;"≈ "-#,##0')


def test_csv_on_the_web_as_csvw_reads_it(files, noised) -> None:
    csvw = pytest.importorskip("csvw")
    read = csvw.CSVW(str(files / "release.csv"), validate=True)
    assert read.is_valid
    names = ["'" + name if name and name[0] in "=+-@" else name for name in COUNTS]
    assert [row["key_1"] for row in read.tables[0]] == names
    assert [row["count"] for row in read.tables[0]] == [number if number >= 5 else None for number in COUNTS.values()]
    rows = list(csvw.CSVW(str(files / "noised.csv")).tables[0])
    assert [row["exact"] for row in rows] == noised.table["exact"].tolist()
    assert [row["count"] for row in rows] == noised.table["count"].tolist()


def test_json_stat_as_pyjstat_reads_it(files, noised) -> None:
    pyjstat = pytest.importorskip("pyjstat.pyjstat")
    text = (files / "release.json").read_text(encoding="utf-8")
    frame = pyjstat.Dataset.read(text).write("dataframe")
    values = [None if pd.isna(value) else int(value) for value in frame["value"]]
    assert values == [number if number >= 5 else None for number in COUNTS.values()]
    assert frame["group"].tolist() == ["(missing)" if name is None else name for name in COUNTS]
    assert json.loads(text)["status"] == {str(list(COUNTS).index("few")): "<5"}
    marked = json.loads((files / "noised.json").read_text(encoding="utf-8"))["status"]
    assert marked == {str(place): "≈" for place, exact in enumerate(noised.table["exact"]) if not exact}


def test_sdmx_csv_as_pysdmx_reads_it(files, noised) -> None:
    sdmx = pytest.importorskip("pysdmx.io")
    (dataset,) = sdmx.read_sdmx(files / "release.sdmx.csv", validate=False).data
    assert dataset.short_urn.endswith("LOCAL:COUNTS(1.0)")
    rows = dataset.data
    assert [None if value in ("", None) or pd.isna(value) else int(value) for value in rows["OBS_VALUE"]] == [
        number if number >= 5 else None for number in COUNTS.values()
    ]
    assert rows["OBS_STATUS"].tolist() == ["A" if number >= 5 else "Q" for number in COUNTS.values()]
    assert rows["CONF_STATUS"].tolist() == ["F" if number >= 5 else "C" for number in COUNTS.values()]
    (dataset,) = sdmx.read_sdmx(files / "noised.sdmx.csv", validate=False).data
    assert dataset.data["OBS_STATUS"].tolist() == ["A" if exact else "E" for exact in noised.table["exact"]]


def test_keys_of_every_kind(tmp_path) -> None:
    days = [datetime.date(2026, 1, 5), datetime.date(2026, 1, 12)]
    frame = people(dict.fromkeys(days, 6), "day")
    frame["day"] = frame["day"].astype("date32[day][pyarrow]")
    release = frame.pkdp.histogram("day", unit="person", domain={"day": days}, k=5, attacker=ATTACKER)
    for suffix, method in WRITTEN.items():
        getattr(release, method)(tmp_path / f"days.{suffix}")
    assert (tmp_path / "days.csv").read_text().splitlines()[1] == "2026-01-05,6"
    metadata = json.loads((tmp_path / "days.csv-metadata.json").read_text())
    assert metadata["tableSchema"]["columns"][0]["datatype"] == "date"
    assert json.loads((tmp_path / "days.json").read_text())["dimension"]["day"]["category"]["index"][0] == "2026-01-05"
    large = people({10**17: 6, 3: 6}, "number")
    large["number"] = large["number"].astype("int64")
    release = large.pkdp.histogram("number", unit="person", domain={"number": [10**17, 3]}, k=5, attacker=ATTACKER)
    release.to_excel(tmp_path / "large.xlsx")
    _, (_, *rows) = table_rows(tmp_path / "large.xlsx")
    assert [key.value for key, _ in rows] == [str(10**17), 3]


def test_a_count_and_bands(tmp_path) -> None:
    count = people(COUNTS).pkdp.count("group == 'few'", unit="person", k=5, attacker=ATTACKER)
    banded = people(COUNTS).pkdp.histogram(
        "group",
        unit="person",
        domain={"group": ["few", "-"]},
        undeclared="absent",
        display=pkdp.Bands([0, 5, 10]),
        attacker=ATTACKER,
    )
    for name, written in (("count", count), ("bands", banded)):
        for suffix, method in WRITTEN.items():
            getattr(written, method)(tmp_path / f"{name}.{suffix}")
    assert (tmp_path / "count.csv").read_text().splitlines() == ["count", "<5"]
    assert json.loads((tmp_path / "count.json").read_text())["status"] == {"0": "<5"}
    assert (tmp_path / "bands.csv").read_text().splitlines()[1:] == ["few,0–4", "'-,5–9"]
    assert "0–4" in (tmp_path / "bands.sdmx.csv").read_text()


def test_refusals(release, tmp_path) -> None:
    for method in WRITTEN.values():
        with pytest.raises(pkdp.ArgumentError, match="suppressed"):
            getattr(release, method)(tmp_path / "x", suppressed="<30")
        with pytest.raises(pkdp.ConfigError, match="written"):
            getattr(release, method)(tmp_path / "no" / "x")
    with pytest.raises(pkdp.ArgumentError, match="dataflow"):
        release.to_sdmx_csv(tmp_path / "x", dataflow="counts")
    assert list(tmp_path.iterdir()) == []


def test_keys_that_are_too_long_for_a_cell_are_cut_and_told_apart(tmp_path) -> None:
    groups = {"x" * 32_768: 6, "x" * 32_769: 7}
    long = people(groups).pkdp.histogram("group", unit="person", k=5, attacker=ATTACKER)
    long.to_excel(tmp_path / "long.xlsx")
    _, (_, *rows) = table_rows(tmp_path / "long.xlsx")
    keys = [key.value for key, _ in rows]
    assert list(map(len, keys)) == [32_767, 32_767]
    assert keys[0] != keys[1]
    long.to_csv(tmp_path / "long.csv")


DOMAIN = {"region": ["N", "S"], "sex": ["f", "m", "Total"]}


def crossed(sexes=DOMAIN["sex"], **rules):
    """Return a release of numbers by region and sex, of which the smallest are 1 and 0."""
    numbers = zip([(region, sex) for region in DOMAIN["region"] for sex in sexes], [7, 5, 1, 2, 6, 0], strict=True)
    frame = pd.DataFrame([cell for cell, number in numbers for _ in range(number)], columns=["region", "sex"])
    return frame.assign(person=range(len(frame))).pkdp.histogram(
        ["region", "sex"], unit="person", domain={"region": DOMAIN["region"], "sex": sexes}, **rules
    )


def sheet_rows(path, name):
    """Return the values of a sheet's table, in rows, and the number formats of its last row."""
    sheet = openpyxl.load_workbook(path)[name]
    (table,) = sheet.tables.values()
    rows = sheet[table.ref]
    return [[cell.value for cell in row] for row in rows], [cell.number_format for cell in rows[-1]]


@pytest.mark.parametrize("rules", [{"k": 3}, {"k": 5, "below": "noise", "noise": pkdp.GeometricNoise(1.0)}])
def test_a_workbook_has_the_cross_table(tmp_path, rules) -> None:
    release = crossed(["f", "m", None], attacker=ATTACKER, **rules)
    release.to_excel(tmp_path / "x.xlsx", suppressed="c")
    rows, formats = sheet_rows(tmp_path / "x.xlsx", "Cross-table 1")
    expected = release.crosstab("region", "sex", margins=True, suppressed="c")
    assert rows[0] == ["region", "f", "m", "(missing)", "Total"]
    for (label, *cells), (name, values) in zip(rows[1:], expected.iterrows(), strict=True):
        assert label == name
        # What is marked as noised is a number that is shown so.
        assert cells == [
            int(value[2:]) if isinstance(value, str) and value.startswith("≈") else value for value in values
        ]
    assert formats[-1] == ('"≈ "#,##0;"≈ "-#,##0' if "below" in rules else "#,##0")


def test_a_text_like_a_missing_key_is_quoted_once_on_both_axes(tmp_path) -> None:
    keys = ["(missing)", '"(missing)"', None]
    frame = pd.DataFrame([(region, sex) for region in keys for sex in keys] * 3, columns=["region", "sex"])
    frame.reset_index(names="person").pkdp.histogram(["region", "sex"], unit="person", k=3, attacker=ATTACKER).to_excel(
        tmp_path / "x.xlsx"
    )
    rows, _ = sheet_rows(tmp_path / "x.xlsx", "Cross-table 1")
    assert sorted(rows[0][1:4]) == sorted([r'"\"(missing)\""', '"(missing)"', "(missing)"])
    assert sorted(row[0] for row in rows[1:4]) == sorted(['""(missing)""', '"(missing)"', "(missing)"])


def test_there_is_no_cross_table_where_a_value_has_the_margins_name_or_of_one_column(tmp_path, files) -> None:
    crossed(attacker=ATTACKER, k=3).to_excel(tmp_path / "x.xlsx")
    for path in (tmp_path / "x.xlsx", files / "release.xlsx"):
        assert openpyxl.load_workbook(path).sheetnames == ["Cover", "Notes", "Table 1"]


def test_a_workbook_has_the_estimates_that_are_printed(tmp_path, release) -> None:
    sampled = crossed(attacker=pkdp.AttackerModel(sampled=0.1), k=6, target=None)
    weights = {"region": {"N": 10, "S": 20}}
    for columns, frame in ((True, sampled.estimate()), (weights, sampled.weighted(weights, ["region", "sex"]))):
        sampled.to_excel(tmp_path / "x.xlsx", estimates=columns)
        (header, *rows), _ = sheet_rows(tmp_path / "x.xlsx", "Table 1")
        assert header == ["region", "sex", "count", *frame.columns[2:]]
        for row, values in zip(rows, frame.itertuples(index=False), strict=True):
            expected = ["not known" if pd.isna(value) else pytest.approx(value) for value in values[2:]]
            assert row == [*values[:2], row[2], *expected]
    with pytest.raises(pkdp.ArgumentError, match="sample"):
        release.to_excel(tmp_path / "no.xlsx", estimates=True)
    with pytest.raises(pkdp.ArgumentError, match="weights"):
        release.to_excel(tmp_path / "no.xlsx", estimates=1.5)
    assert not (tmp_path / "no.xlsx").exists()
