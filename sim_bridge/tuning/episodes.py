"""A logged episode done again in simulation under a setting: same policy and its seed, same start and goal."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from robot_runtime.env import Env
from robot_runtime.errors import PolicyError, RuntimeFault, SceneError
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.settings import Metrics
from robot_runtime.policies import AGENTS, load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.tasks.task import Task
from sim_bridge.tuning.settings import Setting

ERRORS_SEED = 1_000_003
"""Added to the log's seed for the simulated robot: its errors are others than the robot's, which in a log that was
simulated itself could be the very same numbers, and would flatter the setting."""

IMAGES = frozenset({"rgb", "depth", "semantic", "imagegoal"})
"""Sensors that somebody has to draw."""

JUDGED_BLIND = ("pointnav", "vln")
"""Kinds of task whose success needs no image."""


@dataclass(frozen=True)
class Places:
    """Where scenes are found whose meshes no log holds.

    Attributes:
        scene: folder or bundled scene for all logs; None for the ones that they name.
        any_version: whether another version of a scene will do.
    """

    scene: str | None = None
    any_version: bool = False

    def of(self, header: EpisodeHeader) -> Scene:
        """The scene of a log, with its meshes.

        Raises:
            SceneError: it is not where the log says and not bundled, has no meshes, or is another version.
        """
        scene = load_scene(self._folder(header))
        if not scene.file.assets:
            raise SceneError(f"{scene.folder}: has no meshes to simulate", "name a folder that has, with --scene")
        if scene.digest != header.scene.digest and not self.any_version:
            raise SceneError(
                f"{scene.folder}: is another version of scene {header.scene.name!r} than the log's: digest "
                f"{scene.digest[:12]}, recorded {header.scene.digest[:12]}",
                "name the recorded version with --scene, or take this one with --any-scene-version",
            )
        return scene

    def _folder(self, header: EpisodeHeader) -> Path:
        if self.scene is not None:
            return find_scene(self.scene)
        if (header.scene.folder / "scene.yaml").is_file():
            return header.scene.folder
        try:
            return find_scene(header.scene.name)
        except SceneError:
            raise SceneError(
                f"scene {header.scene.name!r} is not at {header.scene.folder}, where it was when the log was written",
                "name its folder with --scene",
            ) from None


class Scenes:
    """Headers of logs and the scenes that they were recorded in; each scene is loaded once."""

    def __init__(self) -> None:
        self._scenes: dict[str, Scene] = {}

    def header(self, log: Path) -> EpisodeHeader:
        """Raises ``RecordingError``."""
        with LogReader(log) as reader:
            return reader.header

    def of(self, header: EpisodeHeader, places: Places) -> Scene:
        """Raises what :meth:`Places.of` does."""
        if header.scene.digest not in self._scenes:
            self._scenes[header.scene.digest] = places.of(header)
        return self._scenes[header.scene.digest]


def policy_source(header: EpisodeHeader, instead: Mapping[str, PolicySource]) -> PolicySource:
    """What decided in a log, or what is to decide instead of an agent of that name.

    Raises:
        PolicyError: the log does not say, as logs of earlier days do not.
    """
    if header.agent in instead:
        return instead[header.agent]
    if header.policy is None:
        raise PolicyError(
            f"agent {header.agent!r}: its logs do not say what it was loaded from",
            f"name it: --policy {header.agent}=SPEC",
        )
    return header.policy


class Policies:
    """Policies as they are asked for, each loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[str, Policy] = {}

    def of(self, source: PolicySource) -> Policy:
        """Raises ``RuntimeFault``: it cannot be loaded."""
        key = str(source)
        if key not in self._loaded:
            self._loaded[key] = load_source(source)
        return self._loaded[key]

    def close(self) -> None:
        """Release them all."""
        for policy in self._loaded.values():
            policy.close()
        self._loaded.clear()


def is_blind(policy: Policy, source: PolicySource, task: Task) -> bool:
    """Whether nobody looks at the images of a run: neither the policy, which must say so, nor the task's success."""
    says = bool(policy.needs) or source.spec in AGENTS
    return says and not IMAGES & set(policy.needs) and task.kind in JUDGED_BLIND


def rerun(
    setting: Setting,
    log: Path,
    header: EpisodeHeader,
    scene: Scene,
    policy: Policy,
    source: PolicySource,
    keep: Path | None,
) -> EpisodeScore:
    """Do the episode of a log again, and score it as its log would be scored.

    Args:
        scene: with meshes. keep: folder for a log of the run; None for none.

    Returns:
        Why there is no score, in ``reason``, where the run failed.
    """
    blind = keep is None and is_blind(policy, source, header.task)
    task = header.task
    if blind:
        task = replace(task, sensors=tuple(name for name in task.sensors if name not in IMAGES))
    context = replace(RobotContext.of(task, scene, [header.episode], header.seed + ERRORS_SEED), images=not blind)
    judge = Judge()
    facts = EpisodeScore(
        log,
        task=task.name,
        agent=header.agent,
        scene=scene.name,
        dataset=header.dataset,
        episode=header.episode.id,
        key=header.episode.key,
        seed=header.seed,
    )
    try:
        with ExitStack() as stack:
            subscribers: list[Subscriber] = [judge]
            if keep is not None:
                recorder = Recorder(keep)
                stack.callback(recorder.close)
                subscribers.append(recorder)
            robot = stack.enter_context(build_robot(setting.robot, setting.path, context))
            env = stack.enter_context(
                Env(robot, task, scene, subscribers, robot_config=setting.described(), dataset=header.dataset)
            )
            end = run_episode(env, policy, header.episode, header.seed, header.agent)
        if end.reason.aborted:
            return replace(facts, end=end.reason.value, reason=f"{end.reason.value}: {end.detail or 'no detail'}")
        return replace(facts, end=end.reason.value, metrics=judge.metrics(), choices=judge.choices())
    except RuntimeFault as error:
        return replace(facts, reason=error.message)


class Judge(Subscriber):
    """Scores the episode that it is told of."""

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        self._scorer.on_step(record)

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self._scorer.on_episode_end(end)

    def metrics(self) -> Metrics:
        """Of the episode."""
        return self._scorer.metrics()

    def choices(self) -> dict[str, object]:
        """That they depend on."""
        return self._scorer.choices()
