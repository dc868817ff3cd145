"""A job's own requests are audited on frames with its columns; what cannot be is said to be left out."""

from __future__ import annotations

import dataclasses
import re

import pandas as pd
import pytest
from thorough import few, thinned

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.assurance.audit import audit_job, cases
from pkdp_pipeline.extras.assurance.audit.people import filtered
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.model.predicate import from_query
from pkdp_pipeline.releases import publish as publishing

HEAD = """
dataset = "visits"
source = "rows.parquet"
period = { column = "day" }
unit = ["person", "site"]
ledger = "ledger.sqlite"
one_cell = "most_frequent"
missing_unit = "drop"
"""
TAIL = """
[output]
directory = "out"
"""
CELLS = """
[[release]]
name = "by_area"
by = "area"
domain = ["north", "south"]
noise = { epsilon = 1.0 }
"""
COUNTS = """
[[release]]
name = "long_ones"
where = "minutes > 30 and kind == 'ill'"
noise = { epsilon = 1.0 }

[[release]]
name = "odd"
where = "minutes > minutes"
noise = { epsilon = 1.0 }
"""
ONE = """
[attacker]
p_max = 0.1

[[release]]
name = "by_area"
by = "area"
k = 2
where = "minutes > 30"
"""


@pytest.fixture(autouse=True)
def few_attackers(monkeypatch):
    """Let one of a certificate's crowds be tried; all of them in ``make slow``."""
    real = cases.crowds_for
    if few(100) < 100:
        monkeypatch.setattr(cases, "crowds_for", lambda certificate: real(certificate)[-1:])


def job(tmp_path, text: str):
    file = tmp_path / "job.toml"
    file.write_text(HEAD + text + TAIL)
    return load_job(file)


@thinned(3)
@pytest.mark.parametrize(
    "where",
    [
        *("flag", "not flag", "minutes > 30", "minutes > 30 and kind == 'ill'"),
        *("kind in ['a', 'b'] or `minutes` == 2.5", "kind.str.startswith('il')", "day.dt.day_of_week >= 5"),
        "day.dt.year == 2013 and day.dt.month != 2",
    ],
)
def test_a_filter_gets_rows_that_it_keeps_and_drops(where):
    filtered_rows = filtered(from_query(where))
    assert filtered_rows is not None
    for values, rows in ((filtered_rows.kept, 1), (filtered_rows.dropped, 0)):
        frame = pd.DataFrame({name: [value] for name, value in values.items()})
        kept = frame[frame[where]] if where in frame else frame.query(where, engine="python")
        assert len(kept) == rows


def test_a_filter_with_a_pattern_gets_rows_that_it_keeps_and_drops():
    filtered_rows = filtered(from_query("kind.str.like('i__%\\\\%')"))
    assert filtered_rows is not None
    assert re.fullmatch("i..%", filtered_rows.kept["kind"])
    assert not re.fullmatch("i..*%", filtered_rows.dropped["kind"])


@pytest.mark.parametrize("where", ["minutes > minutes", "minutes.isna()"])
def test_a_filter_that_says_nothing_gets_none(where):
    assert filtered(from_query(where)) is None


@pytest.mark.ibis
def test_a_job_on_a_database_is_audited_as_ibis_counts(tmp_path):
    original = job(tmp_path, ONE.replace('where = "minutes > 30"', ""))
    text = (tmp_path / "job.toml").read_text().replace('"rows.parquet"', '{ ibis = "snowflake://a/b/c", table = "t" }')
    (tmp_path / "job.toml").write_text(text)
    audit = audit_job(load_job(tmp_path / "job.toml"), samples=8)
    assert audit.passed, str(audit)
    assert {finding.engine for finding in audit.findings} == {"ibis"}
    assert {finding.engine for finding in audit_job(original, samples=8).findings} == {"duckdb"}


@thinned(2)
@pytest.mark.parametrize(
    ("text", "engines", "audited"),
    [
        (CELLS, ("polars",), "by_area"),
        (COUNTS, ("pandas", "pandas"), "long_ones"),
        pytest.param(COUNTS, ("pandas", "polars", "pandas"), "long_ones", marks=pytest.mark.slow),
    ],
)
def test_releases_of_a_job_are_audited_on_the_engines_that_are_named_or_said_not_to_be(
    tmp_path, text, engines, audited
):
    audit = audit_job(job(tmp_path, text), engines=engines, samples=8)
    assert audit.passed, str(audit)
    assert not (tmp_path / "ledger.sqlite").exists()
    assert not (tmp_path / "out").exists()
    once = list(dict.fromkeys(engines))
    assert {(finding.case, finding.engine) for finding in audit.findings} == {(audited, engine) for engine in once}
    left_out = [("odd", engine) for engine in once] if "odd" in text else []
    assert [(skipped.case, skipped.engine) for skipped in audit.not_audited] == left_out


def test_an_engine_for_mechanisms_audits_no_job(tmp_path):
    with pytest.raises(ArgumentError, match="engine 'sql' is for mechanisms"):
        audit_job(job(tmp_path, CELLS), engines=("sql",))


@thinned(2)
@pytest.mark.parametrize("less", [0, 1])
def test_a_fault_is_found_in_a_job(tmp_path, monkeypatch, less):
    real = publishing.public_table

    def table(frame, request):
        mechanism = dataclasses.replace(request.mechanism, k=request.mechanism.k - less)
        return real(frame, dataclasses.replace(request, mechanism=mechanism))

    monkeypatch.setattr(publishing, "public_table", table)
    assert audit_job(job(tmp_path, ONE), engines=("pandas",), samples=8).passed is not bool(less)
