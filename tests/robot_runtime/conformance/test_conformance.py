"""The conformance suite catches what it is for: each check fails, by its rule, on a robot broken in one way."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from drivers.fake.driver import make_robot
from robot_runtime.common.clock import Clock
from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import ContactConformance, RobotConformance
from robot_runtime.errors import InvalidCommand, NotConnected, StaleData
from robot_runtime.hal import Mount, Robot, Velocity, Zone
from robot_runtime.robots.loader import RobotContext
from robot_runtime.safety.guard import STILL
from robot_runtime.safety.guarded_wheels import GuardedWheels

Sabotage = Callable[[Any], Any]


def healthy(**options: Any) -> Robot:
    return make_robot(RobotContext(None, None, seed=0), "fake", {"width": 16, "height": 12, **options}, "test")


class Sabotaged(RobotConformance, ContactConformance):
    def __init__(self, sabotage: Sabotage, at_a_wall: bool) -> None:
        self.sabotage = sabotage
        self.at_a_wall = at_a_wall

    def make_robot(self) -> Robot:
        robot = healthy(wall_x_m=0.5) if self.at_a_wall else healthy()
        changed = self.sabotage(robot)
        return changed if isinstance(changed, Robot) else robot


def wrapped(device: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method by ``wrapper(original, *args)``."""
    original = getattr(device, name)
    setattr(device, name, lambda *args, **kwargs: wrapper(original, *args, **kwargs))


def after(device: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Change what a method returns."""
    wrapped(device, name, lambda original, *args, **kwargs: change(original(*args, **kwargs)))


def swallowing(device: Any, name: str, error: type[Exception], instead: Callable[[], Any]) -> None:
    """Make a method return something instead of raising."""

    def wrapper(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except error:
            return instead()

    wrapped(device, name, wrapper)


def odometry(change: Callable[[SE2], SE2]) -> Sabotage:
    return lambda r: after(r.base, "state", lambda s: dataclasses.replace(s, odom=change(s.odom)))


def info(part: str, **fields: Any) -> Sabotage:
    """Replace fields of a device's info."""

    def sabotage(r: Robot) -> None:
        device = getattr(r, part)
        device._info = dataclasses.replace(device._info, **fields)

    return sabotage


def frame(**changes: Callable[[Any], Any]) -> Sabotage:
    def change(f: Any) -> Any:
        return dataclasses.replace(f, **{name: made(f) for name, made in changes.items()})

    return lambda r: after(r.camera, "capture", change)


def pose(part: str, method: str, **changes: Any) -> Sabotage:
    return lambda r: after(getattr(r, part), method, lambda e: dataclasses.replace(e, **changes))


def hands_out(**changes: Any) -> Sabotage:
    """Whoever asks for what has arrived gets something else."""
    return lambda r: after(r.localizer, "arrivals", lambda arrived: dataclasses.replace(arrived, **changes))


def hands_out_once(r: Any) -> None:
    seen: set[int] = set()

    def change(arrived: Any) -> Any:
        new = tuple(estimate for estimate in arrived.estimates if estimate.stamp_ns not in seen)
        seen.update(estimate.stamp_ns for estimate in new)
        return dataclasses.replace(arrived, estimates=new)

    after(r.localizer, "arrivals", change)


def limits(**changes: float) -> Sabotage:
    """Replace limits of the base's Guard."""

    def sabotage(r: Any) -> None:
        r.base._guard = GuardedWheels(dataclasses.replace(r.base._guard.limits, **changes), 0)

    return sabotage


def has_no_ramp(r: Any) -> None:
    limits(max_linear_accel_m_s2=1e6)(r)
    wrapped(r.base, "command", lambda original, v: (original(v), v)[1])


def forgets_e_stop_on_connect(r: Any) -> None:
    wrapped(r.base, "connect", lambda original: (original(), r.base.release_emergency_stop())[0])


def drives_on_after_close(r: Any) -> None:
    r.base.clear = lambda: None


def repeats_one_buffer(r: Any) -> None:
    buffer: list[np.ndarray] = []

    def change(f: Any) -> Any:
        buffer[:] = buffer or [f.rgb]
        buffer[0][:] = np.random.default_rng(f.stamp_ns).integers(0, 255, f.rgb.shape)
        return dataclasses.replace(f, rgb=buffer[0])

    after(r.camera, "capture", change)


def waits_forever(r: Any) -> None:
    wrapped(
        r.camera, "capture", lambda original, after_ns, timeout_s, **more: original(after_ns, timeout_s + 1, **more)
    )


def delivers_old_frames(r: Any) -> None:
    wrapped(r.camera, "capture", lambda original, after_ns, timeout_s, **more: original(0, timeout_s, **more))


def delivers_late_frames(r: Any) -> None:
    wrapped(
        r.camera,
        "capture",
        lambda original, after_ns, timeout_s, **more: original(after_ns + 600_000_000, timeout_s + 1, **more),
    )


def holds_poses(r: Any) -> None:
    """``at`` answers with the pose of the last tenth of a second."""

    def wrapper(original: Callable[..., Any], stamp_ns: int, timeout_s: float) -> Any:
        return dataclasses.replace(original(stamp_ns // 10**8 * 10**8, timeout_s), stamp_ns=stamp_ns)

    wrapped(r.localizer, "at", wrapper)


def answers_with_the_latest(r: Any) -> None:
    r.localizer.at = lambda stamp_ns, timeout_s: r.localizer.latest(1.0)


def extrapolates(r: Any) -> None:
    swallowing(r.localizer, "at", StaleData, lambda: r.localizer.latest(9.0))


def works_disconnected(r: Any) -> None:
    swallowing(r.head, "state", NotConnected, lambda: None)


def moves_nothing(r: Any) -> Robot:
    class Nowhere:
        def place(self, pose: SE2, tilt_rad: float) -> None: ...

    return dataclasses.replace(r, placer=Nowhere())


def unclipped(r: Any) -> None:
    wrapped(
        r.head, "command", lambda original, pan_rad, tilt_rad: (original(pan_rad, tilt_rad), (pan_rad, tilt_rad))[1]
    )


def never_settles(r: Any) -> None:
    after(r.head, "state", lambda s: dataclasses.replace(s, moving=True))


def always_at_rest(r: Any) -> None:
    after(r.head, "state", lambda s: dataclasses.replace(s, moving=False))


def head_in_degrees(r: Any) -> None:
    after(r.head, "state", lambda s: dataclasses.replace(s, tilt_rad=math.degrees(s.tilt_rad)))


def ignores_age(part: str, method: str) -> Sabotage:
    return lambda r: wrapped(getattr(r, part), method, lambda original, max_age_s: original(9.0))


def blocks_in_command(r: Any) -> None:
    wrapped(r.base, "command", lambda original, v: (r.clock.sleep(0.1), original(v))[1])


def accepts_anything(part: str) -> Sabotage:
    return lambda r: swallowing(getattr(r, part), "command", InvalidCommand, lambda: STILL)


def goes_to_zero_for_nan(r: Any) -> None:
    def wrapper(original: Callable[..., Any], pan_rad: float, tilt_rad: float) -> Any:
        try:
            return original(pan_rad, tilt_rad)
        except InvalidCommand:
            original(0.5, 0.5)
            raise

    wrapped(r.head, "command", wrapper)


def keeps_turning_for_nan(r: Any) -> None:
    def wrapper(original: Callable[..., Any], velocity: Velocity) -> Any:
        before = r.base._guard._guard.state
        try:
            return original(velocity)
        except InvalidCommand:
            r.base._guard._guard.state = before
            raise

    wrapped(r.base, "command", wrapper)


def ignores_semantic(promised: bool) -> Sabotage:
    def sabotage(r: Any) -> None:
        info("camera", has_semantic=promised)(r)
        wrapped(r.camera, "capture", lambda original, after_ns, timeout_s, **more: original(after_ns, timeout_s))

    return sabotage


class Sleepyhead(Clock):
    """Wakes up late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ns(self) -> int:
        return self._clock.now_ns()

    def sleep_until(self, deadline_ns: int) -> None:
        self._clock.sleep_until(deadline_ns + 200_000_000)


def feels_nothing(r: Any) -> None:
    r.base._truth.pressed_zone = lambda: Zone.NONE


def ignores_contact(r: Any) -> None:
    """Says what it feels, and drives on: the wheels spin and odometry counts."""
    wrapped(r.base._guard, "feedback", lambda original, f: original(f._replace(bumper=Zone.NONE)))


def forgets_contact(r: Any) -> None:
    """Takes contact for an event: only the first state that has it says so."""
    seen: list[bool] = []

    def fresh_contact_only(state: Any) -> Any:
        if not state.bumper:
            return state
        seen.append(True)
        return state if len(seen) <= 2 else dataclasses.replace(state, bumper=Zone.NONE)

    after(r.base, "state", fresh_contact_only)


def refuses_all_in_contact(r: Any) -> None:
    def wrapper(original: Callable[..., Any], velocity: Velocity) -> Any:
        return original(STILL if r.base.state(1.0).bumper else velocity)

    wrapped(r.base, "command", wrapper)


CASES: tuple[tuple[str, Sabotage, str], ...] = (
    ("base_info_is_sane", info("base", radius_m=18.0), "radius_m is in meters"),
    ("base_info_is_sane", info("base", rate_hz=5.0), "at least twice within a command's life"),
    ("base_info_is_sane", info("base", max_linear_m_s=math.inf), "max_linear_m_s is positive"),
    ("base_state_is_fresh", pose("base", "state", stamp_ns=10**15), "not stamped in the future"),
    ("base_state_is_fresh", pose("base", "state", battery_fraction=87.0), "battery_fraction is 0..1"),
    ("base_state_is_fresh", pose("base", "state", battery_v=-1.0), "battery_v is in volts"),
    ("base_state_is_fresh", pose("base", "state", bumper=0), "zones are Zones"),
    ("base_state_raises", ignores_age("base", "state"), "raises StaleData"),
    ("base_command_returns_at_once", blocks_in_command, "does not wait"),
    ("base_command_returns_at_once", has_no_ramp, "limited by acceleration"),
    (
        "base_command_returns_at_once",
        limits(max_angular_rad_s=30.0, max_angular_accel_rad_s2=99),
        "past the speed limit",
    ),
    ("base_forward_is_positive", odometry(lambda p: SE2(-p.x_m, -p.y_m, p.yaw_rad)), "forward positive"),
    ("base_forward_is_positive", odometry(lambda p: SE2(1e3 * p.x_m, p.y_m, p.yaw_rad)), "in meters"),
    ("base_left_is_positive", odometry(lambda p: SE2(p.x_m, p.y_m, -p.yaw_rad)), "counter-clockwise positive"),
    ("base_left_is_positive", odometry(lambda p: SE2(p.x_m, p.y_m, math.degrees(p.yaw_rad))), "in radians"),
    ("base_command_expires", limits(command_timeout_s=0.6), "expires after 0.2 s"),
    ("base_command_expires", limits(command_timeout_s=0.055), "lives for a while"),
    ("base_stop_is_immediate", lambda r: setattr(r.base, "stop", lambda: None), "bypasses every ramp"),
    (
        "base_emergency_stop_latches",
        lambda r: setattr(r.base, "emergency_stop", r.base.stop),
        "lets no command through",
    ),
    ("base_emergency_stop_outlives", forgets_e_stop_on_connect, "does not release an e-stop"),
    ("base_refuses_what_is_not_finite", accepts_anything("base"), "not finite is refused"),
    ("base_refuses_what_is_not_finite", keeps_turning_for_nan, "stops at once"),
    ("base_close_leaves", drives_on_after_close, "leaves the wheels at zero"),
    ("contact_stops", feels_nothing, "presses the center bumper"),
    ("contact_stops", ignores_contact, "refuses every forward command"),
    ("contact_refuses_arcs", refuses_all_in_contact, "turning on the spot is allowed"),
    ("contact_is_a_level", forgets_contact, "stays pressed"),
    ("contact_is_a_level", refuses_all_in_contact, "backing off clears"),
    ("head_state_raises", ignores_age("head", "state"), "raises StaleData"),
    ("head_clips", unclipped, "clipped to the limits"),
    ("head_clips", never_settles, "reaches its goal within"),
    ("head_clips", always_at_rest, "from its command on"),
    ("head_clips", head_in_degrees, "within 1 degree"),
    ("head_refuses", accepts_anything("head"), "not finite is refused"),
    ("head_refuses", goes_to_zero_for_nan, "leaves the head where it is"),
    ("camera_info_is_sane", info("camera", depth_max_m=10_000.0), "in meters"),
    ("camera_info_is_sane", info("camera", mount=Mount(0, 0, 1), rate_hz=0.0), "rate is positive"),
    ("camera_delivers", delivers_old_frames, "exposed at or after"),
    ("camera_delivers", delivers_late_frames, "first such frame"),
    ("camera_delivers", frame(rgb=lambda f: f.rgb[..., :1]), r"rgb is uint8 \(H, W, 3\)"),
    ("camera_delivers", frame(depth_m=lambda f: f.depth_m.astype(np.float64)), "depth is float32"),
    ("camera_delivers", frame(depth_m=lambda f: f.depth_m * 1000), "within the sensor's range"),
    ("camera_delivers", frame(depth_m=lambda f: f.depth_m * np.float32(0.9437)), "multiple of the depth unit"),
    ("camera_delivers", frame(semantic=lambda f: f.rgb), "unless asked for"),
    ("camera_delivers", repeats_one_buffer, "never overwritten"),
    ("camera_gives_up", waits_forever, "respects its timeout"),
    ("camera_gives_up", delivers_old_frames, "raises StaleData"),
    ("camera_segments", ignores_semantic(promised=True), "asked for is delivered"),
    ("camera_segments", ignores_semantic(promised=False), "refuses to deliver it"),
    (
        "localizer_info_is_sane",
        lambda r: setattr(r.referee, "_info", r.referee._info.__class__("r", "odom", 1)),
        "in map",
    ),
    ("localizer_latest", pose("localizer", "latest", frame="odom"), "frame that info states"),
    ("localizer_latest", pose("localizer", "latest", covariance=np.zeros((6, 6))), "covariance is float64"),
    ("localizer_latest", pose("localizer", "latest", covariance=-np.eye(3)), "it is a covariance"),
    ("localizer_latest", pose("localizer", "latest", stamp_ns=0), "poses keep coming"),
    ("localizer_latest", ignores_age("localizer", "latest"), "raises StaleData"),
    ("localizer_at_answers", answers_with_the_latest, "for the very instant"),
    ("localizer_at_answers", pose("referee", "at", pose=SE2(1, 1, 1)), "has one position"),
    ("localizer_at_interpolates", holds_poses, "interpolated, not held"),
    ("localizer_at_refuses", extrapolates, "no measurements for"),
    ("localizer_hands_out", hands_out(estimates=()), "arrived in a second is handed out"),
    ("localizer_hands_out", hands_out(restarted=True), "has not forgotten anything"),
    ("localizer_hands_out", hands_out(mark=0), "handed out twice"),
    ("localizer_hands_out", hands_out_once, "reading takes nothing away"),
    ("robot_raises_not_connected", works_disconnected, "head.state raises NotConnected"),
    ("robot_stands", moves_nothing, "is where it was placed|faces where it was placed"),
    ("clock_is_monotonic", lambda r: dataclasses.replace(r, clock=Sleepyhead(r.clock)), "returns at its deadline"),
)


@pytest.mark.parametrize(("check", "sabotage", "rule"), CASES, ids=[f"{c[0]}: {c[2]}" for c in CASES])
def test_a_broken_robot_is_caught_by_name(check: str, sabotage: Sabotage, rule: str) -> None:
    suite = Sabotaged(sabotage, at_a_wall=check.startswith("contact"))
    (name,) = [n for n in dir(suite) if n.startswith(f"test_{check}")]
    with pytest.raises(AssertionError, match=rule):
        getattr(suite, name)()


def test_a_base_without_a_voltmeter_passes() -> None:
    Sabotaged(
        pose("base", "state", battery_v=math.nan, battery_fraction=math.nan), at_a_wall=False
    ).test_base_state_is_fresh_ordered_and_complete()


def test_every_check_is_tried_on_a_broken_robot() -> None:
    checks = {name for name in dir(Sabotaged) if name.startswith("test_")}
    tried = {name for name in checks for check, _, _ in CASES if name.startswith(f"test_{check}")}
    plain = {
        "test_head_limits_are_sane_while_disconnected",
        "test_robot_closes_when_its_user_fails",
        "test_robot_connects_and_closes_any_number_of_times",
        "test_robot_is_connected_whole_or_not_at_all",
    }
    assert checks - tried == plain


def test_a_subclass_must_make_a_robot() -> None:
    with pytest.raises(TypeError, match="RobotConformance must override make_robot"):
        RobotConformance().make_robot()
