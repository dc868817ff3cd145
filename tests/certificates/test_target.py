"""The target: what promises too little is refused before any data are read, wherever it is asked for."""

from __future__ import annotations

import inspect
import json
import math
import re

import duckdb
import pandas as pd
import pytest
from thorough import one_in, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.certificates import release_certificate as module
from pkdp_pipeline.certificates.release_certificate import Target
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.wording import rounded_up
from pkdp_pipeline.releases.accessor import PkdpAccessor

pytestmark = pytest.mark.default_target

ATTACKER = pkdp.AttackerModel(p_max=0.5)
FRAME = pd.DataFrame({"u": range(80), "c": ["a"] * 80})
ASKED = {"unit": "u", "attacker": ATTACKER}


def unread():
    raise AssertionError("data were read")


def refusal(ask) -> str:
    with pytest.raises(NotCertifiableError) as caught:
        ask()
    return str(caught.value)


@thinned(2)
@pytest.mark.parametrize(
    "target",
    one_in(
        2,
        [
            Target(epsilon=0.1),
            Target(epsilon=0.5, delta=1e-9),
            Target(delta=1e-12),
            Target(epsilon=2.0),
            Target(delta=0.01),
        ],
    ),
)
def test_what_is_advised_reaches_the_target(target):
    with pytest.raises(NotCertifiableError) as caught:
        FRAME.pkdp.histogram("c", k=2, target=target, **ASKED)
    (k,) = re.findall(r"k = (\d+) with", str(caught.value))
    ((noise, reached),) = re.findall(r"GeometricNoise\((.+?)\) with release_threshold=(\d+)", str(caught.value))
    FRAME.pkdp.histogram("c", k=int(k), target=target, **ASKED)
    noised = {"noise": GeometricNoise(float(noise)), "release_threshold": int(reached)}
    FRAME.pkdp.histogram("c", target=target, **noised, **ASKED)


def test_nothing_is_advised_where_nothing_reaches_the_target():
    with pytest.raises(NotCertifiableError, match=r"reaches epsilon = 0, delta = 1e-6: ask for less\."):
        FRAME.pkdp.histogram("c", k=2, target=Target(epsilon=0.0), **ASKED)


def test_by_default_a_release_has_an_epsilon_at_one_in_a_million():
    assert module.DEFAULT_TARGET == pkdp.Target() == pkdp.Target(None, 1e-6)
    message = refusal(lambda: FRAME.pkdp.histogram("c", k=5, **ASKED))
    least = rounded_up(pkdp.certify(Histogram(k=5), ATTACKER).delta(1.0))
    assert f"no epsilon reaches the target, delta = 1e-6; at epsilon = 1 it has delta = {least}" in message
    assert re.search(r"k = 60 with the declared p_max = 0\.5; or no k but noise=", message)
    assert message.endswith("To publish it all the same, say target=None.")
    assert FRAME.pkdp.histogram("c", k=5, target=None, **ASKED).certificate.epsilon(1e-6) == math.inf
    assert FRAME.pkdp.histogram("c", k=60, **ASKED).certificate.epsilon(1e-6) <= 1.0


def test_the_target_is_the_calls_then_the_ledgers(tmp_path):
    arguments = {**ASKED, "period": "2020"}
    with pkdp.Ledger.open(tmp_path / "strict.sqlite", target=pkdp.Target(1.0)) as ledger:
        message = refusal(lambda: FRAME.pkdp.histogram("c", k=50, ledger=ledger, **arguments))
        assert "epsilon = 1.16 at delta = 1e-6 is above the target, epsilon = 1.0" in message
        assert list(ledger.entries()) == []
        explained = FRAME.pkdp.explain("c", k=50, ledger=ledger, **arguments)
        assert explained.outcome == "refused"
        assert isinstance(explained.refused, NotCertifiableError)
        release = FRAME.pkdp.histogram("c", k=50, ledger=ledger, target=pkdp.Target(1.2), **arguments)
        assert (
            FRAME.pkdp.histogram("c", k=50, ledger=ledger, **arguments).id == release.id
        )  # what is public is replayed
    with pkdp.Ledger.open(tmp_path / "loose.sqlite", target=None) as ledger:
        refusal(lambda: FRAME.pkdp.histogram("c", k=4, ledger=ledger, target=pkdp.Target(), **arguments))
        assert len(FRAME.pkdp.histogram("c", k=5, ledger=ledger, **arguments).table) == 1
    with pkdp.Ledger.open(tmp_path / "usual.sqlite") as ledger:
        refusal(lambda: FRAME.pkdp.count(k=5, ledger=ledger, **arguments))


def test_the_best_number_counts():
    noised = {"noise": GeometricNoise(0.5), **ASKED}
    FRAME.pkdp.histogram("c", domain=["a"], target=pkdp.Target(0.5, 1e-9), **noised)
    refusal(lambda: FRAME.pkdp.histogram("c", domain=["a"], target=pkdp.Target(0.3, 1e-9), **noised))


def test_a_target_that_noise_reaches_takes_no_search(monkeypatch):
    certificate = pkdp.certify(Count(k=5, noise=GeometricNoise(1.0), release_threshold=40), ATTACKER)
    monkeypatch.setattr(pkdp.Certificate, "epsilon", None)
    for target in (Target(), Target(epsilon=1.0)):
        target.hold(certificate)
    with pytest.raises(TypeError):
        Target(epsilon=0.9).hold(certificate)


def test_an_exact_total_costs_nothing_and_is_no_promise_to_miss():
    attacker = pkdp.AttackerModel(leakage=pkdp.Leakage.total())
    assert FRAME.pkdp.count(unit="u", attacker=attacker, protects="value").value == 80


@pytest.mark.parametrize("target", [1e-6, "none", {"delta": 1e-6}, True])
def test_a_target_is_one(target):
    for ask in (
        lambda: FRAME.pkdp.histogram("c", k=60, target=target, **ASKED),
        lambda: pkdp.Ledger.open(":memory:", target=target),
    ):
        with pytest.raises(ArgumentError, match="target must be a Target or None"):
            ask()


@pytest.mark.parametrize(
    "values", [(-1.0,), (math.inf,), (math.nan,), ("1",), (True,), (1.0, 0.0), (1.0, 1.0), (1.0, 2)]
)
def test_a_target_holds_numbers_that_can_be_met(values):
    with pytest.raises(ArgumentError, match="of a target"):
        pkdp.Target(*values)


@pytest.mark.parametrize("mechanism", [Histogram, Count])
def test_what_promises_nothing_is_certified_by_nobody(mechanism):
    """The noise lifts everybody over the threshold, so that k alone decides what is shown."""
    nothing = mechanism(k=20, noise=GeometricNoise(0.5), release_threshold=5)
    message = refusal(lambda: pkdp.certify(nothing, pkdp.AttackerModel()))
    assert "delta = 1 at every epsilon, which promises nothing" in message
    assert "release_threshold=" in message
    assert "p_max" not in message
    pkdp.certify(nothing, pkdp.AttackerModel(p_max=0.1))
    refusal(
        lambda: pkdp.count(
            FRAME,
            unit="u",
            attacker=pkdp.AttackerModel(),
            k=20,
            noise=GeometricNoise(0.5),
            release_threshold=5,
            target=None,
        )
    )


def test_what_was_certified_once_can_still_be_read():
    certificate = pkdp.certify(Histogram(k=20, noise=GeometricNoise(0.5), release_threshold=5), ATTACKER)
    document = json.loads(certificate.to_json()) | {"attacker": pkdp.AttackerModel().to_dict()}
    assert pkdp.Certificate.from_json(json.dumps(document)).worst_case.parameters[1] > 0.999


@pytest.mark.parametrize("number", [10**10 + 1, 10**30])
def test_nobody_counts_so_many_people(number):
    for make in (
        lambda: Histogram(k=number),
        lambda: Count(k_complement=number),
        lambda: Count(noise=GeometricNoise(1.0), release_threshold=number),
    ):
        with pytest.raises(ArgumentError, match="at most 10000000000: there are fewer people"):
            make()
    assert pkdp.certify(Histogram(k=10**10), ATTACKER).delta(1e-3) < 1e-6


@pytest.mark.parametrize("epsilon", [51.0, 1e9, 1e300])
def test_noise_that_never_shows_is_none(epsilon):
    with pytest.raises(ArgumentError, match="noise epsilon must be at most 50 to be published"):
        FRAME.pkdp.count(unit="u", attacker=ATTACKER, noise=GeometricNoise(epsilon), target=None)


JOB = """
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }
unit = "u"
ledger = "ledger.sqlite"
{target}

[attacker]
p_max = 0.5

[[release]]
name = "people"
by = "c"
k = 50

[output]
directory = "out"
"""


@thinned(2)
@pytest.mark.parametrize(
    ("target", "refused"),
    [
        ("", None),
        ("target = { epsilon = 1.2 }", None),
        ("target = { epsilon = 1.0 }", "epsilon = 1.16 at delta = 1e-6 is above the target, epsilon = 1.0"),
        ("target = { delta = 1e-30 }", "no epsilon reaches the target, delta = 1e-30"),
        ('target = "none"', None),
    ],
)
def test_a_job_has_a_target(tmp_path, target, refused):
    FRAME.assign(day=pd.Timestamp("2020-01-01").date()).to_parquet(tmp_path / "visits.parquet")
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace("{target}", target), encoding="utf-8")
    day = pd.Timestamp("2020-01-01").date()
    if refused is None:
        assert run_job(load_job(file), day).releases[0].release.table["count"].tolist() == [80]
        return
    message = refusal(lambda: run_job(load_job(file), day))
    assert message.startswith("release 'people': The release promises too little: ")
    assert refused in message
    assert message.endswith('To publish it all the same, say target = "none" above the first [table].')


def test_a_job_that_promises_little_says_so(tmp_path):
    FRAME.assign(day=pd.Timestamp("2020-01-01").date()).to_parquet(tmp_path / "visits.parquet")
    file, day = tmp_path / "job.toml", pd.Timestamp("2020-01-01").date()
    weak = JOB.replace("k = 50", "k = 5")
    file.write_text(weak.replace("{target}", ""), encoding="utf-8")
    refusal(lambda: run_job(load_job(file), day))
    assert not (tmp_path / "out" / "2020-01-01").exists()
    file.write_text(weak.replace("{target}", 'target = "nothing"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r'target: must be a table, or "none": write target = \{ delta = 1e-6 \}'):
        load_job(file)
    file.write_text(weak.replace("{target}", 'target = "none"'), encoding="utf-8")
    run_job(load_job(file), day)


def test_macros_ask_for_what_their_ledger_asks_for():
    for target, allowed in (("default", False), (None, True)):
        with duckdb.connect() as con, pkdp.Ledger.open(":memory:", target=target) as ledger:
            con.execute("CREATE TABLE people AS SELECT range AS u, 'a' AS c FROM range(80)")
            pkdp.duckdb.install(con, attacker=ATTACKER, unit="u", ledger=ledger, period="2020")
            question = "SELECT count FROM pkdp_histogram('people', 'c', k := 5)"
            if allowed:
                assert con.sql(question).fetchall() == [(80,)]
            else:
                with pytest.raises(duckdb.Error, match="promises too little"):
                    con.sql(question).fetchall()


def test_every_way_in_takes_a_target():
    for ask in (pkdp.count, pkdp.histogram, pkdp.explain, PkdpAccessor.count, PkdpAccessor.histogram, pkdp.Ledger.open):
        assert inspect.signature(ask).parameters["target"].default == "default"


def test_noise_needs_no_attacker():
    noised = {"unit": "u", "noise": GeometricNoise(0.5)}
    alone = FRAME.pkdp.count(**noised).certificate
    assert alone == FRAME.pkdp.count(attacker=pkdp.AttackerModel(), **noised).certificate
    assert pkdp.certify(Count(noise=GeometricNoise(0.5))).worst_case.parameters == (0.5, 0.0)
    with pkdp.Ledger.open(":memory:") as ledger:
        arguments = {**noised, "ledger": ledger, "period": "2020"}
        assert FRAME.pkdp.explain(**arguments).outcome == "publish"
        release = FRAME.pkdp.count(**arguments)
        assert FRAME.pkdp.count(**arguments).to_bytes() == release.to_bytes()
        assert FRAME.pkdp.count(attacker=pkdp.AttackerModel(), **arguments).id == release.id
    with pytest.raises(ArgumentError, match=r"or add noise, which needs no attacker\."):
        FRAME.pkdp.count(unit="u", k=50)
    message = refusal(lambda: FRAME.pkdp.histogram("c", k=5, domain=["a"], **noised))
    assert "p_max" not in message.partition("Each of these")[2]
    assert "release_threshold=" in message


def test_a_release_certified_again_is_held_to_the_target(tmp_path):
    arguments = {"unit": "u", "k": 60, "period": "2020"}
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        FRAME.pkdp.histogram("c", attacker=ATTACKER, ledger=ledger, **arguments)
        before = list(ledger.entries())
        bold = pkdp.AttackerModel(p_max=0.99)
        refusal(lambda: FRAME.pkdp.histogram("c", attacker=bold, ledger=ledger, **arguments))
        assert list(ledger.entries()) == before
        again = FRAME.pkdp.histogram("c", attacker=bold, ledger=ledger, target=None, **arguments)
        assert again.certificate.epsilon(1e-6) == math.inf


def test_installed_macros_have_a_target_of_their_own():
    question = "SELECT * FROM pkdp_histogram('t', 'c', k := 5)"
    with duckdb.connect() as con:
        con.register("frame", FRAME)
        con.execute("CREATE TABLE t AS FROM frame")
        pkdp.duckdb.install(con, attacker=ATTACKER, unit="u")
        with pytest.raises(duckdb.Error, match="promises too little"):
            con.sql(question).fetchall()
        pkdp.duckdb.install(con, attacker=ATTACKER, unit="u", target=None)
        assert con.sql(question).fetchall()
