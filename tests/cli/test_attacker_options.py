"""What is known besides, and whose records depend, as options of certify and plan, and in calls of the library."""

from __future__ import annotations

import dataclasses
import json
import shlex
import tomllib
from pathlib import Path

import duckdb
import jsonschema
import pandas as pd
import pytest
import typer
from thorough import thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.cli.options import attacker_flags, attacker_options
from pkdp_pipeline.extras.plan.planning import choices, smallest_noise
from pkdp_pipeline.releases.options import AttackerTable

SCHEMA = json.loads((Path(pkdp.__file__).parent / "schemas" / "plan.v1.json").read_text(encoding="utf-8"))
LIST = {"name": "who is there", "tells": "people_present"}
NOISY = {"name": "a noisy total", "tells": "anything", "epsilon": 0.1}
VALUE = ("--protects", "value")


def run(*arguments):
    return CliRunner().invoke(cli.app, list(map(str, arguments)), env={"COLUMNS": "80"})


def certificate(*arguments):
    done = run("certify", *arguments, "--json")
    assert done.exit_code == 0, done.output
    return pkdp.Certificate.from_json(done.stdout)


def test_options_name_the_attacker_that_the_library_would_get():
    certified = certificate("histogram", "--k", 50, *VALUE, "--p-max-between", 0.7, "--known", 3, "--total-known")
    assert certified.attacker == pkdp.AttackerModel(p_max_between=0.7, known=3, leakage=pkdp.Leakage.total())
    several = ("--total-known", "--leakage", json.dumps(LIST), "--leakage", json.dumps(NOISY))
    certified = certificate("histogram", "--noise", 0.5, *VALUE, *several)
    listed = (pkdp.Leakage.total(), pkdp.Leakage.from_dict(LIST), pkdp.Leakage.from_dict(NOISY))
    assert certified.attacker.leakage == listed
    counted = ("count", "--p-min", 0.3, "--p-max", 0.5, "--unknown", 500)
    certified = certificate(*counted, "--dependent", "household", "--secret", "conditional")
    assert (certified.attacker.dependent, certified.attacker.secret) == ("household", "conditional")


def test_a_total_is_certified_as_what_is_known():
    assert certificate("count", *VALUE, "--total-known").worst_case.parameters == (0.0, 0.0)
    assert run("certify", "count", *VALUE).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--leakage", "people"), 2, "--leakage must be a JSON object"),
        (("--leakage", '["people"]'), 2, "--leakage must be a JSON object"),
        (("--leakage", "[" * 100_000), 2, "--leakage must be a JSON object"),
        (("--leakage", '{"nam": "people"}'), 2, "a leakage has no field 'nam'"),
        (("--leakage", '{"name": "a"}', "--leakage", '{"name": "b"}'), 2, "declare them as one leakage"),
        (("--secret", "conditional"), 2, "say who"),
        (("--total-known",), 4, "always tells whether a person is there"),
        (("--dependent", "household", "--k", "9", "--p-max", "0.5"), 0, ""),
    ],
)
def test_what_cannot_be_is_refused(arguments, code, words):
    done = run("certify", "histogram", "--noise", 0.5, "--release-threshold", 30, *arguments)
    assert done.exit_code == code, done.output
    assert words in " ".join(done.output.split())


def test_the_options_of_an_attacker_name_it_again():
    leakage = (pkdp.Leakage.total(), pkdp.Leakage.from_dict(NOISY))
    attacker = pkdp.AttackerModel(
        p_max=0.5, p_min=0.1, unknown=9, unknown_max=20, known=2, influence="active", leakage=leakage
    )
    app, parsed = typer.Typer(), []

    @app.command()
    @attacker_options(pkdp.Histogram)
    def command(*, attacker: pkdp.AttackerModel) -> None:
        parsed.append(attacker)

    words = attacker_flags(attacker)
    assert words[-3:] == ["--total-known", "--leakage", json.dumps(NOISY)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert parsed == [attacker]
    assert attacker_flags(pkdp.AttackerModel()) == []
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "300"}).output
    for field in dataclasses.fields(pkdp.AttackerModel):
        line = next(line for line in shown.splitlines() if f"--{field.name.replace('_', '-')} " in line)
        assert len(line.strip(" │").split()) > 4, line


@thinned(4)
@pytest.mark.parametrize(
    "arguments",
    [
        (*VALUE, "--p-max-between", 0.7, "--total-known"),
        (*VALUE, "--leakage", json.dumps(LIST)),
        (*VALUE, "--p-max-between", 0.7, "--leakage", json.dumps(pkdp.Leakage.totals(by="region").to_dict())),
        ("--leakage", json.dumps(NOISY)),
    ],
)
def test_a_plan_says_what_is_known_in_json_command_and_job_file(arguments):
    done = run("plan", "histogram", *arguments, "--no-curves", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    known = document["question"]["attacker"]["leakage"]
    assert known
    again = run(*shlex.split(document["command"])[1:], "--no-curves", "--json")
    assert json.loads(again.stdout) == document
    fragment = document["choices"][0]["job"] if "job" in document["choices"][0] else document["job"]
    read = tomllib.loads(fragment)["attacker"]
    assert AttackerTable.model_validate(read).value.leakage == tuple(map(pkdp.Leakage.from_dict, known))


def test_a_plan_holds_against_anyone_only_given_what_is_known():
    shown = " ".join(run("plan", "histogram", *VALUE, "--total-known", "--no-curves").output.split())
    assert "hold against anyone at all, given the number of people present." in shown
    assert "whatever they know" not in shown
    planned = choices(pkdp.AttackerModel(leakage=pkdp.Leakage.total()), epsilon=1.0, delta=1e-6, protects="value")
    assert all(
        choice.certificate.leakage and "given the number of people present" in choice.words for choice in planned
    )


def test_noise_is_wider_beside_a_leakage_that_counts():
    leaking = pkdp.AttackerModel(leakage=pkdp.Leakage("a noisy total", epsilon=0.25))
    for mechanism in (pkdp.Count(), pkdp.Histogram()):
        alone = smallest_noise(mechanism, epsilon=1.0, delta=1e-6)
        beside = smallest_noise(mechanism, leaking, epsilon=1.0, delta=1e-6)
        assert pkdp.certify(type(mechanism)(noise=beside), leaking).delta(1.0) <= 1e-6
        assert 0.74 < beside.epsilon < alone.epsilon - 0.2
    for leakage, words in (
        (pkdp.Leakage("x", epsilon=3.0), "what leaks besides counts as part of it"),
        (pkdp.Leakage.total(), "always tells whether"),
    ):
        with pytest.raises(pkdp.NotCertifiableError, match=words):
            smallest_noise(pkdp.Count(), pkdp.AttackerModel(leakage=leakage), epsilon=1.0, delta=1e-6)


def test_explain_and_sql_take_an_attacker_with_leakage():
    people = pd.DataFrame({"person": range(200), "town": ["A"] * 150 + ["B"] * 50})
    attacker = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
    explanation = pkdp.explain("town", unit="person", attacker=attacker, k=40, protects="value")
    assert "Beside this the attacker may know the number of people present" in " ".join(str(explanation).split())
    query = "FROM pkdp_histogram('people', 'town', k := 40{})"
    value, presence = duckdb.connect(), duckdb.connect()
    for con in (value, presence):
        con.register("frame", people)
        con.execute("CREATE TABLE people AS FROM frame")
        pkdp.duckdb.install(con, attacker=attacker, unit="person")
    assert [row[1] for row in value.execute(query.format(", protects := 'value'")).fetchall()] == [150, 50]
    with pytest.raises(duckdb.Error, match="always tells whether a person is there"):
        presence.execute(query.format("")).fetchall()
