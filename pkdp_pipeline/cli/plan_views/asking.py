"""Asker: questions on a terminal, asked again until the answer keeps to the rule that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import ArgumentError, ConfigError

__all__ = ["Asker", "Option", "real_number", "share", "whole"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Option:
    """One of several answers: its name in the result, and in words."""

    key: str
    words: str


class Asker:
    """Asks one question after another.

    Parameters
    ----------
    screen : Screen
    read : callable
        Prompt → the line that was typed; raises `EOFError` at the end of the input.
    """

    def __init__(self, screen: Screen, read: Callable[[str], str] = input) -> None:
        self._screen = screen
        self._read = read

    def ask(
        self,
        question: str,
        check: Callable[[str], Answer],
        *,
        help: str,
        default: str | None,
        means: str = "",
        note: str = "",
        options: Sequence[Option] = (),
    ) -> Answer:
        """Return what `check` makes of the answer; what it refuses is asked again.

        Parameters
        ----------
        question : str
        check : callable
            Raises `ArgumentError` or `ConfigError`, whose message names the rule.
        help : str
            Printed when the answer is ``?``.
        default : str or None
            Taken when nothing is answered; None where there must be an answer.
        means : str
            What the default is called where it is empty.
        note : str
            Printed below the question.
        options : sequence of Option
            Printed below the question, with numbers.
        """
        self._screen.head(question)
        if note:
            self._screen.say(note)
        for place, option in enumerate(options, start=1):
            self._screen.hanging(f"{place}  {option.words}", margin=5)
        shown = default or means
        while True:
            answer = self._read(f"  [{shown}] > " if shown else "  > ").strip()
            if answer == "?":
                self._screen.say(help, indent=4)
                continue
            if not answer and default is None:
                self._screen.say("There is no default: this has to be answered; ? explains.", indent=4)
                continue
            try:
                return check(answer or default or "")
            except (ArgumentError, ConfigError) as error:
                self._screen.say(str(error), indent=4)

    def choose(self, question: str, options: Sequence[Option], *, help: str) -> str:
        """Return the key of the option that is chosen, by its number or its key; the first one is the default."""

        def check(answer: str) -> str:
            if answer.isdecimal() and 1 <= int(answer) <= len(options):
                return options[int(answer) - 1].key
            for option in options:
                if answer.lower() == option.key:
                    return option.key
            raise ArgumentError(f"Answer with a number from 1 to {len(options)}; ? explains.")

        return self.ask(question, check, help=help, default="1", options=options)

    def agree(self, question: str, *, help: str, default: bool) -> bool:
        """Return whether the answer is yes."""

        def check(answer: str) -> bool:
            if answer.lower() in ("y", "yes"):
                return True
            if answer.lower() in ("n", "no"):
                return False
            raise ArgumentError("Answer yes or no; ? explains.")

        return self.ask(question, check, help=help, default="yes" if default else "no")


def share(answer: str) -> float:
    """Return a probability, written as 0.1 or as 10 %."""
    text = answer.replace(" ", "")
    value = real_number(text.removesuffix("%"))
    value = value / 100.0 if text.endswith("%") else value
    if not 0.0 <= value <= 1.0:
        raise ArgumentError("It must be a probability between 0 and 1: write 0.1 or 10 %.")
    return value


def real_number(answer: str) -> float:
    """Return a finite number."""
    try:
        value = float(answer)
    except ValueError:
        raise ArgumentError("It must be a number, such as 0.1 or 1e-6.") from None
    if not -1e300 < value < 1e300:
        raise ArgumentError("It must be a finite number.")
    return value


def whole(least: int) -> Callable[[str], int]:
    """Return the check for whole numbers of at least `least`."""

    def check(answer: str) -> int:
        text = answer.replace(",", "").replace("_", "")
        if not text.isdecimal() or len(text) > 15 or int(text) < least:
            raise ArgumentError(f"It must be a whole number of at least {least}.")
        return int(text)

    return check
