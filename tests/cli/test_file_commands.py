"""``pkdp histogram FILE`` and ``pkdp count FILE``: what a new user types, and what is refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from thorough import one_in, thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.ledger.reading import is_begun

VISITS = "person;stadt;alter;anteil;tag\n" + "".join(
    f"{number:03};{'Köln' if number < 60 else 'Bonn' if number < 85 else 'Trier'};{number};0,5;01.02.2026\n"
    for number in range(90)
)
FORM = ["--delimiter", ";", "--encoding", "windows-1252"]
K = ["--k", "20", "--p-max", "20%"]


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "besuche.csv"
    path.write_text(VISITS, encoding="windows-1252")
    return path


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def test_a_histogram_of_a_european_file_is_printed_and_kept(visits, tmp_path):
    out = tmp_path / "table.parquet"
    done = run("histogram", visits, "--by", "stadt", "--unit", "person", *K, *FORM, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "Köln" in done.stdout
    assert "Trier" not in done.stdout
    assert "Private at ε = 1.5, δ = 1e-6 against anyone" in done.stdout
    assert "--ledger" in done.stdout
    release = pkdp.read_release(out)
    assert release.table.to_dict("list") == {"stadt": ["Bonn", "Köln"], "count": [25, 60]}
    assert release.certificate.attacker.p_max == 0.2
    frame = pd.read_csv(visits, sep=";", encoding="windows-1252", dtype=str)
    same = frame.pkdp.histogram("stadt", unit="person", k=20, attacker=pkdp.AttackerModel(p_max=0.2))
    assert release.id == same.id


def test_a_count_needs_no_attacker_where_there_is_noise(visits):
    options = ["--where", "alter >= 30", "--type", "alter=number", "--unit", "person", "--noise", "2", *FORM]
    done = run("count", visits, *options, "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["delta"], document["replayed"]) == (1e-6, False)
    assert 1.99 < document["epsilon"] <= 2
    assert abs(document["columns"]["count"][0] - 60) < 40
    assert "against anyone at all" in document["sentence"]
    assert document["certificate"]["mechanism"]["noise"]["epsilon"] == 2.0


def test_every_kind_of_column_can_be_declared(visits):
    kinds = ["--type", "alter=number", "--type", "anteil=real", "--type", "tag=date"]
    form = [*FORM, "--decimal", ",", "--date-format", "%d.%m.%Y", *kinds]
    where = "anteil == 0.5 and alter < 70 and tag >= '2026-01-31'"
    done = run("count", visits, "--unit", "person", "--where", where, "--noise", "9", *form, "--json")
    assert done.exit_code == 0, done.stderr
    assert abs(json.loads(done.stdout)["columns"]["count"][0] - 70) < 10


def test_declared_cells_are_published_in_their_order(visits):
    cells = ["--cell", "Trier", "--cell", "Köln", "--cell", "Mainz", "--undeclared", "absent"]
    done = run("histogram", visits, "--by", "stadt", "--unit", "person", *K, *cells, *FORM, "--json")
    assert json.loads(done.stdout)["columns"] == {"stadt": ["Trier", "Köln", "Mainz"], "count": [None, 60, None]}


def test_small_counts_are_noised_and_marked(visits, tmp_path):
    cells = ["--cell", "Trier", "--cell", "Köln", "--noise", "1", "--below", "noise", "--undeclared", "absent"]
    out = tmp_path / "table.parquet"
    done = run("histogram", visits, "--by", "stadt", "--unit", "person", *K, *cells, *FORM, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert "Numbers with ≈ have noise" in done.stdout
    release = pkdp.read_release(out)
    assert release.table["exact"].tolist() == [False, True]
    assert f"≈ {release.table['count'].iloc[0]}" in done.stdout
    assert "≈ 60" not in done.stdout
    printed = run("histogram", visits, "--by", "stadt", "--unit", "person", *K, *cells, *FORM, "--json")
    columns = json.loads(printed.stdout)["columns"]
    assert (columns["count"][1], columns["exact"]) == (60, [False, True])


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--k", "20", "--cell", "Bonn"], "give k and noise"),
        (["--noise", "1", "--cell", "Bonn"], "give k and noise"),
        (["--k", "20", "--noise", "1"], "release"),
        (["--k", "20", "--noise", "1", "--cell", "Bonn", "--cells-per-unit", "2"], "in one cell"),
    ],
)
def test_small_counts_are_noised_only_where_that_is_whole(visits, words, match):
    failed = run("histogram", visits, "--by", "stadt", "--unit", "person", "--below", "noise", *words, *FORM)
    assert failed.exit_code == 2
    assert match in " ".join(failed.stderr.split())


def test_counts_are_shown_as_a_rule_of_display_says(visits):
    command = ["histogram", visits, "--by", "stadt", "--unit", "person", *K, *FORM]
    done = run(*command, "--display", "rounding=50")
    assert done.exit_code == 0, done.stderr
    printed = json.loads(run(*command, "--display", "rounding=50,down", "--json").stdout)
    assert printed["columns"]["count"] == [0, 50]
    assert printed["certificate"]["mechanism"]["display"] == {"rounding": 50, "mode": "down"}
    assert "50–99" in run(*command, "--display", "bands=0,20,50,100").stdout
    for display, match in (("rounding=x", "whole number"), ("rounds=5", "display must be one rule")):
        failed = run(*command, "--display", display)
        assert failed.exit_code == 2
        assert match in " ".join(failed.stderr.split())


def test_noise_and_a_release_threshold_imply_k_1(visits):
    options = ["--by", "stadt", "--unit", "person", "--noise", "1", "--release-threshold", "20", *FORM]
    done = run("histogram", visits, *options, "--json")
    assert done.exit_code == 0, done.stderr
    mechanism = json.loads(done.stdout)["certificate"]["mechanism"]
    assert (mechanism["k"], mechanism["release_threshold"]) == (1, 20)
    frame = pd.DataFrame({"person": range(50), "town": "Ås"})
    noise = pkdp.GeometricNoise(1)
    implied = frame.pkdp.histogram("town", unit="person", noise=noise, release_threshold=20)
    stated = pkdp.certify(pkdp.Histogram(k=1, noise=noise, release_threshold=20), pkdp.AttackerModel())
    assert implied.certificate.epsilon(1e-6) == stated.epsilon(1e-6)
    with pytest.raises(pkdp.ArgumentError, match="noise needs release_threshold"):
        frame.pkdp.histogram("town", unit="person", noise=noise)


def test_a_ledger_replays_and_refuses(visits, tmp_path):
    command = ["histogram", visits, "--by", "stadt", "--unit", "person", *K, *FORM]
    kept = ["--ledger", tmp_path / "ledger.sqlite", "--dataset", "visits", "--period", "2026-W05"]
    first = run(*command, *kept, "--json")
    again = run(*command, *kept, "--json")
    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr
    assert json.loads(again.stdout)["replayed"]
    other = run("count", visits, "--unit", "person", *K, *FORM, *kept)
    assert other.exit_code == 4
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="visits") as ledger:
        assert [entry.period for entry in ledger.entries()] == ["2026-W05"]


FAILING = [
    (["--by", "ort", *K], 2),
    (["--by", "stadt", *K, "--where", "ort == 'Bonn'"], 2),
    (["--by", "stadt", "--k", "20"], 4),
    (["--by", "stadt", *K, "--unit", "stadt", "--unit", "ort"], 2),
    (["--by", "alter", *K, "--unit", "stadt"], 3),  # of people in several cells
]


@thinned(2)
@pytest.mark.parametrize("place", ["file", pytest.param("database", marks=pytest.mark.postgres)])
@pytest.mark.parametrize(("words", "code"), FAILING)
def test_no_ledger_begins_with_a_release_that_fails(visits, tmp_path, request, place, words, code):
    location = tmp_path / "ledger.sqlite" if place == "file" else request.getfixturevalue("postgres_url")
    kept = ["--ledger", location, "--dataset", "visits", "--period", "2026-W05"]
    unit = [] if "--unit" in words else ["--unit", "person"]
    failed = run("histogram", visits, *words, *unit, *FORM, *kept)
    assert failed.exit_code == code, failed.stderr
    assert not is_begun(str(location))
    assert {path.name for path in tmp_path.iterdir()} == {visits.name}
    done = run("histogram", visits, "--by", "stadt", "--unit", "person", *K, *FORM, *kept, "--json")
    assert done.exit_code == 0, done.stderr
    assert not json.loads(done.stdout)["replayed"]
    with pkdp.Ledger.open(location, dataset="visits") as ledger:
        assert [event.kind for event in ledger.records.events()] == ["reserved", "published"]


def test_a_parquet_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "visits.parquet"
    pd.DataFrame({"person": range(50), "town": "Ås"}).to_parquet(path)
    done = run("histogram", path, "--by", "town", "--unit", "each-row", *K)
    assert done.exit_code == 0, done.stderr
    assert "50" in done.stdout


@thinned(4)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("number", "7.0"),
        ("number", " 7"),
        ("real", "1,5"),
        ("real", "nan"),
        ("boolean", "1"),
        ("date", "2026-2-1"),
        ("date", "2026-02-01 00:00:00"),
        ("timestamp", "2026-02-01"),
        ("instant", "2026-02-01T10:00:00"),
        ("text", "x,y"),
        ("text", '"x"y'),
        ("text", ""),
    ],
)
@pytest.mark.parametrize("encoding", one_in(2, ["utf-8", "windows-1252"]))
def test_a_file_is_read_as_strictly_as_a_job_reads_it(tmp_path, kind, value, encoding):
    path, odd = tmp_path / "visits.csv", f"2026-01-01,b{',' * bool(value)}{value}\n"
    path.write_text("day,person,x\n2026-01-01,a,\n" + odd, encoding=encoding)
    job = tmp_path / "job.toml"
    source = f'{{ files = "visits.csv", encoding = "{encoding}", types = {{ x = "{kind}" }} }}'
    job.write_text(
        f'dataset = "d"\nsource = {source}\nperiod = {{ column = "day" }}\nunit = "person"\nledger = "l.sqlite"\n'
        f'[checks]\ncolumns = {{ x = "{kind}" }}\n[[release]]\nname = "a"\nnoise = {{ epsilon = 1.0 }}\n'
        '[output]\ndirectory = "out"\n'
    )
    of_file = run("count", path, "--unit", "person", "--noise", "1", "--type", f"x={kind}", "--encoding", encoding)
    of_job = run("run", job, "--date", "2026-01-01")
    assert (of_file.exit_code, of_job.exit_code) == (2, 2)
    as_typed = {
        f'types = {{ x = "{"real" if kind == "number" else "text"}" }} in source': (
            f"--type x={'real' if kind == 'number' else 'text'}"
        ),
        'null = ["", "NA"] in source': "--null '' --null NA",
        'encoding = "windows-1252" in source': "--encoding windows-1252",
    }
    complaint = of_job.stderr
    for in_job, option in as_typed.items():
        complaint = complaint.replace(in_job, option)
    assert of_file.stderr == complaint
    assert "in source" not in complaint


HISTOGRAM = ["histogram", "FILE", "--by", "stadt", "--unit", "person"]
WRONG = [
    ([*HISTOGRAM, *K, "--encoding", "latin-1"], 2, "write --delimiter ';'"),
    ([*HISTOGRAM, *K, "--delimiter", ";"], 2, "write --encoding windows-1252,"),
    ([*HISTOGRAM, *FORM], 2, "needs k"),
    ([*HISTOGRAM, "--k", "20", *FORM], 4, "--noise 1 with --release-threshold 34"),
    (["histogram", "FILE", "--by", "ort", "--unit", "person", *K, *FORM], 2, "'ort'"),
    (["histogram", "FILE", "--by", "stadt", "--unit", "id", *K, *FORM], 2, "'id'"),
    ([*HISTOGRAM, *K, *FORM, "--type", "alter"], 2, "--type must be a column and what it holds"),
    ([*HISTOGRAM, *K, *FORM, "--type", "alter=int"], 2, "like this: --type alter: must be"),
    ([*HISTOGRAM, *K, *FORM, "--type", "age=number"], 2, "'age'"),
    ([*HISTOGRAM, *K, *FORM, "--type", "stadt=number"], 2, "column 'stadt' must hold whole numbers"),
    ([*HISTOGRAM, *K, *FORM, "--decimal", ";"], 2, "decimal"),
    ([*HISTOGRAM, *K, *FORM, "--date-format", "dd.mm.yyyy"], 2, "like this: --date-format: must hold"),
    ([*HISTOGRAM, *K, *FORM, "--ledger", "x.sqlite"], 2, "--ledger and --dataset belong together"),
    ([*HISTOGRAM, *K, *FORM, "--dataset", "x"], 2, "--ledger and --dataset belong together"),
    ([*HISTOGRAM, *K, *FORM, "--ledger", "x.sqlite", "--dataset", "x"], 2, "period"),
    ([*HISTOGRAM, *K, *FORM, "--out", "table.csv"], 2, "--out must be another file"),
    ([*HISTOGRAM, *K, *FORM, "--out", "nowhere/table.parquet"], 2, "--out must be another file"),
    ([*HISTOGRAM, "--k", "20", "--p-max", "20x", *FORM], 2, "a number from 0 to 1"),
    ([*HISTOGRAM, "--k", "20", "--p-max", "20", *FORM], 2, "Write 0.2 or 20%."),
    ([*HISTOGRAM, "--k", "20", "--p-max", "120%", *FORM], 2, "must be a probability"),
    ([*HISTOGRAM, *K, *FORM, "--one-cell", "random"], 2, "pkdp: --one-cell must be one of 'error'"),
    ([*HISTOGRAM, *K, *FORM, "--one-cell", "first"], 2, "pkdp: --one-cell first and --order-by belong together"),
    ([*HISTOGRAM, "--noise", "1", *FORM], 2, "Give --release-threshold, or the public cells, as in --cell A --cell B."),
    ([*HISTOGRAM, *K, "--p-min", "0.5", *FORM], 2, "pkdp: --p-min 0.5 is above --p-max 0.2;"),
    ([*HISTOGRAM, *K, "--known", "-1", *FORM], 2, "pkdp: --known must be at least 0."),
    ([*HISTOGRAM, *K, *FORM, "--type", "age=number"], 2, "no column 'age' (--type, did"),
    ([*HISTOGRAM, "--by", "alter", *K, *FORM, "--cell", "Köln"], 2, "--cell declares the cells of one column"),
    ([*HISTOGRAM, *K, *FORM, "--where", "alter >"], 2, "where"),
    (["count", "FILE", "--unit", "person", "--noise", "1", "--by", "stadt", *FORM], 2, "--by"),
    (["count", "missing.csv", "--unit", "person", "--noise", "1"], 2, "does not exist"),
    (["count", "notes.txt", "--unit", "person", "--noise", "1"], 2, "end in .parquet, .pq, .csv, .csv.gz or .xlsx"),
]


@thinned(6)
@pytest.mark.parametrize(("words", "code", "message"), WRONG)
def test_what_is_wrong_is_one_clear_error_and_writes_nothing(visits, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run(*(visits if word == "FILE" else word for word in words))
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert "Trier" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


@thinned(2)
@pytest.mark.parametrize("words", [[], ["histogram"], ["plan"], ["ledger", "show"], ["certify", "count"]])
def test_help_is_short_too(words):
    long, short = run(*words, "--help"), run(*words, "-h")
    assert (long.exit_code, short.exit_code) == (0, 0)
    assert short.stdout == long.stdout


def test_columns_are_counted_in_groups(tmp_path):
    rows = "".join(f"p{n},{n % 90}.0,{2000 + n % 3}-01-31\n" for n in range(180))
    (tmp_path / "ages.csv").write_text(f"id,age,born\n{rows}", encoding="utf-8")
    pd.read_csv(tmp_path / "ages.csv").to_parquet(tmp_path / "ages.parquet")
    for suffix in ("csv", "parquet"):
        command = [
            "histogram",
            str(tmp_path / f"ages.{suffix}"),
            "--unit",
            "id",
            "--k",
            "5",
            "--p-max",
            "0.001",
            "--json",
        ]
        done = CliRunner().invoke(cli.app, [*command, "--by", "age", "--bins", "age=0,18,65"])
        assert done.exit_code == 0, done.stderr
        columns = json.loads(done.stdout)["columns"]
        assert columns == {"age": ["0–17", "18–64", "65 or more"], "count": [36, 94, 50]}
    declared = [*command, "--by", "age", "--bins", "age=18,65", "--cell", "65 or more", "--undeclared", "absent"]
    done = CliRunner().invoke(cli.app, declared)
    assert json.loads(done.stdout)["columns"] == {"age": ["65 or more"], "count": [50]}
    years = [*command[:1], str(tmp_path / "ages.csv"), *command[2:], "--by", "born", "--bins", "born=year"]
    done = CliRunner().invoke(cli.app, years)
    assert json.loads(done.stdout)["columns"]["count"] == [60, 60, 60]
    towns = CliRunner().invoke(cli.app, [*years[:-3], "id", "--bins", "id=0,18"])
    assert (towns.exit_code, "leave --bins out" in " ".join(towns.stderr.split())) == (2, True)
    for bins, words in (("age=0,18", "column of --by"), ("born=decade", "or one of week"), ("born", "column of --by")):
        done = CliRunner().invoke(cli.app, [*years[:-1], bins])
        assert (done.exit_code, words in done.stderr) == (2, True), done.stderr


def test_a_pattern_is_one_file(visits):
    visits.with_name("more.csv").write_bytes(visits.read_bytes())
    done = run("histogram", visits.with_name("*.csv"), "--by", "stadt", "--unit", "person", *K, *FORM)
    assert (done.exit_code, "'*.csv' fits several files" in done.stderr) == (2, True), done.stderr
    assert run("histogram", visits.with_name("b*.csv"), "--by", "stadt", "--unit", "person", *K, *FORM).exit_code == 0
