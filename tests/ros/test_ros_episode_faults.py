"""Faults on the robot's network while an episode runs: wheels at rest, a typed error, an outcome, a log that opens."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import rosgraph
import rospy
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped
from pacing_agent import Pacing
from robot_runtime_simulation.srv import SetFault
from ros_processes import Program
from ros_truth import Truth

from drivers.ros.connection.errors import ClockSkew, DepthUnit, SecondPublisher
from drivers.ros_locobot.driver import make_robot
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, FrozenCamera, LocalizationLost, StaleData
from robot_runtime.hal.motors import KOBUKI_MOTORS
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd, Outcome
from robot_runtime.robots.checked_localizer import checked
from robot_runtime.robots.loader import RobotContext
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import load_task

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
OPTIONS: dict[str, Any] = {
    "family": "pyrobot-kobuki",
    "camera": {"mount": "habitat"},
    "referee": {"source": "pose", "topic": "/simulation/ground_truth"},
    "placer": {"by": "simulation"},
    "master": {"monitor_period_s": 0.1},
}
EPISODE = Episode("pacing", "apartment", SE2(1.0, 1.36, 0.0), (Goal(2.2, 1.36),))
TASK = load_task("pointnav_gps_compass")
TASK = replace(TASK, camera=replace(TASK.camera, width=80, height=60), max_steps=3)
SCENE = load_scene(find_scene("apartment"))
INTRUDER = """
import os, rospy, sys
from geometry_msgs.msg import Twist
rospy.init_node("teleop", disable_rostime=True)
print("waits", flush=True)
while not os.path.exists(sys.argv[1]):
    rospy.rostime.wallsleep(0.01)
rospy.Publisher("/mobile_base/commands/velocity", Twist, queue_size=1)
rospy.spin()
"""
"""Starts long before it intrudes: an episode may be over by the time that a program has started."""


@pytest.fixture(scope="module")
def truth(ros_node: str, ros_environ: dict[str, str], ros_master: str) -> Iterator[Truth]:
    """Of a simulated robot on this process's network."""
    programs = [
        Program([sys.executable, "-u", *arguments], os.environ)
        for arguments in (
            ("-m", "sim_bridge.ros", "--camera", "80x60@79", "--rate", "2"),
            (str(HERE / "truth_program.py"),),
        )
    ]
    try:
        programs[0].wait_for_line("ready")
        programs[1].wait_for_line("truth")
        yield Truth(programs[1])
    finally:
        for program in programs:
            program.stop(signal.SIGKILL)
        print(programs[0].output)
        rosgraph.Master("/tests").setParam("/use_sim_time", False)


@pytest.fixture
def fault() -> Iterator[Callable[[str, float], None]]:
    """Begins one; all are over after the test."""
    service = rospy.ServiceProxy("/simulation/fault", SetFault)

    def begin(name: str, value: float) -> None:
        answer = service(name, value)
        assert answer.success, answer.message

    yield begin
    begin("", 0.0)


@dataclass
class Run:
    """One episode: how it ended, with which error, and its log."""

    end: EpisodeEnd
    error: DeviceFault | None
    log: Path


def run(folder: Path, **changes: Any) -> Run:
    """An episode of :class:`Pacing` on the simulated robot."""
    robot = make_robot(RobotContext(None, TASK.camera, 0), "over-ros", {**OPTIONS, **changes}, "test")
    robot = checked(robot, None)  # as the loader does
    error = None
    recorder = Recorder(folder)
    try:
        with robot, Env(robot, TASK, SCENE, (recorder,), localization_patience_s=PATIENCE_S) as env:
            try:
                run_episode(env, Pacing(), EPISODE, 0)
            except DeviceFault as caught:
                if recorder.path is None:
                    raise  # before anything began
                error = caught
            end = env.end
    finally:
        recorder.close()
    assert recorder.path is not None
    return Run(end, error, recorder.path)


@contextmanager
def in_motion(truth: Truth, begin: Callable[[], object]) -> Iterator[list[float]]:
    """Has ``begin`` called once the robot is under way; yields the instant by which it had been."""
    began_s: list[float] = []

    def wait() -> None:
        truth.wait_for_motion(alive=None)
        begin()
        began_s.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield began_s
    finally:
        thread.join()


CORE, COLOR, DEPTH = (
    "/mobile_base/sensors/core",
    "/camera/color/image_raw",
    "/camera/aligned_depth_to_color/image_raw",
)

PATIENCE_S = 3.0
"""Time for which an episode waits while the robot is lost: less than a pose needs to be accepted after a jump."""

AT_ONCE_S = 0.5 + KOBUKI_MOTORS.settling_s
"""From the fault to rest, where the Guard sees it itself: 0.1 s of silence, reaction, a message, and the motors."""

BY_THE_END_S = 3.0
"""The same where the action is carried out first: at most what one of 0.25 m takes."""


@pytest.mark.parametrize(
    ("name", "value", "error", "says", "remedy", "outcome", "rest_s"),
    [
        ("camera_silent", 1, StaleData, f"topic {COLOR} is silent", "node", Outcome.REACHED, BY_THE_END_S),
        pytest.param(
            "depth_silent",
            1,
            StaleData,
            f"topic {DEPTH} is silent",
            "node",
            Outcome.REACHED,
            BY_THE_END_S,
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "camera_unpaired",
            1,
            StaleData,
            f"{COLOR} and {DEPTH}: no two",
            "sync",
            Outcome.REACHED,
            BY_THE_END_S,
            marks=pytest.mark.exhaustive,
        ),
        ("camera_frozen", 1, FrozenCamera, f"{COLOR} and {DEPTH}: the same", "USB", None, BY_THE_END_S),
        pytest.param(
            "depth_mislabelled",
            1,
            DepthUnit,
            f"topic {DEPTH}",
            "16UC1",
            Outcome.REACHED,
            BY_THE_END_S,
            marks=pytest.mark.exhaustive,
        ),
        ("core_silent", 1, StaleData, f"topic {CORE} is silent", "node", Outcome.FAULT, AT_ONCE_S),
        ("odom_silent", 1, StaleData, "topic /odom is silent", "node", Outcome.FAULT, AT_ONCE_S),
        pytest.param(
            "head_silent",
            1,
            StaleData,
            "topic /joint_states is silent",
            "node",
            Outcome.REACHED,
            BY_THE_END_S,
            marks=pytest.mark.exhaustive,
        ),
        ("localizer_silent", 1, LocalizationLost, "/tf", "", Outcome.REACHED, BY_THE_END_S),
        (
            "localizer_jump_m",
            1,
            LocalizationLost,
            "/tf (map to base_footprint)",
            "localize",
            Outcome.REACHED,
            BY_THE_END_S,
        ),
        ("clock_skew_s", 3, ClockSkew, "in the future", "chrony", Outcome.FAULT, AT_ONCE_S),
        pytest.param(
            "clock_skew_s",
            -3,
            ClockSkew,
            "messages arrive with stamps ",
            "chrony",
            Outcome.FAULT,
            AT_ONCE_S,
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_fault_ends_the_episode_at_rest(
    name: str,
    value: float,
    error: type[DeviceFault],
    says: str,
    remedy: str,
    outcome: Outcome | None,
    rest_s: float,
    truth: Truth,
    fault: Any,
    tmp_path: Path,
) -> None:
    with in_motion(truth, lambda: fault(name, value)) as began_s:
        ended = run(tmp_path)
    assert truth.rest_after(began_s[0], watch_s=rest_s + 0.5) < rest_s
    check(ended, error, says, remedy, outcome)


def check(ended: Run, error: type[DeviceFault], says: str, remedy: str, outcome: Outcome | None) -> None:
    """The error names its topic and remedy, the end has the action's outcome, and the log opens and says the same."""
    assert isinstance(ended.error, error), repr(ended.error)
    assert re.search(re.escape(says), ended.error.message), ended.error.message
    assert remedy in ended.error.remedy
    lost = issubclass(error, LocalizationLost)
    assert ended.end.reason is (EndReason.LOCALIZATION_LOST if lost else EndReason.FAULT)
    with LogReader(ended.log) as log:
        assert log.complete
        assert log.end == ended.end
        steps = list(log.steps())
    assert steps
    if outcome is not None:
        assert ended.end.result is not None
        assert ended.end.result.outcome is outcome


def test_depth_in_metres_is_the_same_depth(truth: Truth, fault: Any, tmp_path: Path) -> None:
    with in_motion(truth, lambda: fault("depth_32fc1", 1)):
        ended = run(tmp_path)
    assert ended.error is None
    assert ended.end.reason is EndReason.MAX_STEPS


def test_simulated_time_that_stops_hangs_nothing(truth: Truth, fault: Any, tmp_path: Path) -> None:
    with in_motion(truth, lambda: fault("clock_stopped", 1)) as began_s:
        ended = run(tmp_path)
    fault("clock_stopped", 0)
    assert truth.rest_after(began_s[0], watch_s=AT_ONCE_S + 0.5) < AT_ONCE_S
    check(ended, ClockSkew, "topic /clock: simulated time has stood still", "simulator", Outcome.FAULT)


def test_another_publisher_of_velocities_ends_the_episode_at_rest(truth: Truth, spawn: Any, tmp_path: Path) -> None:
    cue = tmp_path / "now"
    spawn("-c", INTRUDER, str(cue)).wait_for_line("waits")
    with in_motion(truth, cue.touch):
        ended = run(tmp_path)
    assert truth.rest_from_now(watch_s=1.5) < 0.2 + KOBUKI_MOTORS.settling_s
    check(ended, SecondPublisher, "/mobile_base/commands/velocity: /teleop publishes", "stop that node", None)


class Relay:
    """A localizer of the test's own: the truth, moved and as unsure as the test wants."""

    def __init__(self, topic: str, kind: Any) -> None:
        self._kind = kind
        self.ahead_m, self.std_m = 0.0, 0.0
        self._out = rospy.Publisher(topic, kind, queue_size=10, tcp_nodelay=True)
        self._truth = rospy.Subscriber("/simulation/ground_truth", PoseStamped, self._pass_on, tcp_nodelay=True)

    def close(self) -> None:
        self._truth.unregister()
        self._out.unregister()

    def _pass_on(self, message: PoseStamped) -> None:
        message.pose.position.x += self.ahead_m
        if self._kind is PoseWithCovarianceStamped:
            unsure = PoseWithCovarianceStamped(header=message.header)
            unsure.pose.pose = message.pose
            unsure.pose.covariance[0] = unsure.pose.covariance[7] = self.std_m**2
            self._out.publish(unsure)
        else:
            self._out.publish(message)


@pytest.fixture
def relay(ros_name: str, request: pytest.FixtureRequest) -> Iterator[tuple[Relay, dict[str, str]]]:
    """The localizer, and the options that name it."""
    kind = PoseWithCovarianceStamped if request.param == "pose_with_covariance" else PoseStamped
    made = Relay(f"{ros_name}/pose", kind)
    yield made, {"source": request.param, "topic": f"{ros_name}/pose"}
    made.close()


@pytest.mark.parametrize("relay", ["pose", "pose_with_covariance"], indirect=True)
def test_an_episode_by_a_trackers_poses_ends_when_they_jump(relay: Any, truth: Truth, tmp_path: Path) -> None:
    localizer, options = relay
    assert run(tmp_path / "good", localizer=options).end.reason is EndReason.MAX_STEPS
    with in_motion(truth, lambda: setattr(localizer, "ahead_m", 1.0)) as began_s:
        ended = run(tmp_path / "jump", localizer=options)
    assert truth.rest_after(began_s[0], watch_s=BY_THE_END_S + 0.5) < BY_THE_END_S
    check(ended, LocalizationLost, f"localizer on {options['topic']}': has lost", "localize", Outcome.REACHED)


@pytest.mark.parametrize("relay", ["pose_with_covariance"], indirect=True)
def test_a_localizer_that_becomes_unsure_has_lost_the_robot(relay: Any, truth: Truth, tmp_path: Path) -> None:
    localizer, options = relay
    with in_motion(truth, lambda: setattr(localizer, "std_m", 2.0)):
        ended = run(tmp_path, localizer=options)
    check(ended, LocalizationLost, f"localizer on {options['topic']}': has lost", "localize", Outcome.REACHED)


def test_an_episode_by_odometry_alone_is_measured_by_the_referee(truth: Truth, tmp_path: Path) -> None:
    ended = run(tmp_path, localizer={"source": "odometry"})
    assert ended.end.reason is EndReason.MAX_STEPS
    with LogReader(ended.log) as log:
        steps = list(log.steps(images=False))
    assert {step.pose.frame for step in steps} == {"odom"}
    assert {step.referee.frame for step in steps} == {"map"}
    first, last = steps[0], steps[-1]
    by_odometry = last.pose.pose.relative_to(first.pose.pose)
    assert by_odometry.distance_to(last.referee.pose.relative_to(first.referee.pose)) < 0.01
