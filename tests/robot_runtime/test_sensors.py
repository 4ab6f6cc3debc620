"""Observations in Habitat's conventions, by worked numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from open_room import make_scene
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2, gps, gps_to_start_frame, point_goal
from robot_runtime.errors import ConfigError, DeviceFault, EpisodeError
from robot_runtime.hal import CameraInfo, HeadState, Intrinsics, Mount, RgbdFrame
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Room
from robot_runtime.sensors import ObservationBuilder, check_camera
from robot_runtime.task_kinds.eqa.kind import Question
from robot_runtime.task_kinds.pointnav.kind import PointGoal
from robot_runtime.task_kinds.rearrangement.sensors import RearrangementGoal
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln.kind import Instruction
from robot_runtime.tasks.categories import CategoryGoal
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.goal_program import Program
from robot_runtime.tasks.kind import sensor_of
from robot_runtime.tasks.payloads import sensor_names
from robot_runtime.tasks.task import Category, Success, Task, TrainingCamera

CAMERA = TrainingCamera(
    width=8, height=6, hfov_deg=79.0, height_m=0.88, depth_min_m=0.5, depth_max_m=5.0, depth_normalized=True
)


INSTRUCTION = Instruction("Geh in die Küche.", (7, 3))
QUESTION = Question("What color is the vase?", "blue", "color", (0, 4))
CATEGORIES = {"vase": Category(11, ("vase",)), "mug": Category(3, ("mug",))}
COUNTS_AS = np.array([3, -1, 3, 11, -1, 11, 3, 3, -1], np.int32)  # the nine objects that make_frame shows


MOVES_OBJECTS = ("obj_start_gps_compass", "obj_goal_gps_compass", "held", "phase", "program", "imagegoal")
HAND = Rearrangement("geometric", (0.5, 0.7), 1.0, max_translation_m=1.0, max_objects=3)
CUP = RearrangedObject("cup", ObjectPose((0.0, 6.0, 0.5)), ObjectPose((-2.0, 6.0, 0.5)))
BOOK = RearrangedObject("book", ObjectPose((1.0, 1.0, 0.5)))
EPISODE = Episode(
    "1",
    "flat",
    SE2(1.0, 2.0, math.radians(90)),
    (),
    details=Layout(objects=(BOOK, CUP), program=Program(({"subject": "cup", "on": "table"},))),
)


def make_task(*sensors: str, **changes: Any) -> Task:
    kinds = {"objectgoal": "objectnav", "areagoal": "areagoal", "instruction": "vln", "question": "eqa"}
    kinds |= dict.fromkeys(MOVES_OBJECTS, "rearrangement")
    kind = next((kinds[name.removesuffix("_tokens")] for name in sensors if name.removesuffix("_tokens") in kinds), "")
    if kind in ("objectnav", "areagoal"):
        changes.setdefault("categories", CATEGORIES)
    rules = {"areagoal": Success("room"), "eqa": Success("answer"), "rearrangement": Success("objects")}
    success = rules.get(kind, Success("distance", 0.2))
    actions = (Action.STOP, Action.MOVE_FORWARD)
    if kind == "rearrangement":
        changes.setdefault("settings", HAND)
        actions = (*actions, Action.GRAB_RELEASE)
    return Task(
        name="test",
        kind=kind or "pointnav",
        source="",
        actions=actions,
        magnitudes=Magnitudes(0.25, 30, 30),
        sensors=sensors,
        camera=changes.pop("camera", CAMERA),
        robot_radius_m=0.18,
        max_steps=10,
        success=success,
        **changes,
    )


def make_frame(semantic: bool = False) -> RgbdFrame:
    rng = np.random.default_rng(0)
    return RgbdFrame(
        stamp_ns=0,
        rgb=rng.integers(0, 256, (6, 8, 3), np.uint8),
        depth_m=rng.uniform(0.4, 6, (6, 8)).astype(np.float32),
        semantic=rng.integers(-1, 9, (6, 8), np.int32) if semantic else None,
    )


def make_info(**changes: Any) -> CameraInfo:
    return replace(
        CameraInfo(Intrinsics.from_hfov(8, 6, 79.0), Mount(0.0, 0.0, 0.88), 30.0, 0.1, 10.0, 0.001, False), **changes
    )


# Start, robot and goal of the frame table: ROS start (1, 2) heading 90 degrees, robot (0, 5) heading 120, goal (-2, 6).
START = SE2(1.0, 2.0, math.radians(90))
ROBOT = SE2(0.0, 5.0, math.radians(120))
GOAL_IN_START = START.inverse().apply(-2.0, 6.0)


@pytest.mark.parametrize(
    ("sensor", "expected"),
    [
        ("gps", [3.0, -1.0]),  # 3 m forward, 1 m to the left: [forward, right]
        ("compass", [0.5236]),  # 30 degrees to the left
        ("pointgoal_with_gps_compass", [2.2361, 0.5835]),
        ("pointgoal", [5.0, 0.6435]),  # 4 m ahead of the start, 3 m to its left
    ],
)
def test_the_frame_table(sensor: str, expected: list[float]):
    observation = ObservationBuilder(make_task(sensor), START, PointGoal(*GOAL_IN_START)).build(make_frame(), ROBOT)
    np.testing.assert_allclose(observation[sensor], expected, atol=5e-5)


@pytest.mark.parametrize(
    ("pose", "gps", "compass", "rho", "azimuth_deg"),
    [
        (SE2(), [0, 0], 0, 2.0, 0.0),
        (SE2(1, 0, 0), [1, 0], 0, 1.0, 0.0),
        (SE2(0, 1, 0), [0, -1], 0, math.sqrt(5), -math.degrees(math.atan2(1, 2))),  # moved left: goal is to the right
        (SE2(0, 0, math.pi / 2), [0, 0], 90, 2.0, -90.0),  # turned left: goal is to the right
        (SE2(4, 0, 0), [4, 0], 0, 2.0, 180.0),  # overshot: goal is behind
    ],
)
def test_signs_from_the_origin(pose: SE2, gps: list[float], compass: float, rho: float, azimuth_deg: float):
    task = make_task("gps", "compass", "pointgoal_with_gps_compass", "pointgoal")
    observation = ObservationBuilder(task, SE2(), PointGoal(2.0, 0.0)).build(make_frame(), pose)
    np.testing.assert_allclose(observation["gps"], gps, atol=1e-6)
    np.testing.assert_allclose(np.degrees(observation["compass"]), [compass], atol=1e-4)
    rho_seen, azimuth_seen = observation["pointgoal_with_gps_compass"]
    assert rho_seen == pytest.approx(rho, abs=1e-6)
    assert abs(math.degrees(azimuth_seen)) == pytest.approx(abs(azimuth_deg), abs=1e-4)
    assert azimuth_seen * azimuth_deg >= 0 or abs(azimuth_deg) == 180
    np.testing.assert_array_equal(observation["pointgoal"], np.array([2.0, 0.0], np.float32))


def test_gps_of_three_dimensions_is_the_start_frame_in_habitat_axes():
    task = replace(make_task("gps"), gps_dimensions=3)
    seen = ObservationBuilder(task, START, None).build(make_frame(), ROBOT)["gps"]
    np.testing.assert_allclose(seen, [-1.0, 0.0, -3.0], atol=1e-6)  # 1 m to the left, on the floor, 3 m forward
    assert sensor_of(task, "gps").shape(task) == (3,)


@pytest.mark.parametrize(
    ("form", "expected"), [("polar", [2.2383, 0.5835, 1.6155]), ("cartesian", [-1.2321, -0.1, -1.866])]
)
def test_point_goals_have_habitats_forms(form: Any, expected: list[float]):
    """habitat-lab ``tasks/nav/nav.py``, PointGoalSensor: cartesian [forward, right], or [right, up, backward]."""
    names, goal = ("pointgoal", "pointgoal_with_gps_compass"), PointGoal(*GOAL_IN_START, -0.1)
    task = make_task(*names, pointgoal_format=form, pointgoal_dimensions=3)
    seen = ObservationBuilder(task, START, goal).build(make_frame(), ROBOT)
    np.testing.assert_allclose(seen["pointgoal_with_gps_compass"], expected, atol=5e-5)
    flat = replace(task, pointgoal_dimensions=2)
    seen_flat = ObservationBuilder(flat, START, goal).build(make_frame(), ROBOT)
    two = [2.2361, 0.5835] if form == "polar" else [1.866, -1.2321]
    np.testing.assert_allclose(seen_flat["pointgoal_with_gps_compass"], two, atol=5e-5)
    for setting, shown in ((task, seen), (flat, seen_flat)):
        assert point_goal(shown["pointgoal"], form) == pytest.approx((4.0, 3.0), abs=1e-5)
        for name in names:
            sensor = sensor_of(setting, name)
            low, high = sensor.bounds(setting)
            assert shown[name].shape == sensor.shape(setting)
            assert np.all((shown[name] >= low) & (shown[name] <= high))


def test_heading_is_habitats_in_map_whatever_the_localizers_frame():
    odometry = ROBOT.relative_to(START)
    seen = ObservationBuilder(make_task("heading"), SE2(), origin=START).build(make_frame(), odometry)
    np.testing.assert_allclose(seen["heading"], [2.0944], atol=5e-5)


def test_proximity_is_the_way_from_the_robots_rim_to_what_is_not_free():
    """Walls 2.95 m from the room's middle; the robot's radius is 0.18 m; 2 m is the most, 0 outside the map."""
    builder = ObservationBuilder(make_task("proximity"), START, origin=SE2(), scene=make_scene())

    def seen(x_m: float, y_m: float) -> float:
        return float(builder.build(make_frame(), START @ SE2(x_m, y_m, 0.0))["proximity"][0])

    assert seen(2.0, 0.5) == pytest.approx(0.95 - 0.18, abs=0.03)
    assert (seen(0.0, 0.0), seen(2.94, 0.5), seen(50.0, 0.0)) == (2.0, 0.0, 0.0)


def test_intrinsics_and_pose_of_the_camera():
    """A point on the image's center, 2 m ahead of a camera that looks down by 30 degrees, lies where geometry says."""
    task = make_task("camera_intrinsics", "camera_pose")
    builder = ObservationBuilder(task, START, mount=(0.1, 0.0, 0.9))
    seen = builder.build(make_frame(), ROBOT, None, HeadState(0, 0.0, math.radians(-30), False))
    k = task.camera.intrinsics
    matrix = [[k.fx, 0, k.cx], [0, k.fy, k.cy], [0, 0, 1]]
    np.testing.assert_allclose(seen["camera_intrinsics"].reshape(3, 3), matrix, rtol=1e-6)
    point = seen["camera_pose"].reshape(4, 4) @ [0, 0, 2, 1]
    ahead_m = 0.1 + 2 * math.cos(math.radians(30))
    np.testing.assert_allclose(point, [*ROBOT.relative_to(START).apply(ahead_m, 0), 0.9 - 1.0, 1], atol=1e-6)
    level = ObservationBuilder(task, START).build(make_frame(), START)["camera_pose"].reshape(4, 4)
    np.testing.assert_allclose(level @ [0, 0, 1, 1], [1, 0, CAMERA.height_m, 1], atol=1e-6)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_policies_read_either_gps(dimensions: int):
    assert gps_to_start_frame(gps(START, ROBOT, dimensions)) == pytest.approx((3.0, 1.0))


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-math.pi, math.pi), st.floats(-20, 20), st.floats(-20, 20))
def test_gps_compass_and_static_goal_give_the_dynamic_goal(x: float, y: float, yaw: float, gx: float, gy: float):
    task = make_task("gps", "compass", "pointgoal", "pointgoal_with_gps_compass")
    seen = ObservationBuilder(task, START, PointGoal(gx, gy)).build(make_frame(), SE2(x, y, yaw))
    rho, azimuth = seen["pointgoal"].astype(float)
    forward, right = seen["gps"].astype(float)
    (heading,) = seen["compass"].astype(float)
    ahead, left = rho * math.cos(azimuth) - forward, rho * math.sin(azimuth) + right
    c, s = math.cos(heading), math.sin(heading)
    rho_now, azimuth_now = seen["pointgoal_with_gps_compass"].astype(float)
    np.testing.assert_allclose(
        [rho_now * math.cos(azimuth_now), rho_now * math.sin(azimuth_now)],
        [c * ahead + s * left, -s * ahead + c * left],
        atol=1e-3,
    )


@pytest.mark.parametrize("name", sensor_names())
def test_every_sensor_has_the_shape_type_and_bounds_that_the_table_says(name: str):
    task = make_task(name, categories=CATEGORIES)
    sensor = sensor_of(task, name)
    goals = (PointGoal(1.0, -1.0), CategoryGoal(11), INSTRUCTION, QUESTION, RearrangementGoal(EPISODE, make_frame()))
    goal = {type(goal): goal for goal in goals}.get(sensor.goal_type or PointGoal)
    builder = ObservationBuilder(task, START, goal, COUNTS_AS, START, make_scene())
    value = builder.build(make_frame(semantic=True), ROBOT)[name]
    if sensor.dtype is np.str_:
        assert (value.dtype.kind, value.shape) == ("U", sensor.shape(task))
        return
    low, high = sensor.bounds(task)
    assert value.dtype == sensor.dtype
    assert value.shape == sensor.shape(task)
    assert np.all(value >= np.asarray(low, sensor.dtype))
    assert np.all(value <= np.asarray(high, sensor.dtype))


def test_exact_shapes_and_types():
    tasks = {name: make_task(name, categories=CATEGORIES) for name in sensor_names()}
    sensors = {name: sensor_of(task, name) for name, task in tasks.items()}
    table = {name: (row.shape(tasks[name]), np.dtype(row.dtype).name) for name, row in sensors.items()}
    assert table == {
        "rgb": ((6, 8, 3), "uint8"),
        "depth": ((6, 8, 1), "float32"),
        "gps": ((2,), "float32"),
        "compass": ((1,), "float32"),
        "heading": ((1,), "float32"),
        "proximity": ((1,), "float32"),
        "camera_intrinsics": ((9,), "float32"),
        "camera_pose": ((16,), "float32"),
        "pointgoal": ((2,), "float32"),
        "pointgoal_with_gps_compass": ((2,), "float32"),
        "objectgoal": ((1,), "int64"),
        "semantic": ((6, 8, 1), "int32"),
        "instruction": ((), "str"),
        "instruction_tokens": ((200,), "int64"),
        "question": ((), "str"),
        "question_tokens": ((200,), "int64"),
        "areagoal": ((1,), "int64"),
        "floor_plan": ((), "str"),
        "exposure": ((1,), "int64"),
        "obj_start_gps_compass": ((6,), "float32"),
        "obj_goal_gps_compass": ((6,), "float32"),
        "held": ((1,), "int64"),
        "phase": ((1,), "int64"),
        "program": ((), "str"),
        "imagegoal": ((6, 8, 3), "uint8"),
    }


def rearrangement_seen(held: tuple[str, ...] = (), phase: str = "unshuffle", origin: SE2 = START) -> dict[str, Any]:
    frame = make_frame()
    builder = ObservationBuilder(make_task(*MOVES_OBJECTS), START, RearrangementGoal(EPISODE), origin=origin)
    return builder.build(frame, ROBOT, RearrangementGoal(EPISODE, frame, held, phase))


def test_objects_to_be_moved_are_told_from_where_the_robot_is():
    """The robot looks along 120 degrees from (0, 5): the cup 1 m north lies 30 degrees to its right."""
    seen = rearrangement_seen()
    away_m, bearing = math.hypot(2, 1), math.atan2(1, -2) - math.radians(120)
    np.testing.assert_allclose(seen["obj_start_gps_compass"], [1, math.radians(-30), -1, 0, -1, 0], atol=1e-6)
    np.testing.assert_allclose(seen["obj_goal_gps_compass"], [away_m, bearing, -1, 0, -1, 0], atol=1e-6)


def test_where_objects_are_does_not_depend_on_the_localizers_frame():
    """Odometry starts at its own origin; the episode's start is where that is in the map."""
    builder = ObservationBuilder(make_task(*MOVES_OBJECTS), SE2(), RearrangementGoal(EPISODE), origin=START)
    seen = builder.build(make_frame(), ROBOT.relative_to(START), RearrangementGoal(EPISODE, make_frame()))
    np.testing.assert_allclose(seen["obj_start_gps_compass"], rearrangement_seen()["obj_start_gps_compass"], atol=1e-6)


def test_the_agent_gets_the_goal_of_a_rearrangement_in_words():
    """LanguageGoal: Batra et al. 2020 (Rearrangement), section 3."""
    told = replace(EPISODE, info={"instruction": "Bring the cup to the kitchen."})
    goal = RearrangementGoal(told)
    task = make_task("held", "instruction", settings=replace(HAND, goal="language"))
    assert (
        ObservationBuilder(task, START, goal).build(make_frame(), ROBOT, goal)["instruction"]
        == told.info["instruction"]
    )
    silent = RearrangementGoal(EPISODE)
    with raises_naming(EpisodeError, "episode '1'", "info: {instruction"):
        ObservationBuilder(task, START, silent).build(make_frame(), ROBOT, silent)


@pytest.mark.parametrize(("held", "number"), [((), -1), (("cup",), 0), (("cup", "book"), 3), (("book", "cup"), 0)])
def test_what_is_carried_is_told_by_its_place_among_the_objects(held: tuple[str, ...], number: int):
    assert rearrangement_seen(held)["held"].tolist() == [number]


def test_phase_program_and_image_of_the_goal():
    assert (rearrangement_seen(phase="walkthrough")["phase"], rearrangement_seen()["phase"]) == ([0], [1])
    assert json.loads(str(rearrangement_seen()["program"])) == {"targets": [{"subject": "cup", "on": "table"}]}
    np.testing.assert_array_equal(rearrangement_seen()["imagegoal"], make_frame().rgb)


def test_more_objects_than_the_task_shows_are_an_error():
    crowded = replace(
        EPISODE, details=replace(Layout.of(EPISODE), objects=tuple(replace(CUP, id=f"cup {i}") for i in range(4)))
    )
    builder = ObservationBuilder(make_task("obj_start_gps_compass"), START, RearrangementGoal(crowded))
    with raises_naming(EpisodeError, "4 objects"):
        builder.build(make_frame(), ROBOT, RearrangementGoal(crowded))


@pytest.mark.parametrize("name", ["program", "imagegoal", "held"])
def test_what_the_episode_does_not_have_is_an_error(name: str):
    bare = None if name == "held" else RearrangementGoal(replace(EPISODE, details=Layout((BOOK, CUP))))
    with pytest.raises(ConfigError):
        ObservationBuilder(make_task(name), START, bare).build(make_frame(), ROBOT)


def test_words_are_text_and_tokens_with_the_padding_of_their_dataset():
    told = ObservationBuilder(make_task("instruction", "instruction_tokens"), START, INSTRUCTION)
    asked = ObservationBuilder(make_task("question", "question_tokens"), START, QUESTION)
    seen = told.build(make_frame(), ROBOT) | asked.build(make_frame(), ROBOT)
    assert str(seen["instruction"]) == "Geh in die Küche."
    assert str(seen["question"]) == "What color is the vase?"
    assert seen["instruction_tokens"].tolist() == [7, 3, *[0] * 198]
    assert seen["question_tokens"].tolist() == [0, 4, *[-1] * 198]


@pytest.mark.parametrize("tokens", [(), (1,) * 201])
def test_tokens_that_are_not_there_or_too_many_are_an_error(tokens: tuple[int, ...]):
    builder = ObservationBuilder(make_task("question_tokens"), START, replace(QUESTION, tokens=tokens))
    with raises_naming(EpisodeError, "question_tokens", f"question has {len(tokens)}") as caught:
        builder.build(make_frame(), ROBOT)
    assert "'question' shows the text" in caught.value.remedy


@pytest.mark.parametrize("name", ["instruction", "question_tokens", "areagoal"])
def test_a_goal_that_the_episode_lacks_is_an_error(name: str):
    with raises_naming(ConfigError, f"sensor '{name}'"):
        ObservationBuilder(make_task(name), START)


def test_keys_come_in_the_tasks_order_and_images_are_the_frames():
    frame = make_frame()
    seen = ObservationBuilder(make_task("objectgoal", "rgb"), START, CategoryGoal(4)).build(frame, ROBOT)
    assert list(seen) == ["objectgoal", "rgb"]
    np.testing.assert_array_equal(seen["rgb"], frame.rgb)
    assert seen["objectgoal"].tolist() == [4]
    assert not any(array.flags.writeable for array in seen.values())
    assert frame.rgb.flags.writeable


def test_semantic_tells_the_category_of_objectgoal_and_not_which_object():
    """Two mugs (category 3), a lamp that no category of the task matches, a vase (11); and pixels of no object."""
    objects = np.full((6, 8), -1, np.int32)
    objects[0, :4] = 0, 1, 2, 3
    task = make_task("objectgoal", "semantic", categories=CATEGORIES)
    builder = ObservationBuilder(task, START, CategoryGoal(3), np.array([3, -1, 3, 11], np.int32))
    seen = builder.build(replace(make_frame(), semantic=objects), ROBOT)
    assert seen["semantic"].shape == (6, 8, 1)
    assert seen["semantic"][0, :, 0].tolist() == [3, -1, 3, 11, -1, -1, -1, -1]
    assert (seen["semantic"][1:] == -1).all()
    assert (seen["semantic"] == seen["objectgoal"]).sum() == 2


def test_an_object_that_the_scene_does_not_have_is_a_fault():
    frame = replace(make_frame(), semantic=np.full((6, 8), 4, np.int32))
    task = make_task("semantic", categories=CATEGORIES)
    with raises_naming(DeviceFault, "object 4", "4 objects"):
        ObservationBuilder(task, START, None, np.zeros(4, np.int32)).build(frame, ROBOT)


def test_the_floor_plan_is_in_the_start_frame():
    room = Room("a", "kitchen", ((1, 2), (1, 4), (0, 4)))
    scene = replace(make_scene(), file=replace(make_scene().file, rooms=(room,)))
    builder = ObservationBuilder(make_task("floor_plan"), SE2(), origin=START, scene=scene)
    (shown,) = json.loads(str(builder.build(make_frame(), SE2())["floor_plan"]))
    assert shown["name"] == "kitchen"
    np.testing.assert_allclose(shown["polygon"], [[0, 0], [2, 0], [2, 1]], atol=1e-9)


def test_semantic_needs_categories_to_tell():
    with pytest.raises(ValueError, match="categories"):
        make_task("semantic")


def test_compass_stays_in_its_interval():
    task = make_task("compass")
    seen = ObservationBuilder(task, SE2(0, 0, math.radians(170))).build(make_frame(), SE2(0, 0, math.radians(-170)))
    assert math.degrees(seen["compass"][0]) == pytest.approx(20.0, abs=1e-4)


@pytest.mark.parametrize("sensor", ["pointgoal", "pointgoal_with_gps_compass", "objectgoal"])
def test_a_sensor_without_its_goal_is_refused_at_the_start(sensor: str):
    with raises_naming(ConfigError, sensor):
        ObservationBuilder(make_task(sensor), START)


def test_a_frame_of_another_size_is_a_fault():
    frame = replace(make_frame(), depth_m=np.zeros((3, 4), np.float32))
    with raises_naming(DeviceFault, "(3, 4)"):
        ObservationBuilder(make_task("rgb"), START).build(frame, ROBOT)


def test_a_frame_without_object_ids_is_a_fault():
    with raises_naming(DeviceFault, "camera"):
        ObservationBuilder(make_task("semantic", categories=CATEGORIES), START).build(make_frame(), ROBOT)


def test_the_training_camera_is_accepted():
    check_camera(make_task("rgb"), make_info())
    check_camera(make_task("rgb"), make_info(intrinsics=Intrinsics.from_hfov(8, 6, 79.4)))


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({"intrinsics": Intrinsics.from_hfov(16, 12, 79.0)}, ("16x12", "8x6")),
        ({"intrinsics": Intrinsics.from_hfov(8, 6, 54.6)}, ("54.60", "79.00")),
        ({"mount": Mount(0.05, 0.0, 0.59)}, ("0.590", "0.880")),
    ],
)
def test_another_camera_is_refused_naming_both_values(found: dict[str, Any], named: tuple[str, str]):
    with pytest.raises(ConfigError) as caught:
        check_camera(make_task("rgb"), make_info(**found))
    assert all(value in caught.value.message for value in named)
    assert caught.value.remedy


def test_a_camera_without_object_ids_is_refused_where_the_task_needs_them():
    with raises_naming(ConfigError, "semantic"):
        check_camera(make_task("semantic", categories=CATEGORIES), make_info())
    check_camera(make_task("semantic", categories=CATEGORIES), make_info(has_semantic=True))
