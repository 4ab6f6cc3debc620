"""What a log tells of single actions: where each began and ended by the referee, and what came of it.

The referee's pose of a step is the mean of its raw poses while the robot stood, where the log has them; their scatter
about it says how good it is. Nothing here judges: which actions tell of the robot's errors is
:mod:`calibration.fitting.actions`'s to say.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibration.motion.trajectories import Move, StationaryPose, mean_pose
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import CalibrationFailed, RecordingError
from robot_runtime.hal import BaseState, HeadState, PoseEstimate, PoseStatus, Zone
from robot_runtime.motion.controller import MotionProfile, carry
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import ActionResult, EpisodeHeader, Outcome, StepRecord, StepTimes
from robot_runtime.robots.action_errors import MOVES

T = TypeVar("T")
Array = NDArray[np.float64]

MAP_FRAME = "map"
CONTINUOUS = (Action.VELOCITY_CONTROL, Action.WAYPOINT_CONTROL)
PROFILE = MotionProfile()

MIN_SCATTERED = 30
"""Deviations of a standing robot's poses from their mean, below which what the referee says of itself is believed."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedStep:
    """One step without its images.

    Attributes:
        index: of the step. stand: where the robot stood at its end; None where the referee had lost it.
        touching: whether a bumper was pressed then.
    """

    index: int
    action: Action | None
    result: ActionResult | None
    stationary: StationaryPose | None
    touching: bool
    head: HeadState
    times: StepTimes
    phase: str


@dataclass(frozen=True, slots=True, eq=False)
class LoggedAction:
    """One motion between two stands.

    Attributes:
        carried_rad: of the heading's error by odometry, what the motion controller made up for in this action; it
            aims each motion from where the one before should have ended.
        felt: whether a bumper was pressed before or after.
    """

    step: int
    action: Action
    result: ActionResult
    before: LoggedStep
    after: LoggedStep
    carried_rad: float

    @property
    def seen(self) -> bool:
        """Whether the referee knew both ends."""
        return self.before.stationary is not None and self.after.stationary is not None

    @property
    def felt(self) -> bool:
        return self.before.touching or self.after.touching or self.result.contact is not Zone.NONE

    @property
    def move(self) -> Move:
        """Where it led; only of one that was seen."""
        before, after = self.before.stationary, self.after.stationary
        assert before is not None
        assert after is not None
        return Move.between(before, after, self.result.measured.turn_rad)


@dataclass(frozen=True, eq=False)
class LoggedEpisode:
    """One log.

    Attributes:
        steps: all that are whole. actions: the discrete motions between them.
        arrivals: raw poses by step and source, as ``LogReader.poses_by_step``. base: what the base reported.
        scatter: float64 (3, 3), covariance of one raw pose of the referee about its mean while the robot stands, and
            scattered: from how many deviations; None and 0 where the log has no raw poses of a single referee.
        torn: what is missing of it; empty for a whole log.
        continuous: how many continuous commands it holds, of which no model of discrete actions says anything.
    """

    path: Path
    header: EpisodeHeader
    steps: tuple[LoggedStep, ...]
    actions: tuple[LoggedAction, ...]
    arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]] = ()
    base: Sequence[BaseState] = ()
    scatter: Array | None = None
    scattered: int = 0
    torn: str = ""
    continuous: int = 0

    def raw(self, source: str) -> list[PoseEstimate]:
        """All raw poses of a source, by their stamps."""
        return _of_source(self.arrivals, source)


def read_episode(path: Path) -> LoggedEpisode:
    """What is whole of a log.

    Raises:
        CalibrationFailed: its referee says nothing that odometry does not, or knows no headings.
        RecordingError: no log, or nothing whole in it.
    """
    with LogReader(path) as log:
        header = log.header
        check_referee(header, path)
        records, torn = whole(log.steps(images=False))
        arrivals, _ = whole(log.poses_by_step())
        base, _ = whole(log.base_states())
        if not records:
            raise RecordingError(f"{path}: holds no whole step", "record the episode again")
        if not (torn or log.complete):
            torn = f"{path}: ends after step {records[-1].index}"
    stationary_poses = _StationaryPoses(header, records, arrivals)
    steps = tuple(_step(record, stationary_poses.of(record)) for record in records)
    continuous = sum(record.command is not None for record in records)
    scatter, scattered = stationary_poses.scatter, stationary_poses.scattered
    return LoggedEpisode(path, header, steps, motions(steps), arrivals, base, scatter, scattered, torn, continuous)


def check_referee(header: EpisodeHeader, path: Path) -> None:
    """Raise ``CalibrationFailed`` if the referee is nothing but odometry: of odometry's errors it knows none."""
    roles = header.localizers
    if roles.get("referee") and set(roles["referee"]) <= set(roles.get("odometry", ())):
        raise CalibrationFailed(
            f"{path}: its referee is odometry itself ({', '.join(roles['referee'])}): nothing independent of the "
            "wheels saw where actions ended",
            "run with a --referee that looks outside: motion capture, tags, a fused localizer",
        )


def motions(steps: Sequence[LoggedStep]) -> tuple[LoggedAction, ...]:
    """The discrete motions between steps, with what the motion controller's chain of headings carried into each."""
    found = []
    residual_rad = 0.0
    for before, after in pairwise(steps):
        action, result = after.action, after.result
        if action is None or result is None or after.index != before.index + 1 or after.phase != before.phase:
            residual_rad = 0.0
            continue
        if action not in MOVES:
            if action in CONTINUOUS:
                residual_rad = 0.0
            continue
        carried_rad = carry(residual_rad, 0.0, PROFILE.carry_rad)
        found.append(LoggedAction(after.index, action, result, before, after, carried_rad))
        reached = result.outcome is Outcome.REACHED
        residual_rad = carried_rad + result.commanded.turn_rad - result.measured.turn_rad if reached else 0.0
    return tuple(found)


class _StationaryPoses:
    """Where the robot stood at each step, by its referee."""

    def __init__(
        self,
        header: EpisodeHeader,
        records: Sequence[StepRecord],
        arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]],
    ) -> None:
        self._sources = header.localizers.get("referee", ())
        # Of a fused referee the log has the poses of its parts, which are not its own.
        raw = _of_source(arrivals, self._sources[0]) if len(self._sources) == 1 else []
        raw = [estimate for estimate in raw if _known(estimate)]
        seen = while_stationary([record.times for record in records], raw)
        self._seen = {record.index: poses for record, poses in zip(records, seen, strict=True)}
        self.scatter, self.scattered = scatter(seen)

    def of(self, record: StepRecord) -> StationaryPose | None:
        """None where the referee does not know."""
        if not _known(record.referee):
            return None
        if not math.isfinite(record.referee.covariance[2, 2]):
            raise CalibrationFailed(
                f"referee {' and '.join(self._sources) or 'of the log'} knows positions but no headings",
                "name one that knows both by --referee: motion capture, tags, or a fused localizer",
            )
        seen, odom = self._seen[record.index], record.base.odom
        if not seen:
            noise = record.referee.covariance if self.scatter is None else self.scatter
            # A fused referee's errors change slowly: they hardly come between two stands.
            return StationaryPose(odom, record.referee.pose, noise if len(self._sources) == 1 else np.zeros((3, 3)))
        pose, _ = mean_pose(seen, self._sources[0])
        one = seen[0].covariance if self.scatter is None else self.scatter
        return StationaryPose(odom, pose, one / len(seen))


def while_stationary(times: Sequence[StepTimes], raw: Sequence[PoseEstimate]) -> list[list[PoseEstimate]]:
    """Of a source's poses, by their stamps, those of each step while the robot stood after its action."""
    stamps = [estimate.stamp_ns for estimate in raw]
    found = []
    for step, following in zip(times, [*times[1:], None], strict=True):
        until_ns = step.observed_ns if following is None else following.action_start_ns
        # Of a reset no action's end is known.
        first = step is times[0]
        low = bisect_left(stamps, step.exposed_ns if first else step.action_end_ns)
        found.append(list(raw[low : bisect_right(stamps, until_ns)]))
    return found


def scatter(stationary_poses: Sequence[Sequence[PoseEstimate]]) -> tuple[Array | None, int]:
    """Covariance of one pose about its stand's mean, and the number of independent deviations; None of too few."""
    total, count = np.zeros((3, 3)), 0
    for seen in stationary_poses:
        if len(seen) > 1:
            first = seen[0].pose
            poses = np.array([_beside(estimate.pose, first) for estimate in seen])
            off = poses - poses.mean(axis=0)
            total += off.T @ off
            count += len(seen) - 1
    return (total / count, count) if count >= MIN_SCATTERED else (None, count)


def _beside(pose: SE2, first: SE2) -> tuple[float, float, float]:
    return pose.x_m, pose.y_m, wrap_angle(pose.yaw_rad - first.yaw_rad)


def _known(estimate: PoseEstimate) -> bool:
    return estimate.status is PoseStatus.OK and estimate.frame == MAP_FRAME


def _step(record: StepRecord, stationary: StationaryPose | None) -> LoggedStep:
    touching = record.base.bumper is not Zone.NONE
    return LoggedStep(
        record.index, record.action, record.result, stationary, touching, record.head, record.times, record.phase
    )


def _of_source(
    arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]], source: str
) -> list[PoseEstimate]:
    found = [estimate for _, arrived in arrivals for estimate in arrived.get(source, ())]
    return sorted(found, key=lambda estimate: estimate.stamp_ns)


def whole(items: Iterator[T]) -> tuple[list[T], str]:
    """What comes before damage in the middle of a log, and what the damage is."""
    found: list[T] = []
    try:
        found.extend(items)  # keeps what came before an error
    except RecordingError as error:
        return found, error.message
    return found, ""
