"""Prediction of where the base comes to rest: the commands that are under way, through its motors' model."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import BaseState, Velocity
from robot_runtime.hal.motors import MotorModel
from robot_runtime.motion.identification import WheelRecorder

HISTORY_S = 1.5
"""Beyond the largest dead time and the latest report that a base may have."""


class Wheels(NamedTuple):
    """A quantity of the left and the right wheel."""

    left: float
    right: float


class Sample(NamedTuple):
    """Positions of the model's wheels at one instant."""

    stamp_ns: int
    position_m: Wheels


class Positions(NamedTuple):
    """Positions of the wheels at one instant, by the model and by odometry."""

    model: Wheels
    driven: Wheels

    def since(self, earlier: Positions) -> tuple[Wheels, Wheels]:
        """Distances from earlier positions, by the model and by odometry."""
        model, driven = self
        return (
            Wheels(model.left - earlier.model.left, model.right - earlier.model.right),
            Wheels(driven.left - earlier.driven.left, driven.right - earlier.driven.right),
        )


class MotionPredictor:
    """The motors' model, fed with the commands that were sent and the odometry that came back.

    The model runs without dead time: what its wheels have done by now, the robot will have done one dead time later.
    The difference between odometry and the model of one dead time earlier is the error of the model, and is added to
    what is predicted (O. J. M. Smith 1957, "Closer control of loops with dead time").

    Args:
        model: of the base's motors.
        now_ns: present time.

    Attributes:
        model: of the base's motors.
        left, right: the model's wheels.
        moved_ns: when a command other than zero was last in force.
        sent: the command to the wheels that is in force.
        recorder: of commands and odometry.
    """

    def __init__(self, model: MotorModel, now_ns: int) -> None:
        self.moved_ns = -(10**18)
        self.recorder = WheelRecorder(model.separation_m)
        self.adopt(model, now_ns)

    def adopt(self, model: MotorModel, now_ns: int) -> None:
        """Go on with another model, from rest."""
        self.model = model
        self.left, self.right = model.wheels()
        self._dead_time_ns = seconds_to_ns(model.dead_time_s)
        self._now_ns = now_ns
        self.sent = Wheels(0.0, 0.0)
        self._samples = deque([Sample(now_ns, Wheels(0.0, 0.0))])

    def send(self, velocity: Velocity, now_ns: int) -> None:
        """Take note of the velocity that the Guard let through at ``now_ns`` and that holds from then on."""
        self.advance(now_ns)
        self.sent = Wheels(*self.model.wheel_speeds(velocity.linear_m_s, velocity.angular_rad_s))
        self.recorder.command(velocity, now_ns)

    def assume_thresholds(self, left_m_s: float, right_m_s: float) -> None:
        """Go on with other thresholds."""
        self.model = replace(self.model, threshold_m_s=(left_m_s, right_m_s))
        self.left.threshold_m_s, self.right.threshold_m_s = left_m_s, right_m_s

    def advance(self, now_ns: int) -> None:
        """Turn the model's wheels until ``now_ns``."""
        seconds = (now_ns - self._now_ns) / NS_PER_S
        if seconds <= 0:
            return
        if any(self.sent):
            self.moved_ns = now_ns
        self.left.step(self.sent.left, seconds)
        self.right.step(self.sent.right, seconds)
        self._now_ns = now_ns
        samples = self._samples
        samples.append(Sample(now_ns, Wheels(self.left.position_m, self.right.position_m)))
        while samples[0].stamp_ns < now_ns - HISTORY_S * NS_PER_S and len(samples) > 2:
            samples.popleft()

    def observe(self, odom: SE2, stamp_ns: int) -> None:
        """Take note of odometry."""
        self.recorder.report(odom, stamp_ns)

    @property
    def driven(self) -> Wheels:
        """Distance of each wheel that odometry has measured, meters."""
        return Wheels(*self.recorder.driven_m)

    def now(self) -> Positions:
        """Distances that the wheels have driven so far, meters."""
        return Positions(Wheels(self.left.position_m, self.right.position_m), self.driven)

    def ahead_m(self, position_m: Wheels) -> Wheels:
        """Distances that the model's wheels drive from a position until rest, if the command is zero from now on."""
        return Wheels(
            self.left.position_m + self.left.coast_m() - position_m.left,
            self.right.position_m + self.right.coast_m() - position_m.right,
        )

    def rest_pose(self, state: BaseState) -> SE2:
        """Pose at which the robot comes to rest, in ``odom``, if the command is zero from now on."""
        left_m, right_m = self.ahead_m(self._position_at(state.stamp_ns - self._dead_time_ns))
        return state.odom @ SE2.arc((left_m + right_m) / 2, (right_m - left_m) / self.model.separation_m)

    def turned_rad(self, before: Wheels) -> float:
        """Angle that odometry has turned since ``driven`` was ``before``, also by more than a full turn."""
        turned_m = self.driven.right - before.right - (self.driven.left - before.left)
        return turned_m / self.model.separation_m

    def is_over(self, state: BaseState, margin_s: float) -> bool:
        """Whether every command other than zero has had its effect by ``margin_s`` before a report."""
        return not any(self.sent) and state.stamp_ns > self.moved_ns + self._dead_time_ns + seconds_to_ns(margin_s)

    def _position_at(self, stamp_ns: int) -> Wheels:
        for later, earlier in pairwise(reversed(self._samples)):
            if earlier.stamp_ns <= stamp_ns:
                if stamp_ns >= later.stamp_ns:
                    return later.position_m
                share = (stamp_ns - earlier.stamp_ns) / (later.stamp_ns - earlier.stamp_ns)
                a, b = earlier.position_m, later.position_m
                return Wheels(a.left + share * (b.left - a.left), a.right + share * (b.right - a.right))
        return self._samples[0].position_m
