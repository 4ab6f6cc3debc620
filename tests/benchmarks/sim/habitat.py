"""Overhead of habitat-lab per action: a row of ``bench policy``, where habitat-lab is installed."""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import tempfile
from pathlib import Path

from robot_runtime.common.clock import Stopwatch
from robot_runtime.datasets.files import save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task
from tests.benchmarks.report import Row, StepTimer, cpu_s

_ID = "habitat_step_overhead_ms"
_LABEL = "added by habitat-lab's Env to an action: its point goal sensor, distance, success, SPL, Soft SPL, collisions"
_CONFIG = """# @package _global_
defaults:
  - /habitat: habitat_config_base
  - /habitat/task: pointnav
  - /habitat/task/measurements: [soft_spl, collisions]
  - /habitat/simulator/sensor_setups@habitat.simulator.agents.main_agent: rgbd_agent
  - /habitat/simulator: robot_runtime
  - _self_
habitat:
  environment: {max_episode_steps: 100000}
  simulator:
    robot: fake
    turn_angle: 30
    agents:
      main_agent:
        sim_sensors:
          rgb_sensor: {width: 640, height: 480, hfov: 79, position: [0, 0.88, 0]}
          depth_sensor: {width: 640, height: 480, hfov: 79, position: [0, 0.88, 0]}
  dataset: {type: PointNav-v1, split: val, data_path: EPISODES, scenes_dir: scenes}
"""


def rows(steps: int, seed: int) -> list[Row]:
    """The row, measured in one episode on the robot without physics, with a camera of 640x480."""
    if importlib.util.find_spec("habitat") is None:
        how = ".venv-frameworks/bin/python -m tests.benchmarks policy"
        return [Row(_ID, _LABEL, None, "ms", 5, "<=", note=f"habitat-lab is not installed here; {how}")]
    import sim_bridge.habitat.simulator  # noqa: F401  # first: it makes habitat-lab importable

    # isort: split
    import habitat

    scene, task = load_scene(find_scene("apartment")), load_task("pointnav_gps_compass")
    with tempfile.TemporaryDirectory() as folder:
        episodes, config = Path(folder) / "val.json.gz", Path(folder) / "config.yaml"
        save_episodes(episodes, generate_episodes(scene, task, 1, seed), task)
        config.write_text(_CONFIG.replace("EPISODES", str(episodes)), encoding="utf-8")
        with habitat.Env(habitat.get_config(str(config))) as env:
            env.reset()
            timed = StepTimer(env.sim.env)
            asked, computed_s = [], []
            for _ in range(steps):
                timer, before_s = Stopwatch(), cpu_s(resource.RUSAGE_SELF)
                env.step("turn_left")
                asked.append(timer.elapsed_s())
                computed_s.append(cpu_s(resource.RUSAGE_SELF) - before_s)
    added = sorted(1000 * (whole - own) for whole, own in zip(asked, timed.wall_s, strict=True))
    computed = (sum(computed_s) - sum(timed.cpu_s)) / steps
    return [
        Row(
            _ID,
            _LABEL,
            statistics.median(added),
            "ms",
            5,
            "<=",
            low=added[0],
            high=added[int(0.95 * len(added))],
            note=f"median, least and 95th percentile of {steps} turns; 640x480, colour and depth. habitat-lab "
            f"{habitat.__version__} computes {1000 * computed:.2g} ms of it; load average {os.getloadavg()[0]:.1f}",
        )
    ]
