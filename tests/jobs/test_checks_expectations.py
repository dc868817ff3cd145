from __future__ import annotations

import gc
import json
import logging
import re
import textwrap
import time
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from pkdp_pipeline import Ledger
from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.jobs import load_job, run_job
from pkdp_pipeline.jobs.checks import check_input
from pkdp_pipeline.jobs.expectations import ALLOWED, Expectation, judge
from pkdp_pipeline.jobs.job import open_source

pytestmark = pytest.mark.usefixtures("great_expectations")

DAY = date(2020, 1, 1)
SECRET = "Secretville"


def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "day": [DAY] * 4 + [date(2020, 1, 2)],
            "person": ["Ann", "Bob", "Cat", "Dan", "Eve"],
            "town": ["Ås", "Ås", "Bø", SECRET, "elsewhere"],
            "size": [1, 2, 3, 4, -5],
            "other": [2, 2, 4, 4, -6],
            "weight": [0.5, 1.5, 2.5, None, -1.0],
            "when": pd.to_datetime(["2020-01-01T00", "2020-01-01T00", "2020-01-01T10", None, "2019-01-01T00"]),
            "born": [date(1990, 1, 1), date(1991, 1, 1), None, date(1992, 2, 2), date(1800, 1, 1)],
            "sure": [True, True, False, True, False],
            "note": ["1", "[1]", "{}", "null", "{"],
        }
    )


def checked(job_file, basic, text, engine="duckdb", frame=None):
    job = load_job(
        job_file(f'engine = "{engine}"\n{basic}\n{textwrap.dedent(text)}', rows() if frame is None else frame)
    )
    source = open_source(job)
    try:
        check_input(source, job, DAY)
    finally:
        source.close()


#: type → arguments that hold and arguments that do not, about the four rows of the day.
EXAMPLES = {
    "expect_column_distinct_values_to_be_in_set": (
        "column='sure' value_set=[true,false]",
        "column='size' value_set=[1]",
    ),
    "expect_column_distinct_values_to_contain_set": ("column='size' value_set=[1,2]", "column='size' value_set=[9]"),
    "expect_column_distinct_values_to_equal_set": ("column='other' value_set=[2,4]", "column='other' value_set=[2]"),
    "expect_column_max_to_be_between": ("column='when' max_value=2020-01-02", "column='size' max_value=3"),
    "expect_column_mean_to_be_between": ("column='size' min_value=2.5", "column='size' min_value=2.6"),
    "expect_column_median_to_be_between": ("column='size' max_value=2.5", "column='size' max_value=2.4"),
    "expect_column_min_to_be_between": ("column='born' min_value=1990-01-01", "column='born' min_value=1990-01-02"),
    "expect_column_most_common_value_to_be_in_set": (
        "column='town' value_set=['Ås']",
        "column='town' value_set=['Bø']",
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": (
        "column_A='other' column_B='size' or_equal=true",
        "column_A='other' column_B='size'",
    ),
    "expect_column_pair_values_to_be_equal": (
        "column_A='size' column_B='other' mostly=0.5",
        "column_A='size' column_B='other'",
    ),
    "expect_column_pair_values_to_be_in_set": (
        "column_A='size' column_B='other' value_pairs_set=[[1,2],[2,2],[3,4],[4,4]]",
        "column_A='size' column_B='other' value_pairs_set=[[1,2]]",
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": (
        "column='weight' min_value=0.75",
        "column='weight' min_value=0.8",
    ),
    "expect_column_proportion_of_unique_values_to_be_between": (
        "column='size' min_value=1",
        "column='other' min_value=0.6",
    ),
    "expect_column_quantile_values_to_be_between": (
        "column='size' quantile_ranges={quantiles=[0.5],value_ranges=[[2,3]]}",
        "column='size' quantile_ranges={quantiles=[0.5],value_ranges=[[4,9]]}",
    ),
    "expect_column_stdev_to_be_between": ("column='size' max_value=2", "column='size' max_value=1"),
    "expect_column_sum_to_be_between": ("column='size' min_value=10", "column='size' min_value=11"),
    "expect_column_to_exist": ("column='size'", None),
    "expect_column_unique_value_count_to_be_between": ("column='town' min_value=3", "column='town' max_value=2"),
    "expect_column_value_lengths_to_be_between": ("column='town' min_value=2", "column='town' max_value=3"),
    "expect_column_value_lengths_to_equal": ("column='person' value=3", "column='town' value=3"),
    "expect_column_value_z_scores_to_be_less_than": (
        "column='size' threshold=2 double_sided=true",
        "column='size' threshold=0.1 double_sided=true",
    ),
    "expect_column_values_to_be_between": (
        "column='when' min_value=2020-01-01 max_value=2020-01-01T10:00:00",
        "column='when' min_value=2020-01-01T01:00:00",
    ),
    "expect_column_values_to_be_dateutil_parseable": (
        "column='day_text'",
        "column='town'",
    ),
    "expect_column_values_to_be_in_set": (
        "column='born' value_set=[1990-01-01,1991-01-01,1992-02-02]",
        "column='born' value_set=[1990-01-01]",
    ),
    "expect_column_values_to_be_json_parseable": ("column='note'", "column='town'"),
    "expect_column_values_to_be_null": ("column='weight' mostly=0.25", "column='weight'"),
    "expect_column_values_to_be_unique": ("column='person'", "column='town'"),
    "expect_column_values_to_match_regex": ("column='person' regex='^[A-Z]'", "column='town' regex='^Å'"),
    "expect_column_values_to_match_regex_list": (
        "column='town' regex_list=['^Å','^B','^S'] match_on='any'",
        "column='town' regex_list=['^Å','^B','^S'] match_on='all'",
    ),
    "expect_column_values_to_match_strftime_format": (
        "column='day_text' strftime_format='%Y-%m-%d'",
        "column='day_text' strftime_format='%Y'",
    ),
    "expect_column_values_to_not_be_in_set": ("column='town' value_set=['Oslo']", "column='town' value_set=['Ås']"),
    "expect_column_values_to_not_be_null": ("column='weight' mostly=0.7", "column='weight'"),
    "expect_column_values_to_not_be_outliers": (
        "column='size' method='iqr' multiplier=1.5",
        "column='size' method='std' multiplier=0.5",
    ),
    "expect_column_values_to_not_match_regex": ("column='town' regex='^X'", "column='town' regex='^Å'"),
    "expect_column_values_to_not_match_regex_list": (
        "column='town' regex_list=['^X']",
        "column='town' regex_list=['^Å']",
    ),
    "expect_compound_columns_to_be_unique": ("column_list=['size','other']", "column_list=['other','sure']"),
    "expect_multicolumn_sum_to_equal": (
        "column_list=['size','other'] sum_total=3 mostly=0.25",
        "column_list=['size','other'] sum_total=3",
    ),
    "expect_multicolumn_values_to_be_equal": (
        "column_list=['size','other'] mostly=0.5",
        "column_list=['size','other']",
    ),
    "expect_select_column_values_to_be_unique_within_record": (
        "column_list=['size','other'] mostly=0.5",
        "column_list=['size','other']",
    ),
    "expect_table_row_count_to_be_between": ("min_value=4 max_value=4", "min_value=5"),
    "expect_table_row_count_to_equal": ("value=4", "value=5"),
}


def test_there_is_an_example_of_every_type():
    assert set(EXAMPLES) == ALLOWED


def test_every_type_can_be_met_and_not_met(job_file, basic):
    frame = rows().assign(day_text="2020-01-01")
    text, expected = "", []
    for kind, examples in EXAMPLES.items():
        for example in examples:
            if example is not None:
                arguments = "\n".join(example.replace("' ", "'\n").replace("] ", "]\n").split("\n"))
                arguments = "\n".join(part for line in arguments.split("\n") for part in split(line))
                text += f"[[checks.expect]]\ntype = '{kind}'\n{arguments}\n"
        expected += [kind] if examples[1] is not None else []
    with pytest.raises(InputCheckError) as caught:
        checked(job_file, basic, text, frame=frame)
    failed_types = [line.split()[0] for line in str(caught.value).split(": ", 1)[1].split("; ")]
    assert "does not fit" not in str(caught.value)
    assert failed_types == expected


def split(line):
    """Split arguments at blanks that are not inside brackets or quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for position, sign in enumerate(line):
        quoted ^= sign == "'"
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
        if sign == " " and not depth and not quoted:
            parts.append(line[start:position])
            start = position + 1
    return [*parts, line[start:]]


def test_every_type_is_one_of_great_expectations_and_of_this_page():
    judge(pd.DataFrame({"a": [1]}), [])
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    assert set(list_registered_expectation_implementations()) >= ALLOWED
    page = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
    types = page.partition("with `expect_` in front:")[2].partition("Refused are")[0]
    assert {f"expect_{name}" for name in re.findall(r"`(\w+)`", types)} == ALLOWED


def test_an_expectation_looks_at_the_day_alone(job_file, basic):
    expect = "[[checks.expect]]\ntype = 'expect_column_values_to_be_between'\ncolumn = 'size'\nmin_value = {}\n"
    checked(job_file, basic, expect.format(1))
    with pytest.raises(
        InputCheckError, match=r"expect_column_values_to_be_between of 'size' \(checks.expect\[1\]\) is not met"
    ):
        checked(job_file, basic, expect.format(2))


def test_a_suite_is_read_as_great_expectations_writes_it(job_file, basic, tmp_path):
    judge(pd.DataFrame({"a": [1]}), [])
    import great_expectations as gx
    from great_expectations.expectations.row_conditions import Column

    suite = gx.ExpectationSuite(
        name="of the day",
        expectations=[
            gx.expectations.ExpectColumnValuesToBeBetween(column="size", min_value=1, meta={"a": "note"}),
            gx.expectations.ExpectColumnValuesToBeBetween(
                column="size",
                min_value=3,
                row_condition=(Column("weight") > 2) | Column("weight").is_null(),
                condition_parser="great_expectations",
            ),
            gx.expectations.ExpectTableRowCountToEqual(value=5),
            gx.expectations.ExpectColumnMaxToBeBetween(column="size", max_value=1, severity="warning"),
        ],
    )
    (tmp_path / "checks.json").write_text(json.dumps(suite.to_json_dict()), encoding="utf-8")
    with pytest.raises(InputCheckError) as caught:
        checked(job_file, basic, "[checks]\nexpectations = 'checks.json'")
    assert str(caught.value).endswith(": expect_table_row_count_to_equal (checks.json[3]) is not met.")


def test_a_suite_names_columns_of_a_csv_file_too(job_file, basic, tmp_path):
    """The job itself names them in `types` alone; without that they hold text."""
    rows().to_csv(tmp_path / "visits.csv", index=False)
    entry = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "size", "min_value": 1, "max_value": 3}}
    (tmp_path / "checks.json").write_text(json.dumps({"expectations": [entry]}), encoding="utf-8")
    source = '{ files = "visits.csv", types = { size = "number" } }'
    with pytest.raises(InputCheckError, match=r"of 'size' \(checks.json\[1\]\) is not met"):
        checked(job_file, basic.replace('"visits.parquet"', source), "[checks]\nexpectations = 'checks.json'")


def test_a_condition_says_which_rows_an_expectation_is_about(job_file, basic):
    text = """
        [[checks.expect]]
        type = "expect_column_values_to_be_between"
        column = "size"
        min_value = 3
        row_condition = { type = "comparison", column = { name = "town" }, operator = "NOT_IN", parameter = ["Ås"] }
    """
    checked(job_file, basic, text)
    with pytest.raises(InputCheckError, match="of 'size', 'town'"):
        checked(job_file, basic, text.replace('"NOT_IN"', '"IN"'))


def test_a_warning_does_not_stop_the_job(job_file, basic, capfd):
    text = """
        [[checks.expect]]
        type = "expect_column_values_to_be_between"
        column = "size"
        min_value = 3
        severity = "warning"
    """
    checked(job_file, basic, text)
    assert capfd.readouterr() == (
        "",
        "warning: the input check for 2020-01-01: expect_column_values_to_be_between of 'size' (checks.expect[1]) is "
        "not met; the job goes on.\n",
    )


def test_what_does_not_fit_a_column_stops_the_job_without_a_trace_of_values(job_file, basic, capfd, caplog, recwarn):
    caplog.set_level(logging.DEBUG)
    text = """
        [[checks.expect]]
        type = "expect_column_values_to_be_between"
        column = "town"
        min_value = 3

        [[checks.expect]]
        type = "expect_column_values_to_be_in_set"
        column = "town"
        value_set = ["Ås", "Bø"]

        [[checks.expect]]
        type = "expect_column_mean_to_be_between"
        column = "town"
        min_value = 1
    """
    with pytest.raises(InputCheckError) as caught:
        checked(job_file, basic, text)
    message = str(caught.value)
    assert (
        "expect_column_values_to_be_between of 'town' (checks.expect[1]) does not fit what the columns hold" in message
    )
    assert "expect_column_values_to_be_in_set of 'town' (checks.expect[2]) is not met" in message
    assert "expect_column_mean_to_be_between of 'town' (checks.expect[3]) does not fit" in message
    assert caught.value.__context__ is None
    texts = [message, *capfd.readouterr(), caplog.text, *(str(warning.message) for warning in recwarn)]
    assert not any(SECRET in text or "Traceback" in text for text in texts)


def test_a_column_that_an_expectation_names_must_exist(job_file, basic):
    text = "[[checks.expect]]\ntype = 'expect_column_to_exist'\ncolumn = 'nowhere'\n"
    with pytest.raises(InputCheckError, match="column 'nowhere' must exist"):
        checked(job_file, basic, text)


def test_rows_are_forgotten_after_the_check():
    own = "Forgotten upon Avon"  # in no frame of another test, which pytest may still hold
    frame = pd.DataFrame({"town": [f"{own} {number}" for number in range(3)]})
    expectations = [
        Expectation(place="a", type="expect_column_values_to_be_unique", arguments={"column": "town"}),
        Expectation(place="b", type="expect_column_values_to_be_null", arguments={"column": "town"}),
    ]
    assert judge(frame, expectations) == ["met", "not met"]
    del frame

    def is_held() -> bool:
        gc.collect()
        frames = [thing for thing in gc.get_objects() if isinstance(thing, pd.DataFrame | pd.Series)]
        return any(own in str(frame) for frame in frames if len(frame) <= 3)

    # Collecting does nothing while a thread that another test has left is collecting.
    deadline = time.monotonic() + 300
    while is_held():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_failed_expectation_writes_nothing_public_and_charges_nothing(job_file, basic, tmp_path):
    text = (
        f"{basic}\n[[checks.expect]]\ntype = 'expect_column_values_to_be_in_set'\ncolumn = 'town'\nvalue_set = ['Ås']\n"
    )
    job = load_job(job_file(text.replace('"out/ledger', '"ledger'), rows()))
    before = set(tmp_path.iterdir())
    with pytest.raises(InputCheckError):
        run_job(job, DAY)
    with Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []
    written = [file for path in set(tmp_path.iterdir()) - before for file in [path, *path.rglob("*")] if file.is_file()]
    for file in written:
        assert SECRET.encode() not in file.read_bytes()
        assert b"expect_" not in file.read_bytes()
    assert not [file for file in (tmp_path / "out").rglob("*") if file.is_file() and file.stat().st_size]


def test_what_the_curator_is_told_reaches_no_output(job_file, basic, tmp_path, capfd):
    text = f"{basic.replace('k = 5', 'k = 2')}\n[[checks.expect]]\ntype = 'expect_column_values_to_be_in_set'\n"
    text += "column = 'town'\nvalue_set = ['Ås']\nseverity = 'warning'\n"
    run_job(load_job(job_file(text, rows())), DAY)
    assert "expect_column_values_to_be_in_set" in capfd.readouterr().err
    written = [file for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert any(file.suffix == ".parquet" for file in written)
    for file in written:
        content = file.read_bytes()
        assert b"expect_" not in content
        assert b"Secretville" not in content


UNIQUE = "type = 'expect_column_values_to_be_unique'\n"
BETWEEN = "type = 'expect_column_values_to_be_between'\ncolumn = 'a'\n"
COMPLAINTS = [
    ("type = 'expect_column_values_to_be_betwen'\ncolumn = 'a'", ".type: .*did you mean 'expect_column_values_to_be_b"),
    ("type = 'expect_the_unexpected'", r"docs/checks\.md"),
    ("column = 'a'", r"checks.expect\[1\].type: None"),
    ("type = 'unexpected_rows_expectation'\nunexpected_rows_query = 'SELECT 1'", "not among"),
    ("type = 'expect_query_results_to_match_comparison'", "not among"),
    (UNIQUE, r"\[1\].column: field required"),
    (f"{UNIQUE}column = 'a'\nmosty = 1", r"\[1\].mosty: extra fields"),
    (f"{UNIQUE}column = 'a'\nmostly = 2", r"\[1\].mostly: .*less than or equal to 1"),
    (f"{UNIQUE}column = ''", r"\[1\].column: "),
    (f"{UNIQUE}column = 'a'\nseverity = 'low'", r"\[1\].severity: "),
    (BETWEEN, "min_value and max_value cannot both be None"),
    ("type = 'expect_column_max_to_be_between'\ncolumn = 'a'", "needs min_value, max_value or both"),
    (f"{BETWEEN}min_value = 'b'", r"\[1\].min_value: "),
    (f"{BETWEEN}min_value = {{ '$PARAMETER' = 'now()' }}", "min_value: .*run as code"),
    (
        "type = 'expect_column_values_to_be_in_set'\ncolumn = 'a'\nvalue_set = [{ '$PARAMETER' = 'now()' }]",
        "value_set: .*run as code",
    ),
    (f"{UNIQUE}column = 'a'\nrow_condition = 'a > 1'", "text would be run as code"),
    (
        f"{UNIQUE}column = 'a'\nrow_condition = {{ type = 'pass_through', pass_through_filter = 'a' }}",
        "text would be run as code",
    ),
    (
        f"{UNIQUE}column = 'a'\nrow_condition = {{ type = 'and', conditions = [{{ type = 'pass_through', "
        "pass_through_filter = 'a' }] }",
        "text would be run as code",
    ),
    (f"{UNIQUE}column = 'a'\nrow_condition = {{ type = 'comparison' }}", "row_condition: must be a table"),
    (f"{UNIQUE}column = 'a'\ncondition_parser = 'pandas'", "text would be run as code"),
]


@pytest.mark.parametrize(("text", "words"), COMPLAINTS)
def test_what_cannot_be_an_expectation_is_refused_when_the_job_is_read(job_file, basic, text, words):
    with pytest.raises(ConfigError, match=words):
        load_job(job_file(f"{basic}\n[[checks.expect]]\n{text}\n"))


def test_all_complaints_about_expectations_come_at_once(job_file, basic):
    text = "[[checks.expect]]\ntype = 'expect_nothing'\n" * 2
    with pytest.raises(ConfigError, match=r"(?s)checks.expect\[1\].*checks.expect\[2\]"):
        load_job(job_file(f"{basic}\n{text}"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "is no suite of Great Expectations 1.x"),
        ('{"expectations": [{"expectation_type": "expect_column_to_exist", "kwargs": {}}]}', "type and kwargs"),
        ('{"expectations": [], "suite_parameters": {"a": 1}}', "suite_parameters"),
        ('{"expectations": [{"type": "expect_nothing", "kwargs": {}}]}', r"checks.json\[1\].type: "),
    ],
)
def test_a_suite_that_cannot_be_used_is_refused_when_the_job_is_read(job_file, basic, tmp_path, content, words):
    if content is not None:
        (tmp_path / "checks.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        load_job(job_file(f"{basic}\n[checks]\nexpectations = 'checks.json'\n"))
