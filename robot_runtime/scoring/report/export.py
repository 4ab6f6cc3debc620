"""Scores as files for other programs: JSON that says everything, and Parquet with a row per episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from robot_runtime import __version__
from robot_runtime.errors import ConfigError, writing
from robot_runtime.metrics.episode_metrics import ALL_METRICS, SCORER_VERSION, SHARES
from robot_runtime.recording.json_records import plain
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, SEED
from robot_runtime.scoring.summary import Cluster, EpisodeScore

_ROWS = 10_000
"""Rows that are turned into columns at once."""


def write_json(path: Path, scores: Sequence[EpisodeScore], cluster: Cluster = "none") -> None:
    """Scores, summaries and every choice behind them.

    ``choices`` and ``runs`` (provenance) list what episodes have in common; an episode names its own by index.

    Raises:
        RecordingError: the file cannot be written.
    """
    choices, runs = _Numbered(), _Numbered()
    episodes = [_episode(score, choices, runs) for score in scores]
    document = {
        **_about(cluster),
        "choices": choices.values,
        "groups": [asdict(group) for group in summarize_groups(scores, cluster)],
        "runs": runs.values,
    }
    head = json.dumps(plain(document), indent=2).removesuffix("\n}")
    with writing(path), path.open("w", encoding="utf-8") as file:
        # A line per episode, so that a long file can be read by eye and by line.
        file.write(f'{head},\n  "episodes": [')
        for index, episode in enumerate(episodes):
            file.write(f"{',' if index else ''}\n    {json.dumps(plain(episode))}")
        file.write("\n  ]\n}\n")


def write_parquet(path: Path, scores: Sequence[EpisodeScore]) -> None:
    """A row per log, a column per metric; a metric is null where it was not scored.

    The file's metadata hold what ``write_json`` puts beside the episodes, as JSON under ``robot_runtime``.

    Raises:
        ConfigError: pyarrow is not installed.
        RecordingError: the file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError(
            "writing Parquet needs pyarrow, which is not installed",
            "install the extra: pip install 'robot-runtime[parquet]'",
        ) from error
    texts = (
        "path",
        "reason",
        "task",
        "split",
        "agent",
        "scene",
        "dataset",
        "episode",
        "key",
        "trajectory",
        "referee",
        "end",
    )
    schema = pyarrow.schema(
        [
            ("scorable", pyarrow.bool_()),
            *((name, pyarrow.string()) for name in texts),
            ("seed", pyarrow.int64()),
            ("choices", pyarrow.int32()),
            ("run", pyarrow.int32()),
            ("evidence", pyarrow.string()),
            *((name, pyarrow.bool_() if name in SHARES else pyarrow.float64()) for name in ALL_METRICS),
        ]
    )
    choices, runs = _Numbered(), _Numbered()
    rows = [_episode(score, choices, runs) for score in scores]
    about = json.dumps(plain({**_about("none"), "choices": choices.values, "runs": runs.values}))
    described = schema.with_metadata({"robot_runtime": about})
    with writing(path), parquet.ParquetWriter(path, described) as writer:
        for part in _parts(rows, _ROWS):
            flat = [{**row, **row["metrics"], "path": str(row["path"]), "evidence": _text(row)} for row in part]
            columns = {name: [row.get(name) for row in flat] for name in schema.names}
            writer.write_table(pyarrow.table(columns, schema=writer.schema))


def _about(cluster: Cluster) -> dict[str, Any]:
    return {
        "scorer": SCORER_VERSION,
        "robot_runtime": __version__,
        "intervals": {
            "confidence": CONFIDENCE,
            "shares": "wilson" if cluster == "none" else "as others",
            "others": f"percentile bootstrap over {'episodes' if cluster == 'none' else 'clusters'}",
            "cluster": cluster,
            "resamples": "see each group",
            "seed": SEED,
        },
    }


def _episode(score: EpisodeScore, choices: _Numbered, runs: _Numbered) -> dict[str, Any]:
    return {
        "path": score.path,
        "scorable": score.scorable,
        "reason": score.reason,
        "task": score.task,
        "split": score.split,
        "agent": score.agent,
        "scene": score.scene,
        "dataset": score.dataset,
        "episode": score.episode,
        "key": score.key,
        "trajectory": score.trajectory,
        "referee": score.referee,
        "seed": score.seed,
        "end": score.end,
        "evidence": score.evidence,
        "placement": score.placement,
        "metrics": score.metrics,
        "choices": choices.number(score.choices),
        "run": runs.number(score.provenance),
    }


def _text(row: dict[str, Any]) -> str | None:
    """What people added, as JSON: Parquet has no column for each of it."""
    return json.dumps(plain(row["evidence"])) if row["evidence"] else None


class _Numbered:
    """Different dictionaries, each once."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._seen: dict[int, tuple[dict[str, Any], int]] = {}

    def number(self, value: dict[str, Any]) -> int | None:
        """The index of a value; None for an empty one."""
        if not value:
            return None
        if id(value) not in self._seen:  # most episodes share theirs; the value kept beside its id keeps the id taken
            key = json.dumps(plain(value), sort_keys=True)
            if key not in self._numbers:
                self._numbers[key] = len(self.values)
                self.values.append(value)
            self._seen[id(value)] = value, self._numbers[key]
        return self._seen[id(value)][1]


def _parts(rows: Sequence[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    rest = iter(rows)
    while part := list(islice(rest, size)):
        yield part
