"""Contact as a level from events: hazards that a Create 3 publishes at changes, or repeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from drivers.ros.guard.safety_levels import ALL, BOTH_WHEELS, Levels, LevelTracker, hazard_levels
from drivers.ros.guard.safety_sources import SAFETY_SOURCES, tracker_of
from drivers.ros.options import Topics
from drivers.ros.topics import ROS_2_FAMILIES, topic_names
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal import Zone

TOPIC = "/hazard_detection"
TOPICS = Topics(**topic_names("create3", "robot"))
BACKUP_LIMIT, BUMP, CLIFF, STALL, WHEEL_DROP, PROXIMITY = range(6)


def hazards(*found: tuple[int, str]) -> Any:
    detections = [SimpleNamespace(type=kind, header=SimpleNamespace(frame_id=frame)) for kind, frame in found]
    return SimpleNamespace(detections=detections)


@pytest.mark.parametrize(
    ("found", "levels"),
    [
        ((), Levels()),
        (((BUMP, "bump_front_left"), (BUMP, "bump_right")), Levels(bumper=Zone.LEFT | Zone.RIGHT)),
        (((BUMP, "robot_1/bump_front_center"),), Levels(bumper=Zone.CENTER)),
        (((CLIFF, "cliff_side_right"),), Levels(cliff=Zone.RIGHT)),
        (((WHEEL_DROP, "left_wheel"), (WHEEL_DROP, "right_wheel")), Levels(wheel_drop=BOTH_WHEELS)),
        (((STALL, "left_wheel"),), Levels(bumper=ALL)),
        (((BACKUP_LIMIT, "base_link"), (PROXIMITY, "ir_intensity_left")), Levels()),
        (((BUMP, "a frame of another firmware"),), Levels(bumper=ALL)),
    ],
)
def test_hazards_are_zones_and_an_unknown_frame_is_everywhere(found: Any, levels: Levels) -> None:
    assert hazard_levels(hazards(*found).detections) == levels


def take(tracker: LevelTracker, message: Any, now_ns: int) -> None:
    SAFETY_SOURCES["create3"][0].take(tracker, TOPIC, message, now_ns)


def test_a_hazard_on_change_holds_and_is_as_old_as_odometry() -> None:
    tracker = tracker_of("create3", TOPICS)
    assert tracker.feedback(0) is None, "without odometry nothing is known"
    take(tracker, hazards((BUMP, "bump_left")), 0)
    tracker.alive(5 * NS_PER_S)
    feedback = tracker.feedback(5 * NS_PER_S)
    assert feedback is not None
    assert (feedback.stamp_ns, feedback.bumper) == (5 * NS_PER_S, Zone.LEFT)
    take(tracker, hazards(), 6 * NS_PER_S)
    released = tracker.feedback(6 * NS_PER_S)
    assert released is not None
    assert (released.stamp_ns, released.bumper) == (5 * NS_PER_S, Zone.NONE)


def test_hazards_whose_writer_is_gone_are_no_feedback() -> None:
    tracker = tracker_of("create3", TOPICS)
    take(tracker, hazards(), 0)
    tracker.alive(0)
    assert tracker.feedback(0) is not None
    tracker.unpublished([TOPIC])
    assert tracker.feedback(0) is None
    assert f"{TOPIC} has no publisher" in tracker.lacking(0, 1.0)


def test_hazards_from_before_are_unknown_until_the_first_message_of_each_writer() -> None:
    tracker = tracker_of("create3", TOPICS)
    for _ in range(2):
        tracker.alive(0)
        assert tracker.feedback(0) is None
        assert tracker.unknown_topics == (TOPIC,)
        assert "press the bumper once" in tracker.lacking(0, 1.0)
        take(tracker, hazards((BUMP, "bump_left")), 0)
        feedback = tracker.feedback(0)
        assert feedback is not None
        assert feedback.bumper is Zone.LEFT
        assert not tracker.lacking(0, 1.0)
        tracker.unpublished([TOPIC])  # what happens meanwhile is told to nobody
        tracker.unpublished([])


def test_periodic_hazards_that_fall_silent_are_old() -> None:
    tracker = tracker_of("create3", TOPICS, periodic=True)
    tracker.alive(0)
    assert tracker.feedback(0) is None, "a periodic topic must have delivered"
    take(tracker, hazards(), 0)
    tracker.alive(NS_PER_S)
    feedback = tracker.feedback(NS_PER_S)
    assert feedback is not None
    assert feedback.stamp_ns == 0


def test_a_base_without_contact_sensing_lives_by_its_odometry() -> None:
    tracker = tracker_of("turtlebot3", Topics(**topic_names("turtlebot3", "robot")))
    assert tracker.feedback(0) is None
    assert "odometry" in tracker.lacking(0, 1.0)
    tracker.alive(0)
    feedback = tracker.feedback(0)
    assert feedback is not None
    assert (tracker.source, feedback.bumper) == ("odometry", Zone.NONE)


@pytest.mark.parametrize("family", ROS_2_FAMILIES)
def test_a_bumper_switch_or_hazards_by_yaml_are_contact(family: str) -> None:
    names = topic_names(family, "robot") | ({"bumper": "/bumped"} if "bumper" in topic_names(family, "robot") else {})
    tracker = tracker_of(family, Topics(**names))
    if names.get("bumper"):
        (source,) = (source for source in SAFETY_SOURCES[family] if source.field == "bumper")
        source.take(tracker, "/bumped", SimpleNamespace(data=True), 0)
    else:
        take_from = SAFETY_SOURCES[family][0]
        take_from.take(tracker, names["hazards"], hazards((BUMP, "bump_front_center")), 0)
    tracker.alive(0)
    feedback = tracker.feedback(0)
    assert feedback is not None
    assert feedback.bumper
