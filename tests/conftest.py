"""What all tests share: no time limit on single cases, because a busy machine is not a defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
