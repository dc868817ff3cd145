"""Init text: the draft of a first job file, from what ``pkdp init`` is told; every line of it runs as it is."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from pkdp_pipeline import clock, plugins
from pkdp_pipeline.cli.file_commands import edges_of, kind_of_groups, typed_cells
from pkdp_pipeline.cli.options import COMMAND
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError
from pkdp_pipeline.jobs.dry_run import plan_job
from pkdp_pipeline.jobs.job import Job, read_job
from pkdp_pipeline.jobs.sources.csv_files import WholeFile
from pkdp_pipeline.jobs.sources.files import likely_kind, other_order
from pkdp_pipeline.jobs.sources.source import Kind
from pkdp_pipeline.jobs.tables import toml_text
from pkdp_pipeline.ledger.history import number_of
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import Bins
from pkdp_pipeline.model.evidence import Evidence, evidence_to_dicts
from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
from pkdp_pipeline.model.period import Every, exactly
from pkdp_pipeline.model.wording import reason_of

DAYS = ("date", "timestamp", "instant")
EVERY = get_args(Every)
ONE_NUMBER = "One number without noise takes more than p_max, and pkdp plan count asks for it"
_DELTA = 1e-6
_LIKE_DAYS = re.compile(r"dat[eu]|day|tag|time|month|when", re.IGNORECASE)
_ONE_CELL = (
    'one_cell = "hash"                 # somebody in several cells counts in one, drawn by a hash: the others fall '
    'short by that; "error": stops the job'
)
_SEVERAL_CELLS = "somebody in more counts in {many} of hers, drawn by a hash: the others fall short by that"
_EDGES = "   # edges are public: round numbers to correct, never computed from these data"
_USUAL_EDGES = (
    (re.compile(r"age\b|alder|alter|edad", re.IGNORECASE), "0,18,40,65"),
    (re.compile(r"year|born|birth|jahr", re.IGNORECASE), "1940,1960,1980,2000"),
    (re.compile(""), "0,10,100,1000"),
)
_A_YEAR = {"day": 366, "week": 53, "month": 12, "quarter": 4, "year": 10}
_SHARE = Context(prec=4, rounding=ROUND_DOWN)


def shared_by(answers: Mapping[str, Any], spanned: int = 1) -> int:
    """Return how many periods share δ: of a year (ten years), or all of the file, as far as the budget's ε goes."""
    number = max(_A_YEAR[answers["every"]], spanned)
    if answers["budget"] is None:
        return number
    return max(1, min(number, int(Fraction(repr(answers["budget"])) / Fraction(repr(answers["noise"])))))


def stem_of(file: Path) -> str:
    """Return the name of a file without its endings."""
    return file.name.partition(".")[0] or "job"


def only_one(answers: Mapping[str, Any]) -> bool:
    """Return whether no second period can be published, since nothing says how exact ones depend on each other."""
    return answers.get("noise") is None and {declaration.key for declaration in answers["evidence"]} <= {
        "bounded_participation"
    }


@dataclass(kw_only=True)
class Draft:
    """The job file as far as it is answered; what is not answered yet stands there so that nothing of it is refused."""

    file: Path
    whole: WholeFile
    place: Path
    keys: Mapping[str, Any]
    domain: Sequence[str]
    time_zone: str | None
    dataset: str

    def __post_init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._dates: dict[tuple[str, str | None], tuple[date | None, date | None]] = {}
        self._kinds: dict[tuple[str, str | None], tuple[Kind, str | None]] = {}
        self._machine_zone = clock.machine_zone()

    def job(self, answers: Mapping[str, Any]) -> Job:
        """Return the job; raises a `PkdpError` for what it cannot say."""
        text = self.text(answers)
        try:
            if text not in self._jobs:
                self._jobs[text] = read_job(text, self.place)
            return self._jobs[text]
        except ConfigError as error:
            wrong = reason_of(error)  # there is no such file yet
        raise ConfigError(wrong)

    def dates(self, answers: Mapping[str, Any]) -> tuple[date | None, date | None]:
        """Return the oldest and the newest date in the file; a `PkdpError` where they cannot be read as dates."""
        column, form = answers["period"], answers["form"]
        if (column, form) in self._dates:
            return self._dates[column, form]
        job: Any = self.job(answers)
        with closing(job.source.open(job.needs())) as source:
            oldest, newest = source.outermost(job.period, column, "min"), source.newest(job.period, column)
        if newest is not None and newest > job.period.today() + timedelta(1):  # it is tomorrow elsewhere
            turned = other_order(getattr(job.source, "date_format", None))
            order = "" if turned is None else f", write {turned} where that is the order of day and month"
            raise ArgumentError(
                f"the newest date in column {column!r} lies in the future, so that no row says which periods "
                f"are complete: leave out rows of days to come{order}."
            )
        self._dates[column, form] = oldest, newest
        return oldest, newest

    def planned(self, answers: Mapping[str, Any]) -> tuple[date, date | None]:
        """Return the first day of the oldest period, and of the newest that rows of a later day show to be complete.

        That is None where no period is shown to be complete. Raises a `PkdpError` where the oldest would be refused.
        """
        job, (oldest, newest) = self.job(answers), self.dates(answers)
        period = job.period
        over = period.span(period.today())[0] - timedelta(1)
        first = period.span(oldest or over)[0]
        refused = plan_job(job, [first], ahead=True, speech=COMMAND).refused
        if refused is not None and refused.refused is not None:
            raise refused.refused
        if newest is None or first > over:
            return first, first if first > over else None
        last = period.span(min(period.span(newest)[0] - timedelta(1), over))[0]
        return first, last if first <= last else None

    def proposed(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns that names, types and first values speak for, where no answer names them.

        None stands for a column of days, and nothing for cells, where none does.
        """
        taken = {*(answers["unit"] or ()), answers["period"], *(answers["by"] or ())}
        left = {name: self._likely(name)[0] for name in self.whole.columns if name not in taken}
        days = [name for name, kind in left.items() if kind in DAYS]
        if not days and self.whole.table.format != "parquet":
            days = [name for name in left if _LIKE_DAYS.search(name)]
        period = answers["period"] or (days[0] if days else None)
        form = None if period is None else self._likely(period)[1]
        left.pop(period or "", None)
        unit = answers["unit"] or [next(iter(left), "COLUMN")]
        cells = [name for name, kind in left.items() if kind in ("text", "boolean") and name not in unit]
        by = answers["by"] or cells[:1]
        return {"unit": unit, "period": period, "form": form, "by": by}

    @cached_property
    def _first_texts(self) -> Mapping[str, list[str]]:
        return self.whole.first_texts()

    def _likely(self, column: str, form: str | None = None) -> tuple[Kind, str | None]:
        """Return what a column seems to hold, and the form of its dates, or None where they are as ISO 8601 has them.

        `form`: the only one that they can have.
        """
        if self.whole.table.format == "parquet" or column in self.keys.get("types", ()):
            return self.whole.columns[column], None
        key = column, form or self.keys.get("date_format")
        if key not in self._kinds:
            self._kinds[key] = likely_kind(self._first_texts[column], key[1])
        return self._kinds[key]

    def text(self, answers: Mapping[str, Any]) -> str:
        """Return the text of the job file.

        `answers`: ``later``, whether the file has rows after its first period, besides what is asked.
        """
        given = {name: value for name, value in answers.items() if value is not None}
        if "by" not in given or "attacker" not in given:
            given = {"noise": 1.0} | given
        period = given.get("period") or next(iter(self.whole.columns))
        usual = {"bins": {}, "unit": [period], "every": "year", "by": [], "evidence": (), "about": {}, "later": True}
        given = {"budget": None, "cells_per_unit": 1, **usual, **given, "period": period}
        given["domain"] = self._cells(given["by"], given["bins"]) if answers.get("by") is not None else None
        kind, _ = self._likely(period, given.get("form"))
        source = Path(os.path.relpath(self.file.resolve(), self.place.resolve().parent)).as_posix()
        zone = self.time_zone or (None if kind == "timestamp" else self._machine_zone)
        if zone is None and kind == "instant":
            zone = "UTC"
        table = {"files": source, **self.keys, **({"date_format": given["form"]} if given.get("form") else {})}
        if self.whole.table.format != "parquet" and period not in self.keys.get("types", ()):
            # Without a type a CSV column is read as dates, or with a time zone as instants.
            table["types"] = {**self.keys.get("types", {}), period: kind if kind in DAYS else "date"}
        cut = "" if zone is None else f", time_zone = {toml_text(zone)}"
        every = "" if given["every"] == "day" else f', every = "{given["every"]}"'
        name, by = stem_of(self.file), given["by"]
        groups = given["bins"]
        if self.whole.table.format != "parquet" and groups:
            kinds = {column: kind_of_groups(entry, self._likely(column)[0]) for column, entry in groups.items()}
            table["types"] = {**kinds, **table.get("types", {})}
        numbers = any(not isinstance(entry.edges, str) for entry in groups.values())
        entries = [{"column": name, "bins": groups[name].edges} if name in groups else name for name in by]
        release = re.sub(r"[^A-Za-z0-9_-]", "_", f"people_by_{'_'.join(by)}" if by else "people")[:100]
        once = by and given["cells_per_unit"] == 1
        lines = [
            f"# Releases about each {given['every']} of {self.file.name}.",
            "",
            f"dataset = {toml_text(self.dataset)}",
            f"source = {toml_text(source if len(table) == 1 else table)}",
            f"period = {{ column = {toml_text(period)}{every}{cut} }}",
            f"unit = {toml_text(given['unit'] if len(given['unit']) > 1 else given['unit'][0])}",
            'missing_unit = "drop"             # rows that name nobody are not counted; "error": they stop the job',
            *([_ONE_CELL] if once else []),
            f"ledger = {toml_text(f'private/{name}.sqlite')}",
            *_assumed(given),
            *_about_lines(given["about"]),
            *_checked(given),
            "",
            "[[release]]",
            f"name = {toml_text(release)}",
            *([f"by = {toml_text(entries if len(by) > 1 else entries[0])}{_EDGES * numbers}"] if by else []),
            *self._offered(by, groups),
            *_mechanism(given),
            "",
            "[output]",
            f"directory = {toml_text(f'public/{stem_of(self.place)}')}",
        ]
        return "\n".join(lines) + "\n"

    def proposed_edges(self, column: str) -> str | None:
        """Return the edges that are proposed for a column by what it holds, and its name; None where it has no groups.

        They are round, and none of them is made from the data.
        """
        kind, form = self._likely(column)
        if kind in ("date", "timestamp"):
            return "month" if form in (None, self.keys.get("date_format")) else None
        if kind not in ("number", "real"):
            return None
        return next(edges for name, edges in _USUAL_EDGES if name.search(column))

    def _offered(self, by: Sequence[str], groups: Mapping[str, Bins]) -> list[str]:
        """Return remarks on columns that could be counted in groups, and are not."""
        offers = [
            (name, edges) for name in by if name not in groups and (edges := self.proposed_edges(name)) is not None
        ]
        return [
            f"# {name}: each value is a cell; in groups it is {toml_text({'column': name, 'bins': edges_of(edges)})}"
            for name, edges in offers
        ]

    def _cells(self, by: Sequence[str], groups: Mapping[str, Bins]) -> Any:
        """Return the public cells as a job file has them: a list, or of several columns a table of lists.

        Groups between edges are known without a list.
        """
        lists: dict[str, Any] = {}
        for entry in self.domain:
            column, equals, cells = entry.partition("=")
            if not equals or column not in by or column in lists:
                raise ArgumentError("--domain must be a column of --by and its cells, once: --domain town=Bonn,Trier.")
            kind = "text" if column in groups else self.whole.columns[column]
            lists[column] = typed_cells("--domain", column, kind, cells.split(","))
        known = {name: list(entry.labels) for name, entry in groups.items() if not isinstance(entry.edges, str)}
        if {*by} <= {*lists, *known}:
            lists = known | lists
        if lists and set(lists) != set(by):
            raise ArgumentError(f"--domain is needed for all columns of --by: {', '.join(map(repr, by))}; or for none.")
        return lists[by[0]] if len(lists) == 1 else {column: lists[column] for column in by if lists}


def _assumed(answers: Mapping[str, Any]) -> list[str]:
    """Return what is declared: budget, evidence, and where there is no noise the attacker."""
    # Without noise there is no guarantee against everybody that could be held to it.
    part = "" if "noise" in answers else ', part = "partial_knowledge"'
    budget = 1.0 if answers["budget"] is None else answers["budget"]
    mark = "# " if answers["budget"] is None else ""
    lines = [
        f"{mark}budget = {{ epsilon = {budget!r}, delta = {exactly(_DELTA)}{part} }}   "
        "# the most that all of it may add up to"
    ]
    evidence: Sequence[Evidence] = answers["evidence"]
    once = f"one {answers['every']} can be published, and no second"
    if evidence:
        declared = evidence_to_dicts(evidence)
        lines += [f"# With this alone {once}: it needs independent_given_habits beside it."] * only_one(answers)
        lines.append(
            f"evidence = {toml_text(declared if len(declared) > 1 else declared[0])}   # argued; see docs/attacker.md"
        )
    elif "noise" not in answers:
        lines.append(f"# evidence = …   # none can be argued: {once}")
    if "noise" in answers:
        return lines
    attacker: AttackerModel = answers["attacker"]
    lines += [
        "",
        "# Argued, never computed from these data; and that people's records do not depend on one another is argued,",
    ]
    lines += [
        "# too: families are one unit, and against an outbreak only noise helps.",
        "[attacker]",
        f"p_max = {attacker.p_max!r}",
    ]
    return lines + ([f"known = {attacker.known}", f'influence = "{attacker.influence}"'] if attacker.known else [])


def _about_lines(about: Mapping[str, str]) -> list[str]:
    if not about:
        return ["", "# [about]   # what reports print: title, publisher, contact, argued_by, argued_on, argument"]
    return ["", "[about]   # what reports print", *(f"{name} = {toml_text(text)}" for name, text in about.items())]


def _checked(answers: Mapping[str, Any]) -> list[str]:
    """Return the check that a period is complete; not yet active where no period of the file would pass it."""
    every, mark = answers["every"], "" if answers["later"] else "# "
    fresh = f"{mark}fresh = {{ column = {toml_text(answers['period'])}, days = 1 }}"
    late = f"a {every} is published only when the file has rows of a later day, never from a late file"
    alone = f"take both # away as soon as the file has rows after its first {every}; then {late}"
    return ["", f"{mark}[checks]", f"{fresh}   # {late if answers['later'] else alone}"]


def _mechanism(answers: Mapping[str, Any]) -> list[str]:
    """Return the lines of the mechanism: noise, and where cells are found what hides them; or the smallest k."""
    cells = [f"domain = {toml_text(answers['domain'])}"] if answers["domain"] else []
    cells += ['undeclared = "absent"             # people in other cells are not counted'] if cells else []
    if "noise" not in answers:
        if not answers["by"]:
            raise ArgumentError(f"{ONE_NUMBER}: name a column with --by, or use --noise.")
        epsilon = min(1.0, answers["budget"] or 1.0)
        try:
            k = plugins.view("smallest_k")(answers["attacker"], epsilon=epsilon, delta=_DELTA)
        except NotCertifiableError:
            p_max = answers["attacker"].p_max
            why = (
                "says that nobody is ever absent"
                if p_max == 1.0
                else f"with --known {answers['attacker'].known} is too much"
            )
            raise NotCertifiableError(
                f"--p-max {exactly(p_max)} {why}, and then no k hides who is there: take --noise instead of it, or "
                "argue a smaller one."
            ) from None
        return [*cells, f"k = {k}   # the smallest with ε at most {exactly(epsilon)} at δ = 1e-6"]
    epsilon, cells_each = answers["noise"], answers["cells_per_unit"] if answers["by"] else 1
    noise = GeometricNoise(epsilon)
    if cells_each > 1:
        # Of a person's cells each has its share; rounded down, so that all of them together have no more than ε.
        noise = GeometricNoise(
            float(Decimal(epsilon) / cells_each if epsilon < 1e-300 else _SHARE.divide(Decimal(epsilon), cells_each))
        )
        cells.append(f"cells_per_unit = {cells_each}   # {_SEVERAL_CELLS.format(many=cells_each)}")
    remark = "" if cells_each == 1 else f"   # in each of {cells_each} cells: together at most ε = {exactly(epsilon)}"
    lines = [*cells, f"noise = {{ epsilon = {noise.epsilon!r} }}{remark}"]
    if not answers["by"] or answers["domain"]:
        return lines
    hidden = Histogram(k=1, noise=noise, cells_per_unit=cells_each)
    number = shared_by(answers, answers.get("spanned", 1))
    threshold = plugins.view("smallest_release_threshold")(hidden, epsilon=epsilon, delta=_DELTA / number)
    together = f"the smallest with δ = 1e-6 for {number_of(number, answers['every'])} together"
    return [*lines, f"release_threshold = {threshold}   # hides the names of cells: {together}"]


def how_to_give(draft: Draft, typed: Mapping[str, Any], missing: Sequence[str]) -> str:
    """Say what is missing, with a command that would do if a guess about the columns is right."""
    proposed = draft.proposed(typed)
    unit, by, period, form = (proposed[name] for name in ("unit", "by", "period", "form"))
    guessed: dict[str, Any] = {"unit": unit, "period": period or "COLUMN", "by": by}
    claims = [f"{', '.join(map(repr, unit))} names a person"]
    claims += [f"{period!r} says of which day a row is"] if period else []
    if form := typed.get("date_format") or form:
        guessed["date_format"] = form
        guessed |= {} if "%d" in form or typed["every"] else {"every": "month"}
    if typed["p_max"] is not None:
        claims += ["people's records do not depend on one another"] if not typed["independent"] else []
        known = 1 if typed["known"] is None else typed["known"]
        guessed |= {"known": known, "evidence": typed["evidence"] or ["none"], "independent": True}
    else:
        guessed |= {"noise": 1} if typed["noise"] is None else {}
        guessed |= {"cells_per_unit": 1} if by and typed["cells_per_unit"] is None else {}
    edges = {name: draft.proposed_edges(name) for name in by if name in draft.whole.columns}
    if not typed["bins"] and (groups := [f"{name}={text}" for name, text in edges.items() if text is not None]):
        guessed["bins"] = groups
        claims.append("these edges suit, which are no more than round")
    claims += [f"people are counted by {by[0]!r}, each in one cell"] if by and not typed["by"] else []
    words = ["pkdp", "init", str(draft.file)]
    for name, value in {**typed, **guessed}.items():
        option = "--type" if name == "types" else f"--{name.replace('_', '-')}"
        several = [f"{key}={item}" for key, item in value.items()] if isinstance(value, dict) else value
        for argument in several if isinstance(several, list) else [several]:
            if argument is not None and argument is not False:
                words += [option] if argument is True else [option, str(argument)]
    once = "" if period else " Rows of one occasion are published once, by pkdp histogram FILE."
    last = "" if period else ", with the column that says of which day a row is"
    return (
        f"without a terminal there is nobody to ask: give {', '.join(missing)}.{once} If "
        f"{' and '.join(claims)}, this would do{last}:\n{shlex.join(words)}"
    )
