"""Instruction following, questions and rooms: presets as published, goals resolved, bad episodes named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from raising import raises_naming
from small_flat import flat

from robot_runtime.actions.discrete import HABITAT, HABITAT_2019, Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.task_kinds.areagoal import kind as areagoal
from robot_runtime.task_kinds.eqa import kind as eqa
from robot_runtime.task_kinds.eqa.kind import Inquiry, Question
from robot_runtime.task_kinds.vln import kind as vln
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.categories import category_of
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.kind import kind_of
from robot_runtime.tasks.task import Success, load_task

SAID = Instruction("Leave the bedroom and stop at the plant.", (3, 1, 2))
ASKED = Question("What color is the plant?", "green", "color", (0, 1))


def episode(**changes: object) -> Episode:
    return replace(Episode("e7", "small_flat", SE2(2.0, 2.0, 0.0), ()), **changes)


# --- presets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "forward_m", "turn_deg", "size", "hfov_deg", "height_m", "max_steps", "success_m"),
    [
        ("pointnav_habitat_lab", 0.25, 10, (256, 256), 90, 1.25, 500, 0.2),
        ("objectnav_hm3d2022", 0.25, 30, (640, 480), 79, 0.88, 500, 0.1),
        ("objectnav_hm3d2023", 0.25, 30, (480, 640), 42, 1.31, 1000, 0.1),
        ("objectnav_habitat2020_paper", 0.25, 30, (640, 480), 79, 0.88, 500, 0.1),
        ("objectnav_robothor2020", 0.25, 30, (640, 480), 79, 0.88, 500, 1.0),
        ("vln_r2r_ce", 0.25, 15, (256, 256), 90, 1.25, 500, 3.0),
        ("vln_r2r_habitat_lab", 0.25, 15, (256, 256), 90, 1.25, 500, 0.2),
        ("vln_rxr_ce", 0.25, 30, (640, 480), 79, 0.88, 500, 3.0),
        ("eqa_embodied", 0.25, 9, (224, 224), 60, 0.88, 100, 0.0),
        ("eqa_habitat", 0.25, 10, (256, 256), 90, 1.25, 500, 0.0),
        ("areagoal_room", 0.25, 30, (640, 480), 79, 0.88, 500, 0.0),
        ("areagoal_stop", 0.25, 30, (640, 480), 79, 0.88, 500, 0.0),
        ("areagoal_minos", 0.1, 9, (84, 84), 45, 1.09, 500, 0.0),
    ],
)
def test_presets_have_the_published_numbers(
    name: str,
    forward_m: float,
    turn_deg: float,
    size: tuple[int, int],
    hfov_deg: float,
    height_m: float,
    max_steps: int,
    success_m: float,
) -> None:
    task = load_task(name)
    assert task.name == name
    assert len(task.source) > 40
    assert (task.magnitudes.forward_m, task.magnitudes.turn_deg) == (forward_m, turn_deg)
    assert (task.camera.width, task.camera.height) == size
    assert (task.camera.hfov_deg, task.camera.height_m) == (hfov_deg, height_m)
    assert (task.max_steps, task.success.distance_m) == (max_steps, success_m)


def test_paper_and_code_are_presets_of_their_own_where_they_differ() -> None:
    code, paper = load_task("objectnav_habitat2020"), load_task("objectnav_habitat2020_paper")
    assert (code.camera.depth_max_m, paper.camera.depth_max_m) == (5.0, 6.0)
    assert (code.gps_dimensions, paper.gps_dimensions) == (2, 3)
    assert replace(paper, name=code.name, camera=code.camera, gps_dimensions=2) == code
    older, newer = load_task("objectnav_robothor2020"), load_task("objectnav_robothor2021")
    assert older.categories == newer.categories
    assert older.actions == newer.actions
    assert (older.camera.tilt_deg, newer.camera.tilt_deg) == (0, -30)
    assert list(load_task("objectnav_hm3d2022").categories) == ["chair", "bed", "plant", "toilet", "tv_monitor", "sofa"]


def test_actions_stand_in_the_order_of_their_ids() -> None:
    assert load_task("vln_r2r_ce").actions == HABITAT.actions[:4]
    assert load_task("vln_rxr_ce").actions == HABITAT.actions
    assert load_task("eqa_embodied").actions == load_task("eqa_habitat").actions == HABITAT_2019.actions


def test_agents_see_words_and_no_pose() -> None:
    assert load_task("eqa_embodied").sensors == ("rgb", "question", "question_tokens")
    assert load_task("vln_r2r_ce").sensors == ("rgb", "depth", "instruction", "instruction_tokens")
    assert load_task("vln_rxr_ce").sensors == ("rgb", "depth", "instruction")


def test_the_definitions_of_being_in_a_room() -> None:
    rules = {name: load_task(f"areagoal_{name}").success for name in ("room", "stop", "minos")}
    assert {name: (rule.room, rule.when) for name, rule in rules.items()} == {
        "room": ("box", "end"),
        "stop": ("polygon", "stop"),
        "minos": ("polygon", "reached"),
    }


@pytest.mark.parametrize(
    ("name", "success"),
    [
        ("areagoal_room", Success("room", 1.0)),
        ("vln_rxr_ce", Success("distance", 0.0)),
        ("objectnav_robothor2021", Success("visible", 1.0, when="end")),
    ],
)
def test_rules_that_contradict_themselves_are_refused(name: str, success: Success) -> None:
    with pytest.raises(ValueError, match=r"distance_m|when"):
        replace(load_task(name), success=success)


@pytest.mark.parametrize(
    ("name", "rule"), [("vln_rxr_ce", "room"), ("areagoal_room", "answer"), ("eqa_habitat", "room")]
)
def test_rules_of_another_kind_of_task_are_refused(name: str, rule: str) -> None:
    with pytest.raises(ValueError, match="succeeds by the rule"):
        replace(load_task(name), success=Success(rule))


# --- instructions ---------------------------------------------------------------------------------------------------


def test_the_goal_of_an_instruction_is_the_end_of_its_route() -> None:
    task, scene = load_task("vln_rxr_ce"), flat()
    routed = episode(details=Route(instruction=SAID, reference_path=((2.0, 2.0, 0.0), (4.5, 3.5, 0.1))))
    assert vln.KIND.resolve_goals(task, scene, routed).goals == (Goal(4.5, 3.5, 0.1),)
    assert kind_of(task).targets(task, routed, scene) == [(4.5, 3.5)]
    stated = replace(routed, goals=(Goal(1.0, 2.0),))
    assert kind_of(task).targets(task, stated, scene) == [(1.0, 2.0)]


@pytest.mark.parametrize(
    ("changes", "message", "remedy"),
    [
        ({"goals": (Goal(1.0, 2.0),)}, "has no instruction", "R2R-CE"),
        ({"details": Route(Instruction("  ")), "goals": (Goal(1.0, 2.0),)}, "has no instruction", "R2R-CE"),
        ({"details": Route(SAID)}, "neither goals nor a reference path", "withhold"),
    ],
)
def test_an_episode_that_gives_no_instruction_says_so(changes: dict[str, object], message: str, remedy: str) -> None:
    task, scene = load_task("vln_rxr_ce"), flat()
    with pytest.raises(EpisodeError, match=message) as caught:
        check_episode(task, scene, episode(**changes), GeodesicMap(scene.map, task.robot_radius_m))
    assert "'e7'" in caught.value.message
    assert remedy in caught.value.remedy


# --- questions ------------------------------------------------------------------------------------------------------


def test_a_questions_goals_get_the_scenes_view_points_unless_they_have_their_own() -> None:
    task, scene = load_task("eqa_embodied"), flat()
    asked = episode(details=Inquiry(question=ASKED), goals=(Goal(5.0, 3.0, 0.5, "plant_1"),))
    views = scene.view_points["plant_1"]
    assert eqa.KIND.targets(task, asked, scene) == [(pose.x_m, pose.y_m) for pose in views]
    own = replace(asked, goals=(Goal(5.0, 3.0, 0.5, "plant_1", (SE2(4.4, 3.0, 0.0),)),))
    assert eqa.KIND.targets(task, own, scene) == [(4.4, 3.0)]
    elsewhere = replace(asked, goals=(Goal(4.0, 3.5, 0.5, "0_9_230"),))
    assert eqa.KIND.targets(task, elsewhere, scene) == [(4.0, 3.5)]


def test_the_rooms_of_a_question_are_those_of_its_goals() -> None:
    task, scene = load_task("eqa_embodied"), flat()
    asked = episode(
        details=Inquiry(question=ASKED), goals=(Goal(5.0, 3.0, 0.5, "plant_1"), Goal(1.0, 1.0, 0.5, "not of the scene"))
    )
    assert [room.id for room in eqa.goal_rooms(task, scene, asked)] == ["east", "west"]
    outside = episode(details=Inquiry(question=ASKED), goals=(Goal(50.0, 3.0),))
    assert eqa.goal_rooms(task, scene, outside) == ()


@pytest.mark.parametrize(
    ("changes", "message", "remedy"),
    [
        ({"goals": (Goal(1.0, 2.0),)}, "has no question", "episodes questions"),
        ({"details": Inquiry(ASKED)}, "'goals' is empty", "name the objects"),
    ],
)
def test_an_episode_that_asks_nothing_says_so(changes: dict[str, object], message: str, remedy: str) -> None:
    task, scene = load_task("eqa_embodied"), flat()
    with pytest.raises(EpisodeError, match=message) as caught:
        check_episode(task, scene, episode(**changes), GeodesicMap(scene.map, task.robot_radius_m))
    assert "'e7'" in caught.value.message
    assert remedy in caught.value.remedy


# --- rooms ----------------------------------------------------------------------------------------------------------


def test_a_room_is_reached_where_the_robot_fits_into_it() -> None:
    task, scene = load_task("areagoal_stop"), flat()
    wanted = episode(category="living_room")
    assert category_of(task, wanted).id == task.categories["living_room"].id
    (room,) = areagoal.goal_rooms(task, scene, wanted)
    assert room.id == "east"
    free = scene.map.navigable(task.robot_radius_m)
    places = areagoal.KIND.targets(task, wanted, scene)
    assert len(places) > 300
    for x_m, y_m in places:
        assert room.contains(x_m, y_m)
        assert free[scene.map.to_cell(x_m, y_m)]
    inner = areagoal.well_inside(task, wanted, scene)
    assert 0 < len(inner) < len(places)
    assert min(x for x, _ in inner) >= 3.0 + 0.9 * areagoal.WELL_INSIDE_M


@pytest.mark.parametrize(
    ("category", "message", "remedy"),
    [
        (None, "no goal category", "episodes generate --task areagoal_stop"),
        ("cellar", "'cellar' is not in task", "kitchen"),
        ("kitchen", "no room of category 'kitchen'", "scene.yaml"),
    ],
)
def test_rooms_that_are_not_there_say_why(category: str | None, message: str, remedy: str) -> None:
    task, scene = load_task("areagoal_stop"), flat()
    with pytest.raises(EpisodeError, match=message) as caught:
        check_episode(task, scene, episode(category=category), GeodesicMap(scene.map, task.robot_radius_m))
    assert "'e7'" in caught.value.message
    assert remedy in caught.value.remedy


def test_a_room_that_the_robot_is_too_big_for() -> None:
    task = replace(load_task("areagoal_stop"), robot_radius_m=2.5)
    with raises_naming(EpisodeError, "bedroom", "'small_flat'", "2.5 m"):
        areagoal.KIND.targets(task, episode(category="bedroom"), flat())


def test_every_task_can_be_stopped() -> None:
    for name in ("vln_r2r_ce", "eqa_habitat", "areagoal_minos"):
        assert Action.STOP in load_task(name).actions
