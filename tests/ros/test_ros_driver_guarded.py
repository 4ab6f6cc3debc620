"""The driver in front of the guard node, which then owns the wheels: the same motion, its e-stop, its death."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rosgraph
import rospy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Pose2D, PoseStamped
from raising import raises_naming
from robot_runtime_simulation.srv import Place
from ros_processes import Program, eventually
from std_srvs.srv import SetBool

from drivers.ros.guard.logic import GuardStatus
from drivers.ros_locobot.driver import make_robot
from robot_runtime.actions.discrete import Displacement
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Halt, Robot, Velocity
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.loader import RobotContext

pytestmark = pytest.mark.slow

GUARD = ("-m", "sim_bridge.ros.simulated_guard")
OPTIONS: dict[str, Any] = {
    "family": "pyrobot-kobuki",
    "camera": {"mount": "habitat"},
    "base": {"guard": True},
    "placer": {"by": "simulation"},
    # Longer than the simulator's patience with a reader that has left, for which /clock stands still.
    "master": {"monitor_period_s": 0.1, "connect_timeout_s": 5.0},
}


@pytest.fixture(scope="module", autouse=True)
def _simulated(ros_node: str, ros_environ: dict[str, str], ros_master: str) -> Iterator[None]:
    program = Program([sys.executable, "-u", "-m", "sim_bridge.ros", "--camera", "80x60@79"], os.environ)
    try:
        program.wait_for_line("ready")
        yield
    finally:
        program.stop(signal.SIGKILL)
        rosgraph.Master("/tests").setParam("/use_sim_time", False)


@pytest.fixture
def guard(spawn: Any, tmp_path: Path) -> Iterator[Program]:
    parameters = {"master": {"monitor_period_s": 0.1}, "e_stop_file": str(tmp_path / "e_stop")}
    rospy.set_param("/robot_runtime_guard", {"family": "pyrobot-kobuki", **parameters})
    program = spawn(*GUARD)
    program.wait_for_line("commands pass")
    yield program
    program.stop(signal.SIGTERM)


@contextmanager
def robot() -> Iterator[Robot]:
    assert rospy.ServiceProxy("/simulation/place", Place)(Pose2D(1.2, 1.36, 0.0), 0.0).success
    made = make_robot(RobotContext(None, None, 0), "test", OPTIONS, "test")
    with made:
        made.clock.sleep(0.4)
        yield made


def test_motion_through_the_guard_is_as_exact_as_without(guard: Program) -> None:
    with robot() as made:
        motion = MotionController(made.clock, made.base, made.head)
        before = made.referee.latest(0.5).pose
        result = motion.execute(Displacement(forward_m=0.25))
        made.clock.sleep(0.1)
        moved = made.referee.at(made.clock.now_ns(), 1.0).pose.relative_to(before)
    assert result.outcome is Outcome.REACHED
    assert abs(moved.x_m - 0.25) < 0.01
    assert abs(moved.y_m) < 0.01


def test_its_emergency_stop_is_ours(guard: Program) -> None:
    stop = rospy.ServiceProxy("/robot_runtime_guard/emergency_stop", SetBool)
    with robot() as made:
        motion = MotionController(made.clock, made.base, made.head)
        stop(True)
        assert eventually(lambda: made.base.state(0.1).halt is Halt.E_STOP)
        assert motion.execute(Displacement(forward_m=0.25)).outcome is Outcome.STOPPED
        stop(False)
        assert eventually(lambda: made.base.state(0.1).halt is not Halt.E_STOP)
        assert motion.execute(Displacement(turn_rad=0.2)).outcome is Outcome.REACHED


def test_a_killed_guard_ends_the_action_as_a_fault_that_names_it(guard: Program) -> None:
    with robot() as made:
        motion = MotionController(made.clock, made.base, made.head)
        made.base.command(Velocity(0.2, 0.0))
        guard.stop(signal.SIGKILL)

        def noticed() -> bool:
            motion.execute(Displacement(turn_rad=0.1))
            return motion.fault is not None

        assert eventually(noticed)
        assert isinstance(motion.fault, DeviceFault)
        assert "/robot_runtime_guard/command: the guard node no longer subscribes" in motion.fault.message


def test_past_the_guard_nobody_drives(guard: Program) -> None:
    from geometry_msgs.msg import Twist

    with robot() as made:
        past = rospy.Publisher("/mobile_base/commands/velocity", Twist, queue_size=1)
        try:

            def noticed() -> bool:
                past.publish(Twist())
                try:
                    made.base.state(0.1)
                except DeviceFault:
                    return True
                return False

            assert eventually(noticed), "the same process as the runtime's, but past the guard"
        finally:
            past.unregister()


# A teleoperation that somebody forgot: full ahead, twice as often as the guard's zeros.
TELEOP = """
import rospy
from geometry_msgs.msg import Twist
rospy.init_node("teleop", disable_rostime=True)
out, command = rospy.Publisher("/mobile_base/commands/velocity", Twist, queue_size=1), Twist()
command.linear.x = 0.3
while not rospy.is_shutdown():
    out.publish(command)
    rospy.rostime.wallsleep(0.01)
"""


def test_a_forgotten_teleoperation_does_not_make_the_robot_creep(guard: Program, spawn: Any) -> None:
    reasons: list[str] = []
    truth: list[float] = []

    def standing(count: int) -> bool:
        """Whether so many further poses are equal, to the millimeter."""
        seen = len(truth)
        assert eventually(lambda: len(truth) >= seen + count)
        return max(truth[seen:]) - min(truth[seen:]) < 0.001

    endpoints = (
        rospy.Subscriber(
            "/robot_runtime_guard/status", DiagnosticArray, lambda m: reasons.append(GuardStatus.of(m).reason)
        ),
        rospy.Subscriber("/simulation/ground_truth", PoseStamped, lambda m: truth.append(m.pose.position.x)),
    )
    with robot():
        teleop = spawn("-c", TELEOP)
        assert eventually(lambda: reasons[-1:] == ["foreign_publisher"], alive=teleop), teleop.output
        assert eventually(lambda: standing(10))
        assert standing(50), "for a second"
    teleop.stop()
    assert eventually(lambda: reasons[-1] != "foreign_publisher")
    for endpoint in endpoints:
        endpoint.unregister()
    with robot() as made:
        motion = MotionController(made.clock, made.base, made.head)
        assert motion.execute(Displacement(turn_rad=0.2)).outcome is Outcome.REACHED, "motor power is on again"


def test_without_the_guard_node_there_is_no_connection() -> None:
    with raises_naming(DeviceFault, "/robot_runtime_guard/status"), robot():
        pass
