"""What a job's refusals advise can be written in its file, and they say which release they are about."""

from __future__ import annotations

import textwrap
from datetime import date

import pytest

from pkdp_pipeline.errors import (
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    NotCertifiableError,
    PkdpError,
)
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.dry_run import plan_job

DAY, NEXT = date(2020, 1, 1), date(2020, 1, 2)


def refused(job_file, text: str, days=(DAY,)) -> PkdpError:
    job = load_job(job_file(text))
    *before, last = days
    for day in before:
        run_job(job, day)
    with pytest.raises(PkdpError) as caught:
        run_job(job, last)
    assert "pkdp." not in str(caught.value)
    assert "open the ledger" not in str(caught.value)
    return caught.value


def test_what_cannot_be_certified_names_the_release_and_the_noise_as_toml(job_file, basic):
    text = basic.replace("[attacker]\np_max = 0.5\n", "")
    error = refused(job_file, text)
    assert isinstance(error, NotCertifiableError)
    assert str(error).startswith("release 'people_by_town': Not certifiable")
    advice = str(error).split("; or ")[-1].partition(",")[0]
    noise, threshold = advice.split(" with ")
    noise = noise.removeprefix("no k but ")
    assert (noise, threshold.partition(" = ")[0]) == ("noise = { epsilon = 1 }", "release_threshold")
    run_job(load_job(job_file(text.replace("k = 5", f"{noise}\n{threshold}"))), DAY)


def test_two_days_without_noise_are_told_which_evidence_to_write(job_file, basic):
    error = refused(job_file, basic, (DAY, NEXT))
    assert isinstance(error, DifferencingError)
    message = str(error)
    assert 'in the job file, above its first [table]: evidence = { kind = "independent_given_habits" }' in message
    job = load_job(job_file('evidence = { kind = "independent_given_habits" }\n' + basic))
    run_job(job, NEXT)


def test_two_releases_of_a_day_are_told_in_toml(job_file, basic):
    second = '\n[[release]]\nname = "more"\nby = "town"\nwhere = "person == 1"\nk = 5\n'
    message = str(refused(job_file, basic + second))
    assert 'evidence = { kind = "bounded_dependence", epsilon = …, delta = … }' in message


NOISED = """
    dataset = "visits"
    source = "visits.parquet"
    period = { column = "day" }
    unit = "person"
    missing_unit = "drop"
    ledger = "out/ledger.sqlite"
    release = [{ name = "people", noise = { epsilon = 0.5 } }]
    output = { directory = "out" }
"""


def test_a_budget_is_told_as_it_is_written(job_file):
    text = textwrap.dedent(NOISED)
    error = refused(job_file, f"budget = {{ epsilon = 0.5, delta = 1e-6 }}\n{text}", (DAY, NEXT))
    assert isinstance(error, BudgetExceededError)
    assert "write a larger budget in the job file" in str(error)
    assert "'people'" in str(error)


@pytest.mark.parametrize(("threshold", "allowed"), [(15, False), (16, True)])
def test_where_delta_is_used_up_the_release_threshold_is_named(job_file, basic, threshold, allowed):
    text = basic.replace("[attacker]\np_max = 0.5\n", "").replace(
        "k = 5", "noise = { epsilon = 1 }\nrelease_threshold = "
    )
    text = text.replace("release_threshold = ", f"release_threshold = {threshold}")
    planned = plan_job(load_job(job_file(f"budget = {{ epsilon = 4, delta = 1e-6 }}\n{text}")), (DAY, NEXT)).refused
    assert (planned is None) == allowed
    if planned is not None:
        assert isinstance(planned.refused, BudgetExceededError)
        assert "a larger release_threshold takes less of it" in str(planned.refused)
        assert "larger k" not in str(planned.refused)


def test_a_budget_of_the_worst_case_names_the_key_that_leaves_it_out(job_file, basic):
    text = basic.replace("k = 5", "k = 100")
    message = str(refused(job_file, f"budget = {{ epsilon = 9.0, delta = 1e-6 }}\n{text}"))
    assert 'budget = { …, part = "partial_knowledge" }' in message


def test_a_dry_run_says_the_same(job_file, basic):
    text = basic.replace("[attacker]\np_max = 0.5\n", "")
    error = refused(job_file, text)
    planned = plan_job(load_job(job_file(text)), [DAY]).refused
    assert planned is not None
    assert str(planned.refused) == str(error)


def test_what_is_wrong_with_the_terms_is_told_in_toml(job_file, basic):
    both = 'evidence = [{ kind = "once_per_unit" }, { kind = "one_day_protected" }]\n'
    with pytest.raises(ConfigError, match="no rule takes once_per_unit and one_day_protected together") as caught:
        load_job(job_file(both + basic))
    assert "bounded_participation with independent_given_habits" in str(caught.value)
    with pytest.raises(ConfigError, match=r"budget\[1\]: epsilon of a budget must be finite and at least 0"):
        load_job(job_file("budget = { epsilon = -1.0, delta = 1e-6 }\n" + basic))
