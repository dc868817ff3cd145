from __future__ import annotations

import json
import os
import stat
from datetime import UTC, date, datetime
from pathlib import Path

import jsonschema
import pytest
from public_releases import release

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import (
    BudgetExceededError,
    ConfigError,
    DifferencingError,
    InputCheckError,
    LedgerError,
    NoEvidenceError,
    NotCertifiableError,
    TemporaryError,
)
from pkdp_pipeline.jobs import JobRelease, JobResult, load_job, run_job
from pkdp_pipeline.jobs.job import ReleaseTable
from pkdp_pipeline.jobs.steps import check_records, steps_of

DAY = date(2020, 1, 1)
PEOPLE = JobRelease(declared=ReleaseTable(name="people"), release=release({"town": ["Ås"]}, [7]))
RECORDS = '[records]\ndirectory = "runs"\n'
DOCUMENT = json.loads((Path(pkdp.__file__).parent / "schemas" / "run.v1.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(DOCUMENT, format_checker=jsonschema.FormatChecker())


@pytest.fixture
def job(job_file, basic):
    return load_job(job_file(f"{basic}{RECORDS}[checks]\nrows = {{ min = 1 }}\n"))


def ended(job, error=None, **facts) -> JobResult:
    started = datetime(2020, 1, 2, 3, 4, 5, 678000, UTC)
    return JobResult(**({"job": job, "day": DAY, "started": started, "ended": started, "error": error} | facts))


def read(job):
    """Return the run records of a job, the oldest first."""
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in Path(job.records.directory).glob("*.json")]
    for document in documents:
        VALIDATOR.validate(document)
    return sorted(documents, key=lambda document: document["started"])


def test_the_schema_is_one_and_refuses_what_no_record_says(job):
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    record = json.loads(ended(job, releases=(PEOPLE,)).to_json())
    VALIDATOR.validate(record)
    for key in record:
        assert not VALIDATOR.is_valid({name: value for name, value in record.items() if name != key}), key
    for change in (
        {"surprise": 1},
        {"record": "pkdp.run.v0"},
        {"outcome": "done"},
        {"exit_code": 1},
        {"error": {"kind": "ConfigError", "message": "no"}},
        {"outcome": "failed"},
        {"releases": [{"name": "people"}]},
        {"started": "yesterday"},
    ):
        assert not VALIDATOR.is_valid(record | change), change


def test_a_run_and_its_replay_leave_a_record_each(job):
    result = run_job(job, DAY)
    run_job(job, DAY)
    first, second = read(job)
    assert first["run"] != second["run"]
    assert [first["outcome"], second["outcome"]] == ["published", "replayed"]
    released = result.releases[0].release
    epsilon = released.certificate.epsilon(1e-6)
    assert first["releases"] == [
        {
            "name": "people_by_town",
            "id": released.id,
            "charged": True,
            "epsilon": None if epsilon == float("inf") else epsilon,
            "sentence": released.certificate.sentence(),
        }
    ]
    assert second["releases"] == [first["releases"][0] | {"charged": False}]
    assert (first["job"], first["dataset"], first["day"]) == ("job", "visits", "2020-01-01")
    assert (first["digest"], first["head"]) == (job.digest, result.head)
    assert {Path(file).name for file in first["files"]} >= {"people_by_town.parquet", "people_by_town.certificate.json"}
    assert first["started"] <= first["ended"]
    assert "the number of rows must be in the range of [checks] rows" in {check["rule"] for check in first["checks"]}
    assert all(check["passed"] for check in first["checks"])
    assert second["checks"] == []  # a replay reads no data
    assert first["versions"]["pkdp_pipeline"] == pkdp.__version__


def test_a_refused_run_leaves_a_record_with_our_words_and_no_data(job):
    with pytest.raises(InputCheckError):
        run_job(job, date(2021, 1, 1))
    (refused,) = read(job)
    assert (refused["outcome"], refused["exit_code"], refused["releases"]) == ("refused", 3, [])
    verdicts = {check["rule"]: check["passed"] for check in refused["checks"]}
    assert verdicts["the number of rows must be in the range of [checks] rows"] is False
    assert verdicts["column 'town' must exist"] is True
    assert refused["error"]["kind"] == "InputCheckError"
    assert "rows" in refused["error"]["message"]
    run_job(job, DAY)
    for path in Path(job.records.directory).iterdir():
        assert "Secretville" not in path.read_text(encoding="utf-8")


def test_records_are_the_curators_alone(job):
    before = os.umask(0)
    try:
        path = ended(job).write()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]


def test_a_job_without_records_leaves_none(job_file):
    job = load_job(job_file())
    check_records(job, steps_of(job))
    assert ended(job).write() is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BudgetExceededError("no"), "refused"),
        (DifferencingError("no"), "refused"),
        (NoEvidenceError("no"), "refused"),
        (NotCertifiableError("no"), "refused"),
        (InputCheckError("no"), "refused"),
        (ConfigError("no"), "failed"),
        (LedgerError("no"), "failed"),
        (TemporaryError("no"), "failed"),
    ],
)
def test_privacy_refuses_and_anything_else_fails(job, error, outcome):
    document = json.loads(ended(job, error, checks=[("rows", True)]).to_json())
    VALIDATOR.validate(document)
    assert document["outcome"] == outcome
    assert document["error"] == {"kind": type(error).__name__, "message": "no"}
    assert document["checks"] == [{"rule": "rows", "passed": True}]


@pytest.mark.parametrize(
    "error", [ValueError("Secretville"), KeyboardInterrupt("Secretville"), OSError(5, "Secretville")]
)
def test_errors_that_are_not_ours_have_their_kind_alone(job, error):
    document = json.loads(ended(job, error).to_json())
    VALIDATOR.validate(document)
    assert document["error"] == {"kind": type(error).__name__, "message": None}


def test_no_epsilon_is_null_and_not_infinity():
    assert PEOPLE.release.certificate.epsilon(1e-6) == float("inf")
    assert PEOPLE.facts()["epsilon"] is None


def test_moments_are_in_utc_and_name_the_file(job):
    record = ended(job, run="0" * 32)
    assert json.loads(record.to_json())["started"] == "2020-01-02T03:04:05.678Z"
    assert record.write().name == f"20200102T030405Z-{'0' * 32}.json"


def test_what_killed_runs_have_left_of_records_goes_and_what_another_job_is_writing_stays(job):
    folder = Path(job.records.directory)
    folder.mkdir()
    for stamp in ("20200101T030405Z", "20200102T030400Z"):
        (folder / f".{stamp}-a.json.partial").write_text("{")
    path = ended(job, run="0" * 32, started=datetime(2020, 1, 2, 3, 4, 6, tzinfo=UTC)).write()
    assert sorted(os.listdir(folder)) == [".20200102T030400Z-a.json.partial", path.name]


def test_the_password_of_a_database_is_in_no_record(job_file, basic, monkeypatch):
    monkeypatch.setenv("PKDP_PUBLIC", "postgresql://me:sesame@localhost:1/stats")
    job = load_job(job_file(basic + 'postgres = "${PKDP_PUBLIC}"\n' + RECORDS))
    with pytest.raises(TemporaryError) as caught:
        run_job(job, DAY)
    written = ended(job, caught.value).to_json()
    for text in (written, *(path.read_text(encoding="utf-8") for path in Path(job.records.directory).glob("*.json"))):
        assert "sesame" not in text
    assert not Path(job.output.directory, "2020-01-01").exists()


@pytest.mark.parametrize("place", ["out", "out/runs", "out/2020-01-01/../runs"])
@pytest.mark.parametrize("key", ["directory", "lineage"])
def test_records_among_public_files_are_refused(job_file, basic, place, key):
    with pytest.raises(ConfigError, match="output"):
        check_records(load_job(job_file(basic + f'[records]\n{key} = "{place}"\n')), ())


def test_a_folder_that_cannot_be_is_refused(job, tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(ConfigError, match=r"records\.directory"):
        check_records(job, steps_of(job))
    with pytest.raises(ConfigError, match="cannot be created"):
        ended(job).write()


def test_a_job_that_is_refused_before_anything_is_opened_leaves_a_record(job_file, basic):
    two = basic.replace("[output]", '[[release]]\nname = "people"\nk = 5\n\n[output]')
    job = load_job(job_file(two + RECORDS))
    with pytest.raises(DifferencingError):
        run_job(job, DAY)
    (refused,) = read(job)
    assert (refused["outcome"], refused["exit_code"], refused["day"]) == ("refused", 4, "2020-01-01")


def test_outputs_that_cannot_be_used_leave_a_record_and_charge_nothing(job):
    folder = Path(job.output.directory) / "2019-01-01"
    folder.mkdir(parents=True)
    (folder / "other.certificate.json").write_text('{"context": {"dataset": "trips"}}')
    with pytest.raises(ConfigError, match="'trips'"):
        run_job(job, DAY)
    (failed,) = read(job)
    assert (failed["outcome"], failed["exit_code"]) == ("failed", 2)
    with pkdp.Ledger.open(job.ledger, dataset=job.dataset) as ledger:
        assert list(ledger.entries()) == []
