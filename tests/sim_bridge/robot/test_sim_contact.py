"""Into walls: how far, which zone, and what is possible afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import BaseState, Halt, Robot, Velocity, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.scenes.scene import Scene
from sim_bridge.physics.scene_model import Body, build_model
from sim_bridge.physics.world import World, bumper_bits

RADIUS_M = Body().radius_m
EAST_WALL_X_M = 3.0
FORWARD = Velocity(0.3, 0.0)


class Drive:
    """A base that is driven, and the true path it takes."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.base = robot, robot.base
        self.path: list[SE2] = []
        robot.clock.add_listener(lambda _: self.path.append(self.pose))

    @property
    def pose(self) -> SE2:
        """True pose now."""
        return self.robot.referee.at(self.robot.clock.now_ns(), timeout_s=0.0).pose

    def start(self, pose: SE2) -> None:
        """Stand there with an empty path."""
        self.base.stop()
        self.robot.placer.place(pose, 0.0)
        self.path.clear()

    def command(self, velocity: Velocity, seconds: float) -> None:
        """Repeat a command every 20 ms."""
        for _ in range(round(seconds / 0.02)):
            self.base.command(velocity)
            self.robot.clock.sleep(0.02)

    def rest(self, seconds: float) -> None:
        """Command nothing."""
        self.base.stop()
        self.robot.clock.sleep(seconds)


@pytest.fixture
def drive(sim: Callable[..., Robot]) -> Drive:
    """A base in the room, its referee sampled at every physics step."""
    robot = sim({"localizer": {"rate_hz": 200.0}})
    robot.base.connect()
    robot.localizer.connect()
    exact = Robot(
        robot.name, robot.clock, robot.base, robot.head, robot.camera, robot.localizer, robot.localizer, robot.placer
    )
    return Drive(exact)


def expected_zone(heading_deg: float) -> Zone:
    """Against a wall in front, turned left of it by ``heading_deg``."""
    if abs(heading_deg) <= 30:
        return Zone.CENTER
    return Zone.RIGHT if heading_deg > 0 else Zone.LEFT


def hit_east_wall(drive: Drive, heading_deg: float) -> float:
    """Drive into the wall and keep pushing; meters of path driven after the bumper's ring first met the wall."""
    heading = math.radians(heading_deg)
    way_m = 0.2 if abs(heading_deg) <= 60 else 0.1
    start_x_m = EAST_WALL_X_M - RADIUS_M - way_m * math.cos(heading)
    drive.start(SE2(start_x_m, -0.3 - way_m * math.sin(heading), heading))
    drive.command(FORWARD, 2.0)
    after = [pose for pose in drive.path if pose.x_m + RADIUS_M >= EAST_WALL_X_M]
    assert after, "the wall was not reached"
    return after[0].distance_to(after[-1])


@pytest.mark.parametrize("heading_deg", [-80, -60, -45, -31, -29, -10, 0, 5, 20, 29, 31, 45, 60, 70, 80])
def test_a_wall_stops_the_base_without_sliding_or_turning(drive: Drive, heading_deg: float) -> None:
    traveled_m = hit_east_wall(drive, heading_deg)
    assert traveled_m <= 0.005
    state = drive.base.state(0.1)
    assert state.bumper == expected_zone(heading_deg)
    assert state.halt is Halt.CONTACT
    heading = math.radians(heading_deg)
    for pose in drive.path:
        assert abs(wrap_angle(pose.yaw_rad - heading)) < 1e-6
        off_line_m = (pose.y_m - drive.path[0].y_m) * math.cos(heading) - (pose.x_m - drive.path[0].x_m) * math.sin(
            heading
        )
        assert abs(off_line_m) < 1e-5
    assert drive.pose.x_m + RADIUS_M - Body().bumper_travel_m <= EAST_WALL_X_M


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heading_deg=st.floats(-80, 80))
def test_a_wall_at_any_angle_stops_the_base_within_5_mm(drive: Drive, heading_deg: float) -> None:
    assert hit_east_wall(drive, heading_deg) <= 0.005


def test_full_speed_stops_within_5_mm_too(drive: Drive) -> None:
    drive.start(SE2(1.5, -0.3, 0.2))
    drive.command(Velocity(0.7, 0.0), 3.0)
    after = [pose for pose in drive.path if pose.x_m + RADIUS_M >= EAST_WALL_X_M]
    assert max(after[0].distance_to(pose) for pose in after) <= 0.005


def test_the_base_holds_where_it_touched_and_stays_pressed(drive: Drive) -> None:
    hit_east_wall(drive, 25)
    drive.rest(0.2)
    before = drive.pose
    for _ in range(50):
        drive.rest(0.1)
        assert drive.base.state(0.1).bumper is Zone.CENTER
    assert drive.pose.distance_to(before) < 1e-6
    assert drive.pose.yaw_rad == pytest.approx(before.yaw_rad, abs=1e-9)


def test_the_next_forward_into_the_pressed_zone_moves_nothing(drive: Drive) -> None:
    hit_east_wall(drive, -40)
    drive.rest(0.2)
    before = drive.pose
    drive.command(FORWARD, 1.0)
    assert drive.pose == before
    drive.command(Velocity(0.3, 0.5), 1.0)
    assert drive.pose == before


def test_turning_on_the_spot_works_and_does_not_creep(drive: Drive) -> None:
    hit_east_wall(drive, 0)
    drive.rest(0.2)
    before = drive.pose
    seen = set()
    for _ in range(40):
        drive.command(Velocity(0.0, 1.0), 0.1)
        seen.add(drive.base.state(0.1).bumper)
    assert drive.pose.distance_to(before) < 1e-6
    assert abs(wrap_angle(drive.pose.yaw_rad - 4.0)) < 0.1
    assert seen == {Zone.CENTER, Zone.RIGHT, Zone.NONE}


def test_backing_off_releases_the_bumper(drive: Drive) -> None:
    hit_east_wall(drive, 0)
    drive.command(Velocity(-0.1, 0.0), 0.5)
    assert drive.base.state(0.1).bumper is Zone.NONE
    drive.command(FORWARD, 0.1)
    assert drive.base.state(0.1).halt is Halt.NONE


def test_a_corner_presses_two_zones(drive: Drive) -> None:
    drive.start(SE2(2.75, -1.75, math.radians(-45)))
    drive.command(FORWARD, 1.0)
    assert drive.base.state(0.1).bumper == Zone.LEFT | Zone.RIGHT


def test_reversing_into_a_wall_is_not_felt_but_stops(drive: Drive) -> None:
    drive.start(SE2(2.7, 0.0, math.pi))
    drive.command(Velocity(-0.3, 0.0), 2.0)
    assert drive.base.state(0.1).bumper is Zone.NONE
    assert drive.pose.x_m + RADIUS_M - Body().bumper_travel_m < EAST_WALL_X_M + 0.004


def test_what_is_low_enough_or_high_enough_is_not_touched(room: Scene) -> None:
    compiled = build_model(room)
    base, mast = compiled.model.geom("robot"), compiled.model.geom("mast")
    assert base.pos[2] - base.size[1] == pytest.approx(Body().bottom_m)
    assert base.pos[2] + base.size[1] == pytest.approx(mast.pos[2] - mast.size[1]) == pytest.approx(0.1)
    assert mast.pos[2] + mast.size[1] == pytest.approx(Body().top_m)


def at_board(sim: Callable[..., Robot], scene: Scene, **body: float) -> tuple[BaseState, float]:
    """The base's state after 2 s at 0.3 m/s against the board, and how far it really came."""
    robot = sim({"body": body}, scene=scene)
    with robot:
        robot.placer.place(SE2(0.5, -1.0, 0.0), 0.0)
        for _ in range(100):
            robot.base.command(FORWARD)
            robot.clock.sleep(0.02)
        return robot.base.state(0.1), robot.referee.latest(0.1).pose.x_m


def test_a_tabletop_stops_the_body_unfelt_and_the_wheels_slip(
    sim: Callable[..., Robot], make_room: Callable[..., Scene]
) -> None:
    state, x_m = at_board(sim, make_room(board_z_m=0.75))
    assert (state.bumper, state.halt) == (Zone.NONE, Halt.NONE)
    assert 1.0 - RADIUS_M < x_m < 1.0 - RADIUS_M + 0.005
    assert state.odom.x_m == pytest.approx(0.55, abs=0.01)
    assert state.velocity.linear_m_s == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(("board_z_m", "body"), [(0.06, {}), (0.75, {"bumper_top_m": 0.9})])
def test_what_is_as_low_as_the_bumper_presses_it(
    sim: Callable[..., Robot], make_room: Callable[..., Scene], board_z_m: float, body: dict[str, float]
) -> None:
    state, x_m = at_board(sim, make_room(board_z_m=board_z_m), **body)
    assert (state.bumper, state.halt) == (Zone.CENTER, Halt.CONTACT)
    assert state.odom.x_m == pytest.approx(x_m - 0.5, abs=1e-6)


def test_a_step_against_a_tabletop_ends_as_any_other(
    sim: Callable[..., Robot], make_room: Callable[..., Scene]
) -> None:
    with sim(scene=make_room(board_z_m=0.75)) as robot:
        robot.placer.place(SE2(0.81, -1.0, 0.0), 0.0)
        motion = MotionController(robot.clock, robot.base, robot.head)
        results = [motion.execute(Displacement(forward_m=0.25)) for _ in range(2)]
        turned = motion.execute(Displacement(turn_rad=math.radians(30)))
        x_m = robot.referee.latest(0.1).pose.x_m
    assert [result.outcome for result in (*results, turned)] == [Outcome.REACHED] * 3
    assert {result.contact for result in results} == {Zone.NONE}
    assert max(result.duration_s for result in results) < 3.0
    assert x_m < 1.0 - RADIUS_M + 0.005


@pytest.mark.parametrize(
    ("bearing_deg", "zone"),
    [
        (0, Zone.CENTER),
        (29.9, Zone.CENTER),
        (30.1, Zone.LEFT),
        (89.9, Zone.LEFT),
        (90.1, Zone.NONE),
        (180, Zone.NONE),
        (-29.9, Zone.CENTER),
        (-30.1, Zone.RIGHT),
        (-89.9, Zone.RIGHT),
        (-90.1, Zone.NONE),
    ],
)
def test_zones_have_kobukis_limits(bearing_deg: float, zone: Zone) -> None:
    assert Zone(bumper_bits(math.radians(bearing_deg))) is zone


class TestPlacement:
    """``World.place``."""

    @pytest.mark.parametrize(
        ("x_m", "y_m", "obstacle"),
        [
            (2.9, 0.0, "wall_east"),
            (3.05, 0.0, "occupied"),
            (1.2, 0.85, "crate"),
            (3.3, 2.3, "unknown"),
            (90.0, 0.0, "outside"),
        ],
    )
    def test_a_start_that_does_not_fit_is_refused(self, room: Scene, x_m: float, y_m: float, obstacle: str) -> None:
        world = World(build_model(room))
        world.place(SE2(-1.0, 0.5, 0.3))
        with raises_naming(InvalidStart, obstacle):
            world.place(SE2(x_m, y_m, 0.0))
        assert world.pose == SE2(-1.0, 0.5, 0.3)

    def test_a_start_may_be_as_close_as_the_radius(self, room: Scene) -> None:
        world = World(build_model(room))
        world.place(SE2(EAST_WALL_X_M - RADIUS_M - 0.001, 0.0, 0.3))
        world.advance(0.0, 0.0)
        assert world.touching == 0
