"""Questions: assumptions and decisions with which a refused job would run, if they can be argued. None is a repair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pkdp_pipeline.errors import BudgetExceededError, PkdpError
from pkdp_pipeline.jobs.repairing.bench import Bench, Edits
from pkdp_pipeline.jobs.repairing.changes import cross_tabulation, larger_k, larger_k_complement
from pkdp_pipeline.jobs.repairing.edits import Edit, said
from pkdp_pipeline.jobs.repairing.grids import EPSILONS, SHARES, first_above, first_below
from pkdp_pipeline.model.evidence import (
    DisjointUnits,
    Evidence,
    IndependentGivenHabits,
    OncePerUnit,
    OneDayProtected,
)

__all__ = ["Question", "questions"]

Question = tuple[str, str, Edits]
"""What would be written, what has to be true for it, and the edits."""

_EVIDENCE: tuple[Evidence, ...] = (OneDayProtected(), IndependentGivenHabits(), OncePerUnit(), DisjointUnits())
_EXAMPLES = {"p_max": (0.5, 0.1), "p_max_between": (0.75,), "p_min": (0.5,)}
"""Where k has to grow in any case, the assumptions for which its size is told."""

_MOST_PEOPLE = 1_000_000


def questions(bench: Bench, refused: int | None, error: PkdpError | None) -> Iterator[Question]:
    """Yield what would have to be argued; every one was tried.

    Parameters
    ----------
    bench : Bench
    refused : int or None
        Which release is refused; None where it is all of them together.
    error : PkdpError or None
        The refusal; None where a target is not reached.
    """
    for number in range(len(bench.content["release"])) if refused is None else (refused,):
        yield from _certainty(bench, number)
        yield from _people(bench, number)
    if error is not None and not bench.evidence:
        yield from _evidence(bench)
    if isinstance(error, BudgetExceededError):
        yield from _budget(bench)


def _certainty(bench: Bench, number: int) -> Iterator[Question]:
    """Ask for the weakest assumption that would do; where none does, for which threshold an example would."""
    table = bench.content["release"][number]
    keys = ["p_max_between", "p_max"] if table.get("protects") == "value" else ["p_max"]
    for key in [*keys, "p_min"] if "k_complement" in table else keys:
        old, assumed = _attacker(bench, number).get(key), _assuming(bench, number, key)
        steps = _weakest_first(key, old)
        edits = bench.least(partial(_nth, assumed, steps), 0, len(steps) - 1)
        if edits is not None:
            yield _to_argue(bench, number, edits)
            continue
        enlarged = larger_k_complement if key == "p_min" else larger_k
        for example in (example for example in _EXAMPLES[key] if example in steps):
            edits = enlarged(bench, (number,), assumed(example))
            if edits is not None:
                yield _to_argue(bench, number, edits)


def _weakest_first(key: str, old: float | None) -> Sequence[float]:
    """Return the numbers that say more about the attacker than what is declared, the least of it first."""
    if key == "p_min":
        return SHARES[0 if old is None else first_above(SHARES, old) :]
    least = first_above(SHARES, 0.4999) if key == "p_max_between" else 0
    top = len(SHARES) - 1 if old is None else first_below(SHARES, old)
    return SHARES[least : top + 1][::-1]


def _people(bench: Bench, number: int) -> Iterator[Question]:
    """Ask for how many unknown people would do, where what is published rests on these."""
    table = bench.content["release"][number]
    histogram = "by" in table
    if {"k", "k_complement", "noise"} & {*table} or (histogram and table.get("protects") != "value"):
        return
    held = _attacker(bench, number)
    low = held.get("p_min") or 0.1
    assumed = {"p_min": low} if histogram else {"p_min": low, "p_max": _below_one(held.get("p_max"), 0.9)}
    path = _path(bench, number)

    def make(people: int) -> Edits:
        return (Edit(path=path, value={**held, **assumed, "unknown": people}),)

    edits = bench.least(make, int(held.get("unknown") or 0) + 1, _MOST_PEOPLE)
    if edits is not None:
        yield _to_argue(bench, number, edits)


def _evidence(bench: Bench) -> Iterator[Question]:
    """Ask for what may be known about how a person's days depend on each other; alone, or with a larger k."""
    numbers = tuple(
        number for number, table in enumerate(bench.content["release"]) if "k" in table and "noise" not in table
    )
    for evidence in _EVIDENCE:
        declared = (Edit(path=("evidence",), value={"kind": evidence.key}),)
        ways = [declared, *(declared + edits for edits in cross_tabulation(bench))]
        edits = next((edits for edits in ways if bench.fits(edits)), None)
        if edits is None and numbers:
            edits = larger_k(bench, numbers, declared)
        if edits is not None:
            also = f", and {said(bench.content, edits[1:])}" if edits[1:] else ""
            yield f'evidence = {{ kind = "{evidence.key}" }}{also}', evidence.declares, edits


def _budget(bench: Bench) -> Iterator[Question]:
    """Ask for the smallest budget that would do: one of them, or where none is enough, all of them."""
    budgets = bench.content.get("budget")
    if budgets is None:
        return
    paths = [("budget",)] if isinstance(budgets, Mapping) else [("budget", number) for number in range(len(budgets))]
    held = [float(budgets["epsilon"])] if isinstance(budgets, Mapping) else [float(one["epsilon"]) for one in budgets]

    def raised(numbers: tuple[int, ...]) -> Edits | None:
        start = first_above(EPSILONS, min(held[number] for number in numbers))

        def make(step: int) -> Edits:
            return tuple(
                Edit(path=(*paths[number], "epsilon"), value=EPSILONS[step])
                for number in numbers
                if EPSILONS[step] > held[number]
            )

        return bench.least(make, start, len(EPSILONS) - 1)

    singles = [edits for number in range(len(paths)) if (edits := raised((number,))) is not None]
    if not singles and len(paths) > 1 and (edits := raised(tuple(range(len(paths))))) is not None:
        singles.append(edits)
    for edits in singles:
        yield said(bench.content, edits), "So much may be told about a person.", edits


def _attacker(bench: Bench, number: int) -> dict[str, Any]:
    table = bench.content["release"][number]
    return dict(table.get("attacker") or bench.content.get("attacker") or {})


def _path(bench: Bench, number: int) -> tuple[str | int, ...]:
    """Return where the attacker of a release is declared: its own, or the job's."""
    return ("release", number, "attacker") if "attacker" in bench.content["release"][number] else ("attacker",)


def _assuming(bench: Bench, number: int, key: str) -> Callable[[float], Edits]:
    path, held = _path(bench, number), _attacker(bench, number)
    return lambda value: (Edit(path=path, value={**held, key: value}),)


def _nth(assumed: Callable[[float], Edits], steps: Sequence[float], step: int) -> Edits:
    return assumed(steps[step])


def _to_argue(bench: Bench, number: int, edits: Edits) -> Question:
    """Return a question about the attacker, with what the certificate would assume."""
    held, (assumption, *more) = _attacker(bench, number), edits
    listed = ", ".join(f"{key} = {value!r}" for key, value in assumption.value.items() if held.get(key) != value)
    name = bench.content["release"][number]["name"]
    where = "[attacker]" if len(assumption.path) == 1 else f"the attacker of release {name!r}"
    also = f", and {said(bench.content, more)}" if more else ""
    trial = bench.tried(edits)
    assumed = () if trial is None else trial.plan.days[-1].releases[number].certificate.assumptions
    about = [text for text in assumed if text.startswith("The attacker ")] or assumed
    return f"{listed} in {where}{also}", " ".join(about), edits


def _below_one(value: Any, otherwise: float) -> float:
    return float(value) if value is not None and value < 1.0 else otherwise
