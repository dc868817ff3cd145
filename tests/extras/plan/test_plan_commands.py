"""The commands pkdp plan …: the numbers are the library's, the JSON follows its schema, refusals say what would do."""

from __future__ import annotations

import copy
import functools
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from thorough import one_in, thinned
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.plan.planning import choices, largest_p_max, smallest_unknown
from pkdp_pipeline.extras.report.statement import what_if
from pkdp_pipeline.model.mechanisms import mechanism_from_dict
from pkdp_pipeline.model.wording import percent, rounded_up
from pkdp_pipeline.schemas import schema

SCHEMA = json.loads((Path(pkdp.__file__).parent / "schemas" / "plan.v1.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
HABITS = pkdp.IndependentGivenHabits()
QUARTER = ("histogram", "--p-max", 0.1, "--epsilon", 8, "--days", 90, "--evidence", "independent_given_habits")
BOX = ("count", "--p-max", 0.6, "--p-min", 0.3, "--unknown", 200)
ELECTION = ("histogram", "--protects", "value", "--p-max-between", 0.7, "--known", 5)
ASSUMED = ("--assumed-cells", 30, "--assumed-people", 20000, "--assumed-spread", "zipf")
PLANS = {
    "once": ("histogram", "--p-max", 0.1, *ASSUMED),
    "quarter": QUARTER,
    "box": (*BOX, "--assumed-people", 40),
    "election": ELECTION,
    "anyone": ("histogram", "--days", 30),
    "noise": ("histogram", "--p-max", 0.1, "--choice", 2, "--cells-from-data", *ASSUMED),
    "capped": (
        *("histogram", "--p-max", 0.2, "--days", 3, "--no-noise", "--known", 2, "--influence", "active"),
        *("--evidence", "bounded_participation:2", "--evidence", "independent-given-habits"),
    ),
}


@functools.cache
def run(*arguments, width: int = 120):
    """Run the command, once for each question: the answer is a matter of the question alone."""
    return CliRunner(env={"COLUMNS": str(width)}).invoke(cli.app, ["plan", *map(str, arguments)])


@functools.cache
def printed(*arguments) -> str:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return done.stdout


def plan(*arguments) -> dict:
    document = json.loads(printed(*arguments))
    VALIDATOR.validate(document)
    return document


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_choices_are_the_librarys_with_every_number_rounded_up():
    attacker = pkdp.AttackerModel(p_max=0.1)
    offered = choices(attacker, epsilon=8.0, delta=1e-6, days=90, evidence=HABITS)
    done = run(*QUARTER, "--no-curves")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:2] in ("1 ", "2 ", "3 ")]
    assert len(rows) == len(offered) == 3
    for place, (choice, row) in enumerate(zip(offered, rows, strict=True), start=1):
        assert row[0] == f"{place}"
        assert rounded_up(choice.together.epsilon(1e-6)) in row
        assert rounded_up(choice.together.delta(8.0)) in row
    assert f"no noise, k = {offered[0].mechanism.k}" in done.stdout
    shown = float(re.search(r"noise of ε = ([\d.]+)", done.stdout)[1])
    assert shown == offered[1].mechanism.noise.epsilon
    assert words(offered[0].together.sentence()) in words(done.stdout)
    assert "all 90 releases together" in words(done.stdout)


def test_limits_and_sensitivity_are_the_librarys():
    document = plan(*QUARTER, "--no-curves")
    attacker = pkdp.AttackerModel(p_max=0.1)
    mechanism = mechanism_from_dict(document["choices"][0]["mechanism"])
    together = pkdp.compose([(pkdp.certify(mechanism, attacker), 90)], HABITS)
    limit = largest_p_max(mechanism, attacker, epsilon=8.0, delta=1e-6, days=90, evidence=HABITS)
    assert document["limits"] == [{"field": "p_max", "declared": 0.1, "limit": limit}]
    for row, scenario in zip(document["what_if"], what_if(together), strict=True):
        assert row["attacker"] == scenario.words
        assert row["epsilon"] == (None if scenario.epsilon == math.inf else scenario.epsilon)
        assert row["delta_at_one"] == scenario.delta_at_one
    shown = words(run(*QUARTER, "--no-curves", width=200).stdout)
    assert f"up to p_max = {percent(limit)}; 10 % is declared" in shown
    for scenario in what_if(together):
        epsilon = "none" if scenario.epsilon == math.inf else rounded_up(scenario.epsilon)
        assert f"{scenario.words} {epsilon} {rounded_up(scenario.delta_at_one)}" in shown


@pytest.mark.slow
def test_the_smallest_unknown_is_the_librarys():
    least = smallest_unknown(pkdp.Count(), pkdp.AttackerModel(p_max=0.6, p_min=0.3), epsilon=1.0, delta=1e-6)
    assert plan(*BOX, "--no-noise", "--no-curves")["limits"] == [{"field": "unknown", "declared": 200, "limit": least}]


@thinned(2)
@pytest.mark.parametrize("name", one_in(2, PLANS))
def test_the_json_follows_its_schema_and_its_command_asks_the_same(name):
    document = plan(*PLANS[name], "--no-curves")
    again = plan(*shlex.split(document["command"])[2:], "--no-curves")
    assert again == document
    assert 0 <= document["chosen"] < len(document["choices"])
    for choice in document["choices"]:
        assert choice["epsilon_at_delta"] <= document["question"]["epsilon"]
        assert choice["delta_at_epsilon"] <= document["question"]["delta"]


@pytest.fixture(scope="module")
def short() -> dict:
    """A plan with every member that there is, each list with one element."""
    dependent = ("--evidence", "bounded_participation:2", "--evidence", "independent_given_habits")
    document = plan("histogram", "--p-max", 0.1, "--days", 2, "--no-noise", *dependent, *ASSUMED, "--no-curves")
    document = first_of_each(
        document | {"curves": plan("histogram", "--p-max", 0.1, "--no-noise", "--curves")["curves"]}
    )
    VALIDATOR.validate(document)
    return document


@pytest.mark.slow
def test_members_of_the_json_cannot_be_missing(short):
    for path in paths(short):
        without = copy.deepcopy(short)
        del member(without, path[:-1])[path[-1]]
        assert not VALIDATOR.is_valid(without), path


@pytest.mark.slow
def test_members_of_the_json_cannot_be_invented(short):
    for path in {path[:-1] for path in paths(short)}:
        more = copy.deepcopy(short)
        member(more, path)["invented"] = 1
        assert not VALIDATOR.is_valid(more), path


def first_of_each(value: object) -> object:
    """Return a document with the first element of every list alone."""
    if isinstance(value, dict):
        return {key: first_of_each(inner) for key, inner in value.items()}
    return [first_of_each(inner) for inner in value[:1]] if isinstance(value, list) else value


def paths(value: object, path: tuple = ()) -> list[tuple]:
    """Return the path of every object's member, wherever it is."""
    listed = []
    if isinstance(value, dict):
        for key, inner in value.items():
            listed += [(*path, key), *paths(inner, (*path, key))]
    elif isinstance(value, list) and value:
        listed += paths(value[0], (*path, 0))
    return listed


def member(value, path):
    for step in path:
        value = value[step]
    return value


def test_where_nothing_does_without_noise_it_says_why():
    document = plan("histogram", "--days", 30, "--p-max", 0.1)
    assert "--evidence independent_given_habits" in document["without_noise"]
    assert "pkdp." not in document["without_noise"]
    assert all(choice["against_anyone"] for choice in document["choices"])
    assert document["limits"] == []
    assert document["curves"] == []
    assert "Without noise: these releases do not add up" in words(run("histogram", "--days", 30, "--p-max", 0.1).stdout)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("histogram", "--p-max", 1), ("--p-max 1 says that nobody is ever absent",)),
        (("histogram",), ("k hides presence when --p-max < 1 is declared",)),
        (("histogram", "--p-max", 0.1, "--days", 30), ("--evidence bounded_dependence:EPSILON,DELTA",)),
        (("count", "--p-max", 1), ("this count",)),
        (("histogram", "--p-max", 0.5, "--epsilon", 0), ("no threshold k", "at epsilon = 0")),
    ],
)
def test_a_refusal_is_exit_code_4_with_the_nearest_choices(arguments, texts):
    refused = run(*arguments, "--no-noise")
    assert refused.exit_code == 4, refused.output
    message = words(refused.stderr)
    assert all(text in message for text in texts), message
    if "--epsilon" not in arguments:
        assert "Where noise is acceptable, it reaches the target against anyone at all: --noise " in message
    assert "can be argued" not in message  # no number that nobody typed
    assert "pkdp." not in message
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("histogram", "--p-max", 2), "must be a probability"),
        (("histogram", "--p-max", 0.1, "--influence", "bold"), "influence must be one of"),
        (("histogram", "--p-max", 0.1, "--protects", "both"), "protects must be one of"),
        (("histogram", "--p-max", 0.1, "--delta", 0), "delta must be above 0"),
        (("histogram", "--p-max", 0.1, "--epsilon", -1), "epsilon"),
        (("histogram", "--p-max", 0.1, "--days", 0), "days must be at least 1"),
        (("histogram", "--p-max", 0.1, "--evidence", "folklore"), "--evidence must be one of"),
        (("histogram", "--p-max", 0.1, "--evidence", "bounded_participation"), "bounded_participation:TIMES"),
        (("histogram", "--p-max", 0.1, "--evidence", "bounded_participation:often"), "takes its numbers"),
        (("histogram", "--p-max", 0.1, "--evidence", "once_per_unit:3"), "takes no number"),
        (("histogram", "--p-max", 0.1, "--choice", 5), "there are 4 choices"),
        (("histogram", "--p-max", 0.1, "--no-noise", "--choice", 2), "there is 1 choice"),
        (("histogram", "--p-max", 0.1, "--assumed-cells", 3), "give --assumed-people as well"),
        (("histogram", "--p-max", 0.1, "--assumed-cells", 0, "--assumed-people", 3), "--assumed-cells must be"),
        (("histogram", "--p-max", 0.1, "--assumed-cells", 3, "--assumed-people", -3), "--assumed-people must be"),
        (("histogram", "--p-max", 0.1, *ASSUMED[:-1], "odd"), "--assumed-spread must be one of even, zipf"),
        (("histogram", "--p-max", 0.1, "--count-column", "n"), "give --public-counts as well"),
        (("histogram", "--p-max", 0.1, "--public-counts", "nowhere.csv"), "nowhere.csv cannot be read"),
        (("histogram", "--p-max", 0.1, "--public-counts", "x.csv", *ASSUMED), "either read or assumed"),
        (("count", "--p-max-between", 0.7), "No such option"),
        (("histogram", "--p-max", "much"), "a number from 0 to 1"),
        (("total",), "No such command"),
    ],
)
def test_what_is_malformed_is_exit_code_2_with_the_rule(arguments, text):
    refused = run(*arguments)
    assert refused.exit_code == 2, refused.output
    assert text in words(refused.stderr.replace("│", " "))


def test_public_counts_say_how_much_is_suppressed_and_that_they_are_public(tmp_path):
    file = tmp_path / "last_year.csv"
    file.write_text("district,year,people\nHarbour,2025,10\nMill Hill,2025,40\nOld Town,2025,950\n", encoding="utf-8")
    given = ("--public-counts", file, "--count-column", "people")
    document = plan("histogram", "--p-max", 0.1, *given)
    assert document["question"]["counts"] == {
        "source": "last_year.csv, declared public",
        "cells": 3,
        "people": 1000,
    }
    exact = document["choices"][0]
    assert exact["mechanism"]["k"] == 30
    assert exact["suppressed_cells"] == pytest.approx(1 / 3)
    assert exact["suppressed_people"] == pytest.approx(0.01)
    shown = words(run("histogram", "--p-max", 0.1, "--no-curves", *given).stdout)
    assert "If the counts are those of last_year.csv, declared public." in shown
    assert "33.3 % 1 %" in shown
    unknown = words(run("histogram", "--p-max", 0.1, "--no-curves").stdout)
    assert "Suppressed shares are not estimated: give --public-counts" in unknown
    assert "the assumption of 20000 people, spread as 1/rank over 30 cells" in words(
        run(*PLANS["once"], "--no-curves").stdout
    )


def test_noise_against_anyone_has_no_smaller_numbers_for_what_the_attacker_does_not_know():
    target = ("--epsilon", 3, "--delta", 0.01)
    offered = plan("count", "--p-min", 0.5, "--p-max", 0.5, "--unknown", 20, *target, "--no-curves")["choices"]
    anyone = next(choice for choice in offered if choice["against_anyone"])
    alone = pkdp.certify(mechanism_from_dict(anyone["mechanism"]), pkdp.AttackerModel())
    assert anyone["delta_at_epsilon"] == alone.delta(3.0)
    assert anyone["epsilon_at_delta"] == alone.epsilon(0.01)


def test_the_chosen_one_is_looked_at_closely():
    first, second = run("histogram", "--p-max", 0.1), run("histogram", "--p-max", 0.1, "--choice", 3)
    assert "Choice 1: no noise, k = 30" in first.stdout
    assert "If the attacker is stronger" in first.stdout
    assert "Choice 3: noise of ε = 1\n" in second.stdout
    assert "against anyone at all" in second.stdout
    assert "If the attacker is stronger" not in second.stdout
    assert "domain = " in second.stdout


def test_curves_that_take_long_are_left_out_unless_asked_for(monkeypatch):
    assert "ε at δ = 1e-6 against the threshold k" in run("histogram", "--p-max", 0.1).stdout
    assert "against the threshold" not in run("histogram", "--p-max", 0.1, "--no-curves").stdout
    run.cache_clear()
    monkeypatch.setattr("pkdp_pipeline.extras.plan.answers._MAX_QUICK_WEIGHT", 0.0)
    shown = run("histogram", "--p-max", 0.1).stdout
    assert "--curves draws them" in shown
    assert "against the threshold" not in shown
    assert json.loads(run("histogram", "--p-max", 0.1, "--json").stdout)["curves"] == []
    assert len(plan("histogram", "--p-max", 0.1, "--curves")["curves"]) >= 2
    run.cache_clear()


@pytest.fixture
def needing() -> subprocess.CompletedProcess[str]:
    """A process that looks at what commands load."""
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from pkdp_pipeline.cli import main as cli\n"
        "def needs(asked, *heavy):\n"
        "    assert CliRunner().invoke(cli.app, asked).exit_code == 0\n"
        "    assert not set(heavy) & set(sys.modules), (asked, set(heavy) & set(sys.modules))\n"
        "for asked in (['--help'], ['plan', '--help'], ['plan', 'histogram', '--help']):\n"
        "    needs(asked, 'duckdb', 'pandas', 'numpy', 'flint', 'opendp', 'pkdp_pipeline.extras.plan.planning')\n"
        "needs(['certify', 'histogram', '--p-max', '0.1', '--k', '50'], 'duckdb', 'pandas', 'scipy', 'opendp')\n"
        "needs(['plan', 'histogram', '--p-max', '0.1', '--no-curves'], 'duckdb', 'scipy', 'opendp', 'matplotlib')\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_help_needs_nothing_heavy_a_certificate_no_pandas_and_a_plan_no_database(needing):
    assert needing.returncode == 0, needing.stderr


def test_bounds_of_a_sum_are_compared():
    comparison = ["plan", "sum", "--bounds", "0,5", "--bounds=-3,10", "--adds", "8=10", "--json"]
    done = CliRunner().invoke(cli.app, comparison)
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema("plan_sum"))
    listed = {tuple(each["mechanism"]["bounds"]): each for each in document["choices"]}
    assert {bounds: each["cut_off"] for bounds, each in listed.items()} == {(0, 5): -30, (-3, 10): 0}
    noise = pkdp.GeometricNoise(listed[0, 5]["mechanism"]["noise"]["epsilon"])
    assert pkdp.certify(pkdp.Sum((0, 5), noise)).delta(1.0) <= 1e-6
    assert CliRunner().invoke(cli.app, comparison[:4]).stdout.count("bounds = [0, 5]") == 1
    certified = ["certify", "sum", "--bounds", "-3,10", "--noise", "1", "--json"]
    assert json.loads(CliRunner().invoke(cli.app, certified).stdout)["mechanism"]["bounds"] == [-3, 10]
    for command in ([*comparison[:3], "5"], ["certify", "sum", "--bounds", "5", "--noise", "1"]):
        done = CliRunner().invoke(cli.app, command)
        assert (done.exit_code, done.stderr) == (2, "pkdp: --bounds must be two whole numbers, as in --bounds 0,5.\n")
