"""Furniture as meshes, contact boxes and supports, from the designs of ``furniture.yaml``."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.scenes.scene import Collision, Point3
from sim_bridge.scenes.collider_excess import without_excess
from sim_bridge.scenes.mesh_files import MeshPart
from sim_bridge.scenes.textures import Surface, surface_mesh

Array = NDArray[np.float64]
Shape = Literal["box", "cylinder", "ball", "soft", "picture", "leaves"]

VIVID = ("red", "orange", "yellow", "green", "blue", "purple", "pink")
_CALM = ("gray", "beige", "blue", "green", "brown", "red", "purple", "orange")
_MODEL_ROLES = {
    "vivid": VIVID,
    "vivid_fabric": tuple(f"fabric:{color}" for color in VIVID),
    "shade": ("cream", "white", "orange", "yellow"),
    "appliance": ("white", "silver", "gray"),
    "hearth": ("brick:white", "brick:terracotta"),
    "fruit": ("red", "green"),
    "can": ("silver", "red", "gray", "white"),
    "device": ("silver", "gray", "black"),
    "pot": ("white", "terracotta", "gray"),
    "bat": ("wood:oak", "wood:birch", "wood:walnut"),
}
"""Roles that are drawn again for each model."""


def draw_style(rng: random.Random) -> dict[str, str]:
    """The surface of each role that recurs through a flat."""
    wood, dark = rng.sample(("oak", "birch", "walnut", "ebony"), 2)
    fabrics = rng.sample(_CALM, 2)
    return {
        "wood": f"wood:{wood}",
        "dark_wood": f"wood:{dark}",
        "lacquer": rng.choice(("white", f"wood:{wood}", "mist", "gray")),
        "fabric": f"fabric:{fabrics[0]}",
        "second_fabric": f"fabric:{fabrics[1]}",
        "linen": f"fabric:{rng.choice(('white', 'cream', 'mist'))}",
        "metal": rng.choice(("black", "chrome", "gray")),
        "worktop": rng.choice(("marble:white", "marble:gray", f"wood:{wood}")),
        "kitchen": rng.choice(("white", "sage", "blue", f"wood:{wood}", "red")),
        "planks": f"planks:{rng.choice(('oak', 'birch', 'walnut'))}",
    }


@dataclass(frozen=True)
class Part(config.Strict):
    """Copies of a shape; ``furniture.yaml`` explains the fields."""

    surface: str
    size: Point3
    at: Point3 = (0.0, 0.0, 0.0)
    shape: Shape = "box"
    axis: Literal["x", "y", "z"] = "z"
    taper: float = 1.0
    tilt_deg: float = 0.0
    count: int = 1
    step: Point3 = (0.0, 0.0, 0.0)
    mirror: Literal["", "x", "y", "xy"] = ""

    def triangles(self) -> tuple[Array, Array]:
        """Corners and normals, each float64 (M, 3, 3), of all copies."""
        corners, normals = unit_shape(self.shape, self.axis, self.taper)
        tilt = math.radians(self.tilt_deg)
        turn = np.array([[1, 0, 0], [0, math.cos(tilt), math.sin(tilt)], [0, -math.sin(tilt), math.cos(tilt)]])
        part = MeshPart("", corners, normals, None).moved(_affine(turn @ np.diag(np.maximum(self.size, 1e-9))))
        assert part.normals is not None
        places = np.array([np.add(self.at, np.multiply(k, self.step)) for k in range(self.count)])
        for axis in range(2):
            if "xy"[axis] in self.mirror:
                places = np.concatenate([places, places * np.where(np.arange(3) == axis, -1, 1)])
        return (part.corners + places[:, None, None]).reshape(-1, 3, 3), np.tile(part.normals, (len(places), 1, 1))


@dataclass(frozen=True)
class Satellite(config.Strict):
    """A design that stands at a point of another model's frame, or on its supports where ``at`` is a fraction.

    Attributes:
        piece: The design's name.
        at: Point of the frame, or fractions of a support's width and depth.
        turn_deg: Relative to the other model; None is any on a support, and 0 on the floor.
        gap_m: Distance to keep from other furniture.
        chance: Probability that it is placed.
    """

    piece: str
    at: tuple[float, float] | None = None
    turn_deg: float | None = None
    gap_m: float = 0.015
    chance: float = 1.0


@dataclass(frozen=True)
class Design(config.Strict):
    """A model without its colors; ``furniture.yaml`` explains the fields."""

    parts: tuple[Part, ...]
    category: str = ""
    color: str = ""
    scale_x: float = 1.0
    movable: bool = False
    solid: bool = True
    round: bool = False
    contact: tuple[tuple[Point3, Point3], ...] = ()
    inset_m: float = 0.0
    supports: tuple[tuple[float, ...], ...] = ()
    around: tuple[Satellite, ...] = ()
    carries: tuple[Satellite, ...] = ()

    @cached_property
    def meshes(self) -> tuple[tuple[str, Array, Array], ...]:
        """Surface, corners and normals of each part."""
        stretch = np.array([self.scale_x, 1.0, 1.0])
        return tuple((part.surface, corners * stretch, normals) for part in self.parts
                     for corners, normals in [part.triangles()])  # fmt: skip

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest corner of all parts."""
        points = np.concatenate([corners.reshape(-1, 3) for _, corners, _ in self.meshes])
        return points.min(axis=0), points.max(axis=0)

    @cached_property
    def collision(self) -> tuple[Collision, ...]:
        """Contact shapes with which rooms are planned; none for what a robot drives over."""
        low, high = self.bounds
        size = np.maximum(high - low, 0.002)
        whole = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2]), (size[0], size[1], size[2])
        shape: Literal["box", "cylinder"] = "cylinder" if self.round else "box"
        return tuple(block(base, edges, shape) for base, edges in self.contact or (whole,)) if self.solid else ()

    @cached_property
    def contacts(self) -> tuple[Array | Collision, ...]:
        """Contact shapes that stand out at most ``LIMIT_M`` beyond the parts; convex triangles where no box fits.

        What can be moved keeps its box, less ``inset_m``, on which it stands still, unless it is round.
        """
        if self.inset_m:
            less = 2 * self.inset_m
            return tuple(replace(s, size=(s.size[0] - less, s.size[1] - less, s.size[2])) for s in self.collision)
        surfaces = [corners for _, corners, _ in self.meshes]
        tight = tuple(without_excess(self.collision, surfaces, float(self.bounds[0][2])))
        is_round = all(isinstance(shape, Collision) and shape.shape == "cylinder" for shape in tight)
        return tight if is_round or not self.movable else self.collision


@dataclass(frozen=True)
class Step(config.Strict):
    """A step of furnishing a room.

    Attributes:
        piece: Designs that are tried in this order until one fits; of a ``row``, all of them side by side.
        where: Against a wall, in a corner, near the middle, in a row along a wall, on a wall, or under the rest.
        front_m: Depth of the floor in front that stays free.
        min_area_m2: Smallest room that gets it.
        chance: Probability that it is tried.
        facing: Category of the furniture that it stands opposite of.
        above: Category of the furniture that it hangs over.
        height_m: Height of a hung piece's lower edge.
        unless: Category that makes it unnecessary.
        needed: Whether a flat without it is discarded.
        workplace: Whether it is placed only in the room that holds the flat's desk.
    """

    piece: tuple[str, ...]
    where: Literal["wall", "corner", "middle", "row", "hung", "rug"] = "wall"
    front_m: float = 0.0
    min_area_m2: float = 0.0
    chance: float = 1.0
    facing: str | None = None
    above: str | None = None
    height_m: float = 0.0
    unless: str | None = None
    needed: bool = False
    workplace: bool = False


@dataclass(frozen=True)
class Goal(config.Strict):
    """Places of a RoboTHOR category, tried in the order of the fields.

    Attributes:
        rooms: Categories of rooms, the likeliest first.
        hosts: Categories of furniture that ``on_host`` may stand on.
        on_host: Design to put on furniture.
        turn_deg: Of ``on_host`` relative to the furniture; None is any.
        on_floor: Design to stand against a wall.
        on_wall: Design to hang.
        spare: Probability that a second one is placed somewhere.
    """

    rooms: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    on_host: str | None = None
    turn_deg: float | None = None
    on_floor: str | None = None
    on_wall: str | None = None
    spare: float = 0.25


@dataclass(frozen=True)
class Catalog(config.Strict):
    """The content of ``furniture.yaml``."""

    designs: dict[str, Design]
    rooms: dict[str, tuple[Step, ...]]
    goals: dict[str, Goal]


@cache
def catalog() -> Catalog:
    """The furniture that ships with the generator."""
    return config.load(Path(__file__).parent / "furniture.yaml", Catalog)


@dataclass(frozen=True, eq=False)
class Model:
    """A design in the colors of a flat."""

    name: str
    design: Design
    surfaces: Mapping[str, Surface] = field(default_factory=dict)

    @property
    def category(self) -> str:
        """The object's name in the scene."""
        return self.design.category or self.name

    @property
    def color(self) -> str:
        """The color's plain name."""
        return self.surfaces[self.design.color or self.design.parts[0].surface].color_name

    def visuals(self, seed: int) -> tuple[MeshPart, ...]:
        """The meshes; ``seed`` selects the textures."""
        return tuple(
            surface_mesh(corners, normals, self.surfaces[role], seed) for role, corners, normals in self.design.meshes
        )


def make_model(name: str, style: Mapping[str, str], rng: random.Random) -> Model:
    """A design of the catalog in a flat's style, its own colors drawn at random."""
    design = catalog().designs[name]
    surfaces = {}
    for role in dict.fromkeys([part.surface for part in design.parts] + [design.color] * bool(design.color)):
        token = rng.choice(_MODEL_ROLES[role]) if role in _MODEL_ROLES else style.get(role, role)
        surfaces[role] = Surface.parse(token)
    return Model(name, design, surfaces)


def block(base: Point3, size: Point3, shape: Literal["box", "cylinder"] = "box") -> Collision:
    """A contact shape standing on the point ``base``."""
    x, y, z = (round(float(v), 4) for v in base)
    w, d, h = (round(float(v), 4) for v in size)
    return Collision(shape, (x, y, round(z + h / 2, 4)), (w, d, h))


# --- shapes ---------------------------------------------------------------------------------------------------------


@cache
def unit_shape(shape: Shape, axis: str = "z", taper: float = 1.0) -> tuple[Array, Array]:
    """Corners and normals, each float64 (M, 3, 3), of a shape that fills [-0.5, 0.5] x [-0.5, 0.5] x [0, 1].

    Args:
        shape: The kind of shape; a picture is flat at y = 0.
        axis: Direction of a cylinder.
        taper: Scale of the cylinder's far end.
    """
    import trimesh

    if shape == "picture":
        corners = np.array([[[-0.5, 0, 0], [0.5, 0, 0], [0.5, 0, 1]], [[-0.5, 0, 0], [0.5, 0, 1], [-0.5, 0, 1]]])
        return corners, flat_normals(corners)
    if shape == "leaves":
        corners = _leaves()
        return corners, flat_normals(corners)
    if shape == "box":
        mesh = trimesh.creation.box()
    elif shape == "cylinder":
        mesh = trimesh.creation.cylinder(0.5, 1.0, sections=20)
        mesh.vertices[mesh.vertices[:, 2] > 0, :2] *= taper
        mesh.vertices = mesh.vertices[:, {"x": [2, 0, 1], "y": [1, 2, 0], "z": [0, 1, 2]}[axis]]
    else:
        mesh = trimesh.creation.icosphere(subdivisions=2)
        if shape == "soft":  # a superellipsoid
            mesh.vertices = np.sign(mesh.vertices) * np.abs(mesh.vertices) ** 0.5
    mesh.vertices = _fitted(np.asarray(mesh.vertices))
    smooth = trimesh.graph.smooth_shade(mesh, angle=math.radians(40))
    return np.asarray(smooth.triangles, float), np.asarray(smooth.vertex_normals[smooth.faces], float)


def _leaves() -> Array:
    """Two-sided blades that spread from the origin by the golden angle."""
    turn = np.arange(22) * 2.4
    lift = np.linspace(1.0, 0.3, 22)
    out = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt(1.05 - lift**2)[:, None]
    tip = np.column_stack([out, lift])
    middle = np.column_stack([0.5 * out, 0.62 * lift])
    side = 0.11 * np.column_stack([-np.sin(turn), np.cos(turn), np.zeros(22)])
    root = np.zeros_like(tip)
    front = np.concatenate([np.stack([root, middle - side, tip], 1), np.stack([root, tip, middle + side], 1)])
    return _fitted(np.concatenate([front, front[:, ::-1]]))


def _fitted(points: Array) -> Array:
    """The points scaled to the unit box of :func:`unit_shape`."""
    low, high = points.reshape(-1, 3).min(axis=0), points.reshape(-1, 3).max(axis=0)
    return np.asarray((points - low) / (high - low) - np.array([0.5, 0.5, 0.0]))


def flat_normals(corners: Array) -> Array:
    """The unit normal of each triangle at its three corners, float64 (M, 3, 3)."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return np.repeat(normals[:, None], 3, axis=1)


def _affine(linear: Array) -> Array:
    matrix = np.eye(4)
    matrix[:3, :3] = linear
    return matrix
