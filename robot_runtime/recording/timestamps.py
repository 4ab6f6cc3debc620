"""Timestamps of Foxglove messages: seconds and nanoseconds since the epoch of the robot's clock."""

from google.protobuf.timestamp_pb2 import Timestamp

from robot_runtime.common.clock import NS_PER_S


def timestamp(stamp_ns: int) -> Timestamp:
    """A stamp of the robot's clock as a protobuf timestamp (not a time of day)."""
    return Timestamp(seconds=stamp_ns // NS_PER_S, nanos=stamp_ns % NS_PER_S)
