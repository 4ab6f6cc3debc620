"""Fields of the messages that report a base's safety sensors."""

from __future__ import annotations

from collections.abc import Mapping

from robot_runtime.hal.wheels import Zone

KOBUKI_BITS: Mapping[Zone, int] = {Zone.RIGHT: 1, Zone.CENTER: 2, Zone.LEFT: 4}
"""Bumper and cliff bits of ``kobuki_msgs/SensorState``."""

KOBUKI_WHEEL_BITS: Mapping[Zone, int] = {Zone.RIGHT: 1, Zone.LEFT: 2}
"""Wheel-drop bits of ``kobuki_msgs/SensorState``."""

CREATE_SAFETY_STATUS = "Safety Status"
"""Diagnosis of a Create's driver, after the node's name; the only report of the cliff sensors."""
