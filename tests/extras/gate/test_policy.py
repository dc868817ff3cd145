"""Policies are read strictly, and held against the database before anything is asked."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from analyst import database, histogram, policy, rows
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.permitted import threshold_warnings
from pkdp_pipeline.extras.gate.policy import Policy

pytestmark = pytest.mark.usefixtures("workers_inside")


def table(**further: Any) -> dict[str, Any]:
    """Return a policy whose one table has what a test adds."""
    return policy(tables={"events": {**policy()["tables"]["events"], **further}})


def test_the_policy_of_the_interface_is_read() -> None:
    read = Policy.read(policy())
    assert read.tables["events"].k == 20
    assert read.tables["events"].domains == {"country": ("US", "NO", "DE")}
    assert read.attacker.value == pkdp.AttackerModel(p_max=0.1)
    assert read.period_of(read.tables["events"]) == "all"


def test_a_file_says_the_same_as_a_dictionary(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        'ledger = "out/ledger.sqlite"\nperiod = 2020-01-31\n[attacker]\np_max = 0.1\n'
        "[budget]\nepsilon = 1.0\ndelta = 1e-6\n"
        '[tables.events]\nunit = "uid"\ncolumns = ["country", "flag"]\nk = 20\n'
        'domains = { country = ["US", "NO", "DE"] }\n',
        encoding="utf-8",
    )
    read = Policy.read(file)
    given = policy(
        ledger=str(tmp_path / "out" / "ledger.sqlite"), period="2020-01-31", budget=[{"epsilon": 1.0, "delta": 1e-6}]
    )
    assert read == Policy.read(given) == Policy.read(str(file))


def test_python_values_may_stand_in_a_dictionary() -> None:
    read = Policy.read({**table(unit=pkdp.EACH_ROW), "attacker": pkdp.AttackerModel(p_max=0.1)})
    assert read.tables["events"].unit == ()
    assert read.attacker.value == pkdp.AttackerModel(p_max=0.1)


def test_what_is_known_besides_may_stand_in_a_policy(tmp_path: Path) -> None:
    model = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total("the number of people"))
    known = {"name": "the number of people", "tells": "people_present"}
    for leakage in (known, [known]):
        assert Policy.read(policy(attacker={"p_max_between": 0.6, "leakage": leakage})).attacker.value == model
    assert Policy.read(policy(attacker=model)).attacker.value == model
    file = tmp_path / "policy.toml"
    file.write_text(
        "[attacker]\np_max_between = 0.6\n[[attacker.leakage]]\nname = 'the number of people'\n"
        'tells = "people_present"\n[tables.events]\nunit = "uid"\ncolumns = ["country"]\nk = 20\n',
        encoding="utf-8",
    )
    assert Policy.read(file).attacker.value == model
    with pytest.raises(ConfigError, match="did you mean 'tells'"):
        Policy.read(policy(attacker={"leakage": [{"name": "n", "tels": "anything"}]}))
    with pytest.raises(ConfigError, match=r"attacker\.leakage: has another form"):
        Policy.read(policy(attacker={"leakage": 5}))


def test_a_gate_publishes_beside_what_is_known(tmp_path: Path) -> None:
    known = [{"name": "the number of people", "tells": "people_present"}]
    given = {**table(protects="value", domains={}), "attacker": {"p_max_between": 0.6, "leakage": known}}
    with Gate(database(tmp_path), policy=given) as gate:
        release = gate.ask(histogram(k=20))
        assert release.certificate.attacker.leakage == (pkdp.Leakage.total("the number of people"),)
        assert gate.policy.attacker.value.to_dict()["leakage"] == known
        assert "the number of people" in gate.total("uid").sentence()
    assert threshold_warnings(Policy.read(given)) == []
    presence = {**table(domains={}), "attacker": given["attacker"]}
    assert "nothing without noise can be certified" in threshold_warnings(Policy.read(presence))[0]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "tables: is required"),
        ({"tables": {"events": {}}}, 'tables.events.columns: is required: write columns = ["country"].'),
        (policy(budget={"epsilon": 1.0}), "budget[1].delta: is required: write delta = "),
        (policy(attacker={"leakage": {}}), "attacker.leakage[1].name: is required"),
        (policy(tables={}), "tables: must not be empty"),
        (policy(tabels={}), "did you mean 'tables'"),
        (policy(attacker={"pmax": 0.1}), "did you mean 'p_max'"),
        (policy(attacker={"p_max": 2.0}), "p_max must be a probability"),
        (policy(attacker={"p_max": "0.1"}), "attacker.p_max: must be a number"),
        (policy(attacker=0.3), "attacker: has another form: write attacker = { p_max = 0.1 }."),
        (table(colums=["flag"]), "tables.events: unknown key 'colums'; did you mean 'columns'"),
        *((table(k=wrong), "tables.events.k: must be a whole number") for wrong in (20.5, True, "20")),
        (table(k=0), "tables.events.k"),
        (table(columns=[]), "tables.events.columns"),
        (table(columns=5), "tables.events.columns: must be a column name or a list of column names."),
        (table(columns="country", domains={"flag": [True]}), "domains has values of 'flag'"),
        (table(columns=["country", "COUNTRY"]), "columns names a column twice"),
        (table(columns=["country", "UID"]), "an analyst could ask about one person"),
        (table(unit=5), "tables.events.unit"),
        (table(unit=["uid", "UID"]), "unit names a column twice"),
        (table(domains={"country": []}), "tables.events.domains.country"),
        (table(domains={"country": ["US", "US"]}), "lists a value twice"),
        (table(domains={"country": ["US", 1]}), "tables.events.domains.country"),
        (table(domains={"country": [["US"]]}), "tables.events.domains.country"),
        (table(domains=["US"]), "tables.events.domains: must be a table"),
        (table(missing_unit="error"), "unknown key 'missing_unit'"),
        (table(undeclared="error"), "unknown key 'undeclared'"),
        (table(one_cell="error"), "tables.events.one_cell: must be 'most_frequent', 'first' or 'hash'."),
        (table(one_cell="first"), "order_by"),
        (table(order_by="day"), "order_by"),
        (table(protects="everything"), "tables.events.protects"),
        (table(period="2020-13-45"), "tables.events.period"),
        (policy(ledger="x.sqlite"), "period is needed with a ledger"),
        (policy(limits={"seconds": 0}), "limits.seconds: must be greater than 0"),
        (policy(limits={"seconds": float("inf")}), "limits.seconds"),
        (policy(limits={"memory": "lots"}), "limits.memory: must be a size"),
        (policy(limits={"answer_bytes": 10**9}), "limits.answer_bytes"),
        (policy(limits={"cells": 2}), "tables.events.domains.country has more values than the 2 of limits.cells"),
        (policy(budget={"epsilon": -1.0, "delta": 0.0}), "budget"),
        (policy(budget=2.0), "budget: has another form"),
        (policy(evidence={"kind": "hope"}), "evidence[1]: kind: must be"),
        (policy(evidence=["one_day_protected"]), "evidence[1]: has another form"),
        (policy(tables={"events": table()["tables"]["events"], "EVENTS": table()["tables"]["events"]}), "twice"),
        (policy(tables={"raw": table()["tables"]}), "tables.raw: unknown key 'events'"),
        (5, "a dictionary or the path"),
        ("absent.toml", "cannot be read"),
    ],
)
def test_a_complaint_names_the_key(given: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Policy.read(given)
    assert complaint in str(refusal.value)
    for jargon in ("Input", "instance", "tuple", "AttackerTable", "Limits", "validation"):
        assert jargon not in str(refusal.value)


@pytest.mark.parametrize("content", ["tables = [", "\xff", "a = " + "[" * 5000])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"policy\.toml"):
        Policy.read(file)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that no test changes."""
    return database(tmp_path_factory.mktemp("people"))


@thinned(3)
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (policy(tables={"absent": table()["tables"]["events"]}), "tables.absent"),
        (table(unit="person"), "unit names column 'person'"),
        (table(columns=["country", "colour"]), "columns names column 'colour'"),
        (table(one_cell="first", order_by="moment"), "order_by names column 'moment'"),
        (table(domains={"country": [1, 2]}), "domain has a value that column 'country'"),
        (table(columns=["flag"], domains={"flag": ["yes"]}), "column 'flag' of type BOOLEAN"),
        (table(columns=["age"], domains={"age": [1, 1000]}), "column 'age' of type TINYINT"),
        (
            policy(tables={"events": table()["tables"]["events"], "main.events": table()["tables"]["events"]}),
            "are the same table",
        ),
    ],
)
def test_a_policy_has_to_fit_the_database(path: Path, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Gate(path, policy=given)
    assert complaint in str(refusal.value)
    assert "tables." in str(refusal.value)
    duckdb.connect(str(path)).close()  # the gate that could not be opened left nothing open


def test_a_domain_of_dates_and_columns_in_any_letter_case(path: Path) -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 5)]
    with Gate(path, policy=table(unit="UID", columns=["Day"], domains={"Day": days})) as gate:
        release = gate.ask(histogram("DAY"))
    assert list(release.table.columns) == ["day", "count"]
    assert [row[1] for row in rows(release)] == [200, None]
