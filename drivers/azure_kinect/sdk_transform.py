"""The SDK's transform of depth to the color camera in a subprocess, for the doctor and the benchmark.

It needs an X screen with OpenGL 4.4, as live depth does.

``python -m drivers.azure_kinect.sdk_transform N`` prints a JSON object with ``milliseconds``, the median of N, or
``reason``.
"""

import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from drivers.azure_kinect.calibration import FactoryCalibration
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import load_sdk
from drivers.azure_kinect.sdk_types import SUCCEEDED, ColorResolution, DepthMode, Handle, ImageFormat
from robot_runtime.common.clock import Stopwatch

LIMIT_S = 60.0
"""Time limit of the subprocess; a software renderer takes seconds per image."""


def measure(times: int) -> dict[str, Any]:
    """Return the ``milliseconds`` of a transform of a flat image in 720p, or the ``reason`` of the failure."""
    sdk = load_sdk()
    FactoryCalibration(sdk, factory_document(), "nominal calibration")
    calibration = sdk.calibration(factory_document(), DepthMode.NFOV_UNBINNED, ColorResolution.P720, "nominal")
    sdk.last_error()
    transformation = sdk.k4a.k4a_transformation_create(ctypes.byref(calibration))
    if not transformation:
        return {"reason": sdk.last_error() or "the SDK says nothing"}
    depth, out = Handle(), Handle()
    sdk.k4a.k4a_image_create(ImageFormat.DEPTH16, 640, 576, 640 * 2, ctypes.byref(depth))
    sdk.k4a.k4a_image_create(ImageFormat.DEPTH16, 1280, 720, 1280 * 2, ctypes.byref(out))
    plane = np.full((576, 640), 2000, np.uint16)
    ctypes.memmove(sdk.k4a.k4a_image_get_buffer(depth), plane.ctypes.data, plane.nbytes)
    taken_s = []
    for _ in range(times):
        timer = Stopwatch()
        if sdk.k4a.k4a_transformation_depth_image_to_color_camera(transformation, depth, out) != SUCCEEDED:
            return {"reason": sdk.last_error() or "the transform failed"}
        taken_s.append(timer.elapsed_s())
    sdk.k4a.k4a_transformation_destroy(transformation)
    return {"milliseconds": 1000 * statistics.median(taken_s)}


def measure_in_subprocess(times: int) -> dict[str, Any]:
    """Run :func:`measure` in a subprocess, on this computer's screen or one of Xvfb."""
    with _screen() as environment:
        command = [sys.executable, "-m", "drivers.azure_kinect.sdk_transform", str(times)]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return {"reason": f"no answer within {LIMIT_S:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"reason": f"the SDK ended the process ({done.returncode}): {done.stderr.strip()[-200:]}"}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


@contextmanager
def _screen() -> Iterator[dict[str, str]]:
    """Yield the environment of a process with a screen."""
    environment = dict(os.environ)
    server = None if environment.get("DISPLAY") else shutil.which("Xvfb")
    if server is None:
        yield environment
        return
    reads, writes = os.pipe()
    command = [server, "-displayfd", str(writes), "-screen", "0", "640x480x24", "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=(writes,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writes)
    try:
        with os.fdopen(reads) as number:
            # Xvfb writes its number when ready, and closes the pipe if it fails.
            display = number.readline().strip()
        yield environment | ({"DISPLAY": f":{display}"} if display else {})
    finally:
        process.terminate()
        process.wait(10)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
