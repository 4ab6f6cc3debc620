"""Scores as files for other programs: complete JSON, and Parquet with a row per episode."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from robot_runtime.common.creating import creating
from robot_runtime.common.version import VERSION
from robot_runtime.errors import ConfigError
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.measures import all_metrics
from robot_runtime.recording.json_output import plain, results_file
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.statistics.agreement import agreements
from robot_runtime.scoring.statistics.intervals import CONFIDENCE, SEED
from robot_runtime.scoring.summary import Cluster, EpisodeScore
from robot_runtime.verdicts import success_by_person

_ROWS = 10_000
"""Rows per batch."""

_TEXTS = tuple("path reason task split agent robot localizer referee scene dataset episode key trajectory end".split())  # noqa: SIM905

_KEYS = {"verdicts": "evidence"}
"""Fields of scores that have another name in files."""


def write_json(path: Path, scores: Sequence[EpisodeScore], cluster: Cluster = "none", by: Sequence[str] = ()) -> None:
    """Write scores, summaries and the choices behind them.

    ``choices`` and ``runs`` (provenance) are lists without duplicates that episodes refer to by index.

    Raises:
        RecordingError: the file cannot be written.
    """
    choices, runs = _Numbered(), _Numbered()
    episodes = [_episode(score, choices, runs) for score in scores]
    document = {
        **_about(cluster),
        "by": list(by),
        "choices": choices.values,
        "groups": [asdict(group) for group in summarize_groups(scores, cluster, by)],
        "judges": [
            {"names": names, **asdict(agreement)}
            for names, agreement in agreements(success_by_person(score.verdicts) for score in scores).items()
        ],
        "runs": runs.values,
    }
    head = json.dumps(plain(document), indent=2).removesuffix("\n}")
    with results_file(path) as file:
        # A line per episode, so that a long file can be read by eye and by line.
        file.write(f'{head},\n  "episodes": [')
        for index, episode in enumerate(episodes):
            file.write(f"{',' if index else ''}\n    {json.dumps(plain(episode))}")
        file.write("\n  ]\n}\n")


def write_parquet(path: Path, scores: Sequence[EpisodeScore]) -> None:
    """Write a row per log and a column per metric, null where it was not scored.

    The file's metadata ``robot_runtime`` is the JSON that ``write_json`` writes next to the episodes.

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
    schema = pyarrow.schema(
        [
            ("scorable", pyarrow.bool_()),
            *((name, pyarrow.string()) for name in _TEXTS),
            ("seed", pyarrow.int64()),
            ("choices", pyarrow.int32()),
            ("run", pyarrow.int32()),
            ("notes", pyarrow.string()),
            ("evidence", pyarrow.string()),
            ("cause", pyarrow.string()),
            ("cause_evidence", pyarrow.string()),
            *((m.name, pyarrow.bool_() if m.share else pyarrow.float64()) for m in all_metrics().values()),
        ]
    )
    choices, runs = _Numbered(), _Numbered()
    rows = [_episode(score, choices, runs) for score in scores]
    about = json.dumps(plain({**_about("none"), "choices": choices.values, "runs": runs.values}))
    described = schema.with_metadata({"robot_runtime": about})
    with creating(path) as draft, parquet.ParquetWriter(draft, described) as writer:
        for first in range(0, len(rows), _ROWS):
            part = rows[first : first + _ROWS]
            flat = [{**row, **row["metrics"], **_column_texts(row)} for row in part]
            columns = {name: [row.get(name) for row in flat] for name in schema.names}
            writer.write_table(pyarrow.table(columns, schema=writer.schema))


def _about(cluster: Cluster) -> dict[str, Any]:
    return {
        "scorer": SCORER_VERSION,
        "robot_runtime": VERSION,
        "intervals": {
            "confidence": CONFIDENCE,
            "shares": "wilson" if cluster == "none" else "as others",
            "others": f"percentile bootstrap over {'episodes' if cluster == 'none' else 'clusters'}",
            "cluster": cluster,
            "resamples": "see each group",
            "seed": SEED,
        },
    }


def _episode(score: EpisodeScore, choices: "_Numbered", runs: "_Numbered") -> dict[str, Any]:
    names = (
        "path",
        "scorable",
        *_TEXTS[1:-1],
        "seed",
        "end",
        "notes",
        "verdicts",
        "placement",
        "cause",
        "views",
        "facets",
        "metrics",
    )
    return {
        **{_KEYS.get(name, name): getattr(score, name) for name in names},
        "choices": choices.number(score.choices),
        "run": runs.number(score.provenance),
    }


def _column_texts(row: dict[str, Any]) -> dict[str, str | None]:
    """Fields that take one Parquet column each although they are not text: path, notes, and verdicts as JSON."""
    return {
        "path": str(row["path"]),
        "notes": "; ".join(row["notes"]) or None,
        "evidence": json.dumps(plain(row["evidence"])) if row["evidence"] else None,
        "cause": row["cause"].name if row["cause"] else None,
        "cause_evidence": row["cause"].evidence if row["cause"] else None,
    }


class _Numbered:
    """List of dictionaries without duplicates."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._seen: dict[int, tuple[dict[str, Any], int]] = {}

    def number(self, value: dict[str, Any]) -> int | None:
        """Return the index of a value; None for an empty one."""
        if not value:
            return None
        if id(value) not in self._seen:  # most episodes share one object; the stored reference keeps its id unique
            key = json.dumps(plain(value), sort_keys=True)
            if key not in self._numbers:
                self._numbers[key] = len(self.values)
                self.values.append(value)
            self._seen[id(value)] = value, self._numbers[key]
        return self._seen[id(value)][1]
