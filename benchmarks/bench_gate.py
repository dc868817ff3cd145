"""The gate's service on loopback: replays and new questions a second, asked by 1, 4 and 32 clients.

    python benchmarks/bench_gate.py [--requests 200] [--seconds 15]

Every client has a token and a thread of its own, and asks again at once when the service is busy; a line ends after so
many answers or so many seconds. A new question is a noised count, charged to a budget: certified, counted and stored. A
replay is read from the ledger. Two lines of the audit log are on the disk for each. Times are of this machine.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
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
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (address, tokens):
        ask(address, tokens[0], replayed)
        for clients in CLIENTS:
            for name, question in (
                ("replays", lambda: replayed),
                ("new questions", lambda: {**replayed, "noise": 0.001 + next(fresh) * 1e-6}),
            ):
                answers, seconds = asked(address, tokens[:clients], question, given.requests, given.seconds)
                busy = sum(number for status, number in answers.items() if status in (429, 503))
                print(
                    f"{clients:3d} clients  {name:14s} {answers[200] / seconds:8.1f} a second "
                    f"({answers[200]} in {seconds:.1f} s, told {busy} times to wait)",
                    flush=True,
                )


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Give the address of a service of its own process, and the tokens that it lets in."""
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(PEOPLE)
    (folder / "people.duckdb").chmod(0o600)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    tokens = [add_token(folder / "tokens", f"client{number}") for number in range(max(CLIENTS))]
    command = [sys.executable, "-m", "pkdp_pipeline.cli.main", "gate", "serve", "policy.toml", "--port", "0"]
    command += ["--database", "people.duckdb", "--token-file", "tokens"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield urlsplit(process.stdout.readline().split()[4].rstrip(",")).netloc, tokens
        finally:
            process.terminate()


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
