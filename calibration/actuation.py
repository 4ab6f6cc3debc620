"""``robot-runtime calibrate actuation``: where discrete actions really end.

Each action is carried out many times by the runtime's own motion controller, and a referee says where the robot stood
before and after. What is left after taking away what was commanded has a mean and a covariance (along, to the left,
heading; correlations included). The referee's own scatter is taken off it. The file is what a simulated robot needs to
err in the same way: ``action_noise: {model: fitted, file: ...}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from calibration import options
from calibration.driving import Driver, Move
from calibration.guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime import config
from robot_runtime.actions import Action, Displacement
from robot_runtime.actuation import KIND, ActionError, ActuationModel
from robot_runtime.cli import options as shared
from robot_runtime.errors import CalibrationFailed
from robot_runtime.geometry import wrap_angle
from robot_runtime.hal import Robot
from robot_runtime.robots import ChosenParts

Array = NDArray[np.float64]

FORWARD_M = 0.25
TURN_DEG = 30.0
CYCLES = 40
"""Tell a standard deviation to 13 %, after a quarter of them has been held out."""

ROOM_M = 0.9
FEWEST = 8

LIMIT_RATIO = 3.0
"""Of the held-out errors' squared distances, in standard deviations, to what three normal numbers have on average."""

FLOOR = np.diag([0.001, 0.001, math.radians(0.1)]) ** 2
"""How well a motion controller ends an action at all: so near nothing is held against a solution."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One action.

    Attributes:
        error: (x m, y m, yaw rad), measured less commanded, in the frame of the start.
        noise: float64 (3, 3), the referee's share of its covariance.
    """

    action: Action
    error: Array
    noise: Array


class ActuationProcedure(Procedure[Trial, ActuationModel]):
    """Args: forward_m, turn_deg: of the actions. cycles: how often each is carried out."""

    kind: ClassVar[str] = KIND
    limits: Mapping[str, float] = {"distance_ratio": LIMIT_RATIO}

    def __init__(self, forward_m: float = FORWARD_M, turn_deg: float = TURN_DEG, cycles: int = CYCLES) -> None:
        self._forward_m, self._turn_deg, self._cycles = forward_m, turn_deg, cycles
        self._referee = ""

    def record(self, robot: Robot, guide: Guide) -> Sequence[Trial]:
        self._referee = robot.referee.info.name
        driver = Driver(robot, guide, ROOM_M)
        turn_rad = math.radians(self._turn_deg)
        commands = {
            Action.MOVE_FORWARD: Displacement(forward_m=self._forward_m),
            Action.TURN_LEFT: Displacement(turn_rad=turn_rad),
            Action.TURN_RIGHT: Displacement(turn_rad=-turn_rad),
        }
        trials: list[Trial] = []
        for cycle in range(self._cycles):
            for action, command in commands.items():
                trials.append(_trial(action, command, driver.move(command)))
            driver.go(Displacement(forward_m=-self._forward_m))
            driver.return_home()
            guide.progress(cycle + 1, self._cycles)
        return trials

    def split(self, captures: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
        kept: list[Trial] = []
        held_out: list[Trial] = []
        for action in dict.fromkeys(trial.action for trial in captures):
            ours, theirs = super().split([trial for trial in captures if trial.action is action])
            kept += ours
            held_out += theirs
        return kept, held_out

    def solve(self, captures: Sequence[Trial]) -> Fit[ActuationModel]:
        errors: dict[str, ActionError] = {}
        residuals: dict[str, float] = {}
        for action in dict.fromkeys(trial.action for trial in captures):
            trials = [trial for trial in captures if trial.action is action]
            if len(trials) < FEWEST:
                raise CalibrationFailed(
                    f"actuation: {len(trials)} trials of {action.name.lower()}, {FEWEST} are needed", "raise --cycles"
                )
            measured = np.array([trial.error for trial in trials])
            covariance = np.cov(measured, rowvar=False) - np.mean([trial.noise for trial in trials], axis=0)
            name = action.name.lower()
            errors[name] = ActionError(_triple(measured.mean(axis=0)), _rows(_possible(covariance)), len(trials))
            deviation = np.sqrt(np.diag(errors[name].matrix))
            residuals[f"{name}_std_mm"] = 1e3 * math.hypot(deviation[0], deviation[1])
            residuals[f"{name}_std_deg"] = math.degrees(deviation[2])
        model = ActuationModel(self._forward_m, self._turn_deg, errors)
        method = f"{len(captures)} actions of {self._forward_m:g} m and {self._turn_deg:g}°, referee {self._referee}"
        return Fit(model, config.unparse(model), "", method, residuals)

    def verify(self, solution: ActuationModel, held_out: Sequence[Trial]) -> Mapping[str, float]:
        ratios, off = [], []
        for trial in held_out:
            expected = solution.actions[trial.action.name.lower()]
            residual = trial.error - np.array(expected.mean)
            ratios.append(residual @ np.linalg.solve(expected.matrix + trial.noise + FLOOR, residual) / 3)
            off.append(residual)
        rms = np.sqrt(np.mean(np.square(off), axis=0))
        return {
            "distance_ratio": float(np.mean(ratios)),
            "position_rms_mm": 1e3 * math.hypot(rms[0], rms[1]),
            "heading_rms_deg": math.degrees(rms[2]),
        }


def _trial(action: Action, command: Displacement, move: Move) -> Trial:
    yaw_rad = wrap_angle(move.truth.yaw_rad - command.turn_rad)
    return Trial(action, np.array([move.truth.x_m - command.forward_m, move.truth.y_m, yaw_rad]), move.noise)


def _possible(matrix: Array) -> Array:
    """The nearest matrix that is a covariance: what the referee's scatter made of a small one may be none."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, yaw = (float(value) for value in values)
    return x, y, yaw


def _rows(matrix: Array) -> tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]:
    symmetric = (matrix + matrix.T) / 2
    return _triple(symmetric[0]), _triple(symmetric[1]), _triple(symmetric[2])


def command(
    out: options.Out,
    robot: shared.Robot = "sim",
    referee: shared.Referee = None,
    scene: shared.Scene = "apartment",
    forward: Annotated[float, typer.Option(min=0.05, help="Metres of move_forward.")] = FORWARD_M,
    turn: Annotated[float, typer.Option(min=5, max=90, help="Degrees of a turn.")] = TURN_DEG,
    cycles: Annotated[int, typer.Option(min=12, help="How often each action is carried out.")] = CYCLES,
    overwrite: options.Overwrite = False,
    view: options.View = None,
    seed: options.Seed = 0,
    valid_days: options.ValidDays = options.VALID_DAYS,
) -> None:
    """Measure where discrete actions really end, for a simulated robot that errs in the same way.

    In its YAML: 'action_noise: {model: fitted, file: actuation.yaml}' under 'options'.

    Example:

        robot-runtime calibrate actuation --robot sim-noisy --out actuation.yaml
    """
    procedure = ActuationProcedure(forward, turn, cycles)
    chosen = ChosenParts(referee=referee)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)
