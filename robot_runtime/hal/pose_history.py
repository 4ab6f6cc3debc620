"""The recent past of a source of poses: every ``Localizer`` keeps one, and answers from it.

Measurements arrive late, out of order, twice, or not at all; a pose between two of them is interpolated, and a pose
that they do not support is refused. Nothing is extrapolated.
"""

import threading
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable

from typing_extensions import override

from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns, wait_for
from robot_runtime.errors import StaleData
from robot_runtime.hal.events import Event
from robot_runtime.hal.localizer import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.streams import STREAMS, fresh


class PoseHistory:
    """Estimates of a source in its frame, ordered by stamp. Thread-safe.

    Args:
        name: name of the source, for messages.
        frame: frame that every estimate is in.
        span_s: how far back from the newest estimate the history reaches; older ones are forgotten.
        max_gap_s: longest time between two estimates across which a pose is still interpolated.
    """

    def __init__(
        self, name: str, frame: str, span_s: float = 10.0, max_gap_s: float = STREAMS["pose"].max_age_s
    ) -> None:
        if not (span_s > 0 and max_gap_s > 0):
            raise ValueError(f"span_s and max_gap_s must be positive, got {span_s} and {max_gap_s}")
        self.name = name
        self.frame = frame
        self._span_ns = seconds_to_ns(span_s)
        self._max_gap_ns = seconds_to_ns(max_gap_s)
        self._lock = threading.Lock()
        self._stamps_ns: list[int] = []
        self._estimates: list[PoseEstimate] = []
        self._arrived: list[PoseEstimate | Event] = []
        self._mark = 0
        """Number of poses that have ever arrived; ``_arrived`` is the last of them."""
        self._cleared_mark = 0

    def __len__(self) -> int:
        return len(self._stamps_ns)

    def add(self, estimate: PoseEstimate) -> None:
        """Take in a measurement, in any order of arrival.

        A second one of the same stamp replaces the first: it is the source's correction. One that is older than the
        kept span is forgotten at once.

        Raises:
            ValueError: if it is in another frame.
        """
        if estimate.frame != self.frame:
            raise ValueError(f"{self.name} keeps poses in {self.frame!r}, got one in {estimate.frame!r}")
        with self._lock:
            self._log(estimate)
            stamps_ns, stamp_ns = self._stamps_ns, estimate.stamp_ns
            if not stamps_ns or stamp_ns > stamps_ns[-1]:  # in order, as nearly all are
                stamps_ns.append(stamp_ns)
                self._estimates.append(estimate)
            else:
                index = bisect_left(stamps_ns, stamp_ns)
                if stamps_ns[index] == stamp_ns:
                    self._estimates[index] = estimate
                    return
                stamps_ns.insert(index, stamp_ns)
                self._estimates.insert(index, estimate)
            oldest_ns = stamps_ns[-1] - self._span_ns
            if stamps_ns[0] < oldest_ns:
                forgotten = bisect_left(stamps_ns, oldest_ns)
                del stamps_ns[:forgotten], self._estimates[:forgotten]

    def report(self, event: Event) -> None:
        """Take in what the source noticed about itself; readers of :meth:`arrivals` get it."""
        with self._lock:
            self._log(event)

    def clear(self) -> None:
        """Forget everything: the robot was put somewhere else, or the source has lost its frame."""
        with self._lock:
            self._stamps_ns.clear()
            self._estimates.clear()
            self._arrived.clear()
            self._mark += 1
            self._cleared_mark = self._mark

    def arrivals(self, after: int = 0) -> Arrivals:
        """``Localizer.arrivals``: what came after a mark, of what is kept."""
        with self._lock:
            new = self._arrived[max(0, len(self._arrived) - max(0, self._mark - after)) :]
            mark, restarted = self._mark, self._cleared_mark > after
        estimates = tuple(item for item in new if isinstance(item, PoseEstimate))
        events = tuple(item for item in new if isinstance(item, Event))
        return Arrivals(mark, estimates, events, restarted)

    def _log(self, arrived: PoseEstimate | Event) -> None:
        self._arrived.append(arrived)
        self._mark += 1
        # Half of it at once, so that an arrival costs the same however much is kept.
        half = len(self._arrived) // 2
        if self._arrived[half].stamp_ns < arrived.stamp_ns - self._span_ns:
            del self._arrived[: half + 1]

    def newest(self) -> PoseEstimate | None:
        """The estimate with the latest stamp; None if there is none."""
        with self._lock:
            return self._estimates[-1] if self._estimates else None

    def latest(self, now: Callable[[], int], max_age_s: float) -> PoseEstimate:
        """The newest estimate. Raises ``StaleData`` if there is none or it is older than ``max_age_s``.

        Args:
            now: the clock's ``now_ns``. It is read again if an estimate came meanwhile: on a busy computer the two may
                lie far apart, and a fresh estimate would look old, or from the future.
            max_age_s: largest age allowed.
        """
        while True:
            newest, now_ns = self.newest(), now()
            if newest is self.newest():
                return fresh(self.name, newest, now_ns, max_age_s)

    def at(self, stamp_ns: int) -> PoseEstimate | None:
        """The pose at ``stamp_ns``, interpolated; None while no measurement at or after it has arrived.

        Position, yaw (the shorter way round) and covariance are linear in time; the status is the worse of the two.

        Raises:
            StaleData: ``stamp_ns`` lies before the kept history, or in a gap longer than ``max_gap_s``.
        """
        with self._lock:
            index = bisect_left(self._stamps_ns, stamp_ns)
            if index == len(self._stamps_ns):
                return None
            after = self._estimates[index]
            if after.stamp_ns == stamp_ns:
                return after
            if index == 0:
                behind_s = ns_to_seconds(after.stamp_ns - stamp_ns)
                raise StaleData(
                    f"{self.name}: the pose asked for lies {behind_s:.3f} s before the oldest one kept",
                    "ask for poses sooner after the instant they belong to",
                )
            before = self._estimates[index - 1]
        if after.stamp_ns - before.stamp_ns > self._max_gap_ns:
            raise StaleData(
                f"{self.name}: no pose was measured for {ns_to_seconds(after.stamp_ns - before.stamp_ns):.3f} s around "
                f"the instant asked for, {ns_to_seconds(self._max_gap_ns):g} s is allowed",
                "check why the source went silent (line of sight, network, power)",
            )
        return _between(before, after, stamp_ns)


def pose_at(
    history: PoseHistory,
    clock: Clock,
    stamp_ns: int,
    timeout_s: float,
    poll_s: float,
    refresh: Callable[[], None] | None = None,
) -> PoseEstimate:
    """``Localizer.at``: :meth:`PoseHistory.at`, waiting on ``clock`` for the measurement after ``stamp_ns``.

    Args:
        history: history of the source.
        clock: clock to wait on.
        stamp_ns: instant of the pose.
        timeout_s: longest wait.
        poll_s: interval of the polls; the source's period, or a fraction of it.
        refresh: fills the history of a source that does so only when it is asked.

    Raises:
        StaleData: if none arrives within ``timeout_s``, or the history cannot answer.
    """

    def look() -> PoseEstimate | None:
        if refresh is not None:
            refresh()
        return history.at(stamp_ns)

    estimate = wait_for(clock, look, timeout_s, poll_s)
    if estimate is None:
        newest = history.newest()
        state = (
            "none at all"
            if newest is None
            else f"the newest is {ns_to_seconds(stamp_ns - newest.stamp_ns):.3f} s older"
        )
        raise StaleData(
            f"{history.name}: no pose of the instant asked for or later came within {timeout_s:g} s ({state})",
            "check that the source is running and how late its poses are",
        )
    return estimate


def _between(before: PoseEstimate, after: PoseEstimate, stamp_ns: int) -> PoseEstimate:
    fraction = (stamp_ns - before.stamp_ns) / (after.stamp_ns - before.stamp_ns)
    return PoseEstimate(
        stamp_ns=stamp_ns,
        pose=before.pose.interpolate(after.pose, fraction),
        frame=before.frame,
        covariance=(1 - fraction) * before.covariance + fraction * after.covariance,
        status=after.status if before.status is PoseStatus.OK else before.status,
    )


class BufferedLocalizer(Localizer):
    """A localizer that answers from a history, which its subclass fills.

    Args:
        info: name, frame and rate of the source.
        clock: clock of the robot.
        history: history in the frame of ``info``.
        poll_s: interval at which :meth:`at` checks for a late measurement.
    """

    def __init__(self, info: LocalizerInfo, clock: Clock, history: PoseHistory, poll_s: float) -> None:
        self._info, self._clock, self._history, self._poll_s = info, clock, history, poll_s

    @abstractmethod
    def _require_connected(self) -> None:
        """Raise ``NotConnected``, or the fault that has broken the connection."""

    @property
    @override
    def info(self) -> LocalizerInfo:
        return self._info

    @override
    def latest(self, max_age_s: float) -> PoseEstimate:
        self._require_connected()
        return self._history.latest(self._clock.now_ns, max_age_s)

    @override
    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._require_connected()
        return pose_at(self._history, self._clock, stamp_ns, timeout_s, self._poll_s)

    @override
    def arrivals(self, after: int = 0) -> Arrivals:
        self._require_connected()
        return self._history.arrivals(after)
