"""The answers of ``pkdp init``: what is given is checked, what is missing asked for, and the job file written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pkdp_pipeline.cli.file_commands import edges_of, groups_of
from pkdp_pipeline.cli.options import read_evidence_flags
from pkdp_pipeline.cli.screen import Screen, message_of
from pkdp_pipeline.clock import today
from pkdp_pipeline.errors import ArgumentError, PkdpError
from pkdp_pipeline.extras.start.dialogue import Asker, ask_attacker, ask_evidence, ask_known, at_a_terminal, leaving
from pkdp_pipeline.extras.start.init_text import DAYS, EVERY, ONE_NUMBER, Draft, how_to_give, only_one, stem_of
from pkdp_pipeline.jobs.sources.whole_files import WholeFile
from pkdp_pipeline.jobs.tables import AboutTable, PeriodTable
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import Bins
from pkdp_pipeline.releases.complaints import complaints

_DEPENDENT = (
    "Then a threshold hides nobody, and no such job is written. Go back and name what depends together, such as the "
    "household, where a person is named; or allow noise, whose promise to each person does not rest on the others. "
    "docs/correlated.md says what else can be declared."
)


def write_job(file: Path, keys: Mapping[str, Any], given: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Write a first job file.

    `keys`: those of a job's ``source``. `given`: what the other options give, and None. `options`: the names of all
    options by their parameters.
    """
    whole, job = WholeFile.of(file, **keys), given["job"]
    place = Path(f"{stem_of(file)}.toml") if job is None else job
    if place.exists() and not given["force"]:
        raise ArgumentError(f"--job {str(place)!r} exists: name another file, or write over it with --force.")
    if not place.absolute().parent.is_dir():
        raise ArgumentError("--job must be in a folder that exists.")
    _check_given(given, whole)
    cells, zone = given["domain"] or [], given["time_zone"]
    draft = Draft(file=file, whole=whole, place=place, keys=keys, domain=cells, time_zone=zone)
    screen, missing, answered = Screen(), _missing(given), _read(given)
    if missing:  # what cannot be, or cannot be read without another option, is said before anything is asked
        draft.job(answered)
        if given["period"] is not None:
            draft.dates(answered)
        if not at_a_terminal():
            raise ArgumentError(how_to_give(draft, {**keys, **given}, missing))
    with leaving():
        asker = Asker(screen, input)
        answers = asker.replayed(lambda: _answers(given, draft, asker if missing else None, options))
    first, last = draft.planned(answers)
    written = draft.job(answers)
    place.write_text(draft.text(answers | {"later": last is not None}), encoding="utf-8")
    _print_next(screen, place, written.period, first, last, only_one=only_one(answers))


def _print_next(
    screen: Screen, place: Path, period: PeriodTable, first: date, last: date | None, *, only_one: bool
) -> None:
    """Print what was written, and which commands come next."""
    every, file = period.every, shlex.quote(str(place))
    run = f"pkdp run {file} --date {(last or first) if only_one else first}"
    screen.head("Written")
    screen.say(
        f"{place}: read it, argue what it assumes, and correct it. Of the rows only the oldest and the newest date "
        "were looked for, and how the first values are written."
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
        return [*missing, "--noise and --cells-per-unit (or --p-max, --known, --evidence and --independent)"]
    needed = (
        ("known", "evidence", "independent") if given["noise"] is None else ("cells_per_unit",) if given["by"] else ()
    )
    return missing + [f"--{name.replace('_', '-')}" for name in needed if given[name] is None]


def _check_given(given: Mapping[str, Any], whole: WholeFile) -> None:
    """Refuse options that do not go together, or name columns that are not there."""
    for option, only, wrong in (
        ("noise", ("p_max", "known", "influence", "independent"), "protects against anybody"),
        ("p_max", ("cells_per_unit",), "counts a person in one cell"),
    ):
        for name in only if given[option] is not None else ():
            if given[name] is not None:
                words = f"--{option.replace('_', '-')} needs no --{name.replace('_', '-')}: it {wrong}"
                raise ArgumentError(f"{words}. Drop one of them.")
    for name in ("unit", "period", "by"):
        _columns(whole, f"--{name}: ", [given[name]] if name == "period" and given[name] else given[name] or [])
    groups_of(given["bins"] or [], given["by"] or [])
    _check_days(whole, given["period"])
    _check_cells(given["by"], given["unit"])
    if given["every"] not in (None, *EVERY):
        raise ArgumentError(f"--every must be one of {', '.join(EVERY)}.")


def _columns(whole: WholeFile, option: str, named: Sequence[str]) -> list[str]:
    if unknown := [name for name in named if name not in whole.columns]:
        columns = ", ".join(map(repr, whole.columns))
        raise ArgumentError(f"{option}The file has no column {unknown[0]!r}: it has {columns}.")
    return list(named)


def _check_days(whole: WholeFile, period: str | None) -> None:
    if whole.table.format == "parquet" and not {*DAYS} & {*whole.columns.values()}:
        raise ArgumentError(
            "--period: no column holds dates or times, so that the file has no periods: publish it once, with pkdp "
            "histogram FILE, or write it anew with a column of dates."
        )
    kind = whole.columns[period] if period else "date"
    if whole.table.format == "parquet" and kind not in DAYS:
        raise ArgumentError(f"--period: column {period!r} holds no dates or times, but {kind}: name another.")


def _check_cells(by: Sequence[str] | None, unit: Sequence[str] | None) -> None:
    if both := [name for name in by or () if name in (unit or ())]:
        raise ArgumentError(
            f"--by: column {both[0]!r} names the protected person; a cell for each person hides nobody: name another."
        )


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers that options give; None where they give none."""
    answers = {name: given[name] for name in ("unit", "period", "every", "by", "noise", "cells_per_unit", "budget")}
    evidence, about, known = given["evidence"], given["about"], given["known"]
    if evidence is not None:
        evidence = () if evidence == ["none"] else read_evidence_flags(evidence, ", or none alone")
    if about is not None:
        about = _checked_about(
            {key.strip(): text.strip() for key, _, text in (entry.partition("=") for entry in about)}
        )
    people: dict[str, Any] = {"known": known, "influence": given["influence"] or "active"} if known else {}
    attacker = None if given["p_max"] is None else AttackerModel(p_max=given["p_max"], **people)
    bins = groups_of(given["bins"] or [], given["by"] or [])
    return {**answers, "bins": bins, "form": None, "evidence": evidence, "about": about, "attacker": attacker}


def _answers(given: Mapping[str, Any], draft: Draft, asker: Asker | None, options: Mapping[str, str]) -> dict[str, Any]:
    """Return what is given and, where there is somebody to ask, what is answered.

    The job file is read after each answer, and one that it cannot have is asked for again.
    """
    whole, answers = draft.whole, _read(given)

    def check(*, planned: bool = False, **answer: Any) -> None:
        try:
            if "period" in answer:
                draft.dates(answers | answer)
            if planned:
                draft.planned(answers | answer)
            draft.job(answers | answer)
        except PkdpError as error:
            words = message_of(error, options)
            again = "" if "period" not in answer else "\nName another column."
            if again and whole.table.format != "parquet":
                again = (
                    f"\nName another column, or this one with the form of its dates, as in {answer['period']} %d/%m/%Y."
                )
            raise ArgumentError(words + again) from None

    def ask(name: str, usual: Any, read: Any = None, *, planned: bool = False, **words: Any) -> Any:
        if answers[name] is None:
            answered = partial(lambda value: check(planned=planned, **{name: value}))
            answers[name] = usual if asker is None else asker(f"init_{name}", read, answered, **words)
        return answers[name]

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
        _check_cells(named, answers["unit"])
        return named

    def groups(column: str, text: str) -> dict[str, Bins]:
        return {} if text == "none" else {column: Bins(column, edges_of(text))}

    def can_be_had(noise: bool) -> None:
        if not noise and not answers["by"]:
            raise ArgumentError(f"{ONE_NUMBER}: go back and name a column, or allow noise.")
        if not noise and answers["cells_per_unit"] is not None:
            raise ArgumentError("--cells-per-unit needs noise: without it a person counts in one cell.")

    def independent(dependent: bool) -> None:
        if dependent:
            raise ArgumentError(_DEPENDENT)

    if asker is not None:
        listed = ", ".join(f"{name} ({kind})" for name, kind in whole.columns.items())
        asker.begin("pkdp init: a first job file", f"Columns: {listed}.")
    ask("unit", None, columns)
    if answers["period"] is None and asker is not None:
        proposed = draft.proposed(answers)
        usual = (
            {}
            if proposed["period"] is None
            else {"default": " ".join(filter(None, (proposed["period"], proposed["form"])))}
        )
        answers["period"], answers["form"] = asker(
            "init_period", period, lambda named: check(period=named[0], form=named[1]), **usual
        )
    every = ask("every", "day")
    _check_cells(ask("by", [], cells), answers["unit"])
    offered = {} if asker is None else {column: draft.proposed_edges(column) for column in answers["by"]}
    for column, edges in offered.items():
        if asker is not None and edges is not None and column not in answers["bins"]:
            question = f"Column {column!r} is no text: in which groups are people counted?"
            read, together = partial(groups, column), lambda bins: check(bins=answers["bins"] | bins)
            answers["bins"] |= asker("init_bins", read, together, question=question, default=edges)
    noised = answers["noise"] is not None
    if asker is not None and not noised and answers["attacker"] is None:
        noised = asker("init_noised", check=can_be_had)
    if noised:
        if answers["by"]:
            question = f"In how many cells can a person be, in one {every}?"
            ask("cells_per_unit", 1, question=question)
        ask("noise", None, planned=True)
        answers["evidence"] = answers["evidence"] or ()  # noise adds up without evidence, and with some to less
    elif asker is not None:
        if not given["independent"]:
            asker("init_dependent", check=independent)
        if answers["attacker"] is None:
            answers["attacker"] = ask_attacker(asker)
        elif given["known"] is None:
            answers["attacker"] = ask_known(asker, answers["attacker"])
        if answers["evidence"] is None:
            note = f"With no, one {every} can be published without noise, and no second."
            adds_up = partial(lambda evidence: check(planned=True, evidence=evidence))
            answers["evidence"] = ask_evidence(asker, adds_up, every, note)
    ask("budget", None, planned=True)
    if answers["about"] is None:
        answers["about"] = {} if asker is None else _ask_about(asker, noised=noised)
    return answers


def _checked_about(words: Mapping[str, str]) -> dict[str, str]:
    """Return what is said in the table ``[about]``; raises `ArgumentError` for what cannot stand there."""
    given = {name: text for name, text in words.items() if text}
    wrong = ""
    try:
        if given:
            AboutTable.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(complaints(error))
    if wrong:
        raise ArgumentError(wrong)
    return given


def _ask_about(asker: Asker, *, noised: bool) -> dict[str, str]:
    """Return what is answered of the table ``[about]``."""
    words: dict[str, str] = {}
    for name in ("title", "publisher", "contact", *(() if noised else ("argued_by", "argument", "argued_on"))):
        if name == "argued_on" and not (words["argued_by"] or words["argument"]):
            continue
        usual = {"default": today(None).isoformat()} if name == "argued_on" else {}
        question = f"{name.replace('_', ' ').capitalize()}? {AboutTable.model_fields[name].description}"
        check = partial(lambda name, text: _checked_about({name: text}), name)
        words[name] = asker("init_about", None, check, question=question, **usual)
    return _checked_about(words)
