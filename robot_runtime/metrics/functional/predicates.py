"""Spatial predicates of evaluation programs, and the evaluation of a program's targets.

An object is its oriented box, in any orientation; z points up. Surfaces and hollows inside a box are unknown: a
cushion on the seat of a sofa with a back is ``inside`` the sofa's box, not ``on`` it. Every threshold is inclusive but
that of the IoU, which is the metric's own (Batra et al. 2020, A.4).

===========  ==========================================================================================================
``on``       The vertical line through A's center meets B, and the least vertical gap between A's underside and B's
             upper side, over all places where both are, is between ``-gap_m`` and ``gap_m``.
``inside``   ``min_fraction`` or more of A's volume is in B.
``next_to``  The shortest distance between A and B is ``within_m`` or less, and neither is on or inside the other.
``at`` pose  A's center is within ``within_m`` of the position, its orientation within ``within_deg``, and its box
             overlaps with the one that it would have there by an IoU over ``min_iou``: as far as they are stated.
``at`` box   ``min_fraction`` or more of A's volume is in the box.
region,      A's center is above the polygon, or the room's polygon.
room
===========  ==========================================================================================================

No predicate holds of an object that the robot still carries. Gap and distance are exact (a linear and a bounded
quadratic program), also for inclined boxes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from scipy.optimize import linprog, lsq_linear

from robot_runtime.errors import EpisodeError, RecordingError
from robot_runtime.metrics.functional.boxes import Box, intersection_volume, iou
from robot_runtime.metrics.functional.rearrangement import angle_between, pose_box
from robot_runtime.scenes.scene import Room
from robot_runtime.tasks.goal_program import Combined, Expression, Placed, Related, Selection

GAP_M = 0.03
"""Tolerance of ``on``: errors of trackers, and penetration in simulation."""

MIN_FRACTION = 0.5
"""Volume fraction for ``inside`` and ``at`` a box. Boxes have no hollow: much of an apple is outside its bowl's box."""

NEXT_TO_M = 0.3

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Arrangement:
    """Poses of all objects.

    Attributes:
        boxes: boxes of all objects with a known place, by object id.
        categories: categories of the objects, by object id.
        quaternions: orientation (w, x, y, z) of those objects that a program may test for an angle.
        held: ids of the objects that the robot carries.
        rooms: rooms of the scene.
    """

    boxes: Mapping[str, Box]
    categories: Mapping[str, str]
    quaternions: Mapping[str, Sequence[float]] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    rooms: Sequence[Room] = ()


def is_on(a: Box, b: Box, gap_m: float = GAP_M) -> bool:
    """Whether ``a`` rests on ``b``, as defined above."""
    return _is_over(a, b) and abs(vertical_gap_m(a, b)) <= gap_m


def is_inside(a: Box, b: Box, min_fraction: float = MIN_FRACTION) -> bool:
    """Whether at least a fraction of the volume of ``a`` is in ``b``."""
    return intersection_volume(a, b) >= (min_fraction - _ROUNDING) * a.volume


def is_next_to(a: Box, b: Box, within_m: float = NEXT_TO_M) -> bool:
    """Whether ``a`` is next to ``b``, as defined above; ``b`` is then next to ``a``."""
    if distance_m(a, b) > within_m:
        return False
    return not (is_on(a, b) or is_on(b, a) or is_inside(a, b) or is_inside(b, a))


def vertical_gap_m(a: Box, b: Box) -> float:
    """Vertical distance from ``a`` down to ``b``: negative if they overlap; inf if ``a`` is not above ``b``.

    The minimum of z(p) - z(q) over points p of ``a`` and q of ``b`` with the same x and y.
    """
    edges_a, edges_b = a.rotation * a.size / 2, b.rotation * b.size / 2
    both = np.hstack([edges_a, -edges_b])
    apart = a.center - b.center
    found = linprog(both[2], A_eq=both[:2], b_eq=-apart[:2], bounds=(-1, 1))
    return float(apart[2] + found.fun) if found.success else math.inf


def distance_m(a: Box, b: Box) -> float:
    """The shortest distance between two boxes; 0 if they touch or overlap."""
    both = np.hstack([a.rotation * a.size / 2, -b.rotation * b.size / 2])
    nearest = lsq_linear(both, b.center - a.center, bounds=(-1, 1), method="bvls", tol=1e-14)
    return float(np.linalg.norm(both @ nearest.x + a.center - b.center))


def holds(expression: Expression, arrangement: Arrangement, where: str = "program") -> bool:
    """Whether a target is met.

    Raises:
        EpisodeError: the target names an object, a category or a room that does not exist.
        RecordingError: the pose of an object that it names is unknown.
    """
    if isinstance(expression, Combined):
        count = sum(holds(part, arrangement, where) for part in expression.parts)
        return count >= expression.at_least and (expression.at_most is None or count <= expression.at_most)
    subjects = _members(expression.subject, arrangement, where)
    if isinstance(expression, Placed):
        met = [_is_at(expression, name, arrangement, where) for name in subjects]
    else:
        references = _members(expression.reference, arrangement, where)
        met = [_is_related(expression, name, references, arrangement, where) for name in subjects]
    return _enough(expression.subject, met)


def _is_related(
    expression: Related, subject: str, references: Sequence[str], arrangement: Arrangement, where: str
) -> bool:
    test = {"on": is_on, "inside": is_inside, "next_to": is_next_to}[expression.relation]
    others = [name for name in references if name != subject]
    if not others:
        _fail(f"{where}: object {subject!r} is related to itself only", "name another object")
    met = []
    for name in others:
        a, b = _box(subject, arrangement, where), _box(name, arrangement, where)
        met.append(a is not None and b is not None and test(a, b, *expression.constants.values()))
    return _enough(expression.reference, met)


def _is_at(expression: Placed, name: str, arrangement: Arrangement, where: str) -> bool:
    box = _box(name, arrangement, where)
    if expression.room is not None:
        rooms = _rooms(expression.room, arrangement, where)
        return box is not None and any(room.contains(*_xy(box)) for room in rooms)
    if box is None:
        return False
    if expression.region is not None:
        return Room("region", "region", expression.region).contains(*_xy(box))
    if expression.box is not None:
        center, size, yaw_rad = expression.box
        return is_inside(box, Box.upright(center, size, yaw_rad), *expression.constants.values())
    return _is_posed(expression, name, box, arrangement, where)


def _is_posed(expression: Placed, name: str, box: Box, arrangement: Arrangement, where: str) -> bool:
    pose, constants = expression.pose, expression.constants
    assert pose is not None
    goal = pose_box(pose, box.size)
    if np.linalg.norm(box.center - goal.center) > constants.get("within_m", math.inf):
        return False
    if "within_deg" in constants:
        if name not in arrangement.quaternions:
            _unknown_pose(name, "orientation", where)
        off_rad = angle_between(arrangement.quaternions[name], pose.quaternion)
        if math.degrees(off_rad) > constants["within_deg"]:
            return False
    return "min_iou" not in constants or iou(box, goal) > constants["min_iou"]


def _members(selection: Selection, arrangement: Arrangement, where: str) -> list[str]:
    """The selected objects, in the order of their ids."""
    known = arrangement.categories
    if selection.id is not None:
        if selection.id not in known:
            _fail(f"{where}: there is no object {selection.id!r}", "name an object of the scene or of the episode")
        return [selection.id]
    found = sorted(name for name, category in known.items() if category == selection.category)
    if not found:
        categories = ", ".join(sorted(set(known.values())))
        _fail(f"{where}: there is no object of category {selection.category!r}", f"use one of: {categories}")
    return found


def _enough(selection: Selection, met: Sequence[bool]) -> bool:
    if selection.at_least is None and selection.at_most is None:
        return all(met)
    count = sum(met)
    return count >= (selection.at_least or 0) and (selection.at_most is None or count <= selection.at_most)


def _rooms(name: str, arrangement: Arrangement, where: str) -> list[Room]:
    found = [room for room in arrangement.rooms if room.id == name]
    found = found or [room for room in arrangement.rooms if room.category == name]
    if not found:
        known = ", ".join(room.id for room in arrangement.rooms) or "none"
        _fail(f"{where}: there is no room {name!r}", f"name a room or a category of rooms; the scene has: {known}")
    return found


def _box(name: str, arrangement: Arrangement, where: str) -> Box | None:
    """Box of an object; None if the robot carries it. Raises ``RecordingError`` if its pose is unknown."""
    if name in arrangement.held:
        return None
    if name not in arrangement.boxes:
        _unknown_pose(name, "pose", where)
    return arrangement.boxes[name]


def _is_over(a: Box, b: Box) -> bool:
    """Whether the vertical line through the center of ``a`` meets ``b``: clipped against its three slabs."""
    origin, direction = b.rotation.T @ (a.center - b.center), b.rotation[2]
    low, high = -math.inf, math.inf
    for at, along, half in zip(origin, direction, b.size / 2, strict=True):
        if abs(along) < 1e-12:
            if abs(at) > half:
                return False
            continue
        ends = sorted(((-half - at) / along, (half - at) / along))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low <= high


def _xy(box: Box) -> tuple[float, float]:
    return float(box.center[0]), float(box.center[1])


def _unknown_pose(name: str, what: str, where: str) -> NoReturn:
    raise RecordingError(
        f"{where}: the {what} of object {name!r} at the end is not known",
        "follow it with a tracker, or add it with `robot-runtime verdict --objects`",
    )


def _fail(problem: str, remedy: str) -> NoReturn:
    raise EpisodeError(problem, remedy)
