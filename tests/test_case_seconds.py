"""A quick case that takes more than a processor second is written down, on a slow machine as on another."""

from __future__ import annotations

import time
from types import SimpleNamespace

import case_seconds
import pytest
from case_seconds import complaint, slowness, watched


def test_a_case_may_take_a_second_and_more_where_the_processor_is_slower():
    assert complaint(0.9, slower=1.0) is None
    assert complaint(1.5, slower=1.6) is None
    said = complaint(4.8, slower=1.6)
    assert "3.00 s" in said
    assert "mark it slow" in said
    assert complaint(5.0, modules=900, slower=1.0) is None


def test_a_processor_is_never_called_quicker_than_it_is():
    assert slowness() >= 1.0


def run(item):
    """Run a case that takes three hundredths of a second."""
    case = watched(item)
    next(case)
    began = time.process_time()
    while time.process_time() < began + 0.03:
        pass
    with pytest.raises(StopIteration):
        case.send(None)


@pytest.mark.skipif(case_seconds.ALL, reason="then all cases may take longer")
@pytest.mark.parametrize(("named", "mark", "lines"), [(True, None, 1), (False, None, 0), (True, "slow", 0)])
def test_quick_cases_are_written_down_where_a_file_is_named(tmp_path, monkeypatch, named, mark, lines):
    log = tmp_path / "cases"
    log.touch()
    item = SimpleNamespace(get_closest_marker=lambda name: name == mark or None, nodeid="tests/test_a.py::test_b[1]")
    with monkeypatch.context() as patched:
        patched.setenv("PKDP_CASE_SECONDS", str(log) if named else "")
        patched.setattr(case_seconds, "ALLOWED", 0.004)
        patched.setattr(case_seconds, "slowness", lambda: 1.0)
        run(item)
    text = log.read_text(encoding="utf-8")
    assert text.count("\n") == text.count("tests/test_a.py::test_b[1]\t") == lines
