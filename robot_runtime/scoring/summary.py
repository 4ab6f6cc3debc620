"""Scores of many logs: one per episode, means with intervals per task, agent and scene, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.serial import plain
from robot_runtime.records import EndReason
from robot_runtime.scoring.intervals import Interval, bootstrap_mean, wilson
from robot_runtime.scoring.scorer import METRICS, SCORER_VERSION, EpisodeScorer, Metrics, Rules

CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 0


@dataclass(frozen=True)
class EpisodeScore:
    """One log's score.

    Attributes:
        reason: why it cannot be scored; empty if it can. Then ``metrics`` and ``choices`` are empty.
        key: the episode's, to pair runs of several agents. end: how the episode ended, None if unknown.
        provenance: of the log.
    """

    path: Path
    reason: str = ""
    task: str = ""
    agent: str = ""
    scene: str = ""
    episode: str = ""
    key: str = ""
    seed: int | None = None
    end: str | None = None
    metrics: Metrics = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def scorable(self) -> bool:
        """Whether there is a score."""
        return not self.reason


@dataclass(frozen=True)
class GroupSummary:
    """Means over the scored episodes of one task, agent and scene.

    Attributes:
        episodes: scored; unscored: logs that could not be.
        intervals: per metric; empty if nothing was scored. Success has Wilson's interval, the others bootstrap.
    """

    task: str
    agent: str
    scene: str
    episodes: int
    unscored: int
    intervals: dict[str, Interval]


def find_logs(paths: Iterable[Path]) -> list[Path]:
    """The files named, and every ``*.mcap`` below the folders named, sorted, each once.

    Raises:
        RecordingError: a path does not exist, or there is no log at all; names it.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise RecordingError(f"{path}: no such file or folder", "give log files, or folders that hold them")
        inside = sorted(path.rglob("*.mcap")) if path.is_dir() else [path]
        if not inside:
            raise RecordingError(f"{path}: holds no logs (*.mcap)", "give the folder that a run wrote")
        found.update(dict.fromkeys(inside))
    return list(found)


def score_logs(
    paths: Sequence[Path], rules: Rules | None = None, on_scored: Callable[[EpisodeScore], None] | None = None
) -> list[EpisodeScore]:
    """Score each log; one that cannot be scored says why and does not stop the others.

    Args:
        on_scored: called after each, for progress.
    """
    scores = []
    for path in paths:
        score = score_log(path, rules)
        scores.append(score)
        if on_scored is not None:
            on_scored(score)
    return scores


def score_log(path: Path, rules: Rules | None = None) -> EpisodeScore:
    """The score of one log; never raises for what is wrong with the log, but says it in ``reason``."""
    try:
        with LogReader(path) as log:
            return _score(log, rules)
    except RuntimeFault as error:
        return EpisodeScore(path, reason=error.message)


def _score(log: LogReader, rules: Rules | None) -> EpisodeScore:
    header, end = log.header, log.end
    facts: dict[str, Any] = {
        "path": log.path,
        "task": header.task.name,
        "agent": header.agent,
        "scene": header.scene.name,
        "episode": header.episode.id,
        "key": header.episode.key,
        "seed": header.seed,
        "end": end.reason.value if end is not None else None,
        "provenance": header.provenance,
    }
    if end is None:
        return EpisodeScore(reason="no end record: the run was killed before the episode ended", **facts)
    if end.reason in (EndReason.INTERRUPTED, EndReason.FAULT):
        return EpisodeScore(reason=f"{end.reason.value}: {end.detail or 'no detail'}", **facts)
    try:
        scorer = score_steps(log, rules)
    except RuntimeFault as error:
        return EpisodeScore(reason=error.message, **facts)
    return EpisodeScore(metrics=scorer.metrics(), choices=scorer.choices(), **facts)


def score_steps(log: LogReader, rules: Rules | None = None) -> EpisodeScorer:
    """A scorer that has seen the whole log, reading images only where the rule needs them.

    Raises:
        RuntimeFault: whatever log or scorer find wrong.
    """
    scorer = EpisodeScorer(log.header, rules)
    for record in log.steps(images=False):
        scorer.on_step(log.with_images(record) if scorer.needs_frame(record) else record)
    if log.end is not None:
        scorer.on_end(log.end)
    if not scorer.poses:
        raise RecordingError(f"{log.path}: holds no step", "record the episode again")
    return scorer


def summarise(scores: Sequence[EpisodeScore]) -> list[GroupSummary]:
    """Means with intervals per (task, agent, scene), in order of first appearance; unreadable logs belong to none."""
    groups: dict[tuple[str, str, str], list[EpisodeScore]] = {}
    for score in scores:
        if score.task:
            groups.setdefault((score.task, score.agent, score.scene), []).append(score)
    return [_summary(*key, members) for key, members in groups.items()]


def _summary(task: str, agent: str, scene: str, members: list[EpisodeScore]) -> GroupSummary:
    scored = [score.metrics for score in members if score.scorable]
    intervals: dict[str, Interval] = {}
    for name in METRICS if scored else ():
        values = [float(metrics[name] or 0) for metrics in scored]
        if name == "success":
            intervals[name] = wilson(round(sum(values)), len(values), CONFIDENCE)
        else:
            intervals[name] = bootstrap_mean(values, CONFIDENCE, RESAMPLES, SEED)
    return GroupSummary(task, agent, scene, len(scored), len(members) - len(scored), intervals)


def write_json(path: Path, scores: Sequence[EpisodeScore]) -> None:
    """Scores, summaries and every choice behind them.

    Raises:
        RecordingError: the file cannot be written.
    """
    document = {
        "scorer": SCORER_VERSION,
        "intervals": {
            "confidence": CONFIDENCE,
            "success": "wilson",
            "others": "percentile bootstrap over episodes",
            "resamples": RESAMPLES,
            "seed": SEED,
        },
        "groups": [asdict(group) for group in summarise(scores)],
        "episodes": [{"scorable": score.scorable, **asdict(score)} for score in scores],
    }
    try:
        path.write_text(json.dumps(plain(document), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}", "give another file") from error
