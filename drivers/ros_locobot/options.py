"""The ``options`` of a ROS 1 LoCoBot's YAML file."""

from dataclasses import dataclass, field

from drivers.ros.options import RobotOptions
from drivers.ros.topics import Ros1Family
from robot_runtime.common import config
from robot_runtime.common.quantities import Period, Timeout


@dataclass(frozen=True)
class MasterOptions(config.Strict):
    """The ROS master and time limits.

    Attributes:
        uri: None means ``ROS_MASTER_URI``, and without that this computer.
        timeout_s: Limit of each answer of the master or a node; a lost answer is asked for again.
        connect_timeout_s: Limit for a topic to be published, a subscriber to connect, and a first message to arrive.
        patience_s: Silence of the network that is waited out: of master and topics together while connected, and more
            than ``connect_timeout_s`` for what is under way while connecting.
        monitor_period_s: Period of checks of the master and of the velocity topic's publishers.
    """

    uri: str | None = None
    timeout_s: Timeout = 2.0
    connect_timeout_s: Timeout = 5.0
    patience_s: Timeout = 10.0
    monitor_period_s: Period = 0.5

    def __post_init__(self) -> None:
        if self.uri is not None and not self.uri.startswith("http://"):
            raise ValueError(f"uri must look like http://locobot:11311, got {self.uri!r}")


@dataclass(frozen=True)
class RosOptions(RobotOptions):
    """All options.

    Attributes:
        family: Variant of the LoCoBot.
        master: The ROS master and time limits.
    """

    family: Ros1Family
    master: MasterOptions = field(default_factory=MasterOptions)
