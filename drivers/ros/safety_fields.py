"""Fields of the messages that report a base's safety sensors."""

from __future__ import annotations

from collections.abc import Mapping

from robot_runtime.hal.wheels import Zone

KOBUKI_BITS: Mapping[Zone, int] = {Zone.RIGHT: 1, Zone.CENTER: 2, Zone.LEFT: 4}
"""Bumper and cliff bits of ``kobuki_msgs/SensorState``."""

KOBUKI_WHEEL_BITS: Mapping[Zone, int] = {Zone.RIGHT: 1, Zone.LEFT: 2}
"""Wheel-drop bits of ``kobuki_msgs/SensorState``."""

HAZARD_BUMP, HAZARD_CLIFF, HAZARD_STALL, HAZARD_WHEEL_DROP = 1, 2, 3, 4
"""Types of ``irobot_create_msgs/HazardDetection`` that stop a robot; 0 is the limit of backing up, 5 a proximity."""

HAZARD_FRAMES: Mapping[str, Zone] = {
    "bump_left": Zone.LEFT,
    "bump_front_left": Zone.LEFT,
    "bump_front_center": Zone.CENTER,
    "bump_front_right": Zone.RIGHT,
    "bump_right": Zone.RIGHT,
    "cliff_side_left": Zone.LEFT,
    "cliff_front_left": Zone.LEFT,
    "cliff_front_right": Zone.RIGHT,
    "cliff_side_right": Zone.RIGHT,
    "left_wheel": Zone.LEFT,
    "right_wheel": Zone.RIGHT,
}
"""Zones of the frames of a Create 3's hazards (create3_sim), without a namespace before them."""

CREATE_SAFETY_STATUS = "Safety Status"
"""Diagnosis of a Create's driver, after the node's name; the only report of the cliff sensors."""
