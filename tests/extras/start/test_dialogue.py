"""The dialogue of ``pkdp init``: defaults, help, rules that are named, and the way back."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from rich.console import Console

import pkdp_pipeline as pkdp
from pkdp_pipeline.cli.options import share
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.extras.start.init_answers import Asker, _real_number, _whole, ask_attacker, ask_evidence
from pkdp_pipeline.model.evidence import Evidence

HABITS = pkdp.IndependentGivenHabits()


class Typed:
    """What somebody types, line by line; every prompt is kept."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        return self.lines.pop(0)


def words(text: str) -> str:
    return " ".join(text.split())


def adds_up(evidence: tuple[Evidence, ...]) -> None:
    """Refuse what says too little of exact counts."""
    if evidence in ((), (pkdp.BoundedParticipation(3),)):
        raise ArgumentError("Then they promise nothing together.")


def answered(*lines: str, width: int = 0, check=lambda _: None):
    """Return the attacker and the evidence that are answered, what is printed, and the prompts."""
    typed, text = Typed(*lines), io.StringIO()
    asker = Asker(Screen(Console(file=text, width=width or 80, markup=False, highlight=False)), typed)

    def dialogue():
        asker.begin("Questions")
        return ask_attacker(asker), ask_evidence(asker, check, "week")

    result = asker.replayed(dialogue)
    assert typed.lines == [], "not everything was asked for"
    return result, text.getvalue() if width else words(text.getvalue()), typed.prompts


def test_what_can_be_argued_is_asked_for():
    result, text, prompts = answered("10 %", "20,000", "passive", "2")
    assert result == (pkdp.AttackerModel(p_max=0.1, known=20_000), (HABITS,))
    assert prompts == ["  > ", "  [1] > ", "  [1] > ", "  [1] > "]  # how sure an attacker can be has no default
    assert "given what is fixed about each person (habits, which may be known), the weeks are independent" in text
    assert answered("0.2", "0", "")[0] == (pkdp.AttackerModel(p_max=0.2), ())
    assert answered("0.2", "", "", "")[0][0] == pkdp.AttackerModel(p_max=0.2, known=1, influence="active")


@pytest.mark.parametrize(
    ("answers", "evidence"),
    [
        (["1"], ()),
        (["once_per_unit"], (pkdp.OncePerUnit(),)),
        (["4"], (pkdp.DisjointUnits(),)),
        (["5"], (pkdp.OneDayProtected(),)),
        (["6", "0", "3", ""], (pkdp.BoundedParticipation(3),)),
        (["6", "3", "y"], (HABITS, pkdp.BoundedParticipation(3))),
        (["7", "-1", "0.5", ""], (pkdp.BoundedDependence(0.5, 0.0),)),
        (["7", "0.5", "1e-9"], (pkdp.BoundedDependence(0.5, 1e-9),)),
    ],
)
def test_every_kind_of_evidence_can_be_answered(answers, evidence):
    assert answered("0.1", "0", *answers)[0][1] == evidence


def test_what_is_malformed_is_asked_again_and_the_rule_is_named():
    result, text, _ = answered(
        *("", "120 %", "much", "?", "5 %", "-1", "1.5", "?", "0"),
        *("9", "?", "6", "0", "3", "perhaps", "?", "yes"),
    )
    assert result == (pkdp.AttackerModel(p_max=0.05), (HABITS, pkdp.BoundedParticipation(3)))
    for rule in (
        "There is no default: this has to be answered; ? explains.",
        "It must be a probability: a number from 0 to 1, or one from 0 to 100 followed by %.",
        "It must be a whole number of at least 0.",
        "It must be a whole number of at least 1.",
        "Answer with a number from 1 to 7; ? explains.",
        "Answer yes or no; ? explains.",
        "never estimated from the data to be protected",
        "false evidence voids the promise",
    ):
        assert rule in text, rule


def test_back_asks_the_question_before_once_more():
    straight, _, _ = answered("0.2", "2", "", "6", "3", "y")
    result, text, _ = answered(
        "back", "0.3", "BACK", "0.2", "9", "back", "2", "", "6", "4", "back", "back", "6", "3", "y"
    )
    assert result == straight
    assert "This is the first question." in text
    assert text.count("Questions") == 1


@pytest.mark.parametrize(
    ("answers", "instead", "words"),
    [
        (["100 %"], ["0.2", "0", "2"], "nobody is ever absent"),
        (["0.2", "0", "none"], ["2"], "promise nothing together"),
        (["0.2", "0", "6", "3", "no"], ["yes"], "promise nothing together"),
    ],
)
def test_a_dead_end_is_told_at_once(answers, instead, words):
    (attacker, evidence), text, prompts = answered(*answers, *instead, check=adds_up)
    assert words in text
    assert prompts[len(answers)] == prompts[len(answers) - 1]  # it is asked again
    assert (attacker.p_max, HABITS in evidence) == (0.2, True)


def test_the_end_of_the_input_ends_the_dialogue():
    with pytest.raises(EOFError):
        answered("0.1")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_questions_fit_the_terminal(width):
    _, text, _ = answered("?", "0.1", "?", "1", "?", "", "?", "6", "?", "3", "?", "", width=width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_numbers_as_people_write_them():
    assert [share(text) for text in ("0.1", "10 %", "10%", "1e-3", "0", "100 %")] == [0.1, 0.1, 0.1, 0.001, 0.0, 1.0]
    assert _whole(0)("20,000") == _whole(0)("20_000") == 20000
    assert _real_number("-2.5") == -2.5
    for check, text in (
        (share, "-1 %"),
        (share, "2"),
        (share, "%"),
        (_real_number, "nan"),
        (_real_number, "inf"),
        (_whole(1), "0"),
        (_whole(0), "2.0"),
        (_whole(0), ""),
    ):
        with pytest.raises(ArgumentError):
            check(text)


def in_the_foreground():
    # Of a test run in the background, Ctrl-C is ignored, and so it would be here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def talk(arguments: list[str], answers: list[str | int], *, seconds: float = 300.0) -> tuple[str, int]:
    """Run `pkdp init` in a pseudo terminal; an answer is a line, or the number of a control character."""
    lead, follow = pty.openpty()
    fcntl.ioctl(follow, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    program = subprocess.Popen(
        [sys.executable, "-m", "pkdp_pipeline.cli.main", "init", *arguments],
        stdin=follow,
        stdout=follow,
        stderr=follow,
        env={**environment, "TERM": "dumb", "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
        preexec_fn=in_the_foreground,
    )
    os.close(follow)
    shown, answered_up_to, waiting, end = b"", 0, list(answers), time.monotonic() + seconds
    answer, pressed, again = "", b"", 0.0
    try:
        while time.monotonic() < end:
            if select.select([lead], [], [], 0.1)[0]:
                try:
                    piece = os.read(lead, 65536)
                except OSError:
                    break  # the other end is closed
                if not piece:
                    break
                shown += piece
            elif waiting and shown[answered_up_to:].endswith(b"> "):
                answered_up_to, answer = len(shown), waiting.pop(0)
                pressed = bytes([answer]) if isinstance(answer, int) else f"{answer}\n".encode()
                again = time.monotonic() + 15
                os.write(lead, pressed)
            elif isinstance(answer, int) and time.monotonic() > again and program.poll() is None:
                # A signal that comes while a module is imported can get lost: people press the keys again.
                again = time.monotonic() + 15
                os.write(lead, pressed)
            elif program.poll() is not None:
                break
        code = program.wait(60)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it goes on; it has shown {shown.decode(errors='replace')!r}") from None
    finally:
        if program.poll() is None:
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
        os.close(lead)
    return shown.decode().replace("\r\n", "\n"), code


def test_the_dialogue_can_be_left(tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("person,day\na,2026-01-01\n", encoding="utf-8")
    shown, code = talk([str(file), "--job", str(tmp_path / "visits.toml")], ["?", 3])
    assert code == 130
    assert shown.rstrip().endswith("Left. Nothing was written.")
    assert "Traceback" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]
