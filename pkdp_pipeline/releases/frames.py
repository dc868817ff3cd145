"""Frames of callers: what pandas users hand in takes its form here, and a frame that was not read is told."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pkdp_pipeline.engines.pandas_engine import holds_intervals
from pkdp_pipeline.errors import ArgumentError

if TYPE_CHECKING:
    from pkdp_pipeline.releases.publish import Publication
    from pkdp_pipeline.releases.release import Release


def of_frame(frame: Any, by: object, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options with an array of booleans under the index of a pandas frame; warn of cells found by `cut`."""
    if not isinstance(frame, pd.DataFrame):
        return options
    named = [by] if isinstance(by, str) else by if isinstance(by, Sequence) else ()
    if options.get("domain") is None and any(map(partial(holds_intervals, frame), named)):
        warnings.warn(
            "the cells are intervals: their edges must be fixed before anybody looks at the data. Those of pd.qcut, "
            "and of pd.cut with a number of bins, look at everybody, which the certificate does not cover: give pd.cut "
            "its edges, or declare the cells in domain=.",
            UserWarning,
            stacklevel=_callers_level(),
        )
    where = options.get("where")
    if isinstance(where, Sequence) and not isinstance(where, str):
        where = np.asarray(where)
    if isinstance(where, np.ndarray | pd.api.extensions.ExtensionArray):
        if where.ndim != 1 or len(where) != len(frame):
            raise ArgumentError("where must give one boolean per row of the frame.")
        return {**options, "where": pd.Series(where, index=frame.index)}
    return options


#: By question and table, the frame of which this process asked for it first; it may be gone by now. A table may have
#: several certificates, and so several ids.
_FRAMES: dict[tuple[str, str], weakref.ref[object]] = {}


def warn_of_another_frame(frame: object, publication: Publication, release: Release) -> None:
    """Warn where a release is a replay, and this process has it of another frame object. No data are read.

    Publications of another process are not known here: of each, only the first frame that asks for it is remembered.
    """
    ledger, question = publication.ledger, publication.question
    if ledger is None:
        return
    identity = question.key(ledger.dataset), release.sealed.cells.identity("")
    known = [_FRAMES[identity]] if identity in _FRAMES else []
    if release.certificate.derived_from is not None:
        published = replace(question, mechanism=release.certificate.derived_from).key(ledger.dataset)
        known = [reference for (key, _), reference in _FRAMES.items() if key == published]
    if release.replayed and known:
        if all(reference() is not frame for reference in known):
            warnings.warn(
                f"{question.description!r} of {question.period} was asked of another frame before: what is returned is "
                "what was published, and this frame was not read. Put restrictions in where=, or publish changed data "
                "with revise=True.",
                UserWarning,
                stacklevel=_callers_level(),
            )
        return
    with suppress(TypeError):  # no reference can be kept to a frame of this kind
        _FRAMES[identity] = weakref.ref(frame)


def _callers_level() -> int:
    """Return how far up the stack the code is that called this library, as seen from where it warns."""
    level, caller = 1, sys._getframe(1)
    while caller.f_back is not None and caller.f_globals.get("__name__", "").startswith("pkdp_pipeline"):
        level, caller = level + 1, caller.f_back
    return level
