"""The change that is offered for a refused job runs, nothing nearer does, and assumptions stay."""

from __future__ import annotations

import random
import shutil
import tomllib
from bisect import bisect_right
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import few, one_in, thinned

from pkdp_pipeline.certificates.release_certificate import Target, certify
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    PkdpError,
    exit_code,
)
from pkdp_pipeline.extras.plan.edits import Change, Edit, edited, value_at
from pkdp_pipeline.extras.plan.repair import EPSILONS, Repairs, repair
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.job import read_job
from pkdp_pipeline.jobs.session import backfill
from pkdp_pipeline.model.attacker import AttackerModel

EXAMPLES = Path(__file__).parents[2] / "examples"
DAY = date(2020, 1, 1)
DAYS = tuple(DAY + timedelta(days=number) for number in range(5))
HEAD = """# the visits of a month
dataset = "visits"
source = "visits.parquet"
period = { column = "day" }   # one release a day
unit = "person"
ledger = "out/ledger.sqlite"
"""
ATTACKER = "[attacker]\np_max = 0.5  # argued in the data sheet\n"
TAIL = '\n[output]\ndirectory = "out"\n'
TOWNS = '[[release]]\nname = "by_town"\nby = "town"\n'
ADULTS = '[[release]]\nname = "adults"\nwhere = "adult"\n'
PARTIAL = 'budget = { epsilon = 2.0, delta = 1e-6, part = "partial_knowledge" }\n'


@pytest.fixture
def few_kinds(monkeypatch):
    """Let no noise with a threshold be tried, where it is not looked at: it takes long."""
    if few(100) < 100:
        monkeypatch.setattr("pkdp_pipeline.extras.plan.repair._noise_and_threshold", lambda *_: None)


def job(releases: str, *, attacker: str = ATTACKER, terms: str = "") -> str:
    return f"{HEAD}{terms}\n{attacker}\n{releases}{TAIL}"


def written(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return path


def visits(days=DAYS) -> pd.DataFrame:
    rows = [
        (day, f"{town} {n}", town, n % 2 == 0, "fm"[n % 2]) for day in days for town in ("Ås", "Bø") for n in range(150)
    ]
    return pd.DataFrame(rows, columns=["day", "person", "town", "adult", "sex"])


def changed(path: Path, edits) -> Path:
    """Write what a job file says with some edits, beside it."""
    other = path.with_name("changed.toml")
    other.write_text(edited(path.read_text(encoding="utf-8"), edits), encoding="utf-8")
    return other


def is_refused(path: Path, days) -> bool:
    try:
        # As if the changes had been made in the file itself.
        job = read_job(path.read_text(encoding="utf-8"), path.with_name("job.toml"))
        return plan_job(job, days).refused is not None
    except (ArgumentError, ConfigError):
        return True
    except PkdpError as error:
        if exit_code(error) != 4:
            raise
        return True


def reaches(path: Path, target: Target, days) -> bool:
    """Whether every release of a job has its share of a target; of several days by its noise alone."""
    loaded = load_job(path)
    share = 1 / len(loaded.release)
    for release in loaded.release:
        try:
            alone = release.noise is None or len(days) == 1 or loaded.evidence
            attacker = loaded.attacker_of(release) if alone else AttackerModel()
            certificate = certify(release.mechanism, attacker, protects=release.protects)
        except PkdpError:
            return False
        if not certificate.delta(target.epsilon * share) <= target.delta * share:
            return False
    return True


def nearer(edit: Edit, old):
    """Return the values just short of an edit, all others being equal; empty where it is no number."""
    if edit.path[-1] in ("k", "k_complement", "release_threshold"):
        return [edit.value - 1] if edit.value is not None and edit.value - 1 > (old or 0) else []
    if edit.path[-1] == "epsilon" or (edit.path[-1] == "noise" and edit.value is not None):
        value = edit.value["epsilon"] if edit.path[-1] == "noise" else edit.value
        step = EPSILONS[bisect_right(EPSILONS, value)]
        if old is not None and step >= (old["epsilon"] if isinstance(old, dict) else old):
            return []
        return [{"epsilon": step} if edit.path[-1] == "noise" else step]
    return []


def family(edit: Edit) -> str:
    return "noise" if edit.path[-1] == "epsilon" else str(edit.path[-1])


def check(path: Path, days, target: Target | None = None, repairs: Repairs | None = None) -> Change | None:
    """Check the change that is offered for a job; return it."""
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    repairs = repairs or repair(path, days, target=target)
    assert {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()} == before
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    change = repairs.change
    if change is None:
        return None
    other = changed(path, change.edits)
    assert other.read_text(encoding="utf-8") == change.text
    assert not is_refused(other, repairs.tried_days)
    if repairs.target is not None and len(content["release"]) == 1:
        assert reaches(other, repairs.target, days)
    for number, edit in enumerate(change.edits):
        # Only what removes an assumption may touch one.
        assert "attacker" not in edit.path or edit.value is None
        assert edit.path[0] in ("release", "attacker")
        # What several releases get in common is the least for all of them, and not for each.
        alike = [each for each in change.edits if family(each) == family(edit)]
        alone = sum(value_at(content, each.path) != each.value for each in alike) == 1
        for value in nearer(edit, value_at(content, edit.path)) if alone else []:
            edits = list(change.edits)
            edits[number] = Edit(path=edit.path, value=value)
            short = changed(path, edits)
            refused = is_refused(short, repairs.tried_days)
            assert refused or (repairs.target is not None and not reaches(short, repairs.target, days)), (edit, value)
    return change


@pytest.mark.parametrize(
    ("releases", "attacker", "edits"),
    one_in(
        6,
        [
            (TOWNS + "k = 1\n", ATTACKER, [(("release", 0, "k"), 60)]),
            (
                TOWNS + "k = 20\n",
                '[attacker]\np_max = 0.3\nknown = 30\ninfluence = "active"\n',
                [(("release", 0, "k"), 71)],
            ),
            (
                TOWNS + "k = 20\n",
                "",
                [(("release", 0, "noise"), {"epsilon": 1.0}), (("release", 0, "release_threshold"), 34)],
            ),
            (ADULTS, "", [(("release", 0, "noise"), {"epsilon": 1.0})]),
            (ADULTS + "k = 20\nnoise = { epsilon = 0.5 }\n", "", [(("release", 0, "k"), None)]),
            (
                ADULTS + "k_complement = 5\n",
                "",
                [(("release", 0, "noise"), {"epsilon": 1.0}), (("release", 0, "k_complement"), None)],
            ),
        ],
    ),
)
def test_what_is_not_certifiable_is_mended_by_the_least(tmp_path, request, releases, attacker, edits):
    if attacker:
        request.getfixturevalue("few_kinds")
    path = written(tmp_path, job(releases, attacker=attacker))
    smallest = check(path, [DAY])
    # A release threshold or no k: both are one key, and where ε stays k is no help.
    assert [(edit.path, edit.value) for edit in smallest.edits] == edits or smallest.keys == len(edits) == 1
    assert smallest.keys == len(edits)


def test_a_target_is_reached_and_not_overshot(tmp_path, few_kinds):
    path = written(tmp_path, job(TOWNS + "k = 1\n"))
    for target in (Target(epsilon=2.0, delta=1e-9),):
        edit = check(path, [DAY], target).edits[0]
        loaded = load_job(path)
        certified = [
            certify(type(loaded.release[0].mechanism)(k=k), loaded.attacker_model())
            for k in (edit.value, edit.value - 1)
        ]
        assert certified[0].delta(target.epsilon) <= target.delta < certified[1].delta(target.epsilon)


@pytest.mark.slow
def test_a_job_that_runs_can_be_asked_for_more(tmp_path, few_kinds):
    path = written(tmp_path, job(TOWNS + "k = 60\n"))
    assert not repair(path, [DAY], target=Target(epsilon=1.0)).short
    repairs = repair(path, [DAY], target=Target(epsilon=0.9))
    assert (repairs.short, repairs.error) == (True, None)
    assert check(path, [DAY], Target(epsilon=0.9), repairs).edits[0].path == ("release", 0, "k")


def test_what_is_published_stays(tmp_path):
    visits().to_parquet(tmp_path / "visits.parquet")
    path = written(tmp_path, job(TOWNS + "k = 60\n"))
    run_job(load_job(path), DAY)
    repairs = repair(path, [DAY], target=Target(epsilon=0.9))
    assert (repairs.short, repairs.tried_days, repairs.change) == (True, (), None)


@pytest.mark.parametrize("noised", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_second_day_needs_noise_or_evidence(tmp_path, monkeypatch, noised):
    if not noised:
        # Which noise it is takes most of a minute.
        monkeypatch.setattr("pkdp_pipeline.extras.plan.repair._noise_and_threshold", lambda *_: None)
    path = written(tmp_path, job(TOWNS + "k = 60\n"))
    repairs = repair(path, DAYS[:2])
    assert isinstance(repairs.error, DifferencingError)
    assert repairs.day == DAYS[1]
    change = check(path, DAYS[:2], repairs=repairs)
    assert (change is not None) == noised  # what may be argued is named by the refusal itself
    if noised:
        assert {edit.path[-1] for edit in change.edits} == {"noise", "release_threshold"}


@pytest.mark.slow
def test_a_budget_over_days_is_kept_by_the_smallest_k(tmp_path):
    terms = 'evidence = { kind = "independent_given_habits" }\n' + PARTIAL
    path = written(tmp_path, job(TOWNS + "k = 60\n", terms=terms))
    repairs = repair(path, DAYS)
    assert isinstance(repairs.error, BudgetExceededError)
    assert [edit.path for edit in check(path, DAYS, repairs=repairs).edits] == [("release", 0, "k")]


def test_found_cells_over_days_need_a_higher_release_threshold(tmp_path):
    terms = "budget = { epsilon = 4.0, delta = 1e-6 }\n"
    path = written(tmp_path, job(TOWNS + "noise = { epsilon = 1 }\nrelease_threshold = 15\n", attacker="", terms=terms))
    assert check(path, DAYS[:4]).edits == (Edit(("release", 0, "release_threshold"), 16),)


@pytest.mark.parametrize(
    ("other", "keys"),
    [
        pytest.param(TOWNS + "noise = { epsilon = 1 }\nk = 30\nbelow = 'noise'\nrelease_threshold = 20\n", 6),
        pytest.param(
            TOWNS + "rows = 'count'\nbounds = [0, 4]\nnoise = { epsilon = 1 }\nrelease_threshold = 20\n"
            '\n[[release]]\nname = "men"\nwhere = "sex == \'m\'"\nk = 30\n',
            7,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_table_beside_noised_small_counts_or_sums_is_noised_with_them(tmp_path, other, keys):
    path = written(tmp_path, job('[[release]]\nname = "by_sex"\nby = "sex"\nk = 60\n\n' + other))
    change = check(path, [DAY])
    assert change.keys == keys
    assert Edit(("attacker",), None) in change.edits
    assert {(edit.path[2], edit.value) for edit in change.edits if edit.path[-1] == "below"} <= {("below", None)}


def test_days_that_are_published_stay_and_count(tmp_path, few_kinds):
    visits().to_parquet(tmp_path / "visits.parquet")
    terms = 'evidence = { kind = "independent_given_habits" }\n' + PARTIAL.replace("2.0", "1.2")
    path = written(tmp_path, job(TOWNS + "k = 60\n", terms=terms))
    run_job(load_job(path), DAY)
    repairs = repair(path, DAYS[:2])
    assert repairs.tried_days == DAYS[1:2]
    smallest = check(path, DAYS[:2], repairs=repairs)
    assert [edit.path for edit in smallest.edits] == [("release", 0, "k")]
    # The published day, and the one that comes.
    assert smallest.plan.before.epsilon(1e-6) < smallest.plan.after.epsilon(1e-6) <= 1.2


@pytest.mark.slow
def test_windows_are_looked_at_one_by_one(tmp_path, few_kinds):
    terms = "budget = { epsilon = 1.0, delta = 0.0, window_days = 2 }\n"
    path = written(tmp_path, job(ADULTS + "noise = { epsilon = 0.6 }\n", attacker="", terms=terms))
    assert check(path, DAYS[:3]).edits[0].value == 0.5


@pytest.mark.slow
def test_two_releases_share_what_there_is(tmp_path):
    both = "".join(f'[[release]]\nname = "r{n}"\nwhere = "adult == {n}"\nnoise = {{ epsilon = 0.5 }}\n' for n in (0, 1))
    terms = "budget = { epsilon = 2.0, delta = 0.0 }\n"
    path = written(tmp_path, job(both, attacker="", terms=terms))
    assert [edit.value for edit in check(path, DAYS).edits] == [0.2, 0.2]
    path = written(tmp_path, job(both, attacker="", terms=terms.replace("2.0", "0.6")))
    assert [edit.value for edit in check(path, [DAY]).edits] == [0.1]  # one of them is enough


@pytest.mark.slow
def test_views_that_may_not_stand_together_are_noised(tmp_path):
    two = TOWNS + 'k = 60\n\n[[release]]\nname = "by_sex"\nby = "sex"\nk = 50\n'
    path = written(tmp_path, job(two))
    repairs = repair(path, [DAY])
    assert (repairs.plan, repairs.day) == (None, None)
    change = check(path, [DAY], repairs=repairs)
    assert len(change.edits) == 5
    assert Edit(("attacker",), None) in change.edits


@pytest.mark.slow
def test_releases_of_several_kinds_are_noised_together_each_in_its_way(tmp_path):
    own = '\n[[release]]\nname = "by_sex"\nby = "sex"\nk = 5\nattacker = { p_max = 0.2 }\n\n'
    path = written(tmp_path, job(TOWNS + "k = 60\n" + own + ADULTS))
    smallest = check(path, [DAY])
    assert {(*edit.path[1:],) for edit in smallest.edits if edit.path[0] == "release"} == {
        (0, "noise"),
        (0, "release_threshold"),
        (1, "noise"),
        (1, "release_threshold"),
        (1, "attacker"),
        (2, "noise"),
    }
    assert "- attacker = { p_max = 0.2 }" in smallest.diff
    assert "- [attacker]\n- p_max = 0.5" in smallest.diff


@pytest.mark.slow
def test_the_refused_example_runs_with_its_smallest_change(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    path, day = tmp_path / "examples" / "refused_two_views.toml", date(2013, 1, 2)
    change = repair(path, [day]).change
    assert [release.name for release in change.job.release] == ["aircraft_by_carrier", "aircraft_by_origin"]
    file = path.with_name("changed.toml")
    file.write_text(change.text, encoding="utf-8")
    assert len(run_job(load_job(file), day).releases) == 2


@pytest.mark.parametrize(
    ("text", "path", "value", "expected"),
    [
        (
            "[[release]]\nk = 1 # small\n\n# b\n[b]\n",
            ("release", 0, "k"),
            2,
            "[[release]]\nk = 2 # small\n\n# b\n[b]\n",
        ),
        (
            "[[release]]\nk = 1\n\n# b\n[b]\n",
            ("release", 0, "n"),
            {"e": 0.5},
            "[[release]]\nk = 1\nn = { e = 0.5 }\n\n# b\n[b]\n",
        ),
        ("[[release]]\nk = 1   # the smallest with ε at most 1\n", ("release", 0, "k"), 2, "[[release]]\nk = 2\n"),
        ("release = [{ k = 1 }]  # one\n", ("release", 0, "k"), 2, "release = [{ k = 2 }]  # one\n"),
        ("# a\nx = 1\n\n[b]\ny = 2\n", ("b",), None, "# a\nx = 1\n\n"),
    ],
)
def test_comments_and_layout_stay(text, path, value, expected):
    assert edited(text, [Edit(path, value)]) == expected


def test_where_nothing_helps_nothing_is_offered(tmp_path):
    visits().to_parquet(tmp_path / "visits.parquet")
    path = written(tmp_path, job(TOWNS + "k = 60\n"))
    run_job(load_job(path), DAY)
    # Another noiseless view of the day, in a ledger that holds one: no threshold and no noise undoes that.
    other = written(tmp_path, job('[[release]]\nname = "by_sex"\nby = "sex"\nk = 60\n'))
    repairs = repair(other, [DAY])
    assert isinstance(repairs.error, DifferencingError)
    assert repairs.change is None


@thinned(2)
@pytest.mark.parametrize(
    ("releases", "attacker", "terms", "days"),
    [
        (TOWNS + "k = 20\n", "", "", DAYS[:2]),
        (ADULTS, "", "budget = { epsilon = 1.0, delta = 0.0 }\n", DAYS[:3]),
    ],
)
def test_the_changed_file_runs_on_data_for_real(tmp_path, releases, attacker, terms, days):
    visits().to_parquet(tmp_path / "visits.parquet")
    text = repair(written(tmp_path, job(releases, attacker=attacker, terms=terms)), days).change.text
    assert "# the visits of a month" in text
    done = backfill(load_job(written(tmp_path, text)), days[0], days[-1])
    assert done.published == tuple(days)


@st.composite
def refusable(draw):
    """A job that is likely to be refused."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    releases = ""
    for number in range(rng.choice([1, 1, 1, 2])):
        table: dict[str, object] = {"name": f"r{number}"}
        histogram = rng.random() < 0.6
        if histogram:
            table["by"] = ("town", "sex")[number]  # to ask twice for the same is refused
            if rng.random() < 0.5:
                table["domain"] = ["a", "b"]
            if rng.random() < 0.3:
                table["protects"] = "value"
        else:
            table["where"] = ("adult", "town == 'x'")[number]
        if rng.random() < 0.7 or (histogram and "domain" not in table):
            table["k"] = rng.choice([1, 5, 40, 70])
        if rng.random() < 0.3:
            table["noise"] = {"epsilon": rng.choice([0.3, 1.7, 12.0])}
            if rng.random() < 0.5 or "domain" not in table:
                table["release_threshold"] = rng.choice([3, 30, 90])
        elif not histogram and rng.random() < 0.3:
            table["k_complement"] = rng.choice([1, 30])
        releases += tomlkit.dumps({"release": [table]}).lstrip()
    fields = {"p_max": [None, 0.1, 0.8, 1.0], "known": [None, None, 3, 50], "p_max_between": [None, None, 0.7]}
    declared = {name: value for name, choices in fields.items() if (value := rng.choice(choices)) is not None}
    attacker = tomlkit.dumps({"attacker": declared}).lstrip() if declared else ""
    terms = rng.choice(["", "", 'evidence = { kind = "independent_given_habits" }\n'])
    terms += rng.choice(["", PARTIAL, "budget = { epsilon = 1.5, delta = 1e-6 }\n"])
    return job(releases, attacker=attacker, terms=terms), rng.choice([1, 1, 2])


@pytest.mark.slow
def test_whatever_is_offered_for_generated_jobs_runs_and_nothing_nearer_does(tmp_path):
    number_of = {"refused": 0, "changed": 0}

    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(drawn_job=refusable())
    def every_job(drawn_job):
        text, number = drawn_job
        path = written(tmp_path, text)
        try:
            load_job(path)
        except ConfigError:
            return
        days = DAYS[:number]
        if not is_refused(path, days):
            assert repair(path, days).change is None
            return
        number_of["refused"] += 1
        number_of["changed"] += check(path, days) is not None

    every_job()
    assert number_of["refused"] >= 30
    assert number_of["changed"] >= 20
