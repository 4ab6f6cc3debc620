"""Putting furniture into a room without blocking it.

A :class:`RoomPlanner` accepts a piece only where it stands clear of the walls, of the doors' swing, of windows that it
would hide and of other furniture, and where a robot can still go everywhere between the pieces.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sim_bridge.scenes.furniture.kit import Model, Support
from sim_bridge.scenes.layout import PlanRoom
from sim_bridge.scenes.passage import Passage
from sim_bridge.scenes.rect import SIDES, Rect, Side
from sim_bridge.scenes.shapes import Points, corners

WALL_GAP_M = 0.02  # leaves room for the baseboard
SPACING_M = 0.04
DOOR_DEPTH_M = 0.75
_TRIES = 40
_FACING: dict[Side, float] = {"north": 0.0, "south": 180.0, "west": 90.0, "east": 270.0}


@dataclass(eq=False)
class Placed:
    """A model at its place.

    Attributes:
        x, y, z, yaw_deg: pose of the model's frame in ``map``. rect: its extent on the floor.
        side: the wall that it stands against or hangs on. on: what it stands on.
    """

    model: Model
    x: float
    y: float
    z: float
    yaw_deg: float
    rect: Rect
    room: str
    side: Side | None = None
    on: Placed | None = None

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the model's frame in ``map``."""
        c, s = math.cos(math.radians(self.yaw_deg)), math.sin(math.radians(self.yaw_deg))
        return self.x + c * x - s * y, self.y + s * x + c * y

    @property
    def top(self) -> float:
        return self.z + float(self.model.bounds[1][2])

    @property
    def bottom(self) -> float:
        return self.z + float(self.model.bounds[0][2])


def footprint(model: Model, yaw_deg: float) -> Rect:
    """The extent on the floor of a model turned about its origin."""
    (x0, y0, _), (x1, y1, _) = (bound.tolist() for bound in model.bounds)
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    corners = [(c * x - s * y, s * x + c * y) for x in (x0, x1) for y in (y0, y1)]
    xs, ys = zip(*corners, strict=True)
    return Rect(min(xs), min(ys), max(xs), max(ys))


def _shifted(rect: Rect, x: float, y: float) -> Rect:
    return Rect(rect.x0 + x, rect.y0 + y, rect.x1 + x, rect.y1 + y)


@dataclass
class RoomPlanner:
    """One room and what has been put into it.

    Attributes:
        with_desk: whether the flat's workplace belongs in this room.
        keep_free: floor in front of cupboards and beds that other furniture stays off.
    """

    room: PlanRoom
    rng: random.Random
    ceiling_m: float
    with_desk: bool = False
    placed: list[Placed] = field(default_factory=list)
    keep_free: list[Rect] = field(default_factory=list)

    def __post_init__(self) -> None:
        floor = self.room.floor
        self._door_zones = [floor.strip(d.side, d.start - 0.06, d.end + 0.06, DOOR_DEPTH_M) for d in self.room.doors]
        self._passage = Passage(floor, self.room.doors, self._door_zones)

    # --- on the floor ---------------------------------------------------------------------------------------------

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
        """Stand a model with its back to a wall; None if there is no place.

        Args:
            sides: walls to try, in order; all of them in random order by default. corner: push it into a corner.
            center: where along the wall its middle shall be. front_m: floor to keep free before it.
        """
        choices = list(sides) if sides is not None else self.rng.sample(SIDES, 4)
        for side in choices:
            turned = footprint(model, _FACING[side])
            start, end = self.room.floor.along(side)
            length = turned.width if side in ("south", "north") else turned.depth
            low, high = start + WALL_GAP_M, end - WALL_GAP_M - length
            if high < low:
                continue
            for attempt in range(1 if center is not None else _TRIES // 2):
                if center is not None:
                    at = min(max(center - length / 2, low), high)
                elif corner:
                    at = (low, high)[attempt % 2] if attempt < 2 else self.rng.uniform(low, high)
                else:
                    at = self.rng.uniform(low, high)
                depth = turned.depth if side in ("south", "north") else turned.width
                target = self.room.floor.strip(side, at, at + length, depth + WALL_GAP_M)
                x = target.x0 - turned.x0 if side != "west" else target.x0 + WALL_GAP_M - turned.x0
                y = target.y0 - turned.y0 if side != "south" else target.y0 + WALL_GAP_M - turned.y0
                spot = self._stand(model, x, y, _FACING[side], side=side, spacing_m=spacing_m, front_m=front_m)
                if spot is not None:
                    return spot
        return None

    def standing(
        self,
        model: Model,
        x: float,
        y: float,
        yaw_deg: float,
        *,
        spacing_m: float = SPACING_M,
        may_touch: Sequence[Placed] = (),
    ) -> Placed | None:
        """Stand a model at a given pose; None if it does not fit there."""
        return self._stand(model, x, y, yaw_deg, spacing_m=spacing_m, may_touch=may_touch, mind_keep_free=False)

    def anywhere(self, model: Model, *, near_middle: bool = False, yaw_deg: float | None = None) -> Placed | None:
        """Stand a model freely in the room; None if there is no place."""
        floor = self.room.floor.grown(-0.1)
        middle = self.room.floor.center
        for attempt in range(_TRIES):
            yaw = yaw_deg if yaw_deg is not None else self.rng.choice((0.0, 90.0, 180.0, 270.0))
            if near_middle:
                reach = 0.25 + 0.75 * attempt / _TRIES
                x = middle[0] + self.rng.uniform(-0.5, 0.5) * reach * floor.width
                y = middle[1] + self.rng.uniform(-0.5, 0.5) * reach * floor.depth
            else:
                x, y = self.rng.uniform(floor.x0, floor.x1), self.rng.uniform(floor.y0, floor.y1)
            spot = self._stand(model, x, y, yaw)
            if spot is not None:
                return spot
        return None

    def rug(self, model: Model, x: float, y: float, yaw_deg: float) -> Placed | None:
        """Lay a rug under whatever stands there, moved inside the room; None if it is larger than the room or would
        lie across another rug."""
        free = self.room.floor.grown(-0.06)
        turned = footprint(model, yaw_deg)
        if turned.width > free.width or turned.depth > free.depth:
            return None
        x = min(max(x, free.x0 - turned.x0), free.x1 - turned.x1)
        y = min(max(y, free.y0 - turned.y0), free.y1 - turned.y1)
        rect = _shifted(turned, x, y)
        if any(other.model.category == "rug" and other.rect.overlaps(rect) for other in self.placed):
            return None
        return self._keep(Placed(model, x, y, 0.0, yaw_deg, rect, self.room.id))

    def _stand(
        self,
        model: Model,
        x: float,
        y: float,
        yaw_deg: float,
        *,
        side: Side | None = None,
        spacing_m: float = SPACING_M,
        front_m: float = 0.0,
        may_touch: Sequence[Placed] = (),
        mind_keep_free: bool = True,
    ) -> Placed | None:
        x, y = round(x, 3), round(y, 3)
        rect = _shifted(footprint(model, yaw_deg), x, y)
        spot = Placed(model, x, y, max(0.0, -float(model.bounds[0][2])), yaw_deg, rect, self.room.id, side)
        blocked = list(self._door_zones) + (self.keep_free if mind_keep_free else [])
        if not self.room.floor.grown(-WALL_GAP_M + 2e-3).contains(rect) or any(rect.overlaps(zone) for zone in blocked):
            return None
        front = _front_strip(spot, front_m)
        for other in self.placed:
            if other in may_touch or other.model.category == "rug" or other.on is not None or other.bottom >= spot.top:
                continue
            if rect.grown(spacing_m).overlaps(other.rect) or (front_m > 0 and front.overlaps(other.rect)):
                return None
        if self._hides_window(spot) or not self._passage.stays_open(_contact_corners(spot)):
            return None
        if front_m > 0:
            self.keep_free.append(front)
        return self._keep(spot)

    def _keep(self, spot: Placed) -> Placed:
        self.placed.append(spot)
        self._passage.block(_contact_corners(spot))
        return spot

    def remove(self, spot: Placed) -> None:
        """Take a piece out again."""
        self.placed.remove(spot)
        self._passage.clear()
        for item in self.placed:
            self._passage.block(_contact_corners(item))

    def _hides_window(self, spot: Placed) -> bool:
        return any(
            spot.top > w.bottom and spot.rect.overlaps(self.room.floor.strip(w.side, w.start, w.end, 0.3))
            for w in self.room.windows
        )

    # --- on furniture and on walls --------------------------------------------------------------------------------

    def on(
        self, model: Model, base: Placed, *, yaw_deg: float | None = None, at: tuple[float, float] | None = None
    ) -> Placed | None:
        """Put a small thing on one of the supports of ``base``; None if none has room.

        Args:
            yaw_deg: relative to the base; random within 25 degrees by default. at: where on the support, as fractions
                of its width and depth; by default at random in its front half.
        """
        for support in base.model.supports:
            for _ in range(_TRIES if at is None else 1):
                turn = self.rng.uniform(-25.0, 25.0) if yaw_deg is None else yaw_deg
                u, v = at if at is not None else (self.rng.random(), 0.6 * self.rng.random())
                spot = self._rest(model, base, support, turn, u, v)
                if spot is not None:
                    return self._keep(spot)
        return None

    def _rest(self, model: Model, base: Placed, support: Support, turn_deg: float, u: float, v: float) -> Placed | None:
        local = footprint(model, turn_deg)
        width, depth = support.x1 - support.x0, support.y1 - support.y0
        if local.width > width + 0.12 or local.depth > depth + 0.08 or model.size[2] > support.headroom_m - 0.01:
            return None
        # What is larger than the support's safe part may stand over its margin, in the middle.
        span_x, span_y = max(width - local.width, 0.0), max(depth - local.depth, 0.0)
        left = support.x0 + (u * span_x if span_x else (width - local.width) / 2)
        near = support.y0 + (v * span_y if span_y else (depth - local.depth) / 2)
        x, y = base.point(left - local.x0, near - local.y0)
        x, y, yaw = round(x, 3), round(y, 3), round((base.yaw_deg + turn_deg) % 360.0, 1)
        z = round(base.z + support.z - float(model.bounds[0][2]), 4)
        spot = Placed(model, x, y, z, yaw, _shifted(footprint(model, yaw), x, y), self.room.id, base.side, base)
        if not self.room.floor.contains(spot.rect):
            return None
        for other in self.placed:
            if other is base or other.model.category == "rug":
                continue
            apart = other.bottom >= spot.top or other.top <= spot.bottom + 1e-3
            if not apart and spot.rect.grown(0.02).overlaps(other.rect):
                return None
        return spot

    def hung(
        self,
        model: Model,
        z: float,
        sides: Iterable[Side] | None = None,
        *,
        center: float | None = None,
        margin_m: float = 0.1,
    ) -> Placed | None:
        """Hang a model on a wall with its lower edge at ``z``, clear of doors, windows and what stands before it."""
        for side in list(sides) if sides is not None else self.rng.sample(SIDES, 4):
            turned = footprint(model, _FACING[side])
            start, end = self.room.floor.along(side)
            length = turned.width if side in ("south", "north") else turned.depth
            depth = turned.depth if side in ("south", "north") else turned.width
            low, high = start + margin_m, end - margin_m - length
            for _ in range(_TRIES // 4 if center is None else 1):
                at = self.rng.uniform(low, high) if center is None else center - length / 2
                if not low - 1e-6 <= at <= high + 1e-6:
                    break
                rect = self.room.floor.strip(side, at, at + length, depth)
                x, y = round(rect.x0 - turned.x0, 3), round(rect.y0 - turned.y0, 3)
                rect = _shifted(turned, x, y)
                spot = Placed(
                    model, x, y, round(z - float(model.bounds[0][2]), 4), _FACING[side], rect, self.room.id, side
                )
                if self._wall_is_free(spot, side, margin_m):
                    return self._keep(spot)
        return None

    def _wall_is_free(self, spot: Placed, side: Side, margin_m: float) -> bool:
        wide = spot.rect.grown(margin_m)
        low, high = spot.bottom - 0.03, spot.top + 0.03
        for opening in (*self.room.doors, *self.room.windows):
            zone = self.room.floor.strip(opening.side, opening.start, opening.end, 0.3)
            if opening.top > low and opening.bottom < high and wide.overlaps(zone):
                return False
        return not any(
            other.model.category != "rug" and other.top > low and other.bottom < high and wide.overlaps(other.rect)
            for other in self.placed
        )

    def from_ceiling(self, model: Model) -> Placed:
        """Fix a lamp to the middle of the ceiling."""
        x, y = (round(v, 3) for v in self.room.floor.center)
        z = round(self.ceiling_m - float(model.bounds[1][2]), 4)
        return self._keep(Placed(model, x, y, z, 0.0, _shifted(footprint(model, 0.0), x, y), self.room.id))

    def free_runs(self, side: Side, depth_m: float) -> list[tuple[float, float]]:
        """Intervals along a wall in which a strip of that depth is empty, longest first."""
        start, end = self.room.floor.along(side)
        step, runs, begin = 0.02, [], None
        count = int((end - start) / step)
        blocked = [*self._door_zones, *self.keep_free, *(p.rect for p in self.placed if p.on is None)]
        for k in range(count + 1):
            at = start + k * step
            cell = self.room.floor.strip(side, at, at + step, depth_m)
            empty = k < count and not any(cell.overlaps(zone) for zone in blocked)
            if empty and begin is None:
                begin = at
            elif not empty and begin is not None:
                runs.append((begin, at))
                begin = None
        return sorted(runs, key=lambda run: run[0] - run[1])


def _contact_corners(spot: Placed) -> list[Points]:
    """Corner points in ``map`` of the model's contact shapes."""
    c, s = math.cos(math.radians(spot.yaw_deg)), math.sin(math.radians(spot.yaw_deg))
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    at = np.array([spot.x, spot.y, spot.z])
    # These shapes are boxes and cylinders, for which no folder is read.
    return [corners(Path(), shape) @ turn.T + at for shape in spot.model.collision]


def _front_strip(spot: Placed, depth_m: float) -> Rect:
    """The floor before a model that stands against a wall."""
    rect = spot.rect
    if spot.side == "north":
        return Rect(rect.x0, rect.y0 - depth_m, rect.x1, rect.y0)
    if spot.side == "south":
        return Rect(rect.x0, rect.y1, rect.x1, rect.y1 + depth_m)
    if spot.side == "west":
        return Rect(rect.x1, rect.y0, rect.x1 + depth_m, rect.y1)
    return Rect(rect.x0 - depth_m, rect.y0, rect.x0, rect.y1)
