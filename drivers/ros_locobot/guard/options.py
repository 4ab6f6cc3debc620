"""Private parameters of the guard node, named as in the robot's YAML file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import rospkg
from pydantic import Field

from drivers.ros_locobot.options import BaseOptions, MasterOptions, Topics, VariantName
from drivers.ros_locobot.robot_variants import base_info, topics_of
from robot_runtime.common import config
from robot_runtime.safety import MAX_TIMEOUT_S, GuardLimits

Timeout = Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)]

FEEDBACK_TIMEOUT_S: dict[VariantName, float] = {"pyrobot-kobuki": 0.1, "interbotix": 0.1, "pyrobot-create": 0.35}
"""Five periods of a Kobuki's 50 Hz, and three and a half of the default 10 Hz of a Create's driver."""


@dataclass(frozen=True)
class GuardOptions:
    """The parameters; the first five are those of the robot's YAML (``drivers/ros_locobot/options.py``).

    Attributes:
        family: Variant of the LoCoBot.
        robot_name: Namespace of an Interbotix robot.
        topics: Those of the base are used.
        base: The limits and ``silent_publishers`` are used.
        master: Time limits.
        publish_hz: Rate at which the velocity is repeated to the base, zero included.
        command_timeout_s: Age at which a command expires.
        feedback_timeout_s: Silence of the base's sensors that stops the wheels; None means the variant's.
        e_stop_file: Remembers an emergency stop across restarts; empty means a file in ``ROS_HOME``.
    """

    family: VariantName
    robot_name: str = "locobot"
    topics: Topics = field(default_factory=Topics)
    base: BaseOptions = field(default_factory=BaseOptions)
    master: MasterOptions = field(default_factory=MasterOptions)
    publish_hz: Annotated[float, Field(ge=20, le=200, allow_inf_nan=False)] = 50.0
    command_timeout_s: Timeout = 0.2
    feedback_timeout_s: Timeout | None = None
    e_stop_file: str = ""

    __pydantic_config__ = config.STRICT

    def resolved_topics(self) -> Topics:
        """Return the full names of the topics."""
        return topics_of(self)

    def limits(self) -> GuardLimits:
        """Return the limits that the Guard enforces."""
        info = base_info(self, "guard")
        return GuardLimits(
            info.max_linear_m_s,
            info.max_angular_rad_s,
            info.max_linear_accel_m_s2,
            info.max_angular_accel_rad_s2,
            command_timeout_s=self.command_timeout_s,
            feedback_timeout_s=self.feedback_timeout_s or FEEDBACK_TIMEOUT_S[self.family],
        )

    def e_stop_path(self, node_name: str) -> Path:
        """Return the path of ``e_stop_file``."""
        default = (
            Path(rospkg.get_ros_home()) / "robot_runtime_guard" / f"{node_name.strip('/').replace('/', '.')}.e_stop"
        )
        return Path(self.e_stop_file) if self.e_stop_file else default


def read_guard_options(parameters: Any, where: str) -> GuardOptions:
    """Parse the private parameters from the parameter server. Raises ``ConfigError`` naming the field."""
    return config.parse(parameters, GuardOptions, where)
