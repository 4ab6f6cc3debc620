"""The runtime's own episodes, for people who set up a real scene: YAML, meters and degrees in the ROS map frame.

::

    schema: 1
    scene: lab                              # each episode may name another
    episodes:
    - id: to the window                     # PointNav
      start: [1.2, 0.4, 90]                 # x, y, heading; counter-clockwise, 0 looks along x
      goals:
      - position: [3.5, 2.0]
    - id: find a chair                      # ObjectNav: the scene's own chairs, unless 'goals' names some
      start: [1.2, 0.4, 90]
      start_tilt_deg: -30                   # up positive
      category: chair
    - id: to the sofa                       # instruction following
      start: [1.2, 0.4, 90]
      instruction: {text: Leave the room and stop at the sofa., language: en-US}
      reference_path: [[1.2, 0.4], [1.2, 3.0], [4.0, 3.0]]
    - id: sofa color                       # EmbodiedQA
      start: [1.2, 0.4, 90]
      question: {text: What color is the sofa?, answer: gray, type: color}
      goals:
      - {object: sofa_1, position: [4.5, 3.0, 0.4], view_points: [[4.0, 3.0, 0]]}
    - id: tidy up                           # rearrangement; an object without 'goal' must stay
      start: [1.2, 0.4, 90]
      objects:
      - {id: mug_1, category: mug, start: {position: [2, 1, 0.8]}, goal: {position: [4, 1, 0.9], yaw_deg: 90}}
    - id: set the table                     # or any state for which a program (tasks/goal_program.py) is true
      start: [1.2, 0.4, 90]
      objects:
      - {id: mug_1, category: mug, start: {position: [2, 1, 0.8]}}
      program: {targets: [{subject: mug_1, on: table_1}]}

Heights that are left out are on the floor. An object's rotation is ``yaw_deg`` or ``quaternion`` (w, x, y, z).
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import ConfigDict, Field, JsonValue, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from robot_runtime.common.config import read_yaml
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Quantity
from robot_runtime.common.yaml_text import YamlDumper, dump_yaml
from robot_runtime.datasets.io import Finite, Id, Vector3, checked, episode_at
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.tasks import payloads
from robot_runtime.tasks.episode import Episode, EpisodeDetails, Goal

SUFFIXES = (".yaml", ".yml")

_COORDINATE = Quantity("coordinate", "m", -500, 500)
_LENGTH = Quantity("length of a way", "m", -math.inf, 1000)
_HEADING = Quantity("heading", "°", -math.inf, math.inf)
_TILT = Quantity("tilt", "°", -90, 90)

PointOrFloor = Annotated[list[Finite], Field(min_length=2, max_length=3)]
Point2 = Annotated[list[Finite], Field(min_length=2, max_length=2)]


class ClosedDict(TypedDict):
    """Base of the records of a file: strict types; unknown fields are refused."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]


class GoalRecord(ClosedDict):
    """A goal; ``view_points`` are [x, y, heading in degrees]."""

    position: PointOrFloor
    object: NotRequired[str]
    view_points: NotRequired[list[Vector3]]


class Record(ClosedDict):
    """One episode, without the fields of its kind (:meth:`EpisodeDetails.from_yaml`)."""

    id: Id
    start: Vector3
    scene: NotRequired[str]
    start_z: NotRequired[Finite]
    start_tilt_deg: NotRequired[Finite]
    category: NotRequired[str]
    goals: NotRequired[list[GoalRecord]]
    shortest_path_m: NotRequired[Annotated[Finite, Field(ge=0)]]
    shortest_path: NotRequired[list[Point2]]
    info: NotRequired[dict[str, JsonValue]]


class Document(ClosedDict):
    """The whole file; its episodes are validated one by one."""

    schema: Literal[1]
    scene: NotRequired[str]
    episodes: list[Any]


_SCHEMA = TypeAdapter(Record)
_DOCUMENT_SCHEMA = TypeAdapter(Document)


def load(path: Path) -> list[Episode]:
    """All episodes of a file. Raises ``EpisodeError``."""
    return parse(_document(path), path)


def iter_readable(path: Path) -> Iterator[Episode | EpisodeError]:
    """The episodes of a file, with an error in place of each that cannot be read.

    Raises:
        EpisodeError: the file itself cannot be read.
    """
    content = checked(_document(path), _DOCUMENT_SCHEMA, path)
    for index, item in enumerate(content["episodes"]):
        try:
            episode: Episode | EpisodeError = _episode(item, content.get("scene"), path, index)
        except EpisodeError as error:
            episode = error
        yield episode


def parse(document: Any, path: Path) -> list[Episode]:
    """All episodes of a document read from ``path``. Raises ``EpisodeError``."""
    content = checked(document, _DOCUMENT_SCHEMA, path)
    return [_episode(item, content.get("scene"), path, index) for index, item in enumerate(content["episodes"])]


def save(path: Path, episodes: Sequence[Episode]) -> None:
    """Write a file that :func:`load` reads as the same episodes. Angles may change by one unit in the last place.

    Raises:
        RecordingError: the file cannot be written.
    """
    scenes = {episode.scene for episode in episodes}
    shared = scenes.pop() if len(scenes) == 1 else None
    document: dict[str, Any] = {"schema": 1}
    if shared is not None:
        document["scene"] = shared
    document["episodes"] = [_record(episode, shared) for episode in episodes]
    text = dump_yaml(document, _Dumper, width=120)
    from robot_runtime.common.creating import creating

    with creating(path, "choose a place with room and permission") as draft:
        draft.write_text(text, encoding="utf-8")


# --- reading --------------------------------------------------------------------------------------------------------


def _document(path: Path) -> Any:
    try:
        return read_yaml(path)
    except ConfigError as error:
        raise EpisodeError(error.message, error.remedy) from error


def _episode(item: Any, shared_scene: str | None, path: Path, index: int) -> Episode:
    where = episode_at(index, item, "id")
    names = {field.name for details_type in Episode.inlined_types() for field in dataclasses.fields(details_type)}
    own = {name: value for name, value in item.items() if name in names} if isinstance(item, dict) else {}
    common = {name: value for name, value in item.items() if name not in names} if isinstance(item, dict) else item
    record = checked(common, _SCHEMA, path, where)
    scene = record.get("scene", shared_scene)
    if scene is None:
        raise EpisodeError(f"{path}: {where}field 'scene': is missing, here and for all", "state the scene")
    tilt_deg = record.get("start_tilt_deg")
    read = Episode(
        id=str(record["id"]),
        scene=scene,
        start=_pose(record["start"]),
        goals=tuple(_goal(goal) for goal in record.get("goals", ())),
        category=record.get("category"),
        start_tilt_rad=None if tilt_deg is None else math.radians(tilt_deg),
        start_z_m=record.get("start_z", 0.0),
        shortest_path_m=record.get("shortest_path_m"),
        shortest_path=tuple((x_m, y_m) for x_m, y_m in record.get("shortest_path", ())),
        info=dict(record.get("info", {})),
        details=_details(own, path, where),
    )
    if problem := impossible_number(read):
        raise EpisodeError(f"{path}: {where}{problem[0]}", problem[1])
    return read


def impossible_number(episode: Episode) -> tuple[str, str] | None:
    """The first heading, coordinate or length that no building has, or that is in another unit, with a remedy."""
    start = episode.start
    found: list[tuple[str, float, Quantity]] = [("start", degrees(start.yaw_rad), _HEADING)]
    found += [("start tilt", degrees(episode.start_tilt_rad or 0.0), _TILT)]
    found += [("start", value, _COORDINATE) for value in (start.x_m, start.y_m, episode.start_z_m)]
    found += [("goal", value, _COORDINATE) for goal in episode.goals for value in (goal.x_m, goal.y_m, goal.z_m)]
    found += [("shortest path", episode.shortest_path_m or 0.0, _LENGTH)]
    refusals = ((name, quantity.refusal(value)) for name, value, quantity in found)
    return next(((f"{name}: {refusal[0]}", refusal[1]) for name, refusal in refusals if refusal), None)


def _details(fields: Mapping[str, Any], path: Path, where: str) -> EpisodeDetails | None:
    if not fields:
        return None
    kind = payloads.details_kind(fields)
    if kind is None:
        raise EpisodeError(
            f"{path}: {where}no kind of task has episodes with the fields {', '.join(fields)}",
            "leave out those that do not belong together",
        )
    try:
        details_type = cast("type[EpisodeDetails]", payloads.KINDS.load(kind).details_type)
        return details_type.from_yaml(fields, path, where)
    except ConfigError as error:
        raise EpisodeError(error.message, error.remedy) from error


def _pose(numbers: Sequence[float]) -> SE2:
    return SE2(numbers[0], numbers[1], math.radians(numbers[2]))


def point(numbers: Sequence[float]) -> tuple[float, float, float]:
    """A point of a file, on the floor if it has no height."""
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0.0


def _goal(record: GoalRecord) -> Goal:
    views = tuple(_pose(view) for view in record.get("view_points", ()))
    return Goal(*point(record["position"]), object_id=record.get("object"), view_points=views)


# --- writing --------------------------------------------------------------------------------------------------------


def _record(episode: Episode, shared_scene: str | None) -> dict[str, Any]:
    record: dict[str, Any] = {"id": episode.id, "start": _pose_numbers(episode.start)}
    if episode.scene != shared_scene:
        record["scene"] = episode.scene
    if episode.start_z_m:
        record["start_z"] = episode.start_z_m
    if episode.start_tilt_rad is not None:
        record["start_tilt_deg"] = degrees(episode.start_tilt_rad)
    optional = {
        "category": episode.category,
        "goals": [_goal_record(goal) for goal in episode.goals] or None,
        "shortest_path_m": episode.shortest_path_m,
        "shortest_path": [list(place) for place in episode.shortest_path] or None,
        **(episode.details.to_yaml() if episode.details else {}),
        "info": episode.info or None,
    }
    return record | {name: value for name, value in optional.items() if value is not None}


def degrees(angle_rad: float) -> float:
    """The shortest decimal number of degrees that is exactly this angle in radians; the nearest if there is none."""
    exact = math.degrees(angle_rad)
    candidates = [round(exact, digits) for digits in range(16)]
    candidates += [exact, math.nextafter(exact, math.inf), math.nextafter(exact, -math.inf)]
    found = next((angle for angle in candidates if math.radians(angle) == angle_rad), exact)
    return int(found) if found.is_integer() else found


def _pose_numbers(pose: SE2) -> list[float]:
    return [pose.x_m, pose.y_m, degrees(pose.yaw_rad)]


def point_numbers(place: tuple[float, float, float]) -> list[float]:
    """The reverse of :func:`point`."""
    return list(place if place[2] else place[:2])


def _goal_record(goal: Goal) -> dict[str, Any]:
    record: dict[str, Any] = {"position": point_numbers((goal.x_m, goal.y_m, goal.z_m))}
    if goal.object_id is not None:
        record["object"] = goal.object_id
    if goal.view_points:
        record["view_points"] = [_pose_numbers(pose) for pose in goal.view_points]
    return record


class _Dumper(YamlDumper):
    """Dumper that writes lists of numbers on one line, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_list(dumper: _Dumper, data: list[Any]) -> yaml.Node:
    numbers = all(isinstance(item, (int, float)) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=numbers)


def _represent_float(dumper: _Dumper, data: float) -> yaml.Node:
    return dumper.represent_float(float(data))


_Dumper.add_representer(list, _represent_list)
# numpy's floats are subclasses of float that the dumper does not know.
_Dumper.add_multi_representer(float, _represent_float)
