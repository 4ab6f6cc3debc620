"""Kitchen and bathroom."""

from __future__ import annotations

from sim_bridge.scenes.furniture.kit import Model, Support, Surface, block, drum
from sim_bridge.scenes.furniture.storage import fronts_of, handles_of
from sim_bridge.scenes.meshes import Mesh, box, cylinder, lathe, merge, quad, tube

_CHROME, _WHITE, _BLACK = Surface("chrome"), Surface("white"), Surface("black")


def _faucet(height: float, reach: float) -> Mesh:
    """A tap whose spout points towards -y."""
    spout = [(0, 0, 0), (0, 0, height), (0, -reach * 0.4, height + 0.03), (0, -reach, height - 0.02)]
    return merge([cylinder(0.022, 0.03, 10), tube(spout, 0.011, 7)])


def counter(width: float, body: Surface, top: Surface) -> Model:
    """A kitchen counter with cupboards; its worktop carries things."""
    depth, z = 0.6, 0.9
    columns = max(1, round(width / 0.55))
    parts = (
        (merge([box((width, depth - 0.03, z - 0.13), (0, 0.015, 0.09)),
                *fronts_of(width, depth - 0.04, 0.1, z - 0.05, columns, 1)]), body),
        (box((width, depth - 0.1, 0.09), (0, 0.05, 0)), _BLACK),
        (box((width, depth + 0.02, 0.04), (0, -0.01, z - 0.04), 0.006), top),
        (merge(handles_of(width, depth - 0.04, 0.1, z - 0.05, columns, 1, True)), _CHROME),
    )  # fmt: skip
    support = Support(-width / 2 + 0.08, -depth / 2 + 0.05, width / 2 - 0.08, depth / 2 - 0.1, z, 0.5)
    collision = (block((width, depth + 0.04, z), (0, -0.02, 0)),)
    return Model(f"counter_{round(width * 100)}", "counter", parts, collision, (support,), body.color_name)


def kitchen_sink(body: Surface, top: Surface) -> Model:
    """A counter element with a sunk steel basin and a tap."""
    width, depth, z = 0.8, 0.6, 0.9
    rim_x, rim_y, deep = 0.27, 0.19, 0.16
    worktop = [
        box((width, 0.1, 0.04), (0, -depth / 2 + 0.04, z - 0.04)),
        box((width, 0.13, 0.04), (0, depth / 2 - 0.065, z - 0.04)),
        box((width / 2 - rim_x, depth - 0.21, 0.04), (-(width / 2 + rim_x) / 2, -0.015, z - 0.04)),
        box((width / 2 - rim_x, depth - 0.21, 0.04), ((width / 2 + rim_x) / 2, -0.015, z - 0.04)),
    ]
    basin = _tray(2 * rim_x, 2 * rim_y + 0.01, deep).moved(0, -0.015, z - deep)
    panels = [box((0.016, depth - 0.03, 0.14), (i * (width / 2 - 0.008), 0.015, z - 0.18)) for i in (-1, 1)]
    cupboard = box((width, depth - 0.03, z - 0.24), (0, 0.015, 0.06))
    fronts = fronts_of(width, depth - 0.04, 0.1, z - 0.05, 2, 1)
    grips = handles_of(width, depth - 0.04, 0.1, z - 0.05, 2, 1, True)
    parts = (
        (merge([cupboard, *panels, *fronts]), body),
        (box((width, depth - 0.1, 0.06), (0, 0.05, 0)), _BLACK),
        (merge(worktop), top),
        (merge([basin, _faucet(0.26, 0.2).moved(0, 0.23, z), *grips]), _CHROME),
    )
    return Model("kitchen_sink", "sink", parts, (block((width, depth + 0.04, z), (0, -0.02, 0)),), (), "silver")


def _tray(width: float, depth: float, height: float) -> Mesh:
    """An open box seen from above: bottom and four walls that face inwards, and a 1 cm rim."""
    x, y = width / 2, depth / 2
    faces = [
        quad([(-x, -y, 0.01), (x, -y, 0.01), (x, y, 0.01), (-x, y, 0.01)]),
        quad([(x, -y, 0), (-x, -y, 0), (-x, -y, height), (x, -y, height)]),
        quad([(-x, y, 0), (x, y, 0), (x, y, height), (-x, y, height)]),
        quad([(-x, -y, 0), (-x, y, 0), (-x, y, height), (-x, -y, height)]),
        quad([(x, y, 0), (x, -y, 0), (x, -y, height), (x, y, height)]),
    ]
    rim = [box((width + 0.02, 0.01, 0.006), (0, j * (y + 0.004), height)) for j in (-1, 1)]
    rim += [box((0.01, depth, 0.006), (i * (x + 0.004), 0, height)) for i in (-1, 1)]
    return merge([*faces, *rim])


def stove(body: Surface) -> Model:
    """A cooker with an oven door and four hot plates."""
    width, depth, z = 0.6, 0.6, 0.9
    plates = [cylinder(0.085, 0.006, 18).moved(i * 0.14, j * 0.13, z) for i in (-1, 1) for j in (-1, 1)]
    knobs = [cylinder(0.017, 0.02, 10).turned(90, axis=0).moved(x, -depth / 2 - 0.002, 0.82) for x in
             (-0.2, -0.1, 0.0, 0.1, 0.2)]  # fmt: skip
    parts = (
        (box((width, depth, z - 0.02), (0, 0, 0), 0.008), body),
        (
            merge(
                [
                    box((width, depth, 0.02), (0, 0, z - 0.02)),
                    box((0.5, 0.02, 0.46), (0, -depth / 2 - 0.006, 0.24), 0.005),
                ]
            ),
            _BLACK,
        ),
        (merge(plates), Surface("gray")),
        (merge([*knobs, box((0.44, 0.02, 0.018), (0, -depth / 2 - 0.035, 0.69))]), _CHROME),
    )
    return Model("stove", "stove", parts, (block((width, depth + 0.05, z), (0, -0.025, 0)),), (), body.color_name)


def refrigerator(body: Surface) -> Model:
    """A fridge-freezer, 1.8 m high."""
    width, depth, height = 0.6, 0.62, 1.8
    doors = [box((width, 0.05, 0.62), (0, -depth / 2 + 0.02, 0.05), 0.012)]
    doors.append(box((width, 0.05, 1.11), (0, -depth / 2 + 0.02, 0.68), 0.012))
    grips = [box((0.02, 0.03, 0.3), (-width / 2 + 0.06, -depth / 2 - 0.02, z)) for z in (0.32, 0.76)]
    parts = (
        (merge([box((width, depth - 0.06, height), (0, 0.03, 0), 0.01), *doors]), body),
        (merge(grips), Surface("gray")),
    )
    return Model(
        "refrigerator", "refrigerator", parts, (block((width, depth + 0.05, height), (0, -0.025, 0)),), (),
        body.color_name,
    )  # fmt: skip


def toilet() -> Model:
    """Bowl, seat, cistern."""
    bowl = lathe([(0, 0), (0.12, 0), (0.11, 0.12), (0.15, 0.24), (0.19, 0.37), (0.19, 0.39), (0, 0.39)], 20)
    seat = lathe([(0.0, 0.0), (0.2, 0.0), (0.205, 0.02), (0.19, 0.04), (0.0, 0.045)], 20)
    parts = (
        (merge([
            bowl.scaled(0.95, 1.2, 1).moved(0, -0.09),
            box((0.22, 0.28, 0.36), (0, 0.14, 0), 0.03),
            seat.scaled(0.97, 1.2, 1).moved(0, -0.09, 0.39),
            box((0.4, 0.18, 0.36), (0, 0.25, 0.4), 0.03),
        ]), _WHITE),
        (cylinder(0.025, 0.012, 12).moved(0, 0.25, 0.76), _CHROME),
    )  # fmt: skip
    return Model(
        "toilet", "toilet", parts, (block((0.4, 0.67, 0.42)), block((0.4, 0.18, 0.76), (0, 0.25, 0))), (), "white"
    )


def washbasin(body: Surface) -> Model:
    """A basin on a vanity unit; its rim carries a spray bottle or a mug."""
    width, depth, z, deep = 0.7, 0.46, 0.84, 0.13
    bowl = _tray(0.38, 0.26, 0.12).moved(-0.06, -0.05, z - 0.12)
    slab = [
        box((width, 0.05, deep), (0, -depth / 2 + 0.025, z - deep)),
        box((width, 0.15, deep), (0, depth / 2 - 0.075, z - deep)),
        box((0.1, depth - 0.2, deep), (-width / 2 + 0.05, -0.05, z - deep)),
        box((0.22, depth - 0.2, deep), (width / 2 - 0.11, -0.05, z - deep)),
    ]
    unit = box((width - 0.04, depth - 0.04, z - deep - 0.22), (0, 0.01, 0.22), 0.006)
    fronts = fronts_of(width - 0.06, depth - 0.04, 0.23, z - deep - 0.01, 2, 1)
    grips = handles_of(width - 0.06, depth - 0.04, 0.23, z - deep - 0.01, 2, 1, True)
    parts = (
        (merge([unit, *fronts]), body),
        (merge([*slab, bowl]), _WHITE),
        (merge([_faucet(0.13, 0.13).moved(-0.06, 0.13, z), *grips]), _CHROME),
    )
    support = Support(0.17, -depth / 2 + 0.05, width / 2 - 0.03, depth / 2 - 0.05, z, 0.4)
    return Model("washbasin", "sink", parts, (block((width, depth, z - 0.22), (0, 0, 0.22)),), (support,), "white")


def bathtub(length: float = 1.6) -> Model:
    """A built-in tub along the wall, with a tap."""
    depth, z = 0.72, 0.56
    rim = 0.07
    inner = _tray(length - 2 * rim, depth - 2 * rim, 0.42).moved(0, 0, z - 0.42)
    edge = [box((length, rim, z), (0, j * (depth - rim) / 2, 0), 0.015) for j in (-1, 1)]
    edge += [box((rim, depth - 2 * rim, z), (i * (length - rim) / 2, 0, 0), 0.015) for i in (-1, 1)]
    parts = (
        (merge([*edge, inner]), _WHITE),
        (_faucet(0.14, 0.16).turned(90).moved(-length / 2 + 0.04, 0, z), _CHROME),
    )
    return Model("bathtub", "bathtub", parts, (block((length, depth, z)),), (), "white")


def shower() -> Model:
    """A corner shower: tray, two glass walls, riser and head; the third side is open."""
    side, height = 0.85, 1.95
    rail = tube([(0, 0.38, 0.9), (0, 0.38, 2.0), (0, 0.2, 2.05)], 0.011, 7)
    frame = [box((0.025, 0.025, height), (i * (side / 2 - 0.0125), -side / 2 + 0.0125, 0.06)) for i in (-1, 1)]
    frame += [box((side, 0.025, 0.025), (0, -side / 2 + 0.0125, height + 0.035))]
    panes = [
        box((side * 0.5, 0.008, height - 0.02), (-side * 0.24, -side / 2 + 0.0125, 0.07)),
        box((0.008, side - 0.05, height - 0.02), (side / 2 - 0.0125, 0, 0.07)),
    ]
    parts = (
        (box((side, side, 0.07), (0, 0, 0), 0.015), _WHITE),
        (merge([rail, cylinder(0.07, 0.02, 14).moved(0, 0.2, 2.03), *frame]), _CHROME),
        (merge(panes), Surface("glass")),
    )
    collision = (block((side, side, 0.07)), block((side, 0.03, height), (0, -side / 2 + 0.015, 0.07)),
                 block((0.03, side, height), (side / 2 - 0.015, 0, 0.07)))  # fmt: skip
    return Model("shower", "shower", parts, collision, (), "white")


def towel(fabric: Surface) -> Model:
    """A towel over a wall rail."""
    folds = [box((0.11, 0.035, 0.5), (x, -0.045, 0.05), 0.016) for x in (-0.165, -0.055, 0.055, 0.165)]
    rail = [tube([(-0.27, -0.045, 0.55), (0.27, -0.045, 0.55)], 0.009, 6)]
    rail += [tube([(i * 0.26, 0.0, 0.55), (i * 0.26, -0.045, 0.55)], 0.009, 6) for i in (-1, 1)]
    parts = ((merge(folds), fabric), (merge(rail), _CHROME))
    return Model("towel", "towel", parts, (block((0.46, 0.08, 0.52), (0, -0.04, 0.04)),), (), fabric.color_name)


def mirror(width: float, height: float) -> Model:
    """A pale pane in a thin frame."""
    parts = (
        (box((width, 0.02, height), (0, -0.01, 0), 0.004), _CHROME),
        (box((width - 0.05, 0.01, height - 0.05), (0, -0.021, 0.025)), Surface("sky")),
    )
    return Model("mirror", "mirror", parts, (block((width, 0.03, height), (0, -0.015, 0)),), (), "silver")


def laundry_basket(weave: Surface) -> Model:
    """A wicker basket with clothes looking out."""
    basket = lathe([(0, 0), (0.17, 0), (0.2, 0.5), (0.205, 0.52), (0.19, 0.52), (0.185, 0.46), (0, 0.44)], 18)
    cloth = lathe([(0.0, 0.42), (0.17, 0.46), (0.14, 0.54), (0.06, 0.585), (0, 0.59)], 12)
    parts = ((basket, weave), (cloth, Surface("blue", "fabric")))
    return Model("laundry_basket", "clothes", parts, (drum(0.41, 0.56),), (), "blue", movable=True)
