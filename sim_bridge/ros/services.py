"""The services of the simulated robot that no real robot has: ``/simulation/place`` and ``/simulation/fault``."""

from __future__ import annotations

import concurrent.futures
import math
from collections.abc import Callable
from typing import Any

import rospy
from robot_runtime_simulation.srv import Place, PlaceResponse, SetFault, SetFaultResponse

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart, RuntimeFault
from sim_bridge.ros.context import PhysicsExecutor
from sim_bridge.ros.faults import Faults

PLACE_SERVICE = "/simulation/place"
FAULT_SERVICE = "/simulation/fault"

RESPONSE_LIMIT_S = 10.0
"""Time limit of the physics thread; it takes a few milliseconds unless an image is being rendered."""


class SimulationServices:
    """The two services.

    Args:
        executor: Of the physics thread.
        faults: Changed by ``/simulation/fault``.
        place: Places the robot, in the physics thread; raises ``InvalidStart``.
    """

    def __init__(self, executor: PhysicsExecutor, faults: Faults, place: Callable[[SE2, float], None]) -> None:
        self._executor, self._faults, self._place = executor, faults, place
        self._services = [
            rospy.Service(PLACE_SERVICE, Place, self._on_place),
            rospy.Service(FAULT_SERVICE, SetFault, self._on_fault),
        ]

    def close(self) -> None:
        """Withdraw both services."""
        for service in self._services:
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

        return PlaceResponse(*self._response(work))

    def _on_fault(self, request: Any) -> Any:
        return SetFaultResponse(*self._response(lambda: self._faults.set(request.name, request.value)))

    def _response(self, work: Callable[[], None]) -> tuple[bool, str, str]:
        """Execute ``work`` in the physics thread and return success, message and remedy."""
        try:
            try:
                self._executor.submit(work).result(RESPONSE_LIMIT_S)
            except concurrent.futures.TimeoutError:
                raise DeviceFault(
                    f"the simulated robot did not respond within {RESPONSE_LIMIT_S:g} s", "restart it"
                ) from None
        except RuntimeFault as fault:
            return False, fault.message, fault.remedy
        return True, "", ""
