"""The page that verifies releases in a browser: one file, alone, that `pkdp verify --page` writes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from pkdp_pipeline.cli import main as cli
from pkdp_pipeline.extras.assurance.commands import verifier_page
from pkdp_pipeline.schemas import schema


def run(*arguments):
    return CliRunner().invoke(cli.app, ["verify", *map(str, arguments)])


class Elements(HTMLParser):
    """The elements of a page, with what stands in scripts and style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sources: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in ("script", "style"):
            self.sources.setdefault(f"{tag} {attributes.get('type', '')}".strip(), data)


def test_the_command_writes_one_small_file(tmp_path):
    page = tmp_path / "verify.html"
    for _ in range(2):  # and writes over its own
        done = run("--page", page)
        assert done.exit_code == 0, done.output
    assert page.read_text(encoding="utf-8") == verifier_page()
    assert page.stat().st_size < 300_000


def test_it_writes_over_no_other_file(tmp_path):
    other = tmp_path / "visits.csv"
    other.write_text("district,count\n", encoding="utf-8")
    assert run("--page", other).exit_code == 2
    assert other.read_text(encoding="utf-8") == "district,count\n"


@pytest.mark.parametrize("arguments", [(), ("a.parquet", "--page", "b.html")])
def test_either_a_file_is_checked_or_the_page_is_written(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_page_names_nothing_elsewhere_and_allows_its_own_script_alone():
    text = verifier_page()
    page = Elements(text)
    assert not {name for _, attributes in page.elements for name in attributes} & {"src", "href", "action", "style"}
    assert {tag for tag, _ in page.elements} & {"link", "img", "iframe", "object", "form"} == set()
    assert re.findall(r"https?:", page.sources["script"] + page.sources["style"]) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch|XMLHttp|import\(", text) == []
    policy = next(about["content"] for _, about in page.elements if about.get("http-equiv"))
    hashes = {
        name: base64.b64encode(hashlib.sha256(page.sources[name].encode()).digest()).decode()
        for name in ("script", "style")
    }
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_the_schema_in_it_is_the_published_one():
    page = Elements(verifier_page())
    assert json.loads(page.sources["script application/json"]) == schema("certificate.v1")
    assert re.findall(r"\{\{\w+\}\}", verifier_page()) == []


def test_it_has_a_language_a_title_and_a_labelled_input():
    elements = Elements(verifier_page()).elements
    assert ("html", {"lang": "en"}) in elements
    labelled = {about.get("for") for tag, about in elements if tag == "label"}
    assert labelled == {about["id"] for tag, about in elements if tag == "input"}
    ids = [about["id"] for _, about in elements if "id" in about]
    assert len(ids) == len(set(ids))
    assert {about["aria-labelledby"] for _, about in elements if "aria-labelledby" in about} <= set(ids)
