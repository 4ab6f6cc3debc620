"""Percentiles of phases: accuracy, and independence of the order of logs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.metrics.episode_metrics import Latency, together
from robot_runtime.records import PHASES

SECONDS = st.lists(st.floats(1e-7, 100.0), min_size=1, max_size=60)


def of(seconds: list[float], phase: str = "infer") -> Latency:
    latency = Latency()
    for value in seconds:
        latency.add({phase: value})
    return latency


@given(SECONDS)
def test_percentiles_are_within_a_hundredth_of_the_exact_ones(seconds: list[float]):
    (time,) = of(seconds).times()
    assert time.steps == len(seconds)
    for percent, found_ms in ((50, time.p50_ms), (95, time.p95_ms), (99, time.p99_ms)):
        exact_ms = 1000 * float(np.percentile(seconds, percent, method="inverted_cdf"))
        assert found_ms == pytest.approx(exact_ms, rel=0.0101)


@given(SECONDS, SECONDS)
def test_parts_add_up(one: list[float], other: list[float]):
    assert together([of(one), of(other)]) == of(one + other)
    assert together([]) == Latency()


def test_phases_stand_in_their_order_and_unknown_ones_are_left_out():
    latency = Latency()
    latency.add({"log": 0.1, "decide": 5.0, "infer": 0.0})
    latency.add(dict.fromkeys(reversed(PHASES), 0.2))
    assert [time.phase for time in latency.times()] == list(PHASES)
    assert latency.times()[0].steps == 2


def test_counts_travel_between_processes():
    latency = of([0.1, 0.2])
    assert pickle.loads(pickle.dumps(latency)) == latency
