"""A Create 3: its reflexes are switched off and read back, and what would keep it from being safe is refused.

Its drive goals are never used: they bump on until odometry says that they have arrived.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from drivers.ros.base.driver import RosBase
from drivers.ros.connection.waiting import wait_until
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.robot_variants import topics_of
from drivers.ros.topics import CONTROL_NODES, robot_state_node
from drivers.ros2.messages import parameters
from drivers.ros2.node import SET_PARAMETERS, repeated_hazards
from drivers.ros2.options import Ros2Options
from drivers.ros2.session import Session
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal.streams import STREAMS

WEB = "the file of the base's web page (http://BASE/ros-params), then restart its application"

POLL_S = 0.02

LATCHED_S = 0.5
"""Time within which a periodic or transient-local publisher has delivered its state."""

REPUBLISHER = "turtlebot4_bringup/config/republisher.yaml on the robot"
"""turtlebot4_robot 2.0.1: in the file as delivered, these lines are commented out (turtlebot4 issue 593)."""

log = logging.getLogger(__name__)


class Parameters:
    """Parameters of a node.

    Args:
        session: connection to the network.
        node: full name.
    """

    def __init__(self, session: Session, node: str) -> None:
        self._session, self.node = session, node

    def get(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the values of those that are set. Raises ``DeviceFault`` if the node does not answer."""
        answer = self._session.call(f"{self.node}/get_parameters", "rcl_interfaces/GetParameters", names=list(names))
        fields = {1: "bool_value", 2: "integer_value", 3: "double_value", 4: "string_value"}
        return {
            name: getattr(value, fields[value.type])
            for name, value in zip(names, answer.values, strict=True)
            if value.type in fields
        }

    def set_bool(self, name: str, value: bool) -> None:
        """Set a parameter. Raises ``DeviceFault`` if the node refuses."""
        wanted = parameters(self._session.messages, {name: value})
        answer = self._session.call(f"{self.node}/set_parameters", SET_PARAMETERS, parameters=wanted)
        if not answer.results[0].successful:
            raise DeviceFault(
                f"node {self.node}: parameter {name} cannot be set: {answer.results[0].reason}", f"set it in {WEB}"
            )


class Ros2Base(RosBase):
    """A base on ROS 2.

    Args:
        name: name of the robot.
        session: connection to the network.
        options: topics and limits.
        motion: history that gets the odometry.
    """

    def __init__(self, name: str, session: Session, options: Ros2Options, motion: MotionHistory) -> None:
        super().__init__(name, session, options, motion)
        self._ros2, self._ros2_options = session, options
        control = CONTROL_NODES.get(options.family, "").replace("{name}", options.robot_name)
        self._control = Parameters(session, control) if control else None

    def _opened(self) -> None:
        self._require_hazards(topics_of(self._ros2_options).hazards)
        if self._control is not None and not self._ros2_options.base.unchecked_reflexes:
            self._switch_off_reflexes(self._control)
        super()._opened()
        session = self._ros2
        if not wait_until(self._has_fresh_odom, session.wait, session.connect_timeout_s, POLL_S):
            self._odom.read(STREAMS["base"].max_age_s)  # names the topic, or the clock that differs
        self._learn_contacts(self._control)

    def _has_fresh_odom(self) -> bool:
        self._ros2.check()
        with suppress(StaleData):
            return bool(self._odom.read(STREAMS["base"].max_age_s))
        return False

    def _learn_contacts(self, control: Parameters | None) -> None:
        """Wait until contacts from before the connection are known; ask a Create 3 that publishes on change only.

        Raises:
            StaleData: They stay unknown. Names the topic.
        """
        session = self._ros2

        def are_known() -> bool:
            return not self._sensors.unknown_topics

        if wait_until(are_known, session.wait, LATCHED_S, POLL_S):
            return
        topic = self._sensors.unknown_topics[0]
        if control is not None and not self._ros2_options.base.unchecked_reflexes:
            service = f"{robot_state_node(self._ros2_options.family, topic)}/set_parameters"
            with suppress(DeviceFault):  # then a person can
                session.call(service, SET_PARAMETERS, parameters=repeated_hazards())
            if wait_until(are_known, session.wait, LATCHED_S, POLL_S):
                return
        log.warning("topic %s: press and release the bumper once, within %g s", topic, session.connect_timeout_s)
        if not wait_until(are_known, session.wait, session.connect_timeout_s, POLL_S):
            raise StaleData(
                f"topic {topic}: published on change only, without a message yet: whether the base touches something "
                "is not known",
                "press and release the bumper while it connects; for good, make the base repeat the topic and set "
                "base.periodic_hazards (a Create 3: set hazards_pub_fixed_period_ms to 16 under robot_state: "
                f"ros__parameters in {WEB}), or make its publisher transient local",
            )

    def _require_hazards(self, topic: str) -> None:
        """Raise ``StaleData`` that names the file to edit if a Create 3's hazards are not on the network."""
        if not topic:
            return
        try:
            self._ros2.require_publisher(topic)
        except StaleData as error:
            if self._ros2_options.family != "turtlebot4-jazzy":
                raise StaleData(
                    error.message,
                    f"set publish_hazard_msgs to true (robot_state: ros__parameters) in {WEB}; "
                    f"or the namespace is another: {error.remedy}",
                ) from error
            raise StaleData(
                f"{error.message}: the republisher of a TurtleBot 4 as delivered passes no hazards on",
                f"in {REPUBLISHER}, remove the # before the lines of hazard_detection, then restart the robot's "
                "service",
            ) from error

    def _switch_off_reflexes(self, control: Parameters) -> None:
        """Switch the reflexes off, read them back, and refuse parameters under which the base is not itself.

        Raises:
            DeviceFault: Names the parameter and where to set it.
        """
        names = ("reflexes_enabled", "safety_override")
        try:
            found = control.get(names)
            if found.get("reflexes_enabled"):
                control.set_bool("reflexes_enabled", False)
                found = control.get(names)
        except DeviceFault as error:
            raise DeviceFault(
                f"node {control.node}: the base's reflexes are not known: {error.message}",
                f"run on the robot's own computer, which reaches that node; or set reflexes_enabled to false in {WEB}, "
                "and base.unchecked_reflexes to true in the robot's YAML",
            ) from error
        if found.get("reflexes_enabled"):
            raise DeviceFault(
                f"node {control.node}: reflexes_enabled is still true after it was set to false",
                f"set motion_control: ros__parameters: reflexes_enabled: false in {WEB}",
            )
        if found.get("safety_override") == "full":
            raise DeviceFault(
                f"node {control.node}: safety_override is full: firmware H.2.5 then ignores cmd_vel, its cliff sensors "
                "stop nothing, and max_speed is 0.46 m/s",
                f"set motion_control: ros__parameters: safety_override: none in {WEB}",
            )
