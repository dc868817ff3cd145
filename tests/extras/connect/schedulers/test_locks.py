"""The locks in `.ci`: versions and hashes only, and the versions of `dev.lock` wherever these are possible."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
ENTRY = re.compile(
    r"(?P<pin>[a-z0-9][a-z0-9-]*(?:\[[a-z,]+\])?==[\w.+]+(?: ; [^\\\n]+)?)(?: \\\n    --hash=sha256:[0-9a-f]{64})+"
)
#: What DuckDB 1.5 and dbt do not work with, or ask for less often than the development tools do.
OLDER = {"cffi", "colorama", "duckdb", "pathspec", "pycparser", "python-dateutil", "tzdata"}
#: What the schedulers ask for on other systems than the development tools do, in the same version.
ELSEWHERE = {"attrs", "cffi", "colorama", "psutil", "pycparser"}


def pins(path: Path) -> dict[str, list[str]]:
    """Return the pins of a lock by package; a package can have one for each version of Python."""
    pins_of: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", path.read_text(encoding="utf-8").strip()):
        match = ENTRY.fullmatch(entry)
        assert match is not None, entry
        pin = re.sub(r"\[.*?\]", "", match["pin"])
        pins_of.setdefault(pin.split("==")[0], []).append(pin)
    return pins_of


@pytest.mark.parametrize(
    ("name", "holds", "others"),
    [
        ("engines.lock", {"pyspark", "py4j", "ibis-framework", "sqlglot", "duckdb"}, set()),
        ("duckdb1.lock", {"duckdb", "dbt-core", "dbt-duckdb", "pytest", "hypothesis", "hatchling"}, OLDER),
        ("schedulers.lock", {"dagster", "apache-airflow", "pandas", "duckdb", "hatchling"}, ELSEWHERE),
    ],
)
def test_a_lock_agrees_with_the_first(name, holds, others):
    first, lock = pins(ROOT / ".ci" / "dev.lock"), pins(ROOT / ".ci" / name)
    assert holds <= set(lock)
    assert {package for package in lock.keys() & first.keys() if lock[package] != first[package]} == others


def test_users_install_what_they_need():
    first, lock = pins(ROOT / ".ci" / "dev.lock"), pins(ROOT / "requirements.lock")
    assert {"pandas", "duckdb", "opendp", "great-expectations", "jinja2", "matplotlib", "hatchling"} <= set(lock)
    assert not {"pytest", "mypy", "sphinx", "playwright", "polars"} & set(lock)
    # The same versions; developers need some of them on other systems too.
    versions = {package: [pin.split(" ; ")[0] for pin in pinned] for package, pinned in first.items()}
    assert {package: versions[package] for package in lock} == {
        package: [pin.split(" ; ")[0] for pin in pinned] for package, pinned in lock.items()
    }


def test_one_lock_has_duckdb_1():
    assert [pin.startswith("duckdb==1.5.") for pin in pins(ROOT / ".ci" / "duckdb1.lock")["duckdb"]] == [True]


def test_accounting_is_not_beside_airflow():
    # There it falls back to a version of its first days, without a word.
    assert "dp-accounting" not in pins(ROOT / ".ci" / "schedulers.lock")
