"""Python processes that have imported the package already: a fresh one takes a second of a processor for that.

All are forked from one process, which has imported it and done nothing else, started when the first is asked for. What
they run ends as the program of any interpreter does. ``make slow`` starts a fresh interpreter each time instead.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

__all__ = ["Popen", "run"]

FRESH = "PKDP_HYPOTHESIS" in os.environ
_HIGH = 500
"""File descriptors from here on are out of the way of those that a process is given by number."""
_MESSAGE = 2**17
_IMPORTED = "import duckdb, pyarrow.pandas_compat, pkdp_pipeline.extras.gate.gate, pkdp_pipeline.extras.gate.worker"
_lock = threading.Lock()


class Popen:
    """A process like one of `subprocess.Popen`: of `[sys.executable, option…, '-c' code or script, argument…]`."""

    def __new__(cls, command: Sequence[str], **further: Any) -> Any:
        return subprocess.Popen(command, **further) if FRESH else super().__new__(cls)

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        pass_fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        text: bool = False,
        start_new_session: bool = False,
    ) -> None:
        self.returncode: int | None = None
        self._reading = threading.Lock()
        self._status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as ending:
            ours, given = zip(
                *(_end(end, at, text, ending) for at, end in enumerate((stdin, stdout, stderr))), strict=True
            )
            self.stdin, self.stdout, self.stderr = ours
            asked = (
                _program(command),
                list(pass_fds),
                dict(env or os.environ),
                str(cwd or Path.cwd()),
                start_new_session,
            )
            with _lock:
                socket.send_fds(_origin(), [pickle.dumps(asked)], [theirs.fileno(), *given, *pass_fds])
        self.pid = int(self._status.recv(_MESSAGE))

    def poll(self) -> int | None:
        """Return how the process ended, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends."""
        with self._reading:
            if self.returncode is None:
                self._status.settimeout(max(timeout, 1e-6) if timeout is not None else None)
                try:
                    self.returncode = int(self._status.recv(_MESSAGE))
                except TimeoutError:
                    raise subprocess.TimeoutExpired("a process", timeout or 0.0) from None
                self._status.close()
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    kill = functools.partialmethod(send_signal, signal.SIGKILL)
    terminate = functools.partialmethod(send_signal, signal.SIGTERM)

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for end in (self.stdin, self.stdout, self.stderr):
            if end is not None:
                end.close()
        self.wait()


def run(command: Sequence[str], *, check: bool = False, **further: Any) -> Any:
    """Run a program as `subprocess.run` does, and return it with what it printed."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        with Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, **further) as process:
            process.wait()
        printed = []
        for file in (stdout, stderr):
            file.seek(0)
            printed.append(file.read())
    done = subprocess.CompletedProcess(command, process.returncode, *printed)
    if check and done.returncode:
        raise AssertionError(f"ended with {done.returncode}: {done.stderr}")
    return done


def _end(end: Any, number: int, text: bool, ending: ExitStack) -> tuple[IO[Any] | None, int]:
    """Return this side's end of a standard stream, None without a pipe, and the other's descriptor."""
    if end is None:
        return None, number
    if end == subprocess.DEVNULL:
        return None, ending.enter_context(open(os.devnull, "r+b", buffering=0)).fileno()
    if end != subprocess.PIPE:
        return None, end if isinstance(end, int) else end.fileno()
    read, write = os.pipe()
    ours, theirs = (write, read) if number == 0 else (read, write)
    ending.callback(os.close, theirs)
    return open(ours, ("w" if number == 0 else "r") + ("" if text else "b")), theirs


def _program(command: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return the kind of a program, its text or path, and its arguments."""
    options, begin = iter(command[1:]), ""
    for option in options:
        if option == "-c":
            return "code", begin + next(options), ["-c", *options]
        if option == "-W":
            begin += f"import warnings; warnings._setoption({next(options)!r})\n"
        elif option == "-X":
            next(options)  # how an interpreter checks itself can be said at its beginning alone
        elif option != "-P":
            assert not option.startswith("-"), f"a process that has begun cannot be given {option}"
            assert not begin, "a script is given no filter of warnings"
            return "script", option, [option, *options]
    raise AssertionError("without a program")


@functools.cache
def _origin() -> socket.socket:
    """Start the process from which the others are forked, and return the socket at which it is asked for them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        code = f"{_IMPORTED}; import sys, warm; exec(warm._forked({theirs.fileno()}))"
        paths = os.pathsep.join([str(Path(__file__).parent), *(path or str(Path.cwd()) for path in sys.path)])
        origin = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )

    def end() -> None:
        ours.close()
        origin.wait()

    atexit.register(end)
    return ours


def _forked(descriptor: int) -> str:
    """Fork a process for each that is asked for, and return in each of them what it runs."""
    control = socket.socket(fileno=descriptor)
    gc.freeze()  # the collector looks at nothing of what all have in common, and so copies none of it
    events = selectors.DefaultSelector()
    events.register(control, selectors.EVENT_READ)
    while True:
        for event, _ in events.select():
            if event.fileobj is control:
                asked, descriptors, *_ = socket.recv_fds(control, _MESSAGE, 50)
                if not asked:
                    os._exit(0)
                if (process := os.fork()) == 0:
                    control.close()
                    events.close()
                    return _begun(*pickle.loads(asked), descriptors)
                status, *others = descriptors
                for other in others:
                    os.close(other)
                os.write(status, b"%d" % process)
                events.register(os.pidfd_open(process), selectors.EVENT_READ, (process, status))
            else:
                process, status = event.data
                code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                with suppress(OSError):  # nobody waits for it any more
                    os.write(status, b"%d" % code)
                events.unregister(event.fileobj)
                os.close(event.fd)
                os.close(status)


def _begun(
    program: tuple[str, str, list[str]],
    numbers: list[int],
    env: dict[str, str],
    folder: str,
    session: bool,
    descriptors: list[int],
) -> str:
    """Give a forked process what it was asked for with, and return the code that it runs."""
    import fcntl

    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH) for descriptor in descriptors[1:]]
    os.closerange(3, _HIGH)
    for descriptor, number in zip(moved, [0, 1, 2, *numbers], strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if session:
        os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    atexit.register(gc.unfreeze)
    kind, text, sys.argv = program
    return text if kind == "code" else f"import runpy; runpy.run_path({text!r}, run_name='__main__')"
