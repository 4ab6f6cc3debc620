"""Subscriptions to the safety topics of a variant's base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drivers.ros.connection.received import Received
from drivers.ros.guard.safety_levels import LevelTracker
from drivers.ros.guard.safety_sources import SAFETY_SOURCES, Reports, SafetySource
from drivers.ros.topics import kinds_of


@dataclass(frozen=True)
class Sensor:
    """One subscription.

    Attributes:
        topic: Full name.
        kinds: Types, all of the same definition.
        reports: When the topic has messages; None for odometry, a sign of life whose content is irrelevant.
        receive: Passes a message to the tracker; False if the message is not about the base's safety.
    """

    topic: str
    kinds: tuple[str, ...]
    reports: Reports | None
    receive: Callable[[Received], bool]


def subscriptions(family: str, topics: Any, tracker: LevelTracker, now_ns: Callable[[], int]) -> list[Sensor]:
    """Return the subscriptions to the safety topics that the variant has.

    Args:
        family: A key of ``SAFETY_SOURCES``.
        topics: As for ``tracker_of``.
        tracker: Gets the levels.
        now_ns: Time of arrival.
    """
    sources = SAFETY_SOURCES[family]

    def sensor(source: SafetySource) -> Sensor:
        topic = getattr(topics, source.field)

        def receive(received: Received) -> bool:
            return source.take(tracker, topic, received.message, now_ns())

        return Sensor(topic, kinds_of(family, source.field), source.reports, receive)

    def alive(received: Received) -> bool:
        tracker.alive(now_ns())
        return True

    sensors = [sensor(source) for source in sources if getattr(topics, source.field)]
    if any(source.reports in (Reports.EVENTS, Reports.LATCHED) for source in sources):
        sensors.append(Sensor(topics.odom, kinds_of(family, "odom"), None, alive))
    return sensors
