"""Motors of simulated bases: what a base does with its commands, and how late it reports."""

import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.hal import BaseState, Halt
from robot_runtime.hal.motors import IDEAL_MOTORS, NOMINAL_MOTORS, KnownMotors, MotorModel, MotorType

MODEL_FIELDS = tuple(MotorModel.__dataclass_fields__)


@dataclass(frozen=True)
class MotorOptions(config.Strict):
    """Motors of a simulated base, in its YAML file: a type of base, and in what this one differs from it.

    :mod:`robot_runtime.hal.motors` has the nominal values and their sources, ``tests/benchmarks/motion/bases.py`` the
    ranges in which real bases are expected.

    Attributes:
        type: base whose nominal model is taken.
        dead_time_s: true dead time, as of :class:`~robot_runtime.hal.motors.MotorModel`; None for the nominal one.
        lag_s: true lag; None for the nominal one.
        gain: true gain, left and right wheel; None for the nominal one.
        threshold_m_s: true threshold, left and right wheel; None for the nominal one.
        speed_quantum_m_s: true quantum of speed; None for the nominal one.
        accel_m_s2: true limit of the acceleration; None for the nominal one.
        separation_m: true distance between the wheels; None for the nominal one.
        gain_loss: loss of gain when the battery is empty; proportional to the charge that is used.
        report_delay_s: time from the measurement of a state to its delivery.
    """

    type: MotorType = "ideal"
    dead_time_s: float | None = None
    lag_s: float | None = None
    gain: tuple[float, float] | None = None
    threshold_m_s: tuple[float, float] | None = None
    speed_quantum_m_s: float | None = None
    accel_m_s2: float | None = None
    separation_m: float | None = None
    gain_loss: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    report_delay_s: Annotated[float, Field(ge=0, le=0.5)] = 0.0

    def __post_init__(self) -> None:
        config.parse(vars(self.true), MotorModel, "motors")

    @property
    def nominal(self) -> KnownMotors:
        """Properties that a controller may assume of such a base; of an ideal one it knows all."""
        return KnownMotors(NOMINAL_MOTORS[self.type], calibrated=self.true == IDEAL_MOTORS)

    @property
    def true(self) -> MotorModel:
        """The model by which the wheels turn."""
        given = {name: value for name in MODEL_FIELDS if (value := getattr(self, name)) is not None}
        return replace(NOMINAL_MOTORS[self.type], **given)


class SimulatedMotors:
    """Both wheels' motors with their dead time."""

    def __init__(self, options: MotorOptions) -> None:
        self.ideal = options.true == IDEAL_MOTORS and not options.gain_loss
        self._model, self._gain_loss = options.true, options.gain_loss
        self._dead_time_ns = seconds_to_ns(self._model.dead_time_s)
        self.restart()

    def restart(self) -> None:
        """Stand still, with no command under way."""
        self._left, self._right = self._model.wheels()
        self._under_way: deque[tuple[int, float, float]] = deque()
        self._command = self._newest = (0.0, 0.0)

    def drive(
        self, linear_m_s: float, angular_rad_s: float, now_ns: int, step_s: float, battery_fraction: float = 1.0
    ) -> tuple[float, float]:
        """Turn the wheels for one step.

        Args:
            linear_m_s: command that holds during the step.
            angular_rad_s: turning command that holds during the step.
            now_ns: beginning of the step.
            step_s: duration of the step.
            battery_fraction: 0 empty .. 1 full.

        Returns:
            Mean linear and angular velocity that the wheels drive during the step.
        """
        if self.ideal:
            return linear_m_s, angular_rad_s
        newest = self._model.wheel_speeds(linear_m_s, angular_rad_s)
        if newest != self._newest:
            self._newest = newest
            self._under_way.append((now_ns + self._dead_time_ns, *newest))
        strength = 1 - self._gain_loss * (1 - battery_fraction)
        self._left.gain, self._right.gain = (strength * gain for gain in self._model.gain)
        before = self._left.position_m, self._right.position_m
        begin_ns, end_ns = now_ns, now_ns + seconds_to_ns(step_s)
        while begin_ns < end_ns:
            while self._under_way and self._under_way[0][0] <= begin_ns:
                _, left_m_s, right_m_s = self._under_way.popleft()
                self._command = left_m_s, right_m_s
            until_ns = min(end_ns, self._under_way[0][0]) if self._under_way else end_ns
            seconds = ns_to_seconds(until_ns - begin_ns)
            self._left.step(self._command[0], seconds)
            self._right.step(self._command[1], seconds)
            begin_ns = until_ns
        left_m_s = (self._left.position_m - before[0]) / step_s
        right_m_s = (self._right.position_m - before[1]) / step_s
        return (left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / self._model.separation_m


class LateReports:
    """States of a base, delivered some time after their measurement; for any thread."""

    def __init__(self, delay_s: float) -> None:
        self._delay_ns = seconds_to_ns(delay_s)
        self._states: deque[BaseState] = deque()
        self._lock = threading.Lock()

    def add(self, state: BaseState) -> None:
        """A new measurement."""
        with self._lock:
            self._states.append(state)

    def hold(self, halt: Halt) -> None:
        """Let every measurement on the way tell why the Guard holds the wheels now."""
        with self._lock:
            self._states = deque(replace(state, halt=halt) for state in self._states)

    def clear(self) -> None:
        """Forget everything that was measured."""
        with self._lock:
            self._states.clear()

    def newest(self, now_ns: int) -> BaseState | None:
        """The newest state that has arrived; right after a start, the first one."""
        with self._lock:
            states = self._states
            while len(states) > 1 and states[1].stamp_ns <= now_ns - self._delay_ns:
                states.popleft()
            return states[0] if states else None
