"""The commands pkdp gate …: what a policy means in words, tokens, and a service in a process of its own."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
from thorough import thinned
from typer.testing import CliRunner

from pkdp_pipeline.cli.main import app
from pkdp_pipeline.duckdb import connect
from pkdp_pipeline.errors import ArgumentError, ConfigError, LedgerError, TemporaryError
from pkdp_pipeline.extras.gate.policy import Limits, Policy, TablePolicy
from pkdp_pipeline.extras.gate.records import add_token, name_of
from pkdp_pipeline.extras.gate.service import bound, service_names
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.releases.release import Release, read_release

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.whole_curves
POLICY = """
ledger = "ledger.sqlite"
period = "2013-01-02"
attacker = { p_max = 0.1 }

[tables.events]
unit = "uid"
columns = ["country", "flag"]
k = 20
domains = { country = ["US", "NO", "DE"] }
"""
#: In place of a ledger that the policy names.
INDEPENDENT = 'evidence = { kind = "independent_given_habits" }'


def run(*arguments, width: int = 120):
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["gate", *map(str, arguments)])


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A database with 30 people in the US, 25 in NO and 7 in DE; half of them are flagged."""
    path = tmp_path_factory.mktemp("source") / "events.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT i AS uid, CASE WHEN i < 30 THEN 'US' WHEN i < 55 THEN 'NO' ELSE 'DE' END AS "
            "country, i % 2 = 0 AS flag, 4711 AS secret FROM range(62) AS r (i)"
        )
    return path


def prepared(folder, source):
    """Make a folder of the curator's own, with a policy and a database."""
    folder.chmod(0o700)
    (folder / "gate.toml").write_text(POLICY)
    (folder / "gate.toml").chmod(0o600)
    shutil.copy(source, folder / "events.duckdb")
    (folder / "events.duckdb").chmod(0o600)
    return folder


@pytest.fixture
def files(tmp_path, source):
    return prepared(tmp_path, source)


def check(files, **more):
    return run("check", files / "gate.toml", "--database", files / "events.duckdb", **more)


def test_a_view_that_links_rows_is_named(files):
    with closing(duckdb.connect(str(files / "events.duckdb"))) as connection:
        connection.execute("ALTER TABLE events RENAME TO raw; CREATE VIEW events AS FROM raw LIMIT 60")
    done = check(files)
    assert done.exit_code == 0, done.output
    assert "View events uses LIMIT: one person's rows can then change the rows of others" in words(done.output)


def test_check_says_what_may_be_asked_and_learnt(files):
    done = check(files)
    assert done.exit_code == 0, done.output
    output = words(done.stdout)
    for fact in (
        "each value of uid is a person; rows without one are not counted",
        "country VARCHAR, flag BOOLEAN",
        "20: no count below it is ever published",
        "cells of country US, NO, DE; always listed, NULL where suppressed",
        '{"table": "events", "histogram": "country", "k": 20} Private at ε = 1.31, δ = 1e-6',
        '{"table": "events", "count": true, "k": 20} Private at ε = 1.31, δ = 1e-6',
        "p_max = 0.1",
        "No noise: there is no budget",
        "30 s, 1GB",
        "100000 public cells, 16777216 bytes",
    ):
        assert fact in output
    assert "secret" not in output
    assert "4711" not in output
    assert "Warnings" not in output
    assert sorted(path.name for path in files.iterdir()) == ["events.duckdb", "gate.toml"]


def test_check_says_what_budgets_allow(files):
    budget = "budget = { epsilon = 2.0, delta = 1e-6, part = 'worst_case' }"
    policy = POLICY.replace("attacker = { p_max = 0.1 }", budget).replace(
        "country = [", "flag = [true, false], country = ["
    )
    (files / "gate.toml").write_text(policy)
    output = words(check(files).stdout)
    assert (
        '"k": 20, "noise": 0.5, "release_threshold": 57} Private at ε = 0.5, δ = 5.75e-9 against anyone at all'
        in output
    )
    assert "Without noise nothing is answered" in output
    assert (
        "Noise may be asked for, and everything together is held to: - ε = 2 at δ = 1e-6 for the worst-case" in output
    )
    assert "cells of flag True, False" in output


def test_check_says_that_budgets_hold_for_each_unit_by_itself(files):
    budget = "budget = { epsilon = 3.0, delta = 1e-6, part = 'worst_case' }"
    policy = POLICY.replace("attacker = { p_max = 0.1 }", budget)
    (files / "gate.toml").write_text(policy)
    output = words(check(files).stdout)
    assert "everything together is held to: - ε = 3" in output
    with closing(duckdb.connect(str(files / "events.duckdb"))) as connection:
        connection.execute("CREATE VIEW homes AS SELECT uid AS home, flag FROM events")
    (files / "gate.toml").write_text(f'{policy}\n[tables.homes]\nunit = "home"\ncolumns = "flag"\nk = 20\n')
    output = words(check(files).stdout)
    assert "everything together, for each privacy unit by itself, is held to: - ε = 3" in output
    assert "The units are uid; home: the tables of one do not spend the budget of another." in output


def test_check_says_where_noise_takes_the_place_of_k(files):
    assert "with noise" not in words(check(files).stdout)
    (files / "gate.toml").write_text("budget = { epsilon = 2.0, delta = 1e-6 }\n" + POLICY)
    assert "counts and histograms by country alone need no k beside noise" in words(check(files).stdout)


@pytest.mark.parametrize(
    ("attacker", "way"),
    [("{ p_max = 0.1 }", "the smallest k that reaches ε = 1 at δ = 1e-6 is 30"), ("{ known = 3 }", "no k reaches")],
)
def test_check_warns_of_a_k_that_certifies_nothing(files, attacker, way):
    (files / "gate.toml").write_text(POLICY.replace("k = 20", "k = 1").replace("{ p_max = 0.1 }", attacker))
    done = check(files)
    warned = words(done.stdout).partition("Warnings")[2]
    assert done.exit_code == 0
    assert "Table events: with k = 1 nothing without noise can be certified against this attacker" in warned
    assert way in warned


def test_a_ledger_without_its_folder_is_found_before_serving(files):
    (files / "gate.toml").write_text(POLICY.replace("ledger.sqlite", "absent/ledger.sqlite"))
    add_token(files / "tokens", "ana")
    with pytest.raises(LedgerError) as opened:
        Ledger.open(files / "absent" / "ledger.sqlite")
    for command in (("check",), ("serve", "--token-file", files / "tokens")):
        done = run(*command, files / "gate.toml", "--database", files / "events.duckdb")
        assert done.exit_code == 2
        assert words(str(opened.value)) in words(done.stderr)
    assert not (files / "absent").exists()


def test_check_fits_a_narrow_terminal(files):
    lines = check(files, width=60).stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("    {")) <= 60


@pytest.mark.parametrize(("name", "mode"), [("gate.toml", 0o602), (".", 0o770)])
def test_check_warns_where_others_get_past_the_gate(files, name, mode):
    (files / name).chmod(mode)
    done = check(files)
    assert done.exit_code == 0
    assert words(done.stdout).count("Users other than the owner may") == 1


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_database_that_others_can_read_is_refused(files, mode):
    (files / "events.duckdb").chmod(mode)
    done = check(files)
    assert (done.exit_code, "chmod 600" in done.stderr) == (2, True)


def test_check_warns_of_a_log_of_the_database_and_of_a_ledger_that_others_can_write(files):
    (files / "ledger.sqlite").touch(0o600)
    assert "Warnings" not in check(files).stdout
    (files / "ledger.sqlite").chmod(0o666)
    assert "ledger.sqlite" in words(check(files).stdout).partition("Warnings")[2]


def test_check_warns_of_a_password_that_others_read(files):
    (files / "gate.toml").write_text(POLICY.replace("ledger.sqlite", "postgresql://u:secret@h/d"))
    assert "Warnings" not in check(files).stdout
    (files / "gate.toml").chmod(0o644)
    output = words(check(files).stdout)
    assert "holds the ledger's address" in output
    assert "secret@" not in output


@thinned(3)
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("k = 20", "k = 20\nkk = 1"), "kk"),
        (("k = 20", "k = 0"), "k"),
        (("[tables.events]", "[tables.evens]"), "tables.evens does not fit the database"),
        (('"flag"]', '"falg"]'), "Did you mean 'flag'?"),
        (('unit = "uid"', 'unit = "person"'), "'person'"),
        (("[tables", "[[tables"), "TOML"),
        (("k = 20", "k = 20\none_cell = 'error'"), "one_cell"),
        (('country = ["US"', 'country = [1, "US"'), "mixes"),
        (("country = [", "flag = ['yes'], country = ["), "flag"),
    ],
)
def test_a_policy_that_does_not_fit_is_a_configuration_error(files, change, complaint):
    (files / "gate.toml").write_text(POLICY.replace(*change))
    add_token(files / "tokens", "ana")
    for command in ("check", "serve"):
        more = () if command == "check" else ("--token-file", files / "tokens")
        done = run(command, files / "gate.toml", "--database", files / "events.duckdb", *more)
        assert done.exit_code == 2
        assert complaint in words(done.stderr)
        assert not done.stdout


def test_a_database_that_is_none(files):
    (files / "events.duckdb").write_text("not a database")
    assert check(files).exit_code == 2
    (files / "events.duckdb").unlink()
    done = check(files)
    assert (done.exit_code, "events.duckdb" in done.stderr) == (2, True)
    assert "give the path of a DuckDB file" in words(done.stderr)
    assert "database_path" not in done.stderr


def test_a_token_is_made_and_printed(files):
    done = run("token", "ana", "--token-file", files / "tokens")
    assert done.exit_code == 0
    assert name_of(files / "tokens", done.stdout.strip()) == "ana"
    assert stat.S_IMODE((files / "tokens").stat().st_mode) == 0o600
    again = run("token", "ana", "--token-file", files / "tokens")
    assert (again.exit_code, again.stdout) == (2, "")


def test_other_machines_are_kept_out_unless_asked_for():
    assert service_names("127.0.0.1") == {"localhost", "127.0.0.1", "::1"}
    assert service_names("::1") == service_names("localhost") == service_names("127.0.0.1")
    assert "gate.example.org" in service_names("127.0.0.1", names=("Gate.Example.org",))
    for host in ("0.0.0.0", "::", "192.168.0.1", "gate.example.org"):
        with pytest.raises(ArgumentError, match="TLS"):
            service_names(host)
        with pytest.raises(ArgumentError, match="--name"):
            service_names(host, allow_remote=True)
        assert service_names(host, allow_remote=True, names=("gate.example.org",)) == {"gate.example.org"}
    for name in ("http://gate.example.org", "gate.example.org:443", "", "a b", "u@h"):
        with pytest.raises(ArgumentError, match="--name"):
            service_names("127.0.0.1", names=(name,))


def test_a_port_that_is_taken_is_temporary():
    with bound("127.0.0.1", 0) as taken, pytest.raises(TemporaryError, match="taken"):
        bound("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError):
        bound("no-such-host.invalid", 0)


def test_serve_says_what_is_wrong_before_it_starts(files):
    serve = ["serve", files / "gate.toml", "--database", files / "events.duckdb"]
    add_token(files / "tokens", "ana")
    remote = run(*serve, "--token-file", files / "tokens", "--host", "0.0.0.0")
    assert (remote.exit_code, "--allow-remote" in remote.stderr) == (2, True)
    absent = run(*serve, "--token-file", files / "absent")
    assert (absent.exit_code, "pkdp gate token" in absent.stderr) == (2, True)
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert run(*serve, "--token-file", files / "tokens", "--port", port).exit_code == 75
    (files / "log").touch(0o644)
    log = run(*serve, "--token-file", files / "tokens", "--audit-log", files / "log")
    assert (log.exit_code, "chmod 600" in log.stderr) == (2, True)


def started(files, *more, **streams):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pkdp_pipeline.cli.main", "gate", "serve", files / "gate.toml"),
            *("--database", files / "events.duckdb", "--port", "0", *more),
        ],
        text=True,
        **streams,
    )


def port_in(line):
    match = re.match(r"pkdp gate: listening on http://127\.0\.0\.1:(\d+),", line)
    assert match, line
    return int(match[1])


@contextmanager
def serving(files, *, complaint=""):
    """Start the service as a user does; stop it with SIGTERM, and check how it ends."""
    process = started(files, "--token-file", files / "tokens", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield port_in(process.stdout.readline() or process.stderr.read())
        process.send_signal(signal.SIGTERM)
        printed, complained = process.communicate(timeout=300)
        assert process.returncode == 0
        assert printed == ""
        lines = complained.splitlines(keepends=True)
        complained = "".join(line for line in lines if not re.match(r"\d{4}-\S+ \S+ (INFO|WARNING) ", line))
        logged = "".join(line for line in lines if line not in complained)
        outcomes = [entry["outcome"] for entry in log_of(files)]
        outcomes = outcomes[len(outcomes) - outcomes[::-1].index("started") :]  # of this service
        assert logged.count(" published: ") + logged.count(" replayed: ") >= outcomes.count("answered")
        assert " WARNING " in logged or not {"refused", "unauthorized"} & set(outcomes)
        assert re.search(r"\b(US|NO|DE)\b", logged) is None  # no value, though columns are named
        assert complained.count("\n") <= 1
        assert complained.startswith(complaint) if complaint else complained == ""
    finally:
        process.kill()
        process.communicate()


QUESTION = {"table": "events", "histogram": "country", "k": 20}


def answer_of(port, token, question):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/ask",
        data=json.dumps(question).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, response.read(), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def log_of(files):
    return [json.loads(line) for line in (files / "gate.audit.jsonl").read_text().splitlines()]


def gives_nothing_to_foreign_web_pages_and_bears_nonsense(port):
    with closing(socket.create_connection(("127.0.0.1", port), timeout=300)) as connection:
        connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        for headers, status in (
            ({"Host": f"evil.example:{port}"}, 400),
            ({"Origin": "https://evil.example"}, 400),
            ({}, 200),
        ):
            connection.request("GET", "/health", headers=headers)
            response = connection.getresponse()
            assert (response.status, response.headers["server"]) == (status, None)
            json.loads(response.read())


@pytest.fixture(scope="module")
def served(tmp_path_factory, source):
    """A service that answered, replayed, refused, stopped, was started again and was stopped while it counted.

    Its files, a release's id, and what it answered last.
    """
    answers = []
    files = prepared(tmp_path_factory.mktemp("served"), source)
    (files / "gate.toml").write_text(POLICY.replace('ledger = "ledger.sqlite"', INDEPENDENT))
    ana, ben = add_token(files / "tokens", "ana"), add_token(files / "tokens", "ben")
    with serving(files) as port:
        status, body, headers = answer_of(port, ana, QUESTION)
        release = Release.from_bytes(body)
        assert (status, headers["server"], headers["pkdp-replayed"]) == (200, None, "false")
        assert release.table["country"].tolist() == ["US", "NO", "DE"]
        assert release.table["count"].fillna(-1).tolist() == [30, 25, -1]
        assert release.certificate.sentence().startswith("Private at ε = 1.31, δ = 1e-6")
        kept = [file for file in files.iterdir() if file.name.startswith("gate.ledger.sqlite")]
        assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}

        # Everybody gets the same release; what is public may be computed with.
        with connect(f"http://127.0.0.1:{port}", token=ben) as con:
            assert con.sql("SELECT sum(count) FROM pkdp_histogram('events', 'country', k := 20)").fetchall() == [(55,)]
            assert con.sql("SELECT id FROM pkdp_releases()").fetchall() == [(release.id,)]
            # A second noiseless table about the same people would undo the first one's protection.
            with pytest.raises(duckdb.Error, match="DifferencingError"):
                con.sql("FROM pkdp_histogram('events', 'flag', k := 20)").fetchall()

        for refused in (
            {"sql": "FROM events"},
            {**QUESTION, "histogram": "secret"},
            {**QUESTION, "table": "gate.audit.jsonl"},
        ):
            status, body, _ = answer_of(port, ana, refused)
            assert (status, json.loads(body)["error"]["type"]) == (400, "ArgumentError")
        assert answer_of(port, "wrong", QUESTION)[0] == 401

        request = urllib.request.Request(f"http://127.0.0.1:{port}/policy", headers={"Authorization": f"Bearer {ana}"})
        with urllib.request.urlopen(request, timeout=300) as response:
            policy = json.load(response)
        assert policy["tables"]["events"]["columns"] == {"country": "VARCHAR", "flag": "BOOLEAN"}
        assert policy["tables"]["events"]["k"] == 20
        (total,) = policy["totals"]
        assert total["unit"] == ["uid"]
        assert total["sentence"].startswith("1 release: private at ε = 1.31, δ = 1e-6")
        assert str(files) not in json.dumps(policy)

        # A deleted line revokes its token at once.
        lines = (files / "tokens").read_text().splitlines(keepends=True)
        (files / "tokens").write_text("".join(line for line in lines if not line.startswith("ana ")))
        assert answer_of(port, ana, QUESTION)[0] == 401
    # What was published is known after a restart; then the policy has more tables.
    write = further_tables(files)
    with serving(files, complaint=LINKED) as port:
        assert answer_of(port, ben, QUESTION)[2]["pkdp-replayed"] == "true"
        status, body, _ = answer_of(port, ben, {**QUESTION, "histogram": "flag"})
        assert (status, json.loads(body)["error"]["type"]) == (403, "DifferencingError")
        gives_nothing_to_foreign_web_pages_and_bears_nonsense(port)
        curl(files, port, ben)
        # It is stopped while it counts.
        write(40)
        asking = threading.Thread(target=lambda: answers.append(answer_of(port, ben, SLOWLY)))
        asking.start()
        until(lambda: charged(files)[2:] or answers)
    asking.join()
    return files, release.id, answers


def test_a_service_answers_replays_refuses_and_stops(served):
    files, release, _ = served
    lines = log_of(files)
    lines = lines[: [line["outcome"] for line in lines].index("stopped") + 1]
    assert lines[0]["outcome"] == "started"
    answered = [(line["token"], line["release"]) for line in lines if line["outcome"] == "answered"]
    assert answered == [("ana", release), ("ben", release)]
    errors = [line["error"] for line in lines if line["outcome"] == "refused"]
    assert errors == ["DifferencingError", *["ArgumentError"] * 3]
    assert [line["outcome"] for line in lines].count("unauthorized") == 2
    assert stat.S_IMODE((files / "gate.audit.jsonl").stat().st_mode) == 0o600
    # The chain of the log goes on over the restart.
    log = files / "gate.audit.jsonl"
    done = run("check", files / "gate.toml", "--database", files / "events.duckdb", "--audit-log", log)
    assert done.exit_code == 0
    assert f"{len(log_of(files))} lines, each with the hash of the one before" in words(done.stdout)
    log.write_text(log.read_text().replace('"token": "ben"', '"token": "ana"', 1))
    done = run("check", files / "gate.toml", "--database", files / "events.duckdb", "--audit-log", log)
    assert (done.exit_code, "does not follow" in words(done.stderr)) == (2, True)


def until(fact):
    ends = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < ends
        time.sleep(0.05)


def further_tables(files):
    """Give the policy a table about others, and one that takes as long as a number says; return what writes that."""
    times = files / "times.csv"

    def write(number):
        times.write_text(f"times\n{number}\n")

    write(1)
    with closing(duckdb.connect(str(files / "events.duckdb"))) as connection:
        connection.execute(
            "CREATE VIEW slowly AS SELECT uid, flag AND 0 = (SELECT count(*) FROM range(times) a, range(10000) b "
            f"WHERE a.range * b.range = uid + 0.5) AS flag FROM events, read_csv('{times}'); "
            "CREATE TABLE others AS FROM events"
        )
    with (files / "gate.toml").open("a") as policy:
        for day, table in enumerate(("slowly", "others"), start=3):
            policy.write(f'[tables.{table}]\nunit = "uid"\ncolumns = ["flag"]\nk = 20\nperiod = "2013-01-0{day}"\n')
    return write


SLOWLY = {"table": "slowly", "histogram": "flag"}
LINKED = "pkdp: warning: View slowly uses a subquery"


def charged(files):
    with Ledger.open(files / "gate.ledger.sqlite") as ledger:
        ledger.verify()
        return [entry.state for entry in ledger.entries(given_back=True)]


def test_a_question_that_is_counted_is_answered_before_the_service_stops(served):
    _, _, ((status, body, _),) = served
    assert (status, Release.from_bytes(body).table["count"].tolist()) == (200, [31, 31])


def curl(files, port, token):
    """Run the line of the documentation."""
    (line,) = re.findall(r"^curl .*$", (ROOT / "docs" / "gate.md").read_text(encoding="utf-8"), re.MULTILINE)
    if shutil.which("curl") is not None:
        (files / "ana.header").write_text(f"Authorization: Bearer {token}\n")
        line = line.replace("flights", "others").replace("50", "20").replace(":8765", f":{port}")
        subprocess.run(line + " --silent", shell=True, cwd=files, check=True)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_line_of_the_documentation_works(served):
    files, _, _ = served
    assert read_release(files / "answer.parquet").value == 62


def test_the_page_lists_every_key_of_a_policy():
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    for kind in (Policy, TablePolicy, Limits):
        for key in kind.model_fields:
            if key not in ("tables", "limits"):
                assert re.search(rf"^\| .*\b{key}`", page, re.MULTILINE), key


def test_check_says_what_is_declared(files):
    evidence = "evidence = { kind = 'bounded_dependence', epsilon = 0.5, delta = 1e-6 }\nperiod ="
    (files / "gate.toml").write_text(POLICY.replace("period =", evidence))
    output = words(check(files).stdout)
    assert "unless what is declared lets it stand beside the first: - Each release depends on all earlier" in output
