from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from thorough import thinned

from pkdp_pipeline import Ledger
from pkdp_pipeline.errors import ArgumentError, ConfigError, InputCheckError, PkdpError, exit_code
from pkdp_pipeline.jobs import expectations, load_job, run_job
from pkdp_pipeline.jobs.checks import check_input, stated_rules
from pkdp_pipeline.jobs.job import open_source
from pkdp_pipeline.jobs.sources.source import no_such_column

pytestmark = pytest.mark.usefixtures("great_expectations")

DAY = date(2020, 1, 1)


def outcome(job_file, text, frame=None, day=DAY, engine="duckdb"):
    job = load_job(job_file(f'engine = "{engine}"\n{text}', frame))
    source = open_source(job)
    try:
        return check_input(source, job, day)
    finally:
        source.close()


def complaint(*arguments, **names) -> str:
    with pytest.raises(InputCheckError) as caught:
        outcome(*arguments, **names)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return str(caught.value)


def frame(**changes):
    columns = {"day": [DAY, DAY], "person": ["Ann", "Bob"], "town": ["Ås", "Bø"]} | changes
    return pd.DataFrame(columns)


def days(last: int):
    """Rows of the first days of January, each by somebody else."""
    dates = [date(2020, 1, number) for number in range(1, last + 1)]
    return frame(day=dates, person=[f"p{day}" for day in dates], town=["Ås"] * last)


def test_a_day_as_declared_passes(job_file, basic, engine):
    outcome(job_file, basic, engine=engine)
    outcome(job_file, basic, frame(), engine=engine)
    outcome(job_file, f'units = "exact"\n{basic}', frame(person=["Ann", "Ann "]), engine=engine)


@thinned(2)
@pytest.mark.parametrize(
    ("text_change", "frame_change", "day", "words"),
    [
        (('"drop"', '"error"'), {"person": ["Ann", None]}, DAY, ["'person'", "every row", "missing_unit"]),
        ((), {"person": ["Ann", "Ann"]}, DAY, ["'people_by_town'", "several cells of 'town'", "one_cell"]),
        ((), {"person": ["Ann", "Ann "]}, DAY, ["unit 'person'", "only by spaces", 'units = "exact"']),
        (("k = 5", 'k = 5\nwhere = "town.isna()"'), {"person": ["Ann", "Ann "]}, DAY, ["only by spaces"]),
        (("k = 5", 'k = 5\ndomain = ["Ås"]'), {}, DAY, ["'people_by_town'", "'town'", "domain does not list"]),
    ],
)
def test_each_broken_rule_is_named_without_values(
    job_file, basic, text_change, frame_change, day, words, engine, capfd
):
    text = basic.replace(*text_change) if text_change else basic
    message = complaint(job_file, text, frame(**frame_change), day, engine)
    assert message == complaint(job_file, text, frame(**frame_change), day)
    assert capfd.readouterr() == ("", "")
    for word in words:
        assert word in message
    for value in ("Ann", "Bob", "Ås", "Bø", "Traceback"):
        assert value not in message


def test_of_columns_that_may_be_meant_one_that_differs_in_case_is_named():
    assert "did you mean 'Cell'?" in str(no_such_column({"cell": "by"}, ["cell_1", "Cell"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"person"', '"preson"'), "no column 'preson' (unit, did you mean 'person'?)"),
        (('by = "town"', 'by = "Town"'), "no column 'Town' (by of release 'people_by_town', did you mean 'town'?)"),
        (("day", "when"), "no column 'when' (period.column)"),
        (('"drop"', '"drop"\norder_by = "rank"\none_cell = "first"'), "no column 'rank' (order_by)"),
        (("k = 5", 'k = 5\nwhere = "twon == 1"'), "'twon', which the frame does not have. Did you mean 'town'?"),
    ],
)
def test_a_column_that_is_not_there_is_a_matter_of_the_job_file_and_the_like_is_named(
    job_file, basic, change, message, engine
):
    with pytest.raises(PkdpError) as caught:
        outcome(job_file, basic.replace(*change), frame(), engine=engine)
    assert message in str(caught.value)
    assert exit_code(caught.value) == 2


def test_all_columns_that_are_not_there_are_named_at_once(job_file, basic):
    text = basic.replace('"person"', '"citizen"').replace('by = "town"', 'by = ["town", "street"]')
    with pytest.raises(ConfigError, match=r"columns 'citizen' \(unit\), 'street' \(by of release 'people_by_town'\):"):
        outcome(job_file, text, frame())


def test_where_the_job_makes_a_rule_of_it_the_data_are_wrong(job_file, basic):
    text = f'{basic}\n[checks]\ncolumns = {{ street = "text" }}\n'.replace('by = "town"', 'by = "street"')
    assert "column 'street' must exist" in complaint(job_file, text, frame())


@thinned(3)
@pytest.mark.parametrize(
    ("changes", "day"),
    [
        ({}, date(2020, 2, 1)),
        ({"person": pd.Series([None, None], dtype="str")}, DAY),
        ({"person": [float("nan"), float("nan")]}, DAY),
        ({"town": pd.Series([None, None], dtype="str")}, DAY),
    ],
)
@pytest.mark.parametrize("domain", ["", 'domain = ["Ås", "Bø"]\nundeclared = "absent"\n'])
def test_a_day_passes_whether_or_not_somebody_was_there(job_file, basic, changes, day, domain, engine):
    text = basic.replace("k = 5\n", f"k = 5\n{domain}")
    counted = outcome(job_file, text, frame(**changes), day, engine).counted["people_by_town"]
    assert sum(counted.counts) in (0, 2)  # rows without a town are in a cell of their own


def test_a_column_whose_file_gives_it_no_type_holds_nothing(job_file, basic):
    assert outcome(job_file, basic, frame(town=[None, None])).counted["people_by_town"].counts == [2]


@thinned(3)
@pytest.mark.parametrize(
    ("checks", "stated"),
    [
        ("", False),
        ('columns = { town = "text" }', False),
        ('[[checks.expect]]\ntype = "expect_table_row_count_to_be_between"\nmax_value = 9\nseverity = "info"', False),
        ("rows = { min = 1 }", True),
        ('fresh = { column = "day", days = 0 }', True),
        ('[[checks.expect]]\ntype = "expect_table_row_count_to_be_between"\nmax_value = 99', True),
    ],
)
def test_what_a_job_checks_of_its_own_is_said_to_be_public(job_file, basic, checks, stated):
    file = job_file(f"{basic}\n[checks]\n{checks}\n".replace("[attacker]", 'one_cell = "hash"\n\n[attacker]'))
    done = run_job(load_job(file), DAY)
    said = "and the data pass the curator's own checks: that this holds is public."
    assert (said in done.releases[0].release.certificate.sentence()) == stated
    assert (said in done.summary.read_text(encoding="utf-8")) == stated
    other = file.read_text(encoding="utf-8").replace(f"[checks]\n{checks}\n", "[checks]\nrows = { min = 2 }\n")
    file.write_text(other, encoding="utf-8")
    assert run_job(load_job(file), DAY).replayed  # other checks do not make it another question


def test_who_wants_rows_says_so(job_file, basic):
    text = f"{basic}\n[checks]\nrows = {{ min = 1 }}\n"
    assert "the range of [checks] rows" in complaint(job_file, text, frame(), date(2020, 2, 1))


def test_a_period_column_of_texts_is_a_config_error(job_file, basic, engine):
    with pytest.raises(ConfigError, match="not dates"):
        outcome(job_file, basic, frame(day=["2020-01-01", "2020-01-02"]), engine=engine)


def test_a_domain_of_another_kind_names_the_release(job_file, basic):
    with pytest.raises(ArgumentError, match="release 'people_by_town': domain names the cells of 'town' by integer"):
        outcome(job_file, basic.replace("k = 5", "k = 5\ndomain = [1, 2]"), frame())


def test_units_beyond_the_domain_can_be_absent_by_rule(job_file, basic):
    outcome(job_file, basic.replace("k = 5", 'k = 5\ndomain = ["Ås"]\nundeclared = "absent"'), frame())


@thinned(2)
@pytest.mark.parametrize(
    ("bounds", "passes"), [("min = 2", True), ("min = 3", False), ("max = 2", True), ("max = 1", False)]
)
def test_the_number_of_rows_has_a_range(job_file, basic, bounds, passes, engine):
    text = f"{basic}\n[checks]\nrows = {{ {bounds} }}\n"
    if passes:
        outcome(job_file, text, frame(), engine=engine)
    else:
        message = complaint(job_file, text, frame(), engine=engine)
        assert "the number of rows must be in the range of [checks] rows" in message
        assert "2" not in message.replace("2020-01-01", "")


def test_all_columns_are_looked_at_before_any_row_is_read(job_file, basic):
    text = f'{basic}\n[checks]\ncolumns = {{ town = "number", rank = "number", person = "text", day = "instant" }}\n'
    message = complaint(job_file, text, frame(), date(2099, 1, 1))
    assert "column 'rank' must exist; column 'town' must hold numbers; column 'day' must hold timestamps in" in message
    assert "rows on that date" not in message
    assert "'person'" not in message


@pytest.mark.parametrize(("kind", "value", "passes"), [("number", 1.5, True), ("real", 1.5, True), ("real", 1, False)])
def test_floating_point_numbers_are_numbers_but_not_the_other_way_round(job_file, basic, kind, value, passes, engine):
    text = f'{basic}\n[checks]\ncolumns = {{ size = "{kind}" }}\n'
    if passes:
        outcome(job_file, text, frame(size=[value] * 2), engine=engine)
    else:
        assert "column 'size' must hold floating-point numbers" in complaint(
            job_file, text, frame(size=[value] * 2), engine=engine
        )


def test_a_day_is_fresh_when_the_source_has_a_later_one(job_file, basic, engine):
    text = f'{basic}\n[checks]\nfresh = {{ column = "day", days = 2 }}\n'
    outcome(job_file, text, days(3), engine=engine)
    message = complaint(job_file, text, days(2), engine=engine)
    assert "the newest value of column 'day' must be at least 2 days after that date" in message
    assert "2020-01-02" not in message


def test_a_column_that_holds_no_days_cannot_say_how_fresh_it_is(job_file, basic):
    text = f'{basic}\n[checks]\nfresh = {{ column = "town" }}\n'
    assert "column 'town' must hold dates or times" in complaint(job_file, text, frame())
    assert "column 'when' must exist" in complaint(job_file, text.replace('"town" }', '"when" }'), frame())


def test_one_message_lists_every_broken_rule(job_file, basic):
    text = basic.replace('"drop"', '"error"') + textwrap.dedent("""
        [[release]]
        name = "people_by_kind"
        by = "kind"
        k = 5
        domain = ["a"]

        [checks]
        rows = { min = 10 }
        fresh = { column = "day" }

        [[checks.expect]]
        type = "expect_column_values_to_be_in_set"
        column = "town"
        value_set = ["Ås"]
    """)
    people = frame(day=[DAY] * 4, person=["Ann", "Ann", None, "Bob"], town=["Ås", "Bø"] * 2, kind=["a", "a", "a", "b"])
    message = complaint(job_file, text, people)
    for rule in (
        "'person' must be present in every row",
        "[checks] rows",
        "newest value of column 'day'",
        "release 'people_by_town': units 'person' must not have rows in several cells of 'town'",
        "release 'people_by_kind': 'kind' must not have values that domain does not list",
        "expect_column_values_to_be_in_set of 'town' (checks.expect[1]) is not met",
    ):
        assert message.count(rule) == 1


def test_where_a_hash_draws_no_rule_is_about_several_cells(job_file, basic):
    for rule, stated in (("", True), ('\none_cell = "hash"', False)):
        job = load_job(job_file(basic.replace('by = "town"', f'by = "town"{rule}'), frame()))
        assert any("several cells" in text for text in stated_rules(job, DAY)) is stated


def test_a_failed_check_leaves_no_event_in_the_ledger(job_file, basic):
    """Not even a reservation that was given back."""
    job = load_job(job_file(basic, frame(person=["Ann", "Ann"])))
    with pytest.raises(InputCheckError, match="several cells"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()
    Path(job.ledger).parent.mkdir()
    Ledger.open(job.ledger, dataset=job.dataset).close()
    with pytest.raises(InputCheckError):
        run_job(job, DAY)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert ledger.head() == "0" * 64


def test_of_two_releases_none_is_charged_when_one_fails_its_check(job_file, basic):
    counts = '[[release]]\nname = "people"\nnoise = { epsilon = 0.5 }\n\n[[release]]'
    text = basic.replace("[[release]]", counts).replace("[attacker]\np_max = 0.5\n", "")
    text = text.replace("k = 5", "k = 5\nrelease_threshold = 5\nnoise = { epsilon = 0.5 }")
    job = load_job(job_file(text, frame(person=["Ann", "Ann"])))
    with pytest.raises(InputCheckError, match="release 'people_by_town': units 'person'"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()


def test_great_expectations_reports_to_nobody(great_expectations, monkeypatch):
    def refuse(*arguments, **names):
        raise AssertionError("it asks the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    expectation = expectations.Expectation(
        place="a", type="expect_column_values_to_be_between", arguments={"column": "a", "max_value": 0}
    )
    assert expectations.judge(pd.DataFrame({"a": [1]}), [expectation]) == ["not met"]
    _, context = great_expectations
    assert type(context).__name__ == "EphemeralDataContext"
    assert context.config.analytics_enabled is False
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert expectations._library()[1] is context


@pytest.mark.slow
def test_great_expectations_is_lazy_and_reports_to_nobody_from_the_start(tmp_path):
    program = """
        import socket, sys, os
        calls = []
        def refuse(*arguments, **names):
            calls.append(arguments)
            raise OSError("no network in this test")
        socket.socket.connect = refuse
        socket.getaddrinfo = refuse
        import pkdp_pipeline.jobs
        import pandas as pd
        from pkdp_pipeline.jobs import expectations
        assert "great_expectations" not in sys.modules
        asked = expectations.Expectation(
            place="a", type="expect_column_values_to_be_between", arguments={"column": "a", "max_value": 0}
        )
        assert expectations.judge(pd.DataFrame({"a": [1]}), [asked]) == ["not met"]
        library, context = expectations._library()
        assert type(context).__name__ == "EphemeralDataContext"
        assert context.config.analytics_enabled is False
        assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
        assert not calls, calls
        assert expectations._library()[1] is context
        assert None not in sys.modules.values()
        print("done")
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert (ran.stdout, ran.stderr) == ("done\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def without_expectations(job_file, basic):
    """What a process ended with that published, replayed and was refused a day, without expectations."""
    file = job_file(basic)
    program = f"""
        import sys
        from datetime import date
        from pkdp_pipeline.errors import DifferencingError
        from pkdp_pipeline.jobs import expectations, load_job, run_job
        assert not run_job(load_job({str(file)!r}), date(2020, 1, 1)).replayed
        assert run_job(load_job({str(file)!r}), date(2020, 1, 1)).replayed
        try:
            run_job(load_job({str(file)!r}), date(2020, 1, 1), revise=True)
        except DifferencingError:
            print("refused")
        assert "great_expectations" not in sys.modules
    """
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_runs_without_expectations_do_not_load_great_expectations(without_expectations):
    ran = without_expectations
    assert (ran.returncode, ran.stdout) == (0, "refused\n"), ran.stderr
