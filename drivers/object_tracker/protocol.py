"""Messages of an external object tracker: one or several JSON objects per UDP datagram, one per line.

::

    {"object": "mug_1", "position": [1.20, -0.35, 0.75], "quaternion": [1, 0, 0, 0], "age_s": 0.02, "frame": "map"}

``quaternion`` is w, x, y, z (default: identity). ``age_s`` is the time since the measurement (default: 0), so clocks
need not be synchronized. ``frame`` is ``map`` (default) or one of the scene's ``frames``.
"""

import json
import math
from dataclasses import asdict, dataclass

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.scenes.objects import ObjectPose, Point3, Quaternion

MAX_DATAGRAM = 65_507
"""Greatest size of a UDP datagram, bytes."""


@dataclass(frozen=True)
class Sighting(config.Strict):
    """One measured pose of an object.

    Attributes:
        object: id.
        position: x, y, z, m.
        quaternion: w, x, y, z.
        age_s: time from measurement to sending.
        frame: name of the pose's frame.
    """

    object: str
    position: Point3
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    age_s: float = 0.0
    frame: str = "map"

    @property
    def pose(self) -> ObjectPose:
        return ObjectPose(self.position, self.quaternion)

    @property
    def fault(self) -> str | None:
        """The reason why the message is invalid; None if it is valid."""
        if not (math.isfinite(self.age_s) and self.age_s >= 0):
            return f"age_s {self.age_s} is not a time"
        return self.pose.fault


def encode(sighting: Sighting) -> bytes:
    """Return a sighting as one line. Raises ``ValueError`` for NaN and infinity."""
    return json.dumps(asdict(sighting), allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(datagram: bytes) -> list[Sighting]:
    """Return the sightings in a datagram, with NaN and infinity as numbers, because some senders write them.

    Raises:
        ConfigError: a line is invalid; names the field.
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
