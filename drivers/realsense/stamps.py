"""The SDK's time stamps on the robot's clock.

=================  ================================================================================================
domain             what the stamp is
=================  ================================================================================================
``hardware_clock``  the device's own counter. Its offset is the least difference ever seen between arrival and stamp,
                   so transport at its fastest hides in it: that much is ``latency_s``.
``global_time``    the host's wall clock, to which the SDK itself has mapped the counter.
``system_time``    the host's wall clock at arrival: ``latency_s`` holds the whole way from the exposure.
=================  ================================================================================================
"""

from __future__ import annotations

from collections import deque
from typing import Any

from drivers.realsense.sdk import rs
from robot_runtime.clock import Clock, seconds_to_ns, unix_now_ns

WINDOW_NS = seconds_to_ns(60.0)
"""How long a least difference counts: crystals drift apart by 50 ppm at most, 3 ms in that time."""


class HostStamps:
    """Maps one device's stamps, from its start to its end.

    Args:
        latency_s: taken off every stamp.
    """

    def __init__(self, clock: Clock, latency_s: float) -> None:
        self._clock = clock
        self._latency_ns = seconds_to_ns(latency_s)
        self._offsets: deque[tuple[int, int]] = deque()

    def arrived(self, stamp_ns: int, domain: Any) -> None:
        """A frame of that stamp has just come: not one that had been lying there."""
        if domain != rs.timestamp_domain.hardware_clock:
            return
        now_ns = self._clock.now_ns()
        offset_ns = now_ns - stamp_ns
        # What came later and was slower can be least only after those before it have gone, and faster ones have not.
        while self._offsets and self._offsets[-1][1] >= offset_ns:
            self._offsets.pop()
        self._offsets.append((now_ns, offset_ns))
        while now_ns - self._offsets[0][0] > WINDOW_NS and len(self._offsets) > 1:
            self._offsets.popleft()

    def host_ns(self, stamp_ns: int, domain: Any) -> int:
        """A stamp on the robot's clock. In ``hardware_clock``, something must have :meth:`arrived` before."""
        if domain == rs.timestamp_domain.hardware_clock:
            offset_ns = self._offsets[0][1]
        else:
            offset_ns = self._clock.now_ns() - unix_now_ns()
        return stamp_ns + offset_ns - self._latency_ns
