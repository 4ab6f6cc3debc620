"""Procedure of all calibrations: record, solve, verify on held-out captures, write.

Each calibration is a :class:`Procedure`, executed by :func:`calibrate`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from calibration.operator_guide import Guide
from robot_runtime.actions.discrete import Displacement
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.robots.calibration_file import CalibrationFile, Stamp, write_calibration

C = TypeVar("C")
S = TypeVar("S")

HELD_OUT_EVERY = 4
"""One of so many captures is held out."""


@dataclass(frozen=True)
class Fit(Generic[S]):
    """Solution of a calibration.

    Attributes:
        solution: the procedure's own type, for :meth:`Procedure.verify`.
        content: the solution as the document to write.
        device: serial number of the calibrated device; empty without one.
        method: description of the method in a few words, with the number of captures.
        residuals: residuals of the captures solved from, by name with unit.
    """

    solution: S
    content: Mapping[str, Any]
    device: str
    method: str
    residuals: Mapping[str, float]


class Procedure(ABC, Generic[C, S]):
    """One kind of calibration. ``C`` is one capture, ``S`` the solution."""

    kind: ClassVar[str]
    """Name of the command and of the file's kind."""

    limits: Mapping[str, float] = {}
    """Greatest accepted figures of :meth:`verify` by name; figures without limit are only reported."""

    @abstractmethod
    def record(self, robot: Robot, guide: Guide) -> Sequence[C]:
        """Record captures from a connected robot, in order.

        Raises:
            CalibrationFailed: the targets were not seen.
            RuntimeFault: a device failed.
        """

    @abstractmethod
    def solve(self, captures: Sequence[C]) -> Fit[S]:
        """Solve for the parameters. Raises ``CalibrationFailed``: too few captures, or too similar ones."""

    @abstractmethod
    def verify(self, solution: S, held_out: Sequence[C]) -> Mapping[str, float]:
        """Return the errors of the solution on held-out captures, by name with unit."""

    def split(self, captures: Sequence[C]) -> tuple[list[C], list[C]]:
        """Split captures into those to solve from and those to verify on."""
        held_out = list(captures[HELD_OUT_EVERY // 2 :: HELD_OUT_EVERY])
        return [capture for capture in captures if not any(capture is other for other in held_out)], held_out

    def show(self, fit: Fit[S], held_out: Sequence[C], guide: Guide) -> None:
        """Write figures of the result into the guide's folder, if any."""


def calibrate(procedure: Procedure[C, S], robot: Robot, guide: Guide, out: Path, valid_days: float) -> CalibrationFile:
    """Execute a calibration on a connected robot.

    Raises:
        CalibrationFailed: insufficient captures, or a solution that fails on held-out ones; nothing is written.
    """
    captures = procedure.record(robot, guide)
    training, held_out = procedure.split(captures)
    guide.tell(f"solving from {len(training)} captures, {len(held_out)} are held out")
    fit = procedure.solve(training)
    figures = procedure.verify(fit.solution, held_out)
    procedure.show(fit, held_out, guide)
    for name, limit in procedure.limits.items():
        if not figures[name] <= limit:
            raise CalibrationFailed(
                f"calibration of {procedure.kind!r}: held-out captures are off by {name} {figures[name]:.3g}, "
                f"more than {limit:g}; nothing was written",
                "capture again: keep robot and target still, light even, the target flat and of the stated size",
            )
    stamp = Stamp.now(procedure.kind, robot.name, fit.device, valid_days, fit.method, fit.residuals, figures)
    return write_calibration(out, stamp, fit.content)


def execute_motion(motion: MotionController, displacement: Displacement, what: str, remedy: str) -> ActionResult:
    """Execute a motion that a calibration depends on, and return its result.

    Raises:
        DeviceFault: a device failed in it.
        CalibrationFailed: it ended otherwise before it reached its goal.
    """
    result = motion.execute(displacement)
    if motion.fault is not None:
        raise motion.fault
    if result.outcome is not Outcome.REACHED:
        raise CalibrationFailed(f"{what} ended as {result.outcome.value} {result.detail}".rstrip(), remedy)
    return result
