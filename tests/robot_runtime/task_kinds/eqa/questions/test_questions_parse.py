"""Reading questions back: every generated text gives its template and its names."""

from __future__ import annotations

from question_flat import flat

from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.house import House
from robot_runtime.task_kinds.eqa.questions.names import AskedFor, read_question
from robot_runtime.task_kinds.eqa.questions.rules import FEW_SCENES


def test_every_generated_question_is_read_back() -> None:
    house = House.of(flat(), FEW_SCENES)
    names, rooms = {item.name for item in house.objects}, {room.name for room in house.rooms}
    by_id = {item.id: item.name for item in house.objects}
    asked = generate_questions([flat()]).questions
    assert {question.type for question in asked} > {"location", "color", "preposition", "existence", "count"}
    for question in asked:
        read = read_question(question.text, names, rooms)
        assert read is not None, question.text
        assert read.template == question.type, question.text
        if question.type in ("location", "color", "color_room", "distance"):
            assert read.names == tuple(by_id[item] for item in question.objects)
        if question.rooms and question.type not in ("location", "room_object_count"):
            assert read.room in {house.room_by_id[room].name for room in question.rooms}


def test_case_and_marks_do_not_matter() -> None:
    asked = read_question("  what COLOR is  the tv stand in the living room ? ", {"tv stand"}, {"living room"})
    assert asked == AskedFor("color_room", ("tv stand",), "living room")


def test_other_sentences_are_of_no_template() -> None:
    assert read_question("Where did I leave my keys?", {"keys"}) is None
    assert read_question("", set()) is None
