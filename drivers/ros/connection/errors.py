"""Typed faults of the connection between the runtime and a robot on a ROS network."""

from __future__ import annotations

from robot_runtime.errors import DeviceFault, StaleData


class MasterGone(DeviceFault):
    """No ROS master answers at the URI in time, or it is not the one of the beginning."""


class LinkLost(MasterGone):
    """Neither the master nor any topic has been heard for longer than the patience."""


class WrongDefinition(DeviceFault):
    """A node uses another definition of a message: another type, or another md5 of the same type."""


class SecondPublisher(DeviceFault):
    """Another node publishes on a topic that only this one may command."""

    @classmethod
    def of(cls, topic: str, node: str) -> SecondPublisher:
        """The error for a node that publishes on the topic of the base's velocity."""
        return cls(
            f"topic {topic}: {node} publishes velocities in addition to this runtime",
            "stop that node (teleop, smoother, multiplexer, move_base or another runtime): it can still move the base; "
            "if it is the guard node, set base.guard to true in the robot's YAML; a node that is known to be silent "
            "can be listed there under base.silent_publishers",
        )


class ClockSkew(StaleData):
    """Stamps and this computer's time differ too much, or time jumped, so that ages are unknown."""


class DepthUnit(DeviceFault):
    """Depth values cannot be in the unit of their encoding."""


class TwoSources(DeviceFault):
    """Two nodes publish one quantity, and a reader gets a mixture."""
