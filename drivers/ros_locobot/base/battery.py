"""The decision that a battery is empty."""

from __future__ import annotations

from robot_runtime.common.clock import seconds_to_ns

EMPTY_S = 1.0
"""Duration of low voltages after which the battery counts as empty: starting motors lower the voltage for less."""


class LowVoltage:
    """The time for which every measured voltage has been below a limit.

    Args:
        limit_v: Voltage below which the robot must not drive.
    """

    def __init__(self, limit_v: float) -> None:
        self.limit_v = limit_v
        self._since_ns: int | None = None
        self._newest_ns = 0

    @property
    def empty(self) -> bool:
        """Whether all measurements of the last ``EMPTY_S`` or more were below the limit."""
        return self._since_ns is not None and self._newest_ns - self._since_ns >= seconds_to_ns(EMPTY_S)

    def measured(self, voltage_v: float, now_ns: int) -> None:
        """Take a measurement; not-a-number is not below the limit."""
        self._newest_ns = now_ns
        if not voltage_v < self.limit_v:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns = now_ns

    def clear(self) -> None:
        """Forget the measurements of a connection that has ended."""
        self._since_ns = None
