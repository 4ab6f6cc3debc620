"""The simulated robot on ROS 1: its node, its services, and the topics of a Create 2."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import rosgraph
import rospy
from ca_msgs.msg import Bumper, ChargingState, Mode
from diagnostic_msgs.msg import DiagnosticStatus
from robot_runtime_simulation.srv import Place, PlaceResponse, SetFault, SetFaultResponse
from std_msgs.msg import Empty, Float32, Int16

from drivers.ros.protocol import Diagnosis, create_safety_diagnosis
from drivers.ros.safety_fields import CREATE_SAFETY_STATUS
from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Zone
from robot_runtime.scenes.scene import Scene
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics, battery_diagnosis
from sim_bridge.ros.context import PhysicsExecutor
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.kobuki_topics import KobukiTopics
from sim_bridge.ros.messages import messages
from sim_bridge.ros.robot import FAULT_SERVICE, PLACE_SERVICE, RosRobot, RosRobotOptions, place_at, respond
from sim_bridge.ros.rospy_network import Publisher, RospyNetwork

MASTER_LIMIT_S = 5.0
"""Time limit of the wait for a master. roslaunch starts it before its nodes; other scripts may not."""

SIM_TIME = "/use_sim_time"


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
        work = partial(place_at, self._place, pose.x, pose.y, pose.theta, request.tilt)
        return PlaceResponse(*respond(self._executor, work))

    def _on_fault(self, request: Any) -> Any:
        return SetFaultResponse(*respond(self._executor, lambda: self._faults.set(request.name, request.value)))


CAPACITY_AH = 2.7
CURRENT_A = -1.0
LOW_V = 14.0
TEMPERATURE_C = 25

BATTERY_TOPICS = ("voltage", "current", "charge", "capacity", "charge_ratio")


class CreateTopics(VariantTopics):
    """A Create 2; add it to :class:`BaseTopics`."""

    def __init__(self, base: BaseTopics) -> None:
        topics = base.variant.names.topics
        self._bumper = Publisher(topics["bumper"], Bumper._type)
        self._wheel_drop = Publisher(topics["wheel_drop"], Empty._type)
        self._mode = Publisher("/mode", Mode._type)
        self._charging = Publisher("/battery/charging_state", ChargingState._type)
        self._battery = [Publisher(f"/battery/{name}", Float32._type) for name in BATTERY_TOPICS]
        self._temperature = Publisher("/battery/temperature", Int16._type)

    def publish(self, base: BaseTopics, now_ns: int) -> None:
        header = messages.header(base.stamp_ns(now_ns), base.variant.names.frames.base)
        # Both switches together mean the middle of the bumper.
        left, right = (bool(base.bumper & (zone | Zone.CENTER).value) for zone in (Zone.LEFT, Zone.RIGHT))
        if "core_silent" not in base.faults:
            pressed = {"is_left_pressed": left, "is_right_pressed": right}
            base.send(now_ns, self._bumper, lambda: Bumper(header=header, **pressed))
        # The driver repeats this message while the level is active; no message reports its end.
        if base.wheel_drop:
            base.send(now_ns, self._wheel_drop, Empty)
        base.send(now_ns, self._mode, lambda: Mode(header, Mode.MODE_FULL))
        base.send(now_ns, self._charging, lambda: ChargingState(header, ChargingState.CHARGE_NONE))
        battery = base.chassis.battery
        charge_ah = battery.fraction * CAPACITY_AH
        values = (battery.voltage_v, CURRENT_A, charge_ah, CAPACITY_AH, battery.fraction)
        for publisher, value in zip(self._battery, values, strict=True):
            base.send(now_ns, publisher, partial(Float32, value))
        base.send(now_ns, self._temperature, lambda: Int16(TEMPERATURE_C))

    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
        return {
            "ca_driver: Battery Status": battery_diagnosis(base.chassis, LOW_V),
            f"ca_driver: {CREATE_SAFETY_STATUS}": create_safety_diagnosis(bool(base.cliff), bool(base.wheel_drop)),
            "ca_driver: Base Mode": (DiagnosticStatus.OK, "Mode is set to FULL", {}),
        }


def join(simulated_clock: bool) -> RospyNetwork:
    """Become a node, and set ``/use_sim_time`` for simulated time.

    Raises:
        DeviceFault: No master answers, or ``/use_sim_time`` is set while time is real.
    """
    if not wait_for(SystemClock(), lambda: rosgraph.is_master_online() or None, MASTER_LIMIT_S, 0.1):
        raise DeviceFault(
            f"no ROS master answers at {rosgraph.get_master_uri()}", "start `roscore`, or set ROS_MASTER_URI"
        )
    if simulated_clock:
        rospy.set_param(SIM_TIME, True)
    elif rospy.get_param(SIM_TIME, False):
        raise DeviceFault(
            f"parameter {SIM_TIME} is true, so every node would wait for a /clock that real time does not publish",
            f"use `--clock sim`, or run `rosparam set {SIM_TIME} false`",
        )
    # rospy's own simulated time is disabled: it would subscribe to the /clock that this node publishes.
    rospy.init_node("simulated_robot", disable_rostime=True)
    return RospyNetwork()


def arguments() -> list[str]:
    """Return the program's arguments without those that roslaunch adds."""
    return list(rospy.myargv(sys.argv)[1:])


def make_robot(scene: Scene, options: RosRobotOptions, network: RospyNetwork) -> RosRobot:
    """Return the simulated robot on a network."""

    def extend(base: BaseTopics) -> VariantTopics:
        return KobukiTopics(base) if base.variant.names.base else CreateTopics(base)

    return RosRobot(scene, options, network, extend, SimulationServices)
