"""Views in which a row does not come from one person's rows alone are named, wherever data are read through them."""

from __future__ import annotations

import warnings

import duckdb
import pytest
from thorough import thinned

import pkdp_pipeline as pkdp
from pkdp_pipeline.duckdb import install

ATTACKER = pkdp.AttackerModel(p_max=0.1)
LINKED = {
    "SELECT *, random() AS r FROM events": ["random()"],
    "SELECT *, gen_random_uuid() AS r FROM events": ["gen_random_uuid()"],
    "FROM events LIMIT 10": ["LIMIT"],
    "FROM events ORDER BY uid LIMIT 10%": ["LIMIT"],
    "SELECT DISTINCT ON (age) * FROM events": ["DISTINCT ON"],
    "FROM events USING SAMPLE 10": ["a sample"],
    "FROM events TABLESAMPLE 10%": ["a sample"],
    "SELECT *, row_number() OVER (ORDER BY uid) AS place FROM events": ["a window"],
    "FROM events QUALIFY rank() OVER (ORDER BY age) < 5": ["a window"],
    "FROM events WHERE age > (SELECT avg(age) FROM events)": [
        "a subquery in an expression",
        "an aggregate of all rows",
    ],
    "FROM events WHERE age IN (SELECT age FROM events LIMIT 3)": ["a subquery in an expression", "LIMIT"],
    "SELECT events.* FROM events, (SELECT avg(age) AS mean FROM events) WHERE age > mean": ["an aggregate of all rows"],
    "WITH few AS (FROM events LIMIT 5) FROM few": ["LIMIT"],
    "SELECT uid, age FROM events UNION ALL (SELECT uid, age FROM events LIMIT 1)": ["LIMIT"],
}
PLAIN = [
    "FROM events WHERE age > 3",
    "SELECT uid, max(age) AS age FROM events GROUP BY uid",
    "SELECT uid, max(age) AS age FROM events GROUP BY ALL",
    "SELECT DISTINCT uid, lower(country) AS country FROM events ORDER BY uid",
    "SELECT e.* FROM events e JOIN (VALUES ('US')) v(country) USING (country)",
    'SELECT uid, CAST(age AS VARCHAR) AS "LIMIT 5" FROM events',
    "SELECT DISTINCT uid, age FROM events",
]


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events AS SELECT i AS uid, 'US' AS country, i % 9 AS age FROM range(100) t(i)")
        yield connection


def warned(connection, **more) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        install(connection, **{"attacker": ATTACKER, "unit": "uid", **more})
    return [str(warning.message) for warning in caught if warning.category is UserWarning]


NAMED = {"a AS (b": next(iter(LINKED)), "side.seen": next(iter(LINKED))}
NAMED |= {f"linked {number}": query for number, query in enumerate(LINKED)}
SEVERAL = {f"plain {number}": query for number, query in enumerate(PLAIN)}


@pytest.fixture(scope="module")
def parts():
    """The parts that are named of each view, of a database that has them all."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events AS SELECT i AS uid, 'US' AS country, i % 9 AS age FROM range(100) t(i)")
        connection.execute("CREATE SCHEMA side")
        for name, query in (NAMED | SEVERAL).items():
            quoted = name if name == "side.seen" else f'"{name}"'
            connection.execute(f"CREATE VIEW {quoted} AS {query}")
        said = {}
        for warning in warned(connection):
            view, _, what = warning.removeprefix("view '").partition("' uses ")
            assert view not in said
            said[view] = sorted(what.partition(":")[0].split(", "))
        return said


@thinned(4)
@pytest.mark.parametrize("name", NAMED)
def test_what_links_rows_is_named(parts, name):
    assert parts[name] == sorted(LINKED[NAMED[name]])


@pytest.mark.parametrize("name", SEVERAL)
def test_what_looks_at_one_person_alone_is_not(parts, name):
    assert name not in parts


def test_a_view_of_a_view_is_looked_through(con):
    con.execute(
        "CREATE SCHEMA side; CREATE VIEW side.first AS FROM main.events LIMIT 50; "
        "CREATE VIEW side.second(a, uid) AS SELECT age, uid FROM FIRST; CREATE VIEW third AS FROM side.second"
    )
    assert sorted(warning.split("'")[1] for warning in warned(con)) == ["side.first", "side.second", "third"]


def test_only_views_that_can_be_asked_are_named(con):
    con.execute("CREATE VIEW ages AS SELECT age FROM events LIMIT 10")
    assert warned(con) == []
    assert len(warned(con, unit=pkdp.EACH_ROW)) == 1
