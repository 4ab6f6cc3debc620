"""Episodes of ``bench eqa``: scenes, questions with starts before the target, and one agent on them."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.env import Env
from robot_runtime.metrics.settings import Metrics
from robot_runtime.policy import Answer, Observation, Policy, World
from robot_runtime.records import ANSWER, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.runtime import run_episodes
from robot_runtime.scenes.scene import Scene, load_scene
from robot_runtime.task_kinds.eqa.questions.dataset import sample_questions
from robot_runtime.task_kinds.eqa.questions.episodes import question_episodes
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES, V1_TEMPLATES
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task, load_task, with_sensors
from sim_bridge.scenes.generate import flats, generate_scene

TASK = "eqa_embodied"
SIZES = ("robothor", "medium")
STARTS = ("T-10", "T-30", "T-50")
TEMPLATES = V1_TEMPLATES
SEEN_PIXELS = 30
"""An object was seen once an image shows this many of its pixels: 0.06 % of the task's image."""

_PRIOR_SEED = 400_000
_PRIOR_FLATS = 24


@dataclass(frozen=True)
class Outcome:
    """One episode of one agent.

    Attributes:
        episode: episode with the question.
        metrics: scored metrics.
        answer: answer of the agent; None for none.
        seen: whether an image showed the target.
        steps: number of steps.
        infer_ms: policy's computing time of each step.
    """

    episode: Episode
    metrics: Metrics
    answer: Answer | None
    seen: bool
    steps: int
    infer_ms: tuple[float, ...]

    @property
    def start(self) -> str:
        """T-10, T-30 or T-50."""
        return str(self.episode.info["info"]["start"])

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return bool(self.metrics["answer_accuracy"])


def bench_scenes(folder: Path, count: int, seed: int, on_scene: Callable[[], None]) -> list[Scene]:
    """Generated flats with these seeds and the next ones, made in ``folder``."""
    scenes = []
    for number in range(seed, seed + count):
        place = folder / f"flat_{number}"
        generate_scene(place, number, SIZES[number % len(SIZES)])
        scenes.append(load_scene(place))
        on_scene()
    return scenes


def bench_episodes(scene: Scene, questions: int, seed: int) -> list[Episode]:
    """Episodes about a scene from all three starts; questions whose path is too short for one are left out."""
    rules = replace(FEW_SCENES, templates=TEMPLATES)
    drawn = sample_questions(generate_questions([scene], rules, seed), 3 * questions, seed)
    kept: list[Episode] = []
    for question in drawn.questions:
        made = question_episodes(replace(drawn, questions=(question,)), [scene], seed).episodes
        if len(made) == len(STARTS):
            kept += made
        if len(kept) == questions * len(STARTS):
            break
    return kept


def run_agent(
    policy: Policy, scene: Scene, episodes: Sequence[Episode], seed: int, on_episode: Callable[[], None]
) -> list[Outcome]:
    """Run an agent on the simulated robot, scored as logs are, but without logs."""
    # Every agent gets an episode of the same task and sensors, so that "seen" means the same.
    task = with_sensors(load_task(TASK), ("depth", "gps", "compass", "semantic", "floor_plan"))
    seen = _Seen(scene)
    outcomes = []
    with (
        load_robot("sim", RobotContext(scene, task.camera, seed)) as robot,
        Env(robot, task, scene, (seen,), seed=seed) as env,
    ):
        for episode in episodes:
            seen.begin(episode)
            for run in run_episodes(env, policy, [episode], seed):
                info = env.record.policy_info
                own = (info.get(ANSWER), seen.target, run.end.steps, tuple(seen.infer_ms))
                outcomes.append(Outcome(episode, run.metrics, *own))
            on_episode()
    return outcomes


class _Seen(Subscriber):
    """Whether the target was in an image, and how long the policy took."""

    def __init__(self, scene: Scene) -> None:
        self._index = {item.id: number for number, item in enumerate(scene.objects)}

    def begin(self, episode: Episode) -> None:
        """Start with an episode's goals."""
        self._goals = [self._index[goal.object_id] for goal in episode.goals if goal.object_id in self._index]
        self.target, self.infer_ms = False, list[float]()

    @override
    def on_step(self, record: StepRecord) -> None:
        shown = record.frame.semantic
        if shown is not None and not self.target:
            self.target = any(int((shown == goal).sum()) >= SEEN_PIXELS for goal in self._goals)
        if "infer" in record.phase_s:
            self.infer_ms.append(1e3 * record.phase_s["infer"])


class LanguagePrior(Policy):
    """The blind baseline: stops at once and gives the answers that the question has in other flats.

    Args:
        answers: question -> how often each answer is right there.
    """

    name = "language prior"
    needs = ("question",)

    def __init__(self, answers: Mapping[str, Mapping[str, int]]) -> None:
        self._answers = answers

    @classmethod
    def of_flats(cls, seed: int = _PRIOR_SEED, count: int = _PRIOR_FLATS) -> LanguagePrior:
        """The prior of flats that are generated, but not built."""
        answers: dict[str, Counter[str]] = {}
        rules = replace(FEW_SCENES, templates=TEMPLATES, seen_only=False)
        for number in range(seed, seed + count):
            flat = next(flats(number, SIZES[number % len(SIZES)]))
            scene = Scene(Path(flat.file.name), flat.file, flat.map, {}, str(number))
            for question in generate_questions([scene], rules).questions:
                answers.setdefault(question.text, Counter())[question.answer] += 1
                answers.setdefault(question.type, Counter())[question.answer] += 1
        return cls(answers)

    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        """Nothing to prepare."""

    @override
    def act(self, observation: Observation) -> Action:
        return Action.STOP

    @override
    def answer(self, observation: Observation) -> Answer | None:
        text = str(observation["question"])
        kind = "color" if text.startswith("What color") else "location" if "located" in text else "preposition"
        counts = self._answers.get(text) or self._answers[kind]
        total = sum(counts.values())
        return {answer: count / total for answer, count in counts.items()}


def mean(values: Sequence[Any]) -> float | None:
    """Mean of the values that are there; None without one."""
    there = [float(value) for value in values if value is not None]
    return statistics.fmean(there) if there else None
