"""``pkdp init FILE``: a job file that runs, made without a look at any row."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from pkdp_pipeline.cli import init_command
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.cli.plan_dialogue import Asker

VISITS = "person;Stadt/Ort;tag\n" + "".join(f"p{number};Köln;02.02.2025\n" for number in range(60))
CSV = ["--delimiter", ";", "--encoding", "windows-1252", "--date-format", "%d.%m.%Y"]
EXACT = ["--unit", "person", "--period", "tag", "--by", "Stadt/Ort", "--p-max", "20%", "--evidence", "once_per_unit"]
NOISED = ["--unit", "person", "--period", "tag", "--by", "Stadt/Ort", "--noise", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "besuche.csv").write_text(VISITS, encoding="windows-1252")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("how", "every"), [(EXACT, "day"), (NOISED, "week"), ([*NOISED[:4], "--noise", "0.5"], "year")]
)
def test_the_job_runs_as_it_is_written(folder, how, every):
    made = run("init", "besuche.csv", *CSV, *how, "--every", every)
    assert made.exit_code == 0, made.stderr
    words = made.stdout.rsplit("pkdp ", 1)[1].split()
    planned = run(*words, "--dry-run")  # it proposes a period that is over
    assert planned.exit_code == 0, planned.stdout
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    assert job["source"] == {
        "files": "besuche.csv",
        "delimiter": ";",
        "encoding": "windows-1252",
        "date_format": "%d.%m.%Y",
    }
    for more in ([], ["--dry-run"]):
        done = run("run", "besuche.toml", "--date", "2025-02-02", *more)
        assert done.exit_code == 0, done.stderr
    if how is EXACT:
        assert "Köln" in run("run", "besuche.toml", "--date", "2025-02-02").stdout


@pytest.mark.parametrize("how", [EXACT, NOISED])
def test_cells_a_zone_and_a_budget_can_be_given(folder, how):
    more = ["--domain", "Stadt/Ort=Köln,Bonn", "--budget", "9.5", "--time-zone", "Europe/Berlin", "--type", "tag=date"]
    made = run("init", "besuche.csv", *CSV, *how, *more)
    assert made.exit_code == 0, made.stderr
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    part = {"part": "partial_knowledge"} if how is EXACT else {}
    assert job["budget"] == {"epsilon": 9.5, "delta": 1e-6, **part}
    assert job["period"] == {"column": "tag", "time_zone": "Europe/Berlin"}
    assert job["release"][0]["domain"] == ["Köln", "Bonn"]
    assert "release_threshold" not in job["release"][0]
    done = run("run", "besuche.toml", "--date", "2025-02-02")
    assert done.exit_code == 0, done.stderr
    assert "Bonn" in done.stdout


def test_cells_of_several_columns_have_the_kinds_of_their_columns(folder):
    frame = {"person": ["a"], "day": pd.to_datetime(["2025-02-02T10:00Z"]), "town": ["Ås"], "age": [7], "x": [1.5]}
    pd.DataFrame(frame).to_parquet("visits.parquet")
    asked = ["visits.parquet", "--unit", "person", "--period", "day", "--by", "town", "--by", "age", "--noise", "1"]
    made = run("init", *asked, "--domain", "age=7,8", "--domain", "town=Ås")
    assert made.exit_code == 0, made.stderr
    job = tomllib.loads(Path("visits.toml").read_text(encoding="utf-8"))
    assert job["release"][0]["domain"] == {"town": ["Ås"], "age": [7, 8]}
    assert job["period"] == {"column": "day", "time_zone": "UTC"}
    assert run("run", "visits.toml", "--date", "2025-02-02").exit_code == 0
    for wrong, told in (
        (["--domain", "age=7"], "needed for all columns of --by: 'town', 'age'"),
        (["--domain", "age=7,x", "--domain", "town=Ås"], "must be a whole number"),
        (["--by", "x", "--domain", "x=1"], "declares texts and whole numbers"),
        (["--domain", "town"], "must be a column of --by and its cells"),
        (["--domain", "day=1"], "must be a column of --by and its cells"),
        (["--domain", "age=7", "--domain", "age=8"], "must be a column of --by and its cells, once"),
        (["--budget", "-1"], "budget"),
        (["--time-zone", "Mars"], "must be the name of a time zone"),
    ):
        done = run("init", *asked, *wrong, "--force")
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr
    assert tomllib.loads(Path("visits.toml").read_text(encoding="utf-8")) == job


def test_evidence_lets_noise_add_up_to_less_and_each_job_has_a_folder(folder):
    (folder / "other.csv").write_text(VISITS, encoding="windows-1252")
    assert run("init", "besuche.csv", *CSV, *NOISED, "--evidence", "once_per_unit").exit_code == 0
    assert run("init", "other.csv", *CSV, *NOISED).exit_code == 0
    told = {}
    for name in ("besuche", "other"):
        done = run("backfill", f"{name}.toml", "--from", "2025-02-01", "--to", "2025-02-03")
        assert done.exit_code == 0, done.stderr
        told[name] = done.stdout
    assert "private at ε = 1, " in told["besuche"]
    assert "private at ε = 3, " in told["other"]


def test_what_is_not_given_is_asked_at_a_terminal(folder, monkeypatch):
    answers = iter(["person", "x", "tag", "2", "Stadt/Ort", "no", "20 %", "2"])
    asked = []

    def ask(self, name, read=None, **words):
        asked.append(name)
        return Asker.real(self, name, read, **words)

    monkeypatch.setattr(Asker, "real", Asker.__call__, raising=False)
    monkeypatch.setattr(Asker, "__call__", ask)
    monkeypatch.setattr(init_command, "at_a_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    made = run("init", "besuche.csv", *CSV)
    assert made.exit_code == 0, made.stderr
    names = ["unit", "period", "every", "by", "noise", "p_max", "evidence"]
    assert asked == [f"init_{name}" for name in names]
    assert "The file has no column 'x'" in made.stdout
    assert "Columns: person (text), Stadt/Ort (text), tag (text)" in " ".join(made.stdout.split())
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    assert job["period"] == {"column": "tag", "every": "week"}
    assert job["evidence"] == {"kind": "one_day_protected"}
    assert job["release"][0]["k"] == 35


def test_no_row_is_read(folder):
    (folder / "bad.csv").write_text('person;tag\n"broken;\n', encoding="utf-8")
    made = run("init", "bad.csv", "--delimiter", ";", "--unit", "person", "--period", "tag", "--noise", "1")
    assert made.exit_code == 0, made.stderr


WRONG = [
    (["besuche.csv", *CSV, "--unit", "person"], "say it with --period"),
    (["besuche.csv", *CSV, "--unit", "id", "--period", "tag", "--noise", "1"], "The file has no column 'id'"),
    (["besuche.csv", *CSV, *NOISED, "--p-max", "0.1"], "--noise needs no --p-max"),
    (["besuche.csv", *CSV, *EXACT[:-2]], "say it with --evidence"),
    (["besuche.csv", *CSV, *EXACT[:-1], "habit"], "--evidence must be one of"),
    (["besuche.csv", *CSV, *NOISED, "--every", "fortnight"], "--every must be one of"),
    (["besuche.csv", *CSV, *EXACT[:4], *EXACT[6:]], "name a column with --by"),
    (["besuche.csv", *CSV, *EXACT, "--job", "there.toml"], "exists: name another file"),
    (["numbers.parquet", "--unit", "person", "--period", "n", "--noise", "1"], "holds no dates or times"),
    (["besuche.csv", *EXACT], "write encoding = "),
    (["nowhere.csv", *EXACT], "does not exist"),
]


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_what_is_wrong_is_one_clear_error_and_nothing_is_written(folder, words, told):
    (folder / "there.toml").write_text("mine", encoding="utf-8")
    pd.DataFrame({"person": ["a"], "n": [1]}).to_parquet(folder / "numbers.parquet")
    before = sorted(folder.iterdir())
    done = run("init", *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.toml").read_text(encoding="utf-8") == "mine"
    assert run("init", "besuche.csv", *CSV, *NOISED, "--job", "there.toml", "--force").exit_code == 0
