"""The messages of whoever sees the objects: one JSON object per UDP datagram, or several, one per line.

::

    {"object": "mug_1", "position": [1.20, -0.35, 0.75], "quaternion": [1, 0, 0, 0], "age_s": 0.02, "frame": "map"}

``quaternion`` is w, x, y, z; left out, the object is unturned. ``age_s`` is the time since it was measured (0), so two
computers' clocks need not agree. ``frame`` is ``map`` (left out) or one of the scene's ``frames``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.scenes.objects import ObjectPose, Point3, Quaternion

MAX_DATAGRAM = 65_507
"""Bytes that fit one UDP datagram."""


@dataclass(frozen=True)
class Sighting:
    """One object seen once.

    Attributes:
        object: its id. age_s: since it was measured, when this was sent. frame: that the pose is in.
    """

    object: str
    position: Point3
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    age_s: float = 0.0
    frame: str = "map"

    __pydantic_config__ = config.STRICT

    @property
    def pose(self) -> ObjectPose:
        return ObjectPose(self.position, self.quaternion)

    @property
    def fault(self) -> str | None:
        """What makes this no sighting; None if nothing."""
        if not (math.isfinite(self.age_s) and self.age_s >= 0):
            return f"age_s {self.age_s} is not a time"
        return self.pose.fault


def encode(sighting: Sighting) -> bytes:
    """One line. Raises ``ValueError`` for numbers that JSON cannot say."""
    fields: dict[str, Any] = {
        "object": sighting.object,
        "position": sighting.position,
        "quaternion": sighting.quaternion,
        "age_s": sighting.age_s,
        "frame": sighting.frame,
    }
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(datagram: bytes) -> list[Sighting]:
    """The sightings in a datagram; NaN and infinity, which some senders write, are numbers here.

    Raises:
        ConfigError: for anything that is not such lines, naming the field.
    """
    found = []
    for line in datagram.splitlines():
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"a datagram is not JSON: {line[:80]!r}", "see drivers/object_tracker/README.md"
            ) from error
        found.append(config.parse(data, Sighting, "a datagram"))
    return found
