"""What a policy allows, as JSON for analysts."""

from __future__ import annotations

import json

import duckdb
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.permitted import describe, look_up, totals
from pkdp_pipeline.extras.gate.policy import Policy
from pkdp_pipeline.model.columns import EACH_ROW

pytestmark = pytest.mark.usefixtures("workers_inside")

POLICY = {
    "budget": {"epsilon": 5.0, "delta": 1e-6},
    "tables": {
        "visits": {"unit": "PERSON", "columns": ["day", "Grade"], "k": 20, "domains": {"grade": [1.5, 2]}},
        "Homes": {"unit": EACH_ROW, "columns": ["day"], "k": 30, "period": "2013"},
    },
}
VISITS = {"table": "visits", "count": True, "noise": 0.5, "release_threshold": 60}
HOMES = {"table": "homes", "count": True, "noise": 0.25, "release_threshold": 120}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("vault") / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT range AS person, DATE '2013-01-02' AS day, 1.5::DOUBLE AS grade, "
            "4711 AS secret FROM range(100)"
        )
        connection.execute("CREATE TABLE homes AS SELECT day, secret FROM visits")
    path.chmod(0o600)
    return path


@pytest.fixture
def policy():
    domains = {"Grade": [1.5, 2.0]}
    return POLICY | {"tables": POLICY["tables"] | {"visits": POLICY["tables"]["visits"] | {"domains": domains}}}


def test_a_policy_as_json_in_the_catalogs_spelling(database, policy):
    read = Policy.read(policy)
    description = describe(read, look_up(read, database)[0])
    assert json.loads(json.dumps(description)) == description
    visits, homes = description["tables"]["visits"], description["tables"]["Homes"]
    assert visits["unit"] == ["person"]
    assert visits["columns"] == {"day": "DATE", "grade": "DOUBLE"}
    assert visits["domains"] == {"Grade": [1.5, 2.0]}
    assert (homes["unit"], homes["k"], homes["period"]) == ("each row", 30, "2013")
    assert (description["noise"], description["noiseless"], visits["below"]) == (True, False, None)
    partial = Policy.read(policy | {"budget": {"epsilon": 5.0, "delta": 1e-6, "part": "partial_knowledge"}})
    assert "smaller ones noised" in describe(partial, look_up(partial, database)[0])["tables"]["visits"]["below"]
    assert description["budgets"] == [{"epsilon": 5.0, "delta": 1e-6, "part": None, "window_days": None}]
    assert (description["units"], description["budgets_hold_for"]) == ([["person"], "each row"], "each privacy unit")
    assert "secret" not in json.dumps(description)


@thinned(4)
@pytest.mark.parametrize(
    "more",
    [
        {"attacker": {"p_max": 0.1}, "budget": ()},
        {"attacker": {"p_max": 0.1}, "budget": {"epsilon": 2.0, "delta": 1e-6, "part": "partial_knowledge"}},
        {"budget": {"epsilon": 5.0, "delta": 1e-6}},
        {"budget": [{"epsilon": 3.0, "delta": 1e-4}, {"epsilon": 1.0, "delta": 1e-8, "window_days": 7}]},
    ],
)
def test_the_examples_of_a_policy_promise_what_their_answers_do(database, policy, more):
    read = Policy.read(policy | more)
    tables = describe(read, look_up(read, database)[0])["tables"]
    for example in (tables["visits"]["examples"][0], tables["Homes"]["examples"][1]):
        with Gate(database, policy=policy | more) as gate:
            release = gate.ask(example["question"])
        # A release adds the facts of its publication.
        assert release.certificate.sentence().startswith(example["promise"].partition(" Protects")[0])


def test_an_example_that_nobody_can_certify_says_why(database, policy):
    read = Policy.read(policy | {"budget": ()})
    for table in describe(read, look_up(read, database)[0])["tables"].values():
        assert [example["promise"][:15] for example in table["examples"]] == ["Not certifiable"] * 2


def test_totals_are_of_each_unit(database, policy):
    tables, _ = look_up(Policy.read(policy), database)
    with Gate(database, policy=policy) as gate:
        assert [total["sentence"][:20] for total in totals(gate.total, tables)] == ["Nothing is published"] * 2
        gate.ask(VISITS)
        gate.ask(HOMES)
        people, rows = totals(gate.total, tables)
    assert (people["unit"], rows["unit"]) == (["person"], "each row")
    assert people["sentence"].startswith("Private at ε = 0.5,")
    assert rows["sentence"].startswith("Private at ε = 0.25,")
    stated = pkdp.Certificate.from_json(json.dumps(people["certificate"]))
    assert stated.sentence() == people["sentence"]


def test_a_total_that_nobody_can_say_is_no_error(database, policy):
    def total(_):
        raise pkdp.NoEvidenceError("say how.")

    assert totals(total, look_up(Policy.read(policy), database)[0]) == [
        {"unit": unit, "sentence": "say how.", "certificate": None} for unit in (["person"], "each row")
    ]


def test_types_do_not_list_the_values_of_an_enum(tmp_path):
    """An ENUM may have been made from the data."""
    path = tmp_path / "enum.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TYPE word AS ENUM ('a', 'secret'); "
            "CREATE TABLE t AS SELECT range AS uid, 'a'::word AS cell, ['a'::word] AS tags, 1.5::DECIMAL(9,2) AS price "
            "FROM range(9)"
        )
    path.chmod(0o600)
    read = Policy.read({"tables": {"t": {"unit": "uid", "columns": ["cell", "tags", "price"], "k": 20}}})
    description = describe(read, look_up(read, path)[0])
    assert description["tables"]["t"]["columns"] == {"cell": "ENUM", "tags": "ENUM[]", "price": "DECIMAL(9,2)"}
