"""Actions in a log: start and end by the referee, and outcome.

The referee's pose of a step is the mean of its raw poses while the robot was stationary, if the log contains them;
their scatter gives its covariance. :mod:`calibration.fitting.actions` selects the actions to fit.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.motion.trajectories import Move, StationaryPose, mean_pose
from robot_runtime.actions.discrete import CONTINUOUS, Action
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import CalibrationFailed, RecordingError
from robot_runtime.hal import BaseState, HeadState, PoseEstimate, PoseStatus, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.motion.controller import carry
from robot_runtime.recording.reader import LogReader, before_damage
from robot_runtime.records import ActionResult, EpisodeHeader, Outcome, SentCommand, StepRecord, StepTimes
from robot_runtime.robots.action_errors import MOVES

Array = NDArray[np.float64]

MAP_FRAME = "map"
PROFILE = MotionProfile()

MIN_SCATTERED = 30
"""Number of deviations of a stationary robot's poses below which the referee's own covariance is used."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedStep:
    """One step without its images.

    Attributes:
        action: None for a continuous command, or the reset.
        stationary: pose at the end; None if the referee was lost.
        touching: whether a bumper was pressed at the end.
        head: state at the end.
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
    """One motion between two stationary poses.

    Attributes:
        carried_rad: heading error by odometry that the motion controller corrected in this action, since it aims each
            motion from the intended end of the previous one.
    """

    step: int
    action: Action
    result: ActionResult
    before: LoggedStep
    after: LoggedStep
    carried_rad: float

    @property
    def seen(self) -> bool:
        """Whether the referee measured both ends."""
        return self.before.stationary is not None and self.after.stationary is not None

    @property
    def felt(self) -> bool:
        return self.before.touching or self.after.touching or self.result.contact is not Zone.NONE

    @property
    def move(self) -> Move:
        """The displacement; only if ``seen``."""
        before, after = self.before.stationary, self.after.stationary
        assert before is not None
        assert after is not None
        return Move.between(before, after, self.result.measured.turn_rad)


@dataclass(frozen=True, eq=False)
class LoggedEpisode:
    """One log.

    Attributes:
        steps: all complete steps.
        actions: discrete motions between them.
        arrivals: raw poses by step and source, as ``LogReader.poses_by_step``.
        commands: velocities that were sent to the base; none in older logs.
        scatter: float64 (3, 3), covariance of a raw pose of the referee while the robot is stationary; None without
            raw poses of a single referee.
        scattered: number of deviations of ``scatter``.
        truncated: what is missing; empty for a complete log.
        continuous: number of continuous commands.
    """

    path: Path
    header: EpisodeHeader
    steps: tuple[LoggedStep, ...]
    actions: tuple[LoggedAction, ...]
    arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]] = ()
    base: Sequence[BaseState] = ()
    commands: Sequence[SentCommand] = ()
    scatter: Array | None = None
    scattered: int = 0
    truncated: str = ""
    continuous: int = 0

    def raw(self, source: str) -> list[PoseEstimate]:
        """Return all raw poses of a source, sorted by stamp."""
        return _of_source(self.arrivals, source)


def read_episode(path: Path) -> LoggedEpisode:
    """Read the intact part of a log.

    Raises:
        CalibrationFailed: the referee is odometry, or measures no headings.
        RecordingError: the file is not a log, or has no complete step.
    """
    with LogReader(path) as log:
        header = log.header
        check_referee(header, path)
        records, damage = before_damage(log.steps(images=False))
        arrivals, _ = before_damage(log.poses_by_step())
        base, _ = before_damage(log.base_states())
        commands, _ = before_damage(log.commands())
        if not records:
            raise RecordingError(f"no complete step in {path}", "record the episode again")
        truncated = damage.message if damage else "" if log.complete else f"{path}: ends after step {records[-1].index}"
    stationary_poses = _StationaryPoses(header, records, arrivals)
    steps = tuple(_step(record, stationary_poses.of(record)) for record in records)
    continuous = sum(record.command is not None for record in records)
    scatter, scattered = stationary_poses.scatter, stationary_poses.scattered
    return LoggedEpisode(
        path, header, steps, motions(steps), arrivals, base, commands, scatter, scattered, truncated, continuous
    )


def evenly(count: int, most: int) -> list[int]:
    """Return the indices of at most ``most`` of ``count`` items, evenly spaced."""
    indices: list[int] = np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)).tolist()
    return indices


def check_referee(header: EpisodeHeader, path: Path) -> None:
    """Raise ``CalibrationFailed`` if the referee is odometry, whose errors it cannot measure."""
    roles = header.localizers
    if roles.get("referee") and set(roles["referee"]) <= set(roles.get("odometry", ())):
        raise CalibrationFailed(
            f"{path}: its referee is odometry itself ({', '.join(roles['referee'])}): nothing independent of the "
            "wheels saw where actions ended",
            "run with a --referee that looks outside: motion capture, tags, a fused localizer",
        )


def motions(steps: Sequence[LoggedStep]) -> tuple[LoggedAction, ...]:
    """Return the discrete motions between steps, with the heading error carried into each."""
    actions = []
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
        actions.append(LoggedAction(after.index, action, result, before, after, carried_rad))
        reached = result.outcome is Outcome.REACHED
        residual_rad = carried_rad + result.commanded.turn_rad - result.measured.turn_rad if reached else 0.0
    return tuple(actions)


class _StationaryPoses:
    """Poses of the robot at each step by its referee."""

    def __init__(
        self,
        header: EpisodeHeader,
        records: Sequence[StepRecord],
        arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]],
    ) -> None:
        self._sources = header.localizers.get("referee", ())
        # The log of a fused referee contains the poses of its sources, not its own.
        raw = _of_source(arrivals, self._sources[0]) if len(self._sources) == 1 else []
        raw = [estimate for estimate in raw if _known(estimate)]
        seen = while_stationary([record.times for record in records], raw)
        self._seen = {record.index: poses for record, poses in zip(records, seen, strict=True)}
        self.scatter, self.scattered = scatter(seen)

    def of(self, record: StepRecord) -> StationaryPose | None:
        """Return the pose at a step; None if the referee was lost."""
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
            # A fused referee's errors change slowly and cancel between two poses.
            return StationaryPose(odom, record.referee.pose, noise if len(self._sources) == 1 else np.zeros((3, 3)))
        pose, _ = mean_pose(seen, self._sources[0])
        single = seen[0].covariance if self.scatter is None else self.scatter
        return StationaryPose(odom, pose, single / len(seen))


def while_stationary(times: Sequence[StepTimes], raw: Sequence[PoseEstimate]) -> list[list[PoseEstimate]]:
    """Return a source's poses of each step while the robot was stationary after its action."""
    stamps = [estimate.stamp_ns for estimate in raw]
    stationary = []
    for step, following in zip(times, [*times[1:], None], strict=True):
        until_ns = step.observed_ns if following is None else following.action_start_ns
        # A reset has no end of an action.
        first = step is times[0]
        low = bisect_left(stamps, step.exposed_ns if first else step.action_end_ns)
        stationary.append(list(raw[low : bisect_right(stamps, until_ns)]))
    return stationary


def scatter(stationary_poses: Sequence[Sequence[PoseEstimate]]) -> tuple[Array | None, int]:
    """Return the covariance of a pose about its step's mean (None with too few), and the degrees of freedom."""
    total, count = np.zeros((3, 3)), 0
    for seen in stationary_poses:
        if len(seen) > 1:
            seen_poses, yaw_rad = [estimate.pose for estimate in seen], seen[0].pose.yaw_rad
            poses = np.array([(pose.x_m, pose.y_m, wrap_angle(pose.yaw_rad - yaw_rad)) for pose in seen_poses])
            off = poses - poses.mean(axis=0)
            total += off.T @ off
            count += len(seen) - 1
    return (total / count, count) if count >= MIN_SCATTERED else (None, count)


def _known(estimate: PoseEstimate) -> bool:
    return estimate.status is PoseStatus.OK and estimate.frame == MAP_FRAME


def _step(record: StepRecord, stationary: StationaryPose | None) -> LoggedStep:
    touching = record.base.bumper is not Zone.NONE
    return LoggedStep(
        record.index, record.action, record.result, stationary, touching, record.head, record.times, record.state.phase
    )


def _of_source(
    arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]], source: str
) -> list[PoseEstimate]:
    poses = [estimate for _, arrived in arrivals for estimate in arrived.get(source, ())]
    return sorted(poses, key=lambda estimate: estimate.stamp_ns)
