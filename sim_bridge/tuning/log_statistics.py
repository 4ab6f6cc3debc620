"""Statistics of the log of a real episode: the robot's motions, its camera's mount, its delays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.env import MAP_FRAME
from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate
from robot_runtime.imaging.floor import find_floor
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.robots.action_errors import MOVES
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.robot.odometry import moved_between

Floats = NDArray[np.float64]

FLOORS = 8
"""Number of images of a log, evenly spaced, in which the floor is searched for."""

MOST_M, MOST_RAD = 0.15, math.radians(10)
"""A plane that differs more than this from the expected floor is a wall or a table."""


@dataclass(frozen=True, eq=False)
class Motion:
    """One discrete action as measured by the referee.

    Attributes:
        step: index in the log.
        start: base_link in ``map``.
        moved: float64 (3,), x m, y m, yaw rad of the end in the frame of the start.
        noise: float64 (3, 3), covariance of ``moved``.
        contact: whether the action ended by contact.
    """

    step: int
    action: Action
    commanded: Displacement
    start: SE2
    moved: Floats
    noise: Floats
    contact: bool


@dataclass(frozen=True)
class FloorOffset:
    """The camera's pose over the floor in its images, less that of its description; medians over an episode.

    Attributes:
        height_m: difference in height.
        tilt_rad: difference in tilt, up positive.
        roll_rad: difference in roll, to the right positive.
        images: number of images that show the floor.
    """

    height_m: float
    tilt_rad: float
    roll_rad: float
    images: int


@dataclass(frozen=True, eq=False)
class LogStatistics:
    """Statistics of a log.

    Attributes:
        motions: actions with a measured displacement.
        actions: moves and turns in order.
        floor: offset of the camera; None where no image shows the floor.
        delay_s: median time from exposure to use; None without data.
        without: numbers of motions that were left out, by reason.
    """

    path: Path
    header: EpisodeHeader
    motions: tuple[Motion, ...]
    actions: tuple[Action, ...]
    floor: FloorOffset | None
    delay_s: float | None
    without: dict[str, int]


def read_header(path: Path) -> EpisodeHeader:
    """The header of a log. Raises ``RecordingError``."""
    with LogReader(path) as log:
        return log.header


def read_log_statistics(path: Path) -> LogStatistics:
    """Read one log. Raises ``RecordingError`` if it is damaged or has no step."""
    with LogReader(path) as log:
        records = list(log.steps(images=False))
        if not records:
            raise RecordingError(f"no step in {path}", "record the episode again")
        without: dict[str, int] = {}
        motions = tuple(_motions(records, without))
        delays_s = [(record.times.observed_ns - record.times.exposed_ns) / 1e9 for record in records]
        return LogStatistics(
            path,
            log.header,
            motions,
            tuple(record.action for record in records if record.action in MOVES),
            _floor(log, records),
            float(np.median(delays_s)),
            without,
        )


def _motions(records: Iterable[StepRecord], without: dict[str, int]) -> Iterable[Motion]:
    before: StepRecord | None = None
    for record in records:
        start, before = before, record
        if start is None or record.result is None or record.action not in MOVES:
            continue
        reason = _exclusion_reason(start, record)
        if reason:
            without[reason] = without.get(reason, 0) + 1
            continue
        yield Motion(
            record.index,
            record.action,
            record.result.commanded,
            start.referee.pose,
            *displacement(start.referee, record.referee),
            record.result.outcome is Outcome.CONTACT,
        )


def _exclusion_reason(start: StepRecord, end: StepRecord) -> str:
    assert end.result is not None
    if end.result.outcome not in (Outcome.REACHED, Outcome.CONTACT):
        return str(end.result.outcome.value).replace("_", " ")
    if end.state.phase != start.state.phase:
        return "a new phase began"
    for estimate in (start.referee, end.referee):
        pose = estimate.pose
        if estimate.frame != MAP_FRAME:
            return "referee not in the map"
        if not (math.isfinite(pose.x_m + pose.y_m + pose.yaw_rad) and np.isfinite(estimate.covariance).all()):
            return "referee without a pose"
    return ""


def displacement(start: PoseEstimate, end: PoseEstimate) -> tuple[Floats, Floats]:
    """The end in the frame of the start, float64 (3,), and its covariance (3, 3), to first order."""
    moved = moved_between(start.pose, end.pose)
    cos, sin = math.cos(start.pose.yaw_rad), math.sin(start.pose.yaw_rad)
    turn = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
    by_start = -turn
    # An error of the start's heading rotates the end the other way.
    by_start[:, 2] = (moved.y_m, -moved.x_m, -1.0)
    noise = turn @ end.covariance @ turn.T + by_start @ start.covariance @ by_start.T
    return np.array([moved.x_m, moved.y_m, moved.yaw_rad]), noise


def _floor(log: LogReader, records: list[StepRecord]) -> FloorOffset | None:
    camera = logged_camera(log.header)
    chosen = np.unique(np.linspace(0, len(records) - 1, FLOORS).round().astype(int)).tolist()
    off = []
    for record in (records[index] for index in chosen):
        height_m, tilt_rad, roll_rad = camera.mount.pointing(record.head.pan_rad, record.head.tilt_rad)
        if camera.straightened:
            tilt_rad, roll_rad = record.head.tilt_rad, 0.0
        try:
            depth_m = log.frame(record).depth_m
        except RecordingError:  # a lost image is left out; without any, the result is None
            continue
        seen = find_floor(depth_m, log.header.intrinsics, height_m, tilt_rad)
        if seen is None:
            continue
        here = seen.height_m - height_m, wrap_angle(seen.tilt_rad - tilt_rad), wrap_angle(seen.roll_rad - roll_rad)
        if abs(here[0]) <= MOST_M and max(map(abs, here[1:])) <= MOST_RAD:
            off.append(here)
    if not off:
        return None
    height_m, tilt_rad, roll_rad = np.median(off, axis=0).tolist()
    return FloorOffset(height_m, tilt_rad, roll_rad, len(off))
