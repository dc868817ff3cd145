"""The gate's service: who is let in, what is refused before anything runs, and what an analyst is told."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pandas as pd
import pytest
from asgi_client import ask, ask_async, scope_of
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline.errors import TemporaryError
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.records import AuditLog, add_token, verify_audit_log
from pkdp_pipeline.extras.gate.service import Service, ServiceLimits
from pkdp_pipeline.releases.release import Release

pytestmark = [pytest.mark.usefixtures("workers_inside"), pytest.mark.whole_curves]

QUESTION = {"table": "events", "histogram": "country", "k": 20}
BODY = json.dumps(QUESTION).encode()
RELEASE = pd.DataFrame({"uid": range(62), "country": ["US"] * 31 + ["NO"] * 31}).pkdp.histogram(
    "country", unit="uid", k=20, attacker=pkdp.AttackerModel(p_max=0.1)
)


@dataclass
class FakeGate:
    """Answers as told to."""

    answer: object = RELEASE
    questions: list[dict] = field(default_factory=list)
    public: bool = False

    def ask(self, question, before):
        if not self.public:
            before()
        self.questions.append(question.to_dict())
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


class Served:
    """A service with two tokens, and the files it keeps."""

    def __init__(self, folder, gate=None, **limits):
        self.log, self.tokens = folder / "audit.jsonl", folder / "tokens"
        self.gate = gate or FakeGate()
        self.ana, self.ben = add_token(self.tokens, "ana"), add_token(self.tokens, "ben")
        self.audit = AuditLog(self.log)
        self.app = Service(
            self.gate,
            describe=lambda: {"tables": {}},
            token_file=self.tokens,
            audit=self.audit,
            hosts={"127.0.0.1", "localhost", "::1"},
            limits=ServiceLimits(**{"wait_seconds": 0.05, "failures": 100, **limits}),
        )

    def headers(self, token=None, **changed):
        given = {
            "Host": "127.0.0.1:8765",
            "Authorization": f"Bearer {token or self.ana}",
            "Content-Type": "application/json",
        } | {name.replace("_", "-"): value for name, value in changed.items()}
        return [(name, value) for name, value in given.items() if value is not None]

    def post(self, question=QUESTION, *, token=None, body=None, address="127.0.0.1", **changed):
        sent = json.dumps(question).encode() if body is None else body
        return ask(self.app, "POST", "/ask", self.headers(token, **changed), [sent], address=address)

    def lines(self):
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def served(tmp_path):
    served = Served(tmp_path)
    yield served
    verify_audit_log(served.log)


def test_a_question_is_answered_and_written_down(served):
    reply = served.post()
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/vnd.apache.parquet"
    assert reply.headers["pkdp-replayed"] == "false"
    assert reply.body == RELEASE.to_bytes()
    assert Release.from_bytes(reply.body).verify()
    question_line, answer_line = served.lines()
    assert (question_line["outcome"], answer_line["outcome"], answer_line["status"]) == ("asked", "answered", 200)
    for line in (question_line, answer_line):
        assert (line["token"], line["question"]) == ("ana", {**QUESTION, "histogram": ["country"]})
    assert answer_line["release"] == RELEASE.id
    assert question_line["request"] == answer_line["request"]
    assert "NO" not in served.log.read_text()


def test_health_needs_no_token_and_policy_does(served):
    health = ask(served.app, "GET", "/health", [("Host", "localhost")])
    assert (health.status, health.json) == (200, {"status": "ok"})
    assert ask(served.app, "GET", "/policy", [("Host", "localhost")]).status == 401
    assert ask(served.app, "GET", "/policy", served.headers()).json == {"tables": {}}


def test_an_answer_that_is_too_large_is_not_sent(tmp_path):
    served = Served(tmp_path, answer_bytes=len(RELEASE.to_bytes()) - 1)
    reply = served.post()
    assert (reply.status, reply.error["type"]) == (400, "ArgumentError")
    assert "larger than" in reply.error["message"]
    assert served.lines()[-1]["release"] == RELEASE.id  # it is published, and the log says so


def test_tokens_are_revoked_and_added_while_the_service_runs(served):
    assert served.post().status == 200
    kept = [line for line in served.tokens.read_text().splitlines(keepends=True) if not line.startswith("ana ")]
    served.tokens.write_text("".join(kept))
    assert served.post().status == 401
    assert served.post(token=served.ben).status == 200
    assert served.post(token=add_token(served.tokens, "carl")).status == 200
    served.tokens.write_text(served.tokens.read_text().replace("expires:2", "expires:1"))
    assert served.post(token=served.ben).status == 401
    served.tokens.write_text("spoilt")
    reply = served.post(token=served.ben)
    assert (reply.status, reply.error["type"]) == (503, "TemporaryError")
    assert [line["outcome"] for line in served.lines() if line["outcome"] not in ("asked", "answered")] == [
        *["unauthorized"] * 2,
        "refused",
    ]


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
@pytest.mark.parametrize("path", ["/ask", "/policy"])
def test_without_a_valid_token_nothing_is_read(served, given, path):
    wanted = given and given.format(ana=served.ana)
    method = "POST" if path == "/ask" else "GET"
    # The body never ends: whoever is not let in is told so before it is read.
    headers = served.headers(Authorization=wanted)
    reply = ask(served.app, method, path, headers, [b"{"], ends=False)
    assert (reply.status, reply.error["type"], reply.headers["www-authenticate"]) == (401, "Unauthorized", "Bearer")
    assert served.gate.questions == []
    (line,) = served.lines()
    assert (line["outcome"], line["address"]) == ("unauthorized", "127.0.0.1")
    assert served.ana not in served.log.read_text()


def test_two_tokens_in_one_request_are_none(served):
    headers = [*served.headers(), ("Authorization", f"Bearer {served.ben}")]
    assert ask(served.app, "POST", "/ask", headers).status == 401


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


def test_a_token_file_that_cannot_be_read_lets_nobody_fill_the_log(tmp_path):
    served = Served(tmp_path, failures=3)
    served.tokens.chmod(0o666)
    assert [served.post().status for _ in range(6)] == [503] * 3 + [429] * 3
    assert len(served.lines()) == 3


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
@pytest.mark.parametrize("path", ["/ask", "/policy", "/health", "/nothing"])
def test_a_request_for_another_host_is_refused(served, host, path):
    reply = ask(served.app, "POST" if path == "/ask" else "GET", path, served.headers(Host=host), [b"{}"])
    assert (reply.status, reply.error["type"]) == (400, "WrongHost")
    assert served.gate.questions == []


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:9999", "[::1]:8765"])
def test_the_names_of_this_host(served, host):
    assert served.post(Host=host).status == 200


def test_two_hosts_are_none(served):
    headers = [*served.headers(), ("Host", "localhost")]
    assert ask(served.app, "POST", "/ask", headers, [b'{"table": ""}']).error["type"] == "WrongHost"


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1:3000", "http://127.0.0.1", "file://"]
)
def test_a_web_page_of_another_origin_is_refused(served, origin):
    reply = served.post(Origin=origin)
    assert (reply.status, reply.error["type"]) == (400, "WrongOrigin")
    assert "access-control-allow-origin" not in reply.headers
    assert served.gate.questions == []


def test_what_a_browser_says_about_a_request(served):
    assert served.post(Origin="http://127.0.0.1:8765").status == 200
    assert served.post(Sec_Fetch_Site="same-origin").status == 200
    for site in ("cross-site", "same-site"):
        assert served.post(Sec_Fetch_Site=site).error["type"] == "WrongOrigin"
    preflight = ask(served.app, "OPTIONS", "/ask", [("Host", "localhost"), ("Origin", "https://evil.example")])
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
    assert served.gate.questions == []


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
        b'[["table", "events"]]',
        b"{}",
        b'{"sql": "SELECT 1"}',
        b'{"table": "events"}',
        b'{"table": "events", "count": true, "more": 1}',
        b'{"table": "events", "count": true, "count": true}',
        b'{"table": "events\\u0000", "count": true}',
        b'{"table": "events", "count": true, "filter": "\\ud800"}',
        b'{"table": "events\xff", "count": true}',
        '{"table": "events", "count": true}'.encode("utf-16"),
        b'{"table": "events", "count": true, "noise": NaN}',
        b"[" * 60000,
        b"1" * 60000,
    ],
)
def test_a_body_that_is_no_question(served, body, caplog):
    reply = served.post(body=body)
    assert (reply.status, reply.error["type"]) == (400, "ArgumentError")
    assert served.gate.questions == []
    (line,) = served.lines()
    assert (line["outcome"], line["token"], line["error"], line["status"]) == ("refused", "ana", "ArgumentError", 400)
    (record,) = (record for record in caplog.records if record.name == "pkdp_pipeline")
    assert (record.levelname, record.args) == ("WARNING", ("ArgumentError",))


def test_a_question_arrives_as_it_was_written(served):
    question = {"table": "é\U0001f600\\", "count": True, "filter": ' "" -- \n\t'}
    assert served.post(question).status == 200
    assert served.gate.questions == [question]
    in_pieces = json.dumps(question).encode()
    chunks = [in_pieces[start : start + 3] for start in range(0, len(in_pieces), 3)]
    assert ask(served.app, "POST", "/ask", served.headers(), chunks).status == 200
    assert served.gate.questions == [question] * 2


def test_a_large_body_is_refused_before_it_is_read(tmp_path):
    served = Served(tmp_path, body_bytes=100)
    headers = served.headers(Content_Length="101")
    assert ask(served.app, "POST", "/ask", headers, [b""], ends=False).status == 413
    # Without a length it is read up to the limit, and no further.
    assert ask(served.app, "POST", "/ask", served.headers(), [b" " * 60] * 2, ends=False).status == 413
    assert served.post(body=json.dumps(QUESTION).encode().ljust(100)).status == 200
    assert [line.get("error") for line in served.lines()] == ["TooLarge", "TooLarge", None, None]


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path):
    served = Served(tmp_path, body_seconds=0.05)
    reply = ask(served.app, "POST", "/ask", served.headers(), [b"{"], ends=False)
    assert (reply.status, reply.error["message"]) == (400, "the request's body did not arrive in time.")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (pkdp.ArgumentError("k must be at least 20."), 400),
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
    question_line, refusal_line = served.lines()
    assert (question_line["outcome"], refusal_line["outcome"]) == ("asked", "refused")
    assert (refusal_line["error"], refusal_line["status"]) == (type(error).__name__, status)


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
    question_line, failure_line = served.lines()
    assert failure_line["outcome"] == "failed"
    assert failure_line["incident"] == failure_line["request"] == question_line["request"] == reply.error["incident"]
    assert failure_line["error"] == type(error).__name__
    assert failure_line["where"]
    for text in (reply.body.decode(), served.log.read_text(), *capfd.readouterr()):
        assert SECRET not in text


def test_all_unexpected_errors_read_the_same(served):
    messages = set()
    for error in (ValueError(SECRET), pkdp.LedgerError(SECRET), TypeError()):
        served.gate.answer = error
        messages.add(served.post().error["message"])
    assert len(messages) == 1


def test_what_may_succeed_later_says_so(served):
    served.gate.answer = TemporaryError(f"the ledger /home/curator/{SECRET} is locked")
    reply = served.post()
    assert (reply.status, reply.error["type"], reply.headers["retry-after"]) == (503, "TemporaryError", "5")
    assert SECRET not in reply.body.decode()
    assert [line["outcome"] for line in served.lines()] == ["asked", "failed"]


def test_without_an_audit_log_nothing_is_asked_or_answered(served, monkeypatch):
    store, lost = served.audit.store, []

    def without(outcome):
        def storing(*lines):
            if outcome in [json.loads(line)["outcome"] for line in lines]:
                lost.append(outcome)
                raise TemporaryError("the disk is full")
            store(*lines)

        monkeypatch.setattr(served.audit, "store", storing)

    without("asked")
    reply = served.post()
    assert (reply.status, served.gate.questions) == (503, [])
    served.gate.public = True  # then the gate needs no leave: both lines are stored together
    assert served.post().status == 503
    served.gate.public, served.gate.questions = False, []
    without("answered")
    reply = served.post()
    assert (reply.status, served.gate.questions) == (503, [{**QUESTION, "histogram": ["country"]}])
    assert b"PAR1" not in reply.body
    without("unauthorized")
    assert served.post(token="wrong").status == 503
    assert lost == ["asked"] * 3 + ["answered", "unauthorized"]
    monkeypatch.undo()
    assert served.post().status == 200  # and the places were given back


class Slow:
    """A gate whose questions run until they are let go."""

    def __init__(self):
        self.go = threading.Event()
        self.running = threading.Semaphore(0)

    def __call__(self):
        self.running.release()
        assert self.go.wait(300)
        return RELEASE


async def meanwhile(served, tokens, then, *, beside=None):
    """Ask with each token; while these questions run, ask with those of `then`; return the replies to all."""
    slow = served.gate.answer
    body = [BODY]
    running = [
        asyncio.create_task(ask_async(served.app, "POST", "/ask", served.headers(token), body)) for token in tokens
    ]
    for _ in tokens:
        assert await asyncio.to_thread(slow.running.acquire, timeout=300)
    try:
        during = [await ask_async(served.app, "POST", "/ask", served.headers(token), body) for token in then]
        during += [] if beside is None else [await beside]
    finally:
        slow.go.set()
    return await asyncio.gather(*running), during


def test_a_token_asks_one_question_at_a_time(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()))
    (first,), (second,) = asyncio.run(meanwhile(served, [served.ana], [served.ana]))
    assert first.status == 200
    assert (second.status, second.error["type"], second.headers["retry-after"]) == (429, "Busy", "1")
    assert served.post().status == 200


def test_so_many_questions_run_at_once(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()), running=1)
    (first,), (second,) = asyncio.run(meanwhile(served, [served.ana], [served.ben]))
    assert first.status == 200
    assert (second.status, second.error["type"], second.headers["retry-after"]) == (503, "Busy", "5")
    assert served.post(token=served.ben).status == 200


def test_what_is_no_question_is_refused_while_others_are_answered(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()), running=1, wait_seconds=60.0)

    async def replies():
        malformed = ask_async(served.app, "POST", "/ask", served.headers(served.ben), [b'{"table": 1}'])
        return await meanwhile(served, [served.ana], [], beside=malformed)

    (first,), (refused,) = asyncio.run(replies())
    assert (first.status, refused.status, refused.error["type"]) == (200, 400, "ArgumentError")


def test_a_question_waits_for_a_place(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()), running=1, wait_seconds=60.0)

    async def replies():
        second = asyncio.create_task(ask_async(served.app, "POST", "/ask", served.headers(served.ben), [BODY]))
        (first,), _ = await meanwhile(served, [served.ana], [])
        return first, await second

    assert [reply.status for reply in asyncio.run(replies())] == [200, 200]
    assert "refused" not in [line["outcome"] for line in served.lines()]


def test_other_tokens_run_beside(tmp_path):
    served = Served(tmp_path, FakeGate(Slow()))
    replies, during = asyncio.run(meanwhile(served, [served.ana, served.ben], []))
    assert [reply.status for reply in replies] == [200, 200]
    assert during == []


async def statuses_while_reading(served, *, stop):
    """Take an answer slowly, and see whether others of the same token are answered meanwhile; return both."""
    reading, sent = asyncio.Event(), []

    async def receive():
        return {"type": "http.request", "body": json.dumps(QUESTION).encode(), "more_body": False}

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body" and message["more_body"] is not stop:
            await reading.wait()

    taking = asyncio.create_task(served.app(scope_of("POST", "/ask", served.headers()), receive, send))
    while not sent or sent[-1]["type"] != "http.response.body":
        await asyncio.sleep(0.01)
    body = [json.dumps(QUESTION).encode()]
    during = await ask_async(served.app, "POST", "/ask", served.headers(), body)
    loop = asyncio.get_running_loop()
    real = loop.time
    if stop:
        loop.time = lambda: real() + 601.0  # so much later it is from now on
    else:
        reading.set()
    await taking
    after = await ask_async(served.app, "POST", "/ask", served.headers(), body)
    return during.status, after.status


def test_a_place_is_held_until_the_answer_is_sent(tmp_path):
    during, after = asyncio.run(statuses_while_reading(Served(tmp_path), stop=False))
    assert (during, after) == (429, 200)


def test_an_answer_that_nobody_reads_does_not_hold_its_place_for_ever(tmp_path):
    during, after = asyncio.run(statuses_while_reading(Served(tmp_path, send_seconds=600.0), stop=True))
    assert (during, after) == (429, 200)


def test_a_service_that_stops_takes_no_more(served):
    served.app.close()
    reply = served.post()
    assert (reply.status, reply.error["type"]) == (503, "TemporaryError")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/ask", 405),
        ("POST", "/policy", 405),
        ("DELETE", "/health", 405),
        ("TRACE", "/ask", 405),
        ("GET", "/docs", 404),
        ("GET", "/policy/", 404),
        ("GET", "/../ask", 404),
    ],
)
def test_there_is_nothing_else(served, method, path, status):
    reply = ask(served.app, method, path, served.headers())
    assert (reply.status, reply.error["message"]) == (status, "there are POST /ask, GET /policy and GET /health.")


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

        scope = scope_of("POST", "/ask", served.headers())
        await served.app(scope, receive, send)

    asyncio.run(hang_up())
    assert served.gate.questions == []
    assert not served.log.read_text()
    assert served.post().status == 200  # and its place was given back


def test_a_websocket_is_closed(served):
    sent = []

    async def connect():
        async def receive():
            return {"type": "websocket.connect"}

        async def send(message):
            sent.append(message)

        await served.app({"type": "websocket", "path": "/ask", "headers": []}, receive, send)

    asyncio.run(connect())
    assert sent == [{"type": "websocket.close", "code": 1008}]


POLICY = {
    "attacker": {"p_max": 0.1},
    "tables": {
        "events": {"unit": "uid", "columns": ["country", "flag"], "k": 20},
        "broken": {"unit": "uid", "columns": ["code"], "k": 20},
    },
}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("vault") / "events.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT i AS uid, CASE WHEN i < 30 THEN 'US' WHEN i < 55 THEN 'NO' ELSE 'DE' END AS "
            "country, i % 2 = 0 AS flag FROM range(62) AS r (i)"
        )
        connection.execute("CREATE VIEW broken AS SELECT uid, CAST(country AS INTEGER) AS code FROM events")
    path.chmod(0o600)
    return path


@contextmanager
def real(folder, database, **policy):
    """Serve a real gate; None leaves a key of the policy out."""
    given = {key: value for key, value in (POLICY | policy).items() if value is not None}
    with Gate(database, policy=given) as gate:
        yield Served(folder, gate)


def test_the_gate_answers_through_the_service(tmp_path, database):
    with real(tmp_path, database) as served:
        first, again = served.post(), served.post(token=served.ben)
        release = Release.from_bytes(first.body)
        assert release.table.to_numpy().tolist() == [["NO", 25], ["US", 30]]
        assert again.body == first.body
        assert (first.headers["pkdp-replayed"], again.headers["pkdp-replayed"]) == ("false", "true")
        assert [line["release"] for line in served.lines() if line["outcome"] == "answered"] == [release.id] * 2


@pytest.mark.parametrize(
    ("policy", "question", "status", "kind"),
    one_in(
        3,
        [
            ({}, {**QUESTION, "table": "other"}, 400, "ArgumentError"),
            ({}, {**QUESTION, "k": 19}, 400, "ArgumentError"),
            ({}, {**QUESTION, "histogram": "uid"}, 400, "ArgumentError"),
            ({}, {"table": "events", "count": True, "noise": 1.0}, 400, "ArgumentError"),
            ({}, {"table": "broken", "histogram": "code"}, 400, "ArgumentError"),
            ({"attacker": None}, QUESTION, 403, "NotCertifiableError"),
            (
                {"budget": {"epsilon": 0.5, "delta": 1e-6}},
                {"table": "events", "count": True, "noise": 1.0, "release_threshold": 60},
                403,
                "BudgetExceededError",
            ),
        ],
    ),
)
def test_what_the_gate_refuses(tmp_path, database, policy, question, status, kind):
    with real(tmp_path, database, **policy) as served:
        reply = served.post(question)
        assert (reply.status, reply.error["type"]) == (status, kind)
        assert "incident" not in reply.error
        assert [line["outcome"] for line in served.lines()] == ["asked", "refused"]


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
    path.chmod(0o600)
    with real(tmp_path, path, tables={"broken": POLICY["tables"]["broken"]}) as served:
        rows.write_text("\n".join(["uid,code", *lines, "7,US"]), encoding="utf-8")
        reply = served.post({"table": "broken", "histogram": "code", "k": 20})
        assert (reply.status, reply.error["type"]) == (500, "InternalError")
        failed = served.lines()[-1]
        assert (failed["outcome"], failed["incident"]) == ("failed", reply.error["incident"])
        assert any(place.startswith("For the curator: ") for place in failed["where"])
        for text in (reply.body.decode(), served.log.read_text(), *capfd.readouterr()):
            assert "US" not in text


def test_many_who_ask_the_same_at_once_get_one_release(tmp_path, database):
    async def together(served):
        body = [json.dumps(QUESTION).encode()]
        return await asyncio.gather(
            *(ask_async(served.app, "POST", "/ask", served.headers(token), body) for token in (served.ana, served.ben))
        )

    with real(tmp_path, database) as served:
        replies = asyncio.run(together(served))
        assert [reply.status for reply in replies] == [200, 200]
        assert replies[0].body == replies[1].body
        assert sorted(reply.headers["pkdp-replayed"] for reply in replies) == ["false", "true"]
