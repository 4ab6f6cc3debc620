"""The simulated world: the robot's pose, its contacts and the floor under it, computed by MuJoCo.

Poses are in the scene's frame ``map``. Clocks, commands and noise belong to the devices.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import mujoco
import numpy as np

from robot_runtime.common.clock import NS_PER_S, host_now_ns, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import Zone
from robot_runtime.hal.printed_targets import Sheet
from robot_runtime.scenes.occupancy_map import Cell
from sim_bridge.physics.movable_objects import MovableObjects
from sim_bridge.physics.scene_model import SOLID, SceneModel, has_floor

ZONES = tuple(Zone(bits) for bits in range(8))
"""Every combination of bumper zones by its bits; composing flags again costs more than a physics step."""

CENTER_HALF_ANGLE_RAD = math.radians(30)
SIDE_END_RAD = math.radians(90)

BUMPER_S = 0.05
"""Time constant with which the bumper's spring averages forces: hitting a light object does not press it."""

NUDGE_REACH_M, NUDGES = 0.1, 20
"""Greatest distance and number of moves by which :meth:`World.place_near` frees a robot from an obstacle."""

_MIN_PUSH_M_S = 1e-4
"""A velocity into a wall below this one counts as none."""

_MAX_DEPTH_M = 0.003
"""Greatest depth of a sliding body in a wall: a step at most of the base's speeds."""

SUPPORT_CELL_M = 0.01
"""Edge of the cells for which the presence of floor is computed once."""


class Wall(NamedTuple):
    """A fixed obstacle that the body touches.

    Attributes:
        direction: unit vector towards it in ``map``.
        depth_m: depth of the rigid body in it.
    """

    direction: tuple[float, float]
    depth_m: float


class World:
    """The robot in its scene.

    Attributes:
        touching: bits of :class:`Zone` pressed now, an index into :data:`ZONES`.
        blocked: whether the body is held by an obstacle above the bumper alone.
        objects: movable objects; empty unless the model was built for a task that moves objects.
        data: MuJoCo's state, for reading only.
        sheets: printed sheets by name, visible to cameras and without contact; callers may change them at any time.
    """

    def __init__(self, scene_model: SceneModel) -> None:
        self.scene_model = scene_model
        self._physics_ns = 0
        self.touching = 0
        self.blocked = False
        self.sheets: dict[str, Sheet] = {}
        self._geoms = frozenset((scene_model.robot_geom, scene_model.mast_geom))
        self._model = scene_model.model
        self.data = mujoco.MjData(self._model)
        self._position = self.data.qpos[:3]
        self._velocity = self.data.qvel[:3]
        self._control = self.data.ctrl
        self.step_s: float = self._model.opt.timestep
        self.step_ns = seconds_to_ns(self.step_s)
        self._floor: dict[tuple[int, int], bool] = {}
        self._push_n = 0.0
        self._force, self._ends = np.zeros(6), np.zeros(6)
        mujoco.mj_step1(self._model, self.data)
        self.objects = MovableObjects(self._model, self.data, scene_model.movable)
        if self.touches:  # furniture at the map's origin would fling a robot that was not placed yet
            with suppress(InvalidStart):
                self.place(SE2(*scene_model.scene.map.most_open_point(), 0.0))

    @property
    def physics_s(self) -> float:
        """Host seconds spent inside MuJoCo's physics."""
        return self._physics_ns / NS_PER_S

    @property
    def pose(self) -> SE2:
        """base_link in ``map``; the yaw is wrapped."""
        x_m, y_m, yaw_rad = self._position.tolist()
        return SE2(x_m, y_m, wrap_angle(yaw_rad))

    @property
    def velocity(self) -> tuple[float, float]:
        """Forward m/s and counter-clockwise rad/s."""
        vx_m_s, vy_m_s, yaw_rad_s = self._velocity.tolist()
        yaw_rad = self._position.item(2)
        return vx_m_s * math.cos(yaw_rad) + vy_m_s * math.sin(yaw_rad), yaw_rad_s

    @property
    def touches(self) -> bool:
        """Whether the robot's body, its bumper included, touches anything now, at whatever bearing."""
        return bool(self.data.ncon) and any(self._met(pair) >= 0 for pair in self.data.contact.geom.tolist())

    def advance(self, linear_m_s: float, angular_rad_s: float, lateral_m_s: float = 0.0) -> None:
        """Simulate one physics step with the robot driven at a velocity, and update :attr:`touching`.

        Args:
            linear_m_s: forward.
            angular_rad_s: counter-clockwise.
            lateral_m_s: velocity to the left, by slip of the wheels.
        """
        # The heading in the middle of the step makes an arc exact to second order.
        yaw_rad = self._position.item(2) + angular_rad_s * self.step_s / 2
        model, data, control = self._model, self.data, self._control
        cos, sin = math.cos(yaw_rad), math.sin(yaw_rad)
        control[0] = linear_m_s * cos - lateral_m_s * sin
        control[1] = linear_m_s * sin + lateral_m_s * cos
        control[2] = angular_rad_s
        begin_ns = host_now_ns()
        # Split and swapped: contacts are found after the motion, so that a stop on contact loses no step.
        mujoco.mj_step2(model, data)
        if self.objects.by_id:
            self._update_push_force()
        mujoco.mj_step1(model, data)
        self._physics_ns += host_now_ns() - begin_ns
        if data.ncon:
            self._feel()
        else:
            self.touching, self.blocked = 0, False

    def advance_along_walls(self, linear_m_s: float, angular_rad_s: float, lateral_m_s: float) -> int:
        """Simulate one step as :meth:`advance` does, without the part of the velocity that leads into walls.

        The body has no friction. It stays where it is only if the remaining velocity would squeeze it between walls: a
        velocity away from all touched walls always moves it.

        Returns:
            Bits of :class:`Zone` that face the walls into which the velocity leads.
        """
        yaw_rad = self._position.item(2) + angular_rad_s * self.step_s / 2
        cos, sin = math.cos(yaw_rad), math.sin(yaw_rad)
        x_m_s, y_m_s = linear_m_s * cos - lateral_m_s * sin, linear_m_s * sin + lateral_m_s * cos
        walls = self._walls()
        facing = 0
        for x, y in (wall.direction for wall in walls):
            if x_m_s * x + y_m_s * y > _MIN_PUSH_M_S:
                facing |= bumper_bits(wrap_angle(math.atan2(y, x) - yaw_rad))
        x_m_s, y_m_s = along_walls(x_m_s, y_m_s, [wall.direction for wall in walls])
        limit_m = max([_MAX_DEPTH_M, *(wall.depth_m for wall in walls)])
        before = self._position[:2].tolist()
        self.advance(x_m_s * cos + y_m_s * sin, angular_rad_s, y_m_s * cos - x_m_s * sin)
        if any(wall.depth_m > limit_m for wall in self._walls()):
            if not self._free_from_walls(limit_m):
                self._touched_at((*before, self._position.item(2)))
            self._feel()
        return facing

    def _free_from_walls(self, limit_m: float) -> bool:
        """Move the body out of walls in which it is deeper than a limit, and return whether that was possible."""
        for _ in range(NUDGES):
            deepest = max(self._walls(), key=lambda wall: wall.depth_m, default=None)
            if deepest is None or deepest.depth_m <= limit_m:
                return True
            x_m, y_m, yaw_rad = self._position.tolist()
            out_m = deepest.depth_m - limit_m + 1e-6
            self._touched_at((x_m - out_m * deepest.direction[0], y_m - out_m * deepest.direction[1], yaw_rad))
        return False

    def _walls(self) -> list[Wall]:
        """The fixed obstacles that the body touches from the side.

        Depths are distances of the shapes: of several contacts at an edge, MuJoCo reports a face's normal, and 3 mm
        where the body is 25 mm deep.
        """
        found = list[Wall]()
        for own, other in {self._own_first(pair) for pair in self.data.contact.geom.tolist()}:
            if own < 0 or not self._is_fixed(other):
                continue
            gap_m = mujoco.mj_geomDistance(
                self._model, self.data, own, other, self.scene_model.body.radius_m, self._ends
            )
            x0, y0, _, x1, y1, _ = self._ends.tolist()
            x, y = (x0 - x1, y0 - y1) if gap_m < 0 else (x1 - x0, y1 - y0)
            length = math.hypot(x, y)
            if gap_m < 0 and length > 0.5 * -gap_m:
                found.append(Wall((x / length, y / length), -gap_m))
        return found

    def _own_first(self, pair: list[int]) -> tuple[int, int]:
        """The body's geom of a contact and the other one; -1 and -1 if it is not the body's."""
        other = self._met(pair)
        return (pair[0] if other == pair[1] else pair[1], other) if other >= 0 else (-1, -1)

    def _contacts(self) -> Iterator[tuple[int, float, float, float]]:
        """The body's contacts: the other geom, the gap in meters, and the normal towards that geom in the plane."""
        contact = self.data.contact
        normals = contact.frame[:, :2].tolist()
        for pair, gap_m, (x, y) in zip(contact.geom.tolist(), contact.dist.tolist(), normals, strict=True):
            other = self._met(pair)
            if other >= 0:
                sign = 1.0 if pair[1] == other else -1.0  # MuJoCo's normal leads from the first geom to the second
                yield other, gap_m, sign * x, sign * y

    def place(self, pose: SE2) -> None:
        """Place the robot at a pose, standing still.

        Raises:
            InvalidStart: the map is not free or the body would touch something; the robot stays where it was.
        """
        scene = self.scene_model.scene
        row, column = scene.map.to_cell(pose.x_m, pose.y_m)
        inside = scene.map.contains(pose.x_m, pose.y_m)
        here = f"pose ({pose.x_m:.3f}, {pose.y_m:.3f}) in scene {scene.name!r}"
        if not inside or scene.map.cells[row, column] != Cell.FREE:
            what = Cell(scene.map.cells[row, column]).name.lower() if inside else "outside the map"
            raise InvalidStart(f"{here} is not on free floor: the map says {what}", "choose a start on free floor")
        before = self._position.copy()
        touched = self._touched_at((pose.x_m, pose.y_m, pose.yaw_rad))
        if touched:
            self._touched_at(before)
            raise InvalidStart(
                f"{here}: a robot of radius {self.scene_model.body.radius_m} m touches {', '.join(touched)}",
                "choose a start with more room around it",
            )
        self.touching, self.blocked = 0, False
        self._push_n = 0.0

    def place_near(self, pose: SE2) -> SE2:
        """Place the robot at rest at a measured pose, moved out of any obstacle that it overlaps.

        The bumper may be pressed there: actions end at walls, and no measurement is exact.

        Returns:
            The pose at which it stands.

        Raises:
            InvalidStart: it would have to be moved by more than :data:`NUDGE_REACH_M`; it stays somewhere near.
        """
        x_m, y_m = pose.x_m, pose.y_m
        for _ in range(NUDGES):
            self._touched_at((x_m, y_m, pose.yaw_rad))
            inside = [(gap_m, x, y) for _, gap_m, x, y in self._contacts() if gap_m < 0]
            if not inside or math.hypot(x_m - pose.x_m, y_m - pose.y_m) > NUDGE_REACH_M:
                break
            gap_m, x, y = min(inside)
            x_m += gap_m * 1.01 * x
            y_m += gap_m * 1.01 * y
        moved_m = math.hypot(x_m - pose.x_m, y_m - pose.y_m)
        if inside or moved_m > NUDGE_REACH_M:
            name = self.scene_model.scene.name
            raise InvalidStart(
                f"pose ({pose.x_m:.3f}, {pose.y_m:.3f}) in scene {name!r} is inside of something",
                "compare the log's referee and the scene: they must be in one frame (`robot-runtime scene align`)",
            )
        self._push_n = 0.0
        self._feel()
        return SE2(x_m, y_m, pose.yaw_rad)

    def has_floor(self, x_m: float, y_m: float) -> bool:
        """Whether there is floor at a point."""
        cell = (math.floor(x_m / SUPPORT_CELL_M), math.floor(y_m / SUPPORT_CELL_M))
        known = self._floor.get(cell)
        if known is None:
            x_m, y_m = (cell[0] + 0.5) * SUPPORT_CELL_M, (cell[1] + 0.5) * SUPPORT_CELL_M
            begin_ns = host_now_ns()
            known = has_floor(self._model, self.data, SOLID, x_m, y_m)
            self._physics_ns += host_now_ns() - begin_ns
            self._floor[cell] = known
        return known

    def _touched_at(self, position: tuple[float, float, float] | np.ndarray) -> list[str]:
        """Move the robot without any check, at rest, and return the names of the assets that it touches."""
        self._position[:] = position
        self._velocity[:] = 0
        self._control[:] = 0
        self.data.qacc_warmstart[:] = 0  # no warm start from an unrelated pose
        mujoco.mj_step1(self._model, self.data)
        met = (self._met(pair) for pair in self.data.contact.geom.tolist())
        return sorted({self.scene_model.geom_owner[geom] for geom in met if geom >= 0} - {""})

    def _met(self, pair: list[int]) -> int:
        """Return the geom that the robot touches in a contact of two geoms, -1 if it is not the robot's."""
        first, second = pair
        if first in self._geoms:
            return second
        return first if second in self._geoms else -1

    def _feel(self) -> None:
        """Update :attr:`touching` and :attr:`blocked` from the contacts."""
        contact = self.data.contact
        pairs = contact.geom.tolist()
        self.touching = self._zones(contact, pairs)
        mast = self.scene_model.mast_geom
        self.blocked = any(mast in pair for pair in pairs) and self._is_blocked(contact, pairs)

    def _is_blocked(self, contact: Any, pairs: list[list[int]]) -> bool:
        robot, blocked = self.scene_model.robot_geom, False
        for pair, gap_m in zip(pairs, contact.dist.tolist(), strict=True):
            if gap_m <= 0 and (met := self._met(pair)) >= 0 and self._is_fixed(met):
                if robot in pair:
                    return False
                blocked = True
        return blocked

    def _zones(self, contact: Any, pairs: list[list[int]]) -> int:
        # A contact presses the bumper if it is with a fixed obstacle, or with an object that resists.
        robot, bits = self.scene_model.robot_geom, 0
        # Without objects, every obstacle is fixed.
        pushes = not self.objects.by_id or self._push_n > self.scene_model.body.bumper_force_n
        positions: list[list[float]] | None = None
        for number, pair in enumerate(pairs):
            if robot in pair and (pushes or self._is_fixed(self._met(pair))):
                if positions is None:
                    x_m, y_m, yaw_rad = self._position.tolist()
                    positions = contact.pos.tolist()
                contact_x_m, contact_y_m, _ = positions[number]
                bits |= bumper_bits(wrap_angle(math.atan2(contact_y_m - y_m, contact_x_m - x_m) - yaw_rad))
        return bits

    def _is_fixed(self, geom: int) -> bool:
        return not self.objects.by_id or self.objects.of_geom(geom) is None

    def _update_push_force(self) -> None:
        """Update the force in newtons with which the robot pushes objects, averaged over :data:`BUMPER_S`."""
        robot, now_n = self.scene_model.robot_geom, 0.0
        for number, pair in enumerate(self.data.contact.geom.tolist()):
            if robot in pair and self.objects.of_geom(self._met(pair)) is not None:
                mujoco.mj_contactForce(self._model, self.data, number, self._force)
                now_n += float(self._force[0])
        self._push_n += (now_n - self._push_n) * self.step_s / BUMPER_S


def along_walls(x_m_s: float, y_m_s: float, walls: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The part of a velocity that leads into none of the walls: the nearest such velocity.

    Args:
        x_m_s: velocity in ``map``.
        y_m_s: velocity in ``map``.
        walls: unit vectors towards the touched walls.
    """
    along = [(x_m_s, y_m_s)]
    for x, y in walls:
        into_m_s = x_m_s * x + y_m_s * y
        along.append((x_m_s - into_m_s * x, y_m_s - into_m_s * y))
    for x_m_s, y_m_s in (along[0], *sorted(along[1:], key=lambda velocity: -math.hypot(*velocity))):
        if all(x_m_s * x + y_m_s * y <= _MIN_PUSH_M_S for x, y in walls):
            return x_m_s, y_m_s
    return 0.0, 0.0


def bumper_bits(bearing_rad: float) -> int:
    """Bits of the :class:`Zone` pressed by a contact at that bearing (left positive); 0 behind the bumper."""
    if abs(bearing_rad) <= CENTER_HALF_ANGLE_RAD:
        return 2
    if abs(bearing_rad) <= SIDE_END_RAD:
        return 1 if bearing_rad > 0 else 4
    return 0
