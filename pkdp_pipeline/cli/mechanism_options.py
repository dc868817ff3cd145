"""The options that name a mechanism and an attacker, for the commands that take both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.leakage import Leakage

__all__ = [
    "Dependent",
    "InfluenceOption",
    "K",
    "Known",
    "LeakageOption",
    "Noise",
    "PMax",
    "PMin",
    "ReleaseThreshold",
    "Secret",
    "TotalKnown",
    "Unknown",
    "UnknownMax",
    "attacker_from",
    "leakage_options",
]

PMax = Annotated[float | None, typer.Option(help="See AttackerModel; conditional on absence for histograms.")]
PMin = Annotated[float | None, typer.Option(help="Smallest probability of an unknown person.")]
Unknown = Annotated[int | None, typer.Option(help="At least this many unknown people.")]
UnknownMax = Annotated[int | None, typer.Option(help="At most this many unknown people.")]
Known = Annotated[int, typer.Option(help="People the attacker knows or controls.")]
InfluenceOption = Annotated[str, typer.Option(help="passive or active.")]
TotalKnown = Annotated[
    bool, typer.Option("--total-known", help="The exact number of people present is published, or known.")
]
LeakageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--leakage",
        metavar="JSON",
        help="What else is published exactly or known about the same people, with the fields of Leakage, such as "
        '\'{"name": "who is present", "tells": "people_present"}\'; may be repeated.',
    ),
]
Dependent = Annotated[
    str | None, typer.Option(metavar="UNIT", help="Whose records depend on one another, such as household.")
]
Secret = Annotated[
    str, typer.Option(help="record, or conditional: a person's record given those of all on whom it depends.")
]
K = Annotated[int | None, typer.Option(help="Published only when the count is at least this.")]
Noise = Annotated[float | None, typer.Option(help="Epsilon of two-sided geometric noise.")]
ReleaseThreshold = Annotated[int | None, typer.Option(help="Published only when the noisy count reaches this.")]


def attacker_from(*, total_known: bool = False, leakage: Sequence[str] | None = None, **fields: Any) -> AttackerModel:
    """Return the attacker that the options name.

    Parameters
    ----------
    total_known : bool
        Whether the exact number of people present is known.
    leakage : sequence of str, optional
        What else is known, each as a JSON object with the fields of `Leakage`.
    **fields : object
        The other fields of `AttackerModel`, by their names.

    Raises
    ------
    ArgumentError
        If a field is malformed.
    """
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.leakage import Leakage

    known = [Leakage.total()] if total_known else []
    return AttackerModel(leakage=(*known, *map(_leakage, leakage or ())), **fields)


def leakage_options(leakage: Sequence[Leakage]) -> list[str]:
    """Return the options that name what is known, as they are typed."""
    import json

    from pkdp_pipeline.model.leakage import Leakage

    words: list[str] = []
    for one in leakage:
        if one == Leakage.total():
            words.append("--total-known")
        else:
            words += ["--leakage", json.dumps(one.to_dict(), ensure_ascii=False)]
    return words


def _leakage(text: str) -> Leakage:
    import json

    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.model.leakage import Leakage

    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ArgumentError(
            "--leakage must be a JSON object with the fields of Leakage: write "
            '--leakage \'{"name": "who is present", "tells": "people_present"}\', or --total-known.'
        )
    return Leakage.from_dict(fields)
