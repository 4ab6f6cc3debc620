"""Camera that replays the frames of a log: ``driver: drivers.replay.driver.make_camera``."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S, Clock, seconds_to_ns
from robot_runtime.common.quantities import Rate
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, StaleData
from robot_runtime.hal import Camera, CameraInfo, Mount, RgbdFrame, Robot
from robot_runtime.recording.reader import LogReader
from robot_runtime.robots.loader import RobotContext

MIN_DEPTH_M, MAX_DEPTH_M = 0.01, 100.0
"""Range of depth; a log does not contain it."""


@dataclass(frozen=True)
class ReplayOptions(config.Strict):
    """The ``options`` of the camera's YAML file.

    Attributes:
        log: file, or folder with one log in it.
        repeat: whether to restart at the log's end.
        rate_hz: rate of the simulated exposures.
    """

    log: str
    repeat: bool = False
    rate_hz: Rate = 30.0


def make_camera(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Camera:
    """Return the camera, disconnected.

    Raises:
        ConfigError: a bad option, or a folder with no log or several.
        RecordingError: the file is not a log, or damaged.
    """
    chosen = config.parse(dict(options), ReplayOptions, where)
    return ReplayCamera(robot.clock, _log_file(Path(chosen.log), where), chosen.repeat, chosen.rate_hz)


class ReplayCamera(Camera):
    """Camera that delivers the next frame of a log at each capture, as if exposed now, wherever the robot is.

    Raises:
        RecordingError: the file is not a log, or damaged.
    """

    def __init__(self, clock: Clock, log: Path, repeat: bool, rate_hz: float) -> None:
        self._clock, self._log, self._repeat = clock, log, repeat
        with LogReader(log) as reader:
            header = reader.header
            first = next(reader.steps(), None)
        if first is None:
            raise ConfigError(f"no frame in {log}", "replay a log of an episode that began")
        self._info = CameraInfo(
            header.intrinsics,
            Mount(*header.mount),
            rate_hz,
            MIN_DEPTH_M,
            MAX_DEPTH_M,
            header.depth_unit_m,
            has_semantic=first.frame.semantic is not None,
        )
        self._reader: LogReader | None = None
        self._frames: Iterator[RgbdFrame] = iter(())
        self._delivered = 0
        self._last_ns = -1

    @property
    def info(self) -> CameraInfo:
        return self._info

    def connect(self) -> None:
        """Open the log, at its first frame."""
        if self._reader is None:
            self._reader = LogReader(self._log)
            self._delivered = 0
            self._frames = self._play(self._reader)

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        """Return the next frame.

        Raises:
            DeviceFault: the log is at its end, or has no object ids.
            RecordingError: the log is damaged there.
        """
        if self._reader is None:
            raise NotConnected(f"replay of {self._log}: is not connected", "call connect() before using it")
        if semantic and not self._info.has_semantic:
            raise DeviceFault(
                f"replay of {self._log}: the log contains no object ids", "replay a log that was run with them"
            )
        exposure_ns = self._next_exposure_ns(max(exposed_after_ns, self._clock.now_ns(), self._last_ns + 1))
        deadline_ns = self._clock.now_ns() + seconds_to_ns(timeout_s)
        if exposure_ns > deadline_ns:
            self._clock.sleep_until(deadline_ns)
            raise StaleData(
                f"replay of {self._log}: no frame was due within {timeout_s:.2f} s", "wait longer, or raise 'rate_hz'"
            )
        self._clock.sleep_until(exposure_ns)
        frame = next(self._frames, None)
        if frame is None:
            raise DeviceFault(
                f"replay of {self._log}: ended after {self._delivered} frames",
                "set 'repeat: true', or replay a longer log",
            )
        self._delivered += 1
        self._last_ns = self._clock.now_ns()  # the clock may be coarser than the exposure's instant
        return replace(frame, stamp_ns=self._last_ns, semantic=frame.semantic if semantic else None)

    def _next_exposure_ns(self, after_ns: int) -> int:
        number = math.ceil(after_ns * self._info.rate_hz / NS_PER_S)
        return max(after_ns, round(number * NS_PER_S / self._info.rate_hz))

    def _play(self, reader: LogReader) -> Iterator[RgbdFrame]:
        while True:
            for record in reader.steps():
                yield record.frame
            if not self._repeat:
                return


def _log_file(path: Path, where: str) -> Path:
    if not path.is_dir():
        return path
    logs = sorted(path.glob("*.mcap"))
    if len(logs) != 1:
        names = ", ".join(log.name for log in logs[:5]) or "none"
        raise ConfigError(f"{where}: field 'log': {path} holds {len(logs)} logs: {names}", "name one of them")
    return logs[0]
