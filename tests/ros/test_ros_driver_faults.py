"""Faults of a robot's network, one by one, injected into the simulated robot: typed, named, and bounded."""

from __future__ import annotations

import itertools
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import rosgraph
import rospy
from geometry_msgs.msg import Pose2D
from raising import raises_naming
from robot_runtime_simulation.srv import Place, SetFault
from ros_processes import Program, eventually
from sensor_msgs.msg import JointState

from drivers.ros.connection.errors import ClockSkew, DepthUnit, SecondPublisher
from drivers.ros.head import RosHead
from drivers.ros_locobot.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.errors import DeviceFault, FrozenCamera, StaleData
from robot_runtime.hal import Halt, PoseStatus, Robot, Velocity, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.checked_localizer import checked
from robot_runtime.robots.loader import RobotContext

OPTIONS: dict[str, Any] = {
    "family": "pyrobot-kobuki",
    "camera": {"mount": "habitat"},
    "referee": {"source": "pose", "topic": "/simulation/ground_truth"},
    "placer": {"by": "simulation"},
    "master": {"monitor_period_s": 0.1},
}

INTRUDER = """
import rospy, sys
from geometry_msgs.msg import Twist
rospy.init_node("teleop", disable_rostime=True)
out = rospy.Publisher(sys.argv[1], Twist, queue_size=1)
print("advertised", flush=True)
rospy.spin()
"""


@pytest.fixture(scope="module", autouse=True)
def _simulated(ros_node: str, ros_environ: dict[str, str], ros_master: str) -> Iterator[None]:
    command = [sys.executable, "-u", "-m", "sim_bridge.ros", "--camera", "80x60@79"]
    program = Program(command, os.environ)
    try:
        program.wait_for_line("ready")
        yield
    finally:
        program.stop(signal.SIGKILL)
        print(program.output)
        rosgraph.Master("/tests").setParam("/use_sim_time", False)


@pytest.fixture
def fault() -> Iterator[Callable[..., None]]:
    """``fault("camera_silent")`` begins one; all are over after the test."""
    service = rospy.ServiceProxy("/simulation/fault", SetFault)

    def begin(name: str, value: float = 1.0) -> None:
        answer = service(name, value)
        assert answer.success, answer.message

    yield begin
    begin("", 0.0)


@contextmanager
def robot(**changes: Any) -> Iterator[Robot]:
    """A connected robot with free floor ahead."""
    assert rospy.ServiceProxy("/simulation/place", Place)(Pose2D(1.2, 1.36, 0.0), 0.0).success
    made = make_robot(RobotContext(None, None, 0), "test", {**OPTIONS, **changes}, "test")
    with made:
        made.clock.sleep(0.4)
        yield made


def drive(made: Robot, seconds: float) -> None:
    for _ in range(round(seconds / 0.05)):
        made.base.command(Velocity(0.3, 0.0))
        made.clock.sleep(0.05)


def comes_to_rest(made: Robot) -> bool:
    """By ground truth, within half a second."""
    made.clock.sleep(0.3)
    before = made.referee.at(made.clock.now_ns(), 1.0).pose
    made.clock.sleep(0.2)
    return before.distance_to(made.referee.at(made.clock.now_ns(), 1.0).pose) < 0.001


# --- camera ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("camera_silent", "/camera/color/image_raw"),
        ("rgb_silent", "/camera/color/image_raw"),
        ("depth_silent", "/camera/aligned_depth_to_color/image_raw"),
    ],
)
def test_a_silent_camera_is_stale_and_named(fault: Any, name: str, topic: str) -> None:
    with robot() as made:
        fault(name)
        made.clock.sleep(0.1)
        with raises_naming(StaleData, topic) as caught:
            made.camera.capture(made.clock.now_ns(), 0.3)
        assert "network" in caught.value.remedy


def test_images_that_never_pair_are_told(fault: Any) -> None:
    with robot() as made:
        fault("camera_unpaired")
        made.clock.sleep(0.4)
        with raises_naming(
            StaleData, "/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw", "enable_sync"
        ):
            made.camera.capture(made.clock.now_ns(), 0.3)


def test_a_frozen_camera_with_fresh_stamps_is_found_out_once_the_robot_moves(fault: Any) -> None:
    with robot() as made:
        fault("camera_frozen")
        made.clock.sleep(0.2)
        made.camera.capture(made.clock.now_ns(), 1.0)  # a robot that stands still sees the same for good reason
        drive(made, 0.5)
        made.base.stop()
        made.clock.sleep(0.1)
        with raises_naming(FrozenCamera, "/camera/color/image_raw"):
            made.camera.capture(made.clock.now_ns(), 1.0)


def test_a_moving_robots_pictures_are_not_frozen() -> None:
    with robot() as made:
        for _ in range(3):
            drive(made, 0.2)
            made.camera.capture(made.clock.now_ns(), 1.0)


def test_metres_called_millimetres_are_refused(fault: Any) -> None:
    with robot() as made:
        fault("depth_mislabelled")
        made.clock.sleep(0.1)
        with raises_naming(DepthUnit, "/camera/aligned_depth_to_color/image_raw"):
            made.camera.capture(made.clock.now_ns(), 1.0)


def test_honest_metres_are_the_same_picture(fault: Any) -> None:
    with robot() as made:
        millimetres = made.camera.capture(made.clock.now_ns(), 1.0).depth_m
        fault("depth_32fc1")
        made.clock.sleep(0.1)
        metres = made.camera.capture(made.clock.now_ns(), 1.0).depth_m
    assert abs(millimetres - metres).max() <= 0.0011


# --- base and head --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "topic"), [("core_silent", "/mobile_base/sensors/core"), ("odom_silent", "/odom"), ("sensors_silent", "/")]
)
@pytest.mark.slow
def test_a_silent_base_ends_the_action_as_a_fault_at_rest(fault: Any, name: str, topic: str) -> None:
    with robot() as made:
        motion = MotionController(made.clock, made.base, made.head)
        drive(made, 0.3)
        fault(name)
        result = motion.execute(Displacement(forward_m=0.25))
        assert result.outcome is Outcome.FAULT
        assert isinstance(motion.fault, StaleData)
        assert f"topic {topic}" in motion.fault.message
        assert comes_to_rest(made)


@pytest.mark.parametrize(("bits", "zone"), [(1, Zone.LEFT), (2, Zone.CENTER), (4, Zone.RIGHT)])
def test_contact_is_a_level_and_ends_with_its_cause(fault: Any, bits: int, zone: Zone) -> None:
    with robot() as made:
        fault("bumper", bits)
        made.clock.sleep(0.1)
        assert made.base.command(Velocity(0.3, 0.0)) == Velocity()
        state = made.base.state(0.1)
        assert (state.bumper, state.halt) == (zone, Halt.CONTACT)
        fault("bumper", 0)
        made.clock.sleep(0.1)
        assert made.base.state(0.1).bumper is Zone.NONE


def test_a_silent_head_is_stale_although_wheels_share_its_topic(fault: Any) -> None:
    with robot() as made:
        fault("head_silent")
        made.clock.sleep(0.3)
        with raises_naming(StaleData, "/joint_states"):
            made.head.state(0.2)


def test_a_head_whose_reader_is_busy_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated time waits for it: on a busy computer any thread may be late."""
    receive, number = RosHead._on_joints, itertools.count(1)

    def busy(head: RosHead, message: JointState) -> None:
        if next(number) % 50 == 0:
            rospy.rostime.wallsleep(0.3)
        receive(head, message)

    monkeypatch.setattr(RosHead, "_on_joints", busy)
    with robot() as made:
        for _ in range(100):
            made.clock.sleep(0.01)
            made.head.state(0.2)
    assert next(number) > 100


@pytest.mark.slow
def test_a_second_publisher_is_refused_at_connection_and_ends_a_run(spawn: Any) -> None:
    with robot() as made:
        intruder = spawn("-c", INTRUDER, "/mobile_base/commands/velocity")
        intruder.wait_for_line("advertised")

        def found() -> bool:
            try:
                made.base.state(0.1)
            except SecondPublisher:
                return True
            return False

        assert eventually(found)
        with raises_naming(SecondPublisher, "/mobile_base/commands/velocity", "/teleop"):
            made.base.command(Velocity(0.1, 0.0))
    with raises_naming(SecondPublisher, "/mobile_base/commands/velocity", "/teleop"), robot():
        pass
    with robot(base={"silent_publishers": ["/teleop"]}) as made:
        made.base.state(0.1)
    intruder.stop(signal.SIGKILL)
    with robot() as made:  # the master still knows it, but it is dead
        made.base.state(0.1)


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("skew_s", "says"), [(3.0, "in the future"), (-3.0, r"stamps (2\.9|3\.)")])
def test_clocks_that_disagree_are_told_from_silence(fault: Any, skew_s: float, says: str) -> None:
    with robot() as made:
        made.clock.sleep_until(4 * NS_PER_S)  # no stamp can lie before the beginning
        fault("clock_skew_s", skew_s)

        def look() -> None:  # waiting or reading, whichever comes first
            made.clock.sleep(0.3)
            made.base.state(0.1)

        with pytest.raises(ClockSkew, match=says) as caught:
            look()
        assert "chrony" in caught.value.remedy


@pytest.mark.slow
def test_a_simulator_that_stops_time_hangs_nobody(fault: Any) -> None:
    with robot(clock={"stall_s": 2.0}) as made:
        fault("clock_stopped")
        with raises_naming(ClockSkew, "/clock"):
            made.clock.sleep(1.0)


# --- where it is ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_jump_of_a_metre_is_lost_until_it_has_held(fault: Any) -> None:
    with robot(localizer={"source": "tf", "recover_s": 2.0}) as made, checked(made, None).localizer as localizer:
        made.clock.sleep(0.3)
        assert localizer.latest(0.5).status is PoseStatus.OK
        fault("localizer_jump_m", 1.0)
        made.clock.sleep(0.3)
        assert localizer.latest(0.5).status is PoseStatus.LOST
        assert localizer.at(made.clock.now_ns() - 10**8, 1.0).status is PoseStatus.LOST
        made.clock.sleep(2.2)
        assert localizer.latest(0.5).status is PoseStatus.OK


@pytest.mark.slow
def test_a_silent_localizer_is_stale_and_named(fault: Any) -> None:
    with robot() as made:
        fault("localizer_silent")
        made.clock.sleep(0.7)
        with raises_naming(StaleData, "/tf"):
            made.localizer.latest(0.5)
        assert made.referee.latest(0.5).status is PoseStatus.OK


@pytest.mark.parametrize(
    "source", [{"source": "pose_with_covariance", "topic": "/amcl_pose"}, {"source": "tf"}, {"source": "odometry"}]
)
def test_every_source_follows_the_motion(source: dict[str, str]) -> None:
    with robot(localizer=source) as made:
        before = made.localizer.at(made.clock.now_ns(), 1.0)
        truth = made.referee.at(before.stamp_ns, 1.0).pose
        drive(made, 0.6)
        made.base.stop()
        made.clock.sleep(0.3)
        after = made.localizer.at(made.clock.now_ns(), 1.0)
        expected = made.referee.at(after.stamp_ns, 1.0).pose.relative_to(truth)
        moved = after.pose.relative_to(before.pose)
        assert moved.distance_to(expected) < 0.005
        assert abs(moved.yaw_rad - expected.yaw_rad) < math.radians(0.5)
        assert moved.x_m > 0.05


def test_poses_in_another_frame_are_refused() -> None:
    wrong = {"source": "pose", "topic": "/simulation/ground_truth", "map_frame": "world"}
    with robot(localizer=wrong) as made, raises_naming(DeviceFault, "'map'", "'world'"):
        made.localizer.latest(0.5)
