"""Panels of ObjectNav: its four criteria, and the submission of the RoboTHOR challenge."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TextIO

from typing_extensions import override

from robot_runtime.actions.discrete import ROBOTHOR
from robot_runtime.common.geometry import ros_to_thor_position, tilt_to_thor_horizon_deg, yaw_to_thor_rotation_deg
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.functional.spl import spl
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scoring.report.panels import Criterion, ReportPanels
from robot_runtime.scoring.report.submission import SubmissionFormat, opened, scores_of_one_policy
from robot_runtime.scoring.summary import EpisodeScore
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M


def write_robothor(
    path: Path,
    scores: Sequence[EpisodeScore],
    split: str | None = None,
    on_written: Callable[[EpisodeScore], None] | None = None,
) -> str:
    """Write the submission of the RoboTHOR challenge 2021 (``robothor_challenge/challenge.py``, README).

    ``{split: {"episodes": {id: {"trajectory": n + 1 poses, "actions_taken": n actions, "success"}}, "ep_len",
    "success", "spl"}}`` in THOR's frame; a split called ``test...`` has no ``success`` and no ``spl``. Poses are the
    referee's, at the height of THOR's agent; an action's success is ``ActionResult.succeeded``, as a robot's client
    gets it; ``ep_len`` is the mean number of poses. SPL divides by the dataset's shortest path, or by the map's where
    the dataset states none; the challenge's server computes it again. Logs are read one at a time.

    Raises:
        ConfigError: as a :class:`SubmissionWriter`.
        RecordingError: the same, or two logs are of the same episode.
        UnknownAction: RoboTHOR does not have an action.
    """
    scored = scores_of_one_policy(scores)
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
    with opened(path) as file:
        file.write("{")
        for index, (name, members) in enumerate(splits.items()):
            file.write(f"{', ' if index else ''}{json.dumps(name)}: ")
            _write_split(file, members, name.startswith("test"), on_written)
        file.write("}")
    return ""


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


def _number(score: EpisodeScore, name: str) -> float:
    value = score.metrics[name]
    assert value is not None, name
    return float(value)


def robothor_episode(header: EpisodeHeader, steps: Iterable[StepRecord]) -> dict[str, Any]:
    """``trajectory`` and ``actions_taken`` of an episode.

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


_CRITERIA = {
    "criterion_intentionality": ("stopped", "did not stop"),
    "criterion_validity": ("in a valid place", "not in a valid place"),
    "criterion_proximity": ("near the object", "not near"),
    "criterion_visibility": ("sees the object", "object not seen"),
}


class ObjectPanels(ReportPanels):
    """The category, and which criteria an episode meets."""

    submissions: ClassVar[Mapping[str, SubmissionFormat]] = {
        "robothor": SubmissionFormat("metrics.json.gz", write_robothor)
    }

    @classmethod
    @override
    def failure(cls, score: EpisodeScore) -> str:
        return ", ".join(text for name, (_, text) in _CRITERIA.items() if score.metrics.get(name) is False)

    @override
    def subject(self) -> str:
        return self.data.header.episode.category or ""

    @override
    def criteria(self) -> Sequence[Criterion]:
        """The four criteria, each with its explanation; none without a score."""
        data, score = self.data, self.data.score
        if not score.scorable:
            return ()
        near, place = score.choices["criterion_proximity"], score.choices["criterion_validity"]
        instances = {goal.object_id for goal in data.header.episode.goals}
        end = data.poses[-1]
        distances = [o.distance_m(end.x_m, end.y_m) for o in data.header.scene.objects if o.id in instances]
        measured = f"{min(distances):.2f} m to its box, " if distances else ""
        names = [verdict.who for verdict in score.verdicts if verdict.visible is not None]
        seen = str(score.choices["criterion_visibility"]) + (f", {names[-1]}'s" if names else "")
        details = ("", place, f"{measured}limit {near['distance_m']:g} m", seen)
        criteria = []
        for (name, (yes, no)), detail in zip(_CRITERIA.items(), details, strict=True):
            met = score.metrics[name]
            label = f"{yes}?" if met is None else yes if met else no
            criteria.append(Criterion(label, None if met is None else bool(met), detail))
        return criteria
