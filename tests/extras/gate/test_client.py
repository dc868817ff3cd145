"""An analyst's own DuckDB and a service with real connections: what she gets, and who can keep others waiting."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
from analyst import database, policy
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import connect
from pkdp_pipeline.errors import ArgumentError, ConfigError, PkdpError, TemporaryError
from pkdp_pipeline.extras.gate.gate import Gate
from pkdp_pipeline.extras.gate.permitted import describe
from pkdp_pipeline.extras.gate.records import AuditLog, add_token, verify_audit_log
from pkdp_pipeline.extras.gate.service import Service, ServiceLimits, bound, server

pytestmark = pytest.mark.usefixtures("workers_inside")


class Scene:
    """A gate that is served on a port of this machine."""

    def __init__(self, folder: Path, gate: Gate, port: int, later: Callable[[float], None]) -> None:
        self.folder, self.gate, self.port, self.later = folder, gate, port, later
        self.url = f"http://127.0.0.1:{port}"
        self.token = add_token(folder / "tokens", "ana")

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "audit").read_text(encoding="utf-8").splitlines()]


@contextmanager
def served(service: Service, listening: socket.socket, **limits: float) -> Iterator[Callable[[float], None]]:
    """Serve in a thread; give what lets so many seconds go by on the clock of its loop, at once."""
    serving = server(service, patience=5, **limits)
    ahead, loops = [0.0], queue.SimpleQueue[asyncio.AbstractEventLoop]()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        loop.time = lambda: real() + ahead[0]  # type: ignore[method-assign]
        loops.put(loop)
        await serving.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    loop = loops.get(timeout=300)

    def later(seconds: float) -> None:
        ahead[0] += seconds
        loop.call_soon_threadsafe(lambda: None)  # which makes it look at its clock

    try:
        yield later
    finally:
        serving.should_exit = True
        thread.join(timeout=300)
        service.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("served")
    with Gate(database(folder), policy=policy()) as gate, bound("127.0.0.1", 0) as listening:
        service = Service(
            gate,
            describe=lambda: describe(gate.policy, gate.tables),
            token_file=folder / "tokens",
            audit=AuditLog(folder / "audit"),
            hosts={"127.0.0.1"},
            limits=ServiceLimits(body_seconds=600.0, send_seconds=600.0, failures=1_000),
        )
        with served(service, listening, longest=1e9, header_seconds=600.0) as later:
            yield Scene(folder, gate, listening.getsockname()[1], later)
        verify_audit_log(folder / "audit")


@pytest.mark.slow
def test_an_analyst_joins_what_is_released_with_what_is_hers(scene: Scene) -> None:
    with connect(scene.url, token=scene.token) as con:
        con.execute("CREATE TABLE names AS FROM (VALUES ('US', 'States'), ('NO', 'Norway')) t(country, name)")
        question = "pkdp_histogram('events', 'COUNTRY', k := 20)"
        joined = con.sql(f"SELECT name, count FROM {question} JOIN names USING (country) ORDER BY 1")
        assert joined.fetchall() == [("Norway", 100), ("States", 100)]
        twice = con.sql(f"SELECT sum(a.count + b.count) FROM {question} a JOIN {question} b USING (country)")
        assert twice.fetchall() == [(600,)]
        ((sentence, certificate),) = con.sql("SELECT sentence, certificate FROM pkdp_releases()").fetchall()
        assert pkdp.Certificate.from_json(certificate).sentence() == sentence
        small = con.sql("SELECT pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1) < 1e-3").fetchall()
        assert small == [(True,)]
    answered = [line for line in scene.lines() if line["outcome"] == "answered"]
    assert len(answered) == 1  # each release is fetched once
    # Another connection gets the same release.
    with connect(scene.url, token=scene.token) as con:
        assert con.sql(f"FROM {question} ORDER BY 1").fetchall() == [("DE", 100), ("NO", 100), ("US", 100)]
        assert con.sql("SELECT certificate FROM pkdp_releases()").fetchall() == [(certificate,)]


def test_what_is_refused_says_why(scene: Scene) -> None:
    scene.gate.ask({"table": "events", "histogram": "country", "k": 20})
    with connect(scene.url, token=scene.token) as con:
        for question, message in (
            ("SELECT pkdp_count('events', k := 30)", "DifferencingError"),
            ("SELECT pkdp_count('events', k := 19)", "ArgumentError: k must be at least 20"),
            ("SELECT pkdp_count('hidden', k := 30)", "table 'hidden' is not in the policy; its tables are 'events'"),
            ("FROM pkdp_histogram('hidden', 'flag')", "table 'hidden' is not in the policy"),
            ("FROM pkdp_histogram('events', 'note')", "which this gate does not offer"),
            ("SELECT pkdp_count('events', period := '2020')", "period is not for analysts to choose"),
        ):
            with pytest.raises(duckdb.Error, match=message):
                con.sql(question).fetchall()


def test_who_may_not_connect(scene: Scene) -> None:
    with pytest.raises(ConfigError, match="valid token"):
        connect(scene.url, token="pkdp_wrong")
    with pytest.raises(ConfigError, match="POST /ask"):
        connect(f"{scene.url}/elsewhere", token=scene.token)
    for url in (
        "gate.example.org",
        "ftp://gate.example.org",
        "https://",
        "https://u:p@h",
        "https://h?x=1",
        "https://h:x",
        "https://:p@h",
        "https://h h",
        "https://h/\n",
        "https://h/é",
        "https://h..org",
        f"https://{'h' * 70}.org",
    ):
        with pytest.raises(ArgumentError, match="url must be"):
            connect(url, token=scene.token)
    for url in ("http://gate.example.org", "http://127.0.0.1.example.org", "http://10.0.0.1"):
        with pytest.raises(ArgumentError, match="https://"):
            connect(url, token=scene.token)
    for token in ("", " ", "pkdp_\r\nHost: x", "pkdp_é", None, 5):
        with pytest.raises(ArgumentError, match="token must be"):
            connect(scene.url, token=token)  # type: ignore[arg-type]
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TemporaryError, match="cannot be reached"):
        connect(f"http://127.0.0.1:{port}", token=scene.token)


@contextmanager
def answering(*contents: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one connection after the other with these bytes, in turn; give the address, and what was asked."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with closing(connection):
                    got.append(connection.recv(65_536))
                    try:
                        connection.sendall(contents[(len(got) - 1) % len(contents)])
                        # A body that comes after its headers, left unread, would reset the connection.
                        connection.shutdown(socket.SHUT_WR)
                        connection.settimeout(10)
                        while connection.recv(65_536):
                            pass
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", got
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=10)


def test_a_token_is_for_one_host_alone(scene: Scene) -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (other, requests):
        redirect = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {other}/policy\r\nContent-Length: 0\r\n\r\n"
        with answering(redirect.encode()) as (url, _), pytest.raises(ConfigError, match="no gate"):
            connect(url, token=scene.token)
        assert requests == []


@thinned(3)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "no gate"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[[]]", "no gate"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "no gate"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n[]", "no gate"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000, "no gate"),
        (b"HTTP/1.1 500 No\r\n\r\n" + b"[" * 200_000, "no gate"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "cannot be reached"),
        (b"SSH-2.0-OpenSSH\r\n", "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (2**26 + 1), "larger than"),
    ],
)
def test_what_is_no_gate(scene: Scene, content: bytes, message: str) -> None:
    with answering(content) as (url, _), pytest.raises(PkdpError, match=message):
        connect(url, token=scene.token)


@thinned(2)
@pytest.mark.parametrize("seconds", ["Infinity", "NaN", "-1000", "1e300", "1" + "0" * 400])
def test_a_gate_may_say_anything_about_how_long_it_takes(seconds: str) -> None:
    policy = f'{{"tables": {{"events": {{"columns": {{}}}}}}, "limits": {{"seconds": {seconds}}}}}'
    error = '{"error": {"type": "ArgumentError", "message": "it was asked"}}'
    answers = f"HTTP/1.1 200 OK\r\n\r\n{policy}", f"HTTP/1.1 400 No\r\n\r\n{error}"
    with (
        answering(*map(str.encode, answers)) as (url, _),
        connect(url, token="pkdp_any") as con,
        pytest.raises(duckdb.Error, match="it was asked"),
    ):
        con.sql("SELECT pkdp_count('events', k := 20)").fetchall()


def is_ended(scene: Scene, sent: bytes, meanwhile: Callable[[], None] = lambda: None) -> bool:
    """Send this, and return whether the service ends the connection; `meanwhile` is called again and again."""
    with closing(socket.create_connection(("127.0.0.1", scene.port))) as connection:
        connection.settimeout(0.05)
        connection.sendall(sent)
        ends = time.monotonic() + 300
        while time.monotonic() < ends:
            meanwhile()
            try:
                if not connection.recv(65_536):
                    return True
            except TimeoutError:
                continue
            except ConnectionError:
                return True
    return False


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET",
        b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        b"Content-Length: 60000\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.1\r\nX: ",
    ],
)
def test_no_connection_lasts_that_sends_too_slowly(scene: Scene, sent: bytes) -> None:
    assert is_ended(scene, sent.replace(b"{token}", scene.token.encode()), lambda: scene.later(601))


def test_what_is_refused_before_it_is_a_question_is_written_down(scene: Scene) -> None:
    before = len(scene.lines())
    head = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {scene.token}\r\n"
    kind = "Content-Type: application/json\r\n"
    for sent in (
        f"{head}{kind}Content-Length: 1000000\r\n\r\n",
        f"{head}{kind}Content-Length: 1\r\n\r\n{{",
        f"{head}Content-Length: 2\r\n\r\n{{}}",
        "POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer pkdp_guess\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ):
        assert is_ended(scene, sent.encode())
    written = [(line["outcome"], line["error"], line.get("token")) for line in scene.lines()[before:]]
    assert written == [
        ("refused", "TooLarge", "ana"),
        ("refused", "ArgumentError", "ana"),
        ("refused", "UnsupportedMediaType", "ana"),
        ("unauthorized", "Unauthorized", None),
        ("refused", "WrongHost", None),
    ]
    assert "pkdp_guess" not in (scene.folder / "audit").read_text()


def test_an_answer_that_nobody_reads_does_not_hold_its_place_for_ever(tmp_path: Path) -> None:
    folder = tmp_path
    with (
        Gate(database(folder), policy=policy()) as gate,
        bound("127.0.0.1", 0) as listening,
    ):
        begun = threading.Event()

        def padded() -> dict[str, str]:
            begun.set()
            return {"padding": "x" * 20_000_000}

        service = Service(
            gate,
            describe=padded,
            token_file=folder / "tokens",
            audit=AuditLog(folder / "audit"),
            hosts={"127.0.0.1"},
            limits=ServiceLimits(send_seconds=600.0, wait_seconds=0.1),
        )
        with served(service, listening, longest=1e9) as later:
            port, token = listening.getsockname()[1], add_token(folder / "tokens", "ana")
            ask = f"GET /policy HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

            def status() -> int:
                with closing(socket.create_connection(("127.0.0.1", port), timeout=300)) as connection:
                    connection.sendall(ask)
                    return int(connection.recv(12)[9:])

            with closing(socket.socket()) as idle:
                idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                idle.connect(("127.0.0.1", port))
                idle.sendall(ask)
                assert begun.wait(300)
                assert status() == 429  # the answer is on its way, and has its place
                ends = time.monotonic() + 300
                later(601)
                while status() != 200:
                    assert time.monotonic() < ends
                    later(601)  # a piece may have begun to wait since: it has its own time
