"""What a release is published with says what pyproject.toml says: version, dependencies, commands, licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

from pkdp_pipeline.schemas import VERSION

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Packages that conda-forge calls otherwise.
CONDA_NAMES = {"duckdb": "python-duckdb"}


def yaml(file: str):
    return YAML(typ="safe").load(ROOT / file)


def conda(requirement: str) -> str:
    """Return a requirement as conda-forge writes it."""
    name, bounds = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
    name = name.lower().replace("_", "-")
    return f"{CONDA_NAMES.get(name, name)} {bounds}"


def test_the_recipe_is_that_of_the_project():
    recipe, project = yaml(".ci/recipe.yaml"), PROJECT["project"]
    assert (recipe["context"]["version"], recipe["package"]["name"]) == (project["version"], project["name"])
    assert project["requires-python"] == f">={recipe['context']['python_min']}"
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert sorted(needed) == sorted(map(conda, project["dependencies"]))
    python, pip, *backend = recipe["requirements"]["host"]
    assert (python, pip) == ("python ${{ python_min }}.*", "pip")
    assert backend == [conda(requirement) for requirement in PROJECT["build-system"]["requires"]]
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {target}" for name, target in project["scripts"].items()
    ]
    assert recipe["about"] | {"summary": project["description"], "license": project["license"]} == recipe["about"]
    assert recipe["source"]["sha256"] == "0" * 64  # filled in by .ci/check_wheel.py


def test_versions_are_the_same_everywhere():
    citation = yaml("docs/CITATION.cff")
    assert {PROJECT["project"]["version"], VERSION, citation["version"]} == {VERSION}
    assert citation["license"] == PROJECT["project"]["license"]


def test_the_workflow_publishes_tags_alone_and_keeps_no_token():
    workflow = yaml(".github/workflows/release.yml")
    publish = workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"}
    assert (publish["needs"], publish["if"]) == ("build", "github.ref_type == 'tag'")
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["steps"][-1]["with"] == {"attestations": True}
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    used = re.findall(r"uses: (.*)", text)
    assert len(used) == 5
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action) for action in used)
    steps = [step.get("run", "") for step in workflow["jobs"]["build"]["steps"]]
    assert any(".ci/check_wheel.py --out dist" in step for step in steps)
