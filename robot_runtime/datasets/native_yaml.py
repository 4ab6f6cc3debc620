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
    - id: set the table                     # or any state for which a program is true
      (robot_runtime.tasks.goal_program)
      start: [1.2, 0.4, 90]
      objects:
      - {id: mug_1, category: mug, start: {position: [2, 1, 0.8]}}
      program: {targets: [{subject: mug_1, on: table_1}]}

Heights that are left out are on the floor. An object's rotation is ``yaw_deg`` or ``quaternion`` (w, x, y, z).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, JsonValue, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from robot_runtime.common.config import SHORT_FLOAT, read_yaml
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.io import Finite, Quaternion, Vector3, checked, episode_at
from robot_runtime.errors import ConfigError, EpisodeError
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.eqa.task import Inquiry, Question
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln.task import Instruction, Route
from robot_runtime.tasks.episode import Episode, EpisodeDetails, Goal, RearrangedObject
from robot_runtime.tasks.goal_program import read_program

SUFFIXES = (".yaml", ".yml")

_CLOSED = ConfigDict(extra="forbid", strict=True)
PointOrFloor = Annotated[list[Finite], Field(min_length=2, max_length=3)]
Point2 = Annotated[list[Finite], Field(min_length=2, max_length=2)]


class GoalRecord(TypedDict):
    """A goal; ``view_points`` are [x, y, heading in degrees]."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    position: PointOrFloor
    object: NotRequired[str]
    view_points: NotRequired[list[Vector3]]


class InstructionRecord(TypedDict):
    """See :class:`Instruction`."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    text: str
    tokens: NotRequired[list[int]]
    language: NotRequired[str]
    trajectory_id: NotRequired[str]


class QuestionRecord(TypedDict):
    """See :class:`Question`."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    text: str
    answer: str
    type: str
    tokens: NotRequired[list[int]]
    answer_token: NotRequired[int]


class PoseRecord(TypedDict):
    """See :class:`ObjectPose`."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    position: PointOrFloor
    yaw_deg: NotRequired[Finite]
    quaternion: NotRequired[Quaternion]
    openness: NotRequired[Annotated[Finite, Field(ge=0, le=1)]]


class ObjectRecord(TypedDict):
    """See :class:`RearrangedObject`."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    id: str
    start: PoseRecord
    goal: NotRequired[PoseRecord]
    category: NotRequired[str]
    template: NotRequired[str]


class Record(TypedDict):
    """One episode."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    id: str
    start: Vector3
    scene: NotRequired[str]
    start_z: NotRequired[Finite]
    start_tilt_deg: NotRequired[Finite]
    category: NotRequired[str]
    goals: NotRequired[list[GoalRecord]]
    shortest_path_m: NotRequired[Annotated[Finite, Field(ge=0)]]
    shortest_path: NotRequired[list[Point2]]
    instruction: NotRequired[InstructionRecord]
    reference_path: NotRequired[list[PointOrFloor]]
    question: NotRequired[QuestionRecord]
    objects: NotRequired[list[ObjectRecord]]
    program: NotRequired[Any]
    info: NotRequired[dict[str, JsonValue]]


class Document(TypedDict):
    """The whole file; its episodes are validated one by one."""

    __pydantic_config__ = _CLOSED  # type: ignore[misc]

    schema: Literal[1]
    scene: NotRequired[str]
    episodes: list[Any]


_SCHEMA = TypeAdapter(Record)
_DOCUMENT_SCHEMA = TypeAdapter(Document)
_QUATERNION_NORM = 1e-3


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
        EpisodeError: the file cannot be written.
    """
    scenes = {episode.scene for episode in episodes}
    shared = scenes.pop() if len(scenes) == 1 else None
    document: dict[str, Any] = {"schema": 1}
    if shared is not None:
        document["scene"] = shared
    document["episodes"] = [_record(episode, shared) for episode in episodes]
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EpisodeError(f"{path}: cannot be written: {error}", "choose a place with room and permission") from error


# --- reading --------------------------------------------------------------------------------------------------------


def _document(path: Path) -> Any:
    try:
        return read_yaml(path)
    except ConfigError as error:
        raise EpisodeError(error.message, error.remedy) from error


def _episode(item: Any, shared_scene: str | None, path: Path, index: int) -> Episode:
    where = episode_at(index, item, "id")
    record = checked(item, _SCHEMA, path, where)
    scene = record.get("scene", shared_scene)
    if scene is None:
        raise EpisodeError(f"{path}: {where}field 'scene': is missing, here and for all", "state the scene")
    tilt_deg = record.get("start_tilt_deg")
    return Episode(
        id=record["id"],
        scene=scene,
        start=_pose(record["start"]),
        goals=tuple(_goal(goal) for goal in record.get("goals", ())),
        category=record.get("category"),
        start_tilt_rad=None if tilt_deg is None else math.radians(tilt_deg),
        start_z_m=record.get("start_z", 0.0),
        shortest_path_m=record.get("shortest_path_m"),
        shortest_path=tuple((x_m, y_m) for x_m, y_m in record.get("shortest_path", ())),
        info=dict(record.get("info", {})),
        details=_details(record, f"{path}: {where}"),
    )


def _details(record: Record, where: str) -> EpisodeDetails | None:
    if "instruction" in record or "reference_path" in record:
        return Route(
            _instruction(record["instruction"]) if "instruction" in record else None,
            tuple(_point(point) for point in record.get("reference_path", ())),
        )
    if "question" in record:
        return Inquiry(_question(record["question"]))
    if "objects" in record or "program" in record:
        objects = record.get("objects", ())
        return Layout(
            tuple(_object(item, f"{where}field 'objects.{number}.") for number, item in enumerate(objects)),
            read_program(record["program"], f"{where}program") if "program" in record else None,
        )
    return None


def _pose(numbers: Sequence[float]) -> SE2:
    return SE2(numbers[0], numbers[1], math.radians(numbers[2]))


def _point(numbers: Sequence[float]) -> tuple[float, float, float]:
    return numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else 0.0


def _goal(record: GoalRecord) -> Goal:
    views = tuple(_pose(view) for view in record.get("view_points", ()))
    return Goal(*_point(record["position"]), object_id=record.get("object"), view_points=views)


def _instruction(record: InstructionRecord) -> Instruction:
    return Instruction(
        record["text"], tuple(record.get("tokens", ())), record.get("language"), record.get("trajectory_id")
    )


def _question(record: QuestionRecord) -> Question:
    return Question(
        record["text"], record["answer"], record["type"], tuple(record.get("tokens", ())), record.get("answer_token")
    )


def _object(record: ObjectRecord, where: str) -> RearrangedObject:
    return RearrangedObject(
        id=record["id"],
        start=_object_pose(record["start"], f"{where}start'"),
        goal=_object_pose(record["goal"], f"{where}goal'") if "goal" in record else None,
        category=record.get("category"),
        template=record.get("template"),
    )


def _object_pose(record: PoseRecord, where: str) -> ObjectPose:
    if "quaternion" in record and "yaw_deg" in record:
        raise EpisodeError(f"{where}: has both 'yaw_deg' and 'quaternion'", "leave one of them out")
    half_rad = math.radians(record.get("yaw_deg", 0.0)) / 2
    w, x, y, z = record.get("quaternion", (math.cos(half_rad), 0.0, 0.0, math.sin(half_rad)))
    if abs(math.hypot(w, x, y, z) - 1) > _QUATERNION_NORM:
        raise EpisodeError(f"{where}: 'quaternion' does not have length 1", "give a unit quaternion w, x, y, z")
    return ObjectPose(_point(record["position"]), (w, x, y, z), record.get("openness"))


# --- writing --------------------------------------------------------------------------------------------------------


def _record(episode: Episode, shared_scene: str | None) -> dict[str, Any]:
    record: dict[str, Any] = {"id": episode.id, "start": _pose_numbers(episode.start)}
    if episode.scene != shared_scene:
        record["scene"] = episode.scene
    if episode.start_z_m:
        record["start_z"] = episode.start_z_m
    if episode.start_tilt_rad is not None:
        record["start_tilt_deg"] = degrees(episode.start_tilt_rad)
    route, question, layout = Route.of(episode), Inquiry.of(episode).question, Layout.of(episode)
    optional = {
        "category": episode.category,
        "goals": [_goal_record(goal) for goal in episode.goals] or None,
        "shortest_path_m": episode.shortest_path_m,
        "shortest_path": [list(point) for point in episode.shortest_path] or None,
        "instruction": route.instruction and _without_defaults(vars(route.instruction)),
        "reference_path": [_point_numbers(point) for point in route.reference_path] or None,
        "question": question and _without_defaults(vars(question)),
        "objects": [_object_record(item) for item in layout.objects] or None,
        "program": None if layout.program is None else layout.program.to_document(),
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


def _point_numbers(point: tuple[float, float, float]) -> list[float]:
    return list(point if point[2] else point[:2])


def _goal_record(goal: Goal) -> dict[str, Any]:
    record: dict[str, Any] = {"position": _point_numbers((goal.x_m, goal.y_m, goal.z_m))}
    if goal.object_id is not None:
        record["object"] = goal.object_id
    if goal.view_points:
        record["view_points"] = [_pose_numbers(pose) for pose in goal.view_points]
    return record


def _object_record(item: RearrangedObject) -> dict[str, Any]:
    stated = _without_defaults({"id": item.id, "category": item.category, "template": item.template})
    goal = {} if item.goal is None else {"goal": _object_pose_record(item.goal)}
    return {**stated, "start": _object_pose_record(item.start), **goal}


def _object_pose_record(pose: ObjectPose) -> dict[str, Any]:
    record: dict[str, Any] = {"position": _point_numbers(pose.position)}
    if pose.quaternion != (1.0, 0.0, 0.0, 0.0):
        record |= _rotation(pose.quaternion)
    return record if pose.openness is None else {**record, "openness": pose.openness}


def _rotation(quaternion: tuple[float, float, float, float]) -> dict[str, Any]:
    """The rotation as a yaw where that is exact, else as a quaternion."""
    w, _, _, z = quaternion
    yaw_deg = degrees(2 * math.atan2(z, w))
    half_rad = math.radians(yaw_deg) / 2
    if quaternion == (math.cos(half_rad), 0.0, 0.0, math.sin(half_rad)):
        return {"yaw_deg": yaw_deg}
    return {"quaternion": list(quaternion)}


def _without_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are neither None nor empty; tuples as lists."""
    as_lists = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    return {name: value for name, value in as_lists.items() if value not in (None, [])}


class _Dumper(yaml.SafeDumper):
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
# Texts such as 1e3 are written with quotes.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", SHORT_FLOAT, list("-+0123456789"))
