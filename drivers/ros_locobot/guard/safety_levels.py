"""What a base's safety topics say, as levels: pure, no ROS, any message with the right fields.

Default-deny: a bit or a number that no definition knows counts as pressed, and without a message there is no feedback.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import or_
from typing import Protocol

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.hal import Zone
from robot_runtime.safety import Feedback

ALL = Zone.LEFT | Zone.CENTER | Zone.RIGHT

# kobuki_msgs/SensorState has the right sensor in the lowest bit; the events number them from the left.
_THREE_BITS = {1: Zone.RIGHT, 2: Zone.CENTER, 4: Zone.LEFT}
_WHEEL_BITS = {1: Zone.RIGHT, 2: Zone.LEFT}
_THREE_NUMBERS = (Zone.LEFT, Zone.CENTER, Zone.RIGHT)
_WHEEL_NUMBERS = (Zone.LEFT, Zone.RIGHT)
_INACTIVE = 0  # BumperEvent.RELEASED, CliffEvent.FLOOR, WheelDropEvent.RAISED

PULSE_S = 0.25
"""How long one ``std_msgs/Empty`` holds: the Create's driver repeats it at 10 Hz while the wheel hangs."""

EVENTS_ALONE_S = 2.0
"""How long a base must be alive without a single level before its events are believed to be all that it has."""


class SafetySensor(str, Enum):
    """The base's three safety sensors."""

    BUMPER = "bumper"
    CLIFF = "cliff"
    WHEEL_DROP = "wheel_drop"


@dataclass(frozen=True, slots=True)
class Levels:
    """Which zones are active now."""

    bumper: Zone = Zone.NONE
    cliff: Zone = Zone.NONE
    wheel_drop: Zone = Zone.NONE


class CoreMessage(Protocol):
    """``kobuki_msgs/SensorState``, as far as safety goes."""

    bumper: int
    cliff: int
    wheel_drop: int


class CreateBumperMessage(Protocol):
    """``ca_msgs/Bumper`` or ``create_msgs/Bumper``, as far as safety goes."""

    is_left_pressed: bool
    is_right_pressed: bool


def kobuki_levels(message: CoreMessage) -> Levels:
    """Levels of a ``kobuki_msgs/SensorState``."""
    return Levels(
        bumper=_from_bits(message.bumper, _THREE_BITS),
        cliff=_from_bits(message.cliff, _THREE_BITS),
        wheel_drop=_from_bits(message.wheel_drop, _WHEEL_BITS),
    )


def create_levels(message: CreateBumperMessage) -> Levels:
    """Levels of a Create's ``Bumper`` (no cliffs, no wheels): a blow to the middle closes both of its switches."""
    if message.is_left_pressed and message.is_right_pressed:
        return Levels(bumper=Zone.CENTER)
    if message.is_left_pressed:
        return Levels(bumper=Zone.LEFT)
    return Levels(bumper=Zone.RIGHT if message.is_right_pressed else Zone.NONE)


def _from_bits(bits: int, zones: dict[int, Zone]) -> Zone:
    if bits & ~sum(zones):
        return ALL
    return reduce(or_, (zone for bit, zone in zones.items() if bits & bit), Zone.NONE)


class LevelTracker:
    """The newest levels of a base, from whichever topics it has.

    Three kinds of topics may come in, each by a method below: levels (the truth), events (edges, believed only if the
    base proves to be alive but never sends levels) and pulses (repeated while something is the case). Stamps are the
    caller's clock on arrival, in nanoseconds: none of these messages can be trusted to carry a comparable one.

    Not thread-safe: call it under the lock of the Guard that it feeds.
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
        """``levels``, ``events`` or ``none``: what :meth:`feedback` is made of."""
        if self._levels is not None:
            return "levels"
        return "events" if self._stamp_ns is not None else "none"

    def levels(self, levels: Levels, now_ns: int) -> None:
        """Levels have arrived. From the first of them on events are ignored."""
        self._levels = levels
        self._stamp_ns = now_ns

    def event(self, kind: SafetySensor, number: int, state: int) -> None:
        """An edge: sensor ``number`` as the event's definition counts them (a wheel's, for wheel drops), new state."""
        if state == _INACTIVE:
            self._active[kind].discard(number)
        else:
            self._active[kind].add(number)

    def pulse(self, kind: SafetySensor, now_ns: int) -> None:
        """Something is the case somewhere, and will be said again while it is."""
        self._pulse_stamps_ns[kind] = now_ns

    def alive(self, now_ns: int) -> None:
        """The base has sent something else (odometry), which says nothing of its sensors.

        This alone is feedback once it has gone on for ``events_alone_s`` and no level was ever seen.
        """
        if self._levels is None:
            if self._alive_since_ns is None:
                self._alive_since_ns = now_ns
            if now_ns - self._alive_since_ns >= self._events_alone_ns:
                self._stamp_ns = now_ns

    def feedback(self, now_ns: int) -> Feedback | None:
        """What the Guard needs, stamped with the newest proof of life; None before that."""
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
