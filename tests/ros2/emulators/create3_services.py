"""A Create 3's services and parameters, on Fast DDS: rclpy can serve them, Cyclone DDS's Python cannot.

Each change is a line on standard output, a test's command for :mod:`tests.ros2.emulators.create3_base`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import threading
from typing import Any

import rclpy
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from tests.ros2.emulators.create3_base import MAX_SPEED_MPS
from tests.ros2.emulators.renamed_services import create3_services


def tell(**commands: Any) -> None:
    """Tell the base."""
    print(json.dumps(commands), flush=True)


class MotionControl:
    """The node ``motion_control``."""

    def __init__(self, namespace: str, parameters: dict[str, Any]) -> None:
        self.node = Node("motion_control", namespace=namespace)
        self._may_set_speed = True
        speed = {"max_speed": MAX_SPEED_MPS[parameters["safety_override"]], "min_speed": 0.03, "wheel_accel_limit": 900}
        for name, value in (parameters | speed).items():
            self.node.declare_parameter(name, value)
        fixed = ParameterDescriptor(read_only=True)
        self.node.declare_parameter("wheels_stop_threshold_sec", 0.5, fixed)
        self._may_set_speed = False
        self.node.add_on_set_parameters_callback(self._check)
        self.node.add_post_set_parameters_callback(self._follow)
        kinds = create3_services()
        self.node.create_service(kinds["e_stop"], "e_stop", self._stop)
        self.node.create_service(kinds["reset_pose"], "reset_pose", self._reset)
        self.node.create_service(kinds["robot_power"], "robot_power", self._power)

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == "max_speed" and not self._may_set_speed:
                return SetParametersResult(successful=False, reason="'max_speed' cannot be set externally")
            if parameter.name == "safety_override" and parameter.value not in MAX_SPEED_MPS:
                return SetParametersResult(successful=False, reason="Failed to set safety mode")
        return SetParametersResult(successful=True)

    def _follow(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            tell(parameter=[parameter.name, parameter.value])
            if parameter.name == "safety_override":
                self._may_set_speed = True
                self.node.set_parameters([Parameter("max_speed", value=MAX_SPEED_MPS[parameter.value])])
                self._may_set_speed = False

    def _stop(self, request: Any, response: Any) -> Any:
        tell(e_stop=request.data)
        response.success, response.message = True, f"Set system E-Stop {'on' if request.data else 'off'}"
        return response

    def _reset(self, request: Any, response: Any) -> Any:
        turned = request.orientation
        yaw = math.atan2(2 * (turned.w * turned.z + turned.x * turned.y), 1 - 2 * (turned.y**2 + turned.z**2))
        tell(reset_pose=[request.position.x, request.position.y, yaw])
        return response

    def _power(self, request: Any, response: Any) -> Any:
        response.message = "Set system power off failed (not supported in sim)"
        return response


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--namespace", default="")
    parser.add_argument("--fixed-hazards", action="store_true", help="refuse to change parameters of robot_state")
    parser.add_argument("--parameters", type=json.loads, required=True)
    args = parser.parse_args()
    rclpy.init(domain_id=args.domain)
    executor = SingleThreadedExecutor()
    executor.add_node(MotionControl(args.namespace, args.parameters["motion_control"]).node)
    state = Node("robot_state", namespace=args.namespace)
    for name, value in args.parameters["robot_state"].items():
        state.declare_parameter(name, value)
    if args.fixed_hazards:
        refused = SetParametersResult(successful=False, reason="cannot be set at run time")
        state.add_on_set_parameters_callback(lambda _: refused)
    state.add_post_set_parameters_callback(
        lambda found: [tell(hazards_period_ms=one.value) for one in found if one.name == "hazards_pub_fixed_period_ms"]
    )
    executor.add_node(state)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    tell(ready=True)
    executor.spin()


if __name__ == "__main__":
    main()
