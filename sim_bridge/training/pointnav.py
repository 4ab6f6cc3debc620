"""Training of the shipped PointNav policy.

::

    python -m sim_bridge.training.pointnav --out training/pointnav --seed 1

makes apartments, collects demonstrations of the classical agent in rounds, learns from all of them after each round,
writes the policy package and runs it in held-out apartments. Existing files are not made again, so an interrupted run
resumes. ``log.jsonl`` in the folder has the durations.
"""

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.common.clock import Stopwatch
from robot_runtime.parallel.map import Workers
from sim_bridge.training.jobs import done, make_apartments

FIRST_SEED = 100_000
"""First seed of the apartments for training; the held-out ones have smaller seeds."""

TEMPERATURE = 0.5
_REPORT_EVERY = 50


@dataclass(frozen=True)
class Round:
    """One round of collecting and learning."""

    apartments: tuple[int, int]
    episodes: int
    learner_share: float
    updates: int
    rate: float = 1e-3


ROUNDS = (
    Round((0, 150), episodes=6, learner_share=0.0, updates=250),
    Round((0, 75), episodes=3, learner_share=0.5, updates=100),
    Round((75, 150), episodes=4, learner_share=0.85, updates=250),
    Round((0, 75), episodes=4, learner_share=1.0, updates=300),
)


def main(
    out: Annotated[Path, typer.Option(help="Folder for everything: apartments, demonstrations, networks, package.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the weights, the episodes and the errors.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes that collect and evaluate.")] = 2,
) -> None:
    """Train the PointNav policy that ships."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)  # so that sums do not depend on the number of cores
    Training(out, seed, workers).run()


class Training:
    """A training run, whose state is its folder."""

    def __init__(self, out: Path, seed: int, workers: int, rounds: tuple[Round, ...] = ROUNDS) -> None:
        from sim_bridge.training.network import Head

        self.out, self.seed, self.rounds = out, seed, rounds
        self._processes, self._workers = workers, Workers(workers)
        apartments = max(plan.apartments[1] for plan in rounds)
        self._scenes = [out / "apartments" / str(FIRST_SEED + index) for index in range(apartments)]
        self._head = Head()
        out.mkdir(parents=True, exist_ok=True)

    def run(self) -> Path:
        """Train, write and evaluate the package; return its folder."""
        timer = Stopwatch()
        make_apartments(self._scenes, self._workers)
        self._note("apartments", number=len(self._scenes), wall_s=timer.elapsed_s())
        files: list[Path] = []
        for number in range(len(self.rounds)):
            files += self._demonstrations(number)
            self._learn(number, files)
        package = self._package()
        self._evaluate(package)
        return package

    def _demonstrations(self, number: int) -> list[Path]:
        """The files of a round, with sampled actions in every other apartment."""
        from sim_bridge.training.collect import Job, collect, small_task
        from sim_bridge.training.package import export_learner

        timer, plan = Stopwatch(), self.rounds[number]
        learner = self.out / f"learner-{number}.onnx"
        if not learner.exists():
            export_learner(self._head, small_task(), learner)
        folder = self.out / f"round-{number}"
        folder.mkdir(exist_ok=True)
        jobs = [
            Job(
                scene=scene,
                out=folder / f"{scene.name}.npz",
                policy=learner,
                episodes=plan.episodes,
                seed=self.seed * 1_000_000 + number * 10_000 + index,
                learner_share=plan.learner_share,
                sampled=index % 2 == 1,
            )
            for index, scene in list(enumerate(self._scenes))[slice(*plan.apartments)]
        ]
        steps, arrived = (sum(column) for column in zip(*done(collect, jobs, self._workers), strict=True))
        share = arrived / (plan.episodes * len(jobs))
        self._note("collected", round=number, steps=steps, arrived=share, wall_s=timer.elapsed_s())
        return [job.out for job in jobs]

    def _learn(self, number: int, files: list[Path]) -> None:
        import torch

        from sim_bridge.training.learn import Dataset, learn

        timer, plan = Stopwatch(), self.rounds[number]
        weights = self.out / f"weights-{number}.pt"
        if weights.exists():
            self._head.load_state_dict(torch.load(weights, weights_only=True))
            return
        recent: list[tuple[float, float]] = []

        def report(update: int, loss: float, right: float) -> None:
            recent.append((loss, right))
            if update % _REPORT_EVERY == 0:
                losses, rights = (sum(column) / len(recent) for column in zip(*recent, strict=True))
                self._note("learning", round=number, update=update, loss=losses, right=rights)
                recent.clear()

        data = Dataset.load(files)
        learn(self._head, data, plan.updates, plan.rate, self.seed + number, report)
        part = weights.with_suffix(".part")
        torch.save(self._head.state_dict(), part)
        part.replace(weights)
        self._note("learnt", round=number, steps=data.steps, wall_s=timer.elapsed_s())

    def _package(self) -> Path:
        import torch

        from robot_runtime.policies.package.manifest import Selection
        from sim_bridge.training.collect import TASK
        from sim_bridge.training.package import write_policy

        source = (
            f"imitation of the agent 'classical' in {len(self._scenes)} generated apartments: "
            f"python -m sim_bridge.training.pointnav --seed {self.seed}; torch "
            f"{torch.__version__}, {platform.machine()}"
        )
        folder = self.out / "package"
        # Without sampling, the policy turns left and right forever between two equally good ways.
        write_policy(self._head, folder, TASK, source, Selection("sample", TEMPERATURE))
        self._note("packaged", bytes=sum(file.stat().st_size for file in folder.iterdir()))
        return folder

    def _evaluate(self, package: Path) -> None:
        from sim_bridge.training.collect import TASK
        from sim_bridge.training.evaluate import evaluate

        for robot in ("sim", "sim-noisy"):
            evaluate(self.out / "evaluation", [str(package)], robot=robot, task=TASK, workers=self._processes)

    def _note(self, event: str, **facts: float) -> None:
        """Print a line and append it to ``log.jsonl``."""
        rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in facts.items()}
        text = json.dumps({"event": event, **rounded})
        print(text, flush=True)
        with (self.out / "log.jsonl").open("a") as log:
            log.write(text + "\n")


if __name__ == "__main__":
    typer.run(main)
