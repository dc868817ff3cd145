"""A cross-table has the counts of its release, and margins and intervals that every true table behind it allows."""

from __future__ import annotations

import itertools
import random

import pandas as pd
import pytest

import pkdp_pipeline as pkdp

ATTACKER = pkdp.AttackerModel(p_max=0.1)
DOMAIN = {"region": ["N", "S"], "sex": ["f", "m", "x"]}
COUNTS = {("N", "f"): 7, ("N", "m"): 5, ("N", "x"): 1, ("S", "f"): 2, ("S", "m"): 6, ("S", "x"): 0}
K = 3


def people(counts):
    rows = [cell for cell, number in counts.items() for _ in range(number)]
    frame = pd.DataFrame(rows, columns=["region", "sex"])
    return frame.assign(person=range(len(frame)))


def released(domain=DOMAIN, k=K, counts=COUNTS, **rules):
    return people(counts).pkdp.histogram(
        ["region", "sex"], unit="person", domain=domain, k=k, attacker=ATTACKER, **rules
    )


@pytest.fixture(scope="module")
def release():
    return released()


def test_counts_are_those_of_pandas(release) -> None:
    frame = people(COUNTS)
    wide = pd.crosstab(frame["region"], frame["sex"])
    table = release.crosstab("region", "sex")
    assert list(table.index) == DOMAIN["region"]
    assert list(table.columns) == DOMAIN["sex"]
    assert (table.index.name, table.columns.name) == ("region", "sex")
    for region, sex in COUNTS:
        true = int(wide.loc[region, sex])
        assert table.loc[region, sex] == (true if true >= K else "<3")


def test_zero_and_hidden_are_alike(release) -> None:
    table = release.crosstab("region", "sex", suppressed="c")
    assert table.loc["S", "x"] == table.loc["N", "x"] == table.loc["S", "f"] == "c"


def test_margins_are_numbers_only_where_they_follow(release) -> None:
    table = release.crosstab("region", "sex", margins=True)
    assert table["Total"].tolist() == ["12 to 14", "6 to 10", "18 to 24"]
    assert table.loc["Total"].tolist() == ["7 to 9", 11, "0 to 4", "18 to 24"]
    assert list(release.crosstab("sex", "region", margins="All").columns) == ["N", "S", "All"]


@pytest.mark.parametrize(("domain", "why"), [(None, "cells may be missing"), (DOMAIN, "no total")])
def test_noised_counts_have_no_total_where_one_may_be_missing(domain, why) -> None:
    # Noise of ε = 50 changes no count.
    release = released(domain, None, noise=pkdp.GeometricNoise(50.0), release_threshold=4)
    table = release.crosstab("region", "sex", margins=True)
    assert table["f"].tolist() == [7, "suppressed", why]
    assert {*table["Total"], *table.loc["Total"]} == {why, 11} - ({11} if domain is None else set())
    weights = {"sex": {"f": 2, "m": 1, "x": 1}}
    assert release.crosstab("region", "sex", margins=True, weights=weights).iloc[-1, -1] == why


def test_over_other_columns_is_added_up(release) -> None:
    frame = people(COUNTS).assign(year=2020)
    whole = frame.pkdp.histogram(
        ["year", "region", "sex"], unit="person", domain={"year": [2020, 2021], **DOMAIN}, k=K, attacker=ATTACKER
    )
    table = whole.crosstab("region", "year", margins=True)
    assert table[2020].tolist() == ["12 to 14", "6 to 10", "18 to 24"]
    assert table[2021].tolist() == ["0 to 6", "0 to 6", "0 to 12"]
    both = whole.crosstab(["year", "region"], "sex")
    assert both.index.names == ["year", "region"]
    assert both.loc[(2020, "N"), "f"] == 7


def test_every_interval_is_the_one_that_follows_from_a_total(release) -> None:
    totals = pd.DataFrame({"region": ["N", "S"], "count": [13, 8]})
    table = release.crosstab("region", "sex", margins=True, totals=totals)
    # All true tables that would be published so, with these totals.
    shown = {cell: number for cell, number in COUNTS.items() if number >= K}
    possible = []
    for hidden in itertools.product(range(K), repeat=len(COUNTS) - len(shown)):
        table_of = {**shown, **dict(zip([cell for cell in COUNTS if cell not in shown], hidden, strict=True))}
        sums = {region: sum(n for (r, _), n in table_of.items() if r == region) for region in ("N", "S")}
        if sums == {"N": 13, "S": 8}:
            possible.append(table_of)

    def words(values):
        least, most = min(values), max(values)
        return f"{least} to {most}" if least < most else least

    assert table.loc["N", "x"] == "1 follows exactly"
    for cell in (("S", "f"), ("S", "x")):
        values = [table_of[cell] for table_of in possible]
        assert table.loc[cell] == ("<3" if (min(values), max(values)) == (0, K - 1) else words(values))
    for sex in DOMAIN["sex"]:
        assert table.loc["Total", sex] == words([table_of["N", sex] + table_of["S", sex] for table_of in possible])
    assert table["Total"].tolist() == [13, 8, 21]


@pytest.mark.parametrize("seed", range(6))
def test_totals_of_rows_and_columns_are_used_together(seed) -> None:
    draw = random.Random(seed)
    domain = {"region": ["N", "S", "W"], "sex": ["f", "m", "x"]}
    counts = {cell: draw.choice([0, 1, 2, 2, 5]) for cell in itertools.product(*domain.values())}
    release = released(domain, K, counts)
    frame = people(counts)
    by_region, by_sex = (
        frame[name].value_counts().reindex(domain[name], fill_value=0).rename("count").rename_axis(name).reset_index()
        for name in ("region", "sex")
    )
    table = release.crosstab("region", "sex", totals=[by_region, by_sex])
    hidden = [cell for cell, number in counts.items() if number < K]
    possible = []
    for numbers in itertools.product(range(K), repeat=len(hidden)):
        true = counts | dict(zip(hidden, numbers, strict=True))
        fits = all(
            sum(number for cell, number in true.items() if cell[place] == value)
            == sum(number for cell, number in counts.items() if cell[place] == value)
            for place, column in enumerate(domain.values())
            for value in column
        )
        possible += [true] if fits else []
    for cell in hidden:
        values = {true[cell] for true in possible}
        words = f"{min(values)} to {max(values)}" if len(values) > 1 else f"{min(values)} follows exactly"
        assert table.loc[cell] == (words if values != set(range(K)) else "<3")


def test_rows_that_fill_columns_leave_nothing_to_others() -> None:
    # What is hidden in the first two columns of the first two rows is all that is hidden in these columns.
    numbers = [[2, 2, 9, 9], [2, 2, 9, 9], [0, 0, 3, 2], [9, 9, 2, 3]]
    domain = {"region": list("NSWE"), "sex": list("fmxy")}
    counts = {(r, s): numbers[i][j] for i, r in enumerate(domain["region"]) for j, s in enumerate(domain["sex"])}
    frame = people(counts)
    totals = [frame[name].value_counts().rename("count").rename_axis(name).reset_index() for name in domain]
    table = released(domain, 5, counts).crosstab("region", "sex", totals=totals)
    assert table.loc["W", ["f", "m"]].tolist() == ["0 follows exactly"] * 2
    assert table.loc["N", "f"] == "<5"


def test_weights_of_a_column_give_weighted_cells_and_intervals(release) -> None:
    weights = {"f": 2.0, "m": 0.5, "x": 1.25}
    frame = people(COUNTS)
    frame["weight"] = frame["sex"].map(weights)
    wide = pd.crosstab(frame["region"], frame["sex"], values=frame["weight"], aggfunc="sum", margins=True)
    table = release.crosstab("region", "sex", margins=True, weights={"sex": weights})
    for region, sex in COUNTS:
        assert table.loc[region, sex] == (wide.loc[region, sex] if COUNTS[region, sex] >= K else "suppressed")
    # Of x at most two people are hidden in each region, of f in S.
    assert table["Total"].tolist() == ["16.5 to 19.0", "3.0 to 9.5", "19.5 to 28.5"]
    assert table.loc["Total", "m"] == wide.loc["All", "m"]
    for region, text in zip(("N", "S", "All"), table["Total"], strict=True):
        least, most = map(float, text.split(" to "))
        assert least <= wide.loc[region, "All"] <= most
    over = release.crosstab("region", "sex", weights={"region": {"N": 0.1, "S": 0.3}}, margins=True)
    assert over.loc["N", "f"] == 0.7
    noised = released(k=5, below="noise", noise=pkdp.GeometricNoise(1.0)).crosstab(
        "region", "sex", weights={"sex": weights}
    )
    assert str(noised.loc["N", "x"]).startswith("≈ ")
    with pytest.raises(pkdp.ArgumentError, match="one of both"):
        release.crosstab("region", "sex", weights={"sex": weights}, totals=pd.DataFrame({"count": [21]}))
    # Two hidden people who count twice are more than 3.
    assert release.crosstab("region", "sex", weights={"sex": weights}, suppressed="c").loc["N", "x"] == "c"
    with pytest.raises(pkdp.ArgumentError, match="weighted"):
        release.crosstab("region", "sex", weights={"sex": weights}, suppressed="<3")
    with pytest.raises(pkdp.ArgumentError, match="at most"):
        release.crosstab("region", "sex", weights={"sex": weights | {"f": 1e308}})


def test_a_column_of_the_data_is_no_weight(release) -> None:
    frame = people(COUNTS).assign(weight=1.5)
    for wrong in ("weight", frame["weight"], {"sex": "weight"}):
        with pytest.raises(pkdp.ArgumentError, match="counts by the stratum"):
            release.crosstab("region", "sex", weights=wrong)
    with pytest.raises(pkdp.ArgumentError, match="counts by the stratum"):
        frame.pkdp.histogram("region", unit="person", k=K, attacker=ATTACKER, weights="weight")


def test_totals_of_a_release(release) -> None:
    everybody = people(COUNTS)
    table = release.crosstab("region", "sex", margins=True, totals=pd.DataFrame({"count": [len(everybody)]}))
    assert table.loc["Total", "Total"] == len(everybody)
    with pytest.raises(pkdp.ArgumentError, match="totals"):
        release.crosstab("region", "sex", totals=pd.DataFrame({"region": ["N"], "count": [13]}))


def test_noised_counts_are_marked() -> None:
    noised = released(k=5, below="noise", noise=pkdp.GeometricNoise(1.0))
    table = noised.crosstab("region", "sex", margins=True)
    exact = noised.table.set_index(["region", "sex"])
    for cell, row in exact.iterrows():
        assert table.loc[cell] == (int(row["count"]) if row["exact"] else f"≈ {row['count']}")
    assert str(table.loc["N", "Total"]).startswith("≈ ")


def test_bands_have_no_sum() -> None:
    banded = released(k=None, display=pkdp.Bands([0, 3, 6]))
    table = banded.crosstab("region", "sex", margins=True)
    assert table.loc["N"].tolist() == ["6 or more", "3–5", "0–2", "9 or more"]


def test_found_cells_are_sorted_and_hidden_where_there_is_no_row() -> None:
    table = released(domain=None).crosstab("region", "sex", margins=True)
    assert list(table.columns) == ["f", "m", "Total"]
    assert table.loc["S", "f"] == "<3"
    assert table["Total"].tolist() == ["12 or more", "6 or more", "18 or more"]
    nothing = released(domain=None, k=50)
    assert nothing.crosstab("region", "sex").shape == (0, 0)
    assert nothing.crosstab("region", "sex", margins=True).loc["Total", "Total"] == "0 or more"


def test_a_missing_value_is_a_row() -> None:
    frame = people(COUNTS)
    frame.loc[frame["sex"] == "f", "sex"] = None
    table = frame.pkdp.histogram(["region", "sex"], unit="person", k=K, attacker=ATTACKER).crosstab("region", "sex")
    assert table.loc["N", "(missing)"] == 7


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"suppressed": "12"}, "number"),
        ({"suppressed": "≈ 4"}, "number"),
        ({"suppressed": "<30"}, "below k = 3"),
        ({"suppressed": "≤3"}, "below k = 3"),
        ({"suppressed": "0 to 3"}, "below k = 3"),
        ({"suppressed": "=A1"}, "formula"),
        ({"suppressed": ""}, "text"),
        ({"suppressed": " c"}, "blanks"),
        ({"suppressed": 3}, "text"),
        ({"margins": ""}, "margins"),
        ({"rows": "sex"}, "twice"),
        ({"rows": "county"}, "by-columns"),
        ({"rows": []}, "rows"),
        ({"totals": 7}, "totals"),
    ],
)
def test_what_means_nothing_is_refused(release, arguments, rule) -> None:
    with pytest.raises(pkdp.ArgumentError, match=rule):
        release.crosstab(**{"rows": "region", "columns": "sex", **arguments})


def test_a_marker_may_say_the_rule(release) -> None:
    assert release.crosstab("region", "sex", suppressed="≤2").loc["N", "x"] == "≤2"
    assert release.crosstab("region", "sex", suppressed="fewer than 3").loc["N", "x"] == "fewer than 3"


def test_totals_that_do_not_fit_together_are_refused() -> None:
    counts = {("N", "f"): 1, ("N", "m"): 2, ("S", "f"): 2, ("S", "m"): 0}
    domain = {"region": ["N", "S"], "sex": ["f", "m"]}
    release = released(domain, 3, counts)
    by_region = pd.DataFrame({"region": ["N", "S"], "count": [4, 2]})
    by_sex = pd.DataFrame({"sex": ["f", "m"], "count": [1, 1]})
    with pytest.raises(pkdp.ArgumentError, match="fit together"):
        release.crosstab("region", "sex", margins=True, totals=[by_region, by_sex])


def test_totals_say_nothing_of_counts_that_are_shown_otherwise() -> None:
    shown = released(k=5, display=pkdp.Rounding(5, "down"))
    totals = pd.DataFrame({"region": ["N", "S"], "count": [13, 8]})
    for ask in (shown.within, lambda known: shown.crosstab("region", "sex", totals=known)):
        with pytest.raises(pkdp.ArgumentError, match="display"):
            ask(totals)
    margins = shown.crosstab("region", "sex", margins=True)["Total"]
    assert margins["N"] == "10 to 22"


def test_noised_bands_have_no_sum() -> None:
    banded = released(k=None, noise=pkdp.GeometricNoise(1.0), display=pkdp.Bands([0, 3, 6]))
    assert banded.rollup([])["count"].isna().all()
    assert banded.crosstab("region", "sex", margins=True).loc["Total", "Total"] == "no total"


def test_a_value_is_no_margin_and_no_missing_one() -> None:
    counts = {("Total", "f"): 5, ("(missing)", "f"): 5, ('"(missing)"', "f"): 5, (None, "f"): 5}
    release = people(counts).pkdp.histogram(["region", "sex"], unit="person", k=K, attacker=ATTACKER)
    with pytest.raises(pkdp.ArgumentError, match="Total"):
        release.crosstab("region", "sex", margins=True)
    labels = ['""(missing)""', '"(missing)"', "All", "Total", "(missing)"]
    assert sorted(release.crosstab("region", "sex", margins="All").index) == sorted(labels)
