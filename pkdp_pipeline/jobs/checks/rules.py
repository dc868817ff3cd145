"""Rules about numbers: each bounds one number of a day's profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Rule", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A number that must be at least `least` and at most `most`.

    Parameters
    ----------
    text : str
        What is told where it is broken: columns and what must hold, never the number.
    number : int
    least, most : int, optional
    """

    text: str
    number: int
    least: int | None = None
    most: int | None = None

    @property
    def kept(self) -> bool:
        """Whether the number is what it may be."""
        return (self.least is None or self.number >= self.least) and (self.most is None or self.number <= self.most)


def broken(rules: Sequence[Rule]) -> list[str]:
    """Return the texts of the rules that are broken, in their order."""
    return [rule.text for rule in rules if not rule.kept]
