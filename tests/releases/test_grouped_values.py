"""By-columns in groups of values: their cells, their domain, and what a ledger takes for the same question."""

from __future__ import annotations

import pandas as pd
import pytest

import pkdp_pipeline as pkdp
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.question import Question

AGES = pkdp.bins("age", [0, 18, 65])
ATTACKER = pkdp.AttackerModel(p_max=0.1)


def people(*ages):
    return pd.DataFrame({"person": range(len(ages)), "age": ages, "sex": ["f", "m"] * (len(ages) // 2)})


def test_groups_are_named_by_their_edges() -> None:
    assert AGES.labels == ("0–17", "18–64", "65 or more")
    assert AGES.names == ("under 0", *AGES.labels)
    assert pkdp.bins("age", [0, 1, 5.5]).names == ("under 0", "0 to under 1", "1 to under 5.5", "5.5 or more")
    assert pkdp.bins("age", (0.0, 1, 2)).labels == ("0", "1", "2 or more")


def test_counts_are_those_of_cut() -> None:
    frame = people(*range(100))
    table = frame.pkdp.histogram([AGES, "sex"], unit="person", domain={"sex": ["f", "m"]}, k=5, attacker=ATTACKER).table
    cut = pd.cut(frame["age"], [0, 18, 65, 1000], right=False, labels=AGES.labels)
    expected = pd.crosstab(cut, frame["sex"])
    assert table["age"].tolist() == [label for label in AGES.labels for _ in "fm"]
    assert table["count"].tolist() == expected.to_numpy().ravel().tolist()


def test_found_groups_are_in_the_order_of_their_values() -> None:
    groups = pkdp.bins("age", [0, 5, 10, 100])
    table = people(*range(-10, 140)).pkdp.histogram(groups, unit="person", k=5, attacker=ATTACKER).table
    assert table["age"].tolist() == ["under 0", "0–4", "5–9", "10–99", "100 or more"]
    assert table["count"].tolist() == [10, 5, 5, 90, 40]
    wide = people(*range(-10, 140)).pkdp.histogram([groups, "sex"], unit="person", k=2, attacker=ATTACKER)
    assert list(wide.crosstab("sex", "age").columns) == list(groups.names)


def test_groups_in_their_order_are_verified(tmp_path) -> None:
    groups = pkdp.bins("age", [0, 5, 10, 100])
    release = people(*range(-10, 140)).pkdp.histogram([groups, "sex"], unit="person", k=2, attacker=ATTACKER)
    release.to_parquet(tmp_path / "groups.parquet")
    claims = {claim.key: claim.outcome for claim in pkdp.verify(tmp_path / "groups.parquet").claims}
    assert "fail" not in claims.values()
    codes = people(*range(-10, 140)).assign(sex=[str(8 + place % 4) for place in range(150)])
    codes.pkdp.histogram([groups, "sex"], unit="person", k=2, attacker=ATTACKER).to_parquet(tmp_path / "codes.parquet")
    assert "fail" not in {claim.outcome for claim in pkdp.verify(tmp_path / "codes.parquet").claims}
    turned = release.table.iloc[::-1].reset_index(drop=True)
    type(release).seal(turned, release.certificate).to_parquet(tmp_path / "turned.parquet")
    assert "fail" in {claim.outcome for claim in pkdp.verify(tmp_path / "turned.parquet").claims}


def test_a_value_below_the_first_edge_is_not_declared() -> None:
    frame = people(-1, *range(99))
    with pytest.raises(pkdp.InputCheckError, match="declared domain"):
        frame.pkdp.histogram(AGES, unit="person", domain=AGES.labels, k=5, attacker=ATTACKER)
    absent = frame.pkdp.histogram(AGES, unit="person", domain=AGES.labels, undeclared="absent", k=5, attacker=ATTACKER)
    assert absent.table["count"].tolist() == [18, 47, 34]


def test_edges_stand_in_the_certificate_and_wherever_it_is_read(tmp_path) -> None:
    frame = people(*range(100)).assign(born=pd.Timestamp("2000-01-31"))
    by = [AGES, pkdp.bins("born", "month")]
    release = frame.pkdp.histogram(by, unit="person", k=5, attacker=ATTACKER)
    words = "'age' from 0, 18 and 65 on; 'born' by the month"
    assert words in release.certificate.sentence()
    explained = str(pkdp.explain(by=by, unit="person", k=30, attacker=ATTACKER))
    assert words in " ".join(explained.split())
    again = pkdp.Certificate.from_json(release.certificate.to_json())
    assert again.context.groups == ("'age' from 0, 18 and 65 on", "'born' by the month")
    assert again.verify()
    release.to_csv(tmp_path / "ages.csv")
    assert words in (tmp_path / "ages.csv-metadata.json").read_text(encoding="utf-8")
    plain = frame.pkdp.histogram("sex", unit="person", k=5, attacker=ATTACKER).certificate
    assert "groups" not in plain.to_json()
    with pytest.raises(pkdp.ArgumentError, match="groups"):
        type(again.context).from_dict({**again.context.to_dict(), "groups": "age"})


def test_no_column_is_taken_for_groups_of_another() -> None:
    name = AGES.spelled
    frame = people(*range(100)).rename(columns={"sex": name})
    with pytest.raises(pkdp.ArgumentError, match="rename the column"):
        frame.pkdp.histogram(name, unit="person", k=5, attacker=ATTACKER)


def test_totals_of_groups_are_known_by_the_same_groups() -> None:
    known = pkdp.Leakage.totals([AGES, "sex"])
    assert known.by == (AGES.spelled, "sex")
    assert known.name == "the number of people present by 'age' in groups and 'sex'"
    attacker = pkdp.AttackerModel(p_max_between=0.6, leakage=pkdp.Leakage.totals(AGES))
    frame = people(*range(100))
    beside = {"unit": "person", "attacker": attacker, "protects": "value", "target": None}
    table = frame.pkdp.histogram([AGES, "sex"], domain={"sex": ["f", "m"]}, k=20, **beside)
    totals = frame.pkdp.histogram(AGES, domain=AGES.labels, **beside)
    assert totals.certificate.mechanism.totals
    assert table.within(totals)["total"].tolist() == [18, 18, 47, 47, 35, 35]
    with pytest.raises(pkdp.ArgumentError, match="exact totals by"):
        frame.pkdp.histogram(["age", "sex"], k=20, **beside)


def test_two_groupings_of_a_column_have_no_cross_table() -> None:
    frame = people(*range(100))
    with pkdp.Ledger.open(":memory:", dataset="d") as ledger:
        options = {"unit": "person", "k": 5, "attacker": ATTACKER, "ledger": ledger, "period": "2020"}
        frame.pkdp.histogram(AGES, domain=AGES.labels, **options)
        other = pkdp.bins("age", [0, 40])
        with pytest.raises(pkdp.DifferencingError, match="finest groups of age") as caught:
            frame.pkdp.histogram(other, domain=other.labels, **options)
    assert "cross-tabulated by age" not in str(caught.value)


def test_categories_are_grouped_as_what_they_are() -> None:
    ages = [*range(99), None]
    frame = people(*ages)
    table = frame.pkdp.histogram(AGES, unit="person", k=2, attacker=ATTACKER).table
    for values in (pd.Categorical(ages), pd.Categorical(pd.array(ages, dtype="Int64"))):
        counted = frame.assign(age=values).pkdp.histogram(AGES, unit="person", k=2, attacker=ATTACKER)
        assert counted.table.to_dict() == table.to_dict()
    with pytest.raises(pkdp.ArgumentError, match="must hold numbers"):
        frame.assign(age=pd.Categorical(["a"] * 100)).pkdp.histogram(AGES, unit="person", k=2, attacker=ATTACKER)


def test_another_grouping_is_another_question() -> None:
    def key(*by):
        question = Question(mechanism=Histogram(k=5), by=list(by), unit="person", period="2020")
        return question.key("x"), question.facts().by

    assert key(AGES) == key(pkdp.bins("age", (0, 18.0, 65)))
    keys = {key(*by) for by in ([AGES], [pkdp.bins("age", [0, 18])], [pkdp.bins("age", "week")], ["age"])}
    assert len(keys) == 4
    assert len({by for _, by in keys}) == 4


@pytest.mark.parametrize(
    ("edges", "rule"),
    [
        (5, "fixed beforehand"),
        ("quantiles", "week"),
        ([], "rise"),
        ([1, 1], "rise"),
        ([2, 1], "rise"),
        ([0, float("nan")], "finite"),
        (["0", "18"], "finite"),
        ([True, 2], "finite"),
        (None, "list of numbers"),
    ],
)
def test_edges_that_mean_nothing_are_refused(edges, rule) -> None:
    with pytest.raises(pkdp.ArgumentError, match=rule):
        pkdp.bins("age", edges)


def test_weeks_have_no_list_of_groups() -> None:
    with pytest.raises(pkdp.ArgumentError, match="domain"):
        _ = pkdp.bins("day", "week").labels
    with pytest.raises(pkdp.ArgumentError, match="twice"):
        Question(mechanism=Histogram(k=5), by=[AGES, "age"], unit="person")


def test_an_empty_column_is_not_refused() -> None:
    empty = pd.DataFrame({"person": pd.Series([], dtype=object), "age": pd.Series([], dtype=object)})
    table = empty.pkdp.histogram(AGES, unit="person", domain=AGES.labels, k=5, attacker=ATTACKER).table
    assert table["count"].isna().all()
    with pytest.raises(pkdp.ArgumentError, match="rise"):
        pkdp.bins("age", [10**400, 1])
