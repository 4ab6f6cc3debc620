"""The SDK's time stamps on the robot's clock.

==================  ================================================================================================
domain              meaning and mapping of the stamp
==================  ================================================================================================
``hardware_clock``  the device's counter: offset and drift are estimated from arrivals. The fastest transport remains
                    in the offset; ``latency_s`` corrects it.
``global_time``     the host's wall clock, to which the SDK has mapped the counter: nothing remains.
``system_time``     the host's wall clock at arrival: ``latency_s`` is the total delay from the exposure.
==================  ================================================================================================
"""

from __future__ import annotations

from typing import Any

from drivers.realsense.sdk import rs
from robot_runtime.common.clock import Clock, ahead_ns, seconds_to_ns, unix_now_ns
from robot_runtime.hal.clock_sync import ClockSync


class HostStamps:
    """Map from one device's stamps to the robot's clock.

    Args:
        clock: clock of the robot.
        latency_s: delay that the stamps do not contain.
    """

    def __init__(self, clock: Clock, latency_s: float) -> None:
        self._clock = clock
        self._latency_ns = seconds_to_ns(latency_s)
        self._sync = ClockSync(latency_s)

    def add_arrival(self, stamp_ns: int, domain: Any) -> None:
        """Record the arrival of a frame at this moment; frames that waited in a queue do not count."""
        if domain == rs.timestamp_domain.hardware_clock:
            self._sync.add(stamp_ns, self._clock.now_ns())

    def host_ns(self, stamp_ns: int, domain: Any) -> int:
        """Return a stamp on the robot's clock; in ``hardware_clock`` only after :meth:`add_arrival`."""
        if domain == rs.timestamp_domain.hardware_clock:
            return self._sync.to_clock_ns(stamp_ns)
        return stamp_ns + ahead_ns(self._clock.now_ns, unix_now_ns) - self._latency_ns
