"""Poses from outside: over UDP as a marker node sends them, and from a person after the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from object_sender import ObjectSender
from raising import raises_naming

from drivers.object_tracker import manual
from drivers.object_tracker.driver import UdpObjectTracker, make_tracker
from drivers.object_tracker.protocol import Sighting, decode, encode
from robot_runtime.common.clock import Clock, SimulatedClock, SystemClock, wait_for
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, RuntimeFault, StaleData
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.objects import ObjectPose, ObjectSource
from robot_runtime.scenes.scene import Frames, Room, Scene, SceneFile, SceneObject

NAN = math.nan
MUG = Sighting("mug", (1.0, 2.0, 0.75), (0.0, 0.0, 0.0, 1.0))
REALISTIC = st.floats(-100, 100)


@dataclass
class Hand:
    """As much of a manipulator as a tracker asks for."""

    held: tuple[str, ...] = ()


def scene() -> Scene:
    box = (0.1, 0.1, 0.1)
    objects = (
        SceneObject("mug", "Mug", (0, 0, 0.05), box, movable=True),
        SceneObject("bowl", "Bowl", (0, 0, 0.05), box, movable=True),
        SceneObject("table", "Table", (0, 0, 0.05), box),
    )
    frames = Frames({"cameras": (10.0, 0.0, 90.0)})
    file = SceneFile(1, "lab", (Room("r", "lab", ((0, 0), (1, 0), (0, 1))),), objects, frames=frames)
    return Scene(Path("lab"), file, cast(Any, None), {}, "0")


def make(clock: Clock, hand: Hand | None = None, **options: object) -> UdpObjectTracker:
    robot = cast(Robot, SimpleNamespace(clock=clock, manipulator=hand))
    made = make_tracker(robot, RobotContext(scene(), None, seed=0), {"port": 0, **options}, "lab.yaml: tracker.options")
    assert isinstance(made, UdpObjectTracker)
    return made


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock(1_000_000)


@pytest.fixture
def tracker(clock: SimulatedClock) -> Iterator[UdpObjectTracker]:
    with make(clock) as made:
        yield made


@pytest.fixture
def sender(tracker: UdpObjectTracker) -> Iterator[ObjectSender]:
    with ObjectSender(tracker.port) as made:
        yield made


def arrives(probe: Callable[[], bool]) -> bool:
    """Whether it comes to hold within the seconds that a loaded machine may need."""
    return wait_for(SystemClock(), lambda: probe() or None, 10.0, poll_s=0.002) is not None


def raised(tracker: UdpObjectTracker, max_age_s: float = 1.0) -> RuntimeFault | None:
    try:
        tracker.objects(max_age_s)
    except RuntimeFault as error:
        return error
    return None


@pytest.mark.slow
@given(st.tuples(REALISTIC, REALISTIC, REALISTIC), st.floats(0, 1e3), st.text(min_size=1, max_size=20))
def test_what_is_sent_is_what_is_received(position: tuple[float, float, float], age_s: float, name: str) -> None:
    first, second = Sighting(name, position, age_s=age_s), replace(MUG, frame="cameras")
    assert decode(encode(first) + encode(second)) == [first, second]


@given(st.binary(max_size=200))
def test_no_datagram_breaks_the_reader(datagram: bytes) -> None:
    with suppress(ConfigError):
        assert all(isinstance(item, Sighting) for item in decode(datagram))


def test_nothing_is_sent_that_json_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(replace(MUG, position=(NAN, 0.0, 0.0)))


def test_poses_arrive_in_map_whatever_frame_they_were_sent_in(tracker: UdpObjectTracker, sender: ObjectSender) -> None:
    sender.send([replace(MUG, quaternion=(1.0, 0.0, 0.0, 0.0), frame="cameras"), Sighting("bowl", (0.5, 0.5, 0.1))])
    assert arrives(lambda: len(tracker.objects(1.0).poses) == 2)
    found = tracker.objects(1.0)
    assert found.poses["mug"].position == pytest.approx((8.0, 1.0, 0.75))
    assert found.poses["mug"].quaternion == pytest.approx((math.sqrt(0.5), 0, 0, math.sqrt(0.5)))
    assert found.poses["bowl"] == ObjectPose((0.5, 0.5, 0.1))
    assert tracker.info.source is ObjectSource.TRACKER


def test_an_object_that_was_seen_too_long_ago_is_stale(
    tracker: UdpObjectTracker, sender: ObjectSender, clock: SimulatedClock
) -> None:
    sender.send([MUG])
    assert arrives(lambda: "mug" in tracker.objects(1.0).poses)
    clock.sleep(0.7)
    assert raised(tracker) is None
    clock.sleep(0.7)
    with raises_naming(StaleData, "'mug'", "1.40 s", "1 s"):
        tracker.objects(1.0)


def test_what_was_old_when_it_was_sent_is_as_old(
    tracker: UdpObjectTracker, sender: ObjectSender, clock: SimulatedClock
) -> None:
    clock.sleep(5.0)
    sender.send([replace(MUG, age_s=0.8)])
    assert arrives(lambda: bool(tracker.objects(1.0).poses))
    assert clock.now_ns() - tracker.objects(1.0).stamp_ns == 800_000_000
    sender.send([replace(MUG, position=(0.0, 0.0, 0.0), age_s=3.0), Sighting("bowl", (0.0, 0.0, 0.0))])
    assert arrives(lambda: "bowl" in tracker.objects(1.0).poses)
    assert tracker.objects(1.0).poses["mug"].position == MUG.position, "an older word does not replace a newer one"


def test_an_object_that_must_be_seen_is_missed(clock: SimulatedClock) -> None:
    with make(clock, objects=["mug", "bowl"]) as tracker, raises_naming(StaleData, "'mug'"):
        tracker.objects(1.0)


def test_what_is_in_the_hand_need_not_be_seen(clock: SimulatedClock) -> None:
    with make(clock, Hand(("mug",)), objects=["mug"]) as tracker:
        assert tracker.objects(1.0).held == ("mug",)
        assert tracker.objects(1.0).poses == {}


@pytest.mark.parametrize(
    ("line", "things"),
    [
        (b'{"object": "mug", "position": [NaN, 0, 0]}', ("position.0",)),
        (b'{"object": "mug", "position": [0, 0, 0], "quaternion": [0, 0, 0, 0]}', ("'mug'", "quaternion")),
        (b'{"object": "mug", "position": [0, 0, 0], "age_s": -1}', ("'mug'", "age_s")),
        (b'{"object": "mug", "position": [0, 0, 0], "frame": "moon"}', ("'mug'", "'moon'", "map, cameras")),
        (b'{"object": "mugg", "position": [0, 0, 0]}', ("'mugg'", "mug?")),
        (b'{"object": "table", "position": [0, 0, 0]}', ("'table'",)),
        (b'{"object": "mug", "position": [0, 0]}', ("position",)),
        (b'{"object": "mug"}', ("position",)),
        (b"\xff\xfe", ("JSON",)),
        (b"[" * 5000, ("JSON",)),
    ],
)
def test_a_word_that_cannot_be_used_is_reported(
    tracker: UdpObjectTracker, sender: ObjectSender, clock: SimulatedClock, line: bytes, things: tuple[str, ...]
) -> None:
    sender.send_bytes(line)
    assert arrives(lambda: raised(tracker) is not None)
    with raises_naming(DeviceFault, *things):
        tracker.objects(1.0)
    sender.send([MUG])
    clock.sleep(2.0)
    sender.send([MUG])
    assert arrives(lambda: raised(tracker) is None and bool(tracker.objects(1.0).poses))


def test_it_is_used_between_connect_and_close_only(clock: SimulatedClock) -> None:
    tracker = make(clock)
    for _ in range(2):
        with pytest.raises(NotConnected):
            tracker.objects(1.0)
        tracker.connect()
        tracker.connect()
        assert tracker.objects(1.0).poses == {}
        tracker.close()
        tracker.close()


def test_a_port_that_is_taken_is_named(clock: SimulatedClock, tracker: UdpObjectTracker) -> None:
    with raises_naming(DeviceFault, f"127.0.0.1:{tracker.port}"):
        make(clock, port=tracker.port).connect()


@pytest.mark.parametrize(
    "options", [{"port": 70000}, {"rate_hz": 0}, {"objects": ["mugg"]}, {"objects": ["table"]}, {"color": "red"}]
)
def test_bad_options_are_refused_by_name(clock: SimulatedClock, options: dict[str, object]) -> None:
    with raises_naming(ConfigError, "lab.yaml: tracker.options"):
        make(clock, **options)


def test_an_operator_says_nothing_while_the_robot_runs(clock: SimulatedClock) -> None:
    robot = cast(Robot, SimpleNamespace(clock=clock, manipulator=Hand(("mug",))))
    tracker = manual.make_tracker(robot, RobotContext(scene(), None, seed=0), {}, "lab.yaml")
    with pytest.raises(NotConnected):
        tracker.objects(1.0)
    with tracker:
        assert tracker.info.source is ObjectSource.OPERATOR
        assert tracker.objects(1.0).poses == {}
        assert tracker.objects(1.0).held == ("mug",)
        with pytest.raises(StaleData):
            tracker.objects(-1.0)


def test_a_robots_file_names_its_tracker(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    text = "name: lab\ndriver: drivers.fake.driver.make_robot\ntracker:\n  driver: drivers.object_tracker.{}\n"
    file.write_text(text.format("driver.make_tracker\n  options: {port: 0}"), encoding="utf-8")
    robot = load_robot(str(file), RobotContext(scene(), None, seed=0))
    assert isinstance(robot.tracker, UdpObjectTracker)
    assert robot.tracker in robot.devices
    file.write_text(text.format("driver.UdpObjectTracker"), encoding="utf-8")
    with raises_naming(ConfigError, "field 'driver'", "ObjectTracker"):
        load_robot(str(file), RobotContext(scene(), None, seed=0))
