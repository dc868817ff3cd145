"""The documentation's site: it builds without a warning, loads nothing from elsewhere, and every link leads somewhere.

The site is built once. Pages are read as a browser would: what they load, where they link to, which anchors they have.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

import pkdp_pipeline as pkdp
import pkdp_pipeline.certificates.statement
import pkdp_pipeline.display.figures
import pkdp_pipeline.duckdb
import pkdp_pipeline.theory
from pkdp_pipeline.theorems.theorems import THEOREMS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Classes without a public name that public functions return, take or say much about.
ALSO = (
    "releases.accessor.PkdpAccessor",
    "certificates.composed.ComposedCertificate",
    "model.evidence.Evidence",
    "theorems.bound.Guarantee",
    "ledger.Entry",
    "ledger.Reservation",
    "model.context.Facts",
    "ledger.admission.Admission",
    "ledger.chain.Terms",
    "releases.derived.ExpectedError",
    "certificates.release_certificate.ReleaseCertificate",
)
#: The attribute by which an element of a page loads a file.
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src", "object": "data"}
#: Made by `Ledger.open`, by pandas and by `certify` and `compose`: their own arguments are nobody's to give.
NOT_CALLED = ("Ledger", "PkdpAccessor", "ReleaseCertificate", "ComposedCertificate")

pytestmark = [pytest.mark.xdist_group("docs_site"), pytest.mark.docs]


class Page(HTMLParser):
    """What a page loads, where it links to, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("dd", "dt", "h1", "h2", "h3", "h4", "li", "p", "td"):
            self.text.append(" ")
        if "id" in given:
            self.anchors.add(given["id"])
        if tag in LOADING and LOADING[tag] in given:
            self.loaded.append(given[LOADING[tag]])
        if tag == "link" and given.get("rel") not in ("canonical", "index", "search", "next", "prev", "author"):
            self.loaded.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-b", "html", "-d", place / "doctrees", DOCS, place / "html"]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
    return place / "html", done


@pytest.fixture(scope="module")
def site(built) -> Path:
    return built[0]


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_it_builds_without_a_warning(built):
    _, done = built
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")


def test_a_broken_page_is_a_warning(tmp_path):
    # What the test above relies on: conf.py suppresses no warning about links, names or missing pages.
    (tmp_path / "conf.py").write_text(
        (DOCS / "conf.py").read_text(encoding="utf-8").replace("Path(__file__).parent", f"Path({str(DOCS)!r})"),
        encoding="utf-8",
    )
    (tmp_path / "_static").mkdir()
    (tmp_path / "index.rst").write_text("A page\n======\n\n:doc:`nowhere` :py:obj:`pkdp_pipeline.nothing`\n")
    (tmp_path / "alone.md").write_text("# Alone\n\n[away](no_such_page.md) and [there](#no-such-heading)\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-b", "dummy", tmp_path, tmp_path / "out"]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
    for expected in ("nowhere", "pkdp_pipeline.nothing", "isn't included in any toctree", "no_such", "no-such-heading"):
        assert expected in done.stderr, (expected, done.stderr)


def test_nothing_is_loaded_from_elsewhere(site, pages):
    assert pages
    for path, page in pages.items():
        for address in page.loaded:
            assert not re.match(r"(\w+:)?//", address), f"{path.name} loads {address}"
            if not address.startswith("data:"):
                file = path.parent / unquote(address.partition("?")[0].partition("#")[0])
                assert file.is_file(), f"{path.name} loads {address}, which is not there"
    for path in site.rglob("*.css"):
        loaded = re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")\s;]+)", path.read_text(encoding="utf-8"))
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == [], path.name


def test_every_link_and_anchor_leads_somewhere(pages):
    links = 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"(https?|mailto):", link):
                continue
            address, anchor = urldefrag(link)
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name} links to {link}"
            if anchor and target.suffix == ".html":
                assert unquote(anchor) in pages[target].anchors, f"{path.name} links to {link}"
            links += 1
    assert links > 1_000


def test_every_page_is_reached_from_the_index(site, pages):
    reached, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        waiting += [(path.parent / urldefrag(link)[0]).resolve() for link in pages[path].links if "://" not in link]
    sources = [path for ending in ("md", "rst") for path in DOCS.rglob(f"*.{ending}")]
    assert len(sources) > 25
    for path in sources:
        assert site / path.relative_to(DOCS).with_suffix(".html") in reached, path.name


def test_what_stands_for_a_file_of_the_repository_shows_it(pages, site):
    for name, text in (("index", "README.md"), ("reference/changelog", "CHANGELOG.md")):
        first = re.findall(r"^#+ (.+)$", (ROOT / text).read_text(encoding="utf-8"), re.MULTILINE)[:3]
        shown = pages[site / f"{name}.html"].words
        assert all(heading.replace("`", "") in shown for heading in first)


def test_links_to_files_of_the_repository_become_pages_or_names(pages, site):
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        from repository_links import EXAMPLES, rewritten
    finally:
        sys.path.remove(str(DOCS / "_extensions"))
    page = "See [docs/sql.md](docs/sql.md), [a job](examples/daily_flights.toml),\n[tests](tests/x.py#y) [on](https://a.b)."
    assert rewritten(page, "", "index.md") == (
        "See [](sql.md), {ref}`a job <file-examples-daily-flights-toml>`,\ntests [on](https://a.b)."
    )
    assert rewritten("[README](../README.md#compared)", "docs", "sql.md") == "[README](index.md#compared)"
    assert rewritten("```text\n[a](../x.py)\n```\n", "docs", "sql.md") == "```text\n[a](../x.py)\n```\n"
    assert rewritten("[`x.py`](../x.py) [the\nfile](../y/z.py)", "docs", "sql.md") == "`x.py` the\nfile"
    assert rewritten("![x](docs/a.png) ![y](https://a.b/c.png)", "", "index.md") == (
        "![x](a.png) ![y](https://a.b/c.png)"
    )
    # Every example that is linked to is shown, and every one that is shown is there.
    text = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *DOCS.glob("*.md")])
    linked = {
        target for target in re.findall(r"\]\((?:\.\./)?(examples/[^)#\s]+)\)", text) if (ROOT / target).is_file()
    }
    assert linked - EXAMPLES <= {target for target in linked if not target.endswith((".py", ".toml"))}
    assert all((ROOT / example).is_file() for example in EXAMPLES)
    shown = {str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.*") if path.suffix in (".toml", ".py")}
    assert shown <= EXAMPLES


# The reference


def described() -> Iterator[tuple[str, Any]]:
    """Yield everything the reference describes, with its name there."""
    for name in pkdp.__all__:
        yield f"pkdp_pipeline.{name}", getattr(pkdp, name)
    for name in pkdp_pipeline.duckdb.__all__:
        yield f"pkdp_pipeline.duckdb.{name}", getattr(pkdp_pipeline.duckdb, name)
    for name in pkdp_pipeline.theory.__all__:
        yield f"pkdp_pipeline.theory.{name}", getattr(pkdp_pipeline.theory, name)
    for name in pkdp_pipeline.certificates.statement.__all__:
        yield f"pkdp_pipeline.certificates.statement.{name}", getattr(pkdp_pipeline.certificates.statement, name)
    for name in pkdp_pipeline.display.figures.__all__:
        yield f"pkdp_pipeline.display.figures.{name}", getattr(pkdp_pipeline.display.figures, name)
    for name in ALSO:
        module, _, last = f"pkdp_pipeline.{name}".rpartition(".")
        yield f"pkdp_pipeline.{name}", getattr(import_module(module), last)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield a class's public methods and properties, its own and those it inherits from the package."""
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("pkdp_pipeline"):
            for name, member in vars(base).items():
                function = getattr(member, "__func__", member)
                if not name.startswith("_") and (inspect.isfunction(function) or isinstance(member, property)):
                    yield name, getattr(member, "fget", None) or function


def name_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def functions() -> Iterator[tuple[str, Any]]:
    for whole, public in described():
        if inspect.isfunction(public):
            yield whole, public
        elif inspect.isclass(public):
            for name, function in members(public):
                yield f"{whole}.{name}", function


def test_every_public_name_and_method_is_in_the_inventory(site):
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind, items in inventory.data.items() if kind.startswith("py:") for name in items}
    for whole, public in described():
        assert whole in known
        if inspect.isclass(public) and not issubclass(public, Exception):
            for name, _ in members(public):
                own = name in vars(public)
                assert not own or f"{whole}.{name}" in known, f"{whole}.{name}"
    assert "pkdp_pipeline.duckdb.dbt.Plugin" in known
    for name in ("dagster.release_assets", "airflow.PublishOperator"):
        assert f"pkdp_pipeline.jobs.integrations.{name}" in known


def section(doc: str, *titles: str) -> str:
    """Return a section of a docstring in NumPy style, or nothing."""
    match = re.search(rf"^(?:{'|'.join(titles)})\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


@pytest.mark.parametrize(
    ("name", "function"), list(functions()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_docstring_says_what_is_given_returned_and_raised(name, function):
    doc = inspect.getdoc(function) or ""
    assert doc, "no docstring"
    given = [parameter for parameter in inspect.signature(function).parameters if parameter not in ("self", "cls")]
    listed = section(doc, "Parameters")
    if not re.search(r"[Ss]ee `", doc.split("\n\n")[0]):
        for argument in given:
            said = re.search(rf"^(?:[\w*]+, )*\*{{0,2}}{argument}(?:, \w+)*(?: :|$)", listed, re.MULTILINE)
            assert said or f"`{argument}`" in doc, f"{argument} is not described"
    for line in re.findall(r"^(\S.*?)(?: :|$)", listed, re.MULTILINE):
        for argument in line.replace("*", "").split(", "):
            assert argument in given, f"{argument} is described and is no argument"
    result = function.__annotations__.get("return")
    if given and result not in (None, "None"):
        begins = re.match(r"(Return|Yield|Read|Rebuild|Publish|Recompute|Draw)", doc)
        assert begins or section(doc, "Returns", "Yields") or "Returns" in doc, "what it returns is not described"
    source = inspect.getsource(function)
    for error in set(re.findall(r"raise (\w+Error)\b", source)) - {"ArgumentError"}:
        assert error in doc, f"{error} is not described"


@pytest.mark.parametrize(
    ("name", "public"), list(described()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_class_describes_its_fields(name, public):
    if not inspect.isclass(public) or issubclass(public, Exception) or public.__name__ in NOT_CALLED:
        return
    doc = "\n".join(inspect.getdoc(base) or "" for base in public.__mro__ if base.__module__.startswith("pkdp"))
    for argument in inspect.signature(public).parameters:
        if not argument.startswith("_"):
            assert re.search(rf"^(\w+, )*{argument}(, \w+)*( :|$)", doc, re.MULTILINE), f"{argument} is not described"


def test_the_command_line_is_described_in_full(pages, site):
    import typer

    from pkdp_pipeline.cli.main import app

    shown = pages[site / "reference" / "command_line.html"].words
    waiting = [("pkdp", typer.main.get_command(app))]
    commands = 0
    while waiting:
        path, command = waiting.pop()
        commands += 1
        assert path in shown
        assert " ".join((command.help or "").replace("`", "").split()) in shown
        for parameter in command.params:
            assert all(option in shown for option in (*parameter.opts, *parameter.secondary_opts) if "-" in option)
            assert " ".join((parameter.help or "").replace("`", "").split()) in shown
        waiting += [(f"{path} {name}", inner) for name, inner in getattr(command, "commands", {}).items()]
    assert commands > 12


def test_the_keys_of_a_job_file_are_described_in_full(pages, site):
    schema = json.loads((ROOT / "pkdp_pipeline" / "schemas" / "job.v1.json").read_text(encoding="utf-8"))
    shown = pages[site / "reference" / "job_file.html"].words
    for table in (schema, *schema["$defs"].values()):
        for key, about in table["properties"].items():
            assert f" {key} " in shown
            assert " ".join(about.get("description", "").replace("`", "").split()) in shown


# Pages that name code and tests


def test_every_theorem_is_on_the_page_of_oracles_with_its_tests():
    page = (DOCS / "oracles.md").read_text(encoding="utf-8")
    entries = {}
    for entry in re.findall(r"^- (.*?)(?=^- |^#|\Z)", page, re.MULTILINE | re.DOTALL):
        head, *points = re.split(r"\*(Oracle|Properties|Tight)\*:", entry)
        for key in re.findall(r"`(\w+)`", head):
            entries[key] = head, dict(zip(points[::2], points[1::2], strict=True))
    assert list(entries) == list(THEOREMS)
    for theorem in THEOREMS.values():
        head, points = entries[theorem.key]
        assert list(points) == ["Oracle", "Properties", "Tight"]
        linked = re.findall(r"\]\((\w+)\.md#([\w-]+)\)", head)
        assert {name for name, _ in linked} == set(re.findall(r"docs/(\w+)\.md", theorem.citation))
        numbers = re.search(r"\.md, (?:sections?|rules?) ([\d to and]+)", theorem.citation)
        assert numbers is not None
        assert re.findall(r"\d+", numbers[1])[-1] in {section_of(*place) for place in linked}
        assert re.findall(r"\]\(\.\./(pkdp_pipeline/\S+\.py)\)", head)
        for name in points:
            assert named_tests(points[name]), f"{theorem.key}: {name} names no test"
    for path in re.findall(r"\]\(\.\./([^)#]+)\)", page):
        assert (ROOT / path).exists(), path


def section_of(name: str, anchor: str) -> str:
    """Return the number of the section of a page, or of the rule, that an anchor stands in."""
    number = ""
    for title in re.findall(r"^##+ (.+)$", (DOCS / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE):
        numbered = re.match(r"(?:Rule )?(\d+)\b", title)
        number = numbered[1] if numbered else number
        if re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") == anchor:
            return number
    raise AssertionError(f"{name}.md has no section {anchor}")


def test_the_page_of_proofs_names_every_theorem_under_its_file():
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    parts = re.split(r"\]\(\.\./(proofs/\S+?\.v)\)", page)
    assert set(parts[1::2]) == {str(path.relative_to(ROOT)) for path in (ROOT / "proofs").glob("*.v")}
    for file, text in zip(parts[1::2], parts[2::2], strict=True):
        source = (ROOT / file).read_text(encoding="utf-8")
        proved = re.findall(r"^(?:Theorem|Corollary) (\w+)", source, re.MULTILINE)
        assert re.findall(r"^- `(\w+)`:", text, re.MULTILINE) == proved


def test_what_a_theorem_says_is_checked_is_on_the_page_of_proofs_and_linked_from_that_of_mathematics():
    page, mathematics = ((DOCS / name).read_text(encoding="utf-8") for name in ("proofs.md", "mathematics.md"))
    tables = re.split(r"^### (.+)\n", page, flags=re.MULTILINE)[1:]
    places = {}
    for heading, text in zip(tables[::2], tables[1::2], strict=True):
        files = re.findall(r"\]\(\.\./(proofs/\S+?\.v)\)", text)
        for name in re.findall(r"^- `(\w+)`:", text, re.MULTILINE):
            places[files[0], name] = heading.lower().replace(" ", "-")
    named = {
        statement[:2] for theorem in THEOREMS.values() if theorem.formal for statement in theorem.formal.statements
    }
    for file, name in named:
        assert f"[`{name}`](proofs.md#{places[file, name]})" in mathematics, name
    # Every theorem that has a letter is cited by some record, as it says what it covers.
    lettered = {(file, name) for file, name in places if name.startswith("theorem_")}
    assert lettered | {("proofs/crowd.v", "several_options"), ("proofs/display.v", "cell_as_count")} <= named
    assert not any(THEOREMS[key].formal for key in ("noised_below_value", "noisy_cell_counting", "noisy_options"))


def named_tests(text: str) -> list[str]:
    """Return the tests a text names, each of which must be in the file named before it."""
    named = []
    parts = re.split(r"\]\(\.\./(tests/\S+?\.py)\)", text)
    for file, names in zip(parts[1::2], parts[2::2], strict=True):
        source = (ROOT / file).read_text(encoding="utf-8")
        for test in re.findall(r"`(test_\w+)`", names):
            assert f"def {test}(" in source, f"{file} has no {test}"
            named.append(test)
    return named


def test_a_test_that_does_not_exist_is_noticed():
    with pytest.raises(AssertionError):
        named_tests("[x](../tests/test_docs_site.py): `test_no_such_thing`")


# In a browser


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("needs Chromium")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-background-networking"]
        )
        yield opened
        opened.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_shown_and_searched_without_a_server(site, browser, scheme):
    requested, complaints = [], []
    page = browser.new_context(color_scheme=scheme).new_page()
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name in ("index", "gallery", "concepts", "mathematics", "reference/certify"):
        page.goto(f"{site.as_uri()}/{name}.html")
        for width in (360, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 150) == (scheme == "dark")
    page.goto(f"{site.as_uri()}/search.html?q=waiting+times")
    # Results come one after the other: waiting for the one looked for, not for the first.
    page.wait_for_selector('#search-results li a[href*="mathematics.html"]')
    assert [url for url in requested if not url.startswith(("file:", "data:"))] == []
    assert complaints == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_serious_accessibility_problem(site, browser, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 800}).new_page()
    for name in ("index", "concepts"):
        page.goto(f"{site.as_uri()}/{name}.html")
        violations = axe.run(page, options={"preload": False}).response["violations"]
        assert [rule["id"] for rule in violations if rule["impact"] in ("serious", "critical")] == [], name
    page.context.close()
