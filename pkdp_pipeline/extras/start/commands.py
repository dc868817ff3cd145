"""The commands ``pkdp demo``, which publishes invented data of a clinic for a quarter, and ``pkdp init FILE``."""

from __future__ import annotations

import csv
import datetime
import random
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from pkdp_pipeline.cli.file_commands import file_options
from pkdp_pipeline.cli.job_commands import backfill
from pkdp_pipeline.cli.options import of_share
from pkdp_pipeline.cli.screen import option_names
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.period import Every
from pkdp_pipeline.plugins import hook, view

_FIRST = datetime.date(2026, 1, 5)
_WEEKS = 13
_PATIENTS = {"Harbour": 900, "Mill Hill": 700, "Old Town": 1200, "Ferry End": 200}
"""How many patients each district has; about one in eight of them comes in a week."""

_JOB = '''\
# How many patients came to a walk-in clinic, by district, week by week. The data are invented.
#
#   pkdp run clinic.toml --date {next_week}     publish the week that is left
#   pkdp ledger total ledger.sqlite         what all weeks add up to

dataset = "clinic"
source = "visits.csv"
period = {{ column = "date", every = "week" }}
unit = "patient"                 # who is protected: a patient, not a visit
missing_unit = "drop"            # visits of nobody known are not counted
one_cell = "hash"                # a patient who gave two districts counts in one of them
ledger = "ledger.sqlite"

# Each week keeps its own promise: the 20 % below hold even for somebody who is told of all other weeks whether the
# patient came. Patients who come every week are not meant.
evidence = {{ kind = "one_day_protected" }}
budget = {{ epsilon = 1.0, delta = 1e-6, part = "partial_knowledge" }}

[attacker]
# Told that a patient either came this week, from a given district, or did not come, nobody outside is more than 20 %
# sure that she came; and nobody outside knows of more than 20 who did. Why: argument, below.
p_max = 0.2
known = 20
influence = "active"

[about]                          # public words, which reports print
title = "Patients of a walk-in clinic, by district"
publisher = "Walk-in clinic (invented)"
contact = "data@clinic.example"
argued_by = "Head of the practice (invented)"
argued_on = 2025-12-01           # before anybody looked at a count
argument = """
About one patient in eight comes in a week, says the activity report of the region. The strongest clue short of knowing,
a chronic illness that neighbours know of, makes the odds of coming 1.7 times as large, said three nurses, asked
separately: 19.5 %, rounded up to 20 %. An outsider who watches the door, or hears from people in the waiting room,
could name at most 20 patients of a week from one district: the largest answer of ten people who live or work opposite.
Patients who come every week are few, and are among these 20.
"""

[[release]]
name = "patients_by_district"
by = "district"
k = 55                           # follows from the attacker: pkdp plan histogram

[output]
directory = "public"
'''


def demo(
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A new or an empty folder; without it, a temporary one."),
    ] = None,
) -> None:
    """Publish invented data of a clinic for a quarter, and open the report: everything to see in a minute."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ArgumentError("--out must be a new or an empty folder: nothing of yours is written over.")
    view("plot.needs")()
    folder = Path(tempfile.mkdtemp(prefix="pkdp-demo-")) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    job, page = folder / "clinic.toml", folder / "report.html"
    after = _FIRST + datetime.timedelta(weeks=_WEEKS)
    _write_visits(folder / "visits.csv")
    job.write_text(_JOB.format(next_week=after), encoding="utf-8")
    backfill(job, first=_FIRST.isoformat(), last=(after - datetime.timedelta(days=1)).isoformat())
    hook("commands", "report")(job, out=page)
    typer.echo(
        f"\n{folder / 'visits.csv'} has the invented visits, {job} says what is published and against whom,\n"
        f"{folder / 'public'} is what everybody may see. One week is left for you to publish:\n"
        f"pkdp run {job} --date {after}"
    )
    if sys.stdout.isatty():
        typer.launch(str(page))


def _write_visits(path: Path) -> None:
    """Write visits as they are recorded: some lack the patient, and a few patients gave another district."""
    draw = random.Random(2026)
    patients = [district for district, people in _PATIENTS.items() for _ in range(people)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["patient", "district", "date"])
        for day in (_FIRST + datetime.timedelta(days=days) for days in range(7 * (_WEEKS + 1))):
            for _ in range(draw.randint(50, 70)):
                number = draw.randrange(len(patients))
                known, moved = draw.random() < 0.98, draw.random() < 0.02
                district = draw.choice(list(_PATIENTS)) if moved else patients[number]
                table.writerow([f"{number:04}" if known else "", district, day])


_EVERY = "|".join(get_args(Every))


@file_options
def init(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet, CSV or Excel file.", show_default=False)],
    keys: dict[str, Any],
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The data set; without it the file's name is its name.")
    ] = None,
    unit: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="The column that names the protected person.")
    ] = None,
    period: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of each row's date.")] = None,
    every: Annotated[str | None, typer.Option(metavar=_EVERY, help="The period of one release.")] = None,
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="The cells; without it, one number.")] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=EDGES",
            help="A column in groups between public edges, as age=0,18,65 or born=year.",
        ),
    ] = None,
    noise: Annotated[float | None, typer.Option(help="The epsilon of noise: a promise against anybody.")] = None,
    cells_per_unit: Annotated[
        int | None, typer.Option(metavar="N", help="With noise: in how many cells a person counts, at most.")
    ] = None,
    p_max: Annotated[float | None, of_share("Without noise: how sure the attacker can be, at most, of a cell.")] = None,
    known: Annotated[int | None, typer.Option(help="How many people in the table the attacker knows.")] = None,
    influence: Annotated[
        str | None,
        typer.Option(metavar="passive|active", help="Whether people are known for being there: active, usual."),
    ] = None,
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Without noise: argued that people's records do not depend on each other."),
    ] = False,
    evidence: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="How a person's periods depend on each other, as for pkdp plan; or none."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Where a day begins and ends; without it the machine's own zone.")
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
    """Write a first job file for a Parquet, CSV or Excel file: looks at columns and dates, and asks."""
    from pkdp_pipeline.extras.start.init_answers import write_job

    given: dict[str, Any] = {"unit": unit, "period": period, "every": every, "by": by, "noise": noise}
    given |= {"p_max": p_max, "known": known, "influence": influence, "independent": independent or None}
    given |= {"cells_per_unit": cells_per_unit, "evidence": evidence, "budget": budget, "about": about}
    given |= {"bins": bins, "domain": domain, "time_zone": time_zone, "job": job, "force": force, "dataset": dataset}
    write_job(file, keys, given, option_names(init))
