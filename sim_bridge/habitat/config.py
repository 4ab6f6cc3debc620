"""Conversion of habitat-lab's configuration and episodes.

Importing this module adds ``habitat/simulator: robot_runtime`` to Hydra's groups, so that a YAML file in habitat-lab's
own form can name robot, scene and logs. It changes no option that habitat-lab has: those of a published configuration
stay, whether it comes before in the list of defaults or is the configuration itself::

    habitat.get_config("benchmark/nav/vln_r2r.yaml", ["+habitat/simulator=robot_runtime"])
"""

from __future__ import annotations

import sim_bridge.habitat.import_shim  # noqa: F401  # first: it makes the others importable

# isort: split
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from habitat.config.default_structured_configs import SimulatorConfig
from hydra.core.config_store import ConfigStore
from omegaconf import II, MISSING, OmegaConf

from robot_runtime.actions.discrete import HABITAT, Magnitudes
from robot_runtime.common.geometry import SE2, habitat_quaternion_to_yaw, habitat_to_ros_position
from robot_runtime.errors import ConfigError
from robot_runtime.tasks.episode import Episode, EpisodeDetails, Goal
from robot_runtime.tasks.task import Task, TrainingCamera, load_task

SIMULATOR = "RobotRuntime-v0"

_CAMERAS = ("HabitatSimRGBSensor", "HabitatSimDepthSensor")


@dataclass
class RobotRuntimeConfig(SimulatorConfig):  # type: ignore[misc]
    """``habitat.simulator``; options that habitat-lab has keep their meaning.

    Attributes:
        robot: preset or YAML file.
        robot_scene: folder or bundled scene, of which all episodes must be.
        robot_task: preset or YAML file, for what habitat-lab does not define: the robot's radius, the angle of looks,
            and the rule by which logs are scored. Camera, step, turn and step limit are habitat-lab's.
        pose: source of habitat-lab's poses, for sensors and measures: the policy's ``localizer`` or the ``referee``
            that logs are scored by.
        logs: folder; empty for none.
        agent_name: name of the agent in the logs.
        real_time: simulate at the speed of real time.
        max_steps: greatest number of steps of the episode, 0 for no limit.
    """

    type: str = SIMULATOR
    robot: str = "sim"
    robot_scene: str = "apartment"
    robot_task: str = "pointnav_gps_compass"
    pose: str = "localizer"
    logs: str = ""
    agent_name: str = "habitat-lab"
    real_time: bool = False
    max_steps: int = II("habitat.environment.max_episode_steps")


def _own_options() -> Any:
    """The options of :class:`RobotRuntimeConfig`; those that habitat-lab has are missing, so that Hydra keeps them."""
    options = OmegaConf.structured(RobotRuntimeConfig)
    for field in fields(SimulatorConfig):
        if field.name != "type":
            options[field.name] = MISSING
    return options


ConfigStore.instance().store(
    package="habitat.simulator", group="habitat/simulator", name="robot_runtime", node=_own_options()
)


def camera_sensors(config: Any) -> list[Any]:
    """The configurations of the agent's cameras. Raises ``ConfigError`` if a robot does not have such a sensor."""
    if len(config.agents) != 1:
        raise ConfigError(f"habitat.simulator.agents: there are {len(config.agents)}, a robot is one", "keep one agent")
    (agent,) = config.agents.values()
    for name, sensor in agent.sim_sensors.items():
        if sensor.type not in _CAMERAS or sensor.get("sensor_subtype", "PINHOLE") != "PINHOLE":
            raise ConfigError(
                f"habitat.simulator: sensor {name!r} of type {sensor.type!r} is none of a robot's",
                f"use pinholes of {' and '.join(_CAMERAS)}",
            )
        if sensor.get("noise_model", "None") != "None":
            raise ConfigError(
                f"habitat.simulator: sensor {name!r} has a noise model", "choose noise in the robot's YAML instead"
            )
    return list(agent.sim_sensors.values())


def task_of(config: Any) -> Task:
    """The task that a configuration describes; its name tells whether it differs from the preset.

    Raises:
        ConfigError: unknown preset, cameras that differ from each other, or that no robot has.
    """
    preset = load_task(config.robot_task)
    sizes = Magnitudes(config.forward_step_size, config.turn_angle, preset.magnitudes.tilt_deg)
    images: dict[str, str] = {_CAMERAS[0]: "rgb", _CAMERAS[1]: "depth"}
    task = replace(
        preset,
        actions=HABITAT.actions,  # habitat-lab decides which of them there are, and under which ids
        magnitudes=sizes,
        camera=_camera(config, preset.camera),
        sensors=tuple(images[sensor.type] for sensor in camera_sensors(config)),
        max_steps=config.max_steps or preset.max_steps,
    )
    same = (task.magnitudes, task.camera, task.max_steps) == (preset.magnitudes, preset.camera, preset.max_steps)
    return task if same else replace(task, name=f"{task.name}@habitat-lab")


def episode_of(episode: Any) -> Episode:
    """The episode of a ``NavigationEpisode``, ``ObjectGoalNavEpisode`` or ``VLNEpisode`` of habitat-lab."""
    x_m, y_m, z_m = habitat_to_ros_position(*episode.start_position)
    info = episode.info or {}
    return Episode(
        id=str(episode.episode_id),
        scene=episode.scene_id,
        start=SE2(x_m, y_m, habitat_quaternion_to_yaw(*episode.start_rotation)),
        start_z_m=z_m,
        goals=tuple(_goal(goal) for goal in episode.goals),
        category=getattr(episode, "object_category", None),
        shortest_path_m=info.get("geodesic_distance"),
        details=_route(episode),
    )


def _route(episode: Any) -> EpisodeDetails | None:
    """The instruction and the path that it describes; None for episodes without."""
    asked = getattr(episode, "instruction", None)
    if asked is None:
        return None
    from robot_runtime.task_kinds.vln.kind import Instruction, Route

    tokens = tuple(token for token in asked.instruction_tokens or () if isinstance(token, int) and token)
    path = tuple(habitat_to_ros_position(*point) for point in episode.reference_path or ())
    return Route(Instruction(asked.instruction_text, tokens, trajectory_id=str(episode.trajectory_id)), path)


def _goal(goal: Any) -> Goal:
    views = getattr(goal, "view_points", None) or ()
    object_id = getattr(goal, "object_id", None)
    return Goal(
        *habitat_to_ros_position(*goal.position),
        object_id=None if object_id is None else str(object_id),
        view_points=tuple(_pose(view.agent_state.position, view.agent_state.rotation) for view in views),
    )


def _pose(position: Sequence[float], rotation: Sequence[float]) -> SE2:
    x_m, y_m, _ = habitat_to_ros_position(*position)
    return SE2(x_m, y_m, habitat_quaternion_to_yaw(*rotation))


def _camera(config: Any, preset: TrainingCamera) -> TrainingCamera:
    """The camera of all sensors; the preset's where there is no sensor."""
    camera = preset
    for index, sensor in enumerate(camera_sensors(config)):
        pitch_rad, yaw_rad, roll_rad = sensor.orientation
        x_m, height_m, z_m = sensor.position
        if yaw_rad or roll_rad or x_m or z_m:
            raise ConfigError(
                f"habitat.simulator: a camera sits at {list(sensor.position)} turned by {list(sensor.orientation)}",
                "put it above the robot's axis, at most tilted: position [0, height, 0], orientation [tilt, 0, 0]",
            )
        shape = {
            "width": sensor.width,
            "height": sensor.height,
            "hfov_deg": float(sensor.hfov),
            "height_m": height_m,
            "tilt_deg": math.degrees(pitch_rad),
        }
        if index and replace(camera, **shape) != camera:
            raise ConfigError("habitat.simulator: the sensors are of different cameras", "give them one size and place")
        camera = replace(camera, **shape)
        if sensor.type == _CAMERAS[1]:
            camera = replace(
                camera,
                depth_min_m=sensor.min_depth,
                depth_max_m=sensor.max_depth,
                depth_normalized=sensor.normalize_depth,
            )
    return camera
