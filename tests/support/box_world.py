"""A world of upright boxes on a floor: exact depth images and exact contact for a round robot, in plain numpy.

It lets an agent run whole episodes in a fraction of a second, without a simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_runtime.actions.discrete import HABITAT, Action, Magnitudes
from robot_runtime.common.geometry import SE2, compass, gps, polar_goal, wrap_angle
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Category, Success, Task, TrainingCamera

RADIUS_M = 0.18
ROBOT_HEIGHT_M = 0.9
RESOLUTION_M = 0.025
POINTNAV_ACTIONS = (Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)

Box = tuple[float, float, float, float, float, float]
"""x0, y0, z0, x1, y1, z1 in metres."""


def make_task(kind: str = "pointnav", turn_deg: float = 30.0, success_m: float = 0.2, **changes: object) -> Task:
    """A task with a small camera: 96x72, HFOV 79, at 0.88 m."""
    camera = TrainingCamera(96, 72, 79.0, 0.88, depth_min_m=0.1, depth_max_m=10.0, depth_normalized=False)
    values: dict[str, object] = {
        "name": "boxes",
        "kind": kind,
        "source": "tests",
        "actions": POINTNAV_ACTIONS if kind == "pointnav" else HABITAT.actions,
        "magnitudes": Magnitudes(0.25, turn_deg, 30.0),
        "sensors": ("depth", "gps", "compass", "pointgoal" if kind == "pointnav" else "objectgoal"),
        "camera": camera,
        "robot_radius_m": RADIUS_M,
        "max_steps": 500,
        "success": Success("distance", success_m, "goal" if kind == "pointnav" else "view_points"),
        "categories": {} if kind == "pointnav" else {"thing": Category(3, ("thing",))},
    }
    return Task(**(values | changes))  # type: ignore[arg-type]


@dataclass
class BoxWorld:
    """Boxes within ``size`` (x, y), around which there are walls. ``thing`` is the index of the box to be found."""

    size: tuple[float, float]
    boxes: list[Box]
    thing: int | None = None
    _array: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        w, h, t = *self.size, 0.1
        walls = [(-t, -t, 0, w + t, 0, 2.5), (-t, h, 0, w + t, h + t, 2.5)]
        walls += [(-t, 0, 0, 0, h, 2.5), (w, 0, 0, w + t, h, 2.5)]
        self._array = np.array([*self.boxes, *walls], np.float64)

    def clearance_m(self, x: float, y: float) -> tuple[float, float]:
        """Distance from a point to the nearest box that the robot can touch, and the direction to it."""
        low = self._array[self._array[:, 2] < ROBOT_HEIGHT_M]
        dx = np.maximum(np.maximum(low[:, 0] - x, x - low[:, 3]), 0) * np.where(x < low[:, 0], 1, -1)
        dy = np.maximum(np.maximum(low[:, 1] - y, y - low[:, 4]), 0) * np.where(y < low[:, 1], 1, -1)
        distance = np.hypot(dx, dy)
        nearest = int(np.argmin(distance))
        return float(distance[nearest]), math.atan2(dy[nearest], dx[nearest])

    def forward(self, pose: SE2, length_m: float) -> tuple[SE2, bool]:
        """Move until something is touched: no sliding, and no move at all into what is touched already."""
        step_m = 0.0025
        for _ in range(round(length_m / step_m)):
            ahead = pose @ SE2(step_m)
            distance_m, direction = self.clearance_m(ahead.x_m, ahead.y_m)
            if distance_m < RADIUS_M and abs(wrap_angle(direction - pose.yaw_rad)) < math.pi / 2:
                return pose, True
            pose = ahead
        return pose, False

    def render(self, camera: TrainingCamera, pose: SE2, tilt_rad: float) -> tuple[np.ndarray, np.ndarray]:
        """Depth along the optical axis (H, W), inf where nothing is hit, and the index of the box hit (-1 floor)."""
        k = camera.intrinsics
        right, down = np.meshgrid(
            (np.arange(k.width, dtype=np.float32) - k.cx) / k.fx, (np.arange(k.height, dtype=np.float32) - k.cy) / k.fy
        )
        ct, st, cy, sy = math.cos(tilt_rad), math.sin(tilt_rad), math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        forward = ct + st * down
        ray = np.stack((cy * forward + sy * right, sy * forward - cy * right, st - ct * down)).reshape(3, -1)
        ray = ray.astype(np.float32)
        origin = np.array((pose.x_m, pose.y_m, camera.height_m))
        inverse = 1 / np.where(np.abs(ray) < 1e-9, np.float32(1e-9), ray)
        depth = np.where(ray[2] < 0, np.float32(-origin[2]) * inverse[2], np.float32(np.inf))
        index = np.full(depth.shape, -1)
        for i, box in enumerate(self._array):
            t0 = (box[:3] - origin).astype(np.float32)[:, None] * inverse
            t1 = (box[3:] - origin).astype(np.float32)[:, None] * inverse
            enter, leave = np.minimum(t0, t1).max(axis=0), np.maximum(t0, t1).min(axis=0)
            hit = (enter <= leave) & (enter > 1e-6) & (enter < depth)
            depth[hit], index[hit] = enter[hit], i
        return depth.reshape(k.height, k.width), index.reshape(k.height, k.width)

    def occupancy(self) -> OccupancyMap:
        """The map of what is in the robot's way."""
        border = 8
        columns, rows = (math.ceil(edge / RESOLUTION_M) + 2 * border for edge in self.size)
        cells = np.full((rows, columns), Cell.FREE, np.uint8)
        grid = OccupancyMap(cells, RESOLUTION_M, -border * RESOLUTION_M, -border * RESOLUTION_M)
        for x0, y0, z0, x1, y1, _ in self._array:
            if z0 < ROBOT_HEIGHT_M:
                (r0, c0), (r1, c1) = grid.to_cell(x0 + 1e-6, y0 + 1e-6), grid.to_cell(x1 - 1e-6, y1 - 1e-6)
                cells[max(r0, 0) : r1 + 1, max(c0, 0) : c1 + 1] = Cell.OCCUPIED
        cells[: border - 4], cells[:, : border - 4] = Cell.UNKNOWN, Cell.UNKNOWN
        return grid

    def scene(self, view_points: dict[str, tuple[SE2, ...]] | None = None, **content: object) -> Scene:
        """The world as a scene without meshes."""
        file = SceneFile(schema=1, name="boxes", rooms=(), **({"objects": ()} | content))  # type: ignore[arg-type]
        return Scene(Path("boxes"), file, self.occupancy(), view_points or {}, "")


@dataclass(frozen=True)
class Run:
    """Record of an episode."""

    stopped: bool
    pose: SE2
    tilt_rad: float
    steps: int
    path_m: float
    collisions: int
    actions: tuple[Action, ...]


def run(
    world: BoxWorld,
    agent: Policy,
    task: Task,
    episode: Episode,
    scene: Scene | None = None,
    semantic: bool = False,
    blind: bool = False,
    disturb: Callable[[SE2], SE2] = lambda pose: pose,
) -> Run:
    """One episode. ``blind`` leaves out depth; ``disturb`` alters the pose after every action (actuation noise)."""
    state = {"pose": episode.start, "tilt": task.camera.tilt_rad}
    privileged = None
    if agent.privileged:
        assert scene is not None
        privileged = World(scene, episode, lambda: state["pose"], lambda: state["tilt"])
    agent.reset(task, 7, privileged)
    path_m, collisions, actions = 0.0, 0, []
    while len(actions) < task.max_steps:
        action = agent.act(observe(world, task, episode, state["pose"], state["tilt"], semantic, blind))
        actions.append(action)
        if action is Action.STOP:
            break
        wish = task.magnitudes.displacement(action)
        before, blocked = state["pose"], False
        if action is Action.MOVE_FORWARD:
            state["pose"], blocked = world.forward(before, wish.forward_m)
        state["pose"] = disturb(state["pose"] @ SE2(0, 0, wish.turn_rad))
        state["tilt"] += wish.tilt_rad
        path_m += before.distance_to(state["pose"])
        collisions += blocked
    stopped = bool(actions) and actions[-1] is Action.STOP
    return Run(stopped, state["pose"], state["tilt"], len(actions), path_m, collisions, tuple(actions))


def observe(
    world: BoxWorld,
    task: Task,
    episode: Episode,
    pose: SE2,
    tilt_rad: float,
    semantic: bool = False,
    blind: bool = False,
) -> Observation:
    """Observation of the task's sensors at a pose; depth is clipped to the camera's range as the runtime does."""
    camera, goal = task.camera, episode.goals[0]
    observation: Observation = {
        "gps": gps(episode.start, pose).astype(np.float32),
        "compass": np.array([compass(episode.start, pose)], np.float32),
        "pointgoal": polar_goal(episode.start, goal.x_m, goal.y_m).astype(np.float32),
    }
    if task.kind == "objectnav":
        observation["objectgoal"] = np.array([task.categories["thing"].id], np.int64)
    if blind:
        return observation
    depth, index = world.render(camera, pose, tilt_rad)
    depth = np.clip(np.where(np.isfinite(depth), depth, camera.depth_max_m), camera.depth_min_m, camera.depth_max_m)
    if camera.depth_normalized:
        depth = (depth - camera.depth_min_m) / (camera.depth_max_m - camera.depth_min_m)
    observation["depth"] = depth.astype(np.float32)[..., None]
    if semantic:
        wanted = (index == world.thing) & (world.thing is not None)
        observation["semantic"] = np.where(wanted, 3, -1).astype(np.int32)[..., None]
    return observation


def shortest_m(world: BoxWorld, start: SE2, goal: tuple[float, float]) -> float:
    """Geodesic distance for the robot's radius."""
    return GeodesicMap(world.occupancy(), RADIUS_M).distance(start.x_m, start.y_m, [goal])


def flat(seed: int, furniture: int = 12) -> BoxWorld:
    """A furnished flat of 3 x 2 rooms, 9 x 6 m, with doors of 0.9 m that nothing stands in.

    Some furniture hangs at 0.6 m, as table tops do: the robot sees under it and does not fit.
    """
    rng = np.random.default_rng(seed)
    boxes: list[Box] = []
    doors: list[tuple[float, float]] = []
    room, half, door = 3.0, 0.05, 0.9
    for column in (1, 2):
        for row in (0, 1):
            x, y = column * room, row * room
            at = y + rng.uniform(0.4, room - door - 0.4)
            boxes += [(x - half, y, 0, x + half, at, 2.5), (x - half, at + door, 0, x + half, y + room, 2.5)]
            doors.append((x, at + door / 2))
    for column in range(3):
        x = column * room
        at = x + rng.uniform(0.4, room - door - 0.4)
        if column == 1:
            boxes.append((x, room - half, 0, x + room, room + half, 2.5))
            continue
        boxes += [(x, room - half, 0, at, room + half, 2.5), (at + door, room - half, 0, x + room, room + half, 2.5)]
        doors.append((at + door / 2, room))
    while furniture:
        w, h = rng.uniform(0.2, 1.0, 2)
        x, y = rng.uniform(0.0, 9 - w), rng.uniform(0.0, 6 - h)
        z0 = 0.0 if rng.random() < 0.8 else 0.6
        if all(math.hypot(x + w / 2 - dx, y + h / 2 - dy) > 0.7 + max(w, h) / 2 for dx, dy in doors):
            boxes.append((x, y, z0, x + w, y + h, z0 + rng.uniform(0.35, 1.2)))
            furniture -= 1
    return BoxWorld((9.0, 6.0), boxes)


def random_episode(world: BoxWorld, seed: int) -> tuple[SE2, tuple[float, float], float]:
    """A start, a goal and their geodesic distance: 2 m or more, and no straight line (as in the Habitat paper)."""
    rng = np.random.default_rng(seed)
    space = GeodesicMap(world.occupancy(), RADIUS_M)
    while True:
        points = [(rng.uniform(0, world.size[0]), rng.uniform(0, world.size[1])) for _ in range(2)]
        if not all(space.is_navigable(*point) for point in points):
            continue
        length = space.distance(*points[0], [points[1]])
        if math.isfinite(length) and length >= 2.0 and length >= 1.1 * math.dist(*points):
            return SE2(*points[0], rng.uniform(-math.pi, math.pi)), points[1], length
