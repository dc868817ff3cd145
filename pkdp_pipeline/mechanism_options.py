"""The options that name a mechanism and an attacker, for the commands that take both."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "InfluenceOption",
    "K",
    "Known",
    "Noise",
    "PMax",
    "PMin",
    "ReleaseThreshold",
    "Unknown",
    "UnknownMax",
]

PMax = Annotated[float | None, typer.Option(help="See AttackerModel; conditional on absence for histograms.")]
PMin = Annotated[float | None, typer.Option(help="Smallest probability of an unknown person.")]
Unknown = Annotated[int | None, typer.Option(help="At least this many unknown people.")]
UnknownMax = Annotated[int | None, typer.Option(help="At most this many unknown people.")]
Known = Annotated[int, typer.Option(help="People the attacker knows or controls.")]
InfluenceOption = Annotated[str, typer.Option(help="passive or active.")]
K = Annotated[int | None, typer.Option(help="Published only when the count is at least this.")]
Noise = Annotated[float | None, typer.Option(help="Epsilon of two-sided geometric noise.")]
ReleaseThreshold = Annotated[int | None, typer.Option(help="Published only when the noisy count reaches this.")]
