"""Result files of two challenges: RoboTHOR's ``metrics.json.gz`` and Habitat's flattened metrics.

Both are written from one policy's logs of one task, without logs that could not be scored.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from robot_runtime.actions.discrete import ROBOTHOR
from robot_runtime.common.geometry import ros_to_thor_position, tilt_to_thor_horizon_deg, yaw_to_thor_rotation_deg
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.metrics.functional.spl import spl
from robot_runtime.recording.json_records import plain
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scoring.groups import known_values
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M

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


# --- RoboTHOR -------------------------------------------------------------------------------------------------------


def write_robothor(
    path: Path,
    scores: Sequence[EpisodeScore],
    split: str | None = None,
    on_written: Callable[[EpisodeScore], None] | None = None,
) -> None:
    """The submission of the RoboTHOR challenge 2021 (``robothor_challenge/challenge.py``, README).

    ``{split: {"episodes": {id: {"trajectory": n + 1 poses, "actions_taken": n actions, "success"}}, "ep_len",
    "success", "spl"}}`` in THOR's frame; a split called ``test...`` has no ``success`` and no ``spl``. Poses are the
    referee's, at the height of THOR's agent; an action's success is ``ActionResult.succeeded``, as a robot's client
    gets it; ``ep_len`` is the mean number of poses. SPL divides by the dataset's shortest path, or by the map's where
    the dataset states none; the challenge's server computes it anew. Logs are read one at a time.

    Args:
        path: path of the file, gzipped if its name ends in ``.gz``, as the server needs it.
        scores: scores of one policy's logs.
        split: split of logs that do not name one.
        on_written: callback, called after each episode, for progress.

    Raises:
        ConfigError: a split is unknown, or there are several tasks or agents.
        RecordingError: two logs are of one episode, nothing was scored, or a log or the file fails.
        UnknownAction: RoboTHOR has no such action.
    """
    scored = _of_one_policy(scores)
    splits: dict[str, dict[str, EpisodeScore]] = {}
    for score in scored:
        name = score.split or split
        if not name:
            raise ConfigError(f"{score.path}: its log names no split of a dataset", "say which with --split, e.g. val")
        other = splits.setdefault(name, {}).setdefault(score.episode, score)
        if other is not score:
            raise RecordingError(
                f"{score.path}: episode {score.episode!r} of {name} is also in {other.path}",
                "give one log per episode: a submission holds one attempt",
            )
    with _opened(path) as file:
        file.write("{")
        for index, (name, members) in enumerate(splits.items()):
            file.write(f"{', ' if index else ''}{json.dumps(name)}: ")
            _write_split(file, members, name.startswith("test"), on_written)
        file.write("}")


def _write_split(
    file: TextIO, members: dict[str, EpisodeScore], test: bool, on_written: Callable[[EpisodeScore], None] | None
) -> None:
    poses: list[int] = []
    ratios: list[float] = []
    file.write('{"episodes": {')
    for index, (name, score) in enumerate(members.items()):
        with LogReader(score.path) as log:
            episode = robothor_episode(log.header, log.steps(images=False))
            stated_m = log.header.episode.shortest_path_m
        if not test:
            succeeded = bool(score.metrics["success"])
            episode["success"] = succeeded
            shortest_m = _number(score, "shortest_path_m") if stated_m is None else stated_m
            ratios.append(spl(succeeded, shortest_m, _number(score, "path_length_m"), "one_if_still"))
        poses.append(len(episode["trajectory"]))
        file.write(f"{', ' if index else ''}{json.dumps(name)}: {json.dumps(episode, allow_nan=False)}")
        if on_written is not None:
            on_written(score)
    means: dict[str, float] = {"ep_len": sum(poses) / len(poses)}
    if not test:
        means["success"] = sum(bool(score.metrics["success"]) for score in members.values()) / len(members)
        means["spl"] = math.fsum(ratios) / len(ratios)
    file.write("}, " + json.dumps(means).removeprefix("{"))


def robothor_episode(header: EpisodeHeader, steps: Iterable[StepRecord]) -> dict[str, Any]:
    """``trajectory`` and ``actions_taken`` of one episode.

    Raises:
        UnknownAction: an action that RoboTHOR does not have.
    """
    height_m = float(header.episode.info.get("start_y", AGENT_HEIGHT_M))
    trajectory, actions = [], []
    for record in steps:
        pose = record.referee.pose
        x, _, z = ros_to_thor_position(pose.x_m, pose.y_m, 0.0)
        trajectory.append(
            {
                # + 0.0 turns the -0.0 of a sign change into 0.0.
                "x": x + 0.0,
                "y": height_m,
                "z": z + 0.0,
                "rotation": yaw_to_thor_rotation_deg(pose.yaw_rad),
                "horizon": tilt_to_thor_horizon_deg(record.head.tilt_rad) + 0.0,
            }
        )
        if record.action is not None and record.result is not None:
            word = ROBOTHOR.encode(record.action)[1]
            actions.append({"action": word, "success": record.result.succeeded})
    return {"trajectory": trajectory, "actions_taken": actions}


# --- Habitat --------------------------------------------------------------------------------------------------------


def habitat_result(scores: Sequence[EpisodeScore]) -> dict[str, float]:
    """Mean per metric over the scored episodes, as ``habitat.Benchmark.evaluate`` returns it (``core/benchmark.py``).

    Raises:
        ConfigError: several tasks or agents.
        RecordingError: nothing was scored.
    """
    scored = _of_one_policy(scores)
    columns = {name: known_values(score.metrics.get(ours) for score in scored) for ours, name in HABITAT_NAMES.items()}
    return {name: math.fsum(values) / len(values) for name, values in columns.items() if values}


def habitat_lines(result: dict[str, float]) -> str:
    """``name: value`` lines, as ``habitat.Challenge.submit`` logs them (``core/challenge.py``)."""
    return "".join(f"{name}: {value}\n" for name, value in result.items())


def write_habitat(path: Path, scores: Sequence[EpisodeScore]) -> None:
    """Write :func:`habitat_result`, as a JSON object if the name ends so, else as :func:`habitat_lines`.

    Raises:
        ConfigError: as :func:`habitat_result`.
        RecordingError: likewise, or the file cannot be written.
    """
    result = habitat_result(scores)
    as_json = path.name.endswith((".json", ".json.gz"))
    with _opened(path) as file:
        file.write(json.dumps(plain(result), indent=2) + "\n" if as_json else habitat_lines(result))


# --- both -----------------------------------------------------------------------------------------------------------


def _of_one_policy(scores: Sequence[EpisodeScore]) -> list[EpisodeScore]:
    scored = [score for score in scores if score.scorable]
    if not scored:
        raise RecordingError("no log could be scored, so there is nothing to submit", "run the episodes again")
    for what, names in (("task", {s.task for s in scored}), ("agent", {s.agent for s in scored})):
        if len(names) > 1:
            raise ConfigError(
                f"a submission is of one {what}, but the logs are of {', '.join(sorted(names))}",
                f"give the logs of one {what}",
            )
    return scored


def _number(score: EpisodeScore, name: str) -> float:
    value = score.metrics[name]
    assert value is not None, name
    return float(value)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing, gzipped if so named, with reproducible bytes; renamed when it is complete."""
    unfinished = path.with_name(f"{path.name}.part")
    with writing(path), ExitStack() as stack:
        raw = stack.enter_context(unfinished.open("wb"))
        stack.callback(unfinished.unlink, missing_ok=True)
        packed = path.name.endswith(".gz")
        binary = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) if packed else raw
        with binary, io.TextIOWrapper(binary, encoding="utf-8") as file:
            yield file
        unfinished.replace(path)
