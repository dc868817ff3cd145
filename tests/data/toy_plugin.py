"""A package of somebody else: a source, an output, an engine, a command, a view, and a step around each period."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pydantic

from pkdp_pipeline.engines.pandas_engine import PandasEngine
from pkdp_pipeline.errors import ConfigError
from pkdp_pipeline.jobs.source_tables import SourceTable
from pkdp_pipeline.jobs.sources.relations import RelationSource, connect
from pkdp_pipeline.jobs.steps import PeriodStep
from pkdp_pipeline.plugins import Plugin


class Numbered(SourceTable):
    """So many people in Ås, on the first day of 2020."""

    reader = "toy_plugin:open_numbered"
    people: int = pydantic.Field(description="How many people there are.")

    @property
    def public_name(self) -> str:
        """See `SourceTable`."""
        return "numbered people"


def open_numbered(table, needs):
    """Return the people, open for reading."""
    assert needs.of(["day", "person", "town", "else"]) == ("day", "person", "town")
    connection = connect()
    rows = f"SELECT DATE '2020-01-01' AS day, i AS person, 'Ås' AS town FROM range({table.people}) AS r(i)"
    return RelationSource(connection, connection.sql(rows), ConfigError("broken"))


def in_text(job, work, writing):
    """Note that work is done; a real output hands a store to `work`."""
    place = Path(job.output.model_extra["text"])
    if writing:
        place.write_text("written", encoding="utf-8")


class Frame:
    """A frame of another library, around one of pandas."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame


class FrameEngine(PandasEngine):
    """Counts such frames."""

    def cells(self, frame, question):
        """See `Engine`."""
        return super().cells(frame.frame, question)

    def tally(self, frame, question):
        """See `Engine`."""
        return super().tally(frame.frame, question)

    def units(self, frame, unit):
        """See `Engine`."""
        return super().units(frame.frame, unit)


def greet(name: str) -> None:
    """Greet somebody."""
    print(f"hello {name}")


class Noting(PeriodStep):
    """Writes down what happens around a period."""

    def check(self, job):
        """See `PeriodStep`."""
        note("checked")

    def began(self, result):
        """See `PeriodStep`."""
        note(f"began {result.day}")

    def published(self, result, *, alone):
        """See `PeriodStep`."""
        note(f"published {len(result.releases)}")

    def ended(self, result):
        """See `PeriodStep`."""
        note(f"ended {result.outcome}")


NOTES: list[str] = []
note = NOTES.append

plugin = Plugin(
    commands={"greet": "toy_plugin:greet"},
    sources={"people": "toy_plugin:Numbered"},
    outputs={"text": "toy_plugin:in_text"},
    engines={"toy_plugin.Frame": "toy_plugin:FrameEngine"},
    views={"toy": "toy_plugin:greet"},
    after_period={"*": "toy_plugin:Noting"},
)
