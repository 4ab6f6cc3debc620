"""Metrics of rearrangement: tests of object poses, completion, do-no-harm, and published rules."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.metrics.functional.boxes import Box, iou
from robot_runtime.metrics.functional.distances import EUCLIDEAN, Distance
from robot_runtime.scenes.objects import ObjectPose


def pose_box(pose: ObjectPose, size: Sequence[float] | NDArray[np.float64]) -> Box:
    """Box of an object with a size (full edge lengths along its own axes) and a pose.

    Raises:
        ValueError: the pose is invalid (:attr:`ObjectPose.fault`), or a size is not positive.
    """
    if pose.fault is not None:
        raise ValueError(pose.fault)
    w, x, y, z = pose.quaternion
    return Box(np.array(pose.position), np.array(size), Rotation.from_quat([x, y, z, w]).as_matrix())


def angle_between(a: Sequence[float], b: Sequence[float]) -> float:
    """Smallest rotation that takes one orientation to the other, in radians, [0, pi].

    4 atan(|a - b| / |a + b|), with full precision for small angles, where 2 acos|a . b| has half of it.

    Args:
        a: unit quaternion; q and -q are the same orientation.
        b: another, in the same order of components, w, x, y, z or x, y, z, w.

    Raises:
        ValueError: one is not of length 1 (to 1e-3), or not finite.
    """
    p, q = (np.asarray(value, np.float64) for value in (a, b))
    for value in (p, q):
        if value.shape != (4,) or not abs(np.linalg.norm(value) - 1) < 1e-3:
            raise ValueError(f"not a unit quaternion: {value.tolist()}")
    p, q = p / np.linalg.norm(p), q / np.linalg.norm(q)
    # |p - q| and |p + q| are the chords of the half angle; their ratio is its tangent.
    chords = sorted((float(np.linalg.norm(p - q)), float(np.linalg.norm(p + q))))
    return 4 * math.atan2(chords[0], chords[1])


@dataclass(frozen=True, kw_only=True)
class PoseTest:
    """Criteria for an object's final state; None leaves a criterion out (Batra et al. 2020, 4.1).

    Attributes:
        max_translation_m: largest distance between the centers, <= (house cleanup: 1.0).
        max_angle_rad: largest angle between the orientations, <=.
        min_iou: least IoU of the oriented boxes, > (room rearrangement: 0.5).
        inclusive_iou: whether an IoU of ``min_iou`` itself passes.
        max_openness: largest difference of final and goal openness, <= (room rearrangement: 0.2).
    """

    max_translation_m: float | None = None
    max_angle_rad: float | None = None
    min_iou: float | None = None
    inclusive_iou: bool = False
    max_openness: float | None = None

    def criteria(
        self,
        *,
        translation_m: float | None = None,
        angle_rad: float | None = None,
        iou: float | None = None,
        openness: float | None = None,
    ) -> dict[str, bool]:
        """Per criterion that applies, whether it holds; the object passes if all do.

        Args:
            translation_m: distance between the centers; a criterion whose measurement is None is left out.
            angle_rad: angle between the orientations.
            iou: IoU of the oriented boxes; None for an object that only opens.
            openness: |final - goal|; None for an object that does not open.

        Raises:
            ValueError: a measurement is NaN or negative, or no criterion is left.
        """
        checks = {
            "translation": (translation_m, self.max_translation_m),
            "angle": (angle_rad, self.max_angle_rad),
            "iou": (iou, self.min_iou),
            "openness": (openness, self.max_openness),
        }
        found = {}
        for name, (value, threshold) in checks.items():
            if value is None or threshold is None:
                continue
            if not value >= 0:
                raise ValueError(f"{name} must be a number >= 0, got {value}")
            if name == "iou":
                found[name] = value >= threshold if self.inclusive_iou else value > threshold
            else:
                found[name] = value <= threshold
        if not found:
            raise ValueError("no measurement has a threshold in the test")
        return found


ROOM_REARRANGEMENT = PoseTest(min_iou=0.5, max_openness=0.2)
"""Batra et al. 2020, A.4, and ai2thor-rearrangement: an IoU above 0.5, and openness to 20 %."""

HOUSE_CLEANUP = PoseTest(max_translation_m=1.0)
"""Batra et al. 2020, A.5: the center of mass within 1 m of its goal."""


def completion(passed: Sequence[bool], harmed: bool = False) -> float:
    """Share of the target tests that hold, in [0, 1]; 0 if any other object was harmed (Batra et al. 2020, 4.1).

    Raises:
        ValueError: no test: an episode without a target has no completion.
    """
    if not len(passed):
        raise ValueError("completion of no tests is undefined")
    return 0.0 if harmed else float(np.mean([bool(test) for test in passed]))


def episode_success(passed: Sequence[bool], harmed: bool = False) -> bool:
    """Whether every test holds and nothing was harmed; errors as :func:`completion`."""
    return completion(passed, harmed) == 1.0


def do_no_harm(start: Mapping[str, Box], final: Mapping[str, Box], min_iou: float = 0.5) -> dict[str, bool]:
    """Per object that the task does not mention, whether it stayed: IoU(start, final) > ``min_iou``.

    The paper (Batra et al. 2020, 4.1) leaves the test to the task's designer; this is its example, with the threshold
    of room rearrangement. An episode did no harm if all hold.

    Raises:
        ValueError: an object was tracked at the start or at the end only.
    """
    if start.keys() != final.keys():
        raise ValueError(f"tracked at the start or at the end only: {sorted(start.keys() ^ final.keys())}")
    return {name: iou(start[name], final[name]) > min_iou for name in start}


@dataclass(frozen=True)
class RoomRearrangement:
    """The metrics of ai2thor-rearrangement (``rearrange/tasks.py``, ``UnshuffleTask.metrics``).

    Attributes:
        success: whether nothing is misplaced at the end.
        prop_fixed: share of the objects misplaced at the start that are not at the end; 1 if none was.
        prop_fixed_strict: the same, but 0 if any object is newly misplaced.
        prop_misplaced: misplaced at the end per misplaced at the start, may exceed 1; None if nothing was misplaced.
        energy_prop: remaining energy per energy at the start; None without energies, or if it was 0 at the start.
    """

    success: bool
    prop_fixed: float
    prop_fixed_strict: float
    prop_misplaced: float | None
    energy_prop: float | None


def room_rearrangement(misplaced_at_start: Sequence[Any], misplaced_at_end: Sequence[Any]) -> RoomRearrangement:
    """Metrics from one value per object: whether it is misplaced, or its energy in [0, 1], of which > 0 is misplaced.

    Energies come from :func:`pose_energy`. Booleans give no ``energy_prop``. The two disagree at an IoU of exactly
    0.5, which has no energy and yet fails ``are_poses_equal`` in the original.

    Raises:
        ValueError: no object, different numbers of them, or a value that is NaN or negative.
    """
    start, end = (np.asarray(values, np.float64) for values in (misplaced_at_start, misplaced_at_end))
    if start.shape != end.shape or start.ndim != 1 or not len(start):
        raise ValueError(
            f"objects at the start {start.shape} and at the end {end.shape} must be the same, at least one"
        )
    if not ((start >= 0).all() and (end >= 0).all()):
        raise ValueError("a value is NaN or negative")
    wrong_before, wrong_after = start > 0, end > 0
    count = int(wrong_before.sum())
    fixed = 1.0 if count == 0 else float((wrong_before & ~wrong_after).sum() / count)
    newly = bool((wrong_after & ~wrong_before).any())
    are_energies = all(np.asarray(values).dtype.kind == "f" for values in (misplaced_at_start, misplaced_at_end))
    return RoomRearrangement(
        success=not wrong_after.any(),
        prop_fixed=fixed,
        prop_fixed_strict=0.0 if newly else fixed,
        prop_misplaced=float(wrong_after.sum() / count) if count else None,
        energy_prop=float(end.sum() / start.sum()) if are_energies and start.sum() > 0 else None,
    )


def pose_energy(
    goal: Box, final: Box, openness: float | None = None, broken: bool = False, pickupable: bool = True
) -> float:
    """Energy of an object's distance from its goal, in [0, 1] (ai2thor-rearrangement ``pose_difference_energy``).

    1 if broken. For objects that open and cannot be picked up: 1 if ``openness`` (|final - goal|) exceeds 0.2, else 0.
    For the others: half of it falls to 0 as the IoU grows to 0.5, half as the nearest corners approach from 2 m.
    """
    if broken:
        return 1.0
    if openness is not None and not pickupable:
        return float(openness > 0.2)
    overlap = iou(goal, final)
    apart_m = float(EUCLIDEAN.matrix(goal.corners(), final.corners()).min()) if overlap == 0 else 0.0
    return 0.5 * max(1 - overlap / 0.5, 0.0) + 0.5 * min(apart_m / 2.0, 1.0)


def within_goals(final: Any, goals: Any, test: PoseTest = HOUSE_CLEANUP, distance: Distance = EUCLIDEAN) -> list[bool]:
    """Per object, whether its position is near enough to its own goal: house cleanup's test.

    Args:
        final: (N, D) positions.
        goals: (N, D) positions, in the same order of objects.
        test: test with a criterion of translation.
        distance: distance between positions.

    Raises:
        ValueError: different numbers of objects and goals, none, or a position that is not finite.
    """
    objects, places = distance.nodes(final), distance.nodes(goals)
    if len(objects) != len(places):
        raise ValueError(f"{len(objects)} objects have {len(places)} goals")
    apart_m = np.diagonal(distance.matrix(objects, places))
    return [all(test.criteria(translation_m=float(value)).values()) for value in apart_m]
