"""``pkdp init FILE``: a job file that runs, made without a look at any row but for the newest date."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from moved_clock import clock_at
from thorough import spread, thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline import GeometricNoise, Histogram, certify, clock
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.start import init_answers, init_text
from pkdp_pipeline.extras.start.init_answers import Asker
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.job import read_job

VISITS = "person;Stadt/Ort;tag\n" + "".join(f"p{number};Köln;02.02.2025\n" for number in range(60))
CSV = ["--delimiter", ";", "--encoding", "windows-1252", "--date-format", "%d.%m.%Y"]
EXACT = ["--unit", "person", "--period", "tag", "--by", "Stadt/Ort", "--p-max", "20%", "--known", "3"]
EXACT += ["--independent", "--evidence", "once_per_unit"]
NOISED = ["--unit", "person", "--period", "tag", "--by", "Stadt/Ort", "--noise", "1", "--cells-per-unit", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "besuche.csv").write_text(VISITS, encoding="windows-1252")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clock, "machine_zone", lambda: "Europe/Oslo")
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words])


@thinned(2)
@pytest.mark.parametrize(
    ("how", "every"), [(EXACT, "day"), (NOISED, "week"), ([*NOISED[:4], "--noise", "0.5"], "year")]
)
def test_the_job_runs_as_it_is_written(folder, how, every):
    result = run("init", "besuche.csv", *CSV, *how, "--every", every)
    assert result.exit_code == 0, result.stderr
    dry, then = (words.split() for words in result.stdout.split("pkdp ")[-2:])
    assert dry == [*then, "--dry-run"]
    assert then[:3] == ["run", "besuche.toml", "--date"]
    assert run(*dry).exit_code == 0
    done = run(*then)
    assert done.exit_code == 0, done.stderr
    assert ("Köln" if "--by" in how else "people, 2025") in done.stdout  # of the newest period there is
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    assert job["source"] == {
        "files": "besuche.csv",
        "delimiter": ";",
        "encoding": "windows-1252",
        "date_format": "%d.%m.%Y",
        "types": {"tag": "date"},
    }
    assert job["period"] == {"column": "tag", "time_zone": "Europe/Oslo"} | ({} if every == "day" else {"every": every})
    exact = {"p_max": 0.2, "known": 3, "influence": "active"}
    assert job.get("attacker") == (exact if how is EXACT else None)
    assert (job["missing_unit"], job.get("one_cell")) == ("drop", "hash" if "--by" in how else None)
    assert "budget" not in job
    assert "about" not in job


def test_what_is_given_is_read_as_one_job(folder, monkeypatch):
    texts = []
    monkeypatch.setattr(init_text, "read_job", lambda text, file: texts.append(text) or read_job(text, file))
    result = run("init", "besuche.csv", *CSV, *NOISED)
    assert result.exit_code == 0, result.stderr
    assert len(texts) == 1


@thinned(2)
@pytest.mark.parametrize("how", [EXACT, NOISED])
def test_cells_a_zone_and_a_budget_can_be_given(folder, how):
    more = ["--domain", "Stadt/Ort=Köln,Bonn", "--budget", "9.5", "--time-zone", "Europe/Berlin", "--type", "tag=date"]
    result = run("init", "besuche.csv", *CSV, *how, *more)
    assert result.exit_code == 0, result.stderr
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
    arguments = ["visits.parquet", "--unit", "person", "--period", "day", "--by", "town", "--by", "age", "--noise", "1"]
    arguments += ["--cells-per-unit", "1"]
    result = run("init", *arguments, "--domain", "age=7,8", "--domain", "town=Ås")
    assert result.exit_code == 0, result.stderr
    job = tomllib.loads(Path("visits.toml").read_text(encoding="utf-8"))
    assert job["release"][0]["domain"] == {"town": ["Ås"], "age": [7, 8]}
    assert job["period"] == {"column": "day", "time_zone": "Europe/Oslo"}
    assert run("run", "visits.toml", "--date", "2025-02-02").exit_code == 0
    for wrong, message in (
        (["--domain", "age=7"], "needed for all columns of --by: 'town', 'age'"),
        (["--domain", "age=7,x", "--domain", "town=Ås"], "must be a whole number"),
        (["--by", "x", "--domain", "x=1"], "declares texts and whole numbers"),
        (["--domain", "town"], "must be a column of --by and its cells"),
        (["--domain", "day=1"], "must be a column of --by and its cells"),
        (["--domain", "age=7", "--domain", "age=8"], "must be a column of --by and its cells, once"),
        (["--budget", "-1"], "budget"),
        (["--time-zone", "Mars"], "must be the name of a time zone"),
    ):
        done = run("init", *arguments, *wrong, "--force")
        assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert tomllib.loads(Path("visits.toml").read_text(encoding="utf-8")) == job


@pytest.mark.parametrize(("budget", "days"), [(None, 5), (3.0, 3), (1.0, 1)])
def test_the_release_threshold_is_enough_for_all_that_is_proposed(folder, budget, days):
    rows = "".join(f"p;Köln;0{day}.02.2025\n" for day in range(1, 7))  # the last day may not be complete
    (folder / "log.csv").write_text("person;Stadt/Ort;tag\n" + rows, encoding="windows-1252")
    given = [] if budget is None else ["--budget", budget]
    done = run("init", "log.csv", *CSV, *NOISED, *given)
    assert done.exit_code == 0, done.stderr
    job = load_job("log.toml")
    proposed = re.findall(r"pkdp backfill log.toml --from 2025-02-01 --to (\S+) --dry-run", done.stdout)
    assert proposed == ([f"2025-02-0{days}"] if days > 1 else [])
    dates = [date(2025, 2, 1) + timedelta(day) for day in range(days)]
    assert plan_job(job, dates).refused is None
    shared = days if budget else 366
    threshold = job.release[0].release_threshold
    deltas = [
        certify(Histogram(k=1, noise=GeometricNoise(1.0), release_threshold=number)).delta(1.0)
        for number in (threshold, threshold - 1)
    ]
    assert deltas[0] * shared <= 1e-6 < deltas[1] * shared


@pytest.mark.slow
def test_evidence_lets_noise_add_up_to_less_and_each_job_has_a_folder(folder):
    (folder / "other.csv").write_text(VISITS, encoding="windows-1252")
    assert run("init", "besuche.csv", *CSV, *NOISED, "--evidence", "once_per_unit").exit_code == 0
    assert run("init", "other.csv", *CSV, *NOISED).exit_code == 0
    outputs = {}
    for name in ("besuche", "other"):
        done = run("backfill", f"{name}.toml", "--from", "2025-02-01", "--to", "2025-02-02")
        assert done.exit_code == 0, done.stderr
        outputs[name] = done.stdout
    assert "private at ε = 1, " in outputs["besuche"]
    assert "private at ε = 2, " in outputs["other"]


@pytest.fixture
def typed(monkeypatch):
    """Return what gives answers at a terminal, and lists what was asked."""
    questions, answers = [], []

    def ask(self, name, read=None, check=None, **words):
        questions.append(words.get("question", name).partition("?")[0] if name == "init_about" else name)
        return Asker.real(self, name, read, check, **words)

    monkeypatch.setattr(Asker, "real", Asker.__call__, raising=False)
    monkeypatch.setattr(Asker, "__call__", ask)
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: answers.pop(0))

    def answering(*given):
        answers[:] = given
        questions.clear()
        return questions

    return answering


def test_all_that_is_declared_is_asked_at_a_terminal(folder, typed):
    questions = typed(
        *("person", "x", "tag", "2", "Stadt/Ort", "no", "no", "20 %", "7", "", "5", "0.9"),
        *("Besuche", "", "a@b.example", "Me", "Private against anyone", "One in eight comes.", "2025-01-31"),
    )
    result = run("init", "besuche.csv", *CSV)
    assert result.exit_code == 0, result.stderr
    names = ["init_unit", "init_period", "init_every", "init_by", "init_noised", "init_dependent", "p_max"]
    names += ["known", "influence"]
    about = ["Title", "Publisher", "Contact", "Argued by", "Argument", "Argued on"]
    assert questions == [*names, "evidence", "init_budget", *about]
    assert "The file has no column 'x'" in result.stdout
    assert "Columns: person (text), Stadt/Ort (text), tag (text)" in " ".join(result.stdout.split())
    assert "argument: must hold words, and none that promise" in " ".join(result.stdout.split())
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    assert job["period"] == {"column": "tag", "every": "week", "time_zone": "Europe/Oslo"}
    assert job["evidence"] == {"kind": "one_day_protected"}
    assert job["attacker"] == {"p_max": 0.2, "known": 7, "influence": "active"}
    assert job["budget"] == {"epsilon": 0.9, "delta": 1e-6, "part": "partial_knowledge"}
    assert job["about"] == {
        "title": "Besuche",
        "contact": "a@b.example",
        "argued_by": "Me",
        "argument": "One in eight comes.",
        "argued_on": "2025-01-31",
    }
    least = pkdp.AttackerModel(p_max=0.2, known=7, influence="active")
    assert job["release"][0]["k"] == pkdp.smallest_k(least, epsilon=0.9, delta=1e-6)


def test_enter_assumes_nothing_that_has_to_be_argued(folder, typed):
    questions = typed("person", "tag", "", "Stadt/Ort", "no", "no", "20 %", *[""] * 9)
    result = run("init", "besuche.csv", *CSV)
    assert result.exit_code == 0, result.stderr
    assert "Argued on" not in questions
    job = tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    assert not {"evidence", "budget", "about"} & {*job}
    typed("person", "tag", "", "", "no", "yes", *[""] * 5)  # one number needs noise
    result = run("init", "besuche.csv", *CSV, "--force")
    assert result.exit_code == 0, result.stderr
    assert "One number without noise takes more than p_max" in " ".join(result.stdout.split())
    assert "noise" in tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))["release"][0]


def test_a_budget_is_an_epsilon_and_no_probability(folder, typed):
    typed("person", "tag", "", "Stadt/Ort", "", "1", "1", "0", "-1", "12.5", *[""] * 3)
    result = run("init", "besuche.csv", *CSV)
    assert result.exit_code == 0, result.stderr
    assert "ε must be above 0" in result.stdout
    assert "It must be at least 0." in result.stdout
    assert tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))["budget"] == {"epsilon": 12.5, "delta": 1e-6}
    assert run("init", "besuche.csv", *CSV, *NOISED, "--budget", "0", "--force").exit_code in (2, 4)


@pytest.mark.slow
def test_the_choices_of_evidence_are_explained_in_the_words_of_the_period(folder, typed):
    rows = "".join(f"2025-03-{day:02},p{day},x\n" for day in range(3, 28))
    (folder / "log.csv").write_text(f"when,id,town\n{rows}", encoding="utf-8")
    typed("id", "when", "week", "town", "no", "no", "20%", "0", "?", "6", "2", "no", "", *[""] * 5)
    result = run("init", "log.csv")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    explained = said[said.index("What can be argued") : said.index("And of all releases")]
    assert re.findall(r"\bdays?\b", explained) == []
    assert "the numbers hold for one week of a person, told all her other weeks" in explained
    for line in ("1 Nothing is declared", "2 How often she comes", "5 Hidden is what", "7 The dependence itself"):
        assert line in explained
    assert "With no, one week can be published without noise, and no second." in explained
    assert "one week can be published, and no second: choose which" in said
    assert "backfill" not in said
    assert "--date 2025-03-17 --dry-run" in said
    text = Path("log.toml").read_text(encoding="utf-8")
    assert "# With this alone one week can be published, and no second" in text
    assert tomllib.loads(text)["evidence"] == {"kind": "bounded_participation", "times": 2}
    assert run("run", "log.toml", "--date", "2025-03-17").exit_code == 0
    assert run("run", "log.toml", "--date", "2025-03-10").exit_code == 4
    both = ["--evidence", "bounded_participation:2", "--evidence", "independent_given_habits"]
    how = ["--unit", "id", "--period", "when", "--by", "town", "--p-max", "20%", "--known", "0", "--independent"]
    shutil.rmtree("private")
    shutil.rmtree("public")
    result = run("init", "log.csv", *how, *both, "--force")
    assert result.exit_code == 0, result.stderr
    assert "no second" not in result.stdout + Path("log.toml").read_text(encoding="utf-8")


def test_what_is_given_is_not_asked(folder, typed):
    questions = typed("", "", "1", *[""] * 5)
    result = run(
        "init", "besuche.csv", *CSV, *EXACT[:-5], "--independent", "--every", "month", "--about", "title=Besuche"
    )
    assert result.exit_code == 0, result.stderr
    assert questions == ["known", "influence", "evidence", "init_budget"]


MECHANISM = "--noise and --cells-per-unit (or --p-max, --known, --evidence and --independent)"


@thinned(2)
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ([], f"--unit, --period, {MECHANISM}"),
        (["--unit", "person", "--every", "week", "--force"], f"--period, {MECHANISM}"),
        (EXACT[:-5], "--known, --evidence, --independent"),
        ([*EXACT[2:8], "--type", "tag=date", "--force"], "--unit, --known, --evidence, --independent"),
    ],
)
def test_without_a_terminal_all_that_is_missing_is_said_with_a_command_that_works(folder, given, missing):
    refused = run("init", "besuche.csv", *CSV, *given)
    assert refused.exit_code == 2
    said, command = refused.stderr.strip().split("\n")
    assert f"nobody to ask: give {missing}. If 'person' names a person and 'tag' says of which day a row is" in said
    assert not Path("besuche.toml").exists()
    result = run(*shlex.split(command)[1:])
    assert result.exit_code == 0, result.stderr
    if given:
        return  # jobs run as they are written: see above
    done = run(*result.stdout.rsplit("pkdp ", 1)[1].split())
    assert done.exit_code == 0, done.stderr
    assert "Köln" in done.stdout


def test_the_first_run_passes_with_rows_of_nobody_several_cells_and_other_cells(folder):
    rows = "".join(f"2025-01-0{day},{unit},{town}\n" for day in (3, 6) for unit in ("a", "b", "") for town in "xyz")
    (folder / "log.csv").write_text(f"when,id,town\n{rows}", encoding="utf-8")
    result = run(
        "init",
        "log.csv",
        "--unit",
        "id",
        "--period",
        "when",
        "--by",
        "town",
        "--noise",
        "1",
        "--domain",
        "town=x,y",
        "--cells-per-unit",
        "1",
    )
    assert result.exit_code == 0, result.stderr
    dry, words, all_dry = (words.split("\n")[0].split() for words in result.stdout.split("pkdp ")[-3:])
    assert dry == [*words, "--dry-run"]
    assert words == ["run", "log.toml", "--date", "2025-01-03"]
    assert all_dry == ["backfill", "log.toml", "--from", "2025-01-03", "--to", "2025-01-05", "--dry-run"]
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    done = run(*all_dry[:-1])  # which ends before the newest day, of which rows may be missing
    assert done.exit_code == 0, done.stderr
    assert "the earliest period of data set" not in done.stderr


def test_a_late_file_publishes_nothing(folder):
    rows = "".join(f"2025-03-{day:02},p{day}\n" for day in range(3, 19))
    (folder / "log.csv").write_text(f"when,id\n{rows}", encoding="utf-8")
    result = run("init", "log.csv", "--unit", "id", "--period", "when", "--every", "week", "--noise", "1")
    assert result.exit_code == 0, result.stderr
    assert "--date 2025-03-03" in result.stdout
    assert "--from 2025-03-03 --to 2025-03-10 --dry-run" in result.stdout
    job = tomllib.loads(Path("log.toml").read_text(encoding="utf-8"))
    assert job["checks"] == {"fresh": {"column": "when", "days": 1}}
    for day in ("2025-03-17", "2025-03-24"):  # half a week, and one of which there is nothing yet
        late = run("run", "log.toml", "--date", day)
        assert (late.exit_code, "newest value of column 'when'" in late.stderr) == (3, True)
    assert run("run", "log.toml", "--date", "2025-03-10").exit_code == 0
    assert "the earliest period of data set" in run("run", "log.toml", "--date", "2025-03-03").stderr
    again = run("run", "log.toml", "--date", "2025-03-03")
    assert (again.exit_code, again.stderr) == (0, "")  # a replay asks nothing


def test_where_one_period_is_all_there_is_the_check_waits_as_a_comment(folder):
    result = run("init", "besuche.csv", *CSV, *NOISED)
    assert "nothing shows that it is complete" in " ".join(result.stdout.split())
    text = Path("besuche.toml").read_text(encoding="utf-8")
    assert "checks" not in tomllib.loads(text)
    active = tomllib.loads(text.replace("# [checks]", "[checks]").replace("# fresh", "fresh"))
    assert active["checks"] == {"fresh": {"column": "tag", "days": 1}}
    (folder / "now.csv").write_text("when,id\n2027-01-01,1\n", encoding="utf-8")
    with clock_at(datetime(2026, 12, 31, 23, 30, tzinfo=UTC), "Pacific/Auckland"):
        result = run("init", "now.csv", "--unit", "id", "--period", "when", "--every", "year", "--noise", "1")
    assert result.exit_code == 0, result.stderr
    assert "when that year is over" in result.stdout
    assert "checks" in tomllib.loads(Path("now.toml").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_months_are_read_where_the_form_says_so(folder):
    (folder / "registry.csv").write_text("id,month\n1,2025-01\n2,2025-02\n", encoding="utf-8")
    how = ["init", "registry.csv", "--unit", "id", "--period", "month", "--noise", "1"]
    assert "another form: write --date-format %Y-%m." in run(*how).stderr
    assert "write --every month, or longer" in run(*how, "--date-format", "%Y-%m").stderr
    result = run(*how, "--date-format", "%Y-%m", "--every", "month")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.rstrip().endswith("pkdp run registry.toml --date 2025-01-01")
    assert run("run", "registry.toml", "--date", "2025-01-31").exit_code == 0


def test_a_form_of_dates_that_is_given_is_not_proposed_against_the_file(folder):
    (folder / "registry.csv").write_text("id,month,day\n1,2025-01,2025-01-03\n", encoding="utf-8")
    month = ["init", "registry.csv", "--date-format", "%Y-%m"]
    assert "--period month --every month " in run(*month).stderr
    wrong = run(*month, "--unit", "id", "--period", "day", "--every", "month", "--noise", "1")
    assert (wrong.exit_code, "write --date-format %Y-%m-%d." in wrong.stderr) == (2, True)


def test_both_orders_of_day_and_month_are_named(folder):
    (folder / "us.csv").write_text("id,when\n1,09/25/2025\n2,09/12/2025\n", encoding="utf-8")
    how = ["init", "us.csv", "--unit", "id", "--period", "when", "--noise", "1"]
    stderr = run(*how).stderr
    both = "--date-format %d/%m/%Y where the day comes first, or --date-format %m/%d/%Y where the month does."
    assert both in stderr
    wrong = run(*how, "--date-format", "%d/%m/%Y")
    assert (wrong.exit_code, "write --date-format %m/%d/%Y where that is the order" in wrong.stderr) == (2, True)
    assert "--time-zone for times with an offset" in wrong.stderr
    assert "25" not in (stderr + wrong.stderr).replace(str(folder), "")
    assert run(*how, "--date-format", "%m/%d/%Y").exit_code == 0
    assert run("run", "us.toml", "--date", "2025-09-12").exit_code == 0


def test_dates_to_come_are_refused(folder):
    later = clock.today(None) + timedelta(40)
    (folder / "us.csv").write_text(f"id,when\n1,{later:%m/%d/%Y}\n2,01/02/2025\n", encoding="utf-8")
    how = ["init", "us.csv", "--unit", "id", "--period", "when", "--noise", "1", "--date-format", "%m/%d/%Y"]
    refused = run(*how)
    assert (refused.exit_code, "newest date in column 'when' lies in the future" in refused.stderr) == (2, True)
    assert "write --date-format %d/%m/%Y where that is the order" in refused.stderr
    assert str(later.year) not in refused.stderr
    assert not Path("us.toml").exists()
    assert run("init", "us.csv", *how[2:8], "--type", "when=text").exit_code == 2


def test_a_wrong_column_or_form_of_dates_is_asked_again(folder, typed):
    typed("person", "person", "tag", "tag %m.%Y", "tag %d.%m.%Y", *[""] * 8)
    result = run("init", "besuche.csv", *CSV[:4])
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "write --date-format %d.%m.%Y. Name another column, or this one with the form of its dates" in said
    assert tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))["source"]["date_format"] == "%d.%m.%Y"
    frame = pd.DataFrame({"person": ["a"], "n": [1], "tag": pd.to_datetime(["2999-01-01"]), "day": ["2025-01-01"]})
    frame.assign(day=pd.to_datetime(frame["day"])).to_parquet("visits.parquet")
    typed("person", "n", "tag", "day", *[""] * 8)
    result = run("init", "visits.parquet")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "holds no dates or times" in said
    assert "lies in the future" in said
    assert "leave out rows of days to come. Name another column." in said


def test_a_job_that_would_be_refused_is_not_written(folder):
    done = run("init", "besuche.csv", *CSV, *NOISED, "--budget", "0.5")
    assert done.exit_code == 4
    assert "would exceed the budget" in done.stderr
    assert not Path("besuche.toml").exists()


def test_nobody_declares_an_attacker_before_records_are_argued_to_be_independent(folder, typed, monkeypatch):
    questions = typed("person", "tag", "", "Stadt/Ort", "no", "yes", "back", "yes", "2", *[""] * 5)
    result = run("init", "besuche.csv", *CSV)
    assert result.exit_code == 0, result.stderr
    before = ["init_unit", "init_period", "init_every", "init_by", "init_noised"]
    assert questions[:6] == [*before, "init_dependent"]
    assert questions[6:12] == [*before, "init_cells_per_unit"]  # after back, those before have their answers
    said = " ".join(result.stdout.split())
    assert "Then a threshold hides nobody" in said
    assert all(word in said for word in ("household", "allow noise", "docs/correlated.md"))
    assert "attacker" not in tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: False)
    exact = run("init", "besuche.csv", *CSV, *(word for word in EXACT if word != "--independent"), "--force")
    assert (exact.exit_code, "give --independent." in exact.stderr) == (2, True)
    assert "people's records do not depend on one another" in exact.stderr
    assert run("init", "besuche.csv", *CSV, *EXACT, "--force").exit_code == 0
    assert "people's records do not depend on one another is argued" in Path("besuche.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("cells", "expected"), [(1, [40]), (2, [80, 80])])  # with one, few are left in each cell
def test_with_noise_a_person_counts_in_as_many_cells_as_is_said(folder, cells, expected):
    rows = "".join(f"2025-03-{day:02},p{number},{town}\n" for day in (3, 4) for number in range(40) for town in "xyz")
    (folder / "log.csv").write_text(f"when,id,town\n{rows}", encoding="utf-8")
    how = ["init", "log.csv", "--unit", "id", "--period", "when", "--by", "town", "--noise", "50"]
    refused = run(*how)
    assert (refused.exit_code, "give --cells-per-unit." in refused.stderr) == (2, True)
    result = run(*how, "--cells-per-unit", cells)
    assert result.exit_code == 0, result.stderr
    text = Path("log.toml").read_text(encoding="utf-8")
    assert "the others fall short by that" in text
    assert ("one_cell" in tomllib.loads(text), "cells_per_unit" in text) == (cells == 1, cells > 1)
    assert run("run", "log.toml", "--date", "2025-03-03").exit_code == 0
    table = pd.read_parquet("public/log/2025-03-03/people_by_town.parquet")
    assert table["count"].sum() == cells * 40


@thinned(2)
@pytest.mark.parametrize(("epsilon", "cells"), spread(4, [0.1, 0.3, 1.0, 2.5], [1, 2, 3, 7]))
def test_the_noise_of_all_cells_of_a_person_is_what_was_asked_for(folder, epsilon, cells):
    result = run("init", "besuche.csv", *CSV, *NOISED[:6], "--noise", epsilon, "--cells-per-unit", cells)
    assert result.exit_code == 0, result.stderr
    (release,) = load_job("besuche.toml").release
    certificate = pkdp.certify(release.mechanism, pkdp.AttackerModel())
    assert release.mechanism.cells_per_unit == cells
    assert 0.99 * epsilon < certificate.worst_case.epsilon(1e-6) <= epsilon


def test_the_first_date_column_is_proposed_and_no_number_as_a_cell(folder, typed, monkeypatch):
    rows = "".join(f"p{number},{number % 7},1.5,{number % 28 + 1:02}/02/2025,01/03/2025,x\n" for number in range(60))
    (folder / "log.csv").write_text(f"id,age,score,injured,seen,kind\n{rows}", encoding="utf-8")
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: False)
    stderr = run("init", "log.csv").stderr
    assert "'injured' says of which day a row is and people are counted by 'kind'" in stderr
    assert "--period injured --by kind --noise 1 --cells-per-unit 1 --date-format %d/%m/%Y" in stderr
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: True)
    typed("id", "", "week", "kind", "", "1", *[""] * 5)
    result = run("init", "log.csv")
    assert result.exit_code == 0, result.stderr
    job = tomllib.loads(Path("log.toml").read_text(encoding="utf-8"))
    assert (job["period"]["column"], job["source"]["date_format"]) == ("injured", "%d/%m/%Y")


def test_nothing_is_proposed_where_nothing_speaks_for_it(folder):
    (folder / "people.csv").write_text("id,age,score\na,3,1.5\n", encoding="utf-8")
    stderr = run("init", "people.csv").stderr
    assert "this would do, with the column that says of which day a row is" in stderr
    assert stderr.rstrip().endswith("pkdp init people.csv --unit id --period COLUMN --noise 1")
    pd.DataFrame({"id": ["a"], "age": [3]}).to_parquet("people.parquet")
    assert "no column holds dates or times" in run("init", "people.parquet").stderr
    day = pd.to_datetime(["2025-01-01"])
    frame = {"id": ["a"], "monthly": ["x"], "at": day, "then": day}
    pd.DataFrame(frame).to_parquet("visits.parquet")
    assert "--period at --by monthly" in run("init", "visits.parquet").stderr


@thinned(2)
@pytest.mark.parametrize(
    ("written", "kind", "zoned"),
    [
        ("2025-03-{:02}", "date", True),
        ("2025-03-{:02} 10:00", "timestamp", False),
        ("2025-03-{:02}T10:00:00Z", "instant", True),
    ],
)
def test_the_machines_zone_is_written_and_times_are_read_as_they_are_written(folder, monkeypatch, written, kind, zoned):
    rows = "".join(f"{written.format(day)},p{day}\n" for day in range(3, 19))
    (folder / "log.csv").write_text(f"when,id\n{rows}", encoding="utf-8")
    for zone, expected in (("Pacific/Auckland", "Pacific/Auckland"), (None, "UTC" if kind == "instant" else None)):
        monkeypatch.setattr(clock, "machine_zone", lambda zone=zone: zone)
        result = run("init", "log.csv", "--unit", "id", "--period", "when", "--noise", "1", "--force")
        assert result.exit_code == 0, result.stderr
        job = tomllib.loads(Path("log.toml").read_text(encoding="utf-8"))
        assert job["source"]["types"] == {"when": kind}
        assert job["period"].get("time_zone") == (expected if zoned else None)
    assert run("run", "log.toml", "--date", "2025-03-05").exit_code == 0


@pytest.mark.slow
def test_two_jobs_of_one_file_have_folders_of_their_own_and_one_ledger(folder):
    for name in ("a", "b"):
        by = ["--by", "Stadt/Ort"] if name == "a" else []
        cells = ["--cells-per-unit", "1"] if name == "a" else []
        result = run("init", "besuche.csv", *CSV, *NOISED[:4], *by, "--noise", "1", *cells, "--job", f"{name}.toml")
        assert result.exit_code == 0, result.stderr
        done = run("run", f"{name}.toml", "--date", "2025-02-02")
        assert done.exit_code == 0, done.stderr
    assert "2 releases together: private at ε = 2" in " ".join(done.stdout.split())
    assert sorted(path.name for path in Path("public").iterdir()) == ["a", "b"]
    assert [path.name for path in Path("private").iterdir()] == ["besuche.sqlite"]


def test_the_data_set_has_the_files_name_or_the_given_one(folder):
    for given, expected in ([], "besuche"), (["--dataset", " Besuche  der Klinik "], "Besuche der Klinik"):
        assert run("init", "besuche.csv", *CSV, *NOISED, "--force", *given).exit_code == 0
        assert tomllib.loads(Path("besuche.toml").read_text(encoding="utf-8"))["dataset"] == expected


def test_an_answer_that_cannot_be_is_asked_again_before_the_next_question(folder, typed):
    rows = "".join(f"2025-{month:02},p{month},x,y\n" for month in range(1, 9))
    (folder / "log.csv").write_text(f"month,id,count,town\n{rows}", encoding="utf-8")
    questions = typed("id", "", "day", "month", "count", "town", "yes", "101", "2", "0.9", "0.5", "1", *[""] * 3)
    result = run("init", "log.csv")
    assert result.exit_code == 0, result.stderr
    names = ["init_unit", "init_period", "init_every", "init_by", "init_noised", "init_cells_per_unit", "init_noise"]
    assert questions == [*names, "init_budget", "Title", "Publisher", "Contact"]
    said = " ".join(result.stdout.split())
    for message in ("a value is a month", 'a column "count"', "must be at most 100", "would exceed the budget"):
        assert said.count(message) == 1, message
    assert "declare a larger budget" in said
    assert "job file 'log.toml' cannot be used" not in said


def test_a_ledger_that_refuses_is_said_where_another_answer_helps(folder, typed):
    assert run("init", "besuche.csv", *CSV, *NOISED, "--job", "a.toml").exit_code == 0
    assert run("run", "a.toml", "--date", "2025-02-02").exit_code == 0
    typed(*("person", "tag", "", "Stadt/Ort", "no", "no", "20%", "0", "", *["back"] * 4, "yes", "1"), *[""] * 5)
    result = run("init", "besuche.csv", *CSV, "--job", "b.toml")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "are two releases about the same people" in said
    assert "--evidence bounded_dependence:EPSILON,DELTA" in said
    assert "first [table]" not in said


WRONG = [
    (["besuche.csv", *CSV, *EXACT, "--about", "title=ε = 1, δ = 0"], "title: must hold words, and none that promise"),
    (["besuche.csv", *CSV, *EXACT, "--about", "name=x"], "unknown key 'name'"),
    (["besuche.csv", *CSV[:4], *EXACT], "write --date-format %d.%m.%Y"),
    (["broken.csv", "--unit", "a", "--period", "b", "--noise", "1"], "cannot be read to its end as CSV"),
    (["besuche.csv", *CSV, "--unit", "id", "--period", "tag", "--noise", "1"], "The file has no column 'id'"),
    (["besuche.csv", *CSV, *NOISED, "--p-max", "0.1"], "--noise needs no --p-max"),
    (["besuche.csv", *CSV, *NOISED, "--independent"], "--noise needs no --independent"),
    (["besuche.csv", *CSV, *EXACT, "--cells-per-unit", "2"], "--p-max needs no --cells-per-unit"),
    (["besuche.csv", *CSV, *NOISED, "--job", "nowhere/x.toml"], "--job must be in a folder that exists"),
    (["besuche.csv", *CSV, *NOISED[:4], "--domain", "tag=x", "--by", "Stadt/Ort"], "--domain must be a column of --by"),
    (["besuche.csv", *CSV, *NOISED, "--dataset", " "], "dataset must be a non-empty name"),
    (["besuche.csv", *CSV, "--time-zone", "Mars"], "must be the name of a time zone"),
    (["besuche.csv", *CSV, "--about", "name=x"], "unknown key 'name'"),
    (["besuche.csv", *CSV, "--evidence", "habit"], "once_per_unit, or none alone, got 'habit'"),
    (["besuche.csv", *CSV, *EXACT[:-1], "habit"], "once_per_unit, or none alone, got 'habit'"),
    (["besuche.csv", *CSV, *NOISED, "--by", "person"], "a cell for each person hides nobody: name another"),
    (["besuche.csv", *CSV, *NOISED, "--every", "fortnight"], "--every must be one of"),
    (["besuche.csv", *CSV, *EXACT[:4], *EXACT[6:]], "name a column with --by"),
    (["besuche.csv", *CSV, *EXACT[:-7], "--p-max", "0.99999999", *EXACT[-5:]], "is too much, and then no k hides who"),
    (["besuche.csv", *CSV, *EXACT[:-7], "--p-max", "1", *EXACT[-5:]], "take --noise instead of it, or argue a smaller"),
    (["besuche.csv", *CSV, *EXACT, "--job", "there.toml"], "exists: name another file"),
    (["numbers.parquet", "--unit", "person", "--period", "n", "--noise", "1"], "holds no dates or times"),
    (["besuche.csv", *EXACT], "write --encoding windows-1252"),
    (["nowhere.csv", *EXACT], "does not exist"),
]


@thinned(4)
@pytest.mark.parametrize(("words", "message"), WRONG)
def test_what_is_wrong_is_one_clear_error_and_nothing_is_written(folder, words, message):
    (folder / "there.toml").write_text("mine", encoding="utf-8")
    frame = pd.DataFrame({"person": ["a"], "n": [1], "day": pd.to_datetime(["2025-01-01"])})
    frame.to_parquet(folder / "numbers.parquet")
    (folder / "broken.csv").write_text('a,b\n"broken,\n', encoding="utf-8")
    before = sorted(folder.iterdir())
    done = run("init", *words)
    assert done.exit_code == (4 if "no k hides who" in done.stderr else 2)
    assert "protects=" not in done.stderr
    assert message in done.stderr
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.toml").read_text(encoding="utf-8") == "mine"
    if "exists: " in message:
        assert run("init", *words, "--force").exit_code == 0


AGES = "".join(
    f"p{number},{number % 90}.0,{1930 + number % 80}-01-0{number % 9 + 1},2025-02-01\n" for number in range(90)
)
OF_AGES = ["ages.csv", "--unit", "id", "--period", "seen", "--noise", "1", "--cells-per-unit", "1"]


@pytest.fixture
def ages(folder):
    (folder / "ages.csv").write_text(f"id,age,born,seen\n{AGES}", encoding="utf-8")
    return folder


def test_numbers_and_days_are_counted_in_groups_that_are_given(ages):
    result = run("init", *OF_AGES, "--by", "age", "--bins", "age=0,18,40")
    assert result.exit_code == 0, result.stderr
    job = tomllib.loads(Path("ages.toml").read_text(encoding="utf-8"))
    (release,) = job["release"]
    assert job["source"]["types"] == {"age": "real", "seen": "date"}
    assert (release["by"], release["domain"]) == (
        {"column": "age", "bins": [0, 18, 40]},
        ["0–17", "18–39", "40 or more"],
    )
    done = run("run", "ages.toml", "--date", "2025-02-01")
    assert done.exit_code in (0, 3), done.stderr  # no later row shows that the day is complete
    result = run(
        "init", *OF_AGES, "--by", "age", "--by", "born", "--bins", "born=year", "--bins", "age=0,18", "--force"
    )
    assert result.exit_code == 0, result.stderr
    (release,) = tomllib.loads(Path("ages.toml").read_text(encoding="utf-8"))["release"]
    assert release["by"] == [{"column": "age", "bins": [0, 18]}, {"column": "born", "bins": "year"}]
    assert "domain" not in release
    for wrong, words in (
        (["--by", "age", "--bins", "born=year"], "--bins must be a column of --by"),
        (["--by", "age", "--bins", "age=5,5"], "must rise"),
        (["--by", "age", "--bins", "age=0.1x"], "must be numbers that rise"),
        (["--bins", "age=5"], "--bins must be a column of --by"),
    ):
        done = run("init", *OF_AGES, *wrong, "--force")
        assert (done.exit_code, words in done.stderr) == (2, True), done.stderr


def test_groups_are_offered_with_round_edges_and_never_chosen_from_the_data(ages, typed, monkeypatch):
    result = run("init", *OF_AGES, "--by", "age")
    assert result.exit_code == 0, result.stderr
    assert '# age: each value is a cell; in groups it is { column = "age", bins = [0, 18, 40, 65] }' in Path(
        "ages.toml"
    ).read_text(encoding="utf-8")
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: False)
    assert "--bins age=0,18,40,65" in run("init", "ages.csv", "--by", "age", "--noise", "1", "--force").stderr
    monkeypatch.setattr(init_answers, "at_a_terminal", lambda: True)
    questions = typed("id", "seen", "", "age, born", "0,30", "", "", "1", *[""] * 5)
    result = run("init", "ages.csv", "--force")
    assert result.exit_code == 0, result.stderr
    assert questions.count("init_bins") == 2
    (release,) = tomllib.loads(Path("ages.toml").read_text(encoding="utf-8"))["release"]
    assert release["by"] == [{"column": "age", "bins": [0, 30]}, {"column": "born", "bins": "month"}]
    typed("id", "seen", "", "age", "none", "", "1", *[""] * 5)
    assert run("init", "ages.csv", "--force").exit_code == 0
    (release,) = tomllib.loads(Path("ages.toml").read_text(encoding="utf-8"))["release"]
    assert release["by"] == "age"
