"""``.. job-keys::`` describes every key of a job file from its JSON schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from markup import escaped
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["JobKeys", "described", "setup"]

SCHEMA = Path(__file__).parents[2] / "pkdp_pipeline" / "schemas" / "job.v1.json"
#: How a table is written in a job file; the others are values of the key that has them.
_TITLES = {
    "AboutTable": "[about]",
    "AttackerTable": "[attacker]",
    "BinsTable": "by, a column in groups",
    "BudgetTable": "[[budget]]",
    "ChecksTable": "[checks]",
    "DisplayTable": "display",
    "DuckDBSourceTable": "source, a DuckDB file",
    "FileSourceTable": "source, files",
    "FreshTable": "checks.fresh",
    "IbisSourceTable": "source, a database that Ibis connects to",
    "LeakageTable": "[[attacker.leakage]]",
    "NoiseTable": "noise",
    "OutputTable": "[output]",
    "PeriodTable": "period",
    "PostgresSourceTable": "source, a PostgreSQL database",
    "RecordsTable": "[records]",
    "ReleaseTable": "[[release]]",
    "RetentionTable": "[retention]",
    "RowsTable": "checks.rows",
    "TargetTable": "target",
}


def _written(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _title(name: str, schema: dict[str, Any]) -> str:
    if name in _TITLES:
        return _TITLES[name]
    kind = schema["properties"].get("kind", {}).get("const")
    if kind is None:
        raise KeyError(f"job_keys.py has no title for the table {name} of the job schema")
    return f'evidence, kind = "{kind}"'


def _label(name: str) -> str:
    return f"job-{name.strip('_').lower()}"


def _type(schema: dict[str, Any], titles: dict[str, str]) -> str:
    """Return what a key takes, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f":ref:`{titles[name]} <{_label(name)}>`"
    if "const" in schema:
        return f"``{_written(schema['const'])}``"
    if "enum" in schema:
        return " or ".join(f"``{_written(value)}``" for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = [_type(one, titles) for one in schema[key] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items") or {}
        return f"list of {_type(items, titles)}" if items else "list"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"table of {_type(inner, titles)}" if isinstance(inner, dict) and inner else "table"
    return {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}[str(kind)]


def _keys(schema: dict[str, Any], titles: dict[str, str]) -> list[str]:
    lines = []
    for key, about in schema["properties"].items():
        needed = key in schema.get("required", ())
        facts = [_type(about, titles)]
        if needed:
            facts.append("needed")
        elif about.get("default") not in (None, [], {}) and "$ref" not in about:
            facts.append(f"by default ``{_written(about['default'])}``")
        lines.append(f"``{key}``")
        if about.get("description"):
            lines += [f"   {escaped(about['description'])}", ""]
        stated = "; ".join(facts)
        line = f"   {stated[0].upper()}{stated[1:]}."
        if about.get("examples"):
            line += " For example " + " or ".join(f"``{key} = {_written(value)}``" for value in about["examples"]) + "."
        lines += [line, ""]
    return lines


def described() -> list[str]:
    """Return all keys as reStructuredText."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    tables = schema["$defs"]
    titles = {name: _title(name, table) for name, table in tables.items()}
    lines = ["The job", "=======", "", *_keys(schema, titles)]
    for name, table in tables.items():
        title = titles[name]
        lines += [f".. _{_label(name)}:", "", title, "=" * len(title), "", escaped(table.get("description", "")), ""]
        lines += _keys(table, titles)
    return lines


class JobKeys(SphinxDirective):
    """Put the description of all keys here."""

    def run(self) -> list[nodes.Node]:
        """Read the schema."""
        self.env.note_dependency(str(SCHEMA))
        return self.parse_text_to_nodes("\n".join(described()), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("job-keys", JobKeys)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
