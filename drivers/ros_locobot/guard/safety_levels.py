"""Levels of a base's safety sensors, of any message objects with the right fields. Pure, without ROS.

Unknown bits and sensor numbers count as active, and without a message there is no feedback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_
from typing import Protocol

from drivers.ros_locobot.protocol import KOBUKI_BITS, KOBUKI_WHEEL_BITS
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal import Zone
from robot_runtime.safety import Feedback

ALL = Zone.LEFT | Zone.CENTER | Zone.RIGHT

# Kobuki's events number the sensors from the left; the bits of SensorState begin at the right.
_THREE_NUMBERS = (Zone.LEFT, Zone.CENTER, Zone.RIGHT)
_WHEEL_NUMBERS = (Zone.LEFT, Zone.RIGHT)
_INACTIVE = 0  # BumperEvent.RELEASED, CliffEvent.FLOOR, WheelDropEvent.RAISED

PULSE_S = 0.25
"""Duration of one ``std_msgs/Empty``: the Create's driver repeats it at 10 Hz while the level is active."""

EVENTS_ALONE_S = 2.0
"""Duration of odometry without any level after which a base's events alone count as feedback."""


class SafetySensor(str, Enum):
    """The base's three safety sensors."""

    BUMPER = "bumper"
    CLIFF = "cliff"
    WHEEL_DROP = "wheel_drop"


@dataclass(frozen=True, slots=True)
class Levels:
    """The active zones."""

    bumper: Zone = Zone.NONE
    cliff: Zone = Zone.NONE
    wheel_drop: Zone = Zone.NONE


class CoreMessage(Protocol):
    """The safety fields of ``kobuki_msgs/SensorState``."""

    bumper: int
    cliff: int
    wheel_drop: int


class CreateBumperMessage(Protocol):
    """The safety fields of ``ca_msgs/Bumper`` and ``create_msgs/Bumper``."""

    is_left_pressed: bool
    is_right_pressed: bool


def kobuki_levels(message: CoreMessage) -> Levels:
    """Return the levels of a ``kobuki_msgs/SensorState``."""
    return Levels(
        bumper=_zones(message.bumper, KOBUKI_BITS),
        cliff=_zones(message.cliff, KOBUKI_BITS),
        wheel_drop=_zones(message.wheel_drop, KOBUKI_WHEEL_BITS),
    )


def create_levels(message: CreateBumperMessage) -> Levels:
    """Return the levels of a Create's ``Bumper`` (bumper only): a contact in the middle closes both switches."""
    if message.is_left_pressed and message.is_right_pressed:
        return Levels(bumper=Zone.CENTER)
    if message.is_left_pressed:
        return Levels(bumper=Zone.LEFT)
    return Levels(bumper=Zone.RIGHT if message.is_right_pressed else Zone.NONE)


def _zones(bits: int, zone_bits: Mapping[Zone, int]) -> Zone:
    if bits & ~sum(zone_bits.values()):
        return ALL
    return reduce(or_, (zone for zone, bit in zone_bits.items() if bits & bit), Zone.NONE)


class LevelTracker:
    """The newest levels of a base.

    They come from three kinds of topics, each with a method below: levels, events (edges, used only if the base is
    alive and never sends levels) and pulses (repeated while a level is active). Times are the caller's clock on
    arrival, in nanoseconds: not all of these messages have a comparable stamp.

    Not thread-safe: call it under the lock of the Guard.

    Args:
        pulse_s: Duration of a pulse.
        events_alone_s: See ``EVENTS_ALONE_S``.
    """

    def __init__(self, pulse_s: float = PULSE_S, events_alone_s: float = EVENTS_ALONE_S) -> None:
        self._pulse_ns = round(pulse_s * NS_PER_S)
        self._events_alone_ns = round(events_alone_s * NS_PER_S)
        self._levels: Levels | None = None
        self._stamp_ns: int | None = None
        self._alive_since_ns: int | None = None
        self._active: dict[SafetySensor, set[int]] = {kind: set() for kind in SafetySensor}
        self._pulse_stamps_ns: dict[SafetySensor, int] = {}

    @property
    def source(self) -> str:
        """The source of :meth:`feedback`: ``levels``, ``events`` or ``none``."""
        if self._levels is not None:
            return "levels"
        return "events" if self._stamp_ns is not None else "none"

    def levels(self, levels: Levels, now_ns: int) -> None:
        """Take levels; from the first of them on, events are ignored."""
        self._levels = levels
        self._stamp_ns = now_ns

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

        It counts as feedback after ``events_alone_s`` in which no level was received.
        """
        if self._levels is None:
            if self._alive_since_ns is None:
                self._alive_since_ns = now_ns
            if now_ns - self._alive_since_ns >= self._events_alone_ns:
                self._stamp_ns = now_ns

    def feedback(self, now_ns: int) -> Feedback | None:
        """Return the Guard's feedback, stamped with the newest sign of life; None before the first."""
        if self._stamp_ns is None:
            return None
        known = self._levels or Levels(
            bumper=self._from_events(SafetySensor.BUMPER, _THREE_NUMBERS),
            cliff=self._from_events(SafetySensor.CLIFF, _THREE_NUMBERS),
            wheel_drop=self._from_events(SafetySensor.WHEEL_DROP, _WHEEL_NUMBERS),
        )
        return Feedback(
            self._stamp_ns,
            bumper=known.bumper | self._from_pulse(SafetySensor.BUMPER, now_ns, ALL),
            cliff=known.cliff | self._from_pulse(SafetySensor.CLIFF, now_ns, ALL),
            wheel_drop=known.wheel_drop | self._from_pulse(SafetySensor.WHEEL_DROP, now_ns, Zone.LEFT | Zone.RIGHT),
        )

    def _from_events(self, kind: SafetySensor, zones: tuple[Zone, ...]) -> Zone:
        known = (zones[number] if number < len(zones) else ALL for number in self._active[kind])
        return reduce(or_, known, Zone.NONE)

    def _from_pulse(self, kind: SafetySensor, now_ns: int, zones: Zone) -> Zone:
        stamp_ns = self._pulse_stamps_ns.get(kind)
        return zones if stamp_ns is not None and now_ns - stamp_ns < self._pulse_ns else Zone.NONE
