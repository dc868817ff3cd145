"""What an address holds beside host and database appears in nothing that shows a job."""

from __future__ import annotations

import json
import traceback
from datetime import date

import duckdb
import pytest
from typer.testing import CliRunner

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import ArgumentError, ConfigError, TemporaryError
from pkdp_pipeline.extras.gate.policy import Policy
from pkdp_pipeline.jobs import run_job
from pkdp_pipeline.jobs.job import load_job
from pkdp_pipeline.ledger.database import public_address

SECRET = "hunter2"
ADDRESS = f"postgresql://ulla-{SECRET}:{SECRET}@db.example:5433/warehouse?sslpassword={SECRET}"
SOURCE = 'source = "visits.parquet"'


@pytest.fixture
def written(tmp_path, basic):
    """Return a function that writes the basic job with something else in it."""

    def write(*changes: tuple[str, str], end: str = ""):
        text = basic
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "job.toml"
        path.write_text(text + end, encoding="utf-8")
        return path

    return write


LEDGER = ('ledger = "out/ledger.sqlite"', 'ledger = "${PKDP_LEDGER}"')
POSTGRES = (SOURCE, 'source = { postgres = "${PKDP_SOURCE}", table = "visits" }')
PUBLIC = 'postgres = "${PKDP_PUBLIC}"\n'


@pytest.fixture
def environment(monkeypatch):
    for name in ("PKDP_LEDGER", "PKDP_SOURCE", "PKDP_PUBLIC"):
        monkeypatch.setenv(name, ADDRESS)
    return monkeypatch


@pytest.mark.usefixtures("environment")
def test_a_job_knows_its_addresses_and_shows_none_of_their_secrets(written):
    job = load_job(written(LEDGER, POSTGRES, end=PUBLIC))
    assert job.ledger == job.source.postgres == job.output.postgres == ADDRESS
    dumped = job.model_dump()
    assert (
        dumped["ledger"] == dumped["source"]["postgres"] == dumped["output"]["postgres"] == "db.example:5433/warehouse"
    )
    shown = [repr(job), str(job), repr(dumped), job.model_dump_json(), json.dumps(job.model_dump(mode="json"))]
    shown += [repr(job.source), repr(job.output), job.source.public_name, job.digest]
    for text in shown:
        assert SECRET not in text
    assert "postgresql://" not in repr(job)


def test_a_digest_is_the_same_under_another_password_and_another_on_another_database(written, environment):
    path = written(LEDGER, POSTGRES)
    digests = []
    for address in (ADDRESS, ADDRESS.replace(SECRET, "other"), ADDRESS.replace("db.example", "db2.example")):
        environment.setenv("PKDP_SOURCE", address)
        digests.append(load_job(path).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "address",
    [
        f"mysql://ulla:{SECRET}@db/warehouse",
        f"postgresql://ulla:{SECRET}/x@db/warehouse",
        f"postgresql://ulla:{SECRET}#x@db/warehouse",
        f"postgresql://ulla:{SECRET}?x@db/warehouse",
        f"postgresql://ulla:[{SECRET}@db/warehouse",
        f"postgresql://ulla@db:{SECRET}/warehouse",
        f"{SECRET}",
    ],
)
@pytest.mark.parametrize("written_out", [True, False])
def test_an_address_that_cannot_be_read_is_refused_without_being_told(written, monkeypatch, address, written_out):
    monkeypatch.setenv("PKDP_SOURCE", address)
    text = POSTGRES[1].replace("${PKDP_SOURCE}", address) if written_out else POSTGRES[1]
    with pytest.raises(ConfigError) as caught:
        load_job(written((SOURCE, text)))
    assert "source.postgres: " in str(caught.value)
    assert "postgresql://user@host:5432/database" in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "broken",
    [
        ("k = 5", "k = 5.5"),
        ('unit = "person"', 'unti = "person"'),
        ('by = "town"', 'by = "town"\none_cell = "first"'),
        ("[output]", "[output"),
        ('table = "visits"', 'tabel = "visits"'),
        ('table = "visits"', 'table = "visits", query = "SELECT 1"'),
    ],
)
def test_no_other_complaint_tells_an_address(written, broken):
    address = (SOURCE, f'source = {{ postgres = "{ADDRESS}", table = "visits" }}')
    with pytest.raises(ConfigError) as caught:
        load_job(written(address, ('ledger = "out/ledger.sqlite"', f'ledger = "{ADDRESS}"'), broken))
    error = caught.value
    while error is not None:
        assert SECRET not in f"{error!s}{error!r}{error.__dict__}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (LEDGER, "ledger: "),
        (POSTGRES, "source.postgres: "),
        (('directory = "out"', f'directory = "out"\n{PUBLIC}'), "output.postgres: "),
    ],
)
@pytest.mark.parametrize("content", [None, ""])
def test_a_variable_that_is_not_set_is_named_with_its_key(written, monkeypatch, change, place, content):
    for name in ("PKDP_LEDGER", "PKDP_SOURCE", "PKDP_PUBLIC"):
        monkeypatch.delenv(name, raising=False)
        if content is not None:
            monkeypatch.setenv(name, content)
    with pytest.raises(ConfigError, match=rf"{place}the environment variable PKDP_\w+ is not set"):
        load_job(written(change))


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("value", ["postgresql://${PKDP_LEDGER}@db/x", "${PKDP_LEDGER}/x", "${}", "${A-B}"])
def test_a_variable_is_the_whole_value(written, value):
    with pytest.raises(ConfigError, match="ledger: an environment variable must be the whole value"):
        load_job(written((LEDGER[0], f'ledger = "{value}"')))


def test_a_variable_without_braces_is_no_file(written):
    with pytest.raises(ConfigError, match="ledger: an environment variable must be the whole value"):
        load_job(written((LEDGER[0], 'ledger = "$PKDP_LEDGER"')))


@pytest.mark.parametrize(
    "address",
    [
        f"host=db.example password={SECRET} dbname=warehouse",
        f" user=ulla password = {SECRET}",
        f"Server=db.example;Password={SECRET}",
        f"postgresql:/ulla:{SECRET}@db.example/warehouse",
        f"postgres:ulla:{SECRET}@db.example/warehouse",
        f"postgresql+psycopg:ulla:{SECRET}@db.example/warehouse",
    ],
)
def test_what_is_meant_for_a_server_does_not_become_a_ledgers_file(written, tmp_path, monkeypatch, address):
    monkeypatch.setenv("PKDP_LEDGER", address)
    with pytest.raises(ConfigError, match="ledger: is neither a file nor an address") as caught:
        load_job(written(LEDGER))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert [path.name for path in tmp_path.iterdir()] == ["job.toml"]


def test_a_ledgers_variable_may_hold_a_file(written, tmp_path, monkeypatch):
    monkeypatch.setenv("PKDP_LEDGER", "private/ledger.sqlite")
    assert load_job(written(LEDGER)).ledger == str(tmp_path / "private" / "ledger.sqlite")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (ADDRESS, "db.example:5433/warehouse"),
        ("postgres://db/warehouse", "db/warehouse"),
        ("postgresql://ulla@[::1]:5/w", "[::1]:5/w"),
        ("postgresql:///warehouse?host=/run/postgresql", "local/warehouse"),
    ],
)
def test_what_may_be_shown_of_an_address(address, shown):
    assert public_address(address) == shown


OUT_OF_REACH = (
    f"postgresql://ulla-{SECRET}:{SECRET}@127.0.0.1:1/warehouse?sslpassword={SECRET}&application_name={SECRET}"
)
"""Nothing listens there."""


def printed(capsys, error=None):
    captured = capsys.readouterr()
    return captured.out + captured.err + "".join(traceback.format_exception(error) if error else [])


def test_an_address_out_of_reach_is_told_in_no_message_record_or_event(written, monkeypatch, tmp_path, capsys):
    pytest.importorskip("openlineage.client")
    monkeypatch.setenv("PKDP_LEDGER", OUT_OF_REACH)
    job = load_job(written(LEDGER, end='[records]\ndirectory = "runs"\nlineage = "lineage.jsonl"\nnamespace = "n"\n'))
    with pytest.raises(TemporaryError) as caught:
        run_job(job, date(2020, 1, 1))
    files = (*(tmp_path / "runs").iterdir(), tmp_path / "lineage.jsonl")
    assert len(files) == 2
    for text in (printed(capsys, caught.value), *(path.read_text(encoding="utf-8") for path in files)):
        assert "postgresql://127.0.0.1:1/warehouse" in text
        assert SECRET not in text
        assert "ulla" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "JOB", "--date", "2020-01-01"),
        ("backfill", "JOB", "--from", "2020-01-01", "--to", "2020-01-02"),
        ("plan", "job", "JOB", "--date", "2020-01-01"),
        ("report", "JOB", "--out", "report.html"),
        ("ledger", "show", "LEDGER"),
        ("ledger", "total", "LEDGER"),
        ("ledger", "explain", "LEDGER"),
        ("ledger", "verify", "LEDGER"),
        ("ledger", "export", "LEDGER"),
        ("verify", "CERTIFICATE", "--ledger", "LEDGER"),
        ("gate", "check", "POLICY", "--database", "DATABASE"),
    ],
    ids=" ".join,
)
def test_no_command_tells_an_address(written, monkeypatch, tmp_path, arguments):
    monkeypatch.setenv("PKDP_LEDGER", OUT_OF_REACH)
    certificate = pkdp.certify(pkdp.Count(noise=pkdp.GeometricNoise(1.0)), pkdp.AttackerModel()).to_json()
    (tmp_path / "certificate.json").write_text(certificate, encoding="utf-8")
    policy = 'period = "2020"\n[attacker]\np_max = 0.1\n[tables.visits]\nunit = "person"\nk = 9\ncolumns = ["town"]\n'
    (tmp_path / "gate.toml").write_text(f'ledger = "{OUT_OF_REACH}"\n{policy}', encoding="utf-8")
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'a' AS person, 'b' AS town")
    (tmp_path / "visits.duckdb").chmod(0o600)
    places = {
        "DATABASE": tmp_path / "visits.duckdb",
        "JOB": written(LEDGER),
        "LEDGER": OUT_OF_REACH,
        "CERTIFICATE": tmp_path / "certificate.json",
        "POLICY": tmp_path / "gate.toml",
    }
    result = CliRunner(env={"COLUMNS": "300"}).invoke(cli.app, [str(places.get(word, word)) for word in arguments])
    # A policy's check does not open the ledger.
    assert ("warehouse" in result.output) is (result.exit_code not in (0, 1)) is (arguments[0] != "gate")
    assert SECRET not in result.output
    assert "ulla" not in result.output


@pytest.mark.parametrize("address", [f"host=db.example password={SECRET}", f"postgresql:/ulla:{SECRET}@db/warehouse"])
def test_what_is_meant_for_a_server_is_opened_as_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="neither a file nor an address") as caught:
        pkdp.Ledger.open(address)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert not list(tmp_path.iterdir())


def test_settings_show_no_ledger():
    policy = {
        "ledger": ADDRESS,
        "period": "2020",
        "tables": {"visits": {"unit": "person", "columns": ["town"], "k": 9}},
    }
    assert SECRET not in repr(Policy.read(policy))
