from __future__ import annotations

import http.server
import json
import stat
import sys
import threading
import uuid
from datetime import UTC, date, datetime
from pathlib import Path

import jsonschema
import pytest
from moved_clock import clock_at
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import ConfigError, InputCheckError
from pkdp_pipeline.extras.connect.databases import append_event
from pkdp_pipeline.jobs import JobRelease, JobResult, load_job, run_job
from pkdp_pipeline.jobs.job import ReleaseTable
from pkdp_pipeline.jobs.steps import check_records, recorded, steps_of

DAY = date(2020, 1, 1)
LINEAGE = '[records]\ndirectory = "runs"\nlineage = "lineage.jsonl"\nnamespace = "statistics"\n'
FACET = json.loads((Path(pkdp.__file__).parent / "schemas" / "lineage_releases.v1.json").read_text(encoding="utf-8"))


@pytest.fixture
def job(job_file, basic):
    return load_job(job_file(f"{basic}{LINEAGE}[checks]\nrows = {{ min = 1 }}\n"))


def events(job):
    lines = Path(job.records.lineage).read_text(encoding="utf-8").splitlines()
    parsed = [json.loads(line) for line in lines]
    for event in parsed:
        valid(event)
    return parsed


def valid(event):
    """Check what the specification of OpenLineage 2-0-2 requires of a run event, of its datasets and facets."""
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert event["producer"].startswith("urn:pkdp-pipeline:")
    assert datetime.fromisoformat(event["eventTime"]).utcoffset() is not None
    assert event["eventType"] in {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    for thing in (event["job"], *event["inputs"], *event["outputs"]):
        assert thing["namespace"]
        assert thing["name"]
    for facet in event["run"]["facets"].values():
        assert facet["_producer"] == event["producer"]
        assert ":" in facet["_schemaURL"]


def test_a_run_is_a_start_and_an_end_with_what_was_published(job):
    released = run_job(job, DAY).releases[0].release
    start, end = events(job)
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"]
    (record,) = Path(job.records.directory).iterdir()
    assert json.loads(record.read_text(encoding="utf-8"))["run"] == end["run"]["runId"]
    assert end["job"] == {"facets": {}, "name": "job", "namespace": "statistics"}
    assert [dataset["name"] for dataset in end["inputs"]] == ["visits.parquet"]
    assert [output["name"] for output in end["outputs"]] == [
        str(Path(job.output.directory) / "2020-01-01" / "people_by_town.parquet")
    ]
    facet = end["run"]["facets"]["pkdp_releases"]
    jsonschema.Draft202012Validator(FACET).validate(facet)
    assert facet["_schemaURL"] == FACET["$id"]
    assert facet["releases"] == [
        {"charged": True, "id": released.id, "name": "people_by_town", "sentence": released.certificate.sentence()}
    ]
    assert "errorMessage" not in end["run"]["facets"]


def test_a_replay_is_a_run_that_charged_nothing(job):
    run_job(job, DAY)
    run_job(job, DAY)
    *_, start, end = events(job)
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert [release["charged"] for release in end["run"]["facets"]["pkdp_releases"]["releases"]] == [False]


def test_a_refused_run_is_a_fail_with_our_own_words(job):
    with pytest.raises(InputCheckError) as caught:
        run_job(job, date(2021, 1, 1))
    start, end = events(job)
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert end["run"]["facets"]["errorMessage"]["message"] == str(caught.value)
    assert end["outputs"] == []
    assert "pkdp_releases" not in end["run"]["facets"]


def test_an_error_that_is_not_ours_is_not_quoted(job):
    with pytest.raises(ValueError, match="Secretville"), recorded(JobResult(job=job, day=DAY), steps_of(job)):
        raise ValueError("Secretville")
    assert events(job)[-1]["run"]["facets"]["errorMessage"]["message"] == "ValueError"
    assert "Secretville" not in Path(job.records.lineage).read_text(encoding="utf-8")


def test_a_day_begins_in_the_time_zone_of_the_job(job_file, basic):
    text = basic.replace('column = "day"', 'column = "day", time_zone = "Europe/Oslo"')
    job = load_job(job_file(text + LINEAGE))
    append_event(JobResult(job=job, day=date(2020, 3, 29)), "START")
    nominal = events(job)[0]["run"]["facets"]["nominalTime"]
    assert nominal["nominalStartTime"] == "2020-03-29T00:00:00+01:00"
    assert nominal["nominalEndTime"] == "2020-03-30T00:00:00+02:00"


def test_where_it_has_none_a_day_begins_on_the_machines_clocks(job):
    with clock_at(datetime(2020, 6, 1, tzinfo=UTC), "Pacific/Auckland"):
        append_event(JobResult(job=job, day=date(2020, 4, 5)), "START")
    nominal = events(job)[0]["run"]["facets"]["nominalTime"]
    assert nominal["nominalStartTime"] == "2020-04-05T00:00:00+13:00"
    assert nominal["nominalEndTime"] == "2020-04-06T00:00:00+12:00"


def test_tables_are_named_as_openlineage_names_them_and_without_passwords(job_file, basic, monkeypatch):
    monkeypatch.setenv("PKDP_PUBLIC", "postgresql://me:sesame@db.example:5433/stats")
    monkeypatch.setenv("PKDP_SOURCE", "postgresql://me:sesame@db.example/warehouse")
    text = basic.replace('"visits.parquet"', '{ postgres = "${PKDP_SOURCE}", table = "public.visits" }')
    job = load_job(
        job_file(text + 'postgres = "${PKDP_PUBLIC}"\nduckdb = "public.duckdb"\nformats = ["csv"]\n' + LINEAGE)
    )
    from public_releases import release

    job_release = JobRelease(declared=ReleaseTable(name="people"), release=release({"town": ["Ås"]}, [7]))
    append_event(JobResult(job=job, day=DAY, releases=(job_release,)), "COMPLETE")
    (event,) = events(job)
    folder = Path(job.output.directory)
    assert [(output["namespace"], output["name"]) for output in event["outputs"]] == [
        ("file", str(folder / "2020-01-01" / "people.csv")),
        (f"duckdb://{job.output.duckdb}", "public.main.people"),
        ("postgres://db.example:5433", "stats.public.people"),
    ]
    assert event["inputs"][0]["name"] == "db.example/warehouse, public.visits"
    assert "sesame" not in Path(job.records.lineage).read_text(encoding="utf-8")


@pytest.fixture
def server():
    """A server that takes events; `server.received` has them."""

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.received.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(self.server.status)
            self.end_headers()

    listening = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    listening.received, listening.status = [], 200
    listening.url = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    yield listening
    listening.shutdown()
    listening.server_close()


def test_nothing_goes_over_a_network_unless_openlineage_url_says_so(job, monkeypatch, tmp_path, server):
    config = tmp_path / "openlineage.yml"
    config.write_text(f"transport:\n  type: http\n  url: {server.url}\n", encoding="utf-8")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", server.url)
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    run_job(job, DAY)
    assert server.received == []
    assert [event["eventType"] for event in events(job)] == ["START", "COMPLETE"]


def test_openlineage_url_gets_what_the_file_has(job, monkeypatch, server):
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "open-sesame")
    run_job(job, DAY)
    assert [(path, key) for path, key, _ in server.received] == [("/api/v1/lineage", "Bearer open-sesame")] * 2
    assert [event for _, _, event in server.received] == events(job)


@thinned(2)
@pytest.mark.parametrize("what", ["no server", "a server that refuses", "no address"])
def test_a_job_is_not_stopped_by_a_server_of_lineage(job, monkeypatch, server, what):
    server.status = 403
    urls = {"no server": "http://127.0.0.1:9", "a server that refuses": server.url, "no address": "nonsense"}
    monkeypatch.setenv("OPENLINEAGE_URL", urls[what])
    with pytest.warns(UserWarning, match="not sent to OPENLINEAGE_URL"):
        assert run_job(job, DAY).outcome == "published"
    assert [event["eventType"] for event in events(job)] == ["START", "COMPLETE"]


def test_the_file_is_the_curators_alone(job):
    append_event(JobResult(job=job, day=DAY), "START")
    assert stat.S_IMODE(Path(job.records.lineage).stat().st_mode) == 0o600


def test_without_the_package_nothing_is_charged(job, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "openlineage"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openlineage", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[lineage\]'"):
        check_records(job, steps_of(job))
    with pytest.raises(ConfigError, match=r"pip install '\.\[lineage\]'"):
        run_job(job, DAY)
    assert not Path(job.ledger).exists()


def test_a_file_that_cannot_be_written_is_refused(job, tmp_path):
    check_records(job, steps_of(job))
    (tmp_path / "lineage.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"records\.lineage"):
        check_records(job, steps_of(job))
    with pytest.raises(ConfigError, match=r"records\.lineage"):
        append_event(JobResult(job=job, day=DAY), "START")


def test_a_job_without_lineage_imports_nothing(job_file):
    job = load_job(job_file())
    check_records(job, steps_of(job))
    append_event(JobResult(job=job, day=DAY), "START")
    assert not list(Path(job.file).parent.glob("*.jsonl"))
