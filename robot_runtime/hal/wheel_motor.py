"""Motor of a wheel: threshold, quantum, acceleration limit and lag.

Of the standard library alone, as everything that a base's guard process imports.
"""

import math

STICKING_M_S = 0.003
"""Speed below which static friction holds a wheel whose command is zero or below its threshold."""

CREATE_2_DEAD_TIME_S, CREATE_2_LAG_S, CREATE_2_QUANTUM_M_S = 0.05, 0.1, 0.0285
"""Motors of a Create 2. Quantum: iRobot Create 2 Open Interface, opcode 137, and as measured in
ktibow.github.io/blog/roombamotors. Dead time (three reports of 15 ms) and lag are assumptions, not measured."""


class WheelMotor:
    """One wheel of a :class:`MotorModel` without its dead time.

    Args:
        lag_s: time constant.
        gain: driven per commanded speed.
        threshold_m_s: smallest command that starts it.
        quantum_m_s: resolution of commands; 0 for none.
        accel_m_s2: acceleration limit.

    Attributes:
        position_m: driven so far.
        speed_m_s: present speed.
        target_m_s: speed that the lag leads to: the command after quantum, gain and acceleration limit.
    """

    __slots__ = (
        "_accel_m_s2",
        "_lag_s",
        "_quantum_m_s",
        "gain",
        "position_m",
        "speed_m_s",
        "target_m_s",
        "threshold_m_s",
    )

    def __init__(
        self, lag_s: float, gain: float, threshold_m_s: float, quantum_m_s: float = 0.0, accel_m_s2: float = math.inf
    ) -> None:
        self.position_m = self.speed_m_s = self.target_m_s = 0.0
        self.gain, self.threshold_m_s = gain, threshold_m_s
        self._lag_s, self._quantum_m_s, self._accel_m_s2 = lag_s, quantum_m_s, accel_m_s2

    def ramp_m(self) -> float:
        """Distance that it drives while its acceleration limit brings it to zero; the lag's coasting is not in it."""
        return self.target_m_s * abs(self.target_m_s) / (2 * self._accel_m_s2)

    def coast_m(self) -> float:
        """Distance that it drives until it rests, if its command is zero from now on."""
        speed_m_s, lag_s = self.speed_m_s, self._lag_s
        coast_m = 0.0
        if speed_m_s > STICKING_M_S:
            coast_m = lag_s * (speed_m_s - STICKING_M_S)
        elif speed_m_s < -STICKING_M_S:
            coast_m = lag_s * (speed_m_s + STICKING_M_S)
        return coast_m + self.ramp_m() if self._accel_m_s2 < math.inf else coast_m

    def step(self, command_m_s: float, seconds: float) -> None:
        """Turn for a time under a constant command."""
        speed_m_s = self.speed_m_s
        if (abs(command_m_s) < self.threshold_m_s or not command_m_s) and abs(speed_m_s) < STICKING_M_S:
            self.speed_m_s = self.target_m_s = 0.0
            return
        if self._quantum_m_s:
            command_m_s = self._quantum_m_s * round(command_m_s / self._quantum_m_s)
        wanted_m_s = self.gain * command_m_s
        change_m_s = wanted_m_s - self.target_m_s
        if change_m_s and self._accel_m_s2 < math.inf:
            ramp_s = min(abs(change_m_s) / self._accel_m_s2, seconds)
            self._ramp(math.copysign(self._accel_m_s2, change_m_s), ramp_s)
            if ramp_s == seconds:
                return
            seconds -= ramp_s
        self.target_m_s, speed_m_s = wanted_m_s, self.speed_m_s
        decay = math.exp(-seconds / self._lag_s) if self._lag_s else 0.0
        self.speed_m_s = wanted_m_s + (speed_m_s - wanted_m_s) * decay
        self.position_m += wanted_m_s * seconds + self._lag_s * (speed_m_s - wanted_m_s) * (1 - decay)

    def _ramp(self, accel_m_s2: float, seconds: float) -> None:
        """Turn while the target changes at a constant rate: the lag's exact response, however long the step is."""
        behind_m_s = accel_m_s2 * self._lag_s
        decay = math.exp(-seconds / self._lag_s) if self._lag_s else 0.0
        begin_m_s, off_m_s = self.target_m_s, self.speed_m_s - self.target_m_s + behind_m_s
        self.target_m_s = begin_m_s + accel_m_s2 * seconds
        self.speed_m_s = self.target_m_s - behind_m_s + off_m_s * decay
        self.position_m += (begin_m_s + self.target_m_s) / 2 * seconds - behind_m_s * seconds
        self.position_m += self._lag_s * off_m_s * (1 - decay)
