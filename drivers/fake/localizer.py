"""The fake robot's localizers: exact poses, with the latency and the losses of the faults."""

from drivers.fake.device import FakeDevice
from drivers.fake.faults import DroppedPoses, LatePoses, LostTracking
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock, seconds_to_ns
from robot_runtime.hal import Arrivals, Localizer, LocalizerInfo, PoseEstimate, PoseStatus
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.hal.pose_history import PoseHistory, pose_at


class FakeLocalizer(FakeDevice, Localizer):
    """Localizer in ``map`` or ``odom`` that measures at its rate and delivers ``latency_s`` later."""

    def __init__(
        self,
        name: str,
        clock: SimulatedClock,
        truth: GroundTruth,
        script: Script,
        rate_hz: float,
        latency_s: float,
        frame: str = "map",
    ) -> None:
        super().__init__(name, clock, script)
        self._truth = truth
        self._info = LocalizerInfo(f"fake {name}", frame, rate_hz, is_truth=True)
        self._latency_s = latency_s
        self._period_ns = seconds_to_ns(1 / rate_hz)
        self._due_ns = clock.now_ns()
        self._history = PoseHistory(self._info.name, self._info.frame)
        self._in_transit: list[tuple[int, PoseEstimate]] = []

    @property
    def info(self) -> LocalizerInfo:
        return self._info

    def latest(self, max_age_s: float) -> PoseEstimate:
        self._require_connected()
        return self._history.latest(self._clock.now_ns, max_age_s)

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        self._require_connected()
        return pose_at(self._history, self._clock, stamp_ns, timeout_s, poll_s=1 / 1000)

    def arrivals(self, after: int = 0) -> Arrivals:
        self._require_connected()
        return self._history.arrivals(after)

    def clear(self) -> None:
        self._history.clear()
        self._in_transit.clear()

    def _on_step(self, now_ns: int) -> None:
        if now_ns >= self._due_ns:
            self._due_ns += self._period_ns
            if self._connected and not self._script.active(DroppedPoses, now_ns):
                self._measure(now_ns)
        for arrival_ns, estimate in self._in_transit:
            if arrival_ns <= now_ns:
                self._history.add(estimate)
        self._in_transit = [late for late in self._in_transit if late[0] > now_ns]

    def _measure(self, now_ns: int) -> None:
        late_s = sum(fault.latency_s for fault in self._script.active(LatePoses, now_ns))
        lost = self._script.active(LostTracking, now_ns)
        pose = self._truth.odom if self._info.frame == "odom" else self._truth.pose
        estimate = PoseEstimate(now_ns, pose, self._info.frame, status=PoseStatus.LOST if lost else PoseStatus.OK)
        self._in_transit.append((now_ns + seconds_to_ns(self._latency_s + late_s), estimate))
