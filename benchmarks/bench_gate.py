"""The gate's service on loopback: replays and new questions a second, and how long a new one takes beside replays.

    python benchmarks/bench_gate.py [--requests 200] [--seconds 15]

Every client has a token and a thread of its own, and asks again at once when the service is busy; a line ends after so
many answers or so many seconds. A new question is a noised count, charged to a budget: certified, counted and stored. A
replay is read from the ledger. Two lines of the audit log are on the disk for each. Times are of this machine, and
so are the milliseconds of processors that the service and its workers take for an answer (Linux), which depend less on
what else it does; several clients start further workers.

In the last line 31 clients together ask for 100 replays a second, and one asks new questions; the time of each is
compared with that of the plain query on the same table.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import duckdb

from pkdp_pipeline.extras.gate.records import add_token

CLIENTS = (1, 4, 32)
GOALS = {"replays": 100.0, "beside": 0.06}
POLICY = """\
ledger = "ledger.sqlite"
period = "2020"
budget = { epsilon = 1000.0, delta = 1e-6, part = "worst_case" }

[tables.people]
unit = "uid"
columns = ["country"]
k = 20
"""
PEOPLE = "CREATE TABLE people AS SELECT i AS uid, 'c' || i % 12 AS country FROM range(100_000) t(i)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=200, help="answers for each line")
    parser.add_argument("--seconds", type=float, default=15.0, help="the longest that a line takes")
    given = parser.parse_args()
    fresh = itertools.count(1)
    replayed: dict[str, object] = {"table": "people", "count": True, "noise": 0.001}
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (address, tokens, service):
        ask(address, tokens[0], replayed)
        for clients in CLIENTS:
            for name, question in (
                ("replays", lambda: replayed),
                ("new questions", lambda: {**replayed, "noise": 0.001 + next(fresh) * 1e-6}),
            ):
                before = processor_seconds(service)
                answers, seconds = asked(address, tokens[:clients], question, given.requests, given.seconds)
                busy = sum(number for status, number in answers.items() if status in (429, 503))
                goal = f" (goal {GOALS['replays']:.0f})" if name == "replays" else ""
                print(
                    f"{clients:3d} clients  {name:14s} {answers[200] / seconds:8.1f} a second{goal} "
                    f"({answers[200]} in {seconds:.1f} s, told {busy} times to wait; "
                    f"{1e3 * (processor_seconds(service) - before) / answers[200]:.1f} ms of processors each)",
                    flush=True,
                )
        plain = statistics.median(plain_times(Path(folder) / "people.duckdb"))
        times = beside_replays(address, tokens, question, replayed, given.requests)
        middle, late = (statistics.quantiles(times, n=100, method="inclusive")[place] for place in (49, 98))
        print(
            f"a new question beside {GOALS['replays']:.0f} replays a second: median {1e3 * middle:.0f} ms, 99 % within "
            f"{1e3 * late:.0f} ms; plain query {1e3 * plain:.0f} ms, more than that by {1e3 * (late - plain):.0f} ms "
            f"(goal {1e3 * GOALS['beside']:.0f})"
        )


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str], int]]:
    """Give the address of a service of its own process, the tokens that it lets in, and the number of the process."""
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(PEOPLE)
    (folder / "people.duckdb").chmod(0o600)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    tokens = [add_token(folder / "tokens", f"client{number}") for number in range(max(CLIENTS))]
    command = [sys.executable, "-m", "pkdp_pipeline.cli.main", "gate", "serve", "policy.toml", "--port", "0"]
    command += ["--database", "people.duckdb", "--token-file", "tokens"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield urlsplit(process.stdout.readline().split()[4].rstrip(",")).netloc, tokens, process.pid
        finally:
            process.terminate()


def processor_seconds(service: int) -> float:
    """Return what a process and the workers that it has started have used, NaN where that is not to be read."""
    try:
        threads = list(Path(f"/proc/{service}/task").iterdir())
        workers = [number for thread in threads for number in (thread / "children").read_text().split()]
        used = [Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split() for number in (service, *workers)]
    except OSError:
        return math.nan
    return sum(int(user) + int(system) for *_, user, system in (times[:13] for times in used)) / os.sysconf(
        "SC_CLK_TCK"
    )


def plain_times(database: Path, times: int = 20) -> Iterator[float]:
    """Yield how long the plain query of a new question takes."""
    with duckdb.connect(str(database), read_only=True) as connection:
        for _ in range(times):
            began = time.perf_counter()
            connection.execute("SELECT count(DISTINCT uid) FROM people").fetchall()
            yield time.perf_counter() - began


def beside_replays(
    address: str, tokens: list[str], fresh: Callable[[], object], replayed: object, requests: int
) -> list[float]:
    """Return how long each of so many new questions took while the other clients asked for replays, in turns."""
    ended = threading.Event()
    pause = (len(tokens) - 1) / GOALS["replays"]

    def replaying(token: str, first: float) -> None:
        ended.wait(first)
        while not ended.is_set():
            began = time.perf_counter()
            ask(address, token, replayed)
            ended.wait(max(0.0, began + pause - time.perf_counter()))

    others = [
        threading.Thread(target=replaying, args=(token, pause * place / len(tokens)))
        for place, token in enumerate(tokens[1:])
    ]
    for thread in others:
        thread.start()
    times = []
    for _ in range(requests):
        began = time.perf_counter()
        ask(address, tokens[0], fresh())
        times.append(time.perf_counter() - began)
    ended.set()
    for thread in others:
        thread.join()
    return times


def asked(
    address: str, tokens: list[str], question: Callable[[], object], requests: int, seconds: float
) -> tuple[Counter[int], float]:
    """Return how often each status was answered, and how long it took."""
    answers, left = Counter[int](), itertools.count(1)
    began = time.monotonic()

    def client(token: str) -> None:
        while next(left) <= requests:
            body = question()
            while time.monotonic() < began + seconds:
                status = ask(address, token, body)
                answers[status] += 1
                if status not in (429, 503):
                    break

    threads = [threading.Thread(target=client, args=(token,)) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, time.monotonic() - began


def ask(address: str, token: str, question: object) -> int:
    """Ask one question and return the status."""
    connection = http.client.HTTPConnection(address, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/ask", json.dumps(question), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


if __name__ == "__main__":
    main()
