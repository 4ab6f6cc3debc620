"""Delay from an image's exposure to its use on a simulated robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.env import Env
from robot_runtime.records import EpisodeHeader
from robot_runtime.robots.loader import RobotContext, build_robot
from robot_runtime.scenes.scene import Scene
from sim_bridge.robot.camera_misalignment import MountError
from sim_bridge.robot.chassis import ContactOptions
from sim_bridge.robot.driver import SimOptions
from sim_bridge.tuning.settings import Setting

STEPS = 5
"""Number of steps of a recorded episode; a simulated robot's delay varies only with the phase of its streams."""


def timing_options(options: SimOptions) -> SimOptions:
    """The options that delays depend on; the others have their default."""
    camera = replace(options.camera, mount_error=MountError(), depth_noise={}, color_noise={})
    return replace(options, camera=camera, action_noise=None, contact=ContactOptions(), tags=None)


def delay_s(setting: Setting, scene: Scene, header: EpisodeHeader, actions: Sequence[Action]) -> float:
    """Median time from an image's exposure to its use, over the first actions of a repeated episode.

    Args:
        setting: setting of the simulated robot.
        scene: scene with meshes.
        header: header of the log.
        actions: actions of the log.

    Raises:
        RuntimeFault: the robot cannot be built, or collides at the start.
    """
    context = replace(RobotContext.of(header.task, scene, [header.episode], header.seed), images=False)
    task = replace(header.task, sensors=())
    with build_robot(setting.robot, setting.path, context) as robot, Env(robot, task, scene, judged=False) as env:
        env.reset(header.episode)
        delays = [env.record.times.observed_ns - env.record.times.exposed_ns]
        for action in actions[:STEPS]:
            if env.episode_over:
                break
            env.step(action)
            delays.append(env.record.times.observed_ns - env.record.times.exposed_ns)
    return float(np.median(delays)) / 1e9
