"""Table of all streams: staleness checks, logger, console and tests read it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from robot_runtime.common.clock import NS_PER_S, Clock, wait_for
from robot_runtime.errors import StaleData


@dataclass(frozen=True, slots=True)
class Stream:
    """One row.

    Attributes:
        name: key in this table.
        topic: channel in the log.
        rate_hz: nominal rate; 0 for "once per step" or "once per episode".
        max_age_s: beyond this age a reader gets ``StaleData``; infinite where age has no meaning.
        log_rate_hz: how often it is written; 0 means every message.
    """

    name: str
    topic: str
    rate_hz: float
    max_age_s: float
    log_rate_hz: float = 0.0


_NO_AGE = float("inf")

STREAMS: dict[str, Stream] = {
    s.name: s
    for s in (
        Stream("episode", "/episode", 0, _NO_AGE),
        Stream("step", "/step", 0, _NO_AGE),
        Stream("host", "/step/host", 0, _NO_AGE),
        Stream("end", "/end", 0, _NO_AGE),
        Stream("rgb", "/camera/rgb", 30, 0.5),
        Stream("depth", "/camera/depth", 30, 0.5),
        Stream("semantic", "/camera/semantic", 30, 0.5),
        Stream("camera_info", "/camera/camera_info", 0, _NO_AGE),
        Stream("base", "/base/state", 50, 0.1, log_rate_hz=20),
        Stream("commands", "/base/commands", 0, _NO_AGE),
        Stream("head", "/head/state", 50, 0.2),
        Stream("pose", "/pose", 30, 0.5),
        Stream("referee", "/referee/pose", 30, 0.5),
        Stream("localizer", "/localizer", 0, _NO_AGE),
        Stream("events", "/events", 0, _NO_AGE),
        Stream("objects", "/objects", 30, 0.5),
        Stream("map", "/map", 0, _NO_AGE),
        Stream("tf", "/tf", 0, _NO_AGE),
        Stream("path", "/path", 0, _NO_AGE),
        Stream("scene", "/scene", 0, _NO_AGE),
    )
}


class Stamped(Protocol):
    """A reading with the time of its measurement."""

    @property
    def stamp_ns(self) -> int:
        """Time of the measurement, Clock nanoseconds."""


S = TypeVar("S", bound=Stamped)


def fresh(stream: str, reading: S | None, now_ns: int, max_age_s: float) -> S:
    """Return ``reading`` if it is at most ``max_age_s`` old; every ``state`` and ``latest`` goes through here.

    Args:
        stream: stream in the message: a name of :data:`STREAMS`, or the device's own.
        reading: the newest one; None if nothing has arrived yet.
        now_ns: present time.
        max_age_s: largest age allowed.

    Raises:
        StaleData: nothing there, too old, or stamped later than ``now_ns`` (two clocks that disagree).
    """
    if reading is None:
        raise StaleData(f"stream {stream!r} has delivered nothing yet", "check that the device is on and connected")
    age_s = (now_ns - reading.stamp_ns) / NS_PER_S
    if 0 <= age_s <= max_age_s:
        return reading
    if age_s < 0:
        raise StaleData(
            f"stream {stream!r} is stamped {-age_s:.3f} s in the future",
            "stamp measurements with the robot's own clock",
        )
    raise StaleData(
        f"stream {stream!r} is {age_s:.3f} s old, {max_age_s:g} s is allowed",
        "check the device's power, cable and driver: it has stopped delivering",
    )


T = TypeVar("T")

POLL_S = 0.02
"""Time between two attempts to read a silent stream."""


def across_gap(clock: Clock, read: Callable[[], T], patience_s: float) -> T:
    """Return what ``read`` returns; while its stream is silent, as during a gap of the link, try again.

    Args:
        clock: the robot's.
        read: reads the stream.
        patience_s: longest silence: the motion profile's, so that whatever a motion survives, its observation does too.

    Raises:
        StaleData: of the last attempt.
    """

    def attempt() -> T | None:
        with suppress(StaleData):
            return read()
        return None

    got = wait_for(clock, attempt, patience_s, POLL_S)
    return read() if got is None else got
