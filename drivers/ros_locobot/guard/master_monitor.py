"""Monitoring of the ROS master, in a thread of its own, so that the guard never waits for the master.

It detects other publishers of the base's velocity topic, sensors whose publishers use another message definition (ROS
drops their messages silently), and a master that is gone (existing connections persist) or was restarted: this node is
then registered again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

import rosgraph
import rospy
from rospy.impl.registration import get_service_manager, get_topic_manager

from drivers.ros.connection.errors import WrongDefinition
from drivers.ros.guard.options import GuardOptions
from drivers.ros.topics import family_of
from drivers.ros_locobot.connection.master import UNREACHABLE, Master, call_api, check_publishers
from robot_runtime.errors import DeviceFault


class MasterMonitor:
    """The monitoring thread.

    Args:
        options: Time limits, and ``silent_publishers``.
        velocity_topic: Only this node and ``silent_publishers`` may publish it.

    Attributes:
        definitions: Topics, and the message classes that their publishers must use.
    """

    def __init__(self, options: GuardOptions, velocity_topic: str) -> None:
        self._timeout_s, self._period_s = options.master_timeout_s, options.monitor_period_s
        self._topic = velocity_topic
        self._allowed = frozenset((rospy.get_name(), *options.silent_publishers))
        self._report: Callable[[tuple[str, ...]], None] = lambda nodes: None
        self._master = Master(rosgraph.get_master_uri().rstrip("/"), self._timeout_s)
        self.definitions: list[tuple[str, Any]] = []
        self._identity = ""
        self._notes: tuple[str, ...] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="master watch", daemon=True)

    def start(self, report: Callable[[tuple[str, ...]], None]) -> None:
        """Start; names of other publishers (empty for none) are reported whenever the master has answered."""
        self._report = report
        self._thread.start()

    def stop(self) -> None:
        """End within the time limit of a call."""
        self._stop.set()
        self._thread.join(self._timeout_s)

    def revoke(self, node: str) -> None:
        """Forbid a node that has sent a velocity, even if ``base.silent_publishers`` lists it."""
        self._allowed -= {node}

    def notes(self) -> tuple[str, ...]:
        """Return the detected problems, for the status."""
        return self._notes

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._notes = self._check()

    def _check(self) -> tuple[str, ...]:
        try:
            identity = self._master.identity()
            if self._identity and identity != self._identity:
                self._register_again()
            self._identity = identity
            published = self._master.graph().publishers
            foreign = (node for node in published.get(self._topic, ()) if node not in self._allowed)
            self._report(tuple(node for node in foreign if not self._master.is_dead(node)))
            notes = (self._wrong_family(published), *(self._wrong_definition(*pair) for pair in self.definitions))
            return tuple(filter(None, notes))
        except DeviceFault as error:
            return (error.message,)
        except UNREACHABLE as error:  # The master is gone again.
            return (f"ROS master {self._master.uri}: {error}",)

    def _wrong_family(self, published: Collection[str]) -> str:
        if any(topic in published for topic, _ in self.definitions):
            return ""
        family = family_of(published)
        return (
            ""
            if family is None
            else f"the network has the topics of the family {family!r}: set the parameter family to it"
        )

    def _wrong_definition(self, topic: str, message: Any) -> str:
        try:
            check_publishers(self._master, topic, message, self._timeout_s)
        except WrongDefinition as error:
            return error.message
        return ""

    def _register_again(self) -> None:
        """Register at a new master; rospy itself registers only once."""
        rospy.logwarn("the ROS master was restarted: registering again")
        name, uri = rospy.get_name(), rospy.get_node_uri()
        topics, limit = get_topic_manager(), {"timeout_s": self._timeout_s, "caller_id": name}
        for topic, kind in topics.get_publications():
            call_api(self._master.uri, "registerPublisher", topic, kind, uri, **limit)
        for service, service_uri in get_service_manager().get_services():
            call_api(self._master.uri, "registerService", service, service_uri, uri, **limit)
        for topic, kind in topics.get_subscriptions():
            _, _, publishers = call_api(self._master.uri, "registerSubscriber", topic, kind, uri, **limit)
            # The master reports later publishers only; the present ones are reported here in its place.
            call_api(uri, "publisherUpdate", topic, publishers, **limit)
