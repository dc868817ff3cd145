"""An exact total and tables beside it, published from SQL as from Python, by a curator and by a gate."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pandas as pd
import pytest
from thorough import one_in, thinned
from worker_inside import workers_inside

import pkdp_pipeline as pkdp
import pkdp_pipeline.duckdb
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.gate.permitted import describe
from pkdp_pipeline.releases.release import Release

__all__ = ["workers_inside"]

pytestmark = pytest.mark.usefixtures("workers_inside")

DAY = "2021-03-01"
PEOPLE = pd.DataFrame({"id": range(170), "cell": ["a"] * 90 + ["b"] * 60 + ["c"] * 20, "site": ["x", "y"] * 85})
TOLD = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total())
NOISE = pkdp.GeometricNoise(0.5)
TOTAL = "SELECT pkdp_count('people', protects := 'value')"
CELLS = "FROM pkdp_histogram('people', 'cell', noise := 0.5, domain := ['a', 'b', 'c'], protects := 'value')"
SITES = "FROM pkdp_histogram('people', 'site', noise := 0.5, domain := ['x', 'y'], protects := 'value')"


@pytest.fixture
def ledgers():
    with pkdp.Ledger.open(":memory:") as ledger, pkdp.Ledger.open(":memory:") as other:
        yield ledger, other


@pytest.fixture
def people(ledgers):
    with duckdb.connect() as connection:
        connection.from_df(PEOPLE).create("people")
        pkdp.duckdb.install(connection, attacker=TOLD, unit="id", ledger=ledgers[0], period=DAY)
        yield connection


def certificates(ledger):
    """Return what was certified, without the name of the table, which Python does not know."""
    certified = [Release.from_bytes(entry.content, replayed=True).certificate for entry in ledger.entries()]
    return [
        replace(certificate, context=replace(certificate.context, table=None, head=None)) for certificate in certified
    ]


@thinned(2)
@pytest.mark.parametrize("order", [(TOTAL, CELLS, SITES), (CELLS, TOTAL, SITES), (SITES, CELLS, TOTAL)])
def test_an_exact_total_and_two_tables_have_the_certificates_of_python(people, ledgers, order):
    terms = {"unit": "id", "attacker": TOLD, "ledger": ledgers[1], "period": DAY, "protects": "value"}
    python = {
        TOTAL: lambda: PEOPLE.pkdp.count(**terms),
        CELLS: lambda: PEOPLE.pkdp.histogram("cell", noise=NOISE, domain=["a", "b", "c"], **terms),
        SITES: lambda: PEOPLE.pkdp.histogram("site", noise=NOISE, domain=["x", "y"], **terms),
    }
    answers = {question: people.execute(question).fetchall() for question in order}
    for question in order:
        python[question]()

    assert answers[TOTAL] == [(170,)]
    assert certificates(ledgers[0]) == certificates(ledgers[1])
    totals = [ledger.total() for ledger in ledgers]
    assert totals[0].sentence() == totals[1].sentence()
    assert totals[0].delta(1.0) == totals[1].delta(1.0)
    assert "The number of people present may be known exactly" in totals[0].sentence()
    # Asked again, all three are replayed.
    assert {question: people.execute(question).fetchall() for question in order} == answers
    assert len(certificates(ledgers[0])) == 3


def test_a_total_is_no_count_of_some_and_needs_an_attacker_who_knows_it(people):
    for further, words in (
        ("filter := 'site = ''x'''", "with where"),
        ("k := 20", "protects"),
        ("k := 0", "k must be"),
    ):
        with pytest.raises(duckdb.Error, match=words):
            people.execute(f"SELECT pkdp_count('people', protects := 'value', {further})")
    pkdp.duckdb.install(people, attacker=pkdp.AttackerModel(p_max_between=0.6), unit="id")
    with pytest.raises(duckdb.Error, match=r"declare leakage=pkdp\.Leakage\.total\(\)"):
        people.execute(TOTAL).fetchall()


def test_totals_of_groups_and_their_table_are_those_of_python(ledgers):
    attacker = replace(TOLD, leakage=pkdp.Leakage.totals(by="site"))
    terms = {"unit": "id", "attacker": attacker, "ledger": ledgers[1], "period": DAY, "protects": "value"}
    PEOPLE.pkdp.histogram("site", domain=["x", "y"], **terms)
    PEOPLE.pkdp.histogram(["site", "cell"], k=30, **terms)
    with duckdb.connect() as connection:
        connection.from_df(PEOPLE).create("people")
        pkdp.duckdb.install(connection, attacker=attacker, unit="id", ledger=ledgers[0], period=DAY)
        known = connection.sql("FROM pkdp_histogram('people', 'site', domain := ['x', 'y'], protects := 'value')")
        assert known.fetchall() == [("x", 85), ("y", 85)]
        cells = "FROM pkdp_histogram('people', ['site', 'cell'], k := 30, protects := 'value')"
        assert len(connection.sql(cells).fetchall()) == 4
        with pytest.raises(duckdb.Error, match="leakage has exact totals by 'site'"):
            connection.sql("FROM pkdp_histogram('people', 'cell', k := 30, protects := 'value')").fetchall()
    assert certificates(ledgers[0]) == certificates(ledgers[1])


def test_curves_beside_a_known_total():
    with duckdb.connect() as connection:
        pkdp.duckdb.install(connection, attacker=TOLD, unit="id")
        arguments = "k := 100, p_max_between := 0.7, protects := 'value', epsilon := 1"
        certificate = pkdp.certify(pkdp.Histogram(k=100), replace(TOLD, p_max_between=0.7), protects="value")
        value, presence, total = connection.sql(
            f"SELECT pkdp_delta('histogram', {arguments}, total_known := true), "
            "pkdp_delta('histogram', k := 100, p_max := 0.1, epsilon := 1, total_known := true), "
            "pkdp_epsilon('count', protects := 'value', delta := 0, total_known := true)"
        ).fetchall()[0]
    assert value == certificate.delta(1.0)
    assert (presence, total) == (1.0, 0.0)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.from_df(PEOPLE).create("people")
    path.chmod(0o600)
    return path


def policy(protects="value", attacker=TOLD):
    table = {"unit": "id", "columns": ["cell", "site"], "k": 50, "protects": protects}
    return {"attacker": attacker, "tables": {"people": table}}


EXACT = {"table": "people", "count": True, "protects": "value"}


def test_a_gate_whose_policy_protects_the_value_answers_with_the_total(database):
    with pkdp.duckdb.Gate(database, policy=policy()) as gate:
        release = gate.ask(EXACT)
        assert release.value == 170
        assert release.certificate.protects == "value"
        assert gate.ask({"table": "people", "histogram": "cell"}).table["count"].tolist() == [90, 60]
        assert gate.connect().sql(TOTAL).fetchall() == [(170,)]
        # It is no way to small counts of others.
        for further in ({"filter": "site = 'x'"}, {"k": 5}, {"k": 50}, {"k_complement": 50}, {"noise": 0.5}):
            with pytest.raises(ArgumentError):
                gate.ask({**EXACT, **further})
        assert describe(gate.policy, gate.tables)["tables"]["people"]["total"]


def test_a_gate_refuses_columns_that_lack_those_of_known_totals_and_goes_on(database):
    attacker = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.totals(by="site"))
    rules = policy(attacker=attacker)
    rules["tables"]["people"]["k"] = 30
    with pkdp.duckdb.Gate(database, policy=rules) as gate:
        for columns in ("cell", "site"):
            with pytest.raises(ArgumentError, match="leakage has exact totals by 'site'"):
                gate.ask({"table": "people", "histogram": columns})
        first = describe(gate.policy, gate.tables)["tables"]["people"]["examples"][0]
        assert first["question"]["histogram"] == ["site", "cell"]
        release = gate.ask(first["question"])
        assert release.table["count"].tolist() == [45, 30, 45, 30]
        assert "a person's 'site' is not protected" in release.certificate.sentence()


@pytest.mark.parametrize(
    "rules", one_in(2, [policy("presence"), policy(attacker=pkdp.AttackerModel(p_max_between=0.6))])
)
def test_other_gates_do_not(database, rules):
    with pkdp.duckdb.Gate(database, policy=rules) as gate:
        with pytest.raises(ArgumentError, match="where a policy allows it"):
            gate.ask(EXACT)
        assert not describe(gate.policy, gate.tables)["tables"]["people"]["total"]
