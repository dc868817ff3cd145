"""The command ``pkdp init FILE``: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from pkdp_pipeline.cli.documents import option_names
from pkdp_pipeline.cli.file_commands import file_options
from pkdp_pipeline.cli.options import of_share
from pkdp_pipeline.model.period import Every

_EVERY = "|".join(get_args(Every))


@file_options
def init(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet, CSV or Excel file.", show_default=False)],
    keys: dict[str, Any],
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
    given |= {"bins": bins, "domain": domain, "time_zone": time_zone, "job": job, "force": force}
    write_job(file, keys, given, option_names(init))
