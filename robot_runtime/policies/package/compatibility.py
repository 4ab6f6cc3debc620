"""Check of a package's policy against a task: both must have the same actions, camera and goal ids."""

from collections.abc import Iterator

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.tasks.registry import kind_of
from robot_runtime.tasks.task import HEIGHT_TOLERANCE_M, HFOV_TOLERANCE_DEG, Task

TILT_TOLERANCE_DEG = 1.0
"""An error of 20 degrees cost a policy most of its success; one degree had no measurable effect."""


def check_task(manifest: Manifest, task: Task) -> None:
    """Check that a task has the actions, camera and goals that the policy was trained with.

    The environment checks that the robot's camera is the task's.

    Raises:
        PolicyMismatch: naming the first thing that differs, with both values.
    """
    for what, trained, found in _differences(manifest, task):
        raise PolicyMismatch(
            f"policy {manifest.name!r} was trained with {what} {trained}, task {task.name!r} has {found}",
            "run it without --task, in its own task, or give a task preset that agrees with it",
        )
    growing = [need.most for need in manifest.inputs if len(need.sides) < len(need.shape)]
    if growing and min(growing) < task.max_steps:
        raise PolicyMismatch(
            f"policy {manifest.name!r} has a memory of {min(growing)} steps, task {task.name!r} has {task.max_steps}",
            "give a task with fewer 'max_steps', or raise 'most' in policy.yaml if the network remembers more",
        )


def _differences(manifest: Manifest, task: Task) -> Iterator[tuple[str, object, object]]:
    """(what, the package's value, the task's value) of each difference that matters."""
    own = manifest.task
    if own.kind != task.kind:
        yield "tasks of kind", own.kind, task.kind
    missing = [action for action in own.actions if action not in task.actions]
    if missing:
        yield "the actions", ", ".join(own.actions), ", ".join(task.actions)
    for what, name, actions in (
        ("a forward move of (m)", "forward_m", (Action.MOVE_FORWARD,)),
        ("turns of (degrees)", "turn_deg", (Action.TURN_LEFT, Action.TURN_RIGHT)),
        ("looks of (degrees)", "tilt_deg", (Action.LOOK_UP, Action.LOOK_DOWN)),
    ):
        trained, found = getattr(own.magnitudes, name), getattr(task.magnitudes, name)
        if trained != found and any(action in own.actions for action in actions):
            yield what, trained, found
    yield from _camera_differences(manifest, task)
    for name, sensor in kind_of(own).sensors.items():
        trained_form, form = ((sensor.shape(one), sensor.bounds(one)) for one in (own, task))
        if name in manifest.needs and sensor.dtype is np.float32 and trained_form != form:
            yield f"{name} of the shape and range", trained_form, form
    if {"objectgoal", "semantic"} & set(manifest.needs):
        trained_ids = {name: category.id for name, category in own.categories.items()}
        found_ids = {name: category.id for name, category in task.categories.items()}
        if any(trained_ids.get(name) != number for name, number in found_ids.items()):
            yield "the goal ids", trained_ids, found_ids


def _camera_differences(manifest: Manifest, task: Task) -> Iterator[tuple[str, object, object]]:
    own, camera = manifest.task.camera, task.camera
    if not {"rgb", "depth", "semantic"} & set(manifest.needs):
        return
    if (own.width, own.height) != (camera.width, camera.height):
        yield "a camera of (pixels)", f"{own.width}x{own.height}", f"{camera.width}x{camera.height}"
    for what, name, tolerance in (
        ("a horizontal field of view of (degrees)", "hfov_deg", HFOV_TOLERANCE_DEG),
        ("a camera height of (m)", "height_m", HEIGHT_TOLERANCE_M),
        ("a camera tilt of (degrees)", "tilt_deg", TILT_TOLERANCE_DEG),
    ):
        if abs(getattr(own, name) - getattr(camera, name)) > tolerance:
            yield what, getattr(own, name), getattr(camera, name)
    if "depth" in manifest.needs:
        for what, name in (
            ("a least depth of (m)", "depth_min_m"),
            ("a greatest depth of (m)", "depth_max_m"),
            ("normalized depth:", "depth_normalized"),
            ("holes in depth as", "depth_holes"),
        ):
            if getattr(own, name) != getattr(camera, name):
                yield what, getattr(own, name), getattr(camera, name)
