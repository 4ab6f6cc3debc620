"""Queries, the last step of every question program: questions and answers of its result."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import TypeVar

from robot_runtime.task_kinds.eqa.questions.dataset import SceneQuestion
from robot_runtime.task_kinds.eqa.questions.house import ObjectEntity, RoomEntity
from robot_runtime.task_kinds.eqa.questions.names import is_are, is_countable, plural, with_article
from robot_runtime.task_kinds.eqa.questions.programs import TEMPLATES, State, is_askable, is_object_name, is_room_name

T = TypeVar("T")

_NAMELESS = frozenset({"room", "other"})


def ask(template: str, state: State) -> list[SceneQuestion]:
    """All questions of a template about the state's house, sorted by text."""
    found = QUERIES[TEMPLATES[template].query](TEMPLATES[template].run(state))
    return sorted(found, key=lambda question: question.text)


def _location(state: State) -> Iterator[SceneQuestion]:
    for item in state.objects or ():
        room = state.house.room_by_id[item.room] if item.room is not None else None
        if room is not None and is_room_name(state.rules, room.name):
            text = f"What room {is_are(item.name)} the {item.name} located in?"
            yield SceneQuestion(state.house.scene, "location", text, room.name, (item.id,), (item.id,), (room.id,))


def _color(state: State) -> Iterator[SceneQuestion]:
    for item in state.objects or ():
        if item.color is not None:
            text = f"What color {is_are(item.name)} the {item.name}?"
            yield SceneQuestion(state.house.scene, "color", text, item.color, (item.id,), (item.id,))


def _color_room(state: State) -> Iterator[SceneQuestion]:
    for room, item in _pairs(state):
        if item.color is not None:
            text = f"What color {is_are(item.name)} the {item.name} in the {room.name}?"
            yield SceneQuestion(state.house.scene, "color_room", text, item.color, (item.id,), (item.id,), (room.id,))


def _preposition(state: State) -> Iterator[SceneQuestion]:
    for relation in state.relations:
        anchor, other = relation.anchor, relation.other
        if anchor.room is not None and _can_answer(state, other):
            room = state.house.room_by_id[anchor.room]
            text = f"What is {relation.preposition} the {anchor.name} in the {room.name}?"
            about = (anchor.id, other.id)
            yield SceneQuestion(state.house.scene, "preposition", text, other.name, (anchor.id,), about, (room.id,))


def _relation(state: State) -> Iterator[SceneQuestion]:
    for relation in state.relations:
        anchor, other = relation.anchor, relation.other
        if _can_answer(state, other):
            text = f"What is {relation.preposition} the {anchor.name}?"
            yield SceneQuestion(state.house.scene, "relation", text, other.name, (anchor.id,), (anchor.id, other.id))


def _existence(state: State) -> Iterator[SceneQuestion]:
    """At most as many "no" as "yes" per room, first about what such rooms most often have (as the published code)."""
    for room in state.rooms or ():
        present = _present(state, room)
        absent = _absent(state, room)[: len(present)]
        for name in [*present, *absent]:
            text = f"{is_are(name).capitalize()} there {with_article(name)} in the {room.name}?"
            ids = tuple(item.id for item in present.get(name, ()))
            answer = "yes" if ids else "no"
            yield SceneQuestion(state.house.scene, "existence", text, answer, ids, ids, (room.id,))


def _logical(state: State) -> Iterator[SceneQuestion]:
    """At most as many "no" as "yes" per room, half of them with one of the two present (as the published code)."""
    for room in state.rooms or ():
        present = {name: items for name, items in _present(state, room).items() if is_countable(name)}
        absent = sorted(name for name in _absent(state, room) if is_countable(name))
        both = [(a, b) for a, b in combinations(sorted(present), 2)]
        one = [(min(a, b), max(a, b)) for a in present for b in absent]
        none = [(a, b) for a, b in combinations(absent, 2)]
        limit = state.rules.max_per_room
        yes = _draw(state, room, both, len(both) if limit is None else (limit + 1) // 2)
        half = len(yes) if limit is None else min(len(yes), limit // 2)
        no = _draw(state, room, one, half - half // 2) + _draw(state, room, none, half // 2)
        for a, b in yes + no:
            text = f"Is there {with_article(a)} and {with_article(b)} in the {room.name}?"
            ids = tuple(item.id for name in (a, b) for item in present.get(name, ()))
            answer = "yes" if a in present and b in present else "no"
            yield SceneQuestion(state.house.scene, "logical", text, answer, (), ids, (room.id,))


def _count(state: State) -> Iterator[SceneQuestion]:
    for room in state.rooms or ():
        names = sorted({item.name for item in state.objects or () if item.room == room.id})
        for name in names:
            items = state.house.instances(name, room)
            if (
                is_countable(name)
                and len(items) <= state.rules.max_count
                and _is_count_certain(state, name, room, items)
            ):
                text = f"How many {plural(name)} are in the {room.name}?"
                ids = tuple(item.id for item in items)
                targets = ids if len(ids) == 1 else ()
                yield SceneQuestion(state.house.scene, "count", text, str(len(ids)), targets, ids, (room.id,))


def _room_count(state: State) -> Iterator[SceneQuestion]:
    counts = Counter(room.name for room in state.rooms or ())
    for name, count in counts.items():
        if count <= state.rules.max_room_count:
            text = f"How many {plural(name)} are in the house?"
            ids = tuple(room.id for room in state.rooms or () if room.name == name)
            yield SceneQuestion(state.house.scene, "room_count", text, str(count), (), (), ids)


def _room_object_count(state: State) -> Iterator[SceneQuestion]:
    # Unnamed rooms may not be rooms in people's sense.
    if any(room.name in _NAMELESS for room in state.house.rooms):
        return
    for name in sorted({item.name for item in state.objects or ()}):
        items = tuple(item for item in state.house.objects if item.name == name)
        rooms = sorted({item.room for item in items if item.room is not None})
        placed = all(item.room is not None for item in items)
        confused = any(item.name in state.rules.confused_with(name) for item in state.house.objects)
        seen = all(is_askable(state.rules, item) for item in items)
        if placed and seen and not confused and len(rooms) <= state.rules.max_count:
            text = f"How many rooms in the house have {plural(name)} in them?"
            ids = tuple(item.id for item in items)
            yield SceneQuestion(state.house.scene, "room_object_count", text, str(len(rooms)), (), ids, tuple(rooms))


def _distance(state: State) -> Iterator[SceneQuestion]:
    for room in state.rooms or ():
        here = [fact for fact in state.comparisons if fact.anchor.room == room.id]
        candidates = [(fact.anchor, fact.near, fact.far, "yes") for fact in here]
        candidates += [(fact.anchor, fact.far, fact.near, "no") for fact in here]
        limit = len(candidates) if state.rules.max_per_room is None else state.rules.max_per_room
        by_names = {(a.name, b.name, c.name): (a, b, c, answer) for a, b, c, answer in candidates}
        for names in _draw(state, room, list(by_names), limit):
            a, b, c, answer = by_names[names]
            text = (
                f"{is_are(a.name).capitalize()} the {a.name} closer to the {b.name} than to the {c.name} "
                f"in the {room.name}?"
            )
            yield SceneQuestion(state.house.scene, "distance", text, answer, (), (a.id, b.id, c.id), (room.id,))


QUERIES: Mapping[str, Callable[[State], Iterable[SceneQuestion]]] = MappingProxyType(
    {
        "location": _location,
        "color": _color,
        "color_room": _color_room,
        "preposition": _preposition,
        "existence": _existence,
        "logical": _logical,
        "count": _count,
        "room_count": _room_count,
        "distance": _distance,
        "relation": _relation,
        "room_object_count": _room_object_count,
    }
)


def _pairs(state: State) -> Iterator[tuple[RoomEntity, ObjectEntity]]:
    """Each selected room with each selected object in it."""
    for room in state.rooms or ():
        for item in state.objects or ():
            if item.room == room.id:
                yield room, item


def _can_answer(state: State, item: ObjectEntity) -> bool:
    """Whether an object is a good answer to "what is next to ...?"."""
    return is_object_name(state.rules, item.name, "preposition") and is_askable(state.rules, item)


def _present(state: State, room: RoomEntity) -> dict[str, tuple[ObjectEntity, ...]]:
    """The selected objects in a room by name, sorted by name."""
    here = [item for item in state.objects or () if item.room == room.id]
    return {name: tuple(i for i in here if i.name == name) for name in sorted({item.name for item in here})}


def _absent(state: State, room: RoomEntity) -> list[str]:
    """Names of objects that are certainly not in this room, most frequent in such rooms first."""
    here = {item.name for item in state.house.inside(room)}
    names = [
        name
        for name in state.corpus.names
        if name not in here
        and not here & state.rules.confused_with(name)
        and is_object_name(state.rules, name, "existence")
    ]
    frequency = state.corpus.names_by_room.get(room.name, {})
    return sorted(names, key=lambda name: (-frequency.get(name, 0), _rank(state, room, name)))


def _is_count_certain(state: State, name: str, room: RoomEntity, items: Sequence[ObjectEntity]) -> bool:
    """Whether everyone would count these objects and no others."""
    here = {item.name for item in state.house.inside(room)}
    return not here & state.rules.confused_with(name) and all(is_askable(state.rules, item) for item in items)


def _draw(state: State, room: RoomEntity, choices: Sequence[T], count: int) -> list[T]:
    """``count`` of the choices, pseudorandom but the same in every scene, so that questions recur across scenes."""
    return sorted(choices, key=lambda choice: _rank(state, room, choice))[:count]


def _rank(state: State, room: RoomEntity, choice: object) -> str:
    return hashlib.sha256(f"{state.seed}/{room.name}/{choice}".encode()).hexdigest()
