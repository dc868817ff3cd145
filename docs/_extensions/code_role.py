"""The default role: `name` is a link where that name is documented, and code where it is not.

A plain lower-case word is a link only where it is a public function or a method of the class at hand, and never where
it is the name of some argument: "at `delta`" is about a number, not about a method.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

import pkdp_pipeline

__all__ = ["CodeRole", "TypeRole", "setup"]

_PAGE = re.compile(r"docs/(\w+)\.md")
_NAME = re.compile(r"(\w+\.)*\w+")
_CLASS = re.compile(r"((?:\w+\.)*(?:_*[A-Z]\w+))")
_HOMES = ("pkdp_pipeline", "pkdp_pipeline.duckdb")


def _arguments() -> frozenset[str]:
    """Return the names of all arguments of public functions and methods."""
    found: set[str] = set()
    for name in pkdp_pipeline.__all__:
        public = getattr(pkdp_pipeline, name)
        members = [public, *(vars(public).values() if inspect.isclass(public) else ())]
        for member in members:
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) or inspect.isclass(function):
                try:
                    found.update(inspect.signature(function).parameters)
                except ValueError:
                    continue
    return frozenset(found)


_ARGUMENTS = _arguments()


def _link(role: SphinxRole, name: str, content: nodes.TextElement) -> addnodes.pending_xref:
    link = addnodes.pending_xref(
        name, content, refdomain="", reftype="pkdp", reftarget=name, refexplicit=False, refdoc=role.env.docname
    )
    link["class"] = role.env.ref_context.get("py:class")
    return link


class CodeRole(SphinxRole):
    """A pending link that becomes plain code when nothing is found."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the link; pages of the documentation are named by their file."""
        code = nodes.literal(self.rawtext, self.text, classes=["code"])
        page = _PAGE.fullmatch(self.text)
        if page is not None:
            link = addnodes.pending_xref(
                self.rawtext,
                nodes.inline("", ""),
                refdomain="std",
                reftype="doc",
                reftarget=f"/{page[1]}",
                refexplicit=False,
                refwarn=True,
                refdoc=self.env.docname,
            )
        elif _NAME.fullmatch(self.text):
            link = _link(self, self.text, code)
        else:
            return [code], []
        self.set_source_info(link)
        return [link], []


class TypeRole(SphinxRole):
    """The type of an argument, in the words of the docstring; classes in it are links."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return text and links."""
        parts = [
            _link(self, part, nodes.inline(part, part)) if position % 2 else nodes.Text(part)
            for position, part in enumerate(_CLASS.split(self.text))
        ]
        return [nodes.emphasis("", "", *parts)], []


def _found(objects: Any, name: str, inside: str | None) -> str | None:
    """Return the full name of what is documented under a name, as seen from inside a class."""
    if inside is not None and name not in _ARGUMENTS and f"pkdp_pipeline.{inside}.{name}" in objects:
        return f"pkdp_pipeline.{inside}.{name}"
    if name[0].islower() and "." not in name and name in _ARGUMENTS:
        return None
    for whole in (name, *(f"{home}.{name}" for home in _HOMES)):
        if whole in objects:
            return whole
    if name.rpartition(".")[2][:1].isupper() or (name[0].isupper() and "." in name):
        same = [whole for whole in objects if whole.startswith("pkdp_pipeline") and whole.endswith(f".{name}")]
        return min(same, key=len) if same else None
    return None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Link a name to its description, or keep it as it is written."""
    if node.get("reftype") != "pkdp":
        return None
    objects = env.domains.python_domain.objects
    whole = _found(objects, node["reftarget"], node.get("class"))
    if whole is None:
        return content
    entry = objects[whole]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, whole)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the roles."""
    app.add_role("pkdp", CodeRole())
    app.add_role("pkdp-type", TypeRole())
    app.connect("missing-reference", resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
