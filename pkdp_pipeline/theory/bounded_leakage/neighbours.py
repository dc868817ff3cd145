"""Which databases of a small universe are neighbours."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from itertools import combinations
from typing import TypeAlias

from pkdp_pipeline.errors import ArgumentError

__all__ = ["Neighbours", "one_record_apart", "read_neighbours", "shortest_path"]

Neighbours: TypeAlias = frozenset[tuple[Hashable, Hashable]]


def one_record_apart(databases: Iterable[tuple[Hashable, ...]]) -> Neighbours:
    """Return the pairs of databases that differ in exactly one record, in both orders.

    Parameters
    ----------
    databases : iterable of tuple
        One entry for each person; all of the same length.

    Raises
    ------
    ArgumentError
        If a database is not a tuple, or lengths differ.
    """
    listed = list(dict.fromkeys(databases))
    if not all(isinstance(one, tuple) for one in listed) or len({len(one) for one in listed}) > 1:
        raise ArgumentError("databases must be tuples of the same length, with one entry for each person.")
    pairs = [
        (one, other)
        for one, other in combinations(listed, 2)
        if sum(mine != theirs for mine, theirs in zip(one, other, strict=True)) == 1
    ]
    return frozenset(pairs + [(other, one) for one, other in pairs])


def read_neighbours(pairs: object, databases: Collection[Hashable]) -> Neighbours:
    """Return `pairs` of databases in both orders, or raise `ArgumentError`."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ArgumentError("neighbours must be pairs of databases; one_record_apart(databases) makes them.")
    found: set[tuple[Hashable, Hashable]] = set()
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or any(one not in databases for one in pair):
            raise ArgumentError("neighbours must be pairs (one, other) of databases that have a law.")
        if pair[0] == pair[1]:
            raise ArgumentError("neighbours must be pairs of two different databases.")
        found |= {pair, (pair[1], pair[0])}
    return frozenset(found)


def shortest_path(
    neighbours: Neighbours, start: Hashable, end: Hashable, through: Collection[Hashable]
) -> tuple[Hashable, ...] | None:
    """Return a shortest path of neighbours from `start` to `end` inside `through`; None where there is none."""
    if start not in through or end not in through:
        return None
    before: dict[Hashable, Hashable] = {start: start}
    waiting = deque([start])
    while waiting and end not in before:
        here = waiting.popleft()
        # In the order of `through`, so that the same path is found every time.
        for there in through:
            if there not in before and (here, there) in neighbours:
                before[there] = here
                waiting.append(there)
    if end not in before:
        return None
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return tuple(reversed(path))
