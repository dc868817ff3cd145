"""Any value in any place of a job file: it is read or refused as a `ConfigError`; and the schema for editors."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path

import jsonschema
import pytest
from thorough import few, thinned

from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.expectations import read_expectations
from pkdp_pipeline.jobs.job import load_job

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "pkdp_pipeline/schemas/job.v1.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)
PAGE = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
EXAMPLES = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
COMPLETE = EXAMPLES[-1]
MORE = COMPLETE | {
    "source": {"files": "a.csv", "format": "csv", "delimiter": ";", "null": ["NA"], "types": {"a": "text"}},
    "evidence": [{"kind": "bounded_dependence", "epsilon": 1.0, "delta": 0.0}],
    "budget": [{"epsilon": 1.0, "delta": 0.1, "part": "worst_case", "window_days": 3}],
    "attacker": {"p_max": 0.5, "p_min": 0.1, "unknown": 5, "unknown_max": 9, "known": 0, "influence": "active"},
    "release": [
        {"name": "a", "k": 3, "k_complement": 3, "noise": {"epsilon": 1.0}, "release_threshold": 9},
        {
            "name": "b",
            "by": ["x", "y"],
            "domain": {"x": ["a"], "y": [1]},
            "undeclared": "absent",
            "one_cell": "first",
            "order_by": "z",
            "protects": "value",
            "k": 4,
            "attacker": {"p_max": 0.1},
        },
    ],
    "output": {"directory": "o", "postgres": "postgresql://ada:secret@db/public", "schema": "s"},
}
STRANGE = [-1, 10**400, float("nan"), True, "", "secret", "\x00", "${X", [], {}, [5], [[]], [{}], {"x": 5}]


def toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value).replace("NaN", "nan")


def places(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inside in steps:
        yield (*place, step)
        yield from places(inside, (*place, step))


def changed(content: dict[str, object], place: tuple[str | int, ...], value: object) -> dict[str, object]:
    content = copy.deepcopy(content)
    table: object = content
    for step in place[:-1]:
        table = table[step]
    table[place[-1]] = value
    return content


@thinned(2)
@pytest.mark.parametrize("content", [COMPLETE, MORE], ids=["complete", "more"])
def test_any_value_in_any_place_is_read_or_refused(content, tmp_path, monkeypatch):
    path = tmp_path / "job.toml"
    refused, step = 0, 1
    if few(100) < 100:
        # One of fourteen strange values in each place, all of them in turn; no library judges expectations.
        step = 13
        monkeypatch.setattr("pkdp_pipeline.jobs.job.check_expectations", read_expectations)
    for place, value in islice(product(places(content), STRANGE), 0, None, step):
        text = "\n".join(f"{key} = {toml(item)}" for key, item in changed(content, place, value).items())
        path.write_text(text, encoding="utf-8")
        try:
            load_job(path)
        except ConfigError as error:
            message = str(error)
            assert message.startswith(f"the job file {str(path)!r} cannot be used:\n  "), place
            assert "ada" not in message, place
            refused += 1
    assert refused > 500 // step


@pytest.mark.parametrize("content", [*EXAMPLES, MORE])
def test_the_schema_accepts_what_a_job_file_may_say(content):
    VALID.validate(content)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("engine",), "sparc"),
        (("source",), {"duckdb": "w.duckdb", "tabel": "t"}),
        (("source",), 5),
        (("checks", "rows"), {"least": 1}),
        (("checks", "columns", "age"), "txt"),
        (("output", "formats"), ["cvs"]),
        (("release", 0, "k"), "50"),
        (("retention", "days"), 0),
        (("evidence",), {"kind": "none"}),
    ],
)
def test_the_schema_refuses_what_a_job_file_may_not_say(place, value, tmp_path):
    content = changed(COMPLETE, place, value)
    with pytest.raises(jsonschema.ValidationError):
        VALID.validate(content)


def test_the_schema_explains_every_key():
    tables = {"Job": SCHEMA, **SCHEMA["$defs"]}
    for name, table in tables.items():
        assert table["additionalProperties"] is False, name
        assert table["description"], name
        for key, value in table["properties"].items():
            assert value.get("description"), f"{name}.{key}"
