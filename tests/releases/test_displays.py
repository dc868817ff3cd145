"""A second display of a published table: derived from it where it follows for every table, and charged nothing."""

from __future__ import annotations

import json

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkdp_pipeline as pkdp
from pkdp_pipeline import duckdb as pkdp_duckdb
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.model.mechanisms import without_display
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.releases.public_table import public_table, shown_again

ATTACKER = pkdp.AttackerModel(p_max=0.1)
NOISE = pkdp.GeometricNoise(0.5)


def people(**cells: int) -> pd.DataFrame:
    """Return a frame with so many people in each cell."""
    names = [cell for cell, size in cells.items() for _ in range(size)]
    return pd.DataFrame({"u": range(len(names)), "c": pd.Series(names, dtype="str")})


TERMS = {"by": "c", "unit": "u", "attacker": ATTACKER, "period": "2020", "target": None}
FRAME = people(a=60, b=33, c=7)


@pytest.fixture
def ledger(tmp_path):
    with pkdp.Ledger.open(tmp_path / "ledger.sqlite", dataset="people") as opened:
        yield opened


def unread(*_):
    pytest.fail("data were read")


def test_a_coarser_display_is_derived_and_charged_nothing(ledger, monkeypatch):
    first = FRAME.pkdp.histogram(**TERMS, k=8, ledger=ledger)
    total, head = ledger.total(), ledger.head()
    monkeypatch.setattr("pkdp_pipeline.releases.publish.public_table", unread)
    rounded = FRAME.pkdp.histogram(**TERMS, k=8, display=pkdp.Rounding(5), ledger=ledger)
    assert rounded.table.values.tolist() == [["a", 60], ["b", 35]]
    assert rounded.replayed
    assert rounded.verify()
    assert (ledger.total(), ledger.head()) == (total, head)
    # Bands alone hide more; what is promised is what both tables together do.
    bands = FRAME.pkdp.histogram(**TERMS, display=pkdp.Bands([0, 50]), ledger=ledger)
    assert bands.table.values.tolist() == [["a", 50]]
    alone = pkdp.certify(bands.certificate.mechanism, ATTACKER)
    assert alone.delta(1.0) < bands.certificate.delta(1.0) == first.certificate.delta(1.0)
    assert bands.certificate.derived_from == pkdp.Histogram(k=8)
    for words in ("follows from another display", "nothing is charged", "at least 8"):
        assert words in bands.certificate.sentence()
    assert pkdp.Certificate.from_json(bands.certificate.to_json()) == bands.certificate
    # The same is asked again: the same bytes.
    assert FRAME.pkdp.histogram(**TERMS, display=pkdp.Bands([0, 50]), ledger=ledger).to_bytes() == bands.to_bytes()
    assert len(list(ledger.entries())) == 1


@pytest.mark.parametrize("display", [pkdp.Rounding(7), pkdp.RandomRounding(5), pkdp.PerturbationTable([(0, 0, 1.0)])])
def test_what_does_not_follow_is_refused(ledger, display):
    FRAME.pkdp.histogram(**TERMS, k=8, display=pkdp.Rounding(5), ledger=ledger)
    head = ledger.head()
    with pytest.raises(pkdp.DifferencingError):
        FRAME.pkdp.histogram(**TERMS, k=8, display=display, ledger=ledger)
    # Nor does the finer one from the coarser, other rows, or the same ones anew.
    for change in ({"display": None}, {"display": pkdp.Rounding(15), "where": "u > 5"}, {"revise": True}):
        with pytest.raises(pkdp.DifferencingError):
            FRAME.pkdp.histogram(**{**TERMS, "k": 8, "display": pkdp.Rounding(15), "ledger": ledger, **change})
    assert ledger.head() == head


RULES = st.one_of(
    st.none(),
    st.builds(pkdp.Rounding, st.integers(3, 8), st.sampled_from(["nearest", "down", "midpoint"])),
    st.lists(st.integers(2, 40), min_size=1, max_size=4, unique=True).map(lambda e: pkdp.Bands([0, *sorted(e)])),
)
KS = st.one_of(st.just(8), st.integers(2, 20))


@given(RULES, KS, RULES.filter(bool), st.one_of(st.none(), KS), st.lists(st.integers(1, 60), max_size=5), st.booleans())
@settings(max_examples=40)
def test_a_derived_table_is_the_one_that_would_have_been_published(rule, k, coarser, other_k, sizes, declared):
    domain = ["b", "a", "e", "x"] if declared else None
    terms = {"unit": "u", "by": "c", "domain": domain, "undeclared": "absent" if declared else "error"}
    mechanisms = pkdp.Histogram(k=k, display=rule), pkdp.Histogram(k=other_k, display=coarser)
    frame = people(**dict(zip("abcde", sizes, strict=False)))
    first, second = (Question(mechanism=mechanism, **terms) for mechanism in mechanisms)
    if second.follows_from(first):
        derived = shown_again(public_table(frame, first), first.mechanism, second.mechanism, found_cells=not declared)
        pd.testing.assert_frame_equal(derived, public_table(frame, second))


def test_keys_of_derived_rows_have_the_dtype_of_what_is_shown():
    frame = pd.DataFrame({"u": range(50), "c": [1.0] * 40 + [1.5] * 10})
    questions = [
        Question(mechanism=pkdp.Histogram(k=k, display=rule), unit="u", by="c")
        for k, rule in ((5, None), (None, pkdp.Bands([0, 20])))
    ]
    published = public_table(frame, questions[0])
    derived = shown_again(published, *(question.mechanism for question in questions), found_cells=True)
    assert derived.dtypes["c"] != published.dtypes["c"]
    pd.testing.assert_frame_equal(derived, public_table(frame, questions[1]))


@pytest.mark.parametrize("more", [{}, {"k": 20, "below": "noise"}, {"release_threshold": 5}], ids=str)
def test_the_noise_of_a_derived_display_is_that_of_the_published_one(ledger, more):
    terms = {**TERMS, "domain": list("abcd"), "noise": NOISE, "ledger": ledger, **more}
    first = FRAME.pkdp.histogram(**terms)
    total = ledger.total()
    rule = pkdp.Rounding(5, "down")
    second = FRAME.pkdp.histogram(**terms, display=rule)
    expected = [None if pd.isna(value) else rule.shown(value) for value in first.table["count"]]
    assert [None if pd.isna(value) else value for value in second.table["count"]] == expected
    assert second.table.drop(columns="count").equals(first.table.drop(columns="count"))
    assert second.certificate.epsilon(1e-6) == first.certificate.epsilon(1e-6)
    assert ledger.total() == total
    assert second.verify()


def test_a_count_is_derived_and_its_suppression_stays(ledger):
    terms = {key: value for key, value in TERMS.items() if key != "by"} | {"ledger": ledger, "k": 8, "k_complement": 8}
    FRAME.pkdp.count("c == 'b'", **terms)
    assert FRAME.pkdp.count("c == 'b'", **terms, display=pkdp.Rounding(10, "down")).value == 30
    with pkdp.Ledger.open(":memory:") as other:
        assert FRAME.pkdp.count("u < 95", **{**terms, "ledger": other}).value is None
        assert FRAME.pkdp.count("u < 95", **{**terms, "ledger": other}, display=pkdp.Rounding(10)).value is None


def test_another_attacker_is_certified_for_the_published_table(ledger):
    FRAME.pkdp.histogram(**TERMS, k=8, ledger=ledger)
    surer = {**TERMS, "attacker": pkdp.AttackerModel(p_max=0.3)}
    derived = FRAME.pkdp.histogram(**surer, k=8, display=pkdp.Rounding(5), ledger=ledger)
    assert derived.certificate.attacker == surer["attacker"].among(None)
    # Its promise is the weakest that was ever made of this table, and the total counts that.
    assert (
        ledger.total().delta(1.0)
        == derived.certificate.delta(1.0)
        == pkdp.certify(pkdp.Histogram(k=8), surer["attacker"]).delta(1.0)
    )
    assert len(list(ledger.entries())) == 1


def test_another_frame_is_warned_of(ledger):
    FRAME.pkdp.histogram(**TERMS, k=8, ledger=ledger)
    with pytest.warns(UserWarning, match="was not read"):
        people(a=500).pkdp.histogram(**TERMS, k=8, display=pkdp.Rounding(5), ledger=ledger)


def test_an_explanation_says_that_nothing_is_charged(ledger):
    FRAME.pkdp.histogram(**TERMS, k=8, ledger=ledger)
    terms = {key: value for key, value in TERMS.items() if key != "by"} | {"ledger": ledger}
    explained = pkdp.explain("c", **terms, k=8, display=pkdp.Rounding(5))
    assert (explained.outcome, explained.before) == ("replay", explained.after)
    assert "nothing is charged" in explained.certificate.sentence()


def test_in_sql(ledger):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE visits AS FROM FRAME")
        pkdp_duckdb.install(con, attacker=ATTACKER, unit="u", ledger=ledger, period="2020")
        ask = "FROM pkdp_histogram('visits', 'c', k := 30{}) ORDER BY ALL"
        assert con.sql(ask.format("")).fetchall() == [("a", 60), ("b", 33)]
        head = ledger.head()
        assert con.sql(ask.format(", display := {'rounding': 50}")).fetchall() == [("a", 50), ("b", 50)]
        assert ledger.head() == head


def verified(path, content, ledger):
    path.write_bytes(content)
    return verify(path, ledger=ledger, draws=100)


def test_with_the_ledger_a_derived_file_is_told_from_a_forged_one(tmp_path, ledger):
    FRAME.pkdp.histogram(**TERMS, k=20, ledger=ledger)
    derived = FRAME.pkdp.histogram(**TERMS, k=20, display=pkdp.Rounding(5), ledger=ledger)
    forged = pkdp.Release.seal(derived.table.assign(count=pd.array([60, 40], dtype="Int64")), derived.certificate)
    place = tmp_path / "ledger.sqlite"
    assert verified(tmp_path / "derived.parquet", derived.to_bytes(), place).passed
    assert verified(tmp_path / "derived.json", derived.certificate.to_json().encode(), place).passed
    failed = verified(tmp_path / "forged.parquet", forged.to_bytes(), place)
    assert [claim.key for claim in failed.claims if claim.outcome == "fail"] == ["ledger.holds"]


def test_a_certificate_cannot_name_what_does_not_determine_it():
    document = json.loads(
        pkdp.certify(pkdp.Histogram(k=8), ATTACKER).derived(pkdp.Histogram(k=8, display=pkdp.Rounding(5))).to_json()
    )
    for finer in ({"mechanism": "histogram", "k": 30}, {"mechanism": "count", "k": 8}):
        with pytest.raises(pkdp.ArgumentError, match="finer display"):
            pkdp.Certificate.from_json(json.dumps({**document, "derived_from": finer}))
    # What is certified again for a stronger attacker is certified for the finer display, too.
    certificate = pkdp.certify(pkdp.Histogram(k=8), ATTACKER).derived(pkdp.Histogram(display=pkdp.Bands([0, 50])))
    assert without_display(certificate.mechanism).k == 50
    from pkdp_pipeline.certificates.stronger import again

    surer = again(certificate, lambda _: pkdp.AttackerModel(p_max=0.2))
    assert surer.delta(1.0) == pkdp.certify(pkdp.Histogram(k=8), pkdp.AttackerModel(p_max=0.2)).delta(1.0)
