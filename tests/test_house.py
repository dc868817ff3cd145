"""The house rules that a reader relies on: what lies where, small modules, declared names, a clean lock."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "pkdp_pipeline").rglob("*.py"))
TOP = {
    ".ci",
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
    "pyproject.toml",
    "requirements.lock",
    "sql",
    "tests",
}


def test_the_top_level_holds_what_it_should():
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        assert {line.split("/")[0] for line in listed.splitlines()} <= TOP
    assert {path.name for path in ROOT.iterdir()} >= TOP


def test_modules_are_short():
    long = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for_and_what_it_offers(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "no docstring"
    declared = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.value is not None
        and [getattr(target, "id", None) for target in getattr(node, "targets", [getattr(node, "target", None)])]
        == ["__all__"]
    ]
    assert len(declared) == 1, "no __all__"
    if path.name == "__init__.py" and path.parent == ROOT / "pkdp_pipeline":
        return  # its names are loaded when first used
    defined = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    assert set(declared[0]) <= defined


def test_the_lock_holds_versions_and_hashes_and_nothing_else():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", lock.strip())
    entry = re.compile(r"[a-z0-9][a-z0-9-]*==[\w.+]+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [text for text in entries if not entry.fullmatch(text)] == []
    names = {text.split("==")[0] for text in entries}
    assert {"numpy", "pandas", "duckdb", "opendp", "pytest", "mypy", "hatchling"} <= names
    assert "pyspark" not in names
