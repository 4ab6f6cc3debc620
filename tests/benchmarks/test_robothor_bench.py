"""Rows of ``bench policy`` about other software: one that runs, and one that states why it does not."""

from __future__ import annotations

import pytest

from tests.benchmarks.runtime import robothor_server
from tests.benchmarks.sim import habitat


@pytest.mark.slow
def test_the_protocols_row() -> None:
    (row,) = robothor_server.rows(5, 0)
    assert row.id == "robothor_step_overhead_ms"
    assert row.value is not None
    assert row.value > 0
    assert (row.target, row.sense) == (10, "<=")
    assert "of 5 turns" in row.note


def test_habitats_row_says_where_to_run_it() -> None:
    (row,) = habitat.rows(5, 0)
    assert (row.id, row.value, row.target, row.sense) == ("habitat_step_overhead_ms", None, 5, "<=")
    assert ".venv-frameworks" in row.note
