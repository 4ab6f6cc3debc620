"""The transform from a map to a base over the frames between them, from the messages of tf. Pure.

As tf2 does: rotations in three dimensions, interpolated between two transforms, never extrapolated.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from types import SimpleNamespace

from drivers.ros.connection.quantities import TfTree
from drivers.ros.connection.received import Received
from drivers.ros.localizer.messages import planar
from robot_runtime.common.clock import NS_PER_S, seconds_to_ns
from robot_runtime.common.geometry import SE2

SPAN_S = 10.0
"""Time for which transforms are kept."""

Quaternion = tuple[float, ...]  # x, y, z, w
Transform = tuple[tuple[float, ...], Quaternion]


def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the rotation ``b``, then ``a``."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def composed(parent: Transform, child: Transform) -> Transform:
    """Return ``child``, given in the frame of ``parent``, in the parent of that."""
    (at, turn), (offset, rotation) = parent, child
    inverse = (-turn[0], -turn[1], -turn[2], turn[3])
    turned = quaternion_product(quaternion_product(turn, (*offset, 0.0)), inverse)
    return tuple(a + b for a, b in zip(at, turned[:3], strict=True)), quaternion_product(turn, rotation)


def between(before: Transform, after: Transform, fraction: float) -> Transform:
    """Return the transform at a fraction of the time between two, rotated the shorter way."""
    (p, a), (q, b) = before, after
    cosine = sum(x * y for x, y in zip(a, b, strict=True))
    sign, angle_rad = math.copysign(1.0, cosine), math.acos(min(1.0, abs(cosine)))
    weights = (1 - fraction, fraction * sign)
    if (sine := math.sin(angle_rad)) > 1e-9:
        weights = math.sin((1 - fraction) * angle_rad) / sine, sign * math.sin(fraction * angle_rad) / sine
    rotation = tuple(weights[0] * x + weights[1] * y for x, y in zip(a, b, strict=True))
    return tuple(x + fraction * (y - x) for x, y in zip(p, q, strict=True)), rotation


class TransformChain:
    """The newest transform from ``top`` to ``base`` at an instant at which the complete chain is known.

    When a broadcaster dies, that instant stays. A broadcaster that dates its transforms forward (AMCL) changes nothing,
    because the rest of the chain is not known yet.

    Args:
        top: frame of the poses.
        base: frame of the robot.
    """

    def __init__(self, top: str, base: str) -> None:
        self._top, self._base = top, base
        self.clear()

    def clear(self) -> None:
        """Discard everything."""
        self._tree = TfTree()
        self._fixed: dict[str, Transform] = {}
        self._moving: dict[str, list[tuple[int, Transform]]] = {}

    def add(self, received: Received, is_static: bool = False) -> None:
        """Take a tf2_msgs/TFMessage, of ``/tf_static`` if ``is_static``."""
        for item in received.message.transforms:
            child, stamp = item.child_frame_id.lstrip("/"), item.header.stamp
            self._tree.add(child, item.header.frame_id.lstrip("/"), received.sender)
            at, q = item.transform.translation, item.transform.rotation
            transform = (at.x, at.y, at.z), (q.x, q.y, q.z, q.w)
            if is_static:
                self._fixed[child] = transform
                continue
            stamp_ns = _nanoseconds(stamp)
            samples = self._moving.setdefault(child, [])
            insort(samples, (stamp_ns, transform))
            del samples[: bisect_left(samples, (samples[-1][0] - seconds_to_ns(SPAN_S),))]

    def newest(self) -> tuple[int, SE2, str] | None:
        """Return stamp, pose, and why it is not that of a robot; None while the chain is incomplete.

        Raises:
            TwoSources: A frame of the chain has two parents, or its transform two sources.
        """
        chain = list(self._tree.chain(self._base, self._top))
        moving = [frame for frame in chain if frame not in self._fixed]
        if not moving or self._tree.parent(chain[-1]) != self._top:
            return None
        stamp_ns = min(self._moving[frame][-1][0] for frame in moving)
        total: Transform = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
        for frame in reversed(chain):
            link = self._fixed.get(frame) or _at(self._moving[frame], stamp_ns)
            if link is None:
                return None
            total = composed(total, link)
        (x, y, z), (qx, qy, qz, qw) = total
        return stamp_ns, *planar(SimpleNamespace(x=x, y=y, z=z), SimpleNamespace(x=qx, y=qy, z=qz, w=qw))


def _at(samples: Sequence[tuple[int, Transform]], stamp_ns: int) -> Transform | None:
    index = bisect_left(samples, (stamp_ns,))
    if index < len(samples) and samples[index][0] == stamp_ns:
        return samples[index][1]
    if not 0 < index < len(samples):
        return None
    (before_ns, before), (after_ns, after) = samples[index - 1 : index + 1]
    return between(before, after, (stamp_ns - before_ns) / (after_ns - before_ns))


def _nanoseconds(stamp: object) -> int:
    """Return a stamp of either generation of ROS in nanoseconds."""
    seconds = getattr(stamp, "sec", None)
    whole, fraction = ("secs", "nsecs") if seconds is None else ("sec", "nanosec")
    return int(getattr(stamp, whole)) * NS_PER_S + int(getattr(stamp, fraction))
