"""Links of the Markdown pages that leave ``docs/``: to other pages, to shown examples, or plain names of files.

The pages are written to be read in the repository as well, where ``../README.md`` and ``../examples/…`` are files
beside them. On the site the README, the changelog, the guide for contributors and the notebook are pages of their own,
the examples are shown on one page, finished documents in HTML are copied, the page that verifies releases is written,
and any other file is named without a link. Where the text of a link is the name of a page, the site shows its title.

The pages that stand for files of the repository hold a pointer to the file, for readers of the repository; a menu below
it stays.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from pkdp_pipeline.extras.assurance.commands import verifier_page

__all__ = ["EXAMPLES", "example_label", "rewritten", "setup"]

ROOT = Path(__file__).parents[2]
#: Files of the repository that are pages of the site.
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "reference/contributing.md",
    "docs/gallery.ipynb": "gallery.md",
}
#: The source of the page that verifies releases, which the site has as it is written.
_VERIFIER, _VERIFIER_ON_SITE = "pkdp_pipeline/extras/assurance/page/verify.html", "docs/verifier.html"
_LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"(!\[[^\]]*\])\(([^)\s]+)\)")
_LISTED = re.compile(r"^\.\. literalinclude:: \.\./\.\./(\S+)", re.MULTILINE)
#: The files that `reference/examples.rst` shows.
EXAMPLES = frozenset(_LISTED.findall((ROOT / "docs/reference/examples.rst").read_text(encoding="utf-8")))


def example_label(path: str) -> str:
    """Return the label above an example on the page of examples."""
    return "file-" + re.sub(r"[^a-z0-9]+", "-", path.lower())


def rewritten(text: str, folder: str, page: str) -> str:
    """Return Markdown with its links made for the site.

    Parameters
    ----------
    text : str
        The Markdown.
    folder : str
        The folder of the repository that its links are relative to.
    page : str
        The page of the site that it becomes, relative to ``docs/``.
    """

    def anew(found: re.Match[str]) -> str:
        words, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return found[0]
        file = posixpath.normpath(posixpath.join(folder, path))
        if file in EXAMPLES:
            return f"{{ref}}`{words.strip('`')} <{example_label(file)}>`"
        if file in _PAGES:
            home = _PAGES[file]
        elif file.startswith("docs/") and file.endswith(".md"):
            home = file.removeprefix("docs/")
        elif file == _VERIFIER:
            return f'<a href="{near(_VERIFIER_ON_SITE)}">{escape(words)}</a>'
        elif file.startswith("docs/") and file.endswith(".html") and (ROOT / file).is_file():
            return f'<a href="{near(file)}">{escape(words.strip("`"))}</a>'
        else:
            return words if "`" in words else f"`{words}`" if "/" in words or "." in words else words
        named = words.strip("`") in (file, posixpath.basename(file), path)
        address = near(f"docs/{home}") + (f"#{anchor}" if anchor else "")
        return f"[{'' if named and not anchor else words}]({address})"

    def near(file: str) -> str:
        return posixpath.relpath(file, posixpath.dirname(f"docs/{page}"))

    def drawn(found: re.Match[str]) -> str:
        path = found[2]
        return found[0] if "://" in path else f"{found[1]}({near(posixpath.normpath(posixpath.join(folder, path)))})"

    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        lines.append(line)
        if fenced:
            lines[-1] = "\0" + line
    whole = "\n".join(lines)
    # Links may run over the end of a line, code is left as it is.
    parts = re.split(r"((?:^\0.*\n?)+)", whole, flags=re.MULTILINE)
    return "".join(
        part.replace("\0", "") if part.startswith("\0") else _IMAGE.sub(drawn, _LINK.sub(anew, part))
        for part in parts
        if part
    )


def _of_notebook(text: str) -> str:
    """Return a notebook with its stored results as Markdown."""
    parts, heading = [], ""
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = next((line.lstrip("# ") for line in source.splitlines() if line.startswith("#")), heading)
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
            if "image/png" in data:
                picture = data["image/png"].replace("\n", "")
                parts.append(f'<p><img alt="{escape(heading)}" src="data:image/png;base64,{picture}"></p>')
            elif "text/html" in data:
                # A line without text would end the block of HTML.
                parts.append("<div>\n" + re.sub(r"\n\s*\n", "\n", data["text/html"]) + "\n</div>")
            else:
                parts.append("```text\n" + data.get("text/plain", "".join(output.get("text", ""))) + "\n```")
    return "\n\n".join(parts) + "\n"


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    path = app.env.doc2path(page)
    if path.suffix != ".md":
        return
    for file, home in _PAGES.items():
        if home == f"{page}.md":
            app.env.note_dependency(str(ROOT / file))
            text = (ROOT / file).read_text(encoding="utf-8")
            text = _of_notebook(text) if file.endswith(".ipynb") else text
            menu = source[0].partition(":::")
            source[0] = rewritten(text, posixpath.dirname(file), home) + "\n" + "".join(menu[1:])
            return
    source[0] = rewritten(source[0], "docs", f"{page}.md")


def _copied(app: Sphinx, error: Exception | None) -> None:
    """Copy the finished documents of ``docs/``, such as reports, to where the pages link to them."""
    if error is None and app.builder.format == "html":
        for file in sorted((ROOT / "docs").rglob("*.html")):
            place = Path(app.outdir) / file.relative_to(ROOT / "docs")
            if any(file.with_suffix(ending).exists() for ending in (".md", ".rst")):
                raise ExtensionError(f"{file.name} has the name of a page: give it another one")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        verifier = Path(app.outdir) / Path(_VERIFIER_ON_SITE).relative_to("docs")
        verifier.write_text(verifier_page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite the pages as they are read."""
    app.connect("source-read", _read)
    app.connect("build-finished", _copied)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
