"""``bench sim``: speed and memory of the simulated robot, and scores of the classical agent."""

from __future__ import annotations

import resource
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from robot_runtime.common.clock import Stopwatch
from tests.benchmarks.report import JsonFile, Row, report

TASK = "pointnav_gps_compass"
LOGGED_STEPS = 500
"""Steps of the measured episode, the limit of every published setting."""

ROUNDS = 5
"""Number of equal parts of the 500 steps, whose median is the speed, because a busy machine slows some of them."""


def sim(
    house: Annotated[
        Path | None, typer.Option(help="An imported scene, for its two rows of the classical agent.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="PointNav episodes per scene.")] = 50,
    motors: Annotated[
        int, typer.Option(min=0, help="PointNav episodes of the shipped policy with a Kobuki's motors and without.")
    ] = 0,
    throughput: Annotated[
        float, typer.Option(min=0, help="Measure frames by sensors, size and processes instead, so many seconds each.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of episodes and robot.")] = 0,
    json: JsonFile = None,
) -> None:
    """Measure the simulated LoCoBot in the bundled apartment, and the classical agent there and in an imported house.

    The first four rows come from one recorded episode of 500 random actions with RGB-D 640x480; the rest from generated
    PointNav episodes without noise, beside the paper's goal follower on the same episodes.
    """
    from robot_runtime.common.console import console
    from sim_bridge.rendering import gl_context

    gl_context.choose_backend()  # before the first import of mujoco, which chooses a backend then
    if throughput:
        from tests.benchmarks.sim.throughput import throughput_rows

        report("sim", list(throughput_rows(seed, throughput)), json, console)
        return
    rows = _speed_rows(seed)
    rows += _agent_rows("apartment", "", "the bundled apartment", count, seed)
    if house is None:
        note = "give --house, a scene made by `robot-runtime scene import`"
        rows += [
            Row("classical_success_house", "success, classical agent, imported house", None, "", 0.9, note=note),
            Row("classical_spl_house", "SPL, classical agent, imported house", None, "", 0.75, note=note),
        ]
    else:
        rows += _agent_rows(str(house), "_house", "the imported house", count, seed)
    report("sim", [*rows, _motors_row(motors, seed)], json, console)


@dataclass(frozen=True)
class Speed:
    """Measurements of 500 steps.

    Attributes:
        own_share: share of the wall time outside of MuJoCo, without a recorder: each return from MuJoCo's physics waits
            for a recorder's thread that holds the interpreter, and that wait would count as physics.
    """

    steps_per_s: float
    slowest_per_s: float
    fastest_per_s: float
    own_share: float
    rss_mb: float
    log_mb: float


def _speed_rows(seed: int) -> list[Row]:
    speed = measure_speed(seed)
    two_pass_ms, one_pass_ms = measure_renderers(seed)
    return [
        Row(
            "steps_per_s",
            "environment steps with RGB-D 640x480, recorded",
            speed.steps_per_s,
            "1/s",
            25,
            low=speed.slowest_per_s,
            high=speed.fastest_per_s,
            note=f"median and range of {ROUNDS} x {LOGGED_STEPS // ROUNDS} steps",
        ),
        Row(
            "own_share_pct",
            "wall time of a step outside MuJoCo, not recorded",
            100 * speed.own_share,
            "%",
            20,
            "<=",
            note=f"median of {LOGGED_STEPS // ROUNDS} steps",
        ),
        Row("rss_mb", "peak memory of the process", speed.rss_mb, "MB", 1500, "<="),
        Row(
            "log_mb",
            f"log of {LOGGED_STEPS} steps, lossless",
            speed.log_mb,
            "MB",
            500,
            "<=",
            "the same images uncompressed",
            LOGGED_STEPS * 640 * 480 * 5 / 1e6,
        ),
        Row(
            "rgbd_ms",
            "RGB-D frame, one pass",
            one_pass_ms,
            "ms",
            note="median of 60 views",
            rival="mujoco.Renderer, RGB then depth",
            rival_value=two_pass_ms,
        ),
    ]


def measure_speed(seed: int) -> Speed:
    """Measure one recorded episode of 500 random actions in the bundled apartment."""
    from robot_runtime.actions.discrete import Action
    from robot_runtime.common.console import progress_bar
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.policy import random_generator
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots.loader import RobotContext, load_robot
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task
    from sim_bridge.robot.base import SimBase
    from sim_bridge.robot.camera import SimCamera

    task = load_task(TASK)
    scene = load_scene(find_scene("apartment"))
    (episode,) = generate_episodes(scene, task, 1, seed)
    random = random_generator(seed)
    moves = (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        progress = stack.enter_context(progress_bar())
        robot = stack.enter_context(load_robot("sim", RobotContext(scene, task.camera, seed)))
        recorder = Recorder(folder)
        stack.callback(recorder.close)
        base, camera = robot.base, robot.camera
        assert isinstance(base, SimBase)
        assert isinstance(camera, SimCamera)
        env = stack.enter_context(Env(robot, task, scene, (recorder,), seed=seed))
        env.reset(episode, "random moves")
        bar = progress.add_task("steps", total=LOGGED_STEPS, note="")
        timer, round_s = Stopwatch(), []
        for _ in range(ROUNDS):
            for _ in range(LOGGED_STEPS // ROUNDS):
                env.step(moves[int(random.integers(len(moves)))])
            round_s.append(timer.restart())
            progress.advance(bar, LOGGED_STEPS // ROUNDS)
        env.close()
        recorder.close()
        env = stack.enter_context(Env(robot, task, scene, seed=seed))
        env.reset(episode, "random moves")
        shares = []
        for _ in range(LOGGED_STEPS // ROUNDS):
            inside_s = base.world.physics_s + camera.render_s
            timer.restart()
            env.step(moves[int(random.integers(len(moves)))])
            shares.append(1 - (base.world.physics_s + camera.render_s - inside_s) / timer.elapsed_s())
        (log,) = folder.glob("*.mcap")
        per_s = [LOGGED_STEPS / ROUNDS / seconds for seconds in round_s]
        return Speed(
            steps_per_s=statistics.median(per_s),
            slowest_per_s=min(per_s),
            fastest_per_s=max(per_s),
            own_share=statistics.median(shares),
            rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            log_mb=log.stat().st_size / 1e6,
        )


def measure_renderers(seed: int, views: int = 60) -> tuple[float, float]:
    """Median milliseconds per RGB-D frame in the bundled apartment: MuJoCo's in two passes, and this package's."""
    import math

    import mujoco
    import numpy as np

    from robot_runtime.hal import Intrinsics
    from robot_runtime.policy import random_generator
    from robot_runtime.scenes.scene import find_scene, load_scene
    from sim_bridge.physics.scene_model import Body, Group, build_model
    from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation

    scene = load_scene(find_scene("apartment"))
    intrinsics = Intrinsics.from_hfov(640, 480, 79.0)
    cells = np.argwhere(scene.map.navigable(0.18))
    random = random_generator(seed)
    poses = []
    for row, column in cells[random.integers(len(cells), size=views)]:
        x_m, y_m = scene.map.to_point(row, column)
        poses.append((np.array([x_m, y_m, 0.88]), float(random.uniform(-math.pi, math.pi))))

    model = build_model(scene, 0.005, Body()).model
    model.vis.quality.offsamples = 0
    model.vis.global_.offwidth, model.vis.global_.offheight = intrinsics.width, intrinsics.height
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    stock = mujoco.Renderer(model, intrinsics.height, intrinsics.width)
    view, drawn = mujoco.MjvCamera(), mujoco.MjvOption()
    drawn.geomgroup[:] = 0
    drawn.geomgroup[Group.VISUAL] = 1
    ours = SceneRenderer(build_model(scene, 0.005, Body()), intrinsics)
    two_pass_s, one_pass_s = [], []
    for position, yaw_rad in poses:  # alternating, so that other load affects both
        view.lookat[:] = position + np.array([math.cos(yaw_rad), math.sin(yaw_rad), 0.0])
        view.distance, view.azimuth, view.elevation = 1.0, math.degrees(yaw_rad), 0.0
        timer = Stopwatch()
        stock.update_scene(data, view, drawn)
        stock.render()
        stock.enable_depth_rendering()
        stock.render()
        stock.disable_depth_rendering()
        two_pass_s.append(timer.restart())
        ours.render(position, camera_rotation(yaw_rad, 0.0))
        one_pass_s.append(timer.elapsed_s())
    stock.close()
    ours.close()

    return 1000 * statistics.median(two_pass_s), 1000 * statistics.median(one_pass_s)


def _agent_rows(scene_name: str, suffix: str, where: str, count: int, seed: int) -> list[Row]:
    from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson

    outcomes = {agent: run_agent(agent, scene_name, count, seed, where) for agent in ("classical", "goal-follower")}
    success, rival_success = ([float(o.success) for o in outcomes[agent]] for agent in outcomes)
    spl, rival_spl = ([o.spl for o in outcomes[agent]] for agent in outcomes)
    metrics = (
        ("success", "success", success, rival_success, wilson(int(sum(success)), len(success)), 0.9),
        ("spl", "SPL", spl, rival_spl, bootstrap_mean(spl, seed=seed), 0.75),
    )
    return [
        Row(
            f"classical_{key}{suffix}",
            f"{name}, classical agent, {where}",
            statistics.mean(values),
            "",
            target,
            rival="goal follower",
            rival_value=statistics.mean(rival_values),
            low=interval.low,
            high=interval.high,
            note=f"{count} episodes, 95 % interval",
        )
        for key, name, values, rival_values, interval, target in metrics
    ]


def _motors_row(count: int, seed: int) -> Row:
    from robot_runtime.scoring.statistics.intervals import bootstrap_mean

    label = "success of the shipped policy on sim-noisy: points that a Kobuki's motors add"
    if not count:
        return Row("policy_motors_points", label, None, "points", -2, note="give --motors, a number of episodes")
    with_motors, without = (
        run_agent(
            "pointnav-depth", "apartment", count, seed, f"motors: {kind}", "sim-noisy", {"motors": {"type": kind}}
        )
        for kind in ("kobuki", "ideal")
    )
    pairs = list(zip(with_motors, without, strict=True))
    points = bootstrap_mean([100.0 * (one.success - other.success) for one, other in pairs], seed=seed)
    successes = [100 * statistics.mean(outcome.success for outcome in outcomes) for outcomes in (with_motors, without)]
    note = f"{successes[0]:.1f} % with, {successes[1]:.1f} % without; {count} episodes each, the same ones"
    return Row("policy_motors_points", label, points.mean, "points", -2, low=points.low, high=points.high, note=note)


@dataclass(frozen=True)
class AgentOutcome:
    """Success and SPL of one episode."""

    success: bool
    spl: float


def run_agent(
    agent: str,
    scene_name: str,
    count: int,
    seed: int,
    where: str,
    robot_name: str = "sim",
    options: Mapping[str, Any] | None = None,
) -> Sequence[AgentOutcome]:
    """Run an agent on generated PointNav episodes.

    The goal follower never gives up, so it has 150 steps; shortest paths in these flats take fewer than 100.

    Args:
        agent: name of the agent.
        scene_name: name of the scene.
        count: number of episodes.
        seed: random seed of episodes and robot.
        where: name of the place in the progress bar.
        robot_name: preset; by default the one without noise.
        options: robot options that replace those of the preset.
    """
    from robot_runtime.common.console import progress_bar
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.policies import load_policy
    from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
    from robot_runtime.runtime import run_episodes
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    task = load_task(TASK)
    scene = load_scene(find_scene(scene_name))
    episodes = generate_episodes(scene, task, count, seed)
    if agent == "goal-follower":
        task = replace(task, max_steps=150)
    policy = load_policy(agent)
    outcomes = []
    with ExitStack() as stack:
        stack.callback(policy.close)
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task(f"{agent}, {where}", total=count, note="")
        path, file = read_robot_file(robot_name)
        # The simulated battery would not last for all episodes.
        charged = {"battery": {"idle_w": 0.0, "drive_w": 0.0}}
        file = replace(file, options={**file.options, **charged, **(options or {})})
        robot = stack.enter_context(build_robot(file, str(path), RobotContext(scene, task.camera, seed)))
        env = stack.enter_context(Env(robot, task, scene, seed=seed))
        for run in run_episodes(env, policy, episodes, seed):
            outcomes.append(AgentOutcome(bool(run.metrics["success"]), float(run.metrics["spl"] or 0.0)))
            progress.advance(bar)
    return outcomes
