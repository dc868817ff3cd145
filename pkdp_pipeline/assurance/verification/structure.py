"""Structure: whether a document is built as the published schema says."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from pkdp_pipeline.model.plain_text import printable

__all__ = ["fault"]

_SHOWN = 80


def fault(document: Any, schema: str) -> str:
    """Return where and how `document` departs from a published schema; empty where it does not.

    Parameters
    ----------
    document : JSON value
    schema : str
        Name of a file in ``pkdp_pipeline/schemas``.
    """
    error = best_match(_validator(schema).iter_errors(document))
    if error is None:
        return ""
    where = ".".join(printable(str(step))[:_SHOWN] for step in error.absolute_path)
    wanted = json.dumps(error.validator_value)
    # What stands there is not repeated: it may be anything.
    rule = f"{error.validator}: {wanted}" if len(wanted) <= _SHOWN else str(error.validator)
    return f"{f'field {where!r}' if where else 'the document'} breaks the rule {rule!r}"


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("pkdp_pipeline").joinpath("schemas", name).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))
