"""Sofas, chairs, stools, benches, beds."""

from __future__ import annotations

from sim_bridge.scenes.furniture.kit import Model, Support, Surface, block
from sim_bridge.scenes.meshes import Mesh, box, cushion, cylinder, lathe, merge, tube


def _legs(width: float, depth: float, height: float, thickness: float, inset: float = 0.05) -> Mesh:
    """Four tapered legs under a rectangle."""
    leg = lathe([(0.0, 0.0), (thickness * 0.35, 0.0), (thickness / 2, height), (0.0, height)], 8)
    x, y = width / 2 - inset, depth / 2 - inset
    return merge(leg.moved(i * x, j * y) for i in (-1, 1) for j in (-1, 1))


def sofa(width: float, fabric: Surface, wood: Surface) -> Model:
    """A two- or three-seater with arms, loose seat and back cushions."""
    depth, arm, seat_z, back = 0.88, 0.17, 0.42, 0.2
    seats = 3 if width > 1.8 else 2
    inner = width - 2 * arm
    each = inner / seats
    parts = [
        (_legs(width, depth, 0.1, 0.06, 0.08), wood),
        (box((inner, depth - 0.06, 0.2), (0, 0.01, 0.1), 0.02), fabric),
        (box((inner, back, 0.62), (0, depth / 2 - back / 2, 0.2), 0.06), fabric),
    ]
    parts += [(box((arm, depth, 0.52), (i * (width - arm) / 2, 0, 0.1), 0.05), fabric) for i in (-1, 1)]
    for k in range(seats):
        x = -inner / 2 + (k + 0.5) * each
        parts.append((box((each - 0.012, depth - back, 0.14), (x, -back / 2 + 0.01, seat_z - 0.14), 0.04), fabric))
        rest = cushion((each - 0.03, 0.34, 0.2)).turned(78, axis=0).moved(x, depth / 2 - back - 0.03, 0.62)
        parts.append((rest, fabric))
    seat = Support(-inner / 2, -depth / 2 + 0.12, inner / 2, depth / 2 - back - 0.2, seat_z)
    return Model(
        "sofa",
        "sofa",
        tuple(parts),
        (block((width, depth, 0.44)), block((width, 0.3, 0.8), (0, depth / 2 - 0.15, 0))),
        (seat,),
        fabric.color_name,
    )


def armchair(fabric: Surface, wood: Surface) -> Model:
    """A rounded easy chair."""
    width, depth = 0.8, 0.8
    parts = (
        (_legs(width, depth, 0.16, 0.05, 0.1), wood),
        (box((width - 0.1, depth - 0.04, 0.18), (0, 0, 0.16), 0.05), fabric),
        (cushion((width - 0.28, depth - 0.2, 0.16), (0, -0.06, 0.3)), fabric),
        (box((width, 0.18, 0.62), (0, depth / 2 - 0.09, 0.24), 0.07), fabric),
        (box((0.14, depth - 0.06, 0.38), (-width / 2 + 0.07, -0.03, 0.2), 0.06), fabric),
        (box((0.14, depth - 0.06, 0.38), (width / 2 - 0.07, -0.03, 0.2), 0.06), fabric),
    )
    collision = (block((width, depth, 0.58)), block((width, 0.2, 0.86), (0, depth / 2 - 0.1, 0)))
    return Model("armchair", "chair", parts, collision, (), fabric.color_name)


def chair(style: int, frame: Surface, seat: Surface) -> Model:
    """A dining chair: 0 slatted wood, 1 upholstered, 2 shell on metal rods."""
    w, d, z = 0.43, 0.44, 0.45
    if style == 2:
        shell = merge([box((w, d, 0.03), (0, 0, z), 0.014), box((w, 0.03, 0.4), (0, d / 2 - 0.015, z + 0.02), 0.014)])
        rods = [
            tube([(i * 0.12, j * 0.12, z), (i * (w / 2 - 0.02), j * (d / 2 - 0.02), 0.0)], 0.011, 6)
            for i in (-1, 1)
            for j in (-1, 1)
        ]
        parts = [(shell, seat), (merge(rods), frame)]
    else:
        parts = [(_legs(w, d, z, 0.04, 0.03), frame)]
        parts += [(box((0.035, 0.03, 0.44), (i * (w / 2 - 0.02), d / 2 - 0.02, z), 0.008), frame) for i in (-1, 1)]
        if style == 1:
            parts.append((box((w, d, 0.07), (0, 0, z - 0.02), 0.025), seat))
            parts.append((box((w - 0.08, 0.05, 0.32), (0, d / 2 - 0.03, z + 0.12), 0.02), seat))
        else:
            parts.append((box((w, d, 0.03), (0, 0, z), 0.01), seat))
            slats = [box((w - 0.06, 0.018, 0.055), (0, d / 2 - 0.02, z + h), 0.006) for h in (0.14, 0.25, 0.36)]
            parts.append((merge(slats), frame))
    collision = (block((w, d, z + 0.04)), block((w, 0.06, 0.9), (0, d / 2 - 0.03, 0)))
    return Model(f"chair_{style}", "chair", tuple(parts), collision, (), seat.color_name)


def office_chair(fabric: Surface) -> Model:
    """A swivel chair on five castors."""
    dark = Surface("black")
    star = [tube([(0, 0, 0.09), (0.27, 0, 0.06)], 0.02, 6).turned(72 * k) for k in range(5)]
    star += [cylinder(0.03, 0.05, 8).moved(0.27, 0, 0).turned(72 * k) for k in range(5)]
    parts = (
        (merge([*star, cylinder(0.03, 0.36, 8).moved(0, 0, 0.08)]), dark),
        (box((0.48, 0.46, 0.09), (0, -0.01, 0.42), 0.04), fabric),
        (box((0.44, 0.07, 0.5), (0, 0.23, 0.54), 0.03), fabric),
        (merge([box((0.05, 0.28, 0.03), (i * 0.26, 0, 0.66), 0.012) for i in (-1, 1)]), dark),
        (merge([box((0.03, 0.03, 0.2), (i * 0.26, 0.05, 0.47)) for i in (-1, 1)]), dark),
    )
    collision = (block((0.6, 0.58, 0.52)), block((0.46, 0.1, 1.04), (0, 0.23, 0)))
    return Model("office_chair", "chair", parts, collision, (), fabric.color_name)


def stool(seat: Surface, frame: Surface, height: float = 0.46) -> Model:
    """A round stool on three splayed legs."""
    legs = [tube([(0.09, 0, height - 0.03), (0.16, 0, 0.0)], 0.015, 6).turned(90 + 120 * k) for k in range(3)]
    top = lathe([(0, 0), (0.15, 0), (0.165, 0.015), (0.165, 0.03), (0.15, 0.045), (0, 0.045)], 18)
    parts = ((top.moved(0, 0, height - 0.045), seat), (merge(legs), frame))
    return Model("stool", "stool", parts, (block((0.33, 0.33, height)),), (), seat.color_name)


def bench(wood: Surface, fabric: Surface, width: float = 0.95) -> Model:
    """A hall bench with a padded seat and a shoe shelf."""
    depth = 0.36
    ends = [box((0.04, depth, 0.42), (i * (width / 2 - 0.02), 0, 0), 0.006) for i in (-1, 1)]
    parts = (
        (merge([*ends, box((width - 0.08, depth - 0.04, 0.025), (0, 0, 0.14))]), wood),
        (box((width, depth, 0.08), (0, 0, 0.41), 0.03), fabric),
    )
    return Model("bench", "seating", parts, (block((width, depth, 0.49)),), (), fabric.color_name)


def bed(width: float, frame: Surface, linen: Surface, blanket: Surface) -> Model:
    """A bed with head board, mattress, pillows and a blanket over its foot end."""
    length, z = 2.02, 0.5
    head = length / 2
    parts = [
        (
            merge([box((width, length - 0.06, 0.2), (0, -0.03, 0.1), 0.015), _legs(width, length, 0.11, 0.07, 0.1)]),
            frame,
        ),
        (box((width, 0.06, 0.98), (0, head - 0.03, 0.05), 0.015), frame),
        (box((width - 0.06, length - 0.12, 0.22), (0, -0.02, 0.28), 0.06), linen),
        (box((width + 0.01, length * 0.6, 0.2), (0, -length * 0.18, 0.325), 0.05), blanket),
        (box((width + 0.015, 0.3, 0.205), (0, length * 0.12, 0.325), 0.05), linen),
    ]
    pillows = 2 if width > 1.2 else 1
    for k in range(pillows):
        x = (k - (pillows - 1) / 2) * width / 2
        soft = cushion((min(0.62, width / pillows - 0.12), 0.4, 0.17)).turned(18, axis=0)
        parts.append((soft.moved(x, head - 0.32, z + 0.1), linen))
    collision = (block((width, length, 0.53)), block((width, 0.06, 1.03), (0, head - 0.03, 0)))
    top = Support(-width / 2 + 0.12, -length / 2 + 0.15, width / 2 - 0.12, 0.1, 0.525)
    return Model(f"bed_{round(width * 100)}", "bed", tuple(parts), collision, (top,), blanket.color_name)


def throw_cushion(fabric: Surface) -> Model:
    """A loose cushion, lying slightly tilted on its back."""
    soft = cushion((0.4, 0.4, 0.15))
    parts = ((soft, fabric),)
    return Model("cushion", "cushion", parts, (block((0.36, 0.36, 0.14)),), (), fabric.color_name, movable=True)
