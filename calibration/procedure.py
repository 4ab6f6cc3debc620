"""What every calibration is: record, solve, verify on captures that were held out, write.

A calibration is one :class:`Procedure` in a file of its own, and :func:`calibrate` carries out any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from calibration.operator_guide import Guide
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.robots.calibration_file import CalibrationFile, Stamp, write_calibration

C = TypeVar("C")
S = TypeVar("S")

HELD_OUT_EVERY = 4
"""Every fourth capture is held out: spread over the whole capture, and a quarter of it."""


@dataclass(frozen=True)
class Fit(Generic[S]):
    """What captures say.

    Attributes:
        solution: the procedure's own, for :meth:`Procedure.verify`.
        content: the same as the document to write: the ordinary file of whoever uses it.
        device: serial number of what was calibrated; empty where it has none.
        method: in a few words, with the number of captures.
        residuals: of the captures that it was solved from, by name with unit.
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
    """The largest figure of :meth:`verify` that is accepted, by its name; figures without limit are only reported."""

    @abstractmethod
    def record(self, robot: Robot, guide: Guide) -> Sequence[C]:
        """Captures from a connected robot, in the order of their taking.

        Raises:
            CalibrationFailed: what is needed was not seen. RuntimeFault: whatever a device has.
        """

    @abstractmethod
    def solve(self, captures: Sequence[C]) -> Fit[S]:
        """The parameters. Raises ``CalibrationFailed``: too few captures, or all too much alike."""

    @abstractmethod
    def verify(self, solution: S, held_out: Sequence[C]) -> Mapping[str, float]:
        """How well the solution foretells captures that it was not solved from: figures by name with unit."""

    def split(self, captures: Sequence[C]) -> tuple[list[C], list[C]]:
        """Captures to solve from, and captures to verify on."""
        held_out = list(captures[HELD_OUT_EVERY // 2 :: HELD_OUT_EVERY])
        return [capture for capture in captures if not any(capture is other for other in held_out)], held_out

    def show(self, fit: Fit[S], held_out: Sequence[C], guide: Guide) -> None:
        """Write pictures of the result into the guide's folder, if there is anything to see."""


def calibrate(procedure: Procedure[C, S], robot: Robot, guide: Guide, out: Path, valid_days: float) -> CalibrationFile:
    """The four steps on a connected robot.

    Raises:
        CalibrationFailed: captures that do not suffice, or a solution that fails on held-out ones; nothing is written.
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
