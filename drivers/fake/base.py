"""The fake base: exact kinematics behind the real Guard."""

from drivers.fake.device import FakeDevice
from drivers.fake.faults import Cliff, SilentBase, StuckBumper, WheelDrop, zones
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock, ns_to_seconds
from robot_runtime.hal import BaseInfo, BaseState, Velocity, fresh
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.hal.simulated_motors import LateReports, MotorOptions, SimulatedMotors
from robot_runtime.safety.guard import STILL, Feedback
from robot_runtime.safety.guarded_base import GuardedBase

BATTERY_V = 16.5


class FakeBase(FakeDevice, GuardedBase):
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
        FakeDevice.__init__(self, "base", clock, script)
        GuardedBase.__init__(self, info, clock)
        self._truth = truth
        self._battery_fraction = battery_fraction
        self._motors = SimulatedMotors(motors)
        self.motors = motors.nominal
        self._reports = LateReports(motors.report_delay_s)
        self._stepped_ns = clock.now_ns()

    def state(self, max_age_s: float) -> BaseState:
        self._require_connected()
        now_ns = self._clock.now_ns()
        return fresh("base", self._reports.newest(now_ns), now_ns, max_age_s)

    def _emergency_stop_changed(self) -> None:
        self._reports.hold(self._guard.halt)  # the clock may stand still

    def _on_connected(self) -> None:
        self._sense(moved=STILL)

    def clear(self) -> None:
        with self._lock:
            self._guard.restart()
            self._motors.restart()
            self._reports.clear()

    def _on_step(self, now_ns: int) -> None:
        wheels, step_s = self._guard.velocity, ns_to_seconds(now_ns - self._stepped_ns)
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
            now_ns = self._clock.now_ns()
            if self._script.active(SilentBase, now_ns):
                self._guard.poll(now_ns)
            else:
                self._measure(moved, now_ns)

    def _measure(self, moved: Velocity, now_ns: int) -> None:
        feedback = Feedback(
            now_ns,
            bumper=self._truth.pressed_zone() | zones(f.zone for f in self._script.active(StuckBumper, now_ns)),
            cliff=zones(f.zone for f in self._script.active(Cliff, now_ns)),
            wheel_drop=zones(f.zone for f in self._script.active(WheelDrop, now_ns)),
        )
        self._guard.feedback(feedback)
        self._guard.poll(now_ns)
        self._reports.add(
            BaseState(
                stamp_ns=now_ns,
                odom=self._truth.odom,
                velocity=moved,
                bumper=feedback.bumper,
                cliff=feedback.cliff,
                wheel_drop=feedback.wheel_drop,
                halt=self._guard.halt,
                battery_v=BATTERY_V,
                battery_fraction=self._battery_fraction,
            )
        )
