"""The guard node between a runtime and a base, all of them real nodes of a real master."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import rosgraph
import rospy
import std_msgs.msg
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist
from guard_rig import GUARD, Rig
from kobuki_msgs.msg import BumperEvent, CliffEvent, MotorPower, SensorState, WheelDropEvent
from nav_msgs.msg import Odometry
from ros_processes import LIMIT_S, eventually, is_subscribed
from std_msgs.msg import Bool

SPEED = 0.2


@pytest.fixture
def make_rig(ros_node: str, ros_name: str, tmp_path: Path, spawn: Any) -> Iterator[Callable[..., Rig]]:
    with ExitStack() as stack:

        def make(**parameters: Any) -> Rig:
            rig = Rig(ros_name, tmp_path, spawn, **parameters)
            stack.callback(rig.close)
            return rig

        yield make


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    """One that drives forward."""
    rig = make_rig()
    rig.requested = (SPEED, 0.0)
    assert rig.moves(linear=SPEED), rig.guard.output
    return rig


def test_commands_pass_and_the_status_says_so(rig: Rig) -> None:
    rig.requested = (SPEED, 0.5)
    assert rig.moves(linear=SPEED, angular=0.5)
    assert eventually(lambda: (rig.status.reason, rig.status.source, rig.status.notes) == ("none", "levels", ""))


def test_speed_is_limited_to_the_bases(rig: Rig) -> None:
    rig.requested = (5.0, 0.0)
    assert rig.moves(linear=0.7)
    assert max(linear for _, linear, _ in rig.wire) == pytest.approx(0.7)


@pytest.mark.slow
def test_contact_stops_forward_but_not_turning_until_it_is_released(rig: Rig) -> None:
    rig.press(bumper=SensorState.BUMPER_LEFT)
    assert rig.stands("contact")
    assert rig.status.bumper == "left"
    rig.requested = (0.0, 0.5)
    assert rig.moves(linear=0.0, angular=0.5)
    rig.requested = (-0.1, 0.0)
    assert rig.moves(linear=-0.1)
    rig.requested = (SPEED, 0.0)
    assert rig.stands("contact")
    rig.press()
    assert rig.moves(linear=SPEED)


@pytest.mark.parametrize(("sensor", "reason"), [("cliff", "cliff"), ("wheel_drop", "wheel_drop")])
def test_cliff_and_wheel_drop_stop(rig: Rig, sensor: str, reason: str) -> None:
    rig.press(**{sensor: 1})
    assert rig.stands(reason)
    assert getattr(rig.status, sensor) == "right"
    rig.press()
    assert rig.moves(linear=SPEED)


def test_a_runtime_that_falls_silent_is_stopped(rig: Rig) -> None:
    known = len(rig.statuses)
    rig.requested = None
    last_s = time.time()
    assert rig.stands("expired")
    expired_s = rig.told_s[[status.reason for status in rig.statuses].index("expired", known)]
    assert expired_s - last_s < 1.0, "0.2 s, and what a busy machine adds"
    rig.requested = (SPEED, 0.0)
    assert rig.moves(linear=SPEED)


def test_a_base_whose_sensors_fall_silent_is_stopped(rig: Rig) -> None:
    rig.core = None
    assert rig.stands("no_feedback")
    assert "s old" in rig.status.text
    rig.core = SensorState()
    assert rig.moves(linear=SPEED)


def test_emergency_stop_as_a_service_and_as_a_topic(rig: Rig) -> None:
    assert "refused" in rig.emergency_stop(True)
    assert rig.stands("e_stop")
    assert rig.status.e_stop
    rig.emergency_stop(False)
    assert rig.moves(linear=SPEED)
    button = rig.emergency_stop_topic()
    assert eventually(lambda: is_subscribed(button, rig.guard_name))
    button.publish(Bool(True))
    assert rig.stands("e_stop")
    button.publish(Bool(False))
    assert rig.moves(linear=SPEED)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.slow
def test_an_emergency_stop_survives_the_guards_restart(rig: Rig, sent: signal.Signals) -> None:
    rig.emergency_stop(True)
    assert rig.stands("e_stop")
    rig.guard.stop(sent)
    rig.statuses.clear()
    rig.start()
    assert rig.stands("e_stop"), rig.guard.output
    assert "since the guard's last run" in rig.status.text
    rig.emergency_stop(False)
    assert rig.moves(linear=SPEED)


def test_a_velocity_that_is_no_number_stops(rig: Rig) -> None:
    rig.requested = (math.nan, 0.0)
    assert eventually(lambda: "not finite" in rig.status.notes)
    assert rig.stands("none")


def test_status_is_latched(rig: Rig) -> None:
    rig.requested = None
    assert rig.stands("expired")

    def told_before_it_was_asked() -> bool:
        late: list[Any] = []
        asked = rospy.Time.now()
        subscriber = rospy.Subscriber(f"{rig.guard_name}/status", DiagnosticArray, late.append)
        assert eventually(lambda: late)
        subscriber.unregister()
        assert late[0]._connection_header["latching"] == "1"
        return bool(late[0].header.stamp < asked)

    assert eventually(told_before_it_was_asked), "it is told once a second as well, which may come between"


def test_a_second_publisher_is_named_and_nothing_moves_until_it_leaves(rig: Rig) -> None:
    stranger = rig.publisher("velocity", Twist)
    assert rig.stands("foreign_publisher")
    assert rospy.get_name() in rig.status.text
    stranger.unregister()
    assert rig.moves(linear=SPEED)


def test_motor_power_is_off_while_another_node_publishes(rig: Rig) -> None:
    switched: list[int] = []
    driver = rospy.Subscriber(rig.topics["motor_power"], MotorPower, lambda message: switched.append(message.state))
    stranger = rig.publisher("velocity", Twist)
    assert rig.stands("foreign_publisher")
    assert eventually(lambda: set(switched) == {MotorPower.OFF} and "motor power is off" in rig.status.text)
    stranger.unregister()
    assert rig.moves(linear=SPEED)
    assert eventually(lambda: switched[-1] == MotorPower.ON)
    driver.unregister()


def test_a_base_without_a_switch_of_its_motors_is_said_to_creep(make_rig: Callable[..., Rig], ros_name: str) -> None:
    rig = make_rig(family="pyrobot-create", topics={"velocity": f"{ros_name}/velocity"})
    rig.publisher(rig.topics["velocity"], Twist)
    assert eventually(lambda: rig.status and rig.status.reason == "foreign_publisher", alive=rig.guard)
    assert "no switch of motor power" in rig.status.text
    assert "creeps" in rig.status.text


# A second runtime, whose wish is to turn.
SECOND = """
import rospy, sys
from geometry_msgs.msg import Twist
rospy.init_node("second", anonymous=True)
wish, command = rospy.Publisher(sys.argv[1], Twist, queue_size=1), Twist()
command.angular.z = 0.5
while not rospy.is_shutdown():
    wish.publish(command)
    rospy.rostime.wallsleep(0.02)
"""


def test_a_second_runtime_is_refused_until_the_first_is_silent(rig: Rig, spawn: Any) -> None:
    second = spawn("-c", SECOND, f"{rig.guard_name}/command")
    assert eventually(lambda: "/second_" in rig.status.notes, alive=second), second.output
    assert f"because {rospy.get_name()} commands the robot" in rig.status.notes
    assert not any(angular for _, _, angular in rig.wire)
    rig.requested = None
    assert rig.moves(linear=0.0, angular=0.5)


def test_a_publisher_known_to_be_silent_is_let_be_until_it_speaks(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(base={"silent_publishers": [rospy.get_name()]})
    rig.requested = (SPEED, 0.0)
    multiplexer = rig.publisher("velocity", Twist)
    assert rig.moves(linear=SPEED)
    assert eventually(lambda: is_subscribed(multiplexer, rig.guard_name))
    multiplexer.publish(Twist())
    assert rig.stands("foreign_publisher"), rig.guard.output


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_zero_goes_out_when_the_guard_is_told_to_end(rig: Rig, sent: signal.Signals) -> None:
    assert rig.guard.stop(sent) == 0
    assert eventually(lambda: rig.wire[-1][1:] == (0.0, 0.0))
    assert eventually(lambda: rig.status.reason == "ended")
    assert rig.wire[-1][1:] == (0.0, 0.0)


@pytest.mark.slow
def test_after_a_killed_guard_nothing_reaches_the_base_until_the_next_one_is_released(rig: Rig) -> None:
    rig.guard.stop(signal.SIGKILL)
    rig.requested = None
    assert eventually(lambda: time.monotonic() - rig.wire[-1][0] > 0.3), "the base's own time limit takes over"
    rig.wire.clear()
    rig.statuses.clear()
    rig.start()
    rig.requested = (SPEED, 0.0)
    assert rig.stands("e_stop"), rig.guard.output
    rig.wire.clear()
    rig.emergency_stop(False)
    assert rig.moves(linear=SPEED)
    assert next(linear for _, linear, _ in rig.wire if linear) < SPEED, "speeds up anew"


@pytest.mark.slow
def test_a_guard_that_ended_in_order_starts_released(rig: Rig) -> None:
    assert rig.guard.stop(signal.SIGTERM) == 0
    rig.statuses.clear()
    rig.start()
    assert rig.moves(linear=SPEED), rig.guard.output
    assert not any(status.e_stop for status in rig.statuses)


def test_a_robot_of_another_family_is_noted(make_rig: Callable[..., Rig], ros_name: str) -> None:
    # A name of its own, and the first family of the table: other tests may have left topics of any family and of any
    # robot at this master.
    topics = {"velocity": f"{ros_name}/velocity", "core": f"{ros_name}/other"}
    rig = make_rig(family="interbotix", robot_name=ros_name.strip("/"), topics=topics)
    rig.publisher("/mobile_base/sensors/core", SensorState)
    assert eventually(lambda: rig.status and "of the family 'pyrobot-kobuki'" in rig.status.notes, alive=rig.guard)


def test_a_sensor_of_another_definition_is_named(make_rig: Callable[..., Rig], ros_name: str) -> None:
    rig = make_rig(topics={"velocity": f"{ros_name}/velocity", "core": f"{ros_name}/other"})
    rig.requested = (SPEED, 0.0)
    rig.publisher(f"{ros_name}/other", std_msgs.msg.Int16)
    assert eventually(lambda: rig.status and "std_msgs/Int16" in rig.status.notes), rig.guard.output
    assert SensorState._md5sum in rig.status.notes
    assert f"{ros_name}/other" in rig.status.notes
    assert rig.stands("no_feedback")


@pytest.mark.slow
def test_a_base_with_events_only(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.core = None
    events, odometry = rig.publisher("bumper", BumperEvent), rig.publisher("odom", Odometry)
    rig.requested = (SPEED, 0.0)

    def alive() -> bool:
        odometry.publish(Odometry())
        return bool(rig.status and rig.status.source == "events" and rig.wire and rig.wire[-1][1])

    def named() -> bool:
        odometry.publish(Odometry())
        return bool(rig.status and f"{rig.topics['cliff']} has no publisher" in rig.status.text)

    rig.publisher("wheel_drop", WheelDropEvent)
    assert eventually(named, poll_s=0.02), rig.guard.output
    rig.publisher("cliff", CliffEvent)
    assert eventually(alive, poll_s=0.02), rig.guard.output
    assert eventually(lambda: is_subscribed(events, rig.guard_name))
    events.publish(BumperEvent(bumper=BumperEvent.CENTER, state=BumperEvent.PRESSED))
    assert eventually(lambda: (alive(), rig.status.reason)[1] == "contact", poll_s=0.02)
    assert rig.status.bumper == "center"
    events.publish(BumperEvent(bumper=BumperEvent.CENTER, state=BumperEvent.RELEASED))
    assert eventually(lambda: alive() and rig.status.reason == "none", poll_s=0.02)


def safety(cliff: bool = False, wheel_drop: bool = False) -> DiagnosticArray:
    """As diagnostic_updater in ca_driver publishes it, among others."""
    values = [KeyValue("Wheeldrop", str(wheel_drop)), KeyValue("Cliff", str(cliff))]
    return DiagnosticArray(
        status=[
            DiagnosticStatus(name="ca_driver: Serial Status"),
            DiagnosticStatus(name="ca_driver: Safety Status", values=values),
        ]
    )


@pytest.mark.parametrize("package", ["ca_msgs", "create_msgs"])
def test_a_create_of_either_generation(make_rig: Callable[..., Rig], package: str) -> None:
    module = __import__(f"{package}.msg", fromlist=["Bumper"])
    rig = make_rig(family="pyrobot-create")
    bumper, diagnoses = rig.publisher("bumper", module.Bumper), rig.publisher("diagnostics", DiagnosticArray)
    rig.requested = (SPEED, 0.0)

    def eventually_at(reason: str, pressed: bool = False, drop: bool = False, cliff: bool | None = False) -> bool:
        def look() -> bool:
            bumper.publish(module.Bumper(is_left_pressed=pressed))
            if cliff is not None:
                diagnoses.publish(safety(cliff))
            if drop:
                dropped.publish(std_msgs.msg.Empty())
            return bool(rig.status and rig.status.reason == reason)

        return bool(eventually(look, poll_s=0.05, alive=rig.guard))

    assert eventually_at("no_feedback"), rig.guard.output
    assert eventually(lambda: f"{rig.topics['wheel_drop']} has no publisher" in rig.status.text)
    dropped = rig.publisher("wheel_drop", std_msgs.msg.Empty)
    assert eventually_at("none"), rig.guard.output
    assert eventually_at("contact", pressed=True)
    assert eventually_at("none")
    assert eventually_at("wheel_drop", drop=True)
    assert eventually_at("none")
    assert eventually_at("cliff", cliff=True)
    assert eventually_at("none")
    assert eventually_at("no_feedback", cliff=None), "the bumper alone does not protect from stairs"
    assert eventually(lambda: rig.topics["diagnostics"] in rig.status.text)


def test_the_guards_time_is_its_computers_whatever_the_parameter_says(make_rig: Callable[..., Rig]) -> None:
    """A robot with ``/use_sim_time`` left set, and nobody who publishes ``/clock``."""
    rospy.set_param("/use_sim_time", True)
    try:
        rig = make_rig()
        rig.requested = (SPEED, 0.0)
        assert rig.moves(linear=SPEED), rig.guard.output
        rig.requested = None
        assert rig.stands("expired"), rig.guard.output
        rig.core = None
        assert rig.stands("no_feedback"), rig.guard.output
    finally:
        rospy.delete_param("/use_sim_time")


# A base whose bumper is pressed for every other quarter of a second, and a runtime that wants forward all the time.
PUSHED = """
import rospy
from geometry_msgs.msg import Twist
from kobuki_msgs.msg import SensorState
rospy.init_node("pushed", anonymous=True)
core = rospy.Publisher("/core", SensorState, queue_size=1)
wish = rospy.Publisher("/robot_runtime_guard/command", Twist, queue_size=1)
command, told = Twist(), []
command.linear.x = 0.1
def on_wheels(message):
    word = {0.1: "moves", 0.0: "stands"}.get(message.linear.x)
    if word and told[-1:] != [word]:
        told.append(word)
        print(word, flush=True)
rospy.Subscriber("/velocity", Twist, on_wheels)
for tick in range(10**6):
    core.publish(SensorState(bumper=2 if tick % 24 < 12 else 0))
    wish.publish(command)
    rospy.rostime.wallsleep(0.02)
    if rospy.is_shutdown():
        break
"""


@pytest.mark.parametrize("fate", ["killed", "hung"])
@pytest.mark.slow
def test_the_guard_needs_no_master_and_knows_the_next_one(
    make_master: Any, spawn: Any, tmp_path: Path, fate: str
) -> None:
    master = make_master()
    parameters = {
        "family": "pyrobot-kobuki",
        "e_stop_file": str(tmp_path / "e_stop"),
        "topics": {"velocity": "/velocity", "core": "/core"},
        "master": {"monitor_period_s": 0.1, "timeout_s": 0.5},
    }
    rosgraph.Master("/test", master.uri).setParam("/robot_runtime_guard", parameters)
    guard = spawn(*GUARD, master=master.uri)
    first = spawn("-c", PUSHED, master=master.uri)
    assert eventually(lambda: first.lines.count("stands") >= 2, alive=guard), guard.output
    master.kill() if fate == "killed" else master.hang()
    seen = len(first.lines)
    assert eventually(lambda: len(first.lines) >= seen + 3, alive=guard), "contact stops, release moves, as before"
    assert first.stop(signal.SIGKILL)
    master.kill()
    master.start()
    second = spawn("-c", PUSHED, master=master.uri)
    assert eventually(lambda: second.lines.count("stands") >= 2, alive=guard), guard.output
    assert guard.stop() == 0


@pytest.mark.slow
def test_a_misspelt_parameter_is_named(ros_node: str, ros_name: str, spawn: Any) -> None:
    rospy.set_param(ros_name, {"family": "pyrobot-kobuki", "comand_timeout_s": 0.2})
    guard = spawn(*GUARD, f"__name:={ros_name.lstrip('/')}")
    assert guard.process.wait(LIMIT_S) == 2
    guard.stop()
    assert "comand_timeout_s" in guard.output
    assert "did you mean 'command_timeout_s'?" in guard.output


@pytest.mark.slow
def test_without_a_master_it_ends_and_says_so(spawn: Any, free_port: int) -> None:
    guard = spawn(*GUARD, master=f"http://127.0.0.1:{free_port}")
    assert guard.process.wait(LIMIT_S) == 7
    guard.stop()
    assert f"http://127.0.0.1:{free_port}" in guard.output
    assert "roscore" in guard.output
