"""Discrete actions on the fake robot (exact kinematics behind the real Guard) and on bases with a will of their own."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from drivers.fake.driver import make_robot
from robot_runtime.actions.discrete import Action, Displacement, Magnitudes
from robot_runtime.common.clock import NS_PER_S, SimulatedClock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Robot, Velocity, Zone
from robot_runtime.hal.motion_profile import MotionProfile
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.drive import TAIL_S
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext

MAGNITUDES = Magnitudes(forward_m=0.25, turn_deg=30, tilt_deg=30)
FORWARD = MAGNITUDES.displacement(Action.MOVE_FORWARD)
LEFT = MAGNITUDES.displacement(Action.TURN_LEFT)
LOOK_UP = MAGNITUDES.displacement(Action.LOOK_UP)
MAX_AGE_S = 0.1


@contextmanager
def fake_robot(**options: Any) -> Iterator[Robot]:
    with make_robot(RobotContext(scene=None, camera=None, seed=0), "fake", options, "test") as robot:
        yield robot


def controller(robot: Robot, **settings: Any) -> MotionController:
    return MotionController(robot.clock, robot.base, robot.head, **settings)


def at_time(robot: Robot, seconds: float, act: Callable[[], None]) -> None:
    """Have ``act`` called once, when the robot's clock reaches ``seconds``."""
    due: list[Callable[[], None]] = [act]

    def on_step(now_ns: int) -> None:
        if due and now_ns >= seconds_to_ns(seconds):
            due.pop()()

    assert isinstance(robot.clock, SimulatedClock)
    robot.clock.add_listener(on_step)


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def is_still(robot: Robot) -> bool:
    """Whether the robot stands, and keeps standing without any further command."""
    before = robot.base.state(MAX_AGE_S).odom
    robot.clock.sleep(0.5)
    return robot.base.state(1.0).odom == before


# --- how exactly ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate_hz", [50.0, 100.0])
@pytest.mark.parametrize("action", [Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT])
def test_a_motion_ends_within_two_millimetres_and_a_fifth_of_a_degree(action: Action, rate_hz: float):
    wish = MAGNITUDES.displacement(action)
    with fake_robot(rate_hz=rate_hz) as robot:
        result = controller(robot).execute(wish)
        end = robot.base.state(MAX_AGE_S).odom
        assert is_still(robot)
    assert result.outcome is Outcome.REACHED
    assert math.hypot(end.x_m - wish.forward_m, end.y_m) <= 0.002
    assert abs(wrap_angle(end.yaw_rad - wish.turn_rad)) <= math.radians(0.2)
    assert result.measured.forward_m == pytest.approx(end.x_m)
    assert result.measured.turn_rad == pytest.approx(end.yaw_rad)


def test_headings_of_many_actions_do_not_drift_apart_from_what_was_asked():
    rng = random.Random(1)
    asked_rad = 0.0
    with fake_robot(rate_hz=50.0) as robot:
        motion = controller(robot)
        for _ in range(100):
            action = rng.choice((Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_LEFT))
            wish = MAGNITUDES.displacement(action)
            before = robot.base.state(MAX_AGE_S).odom
            assert motion.execute(wish).outcome is Outcome.REACHED
            moved = robot.base.state(MAX_AGE_S).odom.relative_to(before)
            asked_rad += wish.turn_rad
            assert math.hypot(moved.x_m - wish.forward_m, moved.y_m) <= 0.002
            assert abs(wrap_angle(moved.yaw_rad - wish.turn_rad)) <= math.radians(0.2)
        error_rad = wrap_angle(robot.base.state(MAX_AGE_S).odom.yaw_rad - asked_rad)
    assert abs(error_rad) <= motion.profile.heading_rad


def test_a_step_takes_hardly_longer_than_its_profile():
    with fake_robot(rate_hz=50.0) as robot:
        motion = controller(robot)
        forward, turn = motion.execute(FORWARD), motion.execute(LEFT)
    assert forward.duration_s <= 1.1 * 1.465  # 0.25 m at 0.3 m/s and 95 % of the fake base's 0.5 m/s²
    assert turn.duration_s <= 1.1 * 0.794  # 30 degrees at 95 % of its 3.5 rad/s²


def test_a_full_turn_is_not_mistaken_for_none():
    with fake_robot() as robot:
        result = controller(robot).execute(Displacement(turn_rad=2 * math.pi))
    assert result.outcome is Outcome.REACHED
    assert result.measured.turn_rad == pytest.approx(2 * math.pi, abs=math.radians(0.2))


def test_reverse_is_possible_for_action_spaces_that_have_it():
    with fake_robot() as robot:
        result = controller(robot).execute(Displacement(forward_m=-0.25))
        assert robot.base.state(MAX_AGE_S).odom.x_m == pytest.approx(-0.25, abs=0.002)
    assert result.outcome is Outcome.REACHED


def test_no_displacement_takes_no_time():
    with fake_robot() as robot:
        result = controller(robot).execute(Displacement())
    assert (result.outcome, result.duration_s) == (Outcome.REACHED, 0.0)


def test_two_components_at_once_are_refused():
    with fake_robot() as robot, pytest.raises(ValueError, match="one component"):
        controller(robot).execute(Displacement(forward_m=0.25, turn_rad=0.5))


def test_every_state_is_passed_on_in_order():
    states: list[BaseState] = []
    with fake_robot() as robot:
        controller(robot, on_state=states.append).execute(FORWARD)
    stamps = [state.stamp_ns for state in states]
    assert len(stamps) > 100
    assert stamps == sorted(stamps)


# --- contact --------------------------------------------------------------------------------------------------------


def test_a_wall_stops_the_step_and_marks_it_alone():
    with fake_robot(wall_x_m=0.18 + 0.10) as robot:
        motion = controller(robot)
        hit = motion.execute(FORWARD)
        assert (hit.outcome, hit.contact, hit.collided) == (Outcome.CONTACT, Zone.CENTER, True)
        assert hit.measured.forward_m == pytest.approx(0.10, abs=1e-3)

        again = motion.execute(FORWARD)
        assert (again.outcome, again.contact, again.measured.forward_m) == (Outcome.CONTACT, Zone.CENTER, 0.0)
        assert again.duration_s <= 0.05  # no waiting for a timeout

        turns = [motion.execute(LEFT) for _ in range(6)]
        assert {turn.outcome for turn in turns} == {Outcome.REACHED}
        away = motion.execute(FORWARD)
        assert (away.outcome, away.contact, away.collided) == (Outcome.REACHED, Zone.NONE, False)
        assert is_still(robot)


@pytest.mark.parametrize("zone", ["left", "center", "right"])
def test_a_stuck_bumper_forbids_forward_and_allows_turning(zone: str):
    with fake_robot(faults=[{"kind": "stuck_bumper", "zone": zone}]) as robot:
        motion = controller(robot)
        refused = motion.execute(FORWARD)
        turned = motion.execute(LEFT)
        reversed_ = motion.execute(Displacement(forward_m=-0.1))
        assert robot.base.state(MAX_AGE_S).bumper is Zone[zone.upper()]
    assert (refused.outcome, refused.contact) == (Outcome.CONTACT, Zone[zone.upper()])
    assert refused.measured == Displacement()
    assert turned.outcome is reversed_.outcome is Outcome.REACHED


def test_a_bumper_pressed_while_turning_is_no_collision():
    with fake_robot(faults=[{"kind": "stuck_bumper", "from_s": 0.3, "to_s": 0.5}]) as robot:
        result = controller(robot).execute(LEFT)
    assert (result.outcome, result.collided) == (Outcome.REACHED, False)


# --- held, late, broken ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "named"), [({"kind": "wheel_drop"}, Halt.WHEEL_DROP), ({"kind": "cliff"}, Halt.CLIFF)]
)
@pytest.mark.parametrize("wish", [FORWARD, LEFT])
def test_a_held_base_ends_the_action_promptly(fault: dict[str, Any], named: Halt, wish: Displacement):
    with fake_robot(faults=[{**fault, "from_s": 0.4}]) as robot:
        result = controller(robot).execute(wish)
        assert is_still(robot)
    assert result.outcome is Outcome.STOPPED
    assert named.value in result.detail
    assert not result.collided
    assert result.duration_s <= 0.4 + 0.05
    assert result.measured != Displacement()


def test_an_emergency_stop_ends_the_action_promptly():
    with fake_robot() as robot:
        motion = controller(robot)
        at_time(robot, 0.5, robot.base.emergency_stop)
        stopped = motion.execute(FORWARD)
        refused = motion.execute(LEFT)
        robot.base.release_emergency_stop()
        robot.clock.sleep(0.1)
        after = motion.execute(LEFT)
    assert (stopped.outcome, refused.outcome, after.outcome) == (Outcome.STOPPED, Outcome.STOPPED, Outcome.REACHED)
    assert "e_stop" in stopped.detail
    assert stopped.duration_s <= 0.55
    assert refused.measured == Displacement()


def test_silence_of_the_base_is_a_fault_with_the_error_kept():
    with fake_robot(faults=[{"kind": "silent_base", "from_s": 0.5, "to_s": 3.5}]) as robot:
        motion = controller(robot)
        result = motion.execute(FORWARD)
        fault = motion.fault
        robot.clock.sleep(1.5)
        assert is_still(robot)
        after = motion.execute(FORWARD)
    assert result.outcome is Outcome.FAULT
    assert isinstance(fault, StaleData)
    assert result.detail == fault.message
    assert result.duration_s <= 0.7 + motion.profile.patience_s
    assert (after.outcome, motion.fault) == (Outcome.REACHED, None)


@pytest.mark.parametrize("wish", [FORWARD, LEFT])
def test_late_reports_hold_the_wheels_and_the_motion_goes_on_where_it_was(wish: Displacement):
    with fake_robot(faults=[{"kind": "silent_base", "from_s": 0.4, "to_s": 1.2}]) as robot:
        true_poses: list[SE2] = []
        for seconds in (0.7, 1.1):
            at_time(robot, seconds, lambda: true_poses.append(robot.referee.latest(1.0).pose))
        result = controller(robot).execute(wish)
        end = robot.base.state(MAX_AGE_S).odom
    assert true_poses[0] == true_poses[1]
    assert result.outcome is Outcome.REACHED
    assert math.hypot(end.x_m - wish.forward_m, end.y_m) <= 0.002
    assert abs(wrap_angle(end.yaw_rad - wish.turn_rad)) <= math.radians(0.2)
    assert result.detail.startswith("paused for 0.")


def test_patience_is_a_setting_of_the_profile():
    with fake_robot(faults=[{"kind": "silent_base", "from_s": 0.4, "to_s": 1.2}]) as robot:
        result = controller(robot, profile=MotionProfile(patience_s=0.2)).execute(FORWARD)
    assert result.outcome is Outcome.FAULT
    assert result.duration_s <= 0.4 + 0.2 + 0.2


def test_a_contact_between_two_looks_ends_a_step_forward_and_no_turn(monkeypatch: pytest.MonkeyPatch):
    pressed: list[Zone] = []

    def touched() -> Zone:
        return pressed.pop() if pressed else Zone.NONE

    with fake_robot() as robot:
        monkeypatch.setattr(robot.base, "touched", touched)
        motion = controller(robot)
        at_time(robot, 0.3, lambda: pressed.append(Zone.LEFT))
        ahead = motion.execute(FORWARD)
        pressed.append(Zone.RIGHT)  # before the action: not its own
        unharmed = motion.execute(FORWARD)
        at_time(robot, ns_to_seconds(robot.clock.now_ns()) + 0.3, lambda: pressed.append(Zone.LEFT))
        turned = motion.execute(LEFT)
    assert (ahead.outcome, ahead.contact) == (Outcome.CONTACT, Zone.LEFT)
    assert ahead.duration_s < 0.5
    assert unharmed.outcome is Outcome.REACHED
    assert (turned.outcome, turned.collided) == (Outcome.REACHED, False)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("wish", [FORWARD, LEFT, LOOK_UP])
def test_any_exception_leaves_the_wheels_at_zero(wish: Displacement, error: type[BaseException]):
    def fail() -> None:
        raise error

    with fake_robot() as robot:
        at_time(robot, 0.2, fail)
        with pytest.raises(error):
            controller(robot).execute(wish)
        assert is_still(robot)


# --- looking --------------------------------------------------------------------------------------------------------


def test_looking_moves_the_head_and_waits_for_its_rest():
    with fake_robot() as robot:
        motion = controller(robot)
        up, down = motion.execute(LOOK_UP), motion.execute(Displacement(tilt_rad=-LOOK_UP.tilt_rad))
        head = robot.head.state(0.2)
    assert up.outcome is down.outcome is Outcome.REACHED
    assert up.measured.tilt_rad == pytest.approx(math.radians(30), abs=1e-9)
    assert (head.tilt_rad, head.moving) == (pytest.approx(0.0, abs=1e-9), False)


@pytest.mark.parametrize("degrees", [30, -30, 40, -40, 25])
def test_a_look_past_the_heads_reach_moves_nothing_and_has_failed(degrees: float):
    with fake_robot() as robot:
        motion, limits = controller(robot), robot.head.limits
        look = Displacement(tilt_rad=math.radians(degrees))
        reach_deg = math.degrees(limits.max_tilt_rad if degrees > 0 else -limits.min_tilt_rad)
        possible = int(reach_deg / abs(degrees) + 1e-6)
        results = [motion.execute(look) for _ in range(possible + 2)]
        head = robot.head.state(0.2)
    assert {result.outcome for result in results} == {Outcome.REACHED}
    assert [result.succeeded for result in results] == [True] * possible + [False] * 2
    assert "beyond the limits: the head's -" in results[-1].detail
    assert results[-1].measured == Displacement()
    assert math.degrees(head.tilt_rad) == pytest.approx(possible * degrees, abs=0.01)  # on the grid


def test_a_look_back_from_the_edge_of_the_heads_reach_is_allowed():
    with fake_robot() as robot:
        motion = controller(robot)
        while motion.execute(LOOK_UP).succeeded:
            pass
        back = motion.execute(MAGNITUDES.displacement(Action.LOOK_DOWN))
    assert back.succeeded
    assert back.measured.tilt_rad == pytest.approx(math.radians(-30), abs=1e-6)


@pytest.mark.parametrize("wish", [FORWARD, LEFT])
def test_a_fault_keeps_the_motion_that_was_measured(wish: Displacement):
    with fake_robot(faults=[{"kind": "silent_base", "from_s": 0.7}]) as robot:
        result = controller(robot).execute(wish)
    assert result.outcome is Outcome.FAULT
    assert (result.measured.forward_m > 0.01) is bool(wish.forward_m)
    assert (result.measured.turn_rad > 0.01) is bool(wish.turn_rad)


def test_a_head_that_goes_silent_keeps_the_tilt_that_was_measured(monkeypatch: pytest.MonkeyPatch):
    with fake_robot() as robot:
        read, reads = robot.head.state, iter(range(5))

        def state(max_age_s: float) -> Any:
            if next(reads, None) is None:
                raise StaleData("head: silent", "look at it")
            tilt_rad = min(math.radians(20), robot.clock.now_ns() / NS_PER_S)
            return replace(read(max_age_s), tilt_rad=tilt_rad, moving=True)

        monkeypatch.setattr(robot.head, "state", state)
        result = controller(robot).execute(LOOK_UP)
    assert result.outcome is Outcome.FAULT
    assert 0.0 < result.measured.tilt_rad < math.radians(20)


class UnpluggedBase:
    """What a base does whose cable is out for a while: it drives on, and nobody hears of it."""

    def __init__(self, robot: Robot, drives_m_s: float, from_s: float, to_s: float) -> None:
        self._robot, self._base, self._speed_m_s = robot, robot.base, drives_m_s
        self._from_ns, self._to_ns = seconds_to_ns(from_s), seconds_to_ns(to_s)

    def _gap_s(self) -> float:
        now_ns = self._robot.clock.now_ns()
        return ns_to_seconds(max(0, min(now_ns, self._to_ns) - self._from_ns))

    def state(self, max_age_s: float) -> BaseState:
        if self._from_ns < self._robot.clock.now_ns() < self._to_ns:
            raise StaleData("base: unplugged", "plug it in")
        state = self._base.state(max_age_s)
        return replace(state, odom=state.odom @ SE2(self._speed_m_s * self._gap_s(), 0.0, 0.0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


@pytest.mark.parametrize(("speed_m_s", "wish"), [(0.3, FORWARD), (-0.2, FORWARD), (0.3, Displacement(forward_m=0.5))])
def test_a_gap_is_no_reason_to_blame_a_wheel(speed_m_s: float, wish: Displacement):
    with fake_robot() as robot:
        base: Any = UnpluggedBase(robot, speed_m_s, 0.5, 2.4)
        motion = MotionController(robot.clock, base, robot.head)
        before = motion.follower.predictor.model
        result = motion.execute(wish)
    assert result.outcome is Outcome.REACHED, result.detail
    assert result.measured.forward_m == pytest.approx(wish.forward_m, abs=0.006)
    assert result.succeeded
    assert "paused for" in result.detail
    assert motion.follower.predictor.model == before, "nothing is learned of the motors from a gap"


class HeldUp:
    """A clock of a process that is stopped once for some time: the robot goes on, and nobody looks."""

    def __init__(self, robot: Robot, at_s: float, for_s: float) -> None:
        self._clock = robot.clock
        self._at_ns, self._for_s = seconds_to_ns(at_s), for_s

    def sleep_until(self, stamp_ns: int) -> None:
        if self._for_s and self._clock.now_ns() >= self._at_ns:
            held_s, self._for_s = self._for_s, 0.0
            self._clock.sleep(held_s)
        self._clock.sleep_until(stamp_ns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


class PushedBase(UnpluggedBase):
    """A base that is moved for a while, and reports it."""

    def state(self, max_age_s: float) -> BaseState:
        state = self._base.state(max_age_s)
        return replace(state, odom=state.odom @ SE2(self._speed_m_s * self._gap_s(), 0.0, 0.0))


@pytest.mark.parametrize("held_s", [0.3, 1.0, 3.0])
def test_a_process_that_was_stopped_blames_no_wheel_for_what_it_has_not_seen(held_s: float):
    with fake_robot() as robot:
        clock: Any = HeldUp(robot, 0.5, held_s)
        base: Any = PushedBase(robot, -0.3 / held_s, 0.5, 0.5 + held_s)
        motion = MotionController(clock, base, robot.head)
        before = motion.follower.predictor.model
        result = motion.execute(Displacement(forward_m=0.5))
    assert result.outcome is Outcome.REACHED, result.detail
    assert result.measured.forward_m == pytest.approx(0.5, abs=0.006)
    assert motion.follower.predictor.model == before, "nothing is learned of the motors from a gap"


def test_a_stuck_head_times_out():
    with fake_robot(faults=[{"kind": "stuck_head"}]) as robot:
        motion = controller(robot)
        result = motion.execute(LOOK_UP)
    assert result.outcome is Outcome.TIMED_OUT
    assert "head" in result.detail
    assert result.measured == Displacement()


def test_looking_is_allowed_against_a_wall():
    with fake_robot(faults=[{"kind": "stuck_bumper"}]) as robot:
        assert controller(robot).execute(LOOK_UP).outcome is Outcome.REACHED


# --- bases that are not ideal ---------------------------------------------------------------------------------------


class Plant(Base):
    """A base without a Guard whose wheels follow commands with a lag, by a fraction, or not at all."""

    def __init__(self, clock: SimulatedClock, lag_s: float = 0.0, scale: float = 1.0, rate_hz: float = 50.0) -> None:
        self.commands: list[Velocity] = []
        self.odom = SE2()
        self.coasting = False
        self._clock = clock
        self._lag_s = lag_s
        self._scale = scale
        self._rate_hz = rate_hz
        self._wish = self._velocity = Velocity()
        self._step_s = ns_to_seconds(clock.step_ns)
        clock.add_listener(self._on_step)

    @property
    def info(self) -> BaseInfo:
        return BaseInfo("plant", 0.18, 0.7, math.pi, 0.5, 3.5, self._rate_hz)

    def connect(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        self.stop()

    def state(self, max_age_s: float) -> BaseState:
        none = Zone.NONE
        return BaseState(self._clock.now_ns(), self.odom, self._velocity, none, none, none, Halt.NONE, 16.0, 1.0)

    def command(self, velocity: Velocity) -> Velocity:
        self.commands.append(velocity)
        self._wish = velocity
        return velocity

    def stop(self) -> None:
        self._wish = Velocity()

    def emergency_stop(self) -> None:
        self.stop()

    def release_emergency_stop(self) -> None:
        """Nothing to release."""

    def _on_step(self, now_ns: int) -> None:
        follow = 0.0 if self.coasting else min(1.0, self._step_s / self._lag_s) if self._lag_s else 1.0
        v, w = self._velocity.linear_m_s, self._velocity.angular_rad_s
        v += follow * (self._scale * self._wish.linear_m_s - v)
        w += follow * (self._scale * self._wish.angular_rad_s - w)
        self._velocity = Velocity(v, w)
        self.odom = self.odom @ SE2(v * self._step_s, 0.0, w * self._step_s)


def plant_controller(profile: MotionProfile | None = None, **settings: Any) -> tuple[Plant, MotionController]:
    clock = SimulatedClock(seconds_to_ns(0.01))
    plant = Plant(clock, **settings)
    with fake_robot() as robot:
        return plant, MotionController(clock, plant, robot.head, profile)


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
@pytest.mark.parametrize("lag_s", [0.02, 0.06])
@pytest.mark.parametrize("wish", [FORWARD, LEFT])
def test_feedback_makes_up_for_lagging_and_miscalibrated_wheels(wish: Displacement, lag_s: float, scale: float):
    plant, motion = plant_controller(lag_s=lag_s, scale=scale)
    result = motion.execute(wish)
    assert result.outcome is Outcome.REACHED
    assert math.hypot(plant.odom.x_m - wish.forward_m, plant.odom.y_m) <= motion.profile.position_m
    assert abs(wrap_angle(plant.odom.yaw_rad - wish.turn_rad)) <= motion.profile.heading_rad


def test_a_heading_knocked_off_during_a_straight_step_is_brought_back():
    plant, motion = plant_controller()

    def knock(now_ns: int) -> None:
        if now_ns == seconds_to_ns(0.5):
            plant.odom = replace(plant.odom, yaw_rad=plant.odom.yaw_rad + math.radians(5))

    plant._clock.add_listener(knock)
    assert motion.execute(FORWARD).outcome is Outcome.REACHED
    assert abs(plant.odom.yaw_rad) <= motion.profile.heading_rad


def test_a_robot_that_was_pushed_starts_from_where_it_is():
    plant, motion = plant_controller()
    motion.execute(FORWARD)
    plant.odom = SE2(3.0, 4.0, 1.0)
    motion.execute(LEFT)
    assert plant.odom.yaw_rad == pytest.approx(1.0 + LEFT.turn_rad, abs=motion.profile.heading_rad)


def test_a_base_that_does_not_move_times_out():
    _, motion = plant_controller(scale=0.0)
    result = motion.execute(FORWARD)
    assert result.outcome is Outcome.TIMED_OUT
    assert result.detail.startswith("moved 0.000 of 0.250 m")
    assert result.duration_s == pytest.approx(motion.profile.timeout_s(1.465 + 4 * TAIL_S), abs=0.2)
    assert "turned 0.0 of 30.0" in motion.execute(LEFT).detail


def test_a_base_that_does_not_stop_is_a_fault():
    plant, motion = plant_controller()
    plant._velocity, plant.coasting = Velocity(0.2, 0.0), True
    result = motion.execute(FORWARD)
    assert result.outcome is Outcome.FAULT
    assert isinstance(motion.fault, DeviceFault)
    assert "after it was stopped" in result.detail


@pytest.mark.parametrize("odom", [SE2(math.nan, 0, 0), SE2(0, math.inf, 0), SE2(0, 0, math.nan)])
def test_odometry_that_is_not_finite_never_becomes_a_command(odom: SE2):
    plant, motion = plant_controller()
    plant.odom = odom
    result = motion.execute(FORWARD)
    assert (result.outcome, plant.commands) == (Outcome.FAULT, [])
    assert "not finite" in result.detail


def test_commands_keep_to_the_profile_and_to_the_base():
    plant, motion = plant_controller(MotionProfile(linear_m_s=5.0, angular_rad_s=9.0), lag_s=0.06, scale=0.5)
    motion.execute(Displacement(forward_m=1.5))
    motion.execute(Displacement(turn_rad=math.pi))
    assert max(abs(command.linear_m_s) for command in plant.commands) == pytest.approx(plant.info.max_linear_m_s)
    assert max(abs(command.angular_rad_s) for command in plant.commands) <= plant.info.max_angular_rad_s


def test_turning_never_asks_for_forward_motion():
    plant, motion = plant_controller(lag_s=0.06)
    motion.execute(LEFT)
    assert {command.linear_m_s for command in plant.commands} == {0.0}


def test_rest_returns_states_at_rest():
    with fake_robot() as robot:
        robot.base.command(Velocity(0.2, 0.0))
        robot.head.command(0.0, 0.5)
        base, head = controller(robot).rest()
    assert base.velocity == Velocity(0.0, 0.0)
    assert not head.moving
    assert head.tilt_rad == 0.5


def test_rest_does_not_wait_for_ever_for_the_head():
    with fake_robot(faults=[{"kind": "stuck_head"}]) as robot:
        robot.head.command(0.0, 0.5)
        with pytest.raises(DeviceFault, match="head"):
            controller(robot).rest()
