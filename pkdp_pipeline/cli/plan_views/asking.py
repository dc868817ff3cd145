"""Asker: questions on a terminal, asked again until the answer keeps to the rule that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pkdp_pipeline.display.terminal.screen import Screen
from pkdp_pipeline.errors import ArgumentError, ConfigError

__all__ = ["Ask", "Asker", "above_zero", "at_least_zero", "real_number", "share", "whole", "yes"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One question.

    Parameters
    ----------
    question, help : str
        The help is printed when the answer is ``?``.
    check : callable
        Makes the answer's value; raises `ArgumentError` or `ConfigError`, whose message names the rule.
    default : str, optional
        Taken when nothing is answered; None where there must be an answer.
    options : mapping of str to str
        Instead of a check: the keys that may be answered, by their numbers too, and what they mean. The first is the
        default.
    note : str
        Printed below the question.
    """

    question: str
    help: str
    check: Callable[[str], Any] = str
    default: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


class Asker:
    """Asks one question after another, each again until the answer keeps to the rule that is named.

    Parameters
    ----------
    screen : Screen
    read : callable
        Prompt → the line that was typed; raises `EOFError` at the end of the input.
    """

    def __init__(self, screen: Screen, read: Callable[[str], str] = input) -> None:
        self._screen = screen
        self._read = read

    def __call__(self, asked: Ask) -> Any:
        """Return what the question's check makes of the answer."""
        self._screen.head(asked.question)
        if asked.note:
            self._screen.say(asked.note)
        for place, words in enumerate(asked.options.values(), start=1):
            self._screen.hanging(f"{place}  {words}", margin=5)
        default = "1" if asked.options else asked.default
        check = partial(_key, list(asked.options)) if asked.options else asked.check
        prompt = "  > " if default is None else f"  [{default or 'cannot say'}] > "
        while True:
            answer = self._read(prompt).strip()
            if answer == "?":
                self._screen.say(asked.help, indent=4)
                continue
            if not answer and default is None:
                self._screen.say("There is no default: this has to be answered; ? explains.", indent=4)
                continue
            try:
                return check(answer or default or "")
            except (ArgumentError, ConfigError) as error:
                self._screen.say(str(error), indent=4)


def _key(keys: list[str], answer: str) -> str:
    if answer.isdecimal() and 1 <= int(answer) <= len(keys):
        return keys[int(answer) - 1]
    if answer.lower() in keys:
        return answer.lower()
    raise ArgumentError(f"Answer with a number from 1 to {len(keys)}; ? explains.")


def yes(answer: str) -> bool:
    """Return whether the answer is yes."""
    if answer.lower() in ("y", "yes", "n", "no"):
        return answer.lower() in ("y", "yes")
    raise ArgumentError("Answer yes or no; ? explains.")


def share(answer: str) -> float:
    """Return a probability, written as 0.1 or as 10 %."""
    text = answer.replace(" ", "")
    value = real_number(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
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


def at_least_zero(answer: str) -> float:
    """Return a number of at least 0."""
    value = real_number(answer)
    if value < 0.0:
        raise ArgumentError("It must be at least 0.")
    return value


def above_zero(answer: str) -> float:
    """Return a probability that is not 0."""
    value = share(answer)
    if value == 0.0:
        raise ArgumentError("δ must be above 0: a threshold always leaves some probability; 1e-9 is small.")
    return value
