"""Plugins: a stranger's package adds one of each kind, found by its entry point, as the extras are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from thorough import thinned

from pkdp_pipeline import plugins
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.plugins import Plugin

TOY = Path(__file__).parent / "data" / "toy_plugin.py"
JOB = """
dataset = "people"
source = { people = 70 }
period = { column = "day" }
unit = "person"
ledger = "ledger.sqlite"
target = "none"

[attacker]
p_max = 0.1

[[release]]
name = "people_by_town"
by = "town"
k = 5

[output]
directory = "out"
text = "note.txt"
"""


def package(folder: Path, name: str, module: str, *lines: str) -> None:
    """Install a package: its module, and the entry points that `lines` name."""
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("\n".join(("[pkdp_pipeline.plugins]", *lines, "")), encoding="utf-8")


def python(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program where the packages of a folder are installed."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.fixture
def toy(tmp_path):
    """What a process does with a package that adds one of each kind."""
    package(tmp_path, "toy_plugin", TOY.read_text(encoding="utf-8"), "toy = toy_plugin:plugin")
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    return python(
        tmp_path,
        """
        import datetime, json, sys
        import pandas as pd
        import pkdp_pipeline as pkdp
        from pkdp_pipeline import plugins
        from pkdp_pipeline.jobs import load_job, run_job
        from typer.testing import CliRunner
        from pkdp_pipeline.cli.main import application

        job = load_job("job.toml")
        result = run_job(job, datetime.date(2020, 1, 1))
        import toy_plugin
        frame = pd.DataFrame({"person": range(40), "town": ["x"] * 40})
        terms = {"unit": "person", "k": 20, "attacker": pkdp.AttackerModel(p_max=0.1)}
        same = pkdp.histogram(toy_plugin.Frame(frame), "town", **terms).to_bytes()
        command = CliRunner().invoke(application(), ["greet", "Ada"])
        print(json.dumps({
            "table": result.releases[0].release.table.to_dict("list"),
            "text": open("note.txt").read(),
            "shown": repr(job.output),
            "engine": same == pkdp.histogram(frame, "town", **terms).to_bytes(),
            "command": [command.exit_code, command.output],
            "view": plugins.view("toy") is toy_plugin.greet,
            "notes": toy_plugin.NOTES,
        }))
        """,
    )


def test_a_package_adds_one_of_each_kind(toy):
    assert toy.returncode == 0, toy.stderr
    content = json.loads(toy.stdout)
    assert content["table"] == {"town": ["Ås"], "count": [70]}
    assert content["text"] == "written"
    assert "note.txt" not in content["shown"]  # an address may hold a password
    assert content["engine"]
    assert content["command"] == [0, "hello Ada\n"]
    assert content["view"]
    assert content["notes"] == ["checked", "began 2020-01-01", "published 1", "ended published"]


WRONG = [
    ("import no_such_module", "stray = stray:plugin", ["'stray'", "cannot be loaded (ModuleNotFoundError)"]),
    ("plugin = {}", "stray = stray:plugin", ["'stray'", "is no pkdp_pipeline.plugins.Plugin"]),
    (
        "from pkdp_pipeline.plugins import Plugin; plugin = Plugin(commands={'verify': 'stray:x'})",
        "stray = stray:plugin",
        ["'assurance'", "'stray'", "'verify'", "uninstall one"],
    ),
    (
        "from pkdp_pipeline.plugins import Plugin; plugin = Plugin()",
        "report = stray:plugin",
        ["'report'", "two packages"],
    ),
    (
        "from pkdp_pipeline.plugins import Plugin; plugin = Plugin(commands={'run': 'stray:x'})",
        "stray = stray:plugin",
        ["'run'", "uninstall"],
    ),
]


@pytest.fixture(params=WRONG)
def wrong(tmp_path, request):
    """What a process says of a package that is wrong, after a command of the core; and which words have to be there."""
    module, line, says = request.param
    package(tmp_path, "stray", module, line)
    ran = python(
        tmp_path,
        """
        import sys
        from pkdp_pipeline.cli.main import main

        for command in ("schema", "nothing"):
            sys.argv = ["pkdp", command]
            try:
                main()
            except SystemExit as ended:
                print(command, ended.code or 0, flush=True)
        """,
    )
    return ran, says


@thinned(4)
def test_what_is_wrong_with_a_package_is_one_message_that_names_it(wrong):
    """A command of the core asks no plugin."""
    ran, says = wrong
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["schema 0", "nothing 2"]
    assert all(words in ran.stderr for words in ("pkdp: ", *says)), ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_nobody_adds_and_what_is_not_installed_are_named(monkeypatch):
    with pytest.raises(ConfigError, match="no installed package adds 'snowflake' to sources"):
        plugins.hook("sources", "snowflake")
    added = {**plugins.plugins(), "toy": Plugin(views={"toy": "pkdp_pipeline.no_such_module:function"})}
    monkeypatch.setattr(plugins, "plugins", lambda: added)
    with pytest.raises(ConfigError, match=r"needs the package pkdp_pipeline\.no_such_module, which is not installed"):
        plugins.view("toy")


def test_modules_keep_their_documented_names():
    import pkdp_pipeline.duckdb
    import pkdp_pipeline.extras.plan.planning as plan
    import pkdp_pipeline.extras.theory.printed as home
    import pkdp_pipeline.extras.theory.privacy_loss.pairs as pairs
    import pkdp_pipeline.theory.privacy_loss.pairs
    from pkdp_pipeline.assurance.attacks import crowd
    from pkdp_pipeline.certificates.statement import what_if
    from pkdp_pipeline.display import figures
    from pkdp_pipeline.jobs.integrations import schedulers
    from pkdp_pipeline.planning import PublicCounts, choices
    from pkdp_pipeline.theory import bounded_leakage, printed

    assert (plan.choices, plan.PublicCounts) == (choices, PublicCounts)
    assert home is printed
    assert printed.__spec__.name == home.__name__
    assert sys.modules["pkdp_pipeline.theory.privacy_loss.pairs"] is pairs
    assert crowd.__name__ == "pkdp_pipeline.extras.assurance.attacks.crowd"
    names = {module.__name__.removeprefix("pkdp_pipeline.extras.") for module in (figures, schedulers, bounded_leakage)}
    assert names == {"report.figures", "connect.schedulers", "theory.bounded_leakage"}
    assert callable(what_if)
    assert pkdp_pipeline.duckdb.__all__ == ["Gate", "connect", "install"]
