"""Pairs out of the SDK's sets, which may hold images of different instants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.realsense.capture import Capture
from drivers.realsense.sdk import rs

PERIOD_MS = 33.3


@dataclass
class Frame:
    """An image of the n-th capture; depth is exposed a little after colour."""

    number: int
    late_ms: float = 0.0

    def get_timestamp(self) -> float:
        return 1000.0 + PERIOD_MS * self.number + self.late_ms

    def get_frame_timestamp_domain(self) -> Any:
        return rs.timestamp_domain.hardware_clock

    def supports_frame_metadata(self, _: Any) -> bool:
        return False

    def get_data(self) -> Any:
        return np.full((2, 3, 3), self.number, np.uint8)


class Sets:
    """What a pipeline hands out: ``(colour, depth)`` by number, None for an image that is not there."""

    def __init__(self, *numbers: tuple[int | None, int | None]) -> None:
        self._numbers = list(numbers)

    def poll_for_frames(self) -> Sets:
        return self

    def size(self) -> int:
        return len(self._numbers)

    def get_color_frame(self) -> Frame | None:
        number = self._numbers[0][0]
        return None if number is None else Frame(number)

    def get_depth_frame(self) -> Frame | None:
        number = self._numbers.pop(0)[1]
        return None if number is None else Frame(number, late_ms=4.0)


def taken(*numbers: tuple[int | None, int | None]) -> tuple[list[int], Capture]:
    """Numbers of the captures that were delivered as pairs."""
    sets = Sets(*numbers)
    capture, found = Capture(sets, "test", PERIOD_MS), []
    while sets.size():
        if (pair := capture.take()) is not None:
            assert pair.color[0, 0, 0] == pair.depth.number
            found.append(pair.depth.number)
    return found, capture


@pytest.mark.parametrize(
    ("sets", "delivered"),
    [
        ([(1, 1), (2, 2), (3, 3)], [1, 2, 3]),
        ([(1, 1), (2, 1), (3, 2), (3, 3)], [1, 2, 3]),
        ([(1, 1), (1, 2), (2, 3), (3, 3)], [1, 2, 3]),
        ([(1, 1), (2, 1), (2, 2), (3, 3)], [1, 2, 3]),
        ([(1, 1), (2, None), (None, 2), (3, 3)], [1, 2, 3]),
        ([(1, 1), (1, 2), (1, 3), (4, 4)], [1, 4]),
        ([(1, None), (2, None)], []),
        ([(None, 1), (None, 2)], []),
        ([(1, 1), (1, 1)], [1, 1]),
    ],
    ids=[
        "whole",
        "late depth",
        "late colour",
        "standing in",
        "alone",
        "lost colour",
        "no depth",
        "no colour",
        "repeated",
    ],
)
def test_images_of_one_capture_are_a_pair_in_whatever_sets_they_come(
    sets: list[tuple[int | None, int | None]], delivered: list[int]
) -> None:
    found, capture = taken(*sets)
    assert found == delivered
    assert (capture.sets, capture.unpaired) == (len(sets), len(sets) - len(delivered))


@given(st.lists(st.sampled_from(["color", "depth", "both"]), max_size=40))
def test_every_capture_is_delivered_once_and_in_order(arrivals: list[str]) -> None:
    color = depth = 0
    sets: list[tuple[int | None, int | None]] = [(color, depth)]
    for what in arrivals:
        if (what, color - depth) in (("color", 1), ("depth", -1)):
            continue  # neither stream gets more than one image ahead of the other
        color += what != "depth"
        depth += what != "color"
        sets.append((color, depth))
    found, _ = taken(*sets)
    assert found == list(range(min(color, depth) + 1))
