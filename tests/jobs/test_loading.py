from __future__ import annotations

import json
from dataclasses import fields
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from thorough import thinned

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import Job, load_job
from pkdp_pipeline.jobs import job as job_module
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.display import Bands, PerturbationTable, Rounding
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram
from pkdp_pipeline.model.question import Question

SCHEMA = Path(job_module.__file__).parents[1] / "schemas" / "job.v1.json"


def test_a_job_is_read_with_absolute_paths(job_file, tmp_path):
    job = load_job(job_file())
    assert job.source.files == (str(tmp_path / "visits.parquet"),)
    assert job.ledger == str(tmp_path / "out" / "ledger.sqlite")
    assert job.output.directory == str(tmp_path / "out")
    assert job.unit == ("person",)
    assert job.attacker_model() == AttackerModel(p_max=0.5)
    assert job.release[0].mechanism == Histogram(k=5)


def test_an_engine_is_duckdb_unless_said_and_spark_reads_addresses(job_file, basic, tmp_path):
    assert load_job(job_file()).engine == "duckdb"
    for engine in ("duckdb", "spark"):
        job = load_job(job_file(f'engine = "{engine}"\n{basic}'))
        assert (job.engine, job.source.files) == (engine, (str(tmp_path / "visits.parquet"),))
    address = basic.replace("visits.parquet", "s3a://visits/all.parquet")
    assert load_job(job_file(f'engine = "spark"\n{address}')).source.files == ("s3a://visits/all.parquet",)


def test_every_key_of_a_release_reaches_its_mechanism(job_file, basic):
    release = basic.replace(
        'by = "town"\nk = 5',
        "k = 3\nk_complement = 2\nnoise = { epsilon = 1 }\nrelease_threshold = 9\nwhere = \"town == 'Ås'\"",
    )
    job = load_job(job_file(release))
    noised = {"noise": GeometricNoise(1.0), "release_threshold": 9}
    assert job.release[0].mechanism == Count(k=3, k_complement=2, **noised)
    shown = basic.replace("k = 5", 'k = 8\ndisplay = { rounding = 5, mode = "down" }')
    assert load_job(job_file(shown)).release[0].mechanism == Histogram(k=8, display=Rounding(5, "down"))
    bands = basic.replace("k = 5", "display = { bands = [0, 10, 20] }")
    assert load_job(job_file(bands)).release[0].mechanism == Histogram(k=10, display=Bands([0, 10, 20]))
    table = basic.replace("k = 5", "k = 8\ndisplay = { perturbation = [[0, 0, 1.0], [1, 0, 0.5], [1, 2, 0.5]] }")
    assert load_job(job_file(table)).release[0].mechanism.display.chances(1) == ((0, 0.5), (2, 0.5))
    below = basic.replace("k = 5", 'k = 3\nnoise = { epsilon = 1 }\nrelease_threshold = 9\nbelow = "noise"')
    assert load_job(job_file(below)).release[0].mechanism == Histogram(k=3, **noised, below="noise").of_found_cells()


def test_a_perturbation_table_is_read_beside_the_job_and_its_content_is_hashed(job_file, basic, tmp_path):
    def written(rows, display='"chances.csv"'):
        (tmp_path / "chances.csv").write_text(f"count,shown,probability\n{rows}", encoding="utf-8")
        return job_file(basic.replace("k = 5", f"k = 8\ndisplay = {{ perturbation = {display} }}"))

    job = load_job(written("0,0,1\n1,0,0.5\n1,2,0.5\n"))
    table = PerturbationTable([(0, 0, 1.0), (1, 0, 0.5), (1, 2, 0.5)])
    assert job.release[0].mechanism == Histogram(k=8, display=table)
    # The same table is the same job, however it is written; another one under the same path is another.
    (tmp_path / "chances.csv").rename(tmp_path / "moved.csv")
    assert load_job(written("", '"moved.csv"')).digest == job.digest
    assert load_job(written("", "[[1, 2, 0.5], [0, 0, 1.0], [1, 0, 0.5]]")).digest == job.digest
    assert load_job(written("0,0,1\n1,0,0.4\n1,2,0.6\n")).digest != job.digest
    for rows, words in (
        ("0,0,x\n", "display.perturbation.*chances.csv.*line 2.*'probability'"),
        ("0,0,0.5\n", "sum to 1"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_job(written(rows))
    with pytest.raises(ConfigError, match=r"nowhere\.csv.*cannot be read"):
        load_job(written("", '"nowhere.csv"'))


@pytest.mark.parametrize(
    ("release", "match"),
    [
        ('k = 5\ndomain = ["Ås"]', "give k and noise"),
        ('noise = { epsilon = 1 }\ndomain = ["Ås"]', "give k and noise"),
        ("k = 5\nnoise = { epsilon = 1 }", "needs release_threshold"),
        ('k = 5\nnoise = { epsilon = 1 }\ndomain = ["Ås"]\ncells_per_unit = 2', "in one cell"),
        ('k = 5\nnoise = { epsilon = 1 }\ndomain = ["Ås"]\nby = "exact"', "rename"),
    ],
)
def test_small_counts_are_noised_only_where_that_is_whole(job_file, basic, release, match):
    keys = basic.replace("k = 5", f'below = "noise"\n{release}')
    if "by = " in release:
        keys = keys.replace('by = "town"\n', "")
    with pytest.raises(ConfigError, match=match):
        load_job(job_file(keys))


@pytest.mark.parametrize(
    ("display", "match"),
    [
        ("{ rounding = 1 }", "at least 2"),
        ("{ rounding = 5, random_rounding = 3 }", "display must be one rule"),
        ('{ bands = [0, 5], mode = "down" }', "display must be one rule"),
        ("{ bands = [5, 10] }", "begin with 0"),
        ("{ rounded = 5 }", "unknown key 'rounded'"),
        ("{}", "display must be one rule"),
    ],
)
def test_a_rule_of_display_that_means_nothing_is_refused(job_file, basic, display, match):
    with pytest.raises(ConfigError, match=match):
        load_job(job_file(basic.replace("k = 5", f"k = 5\ndisplay = {display}")))


def test_every_rule_for_rows_reaches_the_request(job_file, basic):
    text = basic.replace(
        'by = "town"',
        'by = "town"\ndomain = ["Ås"]\nundeclared = "absent"\none_cell = "first"\norder_by = ["rank", "day"]\n'
        'where = "adult"\nprotects = "value"',
    )
    job = load_job(job_file(text.replace('missing_unit = "drop"', 'missing_unit = "drop"\none_cell = "hash"')))
    (publication,) = job.publications(date(2020, 1, 2))
    expected = Question(
        mechanism=Histogram(k=5),
        unit="person",
        protects="value",
        by="town",
        domain=["Ås"],
        where="adult",
        missing_unit="drop",
        one_cell="first",
        order_by=["rank", "day"],
        undeclared="absent",
        period="2020-01-02",
        label="people_by_town",
    )
    for field in fields(Question):
        assert getattr(publication.question, field.name) == getattr(expected, field.name), field.name
    without = text.replace('missing_unit = "drop"\n', "")
    without = without.replace('one_cell = "first"\norder_by = ["rank", "day"]\n', "")
    (publication,) = load_job(job_file(without)).publications(date(2020, 1, 2))
    assert (publication.question.missing_unit, publication.question.one_cell, publication.question.order_by) == (
        "error",
        "error",
        (),
    )


def test_the_jobs_rules_for_cells_are_for_histograms_alone(job_file, basic):
    text = basic.replace('missing_unit = "drop"', 'one_cell = "most_frequent"')
    counted = text.replace("[output]", '[[release]]\nname = "people"\nk = 5\n\n[output]')
    histogram, count = load_job(job_file(counted)).publications(date(2020, 1, 2))
    assert (histogram.question.one_cell, count.question.one_cell) == ("most_frequent", "error")


def test_composite_cells_are_read_as_tuples(job_file, basic):
    text = basic.replace('by = "town"', 'by = ["town", "day"]\ndomain = [["Ås", 2020-01-01], ["Bø", 2020-01-01]]')
    job = load_job(job_file(text))
    assert job.release[0].by == ("town", "day")
    assert [cell[0] for cell in job.release[0].domain] == ["Ås", "Bø"]
    product = basic.replace('by = "town"', 'by = ["town", "sex"]\ndomain = { town = ["Ås", "Bø"], sex = ["f", "m"] }')
    (publication,) = load_job(job_file(product)).publications(date(2020, 1, 1))
    assert len(publication.question.domain.cells) == 4


@thinned(4)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("dataset =", "data_set =", ["unknown key 'data_set'", "did you mean 'dataset'"]),
        ("k = 5", "k = 5\nnoize = 1", ["release[1]", "unknown key 'noize'", "did you mean 'noise'"]),
        ("k = 5", "k = 5\nrounding = 5", ["release[1]", "unknown key 'rounding'", "stands inside 'display'"]),
        ("p_max = 0.5", "pmax = 0.5", ["attacker", "unknown key 'pmax'", "did you mean 'p_max'"]),
        ("p_max = 0.5", "zebra = 0.5", ["attacker", "unknown key 'zebra'", "known are p_max"]),
        ('column = "day"', 'colum = "day"', ["period", "did you mean 'column'"]),
        ('directory = "out"', 'folder = "out"', ["output", "unknown key 'folder'"]),
        ('dataset = "visits"', "", ["dataset: is required"]),
        ("k = 5", "k = 5.5", ["release[1].k", "whole number"]),
        ("k = 5", 'k = "5"', ["release[1].k", "whole number"]),
        ("k = 5", "k = 0", ["release[1]", "k must be at least 1"]),
        ("k = 5", "k = 5\nnoise = { epsilon = -1.0 }", ["release[1]", "epsilon"]),
        ("k = 5", "k = 5\nrelease_threshold = 7", ["release_threshold", "needs noise"]),
        ("k = 5", "k = 5\nk_complement = 7", ["k_complement", "counts"]),
        ('by = "town"', 'domain = ["Ås"]', ["domain", "add by"]),
        ('by = "town"', 'protects = "value"', ["protects", "add by"]),
        ('by = "town"', "by = []", ["release[1].by", "column name"]),
        ('by = "town"', 'by = ["town", "town"]', ["release[1].by", "twice"]),
        ('by = "town"', 'by = "town"\ndomain = []', ["release[1].domain", "non-empty"]),
        ('by = "town"', 'by = "town"\ndomain = [1.5]', ["release[1].domain", "dates"]),
        ("p_max = 0.5", "p_max = 1.5", ["attacker", "p_max must be a probability"]),
        ("p_max = 0.5", "p_max = 0.5\np_min = 0.6", ["p_min", "above p_max"]),
        ('missing_unit = "drop"', 'missing_unit = "ignore"', ["missing_unit", "'error' or 'drop'"]),
        ('name = "people_by_town"', 'name = "../escape"', ["release[1].name", "pattern"]),
        ('column = "day" }', 'column = "day", time_zone = "Mars" }', ["period.time_zone", "Europe/Oslo"]),
        ('source = "visits.parquet"', 'source = "visits.txt"', ["source", ".parquet"]),
        ('source = "visits.parquet"', 'source = "s3://visits/all.parquet"', ["source", "must be a file", "spark"]),
        ('dataset = "visits"', 'dataset = "visits"\nengine = "sparc"', ["engine", "'duckdb' or 'spark'"]),
        ("k = 5", 'k = 5\n[[release]]\nname = "People_by_town"\nk = 3', ["named 'people_by_town'"]),
    ],
)
def test_what_a_job_cannot_mean_is_a_config_error_with_file_and_key(job_file, basic, old, new, words):
    assert old in basic
    path = job_file(basic.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_job(path)
    message = str(caught.value)
    for word in [str(path), *words]:
        assert word in message


def test_an_attacker_that_nothing_uses_is_refused(job_file, basic):
    noised = basic.replace("k = 5", "k = 5\nnoise = { epsilon = 1 }\nrelease_threshold = 9")
    two = noised.replace("[output]", '[[release]]\nname = "people"\nnoise = { epsilon = 1 }\n\n[output]')
    load_job(job_file(noised))
    with pytest.raises(ConfigError, match="Remove \\[attacker\\]"):
        load_job(job_file(two))


def test_unreadable_job_files_are_config_errors(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("dataset = \n")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    deep, long = tmp_path / "deep.toml", tmp_path / "long.toml"
    deep.write_text(f"dataset = {'[' * 5000}")
    long.write_text(f"dataset = {'1' * 5000}")
    unreadable = ((tmp_path / "none.toml", "cannot be read"), (broken, "TOML.*line 1"), (binary, "UTF-8"))
    for path, word in (*unreadable, (deep, "deeply"), (long, "too long"), (tmp_path, "cannot be read")):
        with pytest.raises(ConfigError, match=word):
            load_job(path)


def test_a_byte_order_mark_is_no_part_of_a_job_file(job_file):
    path = job_file()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_job(path).dataset == "visits"


def test_the_exported_schema_is_current():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == Job.model_json_schema()


def test_the_exported_schema_accepts_the_examples_and_refuses_unknown_keys():
    import tomllib

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    examples = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))
    assert len(examples) >= 3
    for path in examples:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(content)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate(content | {"surprise": 1})
