"""Parts of the driver between publishers that the test plays: an operator's placing, cameras that mislead, a head."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rospy
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from raising import raises_naming
from sensor_msgs.msg import CameraInfo, Image

from drivers.ros.camera.driver import NOMINAL, RosCamera
from drivers.ros.connection.clock import RosClock
from drivers.ros.connection.diagnostics import Diagnostics, Level
from drivers.ros.connection.received import Received
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.localizer.sources import make_localizer
from drivers.ros.options import LocalizerOptions
from drivers.ros.placer import PlacedDevices, RealPlacer
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.reading import received
from robot_runtime.common import config
from robot_runtime.common.clock import NS_PER_S, SimulatedClock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, FrozenCamera, InvalidStart, PlacementFailed
from robot_runtime.hal import HeadLimits, HeadState, PoseEstimate, PoseStatus

MS = 1_000_000


# --- diagnostics ----------------------------------------------------------------------------------------------------


def test_troubles_are_told_once_and_remembered(caplog: pytest.LogCaptureFixture) -> None:
    diagnostics = Diagnostics()

    def hear(level: int, text: str) -> None:
        status = SimpleNamespace(name="mobile_base: Battery", level=bytes([level]), message=text)
        diagnostics.receive(Received(SimpleNamespace(status=[status])))

    for _ in range(3):
        hear(1, "Low")
    assert [trouble.level for trouble in diagnostics.troubles()] == [Level.WARN]
    assert caplog.text.count("Battery: warn: Low") == 1
    hear(0, "Maximum")
    assert diagnostics.troubles() == ()


def test_a_contact_is_no_trouble_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    diagnostics = Diagnostics()
    status = SimpleNamespace(name="mobile_base_nodelet_manager: Wall Sensor", level=bytes([1]), message="Wall Hit!")
    diagnostics.receive(Received(SimpleNamespace(status=[status])))
    assert (diagnostics.troubles(), caplog.text) == ((), "")


# --- camera ---------------------------------------------------------------------------------------------------------


class Film:
    """A camera of 8 x 6 pixels, as three publishers at 50 Hz."""

    def __init__(self, name: str, depth_frame: str = "color", distortion: Sequence[float] = ()) -> None:
        self.topics = {"color": f"{name}/color", "color_info": f"{name}/info", "depth": f"{name}/aligned"}
        self._depth_frame = depth_frame
        self._distortion = list(distortion)
        self.fresh = True
        self._number = 0
        self._out = {
            "color": rospy.Publisher(self.topics["color"], Image, queue_size=2),
            "depth": rospy.Publisher(self.topics["depth"], Image, queue_size=2),
            "color_info": rospy.Publisher(self.topics["color_info"], CameraInfo, queue_size=2),
        }
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def _play(self) -> None:
        while not self._stop.wait(0.02):
            self._number += self.fresh
            stamp = rospy.Time.from_sec(rospy.Time.now().to_sec())
            color = Image(height=6, width=8, encoding="bgr8", step=24, data=bytes([self._number % 256] * 144))
            depth = Image(height=6, width=8, encoding="16UC1", step=16, data=np.full(48, 1500, np.uint16).tobytes())
            info = CameraInfo(height=6, width=8, distortion_model="plumb_bob", D=self._distortion)
            info.K = [8.0, 0, 3.5, 0, 8.0, 2.5, 0, 0, 1]
            for message, frame in ((color, "color"), (depth, self._depth_frame), (info, "color")):
                message.header.stamp, message.header.frame_id = stamp, frame
            for name, message in (("color_info", info), ("depth", depth), ("color", color)):
                self._out[name].publish(message)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for out in self._out.values():
            out.unregister()


@contextmanager
def filmed(name: str, **changes: Any) -> Iterator[tuple[Film, RosCamera, MotionHistory]]:
    film = Film(name, **changes)
    options = {"family": "pyrobot-kobuki", "camera": {"mount": "habitat"}, "topics": film.topics}
    parsed = config.parse(options, RosOptions, "test")
    motion = MotionHistory()
    camera = RosCamera(Session(parsed.master, RosClock(0.05, 1.0)), parsed, NOMINAL, motion)
    try:
        yield film, camera, motion
    finally:
        camera.close()
        film.close()


def test_a_camera_introduces_itself_and_delivers_pairs(ros_node: str, ros_name: str) -> None:
    with filmed(ros_name) as (_, camera, _), camera:
        intrinsics = camera.info.intrinsics
        assert (intrinsics.width, intrinsics.height, intrinsics.fx) == (8, 6, 8.0)
        frame = camera.capture(camera._clock.now_ns(), 2.0)
        assert frame.rgb.shape == (6, 8, 3)
        assert np.array_equal(frame.depth_m, np.full((6, 8), 1500, np.float32) * np.float32(0.001))


def test_depth_of_another_view_is_refused(ros_node: str, ros_name: str) -> None:
    with (
        filmed(ros_name, depth_frame="camera_depth_optical_frame") as (_, camera, _),
        raises_naming(DeviceFault, f"{ros_name}/aligned", "camera_depth_optical_frame") as caught,
    ):
        camera.connect()
    assert "align_depth:=true" in caught.value.remedy


def test_a_strong_lens_is_refused(ros_node: str, ros_name: str) -> None:
    with (
        filmed(ros_name, distortion=(2.0, 0.0, 0.0, 0.0, 0.0)) as (_, camera, _),
        raises_naming(DeviceFault, f"{ros_name}/info", "plumb_bob"),
    ):
        camera.connect()


def test_a_picture_that_stays_while_the_robot_drives_is_frozen(ros_node: str, ros_name: str) -> None:
    with filmed(ros_name) as (film, camera, motion), camera:
        film.fresh = False
        rospy.rostime.wallsleep(0.3)
        camera.capture(camera._clock.now_ns(), 2.0)
        start_ns = camera._clock.now_ns() - 2 * NS_PER_S
        for step in range(400):
            motion.odom(start_ns + step * 10 * MS, SE2(0.01 * step, 0.0, 0.0))
        with pytest.raises(FrozenCamera):
            camera.capture(camera._clock.now_ns(), 2.0)


# --- placing --------------------------------------------------------------------------------------------------------


class Carried:
    """Session, base, head, camera, localizer and what brings the robot: what they were told, in order."""

    def __init__(self) -> None:
        self.clock = SimulatedClock(10 * MS)
        self.connect_timeout_s = 1.0
        self.limits = HeadLimits(-1, 1, -1, 1, 1, 0.1)
        self.told: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.told.append(name)

    def state(self, _: float) -> HeadState:
        return HeadState(self.clock.now_ns(), 0.0, 0.0, moving=False)

    def latest(self, _: float) -> PoseEstimate:
        return PoseEstimate(self.clock.now_ns(), SE2(), "map")


def real_placer(carried: Any) -> RealPlacer:
    return RealPlacer(PlacedDevices(carried, carried, carried, carried, carried, [carried]), carried)


def test_what_was_measured_before_the_robot_was_brought_is_forgotten() -> None:
    carried: Any = Carried()
    real_placer(carried).place(SE2(2.0, 1.0, 0.0), 0.3)
    assert carried.told == ["stop", "move_to", "command", "clear", "forget", "forget", "command"]


def test_a_robot_that_was_not_brought_is_forgotten_as_well() -> None:
    carried: Any = Carried()

    def move_to(_: SE2) -> None:
        raise PlacementFailed("it was not moved", "move it")

    carried.move_to = move_to
    with pytest.raises(PlacementFailed):
        real_placer(carried).place(SE2(), 0.0)
    assert carried.told == ["stop", "clear", "forget", "forget"]


@pytest.mark.parametrize("source", ["pose", "odometry"])
def test_poses_of_the_old_place_that_are_still_on_their_way_are_not_taken(source: str) -> None:
    options = config.parse({"family": "pyrobot-kobuki", "camera": {"mount": "habitat"}}, RosOptions, "test")
    session = Session(options.master, RosClock(0.05, 1.0))
    session.clock.start_simulated(10 * NS_PER_S)
    chosen = LocalizerOptions("pose", "/pose") if source == "pose" else LocalizerOptions("odometry")
    localizer = make_localizer("localizer", session, chosen, options, "robot")

    def hear(at_ms: int, x_m: float) -> None:
        message = PoseStamped() if source == "pose" else Odometry()
        (message if source == "pose" else message.pose).pose.position.x = x_m
        (message if source == "pose" else message.pose).pose.orientation.w = 1.0
        message.header.stamp, message.header.frame_id = rospy.Time(10, at_ms * MS), "map"
        session.clock.advance(10 * NS_PER_S + at_ms * MS)
        localizer._on_message(received(message))

    hear(100, 1.0)
    localizer.forget(10 * NS_PER_S + 200 * MS)
    hear(180, 1.0)
    hear(220, 3.0)
    estimates = localizer._history.arrivals().estimates
    assert [(estimate.pose.x_m, estimate.status) for estimate in estimates] == [(3.0, PoseStatus.OK)]


def test_a_tilt_out_of_reach_is_no_start() -> None:
    carried: Any = Carried()
    with raises_naming(InvalidStart, "1.5"):
        real_placer(carried).place(SE2(), 1.5)
    assert carried.told == []
