"""Whoever answers the tasks of a benchmark, each in a process of its own; peers also have environments of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

__all__ = ["Answer", "Answers", "NotAvailableError", "Peer", "answering"]

SCRIPTS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A script beside this module, and what pip must install for it; with no requirement it runs where this runs."""

    name: str
    script: str
    requirement: str = ""
    arguments: tuple[str, ...] = ()


class NotAvailableError(Exception):
    """A peer cannot be installed or started; that is reported, and is no failure of the benchmark."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one task took, in seconds of the clock and of processors, and the largest memory so far, in bytes."""

    seconds: float
    cpu: float
    peak: int
    cells: Any


class Answers:
    """A running process that answers `tasks`; they may be asked before it has loaded its rows."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @cached_property
    def _hello(self) -> dict[str, Any]:
        return self._line()

    @property
    def version(self) -> str:
        """The version of the package that answers."""
        return str(self._hello["version"])

    @property
    def tasks(self) -> list[str]:
        """Which tasks it can answer."""
        return list(self._hello["tasks"])

    def ask(self, task: str) -> Answer:
        """Let it do one task."""
        assert task in self.tasks
        with suppress(BrokenPipeError):
            self._input().write(f"{task}\n")
            self._input().flush()
        return Answer(**self._line())

    def _line(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise NotAvailableError(f"it stopped; to see why, run {shlex.join(self._process.args)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _input(self) -> Any:
        return self._process.stdin


@contextmanager
def answering(peer: Peer, table: str, cache: Path, *, server: int | None = None) -> Iterator[Answers]:
    """Start a peer over a table; what it spends in the process of a `server` is counted too.

    Raises
    ------
    NotAvailableError
        If it cannot be installed or does not answer.
    """
    command = [str(_python(peer, cache)), str(SCRIPTS / peer.script), table, *peer.arguments]
    environment = {**os.environ} | ({} if server is None else {"BENCHMARK_SERVER": str(server)})
    if not peer.requirement:
        environment["PYTHONPATH"] = str(SCRIPTS.parents[1])
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        yield Answers(process)
    finally:
        process.communicate()  # the end of its input ends it, and with it a Java machine


def _python(peer: Peer, cache: Path) -> Path:
    """Return the interpreter of the peer's environment, which is made when it is not there."""
    if not peer.requirement:
        return Path(sys.executable)
    room = cache / re.sub(r"\W+", "_", peer.requirement).strip("_")
    python, ready = room / "bin" / "python", room / "ready"
    if not ready.exists():
        print(f"  installing {peer.requirement} …", file=sys.stderr, flush=True)
        try:
            venv.create(room, with_pip=True, clear=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *peer.requirement.split()]
            subprocess.run(install, check=True, capture_output=True, timeout=900)
        except (subprocess.SubprocessError, OSError) as error:
            raise NotAvailableError(f"pip could not install {peer.requirement} ({type(error).__name__})") from error
        ready.touch()
    return python
