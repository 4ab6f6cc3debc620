"""The question templates as functional programs: Das et al. 2018 (EmbodiedQA), table 2, as data.

A program is a chain of steps that hand on a :class:`State`: first which rooms, then which objects in them, then
how they relate; the last step turns the selection into questions. :data:`TEMPLATES` is the whole table::

    >>> print(TEMPLATES["color_room"])
    select(rooms) → unique(rooms) → select(objects) → unique(objects) → blacklist(color) → query(color_room)
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from types import MappingProxyType
from typing import Literal

from robot_runtime.task_kinds.eqa.questions.boxes import gap_m
from robot_runtime.task_kinds.eqa.questions.house import Corpus, House, ObjectEntity, RoomEntity
from robot_runtime.task_kinds.eqa.questions.relations import PREPOSITIONS, Relations
from robot_runtime.task_kinds.eqa.questions.rules import QuestionRules


@dataclass(frozen=True)
class Relation:
    """``other`` is ``preposition`` ``anchor``, and no other object is."""

    anchor: ObjectEntity
    preposition: str
    other: ObjectEntity


@dataclass(frozen=True)
class Comparison:
    """``anchor`` is clearly closer to ``near`` than to ``far``."""

    anchor: ObjectEntity
    near: ObjectEntity
    far: ObjectEntity


@dataclass(frozen=True)
class State:
    """Intermediate result of a program.

    Attributes:
        seed: seed of every choice among questions.
        rooms: selected rooms; None before ``select(rooms)``.
        objects: selected objects; None before ``select(objects)``.
    """

    house: House
    corpus: Corpus
    rules: QuestionRules
    seed: int
    rooms: tuple[RoomEntity, ...] | None = None
    objects: tuple[ObjectEntity, ...] | None = None
    relations: tuple[Relation, ...] = ()
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Step:
    """An elementary operation on the state, printed as in the paper."""

    name: str
    argument: str
    apply: Callable[[State], State]

    def __str__(self) -> str:
        return f"{self.name}({self.argument})"


@dataclass(frozen=True)
class Template:
    """A program, and the query that turns its result into questions."""

    steps: tuple[Step, ...]
    query: str

    def __str__(self) -> str:
        return " → ".join([*map(str, self.steps), f"query({self.query})"])

    def run(self, state: State) -> State:
        """The state of which the query makes questions."""
        for step in self.steps:
            state = step.apply(state)
        return state


Kind = Literal["rooms", "objects"]


def select(kind: Kind) -> Step:
    """Select all rooms with unambiguous names; or all objects, of the selected rooms if there are any."""

    def rooms(state: State) -> State:
        return replace(state, rooms=tuple(room for room in state.house.rooms if is_room_name(state.rules, room.name)))

    def objects(state: State) -> State:
        if state.rooms is None:
            return replace(state, objects=state.house.objects)
        return replace(state, objects=tuple(item for room in state.rooms for item in state.house.inside(room)))

    return Step("select", kind, rooms if kind == "rooms" else objects)


def unique(kind: Kind) -> Step:
    """Keep those of the selection whose name occurs once in it (objects: once per room, if the rules say so)."""

    def rooms(state: State) -> State:
        chosen = state.rooms or ()
        counts = Counter(room.name for room in chosen)
        return replace(state, rooms=tuple(room for room in chosen if counts[room.name] == 1))

    def objects(state: State) -> State:
        chosen = state.objects or ()
        by_room = state.rooms is not None and state.rules.unique_in == "room"
        counts = Counter((item.room if by_room else None, item.name) for item in chosen)
        return replace(
            state, objects=tuple(item for item in chosen if counts[item.room if by_room else None, item.name] == 1)
        )

    return Step("unique", kind, rooms if kind == "rooms" else objects)


def blacklist(template: str) -> Step:
    """Keep the objects that questions of a template may be about: named clearly, large enough, visible."""

    def apply(state: State) -> State:
        allowed = (item for item in state.objects or () if is_object_name(state.rules, item.name, template))
        return replace(state, objects=tuple(item for item in allowed if is_askable(state.rules, item)))

    return Step("blacklist", template, apply)


def relate() -> Step:
    """Find every relation of an object to exactly one other thing of its room."""

    def apply(state: State) -> State:
        relations = Relations(state.rules.relations)
        found = []
        for anchor in state.objects or ():
            around = [
                (item, item.box)
                for item in state.house.objects
                if item.id != anchor.id and (item.room == anchor.room or item.room is None)
            ]
            for preposition in PREPOSITIONS:
                other = relations.only(preposition, anchor.box, around)
                if other is not None:
                    found.append(Relation(anchor, preposition, other))
        return replace(state, relations=tuple(found))

    return Step("relate", "", apply)


def distance() -> Step:
    """Find every three objects of one room of which the first is clearly closer to the second than to the third.

    Distances are those between footprints.
    """

    def apply(state: State) -> State:
        found = []
        for room in state.rooms or ():
            here = [item for item in state.objects or () if item.room == room.id]
            apart_m = {(a.id, b.id): gap_m(a.box, b.box) for a, b in permutations(here, 2)}
            found += [
                Comparison(anchor, near, far)
                for anchor, near, far in permutations(here, 3)
                if state.rules.distance.clear(apart_m[anchor.id, near.id], apart_m[anchor.id, far.id])
            ]
        return replace(state, comparisons=tuple(found))

    return Step("distance", "", apply)


def is_room_name(rules: QuestionRules, name: str) -> bool:
    """Whether questions and answers may contain a room of that name."""
    return name not in rules.room_blacklist and (rules.queryable_rooms is None or name in rules.queryable_rooms)


def is_object_name(rules: QuestionRules, name: str, template: str) -> bool:
    """Whether a question of that template may contain an object of that name."""
    allowed = rules.queryable_objects is None or name in rules.queryable_objects
    return allowed and name not in rules.blacklisted(template)


def is_askable(rules: QuestionRules, item: ObjectEntity) -> bool:
    """Whether the robot can see an object well enough to answer questions about it."""
    return item.box.volume_m3 >= rules.min_volume_m3 and (item.seen or not rules.seen_only)


_ROOM = (select("rooms"), unique("rooms"))
_OBJECTS = (select("objects"),)
_UNIQUE_OBJECTS = (select("objects"), unique("objects"))

TEMPLATES: Mapping[str, Template] = MappingProxyType(
    {
        "location": Template((*_UNIQUE_OBJECTS, blacklist("location")), "location"),
        "color": Template((*_UNIQUE_OBJECTS, blacklist("color")), "color"),
        "color_room": Template((*_ROOM, *_UNIQUE_OBJECTS, blacklist("color")), "color_room"),
        "preposition": Template((*_ROOM, *_UNIQUE_OBJECTS, blacklist("preposition"), relate()), "preposition"),
        "existence": Template((*_ROOM, *_OBJECTS, blacklist("existence")), "existence"),
        "logical": Template((*_ROOM, *_OBJECTS, blacklist("existence")), "logical"),
        "count": Template((*_ROOM, *_OBJECTS, blacklist("count")), "count"),
        "room_count": Template((select("rooms"),), "room_count"),
        "distance": Template((*_ROOM, *_UNIQUE_OBJECTS, blacklist("distance"), distance()), "distance"),
        # Two more of the published code (``relate``, ``room_object_count``). Neither needs a room that has a name.
        "relation": Template((*_UNIQUE_OBJECTS, blacklist("preposition"), relate()), "relation"),
        "room_object_count": Template((*_OBJECTS, blacklist("existence")), "room_object_count"),
    }
)
"""Template -> program: the paper's nine, and two more."""
