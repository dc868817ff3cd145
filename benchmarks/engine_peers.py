"""Peers on the same task, each in an environment of its own, asked in turns with this package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PEERS", "NotAvailableError", "Peer", "answering"]

SCRIPTS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A script beside this module, and what pip must install for it."""

    name: str
    requirement: str
    script: str
    arguments: tuple[str, ...] = ()


PEERS = (
    Peer(name="OpenDP with Polars", requirement="opendp[polars]", script="opendp_polars.py"),
    Peer(name="SmartNoise SQL", requirement="smartnoise-sql", script="smartnoise_sql.py"),
    Peer(name="PipelineDP", requirement="pipeline-dp", script="pipeline_dp_local.py"),
    Peer(name="PyDP", requirement="python-dp", script="pydp_counts.py"),
)


class NotAvailableError(Exception):
    """A peer cannot be installed or started; that is reported, and is no failure of the benchmark."""


class Answers:
    """A running peer: `next` times one histogram, and `cells` is what the peer said of its cells."""

    cells: Any = None

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version = str(self._line()["version"])

    def next(self) -> float:
        with suppress(BrokenPipeError):
            self._input().write("go\n")
            self._input().flush()
        answer = self._line()
        self.cells = answer["cells"]
        return float(answer["seconds"])

    def _line(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise NotAvailableError("it stopped; run its script in benchmarks/peers by hand to see why")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _input(self) -> Any:
        return self._process.stdin


@contextmanager
def answering(peer: Peer, table: Path, cache: Path) -> Iterator[Answers]:
    """Start a peer over a CSV table.

    Raises
    ------
    NotAvailableError
        If it cannot be installed or does not answer.
    """
    command = [str(_python(peer, cache)), str(SCRIPTS / peer.script), str(table), *peer.arguments]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield Answers(process)
    finally:
        process.kill()
        process.communicate()


def _python(peer: Peer, cache: Path) -> Path:
    """Return the interpreter of the peer's environment, which is made when it is not there."""
    room = cache / re.sub(r"\W+", "_", peer.requirement).strip("_")
    python, ready = room / "bin" / "python", room / "ready"
    if not ready.exists():
        print(f"  installing {peer.requirement} …", file=sys.stderr, flush=True)
        try:
            venv.create(room, with_pip=True, clear=True)
            install = [str(python), "-m", "pip", "install", "--quiet", peer.requirement]
            subprocess.run(install, check=True, capture_output=True, timeout=900)
        except (subprocess.SubprocessError, OSError) as error:
            raise NotAvailableError(f"pip could not install {peer.requirement} ({type(error).__name__})") from error
        ready.touch()
    return python
