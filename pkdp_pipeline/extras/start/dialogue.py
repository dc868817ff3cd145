"""Dialogue: what ``pkdp init`` asks in plain words where nothing is given; questions.toml has the questions."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import typer

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.cli.options import EVIDENCE, INTERRUPTED, share
from pkdp_pipeline.cli.screen import Screen
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.wording import obstacles_of, reason_of

Answered = TypeVar("Answered")

_LARGE_K = 1_000_000


@cache
def _questions() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


def at_a_terminal() -> bool:
    """Return whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def leaving() -> Iterator[None]:
    """Let those who are asked leave, before anything is written."""
    try:
        yield
    except (EOFError, KeyboardInterrupt):
        typer.echo("\nLeft. Nothing was written.")
        raise typer.Exit(INTERRUPTED) from None


class _BackError(Exception):
    """Somebody wants to answer the question before once more."""


class Asker:
    """Asks one question after another, each again until the answer keeps to the rule that is named.

    Answers are kept as they were typed: a dialogue that is begun again gets those before, without a word. `read`:
    prompt → the line that was typed; raises `EOFError` at the end of the input.
    """

    def __init__(self, screen: Screen, read: Callable[[str], str] | None = None) -> None:
        self._screen = screen
        self._read = read or input
        self._answers: list[str] = []
        self._place = 0
        self._begun = False

    def begin(self, title: str, *lines: str) -> None:
        """Print what stands above the questions, once."""
        if not self._begun:
            self._screen.title(title)
            for line in (
                *lines,
                "Enter takes what stands in brackets, ? explains, back asks the question before again, Ctrl-C leaves.",
            ):
                self._screen.say(line, indent=0)
        self._begun = True

    def replayed(self, dialogue: Callable[[], Answered]) -> Answered:
        """Return what a dialogue returns; whenever somebody goes back, it is begun again without the last answer."""
        while True:
            self._place = 0
            try:
                return dialogue()
            except _BackError:
                self._answers.pop()

    def __call__(
        self,
        name: str,
        read: Callable[[str], Any] | None = None,
        check: Callable[[Any], object] | None = None,
        **words: Any,
    ) -> Any:
        """Return what a question's reader, or `read`, makes of the answer; `words` take the place of the file's.

        A question is asked again where `check` raises an `ArgumentError`, or the reader refuses the answer.
        """
        usual: dict[str, Any] = {
            "note": "",
            "options": {},
            "explained": {},
            "default": None,
            "empty": "cannot say",
            "reads": "text",
        }
        entry = {**usual, **_questions()[name], **words}
        options: dict[str, str] = entry["options"]
        reader = read or ((lambda answer: _key(list(options), answer)) if options else _READERS[entry["reads"]])
        self._place += 1
        if self._place <= len(self._answers):
            return reader(self._answers[self._place - 1])
        self._screen.head(entry["question"].strip())
        if entry["note"]:
            self._screen.say(entry["note"])
        self._list(options)
        default = "1" if options else entry["default"]
        prompt = "  > " if default is None else f"  [{default or entry['empty']}] > "
        while True:
            answer = self._read(prompt).strip()
            if answer == "?":
                self._screen.say(entry["help"], indent=4)
                self._list({**options, **entry["explained"]})
            elif answer.lower() == "back" and self._answers:
                raise _BackError
            elif answer.lower() == "back":
                self._screen.say("This is the first question.", indent=4)
            elif not answer and default is None:
                self._screen.say("There is no default: this has to be answered; ? explains.", indent=4)
            else:
                try:
                    value = reader(answer or default or "")
                    if check is not None:
                        check(value)
                except (ArgumentError, ConfigError) as error:
                    self._screen.say(str(error), indent=4)
                else:
                    self._answers.append(answer or default or "")
                    return value

    def _list(self, options: dict[str, str]) -> None:
        for place, meaning in enumerate(options.values(), start=1):
            self._screen.hanging(f"{place}  {meaning.strip()}", margin=5)


def ask_attacker(asker: Asker) -> AttackerModel:
    """Ask what can be argued about whoever reads a table without noise."""

    def hides(attacker: AttackerModel) -> None:
        try:
            certify(Histogram(k=_LARGE_K), attacker)
        except NotCertifiableError as error:
            why = "; and ".join(map(reason_of, obstacles_of(error)))
            raise ArgumentError(
                f"Then no k hides anybody: {why}. Answer otherwise, or go back to allow noise."
            ) from None

    return ask_known(asker, asker("p_max", lambda answer: AttackerModel(p_max=share(answer)), hides))


def ask_known(asker: Asker, attacker: AttackerModel) -> AttackerModel:
    """Ask how many people the attacker knows, and why."""
    known = asker("known")
    return replace(attacker, known=known, influence=asker("influence")) if known else attacker


def ask_evidence(
    asker: Asker, adds_up: Callable[[tuple[Evidence, ...]], None], every: str = "day", note: str = ""
) -> tuple[Evidence, ...]:
    """Ask for what is declared; where nothing can add up by the answer, the question is put again before any other.

    `every`: the word for the period of a release. `note`: what stands above the question about habits.
    """

    def of_period(words: Any) -> Any:
        if isinstance(words, dict):
            return {key: of_period(text) for key, text in words.items()}
        return words.format(every=every)

    def ask(name: str, **more: Any) -> Any:
        return asker(name, **{key: of_period(words) for key, words in _questions()[name].items()}, **more)

    def check(kind: str) -> None:
        if kind == "none" or not EVIDENCE[kind]:
            adds_up(() if kind == "none" else evidence_from_dicts([{"kind": kind}]))

    kind = ask("evidence", check=check)
    if kind == "none":
        return ()
    capped = [{"kind": kind, **{name: ask(f"{kind}.{name}") for name in EVIDENCE[kind]}}]
    if kind != "bounded_participation":
        return evidence_from_dicts(capped)

    def declared(habits: bool) -> tuple[Evidence, ...]:
        return evidence_from_dicts([*capped, *([{"kind": "independent_given_habits"}] if habits else [])])

    return declared(ask("habits", note=note, check=lambda habits: adds_up(declared(habits))))


def _key(keys: list[str], answer: str) -> str:
    if answer.isdecimal() and 1 <= int(answer) <= len(keys):
        return keys[int(answer) - 1]
    if answer.lower() in keys:
        return answer.lower()
    raise ArgumentError(f"Answer with a number from 1 to {len(keys)}; ? explains.")


def _yes(answer: str) -> bool:
    """Return whether the answer is yes."""
    if answer.lower() in ("y", "yes", "n", "no"):
        return answer.lower() in ("y", "yes")
    raise ArgumentError("Answer yes or no; ? explains.")


def _real_number(answer: str) -> float:
    """Return a finite number."""
    try:
        value = float(answer)
    except ValueError:
        raise ArgumentError("It must be a number, with a point before decimals; 1e-6 is a millionth.") from None
    if not -1e300 < value < 1e300:
        raise ArgumentError("It must be a finite number.")
    return value


def _whole(least: int) -> Callable[[str], int]:
    """Return the check for whole numbers of at least `least`."""

    def check(answer: str) -> int:
        text = answer.replace(",", "").replace("_", "")
        if not text.isdecimal() or len(text) > 15 or int(text) < least:
            raise ArgumentError(f"It must be a whole number of at least {least}.")
        return int(text)

    return check


def _at_least_zero(answer: str) -> float:
    """Return a number of at least 0."""
    value = _real_number(answer)
    if value < 0.0:
        raise ArgumentError("It must be at least 0.")
    return value


def _limit(answer: str) -> float | None:
    """Return an ε that is not 0; None for no answer."""
    value = _at_least_zero(answer) if answer else None
    if value == 0.0:
        raise ArgumentError("ε must be above 0: with 0 nothing could be published.")
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "yes": _yes,
    "probability": share,
    "epsilon": _at_least_zero,
    "limit": _limit,
    "whole": _whole(0),
    "several": _whole(1),
}
