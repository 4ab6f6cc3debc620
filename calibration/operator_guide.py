"""Leads a person through a capture: what to do next, how far it is, and pictures of what the camera sees.

On a simulated robot nobody is asked: the calibration moves boards, tags and robot itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from robot_runtime.errors import CalibrationFailed

LIVE, COVERAGE = "live.png", "coverage.png"
"""What a viewer that reloads its file shows while capturing."""


class Guide:
    """Words, questions and pictures.

    Args:
        console: where words go.
        view: folder for pictures; None for none.
        attended: whether a person is there to be asked.
    """

    def __init__(self, console: Console, view: Path | None, attended: bool) -> None:
        self.attended = attended
        self._console = console
        self._view = view
        if view is not None:
            view.mkdir(parents=True, exist_ok=True)

    @property
    def has_view(self) -> bool:
        """Whether anybody sees pictures."""
        return self._view is not None

    def tell(self, text: str) -> None:
        """One line."""
        self._console.print(text, soft_wrap=True, markup=False)

    def ask(self, request: str) -> None:
        """Ask for something to be done, and wait until Enter says that it is; at once if nobody is there to do it.

        Raises:
            CalibrationFailed: somebody is needed and standard input is no terminal, or was closed.
        """
        if not self.attended:
            return
        self.tell(f"→ {request}, then press Enter (Ctrl-C ends)")
        if not sys.stdin.isatty() or not sys.stdin.readline():
            raise CalibrationFailed(
                "this calibration needs somebody at a terminal", "run it in a terminal, beside the robot"
            )

    def progress(self, done: int, total: int, note: str = "") -> None:
        """One capture more."""
        self.tell(f"{done:3} of {total}  {note}".rstrip())

    def picture(self, name: str, rgb: NDArray[np.uint8]) -> None:
        """Show a picture, uint8 (H, W, 3) RGB or (H, W): replaces the file of that name at once, never half of it."""
        if self._view is None:
            return
        path = self._view / name
        scratch = path.with_name(f".{name}")
        shown = rgb if rgb.ndim == 2 else rgb[..., ::-1]
        # Written often, looked at once: fast rather than small.
        _, encoded = cv2.imencode(path.suffix, np.ascontiguousarray(shown), [cv2.IMWRITE_PNG_COMPRESSION, 1])
        scratch.write_bytes(encoded.tobytes())
        scratch.replace(path)
