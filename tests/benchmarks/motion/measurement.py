"""Actions of one base under several laws, and the identification of its motors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from drivers.fake.faults import StuckBumper
from robot_runtime.actions.discrete import Displacement
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.motors import KnownMotors, MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.identification import MotorFit
from robot_runtime.motion.identification_drive import IdentificationDrive
from robot_runtime.records import Outcome
from tests.benchmarks.motion.bases import INFO, BenchRobot, RandomBase, random_base
from tests.benchmarks.motion.rival_laws import proportional, threshold
from tests.benchmarks.motion.second_order import second_order_base
from tests.benchmarks.motion.time_bound import shortest_s
from tests.support.motor_identification import identify_motors

FORWARD = Displacement(forward_m=0.25)
LEFT, RIGHT = Displacement(turn_rad=math.radians(30)), Displacement(turn_rad=math.radians(-30))
LAP = (FORWARD, LEFT, RIGHT, FORWARD)

CONTACTS = 40
CONTACT_S = (0.8, 1.4)
"""Trials of contact, and when after the beginning of half a meter it happens: the robot is at its speed."""

Action = Callable[[BenchRobot, Displacement], bool]
"""Carries out an action on a robot; whether it was reached."""


@dataclass
class Actions:
    """Results of the actions of one base under one law.

    Attributes:
        reached: success of each action.
        forward_mm: error of the distance of each step.
        turn_deg: error of each turn.
        seconds: duration of each action, until rest.
        over_bound: duration of each action divided by the shortest possible one.
        details: descriptions of the actions that failed.
    """

    reached: list[bool] = field(default_factory=list)
    forward_mm: list[float] = field(default_factory=list)
    turn_deg: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    over_bound: list[float] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, other: Actions) -> None:
        """Add another base's."""
        for name in self.__dataclass_fields__:
            getattr(self, name).extend(getattr(other, name))


@dataclass(frozen=True)
class BaseResult:
    """Of one base.

    Attributes:
        base: base that was measured.
        laws: actions by the name of the law.
        found: identified model; None where the drive or the fit failed.
        failure: reason why the identification failed; empty where it succeeded.
        drive_s: duration of its drive.
        extent_m: greatest distance from its start.
    """

    base: RandomBase
    laws: dict[str, Actions]
    found: MotorModel | None
    failure: str
    drive_s: float
    extent_m: float


@dataclass(frozen=True)
class Plan:
    """Settings of a measurement.

    Attributes:
        seed: random seed of the bases.
        actions: number of actions of each base.
        second_order: whether the bases are of the family that the controller's model does not contain, without rivals.
    """

    seed: int
    actions: int
    second_order: bool = False

    def __call__(self, numbers: Iterable[int]) -> Iterator[BaseResult]:
        """Results of the bases of these numbers."""
        for number in numbers:
            if self.second_order:
                yield measure(second_order_base(number, self.seed), self.actions, rivals=False)
            else:
                yield measure(random_base(number, self.seed), self.actions)


def measure(base: RandomBase, actions: int, rivals: bool = True) -> BaseResult:
    """This project's controller on one base, and other laws."""
    found, failure, drive = identify(base)
    known = None if found is None else KnownMotors(found.model, calibrated=True)
    laws = {
        "calibrated": controlled(base, known or KnownMotors(base.nominal), actions),
        "uncalibrated": controlled(base, KnownMotors(base.nominal), actions),
    }
    if rivals:
        laws["proportional"] = driven(BenchRobot(base), proportional, actions)
        laws["threshold"] = driven(BenchRobot(base), threshold, actions)
    model = None if found is None else found.model
    return BaseResult(base, laws, model, failure, drive.seconds, drive.extent_m)


def identify(base: RandomBase) -> tuple[MotorFit | None, str, IdentificationDrive]:
    """Identify the motors of a base as ``robot-runtime calibrate motors`` does, from its type's nominal model."""
    robot, start = BenchRobot(base), base.nominal
    drive = IdentificationDrive(robot.clock, robot.base, start.separation_m)
    try:
        return identify_motors(drive, start), "", drive
    except RuntimeFault as error:
        return None, error.message, drive


def controlled(base: RandomBase, known: KnownMotors, actions: int) -> Actions:
    """Actions under this project's controller."""
    robot = BenchRobot(base, known)
    motion = MotionController(robot.clock, robot.base, robot.head)
    details: list[str] = []

    def execute(_: BenchRobot, displacement: Displacement) -> bool:
        result = motion.execute(displacement)
        if result.outcome is not Outcome.REACHED:
            details.append(f"{result.outcome.value}: {result.detail}")
        return result.outcome is Outcome.REACHED

    done = driven(robot, execute, actions)
    done.details.extend(details)
    return done


def driven(robot: BenchRobot, execute: Action, actions: int) -> Actions:
    """Actions under any law, timed until the robot rests and the law has ended."""
    done = Actions()
    base = robot.random_base
    shortest = {FORWARD: shortest_s(base, FORWARD), LEFT: shortest_s(base, LEFT)}
    shortest[RIGHT] = shortest[LEFT]
    for index in range(actions):
        displacement = LAP[index % len(LAP)]
        before, begin_ns = robot.truth.odom, robot.clock.now_ns()
        done.reached.append(execute(robot, displacement))
        end_ns = robot.clock.now_ns()
        rest_ns = robot.wait_for_rest()
        moved = robot.truth.odom.relative_to(before)
        if displacement.forward_m:
            done.forward_mm.append(1000 * abs(moved.x_m - displacement.forward_m))
        else:
            done.turn_deg.append(math.degrees(abs(wrap_angle(moved.yaw_rad - displacement.turn_rad))))
        done.seconds.append(ns_to_seconds(max(end_ns, rest_ns) - begin_ns))
        done.over_bound.append(done.seconds[-1] / shortest[displacement])
    return done


class Trace:
    """Way of a robot at every step of its clock.

    Args:
        robot: robot in the plane.

    Attributes:
        forward_m: positions along the world's x axis.
    """

    def __init__(self, robot: BenchRobot) -> None:
        self.forward_m: list[float] = []
        self._truth = robot.truth
        robot.clock.add_listener(self._note)

    def _note(self, now_ns: int) -> None:
        self.forward_m.append(self._truth.odom.x_m)


def contacts(delay_s: float, seed: int) -> list[float]:
    """Ways of a robot from contact to rest, millimeters.

    Args:
        delay_s: dead time and lag of its motors, half of it each, which its controller knows.
        seed: random seed of the instants of contact.
    """
    random = np.random.default_rng(seed)
    motors = MotorOptions(dead_time_s=delay_s / 2, lag_s=delay_s / 2)
    known = KnownMotors(motors.true, calibrated=True)
    ways_mm = []
    for contact_s in random.uniform(*CONTACT_S, CONTACTS).tolist():
        robot = BenchRobot(RandomBase(0, motors, 1.0), known, (StuckBumper(contact_s),))
        motion = MotionController(robot.clock, robot.base, robot.head)
        trace = Trace(robot)
        motion.execute(Displacement(forward_m=0.5))
        robot.wait_for_rest()
        at = math.ceil(contact_s * INFO.rate_hz) - 1
        ways_mm.append(1000 * (trace.forward_m[-1] - trace.forward_m[at]))
    return ways_mm
