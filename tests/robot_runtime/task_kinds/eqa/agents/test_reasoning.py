"""The question's program on a memory: right answers where everything was seen, none where the facts are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from question_flat import ANSWERS, CLOSER, OBJECTS
from remembered_flat import eqa_task, floor_plan, remember, remembered_flat

from robot_runtime.task_kinds.eqa.agents.floor_plan import FloorPlan
from robot_runtime.task_kinds.eqa.agents.object_memory import ObjectMemory
from robot_runtime.task_kinds.eqa.agents.reasoning import Conclusion, Reasoner

TASK = eqa_task()
PLAN = FloorPlan.read(floor_plan())


def conclude(question: str, memory: ObjectMemory, plan: FloorPlan = PLAN, explored: float = 1.0) -> Conclusion:
    return Reasoner(question, TASK, plan).conclude(memory, explored)


@pytest.mark.parametrize("question", ANSWERS)
def test_what_was_seen_is_answered(question: str) -> None:
    found = conclude(question, remembered_flat(TASK))
    assert found.answer == ANSWERS[question]
    assert found.scores[found.answer] == found.confidence == max(found.scores.values())
    assert sum(found.scores.values()) == pytest.approx(1)


def test_distances_are_compared() -> None:
    for (a, b, c), clear in CLOSER.items():
        if clear:
            room = "kitchen" if a == "refrigerator" else "living room"
            found = conclude(f"Is the {a} closer to the {b} than to the {c} in the {room}?", remembered_flat(TASK))
            assert found.answer == "yes", (a, b, c)


def test_evidence_names_the_object_and_the_step() -> None:
    reasoner, memory = Reasoner("What color is the sofa?", TASK, PLAN), remembered_flat(TASK)
    found = reasoner.conclude(memory, 1.0)
    assert [reasoner.describe(item) for item in found.about] == [
        "sofa #7 in the living room at (7.00, 1.00, 0.40) m, first seen at step 7, best at step 7 (500 pixels)"
    ]


def test_nothing_is_said_about_what_was_not_seen() -> None:
    found = conclude("What color is the sofa?", remembered_flat(TASK, "sofa_1"))
    assert found.answer is None
    assert found.reason == "no sofa was seen"


def test_absence_counts_only_once_the_room_was_explored() -> None:
    memory = remembered_flat(TASK)
    partly, whole = (conclude("Is there a vase in the kitchen?", memory, explored=share) for share in (0.5, 1.0))
    assert partly.answer == whole.answer == "no"
    assert partly.confidence < 0.6 < 0.9 < whole.confidence


def test_of_two_candidates_the_clearly_better_seen_one_is_meant() -> None:
    memory = remembered_flat(TASK)
    fragment = replace(
        next(item for item in OBJECTS if item.id == "sofa_1"), center=(9.3, 3, 0.4), size=(0.2, 0.2, 0.2)
    )
    remember(memory, fragment, TASK, pixels=20)
    assert conclude("What color is the sofa?", memory).answer == "gray"
    remember(memory, replace(fragment, center=(6, 3, 0.4)), TASK, pixels=400)
    assert conclude("What color is the sofa?", memory).answer is None


@pytest.mark.parametrize(
    ("question", "names", "problem"),
    [
        ("What color is the unicorn?", {}, "no category of the task is called 'unicorn'"),
        ("What color is the sofa in the cellar?", {}, "the floor plan has no room called 'cellar'"),
        ("Where are my keys?", {}, "the question is of no known template"),
        (
            "What room is the sofa located in?",
            {"room_a": "", "room_b": "room", "room_c": "other", "room_d": ""},
            "the question needs names of rooms, and the floor plan has none",
        ),
    ],
)
def test_questions_that_cannot_be_answered_say_why(question: str, names: dict[str, str], problem: str) -> None:
    plan = FloorPlan.read(floor_plan(**names))
    assert Reasoner(question, TASK, plan).problem == problem
    assert conclude(question, remembered_flat(TASK), plan).answer is None


def test_a_goal_room_without_a_name_is_no_answer() -> None:
    plan = FloorPlan.read(floor_plan(room_b="room"))
    assert conclude("What room is the sofa located in?", remembered_flat(TASK), plan).answer is None
    assert conclude("What room is the refrigerator located in?", remembered_flat(TASK), plan).answer == "kitchen"
