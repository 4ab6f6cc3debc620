"""Pairs of images by their stamps, motion by odometry: pure parts of the ROS driver, with properties."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drivers.ros.camera.pairing import FramePairs, StampMatcher
from drivers.ros.localizer.motion_history import MotionHistory
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2

MS = 1_000_000


def picture(content: bytes = b"x") -> Any:
    return SimpleNamespace(data=content)


# --- pairs ----------------------------------------------------------------------------------------------------------


RATE_HZ = 10.0
FRAME_MS = 100


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=80), st.integers(-44, 44))
def test_only_images_within_half_a_frame_make_pairs_and_they_come_in_order(
    arrivals: list[tuple[bool, int]], skew_ms: int
) -> None:
    pairs = FramePairs(waiting=5, rate_hz=RATE_HZ, stored=100)
    seen: list[int] = []
    for is_color, frame in arrivals:
        add, late_ms = (pairs.add_color, 0) if is_color else (pairs.add_depth, skew_ms)
        add((FRAME_MS * frame + late_ms) * MS, picture(bytes([frame, is_color])))
        newest = pairs.newest()
        if newest is not None and newest.stamp_ns not in seen:
            seen.append(newest.stamp_ns)
            frame = newest.stamp_ns // (FRAME_MS * MS)
            assert newest.color.data == bytes([frame, True])
            assert newest.depth.data == bytes([frame, False]), "of the same capture, never of a neighbor"
            assert newest.depth_ns - newest.stamp_ns == skew_ms * MS
    assert seen == sorted(seen)


def test_the_skew_and_the_nearest_images_are_told() -> None:
    pairs = FramePairs(waiting=5, rate_hz=RATE_HZ, stored=10)
    for frame in range(3):
        pairs.add_color(FRAME_MS * frame * MS, picture())
        pairs.add_depth((FRAME_MS * frame + 20) * MS, picture())
    assert "+0.0200 s" in pairs.matcher.skew
    assert pairs.first_after(1 * MS).stamp_ns == FRAME_MS * MS, "both images are exposed after the instant"  # type: ignore[union-attr]
    assert pairs.skew(3) == pairs.matcher.skew
    assert not pairs.skew(4), "too few for a median"
    pairs.clear()
    pairs.add_color(0, picture())
    pairs.add_depth(60 * MS, picture())
    message, remedy = pairs.matcher.no_pair("/rgb/image_raw", "/depth_to_rgb/image_raw")
    assert "0.0600 s apart" in message
    assert "Azure Kinect" in remedy
    assert "rate_hz" in remedy


def test_a_camera_that_is_faster_than_stated_has_a_shorter_frame() -> None:
    matcher = StampMatcher(waiting=5, rate_hz=RATE_HZ)
    for frame in range(20):
        for stream in (0, 1):
            matcher.add(stream, 20 * frame * MS, picture())
    assert matcher.tolerance_ns < 10 * MS


def test_streams_out_of_step_pair_as_long_as_they_may_wait() -> None:
    pairs = FramePairs(waiting=3, rate_hz=RATE_HZ, stored=10)
    for frame in range(10):
        pairs.add_color(FRAME_MS * MS * frame, picture())
    for frame in range(10):
        pairs.add_depth(FRAME_MS * MS * frame, picture())
    first = pairs.first_after(0)
    assert first is not None
    assert first.stamp_ns == 7 * FRAME_MS * MS, "the oldest were let go: memory is bounded"
    assert pairs.matcher.dropped == 11, "seven colour images, and four of the seven depth images left over"


def test_the_first_pair_after_an_instant() -> None:
    pairs = FramePairs(waiting=3, rate_hz=RATE_HZ, stored=10)
    for stamp_ns in (10, 20, 30):
        pairs.add_color(stamp_ns, picture())
        pairs.add_depth(stamp_ns, picture())
    assert [getattr(pairs.first_after(after), "stamp_ns", None) for after in (0, 10, 11, 30, 31)] == [
        10,
        10,
        20,
        30,
        None,
    ]


def test_content_stays_the_same_while_both_pictures_do() -> None:
    pairs = FramePairs(waiting=3, rate_hz=RATE_HZ, stored=10)
    for stamp_ns, color, depth in ((1, b"a", b"d"), (2, b"a", b"d"), (3, b"a", b"e"), (4, b"a", b"e"), (5, b"b", b"e")):
        pairs.add_color(stamp_ns, picture(color))
        pairs.add_depth(stamp_ns, picture(depth))
    found = [pairs.first_after(stamp_ns) for stamp_ns in range(1, 6)]
    assert [pair.unchanged_since_ns for pair in found if pair is not None] == [1, 1, 3, 3, 5]


# --- motion ---------------------------------------------------------------------------------------------------------


def test_motion_is_told_from_standing_still() -> None:
    motion = MotionHistory()
    for step in range(11):
        motion.odom(step * 100 * MS, SE2(0.01 * step, 0.0, 0.0))
        motion.head(step * 100 * MS, 0.0, 0.0)
    assert not motion.moved(0, 200 * MS)
    assert motion.moved(0, 1000 * MS)
    assert not motion.moved(5 * NS_PER_S, 6 * NS_PER_S), "what is not known has not moved"


def test_a_nod_is_motion() -> None:
    motion = MotionHistory()
    for step in range(5):
        motion.head(step * MS, 0.0, -0.1 * step)
    assert motion.moved(0, 4 * MS)
