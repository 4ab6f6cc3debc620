"""A webcam on the simulated robot: the driver's own code from the decoded image on."""

import numpy as np
import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.conformance import CameraConformance
from robot_runtime.hal import RgbdFrame, Robot
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import TrainingCamera

CAMERA = TrainingCamera(160, 120, 79.0, 0.88, 0.1, 10.0, False)
SMALL = TrainingCamera(64, 48, 79.0, 0.88, 0.1, 10.0, False)


def frame_in(room: Scene, parts: DeviceOverrides) -> RgbdFrame:
    with load_robot("sim", RobotContext(room, CAMERA, 0), parts) as robot:
        robot.placer.place(SE2(-1.0, 0.5, 0.6), 0.0)
        asked_ns = robot.clock.now_ns()
        frame = robot.camera.capture(asked_ns, 1.0)
        assert frame.stamp_ns >= asked_ns
        assert robot.camera.info.has_depth is (parts.camera is None)
    return frame


class TestWebcamConformance(CameraConformance):
    @pytest.fixture(autouse=True)
    def _in_room(self, room: Scene) -> None:
        self.scene = room

    def make_robot(self) -> Robot:
        parts = DeviceOverrides(camera="opencv", camera_options=("width=96", "height=54"))
        return load_robot("sim", RobotContext(self.scene, SMALL, 0), parts)


def test_a_webcam_sees_what_the_simulated_camera_sees(room: Scene) -> None:
    ideal = frame_in(room, DeviceOverrides())
    frame = frame_in(room, DeviceOverrides(camera="opencv", camera_options=("width=320", "height=180")))
    assert not frame.depth_m.any()
    difference = np.abs(frame.rgb[4:-4].astype(int) - ideal.rgb[4:-4])
    assert np.median(difference) <= 4
    assert np.percentile(difference, 90) <= 20
