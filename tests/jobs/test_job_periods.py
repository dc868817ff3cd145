"""Jobs that publish by the week, month, quarter or year; closed days; periods that are not over."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moved_clock import clock_at
from thorough import few
from typer.testing import CliRunner

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import (
    ArgumentError,
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
)
from pkdp_pipeline.extras.assurance.verification import verify
from pkdp_pipeline.extras.plan.repair import repair
from pkdp_pipeline.extras.report.job_report import report_of
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.session import backfill, missed_days
from pkdp_pipeline.jobs.tables import PeriodTable
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.model.period import Period
from pkdp_pipeline.releases.release import read_release

EVERY = ("day", "week", "month", "quarter", "year")


def people(days, number=8) -> pd.DataFrame:
    """So many people in one town, each day others."""
    rows = [(day, f"person {day} {person}", "Ås") for day in days for person in range(number)]
    return pd.DataFrame(rows, columns=["day", "person", "town"])


def by(every: str, basic: str, more: str = "") -> str:
    evidence = 'evidence = { kind = "one_day_protected" }\n'
    return evidence + basic.replace('column = "day"', f'column = "day", every = "{every}"{more}')


def charged(job) -> list[tuple[str, str]]:
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        return [(entry.period, entry.state) for entry in ledger.entries(given_back=True)]


@given(day=st.dates(date(1, 1, 3), date(9998, 12, 31)), every=st.sampled_from(EVERY))
def test_a_period_holds_its_day_and_borders_on_the_next(day, every):
    period = Period.around(day, every)
    assert period.first <= day <= period.last
    assert Period.parse(period.text) == period
    for inside in (period.first, period.last):
        assert Period.around(inside, every) == period
    following = Period.around(period.last + timedelta(1), every)
    assert following.first == period.last + timedelta(1)
    assert not period.overlaps(following)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2020-02-29", ("2020-02-29", "2020-W09", "2020-02", "2020-Q1", "2020")),
        ("2021-01-03", ("2021-01-03", "2020-W53", "2021-01", "2021-Q1", "2021")),  # ISO: still the week of 2020
        ("2024-12-30", ("2024-12-30", "2025-W01", "2024-12", "2024-Q4", "2024")),
        ("2026-12-31", ("2026-12-31", "2026-W53", "2026-12", "2026-Q4", "2026")),
    ],
)
def test_leap_days_and_the_ends_of_years(day, expected):
    assert tuple(Period.around(date.fromisoformat(day), every).text for every in EVERY) == expected


def test_a_week_that_the_calendar_does_not_hold_whole_is_refused():
    with pytest.raises(ArgumentError, match="no such"):
        Period.around(date.max, "week")


# Around both changes of the clocks in Oslo, at the ends of weeks, months and the year.
_MOMENTS = st.one_of(
    st.datetimes(datetime(2020, 3, 28), datetime(2020, 3, 31)),
    st.datetimes(datetime(2020, 10, 24), datetime(2020, 10, 27)),
    st.datetimes(datetime(2020, 12, 26), datetime(2021, 1, 5)),
)


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb"])
@given(moments=st.lists(_MOMENTS, min_size=1, max_size=12), every=st.sampled_from(EVERY), data=st.data())
@settings(max_examples=few(15))
def test_instants_are_cut_by_the_clocks_of_the_zone(tmp_path_factory, form, moments, every, data):
    folder, zone = tmp_path_factory.mktemp("cut"), ZoneInfo("Europe/Oslo")
    instants = [moment.replace(microsecond=0, tzinfo=UTC) for moment in moments]
    frame = pd.DataFrame({"at": pd.to_datetime(instants, utc=True).as_unit("us"), "person": range(len(instants))})
    source = {"parquet": '"rows.parquet"', "csv": '"rows.csv"', "duckdb": '{ duckdb = "rows.duckdb", table = "rows" }'}
    if form == "parquet":
        frame.to_parquet(folder / "rows.parquet")
    elif form == "csv":
        frame.assign(at=[instant.isoformat() for instant in instants]).to_csv(folder / "rows.csv", index=False)
    else:
        with duckdb.connect(str(folder / "rows.duckdb")) as connection:
            connection.execute("CREATE TABLE rows AS FROM frame")
    (folder / "job.toml").write_text(f"""
        dataset = "cut"
        source = {source[form]}
        period = {{ column = "at", time_zone = "Europe/Oslo", every = "{every}" }}
        unit = "person"
        ledger = "ledger.sqlite"
        output = {{ directory = "out" }}
        [[release]]
        name = "people"
        noise = {{ epsilon = 1.0 }}
    """)
    job = load_job(folder / "job.toml")
    local = [instant.astimezone(zone).date() for instant in instants]
    day = data.draw(st.sampled_from([*local, local[0] + timedelta(1), local[0] - timedelta(1)]))
    expected = sum(Period.around(local_day, every) == Period.around(day, every) for local_day in local)
    opened = open_source(job)
    try:
        assert opened.counts(job.period, day, ("person",)) == (expected, 0)
    finally:
        opened.close()


def test_weeks_over_the_end_of_a_year_from_source_to_report(job_file, basic):
    days = [date(2020, 12, 21) + timedelta(number) for number in range(21)]
    text = by("week", basic) + 'formats = ["parquet", "csv"]\nduckdb = "public.duckdb"\n'
    job = load_job(job_file(text, people(days)))
    done = backfill(job, date(2020, 12, 24), date(2021, 1, 4))
    assert done.published == (date(2020, 12, 21), date(2020, 12, 28), date(2021, 1, 4))
    assert charged(job) == [("2020-W52", "published"), ("2020-W53", "published"), ("2021-W01", "published")]
    out = Path(job.output.directory)
    release = read_release(out / "2020-W53" / "people_by_town.parquet")
    assert release.table["count"].tolist() == [56]
    assert release.certificate.context.period == "2020-W53"
    assert "2020-W53" in release.certificate.sentence()
    assert (out / "2020-W53" / "summary.md").read_text(encoding="utf-8").startswith("# visits, 2020-W53\n")
    assert (out / "2020-W53" / "people_by_town.csv").read_text(encoding="utf-8").splitlines() == [
        '"period","town","count"',
        '"2020-W53","Ås",56',
    ]
    again = run_job(job, date(2021, 1, 3))  # the Sunday of week 53
    assert (again.replayed, again.day, again.releases[0].release.id) == (True, date(2020, 12, 28), release.id)
    with duckdb.connect(str(out.parent / "public.duckdb"), read_only=True) as public:
        rows = public.sql("SELECT period, count FROM people_by_town ORDER BY period").fetchall()
    assert rows == [(first, 56) for first in done.published]
    report = report_of(job)
    assert report.period == "2020-W52 to 2021-W01"
    assert report_of(job, date(2021, 1, 1)).period == "2020-W53"


def test_folders_of_hive_are_read_as_a_column(job_file, basic):
    job = load_job(job_file(by("month", basic) + 'layout = "hive"\n', people([date(2020, 1, 31), date(2020, 2, 1)])))
    backfill(job, date(2020, 1, 1), date(2020, 2, 1))
    pattern = f"{job.output.directory}/*/people_by_town.parquet"
    rows = duckdb.sql(f"SELECT period, count FROM read_parquet('{pattern}') ORDER BY period").fetchall()
    assert rows == [("2020-01", 8), ("2020-02", 8)]
    (shown,) = report_of(job, date(2020, 2, 1)).releases
    assert shown.files == ("period=2020-02/people_by_town.parquet", "period=2020-02/people_by_town.certificate.json")
    assert run_job(job, date(2020, 2, 29)).replayed


def test_files_of_many_periods_are_read_as_one_table(job_file, basic):
    job = load_job(job_file(by("day", basic), people([date(2020, 1, 1), date(2020, 1, 2)])))
    backfill(job, date(2020, 1, 1), date(2020, 1, 2))
    rows = duckdb.sql(f"SELECT period, count FROM '{job.output.directory}/*/people_by_town.parquet' ORDER BY 1")
    assert rows.fetchall() == [(date(2020, 1, 1), 8), (date(2020, 1, 2), 8)]


@pytest.mark.slow
def test_the_files_of_a_job_verify_with_its_ledger(job_file, basic):
    job = load_job(job_file(by("week", basic), people([date(2020, 1, 1), date(2020, 1, 8)])))
    backfill(job, date(2020, 1, 1), date(2020, 1, 8))
    folders = [Path(job.output.directory) / week for week in ("2020-W01", "2020-W02")]
    for folder in folders:
        verification = verify(folder / "people_by_town.parquet", ledger=job.ledger)
        assert [claim for claim in verification.claims if claim.outcome == "fail"] == []
        outcomes = {claim.key: claim.outcome for claim in verification.claims}
        assert [outcomes[key] for key in ("ledger.holds", "release.content", "release.id")] == ["pass"] * 3
    path = job_file(by("week", basic).replace('"out', '"other'), people([date(2020, 1, 1)], 9))
    run_job(other := load_job(path), date(2020, 1, 1))
    verification = verify(folders[0] / "people_by_town.parquet", ledger=other.ledger)
    assert {claim.key: claim.outcome for claim in verification.claims}["ledger.holds"] == "fail"


def test_a_column_of_another_period_is_found(job_file, basic):
    import pyarrow as pa
    import pyarrow.parquet as pq

    job = load_job(job_file(by("week", basic), people([date(2020, 1, 1)])))
    run_job(job, date(2020, 1, 1))
    path = Path(job.output.directory) / "2020-W01" / "people_by_town.parquet"
    table, metadata = pq.read_table(path), pq.read_metadata(path).metadata
    other = table.set_column(0, "period", pa.array(["2020-W02"] * len(table)))
    with pq.ParquetWriter(path, other.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(other.replace_schema_metadata(None))
        writer.add_key_value_metadata(metadata)
    with pytest.raises(ArgumentError, match="column 'period' does not name its certificate's period"):
        read_release(path)


def test_months_after_days_are_refused_and_told_how(job_file, basic):
    frame = people([date(2020, 1, 1)])
    daily = load_job(job_file(basic, frame))
    run_job(daily, date(2020, 1, 1))
    text = basic.replace('column = "day"', 'column = "day", every = "month"').replace('"out"', '"monthly"')
    monthly = load_job(job_file(text, frame))
    with pytest.raises(DifferencingError) as refused:
        run_job(monthly, date(2020, 1, 1))
    assert "publish one release for each stretch of a calendar without overlaps" in str(refused.value)
    assert "2020-01-01" in str(refused.value)
    assert [period for period, _ in charged(monthly)] == ["2020-01-01"]
    # In the same folder they would stand beside each other under one name.
    with pytest.raises(ConfigError, match="this job publishes by the month: choose a folder of its own"):
        run_job(load_job(job_file(basic.replace('column = "day"', 'column = "day", every = "month"'), frame)), date.min)


def test_without_evidence_weeks_are_refused_as_days_are(job_file, basic):
    text = by("week", basic).partition("\n")[2]
    job = load_job(job_file(text, people([date(2020, 1, 1), date(2020, 1, 8)])))
    run_job(job, date(2020, 1, 1))
    with pytest.raises(DifferencingError, match="evidence = "):
        run_job(job, date(2020, 1, 8))


def test_a_budget_of_days_counts_weeks_by_their_days(job_file, basic):
    budget = 'budget = { epsilon = 1.2, delta = 0.0, part = "worst_case", window_days = 14 }\n'
    text = by("week", basic).partition("\n")[2].replace("[attacker]\np_max = 0.5\n", "")
    frame = people([date(2020, 1, 1) + timedelta(7 * number) for number in range(5)])
    job = load_job(job_file(budget + text.replace("k = 5", "domain = ['Ås']\nnoise.epsilon = 0.5"), frame))
    # Fourteen days can touch three weeks, whose releases cost 0.5 each.
    run_job(job, date(2020, 1, 1))
    run_job(job, date(2020, 1, 8))
    with pytest.raises(BudgetExceededError):
        run_job(job, date(2020, 1, 15))
    run_job(job, date(2020, 1, 29))


def test_a_period_that_is_not_over_is_refused_and_nothing_is_charged(job_file, basic):
    job = load_job(job_file(by("week", basic), people([date(2020, 1, 8)])))
    with clock_at(datetime(2020, 1, 12, 21, 59, 59, tzinfo=UTC), "Africa/Cairo"):  # a Sunday
        with pytest.raises(ArgumentError, match=r"2020-W02 is not over before the end of 2020-01-12.*ask for 2020-W01"):
            run_job(job, date(2020, 1, 8))
        assert not Path(job.ledger).exists()
        assert not (Path(job.output.directory) / "2020-W02").exists()
        (planned,) = plan_job(job, [date(2020, 1, 8)]).days
        assert isinstance(planned.refused, ArgumentError)
        assert repair(job.file, [date(2020, 1, 8)]).error is None  # a plan looks ahead
        done = backfill(job, date(2020, 1, 1), date(2020, 1, 5))
        assert done.published == (date(2019, 12, 30),)
        assert missed_days(job, date(2020, 1, 15)) == ()
    with clock_at(datetime(2020, 1, 12, 22, 0, tzinfo=UTC), "Africa/Cairo"):
        assert run_job(job, date(2020, 1, 8)).outcome == "published"


@pytest.mark.parametrize(
    ("zone", "over"), [("Pacific/Kiritimati", True), ("Europe/Oslo", False), ("Pacific/Pago_Pago", False)]
)
def test_a_month_is_over_where_its_zone_says_so(zone, over):
    period = PeriodTable(column="at", time_zone=zone, every="month")
    with clock_at(datetime(2020, 2, 29, 10, 0, tzinfo=UTC), "Pacific/Apia"):
        if over:
            period.check_open(date(2020, 2, 1))
            return
        with pytest.raises(ArgumentError, match=r"2020-02 is not over.*ask for 2020-01, .*date 2020-01-01"):
            period.check_open(date(2020, 2, 1))


def test_closed_days_have_no_release(job_file, basic):
    days = [date(2020, 1, 1) + timedelta(number) for number in range(8)]
    closed = ', closed = ["saturday", "sunday", 2020-01-06]'
    job = load_job(job_file(by("day", basic, closed), people(days)))
    assert missed_days(job, days[7]) == ()
    done = backfill(job, days[0], days[5])
    assert done.published == (*days[:3],)  # the 1st is a Wednesday, the 6th is named
    assert missed_days(job, days[7]) == (days[6],)
    with pytest.raises(ArgumentError, match="2020-01-06 is closed"):
        run_job(job, date(2020, 1, 6))
    with pytest.raises(ArgumentError, match="all of these dates are closed"):
        backfill(job, days[3], days[4])
    assert len(charged(job)) == 3
    shown = CliRunner().invoke(cli.app, ["run", job.file, "--date", "2020-01-05"])
    assert (shown.exit_code, shown.stdout) == (0, "2020-01-05 is closed: nothing is published of it.\n")


def test_a_week_is_closed_when_all_its_days_are(job_file, basic):
    days = [date(2020, 7, 6) + timedelta(number) for number in range(28)]
    closed = ', closed = ["2020-07-13/2020-07-25", "sunday"]'
    job = load_job(job_file(by("week", basic, closed), people(days)))
    done = backfill(job, days[0], days[-1])
    assert [job.period.text(day) for day in done.published] == ["2020-W28", "2020-W31"]


def test_a_check_of_freshness_waits_for_the_end_of_the_period(job_file, basic):
    checks = '\n[checks]\nfresh = { column = "day" }\n'
    early = load_job(job_file(by("week", basic) + checks, people([date(2020, 1, 1), date(2020, 1, 5)])))
    with pytest.raises(InputCheckError, match="input check for 2020-W01 failed"):
        run_job(early, date(2020, 1, 1))
    job = load_job(job_file(by("week", basic) + checks, people([date(2020, 1, 1), date(2020, 1, 6)])))
    assert run_job(job, date(2020, 1, 1)).outcome == "published"


def test_what_is_missed_are_weeks(job_file, basic):
    days = [date(2020, 1, 1) + timedelta(7 * number) for number in range(5)]
    job = load_job(job_file(by("week", basic), people(days)))
    run_job(job, days[0])
    assert [job.period.text(day) for day in missed_days(job, days[4])] == ["2020-W02", "2020-W03", "2020-W04"]
    done = CliRunner().invoke(cli.app, ["run", job.file, "--date", days[2].isoformat(), "--catch-up"])
    assert done.exit_code == 0, done.stderr
    assert "2020-W02: published" in done.stdout
    assert "people_by_town, 2020-W03" in done.stdout
    ahead = CliRunner().invoke(cli.app, ["run", job.file, "--date", "2099-01-01", "--catch-up"])
    assert (ahead.exit_code, len(charged(job))) == (2, 3)
    plan = CliRunner().invoke(
        cli.app, ["backfill", job.file, "--from", "2020-01-22", "--to", "2020-01-31", "--dry-run"]
    )
    assert plan.exit_code == 0, plan.stderr
    assert "weeks" in plan.stdout
    assert "2020-W05" in plan.stdout


def test_what_is_missed_is_caught_up_with_while_a_period_is_not_over(job_file, basic):
    job = load_job(job_file(by("month", basic), people([date(2020, month, 15) for month in (1, 2, 3, 4)])))
    with clock_at(datetime(2020, 4, 20, tzinfo=UTC), "UTC"):
        run_job(job, date(2020, 1, 15))
        command = ["run", job.file, "--date", "yesterday"]
        assert CliRunner().invoke(cli.app, command).exit_code == 2
        for outcome in ("published", "replayed"):
            done = CliRunner().invoke(cli.app, [*command, "--catch-up", "--json"])
            assert done.exit_code == 0, done.stderr
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            assert [(line["day"], line["outcome"]) for line in lines][-1] == ("2020-03-01", outcome)
        assert len(charged(job)) == 3
        ahead = CliRunner().invoke(cli.app, ["run", job.file, "--date", "2020-05-01", "--catch-up"])
    assert (ahead.exit_code, len(charged(job))) == (2, 3)


def test_a_private_copy_and_a_record_are_of_the_whole_period(job_file, basic):
    more = '\n[records]\ndirectory = "runs"\n[retention]\ndirectory = "private"\ndays = 7\n'
    job = load_job(job_file(by("month", basic) + more, people([date(2020, 2, 1), date(2020, 2, 29)])))
    run_job(job, date(2020, 2, 29))
    assert len(pd.read_parquet(Path(job.retention.directory) / "job.2020-02.rows.parquet")) == 16
    (record,) = Path(job.records.directory).glob("*.json")
    assert json.loads(record.read_text(encoding="utf-8"))["day"] == "2020-02-01"


WRONG = {
    'every = "weekly"': "every",
    'every = "fortnight"': "every",
    "every = 7": "every",
    'every = ["week"]': "every",
    'Every = "week"': "every",
    'evry = "week"': "did you mean 'every'",
    'closed = "sunday"': "closed",
    'closed = ["Sunday"]': "entry 1 must be a weekday in small letters",
    'closed = ["sunday", "sun"]': "entry 2 must be a weekday",
    'closed = ["25.12.2026"]': "entry 1 must be a weekday",
    'closed = ["2026-02-30"]': "entry 1 must be a weekday",
    'closed = ["12-25"]': "entry 1 must be a weekday",
    'closed = ["2026-12-31/2026-12-24"]': "entry 1 must be a weekday",
    'closed = ["christmas"]': "entry 1 must be a weekday",
    "closed = [25]": "closed",
    "closed = [2026-12-25T00:00:00]": "closed",
    'closed = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]': "names every weekday",
    'time_zone = "Oslo"': "must be the name of a time zone",
    'days = ["sunday"]': "days",
}


@pytest.mark.parametrize("keys", WRONG)
def test_a_wrong_period_is_one_clear_error(job_file, basic, keys):
    path = job_file(basic.replace('column = "day"', f'column = "day", {keys}'))
    before = {file.name for file in path.parent.iterdir()}
    with pytest.raises(ConfigError) as refused:
        load_job(path)
    message = str(refused.value)
    assert WRONG[keys] in message
    assert len(message.splitlines()) == 2
    assert {file.name for file in path.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('layout = "flat"', "layout"),
        ("layout = true", "layout"),
        ('layouts = "hive"', "did you mean 'layout'"),
    ],
)
def test_a_wrong_layout_is_one_clear_error(job_file, basic, change, message):
    with pytest.raises(ConfigError, match=message):
        load_job(job_file(f"{basic}{change}\n"))


def test_a_key_named_as_the_column_of_the_files_is_refused(job_file, basic):
    with pytest.raises(ConfigError, match="'period' is a column of the files"):
        load_job(job_file(basic.replace('by = "town"', 'by = "Period"')))
