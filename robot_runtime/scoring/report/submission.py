"""Result files of challenges, and Habitat's, the flattened metrics, which exists for every kind of task.

A file is written from one policy's logs of a task, without logs that could not be scored.
"""

import gzip
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from robot_runtime.common.creating import creating
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.json_output import plain
from robot_runtime.scoring.groups import known_values
from robot_runtime.scoring.summary import EpisodeScore


class SubmissionWriter(Protocol):
    """Function that writes a file of results."""

    def __call__(
        self,
        path: Path,
        scores: Sequence[EpisodeScore],
        split: str | None = None,
        on_written: Callable[[EpisodeScore], None] | None = None,
    ) -> str:
        """Write a file of results.

        Args:
            path: path of the file, gzipped if its name ends in ``.gz``.
            scores: scores of a policy's logs.
            split: split of the dataset for logs that name none.
            on_written: function that is called after each scored episode, for progress.

        Returns:
            The results as text for people; empty if the file has no summary.

        Raises:
            ConfigError: a split is unknown, or there are several tasks or agents.
            RecordingError: nothing was scored, or a log or the file fails.
            UnknownAction: the challenge does not have an action.
        """


@dataclass(frozen=True)
class SubmissionFormat:
    """A file of results that a challenge takes.

    Attributes:
        suffix: end of the file's name, as the challenge names its files.
        write: function that writes the file.
    """

    suffix: str
    write: SubmissionWriter


HABITAT_NAMES = {
    "distance_to_goal": "distance_to_goal",
    "success": "success",
    "spl": "spl",
    "soft_spl": "soft_spl",
    "collisions": "collisions/count",
    "steps": "num_steps",
}
"""Our metrics by the names of habitat-lab's measures (``tasks/nav/nav.py``), nested ones flattened with ``/``.

``collisions/is_collision``, whether the last step collided, has no meaning as a mean and is left out.
"""


def habitat_result(scores: Sequence[EpisodeScore]) -> dict[str, float]:
    """Mean per metric over the scored episodes, as ``habitat.Benchmark.evaluate`` returns it (``core/benchmark.py``).

    Raises:
        ConfigError: several tasks or agents.
        RecordingError: nothing was scored.
    """
    scored = scores_of_one_policy(scores)
    columns = {name: known_values(score.metrics.get(ours) for score in scored) for ours, name in HABITAT_NAMES.items()}
    return {name: math.fsum(values) / len(values) for name, values in columns.items() if values}


def habitat_lines(result: dict[str, float]) -> str:
    """``name: value`` lines, as ``habitat.Challenge.submit`` logs them (``core/challenge.py``)."""
    return "".join(f"{name}: {value}\n" for name, value in result.items())


def write_habitat(
    path: Path,
    scores: Sequence[EpisodeScore],
    split: str | None = None,
    on_written: Callable[[EpisodeScore], None] | None = None,
) -> str:
    """Write :func:`habitat_result`, as a JSON object if the name ends so, else as :func:`habitat_lines`.

    Means need no split and no log, see :class:`SubmissionWriter`.
    """
    result = habitat_result(scores)
    as_json = path.name.endswith((".json", ".json.gz"))
    with opened(path) as file:
        file.write(json.dumps(plain(result), indent=2) + "\n" if as_json else habitat_lines(result))
    return habitat_lines(result)


def scores_of_one_policy(scores: Sequence[EpisodeScore]) -> list[EpisodeScore]:
    """The scored episodes, if they are of the same task and policy.

    Raises:
        ConfigError: several tasks or agents.
        RecordingError: nothing was scored.
    """
    scored = [score for score in scores if score.scorable]
    if not scored:
        raise RecordingError("no log could be scored, so there is nothing to submit", "run the episodes again")
    for what, names in (("task", {s.task for s in scored}), ("agent", {s.agent for s in scored})):
        if len(names) > 1:
            raise ConfigError(
                f"a submission needs logs of a single {what}, but the logs are of {', '.join(sorted(names))}",
                f"give the logs of one {what}",
            )
    return scored


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing, gzipped if so named, with reproducible bytes; renamed when it is complete."""
    with creating(path) as draft, draft.open("wb") as raw:
        packed = path.name.endswith(".gz")
        binary = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if packed else raw
        with binary, io.TextIOWrapper(binary, encoding="utf-8") as file:
            yield file
