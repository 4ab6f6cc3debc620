"""Dead time, lag, thresholds and gains of motors, from the commands and the odometry in logs."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calibration.fitting.log_samples import LoggedEpisode, evenly
from robot_runtime.hal import MotorModel, PoseEstimate, Velocity, Zone
from robot_runtime.motion.identification import MotorFit, fit_motors
from robot_runtime.motion.wheel_record import WheelRecord, WheelRecorder

MIN_ACTIONS, MAX_ACTIONS = 12, 30
"""Actions below which no model is fitted, and how many are used at most: more would only take longer."""


@dataclass(frozen=True, eq=False)
class MotorsOfLogs:
    """Motors of a robot.

    Attributes:
        fit: None if the logs do not tell.
        actions: number of actions that were used.
        reason: why there is no fit; empty with one.
    """

    fit: MotorFit | None
    actions: int
    reason: str = ""


def fit_logged_motors(episodes: Sequence[LoggedEpisode]) -> MotorsOfLogs:
    """Fit the motors to actions that began and ended at rest without contact."""
    records = chosen_records(episodes)
    if len(records) < MIN_ACTIONS:
        return MotorsOfLogs(None, len(records), f"{len(records)} actions with commands and odometry")
    return MotorsOfLogs(fit_motors(records, MotorModel()), len(records))


def chosen_records(episodes: Sequence[LoggedEpisode]) -> list[WheelRecord]:
    """Return the records of at most ``MAX_ACTIONS`` actions, evenly spaced over all episodes."""
    records = [record for episode in episodes for record in _records(episode)]
    return [records[index] for index in evenly(len(records), MAX_ACTIONS)]


def _records(episode: LoggedEpisode) -> Iterator[WheelRecord]:
    sources = episode.header.localizers.get("odometry", ())
    odometry: Sequence[PoseEstimate] = episode.raw(sources[0]) if len(sources) == 1 else ()
    stamps = [estimate.stamp_ns for estimate in odometry]
    sent = [command.stamp_ns for command in episode.commands]
    for action in episode.actions:
        if action.result.contact is not Zone.NONE or action.after.touching or action.before.touching:
            continue
        begin_ns, end_ns = action.after.times.action_start_ns, action.after.times.observed_ns
        commands = episode.commands[bisect_left(sent, begin_ns) : bisect_left(sent, end_ns)]
        poses = odometry[bisect_left(stamps, begin_ns) : bisect_left(stamps, end_ns)]
        if len(commands) > 1 and len(poses) > 1:
            recorder = WheelRecorder(MotorModel().separation_m)
            for command in commands:
                recorder.command(Velocity(command.linear_m_s, command.angular_rad_s), command.stamp_ns)
            for estimate in poses:
                recorder.report(estimate.pose, estimate.stamp_ns)
            yield recorder.record()
