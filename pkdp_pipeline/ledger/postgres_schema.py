"""What in a PostgreSQL ledger differs from the schema it was made with, read from the server's catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pkdp_pipeline.ledger.database import schema_script

_ROW, _BEFORE, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 8, 16, 32  # the bits of pg_trigger.tgtype

_TRIGGERS = {
    "event_is_never_changed": _ROW | _BEFORE | _DELETE | _UPDATE,
    "event_is_never_emptied": _BEFORE | _TRUNCATE,
}

_UNIQUE = {
    ("schema_version", "version", None),
    ("event", "sequence", None),
    ("event", "hash", None),
    ("event", "dataset position", None),
    ("dataset", "folded", None),
    ("dataset", "name", None),
    ("entry", "id", None),
    ("entry", "dataset key revision", "(state <> 'given_back'::text)"),
}

Execute = Callable[..., list[tuple[Any, ...]]]


def changed_objects(execute: Execute, namespace: str) -> list[str]:
    """Return what was changed, added or removed, in words; nothing where the ledger is as it was made.

    Parameters
    ----------
    execute : callable
        As `Database.execute`.
    namespace : str
        The PostgreSQL schema that holds the tables.

    Notes
    -----
    Compared are tables, triggers, functions, rules, row policies and unique indexes: with them somebody could make
    the ledger forget, or keep less than it is given. Checks and foreign keys only refuse rows that `verify` finds;
    and the catalogue writes them differently from one version of PostgreSQL to the next.
    """
    found: list[str] = []
    for compare in (_tables, _triggers, _functions, _rewriting, _unique):
        found += compare(execute, namespace)
    return sorted(set(found))


def _tables(execute: Execute, namespace: str) -> Iterator[str]:
    expected = {(name, "r", "p") for name in re.findall(r"^CREATE TABLE (\w+)", schema_script("postgresql"), re.M)}
    rows = execute(
        "SELECT c.relname, CAST(c.relkind AS text), CAST(c.relpersistence AS text) FROM pg_class AS c "
        "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = :namespace AND c.relkind NOT IN ('i', 'S', 't', 'I', 'c')",
        namespace=namespace,
    )
    yield from (f"table {name}" for name, _, _ in {tuple(row) for row in rows} ^ expected)


def _triggers(execute: Execute, namespace: str) -> Iterator[str]:
    rows = execute(
        "SELECT c.relname, t.tgname, t.tgisinternal, CAST(t.tgenabled AS text) IN ('O', 'A'), t.tgtype, "
        "p.proname = 'refuse_change' AND p.pronamespace = c.relnamespace AND t.tgqual IS NULL "
        "AND CAST(t.tgattr AS text) = '' "
        "FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid "
        "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = :namespace",
        namespace=namespace,
    )
    missing = set(_TRIGGERS)
    for table, name, internal, enabled, kind, own in rows:
        if internal and not enabled:
            yield f"the foreign keys of table {table}"
        elif not internal and table == "event" and name in missing and enabled and own and kind == _TRIGGERS[name]:
            missing.remove(name)
        elif not internal:
            yield f"trigger {name}"
    yield from (f"trigger {name}" for name in missing)


def _functions(execute: Execute, namespace: str) -> Iterator[str]:
    script = schema_script("postgresql")
    expected = {
        (name, language, " ".join(body.split()))
        for name, language, body in re.findall(
            r"CREATE FUNCTION (\w+)\(\) RETURNS trigger LANGUAGE (\w+) AS \$\$(.*?)\$\$", script, re.S
        )
    }
    rows = execute(
        "SELECT p.proname, l.lanname, p.prosrc FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "JOIN pg_language AS l ON l.oid = p.prolang WHERE n.nspname = :namespace",
        namespace=namespace,
    )
    found = {(str(name), str(language), " ".join(str(body).split())) for name, language, body in rows}
    yield from (f"function {name}" for name, _, _ in found ^ expected)


def _rewriting(execute: Execute, namespace: str) -> Iterator[str]:
    rules = execute("SELECT rulename FROM pg_rules WHERE schemaname = :namespace", namespace=namespace)
    yield from (f"rule {row[0]}" for row in rules)
    tables = execute(
        "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = :namespace AND (c.relrowsecurity OR EXISTS "
        "(SELECT 1 FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid) AND c.relkind = 'r'))",
        namespace=namespace,
    )
    yield from (f"table {row[0]}" for row in tables)


def _unique(execute: Execute, namespace: str) -> Iterator[str]:
    rows = execute(
        "SELECT c.relname, string_agg(a.attname, ' ' ORDER BY k.place), pg_get_expr(i.indpred, i.indrelid) "
        "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "CROSS JOIN unnest(CAST(i.indkey AS smallint[])) WITH ORDINALITY AS k (attribute, place) "
        "JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attribute "
        "WHERE n.nspname = :namespace AND i.indisunique AND i.indisvalid AND i.indislive "
        "GROUP BY i.indexrelid, c.relname, i.indpred, i.indrelid",
        namespace=namespace,
    )
    missing = _UNIQUE - {tuple(row) for row in rows}
    yield from (f"the unique index of table {table} ({columns})" for table, columns, _ in missing)
