"""Image transport over a network of either generation: lost pairs of color and depth, and time of receiving them."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable

from drivers.ros.camera.driver import RosCamera
from robot_runtime.common.clock import NS_PER_S, Clock, Stopwatch
from robot_runtime.errors import StaleData
from tests.benchmarks.report import Row, cpu_s

RATE_HZ = 30.0
SIZE = (640, 480)
HFOV_DEG = 56.1
TIMEOUT_S = 0.5


def received_rows(camera: RosCamera, clock: Clock, trials: int, advance: Callable[[], None]) -> list[Row]:
    """Return both figures over ``trials`` pairs; ``advance`` is called after each of them."""
    stamps_ns: list[int] = []
    with camera:
        newest_ns = camera.capture(clock.now_ns(), TIMEOUT_S).stamp_ns
        timer, began_s = Stopwatch(), cpu_s(resource.RUSAGE_SELF)
        for _ in range(trials):
            try:
                newest_ns = camera.capture(newest_ns + 1, TIMEOUT_S).stamp_ns
            except StaleData:
                break  # the missing pairs are lost
            stamps_ns.append(newest_ns)
            advance()
        busy = (cpu_s(resource.RUSAGE_SELF) - began_s) / timer.elapsed_s()
    lost = _lost(stamps_ns, trials)
    what = f"{SIZE[0]}x{SIZE[1]} color and depth at {RATE_HZ:g} Hz"
    note = f"{trials} pairs, each converted to arrays"
    return [
        Row("rgbd_loss_pct", f"{what}: lost pairs", 100 * lost, "%", 1, "<=", note=note),
        Row("rgbd_cpu_pct", f"{what}: of one core, in the receiving process", 100 * busy, "%", 60, "<=", note=note),
    ]


def _lost(stamps_ns: list[int], trials: int) -> float:
    """Return the share of ``trials`` that is missing between stamps or at the end."""
    gaps = (after - before for before, after in itertools.pairwise(stamps_ns))
    missing = sum(max(0, round(gap / NS_PER_S * RATE_HZ) - 1) for gap in gaps) + trials - len(stamps_ns)
    return missing / max(1, trials)
