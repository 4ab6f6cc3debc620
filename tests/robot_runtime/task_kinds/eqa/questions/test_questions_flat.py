"""The question engine on a flat of which every answer is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from question_flat import ANSWERS, CLOSER, OBJECTS, ROOMS, flat
from raising import raises_naming

from robot_runtime.errors import ConfigError, SceneError
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.task_kinds.eqa.questions.generate import generate_questions
from robot_runtime.task_kinds.eqa.questions.programs import TEMPLATES
from robot_runtime.task_kinds.eqa.questions.rules import (
    CODE,
    FEW_SCENES,
    NINE_TEMPLATES,
    PAPER,
    DistanceRules,
    QuestionRules,
    RelationRules,
    find_rules,
)

DECIDED = ("location", "color", "color_room", "preposition", "count", "room_count")


def asked(scene, rules: QuestionRules = FEW_SCENES, *templates: str, seed: int = 0) -> dict[str, str]:
    rules = replace(rules, templates=templates or rules.templates, min_environments=1, min_entropy=0.0)
    return {question.text: question.answer for question in generate_questions([scene], rules, seed).questions}


def with_objects(*more: SceneObject):
    return flat(objects=(*OBJECTS, *more))


def test_programs_are_those_of_the_papers_table():
    assert {name: str(TEMPLATES[name]) for name in NINE_TEMPLATES} == {
        "location": "select(objects) → unique(objects) → blacklist(location) → query(location)",
        "color": "select(objects) → unique(objects) → blacklist(color) → query(color)",
        "color_room": "select(rooms) → unique(rooms) → select(objects) → unique(objects) → blacklist(color) → "
        "query(color_room)",
        "preposition": "select(rooms) → unique(rooms) → select(objects) → unique(objects) → blacklist(preposition) → "
        "relate() → query(preposition)",
        "existence": "select(rooms) → unique(rooms) → select(objects) → blacklist(existence) → query(existence)",
        "logical": "select(rooms) → unique(rooms) → select(objects) → blacklist(existence) → query(logical)",
        "count": "select(rooms) → unique(rooms) → select(objects) → blacklist(count) → query(count)",
        "room_count": "select(rooms) → query(room_count)",
        "distance": "select(rooms) → unique(rooms) → select(objects) → unique(objects) → blacklist(distance) → "
        "distance() → query(distance)",
    }


def test_every_question_and_answer_is_the_known_one():
    assert asked(flat(), FEW_SCENES, *DECIDED) == ANSWERS


def test_existence_asks_as_often_about_what_is_not_there():
    answers = asked(flat(), FEW_SCENES, "existence")
    kitchen = {text: answer for text, answer in answers.items() if text.endswith("in the kitchen?")}
    there = {"Is there a table", "Is there an apple", "Is there a lamp", "Is there a chair", "Is there a refrigerator"}
    assert {text.removesuffix(" in the kitchen?") for text, answer in kitchen.items() if answer == "yes"} == there
    absent = {text.removesuffix(" in the kitchen?") for text, answer in kitchen.items() if answer == "no"}
    assert absent <= {f"Is there a {name}" for name in ("sofa", "tv stand", "television", "bed", "wardrobe")}
    assert len(absent) == 5
    assert not any("bedroom" in text for text in answers), "there are two bedrooms"


def test_logical_is_and():
    answers = asked(flat(), replace(FEW_SCENES, max_per_room=None), "logical")
    assert answers["Is there an apple and a lamp in the kitchen?"] == "yes"
    assert answers["Is there a sofa and a television in the living room?"] == "yes"
    present = {"apple", "chair", "lamp", "refrigerator", "table"}
    for text, answer in answers.items():
        first, _, rest = text.removeprefix("Is there a").removeprefix("n").strip().partition(" and a")
        second, _, room = rest.removeprefix("n").strip().partition(" in the ")
        if room == "kitchen?":
            assert (answer == "yes") == ({first, second} <= present), text


@pytest.mark.parametrize(("names", "clear"), CLOSER.items())
def test_distance_is_measured_from_the_first_object_and_asked_both_ways(names, clear):
    answers = asked(flat(), replace(FEW_SCENES, max_per_room=None), "distance")
    room = "kitchen" if "refrigerator" in names else "living room"
    text = "Is the {} closer to the {} than to the {} in the {}?"
    near_first, far_first = text.format(*names, room), text.format(names[0], names[2], names[1], room)
    assert (answers.get(near_first), answers.get(far_first)) == (("yes", "no") if clear else (None, None))


def test_the_codes_distance_rule_wants_touching_and_two_meters():
    answers = asked(flat(), replace(CODE, seen_only=False), "distance")
    assert answers["Is the television closer to the tv stand than to the sofa in the living room?"] == "yes"
    assert "Is the lamp closer to the sofa than to the tv stand in the living room?" not in answers


def test_questions_name_their_targets():
    found = {question.text: question for question in generate_questions([flat()], FEW_SCENES).questions}
    on_table = found["What is on the table in the kitchen?"]
    assert (on_table.targets, on_table.objects, on_table.rooms) == (("table_1",), ("table_1", "apple_1"), ("room_a",))
    assert found["Is there a chair in the kitchen?"].targets == ("chair_1", "chair_2")
    assert found["How many chairs are in the kitchen?"].targets == ()
    assert found["How many apples are in the kitchen?"].targets == ("apple_1",)
    assert found["How many bedrooms are in the house?"].rooms == ("room_c", "room_d")


def test_unique_in_room_or_in_the_whole_selection():
    scene = with_objects(SceneObject("apple_2", "Apple", (9, 3, 0.04), (0.08,) * 3, room="room_b", color="green"))
    by_room = asked(scene, FEW_SCENES, "color", "color_room")
    assert by_room["What color is the apple in the living room?"] == "green"
    assert "What color is the apple?" not in by_room
    whole = asked(scene, replace(FEW_SCENES, unique_in="selection"), "color_room")
    assert not any("apple" in text for text in whole)


def test_blacklists_hold_for_rooms_and_objects():
    rules = replace(FEW_SCENES, room_blacklist=("kitchen",), object_blacklist={"color": ("sofa",), "all": ("lamp",)})
    answers = asked(flat(), rules)
    assert not any("kitchen" in text or "lamp" in text for text in answers)
    assert "kitchen" not in answers.values()
    assert "lamp" not in answers.values()
    assert not any(text.startswith("What color is the sofa") for text in answers)
    assert "What room is the sofa located in?" in answers


def test_counts_end_at_the_limit():
    more = [SceneObject(f"vase_{k}", "Vase", (5.5 + 0.6 * k, 3, 0.1), (0.1, 0.1, 0.2), room="room_b") for k in range(6)]
    text = "How many vases are in the living room?"
    assert asked(with_objects(*more[:5]))[text] == "5"
    assert text not in asked(with_objects(*more))
    assert asked(with_objects(*more), replace(FEW_SCENES, max_count=6))[text] == "6"
    assert "How many bedrooms are in the house?" not in asked(flat(), replace(FEW_SCENES, max_room_count=1))


def test_confusable_names_make_counting_and_absence_unsafe():
    scene = with_objects(SceneObject("desk_1", "desk", (9, 4, 0.4), (1, 0.5, 0.8), room="room_b"))
    assert "Is there a table in the living room?" not in asked(scene, FEW_SCENES, "existence")
    kitchen_too = with_objects(SceneObject("desk_1", "desk", (0.5, 4.5, 0.4), (0.5, 0.5, 0.8), room="room_a"))
    answers = asked(kitchen_too, FEW_SCENES)
    assert "How many tables are in the kitchen?" not in answers
    assert answers["What color is the table in the kitchen?"] == "brown"


def test_what_nobody_sees_is_not_asked_about_but_counts():
    scene = flat()
    hidden = replace(scene, view_points={k: v for k, v in scene.view_points.items() if k not in ("chair_2", "apple_1")})
    answers = asked(hidden)
    assert not any("apple" in text.lower() and answer != "no" for text, answer in answers.items())
    assert "apple" not in answers.values()
    assert "How many chairs are in the kitchen?" not in answers
    assert not any(text.startswith("What color is the chair") for text in answers)
    assert asked(hidden, replace(FEW_SCENES, seen_only=False), *DECIDED) == ANSWERS


def test_tiny_boxes_are_left_out():
    assert not any("apple" in text for text in asked(flat(), replace(FEW_SCENES, min_volume_m3=0.001), "color"))


def test_the_papers_rules_know_only_its_vocabulary():
    answers = asked(flat(), PAPER)
    assert "What room is the wardrobe cabinet located in?" in answers
    assert not any(word in text for text in answers for word in ("apple", "lamp", "chair"))


def test_an_object_without_room_is_in_the_room_around_it():
    scene = with_objects(SceneObject("vase_1", "Vase", (6, 3, 0.1), (0.1, 0.1, 0.2)))
    assert asked(scene)["What room is the vase located in?"] == "living room"
    outside = with_objects(SceneObject("vase_1", "Vase", (60, 3, 0.1), (0.1, 0.1, 0.2)))
    assert "What room is the vase located in?" not in asked(outside)


def test_a_scene_without_rooms_has_questions_that_need_none():
    bare = [replace(item, room=None) for item in OBJECTS]
    result = generate_questions([flat(rooms=(), objects=tuple(bare))], FEW_SCENES)
    assert {question.type for question in result.questions} == {"color", "relation"}
    assert result.notes == ("question_flat: has no rooms: nothing is asked that names or counts one",)


def test_rooms_without_a_name_are_noted():
    rooms = tuple(replace(room, category="room") for room in ROOMS)
    result = generate_questions([flat(rooms=rooms)], FEW_SCENES)
    assert {question.type for question in result.questions} == {"color", "relation"}
    assert "(room)" in result.notes[0]


def test_a_scene_without_colors_is_noted():
    plain = tuple(replace(item, color=None) for item in OBJECTS)
    result = generate_questions([flat(objects=plain)], FEW_SCENES)
    assert not any(question.type.startswith("color") for question in result.questions)
    assert result.notes == ("question_flat: has no object with a color: nothing is asked about colors",)


def test_an_empty_scene_is_noted():
    result = generate_questions([flat(objects=())], FEW_SCENES)
    assert {question.type for question in result.questions} == {"room_count"}
    assert result.notes == ("question_flat: has no objects",)


def test_what_cannot_be_asked_is_an_error_with_a_remedy():
    with raises_naming(SceneError, "'question_flat'"):
        generate_questions([flat(), flat()])
    with raises_naming(SceneError, "scene"):
        generate_questions([])
    with raises_naming(SceneError, "view_points.json"):
        generate_questions([flat(view_points=False)])
    with raises_naming(ConfigError, "4 scenes"):
        generate_questions([flat()], PAPER)
    with raises_naming(ConfigError, "'smell'"):
        generate_questions([flat()], replace(FEW_SCENES, templates=("smell",)))
    with raises_naming(ConfigError, "few_scenes"):
        find_rules("strict")


@pytest.mark.parametrize(
    "wrong", [{"min_entropy": 1.5}, {"min_environments": 0}, {"max_count": 0}, {"min_volume_m3": -1.0}]
)
def test_rules_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        QuestionRules(**wrong)


def test_thresholds_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="equal distances"):
        DistanceRules(gap_m=0.0)
    with pytest.raises(ValueError, match="max_stray < min_overlap"):
        RelationRules(min_overlap=0.1, max_stray=0.5)
