"""Rules about numbers: each bounds one number of a day's profile, and the judge says which are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkdp_pipeline.jobs.checks.great_expectations import judge

if TYPE_CHECKING:
    import pandas as pd

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
    def outside(self) -> int:
        """How far the number is from what it may be; 0 where the rule holds."""
        below = 0 if self.least is None else self.least - self.number
        above = 0 if self.most is None else self.number - self.most
        return max(below, above, 0)


def broken(rules: Sequence[Rule]) -> list[str]:
    """Return the texts of the rules that are broken, in their order."""
    import pandas as pd

    # One expectation about all rules takes an eighth of the time of eight; which one is broken matters rarely.
    frame = pd.DataFrame({"outside": [rule.outside for rule in rules]}, dtype="int64")
    if not rules or _all_met(frame, ["outside"])[0]:
        return []
    each = pd.DataFrame({str(place): [rule.outside] for place, rule in enumerate(rules)}, dtype="int64")
    return [rule.text for rule, met in zip(rules, _all_met(each, list(each.columns)), strict=True) if not met]


def _all_met(frame: pd.DataFrame, columns: Sequence[str]) -> list[bool]:
    asked = [
        ("expect_column_values_to_be_between", {"column": column, "min_value": 0, "max_value": 0}) for column in columns
    ]
    # The frame holds no rows of the input, and is not worth the time it takes to forget.
    verdicts = judge(frame, asked, forget=False)
    if "not answered" in verdicts:
        raise RuntimeError("an input check could not be evaluated.")
    return [verdict == "met" for verdict in verdicts]
