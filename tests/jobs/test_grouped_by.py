"""Jobs whose by-columns are counted in groups, from every kind of file."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest
from thorough import thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.jobs.job import read_job

JOB = """
dataset = "visits"
unit = "person"
source = { files = "visits.SUFFIX"TYPES }
period = { column = "day", every = "week" }
ledger = "ledger.sqlite"
target = "none"

[output]
directory = "out"

[attacker]
p_max = 0.1

[[release]]
name = "by_age"
by = BY
domain = { sex = ["f", "m"] }
k = 5
"""
BY = '[{ column = "age", bins = [0, 18, 65] }, "sex"]'
TYPES = ', types = { age = "number", day = "date", born = "date" }'


def visits():
    people = range(200)
    return pd.DataFrame(
        {
            "person": [f"p{person}" for person in people],
            "age": [person % 90 for person in people],
            "sex": ["fm"[person % 2] for person in people],
            "born": [dt.date(2000 + person % 4, 12, 31) for person in people],
            "day": [dt.date(2026, 4, 6)] * 200,
        }
    )


def written(folder, suffix, job=JOB, types=TYPES):
    frame = visits()
    frame.to_csv(folder / "visits.csv", index=False)
    frame.to_parquet(folder / "visits.parquet")
    path = folder / "job.toml"
    path.write_text(
        job.replace("SUFFIX", suffix).replace("BY", BY).replace("TYPES", types if suffix == "csv" else ""),
        encoding="utf-8",
    )
    return path


def run(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)))


@thinned(2)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_job_publishes_groups(tmp_path, suffix):
    path = written(tmp_path, suffix)
    result = run("run", path, "--date", "2026-04-12")
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "out" / "2026-W15"
    frame, release = visits(), pkdp.read_release(folder / "by_age.parquet")
    labels = ["0–17", "18–64", "65 or more"]
    expected = pd.crosstab(pd.cut(frame["age"], [0, 18, 65, 1000], right=False, labels=labels), frame["sex"])
    assert release.table["age"].tolist() == [label for label in labels for _ in "fm"]
    assert release.table["count"].tolist() == expected.to_numpy().ravel().tolist()
    again = run("backfill", path, "--from", "2026-04-06", "--to", "2026-04-12")
    assert again.exit_code == 0, again.stderr
    assert run("verify", folder / "by_age.parquet", "--ledger", tmp_path / "ledger.sqlite").exit_code == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_days_are_grouped_by_years(tmp_path, suffix):
    job = JOB.replace("BY", '{ column = "born", bins = "year" }').replace('domain = { sex = ["f", "m"] }\n', "")
    result = run("run", written(tmp_path, suffix, job), "--date", "2026-04-12")
    assert result.exit_code == 0, result.stderr
    years = pkdp.read_release(tmp_path / "out" / "2026-W15" / "by_age.parquet").table
    assert dict(zip(years["born"], years["count"], strict=True)) == dict.fromkeys(["2000", "2001", "2002", "2003"], 50)


def test_text_is_not_grouped_as_numbers(tmp_path):
    result = run("run", written(tmp_path, "csv", types=""), "--date", "2026-04-12")
    assert result.exit_code != 0
    assert "'age' must hold numbers" in result.stderr
    assert not (tmp_path / "out" / "2026-W15" / "by_age.parquet").exists()


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ('[{ column = "age", bins = [5, 5] }]', "must rise"),
        ('[{ column = "age", bins = [] }]', r"release\[1\]\.by\[1\]\.bins: the edges"),
        ('[{ column = "age", bins = "decade" }]', r"by\[1\]\.bins: the edges of bins must be numbers, or one of week"),
        ('[{ column = "age", bins = 5 }]', r"by\[1\]\.bins: .*made from the data.*Write the edges"),
        ('["sex", { column = "age", bins = ["a"] }]', r"by\[2\]\.bins: .*must be finite numbers"),
        ('[{ column = "age" }]', r"by\[1\]\.bins: is required: write bins"),
        ('[{ column = "age", edges = [1] }]', "edges"),
        ('[{ column = "age", bins = [1] }, "age"]', "twice"),
        ("[]", "column name"),
    ],
)
def test_groups_that_mean_nothing_are_refused(tmp_path, by, words):
    path = written(tmp_path, "parquet", JOB.replace("BY", by))
    with pytest.raises(pkdp.ConfigError, match=words) as caught:
        read_job(path.read_text(encoding="utf-8"), path)
    assert len(str(caught.value).splitlines()) == 2
    assert "union" not in str(caught.value)


def test_a_whole_edge_may_be_written_as_a_decimal_and_is_part_of_the_hash(tmp_path):
    texts = [written(tmp_path, "parquet").read_text(encoding="utf-8").replace("18", edge) for edge in ("18", "18.0")]
    jobs = [read_job(text, tmp_path / "job.toml") for text in texts]
    assert jobs[0].release[0].cells_by == jobs[1].release[0].cells_by
    assert jobs[0].digest != jobs[1].digest
