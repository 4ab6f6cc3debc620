"""Rows of ``bench sim --throughput``: frames per second by sensors, image size and processes (Savva et al. 2019).

Color and depth come from one pass of the renderer, so that either alone costs as much as both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from robot_runtime.common.clock import Stopwatch
from tests.benchmarks.report import Row

SENSORS = ("rgb_depth", "object_ids")
SIZES = (128, 256, 512)
PROCESSES = (1, 3, 5)


def frames_per_s(sensors: str, size: int, seed: int, seconds: float) -> float:
    """Frames per second of one renderer in the bundled apartment, at random poses."""
    from sim_bridge.rendering import gl_context

    gl_context.choose_backend()  # before the first import of mujoco, which chooses a backend then
    from robot_runtime.hal import Intrinsics
    from robot_runtime.scenes.scene import find_scene, load_scene
    from sim_bridge.physics.scene_model import build_model
    from sim_bridge.rendering.renderer import SceneRenderer, camera_rotation

    scene, random = load_scene(find_scene("apartment")), np.random.default_rng(seed)
    cells = np.argwhere(scene.map.navigable(0.18))
    renderer = SceneRenderer(build_model(scene), Intrinsics.from_hfov(size, size, 90.0))
    count, watch = -1, Stopwatch()
    while count < 1 or watch.elapsed_s() < seconds:
        x_m, y_m = scene.map.to_point(*cells[random.integers(len(cells))])
        position = np.array([x_m, y_m, 1.5])
        rotation = camera_rotation(float(random.uniform(-math.pi, math.pi)), 0.0)
        if sensors == "rgb_depth":
            renderer.render(position, rotation)
        else:
            renderer.segment(position, rotation)
        count += 1
        if count == 0:  # the first frame compiles shaders
            watch.restart()
    elapsed_s = watch.elapsed_s()
    renderer.close()
    return count / elapsed_s


def throughput_rows(seed: int, seconds: float) -> Iterator[Row]:
    """A row per combination; processes run at once, each with its own renderer."""
    for processes, sensors, size in itertools.product(PROCESSES, SENSORS, SIZES):
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            speeds = [pool.submit(frames_per_s, sensors, size, seed + n, seconds) for n in range(processes)]
            total = sum(speed.result() for speed in speeds)
        label = f"frames of {size}x{size}, {sensors.replace('_', ' and ' if 'rgb' in sensors else ' ')}"
        yield Row(f"frames_{sensors}_{size}_x{processes}", f"{label}, {processes} processes", total, "/s")
