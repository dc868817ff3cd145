"""pkdp audit: exit codes, JSON, and what is printed."""

from __future__ import annotations

import json

import pytest
from thorough import one_in
from typer.testing import CliRunner

from pkdp_pipeline.cli.main import app
from pkdp_pipeline.extras.assurance import commands as assurance_commands
from pkdp_pipeline.releases import publish as publishing

TWELVE_SAMPLES = ["--samples", "12", "--engine", "polars"]
EIGHT_SAMPLES = ["--samples", "8", "--engine", "polars"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["audit", *arguments])


@pytest.mark.slow
def test_a_histogram_passes_and_progress_is_a_line_now_and_then_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(assurance_commands, "_SECONDS", 0.0)
    result = run("histogram", "--k", "2", "--p-max", "0.1", *EIGHT_SAMPLES, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["passed"]
    assert document["samples"] == 8
    assert {finding["engine"] for finding in document["findings"]} == {"polars"}
    assert result.stderr.splitlines() == [f"pkdp: {done} of 2: polars, histogram, k = 2" for done in (1, 2)]


def test_a_loss_above_the_certificate_is_exit_code_1(monkeypatch):
    real = publishing.public_table
    monkeypatch.setattr(publishing, "public_table", lambda frame, request: real(frame, less(request)))
    result = run("histogram", "--k", "2", "--p-max", "0.1", *TWELVE_SAMPLES)
    assert result.exit_code == 1, result.output
    assert "FAILED" in result.output
    assert "is certified, at least" in " ".join(result.output.split())


def less(request):
    import dataclasses

    return dataclasses.replace(request, mechanism=dataclasses.replace(request.mechanism, k=request.mechanism.k - 1))


@pytest.mark.slow
def test_a_count_is_shown_on_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("count", "--noise", "1.0", *EIGHT_SAMPLES)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""  # progress is told every few seconds
    assert "count, noise = 1" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ("count", "--k", "5", "--p-max", "0.1", "--engine", "abacus"),
        ("count", "--k", "5", "--p-max", "0.1", "--samples", "3"),
        ("count", "--k", "5", "--p-max", "0.1", "--confidence", "1.0"),
        ("count", "--k", "5", "--p-max", "1.5"),
        ("--engine", "abacus"),
        ("job", "there_is_none.toml"),
    ],
)
def test_bad_input_is_exit_code_2(arguments):
    assert run(*arguments).exit_code == 2


def test_what_is_not_certifiable_is_refused():
    assert run("histogram", "--k", "1", "--p-max", "0.1").exit_code == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", one_in(2, [(("count",),), (("histogram", "--p-max-between", "0.6", "--k", "3"),)])
)
def test_a_total_and_a_table_beside_it_are_audited(arguments):
    result = run(*arguments, "--protects", "value", "--total-known", *EIGHT_SAMPLES)
    assert result.exit_code == 0, result.output


def test_a_table_beside_a_total_needs_what_is_known_between():
    assert run("histogram", "--k", "3", "--p-max", "0.6", "--total-known", *EIGHT_SAMPLES).exit_code == 4
