"""A folder in which commands run as a reader types them, a browser for the pages that they write, and frames."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from tests.support.chromium import Tab, browser

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
LIMIT_S = 3600.0

Image = NDArray[np.uint8]
"""RGB, uint8 (H, W, 3)."""


@dataclass
class Studio:
    """A place where pictures are made.

    Attributes:
        folder: working folder of the commands.
        out: folder of the pictures.
        short: whether fewer episodes do, where a picture is of many.
    """

    folder: Path
    out: Path
    short: bool
    _closing: ExitStack = field(default_factory=ExitStack)

    def close(self) -> None:
        """End the browser."""
        self._closing.close()

    @cached_property
    def tab(self) -> Tab:
        """A page of the browser."""
        return self._closing.enter_context(browser(self.folder / "profile"))

    def command(self, *arguments: object, codes: Sequence[int] = (0,), program: str = "robot_runtime") -> str:
        """Run ``robot-runtime`` with these arguments, and return what it prints; another exit code is an error."""
        done = subprocess.run(
            [sys.executable, "-m", program, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode not in codes:
            raise RuntimeError(f"{' '.join(map(str, arguments))} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def keep(self, made: Path, name: str) -> None:
        """Take a picture that a command wrote."""
        shutil.copyfile(self.folder / made, self.out / name)

    def shown(self, page: str | Path, width: int, height: int, prepare: str = "", scheme: str = "light") -> Image:
        """What a browser of this size shows of a page, after a script has run there."""
        url = page if isinstance(page, str) else (self.folder / page).resolve().as_uri()
        self.tab.visit(url, width, height, scheme)
        if prepare:
            self.tab.run(prepare)
        return self.look()

    def look(self) -> Image:
        """What the browser shows now."""
        path = self.folder / "shown.png"
        self.tab.picture(path)
        return read(path)

    def write(self, name: str, image: Image) -> None:
        """Write a picture, of 256 colors: the files of all pictures are in every clone."""
        Pillow.fromarray(image).quantize(256).save(self.out / name, optimize=True)


@dataclass(frozen=True)
class Recipe:
    """How pictures are made.

    Attributes:
        names: names of the files.
        make: function that writes them.
    """

    names: tuple[str, ...]
    make: Callable[[Studio], Any]


def read(path: Path) -> Image:
    """A picture of a file."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if image is None:
        raise RuntimeError(f"{path}: is no picture")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


def beside(images: Sequence[Image], gap: int = 8, shade: int = 255) -> Image:
    """Pictures in a row, the lower ones filled up below."""
    height = max(image.shape[0] for image in images)
    parts: list[Image] = []
    for image in images:
        part = np.full((height, image.shape[1] + gap, 3), shade, np.uint8)
        part[: image.shape[0], : image.shape[1]] = image
        parts.append(part)
    row = np.concatenate(parts, 1)
    return row[:, : row.shape[1] - gap]


def stacked(images: Sequence[Image], gap: int = 8) -> Image:
    """Pictures below each other."""
    turned = beside([image.swapaxes(0, 1) for image in images], gap)
    return np.ascontiguousarray(turned.swapaxes(0, 1))


def scaled(image: Image, width: int) -> Image:
    """The picture, this wide."""
    size = (width, round(image.shape[0] * width / image.shape[1]))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
