"""Sums along a hierarchy are those that every true table behind the published one allows."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

CODES = [("A", ""), ("A1", "A"), ("A2", "A"), ("B", ""), ("B1", "B"), ("B11", "B1"), ("B12", "B1"), ("C", "")]
COUNTS = {"A1": 7, "A2": 1, "B11": 0, "B12": 4, "C": 2}
ATTACKER = pkdp.AttackerModel(p_max=0.1)
K = 3


@pytest.fixture(scope="module")
def codes():
    return pkdp.Hierarchy(CODES)


def people(counts, column="code"):
    rows = [code for code, number in counts.items() for _ in range(number)]
    return pd.DataFrame({column: pd.Series(rows, dtype="str"), "person": range(len(rows))})


def released(codes, **rules):
    rules = {"k": K, "domain": codes, **rules}
    return people(COUNTS).pkdp.histogram("code", unit="person", attacker=ATTACKER, **rules)


def test_levels(codes) -> None:
    assert list(codes) == list(codes.leaves) == ["A1", "A2", "B11", "B12", "C"]
    assert codes.levels == 3
    assert [codes.at(level) for level in range(3)] == [("A", "B", "C"), ("A1", "A2", "B1", "C"), codes.leaves]
    assert codes.ancestors("B12") == ("B1", "B")
    assert codes.ancestors("C") == ()


def test_a_file(tmp_path, codes) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("name,parent,code\n" + "".join(f"x,{parent},{code}\n" for code, parent in CODES), encoding="utf-8")
    assert pkdp.Hierarchy.from_csv(path) == codes
    path.write_text("code\nA\n", encoding="utf-8")
    with pytest.raises(pkdp.ArgumentError, match="columns code and parent"):
        pkdp.Hierarchy.from_csv(path)
    path.write_bytes(b"code,parent\n\xff,\n")
    with pytest.raises(pkdp.ArgumentError, match="UTF-8"):
        pkdp.Hierarchy.from_csv(path)
    with pytest.raises(pkdp.ConfigError, match="cannot be read"):
        pkdp.Hierarchy.from_csv(tmp_path / "none.csv")


def test_every_sum_is_exactly_what_the_table_allows(codes) -> None:
    frame = released(codes).along(codes)
    assert frame["code"].tolist() == ["A", "A1", "A2", "B", "B1", "B11", "B12", "C"]
    assert frame["level"].tolist() == [0, 1, 1, 0, 1, 2, 2, 0]
    hidden = [code for code, number in COUNTS.items() if number < K]
    for _, row in frame.iterrows():
        sums = []
        for numbers in itertools.product(range(K), repeat=len(hidden)):
            table = COUNTS | dict(zip(hidden, numbers, strict=True))
            sums.append(sum(n for code, n in table.items() if row["code"] in (code, *codes.ancestors(code))))
        assert (row["least"], row["most"]) == (min(sums), max(sums))
        assert row["count"] is pd.NA if min(sums) < max(sums) else row["count"] == sums[0]


def test_other_columns_are_kept(codes) -> None:
    frame = people(COUNTS).assign(sex="f")
    release = frame.pkdp.histogram(
        ["sex", "code"], unit="person", domain={"sex": ["f", "m"], "code": codes}, k=K, attacker=ATTACKER
    )
    sums = release.along(codes, "code", by="sex")
    assert sums["sex"].tolist() == ["f"] * 8 + ["m"] * 8
    assert sums.loc[0, "least"] == 7
    assert sums.loc[8, "least"] == 0
    assert release.along(codes, "code")["most"].iloc[0] == 7 + 2 + 2 + 2


def test_noise_adds_up(codes) -> None:
    release = released(codes, k=None, noise=pkdp.GeometricNoise(1.0))
    frame = release.along(codes).set_index("code")
    assert frame.loc["A", "count"] == frame.loc["A1", "count"] + frame.loc["A2", "count"]
    assert frame.loc["A", "error"] == pytest.approx(frame.loc["A1", "error"] * 2**0.5)


def test_found_cells_leave_sums_open(codes) -> None:
    frame = released(codes, domain=None).along(codes).set_index("code")
    assert frame.loc["A", "count"] is pd.NA
    assert frame.loc["A", "most"] is pd.NA
    assert frame.loc["A", "least"] == 7
    assert frame.loc["A1", "most"] == 7


@pytest.mark.parametrize(
    ("pairs", "rule"),
    [
        ([], "list of pairs"),
        ("AB", "list of pairs"),
        (["AB"], "list of pairs"),
        ([("A", None), ("A", None)], "twice"),
        ([("A", "B")], "not listed"),
        ([("A", "B"), ("B", "A")], "ancestor"),
        ([("", None)], "empty"),
        ([(1, None)], "texts"),
    ],
)
def test_what_is_no_hierarchy_is_refused(pairs, rule) -> None:
    with pytest.raises(pkdp.ArgumentError, match=rule):
        pkdp.Hierarchy(pairs)


def test_refusals(codes) -> None:
    release = released(codes)
    with pytest.raises(pkdp.ArgumentError, match="level"):
        codes.at(3)
    with pytest.raises(pkdp.ArgumentError, match="hierarchy"):
        codes.ancestors("Z")
    with pytest.raises(pkdp.ArgumentError, match="Hierarchy"):
        release.along(CODES)
    with pytest.raises(pkdp.ArgumentError, match="by-columns"):
        release.along(codes, "town")
    with pytest.raises(pkdp.ArgumentError, match="does not list"):
        release.along(pkdp.Hierarchy([("A1", None)]))
    both = people({"A": 4, "A1": 5}).pkdp.histogram("code", unit="person", k=K, attacker=ATTACKER)
    with pytest.raises(pkdp.ArgumentError, match="above it"):
        both.along(codes)
    several = people(COUNTS).pkdp.histogram(
        "code", unit="person", domain=codes, noise=pkdp.GeometricNoise(1.0), cells_per_unit=2
    )
    with pytest.raises(pkdp.ArgumentError, match="add up"):
        several.along(codes)


def test_a_code_with_others_below_it_may_be_hidden_in_found_cells() -> None:
    frame = people({"a1": 10, "a2": 10, "A": 4})
    codes = pkdp.Hierarchy([("A", None), ("a1", "A"), ("a2", "A")])
    sums = frame.pkdp.histogram("code", unit="person", k=5, attacker=ATTACKER).along(codes).set_index("code")
    assert sums.loc["A", "most"] is pd.NA
    assert (sums.loc["A", "least"], sums.loc["a1", "count"]) == (20, 10)
