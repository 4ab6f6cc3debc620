"""The SDK's time stamps on the robot's clock.

==================  ================================================================================================
domain              what the stamp is, and how it is mapped
==================  ================================================================================================
``hardware_clock``  the device's own counter: offset and drift come of the frames' arrivals. The transport at its
                    fastest hides in that; so much is ``latency_s``.
``global_time``     the host's wall clock, to which the SDK itself has mapped the counter: nothing hides.
``system_time``     the host's wall clock at arrival: ``latency_s`` holds the whole way from the exposure.
==================  ================================================================================================
"""

from __future__ import annotations

from typing import Any

from drivers.realsense.sdk import rs
from robot_runtime.common.clock import Clock, ahead_ns, seconds_to_ns, unix_now_ns
from robot_runtime.hal.clock_sync import ClockSync


class HostStamps:
    """Maps one device's stamps, from its start to its end.

    Args:
        latency_s: from the middle of an exposure to what the stamps are mapped by.
    """

    def __init__(self, clock: Clock, latency_s: float) -> None:
        self._clock = clock
        self._latency_ns = seconds_to_ns(latency_s)
        self._sync = ClockSync(latency_s)

    def add_arrival(self, stamp_ns: int, domain: Any) -> None:
        """A frame of that stamp has just come: not one that had been lying there."""
        if domain == rs.timestamp_domain.hardware_clock:
            self._sync.add(stamp_ns, self._clock.now_ns())

    def host_ns(self, stamp_ns: int, domain: Any) -> int:
        """A stamp on the robot's clock. In ``hardware_clock``, something must have :meth:`add_arrival` before."""
        if domain == rs.timestamp_domain.hardware_clock:
            return self._sync.to_clock_ns(stamp_ns)
        return stamp_ns + ahead_ns(self._clock.now_ns, unix_now_ns) - self._latency_ns
