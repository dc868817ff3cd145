"""The table ``[about]`` of a job file: public words on who publishes, which only reports print."""

from __future__ import annotations

from datetime import date
from typing import Self

from pydantic import Field, field_validator, model_validator

from pkdp_pipeline.model.spelling import printable
from pkdp_pipeline.model.wording import names_guarantee
from pkdp_pipeline.releases.options import Name, Table


class AboutTable(Table):
    """``[about]``: who publishes and who argued the attacker; public words, which reports print."""

    title: Name | None = Field(
        default=None, description="Title of the reports.", examples=["Patients of a walk-in clinic"]
    )
    publisher: Name | None = Field(default=None, description="The publisher, who answers for it.")
    contact: Name | None = Field(
        default=None, description="Where questions go: an address, a telephone number.", examples=["data@example.org"]
    )
    argued_by: Name | None = Field(default=None, description="The person who argued the attacker.")
    argued_on: Name | None = Field(
        default=None, description="When: a date, before the first release.", examples=["2025-12-01"]
    )
    checked_on: Name | None = Field(
        default=None,
        description="When the assumptions were last checked: a date. After a year reports and dry runs say so.",
        examples=["2026-12-01"],
    )
    argument: Name | None = Field(default=None, description="Why what is declared about the attacker is true.")

    @field_validator("*")
    @classmethod
    def _are_words(cls, text: str | None) -> str | None:
        words = text and " ".join(text.split())
        if words == "" or (words and names_guarantee(words)):
            raise ValueError(
                "must hold words, and none that promise: leave ε, δ and whom they hold against to the certificate."
            )
        return words

    @field_validator("argued_on", "checked_on", mode="before")
    @classmethod
    def _is_a_date(cls, day: object) -> object:
        try:
            day = date.fromisoformat(day) if isinstance(day, str) else day
            return day.isoformat() if type(day) is date else day
        except ValueError:
            raise ValueError("must be a date, such as 2025-12-01.") from None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("is empty: say who publishes, or remove it.")
        return self

    def outdated(self, day: date) -> bool:
        """Return whether the assumptions were last checked more than a year before a day."""
        return self.checked_on is not None and (day - date.fromisoformat(self.checked_on)).days > 366

    def words(self) -> dict[str, str]:
        """Return what is said, printable, by key."""
        return {name: printable(text) for name, text in self.model_dump(exclude_none=True).items()}
