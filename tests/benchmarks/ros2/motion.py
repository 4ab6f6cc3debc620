"""Motion over ROS 2: the simulated robot with the motors and the rate of ``bench ros``, and as a Create 3.

Time is ``/clock``'s, as fast as real time. The Guard is the driver's; the one on the robot is measured by the stops.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import yaml

from drivers.ros.robot_variants import CREATE_3_MOTORS
from drivers.ros2.driver import make_robot
from robot_runtime.robots.loader import RobotContext, read_robot_file
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.actions import measured_rows
from tests.ros2 import ros2_guard, ros2_network

NOISY = "sim-noisy"
SIMULATED = ("-m", "sim_bridge.ros", "--family", "create3", "--camera", "64x48@79")
OPTIONS = {
    "family": "create3",
    "camera": {"mount": "habitat"},
    "referee": {"source": "pose", "topic": "/simulation/ground_truth"},
    "placer": {"by": "simulation"},
    "localizer": {"source": "odometry"},
}


def motion_rows(folder: Path, actions: int) -> Iterator[Row]:
    """The rows of measured actions: of a Kobuki's motors and odometry at 50 Hz, then of a Create 3's at 20 Hz."""
    yield from _rows(folder, actions, "odometry at 50 Hz, ", "--robot", NOISY, "--manner", "report_hz=50")
    _, file = read_robot_file(NOISY)
    motors = {"type": "ideal"} | {name: value for name, value in asdict(CREATE_3_MOTORS).items() if value}
    motors = {name: list(value) if isinstance(value, tuple) else value for name, value in motors.items()}
    create3 = folder / "create3.yaml"
    content = {"name": "sim-create3", "driver": file.driver, "options": {**file.options, "motors": motors}}
    create3.write_text(yaml.safe_dump(content), encoding="utf-8")
    for row in _rows(folder, actions, "nominal motors of a Create 3, odometry at 20 Hz, ", "--robot", str(create3)):
        yield replace(row, id=f"create3_{row.id}", target=row.target if "error" in row.id else None)


def _rows(folder: Path, actions: int, note: str, *arguments: str) -> list[Row]:
    with ros2_network.domain(os.getpid() * 5) as domain:
        network = {"domain_id": domain, "use_sim_time": True, "connect_timeout_s": 30.0}
        robot = make_robot(RobotContext(None, None, 0), "bench", OPTIONS | {"network": network}, "bench")
        with closing(ros2_guard.Program(domain, folder, *SIMULATED, *arguments)):
            return measured_rows(robot, actions, lambda: None, note)
