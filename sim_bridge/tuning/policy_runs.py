"""Runs of the real logs' policies under every setting, on any number of workers, and the resulting correlations."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_runtime import __version__
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.parallel.map import Workers
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.parallel.workers import WorkerLoss
from robot_runtime.policy import PolicySource
from robot_runtime.recording.json_records import plain
from robot_runtime.records import EpisodeHeader
from robot_runtime.scoring.score_journal import decode_score, encode_score
from robot_runtime.scoring.sim_to_real.gap import Gap, find_gap
from robot_runtime.scoring.summary import EpisodeScore, score_logs
from sim_bridge.replay.scene_source import SceneSource
from sim_bridge.tuning.episodes import PolicyCache, SceneCache, policy_source, rerun
from sim_bridge.tuning.log_statistics import LogStatistics
from sim_bridge.tuning.progress import ProgressListener, map_with_progress
from sim_bridge.tuning.settings import Setting


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


class PolicyRunner:
    """Repeats the logs' episodes with their policies.

    Args:
        scene_source: source of the logs' scenes.
        policy_overrides: policies by the names of the agents that they replace.
        log_folder: folder for the logs of all runs; None for none.
        workers: that run the episodes.
        listener: listener of the progress.
        journal: journal made by :func:`run_journal`; None for none.
    """

    def __init__(
        self,
        scene_source: SceneSource,
        policy_overrides: Mapping[str, PolicySource],
        log_folder: Path | None,
        workers: Workers,
        listener: ProgressListener,
        journal: ResultJournal[Run, EpisodeScore] | None,
    ) -> None:
        self._scene_source, self._policy_overrides, self._log_folder = scene_source, policy_overrides, log_folder
        self._workers, self._listener, self._journal = workers, listener, journal

    def predict(
        self, statistics: Sequence[LogStatistics], settings: Sequence[Setting], notes: list[str]
    ) -> list[PolicyPrediction]:
        """The result of each setting; agents that cannot be run are added to ``notes``."""
        sources = self._sources(statistics, notes)
        taken = [one for one in statistics if one.header.agent in sources]
        if not taken:
            return [PolicyPrediction(None, "no policy can be loaded")] * len(settings)
        real = score_logs([one.path for one in taken], workers=self._workers, on_retry=self._listener.on_retry)
        items = [
            Run(setting, one.path, self._scene_source, sources[one.header.agent], self._folder(setting))
            for setting in settings
            for one in taken
        ]
        scores = map_with_progress(_run_each, items, self._workers, _lost, self._journal, self._listener, "policies")
        count = len(taken)
        return [_policy_prediction(scores[i * count : (i + 1) * count], real) for i in range(len(settings))]

    def _sources(self, statistics: Sequence[LogStatistics], notes: list[str]) -> dict[str, PolicySource]:
        """Policies by agent; those that cannot be loaded are noted."""
        agents = {one.header.agent: one.header for one in statistics}
        if unknown := [name for name in self._policy_overrides if name not in agents]:
            raise PolicyError(
                f"--policy {unknown[0]}=...: no log is of an agent of that name",
                f"the logs' agents are {', '.join(agents)}",
            )
        policies = PolicyCache()
        found = {agent: self._source(header, policies, notes) for agent, header in agents.items()}
        policies.close()
        return {agent: source for agent, source in found.items() if source is not None}

    def _source(self, header: EpisodeHeader, policies: PolicyCache, notes: list[str]) -> PolicySource | None:
        try:
            source = policy_source(header, self._policy_overrides)
            loaded = policies.of(source)
        except RuntimeFault as error:
            notes.append(f"not run: agent {header.agent!r}: {error.message}")
            return None
        # With its present digest, because workers and the journal must not confuse versions of a policy.
        return replace(source, digest=loaded.source.digest if loaded.source else None)

    def _folder(self, setting: Setting) -> Path | None:
        return None if self._log_folder is None else self._log_folder / _digest(plain(setting.robot.options))[:12]


def run_journal(path: Path, overwrite: bool = False) -> ResultJournal[Run, EpisodeScore]:
    """The journal of finished runs. Raises what :class:`ResultJournal` raises."""
    settings = {"runs": __version__, "scorer": SCORER_VERSION}
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
    policies, scenes = PolicyCache(), SceneCache()
    try:
        for item in items:
            header = scenes.header(item.log)
            scene = scenes.of(header, item.scene_source)
            yield rerun(item.setting, item.log, header, scene, policies.of(item.source), item.source, item.log_folder)
    finally:
        policies.close()


def _lost(item: Run, how: WorkerLoss) -> EpisodeScore:
    return EpisodeScore(item.log, reason=f"the process that ran it {how}")


def _policy_prediction(simulated: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> PolicyPrediction:
    failed = Counter(score.reason for score in simulated if not score.scorable)
    try:
        return PolicyPrediction(find_gap(simulated, real), "", failed)
    except RuntimeFault as error:
        return PolicyPrediction(None, error.message, failed)
