"""What the guard learns from the master, in a thread that may wait for it: the guard itself never does.

* Other publishers of the base's velocity topic, now and when the next one comes.
* Sensors that publish another definition of a message, which ROS would drop unseen.
* A master that is gone (all that is connected stays connected) or was started anew: to the new one, which knows nobody,
  this node is registered again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import rosgraph
import rospy
from rospy.impl.registration import get_service_manager, get_topic_manager

from drivers.ros_locobot.connection.errors import WrongDefinition
from drivers.ros_locobot.connection.master import UNREACHABLE, Master, ask, check_publishers
from drivers.ros_locobot.guard.options import GuardOptions
from robot_runtime.errors import DeviceFault


class MasterMonitor:
    """The watching thread.

    Args:
        velocity_topic: the one that only this node, and ``base.silent_publishers``, may publish.
        report: called with the strangers' names (empty for none) whenever the master has answered.
    """

    def __init__(self, options: GuardOptions, velocity_topic: str, report: Callable[[tuple[str, ...]], None]) -> None:
        self._limits = options.master
        self._topic = velocity_topic
        self._allowed = frozenset((rospy.get_name(), *options.base.silent_publishers))
        self._report = report
        self._master = Master(rosgraph.get_master_uri().rstrip("/"), options.master.timeout_s)
        self._definitions: list[tuple[str, Any]] = []
        self._identity = ""
        self._notes: tuple[str, ...] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="master watch", daemon=True)

    def start(self, definitions: Sequence[tuple[str, Any]]) -> None:
        """Watch; ``definitions`` are topics and the message classes that their publishers must speak."""
        self._definitions = [(topic, message) for topic, message in definitions if message is not None]
        self._thread.start()

    def stop(self) -> None:
        """End, within the limit of one question."""
        self._stop.set()
        self._thread.join(self._limits.timeout_s)

    def revoke(self, node: str) -> None:
        """That node has sent a velocity: whatever the parameters say, it is not silent."""
        self._allowed -= {node}

    def notes(self) -> tuple[str, ...]:
        """What a person should know, for the status."""
        return self._notes

    def _run(self) -> None:
        while not self._stop.wait(self._limits.monitor_period_s):
            self._notes = self._look()

    def _look(self) -> tuple[str, ...]:
        """Ask once; returns the notes."""
        try:
            identity = self._master.identity()
            if self._identity and identity != self._identity:
                self._register_anew()
            self._identity = identity
            publishers = self._master.graph().publishers.get(self._topic, ())
            strangers = (node for node in publishers if node not in self._allowed)
            self._report(tuple(node for node in strangers if not self._master.is_dead(node)))
            return tuple(filter(None, (self._wrong_definition(*pair) for pair in self._definitions)))
        except DeviceFault as error:
            return (error.message,)
        except UNREACHABLE as error:  # gone again while registering: what answers next is yet another one
            return (f"ROS master {self._master.uri}: {error}",)

    def _wrong_definition(self, topic: str, message: Any) -> str:
        try:
            check_publishers(self._master, topic, message, self._limits.timeout_s)
        except WrongDefinition as error:
            return error.message
        return ""

    def _register_anew(self) -> None:
        """Tell a new master what rospy told the one before; rospy tells it once in its life."""
        rospy.logwarn("the ROS master was started anew: registering there")
        name, uri = rospy.get_name(), rospy.get_node_uri()
        topics, limit = get_topic_manager(), {"timeout_s": self._limits.timeout_s, "caller_id": name}
        for topic, kind in topics.get_publications():
            ask(self._master.uri, "registerPublisher", topic, kind, uri, **limit)
        for service, service_uri in get_service_manager().get_services():
            ask(self._master.uri, "registerService", service, service_uri, uri, **limit)
        for topic, kind in topics.get_subscriptions():
            _, _, publishers = ask(self._master.uri, "registerSubscriber", topic, kind, uri, **limit)
            # The master tells us of later publishers only; of the present ones we tell ourselves in its place.
            ask(uri, "publisherUpdate", topic, publishers, **limit)
