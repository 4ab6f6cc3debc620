"""The simulated robot on ROS 2: its node, its services, and the topics of a Create 3."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from drivers.ros.protocol import Diagnosis
from drivers.ros.safety_fields import HAZARD_BUMP, HAZARD_CLIFF, HAZARD_WHEEL_DROP
from drivers.ros2.messages import SET_ATOMICALLY, RclpyMessages
from drivers.ros2.node import Node, stamp_ns, write_profile
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Zone
from robot_runtime.scenes.scene import Scene
from sim_bridge.ros.base_topics import BaseTopics, VariantTopics
from sim_bridge.ros.context import PhysicsExecutor
from sim_bridge.ros.faults import Faults
from sim_bridge.ros.network import QUEUE_SIZE, Network
from sim_bridge.ros.robot import FAULT_SERVICE, PLACE_SERVICE, RosRobot, RosRobotOptions, place_at, respond

FRAMES: Mapping[int, Mapping[Zone, str]] = {
    HAZARD_BUMP: {Zone.LEFT: "bump_left", Zone.CENTER: "bump_front_center", Zone.RIGHT: "bump_right"},
    HAZARD_CLIFF: {Zone.LEFT: "cliff_side_left", Zone.CENTER: "cliff_front_left", Zone.RIGHT: "cliff_side_right"},
    HAZARD_WHEEL_DROP: {Zone.LEFT: "left_wheel", Zone.RIGHT: "right_wheel"},
}


class Publisher:
    """A publisher of the node."""

    def __init__(self, node: Node, publisher: Any) -> None:
        self._node, self._publisher = node, publisher

    @property
    def has_subscribers(self) -> bool:
        return bool(self._publisher.get_subscription_count())

    def publish(self, message: Any) -> None:
        if not self._node.is_shutdown():
            self._publisher.publish(message)


class RclpyNetwork(Network):
    """This process's node."""

    def __init__(self) -> None:
        write_profile()
        self.node, self.messages = Node("simulated_robot", lanes=("base", "services")), RclpyMessages()

    def publisher(self, topic: str, kind: str, latch: bool = False, queue_size: int = QUEUE_SIZE) -> Publisher:
        return Publisher(self.node, self.node.advertise(topic, kind, queue_size, latch))

    def subscribe(self, topic: str, kind: str, receive: Callable[[Any], object], queue_size: int = 10) -> None:
        self.node.subscribe(topic, (kind,), lambda received: receive(received.message), queue_size)

    def subscribe_senders(self, topic: str, kind: str, receive: Callable[[str, int, Any], object]) -> None:
        def on_message(received: Any) -> None:
            message = received.message
            stamp = message.stamp
            found_ns = stamp_ns(message)
            receive(received.sender, stamp.sec * 10**9 + stamp.nanosec if found_ns is None else found_ns, message)

        self.node.subscribe(topic, (kind,), on_message, 100)

    def log_error(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def is_shutdown(self) -> bool:
        return self.node.is_shutdown()

    def close(self) -> None:
        self.node.close()


class HazardTopics(VariantTopics):
    """The hazards of a Create 3, published when they change; add it to :class:`BaseTopics`.

    The newest message is kept for late subscribers: a real base keeps none, but can be asked to repeat it.
    """

    def __init__(self, base: BaseTopics) -> None:
        self._topic = base.context.network.publisher(
            base.variant.names.topics["hazards"], "irobot_create_msgs/HazardDetectionVector", latch=True, queue_size=1
        )
        self._last: tuple[int, int, int] | None = None

    def publish(self, base: BaseTopics, now_ns: int) -> None:
        levels = (base.bumper, base.cliff, base.wheel_drop)
        if levels == self._last or "core_silent" in base.faults:
            return
        self._last = levels
        messages, now = base.messages, base.stamp_ns(now_ns)
        found = [
            messages.make("irobot_create_msgs/HazardDetection", header=messages.header(now, frame), type=kind)
            for bits, (kind, frames) in zip(levels, FRAMES.items(), strict=True)
            for zone, frame in frames.items()
            if zone.value & bits
        ]
        vector = messages.make(
            "irobot_create_msgs/HazardDetectionVector", header=messages.header(now, "base_link"), detections=found
        )
        self._topic.publish(vector)

    def diagnose(self, base: BaseTopics) -> dict[str, Diagnosis]:
        return {}


class SimulationServices:
    """The two services.

    Args:
        executor: executor of the physics thread.
        faults: changed by ``/simulation/fault``.
        place: places the robot, in the physics thread; raises ``InvalidStart``.
        node: node that offers them.
    """

    def __init__(
        self, executor: PhysicsExecutor, faults: Faults, place: Callable[[SE2, float], None], node: Node
    ) -> None:
        self._executor, self._faults, self._place, self._node = executor, faults, place, node
        for service, answer in ((PLACE_SERVICE, self._on_place), (FAULT_SERVICE, self._on_fault)):
            node.serve(SET_ATOMICALLY, service, answer, "services")

    def close(self) -> None:
        """Leave the network."""
        self._node.close()

    def _on_place(self, request: Any, response: Any) -> Any:
        at = {item.name: item.value.double_value for item in request.parameters}
        work = partial(place_at, self._place, at["x"], at["y"], at["yaw"], at["tilt"])
        return self._answered(response, work)

    def _on_fault(self, request: Any, response: Any) -> Any:
        def work() -> None:
            for item in request.parameters:
                self._faults.set(item.name, item.value.double_value)

        return self._answered(response, work)

    def _answered(self, response: Any, work: Callable[[], None]) -> Any:
        response.result.successful, *lines = respond(self._executor, work)
        response.result.reason = "\n".join(lines)
        return response


class ReflexParameters:
    """The parameters of a Create 3's reflexes; its reflexes are not simulated.

    Args:
        name: full name of the node that has them.
        network: the simulated robot's node.
    """

    def __init__(self, name: str, network: RclpyNetwork) -> None:
        self._make, self._reflexes_enabled = network.messages.make, True
        network.node.serve("rcl_interfaces/GetParameters", f"{name}/get_parameters", self._on_get, "services")
        network.node.serve("rcl_interfaces/SetParameters", f"{name}/set_parameters", self._on_set, "services")

    def _on_get(self, request: Any, response: Any) -> Any:
        values: dict[str, dict[str, Any]] = {
            "reflexes_enabled": {"type": 1, "bool_value": self._reflexes_enabled},
            "safety_override": {"type": 4, "string_value": "none"},
        }
        response.values = [
            self._make("rcl_interfaces/ParameterValue", **values.get(name, {"type": 0})) for name in request.names
        ]
        return response

    def _on_set(self, request: Any, response: Any) -> Any:
        for item in request.parameters:
            if item.name == "reflexes_enabled":
                self._reflexes_enabled = item.value.bool_value
        response.results = [
            self._make("rcl_interfaces/SetParametersResult", successful=True, reason="") for _ in request.parameters
        ]
        return response


def join(simulated_clock: bool) -> RclpyNetwork:
    """Become a node. Raises ``DeviceFault``."""
    return RclpyNetwork()


def arguments() -> list[str]:
    """Return the program's arguments."""
    return sys.argv[1:]


def make_robot(scene: Scene, options: RosRobotOptions, network: RclpyNetwork) -> RosRobot:
    """Return the simulated robot on a network."""
    names = options.variant.names
    extend = HazardTopics if names.topics.get("hazards") else None
    robot = RosRobot(scene, options, network, extend, partial(SimulationServices, node=network.node))
    if names.control:
        ReflexParameters(names.control, network)
    return robot
