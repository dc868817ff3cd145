"""Five tasks on every engine, certificates included, beside the engine's own plain answers and beside other tools.

    T0  all rows by 200 cells
    T1  a count with a predicate                       T2  one day by 200 cells
    T3  10,000 unknown keys, people in several of them, one drawn by a hash; noise and a release threshold
    T4  thirty days by cell with a ledger, and its total

Everybody answers in a process of its own, in turns. A ratio is ours by theirs, the median over the turns: of the time
on the clock, and of processors' (of Spark's Java and of PostgreSQL's server, too), which other work disturbs less.
"memory" is the largest resident memory of a process over all its tasks. Plain answers are
`count(DISTINCT …) … GROUP BY`, which checks nothing, draws nothing and promises nothing; what others do and promise
is in benchmarks/peers.

    python benchmarks/bench_engines.py [--rows 1e6 1e7] [--only Parquet Spark …] [--tasks T2 …] [--text] [--pairs 7]

What is not installed here is said, and the rest is measured. Tables, and environments of others, are made when first
needed, and kept in --cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import duckdb
from engine_peers import Answer, Answers, NotAvailableError, Peer, answering

TASKS = ("T0", "T1", "T2", "T3", "T4")
BY_HAND = Peer(name="by hand, NumPy", script="by_hand.py")
OPENDP = Peer(name="OpenDP", script="opendp_polars.py", requirement="opendp[polars]")
PYDP = Peer(name="PyDP", script="pydp_counts.py", requirement="python-dp pyarrow")


@dataclass(frozen=True, slots=True)
class Engine:
    """A kind of frame: packages it needs, others who start from the same, and how many bytes of a row each keeps."""

    needs: tuple[str, ...]
    rivals: tuple[Peer, ...] = ()
    row: int = 0


ENGINES = {
    "Parquet": Engine(("duckdb",), (BY_HAND,)),
    "DuckDB": Engine(("duckdb",)),
    "PostgreSQL": Engine(("ibis", "psycopg", "adbc_driver_postgresql")),
    "pandas": Engine(("pandas",), (PYDP,), row=250),
    "Polars": Engine(("polars",), (OPENDP,), row=60),
    "Spark": Engine(("pyspark",)),
}


def parquet(rows: int, cache: Path) -> Path:
    """Return thirty days of rows: twenty of each person, who lives in one of 200 cells and uses many keys."""
    file = cache / f"rows-{rows}.parquet"
    if not file.exists():
        people = f"SELECT range AS i, (hash(range) % {max(1, rows // 20)})::BIGINT AS unit FROM range({rows})"
        columns = (
            f"DATE '2026-01-01' + (i * 30 // {rows})::INTEGER AS day",
            "unit",
            "'u' || unit AS name",
            "'cell-' || lpad((hash(unit + 1) % 200)::VARCHAR, 3, '0') AS cell",
            "floor(10000 * pow(hash(i + 2) % 1000003 / 1000003, 3))::INTEGER AS key",
            "(hash(i + 3) % 90)::INTEGER AS delay",
        )
        unfinished = file.with_suffix(".unfinished")
        duckdb.execute(f"COPY (SELECT {', '.join(columns)} FROM ({people})) TO '{unfinished}' (FORMAT parquet)")
        unfinished.replace(file)
    return file


@contextmanager
def source(kind: str, file: Path) -> Iterator[tuple[str, int | None]]:
    """Make what an engine opens, and give the process of its server, if it has one."""
    if kind == "PostgreSQL":
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from postgres_server import Cluster

        with tempfile.TemporaryDirectory(prefix="pkdp-postgres-") as folder:
            try:
                cluster = Cluster(folder)
            except (OSError, RuntimeError) as error:
                raise NotAvailableError(f"its server did not start ({type(error).__name__})") from error
            try:
                started = Path(folder, "data/postmaster.pid").read_text(encoding="utf-8")
                yield _loaded(cluster.empty_database(), file), int(started.splitlines()[0])
            finally:
                cluster.stop()
    elif kind == "DuckDB":
        table = file.with_suffix(".duckdb")
        if not table.exists():
            unfinished = file.with_suffix(".unfinished")
            with duckdb.connect(str(unfinished)) as connection:
                connection.execute(f"CREATE TABLE rows AS FROM '{file}'")
            unfinished.replace(table)
        yield str(table), None
    else:
        yield str(file), None


def _loaded(url: str, file: Path) -> str:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rows", duckdb.read_parquet(str(file)).to_arrow_reader())
        connection.commit()
        cursor.execute("ANALYZE rows")
        connection.commit()
    return url


def measured(kind: str, file: Path, asked: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of one engine."""
    arguments = ("name" if asked.text else "unit", str(asked.days))
    with ExitStack() as stack:
        table, server = stack.enter_context(source(kind, file))
        sides = ("pkdp", "plain")
        asking = [Peer(name=side, script="own_answers.py", arguments=(kind, side, *arguments)) for side in sides]
        asking += [] if asked.no_peers else [replace(peer, arguments=arguments) for peer in ENGINES[kind].rivals]
        answers, last = dict[str, Answers](), dict[str, Answer]()
        for peer in asking:
            try:
                answers[peer.name] = stack.enter_context(answering(peer, table, asked.cache, server=server))
            except NotAvailableError as error:
                yield f"   {peer.name}: not measured: {error}."
        for task in asked.tasks:
            turns: list[dict[str, Answer]] = []
            for _ in range(1 + asked.pairs):  # the first turn is not counted
                turns.append({})
                for name, one in list(answers.items()):
                    try:
                        turns[-1] |= {name: one.ask(task)} if task in one.tasks else {}
                    except NotAvailableError as error:
                        if name == "pkdp":
                            raise
                        del answers[name]
                        yield f"   {name}: not measured any more: {error}."
            last |= turns[-1]
            for name in [name for name in answers if name != "pkdp" and name in turns[-1]]:
                label = f"{task}  {kind:<11} {name} {answers[name].version if name != 'plain' else ''}"
                yield compared(label, [(turn["pkdp"], turn[name]) for turn in turns[1:]])
        for name in list(last)[1:]:
            mine, other = last["pkdp"].peak / 2**20, last[name].peak / 2**20
            yield f"{f'memory of {kind}, {name}':<44} {mine:8.0f}M {other:8.0f}M {mine / other:7.2f}"


def compared(label: str, pairs: list[tuple[Answer, Answer]]) -> str:
    mine, other = (statistics.median(answer.seconds for answer in side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(ours.seconds / theirs.seconds for ours, theirs in pairs)
    cpu = statistics.median(ours.cpu / max(theirs.cpu, 1e-3) for ours, theirs in pairs)
    return f"{label:<44} {mine:8.3f}s {other:8.3f}s {ratio:7.2f} {cpu:7.2f}"


def available() -> float:
    """Return the bytes of memory that may be used, where that can be known."""
    with suppress(OSError):
        for told in Path("/proc/meminfo").read_text().splitlines():
            if told.startswith("MemAvailable:"):
                return 1024.0 * int(told.split()[1])
    return float("inf")


def lines(kind: str, rows: int, asked: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of one engine, or why there are none."""
    engine = ENGINES[kind]
    missing = [package for package in engine.needs if find_spec(package) is None]
    if missing:
        yield f"{kind}: not measured: {', '.join(missing)} is not installed."
    elif engine.row * rows * 2 > available():
        yield f"{kind}: not measured: so many rows do not fit into memory."
    else:
        try:
            yield from measured(kind, parquet(rows, asked.cache), asked)
        except NotAvailableError as error:
            yield f"{kind}: not measured: {error}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--only", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--text", action="store_true", help="people are named by text, not by numbers")
    parser.add_argument("--quick", action="store_true", help="few rows and days: whether it runs, not how fast")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--pairs", type=int, default=7)
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--cache", type=Path, default=home / "pkdp-benchmarks")
    asked = parser.parse_args()
    asked.days = 30
    if asked.quick:
        asked.rows, asked.pairs, asked.days = [20_000], 1, 2
    asked.cache.mkdir(parents=True, exist_ok=True)
    for rows in map(int, asked.rows):
        print(f"{f'{rows:.0e} rows, {os.cpu_count()} processors':<44} {'pkdp':>9} {'other':>9} {'ratio':>7} {'CPU':>7}")
        for kind in asked.only:
            for told in lines(kind, rows, asked):
                print(told, flush=True)


if __name__ == "__main__":
    main()
