"""Fit of a simulated robot to logs: actions, contact, camera, depth, latency, validation."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calibration.fitting.actions import ActionFit, Selection, consecutive_correlation, fit_actions, model_of, select
from calibration.fitting.camera import MAX_FRAMES, CameraFit, fit_camera
from calibration.fitting.contact import ContactFit, fit_contact
from calibration.fitting.depth import DepthFit, fit_depth
from calibration.fitting.latency import LatencyFit, fit_latency
from calibration.fitting.log_samples import LoggedEpisode, read_episode
from calibration.fitting.map_distance import Walls
from calibration.fitting.misfit import Misfit, misfits
from calibration.fitting.motors import MotorsOfLogs, fit_logged_motors
from calibration.fitting.replay_results import ReplayedCamera, held_out_gain
from calibration.fitting.validation import Validation, validate
from robot_runtime.errors import CalibrationFailed, ConfigError, RecordingError
from robot_runtime.recording.json_output import plain
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.action_errors import ActuationModel

Triple = tuple[float, float, float]

RAW_LOGS = 60
"""Number of logs whose raw poses, base states and commands are stored, for latencies, bumpers and motors, within the
memory."""


@dataclass(frozen=True, eq=False)
class RobotFit:
    """Fit of a single robot.

    Attributes:
        robot: name in the logs.
        header: header of the first episode.
        episodes: used logs.
        selection: fitted actions.
        actions: errors by the action's name.
        slips: the same of the motion that odometry did not measure.
        model: actions and contact for a simulator.
        correlation: correlation of the errors of consecutive actions (x, y, yaw).
        correlated: number of pairs of consecutive actions.
        contact: behavior at walls.
        camera: errors of the camera's pose from the floor in the logged depth.
        replayed: errors of the camera's pose from pose replays; None without any that make held-out logs likelier.
        replays: what the replays are worth in held-out logs; empty without any.
        depth: temporal noise and bias.
        latency: latencies of poses, images and looks.
        motors: model of the motors of the base.
        validation: held-out likelihood.
        misfits: contradictions of the action model; empty if it fits.
        unused: unusable logs with the reason.
        truncated: what is missing of truncated logs.
        continuous: number of continuous commands, ignored by the model of discrete actions.
    """

    robot: str
    header: EpisodeHeader
    episodes: tuple[LoggedEpisode, ...]
    selection: Selection
    actions: Mapping[str, ActionFit]
    slips: Mapping[str, ActionFit]
    model: ActuationModel
    correlation: Triple
    correlated: int
    contact: ContactFit
    camera: CameraFit
    replayed: ReplayedCamera | None
    replays: str
    depth: DepthFit
    latency: LatencyFit
    motors: MotorsOfLogs
    validation: Validation
    misfits: tuple[Misfit, ...]
    unused: Sequence[tuple[Path, str]]
    truncated: Sequence[str]
    continuous: int


def read_all(
    paths: Sequence[Path], on_read: Callable[[Path], None] | None = None
) -> tuple[list[LoggedEpisode], list[tuple[Path, str]]]:
    """Return the usable logs, and the others with the reason.

    Raises:
        CalibrationFailed: the first log's error, if no log is usable.
        RecordingError: the first log's error, if no log is usable.
    """
    episodes: list[LoggedEpisode] = []
    unused: list[tuple[Path, str]] = []
    first: CalibrationFailed | RecordingError | None = None
    for path in paths:
        try:
            episode = read_episode(path)
            episodes.append(
                episode if len(episodes) < RAW_LOGS else replace(episode, arrivals=(), base=(), commands=())
            )
        except (CalibrationFailed, RecordingError) as error:
            first = first or error
            unused.append((path, error.message))
        if on_read is not None:
            on_read(path)
    if not episodes and first is not None:
        raise first
    return episodes, unused


def by_robot(episodes: Sequence[LoggedEpisode]) -> dict[str, list[LoggedEpisode]]:
    """Group episodes by the robot's name, or by ``NAME@`` and a hash if a name has several configurations."""
    groups: dict[str, dict[str, list[LoggedEpisode]]] = {}
    for episode in episodes:
        configuration = json.dumps(plain(episode.header.robot_config), sort_keys=True)
        digest = hashlib.sha256(configuration.encode()).hexdigest()[:6]
        groups.setdefault(episode.header.robot, {}).setdefault(digest, []).append(episode)
    return {
        name if len(configurations) == 1 else f"{name}@{digest}": members
        for name, configurations in groups.items()
        for digest, members in configurations.items()
    }


def of_one_robot(episodes: Sequence[LoggedEpisode], robot: str | None) -> tuple[str, list[LoggedEpisode]]:
    """Return the episodes of the named robot, or of the only one. Raises ``ConfigError``."""
    robots = by_robot(episodes)
    listed = ", ".join(f"{name} ({len(members)} logs)" for name, members in robots.items())
    if robot is None:
        if len(robots) > 1:
            raise ConfigError(
                f"the logs are of {len(robots)} robots or controllers: {listed}", "fit one at a time: --robot NAME"
            )
        return next(iter(robots.items()))
    if robot not in robots:
        raise ConfigError(f"no log is of robot {robot!r}; there are {listed}", "name one of these by --robot")
    return robot, robots[robot]


def fit_robot(
    robot: str,
    episodes: Sequence[LoggedEpisode],
    unused: Sequence[tuple[Path, str]] = (),
    on_stage: Callable[[str], None] | None = None,
    max_frames: int = MAX_FRAMES,
    replayed: ReplayedCamera | None = None,
) -> RobotFit:
    """Fit one robot.

    Args:
        robot: name.
        episodes: episodes of that robot.
        unused: unusable logs with the reason.
        on_stage: function that is called with the name of each stage, for progress.
        max_frames: number of frames in which the floor is detected.
        replayed: result of pose replays of the same logs.

    Raises:
        CalibrationFailed: too few usable actions of a kind.
        RecordingError: a log has become unreadable.
    """
    tell = on_stage or (lambda _: None)
    tell("actions")
    walls = {
        episode.header.scene.digest: Walls(episode.header.scene.map, episode.header.task.robot_radius_m)
        for episode in episodes
    }
    selection = select(episodes, walls)
    actions = fit_actions(selection)
    model = model_of(selection, actions)
    correlation, correlated = consecutive_correlation(selection.samples)
    tell("contacts")
    contact = fit_contact(episodes, walls, selection.size, model)
    tell("held-out likelihood")
    validation = validate(selection)
    tell("stamps")
    latency = fit_latency(episodes)
    tell("motors")
    motors = fit_logged_motors(episodes)
    tell("floor in frames")
    camera = fit_camera(episodes, walls, max_frames)
    tell("frames of the same view")
    depth = fit_depth(episodes)
    worth = ""
    if replayed is not None:
        gain = held_out_gain(camera, replayed, [episode.path.name for episode in episodes])
        worth = "no log is left to test them on" if gain is None else f"log likelihood of held-out logs {gain:+.1f}"
        if gain is None or gain <= 0:
            replayed, worth = None, f"{worth}: not used"
    return RobotFit(
        robot=robot,
        header=episodes[0].header,
        episodes=tuple(episodes),
        selection=selection,
        actions=actions,
        slips=fit_actions(selection, slip=True),
        model=replace(model, contact=contact.model),
        correlation=correlation,
        correlated=correlated,
        contact=contact,
        camera=camera,
        replayed=replayed,
        replays=worth,
        depth=depth if replayed is None else replace(depth, bias=replayed.bias),
        latency=latency,
        motors=motors,
        validation=validation,
        misfits=misfits(selection),
        unused=tuple(unused),
        truncated=tuple(episode.truncated for episode in episodes if episode.truncated),
        continuous=sum(episode.continuous for episode in episodes),
    )
