"""A figure of action errors: ends of moves of 0.25 m and of turns of 30 degrees."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.common.creating import creating
from sim_bridge.noise.actions import ActionNoise, PyRobotOptions, RobothorOptions, action_noise

DRAWS = 1500
SHOWN_M, SHOWN_DEG = 0.4, 40.0


def models() -> dict[str, ActionNoise]:
    """The noise models in the figure, by title."""
    lqr = action_noise(PyRobotOptions("pyrobot"))
    proportional = action_noise(PyRobotOptions("pyrobot", controller="Proportional"))
    challenge = action_noise(PyRobotOptions("pyrobot", controller="Proportional", multiplier=0.5))
    movebase = action_noise(PyRobotOptions("pyrobot", controller="Movebase"))
    return {
        "PyRobot, ILQR": lqr,
        "PyRobot, Proportional": proportional,
        "the same, times 0.5 (Habitat challenge)": challenge,
        "PyRobot, Movebase": movebase,
        "RoboTHOR": action_noise(RobothorOptions("robothor")),
    }


def draw(path: Path, seed: int) -> None:
    """Write the picture (PNG)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = models()
    figure, axes = plt.subplots(2, len(shown), figsize=(15, 6), dpi=70, layout="constrained")
    for column, (title, noise) in enumerate(shown.items()):
        random = np.random.default_rng(seed)
        _ends(axes[0, column], noise, random)
        _headings(axes[1, column], noise, random)
        axes[0, column].set_title(title, fontsize=9)
    axes[0, 0].set_ylabel("forward, m")
    axes[1, 0].set_ylabel(f"of {DRAWS} actions")
    axes[1, 0].legend(fontsize=7, loc="upper left")
    with creating(path) as draft:
        figure.savefig(draft)
    plt.close(figure)


def _ends(axis: Any, noise: ActionNoise, random: np.random.Generator) -> None:
    drawn = np.array([noise.draw(Action.MOVE_FORWARD, random) for _ in range(DRAWS)])
    # Left in the figure is the robot's left.
    axis.scatter(-drawn[:, 1], 0.25 + drawn[:, 0], s=2, alpha=0.3, color="tab:blue")
    axis.plot(0, 0, "k^", markersize=8)
    axis.plot(0, 0.25, "+", color="tab:red", markersize=10)
    axis.set(xlim=(-SHOWN_M, SHOWN_M), ylim=(-0.1, 0.25 + SHOWN_M), aspect="equal", xlabel="right, m")


def _headings(axis: Any, noise: ActionNoise, random: np.random.Generator) -> None:
    bins = np.linspace(-SHOWN_DEG, SHOWN_DEG, 41)
    for action, colour, label in (
        (Action.MOVE_FORWARD, "tab:blue", "moving"),
        (Action.TURN_LEFT, "tab:green", "turning left"),
        (Action.TURN_RIGHT, "tab:orange", "turning right"),
    ):
        drawn = [math.degrees(noise.draw(action, random)[2]) for _ in range(DRAWS)]
        axis.hist(drawn, bins, histtype="step", color=colour, label=label)
    axis.set(xlabel="error of heading, degrees, left positive", yscale="log", ylim=(1, 2 * DRAWS))
