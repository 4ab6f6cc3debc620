"""Bases written from ``docs/robots/own-robot.md``: its example, and one on the network; each with emulated wheels."""

from __future__ import annotations

import importlib
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from own_base_rig import Brook, Cart, Pebble

from robot_runtime.common.clock import SystemClock, wait_for
from robot_runtime.conformance import BaseConformance, ContactConformance
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, Device, Halt, LocalizerInfo, Robot, Velocity, Zone
from robot_runtime.hal.stand_ins import HistoryLocalizer
from robot_runtime.robots.loader import RobotContext, load_robot

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
sys.path.append(str(EXAMPLES))  # as for a user who stands there; a guard process finds the wire where this one does
DRIVERS = {Pebble: "own_base", Brook: "brook_base"}
EXPIRY_S = 0.2
PATIENCE_S = 20.0
FORWARD = Velocity(0.2, 0.0)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_real_time")]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class _NoCamera(Device):
    """In place of the camera that a robot's file would name."""

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass


def robot_file(folder: Path, driver: str, port: str) -> Path:
    path = folder / "mine.yaml"
    options = f"{{{'port' if driver == 'own_base' else 'address'}: '{port}'}}"
    path.write_text(
        "name: mine\ndriver: drivers.locobot.driver.make_robot\n"
        f"base: {{driver: {driver}.make_base, options: {options}}}\n",
        encoding="utf-8",
    )
    return path


def make_robot(folder: Path, cart: Cart) -> Robot:
    """The robot of the page, with a referee that goes on when the base is closed, as an external tracker does."""
    robot = load_robot(str(robot_file(folder, DRIVERS[type(cart)], cart.port)), RobotContext(None, None, seed=0))
    referee = HistoryLocalizer(LocalizerInfo("tracker", "odom", 100.0), robot.clock, cart.truth)
    return replace(robot, camera=cast(Camera, _NoCamera()), referee=referee)


class _Emulated:
    kind: ClassVar[type[Cart]]
    wall_x_m: ClassVar[float] = math.inf
    carts: ClassVar[list[Cart]] = []

    @pytest.fixture(autouse=True)
    def _in_folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        yield
        while self.carts:
            self.carts.pop().close()

    def make_robot(self) -> Robot:
        self.carts.append(self.kind())
        self.carts[-1].wall_x_m = self.wall_x_m
        return make_robot(self.folder, self.carts[-1])


class TestPebble(_Emulated, BaseConformance):
    kind = Pebble


class TestBrook(_Emulated, BaseConformance):
    kind = Brook


class TestBrookAtWall(_Emulated, ContactConformance):
    kind, wall_x_m = Brook, 0.3


@pytest.fixture(params=[Pebble, Brook])
def cart(request: pytest.FixtureRequest) -> Iterator[Cart]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def robot(cart: Cart, tmp_path: Path) -> Iterator[Robot]:
    with make_robot(tmp_path, cart) as made:
        yield made


RUNTIME = """
import sys, time
sys.path[:0] = sys.argv[2:]
from robot_runtime.hal import Velocity
from robot_runtime.robots.loader import RobotContext, load_robot
base = load_robot(sys.argv[1], RobotContext(None, None, seed=0)).base
base.connect()
while True:
    base.command(Velocity(0.2, 0.5))
    time.sleep(0.02)
"""


@pytest.mark.parametrize(("driver", "kind"), [("own_base", Pebble), ("brook_base", Brook), ("library_base", Brook)])
def test_wheels_are_at_zero_within_the_commands_expiry_after_kill_9(
    tmp_path: Path, driver: str, kind: type[Cart]
) -> None:
    where = [str(EXAMPLES), str(Path(__file__).parent / "support")]
    cart = kind()
    file = robot_file(tmp_path, driver, cart.port)
    with subprocess.Popen([sys.executable, "-c", RUNTIME, str(file), *where]) as runtime:
        assert wait_for(SystemClock(), lambda: cart.wheels_m_s[1] > 0.2 or None, PATIENCE_S, 0.01)
        runtime.send_signal(signal.SIGKILL)
        assert cart.stands_within_s(2.0) <= EXPIRY_S
    assert cart.travel_m[1] > cart.travel_m[0]
    cart.close()


def test_the_examples_are_short() -> None:
    for name, most in (("own_base", 60), ("brook_base", 70)):
        source = Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8")
        assert len(source.splitlines()) <= most


def drive(robot: Robot, seconds: float) -> None:
    for _ in range(round(seconds / 0.02)):
        robot.base.command(FORWARD)
        robot.clock.sleep(0.02)


@pytest.mark.parametrize(
    ("level", "halt"), [("bumper", Halt.CONTACT), ("cliff", Halt.CLIFF), ("wheel_drop", Halt.WHEEL_DROP)]
)
def test_a_level_holds_the_wheels(robot: Robot, cart: Cart, level: str, halt: Halt) -> None:
    if isinstance(cart, Pebble) and level != "bumper":
        pytest.skip("it has no such sensor")
    drive(robot, 0.3)
    assert cart.wheels_m_s[0] > 0.1
    setattr(cart, level, Zone.LEFT)
    drive(robot, 0.15)
    state = robot.base.state(0.2)
    assert (getattr(state, level), state.halt) == (Zone.LEFT, halt)
    assert cart.wheels_m_s == (0.0, 0.0)


def test_a_base_that_does_not_know_its_battery_says_so(robot: Robot) -> None:
    state = robot.base.state(0.5)
    assert math.isnan(state.battery_v)
    assert math.isnan(state.battery_fraction)
    assert state.battery == "unknown charge"


@pytest.mark.parametrize("noise", [b"", b"x"])
def test_a_base_without_reports_is_stopped_and_stale(robot: Robot, cart: Cart, noise: bytes) -> None:
    drive(robot, 0.1)
    cart.garbage, cart.silent = noise, True
    robot.clock.sleep(0.4)
    assert cart.wheels_m_s == (0.0, 0.0)
    with pytest.raises(StaleData):
        robot.base.state(0.1)


def test_garbage_on_the_wire_costs_nothing(robot: Robot, cart: Cart) -> None:
    cart.garbage = b"Rx\x00R" if isinstance(cart, Pebble) else b"state 7\xff\n"
    robot.clock.sleep(0.3)
    for _ in range(10):  # a busy computer makes the ramp begin again
        drive(robot, 0.3)
    state = robot.base.state(0.2)
    assert state.halt is Halt.NONE
    assert state.velocity.linear_m_s > 0.1
    assert state.odom.x_m == pytest.approx(sum(cart.travel_m) / 2, abs=0.05)


def test_encoders_that_wrap_around_and_a_base_that_was_restarted_leave_odometry_alone(robot: Robot, cart: Cart) -> None:
    drive(robot, 0.8)  # past the wrap of the Brook's encoders, 0.11 m from its start
    robot.base.stop()
    robot.clock.sleep(0.3)
    assert robot.base.state(0.2).odom.x_m == pytest.approx(sum(cart.travel_m) / 2, abs=0.01)
    before = robot.base.state(0.2).odom
    cart.silent = True
    robot.clock.sleep(0.7)  # the guard process greets it again
    cart.travel_m, cart.silent = (5.0, 5.0), False
    robot.clock.sleep(0.3)
    assert robot.base.state(0.2).odom.distance_to(before) < 0.01


def test_an_unplugged_base_can_be_stopped_and_closed(robot: Robot, cart: Cart) -> None:
    cart.close()
    robot.clock.sleep(0.3)
    robot.base.stop()
    robot.base.emergency_stop()
    with pytest.raises(StaleData):
        robot.base.state(0.1)
    robot.close()


@pytest.mark.parametrize(
    ("driver", "port"), [("own_base", "/dev/absent"), ("brook_base", "127.0.0.1:1"), ("brook_base", "absent")]
)
def test_a_base_that_is_not_there_is_named(tmp_path: Path, driver: str, port: str) -> None:
    path = robot_file(tmp_path, driver, port)
    base: Any = load_robot(str(path), RobotContext(None, None, seed=0)).base
    with pytest.raises(DeviceFault, match=port):
        base.connect()


def test_a_robot_without_a_camera_says_so(cart: Cart, tmp_path: Path) -> None:
    robot = load_robot(str(robot_file(tmp_path, DRIVERS[type(cart)], cart.port)), RobotContext(None, None, seed=0))
    with pytest.raises(DeviceFault, match="camera"):
        robot.connect()
