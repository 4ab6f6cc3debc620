"""Picture of each run's start, and the same over the live image while a person places the robot for the next run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from typing_extensions import override

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Robot
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset
from robot_runtime.records import StepRecord, Subscriber

START, OVERLAY = "start.png", "overlay.png"
_EVERY_NS = NS_PER_S // 2
_CAPTURE_S = 1.0


def blend(first: NDArray[np.uint8], live: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Both pictures, half each; the first is scaled to the size of the second.

    Args:
        first: uint8 (H, W, 3).
        live: uint8 image of any size.
    """
    size = (live.shape[1], live.shape[0])
    fitted = np.asarray(Image.fromarray(first).resize(size)) if first.shape != live.shape else first
    return ((fitted.astype(np.uint16) + live) // 2).astype(np.uint8)


class StartPicture(Guide, Subscriber):
    """Writer of ``start.png`` at each run's first observation, and of ``overlay.png`` while a robot is placed.

    Args:
        robot: connected when pictures are taken.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__()
        self._robot = robot
        self._folder = Path()
        self._first: NDArray[np.uint8] | None = None
        self._due_ns = 0

    def write_to(self, folder: Path, reference: Path | None) -> None:
        """Write the next pictures to this folder, over the picture of the run before, if there is one."""
        self._folder, self._first = folder, None
        if reference is not None and reference.is_file():
            with Image.open(reference) as image:
                self._first = np.asarray(image.convert("RGB"))

    @override
    def show(self, now_ns: int, offset: Offset | None, note: str) -> None:
        super().show(now_ns, offset, note)
        if self._first is None or now_ns < self._due_ns:
            return
        self._due_ns = now_ns + _EVERY_NS
        try:
            live = self._robot.camera.capture(now_ns, _CAPTURE_S).rgb
        except DeviceFault:  # the placement goes on without a picture; the episode will say what is wrong
            return
        part = self._folder / f"{OVERLAY}.part"
        Image.fromarray(blend(self._first, live)).save(part, format="PNG")
        part.replace(self._folder / OVERLAY)

    @override
    def on_step(self, record: StepRecord) -> None:
        if record.index == 0:
            Image.fromarray(record.frame.rgb).save(self._folder / START, format="PNG", compress_level=1)
