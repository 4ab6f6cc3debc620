"""Poses arrive late, out of order, twice or not at all; the answer for an instant is the same or a refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import StaleData
from robot_runtime.hal import PoseEstimate, PoseStatus
from robot_runtime.hal.pose_history import PoseHistory, pose_at

MS = 1_000_000


def estimate(t_ms: float, x_m: float | None = None, yaw_rad: float = 0.0, **more: object) -> PoseEstimate:
    """A robot that drives 1 m/s along x, unless told otherwise."""
    pose = SE2(t_ms / 1000 if x_m is None else x_m, 0.0, yaw_rad)
    return PoseEstimate(round(t_ms * MS), pose, **{"frame": "map", **more})  # type: ignore[arg-type]


def history(*estimates: PoseEstimate, span_s: float = 10.0, max_gap_s: float = 0.5) -> PoseHistory:
    made = PoseHistory("tags", "map", span_s, max_gap_s)
    for e in estimates:
        made.add(e)
    return made


def test_an_empty_history_has_nothing() -> None:
    empty = history()
    assert empty.newest() is None
    assert empty.at(0) is None
    assert len(empty) == 0
    with raises_naming(StaleData, "'tags'"):
        empty.latest(lambda: 0, 1.0)


def test_latest_has_an_age() -> None:
    h = history(estimate(0), estimate(100))
    assert h.latest(lambda: 150 * MS, 0.05).stamp_ns == 100 * MS
    with raises_naming(StaleData, "'tags'", "0.051 s"):
        h.latest(lambda: 151 * MS, 0.05)


def test_what_arrives_while_the_clock_is_read_is_neither_old_nor_from_the_future() -> None:
    h = history(estimate(0))

    def now_ns() -> int:
        if len(h) == 1:
            h.add(estimate(290))
        return 300 * MS

    assert h.latest(now_ns, 0.1).stamp_ns == 290 * MS


def test_between_two_measurements_everything_is_linear() -> None:
    first = estimate(0, 1.0, math.radians(170), covariance=np.eye(3))
    second = estimate(100, 2.0, math.radians(-150), covariance=3 * np.eye(3))
    middle = history(first, second).at(25 * MS)
    assert middle is not None
    assert (middle.stamp_ns, middle.frame, middle.status) == (25 * MS, "map", PoseStatus.OK)
    assert middle.pose.x_m == pytest.approx(1.25)
    assert math.degrees(middle.pose.yaw_rad) == pytest.approx(180)
    assert np.allclose(middle.covariance, 1.5 * np.eye(3))


def test_a_measured_instant_is_answered_with_the_measurement_itself() -> None:
    exact = estimate(100)
    assert history(estimate(0), exact, estimate(200)).at(100 * MS) is exact
    assert history(exact).at(100 * MS) is exact


@pytest.mark.parametrize("lost", [0, 1])
def test_next_to_a_lost_pose_the_status_is_lost(lost: int) -> None:
    statuses = [PoseStatus.OK, PoseStatus.OK]
    statuses[lost] = PoseStatus.LOST
    between = history(estimate(0, status=statuses[0]), estimate(100, status=statuses[1])).at(50 * MS)
    assert between is not None
    assert between.status is PoseStatus.LOST


def test_nothing_is_extrapolated() -> None:
    h = history(estimate(100), estimate(200))
    assert h.at(200 * MS + 1) is None
    with raises_naming(StaleData, "tags", "0.001 s"):
        h.at(99 * MS)


def test_a_gap_is_not_bridged() -> None:
    h = history(estimate(0), estimate(501), estimate(601))
    with raises_naming(StaleData, "0.501 s", "0.5 s"):
        h.at(250 * MS)
    assert h.at(550 * MS) is not None
    h.add(estimate(300))
    assert h.at(250 * MS) is not None, "a late measurement closes the gap"


def test_a_second_measurement_of_an_instant_corrects_the_first() -> None:
    h = history(estimate(0), estimate(100, x_m=7.0), estimate(100, x_m=8.0))
    assert len(h) == 2
    newest = h.newest()
    assert newest is not None
    assert newest.pose.x_m == 8.0


def test_only_the_span_is_kept() -> None:
    h = history(*(estimate(t) for t in range(0, 3000, 100)), span_s=1.0)
    assert len(h) == 11
    h.add(estimate(5))
    assert len(h) == 11, "older than the span: forgotten at once"
    with raises_naming(StaleData, "tags"):
        h.at(1800 * MS)


def test_clear_forgets() -> None:
    h = history(estimate(0))
    h.clear()
    assert h.newest() is None


def test_another_frame_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="tags keeps poses in 'map', got one in 'odom'"):
        history(estimate(0, frame="odom"))


@pytest.mark.parametrize(("span_s", "max_gap_s"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, math.nan)])
def test_spans_are_positive(span_s: float, max_gap_s: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        PoseHistory("tags", "map", span_s, max_gap_s)


TIMES_MS = st.lists(st.integers(0, 2000), min_size=2, max_size=30, unique=True)


@given(TIMES_MS, st.randoms(use_true_random=False), st.integers(0, 2000))
def test_the_order_of_arrival_does_not_matter(times_ms: list[int], random: object, asked_ms: int) -> None:
    shuffled = list(times_ms)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ordered = history(*(estimate(t) for t in sorted(times_ms)), max_gap_s=3.0)
    jumbled = history(*(estimate(t) for t in shuffled), max_gap_s=3.0)
    if min(times_ms) <= asked_ms <= max(times_ms):
        answer = jumbled.at(asked_ms * MS)
        assert answer is not None
        assert answer.pose.x_m == pytest.approx(asked_ms / 1000), "a straight drive is interpolated exactly"
        reference = ordered.at(asked_ms * MS)
        assert reference is not None
        assert (reference.stamp_ns, reference.pose) == (answer.stamp_ns, answer.pose)
    elif asked_ms > max(times_ms):
        assert jumbled.at(asked_ms * MS) is None
    else:
        with pytest.raises(StaleData):
            jumbled.at(asked_ms * MS)


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(0, 1))
def test_yaw_never_leaves_the_shorter_arc(a_rad: float, b_rad: float, fraction: float) -> None:
    between = history(estimate(0, 0.0, a_rad), estimate(100, 0.0, b_rad)).at(round(100 * MS * fraction))
    assert between is not None
    arc_rad = abs(wrap_angle(b_rad - a_rad))
    assert abs(wrap_angle(between.pose.yaw_rad - a_rad)) <= arc_rad + 1e-9


# --- waiting ----------------------------------------------------------------------------------------------------------


def late_source(latency_ms: int) -> tuple[SimulatedClock, PoseHistory]:
    """Poses every 100 ms that arrive ``latency_ms`` later."""
    clock = SimulatedClock(10 * MS)
    h = history()

    def on_step(now_ns: int) -> None:
        measured_ms = now_ns // MS - latency_ms
        if measured_ms >= 0 and measured_ms % 100 == 0:
            h.add(estimate(measured_ms))

    clock.add_listener(on_step)
    return clock, h


def test_waits_for_the_measurement_after_the_instant() -> None:
    clock, h = late_source(latency_ms=50)
    clock.sleep_until(1000 * MS)
    answer = pose_at(h, clock, 1000 * MS, timeout_s=0.5, poll_s=0.01)
    assert answer.pose.x_m == pytest.approx(1.0)
    assert clock.now_ns() == 1050 * MS
    answer = pose_at(h, clock, 1049 * MS, timeout_s=0.5, poll_s=0.01)
    assert answer.pose.x_m == pytest.approx(1.049)
    assert clock.now_ns() == 1150 * MS


def test_gives_up_in_time_and_says_how_far_the_source_is_behind() -> None:
    clock, h = late_source(latency_ms=400)
    clock.sleep_until(1000 * MS)
    with raises_naming(StaleData, "0.2 s", "0.200 s"):
        pose_at(h, clock, 1000 * MS, timeout_s=0.2, poll_s=0.01)
    assert clock.now_ns() == 1200 * MS
    with raises_naming(StaleData, "tags"):
        pose_at(history(), clock, 0, timeout_s=0.0, poll_s=0.01)
