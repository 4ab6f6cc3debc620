"""The training task of a DD-PPO policy, from its configuration, with a preset's values where it has none."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common import config
from robot_runtime.common.differences import differences
from robot_runtime.errors import CheckpointError
from robot_runtime.policies.convert.conversion import Options
from robot_runtime.policies.convert.habitat_config import HabitatFacts
from robot_runtime.policies.convert.networks.ddppo import DdppoConfig
from robot_runtime.tasks.task import Success, Task, TrainingCamera

_KINDS: Mapping[str, str] = {"Nav-v0": "pointnav", "ObjectNav-v1": "objectnav"}
_ACTIONS = {
    action.value: action
    for action in (
        Action.STOP,
        Action.MOVE_FORWARD,
        Action.TURN_LEFT,
        Action.TURN_RIGHT,
        Action.LOOK_UP,
        Action.LOOK_DOWN,
    )
}
_SUCCESS_M = 0.2  # habitat-lab's default


def habitat_task(
    path: Path, network: DdppoConfig, facts: HabitatFacts, options: Options
) -> tuple[Task, tuple[str, ...]]:
    """The checkpoint's task, and its differences from the one in the options.

    Raises:
        CheckpointError: sensors, actions, categories or goal are unsupported, missing, or contradict each other or the
            given task.
    """
    base = options.task
    if facts.dialect is None and base is None:
        raise CheckpointError(f"{path}: has no configuration", "give its task with --task PRESET")
    kind: str = "objectnav" if "objectgoal" in network.sensors else "pointnav"
    if facts.task_type is not None and _KINDS.get(facts.task_type) != kind:
        raise CheckpointError(
            f"{path}: is of the task {facts.task_type}, its sensors of {kind}", "give an unmodified checkpoint"
        )
    if base is not None and base.kind != kind:
        raise CheckpointError(f"{path}: is a policy of {kind}, {base.name!r} of {base.kind}", "give a task of its kind")
    if base is None and kind == "objectnav":
        raise CheckpointError(
            f"{path}: has {network.categories} categories without names",
            "give the task that names them: --task objectnav_hm3d2022 or objectnav_habitat2020, or a YAML file",
        )
    _check_goals(path, network, facts, base)
    camera = _camera(path, network, facts, base)
    actions = _actions(path, network, facts, base)
    own = base.magnitudes if base is not None else Magnitudes(0.25, 10.0, 15.0)
    made = Task(
        name=base.name if base is not None else f"{options.name}_task",
        kind=kind,
        source=base.source if base is not None else f"the configuration in {path.name}",
        actions=actions,
        magnitudes=Magnitudes(
            facts.forward_m or own.forward_m, facts.turn_deg or own.turn_deg, facts.tilt_deg or own.tilt_deg
        ),
        sensors=_sensors(network, base),
        camera=camera,
        robot_radius_m=facts.radius_m or (base.robot_radius_m if base is not None else 0.1),
        max_steps=facts.max_steps or (base.max_steps if base is not None else 500),
        success=_success(kind, facts, base),
        categories=dict(base.categories) if base is not None else {},
    )
    if base is None:
        return made, ()
    kept = tuple(
        f"its own task was kept: {what} {own}, {base.name} has {other}" for what, own, other in _differences(made, base)
    )
    if kept:
        made = replace(made, name=f"{base.name}+{options.name}")
    return made, (*kept, *_unused_categories(network, base))


def _unused_categories(network: DdppoConfig, base: Task) -> Iterator[str]:
    """The baseline of 2022 embeds Matterport3D's 21 categories and was trained on HM3D's 6."""
    used = [category.id for category in base.categories.values()]
    if network.categories > len(used):
        yield (
            f"its network embeds {network.categories} categories, {base.name} uses {len(used)} of them: ids "
            f"{', '.join(map(str, sorted(used)))}; if it was trained on all, give the task that names them"
        )


def _check_goals(path: Path, network: DdppoConfig, facts: HabitatFacts, base: Task | None) -> None:
    if not set(network.sensors) & {"pointgoal", "pointgoal_with_gps_compass", "objectgoal"}:
        raise CheckpointError(f"{path}: has no supported goal sensor", "train with a point or object goal")
    for name in ("pointgoal", "pointgoal_with_gps_compass"):
        form, dimensions = facts.goals.get(name, ("POLAR", 2))
        if name in network.sensors and (form.upper(), dimensions) != ("POLAR", 2):
            raise CheckpointError(
                f"{path}: its {name} is {form} of {dimensions} dimensions; the converter knows POLAR of 2",
                "train with POLAR of 2",
            )
    if network.categories and facts.goal_spec not in (None, "TASK_CATEGORY_ID"):
        raise CheckpointError(f"{path}: its object goal is an {facts.goal_spec}", "train with TASK_CATEGORY_ID")
    if base is not None and network.categories:
        count = max(category.id for category in base.categories.values()) + 1
        if count > network.categories:
            raise CheckpointError(
                f"{path}: has {network.categories} categories, {base.name!r} has {count}",
                "give the task whose categories it was trained on",
            )


def _camera(path: Path, network: DdppoConfig, facts: HabitatFacts, base: Task | None) -> TrainingCamera:
    cameras = {image: facts.cameras[image] for image in network.images if image in facts.cameras}
    if not cameras:
        if base is None:
            raise CheckpointError(f"{path}: its configuration has no camera", "give its task with --task")
        return base.camera
    if len(set(cameras.values())) > 1:
        raise CheckpointError(
            f"{path}: its RGB and depth cameras differ: {cameras}", "robots have one camera for both: train with one"
        )
    camera = next(iter(cameras.values()))
    other = (base.camera.depth_min_m, base.camera.depth_max_m, base.camera.depth_normalized) if base else None
    low, high, normalized = facts.depth or other or (0.0, 10.0, True)
    holes = base.camera.depth_holes if base is not None else "zero"
    return TrainingCamera(
        camera.width, camera.height, camera.hfov_deg, camera.height_m, low, high, normalized, camera.tilt_deg, holes
    )


def _actions(path: Path, network: DdppoConfig, facts: HabitatFacts, base: Task | None) -> tuple[Action, ...]:
    names = [name.lower() for name in facts.actions]
    unknown = [name for name in names if name not in _ACTIONS]
    if unknown:
        raise CheckpointError(
            f"{path}: its action {unknown[0]!r} is none of {', '.join(_ACTIONS)}", "train with discrete actions"
        )
    actions = tuple(_ACTIONS[name] for name in names) or (base.actions if base is not None else ())
    if len(actions) != network.actions:
        raise CheckpointError(
            f"{path}: has logits of {network.actions} actions, its task {len(actions)}: {', '.join(actions)}",
            "give the task that it was trained on",
        )
    return actions


def _sensors(network: DdppoConfig, base: Task | None) -> tuple[str, ...]:
    needed = (*sorted(network.images, reverse=True), *network.sensors)
    own = base.sensors if base is not None else ()
    return (*own, *(name for name in needed if name not in own))


def _success(kind: str, facts: HabitatFacts, base: Task | None) -> Success:
    if base is not None:
        return replace(base.success, distance_m=facts.success_m or base.success.distance_m)
    return Success("distance", facts.success_m or _SUCCESS_M, "view_points" if kind == "objectnav" else "goal")


def _differences(made: Task, base: Task) -> Iterator[tuple[str, Any, Any]]:
    sections = ("actions", "magnitudes", "camera", "max_steps", "robot_radius_m", "success")
    own, other = ({name: document[name] for name in sections} for document in map(config.unparse, (made, base)))
    return differences(own, other)
