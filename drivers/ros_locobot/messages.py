"""Messages built by rospy's generated classes."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import genpy
import numpy as np
from numpy.typing import NDArray

from drivers.ros.protocol import MessageFactory
from drivers.ros_locobot.reading import message_class
from robot_runtime.common.clock import NS_PER_S

_class_of = cache(lambda kind: message_class((kind,)))


class RospyMessages(MessageFactory):
    """Messages of rospy."""

    def make(self, kind: str, **fields: Any) -> Any:
        return _class_of(kind)(**fields)

    def time(self, stamp_ns: int) -> Any:
        return genpy.Time(*divmod(stamp_ns, NS_PER_S))

    def numbers(self, values: Sequence[float] | NDArray[np.float64]) -> list[float]:
        return list(values)

    def buffer(self, data: bytes) -> bytes:
        return data
