"""Build the wheel, install it into a fresh environment outside the checkout, and use it there.

The wheel declares what it needs: of that, and of what that needs, the files are taken from the environment of
dev.lock. What it forgets to declare, or to carry, fails here and nowhere else.

    python .ci/check_wheel.py [--out dist]

With --out the archive, the wheel and conda-forge's recipe with the hash of the archive are kept there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.metadata import Metadata
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]

CARRIED = (
    "pkdp_pipeline/py.typed",
    "pkdp_pipeline/schemas/certificate.v1.json",
    "pkdp_pipeline/schemas/job.v1.json",
    "pkdp_pipeline/extras/assurance/page/verify.html",
    *(f"pkdp_pipeline/{path.relative_to(ROOT).as_posix()}" for path in sorted((ROOT / "sql").rglob("*.sql"))),
)

USED = """
import json, pathlib
import pandas as pd
import pkdp_pipeline as pkdp

home = pathlib.Path(pkdp.__file__).parent
assert "site-packages" in home.parts, home
attacker = pkdp.AttackerModel(p_max=0.1)
certificate = pkdp.certify(pkdp.Histogram(k=20), attacker)
assert 0.0 < certificate.delta(1.0) < 1e-4
assert pkdp.Certificate.from_json(certificate.to_json()).verify()
frame = pd.DataFrame({"uid": range(50), "country": ["NO"] * 30 + ["SE"] * 20})
with pkdp.Ledger.open("ledger.sqlite", dataset="people") as ledger:
    ask = dict(unit="uid", k=20, attacker=attacker, ledger=ledger, period="2013-01-02")
    release = frame.pkdp.histogram("country", **ask)
    assert frame.pkdp.histogram("country", **ask).replayed
assert release.table["count"].tolist() == [30, 20], release.table
release.to_parquet("release.parquet")
assert pkdp.read_release("release.parquet").id == release.id

import duckdb
with duckdb.connect() as con:
    con.execute("CREATE TABLE visits AS SELECT range AS uid, if(range < 30, 'NO', 'SE') AS country FROM range(50)")
    pkdp.duckdb.install(con, attacker=attacker, unit="uid")
    found = con.execute("FROM pkdp_histogram('visits', 'country', k := 20)").fetchall()
    assert found == [("NO", 30), ("SE", 20)], found
    (one,) = con.execute("SELECT pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1)").fetchall()
    assert one == (certificate.delta(1.0),), one
    (book,) = con.execute("SELECT table_name, row_count FROM pkdp_releases()").fetchall()
    assert book == ("visits", 2), book
"""


def run(*command: object, folder: Path) -> str:
    """Run a command outside the checkout and return what it prints."""
    print("$", *(str(part).strip().splitlines()[0] for part in command[:4]), "…", flush=True)
    return subprocess.run(
        [str(part) for part in command], cwd=folder, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def needed(requirements: Iterable[str]) -> dict[str, metadata.Distribution]:
    """Return the distributions of this environment that these requirements name, and what those need in turn."""
    needs: dict[str, metadata.Distribution] = {}
    followed: set[tuple[str, str]] = set()
    waiting = [(line, "") for line in requirements]
    while waiting:
        line, extra = waiting.pop()
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        distribution = needs.setdefault(requirement.name.lower(), metadata.distribution(requirement.name))
        if not requirement.specifier.contains(distribution.version, prereleases=True):
            raise SystemExit(f"{line} is needed, and dev.lock has {distribution.version}")
        for further in {"", *requirement.extras} - {extra for name, extra in followed if name == requirement.name}:
            followed.add((requirement.name, further))
            waiting += [(line, further) for line in distribution.requires or ()]
    return needs


def take(distribution: metadata.Distribution, folder: Path) -> None:
    """Put the files of a distribution into a folder of packages, as links where that can be."""
    for file in distribution.files or ():
        if ".." in file.parts or file.suffix == ".pyc":  # programs, and what Python makes itself
            continue
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file.locate(), target)
        except OSError:  # another disk
            shutil.copyfile(file.locate(), target)


def recipe(archive: Path) -> str:
    """Return conda-forge's recipe, with the hash of the source archive."""
    text = (ROOT / ".ci" / "recipe.yaml").read_text(encoding="utf-8")
    filled, places = re.subn(r"(?<=sha256: \")0{64}", hashlib.sha256(archive.read_bytes()).hexdigest(), text)
    if places != 1:
        raise SystemExit("the recipe has no place for the archive's hash")
    return filled


def main() -> None:
    """Build, look inside, install, use."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, help="keep what is published in this folder")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # The wheel is built from the source archive, which has all that the tests and the site are made of.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, folder=folder)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            packed = {name.partition("/")[2] for name in source.getnames()}
        tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        if unpacked := set(tracked.splitlines()) - packed - {".gitignore"}:
            raise SystemExit(f"the source archive lacks {', '.join(sorted(unpacked))}")
        (wheel,) = folder.glob("*.whl")
        names = set(zipfile.ZipFile(wheel).namelist())
        (described,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        # As an index reads it: unknown fields and malformed ones are errors.
        about = Metadata.from_email(zipfile.ZipFile(wheel).read(described), validate=True)
        if not about.description or about.description_content_type != "text/markdown":
            raise SystemExit("the wheel's description is not the README")
        if about.metadata_version != "2.4":
            raise SystemExit("the action that uploads reads metadata up to version 2.4")
        missing = [name for name in CARRIED if name not in names]
        if missing:
            raise SystemExit(f"the wheel lacks {', '.join(missing)}")
        stray = sorted({name.split("/")[0] for name in names if not name.startswith("pkdp_pipeline")})
        if stray:
            raise SystemExit(f"the wheel also installs {', '.join(stray)}")

        venv.create(folder / "env")
        python = folder / "env" / "bin" / "python"
        (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        for distribution in needed(map(str, about.requires_dist or ())).values():
            take(distribution, packages)
        pip = (sys.executable, "-m", "pip", "--python", python)
        run(*pip, "install", "--quiet", "--no-compile", "--no-index", "--no-deps", wheel, folder=folder)
        run(*pip, "check", folder=folder)
        run(python, "-I", "-c", USED, folder=folder)
        pkdp = folder / "env" / "bin" / "pkdp"
        said = run(pkdp, "certify", "histogram", "--k", "50", "--p-max", "0.1", folder=folder)
        if "at most 10 % sure" not in " ".join(said.split()):
            raise SystemExit(f"pkdp certify did not state its guarantee:\n{said}")
        run(pkdp, "verify", "--page", "verify.html", folder=folder)
        filled = recipe(archive)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for file in (archive, wheel):
                shutil.copy(file, out)
            (out / "recipe.yaml").write_text(filled, encoding="utf-8")
    print("the wheel is complete and works")


if __name__ == "__main__":
    main()
