"""The five walks of ``examples/public_data``, command by command, in a copy; and their data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs_run import Runner, scratch, snippets

from pkdp_pipeline.jobs import load_job

__all__ = ["scratch"]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PAGE = (EXAMPLES / "public_data" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(scratch, monkeypatch):
    monkeypatch.chdir(scratch / "examples" / "public_data")


@pytest.mark.docs
@pytest.mark.usefixtures("folder")
def test_the_walks_go_from_a_file_to_a_report():
    Runner("examples/public_data/README.md").page(PAGE)
    ledgers = {path.stem for path in Path("out").rglob("*.sqlite")}
    assert ledgers == {"cases", "first_tests", "customers", "crashes", "masern"}


@pytest.mark.ibis
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
@pytest.mark.usefixtures("folder")
def test_the_crashes_are_published_from_postgresql_byte_for_byte(postgres_url, monkeypatch):
    subprocess.run([sys.executable, "make_inputs.py", postgres_url], check=True)
    monkeypatch.setenv("PKDP_SOURCE", postgres_url)
    (loading,) = (snippet.text for snippet in snippets(PAGE) if "PKDP_SOURCE" in snippet.text)
    text = Path("crashes.toml").read_text(encoding="utf-8")

    def published(job, folder):
        command = [sys.executable, "-m", "pkdp_pipeline.cli.main", "run", job, "--date", "1999-12-31"]
        subprocess.run(command, check=True, env=os.environ, stdout=subprocess.DEVNULL)
        return Path(folder, "crashes/1999/crashes_by_speed.parquet").read_bytes()

    here = published("crashes.toml", "out")
    for way in ("ibis", "postgres"):
        source = loading.splitlines()[-1].replace("ibis", way)
        there = text.replace('source = "out/input/crashes.parquet"', source).replace('"out/', f'"out/{way}/')
        Path(f"from_{way}.toml").write_text(there, encoding="utf-8")
        assert load_job(f"from_{way}.toml").source.public_name != load_job("crashes.toml").source.public_name
        assert published(f"from_{way}.toml", f"out/{way}") == here, way


def test_the_extracts_are_small_and_attributed():
    script = (EXAMPLES / "public_data" / "make_inputs.py").read_text(encoding="utf-8")
    page = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    names = re.findall(r'extract\("(\w+)"', script)
    assert len(names) == 5
    for name in names:
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{name}.parquet`"))
        assert re.search("MIT|CC0|public domain", line), name
    assert sum((EXAMPLES / "data" / f"{name}.parquet").stat().st_size for name in names) < 300_000
