"""The gate's service: who is let in, what is refused before anything runs, and what an analyst is told."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from asgi_client import ask, ask_async, scope_of
from pkdp_pipeline.duckdb.gate.wire import ARROW

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb.gate.audit_log import AuditLog
from pkdp_pipeline.duckdb.gate.gate import Gate
from pkdp_pipeline.duckdb.gate.service import Service, ServiceLimits
from pkdp_pipeline.duckdb.gate.tokens import Tokens, add_token
from pkdp_pipeline.errors import TemporaryError

TABLE = pa.table({"country": ["NO", "US"], "count": [20, 31]})


def told(table=TABLE):
    return SimpleNamespace(columns=table.column_names, types=["VARCHAR", "BIGINT"], releases=(), arrow=lambda: table)


@dataclass
class FakeGate:
    """Answers as told to."""

    answer: object = field(default_factory=told)
    asked: list[str] = field(default_factory=list)

    def sql(self, text):
        self.asked.append(text)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(text) if callable(self.answer) else self.answer


class Served:
    """A service with two tokens, and the files it keeps."""

    def __init__(self, folder, gate=None, **limits):
        self.log = folder / "audit.jsonl"
        self.gate = gate or FakeGate()
        self.ana, self.ben = add_token(folder / "tokens", "ana"), add_token(folder / "tokens", "ben")
        self.audit = AuditLog(self.log)
        self.app = Service(
            self.gate,
            describe=lambda: {"tables": {}},
            tokens=Tokens.read(folder / "tokens"),
            audit=self.audit,
            hosts={"127.0.0.1", "localhost", "::1"},
            limits=ServiceLimits(**limits),
        )

    def headers(self, token=None, **changed):
        given = {
            "Host": "127.0.0.1:8765",
            "Authorization": f"Bearer {token or self.ana}",
            "Content-Type": "application/json",
        } | {name.replace("_", "-"): value for name, value in changed.items()}
        return [(name, value) for name, value in given.items() if value is not None]

    def post(self, statement="SELECT 1", *, token=None, body=None, address="127.0.0.1", **changed):
        sent = json.dumps({"sql": statement}).encode() if body is None else body
        return ask(self.app, "POST", "/sql", self.headers(token, **changed), [sent], address=address)

    def lines(self):
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def served(tmp_path):
    return Served(tmp_path)


def test_a_statement_is_answered_and_written_down(served):
    reply = served.post("FROM pkdp_histogram('events', 'country')")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {
        "columns": [{"name": "country", "type": "VARCHAR"}, {"name": "count", "type": "BIGINT"}],
        "rows": [["NO", 20], ["US", 31]],
        "releases": [],
    }
    asked, answered = served.lines()
    assert (asked["outcome"], answered["outcome"], answered["status"]) == ("asked", "answered", 200)
    for line in (asked, answered):
        assert (line["token"], line["statement"]) == ("ana", "FROM pkdp_histogram('events', 'country')")
    assert asked["request"] == answered["request"]
    assert "NO" not in served.log.read_text()


def test_arrow_is_answered_where_it_is_asked_for(served):
    for accept in (ARROW, f"text/html, {ARROW};q=0.9, */*", ARROW.upper()):
        reply = served.post(Accept=accept)
        assert reply.headers["content-type"] == ARROW
        assert pa.ipc.open_stream(reply.body).read_all().replace_schema_metadata(None).equals(TABLE)
    for accept in ("*/*", "application/json", "application/vnd.apache.arrow.file", ""):
        assert served.post(Accept=accept).headers["content-type"] == "application/json"


def test_health_needs_no_token_and_policy_does(served):
    health = ask(served.app, "GET", "/health", [("Host", "localhost")])
    assert (health.status, health.json) == (200, {"status": "ok"})
    assert ask(served.app, "GET", "/policy", [("Host", "localhost")]).status == 401
    assert ask(served.app, "GET", "/policy", served.headers()).json == {"tables": {}}


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {ana}",
        "{ana}",
        "Bearer {ana}x",
        "Bearer {ana} {ana}",
        "Bearer\t{ana}",
    ],
)
@pytest.mark.parametrize("path", ["/sql", "/policy"])
def test_without_a_valid_token_nothing_is_read(served, given, path):
    wanted = given and given.format(ana=served.ana)
    method = "POST" if path == "/sql" else "GET"
    # The body never ends: whoever is not let in is told so before it is read.
    headers = served.headers(Authorization=wanted)
    reply = ask(served.app, method, path, headers, [b"{"], ends=False)
    assert (reply.status, reply.error["type"], reply.headers["www-authenticate"]) == (401, "Unauthorized", "Bearer")
    assert served.gate.asked == []
    (line,) = served.lines()
    assert (line["outcome"], line["address"]) == ("unauthorized", "127.0.0.1")
    assert served.ana not in served.log.read_text()


def test_two_tokens_in_one_request_are_none(served):
    headers = [*served.headers(), ("Authorization", f"Bearer {served.ben}")]
    assert ask(served.app, "POST", "/sql", headers).status == 401


def test_a_token_in_the_url_is_not_read(served):
    reply = ask(served.app, "GET", f"/policy?token={served.ana}", served.headers(Authorization=None))
    assert (reply.status, reply.error["type"]) == (400, "BadRequest")
    assert not served.log.exists() or served.ana not in served.log.read_text()


def test_guesses_are_slowed_down_and_analysts_are_not(tmp_path):
    served = Served(tmp_path, failures=3)
    for _ in range(3):
        assert served.post(token="wrong").status == 401
    for _ in range(5):
        reply = served.post(token="wrong")
        assert reply.status == 429
        assert 1 <= int(reply.headers["retry-after"]) <= 61
    assert served.post(token="wrong", address="10.0.0.1").status == 401
    assert served.post().status == 200
    assert [line["outcome"] for line in served.lines()].count("unauthorized") == 4


def test_guesses_from_many_addresses_are_slowed_down_too(tmp_path):
    served = Served(tmp_path, failures=2)
    replies = [served.post(token="wrong", address=f"127.0.0.{number}") for number in range(25)]
    assert [reply.status for reply in replies] == [401] * 20 + [429] * 5
    assert len(served.lines()) == 20
    assert served.post(address="127.0.0.99").status == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "localhost:",
        "[::1",
        "127.0.0.1:8765:1",
        "localhost/",
    ],
)
@pytest.mark.parametrize("path", ["/sql", "/policy", "/health", "/nothing"])
def test_a_request_for_another_host_is_refused(served, host, path):
    reply = ask(served.app, "POST" if path == "/sql" else "GET", path, served.headers(Host=host), [b"{}"])
    assert (reply.status, reply.error["type"]) == (400, "WrongHost")
    assert served.gate.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:9999", "[::1]:8765"])
def test_the_names_of_this_host(served, host):
    assert served.post(Host=host).status == 200


def test_two_hosts_are_none(served):
    headers = [*served.headers(), ("Host", "localhost")]
    assert ask(served.app, "POST", "/sql", headers, [b'{"sql": ""}']).error["type"] == "WrongHost"


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1:3000", "http://127.0.0.1", "file://"]
)
def test_a_web_page_of_another_origin_is_refused(served, origin):
    reply = served.post(Origin=origin)
    assert (reply.status, reply.error["type"]) == (400, "WrongOrigin")
    assert "access-control-allow-origin" not in reply.headers
    assert served.gate.asked == []


def test_what_a_browser_says_about_a_request(served):
    assert served.post(Origin="http://127.0.0.1:8765").status == 200
    assert served.post(Sec_Fetch_Site="same-origin").status == 200
    for site in ("cross-site", "same-site"):
        assert served.post(Sec_Fetch_Site=site).error["type"] == "WrongOrigin"
    preflight = ask(served.app, "OPTIONS", "/sql", [("Host", "localhost"), ("Origin", "https://evil.example")])
    assert preflight.status == 400


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json; charset=utf-16",
        "text/json",
        "application/jsonp",
    ],
)
def test_only_json_is_read(served, kind):
    reply = served.post(Content_Type=kind)
    assert (reply.status, reply.error["type"]) == (415, "UnsupportedMediaType")
    assert served.gate.asked == []


def test_the_encodings_of_json(served):
    assert served.post(Content_Type="Application/JSON; charset=UTF-8").status == 200
    assert served.post(Content_Encoding="gzip").status == 415


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b'"SELECT 1"',
        b"[]",
        b'["sql", "SELECT 1"]',
        b'[["sql", "SELECT 1"]]',
        b"{}",
        b'{"sql": null}',
        b'{"sql": ["SELECT 1"]}',
        b'{"SQL": "SELECT 1"}',
        b'{"sql": "SELECT 1", "more": 1}',
        b'{"sql": "SELECT 1", "sql": "SELECT 2"}',
        b'{"sql": "SELECT \\u0000"}',
        b'{"sql": "SELECT \\ud800"}',
        b'{"sql": "SELECT \xff"}',
        b'{"sql": NaN}',
        b"[" * 60000,
        b"1" * 60000,
    ],
)
def test_a_body_that_is_not_one_statement(served, body):
    reply = served.post(body=body)
    assert (reply.status, reply.error["type"]) == (400, "BadRequest")
    assert served.gate.asked == []


def test_a_statement_arrives_as_it_was_written(served):
    statement = "SELECT 'é\U0001f600\\', \"\" -- \n\t"
    assert served.post(statement).status == 200
    assert served.gate.asked == [statement]
    in_pieces = json.dumps({"sql": statement}).encode()
    chunks = [in_pieces[start : start + 3] for start in range(0, len(in_pieces), 3)]
    assert ask(served.app, "POST", "/sql", served.headers(), chunks).status == 200
    assert served.gate.asked == [statement] * 2


def test_a_large_body_is_refused_before_it_is_read(tmp_path):
    served = Served(tmp_path, body_bytes=100)
    headers = served.headers(Content_Length="101")
    assert ask(served.app, "POST", "/sql", headers, [b""], ends=False).status == 413
    # Without a length it is read up to the limit, and no further.
    assert ask(served.app, "POST", "/sql", served.headers(), [b" " * 60] * 2, ends=False).status == 413
    fits = json.dumps({"sql": "x" * 89}).encode()
    assert len(fits) == 100
    assert served.post(body=fits).status == 200


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path):
    served = Served(tmp_path, body_seconds=0.05)
    reply = ask(served.app, "POST", "/sql", served.headers(), [b"{"], ends=False)
    assert (reply.status, reply.error["message"]) == (400, "the request's body did not arrive in time.")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (pkdp.ArgumentError("only SELECT."), 400),
        (pkdp.NotCertifiableError("no guarantee."), 403),
        (pkdp.DifferencingError("two views."), 403),
        (pkdp.BudgetExceededError("spent."), 403),
        (pkdp.NoEvidenceError("say how."), 403),
    ],
)
def test_a_refusal_says_why(served, error, status):
    served.gate.answer = error
    reply = served.post()
    assert (reply.status, reply.error) == (status, {"type": type(error).__name__, "message": str(error)})
    asked, refused = served.lines()
    assert (asked["outcome"], refused["outcome"]) == ("asked", "refused")
    assert (refused["error"], refused["status"]) == (type(error).__name__, status)


SECRET = "secret value 4711"


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        MemoryError(SECRET),
        pkdp.PkdpError(SECRET),
        pkdp.InputCheckError(SECRET),
        pkdp.ConfigError(SECRET),
        pkdp.LedgerError(SECRET),
    ],
)
def test_what_is_unexpected_is_told_to_the_curator_alone_and_without_data(served, error, capfd):
    served.gate.answer = error
    reply = served.post()
    assert reply.status == 500
    assert reply.error["type"] == "InternalError"
    asked, failed = served.lines()
    assert failed["outcome"] == "failed"
    assert failed["incident"] == failed["request"] == asked["request"] == reply.error["incident"]
    assert failed["error"] == type(error).__name__
    assert failed["where"]
    for text in (reply.body.decode(), served.log.read_text(), *capfd.readouterr()):
        assert SECRET not in text


def test_all_unexpected_errors_read_the_same(served):
    messages = set()
    for error in (ValueError(SECRET), pkdp.LedgerError(SECRET), TypeError()):
        served.gate.answer = error
        messages.add(served.post().error["message"])
    served.gate.answer = SimpleNamespace()  # an answer that cannot be written
    messages.add(served.post().error["message"])
    assert len(messages) == 1


def test_what_may_succeed_later_says_so(served):
    served.gate.answer = TemporaryError(f"the ledger /home/curator/{SECRET} is locked")
    reply = served.post()
    assert (reply.status, reply.error["type"], reply.headers["retry-after"]) == (503, "TemporaryError", "5")
    assert SECRET not in reply.body.decode()
    assert [line["outcome"] for line in served.lines()] == ["asked", "failed"]


def test_a_column_that_json_cannot_hold_is_refused(served):
    served.gate.answer = told(pa.table({"country": [b"x"], "count": [1]}))
    reply = served.post()
    assert (reply.status, reply.error["type"]) == (400, "ArgumentError")
    assert served.post(Accept=ARROW).status == 200


def test_without_an_audit_log_nothing_is_asked_or_answered(served, monkeypatch):
    write, lost = served.audit.write, []

    def without(outcome):
        def writing(given, **facts):
            if given == outcome:
                lost.append(given)
                raise TemporaryError("the disk is full")
            write(given, **facts)

        monkeypatch.setattr(served.audit, "write", writing)

    without("asked")
    reply = served.post()
    assert (reply.status, served.gate.asked) == (503, [])
    without("answered")
    reply = served.post()
    assert (reply.status, served.gate.asked) == (503, ["SELECT 1"])
    assert "rows" not in reply.json
    without("unauthorized")
    assert served.post(token="wrong").status == 503
    assert lost == ["asked", "answered", "unauthorized"]
    monkeypatch.undo()
    assert served.post().status == 200  # and the places were given back


class Slow:
    """A gate whose statements run until they are let go."""

    def __init__(self):
        self.go = threading.Event()
        self.running = threading.Semaphore(0)

    def __call__(self, _):
        self.running.release()
        assert self.go.wait(30)
        return told()


async def meanwhile(served, tokens, then):
    """Ask with each token; while these statements run, await `then`; return the replies to all."""
    slow = served.gate.answer
    body = [b'{"sql": "slow"}']
    running = [
        asyncio.create_task(ask_async(served.app, "POST", "/sql", served.headers(token), body)) for token in tokens
    ]
    for _ in tokens:
        assert await asyncio.to_thread(slow.running.acquire, timeout=30)
    try:
        during = [await ask_async(served.app, "POST", "/sql", served.headers(token), body) for token in then]
    finally:
        slow.go.set()
    return await asyncio.gather(*running), during


def test_a_token_runs_one_statement_at_a_time(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()))
    (first,), (second,) = asyncio.run(meanwhile(served, [served.ana], [served.ana]))
    assert first.status == 200
    assert (second.status, second.error["type"], second.headers["retry-after"]) == (429, "Busy", "1")
    assert served.post().status == 200


def test_so_many_statements_run_at_once(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()), running=1)
    (first,), (second,) = asyncio.run(meanwhile(served, [served.ana], [served.ben]))
    assert first.status == 200
    assert (second.status, second.error["type"], second.headers["retry-after"]) == (503, "Busy", "5")
    assert served.post(token=served.ben).status == 200


def test_other_tokens_run_beside(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()))
    replies, during = asyncio.run(meanwhile(served, [served.ana, served.ben], []))
    assert [reply.status for reply in replies] == [200, 200]
    assert during == []


def test_an_answer_that_takes_too_long_is_not_waited_for(tmp_path):
    slow = Slow()
    served = Served(tmp_path, FakeGate(slow), seconds=0.1)
    reply = served.post()
    assert (reply.status, reply.error["type"]) == (503, "TemporaryError")
    assert served.post().status == 429  # it still runs, and holds its place
    slow.go.set()
    served.app.close()
    served.app._pool.shutdown(wait=True)
    asked, late, answered = served.lines()
    assert [line["outcome"] for line in (asked, late, answered)] == ["asked", "late", "answered"]
    assert asked["request"] == late["incident"] == answered["request"] == reply.error["incident"]
    assert answered["late"] is True


def test_a_service_that_stops_takes_no_more(served):
    served.app.close()
    reply = served.post()
    assert (reply.status, reply.error["type"]) == (503, "TemporaryError")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/sql", 405),
        ("POST", "/policy", 405),
        ("DELETE", "/health", 405),
        ("TRACE", "/sql", 405),
        ("GET", "/docs", 404),
        ("GET", "/policy/", 404),
        ("GET", "/../sql", 404),
    ],
)
def test_there_is_nothing_else(served, method, path, status):
    reply = ask(served.app, method, path, served.headers())
    assert (reply.status, reply.error["message"]) == (status, "there are POST /sql, GET /policy and GET /health.")


def test_every_answer_is_not_to_be_stored(served):
    replies = [
        served.post(),
        served.post(token="wrong"),
        served.post(Host="evil.example"),
        ask(served.app, "GET", "/nothing", served.headers()),
        ask(served.app, "GET", "/health", served.headers()),
    ]
    for reply in replies:
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "server" not in reply.headers


def test_an_analyst_who_goes_away_leaves_no_incident(served):
    async def hang_up():
        async def receive():
            return {"type": "http.disconnect"}

        async def send(_):
            pass

        scope = scope_of("POST", "/sql", served.headers())
        await served.app(scope, receive, send)

    asyncio.run(hang_up())
    assert served.gate.asked == []
    assert not served.log.read_text()


def test_a_websocket_is_closed(served):
    sent = []

    async def connect():
        async def receive():
            return {"type": "websocket.connect"}

        async def send(message):
            sent.append(message)

        await served.app({"type": "websocket", "path": "/sql", "headers": []}, receive, send)

    asyncio.run(connect())
    assert sent == [{"type": "websocket.close", "code": 1008}]


POLICY = {
    "attacker": {"p_max": 0.1},
    "tables": {
        "events": {"unit": "uid", "columns": ["country", "flag"], "k": 20},
        "broken": {"unit": "uid", "columns": ["code"], "k": 20},
    },
}
COUNTRIES = "FROM pkdp_histogram('events', 'country', k := 20)"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("vault") / "events.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT i AS uid, CASE WHEN i < 30 THEN 'US' WHEN i < 55 THEN 'NO' ELSE 'DE' END AS "
            "country, i % 2 = 0 AS flag FROM range(62) AS r (i)"
        )
        connection.execute("CREATE VIEW broken AS SELECT uid, CAST(country AS INTEGER) AS code FROM events")
    return path


@contextmanager
def real(folder, database, **policy):
    """Serve a real gate; None leaves a key of the policy out."""
    given = {key: value for key, value in (POLICY | policy).items() if value is not None}
    with Gate(database, policy=given) as gate:
        yield Served(folder, gate)


def test_the_gate_answers_through_the_service(tmp_path, database):
    with real(tmp_path, database) as served:
        first, again = served.post(COUNTRIES), served.post(COUNTRIES, token=served.ben)
        assert sorted(first.json["rows"]) == [["NO", 25], ["US", 30]]
        assert again.json["rows"] == first.json["rows"]
        (told,), (replayed,) = first.json["releases"], again.json["releases"]
        assert told | {"replayed": True} == replayed
        assert pkdp.Certificate.from_json(json.dumps(told["certificate"])).sentence() == told["sentence"]
        assert [line["releases"] for line in served.lines() if line["outcome"] == "answered"] == [[told["id"]]] * 2


@pytest.mark.parametrize(
    ("policy", "statement", "status", "kind"),
    [
        ({}, "FROM events", 400, "ArgumentError"),
        ({}, "SELECT 1; SELECT 2", 400, "ArgumentError"),
        ({}, "FROM pkdp_histogram('events', 'country', k := 19)", 400, "ArgumentError"),
        ({}, "FROM pkdp_histogram('events', 'uid', k := 20)", 400, "ArgumentError"),
        ({}, "FROM pkdp_count('events', noise := 1.0)", 400, "ArgumentError"),
        ({}, "FROM pkdp_histogram('broken', 'code', k := 20)", 400, "ArgumentError"),
        ({"attacker": None}, COUNTRIES, 403, "NotCertifiableError"),
        (
            {"budget": {"epsilon": 0.5, "delta": 1e-6}},
            "FROM pkdp_count('events', noise := 1.0, release_threshold := 60)",
            403,
            "BudgetExceededError",
        ),
    ],
)
def test_what_the_gate_refuses(tmp_path, database, policy, statement, status, kind):
    with real(tmp_path, database, **policy) as served:
        reply = served.post(statement)
        assert (reply.status, reply.error["type"]) == (status, kind)
        assert "incident" not in reply.error
        assert [line["outcome"] for line in served.lines()] == ["asked", "refused"]


def test_what_would_undo_an_earlier_answer_is_refused(tmp_path, database):
    with real(tmp_path, database) as served:
        assert served.post(COUNTRIES).status == 200
        reply = served.post("FROM pkdp_histogram('events', 'flag', k := 20)")
        assert (reply.status, reply.error["type"]) == (403, "DifferencingError")


def test_a_failure_that_rows_cause_is_an_incident_without_data(tmp_path, capfd):
    """The data changed after the gate was opened, when they were read."""
    path, rows = tmp_path / "events.duckdb", tmp_path / "rows.csv"
    lines = [f"{i},{i % 2}" for i in range(62)]
    rows.write_text("\n".join(["uid,code", *lines]), encoding="utf-8")
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE VIEW broken AS SELECT uid, CAST(code AS INTEGER) AS code "
            f"FROM read_csv('{rows}', all_varchar = true)"
        )
    with real(tmp_path, path, tables={"broken": POLICY["tables"]["broken"]}) as served:
        rows.write_text("\n".join(["uid,code", *lines, "7,US"]), encoding="utf-8")
        reply = served.post("FROM pkdp_histogram('broken', 'code', k := 20)")
        assert (reply.status, reply.error["type"]) == (500, "InternalError")
        failed = served.lines()[-1]
        assert (failed["outcome"], failed["incident"]) == ("failed", reply.error["incident"])
        assert any(place.startswith("For the curator: ") for place in failed["where"])
        for text in (reply.body.decode(), served.log.read_text(), *capfd.readouterr()):
            assert "US" not in text


def test_many_who_ask_the_same_at_once_get_one_release(tmp_path, database):
    async def together(served):
        body = [json.dumps({"sql": COUNTRIES}).encode()]
        return await asyncio.gather(
            *(ask_async(served.app, "POST", "/sql", served.headers(token), body) for token in (served.ana, served.ben))
        )

    with real(tmp_path, database) as served:
        replies = asyncio.run(together(served))
        assert [reply.status for reply in replies] == [200, 200]
        releases = [reply.json["releases"][0] for reply in replies]
        assert releases[0]["id"] == releases[1]["id"]
        assert sorted(release["replayed"] for release in releases) == [False, True]


def test_a_statement_that_takes_too_long_is_stopped_and_others_are_not(tmp_path, database):
    with real(tmp_path, database, limits={"seconds": 2.0}) as served:
        reply = served.post("SELECT sum(a.range * b.range * c.range) FROM range(9999) a, range(9999) b, range(9999) c")
        assert reply.status == 400
        assert "2 seconds" in reply.error["message"]
        assert served.post(COUNTRIES).status == 200
