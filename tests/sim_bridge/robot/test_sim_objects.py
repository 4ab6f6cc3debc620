"""Movable objects: at rest, pushed, taken, carried, let go, seen where they are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming
from things_room import BOWL, CRATE, MUG, TABLE, crosshair_on, make_scene, make_things_robot, on_floor

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, EpisodeError, InvalidCommand, InvalidStart, NotConnected, SceneError
from robot_runtime.hal import Manipulator, ObjectTracker, Robot, Velocity, Zone
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose
from robot_runtime.scenes.scene import Asset, Scene, SceneObject, find_scene, load_scene
from sim_bridge.physics.movable_objects import in_object, mass_kg
from sim_bridge.physics.scene_model import build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.driver import make_robot

REACH_M = 1.2
ON_MUG = crosshair_on(MUG.center)
ON_BOWL = crosshair_on(BOWL.center)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the room's meshes."""
    return tmp_path_factory.mktemp("things")


@pytest.fixture(scope="module")
def things(folder: Path) -> Scene:
    """The room."""
    return make_scene(folder)


@pytest.fixture
def robot(things: Scene) -> Iterator[Robot]:
    """In the room, before the table, facing it."""
    with make_things_robot(things) as made:
        made.placer.place_objects({})
        made.placer.place(SE2(), 0.0)
        yield made


def hand(robot: Robot) -> Manipulator:
    assert robot.manipulator is not None
    return robot.manipulator


def tracker(robot: Robot) -> ObjectTracker:
    assert robot.tracker is not None
    return robot.tracker


def poses(robot: Robot) -> dict[str, ObjectPose]:
    return dict(tracker(robot).objects(0.1).poses)


def seen(robot: Robot, name: str) -> np.ndarray:
    """Pixels in which an object is seen."""
    robot.clock.sleep(0.1)
    frame = robot.camera.capture(robot.clock.now_ns(), 1.0, semantic=True)
    assert frame.semantic is not None
    return frame.semantic == ["table", "mug", "bowl", "crate"].index(name)


def drive(robot: Robot, way_m: float) -> Zone:
    """Forward, until the bumper is pressed or the way is done; what was pressed then."""
    begin = robot.referee.latest(1.0).pose
    for _ in range(1000):
        robot.base.command(Velocity(0.3, 0.0))
        robot.clock.sleep(0.01)
        if robot.base.state(0.1).bumper or robot.referee.latest(1.0).pose.distance_to(begin) >= way_m:
            break
    pressed = robot.base.state(0.1).bumper
    robot.base.stop()
    robot.clock.sleep(0.3)
    return pressed


# --- at rest ---


def test_objects_lie_where_the_scene_has_them_whatever_gravity_would_do(folder: Path) -> None:
    flying = replace(MUG, center=(0.0, 0.0, 1.5))
    world = World(build_model(make_scene(folder, flying), objects_move=True))
    for _ in range(200):
        world.advance(0.0, 0.0)
    assert world.objects.poses() == {"mug": ObjectPose((0.0, 0.0, 1.5))}


def test_a_generated_flat_is_at_rest_and_has_enough_to_move() -> None:
    scene = load_scene(find_scene("apartment"))
    world = World(build_model(scene, objects_move=True))
    world.place(scene.view_points["mug_1"][0])
    world.objects.put({})
    before = world.objects.poses()
    assert len(before) >= 15
    assert set(before) == {item.id for item in scene.objects if item.movable}
    world.objects.wake_all()
    for _ in range(200):
        world.advance(0.0, 0.0)
    for name, pose in world.objects.poses().items():
        assert math.dist(pose.position, before[name].position) < 0.01, name
        assert world.objects.at_rest(name)


def test_what_does_not_move_is_compiled_as_before(folder: Path) -> None:
    still, moving = build_model(make_scene(folder)), build_model(make_scene(folder), objects_move=True)
    assert (still.model.nq, still.model.nv, still.movable) == (3, 3, ())
    assert still.model.opt.enableflags == 0
    assert still.model.opt.gravity.tolist() == [0, 0, 0]
    assert moving.model.nq == 3 + 7 * 3
    assert moving.model.jnt_qposadr[:3].tolist() == [0, 1, 2]


@given(st.floats(-180, 180), st.tuples(*[st.floats(-2, 2)] * 3))
def test_an_asset_stands_in_its_object_as_it_stood_in_the_scene(yaw_deg: float, at: tuple[float, float, float]) -> None:
    item = SceneObject("x", "X", (0.3, -0.2, 0.5), (0.1, 0.2, 0.3), yaw_deg, movable=True)
    asset = Asset("x", "x", at)
    position, quaternion = in_object(item, asset)
    back = SE2(item.center[0], item.center[1], math.radians(yaw_deg))
    x_m, y_m = back.apply(position[0], position[1])
    assert (x_m, y_m, position[2] + item.center[2]) == pytest.approx(at, abs=1e-9)
    assert math.hypot(*quaternion) == pytest.approx(1.0)


def test_weights_are_those_of_household_goods() -> None:
    assert 0.2 < mass_kg((0.11, 0.08, 0.095)) < 0.5
    assert 1.0 < mass_kg((0.33, 0.23, 0.24)) < 2.5
    assert mass_kg((0.2, 0.2, 0.0)) > 0


# --- placing ---


def test_objects_are_put_exactly_and_the_others_where_the_scene_has_them(robot: Robot) -> None:
    tilted = ObjectPose((-1.0, -1.0, 0.4), (math.cos(0.2), math.sin(0.2), 0.0, 0.0))
    robot.placer.place_objects({"mug": tilted})
    robot.placer.place(SE2(), 0.0)
    robot.clock.sleep(1.0)
    assert poses(robot)["mug"] == tilted
    assert poses(robot)["crate"] == CRATE.pose
    robot.placer.place_objects({})
    robot.placer.place(SE2(), 0.0)
    assert poses(robot)["mug"] == MUG.pose


def test_an_object_may_be_put_where_the_robot_stood_before(robot: Robot) -> None:
    here = on_floor(CRATE, 0.0, 0.0)
    robot.placer.place_objects({"crate": here})
    with raises_naming(InvalidStart, "crate"):
        robot.placer.place(SE2(0.1, 0.0, 0.0), 0.0)
    robot.placer.place(SE2(0.0, -1.0, 0.0), 0.0)
    robot.clock.sleep(1.0)
    assert poses(robot)["crate"] == here


@pytest.mark.parametrize(
    ("name", "pose"),
    [
        ("mugg", MUG.pose),
        ("table", TABLE.pose),
        ("mug", ObjectPose((math.nan, 0.0, 0.0))),
        ("mug", ObjectPose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))),
        ("mug", ObjectPose((0.0, 0.0, 0.0), openness=0.5)),
    ],
)
def test_what_cannot_be_placed_is_refused_before_anything_moves(robot: Robot, name: str, pose: ObjectPose) -> None:
    with raises_naming(EpisodeError, repr(name)):
        robot.placer.place_objects({"crate": on_floor(CRATE, 1.0, -1.5), name: pose})
    assert poses(robot)["crate"] == CRATE.pose


def test_a_robot_made_for_another_task_moves_no_objects(things: Scene) -> None:
    robot = make_robot(RobotContext(things, None, seed=0), "test", {}, "test options")
    assert robot.manipulator is None
    assert robot.tracker is None
    with raises_naming(DeviceFault):
        robot.placer.place_objects({})


def test_a_scene_without_anything_to_move_is_refused(folder: Path) -> None:
    with raises_naming(SceneError, "scene.yaml", "movable"):
        make_things_robot(make_scene(folder, TABLE))


def test_objects_that_episodes_bring_are_there_only_where_an_episode_has_them(things: Scene) -> None:
    brick = SceneObject("brick", "foam_brick", (0.0, 0.0, 0.0), (0.05, 0.075, 0.05), movable=True)
    with make_things_robot(things, added=(brick,)) as robot:
        robot.placer.place_objects({})
        assert "brick" not in poses(robot)
        robot.placer.place_objects({"brick": on_floor(brick, 0.6, 0.5)})
        robot.placer.place(SE2(0.0, 0.5, 0.0), math.radians(-30))
        assert poses(robot)["brick"] == on_floor(brick, 0.6, 0.5)
        before = robot.camera.capture(robot.clock.now_ns(), 1.0)
        robot.placer.place_objects({})
        robot.placer.place(SE2(0.0, 0.5, 0.0), math.radians(-30))
        after = robot.camera.capture(robot.clock.now_ns(), 1.0)
        assert not np.array_equal(before.rgb, after.rgb)
        assert before.depth_m.sum() < after.depth_m.sum()


# --- taking and letting go ---


def test_the_first_thing_under_the_crosshair_is_taken_out_of_the_world(robot: Robot) -> None:
    assert seen(robot, "mug").any()
    near = robot.camera.capture(robot.clock.now_ns(), 1.0).depth_m[seen(robot, "mug")].mean()
    where = seen(robot, "mug")
    assert hand(robot).grab_release(ON_MUG, REACH_M, 1) == Grab(GrabOutcome.GRABBED, "mug")
    assert hand(robot).held == ("mug",)
    assert tracker(robot).objects(0.1).held == ("mug",)
    assert "mug" not in poses(robot)
    assert not seen(robot, "mug").any()
    assert robot.camera.capture(robot.clock.now_ns(), 1.0).depth_m[where].mean() > near


def test_what_lay_on_it_falls(robot: Robot) -> None:
    hand(robot).grab_release(ON_MUG, REACH_M, 1)
    robot.clock.sleep(1.0)
    assert poses(robot)["bowl"].position[2] == pytest.approx(TABLE.size[2] + BOWL.size[2] / 2, abs=0.002)
    assert poses(robot)["crate"] == CRATE.pose


def test_it_is_let_go_where_it_was_if_the_robot_has_not_moved(robot: Robot) -> None:
    hand(robot).grab_release(ON_BOWL, REACH_M, 1)
    assert hand(robot).grab_release((0.0, 0.0), REACH_M, 1) == Grab(GrabOutcome.RELEASED, "bowl")
    assert hand(robot).held == ()
    assert math.dist(poses(robot)["bowl"].position, BOWL.center) < 0.001
    assert seen(robot, "bowl").any()


def test_it_is_let_go_at_the_same_pose_relative_to_the_robot_and_falls_to_the_floor(robot: Robot) -> None:
    hand(robot).grab_release(ON_BOWL, REACH_M, 1)
    robot.placer.place(SE2(-1.0, -1.0, math.radians(90)), 0.0)
    assert hand(robot).held == ("bowl",)
    assert hand(robot).grab_release(ON_BOWL, REACH_M, 1).outcome is GrabOutcome.RELEASED
    x_m, y_m, z_m = poses(robot)["bowl"].position
    assert (x_m, y_m) == pytest.approx((-1.0, -1.0 + BOWL.center[0]), abs=0.02)
    assert z_m == pytest.approx(BOWL.size[2] / 2, abs=0.005)
    upright = poses(robot)["bowl"].quaternion
    assert abs(upright[0]) == pytest.approx(math.cos(math.radians(45)), abs=0.02)


def test_it_stays_in_the_air_where_the_option_says_so(things: Scene) -> None:
    with make_things_robot(things, manipulator={"release": "stay"}) as robot:
        robot.placer.place_objects({})
        robot.placer.place(SE2(), 0.0)
        hand(robot).grab_release(ON_BOWL, REACH_M, 1)
        robot.placer.place(SE2(-1.0, -1.0, 0.0), 0.0)
        assert hand(robot).grab_release(ON_BOWL, REACH_M, 1).outcome is GrabOutcome.RELEASED
        robot.clock.sleep(1.0)
        expected = (BOWL.center[0] - 1.0, -1.0, BOWL.center[2])
        assert poses(robot)["bowl"].position == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("start", "crosshair", "why"),
    [
        (SE2(), crosshair_on((0.9, 0.35, 0.7)), "table.*cannot be moved"),
        (SE2(-1.0, 0.0, 0.0), (0.5, 0.5), "within"),
        (SE2(-0.5, 0.0, 0.0), crosshair_on(MUG.center, -0.5), "within 1.2 m"),
        (SE2(0.0, 1.5, 0.0), (0.5, 0.6), "partition.*cannot be moved"),
        (SE2(), (0.5, 0.0), "within"),
    ],
)
def test_nothing_is_taken_that_is_fixed_hidden_or_out_of_reach(
    robot: Robot, start: SE2, crosshair: tuple[float, float], why: str
) -> None:
    robot.placer.place_objects({"crate": on_floor(CRATE, 1.2, 1.5)})
    robot.placer.place(start, 0.0)
    grab = hand(robot).grab_release(crosshair, REACH_M, 1)
    assert grab.outcome is GrabOutcome.NOTHING
    assert grab.object_id is None
    assert re.search(why, grab.detail)
    assert hand(robot).held == ()


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (SE2(1.5, 0.0, 0.0), "no floor"),
        (SE2(-0.2, 1.5, 0.0), "partition is in the way"),
        (SE2(-1.5, -0.1, math.radians(90)), "crate"),
    ],
)
def test_a_release_fails_and_says_so_where_something_stands(robot: Robot, start: SE2, why: str) -> None:
    hand(robot).grab_release(ON_MUG, REACH_M, 1)
    robot.placer.place(start, 0.0)
    lying = poses(robot)
    grab = hand(robot).grab_release(ON_MUG, REACH_M, 1)
    assert (grab.outcome, grab.object_id) == (GrabOutcome.NOTHING, "mug")
    assert why in grab.detail
    assert hand(robot).held == ("mug",)
    robot.clock.sleep(0.5)
    assert poses(robot)["crate"] == lying["crate"]
    assert not seen(robot, "mug").any()


def test_the_published_tutorial_asks_for_free_floor_below(things: Scene) -> None:
    for spot, expected in (("free", GrabOutcome.RELEASED), ("navigable", GrabOutcome.NOTHING)):
        with make_things_robot(things, manipulator={"spot": spot}) as robot:
            robot.placer.place_objects({})
            robot.placer.place(SE2(), 0.0)
            hand(robot).grab_release(ON_BOWL, REACH_M, 1)
            assert hand(robot).grab_release(ON_BOWL, REACH_M, 1).outcome is expected


def test_a_larger_backpack_gives_back_the_last_thing_first(robot: Robot) -> None:
    assert hand(robot).grab_release(ON_BOWL, REACH_M, 2).object_id == "bowl"
    assert hand(robot).grab_release(ON_MUG, REACH_M, 2).object_id == "mug"
    assert hand(robot).held == ("bowl", "mug")
    released = [hand(robot).grab_release(ON_MUG, REACH_M, 2) for _ in range(2)]
    # With room in the backpack again, the mug under the crosshair is taken once more.
    assert [(grab.outcome, grab.object_id) for grab in released] == [
        (GrabOutcome.RELEASED, "mug"),
        (GrabOutcome.GRABBED, "mug"),
    ]


def test_placing_objects_empties_the_backpack(robot: Robot) -> None:
    hand(robot).grab_release(ON_MUG, REACH_M, 1)
    robot.placer.place_objects({})
    assert hand(robot).held == ()
    assert poses(robot)["mug"] == MUG.pose


@pytest.mark.parametrize("crosshair", [(-0.1, 0.5), (0.5, 1.1), (math.nan, 0.5)])
def test_a_crosshair_outside_the_image_is_refused(robot: Robot, crosshair: tuple[float, float]) -> None:
    with raises_naming(InvalidCommand, "crosshair"):
        hand(robot).grab_release(crosshair, REACH_M, 1)


@pytest.mark.parametrize(("reach_m", "capacity"), [(0.0, 1), (math.nan, 1), (math.inf, 1), (1.0, 0)])
def test_a_hand_without_reach_or_backpack_is_refused(robot: Robot, reach_m: float, capacity: int) -> None:
    with raises_naming(InvalidCommand, "reach", "capacity"):
        hand(robot).grab_release(ON_MUG, reach_m, capacity)


def test_hand_and_tracker_say_that_they_are_not_connected(things: Scene) -> None:
    robot = make_things_robot(things)
    for use in (lambda: hand(robot).held, lambda: tracker(robot).objects(1.0)):
        with pytest.raises(NotConnected):
            use()


# --- pushing ---


def test_the_robot_pushes_a_light_thing_along(robot: Robot) -> None:
    robot.placer.place_objects({"mug": on_floor(MUG, -0.7, -1.0)})
    robot.placer.place(SE2(-1.3, -1.0, 0.0), 0.0)
    assert drive(robot, 0.7) is Zone.NONE
    assert robot.referee.latest(1.0).pose.x_m == pytest.approx(-0.6, abs=0.02)
    assert poses(robot)["mug"].position[0] > -0.45
    assert poses(robot)["crate"] == CRATE.pose


def test_a_heavy_thing_presses_the_bumper(robot: Robot) -> None:
    robot.placer.place_objects({"crate": on_floor(CRATE, -0.5, -1.0)})
    robot.placer.place(SE2(-1.3, -1.0, 0.0), 0.0)
    assert drive(robot, 0.7) is Zone.CENTER
    assert poses(robot)["crate"].position[0] == pytest.approx(-0.5, abs=0.02)


def test_a_light_thing_against_a_wall_presses_the_bumper(robot: Robot) -> None:
    robot.placer.place_objects({"mug": on_floor(MUG, 1.9, -1.2)})
    robot.placer.place(SE2(1.0, -1.2, 0.0), 0.0)
    assert drive(robot, 0.8) is Zone.CENTER


def test_what_is_carried_touches_nothing(robot: Robot) -> None:
    robot.placer.place_objects({"mug": on_floor(MUG, -0.7, -1.0)})
    robot.placer.place(SE2(-1.3, -1.0, 0.0), math.radians(-45))
    assert hand(robot).grab_release((0.5, 0.58), REACH_M, 1).object_id == "mug"
    assert drive(robot, 0.8) is Zone.NONE
    assert hand(robot).held == ("mug",)


def test_two_runs_agree_bit_for_bit(things: Scene) -> None:
    ends = []
    for _ in range(2):
        with make_things_robot(things) as robot:
            robot.placer.place_objects({"mug": on_floor(MUG, -0.7, -1.05)})
            robot.placer.place(SE2(-1.3, -1.0, 0.0), 0.0)
            drive(robot, 0.6)
            robot.placer.place(SE2(-0.2, 0.0, 0.0), 0.0)
            hand(robot).grab_release(crosshair_on(BOWL.center, -0.2), 2.0, 1)
            frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
            ends.append((poses(robot), frame.rgb.tobytes(), frame.depth_m.tobytes()))
    assert ends[0] == ends[1]
