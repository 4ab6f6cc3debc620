"""Subscriptions to the safety topics of a variant's base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import rospy
from roslib.message import get_message_class

from drivers.ros_locobot.guard.safety_levels import LevelTracker
from drivers.ros_locobot.guard.safety_sources import SAFETY_SOURCES, Reports, SafetySource
from drivers.ros_locobot.topics import TOPICS
from robot_runtime.errors import DriverMissing


@dataclass(frozen=True)
class Sensor:
    """One subscription.

    Attributes:
        topic: Full name.
        message: Class to subscribe with; ``AnyMsg`` where the content is irrelevant or the type's name may differ.
        definition: Class whose definition the publishers must use; None for any.
        reports: When the topic has messages; None for odometry, a sign of life.
        receive: Passes a message to the tracker; False if the message is not about the base's safety.
    """

    topic: str
    message: Any
    definition: Any
    reports: Reports | None
    receive: Callable[[Any], bool]


def subscriptions(family: str, topics: Any, tracker: LevelTracker, now_ns: Callable[[], int]) -> list[Sensor]:
    """Return the subscriptions to the safety topics that the variant has.

    Args:
        family: A key of ``SAFETY_SOURCES``.
        topics: As for ``tracker_of``.
        tracker: Gets the levels.
        now_ns: Time of arrival.

    Raises:
        DriverMissing: Python does not find the package of a message.
    """
    sources = SAFETY_SOURCES[family]
    sensors = [_sensor(source, family, getattr(topics, source.field), tracker, now_ns) for source in sources]
    if any(source.reports is Reports.EVENTS for source in sources):

        def alive(message: rospy.AnyMsg) -> bool:
            tracker.alive(now_ns())
            return True

        sensors.append(Sensor(topics.odom, rospy.AnyMsg, None, None, alive))
    return sensors


def _sensor(source: SafetySource, family: str, topic: str, tracker: LevelTracker, now_ns: Callable[[], int]) -> Sensor:
    kinds = TOPICS[family][source.field].kinds
    definition = message_class(kinds)

    def receive(message: Any) -> bool:
        return source.take(tracker, topic, message, now_ns())

    if len(kinds) == 1:
        return Sensor(topic, definition, definition, source.reports, receive)

    def receive_any(message: rospy.AnyMsg) -> bool:
        # The types have equal definitions; rospy could subscribe to only one of them.
        if message._connection_header["md5sum"] != definition._md5sum:
            return False
        return receive(definition().deserialize(message._buff))

    return Sensor(topic, rospy.AnyMsg, definition, source.reports, receive_any)


def has_publisher(subscriber: rospy.Subscriber | None) -> bool:
    """Whether a node is connected that publishes the subscriber's topic."""
    return subscriber is not None and subscriber.get_num_connections() > 0


def message_class(kinds: Sequence[str]) -> Any:
    """Return the first class that is installed of types with one definition. Raises ``DriverMissing``."""
    for kind in kinds:
        found = get_message_class(kind)
        if found is not None:
            return found
    raise DriverMissing(
        f"Python does not find the ROS message {' or '.join(kinds)}",
        "source the workspace of the robot's drivers, or ros_ws/devel/setup.bash, in this shell",
    )
