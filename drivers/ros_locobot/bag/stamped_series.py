"""A stream of stamped numbers that grows, eight bytes per number: hours of odometry fit in memory."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from drivers.ros_locobot.bag.errors import NotOneClock
from robot_runtime.common.clock import ns_to_seconds

MAX_STEP_BACK_S = 1.0
"""A stamp this much older than the one before is not late: the clock was set back."""


class Samples:
    """Rows of numbers in the order of their stamps.

    Args:
        topic: for messages. columns: numbers per row.
    """

    def __init__(self, topic: str, columns: int) -> None:
        self.topic = topic
        self._columns = columns
        self._stamps = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._stamps)

    def add(self, stamp_ns: int, *row: float) -> None:
        """A row; one that is not newer than the last (resent, or overtaken on the network) is left out.

        Raises:
            NotOneClock: its stamp is far before the last one's.
        """
        if self._stamps and stamp_ns <= self._stamps[-1]:
            back_s = ns_to_seconds(self._stamps[-1] - stamp_ns)
            if back_s > MAX_STEP_BACK_S:
                last_s = ns_to_seconds(self._stamps[-1])
                raise NotOneClock(
                    f"topic {self.topic}: stamps go back by {back_s:.3f} s after {last_s:.3f} s",
                    "cut the bag there (`rosbag filter`): a clock was set, a simulation restarted or bags were joined",
                )
            return
        self._stamps.append(stamp_ns)
        self._values.extend(row)

    @property
    def stamps_ns(self) -> NDArray[np.int64]:
        """int64 (N,). Nothing can be added while the array is in use."""
        return np.frombuffer(self._stamps, np.int64) if self._stamps else np.empty(0, np.int64)

    @property
    def rows(self) -> NDArray[np.float64]:
        """float64 (N, columns)."""
        flat = np.frombuffer(self._values, np.float64) if self._values else np.empty(0)
        return flat.reshape(-1, self._columns)

    def newest_at(self, stamp_ns: int) -> int:
        """Index of the last row stamped at or before that; -1 if there is none."""
        return int(np.searchsorted(self.stamps_ns, stamp_ns, side="right")) - 1
