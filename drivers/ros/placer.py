"""Placement of the robot at an episode's start: by the simulated robot's service, by a person, or by its own wheels."""

from collections.abc import Sequence
from dataclasses import dataclass

from drivers.ros.base.driver import RosBase
from drivers.ros.camera.driver import RosCamera
from drivers.ros.connection.session import Session
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.localizer.sources import RosLocalizer
from robot_runtime.common.clock import wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import InvalidStart, StaleData
from robot_runtime.hal import Head, Localizer, Placer, Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.placement.placer import GuidedPlacer, tilt_head
from robot_runtime.robots.checked_localizer import CheckedLocalizer

SETTLED_S = 0.2
"""Time after which this computer's clock is past the instant of the placement, however late ``/clock`` is."""

POLL_S = 0.02


@dataclass(frozen=True)
class PlacedDevices:
    """The devices whose state a placement invalidates.

    Attributes:
        session: The connection to the ROS network.
        base: Stopped before the placement.
        head: Tilted after it.
        camera: Its images of the old place are discarded.
        motion: Cleared.
        localizers: Their poses of the old place are discarded.
    """

    session: Session
    base: RosBase
    head: Head
    camera: RosCamera
    motion: MotionHistory
    localizers: Sequence[RosLocalizer]


class RosPlacer(Placer):
    """Stops the wheels, moves the robot, tilts the head, and discards all measurements of the old place."""

    def __init__(self, devices: PlacedDevices) -> None:
        self._devices = devices
        self._localizers = tuple(devices.localizers)

    def fitted(self, robot: Robot) -> Placer:
        sources = (robot.localizer, robot.referee, robot.odometry)
        self._localizers = tuple(dict.fromkeys(leaf for source in sources if source for leaf in _ros_leaves(source)))
        return self

    def place(self, pose: SE2, tilt_rad: float) -> None:
        devices = self._devices
        devices.head.limits.check_start(tilt_rad)
        devices.base.stop()
        try:
            self._move_robot(pose, tilt_rad)
            devices.head.command(0.0, tilt_rad)
        finally:
            # Messages still in transit, on a busy computer, are assigned to a place by their stamps.
            now_ns = devices.session.clock.now_ns()
            devices.motion.clear(now_ns)
            devices.camera.forget()
            for localizer in self._localizers:
                localizer.forget(now_ns)
        tilt_head(devices.session.clock, devices.head, tilt_rad)
        self._wait_for_poses()

    def _move_robot(self, pose: SE2, tilt_rad: float) -> None:
        """Bring the base to ``pose``. Raises ``InvalidStart``, ``PlacementFailed`` or ``DeviceFault``."""
        raise TypeError(f"{type(self).__name__} must override _move_robot()")

    def _wait_for_poses(self) -> None:
        """Wait until every source has measured the new place."""
        session = self._devices.session

        def measure() -> bool:
            for localizer in self._localizers:
                localizer.latest(STREAMS["pose"].max_age_s)
            return True

        def measured() -> bool | None:
            try:
                return measure()
            except StaleData:
                return None

        if wait_for(session.clock, measured, session.connect_timeout_s, POLL_S) is None:
            measure()


class SimulationPlacer(RosPlacer):
    """Calls the simulated robot's service.

    Args:
        devices: The robot's devices.
        service: Name of the service.
    """

    def __init__(self, devices: PlacedDevices, service: str) -> None:
        super().__init__(devices)
        self._service = service

    def _move_robot(self, pose: SE2, tilt_rad: float) -> None:
        session, service = self._devices.session, self._service
        for localizer in self._localizers:
            localizer.pause()
        placed, message, remedy = session.place(service, pose, tilt_rad)
        if not placed:
            raise InvalidStart(f"service {service}: {message}", remedy)
        session.clock.sleep(SETTLED_S)


class RealPlacer(RosPlacer):
    """Uses a placer in which a person moves the robot, or the robot drives.

    Args:
        devices: The robot's devices.
        guided: That placer.
    """

    def __init__(self, devices: PlacedDevices, guided: GuidedPlacer) -> None:
        super().__init__(devices)
        self._guided = guided
        self.way = guided.way

    def fitted(self, robot: Robot) -> Placer:
        self._guided = self._guided.fitted(robot)
        return super().fitted(robot)

    def _move_robot(self, pose: SE2, tilt_rad: float) -> None:
        self._guided.move_to(pose)


def _ros_leaves(source: Localizer) -> list[RosLocalizer]:
    """Return the ROS sources that a localizer is, or consists of."""
    if isinstance(source, CheckedLocalizer):
        source = source.source
    if isinstance(source, RosLocalizer):
        return [source]
    return [leaf for part in source.sources for leaf in _ros_leaves(part)]
