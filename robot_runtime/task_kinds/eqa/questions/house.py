"""A scene's rooms and objects with their names in words, for the question programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.eqa.questions.boxes import Box
from robot_runtime.task_kinds.eqa.questions.names import category_name
from robot_runtime.task_kinds.eqa.questions.rules import QuestionRules


@dataclass(frozen=True)
class RoomEntity:
    """A room: its id in the scene and its name in words."""

    id: str
    name: str


@dataclass(frozen=True)
class ObjectEntity:
    """An object.

    Attributes:
        room: id of its room; None if it is in none.
        seen: whether the scene has view points of it.
    """

    id: str
    name: str
    room: str | None
    color: str | None
    box: Box
    seen: bool


@dataclass(frozen=True)
class House:
    """One scene's rooms and objects, sorted by id, so that the order in the file does not matter."""

    scene: str
    rooms: tuple[RoomEntity, ...]
    objects: tuple[ObjectEntity, ...]

    @classmethod
    def of(cls, scene: Scene, rules: QuestionRules) -> "House":
        """The scene with its names collapsed. Objects without a room are in the one that contains their center."""
        collapse = dict(rules.collapse)
        rooms = [RoomEntity(room.id, category_name(room.category, collapse)) for room in scene.rooms]
        objects = [
            ObjectEntity(
                item.id,
                category_name(item.category, collapse),
                room.id if (room := scene.room_of(item)) else None,
                item.color,
                Box.of(item),
                bool(scene.view_points.get(item.id)),
            )
            for item in scene.objects
        ]
        return cls(scene.name, tuple(sorted(rooms, key=_id)), tuple(sorted(objects, key=_id)))

    @cached_property
    def room_by_id(self) -> Mapping[str, RoomEntity]:
        """The rooms by id."""
        return {room.id: room for room in self.rooms}

    def inside(self, room: RoomEntity) -> tuple[ObjectEntity, ...]:
        """Everything in a room, whether questions may be about it or not."""
        return tuple(item for item in self.objects if item.room == room.id)

    def instances(self, name: str, room: RoomEntity) -> tuple[ObjectEntity, ...]:
        """Everything of that name in a room."""
        return tuple(item for item in self.inside(room) if item.name == name)


@dataclass(frozen=True)
class Corpus:
    """Statistics over all scenes.

    Attributes:
        names: names of all objects.
        names_by_room: room name -> object name -> number of scenes with that object in such a room.
    """

    names: frozenset[str]
    names_by_room: Mapping[str, Mapping[str, int]]

    @classmethod
    def of(cls, houses: Sequence[House]) -> "Corpus":
        """Count over houses."""
        counts: dict[str, Counter[str]] = {}
        for house in houses:
            together = {
                (house.room_by_id[item.room].name, item.name) for item in house.objects if item.room is not None
            }
            for room_name, name in together:
                counts.setdefault(room_name, Counter())[name] += 1
        return cls(frozenset(item.name for house in houses for item in house.objects), counts)


def _id(entity: RoomEntity | ObjectEntity) -> str:
    return entity.id
