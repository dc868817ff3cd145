"""Writes the input files of the five walks into ``out/input``, each as such a file comes to whoever counts people.

python make_inputs.py                 # the files
python make_inputs.py postgresql://…  # and the crashes into that database, in place of a table crashes
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

EXTRACTS = Path(__file__).parents[1] / "data"

CASES = "SELECT id, date_of_onset, district, status FROM extract ORDER BY id"
#: The source counts days from the beginning of the pandemic; March 2020 is as good a beginning as another.
TESTS = """SELECT DATE '2020-03-01' + pan_day::INTEGER AS first_test, subject_id AS person, demo_group AS "group", place
FROM extract"""
PURCHASES = "SELECT date, customer, country, kind FROM extract"
#: The source numbers the crashes of each year anew.
CRASHES = "SELECT make_date(year, 1, 1) AS year, year || ':' || crash AS crash, speed, outcome FROM extract"
#: German headings and spelling, for a spreadsheet: semicolons, decimal commas, days first, windows-1252.
MEASLES = """SELECT case_id AS Fall, family_id AS Haushalt, strftime(date_of_prodrome, '%d.%m.%Y') AS Ausbruch,
    replace(printf('%.1f', age), '.', ',') AS "Alter", replace(printf('%.2f', x_loc), '.', ',') AS "Länge",
    replace(printf('%.2f', y_loc), '.', ',') AS Breite,
    CASE class WHEN 'preschool' THEN 'Vorschüler' WHEN 'first class' THEN '1. Klasse' ELSE '2. Klasse' END AS Klasse
FROM extract ORDER BY case_id"""


def extract(name: str, query: str) -> duckdb.DuckDBPyRelation:
    return duckdb.read_parquet(str(EXTRACTS / f"{name}.parquet")).query("extract", query)


def main(address: str | None) -> None:
    folder = Path(__file__).parent / "out" / "input"
    folder.mkdir(parents=True, exist_ok=True)
    extract("ebola_2014", CASES).write_csv(str(folder / "cases.csv"))
    extract("covid_tests_2020", TESTS).write_parquet(str(folder / "first_tests.parquet"))
    extract("purchases_2011", PURCHASES).write_csv(str(folder / "purchases.csv"))
    crashes = extract("crashes_1997_2002", CRASHES)
    crashes.write_parquet(str(folder / "crashes.parquet"))
    extract("measles_1861", MEASLES).write_csv(str(folder / "masern.csv"), sep=";")
    german = (folder / "masern.csv").read_text(encoding="utf-8")
    (folder / "masern.csv").write_text(german, encoding="windows-1252")
    if address is not None:
        load(crashes, address)


def load(crashes: duckdb.DuckDBPyRelation, address: str) -> None:
    import psycopg

    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS crashes")
        cursor.execute("CREATE TABLE crashes (year date, crash text, speed text, outcome text)")
        with cursor.copy("COPY crashes FROM STDIN") as copy:
            for row in crashes.fetchall():
                copy.write_row(row)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [None]))
