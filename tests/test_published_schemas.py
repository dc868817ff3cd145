"""Every published schema: named, described, strict; what was written is valid, and what is near it is not."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from thorough import thinned

from pkdp_pipeline.errors import ArgumentError
from pkdp_pipeline.schemas import schema, schema_file, schema_names

FROZEN = Path(__file__).parent / "data" / "frozen"
#: Objects that have a schema of their own, and one that holds any numbers and texts by name.
OPEN = {
    ("ledger.v1", "certificate"),
    ("plan_job.v1", "value"),
    ("report.v1", "certificate"),
    ("verification.v1", "evidence"),
}
#: Members that may be left out, with their schema; of objects that have required ones of the same name, with theirs.
OPTIONAL = {
    ("certificate.v1", "table"),
    *(("certificate.v1", name) for name in ("below", "derived_from", "display", "sampled")),
    *(("certificate.v1", name) for name in ("leakage", "dependent", "secret", "shared_by", "independent_cells")),
    *((name, key) for name in ("certificate.v1", "ledger.v1") for key in ("cells_per_unit", "cells_found")),
    ("plan_sum.v1", "cells_per_unit"),
    ("certificate.v1", "summed"),
    ("report.v1", "number"),
    *(("certificate.v1", f"leakage.{name}") for name in ("epsilon", "delta")),
    *(("certificate.v1", f"dependence_{name}") for name in ("epsilon", "delta")),
    ("ledger.v1", "table"),
    ("report.v1", "about"),
    ("report.v1", "anyone"),
}


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name), format_checker=jsonschema.FormatChecker())


@cache
def frozen(name: str) -> tuple[Any, ...]:
    """Return documents that some version of the library wrote, or read, in this form."""
    if name == "job.v1":
        files = sorted((FROZEN / name).glob("*.toml"))
        return tuple(tomllib.loads(file.read_text(encoding="utf-8")) for file in files)
    return tuple(json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8")))


def described(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field that a schema declares; a condition declares nothing."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in ("if", "then", "else"):
                continue
            if name in ("properties", "$defs"):
                for field, rule in inside.items():
                    if name == "properties":
                        yield f"{place}.{field}", rule
                    yield from described(rule, f"{place}.{field}")
            else:
                yield from described(inside, place)
    elif isinstance(value, list):
        for inside in value:
            yield from described(inside, place)


def is_described(rule: Any, document: dict[str, Any]) -> bool:
    """Return whether a field is explained, where it stands or where it refers to."""
    if not isinstance(rule, dict):
        return False
    referred = document.get("$defs", {}).get(rule.get("$ref", "").removeprefix("#/$defs/"), {})
    return bool(rule.get("description") or referred.get("description"))


def objects(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every rule for an object with named fields."""
    if isinstance(value, dict):
        if value.get("type") == "object" and "properties" in value:
            yield place, value
        for name, inside in value.items():
            if name not in ("if", "then", "else"):
                yield from objects(inside, place if name in ("properties", "$defs") else f"{place}.{name}")
    elif isinstance(value, list):
        for inside in value:
            yield from objects(inside, place)


def test_every_file_is_a_schema_with_a_version():
    files = {path.name for path in schema_file("certificate").parent.glob("*.json")}
    assert {f"{name}.json" for name in schema_names()} == files
    assert set(schema_names()) >= {"certificate.v1", "job.v1", "ledger.v1", "report.v1", "run.v1"}
    assert schema_file("certificate").name == "certificate.v1.json"


@pytest.mark.parametrize("name", ["", "certificates", "certificate.v9", "../certificate.v1", "certificate.v1.json"])
def test_a_schema_that_is_not_there_is_an_error(name):
    with pytest.raises(ArgumentError, match="there is no schema"):
        schema(name)


@thinned(3)
@pytest.mark.parametrize("name", schema_names())
def test_a_schema_says_what_it_is_and_what_every_field_is(name):
    document = schema(name)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"] == f"urn:pkdp-pipeline:schemas:{name}"
    assert document["title"]
    assert document["description"]
    assert [place for place, rule in described(document) if not is_described(rule, document)] == []
    references = re.findall(r'"\$ref": "([^"]*)"', json.dumps(document))
    assert [reference for reference in references if not reference.startswith("#")] == []


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_strict(name):
    loose = [place for place, rule in objects(schema(name)) if rule.get("additionalProperties") is not False]
    assert all(any((name, field) in OPEN for field in place.split(".")) for place in loose), loose


@thinned(3)
@pytest.mark.parametrize("name", schema_names())
def test_what_was_written_is_valid(name):
    assert frozen(name)
    for document in frozen(name):
        validator(name).validate(document)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every member and of every item."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inside in steps:
        yield (*path, step)
        yield from places(inside, (*path, step))


def value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def trimmed(value: Any) -> Any:
    """Return a document with two items of every list: the others have the same form."""
    if isinstance(value, dict):
        return {name: inside if name == "certificate" else trimmed(inside) for name, inside in value.items()}
    return [trimmed(inside) for inside in value[:2]] if isinstance(value, list) else value


@thinned(4)
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("name", sorted(set(schema_names()) - {"job.v1"}))
def test_what_is_near_it_is_not_valid(name, half):
    """A job file's members have defaults, and are tried with the reader (tests/jobs/test_job_values.py)."""
    shapes: set[tuple[str, ...]] = set()
    check = validator(name)
    documents = map(trimmed, frozen(name)) if name == "report.v1" else frozen(name)
    for document in sorted(documents, key=lambda example: len(json.dumps(example))):
        altered = copy.deepcopy(document)
        for path in places(document):
            shape = tuple("*" if isinstance(step, int) else step for step in path)
            if shape in shapes or any((name, step) in OPEN for step in path[:-1]):
                continue
            shapes.add(shape)
            if len(shapes) % 2 == half:
                continue
            holder, last = value_at(altered, path[:-1]), path[-1]
            value, holder[last] = holder[last], [[["surprise"]]]
            assert not check.is_valid(altered), f"{path} may be anything"
            if isinstance(last, int):
                holder[last] = value
                continue
            del holder[last]
            owner = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
            optional = {(name, last), (name, f"{owner}.{last}")} & OPTIONAL
            assert optional or not check.is_valid(altered), f"{path} may be missing"
            holder |= {last: value, "surprise": 1}
            assert not check.is_valid(altered), f"beside {path} there may be anything"
            del holder["surprise"]
        assert altered == document
    assert len(shapes) > 3


def test_a_ledger_entry_can_be_referred_to():
    from referencing import Registry, Resource

    ledger = schema("ledger.v1")
    registry = Registry().with_resource(ledger["$id"], Resource.from_contents(ledger))
    entry = jsonschema.Draft202012Validator({"$ref": f"{ledger['$id']}#entry"}, registry=registry)
    events = [event for document in frozen("ledger.v1") for event in document["events"]]
    assert {event["kind"] for event in events} == {"reserved", "published", "given_back", "recertified"}
    for event in events:
        entry.validate(event)
        assert not entry.is_valid(event | {"kind": "forgotten"})
        assert not entry.is_valid(event | {"surprise": 1})
        if event["certificate"] is not None:
            validator("certificate.v1").validate(event["certificate"])


def test_the_package_holds_the_schemas(tmp_path):
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    import zipfile

    (built,) = hatchling.WheelBuilder(str(Path(__file__).parents[1])).build(
        directory=str(tmp_path), versions=["standard"]
    )
    with zipfile.ZipFile(built) as wheel:
        packed = set(wheel.namelist())
    assert {f"pkdp_pipeline/schemas/{name}.json" for name in schema_names()} <= packed
    assert "pkdp_pipeline/schemas/__init__.py" in packed
