"""How the robot gets to an episode's start: the simulated robot's service, a person, or its own wheels."""

from __future__ import annotations

from collections.abc import Sequence

import rospy
from geometry_msgs.msg import Pose2D

from drivers.ros_locobot.base.driver import RosBase
from drivers.ros_locobot.camera.driver import RosCamera
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.head import RosHead
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.localizer.sources import RosLocalizer
from drivers.ros_locobot.options import PlacerOptions
from robot_runtime.common.clock import wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart, StaleData
from robot_runtime.hal import Localizer, Placer, Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.placement.placer import GuidedPlacer, tilt_head

SETTLED_S = 0.2
"""By then this computer's clock is past the instant at which the robot was placed, however late ``/clock`` comes."""

POLL_S = 0.02


class RosPlacer(Placer):
    """What all ways share: wheels at zero first, camera tilted, everything of the old place forgotten."""

    def __init__(
        self,
        session: Session,
        base: RosBase,
        head: RosHead,
        camera: RosCamera,
        localizers: Sequence[RosLocalizer],
        motion: MotionHistory,
    ) -> None:
        self._session = session
        self._base, self._head, self._camera, self._motion = base, head, camera, motion
        self._localizers = tuple(localizers)

    def fitted(self, robot: Robot) -> Placer:
        sources = (robot.localizer, robot.referee, robot.odometry)
        self._localizers = tuple(dict.fromkeys(leaf for source in sources if source for leaf in _ros_leaves(source)))
        return self

    def place(self, pose: SE2, tilt_rad: float) -> None:
        limits = self._head.limits
        if not limits.min_tilt_rad <= tilt_rad <= limits.max_tilt_rad:
            raise InvalidStart(
                f"the head cannot tilt to {tilt_rad:.3f} rad",
                f"start between {limits.min_tilt_rad:.3f} and {limits.max_tilt_rad:.3f} rad",
            )
        self._base.stop()
        try:
            self._bring(pose, tilt_rad)
            self._head.command(0.0, tilt_rad)
        finally:
            # What is still on its way by now, on a busy computer, tells by its stamp of which place it is.
            now_ns = self._session.clock.now_ns()
            self._motion.clear(now_ns)
            self._camera.forget()
            for localizer in self._localizers:
                localizer.forget(now_ns)
        tilt_head(self._session.clock, self._head, tilt_rad)
        self._wait_for_poses()

    def _bring(self, pose: SE2, tilt_rad: float) -> None:
        """Have the base at ``pose``. Raises ``InvalidStart``, ``PlacementFailed`` or ``DeviceFault``."""
        raise TypeError(f"{type(self).__name__} must override _bring()")

    def _wait_for_poses(self) -> None:
        """Until every source has measured the new place."""

        def measured() -> bool | None:
            try:
                for localizer in self._localizers:
                    localizer.latest(STREAMS["pose"].max_age_s)
            except StaleData:
                return None
            return True

        if wait_for(self._session.clock, measured, self._session.options.connect_timeout_s, POLL_S) is None:
            for localizer in self._localizers:
                localizer.latest(STREAMS["pose"].max_age_s)


class SimulationPlacer(RosPlacer):
    """Asks the simulated robot's service."""

    def __init__(
        self,
        session: Session,
        base: RosBase,
        head: RosHead,
        camera: RosCamera,
        localizers: Sequence[RosLocalizer],
        motion: MotionHistory,
        options: PlacerOptions,
    ) -> None:
        super().__init__(session, base, head, camera, localizers, motion)
        self._options = options

    def _bring(self, pose: SE2, tilt_rad: float) -> None:
        from robot_runtime_simulation.srv import Place

        session, service = self._session, self._options.service
        if not session.master.has_service(service):
            raise DeviceFault(
                f"service {service}: nobody offers it",
                "start the simulated robot, or on a real one set placer.by to operator in the robot's YAML",
            )
        for localizer in self._localizers:
            localizer.pause()
        request = Pose2D(pose.x_m, pose.y_m, pose.yaw_rad)
        try:
            answer = session.call_with_timeout(
                lambda: rospy.ServiceProxy(service, Place)(request, tilt_rad), f"calling {service}"
            )
        except rospy.ServiceException as error:
            raise DeviceFault(f"service {service}: {error}", "look at the log of the simulated robot") from error
        if not answer.success:
            raise InvalidStart(f"service {service}: {answer.message}", answer.remedy)
        session.clock.sleep(SETTLED_S)


class RealPlacer(RosPlacer):
    """As ``by`` does: a person brings it, or it drives."""

    def __init__(
        self,
        session: Session,
        base: RosBase,
        head: RosHead,
        camera: RosCamera,
        localizers: Sequence[RosLocalizer],
        motion: MotionHistory,
        by: GuidedPlacer,
    ) -> None:
        super().__init__(session, base, head, camera, localizers, motion)
        self._by = by
        self.way = by.way

    def fitted(self, robot: Robot) -> Placer:
        self._by = self._by.fitted(robot)
        return super().fitted(robot)

    def _bring(self, pose: SE2, tilt_rad: float) -> None:
        self._by.bring(pose)


def _ros_leaves(source: Localizer) -> list[RosLocalizer]:
    """The ROS sources that a localizer is, or is made of."""
    if isinstance(source, RosLocalizer):
        return [source]
    return [leaf for part in source.sources for leaf in _ros_leaves(part)]
