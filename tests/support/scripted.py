"""Logs of robots that do what a list says, recorded like any other episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.actions.timed import Decision
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.policy import Observation, Policy, World
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeEnd, StepRecord
from robot_runtime.robots.loader import RobotContext, RobotFile, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Success, Task, TrainingCamera
from sim_bridge.replay.log_replay import ReplayCache, replay_log
from sim_bridge.replay.options import ReplayOptions
from sim_bridge.replay.results import Replay

F, L, R, UP, DOWN, STOP = (
    Action.MOVE_FORWARD,
    Action.TURN_LEFT,
    Action.TURN_RIGHT,
    Action.LOOK_UP,
    Action.LOOK_DOWN,
    Action.STOP,
)

TASK = Task(
    name="scripted",
    kind="pointnav",
    source="",
    actions=(STOP, F, L, R, UP, DOWN),
    magnitudes=Magnitudes(0.25, 30, 30),
    sensors=("rgb", "depth", "pointgoal_with_gps_compass"),
    camera=TrainingCamera(64, 48, 79.0, 0.88, 0.1, 10.0, depth_normalized=False),
    robot_radius_m=0.18,
    max_steps=100,
    success=Success("distance", 0.36),
)

INTO_A_WALL = [L, UP, F, F, F, F, F, F, F, F, R, R, DOWN, F, L, F, STOP]
"""From the middle of the room: a look, on to the north wall and twice against it, and away again."""


class Script(Policy):
    """Decides what a list says, and then ``stop``."""

    name = "script"

    def __init__(self, script: Sequence[Decision]) -> None:
        self._script = script

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._left = list(self._script)

    def act(self, observation: Observation) -> Decision:
        return self._left.pop(0) if self._left else STOP


def record(
    folder: Path,
    scene: Scene,
    scripts: Sequence[Sequence[Decision]],
    task: Task = TASK,
    starts: Sequence[SE2] = (SE2(),),
    episode: Episode | None = None,
    driver: str = "sim_bridge.robot.driver.make_robot",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """The logs of one run: an episode per script, from the starts in turn."""
    episode = episode or Episode("0", scene.name, SE2(), (Goal(1.0, -1.0),))
    file = RobotFile("scripted", driver, dict(options or {}))
    recorder = Recorder(folder)
    context = RobotContext.of(task, scene, [episode], seed)
    with (
        build_robot(file, "scripted.yaml", context) as robot,
        Env(robot, task, scene, (recorder,), seed=seed, robot_config=asdict(file)) as env,
    ):
        for number, script in enumerate(scripts):
            start = replace(episode, id=str(number), start=starts[number % len(starts)])
            run_episode(env, Script(script), start, seed + number)
        recorder.close()
    return sorted(folder.glob("*.mcap"))


def replayed(logs: Sequence[Path], **options: Any) -> list[Replay]:
    """Replays of logs, one after the other, with shared simulators; actions alone unless ``parts`` are named."""
    chosen = ReplayOptions(**{"parts": ("action",), **options})
    with ReplayCache(chosen) as cache:
        return [replay_log(log, chosen, cache, log.stem) for log in logs]


def steps_of(log: Path, images: bool = False) -> list[StepRecord]:
    """Content of a log."""
    with LogReader(log) as reader:
        return list(reader.steps(images=images))


def rewritten(
    log: Path,
    folder: Path,
    step: Callable[[StepRecord], StepRecord] = lambda record: record,
    header: Mapping[str, Any] | None = None,
    end: EpisodeEnd | None = None,
) -> Path:
    """A log of which something is different.

    Args:
        step: makes another record of each. header: fields that are others. end: in place of the log's.
    """
    recorder = Recorder(folder)
    with LogReader(log) as reader:
        recorder.on_episode_start(replace(reader.header, **(header or {})))
        for record in reader.steps():
            recorder.on_step(step(record))
        told = end or reader.end
        assert told is not None
        recorder.on_episode_end(told)
    assert recorder.path is not None
    return recorder.path


def moved(record: StepRecord, x_m: float = 0.0, y_m: float = 0.0, frame: str = "map") -> StepRecord:
    """As a referee would have it that is off by this much, or reports in another frame."""
    pose = record.referee.pose
    estimate = replace(record.referee, pose=SE2(pose.x_m + x_m, pose.y_m + y_m, pose.yaw_rad), frame=frame)
    return replace(record, referee=estimate)
