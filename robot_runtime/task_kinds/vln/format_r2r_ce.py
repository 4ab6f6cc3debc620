"""Instruction following in continuous environments: R2R-CE (``VLN-CE-v1``) and RxR-CE (``RxR-VLN-CE-v1``).

A split ``val_unseen.json.gz`` has the episodes; ``val_unseen_gt.json.gz`` next to it has, by episode id, the positions
and actions of a follower of the reference path. nDTW is measured against those positions (:func:`ground_truth_path`),
not against the few nodes of ``reference_path``.

RxR's guide and follower files differ from R2R's in the instruction, which has ``instruction_id``, ``language``,
``annotator_id``, ``timed_instruction``; and in that the document has no ``instruction_vocab``.

``Episode.info`` is described in :mod:`robot_runtime.datasets.habitat_common`, and has the ground truth as
``ground_truth``.

Source: VLN-CE, ``habitat_extensions/task.py`` and ``measures.py``; habitat-lab, ``tasks/vln/vln.py``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import NotRequired

from robot_runtime.common.geometry import ros_to_habitat_position
from robot_runtime.datasets import habitat_common
from robot_runtime.datasets.formats import EpisodeFormat
from robot_runtime.datasets.io import OpenDict, Reader, Vector3, checked, episode_at, read_json, write_json
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.episode import Episode, Goal

SUCCESS_RADIUS_M = 3.0

NEAR_M = 3.0
"""Distance of a path's first point from the start above which the path is that of another episode."""


class GoalRecord(OpenDict):
    """The end of the reference path."""

    position: Vector3


class InstructionRecord(OpenDict):
    """An instruction; ``instruction_tokens`` are padded with 0 in R2R."""

    instruction_text: str
    instruction_tokens: NotRequired[list[int] | list[str] | None]
    language: NotRequired[str | None]


class EpisodeRecord(habitat_common.EpisodeRecord):
    """One episode in the file. The test splits have neither goals nor reference path."""

    trajectory_id: NotRequired[str | int | None]
    instruction: InstructionRecord
    goals: NotRequired[list[GoalRecord] | None]
    reference_path: NotRequired[list[Vector3] | None]


class GroundTruth(OpenDict):
    """Positions and actions of a follower; action ids are VLN-CE's: stop 0, forward 1, left 2, right 3."""

    locations: list[Vector3]
    actions: NotRequired[list[int]]


_SCHEMA = TypeAdapter(EpisodeRecord)
_TRUTH_SCHEMA = TypeAdapter(dict[str, GroundTruth])
_MODELED = frozenset({"scene_id", "start_position"})


def matches(document: Any) -> bool:
    """Whether a JSON document has this format."""
    return habitat_common.first_has(document, "instruction")


def reader(document: Any, path: Path) -> Reader:
    """The reader of a document's episodes, given the document or its outline; it reads all ground truth at once."""
    rest = habitat_common.unmodeled(document, ("episodes",))
    beside = ground_truth_file(path)
    truth = checked(read_json(beside), _TRUTH_SCHEMA, beside) if beside.is_file() else {}

    def read(index: int, item: Any) -> Episode:
        record = checked(item, _SCHEMA, path, episode_at(index, item))
        return _episode(record, truth.get(str(record["episode_id"])), rest, path, index)

    return read


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write one split, and the ground truth next to it if an episode has one. Raises ``EpisodeError``."""
    rest = episodes[0].info.get("dataset", {}) if episodes else {}
    if not any(map(habitat_common.from_habitat, episodes)):
        rest = {"instruction_vocab": {"word_list": []}}
    write_json(path, {"episodes": [_record(episode) for episode in episodes], **rest})
    truth = {episode.id: episode.info["ground_truth"] for episode in episodes if "ground_truth" in episode.info}
    if truth:
        write_json(ground_truth_file(path), truth)


def ground_truth_file(path: Path) -> Path:
    """``val_unseen_gt.json.gz`` for ``val_unseen.json.gz``."""
    stem, dot, suffixes = path.name.partition(".")
    return path.with_name(f"{stem}_gt{dot}{suffixes}")


def ground_truth_problems(path: Path, document: Any, ids: Set[str]) -> Iterator[str]:
    """Yield what is wrong with the ground truth of a split: missing, empty, or of other episodes.

    Raises:
        EpisodeError: it cannot be read.
    """
    first = (document.get("episodes") or [{}])[0]
    if not first.get("reference_path"):
        return  # a test split, whose routes are withheld
    beside = ground_truth_file(path)
    if not beside.is_file():
        others = sorted(other.name for other in path.parent.glob("*_gt.json*"))
        yield f"{beside.name} is missing" + (f"; the folder has {', '.join(others)}" if others else "")
        return
    truth = checked(read_json(beside), _TRUTH_SCHEMA, beside)
    fitting = truth.keys() & ids
    if not truth:
        yield f"{beside.name} is empty"
    elif not fitting:
        yield (
            f"{beside.name} has no episode of the split: its {len(truth)} ids, such as {min(truth)!r}, may be those of "
            "trajectories or of another split"
        )
    elif len(fitting) < len(truth):
        yield f"{beside.name} has {len(truth) - len(fitting)} of {len(truth)} ids that no episode of the split has"


def begins_elsewhere_m(episode: Episode, points: Sequence[tuple[float, ...]]) -> float | None:
    """Distance from the start to the first point of a path if it is more than :data:`NEAR_M`; else None."""
    if not points:
        return None
    start = (episode.start.x_m, episode.start.y_m, episode.start_z_m)
    apart_m = math.dist(points[0], start)
    return apart_m if apart_m > NEAR_M else None


def ground_truth_path(episode: Episode) -> tuple[tuple[float, float, float], ...]:
    """The follower's positions in map, one per step, meters; empty if the dataset has no ground truth."""
    truth: Mapping[str, Any] = episode.info.get("ground_truth", {})
    return tuple(habitat_common.to_ros(position) for position in truth.get("locations", ()))


def _episode(
    record: EpisodeRecord, truth: GroundTruth | None, rest: Mapping[str, Any], path: Path, index: int
) -> Episode:
    info = habitat_common.info_of(record, _MODELED, rest)
    if record.get("reference_path") is not None:
        del info["reference_path"]
    if truth is not None:
        info["ground_truth"] = truth
    return Episode(
        **habitat_common.from_record(record, path, index),
        goals=tuple(Goal(*habitat_common.to_ros(goal["position"])) for goal in record.get("goals") or ()),
        info=info,
        details=Route(
            _instruction(record["instruction"], record.get("trajectory_id")),
            tuple(map(habitat_common.to_ros, record.get("reference_path") or ())),
        ),
    )


def _instruction(record: Mapping[str, Any], trajectory_id: str | int | None) -> Instruction:
    tokens = [token for token in record.get("instruction_tokens") or () if isinstance(token, int)]
    while tokens and tokens[-1] == 0:
        tokens.pop()
    return Instruction(
        text=record["instruction_text"],
        tokens=tuple(tokens),
        language=record.get("language"),
        trajectory_id=None if trajectory_id is None else str(trajectory_id),
    )


def _record(episode: Episode) -> dict[str, Any]:
    extras = habitat_common.goal_extras(episode, {"radius": SUCCESS_RADIUS_M})
    record = habitat_common.to_record(episode, habitat_common.goal_records(episode, extras))
    record.pop("ground_truth", None)
    if episode.info.get("goals", ()) is None:
        record["goals"] = None
    route = Route.of(episode)
    if route.reference_path or not habitat_common.from_habitat(episode):
        record["reference_path"] = [list(ros_to_habitat_position(*point)) for point in route.reference_path]
    instruction = route.instruction
    original = record.get("instruction")
    if instruction is not None and (
        original is None or _instruction(original, record.get("trajectory_id")) != instruction
    ):
        record["instruction"] = {"instruction_text": instruction.text, "instruction_tokens": list(instruction.tokens)}
        record["instruction"] |= {} if instruction.language is None else {"language": instruction.language}
        record["trajectory_id"] = instruction.trajectory_id
    return record


FORMAT = EpisodeFormat(
    title="R2R-CE, RxR-CE",
    kind="vln",
    matches=matches,
    reader=reader,
    save=lambda path, episodes, _: save(path, episodes),
    writes=lambda episodes, _: bool(episodes) and Route.of(episodes[0]).instruction is not None,
    companions=lambda path: (ground_truth_file(path),),
    companion_problems=ground_truth_problems,
    rank=20,
)
