"""``robot-runtime bench gap``: whether hidden settings of a robot are found, and foretold correlations keep their word.

A simulated robot with random settings that nobody is told plays the real one: actions end short or long, the camera
hangs, walls stop it or it slides, poses come late. From the logs of 50 episodes alone `robot-runtime fit`
makes a simulated robot, and `robot-runtime gap` says how well that foretells which policy is better. Then comes what
nobody has in a laboratory: a further, larger campaign of the same policies in both worlds, and its correlation.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from robot_runtime.bench import Row, print_rows, write_rows
from robot_runtime.errors import CalibrationFailed

Floats = NDArray[np.float64]
Options = dict[str, Any]

ZOO: tuple[tuple[str, dict[str, Any]], ...] = (
    ("oracle", {}),
    ("oracle", {"looks_every": 6}),
    ("oracle", {"looks_every": 12}),
    ("oracle", {"looks_every": 30}),
    ("goal-follower", {"off_axis_deg": 50.0, "stop_distance_m": 0.3}),
)
"""Agents and their arguments: from those that errors of actions do not matter to, to those that walls hold for ever."""

EPISODES = 10
"""Of each policy, in the campaign that is fitted: 50 in all."""

FURTHER = 2
"""The further campaign is so many times as large."""

MAX_STEPS = 60
SLIDING: Options = {"contact": {"behaviour": "slide"}}
ENDLESS: Options = {"battery": {"capacity_wh": 1e6}}
"""A real one would be charged some time during the further campaign."""

LIMIT_S = 1_800.0


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["bench"].command("gap")(gap)


def gap(
    trials: Annotated[int, typer.Option(min=1, help="Robots with settings of their own.")] = 20,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of everything.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the rows to this file.")] = None,
) -> None:
    """Measure whether hidden settings are found from 50 episodes, and whether foretold correlations hold.

    Every trial is a simulated robot with settings of its own: 50 logged episodes in the bundled arena, a fit, and a
    further campaign of twice as many episodes in both worlds, without images. A minute or two each.

    Examples:

        robot-runtime bench gap --workers 2

        robot-runtime bench gap --trials 2 --json bench_gap.json
    """
    from robot_runtime.cli.console import console, progress_bar
    from robot_runtime.workers.mapping import Workers, map_in_order
    from sim_bridge import gl

    gl.choose_backend()
    found: list[Trial] = []
    with progress_bar() as progress:
        bar = progress.add_task("trials", total=trials, note="")
        numbers = [(seed, number) for number in range(trials)]
        for one in map_in_order(_trials, numbers, Workers(workers), _lost, chunk=1, limit_s=LIMIT_S):
            found.append(one)
            progress.advance(bar)
    rows = rows_of(found)
    print_rows("bench gap", rows, console)
    if json is not None:
        write_rows(json, "gap", rows)
        console.print(f"rows: {json}", soft_wrap=True)


@dataclass(frozen=True)
class Hidden:
    """What one robot does that nobody is told.

    Attributes:
        forward_m: how much farther a move of 0.25 m goes. turn_rad: how much farther a turn of 30 degrees goes, either
            way. tilt_deg: of the camera, up positive. slides: along walls. latency_s: of poses.
        spread_m, spread_rad: standard deviations of an action's end, along its way and of its heading.
    """

    forward_m: float
    turn_rad: float
    tilt_deg: float
    slides: bool
    latency_s: float
    spread_m: float
    spread_rad: float

    @classmethod
    def draw(cls, random: np.random.Generator) -> Hidden:
        """Biases of 4 to 10 %, 1 to 4 degrees of tilt, and a coin for the walls."""

        def either_way(low: float, high: float) -> float:
            return float(random.uniform(low, high) * random.choice((-1, 1)))

        return cls(
            forward_m=0.25 * either_way(0.04, 0.1),
            turn_rad=math.radians(30.0) * either_way(0.04, 0.1),
            tilt_deg=either_way(1.0, 4.0),
            slides=bool(random.integers(2)),
            latency_s=float(random.uniform(0.02, 0.1)),
            spread_m=float(random.uniform(0.003, 0.01)),
            spread_rad=float(random.uniform(0.008, 0.02)),
        )

    def options(self) -> Options:
        """Of the simulated robot that plays the real one."""
        covariance = np.diag([self.spread_m**2, (self.spread_m / 2) ** 2, self.spread_rad**2]).tolist()
        means = {
            "move_forward": [self.forward_m, 0.0, 0.0],
            "turn_left": [0.0, 0.0, self.turn_rad],
            "turn_right": [0.0, 0.0, -self.turn_rad],
        }
        return {
            "contact": {"behaviour": "slide" if self.slides else "stop"},
            "action_noise": {
                "model": "gaussian",
                "forward_m": 0.25,
                "turn_deg": 30.0,
                "actions": {name: {"mean": mean, "covariance": covariance} for name, mean in means.items()},
            },
            "camera": {"mount_error": {"tilt_deg": self.tilt_deg}},
            "localizer": {"rate_hz": 50.0, "latency_s": self.latency_s},
        }


@dataclass(frozen=True)
class Trial:
    """What one trial found.

    Attributes:
        forward_pct, turn_pct: errors of the biases found, in % of them. tilt_deg: of the tilt.
        sliding: whether walls were told right.
        before, after: SRCC of SPL of the simulator that slides and errs nowhere, and of the fitted one, in the further
            campaign. low, high: where the latter was foretold to lie.
    """

    forward_pct: float
    turn_pct: float
    tilt_deg: float
    sliding: bool
    before: float
    after: float
    low: float
    high: float

    @property
    def held(self) -> bool:
        """Whether the correlation lay where it was foretold."""
        return self.low <= self.after <= self.high


def run_trial(seed: int, number: int, folder: Path, episodes: int = EPISODES, further: int = FURTHER) -> Trial:
    """One hidden robot, fitted and foretold.

    Raises:
        CalibrationFailed: the fit failed; with what it said.
    """
    from robot_runtime import config
    from robot_runtime.actuation import load_actuation
    from robot_runtime.robots import RobotFile
    from robot_runtime.scoring.correlation import correlation_interval
    from robot_runtime.scoring.statistics import srcc

    hidden = Hidden.draw(np.random.default_rng((seed, number)))
    first, later = 10_000 * (seed + 1) + 100 * number, 10_000_000 + 10_000 * seed + 100 * number
    robot = hidden.options()
    real = campaign(robot, episodes, first, folder / "real")
    fit(folder / "real", folder / "fitted")
    fitted: Options = config.load(folder / "fitted" / "robot.yaml", RobotFile).options
    foretold = correlation_interval(campaign(fitted, episodes, first, simulated=True), real, further=further)
    reality, prophet, naive = (
        campaign(options, further * episodes, later, simulated=options is not robot).mean(axis=1)
        for options in (robot, fitted, SLIDING)
    )

    errors = load_actuation(folder / "fitted" / "actuation.yaml").actions
    turn_rad = (errors["turn_left"].mean[2] - errors["turn_right"].mean[2]) / 2
    tilt_deg = fitted.get("camera", {}).get("mount_error", {}).get("tilt_deg", 0.0)
    behaviour = fitted.get("contact", {}).get("behaviour", "stop")
    return Trial(
        forward_pct=100 * abs(errors["move_forward"].mean[0] / hidden.forward_m - 1),
        turn_pct=100 * abs(turn_rad / hidden.turn_rad - 1),
        tilt_deg=abs(tilt_deg - hidden.tilt_deg),
        sliding=(behaviour == "slide") == hidden.slides,
        before=srcc(naive, reality),
        after=srcc(prophet, reality),
        low=foretold.low,
        high=foretold.high,
    )


def campaign(options: Options, episodes: int, seed: int, logs: Path | None = None, simulated: bool = False) -> Floats:
    """SPL (policies, episodes) of the zoo in the bundled arena on a simulated robot.

    Args:
        seed: of episodes, which are the same for all policies and in both worlds, and of errors, which are not.
        logs: folder to record to, with small images; None for neither.
    """
    from contextlib import ExitStack
    from dataclasses import replace

    from robot_runtime.env import Env
    from robot_runtime.episodes.generate import generate_episodes
    from robot_runtime.policies import load_policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots import RobotContext, RobotFile, build_robot
    from robot_runtime.runtime import run_episode
    from robot_runtime.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    scene = load_scene(find_scene("arena"))
    task = load_task("pointnav_gps_compass")
    sensors = tuple(name for name in task.sensors if name not in ("rgb", "depth") or (logs and name == "depth"))
    camera = replace(task.camera, width=160, height=120)
    task = replace(task, sensors=sensors, camera=camera, max_steps=MAX_STEPS)
    drawn = generate_episodes(scene, task, episodes, seed)
    file = RobotFile("hidden", "sim_bridge.robot.make_robot", options | ENDLESS)
    context = replace(RobotContext.of(task, scene, drawn, 2 * seed + simulated), images=logs is not None)
    spl = np.zeros((len(ZOO), episodes))
    with ExitStack() as stack:
        robot = stack.enter_context(build_robot(file, "bench gap", context))
        recorders = () if logs is None else (Recorder(logs),)
        for recorder in recorders:
            stack.callback(recorder.close)
        env = stack.enter_context(Env(robot, task, scene, recorders, seed=seed, robot_config={"options": options}))
        for row, (agent, arguments) in enumerate(ZOO):
            policy = load_policy(agent, None, **arguments)
            for column, episode in enumerate(drawn):
                run_episode(env, policy, episode, seed + column, f"{agent} {row}")
                spl[row, column] = env.get_metrics()["spl"] or 0.0
    return spl


def fit(logs: Path, out: Path) -> None:
    """``robot-runtime fit``, as its users run it. Raises ``CalibrationFailed`` with what it said."""
    command = [sys.executable, "-m", "robot_runtime", "fit", str(logs), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S / 2)
    if done.returncode != 0:
        raise CalibrationFailed(f"robot-runtime fit: {done.stderr.strip() or done.stdout.strip()}", "run it by hand")


def rows_of(trials: Sequence[Trial]) -> list[Row]:
    """Errors are those of the worst trial; spreads are over trials."""
    from robot_runtime.scoring.intervals import wilson

    held = wilson(sum(trial.held for trial in trials), len(trials))
    worst = f"the worst of {len(trials)} hidden robots, from {EPISODES * len(ZOO)} episodes each"
    forward, turn, tilt = ([getattr(t, name) for t in trials] for name in ("forward_pct", "turn_pct", "tilt_deg"))
    before, after = [trial.before for trial in trials], [trial.after for trial in trials]
    width = statistics.median(trial.high - trial.low for trial in trials)
    return [
        Row("found_forward_bias_pct", f"error of the forward bias found, {worst}", *_worst(forward, "%", 10.0)),
        Row("found_turn_bias_pct", f"error of the turn bias found, {worst}", *_worst(turn, "%", 10.0)),
        Row("found_tilt_deg", f"error of the camera's tilt found, {worst}", *_worst(tilt, "deg", 0.5)),
        Row("found_sliding", "share of robots whose walls were told right", _share(t.sliding for t in trials), "", 1.0),
        Row(
            "srcc_coverage",
            f"share of correlations of a further campaign, {FURTHER} times as large, that lie where they were foretold",
            held.mean,
            "",
            0.9,
            low=held.low,
            high=held.high,
            note=f"95 % intervals, their median width {width:.2f}",
        ),
        Row(
            "srcc_before",
            "median SRCC of SPL, simulator that slides and errs nowhere",
            statistics.median(before),
            "",
            low=min(before),
            high=max(before),
        ),
        Row(
            "srcc_after",
            "median SRCC of SPL, fitted simulator",
            statistics.median(after),
            "",
            low=min(after),
            high=max(after),
            note="range over the trials",
        ),
    ]


def _worst(errors: Sequence[float], unit: str, target: float) -> tuple[Any, ...]:
    return (
        max(errors),
        unit,
        target,
        "<=",
        "",
        None,
        min(errors),
        max(errors),
        f"median {statistics.median(errors):.2g}",
    )


def _share(told: Iterable[bool]) -> float:
    return statistics.mean(map(float, told))


def _trials(numbers: Iterable[tuple[int, int]]) -> Iterator[Trial]:
    for seed, number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            yield run_trial(seed, number, Path(folder))


def _lost(number: tuple[int, int], how: Any) -> Trial:
    raise CalibrationFailed(f"trial {number[1]}: {how}", "use fewer workers")
