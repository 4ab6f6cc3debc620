"""Row ``log_vs_rosbag`` of ``bench console``: ``rosbag record`` beside the recorder, for the same streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from robot_runtime.common.clock import SystemClock, seconds_to_ns, wait_for
from robot_runtime.errors import DeviceFault, DriverMissing
from robot_runtime.hal import RgbdFrame
from tests.benchmarks.report import Row, process_s
from tests.benchmarks.ros_locobot.network import local_network
from tests.benchmarks.runtime.console_logs import HEIGHT, HZ, WIDTH, camera_frames

PROGRAM = Path("/usr/lib/rosbag/record")
"""Debian's; elsewhere it is found by ``rosrun rosbag record``."""

START_S = 30.0
ROUNDS = 5
"""Recordings with each, in turns: one of them varies by a third with what else the computer does."""

LABEL = "CPU time of `rosbag record` for the same frames, divided by the recorder's, both without their start"


def rows(seconds: float) -> list[Row]:
    """The row, measured for so long with each."""
    if not PROGRAM.is_file():
        return [Row("log_vs_rosbag", LABEL, None, "", 1, note=f"{PROGRAM} is not installed")]
    count = max(1, round(HZ * seconds / ROUNDS))
    plain, ours = list[Used](), list[Used]()
    try:
        with tempfile.TemporaryDirectory() as home, local_network("bench_rosbag"):
            packed = _rosbag(Path(home) / "lz4.bag", count, "--lz4")
            for number in range(ROUNDS):
                plain.append(_rosbag(Path(home) / f"{number}.bag", count))
                ours.append(_recorder(Path(home) / f"log {number}", count))
    except DriverMissing as error:
        return [Row("log_vs_rosbag", LABEL, None, "", 1, note=error.message)]
    return [
        Row(
            "log_vs_rosbag",
            LABEL,
            median(one.cpu_s for one in plain) / median(one.cpu_s for one in ours),
            "",
            1,
            low=min(rival.cpu_s / one.cpu_s for rival, one in zip(plain, ours, strict=True)),
            high=max(rival.cpu_s / one.cpu_s for rival, one in zip(plain, ours, strict=True)),
            note=f"{count} RGB-D frames of {WIDTH}x{HEIGHT} at {HZ} Hz each, in {ROUNDS} turns; medians; the last: "
            f"recorder {ours[-1]}; `rosbag record`, raw {plain[-1]}; `rosbag record --lz4` {packed}",
        )
    ]


class Used:
    """CPU seconds, frames in the file, and its size."""

    def __init__(self, cpu_s: float, file: Path, frames: int) -> None:
        self.cpu_s, self.frames, self.size_mb = cpu_s, frames, file.stat().st_size / 1e6

    def __str__(self) -> str:
        return f"{self.cpu_s:.2f} s CPU, {self.frames} frames in {self.size_mb:.0f} MB"


def _recorder(folder: Path, count: int) -> Used:
    command = [sys.executable, "-m", "tests.benchmarks.runtime.console_logs", str(folder), str(count)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60 + count).stdout
    (path,) = folder.glob("*.mcap")
    return Used(float(said), path, count)


def _rosbag(bag: Path, count: int, *options: str) -> Used:
    """Record ``count`` pairs of images that this process publishes."""
    import rosbag
    import rospy
    from sensor_msgs.msg import Image

    topics = {"rgb": "/camera/color/image_raw", "depth": "/camera/depth/image_raw"}
    publishers = {name: rospy.Publisher(topic, Image, queue_size=10) for name, topic in topics.items()}
    pairs = [
        {"rgb": _image(frame.rgb, "rgb8"), "depth": _image(_millimeters(frame), "16UC1")} for frame in camera_frames()
    ]
    clock = SystemClock()
    process = subprocess.Popen([PROGRAM, "-O", bag, *options, *topics.values()], stdout=subprocess.DEVNULL)
    try:

        def connected() -> bool | None:
            return all(publisher.get_num_connections() for publisher in publishers.values()) or None

        if wait_for(clock, connected, START_S, 0.05) is None:
            raise DeviceFault("`rosbag record` did not subscribe", "look at its output")
        before_s = process_s(process.pid)
        start_ns = clock.now_ns()
        for number in range(count):
            clock.sleep_until(start_ns + seconds_to_ns(number / HZ))
            for name, message in pairs[number % len(pairs)].items():
                message.header.stamp = rospy.Time.now()
                publishers[name].publish(message)
        clock.sleep(1.0)  # until the last ones have arrived
    finally:
        process.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        for publisher in publishers.values():
            publisher.unregister()
    with rosbag.Bag(str(bag)) as written:
        frames = min(written.get_message_count(topic) for topic in topics.values())
    return Used(usage.ru_utime + usage.ru_stime - before_s, bag, frames)


def _millimeters(frame: RgbdFrame) -> Any:
    return np.rint(1000 * frame.depth_m).astype(np.uint16)


def _image(pixels: Any, encoding: str) -> Any:
    from sensor_msgs.msg import Image

    height, width = pixels.shape[:2]
    step = pixels.nbytes // height
    return Image(height=height, width=width, encoding=encoding, step=step, data=pixels.tobytes())
