"""Tables, desks, shelves, cupboards: what other things stand on or in."""

from __future__ import annotations

from robot_runtime.scenes.scene import Collision
from sim_bridge.scenes.furniture.kit import Model, Support, Surface, block, drum
from sim_bridge.scenes.meshes import Mesh, box, cylinder, lathe, merge, quad, sphere

_HANDLE = Surface("chrome")


def _top(width: float, depth: float, inset: float, z: float, headroom_m: float = 1.0) -> Support:
    return Support(-width / 2 + inset, -depth / 2 + inset, width / 2 - inset, depth / 2 - inset, z, headroom_m)


def dining_table(width: float, depth: float, round_top: bool, wood: Surface) -> Model:
    """A table: round on a column, or rectangular on four legs."""
    z = 0.74
    if round_top:
        top = lathe([(0, 0), (width / 2 - 0.02, 0), (width / 2, 0.02), (width / 2, 0.035), (0, 0.035)], 28)
        foot = lathe([(0, 0), (0.28, 0), (0.26, 0.03), (0.06, 0.07), (0.045, 0.4), (0.09, z - 0.035)], 16)
        inset = width / 2 * (1 - 0.66)
        parts = ((merge([top.moved(0, 0, z - 0.035), foot]), wood),)
        return Model("round_table", "table", parts, (drum(width, z),), (_top(width, width, inset, z),), wood.color_name)
    legs = [
        box((0.06, 0.06, z - 0.035), (i * (width / 2 - 0.06), j * (depth / 2 - 0.06), 0), 0.008)
        for i in (-1, 1)
        for j in (-1, 1)
    ]
    apron = [box((width - 0.16, 0.02, 0.08), (0, j * (depth / 2 - 0.06), z - 0.115)) for j in (-1, 1)]
    apron += [box((0.02, depth - 0.16, 0.08), (i * (width / 2 - 0.06), 0, z - 0.115)) for i in (-1, 1)]
    parts = ((merge([box((width, depth, 0.035), (0, 0, z - 0.035), 0.008), *legs, *apron]), wood),)
    support = _top(width, depth, 0.1, z)
    return Model("table", "table", parts, (block((width, depth, z)),), (support,), wood.color_name)


def coffee_table(width: float, depth: float, wood: Surface, legs: Surface) -> Model:
    """A low table with a shelf below."""
    z = 0.42
    posts = [
        box((0.04, 0.04, z - 0.03), (i * (width / 2 - 0.03), j * (depth / 2 - 0.03), 0), 0.006)
        for i in (-1, 1)
        for j in (-1, 1)
    ]
    boards = [
        box((width, depth, 0.03), (0, 0, z - 0.03), 0.008),
        box((width - 0.08, depth - 0.08, 0.02), (0, 0, 0.14)),
    ]
    parts = ((merge(boards), wood), (merge(posts), legs))
    support = _top(width, depth, 0.08, z)
    return Model("coffee_table", "table", parts, (block((width, depth, z)),), (support,), wood.color_name)


def fronts_of(width: float, depth: float, z0: float, z1: float, columns: int, rows: int) -> list[Mesh]:
    """Raised doors or drawer fronts on the -y face."""
    gap = 0.008
    cell_w, cell_h = width / columns, (z1 - z0) / rows
    size = (cell_w - gap, 0.018, cell_h - gap)
    return [
        box(size, (-width / 2 + (c + 0.5) * cell_w, -depth / 2 - 0.008, z0 + r * cell_h + gap / 2), 0.005)
        for c in range(columns)
        for r in range(rows)
    ]


def handles_of(width: float, depth: float, z0: float, z1: float, columns: int, rows: int, upright: bool) -> list[Mesh]:
    """Bars on the fronts that :func:`fronts_of` makes; upright ones sit where pairs of doors meet."""
    cell_w, cell_h = width / columns, (z1 - z0) / rows
    bars = []
    for c in range(columns):
        for r in range(rows):
            x = -width / 2 + (c + 0.5) * cell_w
            if upright:
                x += (0.5 * cell_w - 0.04) * (1 if c % 2 == 0 else -1)
                bars.append(box((0.012, 0.02, 0.12), (x, -depth / 2 - 0.026, z0 + (r + 0.5) * cell_h - 0.06)))
            else:
                bars.append(box((0.12, 0.02, 0.012), (x, -depth / 2 - 0.026, z0 + (r + 0.5) * cell_h)))
    return bars


def _carcass(
    kind: str,
    category: str,
    size: tuple[float, float, float],
    columns: int,
    rows: int,
    body: Surface,
    front: Surface,
    *,
    upright: bool,
    plinth: float = 0.06,
    handle: Surface = _HANDLE,
) -> Model:
    width, depth, height = size
    parts = (
        (box((width, depth, height - plinth), (0, 0, plinth), 0.006), body),
        (box((width - 0.06, depth - 0.06, plinth), (0, 0.01, 0)), Surface("black")),
        (merge(fronts_of(width - 0.02, depth, plinth + 0.02, height - 0.03, columns, rows)), front),
        (merge(handles_of(width - 0.02, depth, plinth + 0.02, height - 0.03, columns, rows, upright)), handle),
    )
    support = _top(width, depth, 0.06, height)
    collision = (block((width, depth + 0.04, height), (0, -0.02, 0)),)
    return Model(kind, category, parts, collision, (support,), front.color_name)


def tv_stand(width: float, body: Surface, front: Surface) -> Model:
    """A low board for the television."""
    return _carcass("tv_stand", "cabinet", (width, 0.4, 0.48), 3, 1, body, front, upright=False)


def chest_of_drawers(body: Surface, front: Surface, width: float = 0.85) -> Model:
    """Three drawers, 0.8 m high."""
    return _carcass("chest_of_drawers", "chest_of_drawers", (width, 0.42, 0.8), 1, 3, body, front, upright=False)


def wardrobe(width: float, body: Surface, front: Surface) -> Model:
    """A tall cupboard with pairs of doors."""
    columns = 2 if width < 1.3 else 4
    size = (width, 0.56, 1.95)
    return _carcass("wardrobe", "cabinet", size, columns, 1, body, front, upright=True)


def sideboard(width: float, body: Surface, front: Surface) -> Model:
    """A cabinet at table height with four doors."""
    return _carcass("sideboard", "cabinet", (width, 0.38, 0.76), 4, 1, body, front, upright=True)


def wall_cabinet(width: float, body: Surface, front: Surface) -> Model:
    """A kitchen cabinet that hangs on the wall."""
    columns = max(1, round(width / 0.45))
    return _carcass("wall_cabinet", "cabinet", (width, 0.32, 0.66), columns, 1, body, front, upright=True, plinth=0.01)


def nightstand(body: Surface, front: Surface) -> Model:
    """A bedside cupboard with two drawers, 0.5 m high."""
    return _carcass("nightstand", "nightstand", (0.44, 0.38, 0.5), 1, 2, body, front, upright=False)


def desk(width: float, wood: Surface, legs: Surface) -> Model:
    """A writing desk with a drawer unit at one side."""
    depth, z = 0.62, 0.74
    frame = [
        box((0.04, depth - 0.06, 0.04), (-width / 2 + 0.04, 0, 0)),
        box((0.04, 0.04, z - 0.03), (-width / 2 + 0.04, 0, 0)),
    ]
    frame += [box((0.04, depth - 0.06, 0.03), (-width / 2 + 0.04, 0, z - 0.06))]
    drawers = box((0.38, depth - 0.08, z - 0.03), (width / 2 - 0.22, 0.02, 0), 0.006)
    fronts = [m.moved(width / 2 - 0.22, 0.02) for m in fronts_of(0.37, depth - 0.08, 0.04, z - 0.05, 1, 3)]
    grips = [m.moved(width / 2 - 0.22, 0.02) for m in handles_of(0.37, depth - 0.08, 0.04, z - 0.05, 1, 3, False)]
    parts = (
        (merge([box((width, depth, 0.03), (0, 0, z - 0.03), 0.008), drawers, *fronts]), wood),
        (merge([*frame, *grips]), legs),
    )
    support = _top(width, depth, 0.06, z)
    return Model("desk", "desk", parts, (block((width, depth, z)),), (support,), wood.color_name)


def bookshelf(width: float, height: float, wood: Surface) -> Model:
    """Open shelves, most of them with books; the third board from below stays free for a vase."""
    depth, board = 0.3, 0.022
    shelves = int(height / 0.36)
    step = (height - board) / shelves
    boards = [box((board, depth, height), (i * (width - board) / 2, 0, 0)) for i in (-1, 1)]
    boards += [box((width - 2 * board, depth, board), (0, 0, k * step)) for k in range(shelves + 1)]
    boards.append(box((width - 2 * board, 0.01, height), (0, depth / 2 - 0.005, 0)))
    rows = []
    inner = width - 2 * board
    for k in range(shelves):
        if k == 2:
            continue
        z0, z1 = k * step + board, k * step + step * 0.9
        fill = inner * (1.0, 0.72, 0.0, 0.86, 0.94)[k % 5]
        left = -inner / 2 if k % 2 == 0 else inner / 2 - fill
        front, shift = -depth / 2 + 0.06, 0.17 * k
        uv = [(shift, 0), (shift + fill / 0.8, 0), (shift + fill / 0.8, 1), (shift, 1)]
        rows.append(
            quad([(left, front, z0), (left + fill, front, z0), (left + fill, front, z1), (left, front, z1)], uv)
        )
        for x, side in ((left, -1), (left + fill, 1)):
            near, far = (front, depth / 2 - 0.02) if side > 0 else (depth / 2 - 0.02, front)
            end_uv = [(0.11, 0.3), (0.14, 0.3), (0.14, 0.32), (0.11, 0.32)]
            rows.append(quad([(x, near, z0), (x, far, z0), (x, far, z1), (x, near, z1)], end_uv))
        end_uv = [(0.11, 0.3), (0.14, 0.3), (0.14, 0.32), (0.11, 0.32)]
        back = depth / 2 - 0.02
        rows.append(
            quad([(left, front, z1), (left + fill, front, z1), (left + fill, back, z1), (left, back, z1)], end_uv)
        )
    free = Support(-inner / 2 + 0.08, -depth / 2 + 0.05, inner / 2 - 0.08, 0.08, 2 * step + board, step - board)
    parts = ((merge(boards), wood), (merge(rows), Surface("white", "books")))
    return Model(
        f"bookshelf_{round(height * 100)}", "bookshelf", parts, _shelf_collision(width, depth, height, step, board),
        (free, _top(width, depth, 0.06, height)), wood.color_name,
    )  # fmt: skip


def _shelf_collision(width: float, depth: float, height: float, step: float, board: float) -> tuple[Collision, ...]:
    """Two blocks that leave the free third shelf open, so that things stand in it without touching, and its sides."""
    low, high = 2 * step + board, 3 * step
    return (
        block((width, depth, low)),
        block((width, 0.02, high - low), (0, depth / 2 - 0.01, low)),
        block((width, depth, height - high), (0, 0, high)),
    )


def fireplace(stone: Surface) -> Model:
    """An electric fireplace with a mantelpiece."""
    width, depth, height = 1.2, 0.34, 1.0
    sides = [box((0.26, depth, height - 0.06), (i * (width / 2 - 0.15), 0, 0), 0.01) for i in (-1, 1)]
    lintel = box((width - 0.08, depth, 0.26), (0, 0, height - 0.32), 0.01)
    hearth = box((width - 0.5, depth - 0.06, 0.06), (0, 0.02, 0))
    logs = [
        cylinder(0.05, 0.4, 10).turned(90, axis=1).moved(-0.2, y, z) for y, z in ((0, 0.11), (0.08, 0.11), (0.04, 0.19))
    ]
    flames = [sphere(0.05, 8, 5).scaled(0.7, 0.5, 2.4).moved(x, 0.03, 0.3) for x in (-0.14, 0.0, 0.13)]
    parts = (
        (merge([*sides, lintel]), stone),
        (box((width, depth + 0.06, 0.06), (0, -0.03, height - 0.06), 0.012), Surface("white")),
        (merge([hearth, box((width - 0.5, 0.02, height - 0.3), (0, depth / 2 - 0.02, 0))]), Surface("black")),
        (merge(logs), Surface("walnut", "wood")),
        (merge(flames), Surface("orange")),
    )
    collision = (block((width, depth + 0.06, height), (0, -0.03, 0)),)
    return Model("fireplace", "fireplace", parts, collision, (_top(width, depth, 0.06, height),), stone.color_name)
