"""The answers of ``pkdp init``: what is given is checked, what is missing asked for, and the job file written.

Dialogue: what ``pkdp init`` asks in plain words where nothing is given; questions.toml has the questions.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import ValidationError

from pkdp_pipeline.certificates.release_certificate import certify
from pkdp_pipeline.cli.file_commands import edges_of, groups_of
from pkdp_pipeline.cli.options import EVIDENCE, INTERRUPTED, read_evidence_flags, share
from pkdp_pipeline.cli.screen import Screen, message_of
from pkdp_pipeline.clock import today
from pkdp_pipeline.errors import ArgumentError, ConfigError, NotCertifiableError, PkdpError
from pkdp_pipeline.extras.start.init_text import (
    DAYS,
    EVERY,
    ONE_NUMBER,
    Draft,
    how_to_give,
    only_one,
    shared_by,
    stem_of,
)
from pkdp_pipeline.jobs.sources.csv_files import WholeFile
from pkdp_pipeline.jobs.tables import AboutTable, PeriodTable
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import Bins
from pkdp_pipeline.model.evidence import Evidence, evidence_from_dicts
from pkdp_pipeline.model.mechanisms import Histogram
from pkdp_pipeline.model.period import dataset_name
from pkdp_pipeline.model.wording import obstacles_of, reason_of
from pkdp_pipeline.releases.options import complaints

Answered = TypeVar("Answered")

_LARGE_K = 1_000_000


@cache
def _questions() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("questions.toml").read_text(encoding="utf-8"))


def at_a_terminal() -> bool:
    """Return whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def leaving() -> Iterator[None]:
    """Let those who are asked leave, before anything is written."""
    try:
        yield
    except (EOFError, KeyboardInterrupt):
        typer.echo("\nLeft. Nothing was written.")
        raise typer.Exit(INTERRUPTED) from None


class _BackError(Exception):
    """Somebody wants to answer the question before once more."""


class Asker:
    """Asks one question after another, each again until the answer keeps to the rule that is named.

    Answers are kept as they were typed: a dialogue that is begun again gets those before, without a word. `read`:
    prompt → the line that was typed; raises `EOFError` at the end of the input.
    """

    def __init__(self, screen: Screen, read: Callable[[str], str] | None = None) -> None:
        self._screen = screen
        self._read = read or input
        self._answers: list[str] = []
        self._place = 0
        self._begun = False

    def begin(self, title: str, *lines: str) -> None:
        """Print what stands above the questions, once."""
        if not self._begun:
            self._screen.title(title)
            for line in (
                *lines,
                "Enter takes what stands in brackets, ? explains, back asks the question before again, Ctrl-C leaves.",
            ):
                self._screen.say(line, indent=0)
        self._begun = True

    def replayed(self, dialogue: Callable[[], Answered]) -> Answered:
        """Return what a dialogue returns; whenever somebody goes back, it is begun again without the last answer."""
        while True:
            self._place = 0
            try:
                return dialogue()
            except _BackError:
                self._answers.pop()

    def __call__(
        self,
        name: str,
        read: Callable[[str], Any] | None = None,
        check: Callable[[Any], object] | None = None,
        **words: Any,
    ) -> Any:
        """Return what a question's reader, or `read`, makes of the answer; `words` take the place of the file's.

        A question is asked again where `check` raises an `ArgumentError`, or the reader refuses the answer.
        """
        usual: dict[str, Any] = {
            "note": "",
            "options": {},
            "explained": {},
            "default": None,
            "empty": "cannot say",
            "reads": "text",
        }
        entry = {**usual, **_questions()[name], **words}
        options: dict[str, str] = entry["options"]
        reader = read or ((lambda answer: _key(list(options), answer)) if options else _READERS[entry["reads"]])
        self._place += 1
        if self._place <= len(self._answers):
            return reader(self._answers[self._place - 1])
        self._screen.head(entry["question"].strip())
        if entry["note"]:
            self._screen.say(entry["note"])
        self._list(options)
        default = "1" if options else entry["default"]
        prompt = "  > " if default is None else f"  [{default or entry['empty']}] > "
        while True:
            answer = self._read(prompt).strip()
            if answer == "?":
                self._screen.say(entry["help"], indent=4)
                self._list({**options, **entry["explained"]})
            elif answer.lower() == "back" and self._answers:
                raise _BackError
            elif answer.lower() == "back":
                self._screen.say("This is the first question.", indent=4)
            elif not answer and default is None:
                self._screen.say("There is no default: this has to be answered; ? explains.", indent=4)
            else:
                try:
                    value = reader(answer or default or "")
                    if check is not None:
                        check(value)
                except (ArgumentError, ConfigError) as error:
                    self._screen.say(str(error), indent=4)
                else:
                    self._answers.append(answer or default or "")
                    return value

    def _list(self, options: dict[str, str]) -> None:
        for place, meaning in enumerate(options.values(), start=1):
            self._screen.hanging(f"{place}  {meaning.strip()}", margin=5)


def ask_attacker(asker: Asker) -> AttackerModel:
    """Ask what can be argued about whoever reads a table without noise."""

    def hides(attacker: AttackerModel) -> None:
        try:
            certify(Histogram(k=_LARGE_K), attacker)
        except NotCertifiableError as error:
            why = "; and ".join(map(reason_of, obstacles_of(error)))
            raise ArgumentError(
                f"Then no k hides anybody: {why}. Answer otherwise, or go back to allow noise."
            ) from None

    return ask_known(asker, asker("p_max", lambda answer: AttackerModel(p_max=share(answer)), hides))


def ask_known(asker: Asker, attacker: AttackerModel) -> AttackerModel:
    """Ask how many people the attacker knows, and why."""
    known = asker("known")
    return replace(attacker, known=known, influence=asker("influence")) if known else attacker


def ask_evidence(
    asker: Asker, adds_up: Callable[[tuple[Evidence, ...]], None], every: str = "day", note: str = ""
) -> tuple[Evidence, ...]:
    """Ask for what is declared; where nothing can add up by the answer, the question is put again before any other.

    `every`: the word for the period of a release. `note`: what stands above the question about habits.
    """

    def of_period(words: Any) -> Any:
        if isinstance(words, dict):
            return {key: of_period(text) for key, text in words.items()}
        return words.format(every=every)

    def ask(name: str, **more: Any) -> Any:
        return asker(name, **{key: of_period(words) for key, words in _questions()[name].items()}, **more)

    def check(kind: str) -> None:
        if kind == "none" or not EVIDENCE[kind]:
            adds_up(() if kind == "none" else evidence_from_dicts([{"kind": kind}]))

    kind = ask("evidence", check=check)
    if kind == "none":
        return ()
    capped = [{"kind": kind, **{name: ask(f"{kind}.{name}") for name in EVIDENCE[kind]}}]
    if kind != "bounded_participation":
        return evidence_from_dicts(capped)

    def declared(habits: bool) -> tuple[Evidence, ...]:
        return evidence_from_dicts([*capped, *([{"kind": "independent_given_habits"}] if habits else [])])

    return declared(ask("habits", note=note, check=lambda habits: adds_up(declared(habits))))


def _key(keys: list[str], answer: str) -> str:
    if answer.isdecimal() and 1 <= int(answer) <= len(keys):
        return keys[int(answer) - 1]
    if answer.lower() in keys:
        return answer.lower()
    raise ArgumentError(f"Answer with a number from 1 to {len(keys)}; ? explains.")


def _yes(answer: str) -> bool:
    """Return whether the answer is yes."""
    if answer.lower() in ("y", "yes", "n", "no"):
        return answer.lower() in ("y", "yes")
    raise ArgumentError("Answer yes or no; ? explains.")


def _real_number(answer: str) -> float:
    """Return a finite number."""
    try:
        value = float(answer)
    except ValueError:
        raise ArgumentError("It must be a number, with a point before decimals; 1e-6 is a millionth.") from None
    if not -1e300 < value < 1e300:
        raise ArgumentError("It must be a finite number.")
    return value


def _whole(least: int) -> Callable[[str], int]:
    """Return the check for whole numbers of at least `least`."""

    def check(answer: str) -> int:
        text = answer.replace(",", "").replace("_", "")
        if not text.isdecimal() or len(text) > 15 or int(text) < least:
            raise ArgumentError(f"It must be a whole number of at least {least}.")
        return int(text)

    return check


def _at_least_zero(answer: str) -> float:
    """Return a number of at least 0."""
    value = _real_number(answer)
    if value < 0.0:
        raise ArgumentError("It must be at least 0.")
    return value


def _limit(answer: str) -> float | None:
    """Return an ε that is not 0; None for no answer."""
    value = _at_least_zero(answer) if answer else None
    if value == 0.0:
        raise ArgumentError("ε must be above 0: with 0 nothing could be published.")
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "yes": _yes,
    "probability": share,
    "epsilon": _at_least_zero,
    "limit": _limit,
    "whole": _whole(0),
    "several": _whole(1),
}


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
    name = stem_of(file) if given["dataset"] is None else dataset_name(given["dataset"])
    draft = Draft(file=file, whole=whole, place=place, keys=keys, domain=cells, time_zone=zone, dataset=name)
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
    firsts = [first]  # first days of the periods that the file spans
    while last is not None and firsts[-1] < last:
        firsts.append(written.period.span(firsts[-1])[1] + timedelta(1))
    later = {"later": last is not None, "spanned": len(firsts)}
    place.write_text(draft.text(answers | later), encoding="utf-8")
    exact = 1 if only_one(answers) else len(firsts) + 1
    most = exact if answers["noise"] is None else shared_by(answers, len(firsts))
    _print_next(screen, place, written.period, firsts, last, most)


def _print_next(
    screen: Screen, place: Path, period: PeriodTable, firsts: Sequence[date], last: date | None, most: int
) -> None:
    """Print what was written, and which commands come next, for no more periods than can be published."""
    only_one = most == 1
    first, every, file = firsts[0], period.every, shlex.quote(str(place))
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
        end = "up to the newest that is complete" if most >= len(firsts) else f"of the {most} that the budget allows"
        screen.say(f"And every {every} {end}, once it is clear what that adds up to:")
        screen.command(f"pkdp backfill {file} --from {first} --to {firsts[:most][-1]} --dry-run")


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
