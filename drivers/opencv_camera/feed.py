"""Webcam by ``cv2.VideoCapture``, in the requested mode only, read by a thread.

A webcam's driver queues a few images, so occasional reads would get old ones. The thread takes every image off the
queue and decodes it only on request.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from drivers.opencv_camera.options import OpenCvOptions
from robot_runtime.common.clock import Clock, ns_to_seconds
from robot_runtime.errors import DeviceFault

PLAUSIBLE_AGE_S = 1.0
"""Greatest age of a kernel stamp; one that is older or in the future is of another clock and arrival is used."""

FAILURES = 10
"""Failed reads in a row after which the device counts as disconnected."""

JOIN_S = 2.0

log = logging.getLogger(__name__)

OnImage = Callable[[int, Callable[[], NDArray[np.uint8] | None]], None]
"""Function of an image's stamp and its decoder; this returns BGR uint8 (H, W, 3), or None for a damaged image."""


class Feed(Protocol):
    """Source of images."""

    def start(self, on_image: OnImage, on_disconnected: Callable[[], None]) -> None:
        """Start the images.

        Raises:
            DeviceFault: the device cannot be opened; names it.
        """

    def stop(self) -> None:
        """Stop the images; may be called twice."""


class WebcamFeed:
    """Images of a device of this computer."""

    def __init__(
        self, options: OpenCvOptions, clock: Clock, open_capture: Callable[..., Any] = cv2.VideoCapture
    ) -> None:
        self._options, self._clock, self._open_capture = options, clock, open_capture
        self._capture: Any = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self, on_image: OnImage, on_disconnected: Callable[[], None]) -> None:
        capture = self._open_capture(self._options.device, cv2.CAP_V4L2)
        try:
            if not capture.isOpened():
                raise _cannot_open(self._options.device)
            _configure(capture, self._options)
        except BaseException:
            capture.release()
            raise
        self._capture = capture
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(on_image, on_disconnected), name="webcam", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop.set()
        thread.join(JOIN_S)
        if thread.is_alive():
            log.warning("webcam %s: a read does not return; the device is released at exit", self._options.device)
        else:
            self._capture.release()

    def _run(self, on_image: OnImage, on_disconnected: Callable[[], None]) -> None:
        capture, failures = self._capture, 0
        while not self._stop.is_set():
            if capture.grab():
                failures = 0
                on_image(self._stamp_ns(capture), lambda: _decoded(capture))
                continue
            failures += 1
            if failures >= FAILURES:
                on_disconnected()
                return
            self._stop.wait(0.5 / self._options.rate_hz)

    def _stamp_ns(self, capture: Any) -> int:
        """Return when the kernel began to receive the image (V4L2's stamp, monotonic in Linux's UVC driver)."""
        now_ns, stamped_ns = self._clock.now_ns(), round(capture.get(cv2.CAP_PROP_POS_MSEC) * 1e6)
        return stamped_ns if 0 <= ns_to_seconds(now_ns - stamped_ns) <= PLAUSIBLE_AGE_S else now_ns


def _decoded(capture: Any) -> NDArray[np.uint8] | None:
    done, image = capture.retrieve()
    return image if done else None


def _configure(capture: Any, options: OpenCvOptions) -> None:
    """Set the mode and verify it. Raises ``DeviceFault``."""
    if options.format:
        capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*options.format))
    capture.set(cv2.CAP_PROP_FRAME_WIDTH, options.width)
    capture.set(cv2.CAP_PROP_FRAME_HEIGHT, options.height)
    capture.set(cv2.CAP_PROP_FPS, options.rate_hz)
    size = int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT))
    if size != (options.width, options.height):
        raise DeviceFault(
            f"webcam {options.device}: delivers {size[0]}x{size[1]} instead of {options.width}x{options.height} "
            f"{options.format}",
            "choose a size and format that `v4l2-ctl --list-formats-ext` lists for it",
        )
    for name, automatic, option, value in (
        # V4L2's automatic exposure: 1 is manual, 3 automatic.
        ("exposure", (cv2.CAP_PROP_AUTO_EXPOSURE, 1.0, 3.0), cv2.CAP_PROP_EXPOSURE, options.exposure),
        ("white_balance_k", (cv2.CAP_PROP_AUTO_WB, 0.0, 1.0), cv2.CAP_PROP_WB_TEMPERATURE, options.white_balance_k),
        ("gain", None, cv2.CAP_PROP_GAIN, options.gain),
    ):
        if automatic is not None:
            capture.set(automatic[0], automatic[1] if value is not None else automatic[2])
        if value is not None and not capture.set(option, value):
            raise DeviceFault(
                f"webcam {options.device}: refuses {name} {value:g}", f"leave {name!r} out, or see `v4l2-ctl -l`"
            )


def _cannot_open(device: int | str) -> DeviceFault:
    path = Path(f"/dev/video{device}" if isinstance(device, int) else device)
    found = sorted(f"{node} ({_device_name(node)})" for node in Path("/dev").glob("video*"))
    if path.exists():
        return DeviceFault(
            f"webcam {path}: cannot be opened: in use by another program, or no permission",
            f"end the other program (`fuser {path}` names it), or join the group: `sudo usermod -aG video $USER`",
        )
    return DeviceFault(
        f"webcam {path}: there is no such device; found {', '.join(found) or 'none'}",
        "plug it in, or set 'device' to one that was found",
    )


def _device_name(node: Path) -> str:
    name = Path("/sys/class/video4linux") / node.name / "name"
    return name.read_text(encoding="utf-8").strip() if name.is_file() else "?"
