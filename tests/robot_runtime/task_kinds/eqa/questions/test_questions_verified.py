"""Every generated answer against an evaluator that reads the question's words and shares no code with the engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from small_flat import occupancy

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.scene import Room, Scene, SceneFile, SceneObject
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.rules import CODE, NINE_TEMPLATES, DistanceRules, QuestionRules

ROOMS = ("kitchen", "bedroom", "bathroom", "living_room")
THINGS = ("bed", "cup", "bench", "AlarmClock", "box", "clothes")
PLURALS = {"beds", "cups", "benches", "alarm clocks", "boxes", "clothes"}
EMPTY_MAP = occupancy()
RULES = QuestionRules(
    templates=(*NINE_TEMPLATES, "relation", "room_object_count"),
    min_entropy=0.0,
    min_environments=1,
    distance=DistanceRules(gap_m=1.0),
    object_blacklist={"color": ("box",)},
)


def words(category: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", category).replace("_", " ").lower()


def singular(plural: str) -> str:
    return {"benches": "bench", "boxes": "box", "clothes": "clothes"}.get(plural, plural.removesuffix("s"))


@st.composite
def scenes(draw, name="scene"):
    """Rooms of 6 x 6 m side by side, things on the floor or on one another."""
    categories = draw(st.lists(st.sampled_from(ROOMS), min_size=1, max_size=4))
    rooms = [
        Room(f"r{i}", category, ((6 * i, 0), (6 * i + 6, 0), (6 * i + 6, 6), (6 * i, 6)))
        for i, category in enumerate(categories)
    ]
    objects: list[SceneObject] = []
    for number in range(draw(st.integers(0, 10))):
        room = draw(st.integers(0, len(rooms) - 1))
        x, y, bottom = 6 * room + draw(st.floats(0.5, 5.5)), draw(st.floats(0.5, 5.5)), 0.0
        below = [item for item in objects if item.room == f"r{room}"]
        if below and draw(st.booleans()):
            base = draw(st.sampled_from(below))
            x, y, bottom = base.center[0], base.center[1], base.center[2] + base.size[2] / 2
            bottom += draw(st.sampled_from((0.0, 0.02, 0.5)))
        size = draw(st.tuples(*[st.sampled_from((0.1, 0.4, 1.5))] * 3))
        objects.append(
            SceneObject(
                f"o{number}",
                draw(st.sampled_from(THINGS)),
                (x, y, bottom + size[2] / 2),
                size,
                draw(st.sampled_from((0.0, 30.0, 90.0))),
                room=f"r{room}",
                color=draw(st.sampled_from((None, "red", "blue"))),
            )
        )
    file = SceneFile(schema=1, name=name, rooms=tuple(rooms), objects=tuple(objects))
    return Scene(Path(name), file, EMPTY_MAP, {item.id: (SE2(),) for item in objects}, name)


class Evaluator:
    """Answers a question from its words, by going through everything in the scene."""

    def __init__(self, scene: Scene) -> None:
        self.rooms = {room.id: words(room.category) for room in scene.rooms}
        self.objects = scene.objects

    def named(self, name: str, room: str | None = None) -> list[SceneObject]:
        if room is not None:
            assert list(self.rooms.values()).count(room) == 1, "the room must be the only one of its name"
        return [
            item
            for item in self.objects
            if words(item.category) == name and (room is None or self.rooms[item.room] == room)
        ]

    def the(self, name: str, room: str | None = None) -> SceneObject:
        found = self.named(name, room)
        assert len(found) == 1, "the object must be the only one of its name"
        return found[0]

    def answer(self, text: str) -> str:
        for pattern, method in self.PATTERNS:
            match = re.fullmatch(pattern, text)
            if match:
                return method(self, *match.groups())
        raise AssertionError(f"not a question of any template: {text}")

    def location(self, name: str) -> str:
        return self.rooms[self.the(name).room]

    def color(self, name: str, room: str | None) -> str:
        color = self.the(name, room).color
        assert color is not None
        return color

    def relation(self, preposition: str, name: str, room: str | None) -> str:
        anchor = self.the(name, room)
        others = [item for item in self.objects if item.room == anchor.room and item is not anchor]
        if preposition == "below":
            found = [item for item in others if holds("on", anchor, item)]
            found = found or [item for item in others if holds("above", anchor, item)]
        else:
            found = [item for item in others if holds(preposition, item, anchor)]
        assert len(found) == 1, "there must be one answer only"
        return words(found[0].category)

    def existence(self, name: str, room: str) -> str:
        return "yes" if self.named(name, room) else "no"

    def logical(self, first: str, second: str, room: str) -> str:
        assert first != second
        return "yes" if self.named(first, room) and self.named(second, room) else "no"

    def count(self, plural: str, room: str) -> str:
        assert plural in PLURALS - {"clothes"}
        return str(len(self.named(singular(plural), room)))

    def room_count(self, plural: str) -> str:
        return str(list(self.rooms.values()).count(plural.removesuffix("s")))

    def room_object_count(self, plural: str) -> str:
        return str(len({item.room for item in self.named(singular(plural))}))

    def distance(self, first: str, second: str, third: str, room: str) -> str:
        a, b, c = (footprint(self.the(name, room)) for name in (first, second, third))
        assert abs(a.distance(b) - a.distance(c)) >= 1.0 - 1e-6
        return "yes" if a.distance(b) < a.distance(c) else "no"

    PATTERNS = (
        (r"What room (?:is|are) the (.+) located in\?", location),
        (r"What color (?:is|are) the (.+?)(?: in the (.+))?\?", color),
        (r"What is (on|above|below|next to) the (.+?)(?: in the (.+))?\?", relation),
        (r"Is there an? (.+) and an? (.+) in the (.+)\?", logical),
        (r"(?:Is there an?|Are there) (.+) in the (.+)\?", existence),
        (r"How many rooms in the house have (.+) in them\?", room_object_count),
        (r"How many (.+) are in the house\?", room_count),
        (r"How many (.+) are in the (.+)\?", count),
        (r"(?:Is|Are) the (.+) closer to the (.+) than to the (.+) in the (.+)\?", distance),
    )


def footprint(item: SceneObject) -> shapely.Polygon:
    x, y, _ = item.center
    flat = shapely.box(x - item.size[0] / 2, y - item.size[1] / 2, x + item.size[0] / 2, y + item.size[1] / 2)
    return shapely.affinity.rotate(flat, item.yaw_deg)


def holds(preposition: str, upper: SceneObject, lower: SceneObject) -> bool:
    a, b = footprint(upper), footprint(lower)
    clearance = (upper.center[2] - upper.size[2] / 2) - (lower.center[2] + lower.size[2] / 2)
    shared = shapely.intersection(a, b, grid_size=1e-9).area / min(a.area, b.area) >= 0.5 - 1e-6
    if preposition == "on":
        return shared and abs(clearance) <= 0.05
    if preposition == "above":
        return shared and clearance > 0.05
    stacked = any(holds(p, *pair) for p in ("on", "above") for pair in ((upper, lower), (lower, upper)))
    beside = min(top(upper), top(lower)) - max(top(upper) - upper.size[2], top(lower) - lower.size[2])
    return not stacked and a.distance(b) <= 0.3 and beside >= min(upper.size[2], lower.size[2]) / 2 - 1e-9


def top(item: SceneObject) -> float:
    return item.center[2] + item.size[2] / 2


@pytest.mark.slow
@settings(max_examples=150)
@given(scenes())
def test_every_answer_is_right_and_the_only_one(scene):
    evaluator = Evaluator(scene)
    for question in generate_questions([scene], RULES).questions:
        assert evaluator.answer(question.text) == question.answer, question.text
        assert {scene.object(item).id for item in question.objects} >= set(question.targets)


@settings(max_examples=40)
@given(scenes("a"), scenes("b"), st.integers(0, 99))
def test_answers_stay_right_with_other_scenes_and_rules(first, second, seed):
    rules = QuestionRules(**{**vars(CODE), "min_entropy": 0.0, "min_environments": 1, "max_per_room": 4})
    evaluators = {"a": Evaluator(first), "b": Evaluator(second)}
    for question in generate_questions([first, second], rules, seed).questions:
        if question.type != "preposition" and question.type != "relation":  # the code's rules have another next_to_m
            assert evaluators[question.scene].answer(question.text) == question.answer, question.text


@given(scenes())
def test_unique_objects_with_a_color_are_asked_about(scene):
    texts = {question.text for question in generate_questions([scene], RULES).questions}
    for category in {item.category for item in scene.objects} - {"box", "clothes"}:
        (first, *more) = scene.instances(category)
        assert (f"What room is the {words(category)} located in?" in texts) == (not more)
        assert (f"What color is the {words(category)}?" in texts) == (not more and first.color is not None)
