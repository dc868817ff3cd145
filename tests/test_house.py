"""The house rules that a reader relies on: what lies where, what imports what, declared names, a clean lock."""

from __future__ import annotations

import ast
import functools
import graphlib
import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from datetime import date
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import pytest
from thorough import one_in

import pkdp_pipeline as pkdp
from pkdp_pipeline import jobs, theory
from pkdp_pipeline.model.question import Question
from pkdp_pipeline.model.wording import INSTALLED
from pkdp_pipeline.schemas import field_texts

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "pkdp_pipeline").rglob("*.py"))
TOP = {
    ".ci",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks",
    "docs",
    "examples",
    "pkdp_pipeline",
    "proofs",
    "pyproject.toml",
    "requirements.lock",
    "sql",
    "tests",
}

#: From the bottom to the top: a room imports rooms before it, inside functions and for types too.
ORDER = (
    "errors",
    "plugins",
    "schemas",
    "model",
    "theorems",
    "composition",
    "certificates",
    "clock",
    "ledger",
    "engines",
    "releases",
    "sql",
    "jobs",
    "cli",
    "extras",
    "duckdb",
)
#: The documented faces: they name what lies in extras, and load it when it is first used.
FACES = {"__init__", "duckdb"}
#: The one extra that imports another: the report makes pages again, and holds them to what is verified.
DRAWS = {("extras/report", "extras/assurance")}
#: Lines of code of each folder, without docstrings, comments and blank lines, at most: **these numbers only fall**. A
#: change that needs more takes it from another folder, or says here why it adds more than it removes.
#: Noise on counts below k: marks of which counts are exact are verified, audited, drawn and planned for.
#: Coarser displays of a published table are derived from it (model 45, releases 30, certificates 25, jobs 30, ledger,
#: assurance and cli 30); perturbation tables are read from CSV (extras/connect 50, model and jobs 25); what Coq
#: checked of theorems R, S, I and F (theorems 38); a total with small counts hidden beside noised (ledger, report 35).
LINES = {
    # Public names: rules of display, the catalogue, samples, code lists.
    ".": 350,
    # What files, flags and schemas say of a field is read from the docstring under it. The version, which the model's
    # folder had for itself (1).
    "schemas": 43,
    # Rules of display, read, written and checked once for every door; secret samples and their evidence. By-columns in
    # groups of values, with edges in certificates (123), texts that are rendered from values (33), a key as plain text,
    # which two writers had (6).
    # Sums of whole numbers: their bounds, noise in a module of its own, the summed column in questions and facts (95).
    # What a class says of its fields is read once in a process: a release checks and writes some forty values (5).
    # Rules that leave people out are told (2); groups of numbers are declared without a list, as the refusal says (3).
    # A p_min for which declared cells leave no room is refused (10).
    # A question keeps its key and its facts, which a day asks for several times (13).
    # A chance that is a fraction is read outward (3).
    # A refusal says whether anything was read when it came (4).
    # Numbers that are text are not ordered, as dates are not: 7 would come after 65 (6).
    # Whole numbers of Arrow become keys of pandas without reals in between, and instants keep the zone of none (7).
    # A message's tables are no arguments, totals are derived by what a door has, objects are of the kind that their
    # values are, and a column is guessed by its beginning (19).
    "model": 3_083,
    # Theorem I (260) with a search of any kernel (200), theorem S (240), theorem R; the hull, which composition had.
    # Known people beside noise, in a box and in two cells; value through absence and the crowds that come close (132).
    # Losses, which a bound gives itself: composition had them (139).
    # Sums (145): a lattice of losses, cells that are found in the data, and small tables.
    # A number that was certified before is remembered: a day's sentence and target ask for the same ones (5).
    # A kernel of one's own is certified at every ε that a certificate asks for (4).
    # Two cells behind k and noise as they are, and the worst crowd in one of two cells: exact, or nearly (170); what
    # underflow may hide there (5).
    # Of two looks only the pairs that are shown are summed, in blocks: a quarter of theorem G's time (16).
    # Further down only numbers are given up: the search of any kernel in the place of those of theorems A and D (450)
    # takes 3 to 10 times as long and ends without a number at δ below 1e-13 or k of thousands; blocks of coins of two
    # kinds for those of one (95) lose theorem D where p is 1 % and ε close to ε0 = 2; without tilted inversion (235)
    # more than some ten thousand people in a box have no number.
    # Two cells behind k and noise: each order bounded by itself, and the worst crowd in one beside the other (150).
    # Attackers who see in other noised cells how many people may be in the target's (75).
    # Attackers are those whom the declared cells leave, and the noise of many cells is summed in milliseconds (33).
    # What a suppressed cell tells apart stays within the proof at every noise (3).
    # An inversion of theorem D that has certified nothing yet goes on: half the time where that is so (5).
    # An inversion begins next to where it ends, and blocks of few people are bounded from both ends: a third to a sixth
    # of theorem D's time at k = 1000 (64); what theorem G told at a smaller ε is not looked at again (8), less blocks
    # of its vertices (23).
    # In a block of theorem D what k - 1 people gain is bounded where noise does not bound it (11).
    # Attackers of a table of further cells are at most as sure of any two as is declared (15).
    # A law of waiting times without a cap adds up to 1, which spares a ball, and is cut where its tails vanish (12).
    # Theorem D's blocks end, in each order, where noise alone tells little: up to half of its time at k = 1000 (35);
    # ratios that are not known are infinite there, and rates of nearly equal chances in order (11).
    # Beside one or two people merely known all sizes of a crowd are looked at, and δ falls by a third (28).
    # Where small counts are noised, a tiny p is one that is searched, and a k beyond all people ends no search (1).
    # Thresholds before the noise that enough people are unknown for (46); the gap in a proof for cells found (4); the
    # group in which people are unknown (2).
    "theorems": 5_944,
    # Sums: what their totals do not hide (5), and a move between two of them (7). Theorems are imported from where they
    # lie, without a face (3 here, 1 in certificates; 19 less there).
    # A year of different releases takes half its time: pairs go onto the grid in batches and in both orders (56), sizes
    # of transforms follow from the values that are needed anyway (25), and the search begins where it ends (9).
    # Equal releases that depend on one another are added up from the bounds of one (3).
    # Several cells of a sample are refused with the reason (1).
    # Secret samples inside of totals and tables are samples, and totals say what is hidden of them (24).
    "composition": 2_083,
    # Sums in words, and the nearest noise for them (37); words of a sum without cells (16).
    # Where everybody is in one cell rule 10 is not asked (2).
    # 950 would take advice of choices that can be certified (222), stronger attackers (133), which three extras share,
    # and how a stored document differs from a recomputed one (125).
    # What declared cells leave no room for, certify refuses (7).
    # Numbers beside those of the noise say what they protect, where it is less (3).
    # A ledger's certificate is parsed once, and so is what a rehearsal charges of one day after the other (6).
    # Beside k_complement the number of people in the table is said to be public (3).
    # A refusal names the thresholds that are enough with noise, and with small counts noised, as they are (53).
    # No k is searched for where small counts are noised, which took up to a minute (2).
    "certificates": 1_652,
    # Counts exact from k on and noised below, at every door: a column of marks beside the counts, in tables of
    # databases, words and checks (ledger, sql, jobs, cli, the gate). And counts that are shown rounded or in bands: a
    # job's table of rules, an option that is typed and read, text in every printed table, smaller numbers in checks.
    # 2,450 would take the series of totals (180), what is read of strangers' files (130), or one of the two databases.
    # Noise on sums as it is drawn, counted exactly; their column (12). Advice on two groupings of a column (11).
    # Whether a charge was taken over, for the log (1).
    # Each part of a total is pickled once: a gate sends the whole ledger to a worker with every new question (16).
    # Metadata of pandas that no reader understands are an altered file (3).
    # Budgets lie beside the terms that hold them; the model had them (25).
    # Statistics of a damaged Parquet file, over which Arrow ends the process, are an error (11).
    # A refusal says whether anything was read when it came (2).
    # Certificates that a release had before are found without a look at all events (16).
    # The account is read once for a charge that is tried again, and events once for what is unreadable (16). Threads
    # that read do not wait for another process's lock (18).
    # Accounts that were read follow the events that are appended: a charge reads its own once, all that is charged once
    # in a run with budgets; a certificate issued anew reads all of it only where a budget asks (11).
    # Budgets that exact sums of the noise fit are held in the transaction, and these are summed two by two: at a gate a
    # new question beside 800 took 158 ms of processors, and takes 37 (21).
    # What fits into a budget exactly is not shown above it (2).
    # Sessions of PostgreSQL set what they need by its own function (1).
    # Sums beside counts, another domain and filters are told apart in refusals (13).
    # Where δ is used up a refusal names what takes less of it, which more noise does not (5).
    "ledger": 3_581,
    # Each way of counting has its number: without counting by place whole numbers take 3 to 5 times as long, without
    # hashes texts of Polars 4 times, without its own queries others 2 to 5 times, and periods one by one 11 times.
    # By-columns in groups, in SQL, in Narwhals and in pandas (103). Sums of whole numbers of every type, in the cells
    # that each rule chooses, in SQL and in Narwhals (174).
    # In PostgreSQL a hash draws in half the time when a unit's cells are gathered before they are ranked (46).
    # Instants are hashed as the clock of UTC shows them, whatever a session's zone is (9).
    # Of many periods an engine beside DuckDB's may answer (5).
    # Names are looked at in the query that counts, in every engine (46), and of a Parquet file in one state once: a
    # count of units of text takes 1.2 to 1.6 times a plain one, where it took 2.7 (98). Its arguments are constants, so
    # that no variable of a session says what is read (4), and nothing else has the name of its reader (4). A statement
    # says itself whether its functions are DuckDB's own, in 1 ms where two listings took 41 (34).
    # Functions have their full names, for which no macro stands (3).
    # PostgreSQL finds spaces around names in a seventh of the time, by code points; Polars by one pattern, or in the
    # dictionary that it draws from (22).
    # Where people have many rows in a file each is hashed once: a draw takes 2.0 times a plain query, not 2.9 (13).
    # Polars needs no hashes of names (7 less).
    # Operators are called by their full names, where no macro stands (13); Ibis looks at a query first (2).
    # Objects of pandas that are dates, whose public type the published keys alone decide (7).
    "engines": 2_679,
    # Marks and displayed numbers in the public table; estimates, weighted totals; what totals tell together (49).
    # Sums: a question with parameters of its own (40), means with their intervals (80), words (35). Weights (11).
    # The accessor of Polars (6), a release as a stream of Arrow (2), and the log of all that is published (30).
    # Tables of two readings of the data, from which nothing follows together (29; marks are made and read in 16).
    # Weighted totals have the error of the draw (6); estimates in workbooks (9), and the totals of a cross-table (4).
    # Exact counts of declared cells that leave no room for p_min are refused (3).
    # A release that is charged with others of its day; a table of found cells is made in one step (7),
    # and column by column, in half the time (11).
    # A release that is charged with others of its day; a table of found cells is made in one step (7).
    # A small release that is replayed again is read once: half of a gate's work for it (6).
    # Of a key that belongs into another table the complaint says so (9); what noise does before a rule of display (2).
    # An attacker who is sure that nobody else counts is warned of (6), less the look at empty frames (1).
    # That a table corrects others of its period (5); δ at ε = 1 where no ε is certified (3).
    "releases": 2_142,
    # Sums: a macro, and their keys (26). The ε and the cells of a release, which dbt's tests ask for (4).
    # 1,200 would take the warning about views that link rows (85), parts of dates and LIKE in filters (56) and domains
    # as SQL writes them (64).
    # The catalog is asked by functions of DuckDB's own (4).
    "sql": 1_384,
    # Above its budget by what job files may say (1,000), checks of input and output (450) and CSV as it is written
    # elsewhere (450); many periods are still counted together: 30 days of Parquet take 1.2 s so, 4.9 s one by one.
    # By-columns in groups, as a job file writes them and its checks know them (53).
    # Files for offices, by a hook (54); margins (66), messages about groups (11). Sums: their keys (49). When
    # assumptions were checked (8).
    # Files that are written together share the call that makes their names last (9).
    # Sources say whether all was read of one state of the data, without which no interval may follow (38).
    # Formats that cannot hold a table: refused for declared domains, otherwise said in the summary (26; tables 19).
    # The day of a row of many periods is a column where a server has cut it (1).
    # A period column of dates beside a time zone: the refusal names its type (1).
    # Advice beside margins, and on a form of dates that was given, is what works (7).
    # A day's releases are charged in one transaction: four waits for the disk less (30).
    # A refusal says whether anything was read when it came (4).
    # To catch up ends with the latest period that is over (2; 1 in the operator of Airflow). A command that reads one
    # file says so of a pattern of several (2).
    # To catch up ends with the latest period that is over (2; 1 in the operator of Airflow).
    # A coarser display has the promise of the finer one, and a release that is certified anew is refused in the plan,
    # before another one is charged (13).
    # A zone that the ledger's earlier days did not have is told (7).
    # A summary says of a table that it corrects others (2).
    "jobs": 4_269,
    # Without the dialogue, which init has. 1,150 would take the views of ledgers out of it, and the bar of a backfill.
    # Groups of values on the command line (42).
    # Sums of a file (22); assumptions checked over a year ago (6). Certificates of sums; groups of a text column (13).
    # Flags without a kind in --help (2). Bounds of sums are read here for three commands (8, 5 of them from plan).
    # Totals are derived in Python (1).
    "cli": 1_573,
    "duckdb": 13,
    # What an attacker sees is enumerated once for every ε, and one number by lists: `pkdp verify` takes a third (30).
    # Sums: who knows everybody sees a cell shifted, and the cases of an audit; attackers in small tables (77).
    # `pkdp verify --page` fills and writes a page of HTML and JavaScript, which is not counted (37).
    # Ids in the log are left out of what an audit compares (1).
    # A CSV file or workbook points to the Parquet file (1).
    # Of equal releases of a ledger one certificate is made again, and the facts of the others: a third of its time (5).
    "extras/assurance": 3_696,
    # Columns of public tables still become wider: what type a period's keys have, its values alone decide.
    # Spark, Ibis and PostgreSQL, too, say whether all was read of one state (7).
    # Rows of many periods from PostgreSQL in one scan, and in as many as fit (36).
    # Periods that Spark reads are counted in one job for each question: twelve days in a fifth of the time (81).
    # A failed input check is recognised by its error, not by words (8).
    # The cells and the people in them are counted in one job of Spark, and names are looked at there (7).
    # PostgreSQL sorts numbers faster than it groups them: a count takes 1.2 times the plain one instead of 1.6 (8).
    # Functions and operators that could stand for a database's own are refused (40), and so are by-columns whose
    # collation takes several spellings for one, with which one person's would name a cell (20). Spark too (8).
    "extras/connect": 1_709,
    # Sums of columns that a policy names, within its bounds (47).
    # Refusals before anything is published are logged (2).
    # Which questions were asked of no rows before, and places in turn: half the time of a new question (19).
    # The log of releases on standard error (8).
    # Lines of the audit log that wait share a sync, those of an answer that was public one, and those of a question are
    # stored while it is certified; tokens are parsed when their file changes. A replay takes half the time (47).
    "extras/gate": 1_796,
    # The catalogue of published rules and its command (140), and planning of noise below k. 1,900 would take the
    # guesses that halve the time of a search (90), curves, and the ways in which a choice is written (110).
    # Levels of hierarchies, derived or each by itself (99). Bounds of sums against their error (44), as a command (66).
    # Plans of sums and of levels name their schema and library (12), and hold p_min against the cells (4).
    # Repairs raise release thresholds of found cells and of sums, too, and take noised small counts away (15).
    "extras/plan": 2_537,
    # Sums are called sums (7). The first screen: cells by periods, small pictures over time, changes that noise allows
    # to be seen.
    # A revision writes the report of everything again (4).
    # Of a secret sample draws may be dependent, and records may be known (2).
    # Corrections are counted and said (6). A weak promise is named at ε = 1 and at its budget's δ, and so is what is
    # left of it (12). Budgets where no attacker is declared (7). A report is stated at the δ of its job's target (2).
    "extras/report": 3_896,
    # With the dialogue of `init`, the only one there is (175), which cli had. Groups are given and offered (56).
    # A data set may have another name than its file (6).
    # The release threshold is enough for all periods that are proposed, and these are as many as a budget allows (27).
    "extras/start": 937,
    # Cross-tables, workbooks, CSV with metadata, JSON-stat and SDMX-CSV: what offices print and exchange. Code lists.
    # The files of a job's day (29), with what follows of hidden counts (8). Sums are called sums (7).
    # Weighted cross-tables, a missing key beside an empty text (34). Workbooks on paper: heights, widths, pages (14).
    # Sums along a hierarchy of people in several cells are refused, and a sheet says where intervals come from (3).
    # The cover has the title, publisher and contact of a job (5).
    # In workbooks cross-tables (41) and estimates of samples (24).
    # In a cross-table a text like a missing key is quoted once (2).
    # Rounded counts are not said to be exact (1).
    # Why noised counts have no total (6).
    "extras/tables": 827,
    # Definitions 7 to 9, which tests had; the dependence of a release, computed; information and relaxed privacy.
    "extras/theory": 1_905,
}
#: Pure mathematics, which sees no data.
MATHEMATICS = {"errors", "model", "theorems", "composition", "certificates", "extras/theory"}
#: What mathematics may import besides itself. Nothing here reads files, clocks, the environment or randomness.
PURE = {
    "__future__",
    "abc",
    "ast",
    "bisect",
    "calendar",
    "collections",
    "contextlib",
    "contextvars",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "flint",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "io",
    "itertools",
    "json",
    "keyword",
    "math",
    "numbers",
    "numpy",
    "re",
    "scipy",
    "struct",
    "tokenize",
    "types",
    "typing",
    "unicodedata",
    "urllib",
}
#: What names cells has a type, which pandas knows.
TYPED = {"model/keys.py": {"pandas", "pyarrow"}, "model/period.py": {"pandas"}}
#: What a noiseless release of a pandas frame without a ledger must not load.
HEAVY = {
    "great_expectations",
    "ibis",
    "jinja2",
    "matplotlib",
    "narwhals",
    "opendp",
    "polars",
    "pydantic",
    "pyspark",
    "rich",
    "sqlite3",
    "starlette",
    "typer",
    "uvicorn",
}


def room(path: Path) -> str:
    """Return the folder of a module: that of an extra with its name, and of a module of the top its own."""
    parts = path.relative_to(ROOT / "pkdp_pipeline").with_suffix("").parts
    return "/".join(parts[:2]) if parts[0] == "extras" and len(parts) > 2 else parts[0]


def of_types(path: Path) -> Iterator[ast.AST]:
    """Yield what is there for types only."""
    for node in nodes(path):
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            yield from ast.walk(node)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


@pytest.fixture(scope="module", autouse=True)
def _all_parsed() -> None:
    """Read all modules before the first rule: that takes longer than to hold them to any."""
    for path in MODULES:
        nodes(path)


@cache
def imports(path: Path) -> list[tuple[str, bool]]:
    """Return what a module imports (``pkdp_pipeline.room``, else top-level names), and whether for types only."""
    for_types = {id(node) for node in of_types(path)}
    imported = []
    for node in nodes(path):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            whole = node.module == "pkdp_pipeline"
            names = [f"pkdp_pipeline.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        imported += [
            (".".join(name.split(".")[: 2 if name.startswith("pkdp_pipeline.") else 1]), id(node) in for_types)
            for name in names
        ]
    return imported


def imported(path: Path) -> set[str]:
    return {name for name, _ in imports(path)}


def importers(target: str) -> set[str]:
    """Return the modules outside a module, or a folder, that import it."""
    own = target.removeprefix("pkdp_pipeline.").replace(".", "/")
    pattern = re.compile(rf"^\s*(from|import) {re.escape(target)}\b", re.MULTILINE)
    naming = {inside(path) for path in MODULES if pattern.search(path.read_text(encoding="utf-8"))}
    return {name for name in naming if not name.startswith(own) and name != "__init__.py"}


def inside(path: Path) -> str:
    return str(path.relative_to(ROOT / "pkdp_pipeline" if ROOT / "pkdp_pipeline" in path.parents else ROOT))


@cache
def graph() -> dict[str, set[str]]:
    """Return which modules each module imports, for types too."""
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES
    }
    imported_by: dict[str, set[str]] = {}
    for module, path in modules.items():
        named = [
            (node.module or "", f"{node.module}.{alias.name}")
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        inner_or_outer = {inner if inner in modules else outer for outer, inner in named}
        imported_by[module] = (inner_or_outer & modules.keys()) - {module}
    return imported_by


def room_of(module: str) -> str:
    words = module.split(".")[1:] or ["__init__"]
    return "/".join(words[:2]) if words[0] == "extras" else words[0]


def test_imports_go_downward():
    assert {room(path).partition("/")[0] for path in MODULES} == {*ORDER, "__init__"}
    upward = {
        (module, target)
        for module, targets in graph().items()
        if room_of(module) not in FACES
        for target in targets
        if ORDER.index(room_of(target).partition("/")[0]) > ORDER.index(room_of(module).partition("/")[0])
    }
    assert upward == set()


def test_no_extra_imports_another():
    crossing = {
        (room_of(module), room_of(target))
        for module, targets in graph().items()
        for target in targets
        if room_of(module).startswith("extras/") and room_of(target).startswith("extras/")
    }
    assert {(module, target) for module, target in crossing if module != target} <= DRAWS


def test_no_module_imports_itself_by_way_of_others():
    within = {module: targets for module, targets in graph().items() if room_of(module) not in FACES}
    graphlib.TopologicalSorter(within).prepare()  # which names a circle where there is one


def lines_of_code(path: Path) -> int:
    """Return how many lines hold code: no docstring of a module, class, function or field, comment or blank line."""
    documented, of_texts = set[int](), set[int]()
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented |= {line for first in node.body[:1] for line in lines_of_text(first)}
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                documented |= {line for further in node.body[1:] for line in lines_of_text(further)}
        elif isinstance(node, ast.JoinedStr | ast.Constant) and node.end_lineno != node.lineno:
            of_texts |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    written = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    code = {number for number, line in enumerate(written, start=1) if line and not line.startswith("#")}
    return len((code | of_texts) - documented)


def lines_of_text(node: ast.stmt) -> range:
    """Return the lines of a statement that is nothing but a text; none of another."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1) if is_text else range(0)


def test_the_house_stays_within_its_lines():
    lines = Counter[str]()
    for path in MODULES:
        parts = path.relative_to(ROOT / "pkdp_pipeline").parts[:-1]
        lines["/".join(parts[:2] if parts[:1] == ("extras",) else parts[:1]) or "."] += lines_of_code(path)
    print("", *(f"{folder:20} {lines[folder]:6,} of {most:6,}" for folder, most in LINES.items()), sep="\n")
    print(f"{'together':20} {lines.total():6,} of {sum(LINES.values()):6,}")
    above = {folder: number for folder, number in lines.items() if number > LINES[folder]}
    assert above == {}, "take as many lines from elsewhere, or raise LINES and say above the number what they are for"


#: Modules at most, which only falls as well: of the package; that a frame's histogram loads; in which it calls
#: functions; and in which a job's period does, of Parquet, into a ledger. A reader of either has so many to open.
#: What cannot hold or is not declared is not asked: bins, noise, several cells, theorems on both, a `where`.
MODULE_LIMITS = {"of the package": 200, "loaded by a histogram": 81, "run by a histogram": 24, "run by a job": 53}


def modules_run(program: Callable[[], object]) -> set[str]:
    """Return the modules of the package in which functions are called; that a class is made is no call."""
    called = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        program()
    finally:
        sys.setprofile(None)
    return {inside(path) for path in MODULES if str(path) in called}


@pytest.fixture
def daily_job(tmp_path) -> jobs.Job:
    rows = [(date(2020, 1, day), person, "x") for day in (1, 2) for person in range(40)]
    pd.DataFrame(rows, columns=["day", "person", "town"]).to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "job.toml").write_text(
        'dataset = "d"\nsource = "rows.parquet"\nperiod = { column = "day" }\nunit = "person"\nledger = "l.sqlite"\n'
        'evidence = { kind = "one_day_protected" }\nattacker = { p_max = 0.0917 }\noutput = { directory = "out" }\n'
        '[[release]]\nname = "by_town"\nby = "town"\nk = 20\n',
        encoding="utf-8",
    )
    return jobs.load_job(tmp_path / "job.toml")


def test_a_release_goes_through_few_modules(loaded, daily_job):
    """What is read once in a process is not counted: each is published for the second time, with other numbers."""
    for people in (40, 41):
        frame = pd.DataFrame({"u": range(people), "c": ["x"] * people})
        attacker = pkdp.AttackerModel(p_max=people / 500)
        of_frame = modules_run(partial(frame.pkdp.histogram, "c", unit="u", k=20, attacker=attacker))
        of_job = modules_run(partial(jobs.run_job, daily_job, date(2020, 1, people - 39)))
    loads = [name for name in loaded[0] if name.partition(".")[0] == "pkdp_pipeline"]
    numbers = dict(zip(MODULE_LIMITS, map(len, (MODULES, loads, of_frame, of_job)), strict=True))
    print("", *(f"{name:22} {number:4} of {MODULE_LIMITS[name]:4}" for name, number in numbers.items()), sep="\n")
    above = {name: number for name, number in numbers.items() if number > MODULE_LIMITS[name]}
    assert above == {}, "merge modules, or raise MODULE_LIMITS and say there what the new one is for"
    assert "releases/publish.py" in of_frame & of_job


#: Words that name nothing: a variable is called what it holds.
VAGUE = {
    *("one", "found", "told", "held", "asked", "seen", "near", "far", "some", "at", "its", "made", "looked"),
    *("FEW", "MOST", "TOGETHER", "AT_ONCE", "MANY"),
}


#: Names that others read: a method and a field that are documented, a key of reports, a column of ledgers.
PUBLISHED_NAMES = {
    ("extras/report/content.py", "asked"),
    ("extras/tables/hierarchy.py", "at"),
    ("ledger/rows.py", "told"),
    ("releases/printed.py", "asked"),
}


def bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each name that is bound: variables, fields, parameters, functions, classes, attributes and imports."""
    named = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or ""
        elif isinstance(node, named) and node.name:
            yield node.name


def vague_names(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """Return each vague name that modules bind, with the module, as often as it is bound."""
    return [(inside(path), name) for path in paths for name in bound_names(nodes(path)) if name.strip("_") in VAGUE]


def test_names_say_what_they_hold():
    assert set(vague_names(MODULES)) == PUBLISHED_NAMES
    example = ast.walk(ast.parse("from a import b as far\nfor one, (other, at) in []: x.told = lambda seen, *made: 0"))
    assert set(bound_names(example)) == {"far", "one", "other", "at", "told", "seen", "made"}
    fields_too = ast.walk(ast.parse("class A:\n    held: int\n    def some(self, *, asked=0): (found := its)"))
    assert set(bound_names(fields_too)) == {"A", "held", "some", "self", "asked", "found"}


#: The modules of tests by folder; those of the extras by room.
TESTS: dict[str, list[Path]] = {}
for _path in sorted((ROOT / "tests").rglob("*.py")):
    _parts = _path.relative_to(ROOT / "tests").parts[:-1]
    TESTS.setdefault("/".join(_parts[: 2 if _parts[:1] == ("extras",) else 1]) or ".", []).append(_path)


@pytest.mark.parametrize("folder", TESTS)
def test_names_of_tests_say_what_they_hold(folder):
    assert vague_names(TESTS[folder]) == []


#: Rooms and modules that write sentences. What is said is passed between them as values, and rendered last.
SAYING = (
    *("certificates", "cli", "composition", "extras/assurance/verification", "extras/plan", "extras/report"),
    *("extras/start", "jobs/dry_run.py", "jobs/outputs/__init__.py"),
    *("ledger/account.py", "ledger/history.py", "ledger/overlap_cases.py", "ledger/totals.py", "ledger/history.py"),
    *("model/context.py", "model/evidence.py", "model/attacker.py", "model/wording.py", "releases", "theorems"),
)
#: Methods that search a text or cut it up, and the module that does.
CUTS = {
    *("endswith", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "split"),
    *("splitlines", "startswith", "translate"),
}
#: Functions of theirs that read texts of others, or change letters and no words.
READS = {
    "certificates/sentences.py": {"in_words": "declarations become clauses of one sentence, without their full stops"},
    "cli/file_commands.py": dict.fromkeys(("_file_keys", "edges_of", "groups_of", "whole_pair"), "what is typed"),
    "cli/job_commands.py": {"chosen_day": "what is typed"},
    "cli/main.py": {"_complain": "lines of a message that are to be pasted", "main": "what is typed"},
    "cli/options.py": {
        "_display": "what is typed",
        "_evidence": "what is typed",
        "_of_fields": "names of fields",
        "_typed": "names of fields",
        "decorate": "a signature",
        "setting": "names of arguments",
        "share": "what is typed",
    },
    "cli/screen.py": {
        "<module>": "blanks at which no line may end",
        "_text": "letters that a terminal lacks",
        "_typed": "a value that a message sets",
        "_wrapped": "blanks at which no line may end",
        "command": "options, at which alone a line may end",
        "option_names": "names of parameters",
        "page": "marks in front of lines",
        "pasted": "the lines of a file",
    },
    "composition/part.py": {"_overlapping": "periods, as users name them"},
    "jobs/dry_run.py": {
        "<module>": "the hash that a summary ends with",
        "_summaries": "the lines of a file",
        "certificates_of": "names of files",
        "check_folder": "names of files",
    },
    "extras/assurance/verification/claims.py": {
        "<module>": "names and predicates of a file",
        "_is_about_units": "what older versions wrote as caveats of a file",
        "_own_texts": "names and predicates of a file",
        "words": "keys of claims",
    },
    "extras/assurance/verification/files.py": {"opened": "a file"},
    "extras/plan/edits.py": {"diff": "the lines of a file"},
    "extras/plan/printing.py": {"_value": "names of fields"},
    "extras/plan/question.py": {"_rows": "a file", "read": "a file"},
    "extras/report/commands.py": {"_own_files": "names of files", "report": "names of files"},
    "extras/report/content.py": {"text_of": "blanks at which no line may end"},
    "extras/report/figures/__init__.py": {
        "<module>": "pictures of matplotlib",
        "_legend_name": "names of cells",
        "_of_page": "pictures of matplotlib",
        "inline_svg": "pictures of matplotlib",
    },
    "extras/report/figures/style.py": {
        "_dates": "dates",
        "in_figures": "numbers",
        "literal": "names of cells",
        "put_ticks": "numbers",
        "shortened": "names of cells",
    },
    "extras/report/ledger/explaining.py": {
        "found_entry": "the start of a key, as it is typed",
        "<module>": "characters that YAML escapes",
        "_written": "names of data sets",
        "number": "numbers",
        "quoted": "characters that YAML escapes",
    },
    "extras/report/pages/__init__.py": {
        "_bound": "numbers of a page, within which no line may end",
        "<module>": "numbers of a page, within which no line may end",
        "_environment": "numbers, and names of templates",
        "_tidied": "empty lines",
        "carried": "a file",
        "carrying": "characters that JSON escapes",
    },
    "extras/report/pages/officer.py": {"_checking": "names of files"},
    "extras/report/__init__.py": {"environment": "names of templates"},
    "extras/report/verification/__init__.py": {
        "_page": "the lines of a file",
        "_table_faults": "a question, in which a filter of the job's own stands between two texts",
    },
    "extras/start/init_answers.py": {
        "check": "what is typed",
        "_ask_about": "names of keys",
        "_check_given": "names of options",
        "_missing": "names of options",
        "_read": "what is typed",
        "columns": "what is typed",
        "period": "what is typed",
    },
    "extras/start/init_text.py": {
        "<module>": "names of columns",
        "_cells": "what is typed",
        "how_to_give": "names of options, and forms of dates",
        "proposed": "names of columns",
        "proposed_edges": "names of columns",
        "stem_of": "names of files",
        "text": "names of columns",
    },
    "model/context.py": {"_named": "periods, as users name them"},
    "model/evidence.py": {"_short": "numbers"},
    "model/wording.py": {
        "<module>": "what others write",
        "names_guarantee": "what others write",
        "with_arguments": "names of arguments in messages become those of a command's options",
    },
    "releases/accessor.py": {"_callers_level": "names of modules", "of_its_frame": "a signature"},
    "releases/options.py": {
        "_choice": "what pydantic says",
        "_complaint": "places in a file",
        "_meant": "what stands in a file",
        "_message": "what pydantic says",
        "_spelled": "numbers",
        "_table_of": "the first line of a docstring",
    },
}


#: Methods of patterns, which cut up what they match.
PATTERNS = {"findall", "finditer", "fullmatch", "match", "search", "sub", "subn"}


def cuts(path: Path, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each module and function in which a text is searched or cut up, or that is passed on as a function."""

    def is_cut(node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            return any(name.name == "re" and name.asname for name in node.names)
        if isinstance(node, ast.ImportFrom):
            return node.module == "re"
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            is_search = node.attr in PATTERNS and owner not in ("self", "bound")  # which search for attackers
            of_texts = node.attr in CUTS and owner not in ("np", "dataclasses")
            return is_search or of_texts or (owner == "re" and node.attr not in ("Match", "Pattern"))
        # A name among names has no blank.
        return (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Constant | ast.JoinedStr)
            and isinstance(node.ops[0], ast.In | ast.NotIn)
            and " " in ast.unparse(node.left)
        )

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if is_cut(node):
            yield inside(path), function
        for child in ast.iter_child_nodes(node):
            yield from walk(child, function)

    return walk(tree, "<module>")


LISTED = {(module, function) for module, functions in READS.items() for function in functions}


def test_no_module_reads_a_sentence():
    saying = [path for path in MODULES if inside(path).startswith(SAYING)]
    cutting = {place for path in saying for place in cuts(path, parsed(path))}
    assert cutting - LISTED == set(), "pass the value, and render the text where it is shown"
    assert LISTED - cutting == set(), "these cut nothing up any more"
    examples = (
        "text.partition(', given ')[2]",
        "'a b' in text",
        "f'{a} b' not in text",
        "re.sub('a', '', text)",
        "PATTERN.search(text)",
        "map(str.split, texts)",
        "import re as regex",
        "from re import sub",
    )
    for example in examples:
        tree = ast.parse(f"async def f(text):\n    {example}")
        assert list(cuts(ROOT / "pkdp_pipeline" / "x.py", tree)) == [("x.py", "f")], example


def texts_cut(program: Callable[[], object]) -> set[tuple[str, str]]:
    """Return in which functions of the package a text of five words or more is cut up while a program runs."""
    places = set[tuple[str, str]]()
    methods = {*CUTS, "find", "index", "rfind", "rindex"}

    def note(frame: FrameType, event: str, called: object) -> None:
        text = getattr(called, "__self__", None)
        if event == "c_call" and isinstance(text, str) and text.count(" ") >= 4:
            code = frame.f_code
            names = [name for name in code.co_qualname.split(".") if name[0] != "<"]
            if called.__name__ in methods and code.co_filename.startswith(str(ROOT / "pkdp_pipeline")):
                places.add((inside(Path(code.co_filename)), (names or ["<module>"])[-1]))

    sys.setprofile(note)
    try:
        program()
    finally:
        sys.setprofile(None)
    return places


#: Functions of other rooms that cut up long texts, none of which is a sentence of theirs.
FILES_READ = {
    ("jobs/outputs/files.py", "write_files"): "the last line of a file",
    ("ledger/records.py", "_read_account"): "SQL",
    ("ledger/sqlite_database.py", "split_statements"): "SQL",
    ("releases/accessor.py", "of_its_frame"): "a docstring",
    ("schemas/__init__.py", "field_texts"): "docstrings",
}


@pytest.fixture
def said() -> Callable[[], None]:
    """A program that lets the package say much: what is certified, refused, explained and added up."""
    frame = pd.DataFrame({"u": range(43), "c": ["x"] * 43})
    asked_for = {"unit": "u", "k": 20, "attacker": pkdp.AttackerModel(p_max=0.093)}

    def program() -> None:
        with pkdp.Ledger.open(":memory:", dataset="d", evidence=pkdp.OneDayProtected()) as ledger:
            for period in ("2020-01-01", "2020-01-02"):
                release = pkdp.histogram(frame, "c", **asked_for, ledger=ledger, period=period)
            total = ledger.total()
            assert pkdp.Certificate.from_json(total.to_json()).verify()
            assert all((release.certificate.sentence(), repr(release), release._repr_html_(), total.protection()))
            with pytest.raises(pkdp.DifferencingError):
                pkdp.count(frame, **asked_for, ledger=ledger, period=period)
        assert str(frame.pkdp.explain("c", **asked_for))
        with pytest.raises(pkdp.NotCertifiableError):
            pkdp.certify(pkdp.Histogram(k=1), pkdp.AttackerModel(p_max=0.093))

    return program


def test_no_sentence_is_cut_up_where_much_is_said(said):
    assert texts_cut(said) - LISTED - FILES_READ.keys() == set(), "pass the value, and render the text last"


def test_a_sentence_that_is_cut_up_is_seen(monkeypatch):
    """In a function of the package, whatever it is called by."""
    code = "def f(text):\n    return [*map(lambda cut: cut(), [functools.partial(text.rsplit, ','), text.split])]"
    names: dict[str, Any] = {"functools": functools}
    exec(compile(code, ROOT / "pkdp_pipeline" / "model" / "wording.py", "exec"), names)
    assert texts_cut(lambda: names["f"]("Private at ε = 1, given this.")) == {("model/wording.py", "f")}
    assert texts_cut(lambda: names["f"]("a name")) == set()


def test_mathematics_sees_no_data_and_no_world():
    for path in MODULES:
        if room(path) in MATHEMATICS:
            at_work = {name for name, for_types in imports(path) if not for_types}
            foreign = {name for name in at_work if name.split(".")[0] != "pkdp_pipeline"}
            assert foreign <= PURE | TYPED.get(inside(path), set()), path.name
            assert not re.search(r"\b(open|print|input|exec|eval)\(", path.read_text(encoding="utf-8")), path.name
            assert "np.random" not in path.read_text(encoding="utf-8"), path.name


@pytest.fixture(scope="module")
def loaded() -> list[list[str]]:
    """What a process had loaded: after a release of a pandas frame, what figures are named in, and a drawn figure."""
    program = (
        "import sys, pandas as pd, pkdp_pipeline as pkdp; "
        "asked = dict(unit='u', k=20, attacker=pkdp.AttackerModel(p_max=0.1)); "
        "frame = pd.DataFrame({'u': range(40), 'c': ['x'] * 40}); frame.pkdp.histogram('c', **asked); "
        "print(*sys.modules); "
        "import pkdp_pipeline.extras.report.figures; print(*sys.modules); "
        "ledger = pkdp.Ledger.open(':memory:', dataset='d'); "
        "pkdp.histogram(frame, 'c', ledger=ledger, period='a', **asked); ledger.plot(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, text=True, stdout=subprocess.PIPE)
    return [line.split() for line in done.stdout.splitlines()]


def test_a_release_of_a_pandas_frame_loads_no_other_engine(loaded):
    assert HEAVY & set(loaded[0]) == set()


def test_naming_the_figures_loads_no_matplotlib(loaded):
    assert "matplotlib" not in loaded[1]


def test_figures_are_drawn_without_the_report(loaded):
    assert "matplotlib" in loaded[2]
    assert "pkdp_pipeline.extras.report.pages" not in loaded[2]


def test_engines_know_nothing_about_privacy():
    for path in MODULES:
        if room(path) == "engines":
            text = path.read_text(encoding="utf-8")
            names = set(re.findall(r"^\s*from pkdp_pipeline\.(\w+(?:\.\w+)?)", text, re.MULTILINE))
            allowed = {
                "errors",
                "plugins",
                "model.columns",
                "model.comparisons",
                "model.keys",
                "model.predicate",
                "model.question",
            }
            assert {name for name in names if name.split(".")[0] != "engines"} <= allowed, path.name


def test_the_rest_of_the_papers_carries_nothing():
    assert importers("pkdp_pipeline.extras.theory.printed") == set()


def test_there_is_one_way_out():
    counting = {path for path in MODULES if "engine_for" in path.read_text(encoding="utf-8")}
    assert {inside(path) for path in counting} == {
        "engines/__init__.py",
        "engines/narwhals_engine.py",
        "releases/public_table.py",
    }
    assert importers("pkdp_pipeline.releases.public_table") == {"releases/publish.py"}
    publishing = {room(ROOT / "pkdp_pipeline" / name) for name in importers("pkdp_pipeline.releases.publish")}
    assert publishing == {"extras/assurance", "extras/gate", "sql", "jobs", "releases"}


def test_the_map_of_the_code_shows_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = page.split("```text")[1].split("```")[0]
    for path in sorted((ROOT / "pkdp_pipeline").iterdir()):
        if path.suffix == ".py" and path.name != "__init__.py":
            assert path.name in drawn
        elif path.is_dir() and any(path.rglob("*.py")):
            assert f"{path.name}/" in drawn


def printed(program: str) -> list[str]:
    """Return the words that a process prints."""
    done = subprocess.run([sys.executable, "-c", program], check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.split()


@pytest.fixture
def beside_pandas() -> list[str]:
    return printed(
        "import sys, pandas, polars; before = set(sys.modules); import pkdp_pipeline; print(*set(sys.modules) - before)"
    )


def test_importing_the_package_loads_only_its_accessor(beside_pandas):
    room = "pkdp_pipeline.releases"
    assert set(beside_pandas) == {"pkdp_pipeline", room, f"{room}.accessor"}


AGAIN = (
    "import importlib; importlib.reload(pkdp); [sys.modules.pop(name) for name in [*sys.modules] if 'pkdp' in name]; "
)


@pytest.fixture(
    params=one_in(
        3,
        [
            "",
            "import importlib.util; importlib.util.find_spec('pandas'); ",
            "pkdp.count; ",
            f"{AGAIN}import pkdp_pipeline; ",
            "sys.meta_path.insert(0, type('Old', (), {'find_module': lambda *_: None})()); ",
        ],
    ),
)
def before_pandas(request: pytest.FixtureRequest) -> list[str]:
    return printed(
        "import sys, pkdp_pipeline as pkdp; print('pandas' in sys.modules); "
        f"{request.param}from pandas import DataFrame; from polars import LazyFrame; "
        "print(DataFrame.pkdp.__module__, LazyFrame.pkdp is DataFrame.pkdp); "
        "print(*(type(finder).__name__ for finder in sys.meta_path if hasattr(finder, 'library')))"
    )


def test_the_package_without_pandas_and_polars_waits_for_them(before_pandas):
    assert before_pandas == ["False", "pkdp_pipeline.releases.accessor", "True"]  # and no finder is left


@pytest.fixture
def public() -> dict[str, object]:
    """What has a public name: all of it is loaded by then."""
    return {name: getattr(pkdp, name) for name in pkdp.__all__}


def test_the_public_names_are_these(public):
    assert pkdp.__all__ == [
        "EACH_ROW",
        "ArgumentError",
        "AttackerModel",
        "Audit",
        "Bands",
        "Bins",
        "BoundedDependence",
        "BoundedParticipation",
        "BoundedSensitivity",
        "Budget",
        "BudgetExceededError",
        "Certificate",
        "ConfigError",
        "Count",
        "CountingQueries",
        "DifferencingError",
        "DisjointUnits",
        "Explanation",
        "GeometricNoise",
        "Hierarchy",
        "Histogram",
        "IndependentDraws",
        "IndependentGivenHabits",
        "InputCheckError",
        "Leakage",
        "Ledger",
        "LedgerError",
        "NoEvidenceError",
        "NotCertifiableError",
        "OncePerUnit",
        "OneDayProtected",
        "PerturbationTable",
        "PkdpError",
        "PrivacyLoss",
        "RandomRounding",
        "Release",
        "Rounding",
        "SamePeople",
        "SameTable",
        "Sum",
        "Target",
        "TemporaryError",
        "Verification",
        "__version__",
        "audit",
        "bins",
        "certify",
        "compose",
        "count",
        "explain",
        "histogram",
        "largest_p_max",
        "largest_p_max_between",
        "read_release",
        "rule",
        "smallest_k",
        "smallest_noise",
        "smallest_release_threshold",
        "smallest_unknown",
        "sum",
        "verify",
    ]
    assert None not in public.values()
    assert dir(pkdp) == sorted(pkdp.__all__)
    with pytest.raises(AttributeError):
        _ = pkdp.no_such_name


def test_the_public_names_of_the_theory_are_these():
    assert theory.__all__ == [
        "FiniteModel",
        "acceptable",
        "bounded_dependence",
        "bounded_influence",
        "crowd",
        "dependency",
        "knows_more",
        "markov_chain",
    ]
    for name in theory.__all__:
        assert getattr(theory, name).__doc__


def test_the_public_names_of_sql_are_these():
    assert pkdp.duckdb.__all__ == ["Gate", "connect", "install"]
    for name in pkdp.duckdb.__all__:
        assert getattr(pkdp.duckdb, name) is not None
    with pytest.raises(AttributeError):
        _ = pkdp.duckdb.no_such_name


def test_the_top_level_holds_what_it_should():
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        assert {line.split("/")[0] for line in listed.splitlines()} <= TOP
    assert {path.name for path in ROOT.iterdir()} >= TOP


def test_modules_are_short():
    long = {inside(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 600} == {}, "move a part to a module of its own"


ASKING = re.compile(r"\b(?:Who|What|Whom|Whose)(?:ever)?\b(?!-)[^.?]*(?P<question>\?)?")


def prose() -> Iterator[tuple[str, str]]:
    """Yield the texts that people read, with where they stand: docstrings, messages, schemas, pages."""
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{inside(path)}:{node.lineno}", node.value
    package = ROOT / "pkdp_pipeline"
    others = [*package.rglob("*.json"), *package.rglob("*.toml"), *package.rglob("*.jinja")]
    for path in (*others, *(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_sentences_and_headings_begin_with_their_subject():
    """None begins with who or what and the like but a question."""
    begun = [(where, match[0]) for where, text in prose() for match in ASKING.finditer(text) if not match["question"]]
    assert begun == []
    assert [bool(match["question"]) for match in ASKING.finditer("What if? Whoever asks. What-if")] == [True, False]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for_and_a_room_what_it_offers(path):
    tree = parsed(path)
    assert ast.get_docstring(tree), "no docstring"
    declared = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None
        and [getattr(target, "id", None) for target in getattr(node, "targets", [getattr(node, "target", None)])]
        == ["__all__"]
    ]
    if path.name != "__init__.py":
        imports = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert all(imports & set(names) for names in declared), "only what passes names on says what it offers"
        return
    assert len(declared) == 1, "no __all__"
    if path.parent == ROOT / "pkdp_pipeline":
        return  # its names are loaded when first used
    defined = set()
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    assert set(declared[0]) <= defined


def spelled(path: Path) -> set[str]:
    """Return the names that a module declares as fields or parameters, or has as texts."""
    texts = {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    parameters = {node.arg for node in nodes(path) if isinstance(node, ast.arg)}
    declared = {getattr(node.target, "id", "") for node in nodes(path) if isinstance(node, ast.AnnAssign)}
    return texts | parameters | declared


#: Of a declared value, in its own module: from how many of its fields on another module spells it once more, and at
#: most how many modules do. These numbers only fall.
SPELLED = (
    # What becomes of a stronger attacker, what a theorem rests on, and what `pkdp plan` answers and offers: two modules
    # of fewer fields became one.
    ((pkdp.AttackerModel,), "model/attacker.py", 5, 3),
    # Calls, which are written out; a job's keys in forms of their own; what a gate permits; an audit.
    ((pkdp.Count, pkdp.Histogram), "model/mechanisms.py", 5, 6),
    # Two documents with budgets as they stand.
    ((pkdp.Budget,), "ledger/chain.py", 4, 2),
    # Three calls and two commands that are written out, a macro, job files, what a gate permits, facts of a release.
    ((Question,), "model/question.py", 9, 11),
)


def test_a_declaration_is_spelled_once():
    """Files, flags, SQL and schemas read the fields of a declared value."""
    for declared, own, many, most in SPELLED:
        names = {field.name for kind in declared for field in fields(kind)}
        naming = {inside(path) for path in MODULES if len(names & spelled(path)) >= many}
        assert own in naming
        assert len(naming) - 1 <= most, naming
    package = [*(ROOT / "pkdp_pipeline").rglob("*.py"), *(ROOT / "pkdp_pipeline").rglob("*.toml")]
    assert {inside(path) for path in package if "once_per_unit" in path.read_text(encoding="utf-8")} == {
        "extras/start/questions.toml",
        "model/evidence.py",
    }


@pytest.mark.parametrize("kind", [pkdp.AttackerModel, pkdp.Leakage, pkdp.Budget, pkdp.Target, pkdp.GeometricNoise])
def test_a_declared_field_says_what_it_is(kind):
    assert {field.name for field in fields(kind)} == field_texts(kind).keys()
    assert all(text[0].isupper() or text[0] in '"δε' for text in field_texts(kind).values())


def test_the_tests_of_a_file_run_in_one_process(request):
    """What a module makes once is made once: pytest-xdist shows that it groups tests by a suffix of their names."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("all tests run in one process")
    assert request.node.nodeid.endswith("@test_house")


def test_marks_of_other_programs_are_given_where_make_looks_for_them():
    """`make test-programs` reads test files with such a mark, and two folders whose other files give it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (marks,) = re.findall(r"^PROGRAMS := (.*)$", makefile, re.MULTILINE)
    given = re.compile(rf"mark\.({marks.replace(' or ', '|')})\b")
    helpers = {path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")}
    marking = {path.parent for path in helpers if given.search(path.read_text(encoding="utf-8"))}
    assert marking == {ROOT / "tests/jobs", ROOT / "tests/engines/contract"}


def test_pages_install_extras_as_messages_say():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]
    shown = {
        command.replace('"', "'")
        for page in pages
        for command in re.findall(
            r"pip install ['\"](?!ibis-framework)[^'\"\[]*\[\w+\]['\"]", page.read_text(encoding="utf-8")
        )
    }
    extras = {command.partition("[")[2].rstrip("']") for command in shown}
    assert {"report", "spark", "postgres"} <= extras
    assert shown == {INSTALLED.format(extra).partition(" in ")[0] for extra in extras}
