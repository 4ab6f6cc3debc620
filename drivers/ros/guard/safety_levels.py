"""Levels of a base's safety sensors, of any message objects with the right fields. Pure, without ROS.

Unknown bits, sensor numbers and texts count as active, and without a message of every topic there is no feedback.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_
from typing import Any

from drivers.ros.safety_fields import (
    CREATE_SAFETY_STATUS,
    HAZARD_BUMP,
    HAZARD_CLIFF,
    HAZARD_FRAMES,
    HAZARD_STALL,
    HAZARD_WHEEL_DROP,
    KOBUKI_BITS,
    KOBUKI_WHEEL_BITS,
)
from robot_runtime.common.clock import NS_PER_S, ns_to_seconds
from robot_runtime.hal.wheels import Zone
from robot_runtime.safety.guard import Feedback

ALL = Zone.LEFT | Zone.CENTER | Zone.RIGHT
BOTH_WHEELS = Zone.LEFT | Zone.RIGHT

# Kobuki's events number the sensors from the left; the bits of SensorState begin at the right.
_THREE_NUMBERS = (Zone.LEFT, Zone.CENTER, Zone.RIGHT)
_WHEEL_NUMBERS = (Zone.LEFT, Zone.RIGHT)
_INACTIVE = 0  # BumperEvent.RELEASED, CliffEvent.FLOOR, WheelDropEvent.RAISED

PULSE_S = 0.25
"""Duration of a ``std_msgs/Empty``: the Create's driver repeats it at 10 Hz while the level is active."""

EVENTS_ALONE_S = 2.0
"""Duration of odometry without any level after which a base's events alone count as feedback."""


class SafetySensor(str, Enum):
    """The base's three safety sensors."""

    BUMPER = "bumper"
    CLIFF = "cliff"
    WHEEL_DROP = "wheel_drop"


@dataclass(frozen=True)
class Levels:
    """The active zones."""

    bumper: Zone = Zone.NONE
    cliff: Zone = Zone.NONE
    wheel_drop: Zone = Zone.NONE


def kobuki_levels(message: Any) -> Levels:
    """Return the levels of a ``kobuki_msgs/SensorState``."""
    return Levels(
        bumper=_zones(message.bumper, KOBUKI_BITS),
        cliff=_zones(message.cliff, KOBUKI_BITS),
        wheel_drop=_zones(message.wheel_drop, KOBUKI_WHEEL_BITS),
    )


def create_bumper_levels(message: Any) -> Levels:
    """Return the levels of a Create's ``ca_msgs/Bumper`` or ``create_msgs/Bumper``: bumper only.

    A contact in the middle closes both switches.
    """
    if message.is_left_pressed and message.is_right_pressed:
        return Levels(bumper=Zone.CENTER)
    if message.is_left_pressed:
        return Levels(bumper=Zone.LEFT)
    return Levels(bumper=Zone.RIGHT if message.is_right_pressed else Zone.NONE)


def create_diagnosed_levels(message: Any) -> Levels | None:
    """Return the cliff and wheel-drop levels in a Create's ``diagnostic_msgs/DiagnosticArray``; None without them.

    The driver diagnoses each as "True" or "False" for all its sensors together. While it starts, it has no values.
    """
    for status in message.status:
        values = {pair.key: pair.value for pair in status.values}
        if status.name.endswith(f": {CREATE_SAFETY_STATUS}") and {"Cliff", "Wheeldrop"} <= set(values):
            return Levels(
                cliff=Zone.NONE if values["Cliff"] == "False" else ALL,
                wheel_drop=Zone.NONE if values["Wheeldrop"] == "False" else BOTH_WHEELS,
            )
    return None


def hazard_levels(detections: Iterable[Any]) -> Levels:
    """Return the levels in the detections of a Create 3; a wheel that stalls is a contact of unknown place."""

    def zones(*kinds: int) -> Zone:
        frames = [item.header.frame_id.rsplit("/", 1)[-1] for item in detections if item.type in kinds]
        return _union(HAZARD_FRAMES.get(frame, ALL) for frame in frames)

    detections = tuple(detections)
    stalled = ALL if zones(HAZARD_STALL) else Zone.NONE
    return Levels(zones(HAZARD_BUMP) | stalled, zones(HAZARD_CLIFF), zones(HAZARD_WHEEL_DROP))


def _zones(bits: int, zone_bits: Mapping[Zone, int]) -> Zone:
    if bits & ~sum(zone_bits.values()):
        return ALL
    return _union(zone for zone, bit in zone_bits.items() if bits & bit)


class LevelTracker:
    """The newest levels of a base.

    They come from three kinds of topics, each with a method below: levels, events (edges, used only if the base is
    alive and never sends levels) and pulses (repeated while a level is active). Times are the caller's clock on
    arrival, in nanoseconds: not all of these messages have a comparable stamp.

    Not thread-safe: call it under the lock of the Guard.

    Args:
        levels: Topics with levels: a message of each is needed, and the oldest of them is the age of the feedback.
        events: Topics with events; none if the base has no events that replace levels.
        pulses: Topics with pulses.
        pulse_s: Duration of a pulse.
        events_alone_s: See ``EVENTS_ALONE_S``.
        latched: Topics with the complete state at each change, which holds until the next; their publishers must live,
            and odometry bounds their age. Before the first message of each there is no feedback: a sensor may have been
            active since before the subscription.
        without_contact: Whether odometry alone counts as feedback: no topic reports contacts.
    """

    def __init__(
        self,
        levels: tuple[str, ...],
        events: tuple[str, ...] = (),
        pulses: tuple[str, ...] = (),
        pulse_s: float = PULSE_S,
        events_alone_s: float = EVENTS_ALONE_S,
        latched: tuple[str, ...] = (),
        without_contact: bool = False,
    ) -> None:
        self._level_topics, self._event_topics, self._pulse_topics = levels, events, pulses
        self._pulse_ns = round(pulse_s * NS_PER_S)
        self._events_alone_ns = round(events_alone_s * NS_PER_S)
        self._latched_topics, self._without_contact = latched, without_contact
        self._latched: dict[str, Levels] = {}
        self._levels: dict[str, Levels] = {}
        self._newest: dict[str, Levels] = {}
        self._stamps_ns: dict[str, int] = {}
        self._alive_since_ns: int | None = None
        self._alone_ns: int | None = None
        self._active: dict[SafetySensor, set[int]] = {kind: set() for kind in SafetySensor}
        self._pulse_stamps_ns: dict[SafetySensor, int] = {}
        self._unpublished: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The source of :meth:`feedback`: ``levels``, ``events``, ``odometry`` (without contacts) or ``none``."""
        if self._levels:
            return "levels"
        if self._alone_ns is None:
            return "none"
        return "odometry" if self._without_contact else "events"

    @property
    def quiet_topics(self) -> tuple[str, ...]:
        """The topics that may be silent, so that only their publisher shows that their sensor works."""
        return self._latched_topics + (self._event_topics if self.source == "events" else self._pulse_topics)

    @property
    def unknown_topics(self) -> tuple[str, ...]:
        """The latched topics whose state is not known yet."""
        return tuple(topic for topic in self._latched_topics if topic not in self._latched)

    def levels(self, levels: Levels, now_ns: int, topic: str, confirm: bool = False) -> None:
        """Take the levels of a topic; from the first of them on, events are ignored.

        Args:
            levels: The levels.
            now_ns: Time of arrival.
            topic: Full name.
            confirm: Whether a cliff or a wheel drop counts only if the topic's message before had it too. A contact
                always counts at once.
        """
        before = self._newest.get(topic, Levels()) if confirm else levels
        self._newest[topic] = levels
        self._levels[topic] = Levels(levels.bumper, levels.cliff & before.cliff, levels.wheel_drop & before.wheel_drop)
        self._stamps_ns[topic] = now_ns

    def latch(self, levels: Levels, now_ns: int, topic: str) -> None:
        """Take the complete state of a topic: latched, or as levels if the topic repeats it."""
        if topic in self._latched_topics:
            self._latched[topic] = levels
        else:
            self.levels(levels, now_ns, topic)

    def event(self, kind: SafetySensor, number: int, state: int) -> None:
        """Take an edge: the sensor's number in the event's definition, and its new state."""
        if state == _INACTIVE:
            self._active[kind].discard(number)
        else:
            self._active[kind].add(number)

    def pulse(self, kind: SafetySensor, now_ns: int) -> None:
        """Take a pulse: the level is active somewhere."""
        self._pulse_stamps_ns[kind] = now_ns

    def alive(self, now_ns: int) -> None:
        """Take a sign of life without levels (odometry).

        It counts as feedback after ``events_alone_s`` in which no level was received, if the base has events or no
        contact sensing; that of a base with a latched topic and no levels, at once.
        """
        if not self._levels and (self._event_topics or self._latched_topics or self._without_contact):
            if self._alive_since_ns is None:
                self._alive_since_ns = now_ns
            if now_ns - self._alive_since_ns >= self._events_alone_ns:
                self._alone_ns = now_ns

    def unpublished(self, topics: Collection[str]) -> None:
        """Take the topics that have no publisher now; without one of :attr:`quiet_topics` there is no feedback."""
        self._unpublished = frozenset(topics)
        for topic in topics:
            self._latched.pop(topic, None)  # changes are missed meanwhile

    def lacking(self, now_ns: int, max_age_s: float) -> str:
        """Return why there is no feedback of at most ``max_age_s``, naming the topics; empty if there is."""
        reasons = [f"{topic} has no publisher" for topic in self.quiet_topics if topic in self._unpublished]
        if self.source in ("events", "odometry"):
            ages_s = {"odometry": ns_to_seconds(now_ns - self._alone_ns)} if self._alone_ns is not None else {}
        else:
            reasons += [f"{topic}: no message yet" for topic in self._level_topics if topic not in self._levels]
            if not self._level_topics:
                reasons.append("odometry: no message yet")
            ages_s = {topic: ns_to_seconds(now_ns - stamp_ns) for topic, stamp_ns in self._stamps_ns.items()}
        reasons += [f"{topic} without a message yet: press the bumper once" for topic in self.unknown_topics]
        reasons += [f"{topic}: newest {age_s:.1f} s old" for topic, age_s in ages_s.items() if age_s > max_age_s]
        return ", ".join(reasons)

    def feedback(self, now_ns: int) -> Feedback | None:
        """Return the Guard's feedback, stamped with the oldest of the topics' newest; None while one is missing."""
        if self.unknown_topics or any(topic in self._unpublished for topic in self.quiet_topics):
            return None
        if self._levels:
            if any(topic not in self._levels for topic in self._level_topics):
                return None
            stamp_ns = min(self._stamps_ns.values())
            known = tuple(self._levels.values())
        elif self._alone_ns is not None:
            stamp_ns = self._alone_ns
            known = (
                Levels(
                    bumper=self._from_events(SafetySensor.BUMPER, _THREE_NUMBERS),
                    cliff=self._from_events(SafetySensor.CLIFF, _THREE_NUMBERS),
                    wheel_drop=self._from_events(SafetySensor.WHEEL_DROP, _WHEEL_NUMBERS),
                ),
                *self._latched.values(),
            )
        else:
            return None
        return Feedback(
            stamp_ns,
            bumper=_union(level.bumper for level in known) | self._from_pulse(SafetySensor.BUMPER, now_ns, ALL),
            cliff=_union(level.cliff for level in known) | self._from_pulse(SafetySensor.CLIFF, now_ns, ALL),
            wheel_drop=_union(level.wheel_drop for level in known)
            | self._from_pulse(SafetySensor.WHEEL_DROP, now_ns, BOTH_WHEELS),
        )

    def _from_events(self, kind: SafetySensor, zones: tuple[Zone, ...]) -> Zone:
        return _union(zones[number] if number < len(zones) else ALL for number in self._active[kind])

    def _from_pulse(self, kind: SafetySensor, now_ns: int, zones: Zone) -> Zone:
        stamp_ns = self._pulse_stamps_ns.get(kind)
        return zones if stamp_ns is not None and now_ns - stamp_ns < self._pulse_ns else Zone.NONE


def _union(zones: Iterable[Zone]) -> Zone:
    return reduce(or_, zones, Zone.NONE)
