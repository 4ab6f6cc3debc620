"""The topics that report a base's safety sensors, and the reading of their messages.

Pure: it reads messages of any library. The guard node, the driver and the import of bags use this one table; names,
types and origins of the topics are in ``topics.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from drivers.ros.guard.safety_levels import (
    ALL,
    EVENTS_ALONE_S,
    Levels,
    LevelTracker,
    SafetySensor,
    create_bumper_levels,
    create_diagnosed_levels,
    hazard_levels,
    kobuki_levels,
)
from robot_runtime.hal.wheels import Zone


class Reports(str, Enum):
    """Kind of a topic, by when it has messages.

    ``LEVELS``: at the base's rate; old ones stop the wheels. ``EVENTS``: at changes; used only if the base sends no
    levels. ``PULSES``: while a sensor is active. ``LATCHED``: the complete state at changes. All but levels may be
    silent, but must have a publisher.
    """

    LEVELS = "levels"
    EVENTS = "events"
    PULSES = "pulses"
    LATCHED = "latched"


@dataclass(frozen=True)
class SafetySource:
    """One topic.

    Attributes:
        field: Its field of ``options.Topics`` and key of ``topics.TOPICS``.
        reports: When it has messages.
        take: Passes a message to a tracker, with the topic's name and the time; False if the message is another's.
    """

    field: str
    reports: Reports
    take: Callable[[LevelTracker, str, Any, int], bool]


def _levels(field: str, levels_of: Callable[[Any], Levels | None], confirm: bool = False) -> SafetySource:
    def take(tracker: LevelTracker, topic: str, message: Any, now_ns: int) -> bool:
        levels = levels_of(message)
        if levels is not None:
            tracker.levels(levels, now_ns, topic, confirm)
        return levels is not None

    return SafetySource(field, Reports.LEVELS, take)


def _latched(field: str, levels_of: Callable[[Any], Levels]) -> SafetySource:
    def take(tracker: LevelTracker, topic: str, message: Any, now_ns: int) -> bool:
        tracker.latch(levels_of(message), now_ns, topic)
        return True

    return SafetySource(field, Reports.LATCHED, take)


def _event(sensor: SafetySensor, number: str) -> SafetySource:
    def take(tracker: LevelTracker, topic: str, message: Any, now_ns: int) -> bool:
        tracker.event(sensor, getattr(message, number), message.state)
        return True

    return SafetySource(sensor.value, Reports.EVENTS, take)


def _pulse(sensor: SafetySensor) -> SafetySource:
    def take(tracker: LevelTracker, topic: str, message: Any, now_ns: int) -> bool:
        tracker.pulse(sensor, now_ns)
        return True

    return SafetySource(sensor.value, Reports.PULSES, take)


_KOBUKI = (
    # At 50 Hz the confirmation takes 20 ms: 4 mm at 0.2 m/s. A dark line or a doorsill shows in one message.
    _levels("core", kobuki_levels, confirm=True),
    _event(SafetySensor.BUMPER, "bumper"),
    _event(SafetySensor.CLIFF, "sensor"),
    _event(SafetySensor.WHEEL_DROP, "wheel"),
)
_CREATE = (
    _levels("bumper", create_bumper_levels),
    _levels("diagnostics", create_diagnosed_levels),
    _pulse(SafetySensor.WHEEL_DROP),
)

_CREATE_3 = (_latched("hazards", lambda message: hazard_levels(message.detections)),)
_DIFFERENTIAL = (*_CREATE_3, _latched("bumper", lambda message: Levels(bumper=ALL if message.data else Zone.NONE)))

SAFETY_SOURCES: Mapping[str, tuple[SafetySource, ...]] = {
    "pyrobot-kobuki": _KOBUKI,
    "pyrobot-create": _CREATE,
    "interbotix": _KOBUKI,
    "create3": _CREATE_3,
    "locobot-create3": _CREATE_3,
    "turtlebot4-jazzy": _CREATE_3,
    "turtlebot4-humble": _CREATE_3,
    "turtlebot3": _DIFFERENTIAL,
    "differential": _DIFFERENTIAL,
}
"""The sources by family."""


def tracker_of(
    family: str,
    topics: Any,
    without: Collection[str] = (),
    events_alone_s: float = EVENTS_ALONE_S,
    periodic: bool = False,
) -> LevelTracker:
    """Return a tracker of a family's sources.

    Args:
        family: A key of :data:`SAFETY_SOURCES`.
        topics: An object with the full name of each source's topic as attribute, such as ``options.Topics``.
        without: Fields of sources that are known to be missing, as in a bag.
        events_alone_s: See ``LevelTracker``.
        periodic: Whether topics of complete states are repeated, so that they count as levels.
    """

    def names(reports: Reports) -> tuple[str, ...]:
        chosen = (source for source in SAFETY_SOURCES[family] if source.field not in without)
        found = (getattr(topics, source.field) for source in chosen if source.reports is reports)
        return tuple(topic for topic in found if topic)

    levels, events, latched = names(Reports.LEVELS), names(Reports.EVENTS), names(Reports.LATCHED)
    if periodic:
        levels, latched = levels + latched, ()
    return LevelTracker(
        levels,
        events,
        names(Reports.PULSES),
        events_alone_s=events_alone_s if events else 0.0,
        latched=latched,
        without_contact=not (levels or events or latched),
    )
