"""Logs of a robot that looks round a room, and copies of rooms in which things stand elsewhere."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from scipy.spatial.transform import Rotation

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import StepRecord
from robot_runtime.robots.loader import RobotContext, RobotFile, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene, load_scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Success, Task, TrainingCamera
from sim_bridge.scenes.scene_files import save_scene_file

F, L, DOWN, STOP = Action.MOVE_FORWARD, Action.TURN_LEFT, Action.LOOK_DOWN, Action.STOP

TASK = Task(
    name="survey",
    kind="pointnav",
    source="",
    actions=(STOP, F, L, DOWN),
    magnitudes=Magnitudes(0.25, 30, 30),
    sensors=("rgb", "depth", "pointgoal_with_gps_compass"),
    camera=TrainingCamera(160, 120, 79.0, 0.88, 0.1, 10.0, depth_normalized=False),
    robot_radius_m=0.18,
    max_steps=100,
    success=Success("distance", 0.36),
)

ROUND = [L] * 11 + [F, DOWN] + [L] * 11
"""Once round level, a step, and once round looking down."""

PLACES = (SE2(-1.9, 0.6, 0.2), SE2(0.2, -1.1, 1.0), SE2(1.9, -0.6, 2.0))


class Script(Policy):
    """Does what a list says, and then stops."""

    name = "script"

    def __init__(self, script: Sequence[Action]) -> None:
        self._script = script

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._left = list(self._script)

    def act(self, observation: Observation) -> Action:
        return self._left.pop(0) if self._left else STOP


def survey(
    folder: Path,
    scene: Scene,
    places: Sequence[SE2] = PLACES,
    script: Sequence[Action] = ROUND,
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Logs of one episode at each place."""
    episode = Episode("0", scene.name, places[0], (Goal(0.0, 0.0),))
    file = RobotFile("surveyor", "sim_bridge.robot.driver.make_robot", dict(options or {}))
    recorder = Recorder(folder)
    context = RobotContext.of(TASK, scene, [episode], 0)
    with (
        build_robot(file, "surveyor.yaml", context) as robot,
        Env(robot, TASK, scene, (recorder,), robot_config=asdict(file), judged=False) as env,
    ):
        for number, place in enumerate(places):
            run_episode(env, Script(script), replace(episode, id=str(number), start=place), number)
        recorder.close()
    return sorted(folder.glob("*.mcap"))


def rewritten(
    log: Path,
    folder: Path,
    step: Callable[[StepRecord], StepRecord] = lambda record: record,
    header: Mapping[str, Any] | None = None,
) -> Path:
    """A log of which every step, or the header, is different."""
    recorder = Recorder(folder)
    with LogReader(log) as reader:
        recorder.on_episode_start(replace(reader.header, **(header or {})))
        for record in reader.steps():
            recorder.on_step(step(record))
        assert reader.end is not None
        recorder.on_episode_end(reader.end)
    assert recorder.path is not None
    return recorder.path


def rearranged(scene: Scene, folder: Path, moves: Mapping[str, SE2], removed: Sequence[str] = ()) -> Scene:
    """A copy in which objects are moved by (dx, dy) and turned about their middles, or are gone.

    Its map is the old one, as it is where nobody told the robot.
    """
    shutil.copytree(scene.folder, folder)
    (folder / "view_points.json").unlink(missing_ok=True)
    centers = {item.id: item.center for item in scene.objects}
    objects, assets = [], []
    for item in scene.objects:
        move = moves.get(item.id, SE2())
        x_m, y_m, z_m = item.center
        yaw_deg = item.yaw_deg + math.degrees(move.yaw_rad)
        if item.id not in removed:
            objects.append(replace(item, center=(x_m + move.x_m, y_m + move.y_m, z_m), yaw_deg=yaw_deg))
    for asset in scene.file.assets:
        if asset.object is not None and asset.object in moves:
            move, (cx, cy, _) = moves[asset.object], centers[asset.object]
            w, x, y, z = asset.quaternion
            turn = Rotation.from_euler("z", move.yaw_rad)
            px, py, pz = turn.apply([asset.position[0] - cx, asset.position[1] - cy, asset.position[2]]).tolist()
            qx, qy, qz, qw = (turn * Rotation.from_quat([x, y, z, w])).as_quat().tolist()
            position = (px + cx + move.x_m, py + cy + move.y_m, pz)
            asset = replace(asset, position=position, quaternion=(qw, qx, qy, qz))
        if asset.object not in removed:
            assets.append(asset)
    save_scene_file(folder / "scene.yaml", replace(scene.file, objects=tuple(objects), assets=tuple(assets)))
    return load_scene(folder)
