"""Check of a package's policy against a task: both must have the same actions, camera and goal ids."""

from collections.abc import Iterator, Set
from operator import attrgetter

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.errors import PolicyMismatch
from robot_runtime.policies.package.manifest import Manifest
from robot_runtime.tasks.kind import kind_of
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


_TURNS, _LOOKS = {Action.TURN_LEFT, Action.TURN_RIGHT}, {Action.LOOK_UP, Action.LOOK_DOWN}
_IMAGES, _DEPTH = {"rgb", "depth", "semantic"}, {"depth"}
_COMPARED: tuple[tuple[str, str, float, Set[str]], ...] = (
    ("a forward move of (m)", "magnitudes.forward_m", 0.0, {Action.MOVE_FORWARD}),
    ("turns of (degrees)", "magnitudes.turn_deg", 0.0, _TURNS),
    ("looks of (degrees)", "magnitudes.tilt_deg", 0.0, _LOOKS),
    ("a camera of (pixels)", "camera.pixels", 0.0, _IMAGES),
    ("a horizontal field of view of (degrees)", "camera.hfov_deg", HFOV_TOLERANCE_DEG, _IMAGES),
    ("a camera height of (m)", "camera.height_m", HEIGHT_TOLERANCE_M, _IMAGES),
    ("a camera tilt of (degrees)", "camera.tilt_deg", TILT_TOLERANCE_DEG, _IMAGES),
    ("a least depth of (m)", "camera.depth_min_m", 0.0, _DEPTH),
    ("a greatest depth of (m)", "camera.depth_max_m", 0.0, _DEPTH),
    ("normalized depth:", "camera.depth_normalized", 0.0, _DEPTH),
    ("holes in depth as", "camera.depth_holes", 0.0, _DEPTH),
)
"""What is compared: words, field of the task, tolerance, and the actions and sensors that it matters to."""


def _differences(manifest: Manifest, task: Task) -> Iterator[tuple[str, object, object]]:
    """(what, the package's value, the task's value) of each difference that matters."""
    own, used = manifest.task, {*manifest.task.actions, *manifest.needs}
    if own.kind != task.kind:
        yield "tasks of kind", own.kind, task.kind
    if not set(own.actions) <= set(task.actions):
        yield "the actions", ", ".join(own.actions), ", ".join(task.actions)
    for what, field, tolerance, concerned in _COMPARED:
        trained, found = map(attrgetter(field), (own, task))
        if used & concerned and (abs(trained - found) > tolerance if tolerance else trained != found):
            yield what, trained, found
    for name, sensor in kind_of(own).sensors.items():
        forms = [(sensor.shape(one), sensor.bounds(one)) for one in (own, task)]
        if name in used and sensor.dtype is np.float32 and forms[0] != forms[1]:
            yield f"{name} of the shape and range", forms[0], forms[1]
    if {"objectgoal", "semantic"} & used:
        trained_ids, found_ids = ({name: one.id for name, one in at.categories.items()} for at in (own, task))
        if any(trained_ids.get(name) != number for name, number in found_ids.items()):
            yield "the goal ids", trained_ids, found_ids
