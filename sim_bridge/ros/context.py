"""The objects that all topics of the simulated robot share."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from robot_runtime.common.clock import Clock, seconds_to_ns
from sim_bridge.physics.world import World
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.network import Network
from sim_bridge.ros.robot_variants import RobotVariant
from sim_bridge.ros.timing import StampClock

T = TypeVar("T")


class PhysicsExecutor:
    """Work of the network's threads for the physics thread, the only one that accesses the world.

    It is executed before the next physics step.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], object], Future[object]]] = deque()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue ``work``; the future gets its result or its exception."""
        future: Future[T] = Future()
        self._waiting.append((work, future))  # type: ignore[arg-type]
        return future

    def run_pending(self) -> None:
        """Execute the queued work; to be called by the physics thread."""
        while self._waiting:
            work, future = self._waiting.popleft()
            try:
                future.set_result(work())
            except Exception as error:  # noqa: BLE001 - passed on with the future
                future.set_exception(error)


@dataclass(frozen=True)
class SimContext:
    """The shared parts of a simulated robot.

    Attributes:
        executor: Runs work of the network's threads in the physics thread.
    """

    clock: Clock
    stamps: StampClock
    executor: PhysicsExecutor
    faults: Faults
    world: World
    variant: RobotVariant
    network: Network

    def stamp_ns(self, now_ns: int) -> int:
        """Return the stamp of simulated time ``now_ns``, with the injected clock skew."""
        return self.stamps.stamp_ns(now_ns) + seconds_to_ns(self.faults.value("clock_skew_s"))
