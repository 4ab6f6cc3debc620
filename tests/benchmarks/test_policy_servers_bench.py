"""The zoo of network files and policy servers: each sort drives an episode by one command."""

from __future__ import annotations

import pytest

from tests.benchmarks.runtime.policy_servers import FILES, SERVERS, overhead_row, run_kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, *SERVERS])
def test_a_kind_drives_an_episode_by_one_command(name: str) -> None:
    assert run_kinds({name: {**FILES, **SERVERS}[name]}) == {}


@pytest.mark.slow
def test_the_overhead_of_a_decision_is_measured() -> None:
    row = overhead_row(3, 0)
    assert row.value is not None
    assert row.value > 0
