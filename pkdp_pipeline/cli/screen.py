"""The output of commands: text on a terminal of any width and encoding, or with ``--json`` a document; and errors."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.models import OptionInfo

from pkdp_pipeline.cli.options import COMMAND
from pkdp_pipeline.errors import PkdpError, exit_code
from pkdp_pipeline.model.wording import with_arguments, worded_for
from pkdp_pipeline.schemas import VERSION

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.certificate import Certificate
    from pkdp_pipeline.jobs import Job, JobResult
    from pkdp_pipeline.jobs.dry_run import Plan
    from pkdp_pipeline.jobs.session import BackfillResult
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
        from pkdp_pipeline.ledger.history import budget_words, no_epsilon, spent_words

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


def print_document(document: dict[str, Any]) -> None:
    """Print a document, on one line."""
    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


_NONE: Mapping[str, str] = MappingProxyType({})
_RESULTS = ("epsilon", "delta", "column")
"""Options of these names say what is asked for, messages what is reached, or which of all columns is wrong."""


def option_names(command: Callable[..., None]) -> dict[str, str]:
    """Return how the arguments of a command are typed, by their names."""
    names = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        for option in (hint for hint in get_args(parameter.annotation) if isinstance(hint, OptionInfo)):
            typed = [text for text in (option.default, *(option.param_decls or ())) if isinstance(text, str)]
            names[name] = (*typed, f"--{name.replace('_', '-')}")[0]
    return names


def message_of(error: PkdpError, options: Mapping[str, str] = _NONE) -> str:
    """Return what an error says; an argument that it names is written as the option of a command."""
    options = {name: option for name, option in options.items() if name not in _RESULTS}
    return with_arguments(worded_for(error, COMMAND), options, _typed)


def _typed(option: str, value: str) -> str:
    """Return an option with its value, or once with each of several."""
    values = [value] if value[0] not in "{[\"'" else re.findall(r"""["']([^"']*)["']""", value)
    if value[0] == "{":
        values = [
            f"{key.strip()}={item}" for key, item in zip(re.findall(r"([^{},]+?) = ", value), values, strict=False)
        ]
    return " ".join(option + (" ','" if item == "," else f" {shlex.quote(item)}") for item in values)


def error_document(error: BaseException, options: Mapping[str, str] = _NONE) -> dict[str, Any]:
    """Return what is told of an error; one that is not ours keeps its words, which may quote data, to itself."""
    message = message_of(error, options) if isinstance(error, PkdpError) else None
    return {"error": {"kind": type(error).__name__, "message": message}, "exit_code": exit_code(error)}


def run_document(result: JobResult) -> dict[str, Any]:
    """Return the record of a run; `pkdp_pipeline/schemas/run.v1.json` describes it."""
    document: dict[str, Any] = json.loads(result.to_json())
    return document


def backfill_document(job: Job, days: Sequence[date], result: BackfillResult) -> dict[str, Any]:
    """Return what became of the periods of a backfill, by their first days, and what the ledger adds up to."""
    failed = {failure.day: error_document(failure.error) for failure in result.failed if failure.error is not None}
    done = len(result.published) + len(result.replayed) + len(failed)
    return {
        "dataset": job.dataset,
        "every": job.period.every,
        "from": days[0].isoformat(),
        "to": days[-1].isoformat(),
        "published": [day.isoformat() for day in result.published],
        "replayed": [day.isoformat() for day in result.replayed],
        "failed": [{"day": day.isoformat(), **error} for day, error in failed.items()],
        "not_reached": len(days) - done,
        "total": _total(result.total),
        "directory": job.output.directory,
        "report": None if result.report is None else str(result.report),
        "unreported": None if result.unreported is None else error_document(result.unreported),
    }


def plan_document(job: Job, days: Sequence[date], plan: Plan | None, error: PkdpError | None) -> dict[str, Any]:
    """Return what a job would do; `pkdp_pipeline/schemas/plan_job.v1.json` describes it.

    `plan`: None where the job's releases cannot stand together on any day. `error`: why it is refused.
    """
    from pkdp_pipeline.jobs.dry_run import DELTA

    day = None if plan is None or plan.refused is None else plan.refused.day.isoformat()
    return {
        "schema": "pkdp-plan-job/1",
        "library": {"name": "pkdp_pipeline", "version": VERSION},
        "job": Path(job.file).name,
        "from": days[0].isoformat(),
        "to": days[-1].isoformat(),
        "days": len(days),
        "delta": DELTA,
        "refused": error and {"day": day, "error": type(error).__name__, "message": str(error)},
        "short": False,
        "target": None,
        "releases": [
            {
                "day": planned.day.isoformat(),
                "name": release.name,
                "outcome": release.outcome,
                "epsilon": release.epsilon if release.epsilon < math.inf else None,
            }
            for planned in (() if plan is None else plan.days)
            if planned.refused is None
            for release in planned.releases
        ],
        "total": epsilon_of(plan),
        "tried_days": 0,
        "offers": [],
    }


def epsilon_of(plan: Plan | None) -> float | None:
    """Return the ε that what is planned about one period adds up to; None where there is none."""
    from pkdp_pipeline.jobs.dry_run import DELTA

    epsilon = math.inf if plan is None or plan.period is None else plan.period.epsilon(DELTA)
    return epsilon if epsilon < math.inf else None


def _total(total: Certificate | None) -> dict[str, Any] | None:
    from pkdp_pipeline.jobs.dry_run import DELTA

    if total is None:
        return None
    epsilon = total.epsilon(DELTA)
    return {
        "delta": DELTA,
        "epsilon": epsilon if epsilon < math.inf else None,
        "certificate": json.loads(total.to_json()),
    }
