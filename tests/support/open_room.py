"""An empty room of 6 x 6 m, the fake robot in it, and a witness of what an environment tells its subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drivers.fake.driver import make_robot
from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, PoseEstimate, Robot
from robot_runtime.hal.events import Event
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Category, Success, Task, TrainingCamera

HALF_M = 3.0
CAMERA = TrainingCamera(
    width=32, height=24, hfov_deg=79.0, height_m=0.88, depth_min_m=0.5, depth_max_m=5.0, depth_normalized=True
)


def make_scene() -> Scene:
    """A room from -3 to 3 m with a vase at (2, 2); the outermost cells of its map are walls."""
    cells = np.full((120, 120), Cell.FREE, np.uint8)
    cells[[0, -1], :] = cells[:, [0, -1]] = Cell.OCCUPIED
    corners = ((-HALF_M, -HALF_M), (HALF_M, -HALF_M), (HALF_M, HALF_M), (-HALF_M, HALF_M))
    file = SceneFile(
        schema=1,
        name="open_room",
        rooms=(Room("hall", "hall", corners),),
        objects=(SceneObject("vase_1", "vase", (2.0, 2.0, 0.1), (0.2, 0.2, 0.2), room="hall"),),
    )
    view_points = {"vase_1": (SE2(1.5, 1.5, 0.8),)}
    return Scene(Path("open_room"), file, OccupancyMap(cells, 0.05, -HALF_M, -HALF_M), view_points, "digest")


def make_task(kind: str = "pointnav", **changes: Any) -> Task:
    """PointNav with every sensor but ``semantic``, or ObjectNav to a vase; 20 steps."""
    pointnav = kind == "pointnav"
    goal_sensors = ("pointgoal", "pointgoal_with_gps_compass") if pointnav else ("objectgoal",)
    look = () if pointnav else (Action.LOOK_UP, Action.LOOK_DOWN)
    settings: dict[str, Any] = {
        "name": f"{kind}_test",
        "kind": kind,
        "source": "",
        "actions": (Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, *look),
        "magnitudes": Magnitudes(0.25, 30, 30),
        "sensors": ("rgb", "depth", "gps", "compass", *goal_sensors),
        "camera": CAMERA,
        "robot_radius_m": 0.18,
        "max_steps": 20,
        "success": Success("distance", 0.36, target="goal" if pointnav else "view_points"),
        "categories": {} if pointnav else {"Vase": Category(11, ("vase",))},
    }
    return Task(**{**settings, **changes})


def make_episode(start: SE2 | None = None, goal: tuple[float, float] = (1.0, 0.0), **changes: Any) -> Episode:
    """From the room's centre, heading +x, to a goal."""
    return Episode(**{"id": "1", "scene": "open_room", "start": start or SE2(), "goals": (Goal(*goal),), **changes})


def make_object_episode(**changes: Any) -> Episode:
    """Find the vase; its goals are left to the scene."""
    return make_episode(**{"goals": (), "category": "Vase", **changes})


def make_fake(task: Task, **options: Any) -> Robot:
    """The fake robot with the task's camera, not yet connected."""
    return make_robot(RobotContext(make_scene(), task.camera, seed=0), "fake", {"rate_hz": 50.0, **options}, "test")


@contextmanager
def fake_robot(task: Task, **options: Any) -> Iterator[Robot]:
    """The same, connected."""
    with make_fake(task, **options) as robot:
        yield robot


class Witness(Subscriber):
    """Keeps everything; checks that the order of calls is the one that is promised."""

    def __init__(self) -> None:
        self.headers: list[EpisodeHeader] = []
        self.steps: list[StepRecord] = []
        self.states: list[BaseState] = []
        self.events: list[Event] = []
        self.poses: dict[str, list[PoseEstimate]] = {}
        self.ends: list[EpisodeEnd] = []

    def on_episode_start(self, header: EpisodeHeader) -> None:
        assert len(self.headers) == len(self.ends), "an episode started before the last one ended"
        self.headers.append(header)
        self.steps.clear()
        self.states.clear()
        self.events.clear()
        self.poses.clear()

    def on_step(self, record: StepRecord) -> None:
        assert len(self.headers) == len(self.ends) + 1, "a step outside an episode"
        assert record.index == len(self.steps)
        self.steps.append(record)

    def on_base_state(self, state: BaseState) -> None:
        assert len(self.headers) == len(self.ends) + 1, "a base state outside an episode"
        self.states.append(state)

    def on_event(self, event: Event) -> None:
        assert len(self.headers) == len(self.ends) + 1, "an event outside an episode"
        self.events.append(event)

    def on_poses(self, source: str, estimates: tuple[PoseEstimate, ...]) -> None:
        assert len(self.headers) == len(self.ends) + 1, "poses outside an episode"
        assert estimates, "nothing is told of"
        self.poses.setdefault(source, []).extend(estimates)

    def on_episode_end(self, end: EpisodeEnd) -> None:
        assert len(self.headers) == len(self.ends) + 1, "an episode ended twice"
        self.ends.append(end)
