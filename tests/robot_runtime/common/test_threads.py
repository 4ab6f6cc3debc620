"""Threads that no collection of garbage holds up."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from robot_runtime.common.threads import short_collections
loaded = [[] for _ in range(1000)]
with short_collections():
    inside = gc.get_freeze_count()
    with short_collections():
        pass
    still = gc.get_freeze_count()
print(inside >= 1000, still == inside, gc.get_freeze_count())
"""


def test_what_is_loaded_is_left_out_of_collections_within_the_context() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )  # a heap of its own
    assert done.stdout.split() == ["True", "True", "0"]
