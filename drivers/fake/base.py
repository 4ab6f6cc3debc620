"""The fake base: exact kinematics behind the real Guard."""

from __future__ import annotations

import threading
from collections.abc import Callable

from drivers.fake.device import FakeDevice
from drivers.fake.faults import Cliff, SilentBase, StuckBumper, WheelDrop, zones
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock, ns_to_seconds
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Velocity
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.hal.simulated_motors import LateReports, MotorOptions, SimulatedMotors
from robot_runtime.hal.streams import fresh
from robot_runtime.safety import STILL, Feedback, Guard, GuardLimits

BATTERY_V = 16.5


class FakeBase(FakeDevice, Base):
    """Base that per clock step moves by the Guard's last velocity, reads its sensors, and runs the Guard."""

    def __init__(
        self,
        clock: SimulatedClock,
        truth: GroundTruth,
        script: Script,
        info: BaseInfo,
        motors: MotorOptions,
        battery_fraction: float = 1.0,
    ) -> None:
        super().__init__("base", clock, script)
        self._truth = truth
        self._info = info
        self._battery_fraction = battery_fraction
        # Of the Guard, the wheels and the state: an emergency stop comes from any thread.
        self._lock = threading.RLock()
        self._guard = Guard(GuardLimits.of(info))
        self._wheels = STILL
        self._motors = SimulatedMotors(motors)
        self.motors = motors.nominal
        self._reports = LateReports(motors.report_delay_s)
        self._stepped_ns = clock.now_ns()

    @property
    def info(self) -> BaseInfo:
        return self._info

    def state(self, max_age_s: float) -> BaseState:
        self._require_connected()
        now_ns = self._clock.now_ns()
        return fresh("base", self._reports.newest(now_ns), now_ns, max_age_s)

    def command(self, velocity: Velocity) -> Velocity:
        self._require_connected()
        with self._lock:
            try:
                self._guard.command(velocity, self._clock.now_ns())
            finally:
                self._decide()
            return self._wheels

    def stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.stop()
            self._decide()

    def emergency_stop(self) -> None:
        self._held(self._guard.emergency_stop)

    def release_emergency_stop(self) -> None:
        self._held(self._guard.release_emergency_stop)

    def _held(self, change: Callable[[], None]) -> None:
        """Change the Guard, and report at once what it holds the wheels for: the clock may stand still."""
        self._require_connected()
        with self._lock:
            change()
            halt = self._decide()
            self._reports.hold(halt)

    def _on_connected(self) -> None:
        self._sense(moved=STILL)

    def _clear(self) -> None:
        with self._lock:
            self._guard.stop()
            self._decide()
            self._motors.restart()
            self._reports.clear()

    def _on_step(self, now_ns: int) -> None:
        wheels, step_s = self._wheels, ns_to_seconds(now_ns - self._stepped_ns)
        if step_s:
            driven = self._motors.drive(
                wheels.linear_m_s, wheels.angular_rad_s, self._stepped_ns, step_s, self._battery_fraction
            )
            moved = self._truth.drive(Velocity(*driven), step_s)
        else:
            moved = STILL
        self._stepped_ns = now_ns
        if self._connected:
            self._sense(moved)

    def _sense(self, moved: Velocity) -> None:
        """Update the Guard and the state; neither during the fault ``silent_base``."""
        with self._lock:
            self._sense_locked(moved)

    def _sense_locked(self, moved: Velocity) -> None:
        now_ns = self._clock.now_ns()
        if self._script.active(SilentBase, now_ns):
            self._decide()
            return
        feedback = Feedback(
            now_ns,
            bumper=self._truth.pressed_zone() | zones(f.zone for f in self._script.active(StuckBumper, now_ns)),
            cliff=zones(f.zone for f in self._script.active(Cliff, now_ns)),
            wheel_drop=zones(f.zone for f in self._script.active(WheelDrop, now_ns)),
        )
        self._guard.feedback(feedback)
        self._reports.add(
            BaseState(
                stamp_ns=now_ns,
                odom=self._truth.odom,
                velocity=moved,
                bumper=feedback.bumper,
                cliff=feedback.cliff,
                wheel_drop=feedback.wheel_drop,
                halt=self._decide(),
                battery_v=BATTERY_V,
                battery_fraction=self._battery_fraction,
            )
        )

    def _decide(self) -> Halt:
        decision = self._guard.tick(self._clock.now_ns())
        self._wheels = decision.velocity
        return decision.halt
