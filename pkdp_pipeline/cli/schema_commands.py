"""The command ``pkdp schema``: the JSON schemas of certificates, job files, ledgers and reports."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="As in certificate.v1; without a version, the newest. Left out: all are listed."
        ),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the file is, not what it says.")] = False,
) -> None:
    """Print a JSON schema of what pkdp writes or reads, for an editor or a validator."""
    from pkdp_pipeline import schemas
    from pkdp_pipeline.display.terminal.screen import Screen
    from pkdp_pipeline.errors import ArgumentError

    if name is not None:
        file = schemas.schema_file(name)
        typer.echo(str(file) if path else file.read_text(encoding="utf-8"), nl=path)
    elif path:
        raise ArgumentError("--path is about one schema: name it, as in pkdp schema certificate --path.")
    else:
        described = {one: schemas.schema(one)["description"].partition(". ")[0] for one in schemas.schema_names()}
        rows = [(one, first.removesuffix(".") + ".") for one, first in described.items()]
        Screen().table(("schema", "what it describes"), rows)
