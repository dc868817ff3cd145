"""Init text: the text of a first job file, from what ``pkdp init`` is told; every line of it runs as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkdp_pipeline.errors import ArgumentError, NotCertifiableError
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import Evidence, evidence_to_dicts
from pkdp_pipeline.model.spelling import exactly

if TYPE_CHECKING:
    from pkdp_pipeline.jobs.sources.whole_files import WholeFile

_DELTA = 1e-6
ONE_NUMBER = "one number without noise takes more than p_max: name a column with --by, or plan it with pkdp plan count"


def stem_of(file: Path) -> str:
    """Return the name of a file without its endings."""
    return file.name.partition(".")[0] or "job"


def only_one(answers: Mapping[str, Any]) -> bool:
    """Return whether no second period can be published, since nothing says how exact ones depend on each other."""
    return "noise" not in answers and {one.key for one in answers["evidence"]} <= {"bounded_participation"}


def job_text(file: Path, keys: Mapping[str, Any], whole: WholeFile, place: Path, answers: Mapping[str, Any]) -> str:
    """Return the text of the job file."""
    from pkdp_pipeline.display.toml_text import toml_text

    name, period, by = stem_of(file), answers["period"], answers["by"]
    source = _seen_from(file, place)
    csv = {key: value for key, value in keys.items() if key != "types"}
    table = {"files": source, **csv, **({"types": keys["types"]} if "types" in keys else {})}
    place_of_days = answers["time_zone"] or ("UTC" if whole.columns[period] == "instant" else None)
    zone = "" if place_of_days is None else f", time_zone = {toml_text(place_of_days)}"
    every = "" if answers["every"] == "day" else f', every = "{answers["every"]}"'
    release = re.sub(r"[^A-Za-z0-9_-]", "_", f"people_by_{'_'.join(by)}" if by else "people")
    lines = [
        f"# Releases about each {answers['every']} of {file.name}.",
        "",
        f"dataset = {toml_text(name)}",
        f"source = {toml_text(source if len(table) == 1 else table)}",
        f"period = {{ column = {toml_text(period)}{every}{zone} }}",
        f"unit = {toml_text(answers['unit'] if len(answers['unit']) > 1 else answers['unit'][0])}",
        'missing_unit = "drop"             # rows that name nobody are not counted; "error": they stop the job',
        *(
            ['one_cell = "hash"                 # somebody in several cells counts in one; "error": stops the job']
            if by
            else []
        ),
        f"ledger = {toml_text(f'private/{name}.sqlite')}",
        *_assumed(answers),
        *_about_lines(answers["about"]),
        *_checked(answers),
        "",
        "[[release]]",
        f"name = {toml_text(release)}",
        *([f"by = {toml_text(by if len(by) > 1 else by[0])}"] if by else []),
        *_mechanism(answers, bool(by)),
        "",
        "[output]",
        f"directory = {toml_text(f'public/{name}')}",
    ]
    return "\n".join(lines) + "\n"


def _assumed(answers: Mapping[str, Any]) -> list[str]:
    """Return what is declared: budget, evidence, and where there is no noise the attacker."""
    from pkdp_pipeline.display.toml_text import toml_text

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
            f"evidence = {toml_text(declared if len(declared) > 1 else declared[0])}   # argued; see attacker.md"
        )
    elif "noise" not in answers:
        lines.append(f"# evidence = …   # none can be argued: {once}")
    attacker: AttackerModel = answers["attacker"]
    if attacker.p_max is None:
        return lines
    lines += ["", "[attacker]   # argued, never computed from these data", f"p_max = {attacker.p_max!r}"]
    return lines + ([f"known = {attacker.known}", f'influence = "{attacker.influence}"'] if attacker.known else [])


def _about_lines(about: Mapping[str, str]) -> list[str]:
    from pkdp_pipeline.display.toml_text import toml_text

    if not about:
        return ["", "# [about]   # what reports print: title, publisher, contact, argued_by, argued_on, argument"]
    return ["", "[about]   # what reports print", *(f"{name} = {toml_text(text)}" for name, text in about.items())]


def _checked(answers: Mapping[str, Any]) -> list[str]:
    """Return the check that a period is complete; not yet active where no period of the file would pass it."""
    from pkdp_pipeline.display.toml_text import toml_text

    every, mark = answers["every"], "" if answers["later"] else "# "
    fresh = f"{mark}fresh = {{ column = {toml_text(answers['period'])}, days = 1 }}"
    late = f"a {every} is published only when the file has rows of a later day, never from a late file"
    alone = f"take both # away as soon as the file has rows after its first {every}; then {late}"
    return ["", f"{mark}[checks]", f"{fresh}   # {late if answers['later'] else alone}"]


def _mechanism(answers: Mapping[str, Any], table: bool) -> list[str]:
    """Return the lines of the mechanism: noise, and where cells are found what hides them; or the smallest k."""
    from pkdp_pipeline.display.toml_text import toml_text
    from pkdp_pipeline.model.mechanisms import GeometricNoise, Histogram
    from pkdp_pipeline.planning import smallest_k, smallest_release_threshold

    cells = [f"domain = {toml_text(answers['domain'])}"] if answers["domain"] else []
    cells += ['undeclared = "absent"             # people in other cells are not counted'] if cells else []
    if "noise" not in answers:
        if not table:
            raise ArgumentError(f"{ONE_NUMBER}, or use --noise.")
        epsilon = min(1.0, answers["budget"] or 1.0)
        try:
            k = smallest_k(answers["attacker"], epsilon=epsilon, delta=_DELTA)
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
    noise = GeometricNoise(answers["noise"])
    lines = [*cells, f"noise = {{ epsilon = {noise.epsilon!r} }}"]
    if not table or cells:
        return lines
    threshold = smallest_release_threshold(Histogram(k=1, noise=noise), epsilon=noise.epsilon, delta=_DELTA)
    return [*lines, f"release_threshold = {threshold}   # hides the names of cells: the smallest with δ = 1e-6"]


def _seen_from(file: Path, place: Path) -> str:
    return Path(os.path.relpath(file.resolve(), place.resolve().parent)).as_posix()
