"""Datasets with words, questions and objects: what is read from them, and that writing loses nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from episode_documents import (
    SITE_YAML,
    eqa_document,
    habitat_record,
    ithor_pickled,
    ithor_scenes,
    r2r_document,
    r2r_truth,
    rearrange_document,
    rxr_document,
)
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming
from small_flat import flat, pointnav_task
from test_episodes_formats import objectnav_document, robothor_record

from robot_runtime.common.geometry import SE2
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.files import iter_episodes, load_episodes, save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.datasets.io import parse, read_json, write_json
from robot_runtime.errors import EpisodeError
from robot_runtime.metrics.functional.path import path_length
from robot_runtime.metrics.functional.spl import spl
from robot_runtime.task_kinds.eqa import format_mp3d as mp3d_eqa
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.task_kinds.objectnav import format_habitat as habitat_objectnav
from robot_runtime.task_kinds.objectnav import format_robothor as robothor
from robot_runtime.task_kinds.pointnav import format_habitat as habitat_pointnav
from robot_runtime.task_kinds.rearrangement import format_habitat as habitat_rearrange
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln import format_r2r_ce as r2r_ce
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.episode import Episode, Goal, ObjectPose, RearrangedObject

HERE = Path("memory.json")


def write(path: Path, document: Any) -> Path:
    write_json(path, document)
    return path


# --- instruction following ------------------------------------------------------------------------------------------


def test_r2r_has_words_a_path_and_its_ground_truth(tmp_path: Path) -> None:
    split = write(tmp_path / "val_unseen.json.gz", r2r_document())
    write(tmp_path / "val_unseen_gt.json.gz", r2r_truth())
    first, second, held_back = load_episodes(split)
    assert (first.id, second.id) == ("1", "2"), "numbers for ids become text"
    assert Route.of(first).instruction == Instruction("Leave the room.", (5, 7, 2), None, "4")
    assert Route.of(first).reference_path == ((2.0, -1.5, 0.25), (0.0, 0.0, 0.25), (-4.0, 3.0, 0.25))
    assert (first.goals, first.shortest_path_m) == ((Goal(-4.0, 3.0, 0.25),), 5.5)
    assert r2r_ce.ground_truth_path(first) == ((2.0, -1.5, 0.25), (2.0, -1.25, 0.25), (2.0, -1.0, 0.25))
    assert first.info["ground_truth"]["actions"] == [1, 1, 0]
    assert (held_back.goals, Route.of(held_back).reference_path, r2r_ce.ground_truth_path(held_back)) == ((), (), ())


def test_r2r_without_ground_truth_loads_and_has_none(tmp_path: Path) -> None:
    episodes = load_episodes(write(tmp_path / "train.json.gz", r2r_document()))
    assert [r2r_ce.ground_truth_path(episode) for episode in episodes] == [(), (), ()]


def test_a_folder_takes_ground_truth_for_part_of_its_split(tmp_path: Path) -> None:
    write(tmp_path / "val.json.gz", r2r_document())
    write(tmp_path / "val_gt.json.gz", r2r_truth())
    assert [episode.id for episode in load_episodes(tmp_path)] == ["1", "2", "3"]


def test_rxr_says_its_language_and_keeps_its_timing(tmp_path: Path) -> None:
    split = write(tmp_path / "val_unseen_guide.json.gz", rxr_document())
    (episode,) = load_episodes(split)
    assert Route.of(episode).instruction == Instruction("कमरे से बाहर जाओ", (), "hi-IN", "4332")
    assert episode.info["instruction"]["timed_instruction"][0]["end_time"] == 1.5


def test_reading_and_writing_r2r_and_rxr_gives_the_same_documents(tmp_path: Path) -> None:
    write(tmp_path / "a.json.gz", r2r_document())
    write(tmp_path / "a_gt.json.gz", r2r_truth())
    r2r_ce.save(tmp_path / "b.json.gz", load_episodes(tmp_path / "a.json.gz"))
    assert read_json(tmp_path / "b.json.gz") == r2r_document()
    assert read_json(tmp_path / "b_gt.json.gz") == r2r_truth()
    write(tmp_path / "c.json", rxr_document())
    save_episodes(tmp_path / "d.json", load_episodes(tmp_path / "c.json"), pointnav_task())
    assert read_json(tmp_path / "d.json") == rxr_document()
    assert not (tmp_path / "d_gt.json").exists()


def test_a_changed_instruction_is_written_and_so_is_one_of_ones_own(tmp_path: Path) -> None:
    first = parse(r2r_ce.reader, r2r_document(), HERE)[0]
    said = Instruction("Stop.", (9,), "en-US", "4")
    own = Episode(
        "0",
        "flat",
        SE2(1, 2, 0.5),
        (Goal(3, 4),),
        details=Route(instruction=said, reference_path=((1, 2, 0), (3, 4, 0))),
    )
    r2r_ce.save(tmp_path / "x.json", [replace(first, details=replace(Route.of(first), instruction=said)), own])
    changed, again = load_episodes(tmp_path / "x.json")
    assert (changed.id, Route.of(changed).instruction) == ("1", said)
    assert (Route.of(again).instruction, Route.of(again).reference_path, again.goals) == (
        said,
        Route.of(own).reference_path,
        own.goals,
    )
    assert read_json(tmp_path / "x.json")["episodes"][1]["goals"][0]["radius"] == 3.0


# --- questions ------------------------------------------------------------------------------------------------------


def test_eqa_has_a_question_an_answer_and_places_to_see_it_from() -> None:
    first, second = parse(mp3d_eqa.reader, eqa_document(), HERE)
    text = "what color is the sofa in the living room?"
    assert Inquiry.of(first).question == Question(text, "brown", "color_room", (1, 2, 3), 1)
    assert Inquiry.of(second).question == Question(text, "brown", "", (1, 2, 3), 1), (
        "a list of one answer token is that token"
    )
    assert second.id == "18"
    (goal,) = first.goals
    assert (goal.object_id, goal.x_m, goal.y_m, goal.z_m) == ("12", -4.0, 3.0, 0.9)
    assert (goal.view_points[0].x_m, goal.view_points[0].y_m) == (-4.0, 2.5)
    assert goal.view_points[0].yaw_rad == pytest.approx(2 * math.atan2(0.6, 0.8))
    assert first.shortest_path == ((2.0, -1.5),)


def test_reading_and_writing_eqa_gives_the_same_document(tmp_path: Path) -> None:
    write(tmp_path / "a.json.gz", eqa_document())
    save_episodes(tmp_path / "b.json.gz", load_episodes(tmp_path / "a.json.gz"), pointnav_task())
    assert read_json(tmp_path / "b.json.gz") == eqa_document()


def test_questions_of_ones_own_get_vocabularies(tmp_path: Path) -> None:
    goal = Goal(1, 2, 0.5, "sofa_1", (SE2(1, 1, 0.5),))
    asked = [Question("What color is the sofa?", "gray", "color"), Question("Is it red?", "no", "existence")]
    episodes = [
        Episode(str(i), "flat", SE2(), (goal,), details=Inquiry(question=question)) for i, question in enumerate(asked)
    ]
    mp3d_eqa.save(tmp_path / "x.json", episodes)
    document = read_json(tmp_path / "x.json")
    words, answers = document["question_vocab"]["word_list"], document["answer_vocab"]["word_list"]
    for episode, question in zip(load_episodes(tmp_path / "x.json"), asked, strict=True):
        assert Inquiry.of(episode).question is not None
        assert [words[token] for token in Inquiry.of(episode).question.tokens] == question.text.lower().replace(
            "?", " ?"
        ).split()
        assert Inquiry.of(episode).question.answer_token is not None
        assert answers[Inquiry.of(episode).question.answer_token] == question.answer
        assert episode.goals[0].view_points[0].yaw_rad == pytest.approx(0.5)
    with raises_naming(EpisodeError, "'9'"):
        mp3d_eqa.save(tmp_path / "x.json", [Episode("9", "flat", SE2(), ())])


# --- rearrangement --------------------------------------------------------------------------------------------------


def test_habitat_names_objects_by_template_and_turns_them_with_the_scene() -> None:
    (episode,) = parse(habitat_rearrange.reader, rearrange_document(), HERE)
    bowl, box, turned = Layout.of(episode).objects
    assert [item.id for item in Layout.of(episode).objects] == ["024_bowl_:0000", "003_box_:0000", "024_bowl_:0001"]
    assert (bowl.goal, box.goal) == (None, None), "what has no target must stay"
    assert bowl.start.position == (2.0, -1.0, 0.5)
    assert bowl.start.quaternion == pytest.approx((1, 0, 0, 0)), "upright in Habitat is upright in map"
    assert turned.start.quaternion == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5))), "+y there is +z here"
    assert turned.goal is not None
    assert turned.goal.position == (4.0, 1.0, 0.5)
    assert turned.template == "024_bowl.object_config.json"


def test_reading_and_writing_habitat_rearrangement_gives_the_same_document(tmp_path: Path) -> None:
    write(tmp_path / "a.json.gz", rearrange_document())
    episodes = load_episodes(tmp_path / "a.json.gz")
    save_episodes(tmp_path / "b.json.gz", episodes, pointnav_task())
    assert read_json(tmp_path / "b.json.gz") == rearrange_document()
    objects = Layout.of(episodes[0]).objects
    moved = replace(objects[0], goal=ObjectPose((1.0, 2.0, 0.5), (0.0, 0.0, 0.0, 1.0)))
    changed = replace(episodes[0], details=Layout((moved, *objects[1:])))
    habitat_rearrange.save(tmp_path / "c.json.gz", [changed])
    found = Layout.of(load_episodes(tmp_path / "c.json.gz")[0]).objects[0].goal
    assert found is not None
    assert found.position == (1.0, 2.0, 0.5)
    assert [abs(part) for part in found.quaternion] == pytest.approx([0, 0, 0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rigid_objs": [["a.json", [[1, 0, 0, 0]] * 3]]}, r"rigid_objs\.0: field '1'"),
        ({"rigid_objs": [[3, [[1, 0, 0, 0]] * 4]]}, r"rigid_objs\.0: field"),
        ({"rigid_objs": [["a.json", [[2, 0, 0, 0]] * 4]], "targets": {}}, r"'rigid_objs\.0'.*not a rotation"),
        ({"targets": {"ghost_:0000": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]}}, "'ghost_:0000'"),
        ({"targets": {"024_bowl_:0000": [[0.0] * 4] * 4}}, "not a rotation"),
    ],
)
def test_a_wrong_transform_is_named(change: dict[str, Any], message: str) -> None:
    document = rearrange_document()
    document["episodes"][0].update(change)
    with pytest.raises(EpisodeError, match=r"episode 0 \(id '17'\): .*" + message):
        parse(habitat_rearrange.reader, document, HERE)


def test_ithor_objects_have_two_poses_and_doors_two_opennesses() -> None:
    episodes = parse(ithor_rearrangement.reader, ithor_rearrangement.from_pickled(ithor_scenes(), "val"), HERE)
    assert [episode.id for episode in episodes] == ["FloorPlan24__val__0", "FloorPlan24__val__1", "FloorPlan2__val__0"]
    first = episodes[0]
    assert (first.start.x_m, first.start.y_m) == (3.5, -0.25)
    assert first.start.yaw_rad == pytest.approx(math.radians(120)), "240 degrees clockwise"
    bowl, mug, fridge = Layout.of(first).objects
    assert bowl.goal is not None
    assert (bowl.category, bowl.start.position, bowl.goal.position) == ("Bowl", (3.5, 2.5, 0.75), (3.5, 1.5, 0.75))
    assert bowl.start.quaternion == pytest.approx((1, 0, 0, 0))
    assert bowl.goal.quaternion == pytest.approx((math.sqrt(0.5), 0, 0, -math.sqrt(0.5))), "clockwise seen from above"
    assert mug.start == mug.goal
    assert fridge == RearrangedObject(
        "Fridge_ab2776a0",
        ObjectPose((2.13, 2.64, 0.0), openness=0.25),
        ObjectPose((2.13, 2.64, 0.0), openness=1.0),
        "Fridge",
    )


def test_ithor_turns_as_unity_does() -> None:
    """Unity turns about z, then x, then y. Looking up is -x there; here it is -y, after the turn to the right."""
    scenes = ithor_scenes()
    scenes["FloorPlan24"][0]["starting_poses"][0]["rotation"] = {"x": -90.0, "y": 90.0, "z": 0.0}
    (bowl, *_), *_ = (
        Layout.of(e).objects
        for e in parse(ithor_rearrangement.reader, ithor_rearrangement.from_pickled(scenes, "v"), HERE)
    )
    w, x, y, z = bowl.start.quaternion
    forward = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    assert forward == pytest.approx((0, 0, 1), abs=1e-12), "pitched up first, it looks at the ceiling"
    left = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
    assert left == pytest.approx((1, 0, 0), abs=1e-12), "turned right, its left is where it looked before"


def test_reading_and_writing_ithor_gives_the_same_document_and_pickled_form(tmp_path: Path) -> None:
    document = ithor_rearrangement.from_pickled(ithor_scenes(), "val")
    assert ithor_pickled(document) == ithor_scenes()
    episodes = load_episodes(write(tmp_path / "a.json.gz", document))
    ithor_rearrangement.save(tmp_path / "b.json.gz", episodes)
    assert read_json(tmp_path / "b.json.gz") == document
    with raises_naming(EpisodeError, "iTHOR"):
        ithor_rearrangement.save(tmp_path / "c.json", [Episode("9", "flat", SE2(), ())])


# --- Habitat's other variants ---------------------------------------------------------------------------------------


def test_habitat_of_2022_keeps_its_scene_dataset_and_lacks_what_it_lacks(tmp_path: Path) -> None:
    record = habitat_record(scene_dataset_config="hm3d.json", additional_obj_config_paths=[])
    document = {"episodes": [record, {**record, "info": None}]}
    episodes = load_episodes(write(tmp_path / "a.json.gz", document))
    habitat_pointnav.save(tmp_path / "b.json.gz", episodes)
    assert read_json(tmp_path / "b.json.gz") == document


def test_objectnav_hm3d_and_goals_that_no_episode_asks_for_survive(tmp_path: Path) -> None:
    document = objectnav_document()
    document["category_to_scene_annotation_category_id"] = document.pop("category_to_mp3d_category_id")
    document["goals_by_category"]["abc.glb_bed"] = document["goals_by_category"]["abc.glb_chair"]
    for episode in document["episodes"]:
        episode.update(object_name_id=3, scene_dataset_config="hm3d.json", scene_id="hm3d/val/abc.glb")
        del episode["start_room"]
    source = write(tmp_path / "a.json.gz", document)
    episodes = load_episodes(source)
    habitat_objectnav.save(tmp_path / "b.json.gz", episodes, more_goals=habitat_objectnav.unused_goals(source))
    assert read_json(tmp_path / "b.json.gz") == document


def test_a_changed_id_is_written() -> None:
    numbered = {**r2r_document()["episodes"][0]}
    (episode,) = parse(r2r_ce.reader, {"episodes": [numbered]}, HERE)
    assert r2r_ce._record(episode)["episode_id"] == 1
    assert r2r_ce._record(replace(episode, id="new"))["episode_id"] == "new"


# --- RoboTHOR -------------------------------------------------------------------------------------------------------


def test_reading_and_writing_robothor_gives_the_same_document(tmp_path: Path) -> None:
    of_2020 = robothor_record(
        object_id="Mug|1|2|3",
        target_position={"x": 1.0, "y": 0.8, "z": 2.0},
        difficulty="hard",
        initial_orientation=330,
    )
    del of_2020["initial_horizon"]
    of_test = {name: value for name, value in robothor_record().items() if not name.startswith("shortest_path")}
    document = [robothor_record(), of_2020, of_test, robothor_record(shortest_path=[], initial_horizon=330)]
    episodes = load_episodes(write(tmp_path / "a.json.gz", document))
    robothor.save(tmp_path / "b.json.gz", episodes)
    assert read_json(tmp_path / "b.json.gz") == document


def test_robothor_writes_episodes_of_ones_own_and_says_what_it_cannot(tmp_path: Path) -> None:
    own = Episode("0", "flat", SE2(1, 2, -0.5), (), "Mug", -0.25, shortest_path_m=1.0, shortest_path=((1, 2), (1, 3)))
    robothor.save(tmp_path / "x.json", [own])
    (again,) = load_episodes(tmp_path / "x.json")
    assert replace(again, info={}, start=own.start, start_tilt_rad=-0.25) == own
    assert (again.start.yaw_rad, again.start_tilt_rad) == (pytest.approx(-0.5), pytest.approx(-0.25))
    for bad in (replace(own, category=None), replace(own, goals=(Goal(1, 2), Goal(2, 3)))):
        with raises_naming(EpisodeError, "'0'"):
            robothor.save(tmp_path / "y.json", [bad])


def test_the_real_robothor_files_are_written_back_the_same(shared_data: Path, tmp_path: Path) -> None:
    files = sorted((shared_data / "robothor").glob("*/*.json.gz"))
    assert len(files) == 16
    for file in files:
        episodes = load_episodes(file)
        robothor.save(tmp_path / file.name, episodes)
        assert read_json(tmp_path / file.name) == read_json(file)
        assert list(iter_episodes(file)) == episodes


def test_an_oracle_on_the_real_robothor_files_has_an_spl_of_one(shared_data: Path) -> None:
    """It stands at the start and walks to the path's further nodes; lengths are planar. 36 starts lie off their path,
    by up to 9 cm, and these few cost what is missing to 1."""
    scores = []
    for episode in iter_episodes(shared_data / "robothor" / "val"):
        walked = [(episode.start.x_m, episode.start.y_m), *episode.shortest_path[1:]]
        assert episode.shortest_path_m is not None
        scores.append(spl(True, episode.shortest_path_m, path_length(walked)))
    assert len(scores) == 1800
    assert sum(scores) / len(scores) == pytest.approx(0.9997, abs=5e-5)
    assert sum(score < 0.999 for score in scores) == 21


# --- the runtime's own YAML -----------------------------------------------------------------------------------------


def test_yaml_of_every_task_is_read(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(SITE_YAML)
    point, chair, route, question, tidy = load_episodes(tmp_path / "lab.yaml")
    assert point.start == SE2(1.2, 0.4, math.radians(90))
    assert (point.scene, point.goals, point.shortest_path_m) == ("lab", (Goal(3.5, 2.0, 0.0),), 3.25)
    assert (chair.scene, chair.category, chair.start_z_m) == ("other lab", "chair", 0.02)
    assert chair.start_tilt_rad == math.radians(-30)
    assert Route.of(route).instruction == Instruction(
        "Leave the room and stop at the sofa — slowly.", (4, 5), "en-US", trajectory_id="7"
    )
    assert Route.of(route).reference_path == ((1.2, 0.4, 0.0), (1.2, 3.0, 0.1))
    assert Inquiry.of(question).question == Question("What color is the sofa?", "gray", "color", (), 0)
    assert question.goals == (Goal(4.5, 3.0, 0.4, "sofa_1", (SE2(4.0, 3.0, math.radians(12.34)),)),)
    mug, door = Layout.of(tidy).objects
    assert mug.goal is not None
    assert mug.goal.quaternion == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5)))
    assert (door.start.openness, door.goal, door.start.quaternion) == (0.25, None, (0.5, 0.5, 0.5, 0.5))
    assert tidy.info == {"operator": "Ada", "tries": [1, 2]}


def test_reading_and_writing_yaml_gives_the_same_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SITE_YAML)
    episodes = load_episodes(tmp_path / "a.yaml")
    save_episodes(tmp_path / "b.yml", episodes, pointnav_task())
    assert (tmp_path / "b.yml").read_text().splitlines()[1:] != SITE_YAML.splitlines()[1:], "two scenes: none is shared"
    assert load_episodes(tmp_path / "b.yml") == episodes
    single = [replace(episode, scene="lab") for episode in episodes]
    native_yaml.save(tmp_path / "c.yaml", single)
    assert (tmp_path / "c.yaml").read_text() == SITE_YAML.replace("  scene: other lab\n", "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("start: [1.2, 0.4, 90]", "start: [1.2, 0.4]", r"episode 0 \(id 'to the window'\): field 'start'"),
        ("start: [1.2, 0.4, 90]", "start: [1.2, '0.4', 90]", r"field 'start\.1'.*found '0\.4'"),
        ("start: [1.2, 0.4, 90]", "start: [1.2, .nan, 90]", r"field 'start\.1'"),
        ("category: chair", "categoryy: chair", r"episode 1 \(id 'find a chair'\): field 'categoryy': Extra"),
        ("answer: gray", "answer: no", r"episode 3 .*field 'question\.answer'.*found False"),
        ("openness: 0.25", "openness: 25", r"field 'objects\.1\.start\.openness'"),
        ("quaternion: [0.5,", "quaternion: [5,", r"'objects\.1\.start': 'quaternion'"),
        ("yaw_deg: 90", "yaw_deg: 90\n      quaternion: [1, 0, 0, 0]", r"'objects\.0\.goal': has both"),
        ("schema: 1", "schema: 2", r"field 'schema'"),
        ("scene: lab\n", "", r"episode 0 .*field 'scene'"),
        ("- id: to the window", "- id: 3.5", r"episode 0 \(id 3\.5\): field 'id'"),
        ("episodes:", "episodes: [", r"line \d+, column \d+ is not valid YAML"),
        ("  start: [1.2, 0.4, 90]", "  start: [1.2, 0.4, 90]\n  start: [1, 2, 3]", "'start' is repeated"),
        ("operator: Ada", "operator: 2024-13-45", r"is not valid YAML"),
    ],
)
def test_a_wrong_yaml_field_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "lab.yaml"
    assert old in SITE_YAML
    path.write_text(SITE_YAML.replace(old, new, 1))
    with pytest.raises(EpisodeError, match=message) as caught:
        load_episodes(path)
    assert caught.value.message.startswith(str(path))


METRES = st.floats(-50, 50)
ANGLES = st.floats(-7, 7)
POSES = st.builds(SE2, METRES, METRES, ANGLES)
POINTS = st.tuples(METRES, METRES, METRES)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn")), min_size=1, max_size=12)
UNITS = ANGLES.map(lambda a: (math.cos(a), 0.0, math.sin(a), 0.0))
OBJECT_POSES = st.builds(ObjectPose, POINTS, UNITS, st.none() | st.floats(0, 1))
OBJECTS_TO_MOVE = st.builds(RearrangedObject, TEXTS, OBJECT_POSES, st.none() | OBJECT_POSES)
EPISODES = st.builds(
    Episode,
    id=TEXTS,
    scene=TEXTS,
    start=POSES,
    goals=st.lists(
        st.builds(Goal, METRES, METRES, METRES, st.none() | TEXTS, st.lists(POSES, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
    category=st.none() | TEXTS,
    start_tilt_rad=st.none() | st.floats(-1.5, 1.5),
    start_z_m=METRES,
    shortest_path_m=st.none() | st.floats(0, 100),
    shortest_path=st.lists(st.tuples(METRES, METRES), max_size=3).map(tuple),
    info=st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | METRES | TEXTS | st.just([]), max_size=2),
    details=st.none()
    | st.builds(
        Route,
        st.builds(Instruction, TEXTS, st.just((1, 2)), st.none() | TEXTS),
        st.lists(POINTS, max_size=3).map(tuple),
    )
    | st.builds(Inquiry, st.builds(Question, TEXTS, TEXTS, TEXTS, answer_token=st.none() | st.integers(0, 9)))
    | st.builds(Layout, st.lists(OBJECTS_TO_MOVE, min_size=1, max_size=2).map(tuple)),
)


@pytest.mark.slow
@given(episodes=st.lists(EPISODES, min_size=1, max_size=3))
def test_any_episode_survives_yaml(tmp_path_factory: pytest.TempPathFactory, episodes: list[Episode]) -> None:
    folder = tmp_path_factory.mktemp("yaml")
    native_yaml.save(folder / "a.yaml", episodes)
    again = load_episodes(folder / "a.yaml")
    for found, expected in zip(again, episodes, strict=True):
        assert found.start.yaw_rad == pytest.approx(expected.start.yaw_rad, rel=1e-15, abs=1e-300)
        plain = {"start": expected.start, "goals": (), "start_tilt_rad": None}
        assert replace(found, **plain) == replace(expected, **plain)
    native_yaml.save(folder / "b.yaml", again)
    assert load_episodes(folder / "b.yaml") == again
    assert (folder / "b.yaml").read_bytes() == (folder / "a.yaml").read_bytes()


@given(angle_deg=st.integers(-3600, 3600).map(lambda tenths: tenths / 10))
def test_an_angle_that_was_written_by_hand_is_written_as_it_was(angle_deg: float) -> None:
    assert native_yaml.degrees(math.radians(angle_deg)) == angle_deg


def test_generated_episodes_may_be_written_as_yaml(tmp_path: Path) -> None:
    episodes = generate_episodes(flat(), pointnav_task(), 2, seed=0)
    save_episodes(tmp_path / "a.yaml", episodes, pointnav_task())
    assert [episode.goals for episode in load_episodes(tmp_path / "a.yaml")] == [e.goals for e in episodes]


def test_habitat_episodes_may_be_kept_as_yaml(tmp_path: Path) -> None:
    episodes = parse(habitat_pointnav.reader, {"episodes": [habitat_record()]}, HERE)
    native_yaml.save(tmp_path / "a.yaml", episodes)
    habitat_pointnav.save(tmp_path / "b.json", load_episodes(tmp_path / "a.yaml"))
    assert json.loads((tmp_path / "b.json").read_text()) == {"episodes": [habitat_record()]}
