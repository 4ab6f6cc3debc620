"""Bases that obey nothing, and those that only start slowly: whether and when the driver calls a base dead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress

import numpy as np

from drivers.ros.base.dead_base import LEAST_M_S, DeadBase, MotionWatch
from drivers.ros.connection.clock import RosClock
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import CameraOptions
from drivers.ros2.create3 import Ros2Base
from drivers.ros2.options import NetworkOptions, Ros2BaseOptions, Ros2Options
from drivers.ros2.session import Session
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Velocity
from robot_runtime.hal.motors import MAX_DEAD_TIME_S
from robot_runtime.safety.guard import STILL
from tests.benchmarks.report import Row
from tests.ros2.emulators.world import Wheels
from tests.ros2.ros2_programs import Emulator

LAG_S = 0.3
"""With the longest dead time that a model of motors may have: slower than every documented base."""

FORWARD = Velocity(0.1, 0.0)
PERIOD_S, ODOM_S, STEP_S = 0.02, 0.05, 0.005
LIMIT_S = 5.0


def dead_base_rows(domain: int, deaths: int, starts: int, simulated: int) -> Iterator[Row]:
    """The rows.

    Args:
        domain: of the network.
        deaths: number of bases that die, half of them at rest and half while they drive.
        starts: number of starts of the slowest motors over the network, in real time.
        simulated: number of such starts on a simulated clock.
    """
    with closing(Emulator("create3", domain)) as create3:
        times_s = sorted(_death_s(create3, domain, drives=number % 2 == 1) for number in range(deaths))
    value = times_s[min(deaths - 1, round(0.99 * deaths))]
    note = f"{deaths} deaths, at rest and while driving; median and longest in brackets"
    label = f"from the first command of {LEAST_M_S:g} m/s at which the wheels rest to the fault, 99 of 100 are faster"
    low, high = times_s[deaths // 2], times_s[-1]
    yield Row("dead_base_named_s", label, value, "s", 1, "<=", low=low, high=high, note=note)
    slow = ("--dead-time-s", MAX_DEAD_TIME_S, "--lag-s", LAG_S)
    with closing(Emulator("create3", domain, *slow)) as create3:
        false = _false_alarms(create3, domain, starts)
    label = f"starts that count as death, with {MAX_DEAD_TIME_S:g} s of dead time and {LAG_S:g} s of lag"
    yield Row("dead_base_false", f"{label}, over the network", false, "", 0, "<=", note=f"{starts} starts in real time")
    false = sum(_is_false_alarm(np.random.default_rng(seed)) for seed in range(simulated))
    note = f"{simulated} starts, the driver's rule alone"
    yield Row("dead_base_false_simulated", f"{label}, on a simulated clock", false, "", 0, "<=", note=note)


def _connected(domain: int) -> Ros2Base:
    network = NetworkOptions(domain, connect_timeout_s=20.0)
    options = Ros2Options("create3", CameraOptions("habitat"), base=Ros2BaseOptions(), network=network)
    base = Ros2Base("bench", Session(network, RosClock(0.5, 5.0)), options, MotionHistory())
    base.connect()
    return base


def _death_s(create3: Emulator, domain: int, drives: bool) -> float:
    """From the last instant at which the base had an excuse to the fault."""
    create3.tell(dead=False)
    create3.wait(lambda state: state["stopped_at_s"])
    with closing(_connected(domain)) as base:
        if drives:
            _drive(base, 0.05)
        create3.tell(dead=True)
        excused_s = time.monotonic()
        while base.site[0].fault is None:
            if time.monotonic() > excused_s + LIMIT_S:
                return float("inf")
            with suppress(DeadBase):
                if base.command(FORWARD).linear_m_s < LEAST_M_S:
                    excused_s = time.monotonic()
            time.sleep(0.005)
        named_s = time.monotonic()
        assert isinstance(base.site[0].fault, DeadBase), base.site[0].fault
        return named_s - max(excused_s, float(create3.state["stopped_at_s"]))


def _drive(base: Ros2Base, distance_m: float) -> None:
    begin = base.state(1.0).odom
    while base.state(1.0).odom.distance_to(begin) < distance_m:
        base.command(FORWARD)
        time.sleep(PERIOD_S)


def _false_alarms(create3: Emulator, domain: int, starts: int) -> int:
    false, left = 0, starts
    while left > 0:
        with closing(_connected(domain)) as base:
            with suppress(DeadBase):
                while left > 0:
                    left -= 1
                    _drive(base, 0.01)
                    base.stop()
                    time.sleep(MAX_DEAD_TIME_S)
                    create3.wait(lambda state: state["stopped_at_s"])
                return false
            false += 1
    return false


def _is_false_alarm(random: np.random.Generator) -> bool:
    """Whether a start of the emulator's wheels counts as death, at any phase of odometry, forward or turning."""
    wheels = Wheels(0.233, 0.9, lag_s=LAG_S, dead_time_s=MAX_DEAD_TIME_S)
    watch, pose, odom_s = MotionWatch(), SE2(), random.uniform(0, ODOM_S)
    asked = FORWARD if random.random() < 0.5 else Velocity(0.0, random.uniform(0.3, 1.0))
    sent = STILL
    for number in range(round(3.0 / STEP_S)):
        now_s = number * STEP_S
        if number % round(PERIOD_S / STEP_S) == 0 and now_s > 0.2:
            sent = Velocity(
                min(asked.linear_m_s, sent.linear_m_s + 0.9 * PERIOD_S),
                min(asked.angular_rad_s, sent.angular_rad_s + 5.0 * PERIOD_S),
            )
            watch.command(sent, seconds_to_ns(now_s))
        wheels.step(sent.linear_m_s, sent.angular_rad_s, STEP_S)
        pose = pose @ SE2.arc(wheels.v_mps * STEP_S, wheels.w_radps * STEP_S)
        if now_s >= odom_s:
            odom_s += ODOM_S
            try:
                watch.odometry(pose, seconds_to_ns(now_s))
            except DeadBase:
                return True
    return False
