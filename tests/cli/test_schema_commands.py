"""``pkdp schema``: the list, one schema, where it lies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pkdp_pipeline.cli.main import app
from pkdp_pipeline.schemas import schema, schema_names


def run(*arguments: str):
    return CliRunner().invoke(app, ["schema", *arguments])


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_printed_as_it_is(name):
    done = run(name)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == schema(name)
    assert Path(run(name, "--path").stdout.removesuffix("\n")).read_text(encoding="utf-8") == done.stdout


def test_without_a_version_it_is_the_newest():
    assert run("certificate").stdout == run("certificate.v1").stdout


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_the_list_names_every_schema_and_fits(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    done = run()
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert [line.split()[0] for line in lines if ".v" in line.partition("  ")[0] or ".v" in line[:25]] == list(
        schema_names()
    )


@pytest.mark.parametrize("arguments", [("nothing",), ("certificate.v7",), ("--path",)])
def test_what_is_not_there_is_an_argument_error(arguments):
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "schema" in done.stderr
