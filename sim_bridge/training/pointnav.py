"""Train the PointNav policy that ships::

    python -m sim_bridge.training.pointnav --out training/pointnav --seed 1

makes apartments, collects demonstrations of the classical agent in rounds, learns from all of them after each, and
exports the policy. What is there already is not made again, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

SIZES = ("robothor", "medium", "large")


@dataclass(frozen=True)
class Round:
    """One round of collecting and learning.

    Attributes:
        episodes: per apartment. learner_share: of steps that the policy drives. updates: of its weights afterwards.
    """

    episodes: int
    learner_share: float
    updates: int
    rate: float = 1e-3


ROUNDS = (
    Round(episodes=6, learner_share=0.0, updates=250),
    Round(episodes=3, learner_share=0.5, updates=100),
    Round(episodes=3, learner_share=0.8, updates=120),
    Round(episodes=4, learner_share=0.9, updates=150),
    Round(episodes=4, learner_share=1.0, updates=600),
)

APARTMENTS = 150
FIRST_SEED = 100_000
"""Apartments for training have seeds from here on; whoever evaluates takes smaller ones."""


def main(
    out: Annotated[Path, typer.Option(help="Folder for everything: apartments, demonstrations, networks.")],
    seed: Annotated[int, typer.Option(min=0)] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes that collect, and threads that learn.")] = 2,
    apartments: Annotated[int, typer.Option(min=1)] = APARTMENTS,
) -> None:
    """Train the PointNav policy that ships."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(workers)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        run(out, seed, apartments, pool)


def run(out: Path, seed: int, apartments: int, pool: ProcessPoolExecutor) -> None:
    """All rounds."""
    import torch

    from robot_runtime.clock import Stopwatch
    from sim_bridge.training.collect import Job, collect, small_task
    from sim_bridge.training.export import export_learner, export_policy
    from sim_bridge.training.learn import Dataset, check_actions, learn
    from sim_bridge.training.network import Head

    out.mkdir(parents=True, exist_ok=True)
    scenes = [out / "apartments" / f"{FIRST_SEED + i}" for i in range(apartments)]
    watch = Stopwatch()
    for _ in pool.map(make_apartment, scenes):
        pass
    note(out, event="apartments", wall_s=watch.restart())

    task = small_task()
    check_actions(task)
    head = Head()
    print(f"{sum(one.numel() for one in head.parameters())} weights")
    learner = out / "learner-0.onnx"
    export_learner(head, task, learner)
    files: list[Path] = []
    for number, plan in enumerate(ROUNDS):
        folder = out / f"round-{number}"
        folder.mkdir(exist_ok=True)
        jobs = [
            Job(
                scene=scene,
                out=folder / f"{scene.name}.npz",
                policy=learner,
                episodes=plan.episodes,
                seed=seed * 1_000_000 + number * 10_000 + index,
                learner_share=plan.learner_share,
                sampled=index % 2 == 1,
            )
            for index, scene in enumerate(scenes)
        ]
        watch.restart()
        results = list(pool.map(collect, jobs))
        steps, arrived = (sum(column) for column in zip(*results, strict=True))
        note(
            out,
            event="collected",
            round=number,
            steps=steps,
            arrived=arrived / (plan.episodes * len(jobs)),
            wall_s=watch.restart(),
        )
        files += [job.out for job in jobs]
        weights = out / f"weights-{number}.pt"
        if weights.exists():
            head.load_state_dict(torch.load(weights, weights_only=True))
        else:
            data = Dataset.load(files)
            recent: list[tuple[float, float]] = []

            def report(update: int, loss: float, right: float) -> None:
                recent.append((loss, right))
                if update % 50 == 0:
                    losses, rights = zip(*recent[-50:], strict=True)
                    note(out, event="learning", update=update, loss=sum(losses) / 50, right=sum(rights) / 50)

            learn(head, data, plan.updates, plan.rate, seed + number, report)
            torch.save(head.state_dict(), weights)
            note(out, event="learnt", round=number, steps=data.steps, wall_s=watch.restart())
        learner = out / f"learner-{number + 1}.onnx"
        export_learner(head, task, learner)
    from robot_runtime.tasks.task import load_task

    export_policy(head, load_task(task.name), out / "model.onnx")
    note(out, event="exported", bytes=(out / "model.onnx").stat().st_size)


def make_apartment(folder: Path) -> None:
    """The apartment whose seed is the folder's name, without view points, unless it is there."""
    from sim_bridge.scenes.generate import flats

    if folder.exists():
        return
    seed = int(folder.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    next(flats(seed, SIZES[seed % len(SIZES)])).write(draft)
    draft.replace(folder)


def note(out: Path, **facts: object) -> None:
    """Print a line and keep it in the folder's ``log.jsonl``."""
    line = json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in facts.items()})
    print(line, flush=True)
    with (out / "log.jsonl").open("a") as log:
        log.write(line + "\n")


if __name__ == "__main__":
    typer.run(main)
