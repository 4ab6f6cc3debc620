"""Random bases of a benchmark: motors, reports and Guard of each, and a robot that consists of little else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from drivers.fake.base import FakeBase
from drivers.fake.faults import Fault
from drivers.fake.ground_truth import GroundTruth
from drivers.fake.head import FakeHead
from robot_runtime.common.clock import SimulatedClock, ns_to_seconds, seconds_to_ns
from robot_runtime.hal import BaseInfo, HeadLimits
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.hal.motors import CREATE_2_MOTORS, KOBUKI_MOTORS, KnownMotors, MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors

MAX_LAG_S = MAX_DEAD_TIME_S = 0.25
"""A Kobuki's dead time is about 0.2 s (yujinrobot/kobuki issue 389); smoother, Wi-Fi and USB add to it. No source has
a lag: the same limit is assumed."""

MAX_THRESHOLD_M_S = 0.12
"""A Create 2 starts at 11 mm/s (ktibow.github.io/blog/roombamotors). A Kobuki struggles with friction on turns of 0.33
rad/s, 0.04 m/s per wheel (yujinrobot/kobuki issue 144). Three times that is assumed, for worn motors and carpet."""

GAIN = 0.05
MAX_GAIN_LOSS = 0.1
"""Assumptions: diameters of wheels, and what an empty battery takes."""

REPORT_DELAY_S = (0.02, 0.1)
"""A Kobuki reports every 20 ms, and an FTDI adapter may hold a report for 16 ms more (yujinrobot/kobuki issue 382). The
rest is left to the network: beyond ``MotionProfile.state_max_age_s`` of 0.15 s the controller waits."""

ACCEL_M_S2 = (0.5, 1.5)
"""From kobuki_core's acceleration limiter (0.5 m/s²) to beyond what the profile asks for (1 m/s²)."""

QUARTER = 0.25
"""Share of bases with a Create 2's quantum, and of those whose firmware limits acceleration."""

INFO = BaseInfo("bench", 0.18, 0.7, math.pi, 1.0, 7.0, 50.0)
"""The Guard's limits and the rate: those of the LoCoBot stack's velocity smoother on a Kobuki."""

STILL_M, STILL_RAD = 1e-4, 1e-3
"""Motion that is none."""

HEAD = HeadLimits(-1.0, 1.0, -1.0, 1.0, 2.0, 0.1)


class Motors(Protocol):
    """Wheels of a simulated base, as :class:`~robot_runtime.hal.simulated_motors.SimulatedMotors`."""

    def restart(self) -> None:
        """Stand still, with no command under way."""

    def drive(
        self, linear_m_s: float, angular_rad_s: float, now_ns: int, step_s: float, battery_fraction: float = 1.0
    ) -> tuple[float, float]:
        """Turn the wheels for one step; return their mean linear and angular velocity."""


@dataclass(frozen=True)
class RandomBase:
    """One base.

    Attributes:
        number: index of the base, starting at 0.
        motors: true motor parameters.
        battery_fraction: charge, which lowers the gain.
    """

    number: int
    motors: MotorOptions
    battery_fraction: float

    @property
    def true(self) -> MotorModel:
        """The motors' model at the present charge, with thresholds as commands can show them."""
        model = self.motors.true
        strength = 1 - self.motors.gain_loss * (1 - self.battery_fraction)
        left, right = (strength * gain for gain in model.gain)
        least_m_s = model.speed_quantum_m_s / 2
        low_m_s, high_m_s = (max(threshold_m_s, least_m_s) for threshold_m_s in model.threshold_m_s)
        return replace(model, gain=(left, right), threshold_m_s=(low_m_s, high_m_s))

    @property
    def nominal(self) -> MotorModel:
        """The motors that the type of base states: a Create 2's where speeds have a quantum, else a Kobuki's."""
        model = CREATE_2_MOTORS if self.motors.true.speed_quantum_m_s else KOBUKI_MOTORS
        return replace(model, separation_m=self.motors.true.separation_m)

    def simulated(self) -> Motors:
        """New motors of this base."""
        return SimulatedMotors(self.motors)


def random_base(number: int, seed: int) -> RandomBase:
    """The base of a number; the same for the same seed."""
    random = np.random.default_rng((seed, number))
    quantum_m_s = CREATE_2_MOTORS.speed_quantum_m_s if random.random() < QUARTER else 0.0
    accel_m_s2 = float(random.uniform(*ACCEL_M_S2)) if random.random() < QUARTER else None
    left, right = random.uniform(1 - GAIN, 1 + GAIN, 2).tolist()
    low_m_s, high_m_s = random.uniform(0, MAX_THRESHOLD_M_S, 2).tolist()
    motors = MotorOptions(
        dead_time_s=float(random.uniform(0, MAX_DEAD_TIME_S)),
        lag_s=float(random.uniform(0, MAX_LAG_S)),
        gain=(left, right),
        threshold_m_s=(low_m_s, high_m_s),
        speed_quantum_m_s=quantum_m_s,
        accel_m_s2=accel_m_s2,
        gain_loss=float(random.uniform(0, MAX_GAIN_LOSS)),
        report_delay_s=float(random.uniform(*REPORT_DELAY_S)),
    )
    return RandomBase(number, motors, float(random.uniform(0.2, 1.0)))


class BenchRobot:
    """Clock, base and head of a fake robot in an open plane, connected.

    Args:
        base: base of the robot.
        known: motor parameters that its controller is given; None for none.
        faults: faults of the base.

    Attributes:
        random_base: what it is made of.
        truth: where it is.
    """

    def __init__(self, base: RandomBase, known: KnownMotors | None = None, faults: Sequence[Fault] = ()) -> None:
        self.random_base = base
        self.clock = SimulatedClock(seconds_to_ns(1 / INFO.rate_hz))
        self.truth = GroundTruth(INFO.radius_m, None)
        script = Script(tuple(faults))
        self.base = FakeBase(self.clock, self.truth, script, INFO, base.motors, base.battery_fraction)
        self.base._motors = base.simulated()  # type: ignore[assignment]
        if known is not None:
            self.base.motors = known
        self.head = FakeHead(self.clock, self.truth, script, HEAD)
        self.base.connect()
        self.head.connect()

    def wait_for_rest(self) -> int:
        """Let time pass until the robot has stood still for longer than any dead time; since when, in nanoseconds."""
        rest_ns, odom = self.clock.now_ns(), self.truth.odom
        while ns_to_seconds(self.clock.now_ns() - rest_ns) < 1.2 * MAX_DEAD_TIME_S:
            self.clock.sleep(1 / INFO.rate_hz)
            moved = self.truth.odom.relative_to(odom)
            if abs(moved.x_m) > STILL_M or abs(moved.yaw_rad) > STILL_RAD:
                rest_ns, odom = self.clock.now_ns(), self.truth.odom
        return rest_ns
