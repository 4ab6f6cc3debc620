"""A simulated robot with all errors at once, what a fit finds of each, and what a fit of the fitted robot finds.

Biases of depth are drawn with the standard deviations that the fit assumes,
:data:`calibration.fitting.camera.DEPTH_BIAS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.fitting.camera import DEPTH_BIAS, camera_of
from calibration.fitting.fit import RobotFit, fit_robot, of_one_robot, read_all
from calibration.fitting.motors import chosen_records
from calibration.fitting.simulator_options import options as options_of
from calibration.fitting.simulator_options import settings
from robot_runtime.errors import CalibrationFailed
from robot_runtime.motion.identification import PARAMETERS, SMOOTH, fit_motors
from robot_runtime.recording.log_files import find_logs
from robot_runtime.robots.action_errors import MOVES
from robot_runtime.scoring.statistics.intervals import Interval
from tests.benchmarks.sim.gap_trial import Options, campaign

EPISODES = 4
"""Episodes of each policy: 20 in all."""

FAR = 1e3
"""Standard deviation of a parameter about which nothing is known."""


@dataclass(frozen=True)
class Effect:
    """One error of a robot.

    Attributes:
        name: name of the error.
        truth: true value.
        found: value with the 95 % interval of the fit.
        alone: width of the interval that would be right if all other errors were known.
    """

    name: str
    truth: float
    found: Interval
    alone: float

    @property
    def covered(self) -> bool:
        return self.found.low - 1e-9 <= self.truth <= self.found.high + 1e-9

    @property
    def wider(self) -> float:
        """Width of the interval relative to the one with all other errors known."""
        return (self.found.high - self.found.low) / max(self.alone, 1e-12)


@dataclass(frozen=True)
class Hidden:
    """Result of one robot.

    Attributes:
        effects: its errors; empty if its logs do not suffice for a fit.
        again: errors of the fitted robot, found by a second fit; empty without one.
        misfits: contradictions of its model of actions, which holds.
    """

    effects: tuple[Effect, ...]
    again: tuple[Effect, ...]
    misfits: int


def draw(random: np.random.Generator) -> Options:
    """Options of a robot whose wheels, floor, camera, localizer and radius all err."""

    def either_way(low: float, high: float) -> float:
        return float(random.uniform(low, high) * random.choice((-1, 1)))

    spread_m, spread_rad = random.uniform(0.003, 0.008), random.uniform(0.008, 0.015)
    covariance = np.diag([spread_m**2, (spread_m / 2) ** 2, spread_rad**2]).tolist()
    turn_rad = math.radians(30.0) * either_way(0.02, 0.06)
    means = {
        "move_forward": [0.25 * either_way(0.02, 0.06), 0.0, 0.0],
        "turn_left": [0.0, 0.0, turn_rad],
        "turn_right": [0.0, 0.0, -turn_rad],
    }
    starts = float(random.integers(2))
    sigma = [0.0, 0.0, float(random.uniform(0.002, 0.006))]
    return {
        "contact": {"behaviour": "slide" if random.integers(2) else "stop"},
        "action_noise": {
            "model": "gaussian",
            "forward_m": 0.25,
            "turn_deg": 30.0,
            "actions": {name: {"mean": mean, "covariance": covariance} for name, mean in means.items()},
        },
        "motors": {
            "type": "kobuki",
            "dead_time_s": float(random.uniform(0.03, 0.2)),
            "lag_s": float(random.uniform(0.02, 0.12)),
            "gain": tuple(random.uniform(0.96, 1.04, 2).tolist()),
            "threshold_m_s": tuple((starts * random.uniform(0.01, 0.05, 2)).tolist()),
        },
        "camera": {
            "mount_error": {
                "tilt_deg": either_way(0.3, 3.0),
                "roll_deg": either_way(0.0, 1.5),
                "height_m": either_way(0.0, 0.02),
            },
            "depth_noise": {"model": "fitted", "sigma": sigma, "bias": random.normal(0, DEPTH_BIAS).tolist()},
        },
        "localizer": {"rate_hz": 50.0, "latency_s": float(random.uniform(0.02, 0.1))},
        "body": {"radius_m": float(random.uniform(0.16, 0.2))},
    }


def run_hidden(seed: int, number: int, folder: Path, episodes: int = EPISODES, refit: bool = True) -> Hidden:
    """Fit one robot and, with ``refit``, the robot that this fit makes; no effects where a fit is refused."""
    hidden, first = draw(np.random.default_rng((seed, number, 27))), 20_000_000 + 10_000 * seed + 100 * number
    campaign(hidden, episodes, first, folder / "real")
    try:
        fit = fit_logs(folder / "real")
    except CalibrationFailed:  # too few free actions
        return Hidden((), (), 0)
    moved: tuple[Effect, ...] = ()
    if refit:
        fitted = options_of(settings(fit))
        campaign(fitted, episodes, first, folder / "again", simulated=True, images=False)
        with suppress(CalibrationFailed):
            moved = tuple(effects_of(fit_logs(folder / "again"), fitted, motors_alone=False))
    return Hidden(tuple(effects_of(fit, hidden)), moved, len(fit.misfits))


def fit_logs(logs: Path) -> RobotFit:
    """Fit all logs of a folder, which are of one robot."""
    episodes, unused = read_all(find_logs([logs]))
    return fit_robot(*of_one_robot(episodes, None), unused)


def effects_of(fit: RobotFit, options: Options, motors_alone: bool = True) -> Iterator[Effect]:
    """Yield the errors that a fit found, with the true ones by a robot's options.

    Args:
        fit: the fit.
        options: options of the robot that was fitted.
        motors_alone: whether the widths of motors with all else known are computed, by a fit each.
    """
    for action in MOVES:
        name = action.name.lower()
        for axis, found in zip(("x", "y", "yaw"), fit.slips[name].bias, strict=True):
            truth = options["action_noise"]["actions"][name]["mean"][("x", "y", "yaw").index(axis)]
            yield Effect(f"{name} {axis}", truth, found, found.high - found.low)
    if (motors := fit.motors.fit) is not None and "motors" in options:
        true = options["motors"]
        truths = (true["dead_time_s"], true["lag_s"], *true["gain"], *true["threshold_m_s"])
        names = (*PARAMETERS[: SMOOTH - 1], *PARAMETERS[SMOOTH:])
        for name, truth in zip(names, truths, strict=True):
            low, high = motors.interval(name)
            alone = high - low
            if motors_alone:
                known = [FAR if name == other else 0.0 for other in PARAMETERS]
                only = fit_motors(chosen_records(fit.episodes), motors.model, known).interval(name)
                alone = only[1] - only[0]
            yield Effect(name, truth, Interval((low + high) / 2, low, high), alone)
    if (policy := fit.latency.sources.get("policy")) is not None and policy.latency_s is not None:
        found = policy.latency_s
        yield Effect("latency_s", options["localizer"].get("latency_s", 0.0), found, found.high - found.low)
    if fit.contact.radius_m is not None:
        found, cell_m = fit.contact.radius_m, fit.header.scene.map.resolution_m
        alone = found.high - found.low - 2 * math.sqrt(2) * cell_m
        yield Effect("radius_m", options.get("body", {}).get("radius_m", 0.18), found, alone)
    sure = camera_of(fit.camera.frames, fit.camera.looked_at)
    mount: dict[str, Any] = options.get("camera", {}).get("mount_error", {})
    for name in ("tilt_deg", "roll_deg", "height_m"):
        interval, only_pose = getattr(fit.camera, name), getattr(sure, name)
        if interval is not None:
            yield Effect(name, mount.get(name, 0.0), interval, only_pose.high - only_pose.low)
