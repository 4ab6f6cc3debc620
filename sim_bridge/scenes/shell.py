"""The building itself: floors, walls with their openings, ceilings, skirting, door and window frames."""

from __future__ import annotations

from collections.abc import Sequence

from robot_runtime.scenes.scene import Collision
from sim_bridge.scenes.furniture.kit import Surface
from sim_bridge.scenes.layout import DOOR_HEIGHT_M, FloorPlan, Opening, PlanRoom
from sim_bridge.scenes.meshes import Mesh, Point, box, merge, quad
from sim_bridge.scenes.rect import SIDES, Rect, Side
from sim_bridge.scenes.style import RoomFinish

BASEBOARD_M = (0.08, 0.012)  # height, thickness
_CASING_M = (0.07, 0.016)  # width, thickness of the frame round a door or window
_TRIM = Surface("white")
_UNIT = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]

Parts = list[tuple[Mesh, Surface]]


def room_parts(room: PlanRoom, finish: RoomFinish, ceiling_m: float, accent_side: Side | None) -> Parts:
    """What one sees of a room when it is empty."""
    f = room.floor
    floor = quad([(f.x0, f.y0, 0), (f.x1, f.y0, 0), (f.x1, f.y1, 0), (f.x0, f.y1, 0)])
    top = quad([(f.x0, f.y1, ceiling_m), (f.x1, f.y1, ceiling_m), (f.x1, f.y0, ceiling_m), (f.x0, f.y0, ceiling_m)])
    parts: Parts = [(floor, finish.floor), (top, Surface("white", "plaster"))]
    for side in SIDES:
        openings = [o for o in (*room.doors, *room.windows) if o.side == side]
        surface = finish.accent if side == accent_side and finish.accent is not None else finish.wall
        wall = _Wall(f, side)
        parts.append((wall.face(openings, ceiling_m), surface))
        if room.category != "bathroom":
            parts += [(piece, _TRIM) for piece in wall.baseboard(openings)]
        for opening in openings:
            parts += wall.frame(opening)
    for door in room.doors:
        sill = f.strip(door.side, door.start, door.end, -door.through)
        parts.append((_level(sill, 0.0), finish.floor))
    return parts


def outside_parts(plan: FloorPlan, ceiling_m: float) -> Parts:
    """What shows from above and from outside: wall tops and the outer faces."""
    tops = [_level(rect, ceiling_m) for rect in (*plan.walls, *plan.lintels)]
    x0, y0 = min(r.x0 for r in plan.walls), min(r.y0 for r in plan.walls)
    x1, y1 = max(r.x1 for r in plan.walls), max(r.y1 for r in plan.walls)
    ring = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    faces = [
        quad([(*a, 0.0), (*b, 0.0), (*b, ceiling_m), (*a, ceiling_m)])
        for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)
    ]
    return [(merge(tops), Surface("gray")), (merge(faces), Surface("sand", "plaster"))]


def wall_collision(plan: FloorPlan, ceiling_m: float) -> tuple[Collision, ...]:
    """Contact boxes of the walls, and of the lintels above the doors."""
    shapes = [_block(rect, 0.0, ceiling_m) for rect in plan.walls]
    shapes += [_block(rect, DOOR_HEIGHT_M, ceiling_m) for rect in plan.lintels]
    return tuple(shapes)


def _block(rect: Rect, z0: float, z1: float) -> Collision:
    x, y = rect.center
    center = (round(x, 4), round(y, 4), round((z0 + z1) / 2, 4))
    return Collision("box", center, (round(rect.width, 4), round(rect.depth, 4), round(z1 - z0, 4)))


def _level(rect: Rect, z: float) -> Mesh:
    return quad([(rect.x0, rect.y0, z), (rect.x1, rect.y0, z), (rect.x1, rect.y1, z), (rect.x0, rect.y1, z)])


class _Wall:
    """One side of a room: maps (distance along it from the left as seen from inside, height, depth into the room)."""

    def __init__(self, floor: Rect, side: Side) -> None:
        self._start, self._end = floor.along(side)
        self.length = self._end - self._start
        self._side = side
        self._floor = floor

    def _point(self, along: float, height: float, inward: float = 0.0) -> Point:
        f = self._floor
        if self._side == "north":
            return f.x0 + along, f.y1 - inward, height
        if self._side == "south":
            return f.x1 - along, f.y0 + inward, height
        if self._side == "east":
            return f.x1 - inward, f.y1 - along, height
        return f.x0 + inward, f.y0 + along, height

    def _interval(self, opening: Opening) -> tuple[float, float]:
        """An opening's extent along the wall, from the left."""
        if self._side in ("north", "west"):
            return opening.start - self._start, opening.end - self._start
        return self._end - opening.end, self._end - opening.start

    def face(self, openings: Sequence[Opening], height: float) -> Mesh:
        """The wall's face: columns of rectangles around the openings."""
        holes = sorted((*self._interval(o), o.bottom, o.top) for o in openings)
        pieces, at = [], 0.0
        for left, right, bottom, top in holes:
            pieces.append(self._patch(at, left, 0.0, height))
            if bottom > 0:
                pieces.append(self._patch(left, right, 0.0, bottom))
            pieces.append(self._patch(left, right, top, height))
            at = right
        pieces.append(self._patch(at, self.length, 0.0, height))
        return merge(pieces)

    def _patch(self, left: float, right: float, bottom: float, top: float) -> Mesh:
        corners = [
            self._point(left, bottom),
            self._point(right, bottom),
            self._point(right, top),
            self._point(left, top),
        ]
        return quad(corners, [(left, bottom), (right, bottom), (right, top), (left, top)])

    def _bar(self, left: float, right: float, bottom: float, top: float, thick: float, inward: float = 0.0) -> Mesh:
        """A box on the wall; ``inward`` moves it into the room, negative into the wall."""
        a, b = self._point(left, bottom, inward), self._point(right, top, inward + thick)
        size = (abs(b[0] - a[0]), abs(b[1] - a[1]), top - bottom)
        return box(size, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, bottom))

    def baseboard(self, openings: Sequence[Opening]) -> list[Mesh]:
        """Skirting between the doors."""
        height, thick = BASEBOARD_M
        doors = sorted(self._interval(o) for o in openings if o.bottom == 0)
        pieces, at = [], 0.0
        for left, right in doors:
            pieces.append((at, left - _CASING_M[0]))
            at = right + _CASING_M[0]
        pieces.append((at, self.length))
        return [self._bar(a, b, 0.0, height, thick) for a, b in pieces if b - a > 0.02]

    def frame(self, opening: Opening) -> Parts:
        """Casing and reveal of an opening; windows also get a pane with the view, a sill and a glazing bar."""
        left, right = self._interval(opening)
        bottom, top, deep = opening.bottom, opening.top, -opening.through
        wide, thick = _CASING_M
        trim = [
            self._bar(left - wide, left, bottom, top + wide, thick),
            self._bar(right, right + wide, bottom, top + wide, thick),
            self._bar(left, right, top, top + wide, thick),
            self._reveal((left, bottom, 0.0), (left, bottom, deep), (left, top, deep), (left, top, 0.0)),
            self._reveal((right, bottom, deep), (right, bottom, 0.0), (right, top, 0.0), (right, top, deep)),
            self._reveal((left, top, 0.0), (left, top, deep), (right, top, deep), (right, top, 0.0)),
        ]
        if opening.bottom == 0:
            return [(merge(trim), _TRIM)]
        trim.append(self._bar(left - wide - 0.03, right + wide + 0.03, bottom - 0.035, bottom, 0.04 - deep, deep))
        middle, across = (left + right) / 2, bottom + 0.62 * (top - bottom)
        trim.append(self._bar(middle - 0.02, middle + 0.02, bottom, top, 0.03, deep))
        trim.append(self._bar(left, right, across - 0.015, across + 0.015, 0.03, deep))
        trim += [self._bar(edge, edge + 0.035, bottom, top, 0.035, deep) for edge in (left, right - 0.035)]
        corners = [
            self._point(along, height, deep)
            for along, height in ((left, bottom), (right, bottom), (right, top), (left, top))
        ]
        return [(merge(trim), _TRIM), (quad(corners, _UNIT), Surface("white", "window_view"))]

    def _reveal(self, *corners: tuple[float, float, float]) -> Mesh:
        return quad([self._point(*corner) for corner in corners])
