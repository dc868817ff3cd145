from __future__ import annotations

import datetime
import re
import runpy
import shutil
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from pkdp_pipeline.certificates.certificate import Certificate
from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.errors import BudgetExceededError, DifferencingError, NotCertifiableError
from pkdp_pipeline.extras.report import pages as forms
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.releases.release import read_release

pytestmark = pytest.mark.default_target

EXAMPLES = Path(__file__).parents[1] / "examples"
DAY = datetime.date(2013, 1, 2)


@pytest.fixture
def folder(tmp_path):
    """The examples, away from the repository; the data are linked."""
    for path in [*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("*.py")]:
        shutil.copy(path, tmp_path)
    (tmp_path / "data").symlink_to(EXAMPLES / "data")
    return tmp_path


def run_dates(folder, days):
    job = load_job(folder / "daily_flights.toml")
    for day in days:
        result = run_job(job, day)
        (published,) = result.releases
        assert not result.replayed
        assert (published.release.table["count"] >= 50).all()
        release = read_release(published.files[0])
        assert release.id == published.release.id
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert [entry.period for entry in ledger.entries()] == [day.isoformat() for day in days]
        before = ledger.head()
        # A second run replays everything and costs nothing.
        assert all(run_job(job, day).replayed for day in days)
        assert ledger.head() == before
        ledger.verify(head=result.head)
        total = ledger.total()
    assert total.releases == len(days)
    assert not total.whole
    assert total.epsilon(1e-6) == release.certificate.epsilon(1e-6) <= 1.2
    sentence = total.sentence()
    assert sentence.startswith(f"Any one of {len(days)} releases: private at ε = 1.16, δ = 1e-6")
    assert "it does not protect which cell she is in" in sentence
    assert "It does not protect what several releases together tell about her." in sentence


def test_the_main_job_publishes_the_carriers_with_fifty_aircraft(folder):
    result = run_job(load_job(folder / "daily_flights.toml"), DAY)
    (published,) = result.releases
    assert dict(published.release.table.itertuples(index=False, name=None)) == {
        "UA": 149,
        "DL": 117,
        "B6": 103,
        "AA": 82,
        "EV": 82,
    }
    assert published.release.certificate.verify()


def test_a_date_of_every_quarter_in_one_process(folder):
    run_dates(folder, [datetime.date(2013, 1, 1) + datetime.timedelta(days=91 * n) for n in range(4)])


@pytest.mark.slow
def test_all_365_dates_in_one_process(folder):
    run_dates(folder, [datetime.date(2013, 1, 1) + datetime.timedelta(days=n) for n in range(365)])


def test_the_noisy_alternative_adds_up_its_worst_cases(folder):
    job = load_job(folder / "daily_flights_noisy.toml")
    assert job.ledger != load_job(folder / "daily_flights.toml").ledger
    result = run_job(job, DAY)
    epsilon, delta = result.together.total.worst_case.parameters
    assert epsilon == 1.0
    assert 0 < delta < 1e-6
    for published in result.releases:
        assert not published.release.certificate.has_partial_knowledge
        assert published.release.certificate.verify()


def test_days_of_first_departures_cost_one_release(folder):
    job = load_job(folder / "first_departures.toml")
    for day in range(1, 5):
        result = run_job(job, datetime.date(2013, 1, day))
    certificate = result.releases[0].release.certificate
    assert result.total.releases == 4
    assert result.total.rule == "once_per_unit"
    assert result.total.whole
    for epsilon in (0.5, 1.0, 1.5):
        assert result.total.delta(epsilon) == certificate.delta(epsilon)
    assert "whether a person is included in any of these releases" in result.total.sentence()


@pytest.fixture
def census(folder, monkeypatch):
    """What the job about a census publishes; the pictures of its report are looked at elsewhere."""
    monkeypatch.setattr(forms, "_drawn", lambda *_, **__: "")
    return run_job(load_job(folder / "census_totals.toml"), datetime.date(1994, 1, 1))


def test_a_census_publishes_its_total_beside_a_table_that_hides_which_cell(folder, census):
    total, table = (published.release for published in census.releases)
    people = int(total.table["count"].iloc[0])
    shown = dict(table.table[["education", "count"]].dropna().itertuples(index=False, name=None))
    assert set(shown) == {"high school", "some college", "bachelor"}
    hidden = people - sum(shown.values())
    assert hidden > 0  # what the total gives away: how many people the two suppressed cells have together
    assert total.certificate.worst_case.parameters == (0.0, 0.0)
    alone = certify(table.certificate.mechanism, AttackerModel(p_max_between=0.99, known=100), protects="value")
    together = census.together.total
    for epsilon in (0.0, 0.5, 1.0):
        # Theorem C: beside the total it is everything.
        assert table.certificate.delta(epsilon) == alone.delta(epsilon) == together.delta(epsilon)
    sentence = together.sentence()
    assert "does not protect in which releases she is included" in sentence
    assert "The number of people counted may be known exactly" in sentence
    assert together.epsilon(1e-6) <= 1.0
    report = (folder / "out/census_totals/1994-01-01/report.html").read_text(encoding="utf-8")
    assert "anyone at all, given the number of people counted" in report
    assert "anyone at all, whatever they know" not in report


def test_beside_a_total_presence_is_refused_and_nothing_is_published(folder):
    job = folder / "census_totals.toml"
    start, end = job.read_text(encoding="utf-8").split('name = "people_by_education"')
    job.write_text(start + 'name = "people_by_education"' + end.replace('protects = "value"\n', ""), encoding="utf-8")
    (folder / "data").unlink()
    with pytest.raises(NotCertifiableError, match="always tells whether a person is there"):
        run_job(load_job(job), datetime.date(1994, 1, 1))
    assert not list((folder / "out").rglob("*.parquet"))


def test_the_census_data_are_what_their_page_says(tmp_path):
    """Made again by the statement that the page shows."""
    page = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    statement = page.split("```sql\n")[1].split("```")[0]
    statement = statement.replace("'adult.parquet'", f"'{EXAMPLES / 'data' / 'adult.parquet'}'")
    written = tmp_path / "education_1994.parquet"
    duckdb.sql(statement.replace("'education_1994.parquet'", f"'{written}'"))
    assert pd.read_parquet(written).equals(pd.read_parquet(EXAMPLES / "data" / "education_1994.parquet"))


def test_the_budget_of_the_example_stops_a_smaller_k(folder):
    run_job(load_job(folder / "daily_flights.toml"), DAY)
    text = (folder / "daily_flights.toml").read_text(encoding="utf-8")
    (folder / "daily_flights.toml").write_text(text.replace("k = 50 ", "k = 40 "), encoding="utf-8")
    bolder = load_job(folder / "daily_flights.toml")
    Path(folder / "data").unlink()
    with pytest.raises(BudgetExceededError, match=r"allowed: 1\.2"):
        run_job(bolder, datetime.date(2013, 1, 3))


def test_the_two_views_are_refused(folder):
    with pytest.raises(DifferencingError, match="aircraft_by_carrier"):
        run_job(load_job(folder / "refused_two_views.toml"), DAY)
    assert not (folder / "out").exists()


def test_the_census_example_publishes_exact_counts_of_values(folder, capsys):
    runpy.run_path(str(folder / "adult_census.py"), run_name="__main__")
    printed = capsys.readouterr().out
    release = read_release(folder / "out" / "adult_income.parquet")
    assert list(release.table["salary"]) == ["<=50K", ">50K"]
    assert release.table["count"].notna().all()
    total = int(release.table["count"].sum())
    assert f"exactly: {total}." in printed
    assert isinstance(release.certificate, Certificate)
    assert release.certificate.protects == "value"
    assert release.certificate.delta(1.0) <= 1e-6
    assert release.certificate.sentence() in printed


@pytest.mark.docs
def test_the_injuries_are_published_with_nothing_missing(folder, capsys):
    example = runpy.run_path(str(folder / "injuries.py"), run_name="__main__")
    rows = re.findall(r"^(.{22}) *([\d.]+)% +([\d.]+) +([\d.]+)%   (.+)$", capsys.readouterr().out, re.MULTILINE)
    release = read_release(folder / "out" / "injuries.parquet")
    table, k = release.table, release.certificate.mechanism.k
    assert release.certificate.delta(1.0) <= 1e-6
    assert certify(Histogram(k=k - 1), example["ATTACKER"]).delta(1.0) > 1e-6
    assert len(table) == 69 * 14 * 2
    assert table["count"].notna().all()
    # The first report of a person, once more and in another way: those exact are true, and all that have k are exact.
    true = duckdb.sql(f"""
        WITH first AS (
            SELECT DISTINCT ON (person) strftime(injured, '%G-W%V') AS week, district, sex
            FROM '{folder}/data/injuries.parquet' ORDER BY person, injured, district NULLS LAST, sex NULLS LAST
        ) SELECT week, district, sex, count(*) AS people FROM first GROUP BY ALL
    """).df()
    true = table.merge(true, how="left")["people"].fillna(0)
    assert (table["exact"] == (true >= k)).all()
    assert (table["count"][table["exact"]] == true[table["exact"]]).all()
    assert true.sum() > 11_000
    shown = {name.strip(): list(map(float, numbers)) for name, *numbers, _ in rows}
    (alone, noise, below, opendp), hidden = shown.values(), 100.0 * (true < k).mean()
    assert list(shown) == [f"k = {k} alone", "noise alone", f"k = {k}, noise below", "OpenDP, geometric"]
    assert alone == pytest.approx([hidden, true[true < k].sum() / len(true), 100.0 - hidden], abs=0.06)
    assert (noise[0], noise[2]) == (opendp[0], opendp[2]) == (0.0, 0.0)
    assert (below[0], below[2]) == (0.0, alone[2])
    # The noise of ε = 1 is off by 0.851 on average; of so many cells the mean has a standard deviation of 0.024.
    assert all(0.65 < row[1] < 1.05 for row in (noise, below, opendp))
    assert (folder / "out" / "injuries.png").read_bytes().startswith(b"\x89PNG")


def test_the_data_carry_their_attribution():
    text = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    for words in ("CC BY 4.0", "CC0", "Becker", "nycflights13", "*invented* registry"):
        assert words in text
