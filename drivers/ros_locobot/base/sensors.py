"""The base's sensor topics of each family, fed into one :class:`LevelTracker`, and its battery."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from std_msgs.msg import Float32

from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.connection.topic_cache import TopicCache
from drivers.ros_locobot.guard.options import GuardOptions
from drivers.ros_locobot.guard.safety_levels import LevelTracker
from drivers.ros_locobot.guard.sensors import subscriptions
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import VARIANTS, kobuki_charge, topics_of
from robot_runtime.safety import Feedback

EVENT_QUEUE = 100
"""Edges are never sent again: none may be dropped for a newer one."""


class BaseSensors:
    """Subscriptions to levels, events, pulses and battery.

    Args:
        lock: held while the tracker changes; the Guard's.
        changed: called under ``lock`` after every change, in rospy's thread.
    """

    def __init__(
        self, options: RosOptions, session: Session, lock: threading.Lock, changed: Callable[[], None]
    ) -> None:
        self._family, self._topics, self._session = VARIANTS[options.family], topics_of(options), session
        self._guard_options = GuardOptions(options.family, options.robot_name, options.topics, options.base)
        self._lock, self._changed = lock, changed
        self._main = TopicCache(self._topics.core or self._topics.bumper, session.clock)
        self._voltage = TopicCache(self._topics.voltage, session.clock)
        self._charge = TopicCache(self._topics.charge_ratio, session.clock)
        self._tracker = LevelTracker()

    def open(self, endpoints: list[Any]) -> None:
        """Subscribe; what was made is appended to ``endpoints``. Raises ``DeviceFault``."""
        session, topics = self._session, self._topics
        with self._lock:
            self._tracker = LevelTracker()
        session.require_publisher(*(topic for topic in (topics.core, topics.bumper) if topic))
        for sensor in subscriptions(self._guard_options, self._tracker, session.clock.now_ns):
            if sensor.topic == topics.odom:
                continue  # the base reads it itself and says so: alive()
            if sensor.definition is not None:
                session.check_definition(sensor.topic, sensor.definition)
            main = sensor.topic == self._main.topic
            on_message = self._taking(sensor.receive, self._main if main else None)
            endpoints.append(
                session.subscribe(
                    sensor.topic, sensor.message, on_message, EVENT_QUEUE, required=False, acknowledged=main
                )
            )
        endpoints.extend(
            session.subscribe(channel.topic, Float32, channel.receive, required=False)
            for channel in (self._voltage, self._charge)
            if channel.topic
        )

    def close(self) -> None:
        """Forget everything; call it under the lock."""
        self._tracker = LevelTracker()
        for channel in (self._main, self._voltage, self._charge):
            channel.clear()

    def alive(self, now_ns: int) -> bool:
        """The base has sent odometry. Whether that is feedback, because it has events only; call it under the lock."""
        self._tracker.alive(now_ns)
        return self._tracker.source == "events"

    def feedback(self, now_ns: int) -> Feedback | None:
        """The present levels, None before the first; call it under the lock."""
        return self._tracker.feedback(now_ns)

    def check(self, max_age_s: float) -> None:
        """Raise ``StaleData``, naming the topic, if levels do not come; events have no age."""
        if self._tracker.source != "events":
            self._main.read(max_age_s)

    def battery(self) -> tuple[float, float]:
        """(volts, 0..1); NaN while the base has not told."""
        if self._topics.core:
            core = self._main.newest
            voltage_v = core.message.battery / 10 if core is not None else math.nan
            return voltage_v, kobuki_charge(voltage_v, self._family.full_v, self._family.empty_v)
        voltage, charge = self._voltage.newest, self._charge.newest
        fraction = min(1.0, max(0.0, charge.message.data)) if charge is not None else math.nan
        return (voltage.message.data if voltage is not None else math.nan), fraction

    def _taking(self, receive: Callable[[Any], None], channel: TopicCache | None) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            if channel is not None and channel.receive(message) is None:
                return
            with self._lock:
                receive(message)
                self._changed()

        return take
