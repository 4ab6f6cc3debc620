"""One episode, whatever file it came from. All poses are in the scene's ``map`` frame (ROS)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import PlainValidator
from typing_extensions import Self

from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks import payloads


@dataclass(frozen=True)
class Goal:
    """A place or an object to reach.

    Attributes:
        x_m: x of the goal position, or of the object's center.
        y_m: y of the same point.
        z_m: height of the same point.
        object_id: the scene object, where the goal is one.
        view_points: poses from which the object counts as reached; empty for a plain position.
    """

    x_m: float
    y_m: float
    z_m: float = 0.0
    object_id: str | None = None
    view_points: tuple[SE2, ...] = ()


@dataclass(frozen=True)
class RearrangedObject:
    """One object of a rearrangement episode, from its start to its goal pose; goal None: it must stay.

    Attributes:
        id: the scene object or the dataset's handle.
        template: model of an object that the scene does not have.
    """

    id: str
    start: ObjectPose
    goal: ObjectPose | None = None
    category: str | None = None
    template: str | None = None


class EpisodeDetails:
    """Base of what the episodes of a kind of task have besides the common fields.

    A subclass is a frozen dataclass whose fields all have defaults; in files they stand next to the episode's.

    Attributes:
        seen: fields that the robot may fill in; :attr:`Episode.key` does not depend on them.
    """

    seen: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_yaml(cls, fields: Mapping[str, Any], path: Path, where: str) -> Self:
        """The details of an episode in the runtime's own YAML; by default, its fields are those of the class.

        Args:
            fields: fields of the details that the file states, as YAML's values; at least one.
            path: path of the file, for messages.
            where: place of the episode in the file, for messages: ``"episode 2 (id 'x'): "``.

        Raises:
            ConfigError: a field is missing, unknown, or of another type.
            EpisodeError: the fields contradict each other.
        """
        return config.parse(dict(fields), cls, f"{path}: {where}".removesuffix(": "))

    def to_yaml(self) -> dict[str, Any]:
        """The fields that :meth:`from_yaml` reads as the same details, as YAML's values, without defaults."""
        return payloads.details_document(self)

    @classmethod
    def of(cls, episode: "Episode") -> Self:
        """The episode's details of this class; empty ones if it has none."""
        return episode.details if isinstance(episode.details, cls) else cls()

    @property
    def words(self) -> str:
        """What the agent is told in words, for people; empty if it is told nothing."""
        return ""

    @property
    def trajectory(self) -> str:
        """Identifier of the path that several episodes of a scene share; empty if the data set states none."""
        return ""

    @property
    def has_end(self) -> bool:
        """Whether they state where the episode ends or what is to be reached, in place of goals."""
        return True

    @property
    def path_end(self) -> tuple[float, float, float] | None:
        """Last point (x, y, z in map) of a path that the episode states; None if it states none."""
        return None

    @property
    def objects_to_move(self) -> tuple[RearrangedObject, ...]:
        """Objects that the episode puts somewhere, some of which the scene may lack."""
        return ()

    def at_height(self, height_m: float) -> Self:
        """The same details with the agent's places at a height in map."""
        return self


@dataclass(frozen=True)
class Episode:
    """Start and goals.

    Attributes:
        id: identifier in the dataset; published ids repeat, so use :attr:`key` to distinguish episodes.
        scene: the dataset's scene name.
        start: start pose.
        start_tilt_rad: camera tilt at the start, up positive; None means the task's.
        goals: places and objects to reach; any of them counts.
        category: category (the dataset's word) of the goal object or the goal room; None if the goal is none.
        shortest_path_m: the dataset's geodesic distance from start to the nearest goal; None if it states none.
        shortest_path: the dataset's path as (x, y) points in map; empty if it states none.
        info: other content of the dataset, for writing it back.
        details: what only episodes of this kind have; None if they have nothing.
    """

    id: str
    scene: str
    start: SE2
    goals: tuple[Goal, ...]
    category: str | None = None
    start_tilt_rad: float | None = None
    start_z_m: float = 0.0
    shortest_path_m: float | None = None
    shortest_path: tuple[tuple[float, float], ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    details: Annotated[EpisodeDetails | None, PlainValidator(payloads.read_details)] = None

    __inlined__ = "details"

    @classmethod
    def arrange(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Collect the fields of the kind, which stand next to the common ones in files (``config.INLINED``)."""
        own = {name: value for name, value in document.items() if name not in (*_COMMON, KIND)}
        own = {name: value for name, value in own.items() if name not in _EMPTY_DETAILS or value not in (None, [], ())}
        common = {name: value for name, value in document.items() if name in _COMMON}
        if not own:
            return common
        return {**common, "details": {"kind": payloads.details_kind(own, document.get(KIND)), "fields": own}}

    @classmethod
    def inlined_types(cls) -> list[type]:
        """The classes of details of all kinds."""
        return [kind.details_type for kind in payloads.KINDS.usable().values() if kind.details_type is not None]

    def document(self) -> dict[str, Any]:
        """The fields by their names in files; values as they are."""
        common = {name: getattr(self, name) for name in _COMMON}
        own = {} if self.details is None else {name: getattr(self.details, name) for name in _names(self.details)}
        return {**common, **_EMPTY_DETAILS, **own}

    @cached_property
    def key(self) -> str:
        """Scene and content hash: ``scene/0123456789ab``."""
        seen = () if self.details is None else self.details.seen
        content = {name: _plain(value) for name, value in self.document().items() if name not in seen}
        text = json.dumps(content, sort_keys=True, default=str)
        return f"{self.scene}/{hashlib.sha256(text.encode()).hexdigest()[:12]}"


_COMMON = tuple(field.name for field in fields(Episode) if field.name != "details")

KIND = "kind"
"""Field that a reader adds to an episode's document where it knows the kind of its task."""

_EMPTY_DETAILS: dict[str, Any] = {
    "instruction": None,
    "reference_path": (),
    "question": None,
    "objects": (),
    "program": None,
}
"""Fields that files of all episodes have in the first layout of logs, and that :attr:`Episode.key` is computed from."""


def _names(details: Any) -> list[str]:
    return [field.name for field in fields(details)]


def _plain(value: Any) -> Any:
    """A value with its dataclasses as dictionaries, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
