"""Speeds, tolerances and time limits of motions: the field ``motion`` of a robot's YAML file."""

import math
from dataclasses import dataclass

from robot_runtime.common import config, quantities
from robot_runtime.hal.motors import MotorModel
from robot_runtime.hal.wheels import BaseInfo

HALF_DEGREE_RAD = math.radians(0.5)


@dataclass(frozen=True)
class MotionProfile(config.Strict):
    """Parameters of motions. All positive; speeds and accelerations are limited to those of the base.

    Of the base's accelerations, 95 % is used.

    Attributes:
        linear_m_s: cruise speed. Faster gains little: a 0.25 m step takes 1.13 s, without any limit 1.0 s.
        contact_travel_m: the robot drives no faster than from where it would come to rest this far after a contact, by
            the delays of its motors and reports. A Kobuki's 0.3 s allow 0.3 m/s within 0.1 m, and 0.016 m/s within
            5 mm; 0.3 m/s within 5 mm need a delay of 17 ms.
        angular_rad_s: cruise speed of turns; a Kobuki's gyro degrades above 1.9 rad/s.
        linear_accel_m_s2: acceleration, that of the LoCoBot stack's velocity smoother.
        angular_accel_rad_s2: angular acceleration, that of the Kobuki driver.
        heading_gain_1_s: turning per error of the heading, on a straight line; well below half the tick rate.
        position_m: a motion has arrived when the robot rests and the error is at most this.
        heading_rad: error of the heading at which a robot at rest has arrived.
        still_m_s: the base rests when it measures at most this.
        still_rad_s: the base rests when it measures at most this turning speed.
        rest_timeout_s: a stopped base that still moves after this long is a fault.
        carry_rad: how far from its intended heading or tilt the robot may be found and still aim from the intention.
        timeout_factor: time limit of a motion per duration that the limits and the motors allow.
        timeout_margin_s: added to it.
        state_max_age_s: age of the base's report beyond which the wheels are stopped.
        patience_s: how long they then wait, at zero, for reports to come back before it is a fault; observations wait
            as long for base, head and camera.
    """

    linear_m_s: float = 0.3
    contact_travel_m: quantities.SmallMove = 0.15
    angular_rad_s: float = 1.5
    linear_accel_m_s2: float = 1.0
    angular_accel_rad_s2: quantities.AngularAcceleration = 3.5
    heading_gain_1_s: float = 6.0
    position_m: quantities.SmallMove = 0.005
    heading_rad: quantities.SmallAngle = HALF_DEGREE_RAD
    still_m_s: quantities.StillSpeed = 0.005
    still_rad_s: quantities.StillTurnRate = HALF_DEGREE_RAD
    rest_timeout_s: quantities.ShortTime = 1.0
    carry_rad: quantities.SmallAngle = 2 * HALF_DEGREE_RAD
    timeout_factor: float = 2.0
    timeout_margin_s: quantities.ShortTime = 1.0
    state_max_age_s: quantities.Latency = 0.15
    patience_s: quantities.Timeout = 2.0

    def __post_init__(self) -> None:
        config.check_positive(self)

    def forward_m_s(self, info: BaseInfo, motors: MotorModel) -> float:
        """Cruise speed of a base, from which a contact stops it within ``contact_travel_m``."""
        safe_m_s = motors.speed_for_travel_m_s(self.contact_travel_m, 1 / info.rate_hz)
        return min(self.linear_m_s, info.max_linear_m_s, safe_m_s)

    def timeout_s(self, nominal_s: float) -> float:
        """Time limit in seconds of an action whose profile lasts ``nominal_s``."""
        return nominal_s * self.timeout_factor + self.timeout_margin_s


DEFAULT_PROFILE = MotionProfile()
"""Default of the field ``motion``."""
