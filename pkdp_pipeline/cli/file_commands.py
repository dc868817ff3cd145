"""The commands ``pkdp histogram``, ``count`` and ``sum FILE``: one release from a file, without Python or a job."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from pkdp_pipeline.cli.options import (
    AsJson,
    AtDelta,
    Command,
    Options,
    attacker_options,
    evidence_option,
    flag,
    mechanism_options,
    taking,
)
from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.columns import Bins, Calendar, named
from pkdp_pipeline.model.evidence import Evidence
from pkdp_pipeline.model.mechanisms import Count, GeometricNoise, Histogram, Mechanism, Sum

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.sources.csv_files import WholeFile
    from pkdp_pipeline.releases.release import Release

_EACH_ROW = "each-row"
_OF_FILES: Options = {
    "delimiter": flag(str | None, None, "CSV: the sign between two values; without it a comma.", "SIGN"),
    "encoding": flag(str | None, None, "CSV: the encoding, such as windows-1252; without it UTF-8.", "NAME"),
    "decimal": flag(str | None, None, "CSV: the decimal sign; without it a point.", ".|,"),
    "date_format": flag(str | None, None, "CSV: the form of dates, as %d.%m.%Y; without it 2026-01-31.", "FORMAT"),
    "types": flag(
        list[str] | None,
        None,
        "CSV: the kind of a column, as in age=number; without it text. Again for another.",
        "COLUMN=KIND",
        "--type",
    ),
    "sheet": flag(str | None, None, "Excel: the sheet, where there are several.", "NAME"),
    "null": flag(list[str] | None, None, "CSV: the text of a missing value; without it the empty one.", "TEXT"),
}
_OF_BOTH: Options = {
    "unit": flag(
        list[str],
        ...,
        f"The column that names the protected person (again for several), or {_EACH_ROW}.",
        "COLUMN",
    ),
    "where": flag(str | None, None, "The rows that count: a boolean column, or a query such as 'age > 60'.", "QUERY"),
    "missing_unit": flag(str, "error", "Rows that name nobody.", "error|drop"),
    "units": flag(
        str, "checked", "Names that differ only by spaces around them: refused, or different people.", "checked|exact"
    ),
    "label": flag(str | None, None, "Names the release in the ledger.", "TEXT"),
    "period": flag(str | None, None, "The period of the data, as in 2026-W03; needed with a ledger.", "PERIOD"),
}
_OF_HISTOGRAMS: Options = {
    "by": flag(list[str], ..., "The column whose values are the cells; again for several.", "COLUMN"),
    "bins": flag(
        list[str] | None,
        None,
        "A column in groups between public edges, as age=0,18,65, or of dates by week, month, quarter or year.",
        "COLUMN=EDGES",
    ),
    "domain": flag(
        list[str] | None, None, "A public cell, in its order; without any, those that reach k.", "TEXT", "--cell"
    ),
    "protects": flag(str, "presence", "Whether a person is there, or which cell she is in.", "presence|value"),
    "one_cell": flag(
        str, "error", "In which of her cells a person in several is counted.", "error|most_frequent|first|hash"
    ),
    "order_by": flag(list[str] | None, None, "Which row comes first, where one_cell is first.", "COLUMN"),
    "undeclared": flag(str, "error", "People whose cell is not declared.", "error|absent"),
}


_OF_SUMS: Options = _OF_HISTOGRAMS | {
    "by": flag(list[str] | None, None, "The column whose values are the cells; without it, one sum.", "COLUMN"),
    "domain": flag(list[str] | None, None, "A public cell, in its order; without any, those found.", "TEXT", "--cell"),
    "column": flag(str | None, None, "The column of whole numbers that is summed.", "COLUMN"),
    "rows": flag(str | None, None, "Instead of a column: a person adds the number of her rows.", "count"),
}
STEPS_OF_SUMS: Options = {
    "bounds": flag(str, ..., "The least and the most that a person adds to a cell, as 0,5.", "LEAST,MOST"),
    "noise": flag(float, ..., "Noise of this epsilon, for the most that one person adds."),
    "release_threshold": flag(int | None, None, "Published only when the noisy sum is at least this."),
    "cells_per_unit": flag(int, 1, "The most cells a person may be in: a hash draws that many of hers."),
}


def whole_pair(option: str, text: str, sign: str, form: str) -> tuple[int, int]:
    """Return two whole numbers that are typed with a sign between them; `form`: an example of it."""
    first, _, second = text.partition(sign)
    try:
        return int(first), int(second)
    except ValueError:
        raise ArgumentError(f"{option} must be two whole numbers, as in {option} {form}.") from None


def bounds_of(text: str) -> tuple[int, int]:
    """Return the bounds of a sum that are typed as 0,5."""
    return whole_pair("--bounds", text, ",", "0,5")


def sum_of(bounds: str, noise: float, *, cells_from_data: bool = False, **steps: Any) -> Sum:
    """Return the mechanism of these options."""
    mechanism = Sum(bounds_of(bounds), GeometricNoise(noise), **steps)
    return mechanism.of_found_cells() if cells_from_data else mechanism


def file_options(command: Command) -> Command:
    """Give a command options on how a file is read, as `keys`."""
    return taking("keys", _OF_FILES, _file_keys)(command)


def _file_keys(types: list[str] | None, **others: Any) -> dict[str, Any]:
    """Return the keys of a job's `source` that are given."""
    keys = {name: value for name, value in others.items() if value is not None}
    for typed in types or ():
        column, equals, kind = typed.rpartition("=")
        if not (column and equals):
            raise ArgumentError("--type must be a column and what it holds, as in --type age=number.")
        keys.setdefault("types", {})[column] = kind
    return keys


def _question_options(
    unit: list[str],
    by: list[str] | None = None,
    domain: list[str] | None = None,
    bins: list[str] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the options of `pkdp_pipeline.histogram`, `count` or `sum` that are given."""
    from pkdp_pipeline.model.columns import EACH_ROW

    options = {name: value for name, value in others.items() if value is not None}
    options["unit"] = EACH_ROW if unit == [_EACH_ROW] else unit
    if by:
        groups = groups_of(bins or [], by)
        options["by"] = [groups.get(column, column) for column in by]
    if domain:
        if not by or len(by) > 1:
            raise ArgumentError("--cell declares the cells of one column: name one with --by, or leave --cell out.")
        options["domain"] = domain
    return options


def _named(question_options: dict[str, Any]) -> set[str]:
    """Return the columns that a question names beside the unit's."""
    from pkdp_pipeline.model.predicate import from_query

    where = None if question_options.get("where") is None else from_query(question_options["where"])
    return {
        *named(question_options.get("by", ()))[0],
        *question_options.get("order_by", ()),
        *filter(None, [question_options.get("column")]),
        *(where.columns if where is not None else ()),
    }


def _publish(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Parquet, CSV or Excel file.", show_default=False)],
    question_options: dict[str, Any],
    mechanism: Mechanism,
    attacker: AttackerModel,
    keys: dict[str, Any],
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Record it: a SQLite file, or a postgresql:// address.")
    ] = None,
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="The data set whose releases a ledger checks together.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write the table there, with its certificate inside.")
    ] = None,
    evidence: tuple[Evidence, ...],
    delta: AtDelta = 1e-6,
    as_json: AsJson = False,
) -> None:
    from pkdp_pipeline.certificates.release_certificate import Target
    from pkdp_pipeline.jobs.sources.csv_files import WholeFile
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.ledger.reading import copied, is_begun
    from pkdp_pipeline.releases import accessor

    if (ledger is None) != (not dataset):
        raise ArgumentError("--ledger and --dataset belong together: the ledger holds releases about the same people.")
    if ledger is not None and "period" not in question_options:
        raise ArgumentError("--period is needed with --ledger: what the data are about, as in --period 2026-W03.")
    if evidence and ledger is None:
        raise ArgumentError("--evidence is about several releases, which a ledger adds up: give --ledger as well.")
    if out is not None and (
        out.suffix != ".parquet" or out.resolve() == file.resolve() or not out.absolute().parent.is_dir()
    ):
        raise ArgumentError("--out must be another file that ends in .parquet, in a folder that exists.")
    options = dict(question_options)
    by = options.pop("by", None)
    whole = _typed(WholeFile.of(file, **keys), keys, named(by or ())[1], options.get("column"))
    if "domain" in options and isinstance(by[0], str):
        options["domain"] = typed_cells("--cell", by[0], whole.columns.get(by[0], "text"), options["domain"])
    # Totals of groups are asked for by their columns alone.
    implied = ("totals", "cells_found")
    steps = {field.name: getattr(mechanism, field.name) for field in fields(mechanism) if field.name not in implied}
    options |= steps | {"attacker": attacker}
    if delta > Target().delta:  # somebody who states a larger δ is content with it
        options["target"] = Target(delta=delta)

    def release_with(opened: Ledger | None) -> Release:
        rows = whole.rows(
            _named(question_options), question_options["unit"] if isinstance(question_options["unit"], list) else ()
        )
        if isinstance(mechanism, Sum):
            return accessor.sum(rows, by=by, ledger=opened, **options)
        if by is None:
            return accessor.count(rows, ledger=opened, **options)
        return accessor.histogram(rows, by, ledger=opened, **options)

    terms: dict[str, Any] = {"dataset": dataset, "evidence": evidence or None}
    if ledger is not None and not is_begun(ledger):
        # A release that fails begins no ledger: it is tried on one in memory first.
        with copied(ledger, **terms) as trial:
            release_with(trial)
    with nullcontext() if ledger is None else Ledger.open(ledger, **terms) as opened:
        release = release_with(opened)
    if out is not None:
        release.to_parquet(out)
    if as_json:
        _print_json(release, delta, out)
        return
    from pkdp_pipeline.cli.job_views import print_release

    kept = [] if out is None else [f"The table and its certificate are in {out}."]
    if ledger is None:
        kept.append(
            "No ledger has recorded it. Another release about the same people adds to what is told of them: with "
            "--ledger, --dataset and --period a ledger keeps the sum, and refuses what does not add up."
        )
    print_release(release, delta, *kept)


def groups_of(entries: Sequence[str], by: Sequence[str]) -> dict[str, Bins]:
    """Return the groups of columns, as ``--bins`` writes them. Raises `ArgumentError` if one is malformed."""
    groups: dict[str, Bins] = {}
    for entry in entries:
        column, _, text = entry.rpartition("=")
        if column not in by or column in groups:
            raise ArgumentError("--bins must be a column of --by and its edges, once: --bins age=0,18,65.")
        groups[column] = Bins(column, edges_of(text))
    return groups


def edges_of(text: str) -> Any:
    """Return edges as they are typed: numbers with commas between them, or a part of the calendar."""
    if text in get_args(Calendar):
        return text
    try:
        return [float(edge) if "." in edge or "e" in edge else int(edge) for edge in text.split(",")]
    except ValueError:
        raise ArgumentError(
            f"the edges of groups must be numbers that rise, as in 0,18,65, or one of {', '.join(get_args(Calendar))}."
        ) from None


def kind_of_groups(groups: Bins, likely: str) -> str:
    """Return the kind under which a CSV file's grouped column is read, which seems to hold `likely` values."""
    usual, others = ("date", "timestamp") if isinstance(groups.edges, str) else ("number", "real")
    return likely if likely == others else usual


def _typed(whole: WholeFile, keys: Mapping[str, Any], groups: Mapping[str, Bins], summed: str | None) -> WholeFile:
    """Return a CSV file in which summed and grouped columns are numbers or dates, unless options say what they are."""
    from pkdp_pipeline.jobs.sources.csv_files import WholeFile
    from pkdp_pipeline.jobs.sources.files import likely_kind

    types = keys.get("types", {})
    kinds = {summed: "number"} if summed is not None and summed in whole.columns else {}
    if whole.table.format == "parquet" or not (groups.keys() | kinds.keys()) - types.keys():
        return whole
    texts, form = whole.first_texts() if groups else {}, keys.get("date_format")
    likely = {name: likely_kind(texts.get(name, []), form)[0] for name in groups}
    for name in (name for name, kind in likely.items() if kind == "text" and texts.get(name) and name not in types):
        raise ArgumentError(
            f"--bins groups numbers or dates, and column {name!r} has other texts: leave --bins out, and its values "
            "are the cells. Where such a text stands for a missing value, name it (--null NA); or say what the column "
            f"holds (--type {name}=number)."
        )
    kinds |= {name: kind_of_groups(entry, likely[name]) for name, entry in groups.items()}
    return WholeFile.of(Path(*whole.table.files), **{**keys, "types": kinds | types})


def typed_cells(option: str, column: str, kind: str, cells: list[str]) -> list[str] | list[int]:
    """Return declared cells as values of the kind that their column holds; `option` is what declares them.

    Raises `ArgumentError` if it holds neither text nor whole numbers, or a cell is none.
    """
    if kind == "text":
        return cells
    if kind != "number":
        raise ArgumentError(
            f"{option} declares texts and whole numbers, and column {column!r} holds others: leave it out."
        )
    try:
        return [int(cell) for cell in cells]
    except ValueError:
        raise ArgumentError(f"{option} must be a whole number, as column {column!r} holds.") from None


def _print_json(release: Any, delta: float, out: Path | None) -> None:
    from pkdp_pipeline.model.keys import canonical_key, json_key

    table, epsilon = release.table, release.certificate.epsilon(delta)
    columns = {name: [json_key(canonical_key(value)) for value in table[name].array] for name in table}
    document = {
        "release": release.id,
        "replayed": release.replayed,
        "delta": delta,
        "epsilon": epsilon if epsilon < math.inf else None,
        "sentence": release.certificate.sentence(delta),
        "columns": columns,
        "certificate": json.loads(release.certificate.to_json()),
        "file": None if out is None else str(out),
    }
    typer.echo(json.dumps(document, ensure_ascii=False, indent=1))


def file_commands() -> dict[str, Callable[..., None]]:
    """Return the commands ``histogram``, ``count`` and ``sum``."""
    kinds: dict[type[Any], tuple[Options, str]] = {
        Histogram: (
            _OF_HISTOGRAMS,
            "Publish counts per cell of a Parquet, CSV or Excel file, each with its guarantee.",
        ),
        Count: ({}, "Publish how many people of a Parquet, CSV or Excel file satisfy a predicate."),
        Sum: (_OF_SUMS, "Publish sums of whole numbers of a Parquet, CSV or Excel file, with noise."),
    }
    commands: dict[str, Callable[..., None]] = {}
    for kind, (own, words) in kinds.items():
        command = taking("question_options", _OF_BOTH | own, _question_options)(file_options(evidence_option(_publish)))
        stepped = taking("mechanism", STEPS_OF_SUMS, sum_of) if kind is Sum else mechanism_options(kind)
        command = stepped(attacker_options(kind)(command))
        command.__doc__ = words
        commands[kind.__name__.lower()] = command
    return commands
