"""Decisions that do not settle over serial bytes, in real time: the policy computes while the robot drives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from emulated_base import comes_to_rest, in_real_time
from kinematic_body import KinematicBody
from open_room import make_fake, make_task

from drivers.kobuki.emulator import EmulatedKobuki
from robot_runtime.actions.timed import Control, TrajectoryControl, stamped, trajectory, velocity
from robot_runtime.common.clock import SystemClock
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.hal import BaseState
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.pursuit import Pursuit
from robot_runtime.records import ActionResult, Outcome, SentCommand, Subscriber

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_real_time")]

CLOCK = SystemClock()
LIMITS = TrajectoryControl((0.0, 0.4), 1.5, 0.25, max_age_s=0.6, max_standing_s=2.0)


class Heard(Subscriber):
    """What the loop has read and sent, and in which thread it was handed over."""

    def __init__(self) -> None:
        self.states: list[BaseState] = []
        self.commands: list[SentCommand] = []
        self.threads: set[int] = set()

    def on_base_state(self, state: BaseState) -> None:
        self.states.append(state)
        self.threads.add(threading.get_ident())

    def on_command(self, command: SentCommand) -> None:
        self.commands.append(command)


class Driver:
    """A pursuit of a Kobuki over a pty, for decisions that take their time."""

    def __init__(self, pursuit: Pursuit, motion: MotionController, body: KinematicBody, heard: Heard) -> None:
        self.pursuit, self.motion, self.body, self.heard = pursuit, motion, body, heard

    def decide(self, action: Any, thinking_s: float) -> ActionResult:
        exposed_ns = CLOCK.now_ns()
        time.sleep(thinking_s)
        self.pursuit.decided(thinking_s, exposed_ns)
        return self.pursuit.step(stamped(action, exposed_ns), exposed_ns)


@contextmanager
def driven(folder: Path) -> Iterator[Driver]:
    with in_real_time(EmulatedKobuki, "drivers.kobuki.wire:KobukiWire", folder) as (base, body):
        base.connect()
        robot = replace(make_fake(make_task()), clock=CLOCK, base=base)
        motion = MotionController(CLOCK, base, robot.head)
        heard = Heard()
        pursuit = Pursuit(robot, motion, Control((0.0, 0.0), trajectory=LIMITS), heard)
        try:
            yield Driver(pursuit, motion, body, heard)
        finally:
            motion.stop()


def test_the_robot_drives_while_the_policy_decides_and_stops_by_the_age_of_its_answer(tmp_path: Path) -> None:
    with driven(tmp_path) as driver:
        ahead = trajectory([(0.05 * k, 0.0) for k in range(1, 25)], 0.25)
        outcomes = [driver.decide(ahead, 0.15).outcome for _ in range(6)]
        assert outcomes[-1] is Outcome.MOVING
        before_m = driver.body.wheels_m
        result = driver.decide(ahead, 0.2)
        assert driver.body.wheels_m[0] - before_m[0] > 0.02, "it stood while the policy decided"
        assert result.pursued is not None
        assert 0.2 <= result.pursued.age_s < 0.6
        time.sleep(1.0)  # the policy hangs
        assert comes_to_rest(driver.body, 1.0)
        late = driver.decide(ahead, 0.7)
        assert late.outcome is Outcome.TIMED_OUT
        assert late.pursued is not None
        assert late.pursued.standing_s > 0.5
        with pytest.raises(PolicyError):
            driver.decide(ahead, 2.0)
        assert driver.heard.threads == {threading.get_ident()}
        assert len(driver.heard.states) > 40
        assert any(command.linear_m_s > 0 for command in driver.heard.commands)


def test_a_stop_from_outside_ends_the_loop_with_the_wheels_at_zero(tmp_path: Path) -> None:
    with driven(tmp_path) as driver:
        for _ in range(3):
            driver.decide(velocity(0.2, 0.0, settle=False), 0.1)
        driver.motion.stop()
        assert comes_to_rest(driver.body, 1.0)
        assert not any(thread.name == "pursuit" for thread in threading.enumerate())
        driver.decide(velocity(0.2, 0.0, settle=False), 0.1)  # and begins again
        driver.motion.begin_action()
        assert comes_to_rest(driver.body, 0.2)


def test_a_base_that_is_lost_meanwhile_is_a_fault_of_the_next_decision(tmp_path: Path) -> None:
    with driven(tmp_path) as driver:
        driver.decide(velocity(0.2, 0.0, settle=False), 0.1)
        driver.pursuit._base.close()
        with pytest.raises(RuntimeFault):
            driver.decide(velocity(0.2, 0.0, settle=False), 0.5)
        assert not any(thread.name == "pursuit" for thread in threading.enumerate())
        assert comes_to_rest(driver.body, 1.0)
        driver.pursuit._base.connect()
