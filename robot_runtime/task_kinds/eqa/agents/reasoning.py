"""The question's own functional program, executed on the memory of objects."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan, PlanRoom
from robot_runtime.task_kinds.eqa.agents.object_memory import ObjectMemory, RememberedObject, color_names
from robot_runtime.task_kinds.eqa.questions.house import Corpus, House, ObjectEntity, RoomEntity
from robot_runtime.task_kinds.eqa.questions.names import AskedFor, category_name, read_question
from robot_runtime.task_kinds.eqa.questions.programs import State
from robot_runtime.task_kinds.eqa.questions.queries import ask
from robot_runtime.task_kinds.eqa.questions.rules import PRESETS, QuestionRules
from robot_runtime.tasks.task import Task

_NAMELESS = frozenset({"", "room", "other"})
_CLEARLY_BETTER = 3.0
"""Of two candidates for "the OBJ", one with this many times the pixels of the other is meant."""

_CALIBRATION: Mapping[str, tuple[float, float]] = {
    "color": (1.2, 1.3),
    "existence": (-4.2, 1.4),
    "logical": (-4.2, 1.4),
    "likeliest": (0.0, 0.15),
    "other": (0.0, 0.9),
}
"""Intercept and slope of the logit of an answer's probability to be right, over the strength of its evidence.

Fitted by logistic regression to 2,857 conclusions in 136 episodes about 8 generated flats,
all questions weighted alike.
"""


@dataclass(frozen=True)
class Conclusion:
    """The result of a program on the memory so far.

    Attributes:
        answer: None if the program gives none.
        confidence: calibrated probability that the answer is right.
        scores: scores of the possible answers, summing to 1.
        about: the objects that it rests on, the one in question first.
        reason: why there is no answer, else empty.
    """

    answer: str | None = None
    confidence: float = 0.0
    strength: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    about: tuple[RememberedObject, ...] = ()
    reason: str = ""


class Reasoner:
    """The program of a question.

    Attributes:
        asked: what the question is about; None if it is of no known template.
        problem: why the question can never be answered; empty if it can.
        rooms: that it names, as far as the plan has them.
        expected: probability, by the room's id, that an object in question is in it: as often as in generated flats.
    """

    def __init__(self, question: str, task: Task, plan: FloorPlan) -> None:
        self._text = " ".join(question.lower().replace("?", " ?").split())
        self._plan = plan
        self.rules, self._names, self.asked = _dialect(question, task, plan)
        self._category_names = {one.id: category_name(name, {}) for name, one in task.categories.items()}
        self.rooms = self._rooms()
        self.problem = self._problem()
        self._categories = (
            {}
            if self.asked is None
            else {name: [number for number, known in self._names.items() if known == name] for name in self.asked.names}
        )
        words = {self._category_names[number] for numbers in self._categories.values() for number in numbers}
        self.expected = plan.expected(words)

    def candidates(self, memory: ObjectMemory, name: str) -> list[RememberedObject]:
        """The remembered objects that a name of the question may mean, best seen first."""
        found = [item for category in self._categories.get(name, ()) for item in memory.of(category)]
        if self.rooms:
            found = [item for item in found if self._room_of(item) in {room.id for room in self.rooms}]
        return sorted(found, key=lambda item: -item.best_pixels)

    def conclude(self, memory: ObjectMemory, explored: float) -> Conclusion:
        """Run the program.

        Args:
            memory: the objects seen so far.
            explored: share of the floor in question that was seen, for answers that rest on absence.
        """
        if self.problem or self.asked is None:
            return Conclusion(reason=self.problem)
        asked = self.asked
        kept = self._presupposed(memory)
        house = House("memory", self._room_entities(), tuple(self._entity(item) for item in kept))
        corpus = Corpus(frozenset(asked.names), {})
        for likeliest in (False, True) if asked.preposition else (False,):
            relations = replace(self.rules.relations, likeliest=likeliest)
            state = State(house, corpus, replace(self.rules, relations=relations), 0)
            found = [q for q in ask(asked.template, state) if q.text.lower().replace("?", " ?") == self._text]
            if found:
                break
        else:
            seen = [name for name in asked.names if not self.candidates(memory, name)]
            what = f"no {' and no '.join(seen)} was seen" if seen else "what was seen does not decide it"
            return Conclusion(reason=what, about=tuple(self._seen(memory)))
        about = tuple(memory.objects[int(number)] for number in found[0].objects)
        strength = self._strength(found[0].answer, about, explored)
        return self._calibrated(found[0].answer, about, strength, likeliest)

    def _calibrated(
        self, answer: str, about: tuple[RememberedObject, ...], strength: float, likeliest: bool
    ) -> Conclusion:
        assert self.asked is not None
        kind = "likeliest" if likeliest else "color" if self.asked.template == "color_room" else self.asked.template
        intercept, slope = _CALIBRATION.get(kind, _CALIBRATION["other"])
        confidence = 1 / (1 + math.exp(-(intercept + slope * strength)))
        others = {name: share for name, share in self._alternatives(about).items() if name != answer}
        total = sum(others.values())
        scores = {answer: confidence} | {name: (1 - confidence) * share / total for name, share in others.items()}
        return Conclusion(answer, confidence, strength, scores, about)

    def _strength(self, answer: str, about: tuple[RememberedObject, ...], explored: float) -> float:
        """Strength of the evidence for an answer: log-odds of a color, else the logarithm of the pixels."""
        assert self.asked is not None
        if self.asked.template in ("color", "color_room"):
            p = self._colors(about[0])[answer]
            return math.log(max(p, 1e-6) / max(1 - p, 1e-6))
        if answer in ("no", "0") or (self.asked.template not in ("location", "preposition", "relation") and not about):
            return math.log2(1 + 100 * max(0.0, explored - 0.8) / 0.2)
        return math.log2(min(item.best_pixels for item in about))

    def _alternatives(self, about: tuple[RememberedObject, ...]) -> Mapping[str, float]:
        """Possible answers with weights."""
        assert self.asked is not None
        template = self.asked.template
        if template in ("color", "color_room"):
            return self._colors(about[0])
        if template == "location":
            return {room.name: 1.0 for room in self._room_entities()}
        if template in ("existence", "logical", "distance"):
            return {"yes": 1.0, "no": 1.0}
        if template in ("count", "room_count", "room_object_count"):
            return {str(number): 1.0 for number in range(1, self.rules.max_count + 1)}
        return {name: 1.0 for name in self._names.values() if name not in self.asked.names}

    def _presupposed(self, memory: ObjectMemory) -> list[RememberedObject]:
        """The memory without the worse candidates for an object that the question says is the only one."""
        assert self.asked is not None
        dropped: set[int] = set()
        if self.asked.template in ("location", "color", "color_room", "preposition", "relation", "distance"):
            for name in self.asked.names:
                found = self.candidates(memory, name)
                dropped |= {o.number for o in found if found[0].best_pixels >= _CLEARLY_BETTER * o.best_pixels}
        return [item for item in memory.objects.values() if item.number not in dropped]

    def _seen(self, memory: ObjectMemory) -> list[RememberedObject]:
        assert self.asked is not None
        return [item for name in self.asked.names for item in self.candidates(memory, name)[:1]]

    def _entity(self, item: RememberedObject) -> ObjectEntity:
        box = item.box(self._plan.axis_rad)
        shares = self._colors(item)
        color = max(shares, key=lambda name: shares[name])
        return ObjectEntity(str(item.number), self._names[item.category], self._room_of(item), color, box, True)

    def _colors(self, item: RememberedObject) -> Mapping[str, float]:
        return color_names().probabilities(item.colors, self._category_names[item.category])

    def _room_of(self, item: RememberedObject) -> str | None:
        room, _ = self._plan.room_at(*item.center[:2])
        return None if room is None else room.id

    def describe(self, item: RememberedObject) -> str:
        """An object in words: name, room, place and the step at which most of it was seen."""
        room, _ = self._plan.room_at(*item.center[:2])
        where = f" in the {room.name}" if room is not None and room.name not in _NAMELESS else ""
        x_m, y_m, z_m = item.center
        return (
            f"{self._names[item.category]} #{item.number}{where} at ({x_m:.2f}, {y_m:.2f}, {z_m:.2f}) m, first seen at "
            f"step {item.first_step}, best at step {item.best_step} ({item.best_pixels} pixels)"
        )

    def _room_entities(self) -> tuple[RoomEntity, ...]:
        collapse = dict(self.rules.collapse)
        return tuple(RoomEntity(room.id, collapse.get(room.name, room.name)) for room in self._plan.rooms)

    def _rooms(self) -> list[PlanRoom]:
        if self.asked is None or self.asked.room is None:
            return []
        names = {entity.id: entity.name for entity in self._room_entities()}
        return [room for room in self._plan.rooms if names[room.id] == self.asked.room]

    def _problem(self) -> str:
        if self.asked is None:
            return "the question is of no known template"
        unknown = [name for name in self.asked.names if name not in self._names.values()]
        if unknown:
            return f"no category of the task is called {' or '.join(map(repr, unknown))}"
        if self.asked.room is not None and not self.rooms and self._plan.rooms:
            return f"the floor plan has no room called {self.asked.room!r}"
        if self.asked.room is None and self.asked.template != "location":
            return ""
        if all(room.name in _NAMELESS for room in self._plan.rooms):
            return "the question needs names of rooms, and the floor plan has none"
        return ""


def _dialect(question: str, task: Task, plan: FloorPlan) -> tuple[QuestionRules, dict[int, str], AskedFor | None]:
    """The rules whose names the question uses, the names of the task's categories in them, and what is asked."""
    found = []
    for rules in PRESETS.values():
        collapse = dict(rules.collapse)
        names = {category.id: category_name(name, collapse) for name, category in task.categories.items()}
        rooms = {collapse.get(room.name, room.name) for room in plan.rooms}
        asked = read_question(question, set(names.values()), rooms)
        unknown = 99 if asked is None else sum(name not in names.values() for name in asked.names)
        relaxed = replace(
            rules, max_per_room=None, seen_only=False, min_volume_m3=0.0, object_blacklist={}, queryable_objects=None
        )
        found.append((unknown, relaxed, names, asked))
    _, rules, names, asked = min(found, key=lambda item: item[0])
    return rules, names, asked
