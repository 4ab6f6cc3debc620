"""Runs of the real logs' policies under every setting, on any number of workers, and the resulting correlations.

A run repeats a logged episode in simulation: same policy, seed, start and goal.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_runtime.common.version import VERSION
from robot_runtime.env import Env
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.metrics.episode_metrics import SCORER_VERSION, EpisodeScorer
from robot_runtime.metrics.measures import measures_of
from robot_runtime.parallel.map import Workers
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.policies import AGENTS, load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.preflight.checks import IMAGES
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext, build_robot
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.score_journal import decode_score, encode_score
from robot_runtime.scoring.sim_to_real.gap import Gap, find_gap
from robot_runtime.scoring.summary import EpisodeScore, score_logs
from robot_runtime.tasks.task import Task
from sim_bridge.replay.options import SceneSource
from sim_bridge.tuning.log_statistics import LogStatistics, read_header
from sim_bridge.tuning.progress import ProgressListener, map_with_progress
from sim_bridge.tuning.settings import Setting, SweepOptions

NOISE_SEED_OFFSET = 1_000_003
"""Added to the log's seed for the simulated robot. In a log that was simulated itself, the same seed would repeat the
logged errors and favor the setting."""


@dataclass(frozen=True)
class Run:
    """One setting on one log; ``log_folder`` is for the log of the run, None for none."""

    setting: Setting
    log: Path
    scene_source: SceneSource
    source: PolicySource
    log_folder: Path | None


@dataclass(frozen=True)
class PolicyPrediction:
    """The result of a setting's runs.

    Attributes:
        gap: the policies in both worlds; None if it cannot be computed.
        reason: why there is no gap.
        failed: numbers of runs without a score, by reason.
    """

    gap: Gap | None
    reason: str = ""
    failed: Mapping[str, int] = field(default_factory=dict)


def predict_policies(
    statistics: Sequence[LogStatistics],
    settings: Sequence[Setting],
    options: SweepOptions,
    workers: Workers,
    listener: ProgressListener,
    journal: ResultJournal[Run, EpisodeScore] | None,
    notes: list[str],
) -> list[PolicyPrediction]:
    """Repeat the logs' episodes with their policies.

    Args:
        statistics: logs of real episodes.
        settings: settings to run under.
        options: scenes, policies and the folder for logs.
        workers: processes that run the episodes.
        listener: listener of the progress.
        journal: journal made by :func:`run_journal`; None for none.
        notes: gets the agents that cannot be run.

    Returns:
        The result of each setting.
    """
    sources = _sources(statistics, options.policy_overrides, notes)
    taken = [log for log in statistics if log.header.agent in sources]
    if not taken:
        return [PolicyPrediction(None, "no policy can be loaded")] * len(settings)
    real = score_logs([log.path for log in taken], workers=workers, on_retry=listener.on_retry)
    items = [
        Run(setting, log.path, options.scene_source, sources[log.header.agent], _folder(setting, options.log_folder))
        for setting in settings
        for log in taken
    ]
    scores = map_with_progress(_run_each, items, workers, _lost, journal, listener, "policies")
    count = len(taken)
    return [_policy_prediction(scores[i * count : (i + 1) * count], real) for i in range(len(settings))]


def _sources(
    statistics: Sequence[LogStatistics], overrides: Mapping[str, PolicySource], notes: list[str]
) -> dict[str, PolicySource]:
    """Policies by agent; those that cannot be loaded are noted."""
    agents = {log.header.agent: log.header for log in statistics}
    if unknown := [name for name in overrides if name not in agents]:
        raise PolicyError(
            f"--policy {unknown[0]}=...: no log is of an agent of that name",
            f"the logs' agents are {', '.join(agents)}",
        )
    sources = {}
    with PolicyCache() as policies:
        for agent, header in agents.items():
            try:
                source = policy_source(header, overrides)
                loaded = policies.of(source)
            except RuntimeFault as error:
                notes.append(f"not run: agent {agent!r}: {error.message}")
                continue
            # With its present digest, because workers and the journal must not confuse versions of a policy.
            sources[agent] = replace(source, digest=loaded.source.digest if loaded.source else None)
    return sources


def _folder(setting: Setting, log_folder: Path | None) -> Path | None:
    return None if log_folder is None else log_folder / _digest(plain(setting.robot.options))[:12]


def run_journal(path: Path, overwrite: bool = False) -> ResultJournal[Run, EpisodeScore]:
    """The journal of finished runs. Raises what :class:`ResultJournal` raises."""
    settings = {"runs": VERSION, "scorer": SCORER_VERSION}
    return ResultJournal(path, settings, _key, encode_score, decode_score, overwrite)


def _key(item: Run) -> str:
    content = {
        "options": item.setting.described(),
        "policy": plain(item.source),
        "places": plain(item.scene_source),
        "keep": str(item.log_folder or ""),
    }
    return f"{_digest(content)} {file_key(item.log)}"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _run_each(items: Iterable[Run]) -> Iterator[EpisodeScore]:
    scenes: dict[Path, Scene] = {}
    with PolicyCache() as policies:
        for item in items:
            header = read_header(item.log)
            scene = item.scene_source.of(header, scenes)
            yield rerun(item.setting, item.log, header, scene, policies.of(item.source), item.source, item.log_folder)


def _lost(item: Run, how: WorkerLoss) -> EpisodeScore:
    return EpisodeScore(item.log, reason=f"the process that ran it {how}")


def _policy_prediction(simulated: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> PolicyPrediction:
    failed = Counter(score.reason for score in simulated if not score.scorable)
    try:
        return PolicyPrediction(find_gap(simulated, real), "", failed)
    except RuntimeFault as error:
        return PolicyPrediction(None, error.message, failed)


# --- one run --------------------------------------------------------------------------------------------------------


def policy_source(header: EpisodeHeader, policy_overrides: Mapping[str, PolicySource]) -> PolicySource:
    """The policy of a log, or the one that replaces an agent of that name.

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


class PolicyCache(ExitStack):
    """Loaded policies; each is loaded once, and closed at the end of the block."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: dict[str, Policy] = {}

    def of(self, source: PolicySource) -> Policy:
        """The policy. Raises ``RuntimeFault`` if it cannot be loaded."""
        key = str(source)
        if key not in self._loaded:
            self._loaded[key] = load_source(source)
            self.callback(self._loaded[key].close)
        return self._loaded[key]


def needs_no_images(policy: Policy, source: PolicySource, task: Task) -> bool:
    """Whether neither the policy (it must declare its sensors) nor the task's success needs images."""
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
        return replace(facts, end=end.reason.value, metrics=scoring.scorer.metrics(), choices=scoring.scorer.choices())
    except RuntimeFault as error:
        return replace(facts, reason=error.message)


class ScoringSubscriber(Subscriber):
    """Scores the episode that is run."""

    scorer: EpisodeScorer

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.scorer = EpisodeScorer(header)

    def on_step(self, record: StepRecord) -> None:
        self.scorer.on_step(record)

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self.scorer.on_episode_end(end)
