"""Repetition of a logged episode in simulation under a setting: same policy, seed, start and goal."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from robot_runtime.env import Env
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.measures import measures_of
from robot_runtime.metrics.settings import Metrics
from robot_runtime.policies import AGENTS, load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.tasks.task import Task
from sim_bridge.replay.scene_source import SceneSource
from sim_bridge.tuning.settings import Setting

NOISE_SEED_OFFSET = 1_000_003
"""Added to the log's seed for the simulated robot. In a log that was simulated itself, the same seed would repeat the
logged errors and favor the setting."""

IMAGES = frozenset({"rgb", "depth", "semantic", "imagegoal"})
"""Sensors that need rendering."""


class SceneCache:
    """Headers of logs and the scenes that they were recorded in; each scene is loaded once."""

    def __init__(self) -> None:
        self._scenes: dict[str, Scene] = {}

    def header(self, log: Path) -> EpisodeHeader:
        """The header of a log. Raises ``RecordingError``."""
        with LogReader(log) as reader:
            return reader.header

    def of(self, header: EpisodeHeader, scene_source: SceneSource) -> Scene:
        """The scene of a log. Raises what :meth:`SceneSource.of` raises."""
        if header.scene.digest not in self._scenes:
            self._scenes[header.scene.digest] = scene_source.of(header)
        return self._scenes[header.scene.digest]


def policy_source(header: EpisodeHeader, policy_overrides: Mapping[str, PolicySource]) -> PolicySource:
    """The policy of a log, or the one that replaces an agent of that name.

    Args:
        header: header of the log.
        policy_overrides: policies by agent name.

    Raises:
        PolicyError: the log does not name its policy, as old logs do not.
    """
    if header.agent in policy_overrides:
        return policy_overrides[header.agent]
    if header.policy is None:
        raise PolicyError(
            f"agent {header.agent!r}: its logs do not name the policy that it was loaded from",
            f"name it: --policy {header.agent}=SPEC",
        )
    return header.policy


class PolicyCache:
    """Loaded policies; each is loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[str, Policy] = {}

    def of(self, source: PolicySource) -> Policy:
        """The policy. Raises ``RuntimeFault`` if it cannot be loaded."""
        key = str(source)
        if key not in self._loaded:
            self._loaded[key] = load_source(source)
        return self._loaded[key]

    def close(self) -> None:
        """Close all policies."""
        for policy in self._loaded.values():
            policy.close()
        self._loaded.clear()


def needs_no_images(policy: Policy, source: PolicySource, task: Task) -> bool:
    """Whether neither the policy, which must declare its sensors, nor the task's success needs images."""
    declared = bool(policy.needs) or source.spec in AGENTS
    return declared and not IMAGES & set(policy.needs) and not measures_of(task).needs_images(task)


def rerun(
    setting: Setting,
    log: Path,
    header: EpisodeHeader,
    scene: Scene,
    policy: Policy,
    source: PolicySource,
    log_folder: Path | None,
) -> EpisodeScore:
    """Repeat the episode of a log, and score it as its log would be scored.

    Args:
        setting: setting of the simulated robot.
        log: log of the episode to repeat.
        header: header of the log.
        scene: scene with meshes.
        policy: loaded from ``source``.
        source: source of the policy.
        log_folder: folder for a log of the run; None for none.

    Returns:
        The score; where the run failed, its ``reason`` says why.
    """
    without_images = log_folder is None and needs_no_images(policy, source, header.task)
    task = header.task
    if without_images:
        task = replace(task, sensors=tuple(name for name in task.sensors if name not in IMAGES))
    context = replace(
        RobotContext.of(task, scene, [header.episode], header.seed + NOISE_SEED_OFFSET), images=not without_images
    )
    scoring = ScoringSubscriber()
    facts = EpisodeScore(
        log,
        task=task.name,
        kind=task.kind,
        agent=header.agent,
        scene=scene.name,
        dataset=header.dataset,
        episode=header.episode.id,
        key=header.episode.key,
        seed=header.seed,
    )
    try:
        with ExitStack() as stack:
            subscribers: list[Subscriber] = [scoring]
            if log_folder is not None:
                recorder = Recorder(log_folder)
                stack.callback(recorder.close)
                subscribers.append(recorder)
            robot = stack.enter_context(build_robot(setting.robot, setting.path, context))
            env = stack.enter_context(
                Env(robot, task, scene, subscribers, robot_config=setting.described(), dataset=header.dataset)
            )
            end = run_episode(env, policy, header.episode, header.seed, header.agent)
        if end.reason.aborted:
            return replace(facts, end=end.reason.value, reason=f"{end.reason.value}: {end.detail or 'no detail'}")
        return replace(facts, end=end.reason.value, metrics=scoring.metrics(), choices=scoring.choices())
    except RuntimeFault as error:
        return replace(facts, reason=error.message)


class ScoringSubscriber(Subscriber):
    """Scores the episode that is run."""

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        self._scorer.on_step(record)

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self._scorer.on_episode_end(end)

    def metrics(self) -> Metrics:
        """The episode's metrics."""
        return self._scorer.metrics()

    def choices(self) -> dict[str, object]:
        """The scorer's choices that the metrics depend on."""
        return self._scorer.choices()
