"""Records of a base's motors: the commands that it was sent, and what odometry measured of its wheels."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.hal import MotorModel, Velocity

Array = NDArray[np.float64]

TAIL_S = 1.0
"""The last command of a record holds for this long."""


@dataclass(frozen=True, slots=True, eq=False)
class WheelRecord:
    """Commands to the wheels and what odometry measured of them, beginning at rest.

    Attributes:
        command_ns: (n,) int64, when each command was sent; it holds until the next.
        command_m_s: (n, 2) float64, left and right wheel, as the Guard let it through.
        stamp_ns: (m,) int64, when odometry was measured.
        driven_m: (m, 2) float64, left and right wheel.
    """

    command_ns: NDArray[np.int64]
    command_m_s: Array
    stamp_ns: NDArray[np.int64]
    driven_m: Array

    def predicted_m(self, model: MotorModel, index: int, often: bool = False) -> Array:
        """Distance that a wheel of a model drives until each stamp.

        Args:
            model: model of the motors.
            index: 0 for the left, 1 for the right wheel.
            often: whether to load numba, which takes a second and 60 MB, for a simulation that is 20 times faster.

        Returns:
            (m,) float64, meters; 0 at the first stamp.
        """
        times_s = (self.command_ns - self.command_ns[0]) / NS_PER_S
        ends_s = np.append(times_s, times_s[-1] + TAIL_S)
        asked_s = (self.stamp_ns - self.command_ns[0]) / NS_PER_S - model.dead_time_s
        commands_m_s, steps_s = self.command_m_s[:, index], np.diff(ends_s)
        positions_m: Array | list[float]
        if often:
            from robot_runtime.motion.wheel_simulation import wheel_positions

            positions_m = wheel_positions(
                np.ascontiguousarray(commands_m_s),
                steps_s,
                model.lag_s,
                model.gain[index],
                model.threshold_m_s[index],
                model.speed_quantum_m_s,
                math.inf if model.accel_m_s2 is None else model.accel_m_s2,
            )
        else:
            wheel = model.wheels()[index]
            positions_m = [0.0]
            for command_m_s, step_s in zip(commands_m_s.tolist(), steps_s.tolist(), strict=True):
                wheel.step(command_m_s, step_s)
                positions_m.append(wheel.position_m)
        predicted_m = np.interp(asked_s, ends_s, positions_m)
        return np.asarray(predicted_m - predicted_m[0])

    def errors_m(self, model: MotorModel) -> Array:
        """Prediction minus measurement at each stamp, (m, 2) float64."""
        predicted_m = np.stack([self.predicted_m(model, index) for index in (0, 1)], axis=1)
        return np.asarray(predicted_m - (self.driven_m - self.driven_m[0]))

    def error_m(self, model: MotorModel) -> float:
        """Root mean square of :meth:`errors_m`."""
        return float(np.sqrt(np.mean(self.errors_m(model) ** 2)))


class WheelRecorder:
    """Collection of a :class:`WheelRecord` while a base is driven.

    Attributes:
        driven_m: distance that odometry has measured so far, left and right wheel; not reset by :meth:`clear`.
    """

    def __init__(self, separation_m: float) -> None:
        self.driven_m = (0.0, 0.0)
        self._separation_m = separation_m
        self._odom: SE2 | None = None
        self.clear()

    def clear(self) -> None:
        """Begin a new record; the base rests."""
        self._commands: list[tuple[int, float, float]] = []
        self._reports: list[tuple[int, float, float]] = []

    def command(self, velocity: Velocity, now_ns: int) -> None:
        """Add a velocity that the Guard let through and that holds from now on."""
        half_m_s = velocity.angular_rad_s * self._separation_m / 2
        self._commands.append((now_ns, velocity.linear_m_s - half_m_s, velocity.linear_m_s + half_m_s))

    def report(self, odom: SE2, stamp_ns: int) -> None:
        """Add odometry, unless it is not newer than the last."""
        before, self._odom = self._odom, odom
        if before is not None and odom is not before:
            turn_rad = wrap_angle(odom.yaw_rad - before.yaw_rad)
            # The chord of an arc lies along its mean heading.
            heading_rad = before.yaw_rad + turn_rad / 2
            dx_m, dy_m = odom.x_m - before.x_m, odom.y_m - before.y_m
            forward_m = dx_m * math.cos(heading_rad) + dy_m * math.sin(heading_rad)
            turn_m = turn_rad * self._separation_m / 2
            self.driven_m = (self.driven_m[0] + forward_m - turn_m, self.driven_m[1] + forward_m + turn_m)
        if not self._reports or stamp_ns > self._reports[-1][0]:
            self._reports.append((stamp_ns, *self.driven_m))

    def record(self) -> WheelRecord:
        """The record so far; needs a command and a report."""
        command_ns, *command_m_s = zip(*self._commands, strict=True)
        stamp_ns, *driven_m = zip(*self._reports, strict=True)
        return WheelRecord(
            np.array(command_ns, np.int64),
            np.array(command_m_s, np.float64).T,
            np.array(stamp_ns, np.int64),
            np.array(driven_m, np.float64).T,
        )
