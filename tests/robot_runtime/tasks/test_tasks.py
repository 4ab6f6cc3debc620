"""The presets say what the papers and repositories say; goals are resolved, measured to and checked."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises_naming
from small_flat import flat, objectnav_task, occupancy, pointnav_task

from robot_runtime.actions.discrete import HABITAT, HABITAT_2019, ROBOTHOR, Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, EpisodeError, InvalidStart, UnreachableGoal
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.objectnav import kind as objectnav
from robot_runtime.task_kinds.pointnav.kind import KIND as POINTNAV
from robot_runtime.task_kinds.pointnav.kind import PointGoal
from robot_runtime.tasks import categories
from robot_runtime.tasks.categories import category_of
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.task import Success, Task, load_task, with_sensors

PRESETS = (
    "objectnav_habitat2020",
    "objectnav_robothor2021",
    "objectnav_robothor_ai2thor5",
    "pointnav_gps_compass",
    "pointnav_habitat2019",
    "pointnav_habitat2020",
)


def episode(x_m: float = 2.0, y_m: float = 2.0, *goals: Goal, category: str | None = None) -> Episode:
    return Episode("e7", "small_flat", SE2(x_m, y_m, 0.0), goals, category=category)


def check(task: Task, scene: Scene, candidate: Episode) -> Episode:
    return check_episode(task, scene, candidate, GeodesicMap(scene.map, task.robot_radius_m))


# --- sensors --------------------------------------------------------------------------------------------------------


def test_added_sensors_stand_behind_the_tasks_own_and_in_its_name() -> None:
    task = objectnav_task()
    assert with_sensors(task, ()) == task
    more = with_sensors(task, ["semantic", task.sensors[0], "semantic"])
    assert more.sensors == (*task.sensors, "semantic")
    assert more.name == f"{task.name}+semantic"
    assert replace(more, name=task.name, sensors=task.sensors) == task


@pytest.mark.parametrize(("name", "part"), [("sonar", "sonar"), ("semantic", "categories"), ("objectgoal", "pointnav")])
def test_a_sensor_that_tells_nothing_is_refused(name: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_sensors(pointnav_task(), [name])
    assert part in caught.value.message
    assert caught.value.remedy


def test_objects_have_the_id_of_the_category_that_they_count_as() -> None:
    task, scene = objectnav_task(), flat()
    ids = categories.object_category_ids(task, scene)
    assert ids.dtype == np.int32
    for item, number in zip(scene.objects, ids, strict=True):
        expected = [c.id for c in task.categories.values() if item.category in c.matches]
        assert [number] == (expected or [-1])
    assert {-1} < set(ids.tolist())


# --- presets --------------------------------------------------------------------------------------------------------


def test_every_preset_loads_and_names_its_source() -> None:
    assert set(PRESETS) <= {name for name, _ in config.presets("tasks")}
    for name in PRESETS:
        task = load_task(name)
        assert task.name == name
        assert len(task.source) > 40


@pytest.mark.parametrize(
    ("name", "forward_m", "turn_deg", "size", "hfov_deg", "height_m", "depth_m", "radius_m", "success_m"),
    [
        ("pointnav_habitat2019", 0.25, 10, (256, 256), 90, 1.5, (0, 10), 0.1, 0.2),
        ("pointnav_habitat2019_paper", 0.25, 10, (256, 256), 90, 1.5, (0, 10), 0.1, 0.2),
        ("pointnav_habitat2020", 0.25, 30, (640, 360), 70, 0.88, (0.1, 10), 0.18, 0.36),
        ("pointnav_gps_compass", 0.25, 30, (640, 480), 79, 0.88, (0.1, 10), 0.18, 0.36),
        ("objectnav_habitat2020", 0.25, 30, (640, 480), 79, 0.88, (0.5, 5), 0.18, 0.1),
        ("objectnav_robothor2021", 0.25, 30, (640, 480), 79, 0.88, (0, 20), 0.18, 1.0),
        ("objectnav_robothor_ai2thor5", 0.25, 30, (640, 480), 79, 0.88, (0, 20), 0.18, 1.0),
    ],
)
def test_presets_have_the_published_numbers(
    name: str,
    forward_m: float,
    turn_deg: float,
    size: tuple[int, int],
    hfov_deg: float,
    height_m: float,
    depth_m: tuple[float, float],
    radius_m: float,
    success_m: float,
) -> None:
    task = load_task(name)
    camera = task.camera
    assert (task.magnitudes.forward_m, task.magnitudes.turn_deg) == (forward_m, turn_deg)
    assert ((camera.width, camera.height), camera.hfov_deg, camera.height_m) == (size, hfov_deg, height_m)
    assert (camera.depth_min_m, camera.depth_max_m) == depth_m
    assert (task.robot_radius_m, task.success.distance_m, task.max_steps) == (radius_m, success_m, 500)


@pytest.mark.parametrize(
    ("name", "goal", "turn_deg", "size", "height_m", "pixel", "reach_m", "steps", "limits", "objects"),
    [
        ("house_cleanup_paper", "geometric", 10, 256, 1.5, (128, 176), 1.0, (0, 500), (1.0, None, None), (2, 5)),
        ("house_cleanup_tutorial", "geometric", 10, 256, 1.25, (128, 160), 2.0, (0, 50), (1.0, None, None), (1, 1)),
        ("house_cleanup_locobot", "geometric", 10, 256, 0.6, (128, 176), 2.0, (0, 500), (1.0, None, None), (2, 5)),
        (
            "room_rearrangement_paper",
            "experience",
            90,
            300,
            1.576,
            (150, 150),
            1.5,
            (1000, 1000),
            (None, 0.5, 0.2),
            (1, 5),
        ),
        (
            "room_rearrangement_2021",
            "experience",
            90,
            224,
            1.576,
            (112, 112),
            2.18,
            (250, 500),
            (None, 0.5, 0.2),
            (1, 5),
        ),
        ("rearrangement_geometric", "geometric", 30, 256, 0.88, (128, 128), 1.5, (0, 500), (0.3, None, None), (1, 3)),
        ("rearrangement_language", "language", 30, 256, 0.88, (128, 128), 1.5, (0, 500), (0.3, None, None), (1, 3)),
        ("rearrangement_predicate", "predicate", 30, 256, 0.88, (128, 128), 1.5, (0, 500), (None,) * 3, (1, 3)),
        (
            "rearrangement_experience",
            "experience",
            30,
            256,
            0.88,
            (128, 128),
            1.5,
            (250, 500),
            (None, 0.5, None),
            (1, 3),
        ),
        ("rearrangement_image", "image", 30, 256, 0.88, (128, 128), 1.5, (0, 500), (None, 0.5, None), (1, 3)),
    ],
)
def test_rearrangement_has_the_published_numbers(
    name: str,
    goal: str,
    turn_deg: float,
    size: int,
    height_m: float,
    pixel: tuple[int, int],
    reach_m: float,
    steps: tuple[int, int],
    limits: tuple[float | None, ...],
    objects: tuple[int, int],
) -> None:
    task = load_task(name)
    hand = task.settings
    assert hand is not None
    assert len(task.source) > 40
    assert (task.name, hand.goal, hand.capacity) == (name, goal, 1)
    assert (task.magnitudes.forward_m, task.magnitudes.turn_deg) == (0.25, turn_deg)
    assert (task.camera.width, task.camera.height, task.camera.height_m) == (size, size, height_m)
    assert (hand.crosshair[0] * size, hand.crosshair[1] * size) == pixel
    assert (hand.reach_m, hand.walkthrough_steps, task.max_steps) == (reach_m, *steps)
    assert (hand.max_translation_m, hand.min_iou, hand.max_openness) == limits
    assert (hand.min_objects, hand.max_objects) == objects
    assert (hand.inclusive_iou, task.success.when) == (False, "stop")


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"crosshair": (0.5, 1.5)}, "crosshair"),
        ({"reach_m": 0.0}, "reach_m"),
        ({"capacity": 0}, "capacity"),
        ({"max_translation_m": -1.0}, "negative"),
        ({"max_translation_m": None}, "no criterion"),
        ({"walkthrough_steps": 5}, "walkthrough_steps"),
        ({"min_objects": 9}, "min_objects"),
    ],
)
def test_what_a_rearrangement_cannot_be(changes: dict[str, Any], part: str) -> None:
    hand = load_task("house_cleanup_paper").settings
    assert hand is not None
    with pytest.raises(ValueError, match=part):
        replace(hand, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": None},
        {"success": Success("distance", 0.2)},
        {"actions": (Action.STOP, Action.MOVE_FORWARD)},
        {"kind": "pointnav", "sensors": ("rgb",)},
    ],
)
def test_moving_objects_belongs_together(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rearrangement|pointnav"):
        replace(load_task("house_cleanup_paper"), **changes)


def test_actions_stand_in_the_order_of_their_dialects_ids() -> None:
    assert load_task("objectnav_habitat2020").actions == HABITAT.actions
    assert load_task("pointnav_habitat2020").actions == HABITAT.actions[:4]
    assert load_task("pointnav_gps_compass").actions == HABITAT.actions[:4]
    assert load_task("pointnav_habitat2019").actions == HABITAT_2019.actions
    assert load_task("objectnav_robothor2021").actions == ROBOTHOR.actions


def test_sensors_are_those_that_each_challenge_gives() -> None:
    assert load_task("pointnav_gps_compass").sensors == (
        "rgb", "depth", "gps", "compass", "pointgoal", "pointgoal_with_gps_compass",
    )  # fmt: skip
    assert load_task("pointnav_habitat2019").sensors == ("rgb", "depth", "pointgoal_with_gps_compass")
    assert load_task("pointnav_habitat2019_paper").sensors == ("rgb", "depth", "gps", "pointgoal")
    assert load_task("pointnav_habitat2020").sensors == ("rgb", "depth", "pointgoal")
    assert load_task("objectnav_habitat2020").sensors == ("rgb", "depth", "objectgoal", "gps", "compass")
    assert load_task("objectnav_robothor2021").sensors == ("rgb", "depth", "objectgoal")


def test_looks_in_robothor_end_at_the_limits_of_the_build() -> None:
    older, newer = load_task("objectnav_robothor2021"), load_task("objectnav_robothor_ai2thor5")
    assert load_task("objectnav_robothor2020").look_limits_deg == older.look_limits_deg == (-30, 30)
    assert newer.look_limits_deg == (-60, 30)
    assert replace(newer, look_limits_deg=older.look_limits_deg, name=older.name, source=older.source) == older
    assert load_task("objectnav_habitat2020").look_limits_deg is None
    with pytest.raises(ValueError, match="look_limits_deg"):
        replace(load_task("objectnav_robothor2021"), look_limits_deg=(-20, 30))


def test_the_habitat_categories_count_in_the_papers_order() -> None:
    paper = (
        "chair", "table", "picture", "cabinet", "cushion", "sofa", "bed", "chest_of_drawers", "plant", "sink", "toilet",
        "stool", "towel", "tv_monitor", "shower", "bathtub", "counter", "fireplace", "gym_equipment", "seating",
        "clothes",
    )  # fmt: skip
    categories = load_task("objectnav_habitat2020").categories
    assert {name: category.id for name, category in categories.items()} == {name: i for i, name in enumerate(paper)}
    assert "HousePlant" in categories["plant"].matches
    assert "Television" in categories["tv_monitor"].matches
    claimed = [name for category in categories.values() for name in category.matches]
    assert len(claimed) == len(set(claimed)), "one thing in two categories"


def test_the_robothor_categories_count_alphabetically_and_look_down_at_the_start() -> None:
    task = load_task("objectnav_robothor2021")
    assert list(task.categories) == sorted(task.categories)
    assert [category.id for category in task.categories.values()] == list(range(12))
    assert task.camera.tilt_deg == -30
    assert task.success.rule == "visible"
    assert not task.camera.depth_normalized
    # challenge_config.yaml states the vertical angle.
    vertical = 2 * math.degrees(math.atan(480 / 2 / task.camera.intrinsics.fy))
    assert vertical == pytest.approx(63.453048374758716, abs=1e-9)


def test_only_objectnav_tilts_the_camera() -> None:
    for name in PRESETS:
        assert (Action.LOOK_UP in load_task(name).actions) == name.startswith("objectnav")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[stop, move_forward,", "[move_forward,", "lacks stop"),
        ("[stop, move_forward,", "[stop, fly,", "'actions.1'"),
        ("forward_m: 0.25", "forward_m: -1", "forward_m must be a positive number"),
        ("turn_deg: 30", "turn_deg: thirty", "'magnitudes.turn_deg'"),
        ("hfov_deg: 79", "hfov_deg: 180", "hfov_deg must lie in"),
        ("depth_min_m: 0.1", "depth_min_m: 11", "need 0 <= depth_min_m < depth_max_m"),
        ("max_steps: 500", "max_steps: 0", "max_steps must be positive"),
        ("max_steps: 500", "max_stepz: 500", "'max_stepz'"),
        ("kind: pointnav", "kind: objectnav", "needs 'categories'"),
        ("rule: distance", "rule: luck", "by the rule distance, not luck"),
    ],
)
def test_a_malformed_task_file_names_file_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = config.find_preset("tasks", "pointnav_gps_compass").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        load_task(str(path))
    assert caught.value.message.startswith(str(path))


# --- goals ----------------------------------------------------------------------------------------------------------


def test_pointnav_measures_to_every_goal_and_tells_the_first() -> None:
    task, scene = pointnav_task(), flat()
    candidate = episode(2, 2, Goal(0.5, 0.6), Goal(1.5, 1.6))
    assert POINTNAV.targets(task, candidate, scene) == [(0.5, 0.6), (1.5, 1.6)]
    assert POINTNAV.goal(task, scene, candidate, SE2()) == PointGoal(0.5, 0.6)
    with raises_naming(EpisodeError, "'e7'", "'goals'"):
        POINTNAV.resolve_goals(task, scene, episode())


def test_pointnav_measures_to_view_points_where_the_task_says_so_and_there_are_any() -> None:
    task = replace(pointnav_task(), success=replace(pointnav_task().success, target="view_points"))
    seen_from = Goal(0.5, 0.6, view_points=(SE2(1.0, 1.5), SE2(1.2, 1.5)))
    assert POINTNAV.targets(task, episode(2, 2, seen_from), flat()) == [(1.0, 1.5), (1.2, 1.5)]
    assert POINTNAV.targets(task, episode(2, 2, Goal(0.5, 0.6)), flat()) == [(0.5, 0.6)]
    assert POINTNAV.targets(pointnav_task(), episode(2, 2, seen_from), flat()) == [(0.5, 0.6)]


def test_objectnav_takes_every_instance_that_its_category_matches() -> None:
    task, scene = objectnav_task(), flat()
    chairs = objectnav.KIND.resolve_goals(task, scene, episode(category="chair"))
    assert [goal.object_id for goal in chairs.goals] == ["chair_west", "chair_east"]
    assert category_of(task, chairs).id == 0
    plants = objectnav.KIND.resolve_goals(task, scene, episode(category="plant"))
    assert [goal.object_id for goal in plants.goals] == ["plant_1"]
    assert plants.goals[0].view_points == scene.view_points["plant_1"]
    assert category_of(task, plants).id == 8


def test_objectnav_measures_to_view_points_of_all_instances() -> None:
    task, scene = objectnav_task(), flat()
    found = objectnav.KIND.targets(task, episode(category="chair"), scene)
    expected = [*scene.view_points["chair_west"], *scene.view_points["chair_east"]]
    assert found == [(pose.x_m, pose.y_m) for pose in expected]
    to_centre = replace(task, success=replace(task.success, target="goal"))
    assert objectnav.KIND.targets(to_centre, episode(category="chair"), scene) == [(1.0, 1.0), (5.0, 1.0)]


def test_view_points_from_the_episode_file_come_first() -> None:
    task, scene = objectnav_task(), flat()
    own = Goal(1.0, 1.0, 0.4, "x", (SE2(1.5, 1.5, 0.0),))
    candidate = episode(2, 2, own, category="chair")
    assert objectnav.KIND.resolve_goals(task, scene, candidate) is candidate
    assert objectnav.KIND.targets(task, candidate, scene) == [(1.5, 1.5)]


@pytest.mark.parametrize(
    ("category", "view_points", "message", "remedy"),
    [
        (None, True, "no goal category", "objectnav_habitat2020"),
        ("dragon", True, "'dragon' is not in task 'objectnav_habitat2020'", "chair"),
        ("bed", True, "no object of category 'bed'", "scene.yaml"),
        ("chair", False, "no view points of chair_west, chair_east", "view-points"),
    ],
)
def test_goals_that_cannot_be_resolved_say_why(
    category: str | None, view_points: bool, message: str, remedy: str
) -> None:
    with pytest.raises(EpisodeError, match=message) as caught:
        objectnav.KIND.resolve_goals(objectnav_task(), flat(view_points=view_points), episode(category=category))
    assert "'e7'" in caught.value.message
    assert remedy in caught.value.remedy


def test_instances_that_nobody_can_see_do_not_count() -> None:
    task = load_task("objectnav_robothor2021")
    with raises_naming(EpisodeError, "view points", "vase_1"):
        objectnav.KIND.resolve_goals(task, flat(), episode(category="Vase"))


# --- can it be run? -------------------------------------------------------------------------------------------------


def test_a_good_episode_comes_back_with_its_goals() -> None:
    scene = flat()
    candidate = episode(2, 2, Goal(4.0, 2.0))
    assert check(pointnav_task(), scene, candidate) == candidate
    assert len(check(objectnav_task(), scene, episode(category="chair")).goals) == 2


@pytest.mark.parametrize(
    ("place", "message"),
    [((3.0, 1.0), "0.000 m from an obstacle"), ((2.8, 1.0), r"0\.1\d\d m from an obstacle"), ((-4, 9), "off the map")],
)
def test_a_start_where_the_robot_does_not_fit_is_refused(place: tuple[float, float], message: str) -> None:
    with pytest.raises(InvalidStart, match=message) as caught:
        check(pointnav_task(), flat(), episode(*place, Goal(4.0, 2.0)))
    assert "'e7'" in caught.value.message
    assert "small_flat" in caught.value.message + caught.value.remedy
    assert "generate" in caught.value.remedy


def test_a_goal_that_no_way_leads_to_is_refused() -> None:
    with raises_naming(UnreachableGoal, "'e7'", "start"):
        check(pointnav_task(), flat(door=False), episode(2, 2, Goal(4.0, 2.0)))
    with raises_naming(UnreachableGoal, "'e7'", "navigable space"):
        check(pointnav_task(), flat(), episode(2, 2, Goal(3.0, 1.0)))
    with raises_naming(UnreachableGoal, "start"):
        check(objectnav_task(), flat(door=False), episode(2, 2, category="plant"))


def test_one_reachable_goal_of_several_is_enough() -> None:
    assert check(pointnav_task(), flat(door=False), episode(2, 2, Goal(4.0, 2.0), Goal(1.0, 2.0)))
    assert check(objectnav_task(), flat(door=False), episode(2, 2, category="chair"))


def test_a_map_without_free_space_has_no_place_to_start() -> None:
    scene = flat(map_=occupancy((0, 0, 6, 4)))
    with pytest.raises(InvalidStart):
        check(pointnav_task(), scene, episode(2, 2, Goal(4.0, 2.0)))
