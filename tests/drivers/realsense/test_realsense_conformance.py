"""A robot that sees through a RealSense keeps the contract."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clockwork_simulation import ClockworkSimulation
from raising import raises_naming

from drivers.fake.driver import make_robot
from drivers.realsense.driver import make_camera
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.conformance import CameraConformance, RobotConformance
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import TrainingCamera, load_task

OPTIONS = {"color": "640x360", "depth": "424x240", "latency_s": 0.03}


def robot_with(options: dict[str, object], training: TrainingCamera | None = None) -> Robot:
    """A robot without physics whose camera is an emulated RealSense."""
    context = RobotContext(None, training, seed=0)
    robot = make_robot(context, "fake", {"width": 64, "height": 36, "hfov_deg": 60.0}, "test")
    assert isinstance(robot.clock, SimulatedClock)
    robot = replace(robot, simulation=ClockworkSimulation(robot.clock))
    return replace(robot, camera=make_camera(robot, context, options, "camera.yaml: options"))


class TestRealSenseCamera(RobotConformance):
    def make_robot(self) -> Robot:
        return robot_with(OPTIONS)


class TestSlowRealSenseCamera(CameraConformance):
    """Filters that take several frames, at the lowest rate."""

    def make_robot(self) -> Robot:
        filters = {"decimation": 2, "temporal": {"frames": 2}}
        return robot_with(
            {**OPTIONS, "rate_hz": 15, "latency_s": 0.1, "emulated": {"latency_s": 0.1}, "filters": filters}
        )


@pytest.mark.slow
def test_a_training_camera_wider_than_the_sensor_is_refused_unless_allowed() -> None:
    training = load_task("pointnav_gps_compass").camera
    with raises_naming(ConfigError, "color mode 1280x720", "640x480", "79°"):
        robot_with({}, training)
    allowed = robot_with({"imaging": {"allow_partial_coverage": True}}, training)
    with allowed:
        frame = allowed.camera.capture(0, 1.0)
        assert not frame.rgb[0].any()  # above what the sensor sees
        assert frame.rgb[240, 320].any()
    fitting = robot_with({}, load_task("pointnav_habitat2020").camera)
    with fitting:
        assert fitting.camera.capture(0, 1.0).rgb.shape == (360, 640, 3)
