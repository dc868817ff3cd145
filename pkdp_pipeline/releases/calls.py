"""Calls: how the options of a function that asks a frame, and what pandas users hand in, become a publication.

A frame that was not read, since its release is a replay, is told of.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from pkdp_pipeline.model.mechanisms import Count, Histogram, Sum
    from pkdp_pipeline.releases.publish import Publication
    from pkdp_pipeline.releases.release import Release


P = ParamSpec("P")
R = TypeVar("R")


_NEEDED = {
    "unit": 'unit is needed: name the column of the protected person, as in unit="patient", or write '
    "unit=pkdp.EACH_ROW where every row is a person of its own.",
    "bounds": "bounds is needed: the least and the most that a person adds, a public rule, as in bounds=(0, 5).",
    "noise": "noise is needed: a sum is published with noise only, as in noise=pkdp.GeometricNoise(1.0).",
}


_WEIGHTED = (
    "weights are fixed beforehand, and given to what is published: release.weighted(…). A weight in a person's own "
    "record tells of it as any value does: publish counts by the stratum that it follows from, or by groups of it, as "
    "pkdp.bins, and weight these."
)


def of_people(function: Callable[P, R]) -> Callable[P, R]:
    """Say how `unit`, and whatever else is needed, is written to a caller who leaves it out."""
    parameters = inspect.signature(function).parameters
    needed = [name for name in _NEEDED if name in parameters and parameters[name].default is inspect.Parameter.empty]

    @functools.wraps(function)
    def called(*values: P.args, **options: P.kwargs) -> R:
        for name in needed:
            if name not in options:
                from pkdp_pipeline.errors import ArgumentError

                raise ArgumentError(_NEEDED[name])
        if {"weight", "weights"} & options.keys():
            from pkdp_pipeline.errors import ArgumentError

            raise ArgumentError(_WEIGHTED)
        return function(*values, **options)

    called.__doc__ = inspect.cleandoc(function.__doc__ or "")
    return called


def of_its_frame(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return the method that asks a function of the accessor's frame: its parameters but the frame."""

    @functools.wraps(function)
    def method(self: Any, /, *values: P.args, **options: P.kwargs) -> R:
        return function(self._frame, *values, **options)

    _, *others = inspect.signature(function).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = inspect.signature(function).replace(parameters=[own, *others])  # type: ignore[attr-defined]
    return method


def publication_of(by: object = None, **options: Any) -> Publication:
    """Return what is asked for by the options of a call; without `by` it is a count, with `bounds` a sum."""
    from pkdp_pipeline.errors import ArgumentError
    from pkdp_pipeline.model.arguments import choice
    from pkdp_pipeline.model.mechanisms import Count, Histogram, Sum
    from pkdp_pipeline.model.question import Question
    from pkdp_pipeline.releases.publish import Publication

    kind: type[Count | Histogram | Sum] = Count if by is None else Histogram
    column, rows, bounds = options.pop("column", None), options.pop("rows", None), options.pop("bounds", None)
    if not (column is rows is bounds is None):
        if rows is not None:
            choice("rows", rows, ("count",))
        if (column is None) is (rows is None):
            raise ArgumentError('a sum is of a column, or of rows: name the column, or write rows="count", not both.')
        for name, default in (("k", None), ("below", "suppress"), ("display", None), ("k_complement", None)):
            if options.pop(name, default) != default:
                raise ArgumentError(f"{name} is about counts; a sum has none: leave it out.")
        kind, options = Sum, {**options, "summed": column, "bounds": bounds}
    steps, terms = (
        {field.name: options.pop(field.name) for field in fields(owner) if field.name in options}
        for owner in (kind, Publication)
    )
    return Publication(question=Question(mechanism=kind(**steps), by=by, **options), **terms)


def published(frame: Any, by: object = None, **options: Any) -> Release:
    """Publish what the options of a call ask of a frame."""
    from pkdp_pipeline.releases.publish import publish

    publication = publication_of(by, **of_frame(frame, by, options))
    release = publish(lambda: frame, publication)
    warn_of_another_frame(frame, publication, release)
    return release


def of_frame(frame: Any, by: object, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options with an array of booleans under the index of a pandas frame; warn of cells found by `cut`."""
    import numpy as np
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        return options
    from pkdp_pipeline.engines.pandas_engine import holds_intervals
    from pkdp_pipeline.errors import ArgumentError

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
