"""Guidance of an operator through a capture: requests, progress, and live images.

A simulated robot needs no operator: the calibration moves boards, tags and robot itself.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from robot_runtime.common.creating import creating
from robot_runtime.errors import CalibrationFailed

LIVE, COVERAGE = "live.png", "coverage.png"
"""Files of the live image and the coverage, for a viewer that reloads them."""


class Guide:
    """Messages, requests and images for the operator.

    Args:
        console: console that shows messages.
        view: folder for images; None for none.
        attended: whether there is an operator.
    """

    def __init__(self, console: Console, view: Path | None, attended: bool) -> None:
        self.attended = attended
        self._console = console
        self._view = view
        if view is not None:
            view.mkdir(parents=True, exist_ok=True)

    def tell(self, text: str) -> None:
        """Print one line."""
        self._console.print(text, soft_wrap=True, markup=False)

    def ask(self, request: str) -> None:
        """Request an action and wait for Enter; return at once without an operator.

        Raises:
            CalibrationFailed: standard input is not a terminal, or was closed.
        """
        if not self.attended:
            return
        self.tell(f"→ {request}, then press Enter (Ctrl-C ends)")
        if not sys.stdin.isatty() or not sys.stdin.readline():
            raise CalibrationFailed(
                "this calibration needs an operator at a terminal", "run it in a terminal next to the robot"
            )

    def progress(self, done: int, total: int, note: str = "") -> None:
        """Print the number of captures."""
        self.tell(f"{done:3} of {total}  {note}".rstrip())

    def picture(self, name: str, rgb: NDArray[np.uint8]) -> None:
        """Write an image, uint8 (H, W, 3) RGB or (H, W), replacing the file of that name atomically."""
        if self._view is None:
            return
        path = self._view / name
        shown = rgb if rgb.ndim == 2 else rgb[..., ::-1]
        # Fast rather than small, because it is written often.
        _, encoded = cv2.imencode(path.suffix, np.ascontiguousarray(shown), [cv2.IMWRITE_PNG_COMPRESSION, 1])
        with creating(path) as draft:
            draft.write_bytes(encoded.tobytes())
