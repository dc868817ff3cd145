"""What was written on one processor is verified on every other: the vector instructions of NumPy are switched off."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.processors

TESTS = Path(__file__).resolve().parent
PROGRAM = TESTS / "documents_elsewhere.py"

#: What NumPy can switch off here: a name that this processor or this NumPy does not know is an error.
FEATURES = tuple(np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))


def settings() -> list[str]:
    """Return what `NPY_DISABLE_CPU_FEATURES` may say here: nothing, everything, and the newest families."""
    return list(dict.fromkeys(" ".join(FEATURES[first:]) for first in (len(FEATURES), 0, *range(len(FEATURES)))))


def run(setting: str, *arguments: str | Path) -> str:
    environment = os.environ | {
        "NPY_DISABLE_CPU_FEATURES": setting,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS.parent), os.environ.get("PYTHONPATH")))),
    }
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout.strip()


def exchange(folder: Path, task: str, chosen: list[str]) -> None:
    """Write under every setting, and read under every one what all the others have written."""
    if len(chosen) < 2:
        pytest.skip("NumPy has nothing to switch off here.")
    folders = [folder / (setting.replace(" ", "+") or "everything") for setting in chosen]
    for place in folders:
        place.mkdir()
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(run, chosen, repeat(task), folders))
        others = [[place for place in folders if place != own] for own in folders]
        answers = pool.map(lambda setting, rest: run(setting, "read", *rest), chosen, others)
        assert dict(zip(chosen, answers, strict=True)) == dict.fromkeys(chosen, ""), "read with these switched off"


def test_documents_travel_between_the_newest_and_the_oldest_processor(tmp_path):
    exchange(tmp_path, "write", settings()[:2])


@pytest.mark.slow
def test_documents_of_every_kind_travel_between_all_processors(tmp_path):
    exchange(tmp_path, "write-many", settings())
