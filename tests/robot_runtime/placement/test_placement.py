"""Placing without teleporting: what a person is told, when the robot counts as placed, and how it drives there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_room import make_scene
from raising import raises_naming

from drivers.fake.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S, Clock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import InvalidStart, PlacementFailed, StaleData
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus, Robot, Velocity
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.placement.driving import DrivingPlacer, next_motion
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.placement.placer import OperatorPlacer
from robot_runtime.robots.loader import RobotContext

GOAL = SE2(2.0, 1.0, math.radians(90))


@dataclass(eq=False)
class Watcher(Localizer):
    """Sees the robot where a function of the time in seconds says; None: nobody sees it."""

    clock: Clock
    path: Callable[[float], SE2 | None]
    yaw_variance: float = 0.0
    status: PoseStatus = PoseStatus.OK
    frame: str = "map"

    @property
    def info(self) -> LocalizerInfo:
        return LocalizerInfo("watcher", self.frame, 10.0)

    def latest(self, max_age_s: float) -> PoseEstimate:
        now_ns = self.clock.now_ns()
        pose = self.path(now_ns / NS_PER_S)
        if pose is None:
            raise StaleData("watcher: sees nothing", "look")
        return PoseEstimate(now_ns, pose, self.frame, np.diag([0.0, 0.0, self.yaw_variance]), self.status)

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        return self.latest(timeout_s)

    def arrivals(self, after: int = 0) -> Arrivals:
        return Arrivals(after)

    def connect(self) -> None: ...

    def close(self) -> None: ...


def fake(**options: Any) -> Robot:
    context = RobotContext(None, None, seed=0)
    robot = make_robot(context, "fake", {"width": 32, "height": 24, **options}, "test")
    robot.connect()
    robot.clock.sleep(0.5)
    return robot


def carried(path: Callable[[float], SE2 | None], **changes: Any) -> tuple[Robot, OperatorPlacer, list[str]]:
    """A robot that somebody carries along a path, in seconds from when its placing begins."""
    robot, told = fake(), []
    begin_s = robot.clock.now_ns() / NS_PER_S
    referee = Watcher(robot.clock, lambda s: path(s - begin_s), **changes)
    robot = replace(robot, referee=referee, localizer=referee)
    placer = OperatorPlacer(
        robot.clock, robot.base, robot.head, referee, referee, Tolerance(0.1, 10.0, 60.0), Guide(told.append)
    )
    return robot, placer, told


# --- offsets and tolerances -----------------------------------------------------------------------------------------


def test_an_offset_says_where_to_push_the_robot() -> None:
    offset = Offset.of(SE2(1.0, 0.0, math.radians(90)), SE2(1.5, -0.2, math.radians(60)))
    assert str(offset) == "53.9 cm and 30.0° off: 20.0 cm back, 50.0 cm right, turn 30.0° right"


@given(
    here=st.builds(SE2, st.floats(-5, 5), st.floats(-5, 5), st.floats(-9, 9)),
    goal=st.builds(SE2, st.floats(-5, 5), st.floats(-5, 5), st.floats(-9, 9)),
)
@settings(max_examples=40)
def test_an_offset_leads_to_the_goal(here: SE2, goal: SE2) -> None:
    offset = Offset.of(here, goal)
    there = here @ SE2(offset.ahead_m, offset.left_m, offset.turn_rad)
    assert there.distance_to(goal) < 1e-9
    assert abs(wrap_angle(there.yaw_rad - goal.yaw_rad)) < 1e-9
    assert offset.distance_m == pytest.approx(here.distance_to(goal))


@pytest.mark.parametrize("field", ["within_m", "within_deg", "timeout_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_tolerance_must_be_positive_and_finite(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Tolerance(**{field: value})


# --- by a person ----------------------------------------------------------------------------------------------------


def test_a_person_is_told_where_and_how_far_and_when_to_let_go() -> None:
    robot, placer, told = carried(lambda s: SE2(min(2.0, 0.5 * s), 1.0, math.radians(90)))
    begin_s = robot.clock.now_ns() / NS_PER_S
    placer.place(GOAL, 0.2)
    took_s = robot.clock.now_ns() / NS_PER_S - begin_s
    assert 5.0 <= took_s < 6.0, "it was near after 3.8 s, at rest after 4, and then stood for one"
    assert told[0] == ("Bring the robot to x 2.00 m, y 1.00 m, heading 90° in map, within 10 cm and 10°, and let go.")
    assert told[1].startswith("200.0 cm and 0.0° off")
    assert "let go of it" in told[-2]
    assert told[-1] == "The robot stands at the start, 0.0 cm and 0.0° off."
    assert len(told) < 6, "a person reads no faster"
    assert robot.head.state(1.0).tilt_rad == pytest.approx(0.2, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "said"),
    [
        (lambda s: SE2(1.5, 1.0, GOAL.yaw_rad), "50.0 cm and 0.0° off"),
        (lambda s: SE2(2.0, 1.0, 0.0), "90.0° off"),
        (lambda s: SE2(2.0 + 0.05 * math.sin(10 * s), 1.0, GOAL.yaw_rad), "cm and 0.0° off"),
        (lambda s: None, "watcher: sees nothing"),
    ],
    ids=["too far", "turned away", "never let go", "unseen"],
)
def test_a_person_who_does_not_bring_it_is_not_waited_for_for_ever(
    path: Callable[[float], SE2 | None], said: str
) -> None:
    robot, placer, _ = carried(path)
    begin_s = robot.clock.now_ns() / NS_PER_S
    with raises_naming(PlacementFailed, "(2.00, 1.00)", "60 s") as caught:
        placer.place(GOAL, 0.0)
    assert said in caught.value.message
    assert robot.clock.now_ns() / NS_PER_S - begin_s <= 60.2


def test_a_robot_that_nobody_sees_on_its_way_is_waited_for() -> None:
    _, placer, told = carried(lambda s: None if s < 5 else GOAL)
    placer.place(GOAL, 0.0)
    assert told[1] == "watcher: sees nothing"


@pytest.mark.parametrize(
    ("changes", "thing"),
    [({"yaw_variance": math.inf}, "heading"), ({"status": PoseStatus.LOST}, "lost"), ({"frame": "odom"}, "map")],
)
def test_who_does_not_know_where_the_robot_is_places_nobody(changes: dict[str, Any], thing: str) -> None:
    _, placer, _ = carried(lambda s: GOAL, **changes)
    with raises_naming(PlacementFailed, thing):
        placer.place(GOAL, 0.0)


def test_where_the_referee_knows_no_heading_the_policys_localizer_watches() -> None:
    robot = fake()
    positions = Watcher(robot.clock, lambda s: SE2(9.0, 9.0), yaw_variance=math.inf)
    poses = Watcher(robot.clock, lambda s: GOAL)
    OperatorPlacer(robot.clock, robot.base, robot.head, poses, positions, guide=Guide(str)).place(GOAL, 0.0)


def test_a_tilt_out_of_reach_is_no_start() -> None:
    robot, placer, told = carried(lambda s: GOAL)
    with raises_naming(InvalidStart, "tilt", "rad"):
        placer.place(GOAL, robot.head.limits.max_tilt_rad + 0.1)
    assert told == []


# --- driving --------------------------------------------------------------------------------------------------------


def driving(robot: Robot, scene: bool = False, tolerance: Tolerance | None = None) -> tuple[DrivingPlacer, list[str]]:
    told: list[str] = []
    occupancy = make_scene().map if scene else None
    made = DrivingPlacer(
        robot.clock, robot.base, robot.head, robot.localizer, robot.referee, tolerance, Guide(told.append), occupancy
    )
    return made, told


@pytest.mark.parametrize("goal", [SE2(1.5, 1.0, 2.0), SE2(-2.0, -1.0, -3.0), SE2(0.0, 0.0, 3.0), SE2(-0.2, 0.0, 0.0)])
@pytest.mark.parametrize("scene", [False, True])
def test_a_robot_drives_to_its_start(goal: SE2, scene: bool) -> None:
    robot = fake()
    placer, told = driving(robot, scene)
    placer.place(goal, -0.3)
    here = robot.referee.latest(0.5).pose
    assert here.distance_to(goal) <= 0.03
    assert abs(wrap_angle(here.yaw_rad - goal.yaw_rad)) <= math.radians(2.6)
    assert robot.head.state(1.0).tilt_rad == pytest.approx(-0.3, abs=0.01)
    assert told[0].startswith("The robot drives itself to x")
    assert told[-1].startswith("The robot stands at the start")


def test_a_robot_drives_to_its_start_no_faster_than_its_file_allows() -> None:
    robot = replace(fake(), motion=MotionProfile(linear_m_s=0.1))
    speeds_m_s: list[float] = []
    command = robot.base.command

    def noted(velocity: Velocity) -> Velocity:
        speeds_m_s.append(abs(velocity.linear_m_s))
        return command(velocity)

    robot.base.command = noted  # type: ignore[method-assign]
    driving(robot)[0].fitted(robot).place(SE2(0.5, 0.0, 0.0), 0.0)
    assert 0.05 < max(speeds_m_s) <= 0.1


def test_a_robot_that_is_there_does_not_move() -> None:
    robot = fake()
    before = robot.base.state(0.1).odom
    driving(robot)[0].place(SE2(0.01, 0.0, 0.0), 0.0)
    assert robot.base.state(0.1).odom.distance_to(before) == 0.0


def test_a_contact_ends_placing_with_the_robot_at_rest() -> None:
    robot = fake(wall_x_m=1.0)
    placer, _ = driving(robot)
    with raises_naming(PlacementFailed, "(center)", "after 0.8"):
        placer.place(SE2(2.0, 0.0, 0.0), 0.0)
    before = robot.base.state(0.1).odom
    robot.clock.sleep(0.5)
    assert robot.base.state(0.1).odom.distance_to(before) < 1e-6


def test_a_cliff_ends_placing() -> None:
    robot = fake(faults=[{"kind": "cliff", "from_s": 4.0}])
    with raises_naming(PlacementFailed, "stopped", "cliff"):
        driving(robot)[0].place(SE2(2.0, 0.0, 0.0), 0.0)


def test_a_goal_that_no_way_leads_to_is_named() -> None:
    with raises_naming(PlacementFailed, "(0.00, 0.00)", "(5.00, 0.00)", "map"):
        driving(fake(), scene=True)[0].place(SE2(5.0, 0.0, 0.0), 0.0)


def test_a_robot_that_nobody_sees_is_not_driven_far() -> None:
    robot = fake(faults=[{"kind": "lost_tracking"}])
    robot = replace(robot, referee=robot.localizer)
    with raises_naming(PlacementFailed, "fake localizer has lost the robot"):
        driving(robot)[0].place(SE2(2.0, 0.0, 0.0), 0.0)
    assert robot.base.state(0.1).odom.x_m <= 2.01


def test_a_heading_that_is_learnt_from_motion_is_driven_for() -> None:
    robot = fake()
    truth = robot.referee

    class Learns(Watcher):
        knows = False

        def latest(self, max_age_s: float) -> PoseEstimate:
            found = truth.latest(max_age_s)
            self.knows = self.knows or found.pose.x_m > 0.9
            return found if self.knows else replace(found, covariance=np.diag([0.0, 0.0, math.inf]))

    learns = Learns(robot.clock, lambda s: None)
    driving(replace(robot, localizer=learns, referee=learns))[0].place(SE2(0.5, 0.5, 0.0), 0.0)
    assert truth.latest(0.5).pose.distance_to(SE2(0.5, 0.5)) <= 0.03


def test_time_that_is_over_ends_placing() -> None:
    with raises_naming(PlacementFailed, " off: ", "4 s"):
        driving(fake(), tolerance=Tolerance(timeout_s=4.0))[0].place(SE2(2.5, 2.0, 0.0), 0.0)


@pytest.mark.parametrize(
    ("here", "motion"),
    [
        (SE2(1.98, 1.0, 0.0), Displacement(turn_rad=math.radians(90))),
        (SE2(0.0, 1.0, math.radians(90)), Displacement(turn_rad=math.radians(-90))),
        (SE2(1.6, 1.0, math.radians(1)), Displacement(forward_m=0.4)),
        (SE2(-3.0, 1.0, 0.0), Displacement(forward_m=1.0)),
    ],
)
def test_the_next_motion_is_a_turn_or_a_straight_way(here: SE2, motion: Displacement) -> None:
    found = next_motion(Offset.of(here, GOAL), (GOAL.x_m, GOAL.y_m), Tolerance())
    assert found.forward_m == pytest.approx(motion.forward_m)
    assert found.turn_rad == pytest.approx(motion.turn_rad)


def test_placers_watch_with_the_parts_that_the_robot_was_given_later() -> None:
    robot = fake()
    elsewhere = Watcher(robot.clock, lambda s: GOAL)
    placer, _ = driving(robot)
    fitted = placer.fitted(replace(robot, referee=elsewhere))
    fitted.place(GOAL, 0.0)
