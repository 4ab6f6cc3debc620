"""Faults that every emulated serial line has, each during a window of the robot's clock, and what they do to bytes."""

from typing import Annotated

import numpy as np
from pydantic import Field

from robot_runtime.hal.fault_schedule import Window


class Silent(Window):
    """No bytes: the device is switched off, or its data line is broken."""


class Noisy(Window):
    """Each message is preceded by noise, and one in four is damaged."""


class DroppedBytes(Window):
    """Each message loses one byte with this probability, in both directions."""

    probability: Annotated[float, Field(ge=0, le=1)] = 0.1


class Unplugged(Window):
    """The cable is disconnected; afterwards it is plugged in again."""


def noisy(message: bytes, random: np.random.Generator) -> bytes:
    """Return a message with noise before it; one in four has a wrong bit."""
    if random.random() < 0.25:
        at = int(random.integers(len(message)))
        message = message[:at] + bytes([message[at] ^ 0x10]) + message[at + 1 :]
    return random.bytes(int(random.integers(0, 40))) + message


def thinned(message: bytes, probability: float, random: np.random.Generator) -> bytes:
    """Return a message, with this probability less one of its bytes."""
    if random.random() >= probability:
        return message
    at = int(random.integers(len(message)))
    return message[:at] + message[at + 1 :]
