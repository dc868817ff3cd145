"""Clamped sums by cell with noise, beside OpenDP's sampler behind a plan of Polars: error and time at the same ε.

``python benchmarks/bench_sums.py [persons] [PYTHON]``. PYTHON is the interpreter of an environment with ``python-dp``,
whose sums are then drawn as well; to start it counts in its time. All give each clinic's visits, at most 5 a person and
clinic, with ε = 1 for a person in one clinic. The mean absolute error should be that of the noise, 2α/(1 - α²) with
α = e^(-1/5); times are processor seconds of a release, the best of five.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
import polars as pl

import pkdp_pipeline as pkdp

CLINICS, BOUNDS, ROWS_EACH, RELEASES = 40, (0, 5), 4, 5
Sums = dict[str, int]


def frame_of(persons: int) -> pl.DataFrame:
    """Return visits of people who have one clinic each."""
    random = np.random.default_rng(1)
    clinic = random.integers(CLINICS, size=persons)
    person = np.repeat(np.arange(persons), ROWS_EACH)
    visits = random.poisson(1.2, size=len(person))
    return pl.DataFrame({"person": person, "clinic": [f"c{number:02d}" for number in clinic[person]], "visits": visits})


def clamped(frame: pl.DataFrame) -> pl.DataFrame:
    persons = frame.group_by("person", "clinic").agg(pl.col("visits").sum().clip(*BOUNDS))
    return persons.group_by("clinic").agg(pl.col("visits").sum()).sort("clinic")


def ours(frame: pl.DataFrame) -> Sums:
    domain = [f"c{number:02d}" for number in range(CLINICS)]
    release = pkdp.sum(
        frame, "visits", by="clinic", unit="person", bounds=BOUNDS, noise=pkdp.GeometricNoise(1.0), domain=domain
    )
    return dict(zip(release.table["clinic"], release.table["sum"], strict=True))


def opendp(frame: pl.DataFrame) -> Sums:
    """Return what OpenDP draws for sums that Polars has clamped; nothing checks that a person has one clinic."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    sums = clamped(frame)
    noised = dp.m.make_laplace(*space, scale=float(BOUNDS[1]))(sums["visits"].to_list())
    return dict(zip(sums["clinic"], noised, strict=True))


PYDP = """
import json, sys
from pydp.algorithms.laplacian import BoundedSum
bounds, added = json.load(sys.stdin)
new = lambda: BoundedSum(epsilon=1.0, lower_bound=bounds[0], upper_bound=bounds[1], dtype="int")
json.dump({clinic: new().quick_result(numbers) for clinic, numbers in added.items()}, sys.stdout)
"""


def pydp(frame: pl.DataFrame) -> Sums:
    """Return what PyDP draws for what Polars has added up for each person; nothing checks that she has one clinic."""
    persons = frame.group_by("person", "clinic").agg(pl.col("visits").sum())
    added = dict(persons.group_by("clinic").agg("visits").iter_rows())
    asked = json.dumps([BOUNDS, added])
    done = subprocess.run([sys.argv[2], "-c", PYDP], input=asked, capture_output=True, text=True, check=True)
    sums: Sums = json.loads(done.stdout)
    return sums


def seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return time.process_time() + sum(os.times()[2:4])


def measured(publish: Callable[[pl.DataFrame], Sums], frame: pl.DataFrame) -> tuple[float, float]:
    exact, errors, times = dict(clamped(frame).iter_rows()), [], []
    publish(frame)  # once for what is imported
    for _ in range(RELEASES):
        start = seconds()
        published = publish(frame)
        times.append(seconds() - start)
        errors += [abs(int(published[clinic]) - number) for clinic, number in exact.items()]
    return sum(errors) / len(errors), min(times)


if __name__ == "__main__":
    frame = frame_of(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000)
    alpha = math.exp(-1.0 / BOUNDS[1])
    print(f"{len(frame):,} rows; expected error {2 * alpha / (1 - alpha**2):.2f}")
    for publish in (ours, opendp, *([pydp] if len(sys.argv) > 2 else [])):
        error, least = measured(publish, frame)
        print(f"{publish.__name__:8} mean absolute error {error:5.2f}, {least:.2f} s")
