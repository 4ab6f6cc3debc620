"""Journal of scores, from which an interrupted command resumes."""

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from robot_runtime.common.version import VERSION
from robot_runtime.metrics.episode_metrics import SCORER_VERSION
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.result_journal import ResultJournal, file_key
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.verdict_files import verdicts_path
from robot_runtime.scoring.summary import EpisodeScore


def score_journal(path: Path, rules: Rules, overwrite: bool = False) -> ResultJournal[Path, EpisodeScore]:
    """The journal of scores by these rules; logs that changed or have no score are scored again.

    Raises:
        RuntimeFault: see :class:`robot_runtime.parallel.result_journal.ResultJournal`.
    """
    settings = {"results": "scores", "scorer": SCORER_VERSION, "robot_runtime": VERSION, **plain(rules)}
    settings["fields"] = [field.name for field in fields(EpisodeScore)]
    return ResultJournal(path, settings, _key, encode_score, decode_score, overwrite)


def _key(log: Path) -> str:
    beside = verdicts_path(log)
    return " ".join(file_key(path) for path in (log, beside) if path.exists())


def encode_score(score: EpisodeScore) -> Any:
    """The JSON of a score; None without a score, so that it is tried again."""
    return plain(score) if score.scorable else None


def decode_score(data: Any) -> EpisodeScore:
    """The inverse of :func:`encode_score`."""
    return _adapter().validate_python(data)


@cache
def _adapter() -> TypeAdapter[EpisodeScore]:
    return TypeAdapter(EpisodeScore)
