"""The command ``pkdp init FILE``: a first job file, made of a file's column names and of answers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from pkdp_pipeline.cli.documents import message_of, option_names
from pkdp_pipeline.cli.file_commands import file_options, typed_cells
from pkdp_pipeline.cli.init_text import ONE_NUMBER, job_text, only_one, stem_of
from pkdp_pipeline.cli.options import at_a_terminal, leaving, of_share, read_evidence_flags
from pkdp_pipeline.clock import today
from pkdp_pipeline.errors import ArgumentError, ConfigError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.period import Every

if TYPE_CHECKING:
    from pkdp_pipeline.cli.plan_dialogue import Asker
    from pkdp_pipeline.display.screen import Screen
    from pkdp_pipeline.jobs import Job
    from pkdp_pipeline.jobs.sources.whole_files import WholeFile
    from pkdp_pipeline.jobs.tables import PeriodTable

_EVERY = get_args(Every)
_DAYS = ("date", "timestamp", "instant")
_LIKE_DAYS = re.compile(r"dat[eu]|day|tag|time|month|when", re.IGNORECASE)


@file_options
def init(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet, CSV or Excel file.", show_default=False)],
    keys: dict[str, Any],
    unit: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="The column that names the protected person.")
    ] = None,
    period: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of each row's date.")] = None,
    every: Annotated[str | None, typer.Option(metavar="|".join(_EVERY), help="The period of one release.")] = None,
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="The cells; without it, one number.")] = None,
    noise: Annotated[float | None, typer.Option(help="The epsilon of noise: a promise against anybody.")] = None,
    p_max: Annotated[float | None, of_share("Without noise: how sure the attacker can be, at most, of a cell.")] = None,
    known: Annotated[int | None, typer.Option(help="How many people in the table the attacker knows.")] = None,
    influence: Annotated[
        str | None,
        typer.Option(metavar="passive|active", help="Whether people are known for being there: active, usual."),
    ] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="How a person's periods depend on each other, as for pkdp plan; or none."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Where a day begins, for times with a zone; without it UTC.")
    ] = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=CELL,CELL", help="The public cells of a column; again for another."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="EPSILON", help="The most that all releases may add up to, at delta = 1e-6.")
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=TEXT", help="A text that reports print, as title=Visits or publisher=City; again for more."
        ),
    ] = None,
    job: Annotated[Path | None, typer.Option("--job", metavar="JOB.toml", help="The file that is written.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a job file that exists.")] = False,
) -> None:
    """Write a first job file for a Parquet, CSV or Excel file: looks at columns and the range of dates, and asks."""
    from pkdp_pipeline.display.screen import Screen
    from pkdp_pipeline.jobs.job import read_job
    from pkdp_pipeline.jobs.sources.csv_forms import other_order
    from pkdp_pipeline.jobs.sources.whole_files import WholeFile

    if noise is not None and p_max is not None:
        raise ArgumentError("--noise needs no --p-max: it protects against anybody. Drop one of them.")
    whole = WholeFile.of(file, **keys)
    place = Path(f"{stem_of(file)}.toml") if job is None else job
    if place.exists() and not force:
        raise ArgumentError(f"--job {str(place)!r} exists: name another file, or write over it with --force.")
    given = {"unit": unit, "period": period, "every": every, "by": by, "noise": noise, "p_max": p_max, "known": known}
    given |= {"influence": influence, "evidence": evidence, "domain": domain, "budget": budget, "about": about}
    typed = keys | given | {"time_zone": time_zone, "job": job, "force": force}
    for name, columns in (("unit", unit), ("period", period and [period]), ("by", by)):
        _columns(whole, f"--{name}", columns or [])
    _check_days(whole, period)
    _check_cells(by, unit)
    if every not in (None, *_EVERY):
        raise ArgumentError(f"--every must be one of {', '.join(_EVERY)}.")
    screen, missing = Screen(), _missing(given)
    if missing and not at_a_terminal():
        raise ArgumentError(_how(file, whole, typed, missing))

    @cache
    def dates(column: str, form: str | None) -> tuple[date | None, date | None]:
        """Return the oldest and the newest date in the file; a `PkdpError` where they cannot be read as dates."""
        asked = {"unit": [column], "period": column, "every": "year", "by": [], "noise": 1.0, "evidence": ()}
        asked |= {"attacker": AttackerModel(), "budget": None, "about": {}, "domain": None, "time_zone": time_zone}
        looks: Any = read_job(job_text(file, _with(keys, form), whole, place, asked | {"later": True}), place)
        with closing(looks.source.open(looks)) as source:
            found = source.outermost(looks.period, column, "min"), source.newest(looks.period, column)
        if found[1] is not None and found[1] > looks.period.today() + timedelta(1):  # it is tomorrow elsewhere
            turned = other_order(looks.source.date_format)
            order = "" if turned is None else f", write {turned} where that is the order of day and month"
            raise ArgumentError(
                f"--period: the newest date in column {column!r} lies in the future, so that no row says which periods "
                f"are complete: leave out rows of days to come{order}."
            )
        return found

    def look(column: str, form: str | None) -> None:
        """Refuse a column of dates in a dialogue."""
        try:
            dates(column, form)
        except (ArgumentError, ConfigError) as error:
            told = message_of(error, option_names(init)).removeprefix("--period: ")
            again = f"this one with the form of its dates, as in {column} %d/%m/%Y"
            again = "" if whole.table.format == "parquet" else f", or {again}"
            raise ArgumentError(f"{told}\nName another column{again}.") from None

    if period is not None:
        dates(period, None)  # before anything is asked: another option may be needed to read it
    with leaving():
        from pkdp_pipeline.cli.plan_dialogue import Asker

        asker = Asker(screen, input)
        answers = asker.replayed(lambda: _answers(given, whole, look, asker if missing else None))
    keys = _with(keys, answers["form"])
    answers |= {"time_zone": time_zone, "domain": _domain(domain or [], answers["by"], whole), "later": True}
    made = read_job(job_text(file, keys, whole, place, answers), place)
    oldest, newest = dates(answers["period"], answers["form"])
    first, last = _first_and_last(made, oldest, newest)
    answers["later"] = last is not None
    text = job_text(file, keys, whole, place, answers)
    read_job(text, place)  # what the file says is checked before it is written
    place.write_text(text, encoding="utf-8")
    _print_next(screen, place, made.period, first, last, only_one=only_one(answers))


def _with(keys: Mapping[str, Any], form: str | None) -> dict[str, Any]:
    return {**keys, **({} if form is None else {"date_format": form})}


def _first_and_last(job: Job, oldest: date | None, newest: date | None) -> tuple[date, date | None]:
    """Return the first day of the oldest period, and of the newest that rows of a later day show to be complete.

    That is None where no period is shown to be complete. Raises a `PkdpError` where the oldest would be refused.
    """
    from pkdp_pipeline.jobs.dry_run import plan_job

    period = job.period
    over = period.span(period.today())[0] - timedelta(1)
    first = period.span(oldest or over)[0]
    if (refused := plan_job(job, [first], ahead=True).refused) is not None and refused.refused is not None:
        raise refused.refused
    if newest is None or first > over:
        return first, first if first > over else None
    last = period.span(min(period.span(newest)[0] - timedelta(1), over))[0]
    return first, last if first <= last else None


def _print_next(
    screen: Screen, place: Path, period: PeriodTable, first: date, last: date | None, *, only_one: bool
) -> None:
    """Print what was written, and which commands come next."""
    every, file = period.every, shlex.quote(str(place))
    run = f"pkdp run {file} --date {(last or first) if only_one else first}"
    screen.head("Written")
    screen.say(
        f"{place}: read it, argue what it assumes, and correct it. Of the rows only the oldest and the newest date "
        "were looked for."
    )
    if last is None:
        screen.say(
            f"No row is of a day after the first {every}, so that nothing shows that it is complete: the check of "
            "that, fresh, stands there as a comment. Make it active as soon as there are later rows."
        )
    screen.head("Then")
    when = "here the newest that is complete" if only_one and last is not None else "here the oldest in the file"
    when = f"when that {every} is over" if first >= period.span(period.today())[0] else when
    if only_one:
        screen.say(f"By what is declared one {every} can be published, and no second: choose which.")
    screen.say(f"Publish the {every} of a date, {when}; first without charging or writing anything:")
    screen.command(f"{run} --dry-run")
    screen.command(run)
    if last is not None and first < last and not only_one:
        screen.say(f"And every {every} up to the newest that is complete, once it is clear what that adds up to:")
        screen.command(f"pkdp backfill {file} --from {first} --to {last} --dry-run")


def _missing(given: Mapping[str, Any]) -> list[str]:
    """Return which options are needed, and not given."""
    missing = [f"--{name}" for name in ("unit", "period") if not given[name]]
    if given["noise"] is None and given["p_max"] is None:
        return [*missing, "--noise (or --p-max, --known and --evidence)"]
    exact = ("known", "evidence") if given["noise"] is None else ()
    return missing + [f"--{name}" for name in exact if given[name] is None]


def _how(file: Path, whole: WholeFile, typed: Mapping[str, Any], missing: Sequence[str]) -> str:
    """Say what is missing, with a command that would do if a guess about the columns is right."""
    left = [
        name for name in whole.columns if name not in [*(typed["unit"] or ()), typed["period"], *(typed["by"] or ())]
    ]
    days = [name for name in left if whole.columns[name] in _DAYS] or [name for name in left if _LIKE_DAYS.search(name)]
    period = typed["period"] or (days or left or ["COLUMN"])[-1]
    left = [name for name in left if name != period]
    unit = typed["unit"] or [left.pop(0) if left else "COLUMN"]
    exact = typed["p_max"] is not None
    by = typed["by"] or left[:1]
    guessed: dict[str, Any] = {"unit": unit, "period": period, "by": by}
    if typed["noise"] is None:
        known, evidence = typed["known"], typed["evidence"] or ["none"]
        guessed |= {"known": 1 if known is None else known, "evidence": evidence} if exact else {"noise": 1}
    words = ["pkdp", "init", str(file)]
    for name, value in {**typed, **guessed}.items():
        option = "--type" if name == "types" else f"--{name.replace('_', '-')}"
        several = [f"{key}={one}" for key, one in value.items()] if isinstance(value, dict) else value
        for one in several if isinstance(several, list) else [several]:
            words += [] if one is None or one is False else [option] if one is True else [option, str(one)]
    claims = [f"{', '.join(map(repr, unit))} names a person", f"{period!r} says of which day a row is"]
    claims += [f"people are counted by {by[0]!r}"] if by and not typed["by"] else []
    once = "" if days or typed["period"] else " Rows of one occasion are published once, by pkdp histogram FILE."
    return (
        f"without a terminal there is nobody to ask: give {', '.join(missing)}.{once} If "
        f"{' and '.join(claims)}, this would do:\n{shlex.join(words)}"
    )


def _columns(whole: WholeFile, option: str, named: Sequence[str]) -> list[str]:
    if unknown := [name for name in named if name not in whole.columns]:
        columns = ", ".join(map(repr, whole.columns))
        raise ArgumentError(f"{option}: The file has no column {unknown[0]!r}: it has {columns}.".removeprefix(": "))
    return list(named)


def _check_days(whole: WholeFile, period: str | None) -> None:
    kind = whole.columns[period] if period else "date"
    if whole.table.format == "parquet" and kind not in _DAYS:
        raise ArgumentError(f"--period: column {period!r} holds no dates or times, but {kind}: name another.")


def _check_cells(by: Sequence[str] | None, unit: Sequence[str] | None) -> None:
    if both := [name for name in by or () if name in (unit or ())]:
        raise ArgumentError(
            f"--by: column {both[0]!r} names the protected person; a cell for each person hides nobody: name another."
        )


def _answers(
    given: Mapping[str, Any], whole: WholeFile, look: Callable[[str, str | None], None], asker: Asker | None
) -> dict[str, Any]:
    """Return what is given and, where there is somebody to ask, what is answered; `look` refuses a column of dates."""
    from pkdp_pipeline.cli.plan_dialogue import ask_attacker, ask_evidence, ask_known

    def columns(text: str) -> list[str]:
        return _columns(whole, "", [name for name in map(str.strip, text.split(",")) if name])

    def period(text: str) -> tuple[str, str | None]:
        with_form = None if text in whole.columns else re.fullmatch(r"(.+?)\s+(\S*%[Ymd]\S*)", text)
        text, form = (text, None) if with_form is None else with_form.groups()
        named = columns(text)
        if len(named) != 1:
            raise ArgumentError("Name one column.")
        _check_days(whole, named[0])
        return named[0], form

    def cells(text: str) -> list[str]:
        named = columns(text)
        _check_cells(named, found["unit"])
        return named

    def answer(name: str, usual: Any = None, read: Callable[[str], Any] | None = None, **words: Any) -> Any:
        if given[name] is not None or asker is None:
            return usual if given[name] is None else given[name]
        return asker(f"init_{name}", read, **words)

    if asker is not None:
        listed = ", ".join(f"{name} ({kind})" for name, kind in whole.columns.items())
        asker.begin("pkdp init: a first job file", f"Columns: {listed}.")
    found: dict[str, Any] = {"unit": answer("unit", read=columns), "period": given["period"], "form": None}
    if given["period"] is None:
        found["period"], found["form"] = answer("period", read=period, check=lambda named: look(*named))
    if given["by"] is not None:
        _check_cells(given["by"], found["unit"])
    found |= {"every": answer("every", "day"), "by": answer("by", [], cells)}

    def can_be_had(noise: bool) -> None:
        if not noise and not found["by"]:
            raise ArgumentError(f"{ONE_NUMBER[0].upper()}{ONE_NUMBER[1:]}.")

    noised = given["noise"] is not None
    if asker is not None and not noised and given["p_max"] is None:
        noised = asker("init_noised", check=can_be_had)
    if noised:
        # Noise adds up without evidence; with some that can be argued it adds up to less.
        found |= {"noise": answer("noise"), "attacker": AttackerModel()}
    else:
        found["attacker"] = AttackerModel(p_max=given["p_max"]) if given["p_max"] is not None else None
        if found["attacker"] is None and asker is not None:
            found["attacker"] = ask_attacker(asker, table=True, protects="presence", noise=False)
        elif given["known"] is not None:
            told = {"known": given["known"], "influence": given["influence"] or "active"}
            found["attacker"] = replace(found["attacker"], **(told if given["known"] else {}))
        elif asker is not None:
            found["attacker"] = ask_known(asker, found["attacker"], "in the table")
    declared = given["evidence"]
    if declared is not None or noised or asker is None:
        found["evidence"] = () if declared in (None, ["none"]) else read_evidence_flags(declared, ", or none alone")
    else:
        note = f"With no, one {found['every']} can be published without noise, and no second."
        found["evidence"] = ask_evidence(asker, lambda _: None, found["every"], note)
    found["budget"] = answer("budget")
    found["about"] = _about(given["about"], asker, noised=noised)
    return found


def _about(given: Sequence[str] | None, asker: Asker | None, *, noised: bool) -> dict[str, str]:
    """Return the table ``[about]``."""
    from pydantic import ValidationError

    from pkdp_pipeline.jobs.about import AboutTable
    from pkdp_pipeline.releases.complaints import complaints

    def check(table: Mapping[str, str]) -> None:
        try:
            if words := {name: text for name, text in table.items() if text}:
                AboutTable.model_validate(words)
        except ValidationError as error:
            raise ArgumentError("; ".join(complaints(error))) from None

    def check_one(name: str, text: str) -> None:
        check({name: text})

    found = {key.strip(): text.strip() for key, _, text in (one.partition("=") for one in given or ())}
    asked = ("title", "publisher", "contact", *(() if noised else ("argued_by", "argument", "argued_on")))
    for name in asked:
        if asker is None or given is not None:
            break
        words: dict[str, Any] = {}
        if name == "argued_on":
            if not (found["argued_by"] or found["argument"]):
                continue
            words = {"default": today(None).isoformat()}
        words["question"] = f"{name.replace('_', ' ').capitalize()}? {AboutTable.model_fields[name].description}"
        found[name] = asker("init_about", None, partial(check_one, name), **words)
    check(found)
    return {name: text for name, text in found.items() if text}


def _domain(given: list[str], by: Sequence[str], whole: WholeFile) -> Any:
    """Return the public cells as a job file has them: a list, or of several columns a table of lists."""
    lists: dict[str, Any] = {}
    for one in given:
        column, equals, cells = one.partition("=")
        if not equals or column not in by or column in lists:
            raise ArgumentError("--domain must be a column of --by and its cells, once: --domain town=Bonn,Trier.")
        lists[column] = typed_cells("--domain", column, whole.columns[column], cells.split(","))
    if lists and set(lists) != set(by):
        raise ArgumentError(f"--domain is needed for all columns of --by: {', '.join(map(repr, by))}; or for none.")
    return lists[by[0]] if len(lists) == 1 else {column: lists[column] for column in by if lists}
