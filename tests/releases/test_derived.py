"""What is derived from a public table is exactly what it allows: every true table behind it is enumerated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.releases import derived
from pkdp_pipeline.releases.release import Release

NOISE = pkdp.GeometricNoise(1.0)
ATTACKER = pkdp.AttackerModel(p_max=0.1)
#: The most people in a cell that the enumerations try; every k is below it.
MAX_PEOPLE = 4
CELLS = [("x", "s"), ("x", "t"), ("y", "s"), ("y", "t"), (None, "s")]
FLAGS = [("x", True), ("x", False), ("x", None), ("y", True), ("y", False), ("y", None)]
OTHERS = [("z", True), ("z", False), ("z", None)]


def table_of(shown, *, flag=False):
    """Return a public table with by-columns a and b; None is a suppressed cell."""
    return pd.DataFrame(
        {
            "a": pd.Series([a for a, _ in shown], dtype="str"),
            "b": pd.Series([b for _, b in shown], dtype="boolean" if flag else "str"),
            "count": pd.array(list(shown.values()), dtype="Int64"),
        }
    )


def whole(column):
    return [None if value is pd.NA else int(value) for value in column]


def could_be(true, shown, mechanism):
    """Return whether `true` people in a cell may be published as `shown`; None is a suppressed cell."""
    reaches = mechanism.k is None or true >= mechanism.k
    if mechanism.noise is None:
        return shown == (true if reaches else None)
    if shown is None:
        return not reaches or mechanism.release_threshold is not None
    return reaches and shown >= (-math.inf if mechanism.release_threshold is None else mechanism.release_threshold)


def true_tables(shown, mechanism, cells):
    """Yield every table over `cells`, of at most MAX_PEOPLE people each, that may be published as `shown`."""
    choices = [[true for true in range(MAX_PEOPLE + 1) if could_be(true, shown.get(cell), mechanism)] for cell in cells]
    for counts in itertools.product(*choices):
        yield dict(zip(cells, counts, strict=True))


def group_of(cell, by):
    return tuple(cell["ab".index(name)] for name in by or [])


def allowed_totals(shown, mechanism, cells, by):
    """Return each group's fewest and most people over all true tables; None where a cell's people have no end."""
    spans = []
    for group in dict.fromkeys(group_of(cell, by) for cell in shown) if by else [()]:
        inside = [cell for cell in cells if group_of(cell, by) == group]
        tables = list(true_tables(shown, mechanism, inside))
        totals = [sum(true.values()) for true in tables]
        # No true count drawn, and no k, is as large as MAX_PEOPLE: only what has no end gets there.
        endless = any(MAX_PEOPLE in true.values() for true in tables)
        spans.append((min(totals), None if endless else max(totals)))
    return spans


@st.composite
def mechanisms(draw, *, declared=True):
    noise = draw(st.sampled_from([None, NOISE]))
    thresholds = [None, 0, 2] if declared else [0, 2]
    return pkdp.Histogram(
        k=draw(st.sampled_from([2, 3, 1, None] if declared else [2, 3, 1])),
        noise=noise,
        release_threshold=draw(st.sampled_from(thresholds)) if noise else None,
    )


@st.composite
def publications(draw, cells, mechanism):
    """Draw true counts and publish them as the mechanism might; None is a suppressed cell."""
    shown = {}
    for cell in cells:
        true = draw(st.integers(0, MAX_PEOPLE - 1))
        value = true + draw(st.integers(-3, 3)) if mechanism.noise else true
        hidden = (mechanism.k is not None and true < mechanism.k) or (
            mechanism.release_threshold is not None and value < mechanism.release_threshold
        )
        shown[cell] = None if hidden else value
    return shown


@st.composite
def declared_tables(draw):
    mechanism = draw(mechanisms())
    cells = draw(st.permutations(CELLS).flatmap(lambda cells: st.integers(1, 4).map(lambda size: cells[:size])))
    return mechanism, draw(publications(cells, mechanism))


@st.composite
def undeclared_tables(draw):
    mechanism = draw(mechanisms(declared=False))
    shown = draw(publications(FLAGS, mechanism))
    return mechanism, {cell: value for cell, value in shown.items() if value is not None}


bys = st.sampled_from([[], ["a"], ["b"], ["a", "b"]])


@settings(max_examples=few(200, 25))
@given(declared_tables(), bys)
def test_an_interval_is_what_the_true_tables_of_a_declared_domain_span(published, by):
    mechanism, shown = published
    totals = derived.rollup(table_of(shown), mechanism, by, declared=True)
    expected = allowed_totals(shown, mechanism, list(shown), by)
    assert list(zip(whole(totals["least"]), whole(totals["most"]), strict=True)) == expected
    if mechanism.noise is None:
        assert whole(totals["count"]) == [least if least == most else None for least, most in expected]


@settings(max_examples=few(120, 12))
@given(undeclared_tables(), bys)
def test_cells_without_a_row_are_in_the_interval(published, by):
    # All flags of x and y are cells that may exist, shown or not. So may cells of other values of a.
    mechanism, shown = published
    totals = derived.rollup(table_of(shown, flag=True), mechanism, by, declared=False)
    expected = allowed_totals(shown, mechanism, FLAGS, by)
    if "a" not in by:
        beyond = allowed_totals(shown, mechanism, [*FLAGS, *(OTHERS if by else OTHERS[:1])], by)
        expected = [
            (least, most if more == most else None) for (least, most), (_, more) in zip(expected, beyond, strict=True)
        ]
    assert list(zip(whole(totals["least"]), whole(totals["most"]), strict=True)) == expected


@given(declared_tables(), st.sampled_from([None, [], "a", ["b", "a"]]))
def test_a_share_is_in_its_interval_and_the_interval_is_no_wider(published, by):
    mechanism, shown = published
    shares = derived.shares(table_of(shown), mechanism, by, declared=True)
    spans = {cell: [] for cell in shown}
    for true in true_tables(shown, mechanism, list(shown)):
        for cell in shown:
            total = sum(
                people for other, people in true.items() if group_of(other, by or []) == group_of(cell, by or [])
            )
            if total:
                spans[cell].append(Fraction(true[cell], total))
    bounded = mechanism.noise is None
    for (cell, possible), least, most, share in zip(
        spans.items(), shares["least"], shares["most"], shares["share"], strict=True
    ):
        if not possible:
            assert least is pd.NA
            assert most is pd.NA
            continue
        lowest, highest = min(possible), max(possible)
        assert Fraction(least) <= lowest <= highest <= Fraction(most), cell
        if bounded:
            assert Fraction(math.nextafter(least, 2)) > lowest
            assert Fraction(math.nextafter(most, -1)) < highest
            assert (share is pd.NA) == (lowest != highest)
            assert share is pd.NA or share == float(lowest)


@pytest.mark.parametrize(
    ("mechanism", "shown", "interval"),
    [
        (pkdp.Count(k=3), 4, (4, 4)),
        (pkdp.Count(k=3), None, (0, 2)),
        (pkdp.Count(k=1), None, (0, 0)),
        (pkdp.Count(k=3, k_complement=2), None, (0, None)),
        (pkdp.Count(k_complement=2), None, (0, None)),
        (pkdp.Count(k_complement=2), 5, (5, 5)),
        (pkdp.Count(noise=NOISE), -2, (0, None)),
        (pkdp.Count(k=3, noise=NOISE), 1, (3, None)),
        (pkdp.Count(k=3, noise=NOISE), None, (0, 2)),
        (pkdp.Count(k=3, noise=NOISE, release_threshold=3), None, (0, None)),
    ],
)
def test_a_count_has_an_interval_too(mechanism, shown, interval):
    table = pd.DataFrame({"count": pd.array([shown], dtype="Int64")})
    totals = derived.rollup(table, mechanism, [], declared=False)
    assert (whole(totals["least"]), whole(totals["most"])) == ([interval[0]], [interval[1]])


def test_noisy_totals_are_sums_of_what_was_published_and_say_their_error():
    shown = {("x", "s"): 25, ("x", "t"): -3, ("y", "s"): None, ("y", "t"): 20}
    mechanism = pkdp.Histogram(noise=NOISE, release_threshold=0)
    totals = derived.rollup(table_of(shown), mechanism, "a", declared=False)
    assert list(totals.columns) == ["a", "count", "error", "least", "most"]
    assert whole(totals["count"]) == [22, None]
    # Var Z = 2α / (1 - α)² for each of the two noises.
    alpha = math.exp(-NOISE.epsilon)
    assert totals["error"][0] == pytest.approx(math.sqrt(2 * 2 * alpha) / (1 - alpha))
    assert totals["error"][1] is pd.NA
    each = derived.rollup(table_of(shown), mechanism, ["a", "b"], declared=False)["error"]
    assert each[0] == pytest.approx(math.sqrt(2 * alpha) / (1 - alpha))
    ratios = derived.shares(table_of(shown), mechanism, "a", declared=False)["share"]
    assert ratios[:2].tolist() == [25 / 22, -3 / 22]
    assert ratios[2:].isna().all()
    nothing = derived.shares(table_of({("x", "s"): 3, ("x", "t"): -3}), mechanism, None, declared=True)["share"]
    assert nothing.isna().all()


def test_a_domain_that_the_table_does_not_show_can_be_stated():
    shown = {("x", "s"): 25, ("x", "t"): 15}
    for declared, most in ((False, None), (True, 40)):
        totals = derived.rollup(table_of(shown), pkdp.Histogram(k=10), "a", declared=declared)
        assert (whole(totals["least"]), whole(totals["most"]), whole(totals["count"])) == ([40], [most], [most])
    # A gap shows a declared domain; without a k there must be one.
    for mechanism, table in (
        (pkdp.Histogram(k=10), table_of({**shown, ("y", "s"): None})),
        (pkdp.Histogram(), table_of(shown)),
    ):
        assert whole(derived.rollup(table, mechanism, "a", declared=False)["count"])[0] == 40


def test_nothing_published_is_not_nobody():
    empty = table_of({})
    totals = derived.rollup(empty, pkdp.Histogram(k=10), [], declared=False)
    assert (whole(totals["least"]), whole(totals["most"]), whole(totals["count"])) == ([0], [None], [None])
    assert len(derived.rollup(empty, pkdp.Histogram(k=10), "a", declared=False)) == 0
    assert len(derived.shares(empty, pkdp.Histogram(k=10), None, declared=False)) == 0


def test_bounds_that_do_not_fit_are_given_up_in_the_safe_direction():
    table = table_of({("x", "s"): 2**63 - 1, ("x", "t"): 2**63 - 1})
    totals = derived.rollup(table, pkdp.Histogram(), "a", declared=True)
    assert (whole(totals["least"]), whole(totals["most"]), whole(totals["count"])) == ([2**63 - 1], [None], [None])


@given(declared_tables(), st.integers(1, 7), st.sampled_from([None, [], "a"]))
def test_rounded_counts_are_nearest_multiples_and_intervals_still_hold(published, base, by):
    mechanism, shown = published
    table = table_of(shown)
    plain = derived.rollup(table, mechanism, ["a", "b"] if by is None else by, declared=True)
    rounded = derived.rounded(table, mechanism, base, by, declared=True)
    assert list(rounded.columns) == list(plain.columns)
    for name in ("count", "least", "most"):
        for before, after in zip(whole(plain[name]), whole(rounded[name]), strict=True):
            assert (before is None) == (after is None)
            if before is None:
                continue
            assert after % base == 0
            if name == "count":
                assert after == base * round(Fraction(before, base))
            else:
                assert 0 <= (before - after if name == "least" else after - before) < base


def test_groups_come_in_the_table_order_and_missing_is_a_key():
    shown = {("y", "s"): 12, (None, "s"): 13, ("x", "s"): None, ("y", "t"): 14, (None, "t"): None, ("x", "t"): 11}
    totals = derived.rollup(table_of(shown), pkdp.Histogram(k=10), ["a"], declared=False)
    assert [None if pd.isna(key) else key for key in totals["a"]] == ["y", None, "x"]
    assert totals["a"].dtype == table_of(shown)["a"].dtype
    assert whole(totals["least"]) == [26, 13, 11]
    assert whole(totals["most"]) == [26, 22, 20]
    assert list(derived.rollup(table_of(shown), pkdp.Histogram(k=10), ["b", "a"], declared=False).columns[:2]) == [
        "b",
        "a",
    ]


@thinned(3)
@pytest.mark.parametrize(
    "domain",
    [
        [1, 2],
        [1, None],
        [True, False],
        [1.5, None],
        ["x", None],
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("Europe/Oslo"),
        pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])).dt.date,
    ],
    ids=str,
)
def test_keys_of_every_kind_stay_what_they_are(domain):
    domain = list(domain)
    frame = pd.DataFrame({"u": range(12), "c": pd.Series([domain[0]] * 12), "d": "p"})
    if type(domain[0]).__name__ == "date":
        frame["c"] = frame["c"].astype("date32[pyarrow]")
    release = frame.pkdp.histogram(["c", "d"], unit="u", attacker=ATTACKER, k=10, domain={"c": domain, "d": ["p", "q"]})
    totals = release.rollup("c")
    pd.testing.assert_series_equal(totals["c"], release.table["c"].iloc[[0, 2]].reset_index(drop=True))
    assert whole(totals["least"]) == [12, 0]
    assert whole(totals["most"]) == [21, 18]


@pytest.fixture
def release():
    frame = pd.DataFrame({"u": range(42), "c": ["a"] * 12 + ["b"] * 30, "d": "p"})
    return frame.pkdp.histogram(
        ["c", "d"], unit="u", attacker=ATTACKER, k=10, domain={"c": ["a", "b"], "d": ["p", "q"]}
    )


def test_a_release_answers_from_its_file_alone(release):
    again = Release.from_bytes(release.to_bytes())
    for ask in (
        lambda given: given.rollup("c"),
        lambda given: given.rollup([]),
        lambda given: given.shares("c"),
        lambda given: given.shares(),
        lambda given: given.rounded(25),
        lambda given: given.rounded(25, "d"),
    ):
        pd.testing.assert_frame_equal(ask(again), ask(release))
        assert ask(release).attrs == {"release_id": release.id}
    changed = release.shares()
    changed.loc[:, "c"] = "z"
    assert release.verify()
    assert release.table["c"].tolist() == ["a", "a", "b", "b"]


@thinned(3)
@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda given: given.rollup("e"), r"by names column 'e', .* It has 'c', 'd'\."),
        (lambda given: given.rollup(["c", "dd"]), "Did you mean 'd'"),
        (lambda given: given.rollup("count"), "the release's key"),
        (lambda given: given.rollup(["c", "c"]), "twice"),
        (lambda given: given.rollup(None), r"\[\] is the grand total"),
        (lambda given: given.rollup([1]), r"\[\] is the grand total"),
        (lambda given: given.shares("e"), "by names column 'e'"),
        (lambda given: given.rounded(0), "base must be at least 1"),
        (lambda given: given.rounded(2.5), "base must be a whole number"),
        (lambda given: given.rounded(5, "e"), "by names column 'e'"),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_why(release, ask, words):
    with pytest.raises(pkdp.ArgumentError, match=words):
        ask(release)


def test_a_count_has_no_columns_to_roll_up_or_share():
    count = pd.DataFrame({"u": range(12)}).pkdp.count(unit="u", attacker=ATTACKER, k=10)
    assert whole(count.rollup([])["count"]) == [12]
    assert whole(count.rounded(5)["count"]) == [10]
    with pytest.raises(pkdp.ArgumentError, match="It has no columns"):
        count.rollup("c")
    with pytest.raises(pkdp.ArgumentError, match="a count has none"):
        count.shares()


@pytest.mark.parametrize("name", ["least", "Most", "error"])
def test_a_column_that_the_result_has_itself_is_left_out_or_refused(name):
    table = table_of({("x", "s"): 12, ("x", "t"): 13}).rename(columns={"b": name})
    assert whole(derived.rollup(table, pkdp.Histogram(k=10), "a", declared=True)["count"]) == [25]
    with pytest.raises(pkdp.ArgumentError, match=f"by-column '{name}' has the name of a column"):
        derived.rollup(table, pkdp.Histogram(k=10), name, declared=True)


@st.composite
def noised_below(draw):
    """Return true counts, and what is published of them: exact from k on, smaller ones noised, some left out."""
    k, from_1 = draw(st.integers(2, 6)), draw(st.booleans())
    release = draw(st.integers(0, 8)) if from_1 or draw(st.booleans()) else None
    mechanism = pkdp.Histogram(k=k, noise=NOISE, below="noise_from_1" if from_1 else "noise", release_threshold=release)
    cells = draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3, unique=True))
    true = {cell: draw(st.sampled_from([0, 1, k - 1, k, 12])) for cell in cells}
    noise = {cell: draw(st.integers(-20, 20)) for cell in cells}
    shown = {}
    for cell, people in true.items():
        hidden = people < k and (
            people + noise[cell] < (-99 if release is None else release) or (from_1 and not people)
        )
        shown[cell] = None if hidden else people if people >= k else people + noise[cell]
    rows = {cell: value for cell, value in shown.items() if value is not None or not from_1}
    table = table_of(rows)
    marks = [None if value is None else true[cell] >= k for cell, value in rows.items()]
    return true, noise, mechanism, table.assign(exact=pd.array(marks, dtype="boolean")), not from_1


@given(noised_below(), st.sampled_from([["a"], ["b"], ["a", "b"], []]), st.integers(1, 7))
@settings(max_examples=few(200, 20), deadline=None)
def test_true_totals_and_shares_are_within_what_noised_cells_leave_open(drawn, by, base):
    true, noise, mechanism, table, declared = drawn
    keys = [tuple(None if pd.isna(part) else part for part in row) for row in table[["a", "b"]].itertuples(index=False)]
    places = [["a", "b"].index(name) for name in by]
    shown, exact = dict(zip(keys, whole(table["count"]), strict=True)), dict(zip(keys, table["exact"], strict=True))

    def group(cell):
        return tuple(cell[place] for place in places)

    totals = derived.rollup(table, mechanism, by, declared=declared)
    rounded = derived.rounded(table, mechanism, base, by, declared=declared)
    deviation = derived.expected_error(mechanism).standard_deviation
    for row in range(len(totals)):
        key = tuple(None if pd.isna(totals[name][row]) else totals[name][row] for name in by)
        cells = [cell for cell in true if group(cell) == key]
        people = sum(true[cell] for cell in cells)
        for frame in (totals, rounded):
            least, most = whole(frame["least"])[row], whole(frame["most"])[row]
            assert least <= people
            assert most is None or people <= most
        count = whole(totals["count"])[row]
        if count is not None and declared:
            # What is wrong with the estimate is the noise of the cells that are marked as noised, and nothing else.
            noised = [cell for cell in cells if not exact[cell]]
            assert count - people == sum(noise[cell] for cell in noised)
            assert totals["error"][row] == pytest.approx(deviation * math.sqrt(len(noised)))
        if count is not None and all(exact.get(cell) is True for cell in cells) and declared:
            assert whole(totals["least"])[row] == people == whole(totals["most"])[row]
    shares = derived.shares(table, mechanism, by or None, declared=declared)
    for place, cell in enumerate(keys):
        people = sum(true[other] for other in true if group(other) == group(cell))
        if people:
            share, (least, most) = true[cell] / people, (shares[name][place] for name in ("least", "most"))
            assert pd.isna(least) or least <= share + 1e-12
            assert pd.isna(most) or share - 1e-12 <= most
        assert shown[cell] is None or exact[cell] == (true[cell] >= mechanism.k)
