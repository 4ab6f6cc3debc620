"""Comparison of agents on the same episodes of the simulated robot.

::

    python -m sim_bridge.training.evaluate --out training/evaluation --agent pointnav-depth --agent classical

runs them in apartments that are not used for training, and in other scenes. Episodes are scored as
``robot-runtime score`` scores logs, by the environment's own scorer, but leave no logs: 150 episodes of six agents
would be 30 GB. Finished jobs are not repeated.
"""

import json
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.parallel.map import Workers
from sim_bridge.training.jobs import HELD_OUT, done, make_apartments

FIRST_SEED = 1
"""First seed of the held-out apartments; those for training begin at ``pointnav.FIRST_SEED``."""

BLIND_STEPS = 150
"""Step limit of agents that use no images and never give up."""

_BLIND = ("random", "goal-follower", "forward-only")


@dataclass(frozen=True)
class Job:
    """One agent's episodes in one scene; ``out`` is a JSON file for the outcomes."""

    agent: str
    scene: Path
    robot: str
    task: str
    count: int
    seed: int
    out: Path


@dataclass(frozen=True)
class Outcome:
    """Metrics of an episode."""

    success: bool
    spl: float
    collisions: float
    steps: int
    stopped: bool


def evaluate(
    out: Annotated[Path, typer.Option(help="Folder for apartments and outcomes.")],
    agent: Annotated[list[str], typer.Option(help="As for robot-runtime run; repeatable.")],
    scene: Annotated[list[Path] | None, typer.Option(help="Further scene folder; repeatable.")] = None,
    robot: Annotated[str, typer.Option(help="Robot preset.")] = "sim",
    task: Annotated[str, typer.Option(help="Task preset.")] = "pointnav_gps_compass",
    count: Annotated[int, typer.Option(min=1, help="Episodes per scene.")] = 10,
    apartments: Annotated[int, typer.Option(min=0)] = HELD_OUT,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes, the agents and the robot's errors.")] = 0,
    workers: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Run agents on the same episodes and print their success and SPL."""
    processes = Workers(workers)
    held_out = [out / "apartments" / str(FIRST_SEED + i) for i in range(apartments)]
    make_apartments(held_out, processes)
    groups = {"held-out apartments": held_out} if held_out else {}
    groups |= {folder.name: [folder] for folder in scene or ()}
    jobs = [
        Job(name, folder, robot, task, count, seed, _file(out, robot, name, folder))
        for name in agent
        for folders in groups.values()
        for folder in folders
    ]
    outcomes = done(run_job, jobs, processes)
    for name in agent:
        for group, folders in groups.items():
            by_scene = list(islice(outcomes, len(folders)))
            print(f"{group:22} {robot:10} {Path(name).name:16} {line(by_scene)}", flush=True)


def run_job(job: Job) -> list[Outcome]:
    """Run a job, or read its earlier result."""
    if job.out.exists():
        return [Outcome(**outcome) for outcome in json.loads(job.out.read_text())]
    outcomes = _run(job)
    job.out.parent.mkdir(parents=True, exist_ok=True)
    part = job.out.with_suffix(".part")
    part.write_text(json.dumps([asdict(outcome) for outcome in outcomes]))
    part.replace(job.out)
    return outcomes


def _run(job: Job) -> list[Outcome]:
    from robot_runtime.datasets.formats import generate_episodes
    from robot_runtime.env import Env
    from robot_runtime.policies import load_policy
    from robot_runtime.records import EndReason
    from robot_runtime.robots.loader import RobotContext, load_robot
    from robot_runtime.runtime import run_episodes
    from robot_runtime.scenes.scene import load_scene
    from robot_runtime.tasks.task import load_task

    task, scene = load_task(job.task), load_scene(job.scene)
    episodes = generate_episodes(scene, task, job.count, job.seed)
    if job.agent in (*_BLIND, "oracle"):  # unused images are rendered small
        task = replace(task, camera=replace(task.camera, width=16, height=12))
    if job.agent in _BLIND:
        task = replace(task, max_steps=BLIND_STEPS)
    policy = load_policy(job.agent)
    outcomes = []
    with ExitStack() as stack:
        stack.callback(policy.close)
        robot = stack.enter_context(load_robot(job.robot, RobotContext(scene, task.camera, job.seed)))
        env = stack.enter_context(Env(robot, task, scene, seed=job.seed))
        for run in run_episodes(env, policy, episodes, job.seed):
            m = run.metrics
            outcomes.append(
                Outcome(
                    bool(m["success"]),
                    float(m["spl"] or 0.0),
                    float(m["collisions"] or 0.0),
                    run.end.steps,
                    run.end.reason is EndReason.STOP,
                )
            )
    return outcomes


def line(by_scene: Sequence[Sequence[Outcome]]) -> str:
    """Means with 95 % intervals: over episodes, and for SPL of several scenes also over scenes."""
    from robot_runtime.scoring.statistics.intervals import bootstrap_mean, wilson

    outcomes = [outcome for scene in by_scene for outcome in scene]
    scenes = [number for number, scene in enumerate(by_scene) for _ in scene]
    success = wilson(sum(outcome.success for outcome in outcomes), len(outcomes))
    spl = bootstrap_mean([outcome.spl for outcome in outcomes])
    text = (
        f"n {len(outcomes):4}  success {statistics.mean(o.success for o in outcomes):6.1%} "
        f"[{success.low:.1%}, {success.high:.1%}]  SPL {statistics.mean(o.spl for o in outcomes):.3f} "
        f"[{spl.low:.3f}, {spl.high:.3f}]  collisions {statistics.mean(o.collisions for o in outcomes):5.1f}  "
        f"steps {statistics.mean(o.steps for o in outcomes):5.1f}  "
        f"stopped {statistics.mean(o.stopped for o in outcomes):.0%}"
    )
    if len(by_scene) > 1:
        clustered = bootstrap_mean([outcome.spl for outcome in outcomes], clusters=scenes)
        text += f"  SPL over scenes [{clustered.low:.3f}, {clustered.high:.3f}]"
    return text


def _file(out: Path, robot: str, agent: str, scene: Path) -> Path:
    name = Path(agent).name.replace(":", ".")
    return out / "outcomes" / robot / f"{name}-{scene.name}.json"


if __name__ == "__main__":
    typer.run(evaluate)
