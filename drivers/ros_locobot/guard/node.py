"""The guard node on ROS 1.

Started by ``ros_ws/src/robot_runtime_guard``, whose README has the topics and parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import rosgraph
import rospy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, SetBoolRequest, SetBoolResponse

from drivers.ros.connection.errors import MasterGone
from drivers.ros.connection.received import Received
from drivers.ros.connection.waiting import wait_until
from drivers.ros.guard.logic import GuardStatus
from drivers.ros.guard.node import NODE_NAME, GuardNode, GuardTransport, run_program
from drivers.ros.guard.options import GuardOptions
from drivers.ros.guard.sensors import Sensor
from drivers.ros_locobot.connection.master import Master
from drivers.ros_locobot.guard.master_monitor import MasterMonitor
from drivers.ros_locobot.guard.options import CONNECT_TIMEOUT_S, MASTER_TIMEOUT_S, read_guard_options
from drivers.ros_locobot.reading import Reader, message_class, received
from robot_runtime.hal.wheels import Velocity

NO_SWITCH = (
    "this base has no switch of motor power: between this node's zeros it follows the other node and creeps at a part "
    "of the speed"
)


class MotorSwitch:
    """The switch of a Kobuki's motors: off while another node commands the base.

    A base executes the newest velocity, so this node's zeros only slow another node's commands. kobuki_node ignores all
    velocities while motor power is off; a Create's driver has no such switch. Not thread-safe: the node calls it under
    its lock.

    Args:
        topic: topic of type ``kobuki_msgs/MotorPower``; empty if the base has none.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._is_off = False
        if topic:
            self._message = message_class(("kobuki_msgs/MotorPower",))
            self._publisher = rospy.Publisher(topic, self._message, queue_size=1, tcp_nodelay=True)

    def cut(self) -> str:
        """Switch the motors off, again if they were; return what this achieves, for the status."""
        if not self._topic:
            return NO_SWITCH
        self._is_off = True
        self._publisher.publish(self._message(self._message.OFF))
        if not self._publisher.get_num_connections():
            return f"motor power stays on, because no node subscribes to {self._topic}"
        return "motor power is off until then"

    def restore(self) -> None:
        """Switch the motors on if this node has switched them off."""
        if self._is_off:
            self._is_off = False
            self._publisher.publish(self._message(self._message.ON))


class RospyTransport(GuardTransport):
    """The guard's endpoints; the node must have been initialized.

    Args:
        options: options of the node.
        subscribe: constructor of a subscriber with the arguments of ``rospy.Subscriber``, used for every input.
    """

    def __init__(self, options: GuardOptions, subscribe: Callable[..., rospy.Subscriber] = rospy.Subscriber) -> None:
        self.name = rospy.get_name()
        self._subscribe = subscribe
        # A queue for a single message, sent by a thread: a base that stopped reading can never block the guard.
        self._wheels = rospy.Publisher(options.topics.velocity, Twist, queue_size=1, tcp_nodelay=True)
        self.velocity_topic = self._wheels.resolved_name
        self._status = rospy.Publisher("~status", DiagnosticArray, queue_size=4, latch=True)
        self._diagnostics = rospy.Publisher("/diagnostics", DiagnosticArray, queue_size=4)
        self._motors = MotorSwitch(options.topics.motor_power)
        self._monitor = MasterMonitor(options, self.velocity_topic)

    def subscribe_sensor(self, sensor: Sensor, receive: Callable[[Received], None]) -> Callable[[], bool]:
        reader = None if sensor.reports is None else Reader(sensor.kinds)

        def on_message(message: Any) -> None:
            read = received(message) if reader is None else reader.read(message)
            if read is not None:
                receive(read)

        message = rospy.AnyMsg if reader is None else reader.message
        subscriber = self._subscribe(sensor.topic, message, on_message, tcp_nodelay=True)
        if reader is not None:
            self._monitor.definitions.append((rospy.resolve_name(sensor.topic), reader.definition))
        return lambda: subscriber.get_num_connections() > 0

    def subscribe_command(self, receive: Callable[[Received], None]) -> None:
        self._subscribe("~command", Twist, lambda sent: receive(received(sent)), queue_size=1, tcp_nodelay=True)

    def offer_emergency_stop(
        self, receive: Callable[[Received], None], serve: Callable[[bool], tuple[bool, str]]
    ) -> None:
        def on_request(request: SetBoolRequest) -> SetBoolResponse:
            return SetBoolResponse(*serve(request.data))

        self._subscribe("~emergency_stop", Bool, lambda sent: receive(received(sent)), tcp_nodelay=True)
        rospy.Service("~emergency_stop", SetBool, on_request)

    def watch(self, sensors: list[Sensor], report: Callable[[tuple[str, ...]], None]) -> None:
        def on_velocity(message: rospy.AnyMsg) -> None:
            sender = received(message).sender
            if sender != self.name:
                self._monitor.revoke(sender)
                report((sender,))

        # This node's own messages come back here too; any others are of a foreign publisher.
        self._subscribe(self.velocity_topic, rospy.AnyMsg, on_velocity, tcp_nodelay=True)
        self._monitor.start(report)

    def send(self, velocity: Velocity) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = velocity.linear_m_s, velocity.angular_rad_s
        self._wheels.publish(twist)

    def publish(self, status: GuardStatus) -> None:
        array = DiagnosticArray()
        array.header.stamp = rospy.Time.now()
        values = [KeyValue(key, value) for key, value in status.values().items()]
        array.status = [DiagnosticStatus(status.level, NODE_NAME, status.text, NODE_NAME, values)]
        self._status.publish(array)
        self._diagnostics.publish(array)

    def notes(self) -> tuple[str, ...]:
        notes = self._monitor.notes()
        if self._wheels.get_num_connections() < 2:  # one of them is this node's own subscriber
            notes = (*notes, f"no node subscribes to {self.velocity_topic}")
        return notes

    def cut_power(self) -> str:
        return self._motors.cut()

    def restore_power(self) -> None:
        self._motors.restore()

    def log(self, text: str, is_trouble: bool) -> None:
        (rospy.logwarn if is_trouble else rospy.loginfo)("%s", text)

    def close(self) -> None:
        self._monitor.stop()


def _join(stop: threading.Event) -> None:
    """Become a node. Raises ``MasterGone`` if no master answers; rospy itself would wait forever."""
    master = Master(rosgraph.get_master_uri().rstrip("/"), MASTER_TIMEOUT_S)

    def answers() -> bool:
        try:
            return bool(master.identity())
        except MasterGone:
            return False

    if not wait_until(answers, stop.wait, CONNECT_TIMEOUT_S, 0.1):
        master.identity()
    rospy.init_node(NODE_NAME, disable_signals=True)


def make_guard(options: GuardOptions) -> GuardNode:
    """Return the guard on this computer's clock."""
    return GuardNode(options, RospyTransport(options))


def main(make_guard: Callable[[GuardOptions], GuardNode] = make_guard, parameters: Any = None, where: str = "") -> None:
    """Run the node until SIGTERM or Ctrl-C.

    Args:
        make_guard: constructor of the guard.
        parameters: its parameters; None for the node's private ones.
        where: name of the file that they are from.
    """

    def joined(stop: threading.Event) -> GuardNode:
        _join(stop)
        found = rospy.get_param("~", None) if parameters is None else parameters
        return make_guard(read_guard_options(found, where or rospy.get_name()))

    run_program(joined, lambda: rospy.signal_shutdown("the guard has ended"))


def run(parameters: Any, where: str) -> None:
    """Run the guard with the parameters of a file, as the guard of ROS 2 does."""
    main(parameters=parameters, where=where)
