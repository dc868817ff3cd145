"""What tests of verification share."""

from __future__ import annotations

import pytest
from published_files import certificate, composed, release, written

from pkdp_pipeline.extras.assurance.verification import verify


@pytest.fixture(scope="session", autouse=True)
def genuine(tmp_path_factory):
    """Make genuine files and verify one, before the tests: all that they alter is made and loaded once."""
    certificate()
    composed()
    assert verify(written(tmp_path_factory.mktemp("genuine"), release())).passed
