"""A peer's side of the benchmark: load once, then time one histogram for every line on standard input."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def serve(package: str, load: Callable[[str], Any], histogram: Callable[[Any], Any]) -> None:
    """Answer with lines of JSON; whatever else is written to standard output goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    data = load(sys.argv[1])
    answers.write(json.dumps({"version": version(package)}) + "\n")
    for _ in sys.stdin:
        start = time.perf_counter()
        cells = histogram(data)
        answers.write(json.dumps({"seconds": time.perf_counter() - start, "cells": cells}) + "\n")
