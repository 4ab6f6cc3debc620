"""The ``options`` of a ROS 2 robot's YAML file."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from drivers.ros.options import BaseOptions, RobotOptions
from drivers.ros.robot_variants import topics_of
from drivers.ros.topics import Ros2Robot
from robot_runtime.common import config
from robot_runtime.common.quantities import Period, Timeout


@dataclass(frozen=True)
class NetworkOptions(config.Strict):
    """The ROS 2 network and time limits.

    Attributes:
        domain_id: None means ``ROS_DOMAIN_ID``, and without that 0.
        discovery_server: ``HOST:PORT`` of a Fast DDS discovery server, used as a super client; empty for multicast.
        use_sim_time: Whether time comes from ``/clock``.
        connect_timeout_s: Limit for a topic to be published, a subscriber to connect, and a first message to arrive; a
            Create 3 with Fast DDS takes 30 s after it was switched on.
        patience_s: Silence of all topics together after which the link is lost.
        monitor_period_s: Period of checks of the velocity topic's publishers.
    """

    domain_id: Annotated[int, Field(ge=0, le=232)] | None = None
    discovery_server: str = ""
    use_sim_time: bool = False
    connect_timeout_s: Timeout = 5.0
    patience_s: Timeout = 10.0
    monitor_period_s: Period = 0.1

    def __post_init__(self) -> None:
        host, colon, port = self.discovery_server.partition(":")
        if self.discovery_server and not (host and (not colon or port.isdigit())):
            raise ValueError(f"discovery_server must look like 192.168.1.5:11811, got {self.discovery_server!r}")


@dataclass(frozen=True)
class Ros2BaseOptions(BaseOptions):
    """The base.

    Attributes:
        periodic_hazards: Whether the Create 3 repeats its hazards (``hazards_pub_fixed_period_ms`` of its web server),
            so that their silence stops the wheels; else it publishes changes only.
        stamped: Whether a base of the family ``turtlebot3`` or ``differential`` takes TwistStamped, as with Nav2 since
            Jazzy, instead of Twist.
        without_contact: Whether the base has no contact sensor; a task must accept that (``needs_contact_sensing``).
        unchecked_reflexes: Whether a Create 3's reflexes were switched off in its web page, so that a computer
            that does not reach its parameters may drive it.
    """

    periodic_hazards: bool = False
    stamped: bool = False
    without_contact: bool = False
    unchecked_reflexes: bool = False


@dataclass(frozen=True)
class Ros2Options(RobotOptions):
    """All options.

    Attributes:
        family: Variant of the robot.
        network: The ROS 2 network and time limits.
    """

    family: Literal[Ros2Robot, "differential"]
    base: Ros2BaseOptions = field(default_factory=Ros2BaseOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        topics = topics_of(self)
        if bool(topics.hazards or topics.bumper) == self.base.without_contact:
            raise ValueError(
                f"topic {topics.hazards or topics.bumper} reports the base's contacts: remove base.without_contact"
                if self.base.without_contact
                else "no topic reports the base's contacts: name topics.bumper (std_msgs/Bool) or topics.hazards, or "
                "state base.without_contact: true for a base that has no contact sensor"
            )
