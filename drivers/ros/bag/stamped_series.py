"""A growing series of stamped rows of numbers, eight bytes per number, so that hours of odometry fit in memory."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.ros.bag.errors import NotOneClock
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import SE2

MAX_STEP_BACK_S = 1.0
"""A stamp that is older than the one before by more than this is not late: the clock was set back."""


class Samples:
    """Rows of numbers in the order of their stamps; poses begin with x_m, y_m, yaw_rad.

    Args:
        topic: For messages.
        columns: Numbers per row.
    """

    def __init__(self, topic: str, columns: int) -> None:
        self.topic = topic
        self._columns = columns
        self._stamps = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._stamps)

    def add(self, stamp_ns: int, *row: float) -> None:
        """Add a row; one that is not newer than the last (resent, or overtaken on the network) is ignored.

        Raises:
            NotOneClock: Its stamp is far before the last one's.
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

    @property
    def span_ns(self) -> tuple[int, int]:
        """The first and the last stamp."""
        return self._stamps[0], self._stamps[-1]

    def newest_at(self, stamp_ns: int) -> int:
        """Return the index of the last row stamped at or before an instant; -1 if there is none."""
        return int(np.searchsorted(self.stamps_ns, stamp_ns, side="right")) - 1

    def bracket(self, stamp_ns: int) -> tuple[int, int, float] | None:
        """Return the indices of the rows around an instant, and the fraction between them; None outside the series."""
        index = self.newest_at(stamp_ns)
        if index >= 0 and self._stamps[index] == stamp_ns:
            return index, index, 0.0
        if not 0 <= index < len(self) - 1:
            return None
        before_ns, after_ns = self._stamps[index], self._stamps[index + 1]
        return index, index + 1, (stamp_ns - before_ns) / (after_ns - before_ns)

    def pose(self, index: int) -> SE2:
        """Return the pose in a row."""
        return SE2(*map(float, self.rows[index, :3]))

    def pose_between(self, before: int, after: int, fraction: float) -> SE2:
        """Return the interpolated pose of a :meth:`bracket`."""
        return self.pose(before) if before == after else self.pose(before).interpolate(self.pose(after), fraction)


@dataclass
class LostSamples:
    """Messages of a topic that are unusable.

    Attributes:
        topic: For messages.
        count: Number of them.
        first_ns: Stamp of the first.
        last_ns: Stamp of the last.
        why: Reason of the first.
    """

    topic: str
    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    why: str = ""

    def add(self, stamp_ns: int, why: str) -> None:
        """Count a message."""
        if not self.count:
            self.first_ns, self.why = stamp_ns, why
        self.count, self.last_ns = self.count + 1, stamp_ns

    def __str__(self) -> str:
        first_s, last_s = ns_to_seconds(self.first_ns), ns_to_seconds(self.last_ns)
        return f"topic {self.topic}: {self.count} messages from {first_s:.3f} s to {last_s:.3f} s are lost: {self.why}"
