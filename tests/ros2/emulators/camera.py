"""An RGB-D camera behind image_transport: color as JPEG, depth as PNG in ``compressed`` or ``compressedDepth``.

It shows one pattern, :func:`color` and :func:`depth_m`. It ends with its standard input.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import threading
import time
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from tests.ros2.emulators import dds

WIDTH, HEIGHT = 64, 48
PERIOD_S = 1 / 30
ROOT = "/camera"
NEAREST_M, FARTHEST_M = 1.0, 4.0
QUANTIZATION = 100.0, 10.0
"""``depth_quantization`` and ``depth_max`` of compressed_depth_image_transport."""


def color() -> NDArray[np.uint8]:
    """Red on the left, blue on the right."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[:, : WIDTH // 2, 0] = image[:, WIDTH // 2 :, 2] = 200
    return image


def depth_m() -> NDArray[np.float32]:
    """Farther from row to row; the first row is a hole."""
    rows = np.linspace(NEAREST_M, FARTHEST_M, HEIGHT, dtype=np.float32).round(3)
    rows[0] = 0
    return np.repeat(rows[:, None], WIDTH, axis=1)


def packed_depth(kind: str) -> tuple[str, bytes]:
    """Format and data: ``png``, ``compressedDepth``, ``quantized`` (of meters) or ``jpeg``, which loses depth."""
    millimeters = (depth_m() * 1000).round().astype(np.uint16)
    if kind == "jpeg":
        return "16UC1; jpeg compressed ", cv2.imencode(".jpg", (millimeters // 16).astype(np.uint8))[1].tobytes()
    if kind == "quantized":
        finest, most_m = QUANTIZATION
        a = finest * (finest + 1)
        b, inverse, seen = 1 - a / most_m, np.zeros_like(millimeters), millimeters > 0
        inverse[seen] = (a / depth_m()[seen] + b).round()
        return "32FC1; compressedDepth png", struct.pack("<iff", 0, a, b) + cv2.imencode(".png", inverse)[1].tobytes()
    png = cv2.imencode(".png", millimeters)[1].tobytes()
    return ("16UC1; png compressed ", png) if kind == "png" else ("16UC1; compressedDepth png", bytes(12) + png)


def main() -> None:
    """Publish until standard input ends."""
    parser = argparse.ArgumentParser(description="an emulated RGB-D camera")
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--depth", choices=("png", "compressedDepth", "quantized", "jpeg"), required=True)
    args = parser.parse_args()
    network = dds.Network(args.domain)
    in_depth = "Depth" if args.depth in ("compressedDepth", "quantized") else ""
    jpeg = cv2.imencode(".jpg", cv2.cvtColor(color(), cv2.COLOR_RGB2BGR))[1].tobytes()
    k = [60.0, 0.0, WIDTH / 2, 0.0, 60.0, HEIGHT / 2, 0.0, 0.0, 1.0]
    info = {"width": WIDTH, "height": HEIGHT, "distortion_model": "plumb_bob", "d": [0.0] * 5, "k": k}
    images = {
        "color/image_raw/compressed": ("rgb8; jpeg compressed bgr8", jpeg),
        f"aligned_depth_to_color/image_raw/compressed{in_depth}": packed_depth(args.depth),
    }
    writers = {name: network.writer(f"{ROOT}/{name}", "sensor_msgs/msg/CompressedImage") for name in images}
    described = network.writer(f"{ROOT}/color/camera_info", "sensor_msgs/msg/CameraInfo")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    while not ended.is_set():
        header: Any = dds.Header(dds.stamp(), "camera_color_optical_frame")
        described.write(dds.CameraInfo(header=header, **info))
        for name, (form, data) in images.items():
            writers[name].write(dds.CompressedImage(header, form, list(data)))
        time.sleep(PERIOD_S)
    network.close()


if __name__ == "__main__":
    main()
