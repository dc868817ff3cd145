"""The command ``pkdp init FILE``: a first job file, made of a file's column names and of answers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from pkdp_pipeline.cli.file_commands import file_options, typed_cells
from pkdp_pipeline.cli.options import at_a_terminal, leaving, of_share
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.period import Every

if TYPE_CHECKING:
    from pkdp_pipeline.cli.plan_dialogue import Asker
    from pkdp_pipeline.jobs.sources.whole_files import WholeFile

_DELTA = 1e-6
_EVIDENCE = ("independent_given_habits", "one_day_protected", "once_per_unit", "disjoint_units", "none")
_EVERY = get_args(Every)


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
    p_max: Annotated[float | None, of_share("Without noise: how sure they can be.")] = None,
    evidence: Annotated[
        str | None,
        typer.Option(metavar="KIND", help=f"How a person's periods depend on each other: {', '.join(_EVIDENCE)}."),
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
    job: Annotated[Path | None, typer.Option("--job", metavar="JOB.toml", help="The file that is written.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a job file that exists.")] = False,
) -> None:
    """Write a first job file for a Parquet, CSV or Excel file: looks at column names and types, and asks."""
    from pkdp_pipeline.display.screen import Screen
    from pkdp_pipeline.jobs.job import read_job
    from pkdp_pipeline.jobs.sources.whole_files import WholeFile

    if noise is not None and p_max is not None:
        raise ArgumentError("--noise needs no --p-max: it protects against anybody. Drop one of them.")
    whole = WholeFile.of(file, **keys)
    place = Path(f"{_stem(file)}.toml") if job is None else job
    if place.exists() and not force:
        raise ArgumentError(f"--job {str(place)!r} exists: name another file, or write over it with --force.")
    given = {"unit": unit, "period": period, "every": every, "by": by, "noise": noise, "p_max": p_max}
    screen = Screen()
    with leaving():
        from pkdp_pipeline.cli.plan_dialogue import Asker

        asker = Asker(screen, input)
        answers = asker.replayed(lambda: _answers(given | {"evidence": evidence}, whole, asker))
    answers |= {"time_zone": time_zone, "budget": budget, "domain": _domain(domain or [], answers["by"] or (), whole)}
    text = _job_text(file, keys, whole, place, answers)
    asked = read_job(text, place).period  # what the file says is checked before it is written
    place.write_text(text, encoding="utf-8")
    screen.head("Written")
    # A workbook is read to learn the names of its columns.
    unread = "" if whole.table.format == "excel" else " No row of the data was read."
    screen.say(f"{place}: read it, argue what it assumes, and correct it.{unread}")
    screen.head("Then")
    screen.say(
        f"Publish the {asked.every} of a date: here the latest that is over, or another one that your data have. First "
        "without reading, charging or writing anything:"
    )
    latest = asked.span(asked.today())[0] - timedelta(1)
    named = f"{shlex.quote(str(place))} --date {'yesterday' if asked.every == 'day' else latest.isoformat()}"
    screen.command(f"pkdp run {named} --dry-run")
    screen.command(f"pkdp run {named}")


def _stem(file: Path) -> str:
    return file.name.partition(".")[0] or "job"


def _answers(given: Mapping[str, Any], whole: WholeFile, asker: Asker) -> dict[str, Any]:
    """Return what is given and, at a terminal, what is answered."""
    ask = _asker(asker, whole)

    def columns(text: str) -> list[str]:
        named = [name for name in map(str.strip, text.split(",")) if name]
        if unknown := [name for name in named if name not in whole.columns]:
            raise ArgumentError(f"The file has no column {unknown[0]!r}: it has {', '.join(map(repr, whole.columns))}.")
        return named

    def column(text: str) -> str:
        named = columns(text)
        if len(named) != 1:
            raise ArgumentError("Name one column.")
        return named[0]

    def or_asked(name: str, read: Callable[[str], Any] | None = None) -> Any:
        return given[name] if given[name] is not None else ask(name, read)

    for name in ("unit", "by", "period"):
        value = given[name]
        columns(",".join([value] if isinstance(value, str) else value or ()))
    complete = given["unit"] and given["period"] and (given["noise"] is not None or given["p_max"] is not None)
    found: dict[str, Any] = {"unit": or_asked("unit", columns), "period": or_asked("period", column)}
    kind = whole.columns[found["period"]]
    if whole.table.format == "parquet" and kind not in ("date", "timestamp", "instant"):
        raise ArgumentError(f"--period: column {found['period']!r} holds no dates or times, but {kind}: name another.")
    found["every"] = given["every"] or ("day" if complete else ask("every", None))
    if found["every"] not in _EVERY:
        raise ArgumentError(f"--every must be one of {', '.join(_EVERY)}.")
    found["by"] = given["by"] if given["by"] is not None or complete else ask("by", columns)
    noised = given["noise"] is not None or (given["p_max"] is None and ask("noise", None))
    if noised:
        found["noise"] = given["noise"] if given["noise"] is not None else ask("epsilon", None)
    else:
        found["p_max"] = or_asked("p_max")
    # Noise adds up without evidence; with some that can be argued it adds up to less.
    found["evidence"] = (given["evidence"] or "none") if noised else or_asked("evidence")
    if found["evidence"] not in _EVIDENCE:
        raise ArgumentError(f"--evidence must be one of {', '.join(_EVIDENCE)}.")
    return found


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


def _asker(asker: Asker, whole: WholeFile) -> Callable[[str, Callable[[str], Any] | None], Any]:
    """Return what asks one question; without a terminal it says which option answers it."""

    def ask(name: str, read: Callable[[str], Any] | None) -> Any:
        if not at_a_terminal():
            option = "--noise or --p-max" if name in ("noise", "epsilon") else f"--{name.replace('_', '-')}"
            raise ArgumentError(f"without a terminal there is nobody to ask: say it with {option}.")
        columns = ", ".join(f"{name} ({kind})" for name, kind in whole.columns.items())
        asker.begin("pkdp init: a first job file", f"Columns: {columns}.")
        return asker(f"init_{name}", read)

    return ask


def _job_text(file: Path, keys: Mapping[str, Any], whole: WholeFile, place: Path, answers: Mapping[str, Any]) -> str:
    """Return the text of the job file."""
    from pkdp_pipeline.display.toml_text import toml_text

    name, period = _stem(file), answers["period"]
    source = _seen_from(file, place)
    csv = {key: value for key, value in keys.items() if key != "types"}
    table = {"files": source, **csv, **({"types": keys["types"]} if "types" in keys else {})}
    place_of_days = answers["time_zone"] or ("UTC" if whole.columns[period] == "instant" else None)
    zone = "" if place_of_days is None else f", time_zone = {toml_text(place_of_days)}"
    every = "" if answers["every"] == "day" else f', every = "{answers["every"]}"'
    by, release = answers["by"], f"people_by_{'_'.join(answers['by'])}" if answers["by"] else "people"
    release = re.sub(r"[^A-Za-z0-9_-]", "_", release)
    lines = [
        f"# Releases about each {answers['every']} of {file.name}.",
        "",
        f"dataset = {toml_text(name)}",
        f"source = {toml_text(source if len(table) == 1 else table)}",
        f"period = {{ column = {toml_text(period)}{every}{zone} }}",
        f"unit = {toml_text(answers['unit'] if len(answers['unit']) > 1 else answers['unit'][0])}",
        'missing_unit = "error"            # or "drop": rows that name nobody are not counted',
        *(['one_cell = "error"                # or "hash": somebody in several cells is counted in one'] if by else []),
        f"ledger = {toml_text(f'private/{name}.sqlite')}",
        *_budget(answers),
        *_assumed(answers),
        "",
        "[[release]]",
        f"name = {toml_text(release)}",
        *([f"by = {toml_text(by if len(by) > 1 else by[0])}"] if by else []),
        *([f"domain = {toml_text(answers['domain'])}"] if answers["domain"] else []),
        *_mechanism(answers, bool(by)),
        "",
        "[output]",
        f"directory = {toml_text(f'public/{name}')}",
    ]
    return "\n".join(lines) + "\n"


def _budget(answers: Mapping[str, Any]) -> list[str]:
    if answers["budget"] is None:
        return []
    # Without noise there is no guarantee against everybody that could be held to it.
    part = "" if "noise" in answers else ', part = "partial_knowledge"'
    return [f"budget = {{ epsilon = {answers['budget']!r}, delta = {_DELTA!r}{part} }}   # argued"]


def _assumed(answers: Mapping[str, Any]) -> list[str]:
    evidence = [f'evidence = {{ kind = "{answers["evidence"]}" }}   # argued; see attacker.md']
    attacker = (
        ["", "[attacker]", f"p_max = {answers['p_max']!r}   # argued, never computed"] if "p_max" in answers else []
    )
    return [*(evidence if answers["evidence"] != "none" else []), *attacker]


def _mechanism(answers: Mapping[str, Any], table: bool) -> list[str]:
    """Return the lines of the mechanism: noise, and where cells are found what hides them; or the smallest k."""
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
    from pkdp_pipeline.planning import smallest_k, smallest_release_threshold

    if "noise" not in answers:
        attacker = AttackerModel(p_max=answers["p_max"])
        if not table:
            raise ArgumentError(
                "one number without noise takes more than p_max: plan it with pkdp plan count, name a column with "
                "--by, or use --noise."
            )
        return [f"k = {smallest_k(attacker, epsilon=1.0, delta=_DELTA)}   # the smallest with ε = 1 at δ = 1e-6"]
    noise = GeometricNoise(answers["noise"])
    lines = [f"noise = {{ epsilon = {noise.epsilon!r} }}"]
    if not table or answers["domain"]:
        return lines
    threshold = smallest_release_threshold(Histogram(k=1, noise=noise), epsilon=noise.epsilon, delta=_DELTA)
    return [*lines, f"release_threshold = {threshold}   # hides the names of cells: the smallest with δ = 1e-6"]


def _seen_from(file: Path, place: Path) -> str:
    return Path(os.path.relpath(file.resolve(), place.resolve().parent)).as_posix()
