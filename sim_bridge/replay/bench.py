"""``robot-runtime bench replay``: what replaying recorded actions costs, and what a second worker is worth."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from robot_runtime.actions import Action
from robot_runtime.bench import Row, print_rows, write_rows
from robot_runtime.clock import Stopwatch
from robot_runtime.commands import Decision
from robot_runtime.policies.policy import Observation, Policy, World
from robot_runtime.tasks.task import Task

TASK = "pointnav_gps_compass"
STEPS = 100

REPEATS = 5
"""How often every log is replayed to compare workers: a campaign, against which starting them is little."""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["bench"].command("replay")(replay)


def replay(
    episodes: Annotated[int, typer.Option(min=2, help="Episodes of 100 actions to record and replay.")] = 24,
    rounds: Annotated[int, typer.Option(min=1, help="Times that one worker and two are measured, in turns.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and actions.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file.")] = None,
) -> None:
    """Measure action replay in the bundled apartment: episodes of 100 actions by an agent that seldom stands still.

    A replay is what the command does with a log once its twin is built: reading the log, placing the robot, 100 actions
    through environment and motion control, comparing.

    Examples:

        robot-runtime bench replay

        robot-runtime bench replay --episodes 4 --rounds 1 --json bench_replay.json
    """
    from robot_runtime.cli.console import console
    from sim_bridge import gl

    gl.choose_backend()
    with tempfile.TemporaryDirectory() as folder:
        logs = record(Path(folder) / "logs", episodes, seed, images=False)
        seen = record(Path(folder) / "seen", max(2, episodes // 6), seed, images=True)
        rows = [
            _replay_row("action_replay_s", "without images", logs, False, 0.5),
            _replay_row("rgbd_replay_s", "with RGB-D 640x480, beside the recorded images", seen, True, 4.0),
            _workers_row(logs, rounds, Path(folder) / "out"),
        ]
    print_rows("bench replay", rows, console)
    if json is not None:
        write_rows(json, "replay", rows)
        console.print(f"rows: {json}", soft_wrap=True)


class Wanderer(Policy):
    """Drives straight on; turns a random way where something is in its way, and now and then for no reason."""

    name = "wanderer"

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._turns: list[Action] = []
        self._before: tuple[float, ...] | None = None

    def act(self, observation: Observation) -> Decision:
        here = tuple(observation["gps"].tolist())
        if not self._turns and (here == self._before or self._random.random() < 0.1):
            way = Action.TURN_LEFT if self._random.random() < 0.5 else Action.TURN_RIGHT
            self._turns = [way] * int(self._random.integers(1, 12))
        self._before = here
        return self._turns.pop() if self._turns else Action.MOVE_FORWARD


def record(folder: Path, count: int, seed: int, images: bool) -> list[Path]:
    """Logs of episodes of :data:`STEPS` actions in the bundled apartment, by an exact robot.

    Args:
        images: whether they show anything.
    """
    from robot_runtime.cli.console import progress_bar
    from robot_runtime.env import Env
    from robot_runtime.episodes.generate import generate_episodes
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots import RobotContext, load_robot
    from robot_runtime.runtime import run_episodes
    from robot_runtime.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    scene = load_scene(find_scene("apartment"))
    task = replace(load_task(TASK), max_steps=STEPS, sensors=("gps",))
    episodes = generate_episodes(scene, task, count, seed)
    recorder = Recorder(folder)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task("record" + (" with images" if images else ""), total=count, note="")
        context = replace(RobotContext.of(task, scene, episodes, seed), images=images)
        robot = stack.enter_context(load_robot("sim", context))
        stack.callback(recorder.close)
        env = stack.enter_context(Env(robot, task, scene, (recorder,), seed=seed))
        for _ in run_episodes(env, Wanderer(), episodes, seed):
            progress.advance(bar)
    return sorted(folder.glob("*.mcap"))


def _replay_row(row: str, what: str, logs: Sequence[Path], images: bool, target_s: float) -> Row:
    took_s, build_s = time_replays(logs, images)
    return Row(
        row,
        f"action replay of a {STEPS}-step episode, {what}",
        statistics.median(took_s),
        "s",
        target_s,
        "<=",
        low=min(took_s),
        high=max(took_s),
        note=f"median and range of {len(took_s)} episodes; scene and twin, built once: {build_s:.1f} s",
    )


def time_replays(logs: Sequence[Path], images: bool) -> tuple[list[float], float]:
    """Seconds per log, by a twin that is there; and seconds until it is."""
    from robot_runtime.recording.reader import LogReader
    from sim_bridge.replay.kept import Kept
    from sim_bridge.replay.options import ReplayOptions
    from sim_bridge.replay.replay import replay_log

    options = ReplayOptions(parts=("action",), images=images)
    took_s = []
    with Kept(options) as kept:
        watch = Stopwatch()
        with LogReader(logs[0]) as log:
            twin = kept.twin(log.header, kept.scene(log.header), images)
            twin.begin(log.header, log.header.episode.start, 0.0)
        build_s = watch.elapsed_s()
        for log_path in logs:
            watch.restart()
            replay_log(log_path, options, kept, log_path.stem)
            took_s.append(watch.elapsed_s())
    return took_s, build_s


def _workers_row(logs: Sequence[Path], rounds: int, out: Path) -> Row:
    ratios = [one_s / two_s for one_s, two_s in time_workers(logs, rounds, out)]
    return Row(
        "two_workers_speedup",
        f"{len(logs) * REPEATS} action replays without images by one process, and by two workers",
        statistics.median(ratios),
        "times",
        1.7,
        low=min(ratios),
        high=max(ratios),
        note=f"median and range of {rounds} rounds in turns; starting workers and twins counts",
    )


def time_workers(logs: Sequence[Path], rounds: int, out: Path) -> list[tuple[float, float]]:
    """Seconds that one worker and two take for the same replays, round by round."""
    from robot_runtime.cli.console import progress_bar
    from robot_runtime.workers.mapping import Workers
    from sim_bridge.replay.batch import Job, replay_logs
    from sim_bridge.replay.options import ReplayOptions

    jobs = [Job(path, f"{path.stem}-{number}") for number in range(REPEATS) for path in logs]
    options = ReplayOptions(parts=("action",), out=out)
    found = []
    with progress_bar() as progress:
        bar = progress.add_task("one worker, two workers", total=2 * rounds * len(jobs), note="")
        for _ in range(rounds):
            took_s = []
            for count in (1, 2):
                watch = Stopwatch()
                replay_logs(
                    jobs, options, Workers(count), pages=False, overwrite=True, on_done=lambda _: progress.advance(bar)
                )
                took_s.append(watch.elapsed_s())
            found.append((took_s[0], took_s[1]))
    return found
