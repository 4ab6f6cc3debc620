"""Lamps, pictures, rugs, and what hangs in a hall."""

from __future__ import annotations

from sim_bridge.scenes.furniture.kit import Model, Surface, block, drum, hull_box
from sim_bridge.scenes.meshes import box, cushion, cylinder, lathe, merge, quad, sphere, tube

_BLACK, _CHROME = Surface("black"), Surface("chrome")
_UNIT = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


def floor_lamp(shade: Surface) -> Model:
    """A standing lamp with a fabric shade, 1.6 m high."""
    pole = merge([cylinder(0.14, 0.025, 18), cylinder(0.012, 1.4, 8)])
    cone = lathe([(0.2, 1.3), (0.15, 1.6), (0.145, 1.6), (0.195, 1.3)], 18)
    parts = ((pole, _BLACK), (cone, shade), (sphere(0.05, 10, 6).moved(0, 0, 1.42), Surface("glow")))
    collision = (drum(0.28, 0.03), drum(0.04, 1.4), drum(0.4, 0.3, (0, 0, 1.3)))
    return Model("floor_lamp", "lamp", parts, collision, (), shade.color_name)


def table_lamp(foot: Surface, shade: Surface) -> Model:
    """A lamp with a turned foot."""
    base = lathe(
        [(0, 0), (0.06, 0), (0.06, 0.012), (0.025, 0.03), (0.045, 0.09), (0.02, 0.16), (0.01, 0.2), (0, 0.2)], 14
    )
    cone = lathe([(0.1, 0.18), (0.07, 0.33), (0.066, 0.33), (0.096, 0.18)], 16)
    parts = ((base, foot), (cone, shade), (sphere(0.025, 8, 5).moved(0, 0, 0.23), Surface("glow")))
    return Model("table_lamp", "lamp", parts, hull_box(parts), (), shade.color_name, movable=True)


def ceiling_lamp(shade: Surface) -> Model:
    """A shallow drum below the ceiling; its frame is its lower edge."""
    dome = lathe([(0, 0), (0.12, 0.006), (0.19, 0.03), (0.2, 0.07), (0.2, 0.1), (0, 0.1)], 20)
    parts = ((dome, shade), (cylinder(0.21, 0.015, 20).moved(0, 0, 0.095), _CHROME))
    return Model("ceiling_lamp", "lamp", parts, (drum(0.42, 0.11),), (), shade.color_name)


def picture(width: float, height: float, art: str, frame: Surface) -> Model:
    """A framed painting; ``art`` names its texture."""
    rim = 0.03
    bars = [box((width, 0.025, rim), (0, -0.0125, z)) for z in (0.0, height - rim)]
    bars += [box((rim, 0.025, height - 2 * rim), (i * (width - rim) / 2, -0.0125, rim)) for i in (-1, 1)]
    x, y = width / 2 - rim, -0.012
    canvas = quad([(-x, y, rim), (x, y, rim), (x, y, height - rim), (-x, y, height - rim)], _UNIT)
    parts = ((merge(bars), frame), (canvas, Surface("white", art)))
    kind = f"picture_{round(width * 100)}x{round(height * 100)}"
    return Model(kind, "picture", parts, (block((width, 0.025, height), (0, -0.0125, 0)),), (), frame.color_name)


def rug(width: float, depth: float, art: str) -> Model:
    """A woven rug, 8 mm thick: a robot drives over it, so that it has no contact shape."""
    x, y, z = width / 2, depth / 2, 0.008
    pile = quad([(-x, -y, z), (x, -y, z), (x, y, z), (-x, y, z)], _UNIT)
    edge = [box((width, 0.004, z - 0.001), (0, j * (y - 0.002), 0)) for j in (-1, 1)]
    edge += [box((0.004, depth, z - 0.001), (i * (x - 0.002), 0, 0)) for i in (-1, 1)]
    kind = f"rug_{round(width * 100)}x{round(depth * 100)}"
    return Model(kind, "rug", ((pile, Surface("white", art)), (merge(edge), Surface("beige"))), ())


def coat_rack(wood: Surface, cloths: tuple[Surface, ...]) -> Model:
    """A board with hooks and coats; its frame is the coats' lower edge."""
    width = 0.25 * len(cloths)
    places = [(k + 0.5) * 0.25 - width / 2 for k in range(len(cloths))]
    hooks = [tube([(x, -0.02, 0.82), (x, -0.07, 0.82), (x, -0.075, 0.86)], 0.008, 6) for x in places]
    parts = [(box((width + 0.1, 0.02, 0.1), (0, -0.01, 0.8), 0.004), wood), (merge(hooks), _CHROME)]
    for k, (x, cloth) in enumerate(zip(places, cloths, strict=True)):
        long = 0.8 - 0.12 * (k % 2)
        body = cushion((0.24, 0.13, long)).moved(x, -0.085, 0.83 - long)
        parts.append((body, cloth))
    collision = (block((width, 0.15, 0.9), (0, -0.075, 0)),)
    return Model("coat_rack", "clothes", tuple(parts), collision, (), cloths[0].color_name)


def dumbbell_rack() -> Model:
    """A low rack with two rows of dumbbells."""
    width, depth = 0.8, 0.36
    frame = [box((0.04, depth, 0.52), (i * (width / 2 - 0.02), 0, 0)) for i in (-1, 1)]
    frame += [box((width - 0.08, 0.2, 0.025), (0, 0.02, z)) for z in (0.16, 0.42)]
    weights = []
    for row, z in enumerate((0.245, 0.5)):
        for x in (-0.24, 0.0, 0.24):
            radius = 0.06 - 0.012 * row
            disc = cylinder(radius, 0.05, 10).turned(90, axis=0)
            weights += [disc.moved(x, 0.13, z), disc.moved(x, -0.04, z)]
            weights.append(cylinder(0.014, 0.16, 8).turned(90, axis=0).moved(x, 0.1, z))
    parts = ((merge(frame), Surface("red")), (merge(weights), _BLACK))
    return Model("dumbbell_rack", "gym_equipment", parts, (block((width, depth, 0.56)),), (), "red")
