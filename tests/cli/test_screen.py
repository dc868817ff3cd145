"""What commands print: lines that end where nobody is misled; with ``--json`` one document, an error too; on Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import jsonschema
import pytest
import typer
from rich.console import Console
from test_cli import folder, pkdp

from pkdp_pipeline.cli.main import app
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.schemas import schema

__all__ = ["folder"]

#: Commands that ask, serve, or print what is no result of theirs: a schema, a token, a text for people.
WITHOUT = {"demo", "init", "schema", "ledger explain", "ledger export", "gate check", "gate token", "gate serve"}


def commands(group, before=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_commands_that_print_a_result_print_json():
    listed = dict(commands(typer.main.get_command(app)))
    without = {name for name, command in listed.items() if "--json" not in {o for p in command.params for o in p.opts}}
    assert without == WITHOUT


def document(*arguments, code=0):
    done = pkdp(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def check(content, name):
    jsonschema.Draft202012Validator(schema(name)).validate(content)


def test_a_job_tells_programs_what_it_does(folder):
    job, days = folder / "daily_flights.toml", ("--from", "2013-01-01", "--to", "2013-01-03")
    plan = document("run", job, "--date", "2013-01-02", "--dry-run")
    check(plan, "plan_job")
    assert [release["outcome"] for release in plan["releases"]] == ["publish"]
    run = document("run", job, "--date", "2013-01-02")
    check(run, "run")
    assert (run["outcome"], run["day"]) == ("published", "2013-01-02")
    check(document("backfill", job, *days, "--dry-run"), "plan_job")
    done = document("backfill", job, *days)
    assert (done["published"], done["replayed"]) == (["2013-01-01", "2013-01-03"], ["2013-01-02"])
    assert (done["failed"], done["not_reached"], done["unreported"]) == ([], 0, None)
    check(done["total"]["certificate"], "certificate")
    assert done["total"]["epsilon"] == pytest.approx(1.1517, abs=1e-4)
    check(document("report", job), "report")
    assert document("report", job, "--format", "md", code=2)["error"]["kind"] == "ArgumentError"
    checked = document("ledger", "verify", folder / "out" / "ledger.sqlite")
    assert (checked["dataset"], checked["events"]) == ("flights", 6)
    assert checked["head"] == document("run", job, "--date", "2013-01-03")["head"]


def test_missed_and_closed_days_are_documents_too(folder):
    job = folder / "daily_flights.toml"
    text = job.read_text(encoding="utf-8")
    closing = 'period = { column = "date", closed = ["2013-01-04"] }'
    job.write_text(text.replace('period = { column = "date" }', closing), encoding="utf-8")
    assert document("run", job, "--date", "2013-01-04") == {
        "dataset": "flights",
        "day": "2013-01-04",
        "outcome": "closed",
    }
    document("run", job, "--date", "2013-01-01")
    lines = pkdp("run", job, "--date", "2013-01-03", "--catch-up", "--json").stdout.splitlines()
    assert [json.loads(line)["day"] for line in lines] == ["2013-01-02", "2013-01-03"]


def test_a_backfill_that_is_refused_ends_with_one_document(folder):
    job = folder / "daily_flights.toml"
    text = job.read_text(encoding="utf-8")
    job.write_text(text.replace("budget = { epsilon = 1.2", "budget = { epsilon = 0.2"), encoding="utf-8")
    days = ("--from", "2013-01-01", "--to", "2013-01-03")
    assert document("backfill", job, *days, "--dry-run", code=4)["refused"]["error"] == "BudgetExceededError"
    done = document("backfill", job, *days, code=4)
    ((day, kind),) = [(failure["day"], failure["error"]["kind"]) for failure in done["failed"]]
    assert (day, kind, done["not_reached"]) == ("2013-01-01", "BudgetExceededError", 2)


def test_an_error_is_a_document_with_its_exit_code():
    done = pkdp("certify", "histogram", "--k", 1, "--p-max", 0.1, "--json")
    content = json.loads(done.stdout)
    assert done.exit_code == content["exit_code"] == 4
    assert content["error"]["kind"] == "NotCertifiableError"
    assert done.stderr == f"pkdp: {content['error']['message']}\n"
    assert pkdp("certify", "histogram", "--k", 1, "--p-max", 0.1).stdout == ""


def test_a_defect_keeps_its_words_to_itself(monkeypatch):
    def broken(*values, **named):
        raise ValueError("Alice is 61")

    monkeypatch.setattr("pkdp_pipeline.certificates.release_certificate.certify", broken)
    content = document("certify", "histogram", "--k", 50, "--p-max", 0.1, code=1)
    assert content == {"error": {"kind": "ValueError", "message": None}, "exit_code": 1}


@pytest.mark.parametrize(
    ("arguments", "publishes"),
    [
        (("run", "daily_flights.toml", "--date", "2013-01-02"), True),
        (("run", "daily_flights.toml", "--date", "2013-01-02", "--dry-run"), False),
        (("report", "daily_flights.toml", "--format", "md"), False),
        (("audit", "job", "daily_flights.toml"), False),
    ],
)
def test_ctrl_c_speaks_of_what_is_published_only_where_something_may_be(folder, monkeypatch, arguments, publishes):
    def stop(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("pkdp_pipeline.jobs.load_job", stop)
    done = pkdp(*(folder / word if word.endswith(".toml") else word for word in arguments))
    assert done.exit_code == 130
    assert done.stderr.startswith("pkdp: interrupted")
    assert ("published" in done.stderr) == publishes


def test_the_shell_is_told_options_without_pandas():
    words = {"COMP_WORDS": "pkdp run --dr", "COMP_CWORD": "2", "_PKDP_COMPLETE": "complete_bash"}
    # What is loaded is said when the process ends, which completion does by itself.
    at_exit = (
        "atexit.register(lambda: print(sorted({'pandas', 'numpy', 'duckdb'} & set(sys.modules)), file=sys.stderr))"
    )
    code = f"import atexit, sys; {at_exit}; sys.argv = ['pkdp']; from pkdp_pipeline.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr.split()) == (0, ["--dry-run"], ["[]"])


@pytest.mark.parametrize("width", range(14, 40))
def test_no_line_ends_inside_a_number(width):
    text = io.StringIO()
    said = "At ε = 0.5 and δ = 1e-6, or 50 % of p_max = 0.1, by rule 7, is entry no. 3 of 365."
    Screen(Console(file=text, width=width, markup=False, highlight=False)).say(said)
    assert " ".join(text.getvalue().split()) == said
    for line in text.getvalue().splitlines():
        assert not line.rstrip().endswith(("=", "ε", "δ", "no.", "rule", "p_max", " 50")), line
        assert "\u00a0" not in line
