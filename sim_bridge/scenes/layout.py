"""Floor plans: a rectangle cut into rooms, with doors and windows.

The footprint is cut in two again and again until each piece is one room; plans with rooms too narrow, or with a room
that can only be reached through a private one, are discarded and drawn again. Coordinates are those of the scene's
``map`` frame, with its origin in the footprint's south-west inner corner.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from robot_runtime.errors import SceneError
from sim_bridge.scenes.columns import rectangles

Side = Literal["north", "south", "west", "east"]
SIDES: tuple[Side, ...] = ("north", "south", "west", "east")
OPPOSITE: dict[Side, Side] = {"south": "north", "north": "south", "west": "east", "east": "west"}

INNER_WALL_M = 0.12
OUTER_WALL_M = 0.2
DOOR_HEIGHT_M = 2.05
DOOR_WIDTH_M = 0.92
_DRAWS = 8000
_DRAWS_PER_PROGRAM = 1000


@dataclass(frozen=True)
class Rect:
    """An axis-aligned rectangle, meters."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Extent along x."""
        return self.x1 - self.x0

    @property
    def depth(self) -> float:
        """Extent along y."""
        return self.y1 - self.y0

    @property
    def center(self) -> tuple[float, float]:
        """The middle."""
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def grown(self, margin: float) -> Rect:
        """The rectangle enlarged by ``margin`` on every side."""
        return Rect(self.x0 - margin, self.y0 - margin, self.x1 + margin, self.y1 + margin)

    def moved(self, x: float, y: float) -> Rect:
        """The rectangle shifted by (x, y)."""
        return Rect(self.x0 + x, self.y0 + y, self.x1 + x, self.y1 + y)

    def overlaps(self, other: Rect) -> bool:
        """Whether the interiors share more than 1 mm in both directions."""
        wide = min(self.x1, other.x1) - max(self.x0, other.x0) > 1e-3
        return wide and min(self.y1, other.y1) - max(self.y0, other.y0) > 1e-3

    def contains(self, other: Rect) -> bool:
        """Whether ``other`` lies inside, to within 0.1 mm."""
        own = self.grown(1e-4)
        return own.x0 <= other.x0 and other.x1 <= own.x1 and own.y0 <= other.y0 and other.y1 <= own.y1

    def along(self, side: Side) -> tuple[float, float]:
        """The interval that a side covers along its own direction."""
        return (self.x0, self.x1) if side in ("south", "north") else (self.y0, self.y1)

    def strip(self, side: Side, start: float, end: float, depth: float) -> Rect:
        """The part next to ``side``, between ``start`` and ``end`` along it; a negative depth lies outside."""
        a, b = (0.0, depth) if depth >= 0 else (depth, 0.0)
        if side == "south":
            return Rect(start, self.y0 + a, end, self.y0 + b)
        if side == "north":
            return Rect(start, self.y1 - b, end, self.y1 - a)
        if side == "west":
            return Rect(self.x0 + a, start, self.x0 + b, end)
        return Rect(self.x1 - b, start, self.x1 - a, end)


@dataclass(frozen=True)
class Opening:
    """A door or window as one room has it."""

    side: Side
    start: float
    end: float
    bottom: float
    top: float


@dataclass
class PlanRoom:
    """A room: its clear floor and the openings in its walls."""

    id: str
    category: str
    floor: Rect
    doors: list[Opening] = field(default_factory=list)
    windows: list[Opening] = field(default_factory=list)

    @property
    def area_m2(self) -> float:
        """Area of the floor."""
        return self.floor.width * self.floor.depth


@dataclass(frozen=True)
class FloorPlan:
    """Rooms, the solid parts of all walls, and the lintels above doors."""

    rooms: list[PlanRoom]
    walls: list[Rect]
    lintels: list[Rect]


@dataclass(frozen=True)
class Size:
    """A footprint and the sets of rooms that fit in it: category and share of the area."""

    width_m: float
    depth_m: float
    programs: tuple[tuple[tuple[str, float], ...], ...]


SIZES: dict[str, Size] = {
    "robothor": Size(
        8.8, 3.9,
        (
            (("living_room", 11.0), ("kitchen", 7.5), ("bedroom", 9.0), ("bathroom", 5.2)),
            (("living_room", 12.5), ("kitchen", 7.0), ("bedroom", 8.5), ("bathroom", 5.0)),
        ),
    ),
    "medium": Size(
        10.0, 6.4,
        (
            (("living_room", 20.0), ("kitchen", 11.0), ("bedroom", 13.0), ("bathroom", 6.0), ("study", 9.0)),
            (
                ("living_room", 18.0), ("kitchen", 10.0), ("bedroom", 12.0), ("bathroom", 6.0), ("study", 8.0),
                ("hall", 7.0),
            ),
        ),
    ),
    "large": Size(
        12.0, 9.0,
        (
            (
                ("living_room", 28.0), ("kitchen", 15.0), ("bedroom", 16.0), ("bedroom", 14.0), ("bathroom", 8.0),
                ("study", 12.0), ("hall", 12.0),
            ),
            (
                ("living_room", 30.0), ("kitchen", 16.0), ("bedroom", 18.0), ("bathroom", 9.0), ("study", 13.0),
                ("hall", 13.0),
            ),
        ),
    ),
}  # fmt: skip

_LIMITS = {
    "living_room": (2.75, 2.1),
    "kitchen": (1.95, 2.2),
    "bedroom": (2.45, 1.9),
    "bathroom": (1.55, 2.2),
    "study": (1.95, 2.0),
    "hall": (1.35, 6.0),
}
"""Least short side in meters and largest ratio of the sides, by category."""

_PUBLIC = ("living_room", "hall", "kitchen")


def draw_plan(size_name: str, rng: random.Random) -> FloorPlan:
    """A floor plan of one of ``SIZES``. Raises ``SceneError`` if the size is unknown or no valid plan was found."""
    if size_name not in SIZES:
        raise SceneError(f"size {size_name!r} is unknown", f"use one of: {', '.join(SIZES)}")
    size = SIZES[size_name]
    program: list[tuple[str, float]] = []
    for attempt in range(_DRAWS):
        if attempt % _DRAWS_PER_PROGRAM == 0:
            program = list(rng.choice(size.programs))
        rng.shuffle(program)
        rooms: list[PlanRoom] = []
        for category, cell in _cut(program, Rect(0.0, 0.0, size.width_m, size.depth_m), rng):
            number = sum(room.category == category for room in rooms)
            room_id = category if number == 0 else f"{category}_{number + 1}"
            rooms.append(PlanRoom(room_id, category, _clear_floor(cell, size)))
        links = _link(rooms, rng) if all(map(_well_proportioned, rooms)) else None
        if links is not None:
            gaps = [_add_door(one, other, rng) for one, other in links]
            for room in rooms:
                room.windows.extend(_windows(room, size, rng))
            return FloorPlan(rooms, _walls([room.floor for room in rooms] + gaps, size), gaps)
    raise SceneError(f"no floor plan of size {size_name!r} was found", "use another seed")


def _cut(program: list[tuple[str, float]], rect: Rect, rng: random.Random) -> Iterator[tuple[str, Rect]]:
    """The category and the cell of each room; cells reach to the middle of inner walls."""
    if len(program) == 1:
        yield program[0][0], rect
        return
    count = rng.randint(1, len(program) - 1)
    share = sum(weight for _, weight in program[:count]) / sum(weight for _, weight in program)
    share = min(max(share + rng.uniform(-0.09, 0.09), 0.12), 0.88)
    if (rect.width > rect.depth) != (rng.random() < 0.15):
        x = round(rect.x0 + share * rect.width, 2)
        first, second = Rect(rect.x0, rect.y0, x, rect.y1), Rect(x, rect.y0, rect.x1, rect.y1)
    else:
        y = round(rect.y0 + share * rect.depth, 2)
        first, second = Rect(rect.x0, rect.y0, rect.x1, y), Rect(rect.x0, y, rect.x1, rect.y1)
    yield from _cut(program[:count], first, rng)
    yield from _cut(program[count:], second, rng)


def _clear_floor(cell: Rect, size: Size) -> Rect:
    """The cell less half a wall on each inner side."""
    half = INNER_WALL_M / 2
    return Rect(
        round(cell.x0 + (half if cell.x0 > 0 else 0.0), 4),
        round(cell.y0 + (half if cell.y0 > 0 else 0.0), 4),
        round(cell.x1 - (half if cell.x1 < size.width_m else 0.0), 4),
        round(cell.y1 - (half if cell.y1 < size.depth_m else 0.0), 4),
    )


def _well_proportioned(room: PlanRoom) -> bool:
    short, long = sorted((room.floor.width, room.floor.depth))
    least, ratio = _LIMITS[room.category]
    return short >= least and long <= ratio * short


def _shared_wall(a: Rect, b: Rect) -> tuple[Side, float, float] | None:
    """The side of ``a`` that faces ``b`` through one inner wall, and the interval in which a door fits."""
    gaps: dict[Side, float] = {"east": b.x0 - a.x1, "west": a.x0 - b.x1, "north": b.y0 - a.y1, "south": a.y0 - b.y1}
    for side, gap in gaps.items():
        start, end = max(a.along(side)[0], b.along(side)[0]) + 0.12, min(a.along(side)[1], b.along(side)[1]) - 0.12
        if abs(gap - INNER_WALL_M) < 1e-3 and end - start >= DOOR_WIDTH_M:
            return side, start, end
    return None


def _link(rooms: list[PlanRoom], rng: random.Random) -> list[tuple[PlanRoom, PlanRoom]] | None:
    """Pairs of rooms that a door joins: a tree in which no path leads through a private room, and a few loops.

    Returns:
        None if the rooms cannot be joined so.
    """
    names = [room.category for room in rooms]
    count = len(rooms)
    near = {
        (i, j) for i in range(count) for j in range(count) if i != j and _shared_wall(rooms[i].floor, rooms[j].floor)
    }
    joined, links = [names.index("hall") if "hall" in names else names.index("living_room")], []
    while len(joined) < count:
        edges = [(i, j) for i in joined for j in range(count) if j not in joined and (i, j) in near]
        edges = [(i, j) for i, j in edges if names[i] in _PUBLIC]
        if not edges:
            return None
        # From the kitchen a door to a bathroom or bedroom is a last resort.
        weights = [0.15 if names[i] == "kitchen" and names[j] not in _PUBLIC else 1.0 for i, j in edges]
        links.append(rng.choices(edges, weights)[0])
        joined.append(links[-1][1])
    for i, j in sorted(near):
        fresh = i < j and (i, j) not in links and (j, i) not in links
        if fresh and names[i] in _PUBLIC and names[j] in _PUBLIC and rng.random() < 0.6:
            links.append((i, j))
    return [(rooms[i], rooms[j]) for i, j in links]


def _add_door(one: PlanRoom, other: PlanRoom, rng: random.Random) -> Rect:
    """Add a door between two rooms; return the gap in the wall."""
    shared = _shared_wall(one.floor, other.floor)
    assert shared is not None, "only neighbors are linked"
    side, low, high = shared
    wide = {one.category, other.category} == {"living_room", "kitchen"}
    width = min(1.25, high - low) if wide else DOOR_WIDTH_M
    start = round(low + rng.choice((0.0, 1.0, rng.random())) * (high - low - width), 3)
    end = round(start + width, 3)
    one.doors.append(Opening(side, start, end, 0.0, DOOR_HEIGHT_M))
    other.doors.append(Opening(OPPOSITE[side], start, end, 0.0, DOOR_HEIGHT_M))
    return one.floor.strip(side, start, end, -INNER_WALL_M)


def _windows(room: PlanRoom, size: Size, rng: random.Random) -> Iterator[Opening]:
    floor, found = room.floor, False
    outer: dict[Side, bool] = {
        "south": floor.y0 <= 0,
        "north": floor.y1 >= size.depth_m,
        "west": floor.x0 <= 0,
        "east": floor.x1 >= size.width_m,
    }
    for side in (side for side, outside in outer.items() if outside):
        start, end = floor.along(side)
        length = end - start
        if length < 1.5 or (found and rng.random() < 0.4):
            continue
        found = True
        width = 0.6 if room.category == "bathroom" else min(1.7, round(length * rng.uniform(0.34, 0.46), 2))
        bottom = {"bathroom": 1.35, "kitchen": 1.22}.get(room.category, 0.95)
        at = round((start + end) / 2 - width / 2 + rng.uniform(-0.12, 0.12) * length, 2)
        yield Opening(side, at, round(at + width, 2), bottom, 2.05)


def _walls(open_floor: list[Rect], size: Size) -> list[Rect]:
    """Rectangles that tile everything inside the outer walls' faces except the open floor."""
    t = OUTER_WALL_M
    rects = [*open_floor, Rect(-t, -t, size.width_m + t, size.depth_m + t), Rect(0, 0, size.width_m, size.depth_m)]
    xs = sorted({round(x, 4) for rect in rects for x in (rect.x0, rect.x1)})
    ys = sorted({round(y, 4) for rect in rects for y in (rect.y0, rect.y1)})
    x, y = np.meshgrid((np.array(xs[:-1]) + xs[1:]) / 2, (np.array(ys[:-1]) + ys[1:]) / 2)
    solid = np.ones(x.shape, bool)
    for rect in open_floor:
        solid &= ~((x > rect.x0) & (x < rect.x1) & (y > rect.y0) & (y < rect.y1))
    return [Rect(xs[c], ys[r], xs[c + columns], ys[r + rows]) for r, c, rows, columns in rectangles(solid)]
