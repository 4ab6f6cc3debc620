"""Floor plans: a rectangle cut into rooms, with doors and windows.

A plan is drawn by cutting the footprint again and again in two, until each piece is one room; plans with rooms too
narrow, or with a room that can only be reached through somebody's bedroom, are thrown away and drawn anew.
Coordinates are the scene's ``map`` frame with its origin in the footprint's south-west inner corner.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from robot_runtime.errors import SceneError
from sim_bridge.scenes.rect import SIDES, Rect, Side

INNER_WALL_M = 0.12
OUTER_WALL_M = 0.2
DOOR_HEIGHT_M = 2.05
DOOR_WIDTH_M = 0.92
_DRAWS = 8000
_DRAWS_PER_PROGRAM = 1000


@dataclass(frozen=True)
class Opening:
    """A door or window as one room sees it.

    Attributes:
        side: the wall it is in. start, end: interval along it. bottom, top: heights.
        through: depth of the wall that this room shows in the reveal.
    """

    side: Side
    start: float
    end: float
    bottom: float
    top: float
    through: float


@dataclass(frozen=True)
class PlanRoom:
    """A room: its clear floor and the openings in its walls."""

    id: str
    category: str
    floor: Rect
    doors: tuple[Opening, ...]
    windows: tuple[Opening, ...]
    outer_sides: frozenset[Side]


@dataclass(frozen=True)
class FloorPlan:
    """Rooms, and the solid parts of all walls up to the ceiling; lintels are the parts above doors."""

    size_m: tuple[float, float]
    rooms: tuple[PlanRoom, ...]
    walls: tuple[Rect, ...]
    lintels: tuple[Rect, ...]
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Size:
    """A footprint and the sets of rooms that fit in it: category -> share of the area."""

    width_m: float
    depth_m: float
    programs: tuple[tuple[tuple[str, float], ...], ...]


SIZES: dict[str, Size] = {
    "robothor": Size(
        8.8,
        3.9,
        (
            (("living_room", 11.0), ("kitchen", 7.5), ("bedroom", 9.0), ("bathroom", 5.2)),
            (("living_room", 12.5), ("kitchen", 7.0), ("bedroom", 8.5), ("bathroom", 5.0)),
        ),
    ),
    "medium": Size(
        10.0,
        6.4,
        (
            (("living_room", 20.0), ("kitchen", 11.0), ("bedroom", 13.0), ("bathroom", 6.0), ("study", 9.0)),
            (
                ("living_room", 18.0), ("kitchen", 10.0), ("bedroom", 12.0), ("bathroom", 6.0),
                ("study", 8.0), ("hall", 7.0),
            ),
        ),
    ),
    "large": Size(
        12.0,
        9.0,
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

# category -> (least short side in meters, largest ratio of the sides)
_LIMITS = {
    "living_room": (2.75, 2.1),
    "kitchen": (1.95, 2.2),
    "bedroom": (2.45, 1.9),
    "bathroom": (1.55, 2.2),
    "study": (1.95, 2.0),
    "hall": (1.35, 6.0),
}
_PUBLIC = ("living_room", "hall", "kitchen")


@dataclass
class _Draft:
    """A plan being drawn: cells are measured to the middle of inner walls."""

    size: Size
    cells: list[tuple[str, Rect]] = field(default_factory=list)
    cuts: list[Rect] = field(default_factory=list)  # degenerate: x0 == x1 or y0 == y1


def draw_plan(size_name: str, rng: random.Random) -> FloorPlan:
    """A floor plan of one of ``SIZES``.

    Raises:
        SceneError: unknown size, or no valid plan was found.
    """
    if size_name not in SIZES:
        raise SceneError(f"size {size_name!r} is unknown", f"use one of: {', '.join(SIZES)}")
    size = SIZES[size_name]
    program: list[tuple[str, float]] = []
    for draw in range(_DRAWS):
        if draw % _DRAWS_PER_PROGRAM == 0:
            program = list(rng.choice(size.programs))
        draft = _Draft(size)
        rng.shuffle(program)
        _cut(draft, program, Rect(0.0, 0.0, size.width_m, size.depth_m), rng)
        floors = [_clear_floor(cell, size) for _, cell in draft.cells]
        if not all(_good(name, floor) for (name, _), floor in zip(draft.cells, floors, strict=True)):
            continue
        links = _link(draft, floors, rng)
        if links is not None:
            return _finish(draft, floors, links, rng)
    raise SceneError(f"no floor plan of size {size_name!r} was found", "use another seed")


def _cut(draft: _Draft, program: list[tuple[str, float]], rect: Rect, rng: random.Random) -> None:
    if len(program) == 1:
        draft.cells.append((program[0][0], rect))
        return
    count = rng.randint(1, len(program) - 1)
    share = sum(weight for _, weight in program[:count]) / sum(weight for _, weight in program)
    share = min(max(share + rng.uniform(-0.09, 0.09), 0.12), 0.88)
    lengthwise = rect.width > rect.depth
    if rng.random() < 0.15:
        lengthwise = not lengthwise
    if lengthwise:
        x = round(rect.x0 + share * rect.width, 2)
        draft.cuts.append(Rect(x, rect.y0, x, rect.y1))
        first, second = Rect(rect.x0, rect.y0, x, rect.y1), Rect(x, rect.y0, rect.x1, rect.y1)
    else:
        y = round(rect.y0 + share * rect.depth, 2)
        draft.cuts.append(Rect(rect.x0, y, rect.x1, y))
        first, second = Rect(rect.x0, rect.y0, rect.x1, y), Rect(rect.x0, y, rect.x1, rect.y1)
    _cut(draft, program[:count], first, rng)
    _cut(draft, program[count:], second, rng)


def _clear_floor(cell: Rect, size: Size) -> Rect:
    """The cell less half a wall on each inner side."""
    half = INNER_WALL_M / 2
    return Rect(
        round(cell.x0 + (half if cell.x0 > 0 else 0.0), 4),
        round(cell.y0 + (half if cell.y0 > 0 else 0.0), 4),
        round(cell.x1 - (half if cell.x1 < size.width_m else 0.0), 4),
        round(cell.y1 - (half if cell.y1 < size.depth_m else 0.0), 4),
    )


def _good(category: str, floor: Rect) -> bool:
    short, long = sorted((floor.width, floor.depth))
    least, ratio = _LIMITS[category]
    return short >= least and long <= ratio * short


def _shared(a: Rect, b: Rect) -> tuple[Side, float, float] | None:
    """The side of ``a`` that faces ``b`` through one inner wall, and the interval both have in common."""
    for side, gap in (("east", b.x0 - a.x1), ("west", a.x0 - b.x1), ("north", b.y0 - a.y1), ("south", a.y0 - b.y1)):
        if abs(gap - INNER_WALL_M) < 1e-3:
            first, second = a.along(side), b.along(side)  # type: ignore[arg-type]
            start, end = max(first[0], second[0]), min(first[1], second[1])
            if end - start >= DOOR_WIDTH_M + 0.24:
                return side, start, end  # type: ignore[return-value]
    return None


def _link(draft: _Draft, floors: list[Rect], rng: random.Random) -> list[tuple[int, int]] | None:
    """Pairs of rooms that a door joins: a tree from the hub in which nobody walks through private rooms, and a few
    loops; None if the rooms cannot be joined so."""
    names = [name for name, _ in draft.cells]
    count = len(names)
    near = {(i, j) for i in range(count) for j in range(count) if i != j and _shared(floors[i], floors[j])}
    hub = names.index("hall") if "hall" in names else names.index("living_room")
    joined, links = [hub], []
    while len(joined) < count:
        edges = [(i, j) for i in joined for j in range(count) if j not in joined and (i, j) in near]
        edges = [(i, j) for i, j in edges if names[i] in _PUBLIC]
        if not edges:
            return None
        # From the kitchen a door to a bathroom or bedroom is a last resort.
        weights = [0.15 if names[i] == "kitchen" and names[j] not in _PUBLIC else 1.0 for i, j in edges]
        edge = rng.choices(edges, weights)[0]
        links.append(edge)
        joined.append(edge[1])
    for i in range(count):
        for j in range(i + 1, count):
            fresh = (i, j) in near and (i, j) not in links and (j, i) not in links
            both_public = names[i] in _PUBLIC and names[j] in _PUBLIC
            if fresh and both_public and rng.random() < 0.6:
                links.append((i, j))
    return links


def _finish(draft: _Draft, floors: list[Rect], links: list[tuple[int, int]], rng: random.Random) -> FloorPlan:
    size = draft.size
    doors: dict[int, list[Opening]] = {i: [] for i in range(len(floors))}
    gaps: list[Rect] = []
    opposite: dict[Side, Side] = {"south": "north", "north": "south", "west": "east", "east": "west"}
    for i, j in links:
        shared = _shared(floors[i], floors[j])
        assert shared is not None, "links join neighbors"
        side, start, end = shared
        open_plan = {draft.cells[i][0], draft.cells[j][0]} == {"living_room", "kitchen"}
        width = min(1.25, end - start - 0.24) if open_plan else DOOR_WIDTH_M
        spare = end - start - 0.24 - width
        place = rng.choice((0.0, 1.0, rng.random())) * spare
        at = round(start + 0.12 + place, 3)
        opening = Opening(side, at, round(at + width, 3), 0.0, DOOR_HEIGHT_M, INNER_WALL_M / 2)
        doors[i].append(opening)
        doors[j].append(Opening(opposite[side], opening.start, opening.end, 0.0, DOOR_HEIGHT_M, INNER_WALL_M / 2))
        gaps.append(floors[i].strip(side, opening.start, opening.end, -INNER_WALL_M))
    rooms, ids = [], []
    for i, ((category, cell), floor) in enumerate(zip(draft.cells, floors, strict=True)):
        number = sum(name == category for name, _ in draft.cells[:i])
        ids.append(category if number == 0 else f"{category}_{number + 1}")
        outer = _outer_sides(cell, size)
        windows = _windows(category, floor, outer, rng)
        rooms.append(PlanRoom(ids[-1], category, floor, tuple(doors[i]), windows, outer))
    walls = [piece for cut in draft.cuts for piece in _solid(cut, size, gaps)]
    w, d, t = size.width_m, size.depth_m, OUTER_WALL_M
    walls += [Rect(-t, -t, w + t, 0.0), Rect(-t, d, w + t, d + t), Rect(-t, 0.0, 0.0, d), Rect(w, 0.0, w + t, d)]
    return FloorPlan((w, d), tuple(rooms), tuple(walls), tuple(gaps), tuple((ids[i], ids[j]) for i, j in links))


def _outer_sides(cell: Rect, size: Size) -> frozenset[Side]:
    touching: dict[Side, bool] = {
        "west": cell.x0 <= 0,
        "south": cell.y0 <= 0,
        "east": cell.x1 >= size.width_m,
        "north": cell.y1 >= size.depth_m,
    }
    return frozenset(side for side, outside in touching.items() if outside)


def _windows(category: str, floor: Rect, outer: frozenset[Side], rng: random.Random) -> tuple[Opening, ...]:
    windows: list[Opening] = []
    for side in SIDES:
        if side not in outer:
            continue
        start, end = floor.along(side)
        length = end - start
        if length < 1.5 or (windows and rng.random() < 0.4):
            continue
        width = 0.6 if category == "bathroom" else min(1.7, round(length * rng.uniform(0.34, 0.46), 2))
        bottom = {"bathroom": 1.35, "kitchen": 1.22}.get(category, 0.95)
        at = round((start + end) / 2 - width / 2 + rng.uniform(-0.12, 0.12) * length, 2)
        windows.append(Opening(side, at, round(at + width, 2), bottom, 2.05, 0.12))
    return tuple(windows)


def _solid(cut: Rect, size: Size, gaps: list[Rect]) -> list[Rect]:
    """The wall along a cut, less its doors, between the faces of the walls that it meets."""
    half = INNER_WALL_M / 2
    upright = cut.x0 == cut.x1
    low, high = (cut.y0, cut.y1) if upright else (cut.x0, cut.x1)
    limit = size.depth_m if upright else size.width_m
    low, high = low + (half if low > 0 else 0.0), high - (half if high < limit else 0.0)
    wall = Rect(cut.x0 - half, low, cut.x0 + half, high) if upright else Rect(low, cut.y0 - half, high, cut.y0 + half)
    holes = sorted((g.y0, g.y1) if upright else (g.x0, g.x1) for g in gaps if g.overlaps(wall))
    pieces, at = [], low
    for start, end in [*holes, (high, high)]:
        if start - at > 1e-3:
            pieces.append((at, start))
        at = end
    box = [Rect(wall.x0, a, wall.x1, b) if upright else Rect(a, wall.y0, b, wall.y1) for a, b in pieces]
    return [Rect(*(round(v, 4) for v in (r.x0, r.y0, r.x1, r.y1))) for r in box]
