"""Checks of a log's steps, in order: their numbers, their chain, and the poses that a log states twice.

Older logs have no chain; all other checks apply to them, too.
"""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from foxglove_schemas_protobuf.PoseInFrame_pb2 import PoseInFrame
from google.protobuf.message import DecodeError

from robot_runtime.errors import RecordingError
from robot_runtime.hal import PoseEstimate
from robot_runtime.hal.streams import STREAMS
from robot_runtime.records import EpisodeEnd, StepRecord

_FIELD = re.compile(rb',"chain":"([0-9a-f]{64})"\}')
_FIELD_BYTES = len(',"chain":""}') + 64


class Chain:
    """The chain up to one record of a log, by which a score notices one that was altered, left out, repeated or moved.

    Header, steps and end have the field ``chain``, the last of their JSON: SHA-256 over the chain of the record before,
    the record without that field, and what belongs to it in other messages (the header's attachments, a step's
    ``/objects``). Nothing of it is secret: it finds accidents and edits, not a forger who computes it again.

    Attributes:
        digest: digest of the record, as a hexadecimal number; empty before the header.
    """

    def __init__(self) -> None:
        self.digest = ""

    def append(self, record: bytes, others: Sequence[bytes] = ()) -> bytes:
        """Return the next record, a JSON object that is not empty, with its field ``chain``."""
        self.digest = self._next(record, others)
        return record[:-1] + f',"chain":"{self.digest}"}}'.encode()

    def follows(self, record: bytes, others: Sequence[bytes] = ()) -> bool:
        """Whether a record with its field ``chain`` is the next one; if so, the chain is now up to it."""
        stated = stated_digest(record)
        if not stated or stated != self._next(record[:-_FIELD_BYTES] + b"}", others):
            return False
        self.digest = stated
        return True

    def _next(self, record: bytes, others: Sequence[bytes]) -> str:
        parts = [self.digest.encode()]
        for part in (record, *others):
            parts += (len(part).to_bytes(8, "little"), part)
        return hashlib.sha256(b"".join(parts)).hexdigest()


def stated_digest(record: bytes) -> str:
    """The field ``chain`` of a record; empty in older logs."""
    found = _FIELD.fullmatch(record[-_FIELD_BYTES:])
    return found[1].decode() if found else ""


POSE_TOLERANCE = 1e-6
"""Meters, or parts of a quaternion: what a pose may lose on its way through another format."""

POSE_STREAMS = ("pose", "referee")
"""Streams whose messages state a pose that is in the step, too."""


class Integrity:
    """Check of a log, message by message.

    Attributes:
        chained: whether the records are chained.

    Raises:
        RecordingError: from every method; the log contradicts itself or was altered.
    """

    def __init__(self, path: Path, header: bytes, attachments: Mapping[str, bytes]) -> None:
        self.chained = bool(stated_digest(header))
        self._path = path
        self._chain = Chain()
        self._index = -1
        self._ended = False
        self._others: list[bytes] = []
        self._poses: dict[str, bytes] = {}
        if self.chained and not self._chain.follows(header, attachment_parts(attachments)):
            raise self._altered("its header, or its attached scene, is not as it was written")

    def on_objects(self, data: bytes) -> None:
        """Add the ``/objects`` of the next step."""
        self._others.append(data)

    def on_pose(self, stream: str, data: bytes) -> None:
        """Add a pose of the next step, of one of :data:`POSE_STREAMS`."""
        self._poses[stream] = data

    def on_step(self, data: bytes, record: StepRecord) -> None:
        """Check the next step."""
        if record.index != self._index + 1 or self._ended:
            before = "the end" if self._ended else "the header" if self._index < 0 else f"step {self._index}"
            raise self._altered(f"step {record.index} follows {before}: steps are missing, repeated or moved")
        self._index += 1
        self._check_chain(record.index, data, self._others)
        self._others = []
        for stream, estimate in (("pose", record.pose), ("referee", record.referee)):
            if (stated := self._poses.pop(stream, None)) is not None:
                self._check_pose(record.index, stream, estimate, stated)

    def on_end(self, data: bytes, end: EpisodeEnd) -> None:
        """Check the last record; arguments as for :meth:`on_step`."""
        if self._ended:
            raise self._altered("it has two ends")
        self._ended = True
        if self._index >= 0 and end.steps != self._index:
            raise self._altered(f"its end names step {end.steps} as the last, but it holds step {self._index}")
        self._check_chain(None, data, ())

    def _check_chain(self, step: int | None, data: bytes, others: Sequence[bytes]) -> None:
        """Check a step, or the end."""
        intact = self._chain.follows(data, others) if self.chained else not stated_digest(data)
        if not intact:
            what = "its end" if step is None else f"step {step}"
            raise self._altered(f"{what} does not continue the chain: it, or what is before it, was altered")

    def _check_pose(self, step: int, stream: str, estimate: PoseEstimate, data: bytes) -> None:
        try:
            other = PoseInFrame.FromString(data)
        except DecodeError as error:
            raise self._altered(f"step {step}: its message on {STREAMS[stream].topic} is damaged: {error}") from error
        pose, posture = estimate.pose, other.pose
        position, rotation = posture.position, posture.orientation
        half_rad = pose.yaw_rad / 2 if math.isfinite(pose.yaw_rad) else math.nan
        stated = (pose.x_m, pose.y_m, math.sin(half_rad), math.cos(half_rad))
        there = (position.x, position.y, rotation.z, rotation.w)
        same = stated == there or all(map(_equal, stated, there))  # NaN does not equal itself
        if estimate.frame != other.frame_id or not same:
            apart_m = math.hypot(pose.x_m - position.x, pose.y_m - position.y)
            name = {"pose": "policy", "referee": "referee"}[stream]
            raise self._altered(
                f"step {step}: its pose of the {name} is {apart_m:.2f} m from the one on {STREAMS[stream].topic}"
            )

    def _altered(self, what: str) -> RecordingError:
        return RecordingError(f"{self._path}: {what}", "use the log as it was written, or record the episode again")


def attachment_parts(attachments: Mapping[str, bytes]) -> list[bytes]:
    """Names and data of attachments in one order, for the chain."""
    return [part for name in sorted(attachments) for part in (name.encode(), attachments[name])]


def _equal(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= POSE_TOLERANCE or (math.isnan(a) and math.isnan(b))
