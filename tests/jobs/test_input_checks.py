from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import date

import pandas as pd
import pytest

from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.jobs.input_checks import Check, check_input, failed
from pkdp_pipeline.jobs.sources import open_source

DAY = date(2020, 1, 1)


def outcome(job_file, text, frame=None, day=DAY, engine="duckdb"):
    job = load_job(job_file(f'engine = "{engine}"\n{text}', frame))
    source = open_source(job.engine, job.source.files[0])
    try:
        check_input(source, job, day)
    finally:
        source.close()


def frame(**changes):
    columns = {"day": [DAY, DAY], "person": ["Ann", "Bob"], "town": ["Ås", "Bø"]} | changes
    return pd.DataFrame(columns)


def test_a_day_as_declared_passes(job_file, basic, engine):
    outcome(job_file, basic, engine=engine)
    outcome(job_file, basic, frame(), engine=engine)


@pytest.mark.parametrize(
    ("text_change", "frame_change", "day", "words"),
    [
        ((), {}, date(2020, 2, 1), ["'day'", "rows on that date"]),
        (("person", "citizen"), {}, DAY, ["'citizen'", "must exist"]),
        (('by = "town"', 'by = "city"'), {}, DAY, ["'city'", "must exist"]),
        (("day", "when"), {}, DAY, ["'when'", "must exist"]),
        (('"drop"', '"drop"\norder_by = "rank"\none_cell = "first"'), {}, DAY, ["'rank'", "must exist"]),
        (('"drop"', '"error"'), {"person": ["Ann", None]}, DAY, ["'person'", "every row", "missing_unit"]),
        ((), {"person": [None, None]}, DAY, ["'person'", "some row"]),
        ((), {"town": [None, None]}, DAY, ["'town'", "not be empty"]),
        ((), {"person": [float("nan"), float("nan")]}, DAY, ["'person'", "some row"]),
    ],
)
def test_each_broken_rule_is_named_without_values(
    job_file, basic, text_change, frame_change, day, words, engine, capfd
):
    text = basic.replace(*text_change) if text_change else basic
    with pytest.raises(InputCheckError) as caught:
        outcome(job_file, text, frame(**frame_change), day, engine)
    message = str(caught.value)
    with pytest.raises(InputCheckError) as caught:
        outcome(job_file, text, frame(**frame_change), day)
    assert message == str(caught.value)
    assert capfd.readouterr() == ("", "")
    for word in words:
        assert word in message
    for value in ("Ann", "Bob", "Ås", "Bø", "Traceback"):
        assert value not in message


def test_a_missing_date_is_reported_alone(job_file, basic):
    with pytest.raises(InputCheckError) as caught:
        outcome(job_file, basic, frame(person=[None, None]), date(2020, 2, 1))
    assert "some row" not in str(caught.value)


def test_a_period_column_of_texts_is_a_config_error(job_file, basic, engine):
    with pytest.raises(ConfigError, match="holds text, not dates"):
        outcome(job_file, basic, frame(day=["2020-01-01", "2020-01-02"]), engine=engine)


def test_rules_are_bounds_and_come_back_in_order():
    checks = [
        Check(column="a", rule="first", least=1),
        Check(column="b", rule="second", most=0),
        Check(column="c", rule="third", least=2),
    ]
    assert failed({"a": 1, "b": 0, "c": 2}, checks) == []
    assert failed({"a": 0, "b": 1, "c": 1}, checks) == ["first", "second", "third"]
    assert failed({"a": 5, "b": 3, "c": 2}, checks) == ["second"]


def test_a_check_that_cannot_be_evaluated_is_no_answer():
    with pytest.raises(RuntimeError, match="could not be evaluated"):
        failed({"a": 1}, [Check(column="b", rule="another column", least=1)])


def test_nothing_is_printed(capfd):
    failed({"a": 1}, [Check(column="a", rule="a", least=1)])
    assert capfd.readouterr() == ("", "")


def test_great_expectations_is_lazy_and_reports_to_nobody():
    program = """
        import socket, sys, os
        calls = []
        def refuse(*arguments, **names):
            calls.append(arguments)
            raise OSError("no network in this test")
        socket.socket.connect = refuse
        socket.getaddrinfo = refuse
        from pkdp_pipeline.jobs import input_checks
        assert "great_expectations" not in sys.modules
        check = input_checks.Check(column="a", rule="a", least=1)
        assert input_checks.failed({"a": 0}, [check]) == ["a"]
        library, batch_definition = input_checks._great_expectations()
        context = batch_definition.data_asset.datasource.data_context
        assert type(context).__name__ == "EphemeralDataContext"
        assert context.config.analytics_enabled is False
        assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
        assert not calls, calls
        assert input_checks._great_expectations()[1] is batch_definition
        assert None not in sys.modules.values()
        print("done")
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (ran.stdout, ran.stderr) == ("done\n", "")
