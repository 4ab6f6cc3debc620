"""`robot-runtime run` over ROS when a process dies under it: master, guard, or the runtime itself."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from genpy.dynamic import generate_dynamic
from ros_processes import LIMIT_S, Master, Program
from ros_truth import Truth

from robot_runtime.common.config import find_preset
from robot_runtime.hal.motors import KOBUKI_MOTORS
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EndReason, EpisodeEnd, Outcome

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
GUARDS = {"sim": ("-m", "sim_bridge.ros.simulated_guard"), "real": ("-m", "drivers.ros_locobot.guard")}

COMMAND_LOSS_S = 0.4 + KOBUKI_MOTORS.settling_s
"""From the last word of a runtime to rest: 0.2 s until it counts as lost, a period of base and guard, and how far the
robot's time may be ahead of what is known of it."""

BASE_ALONE_S = 0.9 + KOBUKI_MOTORS.settling_s
"""Without a guard the base's own driver stops the wheels: after 0.6 s, looked at ten times a second."""


class Network:
    """A master, a simulated robot, the guard, and programs that run on it."""

    def __init__(self, stack: ExitStack, environ: Mapping[str, str], clock: str = "sim") -> None:
        # Each has a home of its own, where a killed guard leaves its emergency stop engaged.
        self._stack, self._environ = stack, {**environ, "ROS_HOME": stack.enter_context(TemporaryDirectory())}
        self.master = Master(environ)
        stack.callback(self.master.kill)
        self.robot = self.start("-m", "sim_bridge.ros", "--camera", "80x60@79", "--clock", clock)
        self.robot.wait_for_line("ready")
        self.truth = Truth(self.start(str(HERE / "truth_program.py")))
        self.guard = self.start(*GUARDS[clock], "__name:=robot_runtime_guard", "_family:=pyrobot-kobuki")
        self.guard.wait_for_line("commands pass")

    def start(self, *arguments: str) -> Program:
        environ = {**self._environ, "ROS_MASTER_URI": self.master.uri, "PYTHONPATH": str(HERE)}
        program = Program([sys.executable, "-u", *arguments], environ)
        self._stack.callback(program.stop, signal.SIGKILL)
        return program


@pytest.fixture
def network(ros_environ: dict[str, str]) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack, ros_environ)


@pytest.fixture
def network_in_real_time(ros_environ: dict[str, str]) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack, ros_environ, clock="real")


@dataclass
class Running:
    """`robot-runtime run`, under way."""

    program: Program
    out: Path

    @property
    def log(self) -> Path:
        (log,) = self.out.glob("*.mcap")
        return log

    def fails(self) -> tuple[str, EpisodeEnd]:
        """What it says when it has ended by itself, and the end in its log."""
        assert self.program.process.wait(LIMIT_S) > 0, self.program.output
        self.program.stop()
        with LogReader(self.log) as log:
            assert log.complete
            assert list(log.steps())
            assert log.end is not None
            assert log.end.reason is EndReason.FAULT
            return self.program.output, log.end


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a task whose camera is small."""
    task = yaml.safe_load(find_preset("tasks", "pointnav_gps_compass").read_text(encoding="utf-8"))
    task["camera"] |= {"width": 80, "height": 60}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    return tmp_path


def run(network: Network, files: Path, name: str = "logs", robot: str = "locobot-ros-pyrobot") -> Running:
    arguments = ("--robot", robot, "--task", str(files / "task.yaml"), "--agent", "pacing_agent:Pacing", "--count", "1")
    out = files / name
    return Running(network.start("-m", "robot_runtime", "run", *arguments, "--out", str(out)), out)


def in_motion(network: Network, files: Path, name: str = "logs") -> Running:
    """A run whose robot moves."""
    running = run(network, files, name)
    network.truth.wait_for_motion(running.program)
    return running


def test_a_runtime_that_is_cut_off_or_killed_leaves_the_wheels_at_rest(network: Network, files: Path) -> None:
    running = in_motion(network, files, "cut off")
    running.program.process.send_signal(signal.SIGSTOP)  # alive, connected, and silent
    assert network.truth.rest_from_now(watch_s=1.5) < COMMAND_LOSS_S
    running.program.process.send_signal(signal.SIGCONT)
    said, _ = running.fails()
    assert "error: topic /" in said
    running = in_motion(network, files, "killed")
    running.program.stop(signal.SIGKILL)
    assert network.truth.rest_from_now(watch_s=1.5) < COMMAND_LOSS_S
    with LogReader(running.log) as log:
        assert not log.complete
        assert log.header.robot == "locobot-ros-pyrobot"
        assert [step.index for step in log.steps()]


def test_a_killed_guard_ends_the_run(network: Network, files: Path) -> None:
    running = in_motion(network, files)
    network.guard.stop(signal.SIGKILL)
    assert network.truth.rest_from_now(watch_s=2.0) < BASE_ALONE_S
    said, end = running.fails()
    assert "/robot_runtime_guard/command: the guard node no longer subscribes" in said.replace("\n", " ")
    assert "start it again" in said.replace("\n", " ")
    assert end.result is not None
    assert end.result.outcome is Outcome.FAULT


@pytest.mark.parametrize(
    "comes_back", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["gone", "restarted"]
)
def test_a_master_that_dies_ends_the_run(comes_back: bool, network: Network, files: Path) -> None:
    running = in_motion(network, files)
    network.master.kill()
    if comes_back:
        network.master.start()
    said, end = running.fails()
    assert network.truth.rest_from_now(watch_s=1.0) < COMMAND_LOSS_S
    assert network.master.uri in said
    # One that comes back is noticed as the one that has gone, or as another one, whichever is looked at first.
    assert "does not answer" in said or (comes_back and "was restarted" in said)
    assert "remedy: start" in said
    assert "ROS master" in end.detail


def test_another_definition_on_a_sensors_topic_ends_the_run_before_it_begins(network: Network, files: Path) -> None:
    wrong = files / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    publisher = network.start(str(wrong))
    publisher.wait_for_line("up")
    preset = yaml.safe_load(find_preset("robots", "locobot-ros-pyrobot").read_text(encoding="utf-8"))
    preset["options"]["topics"] = {"core": "/other/core"}
    (files / "robot.yaml").write_text(yaml.safe_dump(preset), encoding="utf-8")
    running = run(network, files, robot=str(files / "robot.yaml"))
    assert running.program.process.wait(LIMIT_S) > 0
    said = running.program.output.replace("\n", " ")
    assert "topic /other/core" in said
    assert generate_dynamic("kobuki_msgs/SensorState", "uint8 bumper\n")["kobuki_msgs/SensorState"]._md5sum in said
    assert "build ros_ws" in said
    assert network.truth.poses()


WRONG = """
import rospy, threading
from genpy.dynamic import generate_dynamic
rospy.init_node("other_robot", disable_rostime=True)
kind = generate_dynamic("kobuki_msgs/SensorState", "uint8 bumper\\n")["kobuki_msgs/SensorState"]
rospy.Publisher("/other/core", kind, queue_size=1)
print("up", flush=True)
rospy.spin()
"""


@pytest.mark.parametrize(
    ("skew_s", "says"),
    [(3.0, "in the future, 0.05 s is allowed"), pytest.param(-3.0, "s old, 0.05 s is", marks=pytest.mark.exhaustive)],
)
def test_computers_whose_clocks_disagree_do_not_drive(
    skew_s: float, says: str, network_in_real_time: Network, files: Path
) -> None:
    network_in_real_time.start("-c", SKEW, str(skew_s)).wait_for_line("begun")
    running = run(network_in_real_time, files)
    assert running.program.process.wait(LIMIT_S) > 0
    said = running.program.output.replace("\n", " ")
    assert says in said
    assert "chrony" in said
    truth = network_in_real_time.truth
    assert truth.rest_from_now(watch_s=0.5) < 0.1


SKEW = """
import rospy, sys
from robot_runtime_simulation.srv import SetFault
assert rospy.ServiceProxy("/simulation/fault", SetFault)("clock_skew_s", float(sys.argv[1])).success
print("begun", flush=True)
"""


def test_nothing_to_drive_is_said_in_two_lines(make_master: Any, spawn: Any, files: Path) -> None:
    master = make_master()
    arguments = ("-m", "robot_runtime", "run", "--robot", "locobot-ros-pyrobot", "--task", str(files / "task.yaml"))
    nobody = spawn(*arguments, master=master.uri)
    assert nobody.process.wait(LIMIT_S) > 0
    assert "has no publisher" in nobody.output.replace("\n", " ")
    assert "remedy: start its node" in nobody.output
    master.kill()
    gone = spawn(*arguments, master=master.uri)
    assert gone.process.wait(LIMIT_S) > 0
    assert f"ROS master {master.uri} does not answer" in gone.output.replace("\n", " ")
    assert "remedy: start roscore" in gone.output
