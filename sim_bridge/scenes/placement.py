"""Placing furniture in a room without blocking it.

A :class:`RoomPlanner` accepts a piece only where it stands clear of the walls, of the doors, of windows that it would
hide and of other furniture, and where a robot can still reach the entire room.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import shapely
from scipy import ndimage

from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from sim_bridge.scenes.furniture import Model
from sim_bridge.scenes.layout import SIDES, PlanRoom, Rect, Side
from sim_bridge.scenes.raster import Grid, mark_outline, slice_hull
from sim_bridge.scenes.shapes import Points, corners

ROBOT_RADIUS_M = 0.18
LANE_RADIUS_M = 0.27
"""Half of the width of a lane that a policy follows comfortably."""

WALL_GAP_M = 0.02  # leaves room for the baseboard
SPACING_M = 0.04
DOOR_DEPTH_M = 0.75

_ROBOT_BAND_M = (0.03, 0.9)
_LANE_SHARE = 0.85
_GRID_M = 0.025  # of the scene's map, so that what is passable here is passable there
_DOORWAY_M = 0.3
_TRIES = 20
_FACING: dict[Side, float] = {"north": 0.0, "south": 180.0, "west": 90.0, "east": 270.0}


@dataclass(eq=False)
class Placed:
    """A model at its place."""

    model: Model
    x: float
    y: float
    z: float
    yaw_deg: float
    side: Side | None = None
    on: Placed | None = None
    rect: Rect = field(init=False)

    def __post_init__(self) -> None:
        self.rect = footprint(self.model, self.yaw_deg).moved(self.x, self.y)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the model's frame in ``map``."""
        c, s = math.cos(math.radians(self.yaw_deg)), math.sin(math.radians(self.yaw_deg))
        return self.x + c * x - s * y, self.y + s * x + c * y

    @property
    def top(self) -> float:
        """Height of its upper end."""
        return self.z + float(self.model.design.bounds[1][2])

    @property
    def bottom(self) -> float:
        """Height of its lower end."""
        return self.z + float(self.model.design.bounds[0][2])

    @property
    def along(self) -> float:
        """Its middle along the wall that it stands against."""
        return self.rect.center[0 if self.side in ("north", "south") else 1]

    def matrix(self) -> Points:
        """Pose of the model's frame in ``map``, float64 (4, 4)."""
        c, s = math.cos(math.radians(self.yaw_deg)), math.sin(math.radians(self.yaw_deg))
        return np.array([[c, -s, 0, self.x], [s, c, 0, self.y], [0, 0, 1, self.z], [0, 0, 0, 1.0]])

    def outlines(self) -> Iterator[Points]:
        """Corners (K, 2) of each contact shape's shadow in the height band of the robot."""
        matrix = self.matrix()
        for shape in self.model.design.collision:
            points = corners(Path(), shape) @ matrix[:3, :3].T + matrix[:3, 3]
            shadow = slice_hull(points, *_ROBOT_BAND_M)
            if len(shadow):
                yield shapely.get_coordinates(shapely.MultiPoint(shadow).convex_hull)


def footprint(model: Model, yaw_deg: float) -> Rect:
    """The extent on the floor of a model turned about its origin."""
    (x0, y0, _), (x1, y1, _) = (bound.tolist() for bound in model.design.bounds)
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    xs, ys = zip(*[(c * x - s * y, s * x + c * y) for x in (x0, x1) for y in (y0, y1)], strict=True)
    return Rect(min(xs), min(ys), max(xs), max(ys))


class RoomPlanner:
    """One room and what has been placed in it.

    Attributes:
        room: The empty room.
        rng: Source of everything random.
        keep_free: Floor in front of pieces that other furniture stays off.
    """

    def __init__(self, room: PlanRoom, rng: random.Random) -> None:
        self.room, self.rng = room, rng
        self.placed: list[Placed] = []
        self.keep_free: list[Rect] = []
        floor = room.floor
        self._door_zones = [floor.strip(d.side, d.start - 0.06, d.end + 0.06, DOOR_DEPTH_M) for d in room.doors]
        self._grid = Grid.around(np.array([floor.x0, floor.y0]), np.array([floor.x1, floor.y1]), _GRID_M, _DOORWAY_M)
        self._blocked = np.ones((self._grid.rows, self._grid.columns), bool)
        self._blocked[self._cells(floor)] = False
        for door in room.doors:
            stub = floor.strip(door.side, door.start, door.end, -_DOORWAY_M)
            seam = floor.strip(door.side, door.start, door.end, 2 * _GRID_M)
            whole = Rect(min(stub.x0, seam.x0), min(stub.y0, seam.y0), max(stub.x1, seam.x1), max(stub.y1, seam.y1))
            self._blocked[self._cells(whole)] = False

    def has(self, category: str) -> bool:
        """Whether a piece of that category is in the room."""
        return any(item.model.category == category for item in self.placed)

    # --- on the floor -----------------------------------------------------------------------------------------------

    def against_wall(
        self,
        model: Model,
        sides: Iterable[Side] | None = None,
        *,
        corner: bool = False,
        center: float | None = None,
        front_m: float = 0.0,
        spacing_m: float = SPACING_M,
    ) -> Placed | None:
        """Stand a model with its back to a wall.

        Args:
            model: The piece.
            sides: Walls to try, in order; all of them in random order by default.
            corner: Whether to try the corners first.
            center: Position of its middle along the wall; random by default.
            front_m: Depth of the floor in front to keep free.
            spacing_m: Distance to other furniture.

        Returns:
            None if there is no place.
        """
        for side in sides if sides is not None else self.rng.sample(SIDES, 4):
            turned = footprint(model, _FACING[side])
            across = side in ("south", "north")
            length, depth = (turned.width, turned.depth) if across else (turned.depth, turned.width)
            start, end = self.room.floor.along(side)
            low, high = start + WALL_GAP_M, end - WALL_GAP_M - length
            if high < low:
                continue
            for attempt in range(_TRIES if center is None else 1):
                at = (low, high)[attempt % 2] if corner and attempt < 2 else self.rng.uniform(low, high)
                if center is not None:
                    at = min(max(center - length / 2, low), high)
                strip = self.room.floor.strip(side, at, at + length, depth + WALL_GAP_M)
                x = (strip.x0 if side != "west" else strip.x0 + WALL_GAP_M) - turned.x0
                y = (strip.y0 if side != "south" else strip.y0 + WALL_GAP_M) - turned.y0
                spot = self.stand(model, x, y, _FACING[side], side=side, spacing_m=spacing_m, front_m=front_m)
                if spot is not None:
                    return spot
        return None

    def row(self, models: Sequence[Model]) -> bool:
        """Stand models side by side along a wall, all or none."""
        length = sum(footprint(model, 0.0).width for model in models) + 0.003 * len(models)
        for side in self.rng.sample(SIDES, 4):
            start, end = self.room.floor.along(side)
            for attempt in range(_TRIES if end - start > length + 2 * WALL_GAP_M else 0):
                low, high = start + WALL_GAP_M, end - WALL_GAP_M - length
                at = (low, high)[attempt] if attempt < 2 else self.rng.uniform(low, high)
                before = len(self.placed), self._blocked.copy()
                for model in self.rng.sample(models, len(models)):
                    width = footprint(model, 0.0).width
                    if self.against_wall(model, [side], center=at + width / 2, spacing_m=0.0) is None:
                        break
                    at += width + 0.003
                else:
                    return True
                del self.placed[before[0] :]
                self._blocked = before[1]
        return False

    def near_middle(self, model: Model) -> Placed | None:
        """Stand a model freely, near the middle of the room; None if there is no place."""
        floor, (x, y) = self.room.floor, self.room.floor.center
        for attempt in range(2 * _TRIES):
            reach = 0.25 + 0.75 * attempt / (2 * _TRIES)
            dx, dy = (
                self.rng.uniform(-0.5, 0.5) * reach * floor.width,
                self.rng.uniform(-0.5, 0.5) * reach * floor.depth,
            )
            spot = self.stand(model, x + dx, y + dy, self.rng.choice((0.0, 90.0, 180.0, 270.0)))
            if spot is not None:
                return spot
        return None

    def rug(self, model: Model, x: float, y: float, yaw_deg: float) -> Placed | None:
        """Lay a rug at a point, moved inside the room; None if it is too large or would lie across another."""
        free, turned = self.room.floor.grown(-0.06), footprint(model, yaw_deg)
        if turned.width > free.width or turned.depth > free.depth:
            return None
        x = min(max(x, free.x0 - turned.x0), free.x1 - turned.x1)
        y = min(max(y, free.y0 - turned.y0), free.y1 - turned.y1)
        spot = Placed(model, round(x, 3), round(y, 3), 0.0, yaw_deg)
        if any(other.model.category == "rug" and other.rect.overlaps(spot.rect) for other in self.placed):
            return None
        return self._keep(spot)

    def stand(
        self,
        model: Model,
        x: float,
        y: float,
        yaw_deg: float,
        *,
        side: Side | None = None,
        spacing_m: float = SPACING_M,
        front_m: float = 0.0,
        beside: Placed | None = None,
    ) -> Placed | None:
        """Stand a model at a given pose.

        Args:
            model: The piece.
            x: Of its frame.
            y: Of its frame.
            yaw_deg: Of its frame.
            side: Wall that it stands against.
            spacing_m: Distance to other furniture.
            front_m: Depth of the floor in front to keep free.
            beside: Furniture that it belongs to: it may touch that, and stand on the floor that is kept free.

        Returns:
            None if it does not fit there.
        """
        spot = Placed(model, round(x, 3), round(y, 3), max(0.0, -float(model.design.bounds[0][2])), yaw_deg, side)
        rect, floor = spot.rect, self.room.floor
        blocked = self._door_zones + (self.keep_free if beside is None else [])
        if not floor.grown(-WALL_GAP_M + 2e-3).contains(rect) or any(rect.overlaps(zone) for zone in blocked):
            return None
        front = floor.strip(side, *rect.along(side), front_m + _depth(rect, side)) if side and front_m else None
        for other in self.placed:
            # A round table's chairs may overlap it, and touch each other's corners.
            free = other is beside or other.on is not None or not other.model.design.solid or other.bottom >= spot.top
            if not free and (rect.grown(spacing_m).overlaps(other.rect) or (front and front.overlaps(other.rect))):
                return None
        for window in self.room.windows:
            zone = floor.strip(window.side, window.start, window.end, 0.3)
            if spot.top > window.bottom and rect.overlaps(zone):
                return None
        if not self._stays_passable(spot):
            return None
        if front is not None:
            self.keep_free.append(front)
        return self._keep(spot)

    def _keep(self, spot: Placed) -> Placed:
        self.placed.append(spot)
        for outline in spot.outlines():
            mark_outline(self._blocked, self._grid, outline)
        return spot

    def _stays_passable(self, spot: Placed) -> bool:
        """Whether a robot can still reach the entire room once the piece is in it.

        Its free space must be one piece, and most of the space in which a comfortable lane fits one that reaches every
        door.
        """
        blocked = self._blocked.copy()
        for outline in spot.outlines():
            mark_outline(blocked, self._grid, outline)
        cells = np.where(blocked, np.uint8(Cell.OCCUPIED), np.uint8(Cell.FREE))
        clearance = OccupancyMap(cells, _GRID_M, self._grid.origin_x_m, self._grid.origin_y_m).clearance_m()
        if ndimage.label(clearance >= ROBOT_RADIUS_M)[1] != 1:
            return False
        lanes, count = ndimage.label(clearance >= LANE_RADIUS_M)
        sizes = np.bincount(lanes.ravel(), minlength=count + 1)[1:]
        if not count or sizes.max() < _LANE_SHARE * sizes.sum():
            return False
        main = lanes == 1 + sizes.argmax()
        return all(bool(main[self._cells(zone)].any()) for zone in self._door_zones)

    def _cells(self, rect: Rect) -> tuple[slice, slice]:
        """The cells that lie wholly in a rectangle."""
        x0, x1 = ((x - self._grid.origin_x_m) / _GRID_M for x in (rect.x0, rect.x1))
        y0, y1 = ((y - self._grid.origin_y_m) / _GRID_M for y in (rect.y0, rect.y1))
        return (
            slice(max(0, math.ceil(y0 - 1e-6)), max(0, math.floor(y1 + 1e-6))),
            slice(max(0, math.ceil(x0 - 1e-6)), max(0, math.floor(x1 + 1e-6))),
        )

    # --- on furniture, walls and the ceiling ------------------------------------------------------------------------

    def on(
        self, model: Model, base: Placed, turn_deg: float | None = None, at: tuple[float, float] | None = None
    ) -> Placed | None:
        """Put a small thing on a support of ``base``.

        Args:
            model: The thing.
            base: Furniture with supports.
            turn_deg: Relative to the base; random within 25 degrees by default.
            at: Fractions of the support's width and depth; by default at random in its front half.

        Returns:
            None if no support has room.
        """
        for support in base.model.design.supports:
            for _ in range(2 * _TRIES if at is None else 1):
                turn = self.rng.uniform(-25.0, 25.0) if turn_deg is None else turn_deg
                u, v = at or (self.rng.random(), 0.6 * self.rng.random())
                spot = self._rest(model, base, support, turn, u, v)
                if spot is not None:
                    return self._keep(spot)
        return None

    def _rest(
        self, model: Model, base: Placed, support: tuple[float, ...], turn_deg: float, u: float, v: float
    ) -> Placed | None:
        x0, y0, x1, y1, z, *free = support
        local, (low, high) = footprint(model, turn_deg), model.design.bounds
        spare_x, spare_y = x1 - x0 - local.width, y1 - y0 - local.depth
        if spare_x < -0.12 or spare_y < -0.08 or high[2] - low[2] > (free[0] if free else 1.0) - 0.01:
            return None
        # A thing larger than the support's safe part stands over its margin, in the middle.
        left, near = x0 + spare_x * (u if spare_x > 0 else 0.5), y0 + spare_y * (v if spare_y > 0 else 0.5)
        x, y = base.point(left - local.x0, near - local.y0)
        z, yaw = round(base.z + z - float(low[2]), 4), round((base.yaw_deg + turn_deg) % 360.0, 1)
        spot = Placed(model, round(x, 3), round(y, 3), z, yaw, base.side, base)
        if not self.room.floor.contains(spot.rect):
            return None
        for other in self.placed:
            apart = other.bottom >= spot.top or other.top <= spot.bottom + 1e-3
            if other is not base and not apart and spot.rect.grown(0.02).overlaps(other.rect):
                return None
        return spot

    def hung(
        self, model: Model, z: float, sides: Iterable[Side] | None = None, *, center: float | None = None
    ) -> Placed | None:
        """Hang a model on a wall with its lower edge at ``z``, clear of doors, windows and furniture before it.

        Args:
            model: The piece.
            z: Height of its lower edge.
            sides: Walls to try, in order; all of them in random order by default.
            center: Position of its middle along the wall; random by default.

        Returns:
            None if there is no place.
        """
        margin_m = 0.1 if center is None else 0.0
        for side in sides if sides is not None else self.rng.sample(SIDES, 4):
            turned = footprint(model, _FACING[side])
            across = side in ("south", "north")
            length, depth = (turned.width, turned.depth) if across else (turned.depth, turned.width)
            start, end = self.room.floor.along(side)
            low, high = start + margin_m, end - margin_m - length
            for _ in range(_TRIES // 2 if center is None else 1):
                at = self.rng.uniform(low, high) if center is None else center - length / 2
                if not low - 1e-6 <= at <= high + 1e-6:
                    break
                strip = self.room.floor.strip(side, at, at + length, depth)
                x, y = round(strip.x0 - turned.x0, 3), round(strip.y0 - turned.y0, 3)
                spot = Placed(model, x, y, round(z - float(model.design.bounds[0][2]), 4), _FACING[side], side)
                if self._wall_is_free(spot, margin_m):
                    return self._keep(spot)
        return None

    def _wall_is_free(self, spot: Placed, margin_m: float) -> bool:
        wide = spot.rect.grown(margin_m)
        low, high = spot.bottom - 0.03, spot.top + 0.03
        zones = [
            (self.room.floor.strip(o.side, o.start, o.end, 0.3), o.bottom, o.top)
            for o in (*self.room.doors, *self.room.windows)
        ] + [(other.rect, other.bottom, other.top) for other in self.placed if other.model.design.solid]
        return not any(top > low and bottom < high and wide.overlaps(rect) for rect, bottom, top in zones)

    def from_ceiling(self, model: Model, ceiling_m: float) -> Placed:
        """Fix a lamp to the middle of the ceiling."""
        x, y = self.room.floor.center
        return self._keep(
            Placed(model, round(x, 3), round(y, 3), round(ceiling_m - float(model.design.bounds[1][2]), 4), 0.0)
        )


def _depth(rect: Rect, side: Side) -> float:
    return (rect.depth if side in ("south", "north") else rect.width) + WALL_GAP_M
