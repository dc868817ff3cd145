"""Kill publications, from the frame to the file, at every line that they run; started by test_faults.py.

The parent stays warm and runs no publication itself: DuckDB's threads do not survive a fork.
"""

from __future__ import annotations

import datetime
import os
import random
import signal
import sys
import traceback
from pathlib import Path

import duckdb  # noqa: F401 (what the children need is imported once)
import pandas as pd
import pyarrow.parquet  # noqa: F401

import pkdp_pipeline as pkdp
from pkdp_pipeline.ledger import ledger as _ledger  # noqa: F401

TRACED = ("releases/publish.py", "releases/release.py", "releases/public_table.py", "ledger/")
FRAME = pd.DataFrame({"uid": range(60), "carrier": ["AA"] * 40 + ["UA"] * 20})


def publication(folder: Path, number: int) -> None:
    """Publish one day, and show it."""
    period = (datetime.date(2001, 1, 1) + datetime.timedelta(days=number)).isoformat()
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        release = pkdp.histogram(
            FRAME,
            "carrier",
            unit="uid",
            domain=["AA", "UA"],
            noise=pkdp.GeometricNoise(epsilon=0.01),  # two draws are hardly ever the same
            attacker=pkdp.AttackerModel(),
            ledger=ledger,
            period=period,
        )
        release.to_parquet(folder / f"{number}.parquet")


def counted(countdown: int, reached: list[int]):
    """Return a trace function that kills the process at the n-th line of the modules traced."""
    root = os.path.dirname(pkdp.__file__) + os.sep

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(root):
            return None
        if frame.f_code.co_filename[len(root) :].startswith(TRACED):
            reached[0] += 1
            if reached[0] == countdown:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def killed(folder: Path, number: int, countdown: int) -> None:
    sys.settrace(counted(countdown, [0]))
    publication(folder, number)


def measured(folder: Path, number: int) -> None:
    reached = [0]
    sys.settrace(counted(-1, reached))
    publication(folder, number)
    sys.settrace(None)
    (folder / "lines").write_text(str(reached[0]), encoding="utf-8")


def recovered(folder: Path, number: int) -> None:
    """Check what the dead run left, run again, and check what stands."""
    file = folder / f"{number}.parquet"
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        before = list(ledger.entries())[number:]
        assert len(before) <= 1, "charged twice"
        published = [entry for entry in before if entry.state == "published"]
        shown = file.read_bytes() if file.exists() else b""
        assert not shown or [shown] == [entry.content for entry in published], "shown without a charge"
    publication(folder, number)
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        (entry,) = list(ledger.entries())[number:]
        assert (entry.state, entry.revision, entry.content) == ("published", 1, file.read_bytes())
        assert not published or published == [entry], "published twice"
        assert not before or before[0].sequence == entry.sequence, "charged twice"


def verified(folder: Path, number: int) -> None:
    with pkdp.Ledger.open(folder / "ledger.sqlite", dataset="flights") as ledger:
        ledger.verify(ledger.head())
        assert len(list(ledger.entries(given_back=True))) == number


def fork(work, *arguments) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Run the campaign: folder, number of kills."""
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    if lost := [place for place in TRACED if not (Path(pkdp.__file__).parent / place).exists()]:
        raise SystemExit(f"nothing is traced in {lost}")
    fork(publication, folder, 0)
    fork(measured, folder, 1)
    lines = int((folder / "lines").read_text(encoding="utf-8"))
    draw = random.Random(11)
    for number in range(2, kills + 2):
        # Evenly over all lines, and at random within each stretch.
        countdown = int((number - 2 + draw.random()) * 0.98 * lines / kills) + 1
        status = fork(killed, folder, number, countdown)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"line {countdown} of {lines} was not reached")
        if fork(recovered, folder, number):
            raise SystemExit(f"killed at line {countdown} of {lines}: not recovered")
    if fork(verified, folder, kills + 2):
        raise SystemExit("the ledger does not verify")
    print(f"{kills} kills over {lines} lines")


if __name__ == "__main__":
    main()
