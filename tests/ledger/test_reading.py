"""Reading commands against PostgreSQL: nothing is created, and no password is shown."""

from __future__ import annotations

import json

import pytest
from ledger_samples import publish_release, standing
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli import job_commands as ledger_commands
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.evidence import IndependentGivenHabits

COMMANDS = (["show"], ["total"], ["explain"], ["verify"], ["export"], ["export", "--format", "registry"])


def run(command, url):
    return CliRunner().invoke(cli.app, ["ledger", command[0], url, *command[1:]])


@thinned(3)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_without_a_ledger_stays_empty(postgres_url, command):
    import psycopg

    done = run(command, postgres_url)
    assert done.exit_code == 2
    assert "holds no ledger" in done.stderr
    assert "sesame" not in done.output
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'pkdp'").fetchone()
    assert row == (0,)


def test_a_ledger_in_postgresql_reads_like_one_in_a_file(postgres_url, path, monkeypatch):
    monkeypatch.setattr(ledger_commands, "SECONDS", 1000.0)
    for place in (postgres_url, path):
        with Ledger.open(place, dataset="d", evidence=IndependentGivenHabits()) as ledger:
            for number in (1, 2, 3):
                publish_release(ledger, f"key {number}", standing(period=f"2013-01-0{number}"))
    for command in COMMANDS:
        done = run(command, postgres_url)
        assert done.exit_code == 0, done.output
        assert "sesame" not in done.output
    here, there = (json.loads(run(["show", "--json"], str(place)).stdout) for place in (path, postgres_url))
    assert here["units"] == there["units"]
    assert [release["epsilon"] for release in here["releases"]] == [release["epsilon"] for release in there["releases"]]
