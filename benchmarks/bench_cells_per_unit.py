"""People in several cells: `cells_per_unit` beside OpenDP's `truncate_num_groups`, on customers by kind of goods.

Both limit the cells of a customer and add noise to the eight declared cells, so that a customer is hidden at ε = 1
whatever else is known. The error is the mean absolute one per cell against the true counts, over repeated draws: it
holds what is left out of customers in more cells. Draws alternate; times are medians. OpenDP keeps one cell fewer than
it is asked for (benchmarks/peers/opendp_cells.py), so it is asked for c and for c + 1.

    python benchmarks/bench_cells_per_unit.py [--draws 50] [--copies 1] [--cells 1 2 4 8] [--cache DIR]

The peer gets an environment of its own under the cache folder, made when first needed and kept. Each copy of the table
has other customers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
from engine_peers import NotAvailableError, Peer, answering

import pkdp_pipeline as pkdp

EPSILON = 1.0
PURCHASES = Path(__file__).parents[1] / "examples" / "data" / "purchases_2011.parquet"


def released(frame: pl.DataFrame, cells: list[str], most: int) -> dict[str, int]:
    """Return our counts: the noise has ε / c, and the certificate states what it adds up to."""
    rule: dict[str, Any] = {"one_cell": "hash"} if most == 1 else {"cells_per_unit": most}
    release = pkdp.histogram(
        frame,
        "cell",
        unit="unit",
        domain=cells,
        noise=pkdp.GeometricNoise(EPSILON / most),
        attacker=pkdp.AttackerModel(),
        **rule,
    )
    assert release.certificate.worst_case.epsilon(0.0) <= EPSILON * (1 + 1e-9)
    return dict(release.table.itertuples(index=False, name=None))


def error(counts: Mapping[str, int], true: Mapping[str, int]) -> float:
    """Return the mean absolute error per cell."""
    return statistics.fmean(abs(counts[cell] - true[cell]) for cell in true)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--cells", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--cache", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "purchases.csv"
        duckdb.read_parquet(str(PURCHASES)).query(
            "bought",
            f"SELECT customer * {asked.copies} + copy AS unit, kind AS cell FROM bought, range({asked.copies}) r(copy) "
            "WHERE customer IS NOT NULL",
        ).write_csv(str(table))
        frame = pl.read_csv(table)
        distinct = frame.group_by("cell").agg(pl.col("unit").n_unique()).sort("cell")
        true = dict(distinct.iter_rows())
        print(f"{frame['unit'].n_unique()} customers, {len(frame)} rows, {len(true)} cells, {asked.draws} draws, ε = 1")
        heads = ("ours", "OpenDP, c", "OpenDP, c+1") * 2
        print(f"{'':3} {'error':>12}{'seconds':>39}", "  c " + " ".join(f"{head:>12}" for head in heads), sep="\n")
        for most in asked.cells:
            measure(table, frame, true, most, asked.draws, asked.cache or Path(scratch))


def opendp(asked: int, cells: Iterable[str]) -> Peer:
    """Return the peer, asked for so many cells of a unit."""
    arguments = (str(asked), str(EPSILON), *cells)
    return Peer(name="OpenDP", requirement="opendp[polars]", script="opendp_cells.py", arguments=arguments)


def measure(table: Path, frame: pl.DataFrame, true: dict[str, int], most: int, draws: int, cache: Path) -> None:
    """Print one line: errors and times with `most` cells of a unit, ours and of the peer asked for c and for c + 1."""
    sides: tuple[list[tuple[float, float]], ...] = ([], [], [])
    try:
        with (
            answering(opendp(most, true), str(table), cache) as fewer,
            answering(opendp(most + 1, true), str(table), cache) as as_many,
        ):
            for _ in range(draws):
                start = time.perf_counter()
                counts = released(frame, list(true), most)
                sides[0].append((error(counts, true), time.perf_counter() - start))
                for side, peer in zip(sides[1:], (fewer, as_many), strict=True):
                    answer = peer.ask("cells")
                    side.append((error(answer.cells, true), answer.seconds))
    except NotAvailableError as reason:
        sys.exit(f"OpenDP was not measured: {reason}.")
    errors = [statistics.fmean(one for one, _ in side) for side in sides]
    times = [statistics.median(one for _, one in side) for side in sides]
    print(f"{most:>3}", *(f"{one:>12.2f}" for one in errors), *(f"{one:>12.4f}" for one in times), flush=True)


if __name__ == "__main__":
    main()
