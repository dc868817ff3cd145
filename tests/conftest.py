"""What all tests share: the same property cases on every run, or fresh ones on request.

``PKDP_HYPOTHESIS=search`` draws other cases each time. No case has a time limit: a busy machine is not a defect.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=1_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("PKDP_HYPOTHESIS", "house"))
