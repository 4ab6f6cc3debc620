"""The policies of real logs, run again under every setting on any number of workers, and what that foretells."""

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
from robot_runtime.scoring.score_ledger import decode_score, encode_score
from robot_runtime.scoring.sim_to_real.gap import Gap, find_gap
from robot_runtime.scoring.summary import EpisodeScore, score_logs
from sim_bridge.tuning.episodes import Places, Policies, Scenes, policy_source, rerun
from sim_bridge.tuning.log_statistics import Evidence
from sim_bridge.tuning.progress import Watcher, all_done
from sim_bridge.tuning.settings import Setting


@dataclass(frozen=True)
class Run:
    """One setting on one log. keep: folder for the log of the run; None for none."""

    setting: Setting
    log: Path
    places: Places
    source: PolicySource
    keep: Path | None


@dataclass(frozen=True)
class Foretold:
    """What came of a setting's runs.

    Attributes:
        gap: None where there is none, and ``reason`` says why. failed: runs without a score, by reason.
    """

    gap: Gap | None
    reason: str = ""
    failed: Mapping[str, int] = field(default_factory=dict)


class Replayer:
    """Runs policies of logs again.

    Args:
        instead: what decides instead of agents of these names. keep: folder for the logs of all runs; None for none.
        ledger: of :func:`run_ledger`.
    """

    def __init__(
        self,
        places: Places,
        instead: Mapping[str, PolicySource],
        keep: Path | None,
        workers: Workers,
        watcher: Watcher,
        ledger: ResultJournal[Run, EpisodeScore] | None,
    ) -> None:
        self._places, self._instead, self._keep = places, instead, keep
        self._workers, self._watcher, self._ledger = workers, watcher, ledger

    def foretell(self, evidence: Sequence[Evidence], settings: Sequence[Setting], notes: list[str]) -> list[Foretold]:
        """By setting. What cannot be run is said in ``notes``."""
        sources = self._sources(evidence, notes)
        taken = [one for one in evidence if one.header.agent in sources]
        if not taken:
            return [Foretold(None, "no policy can be loaded")] * len(settings)
        real = score_logs([one.path for one in taken], workers=self._workers, on_retry=self._watcher.on_retry)
        items = [
            Run(setting, one.path, self._places, sources[one.header.agent], self._folder(setting))
            for setting in settings
            for one in taken
        ]
        scores = all_done(_run_each, items, self._workers, _lost, self._ledger, self._watcher, "policies")
        count = len(taken)
        return [_foretold(scores[i * count : (i + 1) * count], real) for i in range(len(settings))]

    def _sources(self, evidence: Sequence[Evidence], notes: list[str]) -> dict[str, PolicySource]:
        """By agent, what decides; those that cannot be loaded are noted."""
        agents = {one.header.agent: one.header for one in evidence}
        if unknown := [name for name in self._instead if name not in agents]:
            raise PolicyError(
                f"--policy {unknown[0]}=...: no log is of an agent of that name",
                f"the logs' agents are {', '.join(agents)}",
            )
        policies = Policies()
        found = {agent: self._source(header, policies, notes) for agent, header in agents.items()}
        policies.close()
        return {agent: source for agent, source in found.items() if source is not None}

    def _source(self, header: EpisodeHeader, policies: Policies, notes: list[str]) -> PolicySource | None:
        try:
            source = policy_source(header, self._instead)
            loaded = policies.of(source)
        except RuntimeFault as error:
            notes.append(f"not run: agent {header.agent!r}: {error.message}")
            return None
        # With the digest of what is there now: a policy that changes is another one, for workers and for the ledger.
        return replace(source, digest=loaded.source.digest if loaded.source else None)

    def _folder(self, setting: Setting) -> Path | None:
        return None if self._keep is None else self._keep / _digest(plain(setting.robot.options))[:12]


def run_ledger(path: Path, overwrite: bool = False) -> ResultJournal[Run, EpisodeScore]:
    """Holds scores of runs. Raises what :class:`ResultJournal` does."""
    settings = {"runs": __version__, "scorer": SCORER_VERSION}
    return ResultJournal(path, settings, _key, encode_score, decode_score, overwrite)


def _key(item: Run) -> str:
    told = {
        "options": item.setting.described(),
        "policy": plain(item.source),
        "places": plain(item.places),
        "keep": str(item.keep or ""),
    }
    return f"{_digest(told)} {file_key(item.log)}"


def _digest(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _run_each(items: Iterable[Run]) -> Iterator[EpisodeScore]:
    policies, scenes = Policies(), Scenes()
    try:
        for item in items:
            header = scenes.header(item.log)
            scene = scenes.of(header, item.places)
            yield rerun(item.setting, item.log, header, scene, policies.of(item.source), item.source, item.keep)
    finally:
        policies.close()


def _lost(item: Run, how: WorkerLoss) -> EpisodeScore:
    return EpisodeScore(item.log, reason=f"the process that ran it {how}")


def _foretold(simulated: Sequence[EpisodeScore], real: Sequence[EpisodeScore]) -> Foretold:
    failed = Counter(score.reason for score in simulated if not score.scorable)
    try:
        return Foretold(find_gap(simulated, real), "", failed)
    except RuntimeFault as error:
        return Foretold(None, error.message, failed)
