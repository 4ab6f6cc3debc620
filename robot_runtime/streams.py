"""One table of every stream: staleness checks, logger, console and tests read it."""

from __future__ import annotations

from dataclasses import dataclass


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
        Stream("end", "/end", 0, _NO_AGE),
        Stream("rgb", "/camera/rgb", 30, 0.5),
        Stream("depth", "/camera/depth", 30, 0.5),
        Stream("camera_info", "/camera/camera_info", 0, _NO_AGE),
        Stream("base", "/base/state", 50, 0.1, log_rate_hz=20),
        Stream("head", "/head/state", 50, 0.2),
        Stream("pose", "/pose", 30, 0.5),
        Stream("referee", "/referee/pose", 30, 0.5),
        Stream("map", "/map", 0, _NO_AGE),
        Stream("tf", "/tf", 0, _NO_AGE),
    )
}
