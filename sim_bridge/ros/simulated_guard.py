"""The guard node for simulated time: the robot's own node, on ``/clock`` and in lockstep with the simulated robot.

Everything that only a simulation needs is here: the guard itself reads its computer's monotonic clock and knows neither
``/use_sim_time`` nor acknowledgements. ``launch/simulation.launch`` and tests start this program next to a simulated
robot that publishes ``/clock``.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import rosgraph
import rospkg
import rospy

from drivers.ros.guard.node import GuardNode
from drivers.ros.guard.options import GuardOptions
from drivers.ros_locobot.connection.acknowledge import AcknowledgePublisher, header_of
from drivers.ros_locobot.connection.master import Master
from drivers.ros_locobot.guard import node
from drivers.ros_locobot.guard.node import RospyTransport
from robot_runtime.common.clock import seconds_to_ns

AHEAD_S = 1.0
"""Largest lead of a message's stamp over ``/clock``; beyond that, two clocks disagree."""


class Lockstep:
    """Simulated time of a node, and the acknowledgement of the messages that it has processed.

    Create it after ``rospy.init_node`` with ``/use_sim_time`` set.
    """

    def __init__(self) -> None:
        self._acknowledge = AcknowledgePublisher()
        self._topics: set[str] = set()
        self._lock = threading.Lock()
        self._stamp_ns = 0

    def now_ns(self) -> int:
        """Return simulated time: that of ``/clock``, or of a message that arrived before it."""
        return max(self._clock_ns(), self._plausible_ns(self._stamp_ns))

    def observe_stamp(self, stamp_ns: int) -> None:
        """Advance to the stamp of a received message, which on a busy computer may arrive before its ``/clock``."""
        with self._lock:
            self._stamp_ns = max(self._plausible_ns(stamp_ns), self._plausible_ns(self._stamp_ns))

    def subscribe(self, topic: str, message: Any, receive: Callable[[Any], object], **options: Any) -> rospy.Subscriber:
        """Subscribe; a message with a header sets the time before ``receive`` and is acknowledged after it."""

        def on_message(received: Any) -> None:
            header = header_of(received)
            if header is None:
                receive(received)
                return
            self.observe_stamp(header.stamp.to_nsec())
            receive(received)
            self._topics.add(topic)
            self._acknowledge.acknowledge(topic, received)

        return rospy.Subscriber(topic, message, on_message, **options)

    def end(self) -> None:
        """Tell the simulator that no further message will be processed."""
        for topic in tuple(self._topics):
            self._acknowledge.end(topic)

    def _plausible_ns(self, stamp_ns: int) -> int:
        """Return the stamp, or 0 where it is too far ahead of ``/clock``, as after a restart of the simulator."""
        return stamp_ns if stamp_ns <= self._clock_ns() + seconds_to_ns(AHEAD_S) else 0

    def _clock_ns(self) -> int:
        return int(rospy.get_rostime().to_nsec())


def make_guard(options: GuardOptions) -> GuardNode:
    """Return the guard on simulated time."""
    lockstep = Lockstep()
    rospy.on_shutdown(lockstep.end)
    if not options.e_stop_file:
        options = replace(options, e_stop_file=_file_of_this_simulation(options.master_timeout_s))
    return GuardNode(options, RospyTransport(options, lockstep.subscribe), lockstep.now_ns)


def _file_of_this_simulation(timeout_s: float) -> str:
    """Return a file for the emergency stop that no later simulation finds: another master, or a restarted one."""
    master = Master(rosgraph.get_master_uri().rstrip("/"), timeout_s)
    run = re.sub(r"\W+", "-", f"{rospy.get_name().strip('/')} {master.uri} {master.identity()}")
    return f"{rospkg.get_log_dir()}/{run}.e_stop"


def main() -> None:
    """Run the node, as ``drivers.ros_locobot.guard.node.main`` does the robot's."""
    node.main(make_guard)


if __name__ == "__main__":
    main()
