"""Accuracy and duration of motions by bytes: emulated bases with their motors, encoders and gyro, in simulated time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from drivers.create2.driver import CREATE_2_BASE, Create2Options
from drivers.kobuki.driver import KOBUKI_BASE, KobukiOptions
from drivers.serial_base.base import GuardProcessBase
from drivers.serial_base.driver import BaseKind, BaseOptions
from drivers.serial_base.emulator import EmulatorOptions
from drivers.serial_base.lockstep import LockstepEmulation
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.hal.stand_ins import FixedHead
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from tests.benchmarks.report import Row
from tests.support.kinematic_body import KinematicBody

STEP_NS = 5_000_000
FORWARD, TURN = Displacement(forward_m=0.25), Displacement(turn_rad=math.radians(30))
GYRO = EmulatorOptions(gyro_noise_deg=0.02, gyro_drift_deg_s=1 / 60)
"""Drift: a degree a minute; the noise is an assumption."""


@dataclass
class Actions:
    """Durations and errors of all actions of one kind, and how many of them did not end as reached."""

    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    unfinished: int = 0


def make_emulated_base(
    kind: BaseKind, options: BaseOptions, motors: MotorOptions
) -> tuple[SimulatedClock, GuardProcessBase, KinematicBody]:
    """Return a base behind a real guard process and a real pty, in simulated time on an open floor."""
    clock, body = SimulatedClock(STEP_NS), KinematicBody(motors)
    clock.add_listener(body.on_step)
    emulation = LockstepEmulation(body, kind.emulator(body, np.random.default_rng(0), options.emulator))
    base = GuardProcessBase(clock, kind.info(options), kind.settings(options), kind.critical_fraction, emulation)
    base.motors = KnownMotors(motors.true, calibrated=True)
    return clock, base, body


def motion_rows(trials: int, advance: Callable[..., None]) -> list[Row]:
    """Return durations and errors over ``trials`` actions of each kind, of both bases."""
    kobuki = make_emulated_base(KOBUKI_BASE, KobukiOptions(emulator=GYRO), MotorOptions("kobuki"))
    forward, turn = _measure(*kobuki, trials, advance)
    note = f"{trials} each, motors known; dead time 0.2 s, lag 0.1 s, encoder steps, gyro noise and drift"
    rows = [
        _row("forward_error_mm", "0.25 m: error of the distance", forward, forward.errors, "mm", 5, note),
        _row("turn_error_deg", "30 degrees: error of the turn", turn, turn.errors, "deg", 0.5, note),
        _row("forward_s", "0.25 m, from command to rest", forward, forward.seconds, "s", 1.9, note),
        _row("turn_s", "30 degrees, from command to rest", turn, turn.seconds, "s", 1.2, note),
    ]
    create2 = make_emulated_base(CREATE_2_BASE, Create2Options(), MotorOptions("create2"))
    forward, turn = _measure(*create2, trials, advance)
    note = f"{trials} each, motors known; speed quantum 28.5 mm/s, dead time 0.05 s, lag 0.1 s, encoders of one channel"
    distance, angle = "Create 2, 0.25 m: error of the distance", "Create 2, 30 degrees: error of the turn"
    return [
        *rows,
        _row("create2_forward_error_mm", distance, forward, forward.errors, "mm", 8, note),
        _row("create2_turn_error_deg", angle, turn, turn.errors, "deg", 1, note),
    ]


def _measure(
    clock: SimulatedClock, base: GuardProcessBase, body: KinematicBody, trials: int, advance: Callable[..., None]
) -> tuple[Actions, Actions]:
    forward, turn = Actions(), Actions()
    head = FixedHead(clock)
    with base, head:
        clock.sleep(0.5)
        motion = MotionController(clock, base, head)
        for _ in range(trials):
            for displacement, into in ((FORWARD, forward), (TURN, turn)):
                before = body.pose
                result = motion.execute(displacement)
                if motion.fault is not None:
                    raise motion.fault
                into.unfinished += result.outcome is not Outcome.REACHED
                clock.sleep(0.5)
                _add(into, displacement, body.pose.relative_to(before), result.duration_s)
                advance()
    return forward, turn


def _add(into: Actions, displacement: Displacement, moved: SE2, seconds: float) -> None:
    into.seconds.append(seconds)
    if displacement is FORWARD:
        into.errors.append(1000 * abs(moved.x_m - displacement.forward_m))
    else:
        into.errors.append(math.degrees(abs(wrap_angle(moved.yaw_rad - displacement.turn_rad))))


def _row(name: str, what: str, actions: Actions, values: list[float], unit: str, target: float, note: str) -> Row:
    low, middle, high = (float(value) for value in np.percentile(values, (1, 50, 99)))
    if actions.unfinished:
        note = f"{note}; {actions.unfinished} did not end as reached"
    note = f"{note}; in brackets 1st and 99th percentile"
    return Row(name, f"{what}, median", middle, unit, target, "<=", low=low, high=high, note=note)
