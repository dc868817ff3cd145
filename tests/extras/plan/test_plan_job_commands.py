"""``pkdp plan job``: what a job promises, the smallest change where it is refused, exit codes; nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli.main import app
from pkdp_pipeline.schemas import schema

VALID = jsonschema.Draft202012Validator(schema("plan_job"), format_checker=jsonschema.FormatChecker())
HABITS = (
    'budget = { epsilon = 1.5, delta = 1e-6, part = "partial_knowledge" }\n'
    'evidence = { kind = "independent_given_habits" }\n'
)
JOB = """# kept
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }
unit = "person"
ledger = "postgresql://somebody:secret@nowhere.invalid/ledger"
{terms}
[attacker]
p_max = 0.5

[[release]]
name = "by_town"  # the towns
by = "town"
k = {k}  # small

[output]
directory = "out"
"""


SOURCE = 'source = "visits.parquet"'
WITH_PASSWORD = 'source = { postgres = "postgresql://a:secret@b/c", table = "t" }'


@pytest.fixture
def without_threshold(monkeypatch):
    """Let no noise with a threshold be looked for: which it is takes most of the time."""
    monkeypatch.setattr("pkdp_pipeline.extras.plan.repair._noise_and_threshold", lambda *_: None)


def written(folder: Path, *, k: int = 1, terms: str = "", ledger: str = "out/ledger.sqlite") -> Path:
    path = folder / "job.toml"
    text = JOB.replace("{k}", str(k)).replace("{terms}", terms)
    text = text.replace("postgresql://somebody:secret@nowhere.invalid/ledger", ledger)
    path.write_text(text, encoding="utf-8")
    return path


def plan(path: Path, *options: object, width: int = 100):
    return CliRunner().invoke(app, ["plan", "job", str(path), *map(str, options)], env={"COLUMNS": str(width)})


def test_a_job_that_is_fine_says_what_it_promises(tmp_path):
    done = plan(written(tmp_path, k=60), "--date", "2020-01-01")
    assert done.exit_code == 0, done.output
    for text in ("by_town", "published", "Private at ε = 0.999", "Nothing has to change"):
        assert text in done.output
    assert sorted(os.listdir(tmp_path)) == ["job.toml"]


def test_what_cannot_be_run_yet_is_said_where_it_is_planned_ahead(tmp_path):
    path = written(tmp_path, k=60)
    done = plan(path)  # today, which is not over
    assert done.exit_code == 0, done.output
    assert "But not now" in done.output
    assert "is not over before the end of" in " ".join(done.output.split())
    assert CliRunner().invoke(app, ["run", str(path), "--date", "today"]).exit_code == 2
    path.write_text(path.read_text().replace('"day" }', '"day", closed = ["saturday"] }'), encoding="utf-8")
    assert "2020-01-04 is closed" in plan(path, "--date", "2020-01-04").output
    assert "But not now" not in plan(path, "--date", "2020-01-03").output


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What is printed about a refused job whose source has a password, the job, and the changed file."""
    folder = tmp_path_factory.mktemp("refused")
    path, new = written(folder), folder / "new.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(SOURCE, WITH_PASSWORD), encoding="utf-8")
    return plan(path, "--date", "2020-01-01", "--write", new, width=80), path, new


def test_a_refused_job_is_told_what_to_write(refused):
    done, path, _ = refused
    assert done.exit_code == 4
    table = '      [[release]]\n      name = "by_town"  # the towns\n    - k = 1  # small\n    + k = 60  # small\n'
    assert table in done.output
    assert "secret" not in done.output
    assert all(len(line) <= 80 for line in done.output.splitlines() if "new.toml" not in line)
    assert sorted(os.listdir(path.parent)) == ["job.toml", "new.toml"]


def test_as_json(tmp_path, without_threshold):
    done = plan(written(tmp_path), "--from", "2020-01-01", "--to", "2020-01-02", "--json")
    assert done.exit_code == 4
    document = json.loads(done.output)
    VALID.validate(document)
    assert (document["days"], document["refused"]["day"], document["refused"]["error"]) == (
        2,
        "2020-01-01",
        "NotCertifiableError",
    )
    assert document["offers"] == []  # evidence would do, which has to be argued; the refusal names it
    assert document["target"] == {"epsilon": 1.0, "delta": 1e-6}


@thinned(2)
@pytest.mark.parametrize(
    ("terms", "more", "refused", "offered"),
    [
        ("", "", None, None),
        ("", '\n[[release]]\nname = "by_sex"\nby = "sex"\nk = 60\n', None, 0),
        (HABITS, "", "2020-01-03", 1),
    ],
)
def test_the_json_is_what_its_schema_describes(tmp_path, without_threshold, terms, more, refused, offered):
    path = written(tmp_path, k=60, terms=terms)
    path.write_text(path.read_text(encoding="utf-8").replace("\n[output]", f"{more}\n[output]"), encoding="utf-8")
    last = "2020-01-01" if refused is None else "2020-01-03"
    done = plan(path, "--from", "2020-01-01", "--to", last, "--json")
    document = json.loads(done.output)
    VALID.validate(document)
    assert done.exit_code == (0 if offered is None else 4)
    assert (document["refused"] is None) == (offered is None)
    assert [offer["kind"] for offer in document["offers"]] == ["change"] * (offered or 0)
    assert all(offer["claim"] is None and offer["fragment"] for offer in document["offers"])
    assert (document["refused"] or {"day": None})["day"] == refused
    if refused:
        assert [release["day"] for release in document["releases"]] == [f"2020-01-0{day}" for day in (1, 2)]
        assert document["tried_days"] == 3


@pytest.mark.slow
def test_a_target_may_be_asked_for(tmp_path):
    path = written(tmp_path, k=60)
    assert plan(path, "--date", "2020-01-01", "--epsilon", 1).exit_code == 0
    done = plan(path, "--date", "2020-01-01", "--epsilon", 0.9)
    assert done.exit_code == 4
    assert "promises less than you ask for" in done.output
    assert "- k = 60" in done.output
    assert plan(path, "--date", "2020-01-01", "--delta", 0).exit_code == 2


def test_the_changed_file_is_written_with_its_comments_and_only_to_a_new_one(refused):
    _, path, new = refused
    assert new.read_text(encoding="utf-8") == path.read_text(encoding="utf-8").replace("k = 1 ", "k = 60 ")
    fine = new.with_name("fine.toml")
    assert plan(new, "--date", "2020-01-01", "--write", fine).exit_code == 0
    assert not fine.exists()
    assert plan(path, "--date", "2020-01-01", "--write", new).exit_code == 2
    assert plan(path, "--date", "2020-01-01", "--write", new.parent / "other" / "new.toml").exit_code == 2


def check_runs(folder: Path, path: Path, new: Path, days: list[str]) -> None:
    """Run the changed file on data, and the job that was refused."""
    rows = [(date.fromisoformat(day), f"{town} {n}", town) for day in days for town in ("Ås", "Bø") for n in range(150)]
    pd.DataFrame(rows, columns=["day", "person", "town"]).to_parquet(folder / "visits.parquet")

    def run(file: Path) -> list[int]:
        return [
            CliRunner().invoke(app, ["run", str(file), "--date", day], env={"COLUMNS": "100"}).exit_code for day in days
        ]

    assert run(new) == [0 for _ in days]
    for day in days:
        table = pd.read_parquet(folder / "out" / day / "by_town.parquet")
        assert sorted(table["town"]) == ["Bø", "Ås"]
    assert plan(new, "--from", days[0], "--to", days[-1]).exit_code == 0
    shutil.rmtree(folder / "out")
    assert run(path)[-1] == 4


def test_what_is_written_runs(tmp_path, refused):
    _, path, new = refused
    for file in (path, new):
        text = file.read_text(encoding="utf-8").replace(WITH_PASSWORD, SOURCE)
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    check_runs(tmp_path, tmp_path / path.name, tmp_path / new.name, ["2020-01-01"])


@pytest.mark.slow
def test_noise_that_is_written_runs(tmp_path):
    path, new, days = written(tmp_path, k=60), tmp_path / "new.toml", ["2020-01-01", "2020-01-02"]
    assert plan(path, "--from", days[0], "--to", days[-1], "--write", new).exit_code == 4
    assert "release_threshold = " in new.read_text(encoding="utf-8")
    check_runs(tmp_path, path, new, days)


def test_dates_are_one_or_two(tmp_path):
    path = written(tmp_path, k=60)
    assert plan(path).exit_code == 0
    for options in (("--from", "2020-01-01"), ("--date", "2020-01-01", "--to", "2020-01-02"), ("--date", "1.1.2020")):
        assert plan(path, *options).exit_code == 2


def test_a_refused_run_names_the_command_and_only_where_it_shows_something(tmp_path):
    path = written(tmp_path)
    named = f"pkdp plan job {path} --date 2020-01-01"

    def run(*arguments: str):
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})

    refused = run("run", str(path), "--date", "2020-01-01")
    assert (refused.exit_code, refused.stderr.splitlines()[-1].endswith(named)) == (4, True)
    dry = run("run", str(path), "--date", "2020-01-01", "--dry-run")
    assert dry.exit_code == 4
    assert named in dry.stdout
    fine = run("run", str(written(tmp_path, k=60)), "--date", "2020-01-01")  # there is no source
    assert fine.exit_code == 2
    assert "plan job" not in fine.stderr


def test_tables_in_one_line_are_edited_as_well(tmp_path, without_threshold):
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8")
    inline = text[: text.index("[attacker]")] + (
        'attacker = { p_max = 0.5 }\nrelease = [\n  { name = "by_town", by = "town", k = 1 },\n]\n'
        'output = { directory = "out" }\n'
    )
    path.write_text(inline, encoding="utf-8")
    new = tmp_path / "new.toml"
    assert plan(path, "--date", "2020-01-01", "--write", new).exit_code == 4
    assert new.read_text(encoding="utf-8") == inline.replace("k = 1 ", "k = 60 ")
