"""A gate answers sums of the columns that its policy names, with the policy's bounds, under a budget."""

from __future__ import annotations

from pathlib import Path

import pytest
from analyst import count, database, policy, rows

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.releases import public_table

pytestmark = pytest.mark.usefixtures("workers_inside")
SUM = {"table": "events", "sum": "age", "by": "country", "noise": 0.5}


def sums_allowed(**table):
    allowed = policy(budget={"epsilon": 9.0, "delta": 1e-6})
    allowed["tables"]["events"] |= {"sums": {"age": [0, 3]}, "rows": [0, 2], **table}
    return allowed


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    with Gate(database(tmp_path_factory.mktemp("gate")), policy=sums_allowed()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(public_table, "add_noise", lambda counts, *_: list(counts))


def test_a_sum_is_answered_with_the_policys_bounds(gate):
    release = gate.ask(SUM)
    expected = {
        cell: sum(min(3, person % 7) for person in range(400) if person % 4 == place)
        for place, cell in enumerate(["US", "NO", "DE"])
    }
    assert rows(release) == list(expected.items())
    assert release.certificate.mechanism.bounds == (0, 3)
    assert gate.ask(SUM | {"bounds": [0, 3]}).id == release.id
    assert gate.ask({"table": "events", "rows": "count", "noise": 0.5}).value == 400
    with gate.connect() as own:
        fetched = own.sql("FROM pkdp_sum('events', 'age', by := 'country', noise := 0.5)")
        assert fetched.columns == ["country", "sum"]
        assert fetched.fetchall() == list(expected.items())


def test_a_sum_of_everybody_protects_what_the_policy_says(tmp_path: Path):
    known = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.total("the number of people"))
    allowed = sums_allowed(protects="value", sums={"age": [-3, 3]}) | {"attacker": known}
    with Gate(database(tmp_path), policy=allowed) as gate:
        certificate = gate.ask({name: SUM[name] for name in ("table", "sum", "noise")}).certificate
    assert (certificate.protects, certificate.worst_case.parameters) == ("value", (1.0, 0.0))


@pytest.mark.parametrize(
    ("further", "words"),
    [
        ({"bounds": [0, 100]}, "bounds is not for analysts"),
        ({"sum": "uid"}, "uid"),
        ({"sum": "note"}, "note"),
        ({"by": "flag"}, "public values"),
        ({"noise": None}, "a sum needs noise"),
        ({"k": 20}, "k is about a count"),
        ({"by": "uid"}, "uid"),
    ],
)
def test_what_the_policy_does_not_allow_is_refused(gate, further, words):
    with pytest.raises(ArgumentError, match=words):
        gate.ask({name: value for name, value in (SUM | further).items() if value is not None})


def test_a_policy_that_names_no_sums_answers_none(tmp_path: Path):
    with Gate(database(tmp_path), policy=policy(budget={"epsilon": 9.0, "delta": 1e-6})) as gate:
        for question in (SUM, {"table": "events", "rows": "count", "noise": 0.5}):
            with pytest.raises(ArgumentError, match=r"age|rows"):
                gate.ask(question)
        assert gate.ask(count(noise=0.5)).value is not None


@pytest.mark.parametrize(
    ("sums", "words"),
    [
        ({"note": [0, 5]}, "whole numbers"),
        ({"nothing": [0, 5]}, "nothing"),
        ({"uid": [0, 5]}, "names people"),
        ({"age": [5, 0]}, "in order"),
        ({"age": 5}, "bounds"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(tmp_path, sums, words):
    with pytest.raises(ConfigError, match=words):
        Gate(database(tmp_path), policy=sums_allowed(sums=sums))
