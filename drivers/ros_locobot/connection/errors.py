"""What can be wrong between a runtime and a robot on a ROS network, one type for each thing that a person mends."""

from __future__ import annotations

from robot_runtime.errors import DeviceFault, StaleData


class MasterGone(DeviceFault):
    """No ROS master answers at the URI, or not in time, or another one than at the start does."""


class WrongDefinition(DeviceFault):
    """A node speaks another definition of a message: another type, or another md5 of the same type."""


class SecondPublisher(DeviceFault):
    """Another node publishes on a topic that only this one may command."""


class ClockSkew(StaleData):
    """Stamps and this computer's time differ too much, or time jumped: no age can be told."""


class DepthUnit(DeviceFault):
    """Depth values cannot be in the unit that their encoding stands for."""
