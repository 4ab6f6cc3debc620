"""One trial of ``bench gap``: a campaign on a randomized robot, a fit of its logs, a further campaign."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.env import Env
from robot_runtime.errors import CalibrationFailed
from robot_runtime.policies import load_policy
from robot_runtime.recording.writer import Recorder
from robot_runtime.robots.action_errors import load_actuation
from robot_runtime.robots.loader import RobotContext, RobotFile, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.scoring.sim_to_real.correlation import correlation_interval
from robot_runtime.scoring.statistics.hypothesis_tests import srcc
from robot_runtime.tasks.task import load_task
from tests.benchmarks.sim.randomized_robot import RandomizedParameters

Floats = NDArray[np.float64]
Options = dict[str, Any]

ZOO: tuple[tuple[str, dict[str, Any]], ...] = (
    ("oracle", {}),
    ("oracle", {"looks_every": 6}),
    ("oracle", {"looks_every": 12}),
    ("oracle", {"looks_every": 30}),
    ("goal-follower", {"off_axis_deg": 50.0, "stop_distance_m": 0.3}),
)
"""Agents and their arguments, from insensitive to action errors to stuck at every wall."""

EPISODES = 10
"""Episodes of each policy in the campaign that is fitted: 50 in all."""

FURTHER = 2
"""Size of the further campaign, relative to the first."""

MAX_STEPS = 60
SLIDING: Options = {"contact": {"behaviour": "slide"}}
ENDLESS: Options = {"battery": {"capacity_wh": 1e6}}
"""Battery options; a real robot would be charged during the further campaign."""

LIMIT_S = 1_800.0
"""Time limit of a trial, half of it for the fit."""


@dataclass(frozen=True)
class Trial:
    """The result of one trial.

    Attributes:
        forward_pct: error of the fitted forward bias in % of it.
        turn_pct: error of the fitted turn bias in % of it.
        tilt_deg: error of the fitted tilt.
        sliding: whether sliding was identified correctly.
        before: SRCC of SPL in the further campaign, of the simulator that slides and has no errors.
        after: SRCC of SPL in the further campaign, of the fitted simulator.
        low: lower limit of the predicted interval of ``after``.
        high: upper limit of it.
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
        """Whether the correlation lies in the predicted interval."""
        return self.low <= self.after <= self.high


def run_trial(seed: int, number: int, folder: Path, episodes: int = EPISODES, further: int = FURTHER) -> Trial:
    """Fit one randomized robot and predict its further campaign.

    Raises:
        CalibrationFailed: the fit failed; with its message.
    """
    parameters = RandomizedParameters.draw(np.random.default_rng((seed, number)))
    first, later = 10_000 * (seed + 1) + 100 * number, 10_000_000 + 10_000 * seed + 100 * number
    robot = parameters.options()
    real = campaign(robot, episodes, first, folder / "real")
    fit(folder / "real", folder / "fitted")
    fitted: Options = config.load(folder / "fitted" / "robot.yaml", RobotFile).options
    predicted = correlation_interval(campaign(fitted, episodes, first, simulated=True), real, further=further)
    real_spl, fitted_spl, untuned_spl = (
        campaign(options, further * episodes, later, simulated=options is not robot).mean(axis=1)
        for options in (robot, fitted, SLIDING)
    )

    errors = load_actuation(folder / "fitted" / "actuation.yaml").actions
    turn_rad = (errors["turn_left"].mean[2] - errors["turn_right"].mean[2]) / 2
    tilt_deg = fitted.get("camera", {}).get("mount_error", {}).get("tilt_deg", 0.0)
    behaviour = fitted.get("contact", {}).get("behaviour", "stop")
    return Trial(
        forward_pct=100 * abs(errors["move_forward"].mean[0] / parameters.forward_m - 1),
        turn_pct=100 * abs(turn_rad / parameters.turn_rad - 1),
        tilt_deg=abs(tilt_deg - parameters.tilt_deg),
        sliding=(behaviour == "slide") == parameters.slides,
        before=srcc(untuned_spl, real_spl),
        after=srcc(fitted_spl, real_spl),
        low=predicted.low,
        high=predicted.high,
    )


def campaign(
    options: Options, episodes: int, seed: int, logs: Path | None = None, simulated: bool = False, images: bool = True
) -> Floats:
    """SPL (policies, episodes) of the zoo in the bundled arena on a simulated robot.

    Args:
        options: options of the simulated robot.
        episodes: number of each policy.
        seed: random seed of the errors and of the episodes, which all policies share in both worlds.
        logs: folder to record to, with small images; None for neither logs nor images.
        simulated: whether the campaign is the simulator's, which has other errors.
        images: whether logs have small depth images.
    """
    scene = load_scene(find_scene("arena"))
    task = load_task("pointnav_gps_compass")
    seen = logs is not None and images
    sensors = tuple(name for name in task.sensors if name not in ("rgb", "depth") or (seen and name == "depth"))
    camera = replace(task.camera, width=160, height=120)
    task = replace(task, sensors=sensors, camera=camera, max_steps=MAX_STEPS)
    drawn = generate_episodes(scene, task, episodes, seed)
    file = RobotFile("hidden", "sim_bridge.robot.driver.make_robot", options | ENDLESS)
    context = replace(RobotContext.of(task, scene, drawn, 2 * seed + simulated), images=seen)
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
    """Run ``robot-runtime fit`` as a command. Raises ``CalibrationFailed`` with its message."""
    command = [sys.executable, "-m", "robot_runtime", "fit", str(logs), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S / 2)
    if done.returncode != 0:
        raise CalibrationFailed(f"robot-runtime fit: {done.stderr.strip() or done.stdout.strip()}", "run it by hand")
