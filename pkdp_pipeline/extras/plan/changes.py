"""Changes: what may be changed of a refused job, each by as little as will do; and what would have to be argued."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pkdp_pipeline.errors import BudgetExceededError, PkdpError
from pkdp_pipeline.extras.plan.edits import Edit, Edits, EditSearch, value_at, words_of
from pkdp_pipeline.jobs.job import Job
from pkdp_pipeline.jobs.tables import ReleaseTable
from pkdp_pipeline.model.attacker import AttackerModel
from pkdp_pipeline.model.evidence import DisjointUnits, IndependentGivenHabits, OncePerUnit, OneDayProtected

EPSILONS = tuple(float(f"{digits}e{power - 2}") for power in range(-4, 4) for digits in range(100, 1000))
"""From 0.0001 to 9990, three digits each, so that people can read, argue and write them."""

_SHARES = tuple(number / 1000 for number in range(1, 1000))
_MAX_EPSILON_INDEX = bisect_right(EPSILONS, 10.0) - 1
"""No larger ε is tried where there is no noise: it would be no protection to speak of."""

_MAX_K = 1_000_000
_AMPLE_GAP = 800.0
"""In units of the noise's scale: a release threshold at which appearing tells nothing that a float can hold."""

CLAIMS = (OneDayProtected(), IndependentGivenHabits(), OncePerUnit(), DisjointUnits())
"""The evidence that is tried as if it were true."""

_EXAMPLES = {"p_max": (0.5, 0.1), "p_max_between": (0.75,), "p_min": (0.5,)}
"""Where a threshold has to grow in any case, the assumptions for which its size is told."""

_CARRIES_OVER = {"p_max", "unknown", "unknown_max", "known", "influence"}
"""The assumptions about cells that hold for smaller ones: those within a cell are less likely than the cell."""

Family = Callable[[EditSearch, tuple[int, ...]], Edits | None]


def changes(search: EditSearch, refused: int | None) -> Iterator[Edits]:
    """Yield changes of how the releases are published, each the least of its kind.

    `refused`: the position of the release that is refused; None where it is all of them together.
    """
    tables = search.content["release"]

    def numbers_of(suits: Callable[[Mapping[str, Any]], bool]) -> list[int]:
        return [number for number, table in enumerate(tables) if suits(table)]

    with_k = numbers_of(lambda table: "k" in table)
    without = numbers_of(
        lambda table: ("by" not in table or "domain" in table) and bool({"k", "k_complement"} & {*table})
    )
    families: tuple[tuple[Family, list[int], Sequence[int]], ...] = (
        (_larger("k"), fitting := numbers_of(lambda table: "noise" not in table or "k" in table), fitting),
        (_larger("k_complement"), fitting := numbers_of(lambda table: "k_complement" in table), fitting),
        (_higher_threshold, fitting := numbers_of(lambda table: "noise" in table and "k" in table), fitting),
        (_more_noise, fitting := numbers_of(lambda table: "noise" in table or "k" not in table), fitting),
        (_noise_and_threshold, with_k, range(len(tables))),  # noise for all of them, each in the way that suits it
        (_noise_without_k, without, without),
    )
    for family, fitting, together in families:
        candidates = [family(search, (number,)) for number in sorted(fitting, key=lambda number: number != refused)]
        if fitting and len(together) > 1 and not any(candidates):
            candidates.append(family(search, tuple(together)))
        yield from filter(None, candidates)
    if (table := _cross_tabulated(search.job)) is not None:
        first = next(number for number, entry in enumerate(tables) if "by" in entry)
        gone = tuple(Edit(("release", number), None) for number in range(len(tables)) if number != first)

        def crossed(k: int) -> Edits:
            wanted = {**table, "k": k}.items()
            return (
                tuple(Edit(("release", first, key), new) for key, new in wanted if tables[first].get(key) != new) + gone
            )

        if (edits := search.least(crossed, table["k"], _MAX_K)) is not None:
            yield edits


def fewer_releases(search: EditSearch) -> Iterator[Edits]:
    """Yield which releases can be left out so that the others may be published."""
    numbers = range(len(search.content["release"]))
    yield from ((Edit(("release", number), None),) for number in numbers if len(numbers) > 1)


def questions(search: EditSearch, refused: int | None, error: PkdpError | None) -> Iterator[tuple[Edits, str, str]]:
    """Yield assumptions and decisions with which the job would run, in words, and what has to be true for them.

    `refused`: see `changes`. `error`: the refusal; None where a target is not reached.
    """
    for number in range(len(search.content["release"])) if refused is None else (refused,):
        for edits in _certainty(search, number):
            yield edits, *_to_argue(search, number, edits)
    if error is not None and not search.evidence:
        numbers = tuple(n for n, table in enumerate(search.content["release"]) if "k" in table and "noise" not in table)
        for evidence in CLAIMS:
            declared = (Edit(("evidence",), {"kind": evidence.key}),)
            edits_or_none = declared if search.fits(declared) else numbers and _larger("k", declared)(search, numbers)
            if edits_or_none:
                more = f", and {words_of(search.content, edits_or_none[1:])}" if edits_or_none[1:] else ""
                yield edits_or_none, f'evidence = {{ kind = "{evidence.key}" }}{more}', evidence.declares
    if isinstance(error, BudgetExceededError):
        for edits in _larger_budgets(search):
            yield edits, "", "This much may be told about a person."


def _larger(key: str, more: Edits = ()) -> Family:
    """Return the family of the smallest k, or k_complement, that releases can have in common; with more edits."""

    def family(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
        current = [int(search.content["release"][number].get(key, 0)) for number in numbers]

        def make(k: int) -> Edits:
            return more + tuple(
                Edit(("release", number, key), k) for number, old in zip(numbers, current, strict=True) if old < k
            )

        return search.least(make, min(current) + 1, _MAX_K)

    return family


def _higher_threshold(search: EditSearch, numbers: tuple[int, ...], more: Edits = ()) -> Edits | None:
    tables = [search.content["release"][number] for number in numbers]
    gaps = [_gap(table) for table in tables if "k" in table]
    return search.least(lambda gap: more + _thresholds(search, numbers, gap), min(gaps) + 1, 100 * _MAX_K)


def _more_noise(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    """More noise, or some where there is none; thresholds stay as they are."""
    return _least_noise(search, numbers, lambda epsilon: _noises(search, numbers, epsilon))


def _noise_without_k(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    gone = tuple(Edit(("release", n, "k"), None) for n in numbers if "k" in search.content["release"][n])
    return _least_noise(search, numbers, lambda epsilon: gone + _noises(search, numbers, epsilon))


def _noise_and_threshold(search: EditSearch, numbers: tuple[int, ...]) -> Edits | None:
    """The largest ε there is with thresholds as high as one likes, and then the lowest thresholds for it."""

    def with_ample_thresholds(epsilon: float) -> Edits:
        return _noises(search, numbers, epsilon) + _thresholds(search, numbers, math.ceil(_AMPLE_GAP / epsilon))

    edits = _least_noise(search, numbers, with_ample_thresholds)
    if edits is None:
        return None
    return _higher_threshold(search, numbers, tuple(edit for edit in edits if edit.path[2] != "release_threshold"))


def _least_noise(search: EditSearch, numbers: tuple[int, ...], make: Callable[[float], Edits]) -> Edits | None:
    """Return the change for the largest ε of the grid, not above those that are written, that is good."""
    noises = [search.content["release"][number].get("noise") for number in numbers]
    top = bisect_left(EPSILONS, max(noise["epsilon"] for noise in noises)) if all(noises) else _MAX_EPSILON_INDEX
    top = min(top, len(EPSILONS) - 1)
    return search.least(lambda step: make(EPSILONS[top - step]), 0, top)


def _noises(search: EditSearch, numbers: tuple[int, ...], epsilon: float) -> Edits:
    edits: list[Edit] = []
    for number in numbers:
        table = search.content["release"][number]
        if "noise" not in table:
            edits.append(Edit(("release", number, "noise"), {"epsilon": epsilon}))
        elif table["noise"]["epsilon"] > epsilon:
            edits.append(Edit(("release", number, "noise", "epsilon"), epsilon))
        if "k_complement" in table:
            # It looks at the exact count, so that noise has no worst case beside it.
            edits.append(Edit(("release", number, "k_complement"), None))
    return tuple(edits)


def _thresholds(search: EditSearch, numbers: tuple[int, ...], gap: int) -> Edits:
    """Return release thresholds that are at least `gap` above k, where there is one."""
    tables = [(number, search.content["release"][number]) for number in numbers]
    return tuple(
        Edit(("release", number, "release_threshold"), table["k"] + gap)
        for number, table in tables
        if "k" in table and _gap(table) < gap
    )


def _gap(table: Mapping[str, Any]) -> int:
    """Return how far a release threshold is above k; below every one where there is none."""
    return int(table["release_threshold"] - table["k"]) if "release_threshold" in table else -1


def _cross_tabulated(job: Job) -> dict[str, Any] | None:
    """Return the keys of one histogram from which all releases follow; None where its guarantee could not be theirs."""
    histograms = [release for release in job.release if release.by is not None]
    if (
        len(job.release) < 2
        or not histograms
        or any(release.noise or job.kind(release) == "total" for release in job.release)
    ):
        return None
    first, assumed = histograms[0], job.attacker_of(histograms[0]).to_dict()
    # A count of the people in a histogram is the sum of its cells; one of other people is not.
    same_people = all(release.where == first.where for release in job.release)
    same_rules = all(_rules(job, release) == _rules(job, first) for release in histograms)
    default = AttackerModel().to_dict()
    carries_over = all(name in _CARRIES_OVER or value == default.get(name) for name, value in assumed.items())
    # People outside one of the domains would be absent from every cell.
    if not same_people or not same_rules or not carries_over or first.undeclared == "absent":
        return None
    if any(release.k is None for release in histograms):
        return None
    by = list(dict.fromkeys(column for release in histograms for column in release.by or ()))
    names = list(dict.fromkeys(release.name for release in histograms))
    words = takewhile(lambda same: len(set(same)) == 1, zip(*(name.split("_") for name in names), strict=False))
    start = "".join(f"{word}_" for word, *_ in words) if len(names) > 1 else ""  # a_by_b and a_by_c: a_by_b_and_c
    name = (start + "_and_".join(name.removeprefix(start) for name in names))[:100]
    table: dict[str, Any] = {
        "name": name,
        "by": by if len(by) > 1 else by[0],
        "k": max(release.k or 0 for release in histograms),
    }
    if all(release.domain is None for release in histograms):
        return table
    domain: dict[str, Any] = {}
    for release in histograms:
        if release.domain is None or (len(release.by or ()) > 1 and not isinstance(release.domain, Mapping)):
            return None
        cells = release.domain if isinstance(release.domain, Mapping) else {(release.by or ())[0]: release.domain}
        if any(domain.setdefault(column, values) != values for column, values in cells.items()):
            return None
    return table | {"domain": domain}


def _rules(job: Job, release: ReleaseTable) -> tuple[object, ...]:
    one_cell, order_by = release.one_cell or job.one_cell, release.order_by or job.order_by
    return one_cell, order_by, release.undeclared, release.protects, job.attacker_of(release)


def _certainty(search: EditSearch, number: int) -> Iterator[Edits]:
    """Yield the weakest assumption that would do; where none does, examples with the threshold that each takes."""
    table = search.content["release"][number]
    path: tuple[str | int, ...] = ("release", number, "attacker") if "attacker" in table else ("attacker",)
    assumed = value_at(search.content, path) or {}

    def assuming(key: str, value: float) -> Edits:
        return (Edit((*path, key), value) if assumed else Edit(path, {key: value}),)

    keys = ["p_max_between", "p_max"] if table.get("protects") == "value" else ["p_max"]
    for key in [*keys, "p_min"] if "k_complement" in table else keys:
        old = assumed.get(key)
        if key == "p_min":  # the weakest first
            steps = _SHARES[0 if old is None else bisect_right(_SHARES, old) :]
        else:
            least = bisect_left(_SHARES, 0.5) if key == "p_max_between" else 0
            steps = _SHARES[least : len(_SHARES) if old is None else bisect_left(_SHARES, old)][::-1]
        edits = search.least(lambda step, key=key, steps=steps: assuming(key, steps[step]), 0, len(steps) - 1)  # type: ignore[misc]
        if edits is not None:
            yield edits
            continue
        for example in (share for share in _EXAMPLES[key] if share in steps):
            family = _larger("k_complement" if key == "p_min" else "k", assuming(key, example))
            if (edits := family(search, (number,))) is not None:
                yield edits


def _to_argue(search: EditSearch, number: int, edits: Edits) -> tuple[str, str]:
    """Return an assumption about the attacker in words, and what the certificate would assume."""
    assumption, *more = edits
    path, value = assumption.path, assumption.value
    key, value = next(iter(value.items())) if isinstance(value, Mapping) else (path[-1], value)
    name = search.content["release"][number]["name"]
    where = f"the attacker of release {name!r}" if path[0] == "release" else "[attacker]"
    also = f", and {words_of(search.content, more)}" if more else ""
    offer = search.offer("question", edits)
    plan = None if offer is None else offer.plan
    assumed = () if plan is None else plan.days[-1].releases[number].certificate.assumptions
    about = [text for text in assumed if text.startswith("The attacker ")] or assumed
    return f"{key} = {value!r} in {where}{also}", " ".join(about)


def _larger_budgets(search: EditSearch) -> Iterator[Edits]:
    """Yield the smallest budget that would do: one of them, or where none is enough, all of them."""
    budgets = search.content.get("budget")
    if not budgets:
        return
    paths = [("budget",)] if isinstance(budgets, Mapping) else [("budget", number) for number in range(len(budgets))]
    current = {(*path, "epsilon"): float(value_at(search.content, path)["epsilon"]) for path in paths}

    def raised(places: list[Any]) -> Edits | None:
        start = bisect_right(EPSILONS, min(current[place] for place in places))

        def make(step: int) -> Edits:
            return tuple(Edit(place, EPSILONS[step]) for place in places if EPSILONS[step] > current[place])

        return search.least(make, start, len(EPSILONS) - 1)

    singles = list(filter(None, (raised([place]) for place in current)))
    together = None if singles or len(current) < 2 else raised([*current])
    yield from singles or filter(None, [together])
