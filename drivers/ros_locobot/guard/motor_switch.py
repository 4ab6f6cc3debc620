"""The switch of a Kobuki's motors: off while another node commands the base.

A base executes the newest velocity, so this node's zeros only slow another node's commands. kobuki_node ignores all
velocities while motor power is off; a Create's driver has no such switch.
"""

from __future__ import annotations

import rospy

from drivers.ros_locobot.guard.sensors import message_class

NO_SWITCH = (
    "this base has no switch of motor power: between this node's zeros it follows the other node and creeps at a part "
    "of the speed"
)


class MotorSwitch:
    """The switch. Not thread-safe: the node calls it under its lock.

    Args:
        topic: Of type ``kobuki_msgs/MotorPower``; empty if the base has none.
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
