"""Screen: text on a terminal of any width and any encoding."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pkdp_pipeline.ledger.history import Spent

_PLAIN = str.maketrans(
    {"ε": "epsilon", "δ": "delta", "…": "...", "·": "-", "×": "x", "≥": ">=", "′": "'", "–": "-", "↑": "^"}
)

# Where a line may not end: within "ε = 0.5", "50 %", "no. 3", "rule 7". Rich breaks lines at a no-break space too, so
# another character stands for it until they are broken.
_KEPT = re.compile(r"(?<=\w) (?==+ \S)|(?<= =) (?=\S)|(?<=\d) (?=%)|(?<=\bno\.) (?=\d)|(?<=\b[Rr]ule) (?=\d)")
_BOUND = "\ue000"


class Screen:
    """Prints paragraphs, tables and bars; the words are data, so no markup is read in them."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(markup=False, highlight=False, emoji=False)

    @property
    def width(self) -> int:
        """How many characters fit on a line."""
        return self._console.width

    @property
    def plain(self) -> bool:
        """Whether only ASCII can be shown."""
        return self._console.options.ascii_only

    def title(self, text: str) -> None:
        """Print the line at the top."""
        self._console.print(self._text(text, "bold"))

    def head(self, text: str) -> None:
        """Print a heading, after an empty line."""
        self._console.print()
        self._console.print(self._text(text, "bold"))

    def say(self, text: str, *, indent: int = 2) -> None:
        """Print a paragraph, wrapped and indented."""
        self._wrapped(text, " " * indent, " " * indent)

    def item(self, text: str, *, indent: int = 2) -> None:
        """Print a paragraph with a dash before it."""
        self._wrapped(text, " " * indent + "- ", " " * (indent + 2))

    def page(self, text: str) -> None:
        """Print a paragraph a line: ``#`` heads, ``-`` and ``--`` list, ``>`` indents, ``$`` is to be pasted."""
        marks = {"#": self.head, "-": self.item, "$": self.command}
        marks |= {"--": partial(self.item, indent=4), ">": partial(self.say, indent=4)}
        for line in filter(None, text.split("\n")):
            mark, _, rest = line.partition(" ")
            if mark in marks:
                marks[mark](rest)
            else:
                self.say(line)

    def hanging(self, text: str, *, margin: int) -> None:
        """Print a paragraph whose lines after the first one are indented by `margin`."""
        self._wrapped(text, "  ", " " * margin)

    def bar(self, share: float, length: int = 20) -> str:
        """Return a bar that is filled to a share; never empty where there is something."""
        filled = max(int(share > 0.0), int(share * length))
        return ("#" if self.plain else "█") * filled + ("." if self.plain else "░") * (length - filled)

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines as they are; what does not fit is cut off."""
        for text in texts:
            self._console.print(Text("  ") + self._text(text), no_wrap=True, overflow="crop")

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and what they are, side by side."""
        listed = list(rows)
        margin = max((len(name) for name, _ in listed), default=0) + 4
        for name, what in listed:
            self._wrapped(what, f"  {name}".ljust(margin), " " * margin)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
        """Print a table; the columns named in `right` are numbers."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
        for name in header:
            table.add_column(
                self._text(name, "underline"), justify="right" if name in right else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*map(self._text, row))
        self._console.print(Padding(table, (0, 0, 0, 2), expand=False))

    def records(
        self, header: Sequence[str], rows: Iterable[Sequence[str]], *, wide: int, right: Sequence[str] = ()
    ) -> None:
        """Print a table; where less than `wide` characters fit, each row as a paragraph of all that it has."""
        if self.width >= wide:
            self.table(header, rows, right=right)
            return
        for row in rows:
            named = zip(header, row, strict=True)
            self.item(f"{'; '.join(f'{name}: {what}' for name, what in named if what not in ('', 'none'))}.")

    def budgets(self, uses: Iterable[Spent]) -> None:
        """Print what every budget of a ledger allows, what is spent of it and what is left."""
        from pkdp_pipeline.ledger.words import budget_words, no_epsilon, spent_words

        alike: dict[object, list[Spent]] = {}  # what is true of several totals is said once
        for use in uses:
            alike.setdefault((use.budget, use.epsilon, use.start, use.complete), []).append(use)
        for use, *others in alike.values():
            self.item(budget_words(use.budget, [use.measure, *(other.measure for other in others)]))
            allowed = use.budget.epsilon
            if use.epsilon == math.inf:
                words = "OVER BUDGET" if use.at_one is not None else "OVER BUDGET: the releases do not add up"
            else:
                # Windows that were not looked at may hold more.
                words = spent_words(allowed, use.epsilon, complete=use.complete)
            share = min(1.0, use.epsilon / allowed) if allowed > 0.0 else 1.0
            self.lines([f"  {self.bar(share)} {words}"])
            if use.epsilon == math.inf and use.at_one is not None:
                self.say(f"{no_epsilon(use.budget.delta, use.at_one)}.", indent=4)
            if use.start is not None and use.epsilon > 0.0:
                days = f"{use.budget.window_days} days from {date.fromordinal(max(1, use.start)).isoformat()}"
                self.say(f"in the fullest window{'' if use.complete else ' looked at'}, the {days}", indent=4)

    def command(self, text: str) -> None:
        """Print a command to be pasted: on several lines, where it does not fit, and broken at options only."""
        first, *options = text.split(" --")
        rows = ["    " + first]
        for number, option in enumerate(options, start=1):
            room = self.width - (2 if number < len(options) else 0)  # what follows is " \\"
            if len(f"{rows[-1]} --{option}") <= room:
                rows[-1] += f" --{option}"
            else:
                rows.append(f"      --{option}")
        rows[:-1] = [f"{row} \\" for row in rows[:-1]]
        for row in rows:
            self._console.print(self._text(row), soft_wrap=True)

    def pasted(self, text: str) -> None:
        """Print lines to be pasted into a file, none of them broken or changed."""
        for line in text.splitlines():
            self._console.print(Text(f"    {line}".rstrip()), soft_wrap=True)

    def _wrapped(self, text: str, before: str, after: str) -> None:
        """Print a paragraph whose first line follows `before`, and every other one `after`."""
        room = max(8, self.width - len(after))
        for line in self._text(_KEPT.sub(_BOUND, text)).wrap(self._console, room):
            line.rstrip()
            line.plain = line.plain.replace(_BOUND, " ")
            self._console.print(self._text(before) + line, no_wrap=True, overflow="ignore", crop=False)
            before = after

    def _text(self, text: str, style: str = "") -> Text:
        return Text(text.translate(_PLAIN) if self.plain else text, style=style)
