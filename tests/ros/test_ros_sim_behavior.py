"""The simulated robot over a real master, in real time: it drives, stops, touches, is placed, fails on demand."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import rospy
from geometry_msgs.msg import Pose2D, PoseStamped, PoseWithCovarianceStamped, Twist
from kobuki_msgs.msg import BumperEvent, CliffEvent, MotorPower, SensorState, WheelDropEvent
from nav_msgs.msg import Odometry
from robot_runtime_simulation.srv import Place, SetFault
from ros_processes import LIMIT_S, Program, eventually
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Float64

from robot_runtime.common.geometry import SE2
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import find_scene, load_scene
from sim_bridge.robot.driver import make_robot
from sim_bridge.ros.faults import FAULTS

CORE = "/mobile_base/sensors/core"
RGB, DEPTH = "/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw"

OPEN = SE2(1.2, 1.36, 0.0)
"""In the bundled apartment: 1.5 m of free floor ahead."""
AT_WALL = SE2(2.4, 1.36, 0.0)


class Ears:
    """Subscriptions that keep what they hear, in order, until the test ends."""

    def __init__(self) -> None:
        self.heard: dict[str, list[Any]] = {}
        self._subscribers: list[Any] = []

    def listen(self, topic: str, kind: Any) -> list[Any]:
        """Messages received from now on, once the two are connected."""
        messages = self.heard[topic] = []
        subscriber = rospy.Subscriber(topic, kind, messages.append, queue_size=100, buff_size=2**24, tcp_nodelay=True)
        self._subscribers.append(subscriber)
        assert eventually(subscriber.get_num_connections), f"nobody publishes {topic}"
        return messages

    def close(self) -> None:
        for subscriber in self._subscribers:
            subscriber.unregister()


def since(messages: list[Any], stamp: Any) -> list[Any]:
    """Those that were measured at an instant or later."""
    return [message for message in messages if message.header.stamp >= stamp]


def taken_now(messages: list[Any]) -> Any:
    """The first one measured from now on: one from before, when all was different, may still be on its way."""
    now = rospy.Time.now()
    assert eventually(lambda: since(messages, now))
    return since(messages, now)[0]


def silent_now(*silent: list[Any], others: list[Any]) -> bool:
    """Whether nothing is measured from now on, while others are."""
    now = rospy.Time.now()
    return bool(eventually(lambda: len(since(others, now)) > 30)) and not any(since(one, now) for one in silent)


@pytest.fixture(scope="module")
def program(ros_node: str) -> Iterator[Program]:
    """A Kobuki without errors; its command timeout is PyRobot's, 0.6 s."""
    program = Program([sys.executable, "-u", "-m", "sim_bridge.ros", "--clock", "real"], os.environ)
    try:
        program.wait_for_line("ready")
        yield program
        assert program.stop() == 0, program.output
        assert "Traceback" not in program.output
    finally:
        program.stop(signal.SIGKILL)


@pytest.fixture
def ears() -> Iterator[Ears]:
    ears = Ears()
    yield ears
    ears.close()


def place(pose: SE2, tilt_rad: float = 0.0) -> Any:
    return rospy.ServiceProxy("/simulation/place", Place)(Pose2D(pose.x_m, pose.y_m, pose.yaw_rad), tilt_rad)


def fail(name: str, value: float = 1.0) -> Any:
    return rospy.ServiceProxy("/simulation/fault", SetFault)(name, value)


@pytest.fixture
def robot(program: Program) -> Iterator[Program]:
    """Standing in the open, with no fault."""
    assert fail("", 0).success
    assert place(OPEN).success
    yield program
    assert fail("", 0).success


@pytest.fixture
def drive(robot: Program) -> Iterator[Callable[[float, float], None]]:
    """Publishes one velocity."""
    publisher = rospy.Publisher("/mobile_base/commands/velocity", Twist, queue_size=1, tcp_nodelay=True)
    assert eventually(publisher.get_num_connections)

    def send(linear_m_s: float, angular_rad_s: float) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = linear_m_s, angular_rad_s
        publisher.publish(twist)

    yield send
    publisher.unregister()


def keep_driving(send: Callable[[float, float], None], linear_m_s: float, until: Callable[[], Any]) -> None:
    """Repeat a velocity until something is true."""

    def probe() -> Any:
        send(linear_m_s, 0.0)
        return until()

    assert eventually(probe, poll_s=0.05)


def at_rest(odometry: list[Any]) -> bool:
    """Whether the last quarter of a second saw no motion, after some that did."""
    moved = any(message.twist.twist.linear.x > 0.05 for message in odometry)
    return moved and all(abs(message.twist.twist.linear.x) < 1e-3 for message in odometry[-12:])


def test_one_command_moves_it_for_as_long_as_the_base_believes_it(drive: Any, ears: Ears) -> None:
    odometry, core = ears.listen("/odom", Odometry), ears.listen(CORE, SensorState)
    assert eventually(lambda: core)
    drive(0.2, 0.0)
    assert eventually(lambda: at_rest(odometry))
    assert eventually(lambda: core[-1].header.stamp >= odometry[-1].header.stamp)
    way_m = odometry[-1].pose.pose.position.x
    # 0.6 s, looked at ten times a second.
    assert 0.2 * 0.58 <= way_m <= 0.2 * 0.74
    ticks = (core[-1].left_encoder - core[0].left_encoder + 2**15) % 2**16 - 2**15
    assert ticks == pytest.approx(way_m * 11724.4, abs=30)
    assert core[-1].left_encoder == core[-1].right_encoder


def test_motor_power_off_stops_and_deafens_it(drive: Any, ears: Ears) -> None:
    odometry = ears.listen("/odom", Odometry)
    power = rospy.Publisher("/mobile_base/commands/motor_power", MotorPower, queue_size=1)
    assert eventually(power.get_num_connections)
    keep_driving(drive, 0.2, lambda: odometry and odometry[-1].twist.twist.linear.x > 0.1)
    power.publish(MotorPower(MotorPower.OFF))
    keep_driving(drive, 0.2, lambda: at_rest(odometry))
    stood_m = odometry[-1].pose.pose.position.x
    drive(0.2, 0.0)
    count = len(odometry)
    assert eventually(lambda: len(odometry) > count + 10)
    assert odometry[-1].pose.pose.position.x == stood_m
    power.publish(MotorPower(MotorPower.ON))
    keep_driving(drive, 0.2, lambda: odometry[-1].pose.pose.position.x > stood_m + 0.01)
    power.unregister()


def test_a_wall_presses_the_bumper_once_and_backing_off_releases_it(drive: Any, ears: Ears) -> None:
    core, events = ears.listen(CORE, SensorState), ears.listen("/mobile_base/events/bumper", BumperEvent)
    assert place(AT_WALL).success
    keep_driving(drive, 0.15, lambda: core and core[-1].bumper)
    assert eventually(lambda: core[-1].bumper & SensorState.BUMPER_CENTRE)
    assert eventually(lambda: events)
    keep_driving(drive, -0.15, lambda: core[-1].bumper == 0)
    assert eventually(lambda: len(events) == 2 * len({event.bumper for event in events}))
    by_bumper: dict[int, list[int]] = {}
    for event in events:
        by_bumper.setdefault(event.bumper, []).append(event.state)
    assert BumperEvent.CENTER in by_bumper
    assert set(map(tuple, by_bumper.values())) == {(BumperEvent.PRESSED, BumperEvent.RELEASED)}


def test_levels_stay_while_events_tell_of_changes_only(robot: Program, ears: Ears) -> None:
    core = ears.listen(CORE, SensorState)
    bumper = ears.listen("/mobile_base/events/bumper", BumperEvent)
    cliff = ears.listen("/mobile_base/events/cliff", CliffEvent)
    drop = ears.listen("/mobile_base/events/wheel_drop", WheelDropEvent)
    for left_and_right in (1, 5, 0):
        assert fail("bumper", left_and_right).success
        expected = {0: 0, 1: SensorState.BUMPER_LEFT, 5: SensorState.BUMPER_LEFT | SensorState.BUMPER_RIGHT}
        assert eventually(lambda level=expected[left_and_right]: core and core[-1].bumper == level)
    assert fail("cliff", 4).success
    assert fail("wheel_drop", 1).success
    assert eventually(lambda: core[-1].cliff == SensorState.CLIFF_RIGHT)
    assert eventually(lambda: core[-1].wheel_drop == SensorState.WHEEL_DROP_LEFT)
    assert eventually(lambda: cliff and drop and len(bumper) >= 4)
    left, right = BumperEvent.LEFT, BumperEvent.RIGHT
    assert [(e.bumper, e.state) for e in bumper] == [(left, 1), (right, 1), (left, 0), (right, 0)]
    assert [(e.sensor, e.state) for e in cliff] == [(CliffEvent.RIGHT, CliffEvent.CLIFF)]
    assert [(e.wheel, e.state) for e in drop] == [(WheelDropEvent.LEFT, WheelDropEvent.DROPPED)]
    # Readings stand right, centre, left in sensors/core; kobuki_core hands events the wrong end of them.
    assert core[-1].bottom[0] < 100 < core[-1].bottom[2]
    assert cliff[0].bottom > 100


class TestPlace:
    def test_puts_it_there_at_rest_with_odometry_at_zero(self, drive: Any, ears: Ears) -> None:
        truth, odometry = ears.listen("/simulation/ground_truth", PoseStamped), ears.listen("/odom", Odometry)
        joints = ears.listen("/joint_states", JointState)
        keep_driving(drive, 0.2, lambda: odometry and odometry[-1].pose.pose.position.x > 0.02)
        drive(0.1, 0.0)  # once this one is seen, none before it can come after the placing
        assert eventually(lambda: odometry[-1].twist.twist.linear.x < 0.15)
        answer = place(SE2(1.5, 1.4, math.pi / 2), 0.3)
        assert (answer.success, answer.message, answer.remedy) == (True, "", "")
        assert eventually(lambda: truth and truth[-1].pose.position.x == 1.5)
        assert truth[-1].header.frame_id == "map"
        assert truth[-1].pose.position.y == 1.4
        assert truth[-1].pose.orientation.z == pytest.approx(math.sin(math.pi / 4))
        assert eventually(lambda: odometry[-1].pose.pose.position.x == 0)
        assert odometry[-1].twist.twist.linear.x == 0

        def tilts() -> list[float]:
            heads = [dict(zip(m.name, m.position, strict=True)) for m in joints if "head_tilt_joint" in m.name]
            return [head["head_tilt_joint"] for head in heads]

        assert eventually(lambda: tilts()[-1:] == [pytest.approx(-0.3)])

    @pytest.mark.parametrize(
        ("pose", "tilt_rad", "message"),
        [
            (SE2(2.85, 1.36, 0.0), 0.0, "a robot of radius 0.18 m touches walls"),
            (SE2(2.95, 1.36, 0.0), 0.0, "the map says occupied"),
            (SE2(100.0, 0.0, 0.0), 0.0, "outside the map"),
            (OPEN, 3.0, "the head cannot start at a tilt of 171.88"),
            (SE2(math.nan, 0.0, 0.0), 0.0, "is not finite"),
            (SE2(1.2, 1.36, math.inf), 0.0, "is not finite"),
        ],
    )
    def test_says_why_not(self, robot: Program, pose: SE2, tilt_rad: float, message: str) -> None:
        answer = place(pose, tilt_rad)
        assert not answer.success
        assert message in answer.message
        assert answer.remedy


class TestHead:
    @pytest.mark.slow
    def test_positive_tilt_looks_down_and_goals_out_of_reach_are_ignored(self, robot: Program, ears: Ears) -> None:
        states = ears.listen("/tilt/state", Float64)
        tilt = rospy.Publisher("/tilt/command", Float64, queue_size=1)
        assert eventually(tilt.get_num_connections)
        tilt.publish(0.5)
        assert eventually(lambda: states and states[-1].data == pytest.approx(0.5))
        for out_of_reach in (1.5, -1.7, math.nan):
            tilt.publish(out_of_reach)
        tilt.publish(0.4)
        assert eventually(lambda: states[-1].data == pytest.approx(0.4))
        assert max(state.data for state in states) <= 0.5 + 1e-6
        assert min(state.data for state in states[states.index(max(states, key=lambda s: s.data)) :]) >= 0.4 - 1e-6
        tilt.unregister()


class TestCamera:
    @pytest.mark.slow
    def test_sees_exactly_what_the_robot_in_process_sees(self, robot: Program, ears: Ears) -> None:
        pose = SE2(1.3, 1.5, 0.7)
        assert place(pose, -0.2).success
        rgb, depth = ears.listen(RGB, Image), ears.listen(DEPTH, Image)
        info = ears.listen("/camera/color/camera_info", CameraInfo)
        colored, measured = taken_now(rgb), taken_now(depth)
        assert eventually(lambda: info)
        context = RobotContext(scene=load_scene(find_scene("apartment")), camera=None, seed=0)
        with make_robot(context, "sim", {}, "test") as twin:
            twin.placer.place(pose, -0.2)
            frame = twin.camera.capture(0, 1.0)
            intrinsics = twin.camera.info.intrinsics
        color = np.frombuffer(colored.data, np.uint8).reshape(480, 640, 3)
        millimetres = np.frombuffer(measured.data, np.uint16).reshape(480, 640)
        # The two compute the same view by different sums, which may move an edge by a pixel.
        assert np.mean(color != frame.rgb) < 1e-3
        assert np.mean(np.abs(millimetres / 1000 - frame.depth_m) > 0.0011) < 1e-3
        assert (info[-1].K[0], info[-1].K[4], info[-1].K[2], info[-1].K[5]) == pytest.approx(
            (intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy)
        )
        # One exposure has one stamp; on a busy computer either half of some is left out.
        assert eventually(lambda: {m.header.stamp.to_nsec() for m in rgb} & {m.header.stamp.to_nsec() for m in depth})

    def test_frozen_pictures_have_fresh_stamps(self, drive: Any, ears: Ears) -> None:
        rgb = ears.listen(RGB, Image)
        taken_now(rgb)
        assert fail("camera_frozen").success
        taken_now(rgb)
        assert place(SE2(1.3, 1.5, 2.0)).success
        begin = taken_now(rgb).header.stamp
        assert eventually(lambda: len(since(rgb, begin)) > 3)
        frozen = since(rgb, begin)
        assert len({m.data for m in frozen}) == 1
        assert len({m.header.stamp.to_nsec() for m in frozen}) == len(frozen)
        assert fail("camera_frozen", 0).success
        assert eventually(lambda: rgb[-1].data != frozen[-1].data)

    def test_depth_in_metres_and_depth_that_lies(self, robot: Program, ears: Ears) -> None:
        depth = ears.listen(DEPTH, Image)
        millimetres = np.frombuffer(taken_now(depth).data, np.uint16)
        assert fail("depth_32fc1").success
        assert eventually(lambda: depth[-1].encoding == "32FC1")
        metres = np.frombuffer(depth[-1].data, np.float32)
        np.testing.assert_allclose(metres, millimetres / 1000, atol=2e-3)
        assert fail("", 0).success
        assert fail("depth_mislabelled").success
        assert eventually(lambda: depth[-1].encoding == "16UC1" and np.frombuffer(depth[-1].data, np.uint16).max() < 30)

    def test_silence_and_lost_pairs(self, robot: Program, ears: Ears) -> None:
        rgb, depth = ears.listen(RGB, Image), ears.listen(DEPTH, Image)
        truth = ears.listen("/simulation/ground_truth", PoseStamped)
        assert eventually(lambda: rgb and depth)
        assert fail("camera_unpaired").success
        begin = taken_now(rgb).header.stamp
        assert eventually(lambda: len(since(rgb, begin)) > 3 and len(since(depth, begin)) > 3)
        colored, measured = ({m.header.stamp.to_nsec() for m in since(half, begin)} for half in (rgb, depth))
        assert not colored & measured
        assert fail("camera_unpaired", 0).success
        assert fail("camera_silent").success
        assert silent_now(rgb, depth, others=truth)


def test_the_base_can_go_silent_and_speak_again(robot: Program, ears: Ears) -> None:
    core, odometry = ears.listen(CORE, SensorState), ears.listen("/odom", Odometry)
    truth = ears.listen("/simulation/ground_truth", PoseStamped)
    assert eventually(lambda: core and odometry)
    assert fail("core_silent").success
    assert silent_now(core, others=odometry)
    assert fail("sensors_silent").success
    assert silent_now(odometry, others=truth)
    assert fail("", 0).success
    assert taken_now(core)


def test_the_localizer_jumps_and_clocks_disagree(robot: Program, ears: Ears) -> None:
    poses = ears.listen("/amcl_pose", PoseWithCovarianceStamped)
    truth = ears.listen("/simulation/ground_truth", PoseStamped)
    assert eventually(lambda: truth and poses and poses[-1].pose.pose.position.x == OPEN.x_m)
    assert fail("localizer_jump_m", 1.0).success
    assert eventually(lambda: poses[-1].pose.pose.position.x == OPEN.x_m + 1)
    assert truth[-1].pose.position.x == OPEN.x_m
    assert fail("clock_skew_s", -5.0).success
    assert eventually(lambda: 4 < (rospy.Time.now() - truth[-1].header.stamp).to_sec() < 6)


def test_every_fault_can_be_had_and_unknown_ones_say_what_there_is(robot: Program) -> None:
    for name in FAULTS:
        if name != "battery":
            assert fail(name).success, name
    answer = fail("camera_silnt")
    assert not answer.success
    assert "camera_silnt" in answer.message
    assert "camera_silent" in answer.remedy


@pytest.mark.slow
def test_it_ends_when_its_standard_input_closes(make_master: Any, ros_environ: dict[str, str]) -> None:
    # On a network of its own: leaving, it takes the services along that every simulated robot offers.
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "sim_bridge.ros", "--clock", "real", "--die-with-stdin"],
        env=ros_environ | {"ROS_MASTER_URI": make_master().uri},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(LIMIT_S, process.kill)
    watchdog.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        process.stdin.close()
        assert process.wait(LIMIT_S) == 0
        process.stdout.close()
    finally:
        watchdog.cancel()
