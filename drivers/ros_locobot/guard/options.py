"""The private parameters of the guard node, by the names that the robot's YAML file uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from drivers.ros_locobot.options import BaseOptions, MasterOptions, Topics, VariantName
from drivers.ros_locobot.robot_variants import base_info, topics_of
from robot_runtime.common import config
from robot_runtime.safety import MAX_TIMEOUT_S, GuardLimits

Timeout = Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S, allow_inf_nan=False)]

FEEDBACK_TIMEOUT_S: dict[VariantName, float] = {"pyrobot-kobuki": 0.1, "interbotix": 0.1, "pyrobot-create": 0.35}
"""Five periods of a Kobuki's 50 Hz, three and a half of the 10 Hz at which a Create's driver works by default."""


@dataclass(frozen=True)
class GuardOptions:
    """What the node is told.

    Attributes:
        family, robot_name, topics, base, master: as in the robot's YAML (``options.py``). Of ``topics`` the base's are
            used, of ``base`` the limits and ``silent_publishers``.
        publish_hz: how often the velocity is repeated to the base, zero included.
        command_timeout_s: age at which a command expires.
        feedback_timeout_s: silence of the base's sensors that stops the wheels; None means the family's.
    """

    family: VariantName
    robot_name: str = "locobot"
    topics: Topics = field(default_factory=Topics)
    base: BaseOptions = field(default_factory=BaseOptions)
    master: MasterOptions = field(default_factory=MasterOptions)
    publish_hz: Annotated[float, Field(ge=20, le=200, allow_inf_nan=False)] = 50.0
    command_timeout_s: Timeout = 0.2
    feedback_timeout_s: Timeout | None = None

    __pydantic_config__ = config.STRICT

    def resolved_topics(self) -> Topics:
        """The base's topics by their full names."""
        return topics_of(self)

    def limits(self) -> GuardLimits:
        """What the Guard enforces."""
        info = base_info(self, "guard")
        return GuardLimits(
            info.max_linear_m_s,
            info.max_angular_rad_s,
            info.max_linear_accel_m_s2,
            info.max_angular_accel_rad_s2,
            command_timeout_s=self.command_timeout_s,
            feedback_timeout_s=self.feedback_timeout_s or FEEDBACK_TIMEOUT_S[self.family],
        )


def read_guard_options(parameters: Any, where: str) -> GuardOptions:
    """The node's private parameters as they came from the server. Raises ``ConfigError`` naming the field."""
    return config.parse(parameters, GuardOptions, where)
