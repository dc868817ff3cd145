"""The ledger: what a charge costs, and what a total and a check cost after many of them.

    python benchmarks/bench_ledger.py [--entries 20000]

Entries are appended through `Ledger.reserve` and `Ledger.publish`, with one real release of twelve cells. The first
ones are timed as they are, with every write on the disk; the rest is filled in without waiting for it. Times are of
this machine; what matters is how little the later lines depend on the number of entries.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import pkdp_pipeline as pkdp
from pkdp_pipeline.extras.assurance.verification import check
from pkdp_pipeline.ledger import Ledger
from pkdp_pipeline.ledger.admission import admit
from pkdp_pipeline.model.context import Facts
from pkdp_pipeline.releases.release import Release

TIMED = 200
MECHANISM = pkdp.Histogram(k=50)
CERTIFICATE = type(pkdp.certify(MECHANISM, pkdp.AttackerModel(p_max=0.1))).from_json(
    pkdp.certify(MECHANISM, pkdp.AttackerModel(p_max=0.1)).to_json()
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=20_000)
    entries = parser.parse_args().entries
    cells = pd.array([f"c{cell}" for cell in range(12)], dtype="str")
    table = pd.DataFrame({"c": cells, "count": pd.array(range(60, 72), dtype="Int64")})
    release = Release.seal(table, CERTIFICATE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        with Ledger.open(path, evidence=pkdp.IndependentGivenHabits()) as ledger:
            times = [timed(lambda number=number: append(ledger, number, release)) for number in range(TIMED)]
            print(f"{'one charge and its release':44s} {1e3 * statistics.median(times):9.2f} ms (median of {TIMED})")
            ledger.records.database.execute("PRAGMA synchronous = OFF")
            for number in range(TIMED, entries):
                append(ledger, number, release)
        print(f"after {entries} entries, {path.stat().st_size / 1e6:.0f} MB:")
        with Ledger.open(path) as ledger:
            first = show("total and its δ(1), the first time", lambda: ledger.total().delta(1.0))
            again = show("total and its δ(1), again", lambda: ledger.total().delta(1.0))
            show("may another day be published?", lambda: admit(ledger.records, standing(entries), ledger.terms))
            show("find a release by its key", lambda: ledger.find(f"{entries // 2:064d}"))
            show("recompute the chain and the account", lambda: ledger.verify(contents=False))
            seconds = show("pkdp ledger verify, with every release", lambda: check(ledger, head=None))
        print(f"the total took {first:.3f} s and {again:.3f} s; 0.5 s is what it may take")
        print(f"verify took {1e3 * seconds / entries:.2f} ms a release, of which 5,475 are 15 years of days")


def standing(number: int) -> Facts:
    day = datetime.date(1750, 1, 1) + datetime.timedelta(days=number)
    return Facts(unit=("u",), period=day.isoformat(), label="by c", mechanism=MECHANISM, by=("c",))


def append(ledger: Ledger, number: int, release: Release) -> None:
    reservation: Any = ledger.reserve(f"{number:064d}", standing(number), lambda admission, head: CERTIFICATE)
    ledger.publish(reservation, release.to_bytes(), release.id)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def show(what: str, work: Callable[[], object]) -> float:
    seconds = timed(work)
    print(f"  {what:42s} {1e3 * seconds:9.2f} ms")
    return seconds


if __name__ == "__main__":
    main()
