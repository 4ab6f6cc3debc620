"""The twelve object categories of RoboTHOR, at their usual sizes."""

from __future__ import annotations

import math

import numpy as np

from sim_bridge.scenes.furniture.kit import Model, Surface, block, drum, hull_box
from sim_bridge.scenes.meshes import Mesh, box, cylinder, lathe, leaf, merge, quad, sphere, tube

_BLACK, _CHROME = Surface("black"), Surface("chrome")


def alarm_clock(body: Surface) -> Model:
    """A round clock with two bells on short feet."""
    case = lathe([(0, 0), (0.055, 0), (0.06, 0.008), (0.06, 0.042), (0.055, 0.05), (0, 0.05)], 20)
    case = case.turned(90, axis=0).moved(0, 0.025, 0.072)
    bells = [sphere(0.02, 10, 6).moved(i * 0.034, 0, 0.136) for i in (-1, 1)]
    feet = [tube([(i * 0.025, 0, 0.03), (i * 0.045, 0, 0.0)], 0.006, 6) for i in (-1, 1)]
    angle = np.linspace(0, 2 * math.pi, 25)[:-1]
    dial = merge(_sector(a, b, 0.051).moved(0, -0.0262, 0.072) for a, b in zip(angle, np.roll(angle, -1), strict=True))
    parts = (
        (case, body),
        (merge([*bells, *feet, box((0.008, 0.008, 0.02), (0, 0, 0.132))]), _CHROME),
        (dial, Surface("white", "clock_face")),
    )
    return Model("alarm_clock", "AlarmClock", parts, hull_box(parts), (), body.color_name, movable=True)


def _sector(start: float, end: float, radius: float) -> Mesh:
    """A slice of a disc in the x-z plane that faces -y, with picture coordinates."""
    points = [(0.0, 0.0)] + [(radius * math.cos(a), radius * math.sin(a)) for a in (start, end)]
    vertices = np.array([[x, 0.0, z] for x, z in points])
    uv = np.array([[0.5 + x / (2 * radius), 0.5 + z / (2 * radius)] for x, z in points])
    return Mesh(vertices, np.tile([0.0, -1.0, 0.0], (3, 1)), uv, np.array([[0, 1, 2]]))


def apple(skin: Surface) -> Model:
    """An apple with stalk and leaf."""
    flesh = lathe(
        [(0.0, 0.006), (0.016, 0.0), (0.03, 0.012), (0.038, 0.036), (0.033, 0.06), (0.016, 0.069), (0, 0.06)], 16
    )
    stalk = tube([(0, 0, 0.058), (0.004, 0, 0.082)], 0.003, 5)
    green = leaf(0.03, 0.016, 30, 40, 2).moved(0.003, 0, 0.074)
    parts = ((flesh, skin), (stalk, Surface("walnut")), (green, Surface("leaf")))
    return Model("apple", "Apple", parts, hull_box(parts), (), skin.color_name, movable=True)


def baseball_bat(wood: Surface, leaning: bool) -> Model:
    """A bat, leaning against the wall behind it (+y) or lying along x."""
    profile = [
        (0, 0), (0.024, 0), (0.025, 0.012), (0.014, 0.022), (0.0125, 0.3), (0.02, 0.45), (0.032, 0.62),
        (0.033, 0.8), (0.024, 0.838), (0, 0.84)]  # fmt: skip
    bat, grip = lathe(profile, 14), lathe([(0.0142, 0.025), (0.0136, 0.26)], 12)
    if leaning:
        # Handle up: turned over, tilted by 14 degrees towards the wall, knob against it.
        pieces = [m.turned(180, axis=0).moved(0, 0, 0.84).turned(-14, axis=0) for m in (bat, grip)]
    else:
        pieces = [m.turned(90, axis=1).moved(-0.42, 0, 0) for m in (bat, grip)]
    low = min(float(m.vertices[:, 2].min()) for m in pieces)
    back = max(float(m.vertices[:, 1].max()) for m in pieces)
    front = min(float(m.vertices[:, 1].min()) for m in pieces)
    pieces = [m.moved(0, -(front + back) / 2, -low) for m in pieces]
    parts = ((pieces[0], wood), (pieces[1], _BLACK))
    kind = "baseball_bat_leaning" if leaning else "baseball_bat"
    return Model(kind, "BaseballBat", parts, hull_box(parts), (), wood.color_name, movable=True)


def basketball() -> Model:
    """A size 7 ball."""
    radius = 0.12
    ball = sphere(radius, 20, 12)
    uv = ball.uv_m / np.array([2 * math.pi * radius, math.pi * radius])
    parts = ((ball.with_uv(uv).moved(0, 0, radius), Surface("orange", "basketball")),)
    return Model("basketball", "BasketBall", parts, hull_box(parts), (), "orange", movable=True)


def bowl(glaze: Surface) -> Model:
    """An open bowl."""
    profile = [
        (0, 0), (0.045, 0), (0.05, 0.012), (0.09, 0.04), (0.115, 0.08), (0.108, 0.08), (0.084, 0.044),
        (0.04, 0.018), (0, 0.015)]  # fmt: skip
    parts = ((lathe(profile, 20), glaze),)
    return Model("bowl", "Bowl", parts, hull_box(parts), (), glaze.color_name, movable=True)


def garbage_can(body: Surface, pedal: bool) -> Model:
    """A bin: with pedal and lid, or open."""
    if pedal:
        can = merge([cylinder(0.14, 0.4, 18), lathe([(0.143, 0.4), (0.145, 0.43), (0.1, 0.47), (0, 0.48)], 18)])
        step = box((0.07, 0.05, 0.015), (0, -0.16, 0.015))
        parts = ((can, body), (merge([step, cylinder(0.144, 0.03, 18)]), _BLACK))
        return Model("pedal_bin", "GarbageCan", parts, (drum(0.3, 0.48),), (), body.color_name, movable=True)
    can = lathe(
        [(0, 0), (0.11, 0), (0.145, 0.34), (0.15, 0.345), (0.15, 0.36), (0.138, 0.36), (0.1, 0.02), (0, 0.02)], 18
    )
    return Model("open_bin", "GarbageCan", ((can, body),), (drum(0.3, 0.36),), (), body.color_name, movable=True)


def house_plant(pot: Surface, height: float, style: int) -> Model:
    """A potted plant: 0 arching palm leaves, 1 a bushy shrub, 2 upright sword leaves."""
    radius = 0.13 if height > 0.5 else 0.075
    pot_z = radius * 1.8
    vase = lathe([
        (0, 0), (radius * 0.72, 0), (radius, pot_z), (radius * 1.06, pot_z), (radius * 1.06, pot_z * 1.1),
        (radius * 0.94, pot_z * 1.1), (radius * 0.9, pot_z * 0.93)], 18)  # fmt: skip
    soil = lathe([(radius * 0.93, pot_z * 0.94), (0, pot_z * 0.96)], 18)
    rest = height - pot_z
    blades: list[Mesh] = []
    golden = 137.5
    if style == 0:
        for k in range(13):
            rise = 88 - 1.6 * k
            blades.append(
                leaf(rest * (0.85 - 0.018 * k), 0.1 * rest, rise, 70 - k, 5).turned(golden * k).moved(0, 0, pot_z)
            )
    elif style == 1:
        stem = [tube([(0, 0, pot_z * 0.9), (0.01, 0, pot_z + rest * 0.5)], 0.012 * height, 6)]
        for k in range(34):
            up = rest * (0.12 + 0.62 * (k / 34))
            reach = rest * (0.36 - 0.15 * abs(k / 34 - 0.4))
            blades.append(leaf(reach, reach * 0.5, 48 - k * 0.2, 60, 3).turned(golden * k).moved(0, 0, pot_z + up))
        blades += stem
    else:
        for k in range(11):
            tall = rest * (1.0 - 0.045 * k)
            blade = leaf(tall, 0.11 * rest, 88, 10 + 2.2 * k, 4).moved(radius * 0.3)
            blades.append(blade.turned(golden * k).moved(0, 0, pot_z * 0.93))
    parts = ((vase, pot), (soil, Surface("soil")), (merge(blades), Surface("leaf")))
    low, high = parts[2][0].bounds
    spread = min(float((high - low)[:2].max()), 2.4 * radius * 1.06 + 0.1)
    collision = [drum(radius * 2.12, pot_z * 1.1)]
    if height > 0.5:
        collision.append(drum(spread, float(high[2]) - pot_z, (0, 0, pot_z)))
    kind = f"plant_{style}_{round(height * 100)}"
    return Model(kind, "HousePlant", parts, tuple(collision), (), "green", movable=True)


def laptop(lid: Surface) -> Model:
    """An open laptop whose screen faces -y."""
    width, depth = 0.33, 0.23
    base = box((width, depth, 0.016), (0, 0, 0), 0.004)
    keys = quad([
        (-0.155, -0.105, 0.0172), (0.155, -0.105, 0.0172), (0.155, 0.1, 0.0172),
        (-0.155, 0.1, 0.0172)], [(0, 0), (1, 0), (1, 1), (0, 1)])  # fmt: skip
    back = box((width, 0.008, 0.22), (0, 0, 0), 0.003)
    screen = quad([
        (-0.152, -0.0052, 0.012), (0.152, -0.0052, 0.012), (0.152, -0.0052, 0.208),
        (-0.152, -0.0052, 0.208)], [(0, 0), (1, 0), (1, 1), (0, 1)])  # fmt: skip
    back, screen = (m.turned(-18, axis=0).moved(0, depth / 2 - 0.002, 0.014) for m in (back, screen))
    parts = (
        (merge([base, back]), lid),
        (keys, Surface("white", "keyboard")),
        (screen, Surface("white", "laptop_screen")),
    )
    return Model("laptop", "Laptop", parts, hull_box(parts), (), lid.color_name, movable=True)


def mug(glaze: Surface) -> Model:
    """A mug with a handle."""
    body = lathe([(0, 0), (0.036, 0), (0.04, 0.006), (0.04, 0.095), (0.036, 0.095), (0.036, 0.012), (0, 0.01)], 16)
    angles = np.radians([90, 50, 10, -30, -60, -90])
    ear = tube([(0.038 + 0.028 * math.cos(a), 0, 0.05 + 0.028 * math.sin(a)) for a in angles], 0.006, 6)
    parts = ((merge([body, ear]), glaze),)
    return Model("mug", "Mug", parts, hull_box(parts), (), glaze.color_name, movable=True)


def spray_bottle(liquid: Surface) -> Model:
    """A bottle with a trigger head."""
    bottle = lathe([(0, 0), (0.036, 0), (0.038, 0.01), (0.038, 0.13), (0.015, 0.17), (0.015, 0.19), (0, 0.19)], 16)
    head = [box((0.03, 0.06, 0.03), (0, -0.01, 0.205), 0.006), cylinder(0.017, 0.02, 10).moved(0, 0, 0.188)]
    trigger = box((0.014, 0.01, 0.05), (0, 0, 0)).turned(20, axis=0).moved(0, -0.034, 0.16)
    parts = ((bottle, liquid), (merge([*head, trigger]), Surface("white")))
    return Model("spray_bottle", "SprayBottle", parts, hull_box(parts), (), liquid.color_name, movable=True)


def television(width: float, on_wall: bool) -> Model:
    """A flat screen on its foot, or flat against the wall behind it."""
    height, z = width * 0.58, 0.0 if on_wall else 0.07
    panel = box((width, 0.04, height), (0, 0, z), 0.008)
    edge, front = 0.018, -0.0215
    x, low, high = width / 2 - edge, z + edge, z + height - edge
    screen = quad(
        [(-x, front, low), (x, front, low), (x, front, high), (-x, front, high)], [(0, 0), (1, 0), (1, 1), (0, 1)]
    )
    casing = [panel] if on_wall else [panel, box((0.1, 0.03, 0.09), (0, 0, 0)), box((width * 0.4, 0.2, 0.014))]
    parts = ((merge(casing), _BLACK), (screen, Surface("white", "television_screen")))
    collision = (block((width, 0.05, round(height, 3)), (0, 0, z)),)
    kind = f"television_{'wall' if on_wall else 'stand'}_{round(width * 100)}"
    return Model(kind, "Television", parts, collision, (), "black")


def vase(glaze: Surface, style: int) -> Model:
    """A vase: 0 slender, 1 bulbous, 2 conical."""
    profiles = (
        [(0, 0), (0.035, 0), (0.05, 0.06), (0.045, 0.12), (0.02, 0.2), (0.03, 0.235), (0.022, 0.23), (0.014, 0.19),
         (0, 0.18)],
        [(0, 0), (0.04, 0), (0.075, 0.06), (0.075, 0.1), (0.03, 0.16), (0.028, 0.18), (0.04, 0.2), (0.03, 0.195),
         (0, 0.16)],
        [(0, 0), (0.03, 0), (0.055, 0.2), (0.06, 0.21), (0.05, 0.21), (0.03, 0.05), (0, 0.04)],
    )  # fmt: skip
    parts = ((lathe(profiles[style], 18), glaze),)
    return Model(f"vase_{style}", "Vase", parts, hull_box(parts), (), glaze.color_name, movable=True)
