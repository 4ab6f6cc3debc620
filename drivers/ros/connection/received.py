"""A received message. For Python >= 3.8, as all that the guard uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNKNOWN = "?"
"""Node of a message that does not name it."""


@dataclass(frozen=True)
class Received:
    """A received message.

    Attributes:
        message: fields as in the definition, whatever library has made it.
        stamp_ns: stamp of its header; None without one.
        sender: name of the node that has sent it, ``UNKNOWN`` where the network does not tell.
    """

    message: Any
    stamp_ns: int | None = None
    sender: str = UNKNOWN
