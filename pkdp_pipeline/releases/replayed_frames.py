"""Warning of a replay that somebody asks of another frame than the one that was published."""

from __future__ import annotations

import sys
import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from pkdp_pipeline.ledger.sealed import release_id

if TYPE_CHECKING:
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.releases.release import Release
    from pkdp_pipeline.releases.request import Request

__all__ = ["warn_of_another_frame"]

#: By question and table, the frame of which this process asked for it first; it may be gone by now. A table may have
#: several certificates, and so several ids.
_ASKED: dict[tuple[str, str], weakref.ref[object]] = {}


def warn_of_another_frame(frame: object, request: Request, release: Release, ledger: Ledger | None) -> None:
    """Warn where a release is a replay, and this process has it of another frame object. No data are read.

    What another process published is not known here: of that only the first frame that asks for it is remembered.
    """
    if ledger is None:
        return
    asked = request.key(ledger.dataset), release_id(release.table, "")
    known = _ASKED.get(asked)
    if release.replayed and known is not None:
        if known() is not frame:
            warnings.warn(
                f"{request.description!r} of {request.period} was asked of another frame before: what is returned is "
                "what was published, and this frame was not read. Put restrictions in where=, or publish changed data "
                "with revise=True.",
                UserWarning,
                stacklevel=_callers_level(),
            )
        return
    with suppress(TypeError):  # no reference can be kept to a frame of this kind
        _ASKED[asked] = weakref.ref(frame)


def _callers_level() -> int:
    """Return how far up the stack the code is that called this library, as seen from where it warns."""
    level, caller = 1, sys._getframe(1)
    while caller.f_back is not None and caller.f_globals.get("__name__", "").startswith("pkdp_pipeline"):
        level, caller = level + 1, caller.f_back
    return level
