"""The safety topics of each variant's base, and the conversion of their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import rospy
from ca_msgs.msg import Bumper
from kobuki_msgs.msg import BumperEvent, CliffEvent, SensorState, WheelDropEvent
from std_msgs.msg import Empty

from drivers.ros_locobot.guard.options import GuardOptions
from drivers.ros_locobot.guard.safety_levels import LevelTracker, SafetySensor, create_levels, kobuki_levels


@dataclass(frozen=True, slots=True)
class Sensor:
    """One subscription.

    Attributes:
        topic: Full name.
        message: Class to subscribe with; ``AnyMsg`` where the content is irrelevant or the type's name may differ.
        definition: Class whose definition the publishers must use; None for any.
        receive: Passes a message to the tracker.
    """

    topic: str
    message: Any
    definition: Any
    receive: Callable[[Any], None]


def subscriptions(options: GuardOptions, tracker: LevelTracker, now_ns: Callable[[], int]) -> list[Sensor]:
    """Return the subscriptions to the safety topics that the variant has."""
    return [sensor for sensor in _all(options, tracker, now_ns) if sensor.topic]


def _all(options: GuardOptions, tracker: LevelTracker, now_ns: Callable[[], int]) -> Iterator[Sensor]:
    topics = options.resolved_topics()
    if options.family == "pyrobot-create":

        def bumper(message: rospy.AnyMsg) -> None:
            # The type is ca_msgs/Bumper before create_robot 2.0 and create_msgs/Bumper since, with equal definitions.
            if message._connection_header["md5sum"] == Bumper._md5sum:
                tracker.levels(create_levels(Bumper().deserialize(message._buff)), now_ns())

        yield Sensor(topics.bumper, rospy.AnyMsg, Bumper, bumper)
        yield Sensor(topics.cliff, Empty, Empty, lambda _: tracker.pulse(SafetySensor.CLIFF, now_ns()))
        yield Sensor(topics.wheel_drop, Empty, Empty, lambda _: tracker.pulse(SafetySensor.WHEEL_DROP, now_ns()))
        return
    yield Sensor(topics.core, SensorState, SensorState, lambda m: tracker.levels(kobuki_levels(m), now_ns()))
    yield Sensor(
        topics.bumper, BumperEvent, BumperEvent, lambda m: tracker.event(SafetySensor.BUMPER, m.bumper, m.state)
    )
    yield Sensor(topics.cliff, CliffEvent, CliffEvent, lambda m: tracker.event(SafetySensor.CLIFF, m.sensor, m.state))
    yield Sensor(
        topics.wheel_drop,
        WheelDropEvent,
        WheelDropEvent,
        lambda m: tracker.event(SafetySensor.WHEEL_DROP, m.wheel, m.state),
    )
    yield Sensor(topics.odom, rospy.AnyMsg, None, lambda _: tracker.alive(now_ns()))
