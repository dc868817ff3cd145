"""Every snippet of the documentation is run, for real and from top to bottom.

The convention, for a page in Markdown. A page is run in a scratch folder that holds copies of ``examples/`` and
``sql/``.

``python``
    The blocks of a page share one namespace. A ``text`` block directly below one is what it prints.
``sql``
    The blocks of a page share one DuckDB connection: the one that a python block has called ``con``, if there is
    one. A ``text`` block directly below is the result.
``console``
    A line that starts with ``$`` is a command for bash, the lines below it are what it prints, on either
    stream. A command must succeed, so one that is meant to fail is followed by ``; echo "exit code $?"``.
    ``make`` commands set the environment up that this test runs in: they are looked up (``make --dry-run``) but not
    run.
``toml``
    A job file; it is read as one, from ``examples/``.
``text``
    Elsewhere: prose or a drawing, nothing to run.

In what is printed a line ``…`` stands for any lines, and ``…`` within a line for a whole number, as noise draws it.
Other languages, and blocks without one, are errors.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs import load_job
from pkdp_pipeline.theorems.theorems import THEOREMS

ROOT = Path(__file__).resolve().parents[1]
pytestmark = [pytest.mark.default_target, pytest.mark.docs]

PAGES = [
    path.relative_to(ROOT)
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md")))
]


@dataclass(frozen=True)
class Snippet:
    language: str
    line: int
    text: str
    expected: str | None = None


def snippets(page: str) -> list[Snippet]:
    """Return a page's fenced blocks in order; a ``text`` block directly below another is its output."""
    blocks: list[Snippet] = []
    lines = page.splitlines()
    position, follows = 0, False
    while position < len(lines):
        line = lines[position]
        if line.lstrip().startswith("```"):
            language, start = line.strip().removeprefix("```"), position + 1
            indent = len(line) - len(line.lstrip())
            position = next(i for i in range(start, len(lines)) if lines[i].strip() == "```")
            text = "\n".join(inner[indent:] for inner in lines[start:position])
            if language == "text" and follows:
                blocks[-1] = Snippet(blocks[-1].language, blocks[-1].line, blocks[-1].text, text)
                follows = False
            else:
                blocks.append(Snippet(language, start + 1, text))
                follows = language in ("python", "sql")
        elif line.strip():
            follows = False
        position += 1
    return blocks


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def matches(shown: list[str], printed: list[str]) -> bool:
    def pattern_of(line: str) -> str:
        if line.strip() == "…":
            return r"(?:.*\n)*?.*"
        return re.sub(r"(?:\\ )*…", lambda mark: rf"(?:{mark[0]}| *-?\d+)", re.escape(line))

    pattern = "\n".join(map(pattern_of, shown))
    return re.fullmatch(pattern, "\n".join(printed)) is not None


#: A command of pkdp, and what bash does beside it: it looks for a line, says the exit code or keeps what is printed.
#: One with Spark starts a machine of Java, which is not for the process of other tests.
PKDP = re.compile(r"pkdp (?!.*spark)([^|;&<>$*#~\\]*?)((?: 2>&1)? [|>].*|; echo .*)?")
SAID = 'pkdp() { printf %s "$SAID"; printf %s "$COMPLAINED" >&2; return "$CODE"; }; pkdp'


def ran(command: str) -> tuple[int, str]:
    """Run a command, what is pkdp's of it in this process; return its exit code and what it prints."""
    said = {}
    if parsed := PKDP.fullmatch(command):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, shlex.split(parsed[1]))
        if not parsed[2]:
            return result.exit_code, result.output
        said = {"SAID": result.stdout, "COMPLAINED": result.stderr, "CODE": str(result.exit_code)}
        command = SAID + parsed[2]
    place = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": place, "COLUMNS": "80", **said},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


class Runner:
    """Runs the snippets of a page in the current folder."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.namespace: dict[str, object] = {"__name__": "__main__"}
        self.connection = duckdb.connect()

    def page(self, text: str) -> None:
        for snippet in snippets(text):
            self.run(snippet)

    def run(self, snippet: Snippet) -> None:
        runner = {
            "python": self.python,
            "sql": self.sql,
            "console": self.console,
            "toml": self.toml,
            "text": self.text,
        }.get(snippet.language)
        assert runner is not None, f"{self.name}, line {snippet.line}: nobody knows how to run {snippet.language!r}"
        runner(snippet)

    def check(self, snippet: Snippet, printed: str) -> None:
        if snippet.expected is not None:
            assert matches(tidy(snippet.expected), tidy(printed)), (
                f"{self.name}, line {snippet.line} shows:\n{snippet.expected}\nbut prints:\n{printed}"
            )

    def python(self, snippet: Snippet) -> None:
        printed = io.StringIO()
        # Empty lines in front, so that a traceback shows the page's own line.
        code = compile("\n" * (snippet.line - 1) + snippet.text, str(ROOT / self.name), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, self.namespace)
        self.check(snippet, printed.getvalue())

    def sql(self, snippet: Snippet) -> None:
        connection = self.namespace.get("con", self.connection)
        assert isinstance(connection, duckdb.DuckDBPyConnection)
        self.check(snippet, str(connection.sql(snippet.text)))

    def toml(self, snippet: Snippet) -> None:
        path = Path("examples") / f"line_{snippet.line}.toml"
        path.write_text(snippet.text, encoding="utf-8")
        load_job(path)

    def console(self, snippet: Snippet) -> None:
        assert snippet.text.startswith("$ "), f"{self.name}, line {snippet.line}: a console starts with '$ '"
        for part in re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if re.match(r"make\b", command):
                subprocess.run(
                    ["make", "--dry-run", *command.split("#")[0].split()[1:]],
                    cwd=ROOT,
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                continue
            code, printed = ran(command)
            where = f"{self.name}, line {snippet.line}: {command}"
            assert code == 0, f"{where}\nends with exit code {code}:\n{printed}"
            if shown.strip():
                assert matches(tidy(shown), tidy(printed)), f"{where}\nshows:\n{shown}\nprints:\n{printed}"

    def text(self, snippet: Snippet) -> None:
        pass


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder with copies of the examples and of the SQL, as the current folder."""
    shutil.copytree(ROOT / "sql", tmp_path / "sql")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out", "__pycache__"))
    monkeypatch.chdir(tmp_path)
    # A reader's snippet is in a file or typed in. Where it is neither, as in a worker of xdist, PySpark takes it for
    # a doctest and ends the process, when Great Expectations imports it.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    # How far a command is it says where it takes long, which no page shows.
    for module in ("extras.assurance.commands", "cli.job_views"):
        monkeypatch.setattr(f"pkdp_pipeline.{module}._SECONDS", math.inf)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_snippet_runs(page, scratch):
    Runner(str(page)).page((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page",
    [
        "```python\nassert False\n```",
        "```python\nprint(1)\n```\n\n```text\n2\n```",
        "```python\nprint(1)\nprint(2)\n```\n```text\n1\n```",
        "```python\nprint('a b c')\n```\n```text\na … c\n```",
        "```sql\nSELECT * FROM nowhere\n```",
        "```sql\nSELECT 1 AS a\n```\n```text\n2\n```",
        "```console\n$ false\n```",
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ echo one; echo two\none\n```",
        "```console\n$ make no-such-target\n```",
        "```console\necho one\n```",
        '```toml\ndataset = "d"\n```',
        "```ruby\nputs 1\n```",
        "```\nwhat is this\n```",
    ],
)
@pytest.mark.usefixtures("scratch")
def test_a_snippet_that_is_wrong_fails(page):
    with pytest.raises((AssertionError, duckdb.Error, subprocess.CalledProcessError, ConfigError)):
        Runner("a page").page(page)


@pytest.mark.usefixtures("scratch")
def test_snippets_share_what_the_convention_says():
    page = (
        "```python\na = 1\n```\nand\n```python\nprint(a)\n```\n```text\n1\n```\n"
        "```console\n$ echo one; echo two; echo three\none\n…\n$ ls examples/daily_flights.toml\n```\n"
        "```sql\nCREATE TABLE t AS SELECT 7 AS seven\n```\n```sql\nFROM t\n```\n```text\n…\n│     7 │\n…\n```\n"
        "```python\nprint('a   -7 b … c')\n```\n```text\na … b … c\n```\n"
        "A drawing:\n```text\n-> o\n```"
    )
    Runner("a page").page(page)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = (ROOT / page).parent / path if path else ROOT / page
        assert linked.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{page} links to {target}"


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_sections_that_the_code_cites_are_there():
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    rules = (ROOT / "docs" / "composition.md").read_text(encoding="utf-8")
    headings = "\n".join(re.findall(r"^#+ (.+)$", page, re.MULTILINE))
    places = r"docs/(?:((?:mathematics|leakage)\.md), sections?|(composition\.md), rules?) ([\d to and]+)"
    for theorem in THEOREMS.values():
        cited = re.search(places, theorem.citation)
        assert cited is not None, theorem.key
        text = (ROOT / "docs" / (cited[1] or cited[2])).read_text(encoding="utf-8")
        for number in re.findall(r"\d+", cited[3]):
            section = f"^## {number}\\. " if cited[1] else f"^## Rule {number}: "
            assert re.search(section, text, re.MULTILINE), theorem.citation
    for path in (ROOT / "pkdp_pipeline").rglob("*.py"):
        source = " ".join(path.read_text(encoding="utf-8").split())
        for title in re.findall(r'`docs/mathematics\.md`, (?:section )?"([^"]+)"', source):
            assert title in headings, f"{path.name} cites {title!r}"
        for number in re.findall(r"`docs/composition\.md`, rule (\d)", source):
            assert f"\n## Rule {number}: " in rules, f"{path.name} cites rule {number}"
        for name in re.findall(r"`docs/mathematics\.md`, (theorem [ABC])\b", source):
            assert f"T{name[1:]}" in page, f"{path.name} cites {name}"
