"""Logs that were never written: episodes of single actions whose true errors, noise and stamps are chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from open_room import make_episode, make_scene, make_task

from calibration.fitting.log_samples import LoggedEpisode, LoggedStep, motions
from calibration.motion.trajectories import StationaryPose
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import HeadState, Intrinsics, PoseEstimate, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.motion.controller import carry
from robot_runtime.records import ActionResult, EpisodeHeader, Outcome, StepTimes
from robot_runtime.robots.action_errors import ActuationModel

Array = NDArray[np.float64]

STEP_S = 2.0
COMMANDS = {
    Action.MOVE_FORWARD: Displacement(forward_m=0.25),
    Action.TURN_LEFT: Displacement(turn_rad=math.radians(30)),
    Action.TURN_RIGHT: Displacement(turn_rad=-math.radians(30)),
}


def make_header(robot: str = "lab-1", **changes: object) -> EpisodeHeader:
    """Of a robot in the open room, with a referee of its own."""
    task = make_task()
    settings = {
        "episode": make_episode(),
        "task": task,
        "scene": make_scene(),
        "robot": robot,
        "robot_config": {},
        "agent": "wanderer",
        "seed": 0,
        "intrinsics": Intrinsics.from_hfov(32, 24, 79.0),
        "depth_unit_m": 0.001,
        "mount": (0.0, 0.0, 0.88),
        "start_ns": 0,
        "provenance": {},
        "localizers": {"policy": ("beacons",), "referee": ("mocap",), "odometry": ("wheels",)},
    }
    return EpisodeHeader(**{**settings, **changes})  # type: ignore[arg-type]


def wandering(
    model: ActuationModel,
    random: np.random.Generator,
    actions: int = 30,
    referee_std: Sequence[float] = (0.0, 0.0, 0.0),
    residual_rad: float = 0.0,
    header: EpisodeHeader | None = None,
) -> LoggedEpisode:
    """One episode in the middle of the open room, of a robot that errs like ``model``.

    Args:
        referee_std: of each pose that the referee reports, m, m, rad.
        residual_rad: standard deviation with which the motion controller ends a turn by odometry; it knows, and aims
            the next motion from where this one should have ended.
    """
    noise = np.diag(np.square(referee_std))
    truth, chained = SE2(), 0.0
    steps = [make_step(0, None, None, _seen(truth, referee_std, random), noise)]
    for index in range(1, actions + 1):
        action = tuple(COMMANDS)[int(random.integers(3))]
        command, error = COMMANDS[action], model.actions[action.name.lower()]
        x_m, y_m, yaw_rad = random.multivariate_normal(error.mean, error.matrix, method="svd")
        carried = carry(chained, 0.0, MotionProfile().carry_rad)
        ended = random.normal(0, residual_rad) if residual_rad else 0.0
        ahead = SE2(0.0, 0.0, carried) @ SE2(command.forward_m, 0.0, command.turn_rad + ended)
        truth = truth @ SE2(ahead.x_m + x_m, ahead.y_m + y_m, ahead.yaw_rad + yaw_rad)
        measured = Displacement(command.forward_m, command.turn_rad + carried + ended)
        chained = -ended
        result = ActionResult(Outcome.REACHED, command, measured, Zone.NONE, 1.0)
        if math.hypot(truth.x_m, truth.y_m) > 2.0:  # somebody carries it back, as for a new phase
            truth, result = SE2(0.0, 0.0, truth.yaw_rad), None  # type: ignore[assignment]
        steps.append(make_step(index, action, result, _seen(truth, referee_std, random), noise))
    return episode_of(steps, header)


def _seen(truth: SE2, std: Sequence[float], random: np.random.Generator) -> SE2:
    x_m, y_m, yaw_rad = random.standard_normal(3) * std
    return SE2(truth.x_m + x_m, truth.y_m + y_m, wrap_angle(truth.yaw_rad + yaw_rad))


def make_step(
    index: int,
    action: Action | None,
    result: ActionResult | None,
    truth: SE2,
    noise: Array | None = None,
    tilt_rad: float = 0.0,
    touching: bool = False,
) -> LoggedStep:
    """A step that begins every :data:`STEP_S` and is observed a second later."""
    start_ns = seconds_to_ns(index * STEP_S)
    end_ns = start_ns + seconds_to_ns(1.0)
    times = StepTimes(start_ns, end_ns, end_ns + seconds_to_ns(0.1), end_ns + seconds_to_ns(0.2))
    stationary = StationaryPose(SE2(), truth, np.zeros((3, 3)) if noise is None else noise)
    return LoggedStep(index, action, result, stationary, touching, HeadState(end_ns, 0.0, tilt_rad, False), times, "")


def episode_of(
    steps: Sequence[LoggedStep],
    header: EpisodeHeader | None = None,
    arrivals: Sequence[tuple[int | None, Mapping[str, list[PoseEstimate]]]] = (),
) -> LoggedEpisode:
    """The steps as an episode."""
    return LoggedEpisode(Path("never.mcap"), header or make_header(), tuple(steps), motions(steps), arrivals)
