"""How the robot gets to an episode's start: the simulated robot's service, or a person."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import rospy
from geometry_msgs.msg import Pose2D

from drivers.ros_locobot.base import RosBase
from drivers.ros_locobot.camera import RosCamera
from drivers.ros_locobot.head import RosHead
from drivers.ros_locobot.localizers import RosLocalizer
from drivers.ros_locobot.motion_log import MotionLog
from drivers.ros_locobot.node import Session
from drivers.ros_locobot.options import PlacerOptions
from robot_runtime.clock import wait_for
from robot_runtime.errors import DeviceFault, InvalidStart, StaleData
from robot_runtime.geometry import SE2, wrap_angle
from robot_runtime.hal import HeadState, Placer, PoseStatus
from robot_runtime.streams import STREAMS

ON_THEIR_WAY_S = 0.2
"""What was measured before the robot was placed has arrived by then, and can be forgotten."""

HEAD_TIMEOUT_S = 30.0
POLL_S = 0.02
STILL_M = 0.01
STILL_S = 1.0
"""A robot that moved less than ``STILL_M`` in this time has been let go by the operator."""


def say(text: str) -> None:
    """Tell the operator."""
    print(text, file=sys.stderr, flush=True)


class RosPlacer(Placer):
    """What both ways share: wheels at zero first, camera tilted, everything of the old place forgotten."""

    def __init__(
        self,
        session: Session,
        options: PlacerOptions,
        base: RosBase,
        head: RosHead,
        camera: RosCamera,
        localizers: Sequence[RosLocalizer],
        motion: MotionLog,
    ) -> None:
        self._session, self._options = session, options
        self._base, self._head, self._camera, self._motion = base, head, camera, motion
        self._localizers = tuple(localizers)
        self._referee = localizers[-1]

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
            self._motion.clear()
            self._camera.forget()
            for localizer in self._localizers:
                localizer.forget()
        self._wait_for_head(tilt_rad)
        self._wait_for_poses()

    def _bring(self, pose: SE2, tilt_rad: float) -> None:
        """Have the base at ``pose``. Raises ``InvalidStart`` or ``DeviceFault``."""
        raise TypeError(f"{type(self).__name__} must override _bring()")

    def _wait_for_head(self, tilt_rad: float) -> None:
        def settled() -> HeadState | None:
            state = self._head.state(STREAMS["head"].max_age_s)
            return None if state.moving else state

        if wait_for(self._session.clock, settled, HEAD_TIMEOUT_S, POLL_S) is None:
            raise DeviceFault(
                f"head: has not reached tilt {tilt_rad:.3f} rad in {HEAD_TIMEOUT_S:g} s",
                "check the pan-tilt's servos, their torque and their load",
            )

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
            answer = session.bounded(
                lambda: rospy.ServiceProxy(service, Place)(request, tilt_rad), f"calling {service}"
            )
        except rospy.ServiceException as error:
            raise DeviceFault(f"service {service}: {error}", "look at the log of the simulated robot") from error
        if not answer.success:
            raise InvalidStart(f"service {service}: {answer.message}", answer.remedy)
        session.clock.sleep(ON_THEIR_WAY_S)


class OperatorPlacer(RosPlacer):
    """Tells a person where the robot must stand, and waits until the referee sees it there, at rest.

    The base is held by its Guard meanwhile only as far as this runtime commands it: the person may push, carry or
    drive it.
    """

    tell: Callable[[str], None] = staticmethod(say)

    def _bring(self, pose: SE2, tilt_rad: float) -> None:
        options = self._options
        self.tell(
            f"Bring the robot to x {pose.x_m:.2f} m, y {pose.y_m:.2f} m, heading {math.degrees(pose.yaw_rad):.0f} "
            f"degrees in map, within {options.within_m:g} m and {options.within_deg:g} degrees, and leave it."
        )
        clock = self._session.clock
        since: tuple[int, SE2] | None = None

        def arrived() -> bool | None:
            nonlocal since
            self._session.check()
            try:
                estimate = self._referee.latest(STREAMS["referee"].max_age_s)
            except StaleData:
                return None  # carried through a place where it cannot be seen
            here = estimate.pose
            off_rad = abs(wrap_angle(here.yaw_rad - pose.yaw_rad))
            near = here.distance_to(pose) <= options.within_m and off_rad <= math.radians(options.within_deg)
            if not near or estimate.status is not PoseStatus.OK:
                since = None
            elif since is None or since[1].distance_to(here) > STILL_M:
                since = (clock.now_ns(), here)
            return True if since is not None and clock.now_ns() - since[0] >= STILL_S * 1e9 else None

        if wait_for(clock, arrived, options.timeout_s, 0.1) is None:
            raise InvalidStart(
                f"the robot was not brought to ({pose.x_m:.2f}, {pose.y_m:.2f}) within {options.timeout_s:g} s",
                "bring it there, or raise placer.timeout_s in the robot's YAML",
            )
        self.tell("The robot stands at the start.")
