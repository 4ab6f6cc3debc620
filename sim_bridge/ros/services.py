"""What can be asked of the simulated robot and of no real one: ``/simulation/place`` and ``/simulation/fault``."""

from __future__ import annotations

import concurrent.futures
import math
from collections.abc import Callable
from typing import Any

import rospy
from robot_runtime_simulation.srv import Place, PlaceResponse, SetFault, SetFaultResponse

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart, RuntimeFault
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.physics_executor import PhysicsExecutor

PLACE_SERVICE = "/simulation/place"
FAULT_SERVICE = "/simulation/fault"

ANSWER_LIMIT_S = 10.0
"""Of waiting for the physics thread, which takes a few milliseconds unless a picture is being drawn."""


class Services:
    """The two services.

    Args:
        place: puts the robot there, in the physics thread; raises ``InvalidStart``.
    """

    def __init__(self, executor: PhysicsExecutor, faults: Faults, place: Callable[[SE2, float], None]) -> None:
        self._executor, self._faults, self._place = executor, faults, place
        self._offered = [
            rospy.Service(PLACE_SERVICE, Place, self._on_place),
            rospy.Service(FAULT_SERVICE, SetFault, self._on_fault),
        ]

    def close(self) -> None:
        """Withdraw both."""
        for service in self._offered:
            service.shutdown()

    def _on_place(self, request: Any) -> Any:
        pose = request.pose

        def work() -> None:
            if not all(map(math.isfinite, (pose.x, pose.y, pose.theta, request.tilt))):
                raise InvalidStart(
                    f"pose ({pose.x}, {pose.y}, {pose.theta}) with tilt {request.tilt} is not finite",
                    "check what computed it",
                )
            self._place(SE2(pose.x, pose.y, pose.theta), request.tilt)

        return PlaceResponse(*self._answer(work))

    def _on_fault(self, request: Any) -> Any:
        return SetFaultResponse(*self._answer(lambda: self._faults.set(request.name, request.value)))

    def _answer(self, work: Callable[[], None]) -> tuple[bool, str, str]:
        """Success, message, remedy."""
        try:
            try:
                self._executor.post(work).result(ANSWER_LIMIT_S)
            except concurrent.futures.TimeoutError:
                raise DeviceFault(
                    f"the simulated robot did not answer within {ANSWER_LIMIT_S:g} s", "start it anew"
                ) from None
        except RuntimeFault as fault:
            return False, fault.message, fault.remedy
        return True, "", ""
