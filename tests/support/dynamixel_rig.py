"""A robot without physics whose head is two emulated servos, and a bus of servos in real time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from clockwork_simulation import ClockworkSimulation
from pty_server import PtyServer

from drivers.dynamixel.driver import DynamixelHead
from drivers.dynamixel.emulator import EmulatedServo, EmulatorOptions, ServoLine
from drivers.dynamixel.link import EmulatedLink
from drivers.dynamixel.options import DynamixelOptions
from drivers.fake.driver import make_robot
from drivers.serial_wire.pty_emulation import Pty
from robot_runtime.common import config
from robot_runtime.common.clock import SimulatedClock, wait_for
from robot_runtime.hal import HeadState, Robot
from robot_runtime.robots.loader import RobotContext


class HeadSimulation(ClockworkSimulation):
    """Ground truth of a robot whose only moving part is its head."""

    def __init__(self, clock: SimulatedClock, robot: Robot, seed: int) -> None:
        super().__init__(clock)
        self._robot, self._seed = robot, seed

    def head_angles(self) -> tuple[float, float]:
        state = self._robot.head.state(1.0)
        return state.pan_rad, state.tilt_rad

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng(self._seed)


class HeadRig:
    """An emulated pan-tilt on a simulated clock."""

    def __init__(self, seed: int = 0, **options: object) -> None:
        context = RobotContext(None, None, seed=0)
        image = {"width": 64, "height": 36, "hfov_deg": 60.0, "head_speed_rad_s": 6.0}
        robot = make_robot(context, "fake", image, "test")
        assert isinstance(robot.clock, SimulatedClock)
        self.clock = robot.clock
        chosen = config.parse({"variant": "interbotix", "port": "/dev/test", **options}, DynamixelOptions, "test")
        self.link = EmulatedLink(HeadSimulation(robot.clock, robot, seed), robot.head, chosen)
        self.head = DynamixelHead(robot.clock, chosen, self.link)
        self.robot = replace(robot, head=self.head)
        self.pan, self.tilt = self.link.servos

    def look(self, pan_rad: float, tilt_rad: float, timeout_s: float = 5.0) -> HeadState:
        """Command, and return the state at rest or after the timeout."""
        self.head.command(pan_rad, tilt_rad)
        wait_for(self.clock, lambda: None if self.head.state(0.2).moving else True, timeout_s, 0.02)
        return self.head.state(0.2)


@contextmanager
def servos_in_real_time(*servos: EmulatedServo, **options: object) -> Iterator[str]:
    """Run servos at the end of a pty; yields its path."""
    terminal = Pty()
    emulator = config.parse(options, EmulatorOptions, "test")
    with PtyServer(terminal, ServoLine(servos, emulator, np.random.default_rng(0))):
        yield terminal.path
