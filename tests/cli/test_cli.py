from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline import errors
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.ledger import database
from pkdp_pipeline.theorems.theorems import THEOREMS

pytestmark = pytest.mark.default_target

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path):
    """A folder with the example jobs and their data, away from the repository."""
    (tmp_path / "data").mkdir()
    shutil.copy(EXAMPLES / "data" / "flights_2013.parquet", tmp_path / "data")
    for path in EXAMPLES.glob("*.toml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def pkdp(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)))


def words(text: str) -> str:
    return " ".join(text.split())


def test_run_publishes_then_replays_without_its_source(folder):
    job = folder / "daily_flights.toml"
    first = pkdp("run", job, "--date", "2013-01-02")
    assert first.exit_code == 0, first.output
    for text in (
        "aircraft_by_carrier, 2013-01-02",
        "UA",
        "published, and charged",
        "50 % sure",
        "2013-01-02 alone",
    ):
        assert text in words(first.stdout)
    assert "HA" not in first.stdout.split()
    (folder / "data" / "flights_2013.parquet").unlink()
    again = pkdp("run", job, "--date", "2013-01-02")
    assert again.exit_code == 0
    assert "replayed" in again.stdout
    assert "new ledger" in first.stdout
    assert "new ledger" not in again.stdout
    assert "published, and charged" not in again.stdout


def test_the_ledgers_total_says_what_the_release_has_not_said(folder):
    job = folder / "daily_flights.toml"
    for date in ("2013-01-02", "2013-01-03"):
        done = pkdp("run", job, "--date", date)
        assert done.exit_code == 0, done.output
    release, _, total = words(done.stdout).partition("The ledger so far. ")
    assert "at most 50 % sure of the cell" in release
    assert re.match(
        r"Any one of 2 releases: private at ε = [\d.]+, δ = 1e-6 against the attacker described above\. ", total
    )
    assert "what several releases together tell about her" in total
    assert "A person is one value" in release
    assert "A person is one value" not in total


def test_the_noisy_job_prints_the_sum_of_its_guarantees(folder):
    done = pkdp("run", folder / "daily_flights_noisy.toml", "--date", "2013-01-02")
    assert done.exit_code == 0, done.output
    assert "2 releases together: private at ε = 1, δ = 1e-6 against anyone at all" in words(done.stdout)
    assert "The ledger so far" not in done.stdout


@pytest.mark.parametrize("date", ["2013-02-30", "2013-1-2", "20130102", "tomorrow", "2013-W01-3", ""])
def test_a_date_that_is_none_is_exit_code_2(folder, date):
    refused = pkdp("run", folder / "daily_flights.toml", "--date", date)
    assert refused.exit_code == 2
    assert "--date" in refused.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("arguments", [["run"], ["run", "job.toml"], ["certify", "histogram", "--kk", "5"], ["fly"]])
def test_usage_errors_are_exit_code_2(arguments):
    assert pkdp(*arguments).exit_code == 2


def test_a_broken_job_file_is_exit_code_2_with_the_key(folder):
    job = folder / "daily_flights.toml"
    job.write_text(job.read_text(encoding="utf-8").replace("one_cell", "one_cel"), encoding="utf-8")
    refused = pkdp("run", job, "--date", "2013-01-02")
    assert refused.exit_code == 2
    assert "did you mean 'one_cell'?" in refused.stderr
    assert str(job) in refused.stderr


def test_an_unreadable_source_is_exit_code_2(folder):
    (folder / "data" / "flights_2013.parquet").write_bytes(b"nothing")
    assert pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02").exit_code == 2


def test_a_ledger_that_is_none_is_exit_code_2(folder):
    (folder / "out").mkdir()
    (folder / "out" / "ledger.sqlite").write_bytes(b"no ledger" * 100)
    refused = pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02")
    assert refused.exit_code == 2
    assert "ledger" in refused.stderr


def test_a_date_without_rows_is_published_and_exit_code_3_where_the_job_asks_for_rows(folder):
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2014-01-01").exit_code == 0
    assert "Nothing reached" in (folder / "out" / "2014-01-01" / "summary.md").read_text()
    shutil.rmtree(folder / "out")
    job.write_text(job.read_text() + "\n[checks]\nrows = { min = 1 }\n")
    refused = pkdp("run", job, "--date", "2014-01-02")
    assert refused.exit_code == 3
    assert "the number of rows" in refused.stderr
    assert not (folder / "out").exists()


def test_two_noiseless_views_are_exit_code_4_with_the_ways_out(folder):
    (folder / "data" / "flights_2013.parquet").unlink()
    refused = pkdp("run", folder / "refused_two_views.toml", "--date", "2013-01-02")
    assert refused.exit_code == 4
    for text in ("(1)", "cross-tabulated", "(2)", "noise", "(3)", "bounded dependence"):
        assert text in refused.stderr
    assert not (folder / "out").exists()


def test_both_daily_jobs_on_one_ledger_are_exit_code_4_before_data_are_read(folder):
    noisy = folder / "daily_flights_noisy.toml"
    text = noisy.read_text(encoding="utf-8")
    noisy.write_text(text.replace("out/daily_flights_noisy/ledger.sqlite", "out/ledger.sqlite"), encoding="utf-8")
    assert pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02").exit_code == 0
    (folder / "data" / "flights_2013.parquet").unlink()
    refused = pkdp("run", noisy, "--date", "2013-01-02")
    assert refused.exit_code == 4
    assert "Ways out" in refused.stderr


def test_what_cannot_be_certified_is_exit_code_4(folder):
    job = folder / "daily_flights.toml"
    job.write_text(job.read_text(encoding="utf-8").replace("p_max = 0.5", "p_max = 1.0"), encoding="utf-8")
    assert pkdp("run", job, "--date", "2013-01-02").exit_code == 4
    assert pkdp("certify", "histogram", "--k", 50, "--p-max", 1).exit_code == 4


def test_a_locked_ledger_is_exit_code_75(folder, monkeypatch):
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.05)
    job = folder / "daily_flights.toml"
    assert pkdp("run", job, "--date", "2013-01-02").exit_code == 0
    blocker = sqlite3.connect(folder / "out" / "ledger.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    refused = pkdp("run", job, "--date", "2013-01-03")
    assert refused.exit_code == 75
    assert "try again" in refused.stderr
    blocker.close()
    assert pkdp("run", job, "--date", "2013-01-03").exit_code == 0


def test_a_defect_is_exit_code_1_and_shows_no_data(folder, monkeypatch):
    def broken(*arguments, **names):
        raise ValueError("could not convert N14228")

    monkeypatch.setattr("pkdp_pipeline.jobs.session.publish", broken)
    failed = pkdp("run", folder / "daily_flights.toml", "--date", "2013-01-02")
    assert failed.exit_code == 1
    assert "ValueError" in failed.stderr
    assert "N14228" not in failed.output


def test_every_error_has_its_exit_code():
    expected = {
        errors.ArgumentError: 2,
        errors.ConfigError: 2,
        errors.LedgerError: 2,
        errors.InputCheckError: 3,
        errors.NotCertifiableError: 4,
        errors.NoEvidenceError: 4,
        errors.BudgetExceededError: 4,
        errors.DifferencingError: 4,
        errors.TemporaryError: 75,
    }
    named = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = {kind for kind in named if issubclass(kind, errors.PkdpError)} - {errors.PkdpError}
    assert set(expected) == kinds
    for kind, code in expected.items():
        assert cli.exit_code(kind("x")) == code
    assert cli.exit_code(RuntimeError("x")) == 1


def test_certify_a_histogram():
    done = pkdp("certify", "histogram", "--k", 50, "--p-max", 0.1)
    assert done.exit_code == 0, done.output
    assert "delta(1) = 6.2" in done.stdout
    assert "epsilon(1e-6) = 0.70" in done.stdout
    assert "10 % sure" in words(done.stdout)
    assert pkdp("certify", "histogram", "--k", 50, "--p-max", 0.1, "--epsilon", 1).stdout.count("(1") == 1
    only_delta = pkdp("certify", "histogram", "--k", 50, "--p-max", 0.1, "--delta", 1e-6).stdout
    assert "delta(" not in only_delta
    assert "epsilon(1e-6)" in only_delta


def test_certify_says_how_far_its_theorems_are_checked_by_machine():
    command = ("certify", "histogram", "--k", 50, "--p-max", 0.1, "--noise", 0.5, "--release-threshold", 60)
    done = pkdp(*command, "--explain")
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert said.startswith(words(pkdp(*command).stdout))
    for key in ("histogram_presence", "noisy_presence", "noise"):
        theorem = THEOREMS[key]
        assert words(" - ".join([f"{theorem.title} ({theorem.citation}).", *theorem.checked])) in said
    assert said.count("proofs/histogram.v, theorem_B_presence") == 1
    assert pkdp(*command, "--explain", "--json").exit_code == 2


def test_certify_other_mechanisms_and_as_json():
    from pkdp_pipeline.certificates.certificate import Certificate

    value = pkdp("certify", "histogram", "--k", 100, "--p-max-between", 0.6, "--protects", "value", "--json")
    assert Certificate.from_json(value.stdout).protects == "value"
    noisy = pkdp("certify", "count", "--noise", 0.5, "--json")
    assert Certificate.from_json(noisy.stdout).worst_case.parameters == (0.5, 0.0)
    counted = pkdp("certify", "count", "--p-min", 0.3, "--p-max", 0.6, "--unknown", 1000)
    assert counted.exit_code == 0, counted.output
    assert pkdp("certify", "count", "--k", 5, "--p-max", 2).exit_code == 2
    assert pkdp("certify", "count", "--k", 5, "--p-max", 0.5, "--influence", "strong").exit_code == 2


def test_a_long_complaint_fits_the_terminal_and_what_can_be_pasted_stays_whole(monkeypatch, capsys):
    pasted = f'by = ["{"x" * 60}", "y"]'
    message = f"{'one long word after another ' * 9}\n\n[[release]]\n{pasted}"
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((40, 20)))
    cli._complain(message)
    assert capsys.readouterr().err == f"pkdp: {message}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli._complain(message)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2:] == ["[[release]]", pasted]
    assert max(map(len, lines[:-1])) <= 40


def _commands(app, words=()):
    for command in app.registered_commands:
        yield (*words, command.name or command.callback.__name__)
    for group in app.registered_groups:
        yield from _commands(group.typer_instance, (*words, group.name))


@thinned(6)
@pytest.mark.parametrize("words", [*_commands(cli.app)], ids=" ".join)
def test_help_shows_every_option_and_word_whole_on_a_narrow_terminal(words):
    done = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"})
    assert (done.exit_code, [line for line in done.output.splitlines() if "…" in line]) == (0, [])
    assert [line for line in done.output.splitlines() if "<bool>" in line and "--help" not in line] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("certify", "histogram", "--k", "text"), "'--k': It must be a whole number."),
        (("certify", "count", "--k", "20", "--known", "twenty"), "'--known': It must be a whole number."),
        (("certify", "count", "--noise", "much"), "'--noise': It must be a number."),
        (("certify", "count", "--noise", "1", "--epsilon", "nan"), "'--epsilon': It must be a number."),
        (("ledger", "show", "none", "--last", "0"), "'--last': It must be a whole number of at least 1."),
        (("gate", "serve", "none", "--port", "99999"), "'--port': It must be a whole number from 0 to 65535."),
    ],
)
def test_an_option_that_is_no_number_is_told_in_plain_words(words, message):
    done = CliRunner().invoke(cli.app, words, env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert message in done.output
