"""Reader of task, camera and preprocessing in habitat's configurations, in both dialects.

Up to 0.2.2 they are yacs trees (``TASK_CONFIG.SIMULATOR...``), from 0.2.3 on hydra's (``habitat.simulator...``). The
dialect also dates the framework, and with it the order of an RGB-D network's channels: 0.2.3 was the first release of
both changes (habitat-lab 816184e78 and 50a1b1fcd).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from robot_runtime.errors import CheckpointError
from robot_runtime.imaging.preprocess import CenterCrop, Operation, ResizeShortestEdge
from robot_runtime.policies.convert.settings import Settings

_TRANSFORMS_YACS = {"ResizeShortestEdge": "resize_shortest_edge", "CenterCropper": "center_cropper"}


@dataclass(frozen=True)
class CameraSettings:
    """One camera of the simulator: pixels, degrees (tilt up positive), meters above the floor."""

    width: int
    height: int
    hfov_deg: float
    height_m: float
    tilt_deg: float


@dataclass(frozen=True)
class HabitatFacts:
    """Facts of a configuration; None or empty where it has no value.

    Attributes:
        dialect: None without a configuration.
        actions: habitat's names, in the order of their ids.
        cameras: cameras by image.
        depth: (least, greatest, normalized).
        goals: (format, dimensions) by the goal sensor's key.
        goal_spec: meaning of an object goal's number.
        polar: the sensor that ``tgt_embeding`` belongs to.
        has_transforms: whether the configuration has a list of transformers, even an empty one.
        network: backbone, rnn_type, num_recurrent_layers, hidden_size, if present.
    """

    dialect: Literal["yacs", "hydra"] | None = None
    task_type: str | None = None
    actions: tuple[str, ...] = ()
    forward_m: float | None = None
    turn_deg: float | None = None
    tilt_deg: float | None = None
    cameras: Mapping[str, CameraSettings] = field(default_factory=dict)
    depth: tuple[float, float, bool] | None = None
    goals: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    goal_spec: str | None = None
    polar: Literal["pointgoal", "pointgoal_with_gps_compass"] = "pointgoal_with_gps_compass"
    radius_m: float | None = None
    max_steps: int | None = None
    success_m: float | None = None
    transforms: tuple[Operation, ...] = ()
    has_transforms: bool = True
    network: Mapping[str, str | int] = field(default_factory=dict)


def read_facts(path: Path, config: Any, images: tuple[str, ...]) -> HabitatFacts:
    """Read the facts of a checkpoint's ``config``.

    Raises:
        CheckpointError: it is of no habitat version, or has an unsupported transformer.
    """
    settings = Settings(path, config)
    if not settings:
        return HabitatFacts()
    try:
        if settings.section("habitat"):
            return _hydra(path, settings, images)
        if settings.section("task_config"):
            return _yacs(path, settings, images)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise CheckpointError(
            f"{path}: its configuration is not habitat's: {error}", "convert its state_dict alone with --task"
        ) from error
    raise CheckpointError(
        f"{path}: its configuration has neither 'habitat' nor 'TASK_CONFIG'",
        "give a checkpoint of habitat-baselines, or its state_dict alone with --task",
    )


def _hydra(path: Path, settings: Settings, images: tuple[str, ...]) -> HabitatFacts:
    simulator, task, rl = "habitat.simulator", "habitat.task", "habitat_baselines.rl"
    agents = settings.section(f"{simulator}.agents")
    agent = f"{simulator}.agents.{next(iter(agents))}" if agents else f"{simulator}.agent_0"
    lab = {str(sensor.get("type")): sensor for sensor in settings.section(f"{task}.lab_sensors").values() if sensor}
    names = {"PointGoalSensor": "pointgoal", "PointGoalWithGPSCompassSensor": "pointgoal_with_gps_compass"}
    policies = settings.section(f"{rl}.policy")
    policy = f"{rl}.policy.{next(iter(agents), 'main_agent')}" if "name" not in policies else f"{rl}.policy"
    transforms = [
        (str(entry.get("type")), entry) for entry in settings.section(f"{policy}.obs_transforms").values() if entry
    ]
    goal_spec = lab.get("ObjectGoalSensor", {}).get("goal_spec")
    return HabitatFacts(
        dialect="hydra",
        task_type=settings.get(str, f"{task}.type"),
        actions=tuple(settings.section(f"{task}.actions")),
        forward_m=settings.get(float, f"{simulator}.forward_step_size"),
        turn_deg=settings.get(float, f"{simulator}.turn_angle"),
        tilt_deg=settings.get(float, f"{task}.actions.look_up.tilt_angle", f"{simulator}.tilt_angle"),
        cameras=_cameras(settings, f"{agent}.sim_sensors"),
        depth=_depth(settings, f"{agent}.sim_sensors.depth_sensor"),
        goals={names[kind]: _goal(sensor) for kind, sensor in lab.items() if kind in names},
        goal_spec=goal_spec if isinstance(goal_spec, str) else None,
        radius_m=settings.get(float, f"{agent}.radius"),
        max_steps=settings.get(int, "habitat.environment.max_episode_steps"),
        success_m=settings.get(float, f"{task}.measurements.success.success_distance"),
        transforms=_transforms(path, transforms, images),
        network=_network(settings, f"{rl}.ddppo", f"{rl}.ppo"),
    )


def _yacs(path: Path, settings: Settings, images: tuple[str, ...]) -> HabitatFacts:
    simulator, task = "task_config.simulator", "task_config.task"
    sensors = settings.get(list, f"{task}.sensors") or []
    goals = {
        name: _goal(settings.section(f"{task}.{name}_sensor"))
        for name in ("pointgoal", "pointgoal_with_gps_compass")
        if f"{name.upper()}_SENSOR" in sensors
    }
    plain = "pointgoal_with_gps_compass" not in goals and settings.find(f"{task}.goal_sensor_uuid") == "pointgoal"
    options = settings.section("rl.policy.obs_transforms")
    enabled = settings.get(list, "rl.policy.obs_transforms.enabled_transforms") or []
    transforms = [(str(name), options.get(_TRANSFORMS_YACS.get(str(name), ""), {})) for name in enabled]
    return HabitatFacts(
        dialect="yacs",
        task_type=settings.get(str, f"{task}.type"),
        actions=tuple(str(name) for name in settings.get(list, f"{task}.possible_actions") or ()),
        forward_m=settings.get(float, f"{simulator}.forward_step_size"),
        turn_deg=settings.get(float, f"{simulator}.turn_angle"),
        tilt_deg=settings.get(float, f"{simulator}.tilt_angle"),
        cameras=_cameras(settings, simulator),
        depth=_depth(settings, f"{simulator}.depth_sensor"),
        goals=goals,
        goal_spec=settings.get(str, f"{task}.objectgoal_sensor.goal_spec"),
        polar="pointgoal" if plain else "pointgoal_with_gps_compass",
        radius_m=settings.get(float, f"{simulator}.agent_0.radius"),
        max_steps=settings.get(int, "task_config.environment.max_episode_steps"),
        success_m=settings.get(float, f"{task}.success.success_distance", f"{task}.success_distance"),
        transforms=_transforms(path, transforms, images),
        has_transforms=settings.find("rl.policy.obs_transforms") is not None,
        network=_network(settings, "rl.ddppo", "rl.ppo"),
    )


def _cameras(settings: Settings, section: str) -> dict[str, CameraSettings]:
    cameras = {}
    for image in ("rgb", "depth"):
        where = f"{section}.{image}_sensor"
        if settings.section(where):
            position = settings.get(list, f"{where}.position") or [0.0, 1.25, 0.0]
            orientation = settings.get(list, f"{where}.orientation") or [0.0, 0.0, 0.0]
            cameras[image] = CameraSettings(
                settings.get(int, f"{where}.width") or 640,
                settings.get(int, f"{where}.height") or 480,
                settings.get(float, f"{where}.hfov") or 90.0,
                float(position[1]),
                round(math.degrees(float(orientation[0])), 6),
            )
    return cameras


def _depth(settings: Settings, where: str) -> tuple[float, float, bool] | None:
    low, high = settings.get(float, f"{where}.min_depth"), settings.get(float, f"{where}.max_depth")
    normalized = settings.get(bool, f"{where}.normalize_depth")
    return None if low is None or high is None else (low, high, normalized is not False)


def _goal(sensor: Mapping[str, Any]) -> tuple[str, int]:
    # The defaults of both dialects, not of the sensor's class.
    return str(sensor.get("goal_format") or "POLAR"), int(sensor.get("dimensionality") or 2)


def _network(settings: Settings, ddppo: str, ppo: str) -> dict[str, str | int]:
    found = {
        "backbone": settings.get(str, f"{ddppo}.backbone"),
        "rnn_type": settings.get(str, f"{ddppo}.rnn_type"),
        "num_recurrent_layers": settings.get(int, f"{ddppo}.num_recurrent_layers"),
        "hidden_size": settings.get(int, f"{ppo}.hidden_size"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _transforms(
    path: Path, entries: list[tuple[str, Mapping[str, Any]]], images: tuple[str, ...]
) -> tuple[Operation, ...]:
    operations: list[Operation] = []
    for kind, options in entries:
        wanted = options.get("trans_keys") or ("rgb", "depth", "semantic")
        keys = tuple(image for image in images if image in wanted)
        if not keys:
            continue
        if kind == "ResizeShortestEdge":
            operations.append(ResizeShortestEdge(keys, int(options.get("size") or 256), "torch_area"))
        elif kind == "CenterCropper":
            height, width = int(options.get("height") or 256), int(options.get("width") or 256)
            operations.append(CenterCrop(keys, height, width))
        else:
            raise CheckpointError(
                f"{path}: its observation transformer {kind} is none of ResizeShortestEdge, CenterCropper",
                "train with one of those; others need cameras that robots do not have",
            )
    return tuple(operations)
