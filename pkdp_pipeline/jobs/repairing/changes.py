"""Changes: what may be changed of a job's releases, each by as little as will do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pkdp_pipeline.jobs.release_table import ReleaseTable
from pkdp_pipeline.jobs.repairing.bench import Bench, Edits
from pkdp_pipeline.jobs.repairing.edits import Edit
from pkdp_pipeline.jobs.repairing.grids import EPSILONS, first_below
from pkdp_pipeline.jobs.repairs import cross_tabulated

__all__ = ["changes", "cross_tabulation", "fewer_releases", "larger_k", "larger_k_complement"]

_MOST = 1_000_000
_LARGEST = first_below(EPSILONS, 10.001)
"""No larger ε is tried: it would be no protection to speak of."""
_FAR = 800.0
"""In units of the noise's scale: a release threshold at which appearing tells nothing that a float can hold."""

Family = Callable[[Bench, tuple[int, ...]], Edits | None]


def changes(bench: Bench, refused: int | None) -> Iterator[Edits]:
    """Yield changes of how the releases are published, each the least of its kind; all were tried.

    Parameters
    ----------
    bench : Bench
    refused : int or None
        Which release is refused; None where it is all of them together.
    """
    tables = bench.content["release"]
    families: tuple[tuple[Family, Callable[[Mapping[str, Any]], bool]], ...] = (
        (larger_k, _may_have_k),
        (larger_k_complement, lambda table: "k_complement" in table),
        (_release_threshold, lambda table: "noise" in table and "k" in table),
        (_without_k, lambda table: "noise" in table and "k" in table and _needs_no_k(table)),
        (_noise, lambda table: "noise" in table or "k" not in table),
        (_noise_and_threshold, lambda table: "k" in table),
        (_noise_without_k, lambda table: _needs_no_k(table) and bool({"k", "k_complement"} & {*table})),
        (_value, lambda table: _has_only_value(bench, table) and "p_max_between" in _attacker(bench, table)),
        (_total, lambda table: _may_be_total(bench, table)),
        (_value_with_noise, lambda table: _has_only_value(bench, table) and _needs_no_k(table)),
    )
    for family, suits in families:
        fitting = [number for number, table in enumerate(tables) if suits(table)]
        yield from _in_few(bench, family, fitting, refused)
    if len({"k" in table for table in tables}) > 1:
        # Noise for all of them, each in the way that suits it.
        edits = _noise_and_threshold(bench, tuple(range(len(tables))))
        if edits is not None:
            yield edits
    yield from cross_tabulation(bench)


def cross_tabulation(bench: Bench) -> Iterator[Edits]:
    """Yield one histogram from which all releases follow, where there is such a thing; not tried."""
    table = cross_tabulated(bench.job) if len(bench.job.release) > 1 else None
    if table is not None:
        yield (Edit(path=("release",), value=[_plain(table)]),)


def fewer_releases(bench: Bench) -> Iterator[Edits]:
    """Yield what can be left out so that the others may be published: one release, or all but one."""
    tables = bench.content["release"]
    numbers = range(len(tables))
    for rest in ([[number] for number in numbers], [[one for one in numbers if one != kept] for kept in numbers]):
        found = [
            edits
            for gone in rest
            if gone and len(gone) < len(tables)
            for edits in [tuple(Edit(path=("release", number), value=None) for number in gone)]
            if bench.fits(edits)
        ]
        yield from found
        if found:
            return


def larger_k(bench: Bench, numbers: tuple[int, ...], more: Edits = ()) -> Edits | None:
    """Return the smallest k that these releases can have in common, where theirs is smaller; with more edits."""
    return _larger(bench, numbers, "k", more)


def larger_k_complement(bench: Bench, numbers: tuple[int, ...], more: Edits = ()) -> Edits | None:
    """Return the smallest k_complement that counts which have one can have in common; with more edits."""
    return _larger(bench, numbers, "k_complement", more)


def _larger(bench: Bench, numbers: tuple[int, ...], key: str, more: Edits) -> Edits | None:
    held = [bench.content["release"][number].get(key) for number in numbers]

    def make(k: int) -> Edits:
        return more + tuple(
            Edit(path=("release", number, key), value=k)
            for number, old in zip(numbers, held, strict=True)
            if old is None or old < k
        )

    start = 1 if None in held else min(held) + 1
    return bench.least(make, start, _MOST)


def _in_few(bench: Bench, family: Family, fitting: Sequence[int], refused: int | None) -> Iterator[Edits]:
    """Yield what one release alone can be changed to; where none can, what all that are of this kind can."""
    found = False
    for number in sorted(fitting, key=lambda number: number != refused):
        edits = family(bench, (number,))
        if edits is not None:
            found = True
            yield edits
    if not found and len(fitting) > 1 and (edits := family(bench, tuple(fitting))) is not None:
        yield edits


def _may_have_k(table: Mapping[str, Any]) -> bool:
    return "noise" not in table or "k" in table


def _needs_no_k(table: Mapping[str, Any]) -> bool:
    return "by" not in table or "domain" in table


def _release_threshold(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    gaps = [_gap(bench.content["release"][number]) for number in numbers]
    return bench.least(lambda gap: _thresholds(bench, numbers, gap), min(gaps) + 1, _MOST)


def _without_k(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    edits = tuple(Edit(path=("release", number, "k"), value=None) for number in numbers)
    return edits if bench.fits(edits) else None


def _noise(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    """More noise, or some where there is none; thresholds stay as they are."""
    return _least_noise(bench, numbers, lambda epsilon: _noises(bench, numbers, epsilon))


def _noise_without_k(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    gone = tuple(
        Edit(path=("release", number, "k"), value=None) for number in numbers if "k" in bench.content["release"][number]
    )
    return _least_noise(bench, numbers, lambda epsilon: gone + _noises(bench, numbers, epsilon))


def _noise_and_threshold(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    """The largest ε there is with thresholds as high as one likes, and then the lowest thresholds for it."""

    def far(epsilon: float) -> Edits:
        return _noises(bench, numbers, epsilon) + _thresholds(bench, numbers, math.ceil(_FAR / epsilon))

    found = _least_noise(bench, numbers, far, final=False)
    if found is None:
        return None
    noises = tuple(edit for edit in found if edit.path[2] != "release_threshold")
    gaps = [_gap(table) for table in (bench.content["release"][number] for number in numbers) if "k" in table]
    return bench.least(lambda gap: noises + _thresholds(bench, numbers, gap), min(gaps) + 1, 100_000_000)


def _value(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    """Protect which cell a person is in, where who is present is known; with a larger k where it takes one."""
    edits = _values(numbers)
    return edits if bench.fits(edits) else larger_k(bench, numbers, edits)


def _total(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    """Publish the exact number of people as what is known of them anyway, which promises nothing about presence."""
    edits = _values(numbers)
    return edits if bench.fits(edits) else None


def _value_with_noise(bench: Bench, numbers: tuple[int, ...]) -> Edits | None:
    gone = tuple(
        Edit(path=("release", number, "k"), value=None) for number in numbers if "k" in bench.content["release"][number]
    )
    return _least_noise(bench, numbers, lambda epsilon: _values(numbers) + gone + _noises(bench, numbers, epsilon))


def _values(numbers: tuple[int, ...]) -> Edits:
    return tuple(Edit(path=("release", number, "protects"), value="value") for number in numbers)


def _has_only_value(bench: Bench, table: Mapping[str, Any]) -> bool:
    """Return whether a histogram protects presence, and what is known besides leaves only the value to protect."""
    if "by" not in table or table.get("protects") == "value":
        return False
    leakage = bench.job.attacker_of(_release(bench, table)).leakage
    return any(not one.is_private and not one.is_shared("presence") for one in leakage)


def _may_be_total(bench: Bench, table: Mapping[str, Any]) -> bool:
    release = _release(bench, table)
    counts_all = release.kind == "exact count" and release.where is None
    return counts_all and bench.job.attacker_of(release).total_is_known


def _release(bench: Bench, table: Mapping[str, Any]) -> ReleaseTable:
    return next(release for release in bench.job.release if release.name == table["name"])


def _attacker(bench: Bench, table: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict(table.get("attacker") or bench.content.get("attacker") or {})


def _least_noise(
    bench: Bench, numbers: tuple[int, ...], make: Callable[[float], Edits], *, final: bool = True
) -> Edits | None:
    """Return the change for the largest ε of the grid, below those that are written, that is good."""
    held = [bench.content["release"][number].get("noise") for number in numbers]
    top = _LARGEST
    if all(held):
        top = first_below(EPSILONS, max(float(noise["epsilon"]) for noise in held if noise is not None))
    return bench.least(lambda step: make(EPSILONS[top - step]), 0, top, final=final)


def _noises(bench: Bench, numbers: tuple[int, ...], epsilon: float) -> Edits:
    edits: list[Edit] = []
    for number in numbers:
        table = bench.content["release"][number]
        if "noise" not in table:
            edits.append(Edit(path=("release", number, "noise"), value={"epsilon": epsilon}))
        elif table["noise"]["epsilon"] > epsilon:
            edits.append(Edit(path=("release", number, "noise", "epsilon"), value=epsilon))
        if "k_complement" in table:
            # It looks at the exact count, so that noise has no worst case beside it.
            edits.append(Edit(path=("release", number, "k_complement"), value=None))
    return tuple(edits)


def _thresholds(bench: Bench, numbers: tuple[int, ...], gap: int) -> Edits:
    """Return release thresholds that are at least `gap` above k, where there is one."""
    tables = [(number, bench.content["release"][number]) for number in numbers]
    return tuple(
        Edit(path=("release", number, "release_threshold"), value=table["k"] + gap)
        for number, table in tables
        if "k" in table and _gap(table) < gap
    )


def _gap(table: Mapping[str, Any]) -> int:
    """Return how far a release threshold is above k; below every one where there is none."""
    return int(table["release_threshold"] - table["k"]) if "release_threshold" in table else -1


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as TOML has it, with lists only."""
    return {key: _listed(value) for key, value in table.items()}


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(one) for key, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, list | tuple) else value
