"""Checks of a complete robot, each device by itself: ``robot-runtime doctor --robot``. Nothing moves."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal import Base, Camera, Device, Halt, Head, Localizer, Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.robots.calibration_file import calibrations_in, open_calibration, remedy

WARM_UP_S = 1.5
"""Time after which every device has reported."""

RATE_S = 1.0
POLL_S = 0.002
FRAME_S = 5.0
MIN_RATE = 0.8
"""Share of the nominal rate of the base's states."""

OLD = 0.8
"""Share of a calibration's validity after which a recalibration is due soon."""

MIN_DEPTH = 0.05
"""Share of pixels with a depth below which the camera sees nothing."""

_REMEDIES = {
    Halt.E_STOP: "release the emergency stop where it was engaged",
    Halt.CONTACT: "move the robot away from what presses its bumper",
    Halt.CLIFF: "set the robot on the floor; clean its cliff sensors",
    Halt.WHEEL_DROP: "set the robot on the floor",
    Halt.NO_FEEDBACK: "check the base's power and cable",
}


def check_devices(robot: Robot) -> Iterator[Finding]:
    """Connect a robot's devices one by one and check each; one that fails does not hide the others.

    Args:
        robot: disconnected; it is disconnected again at the end.
    """
    connected: list[tuple[str, Device]] = []
    try:
        for name, device in _named(robot):
            faults = _findings(name, device.connect)
            yield from faults
            if not faults:
                connected.append((name, device))
        robot.clock.sleep(WARM_UP_S)
        for name, device in connected:
            yield from _checked(name, device, robot)
    finally:
        for _, device in reversed(connected):
            device.close()


def check_calibrations(configuration: Any, robot: str, now: str) -> Iterator[Finding]:
    """Check the age of the calibrations that a robot's file names, and what it lacks."""
    try:
        paths = calibrations_in(configuration)
    except RuntimeFault as fault:
        yield Finding("calibrations", Status.FAIL, fault.message, fault.remedy)
        return
    for path in map(Path, paths):
        stamp = open_calibration(path).stamp
        age_days = stamp.age_days(now)
        detail = f"{path}: {age_days:.0f} days old, valid for {stamp.valid_days:g}"
        status = Status.OK if age_days < OLD * stamp.valid_days else Status.WARN
        status = Status.FAIL if age_days > stamp.valid_days or stamp.robot != robot else status
        fix = "" if status is Status.OK else remedy(stamp.kind, robot)
        yield Finding(f"calibration of {stamp.kind}", status, detail, fix)
    for kind, field in (("odometry", "odometry"), ("tilt-servo", "tilt_servo")):
        if configuration.get(field) is None:
            yield Finding(f"calibration of {kind}", Status.WARN, "there is none", remedy(kind, robot))


def _named(robot: Robot) -> Iterator[tuple[str, Device]]:
    """Return the distinct devices in the order of their connection, each with its role."""
    roles = ("base", "head", "camera", "localizer", "referee", "odometry", "manipulator", "tracker", "simulation")
    names: dict[Device, str] = {}
    for role in roles:
        device = getattr(robot, role)
        if device is not None:
            names.setdefault(device, role)
    return ((names[device], device) for device in robot.devices)


def _checked(name: str, device: Device, robot: Robot) -> Iterator[Finding]:
    checks: list[Callable[[], Sequence[Finding]]] = [device.diagnose]
    if isinstance(device, Base):
        checks.insert(0, lambda: _base(device, robot))
    elif isinstance(device, Head):
        checks.insert(0, lambda: [_head(device)])
    elif isinstance(device, Camera):
        checks.insert(0, lambda: [_camera(device, robot)])
    elif isinstance(device, Localizer):
        checks.insert(0, lambda: [_localizer(name, device)])
    for check in checks:
        yield from _findings(name, check)


def _findings(name: str, check: Callable[[], Sequence[Finding] | None]) -> Sequence[Finding]:
    try:
        return check() or ()
    except RuntimeFault as fault:
        return [Finding(name, Status.FAIL, fault.message, fault.remedy)]


def _base(base: Base, robot: Robot) -> list[Finding]:
    clock, stamps = robot.clock, set()
    end_ns = clock.now_ns() + round(RATE_S * 1e9)
    while clock.now_ns() < end_ns:
        stamps.add(base.state(STREAMS["base"].max_age_s).stamp_ns)
        clock.sleep(POLL_S)
    state, rate_hz = base.state(STREAMS["base"].max_age_s), len(stamps) / RATE_S
    slow = rate_hz < MIN_RATE * base.info.rate_hz
    rate = f"{rate_hz:.0f} states per second of {base.info.rate_hz:g}"
    rows = [
        Finding(
            "base",
            Status.WARN if slow else Status.OK,
            rate,
            "check the adapter's latency timer and the computer's load" if slow else "",
        )
    ]
    if state.halt in _REMEDIES:
        rows.append(Finding("wheels", Status.FAIL, f"held: {state.halt.value}", _REMEDIES[state.halt]))
    if math.isnan(state.battery_fraction):
        return [*rows, Finding("battery", Status.WARN, state.battery, "check its charge by hand")]
    least = robot.min_battery_fraction
    level = Status.FAIL if state.battery_fraction < least else Status.OK
    level = Status.WARN if level is Status.OK and state.battery_fraction < 2 * least else level
    return [*rows, Finding("battery", level, state.battery, "" if level is Status.OK else "charge it")]


def _head(head: Head) -> Finding:
    state = head.state(STREAMS["head"].max_age_s)
    angles = f"pan {math.degrees(state.pan_rad):.1f}°, tilt {math.degrees(state.tilt_rad):.1f}°"
    if state.moving:
        return Finding("head", Status.WARN, f"{angles}, does not come to rest", "check its servos and what loads them")
    return Finding("head", Status.OK, angles)


def _camera(camera: Camera, robot: Robot) -> Finding:
    frame = camera.capture(robot.clock.now_ns(), FRAME_S)
    height, width = frame.rgb.shape[:2]
    share = float(np.count_nonzero(frame.depth_m)) / frame.depth_m.size
    detail = f"{width}x{height}, depth in {100 * share:.0f} % of the pixels"
    if share < MIN_DEPTH:
        remedy = "uncover the lens, and turn the robot away from walls nearer than its range"
        return Finding("camera", Status.WARN, detail, remedy)
    return Finding("camera", Status.OK, detail)


def _localizer(name: str, localizer: Localizer) -> Finding:
    estimate = localizer.latest(STREAMS["pose"].max_age_s)
    pose, deviation_m = estimate.pose, math.sqrt(max(estimate.covariance[0, 0], estimate.covariance[1, 1]))
    where = f"x {pose.x_m:.2f} m, y {pose.y_m:.2f} m, {math.degrees(pose.yaw_rad):.0f}° in {estimate.frame}"
    return Finding(name, Status.OK, f"{localizer.info.name}: {where}, ± {100 * deviation_m:.1f} cm")
