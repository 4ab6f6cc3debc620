"""Figure of one action on five bases, under each law."""

from __future__ import annotations

from pathlib import Path

from robot_runtime.hal.motors import KnownMotors
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.motion.controller import MotionController
from tests.benchmarks.motion.bases import INFO, BenchRobot, RandomBase
from tests.benchmarks.motion.measurement import FORWARD, Trace, identify
from tests.benchmarks.motion.rival_laws import proportional, threshold

BASES = (
    ("ideal", MotorOptions()),
    ("Kobuki: 0.2 s dead, lag 0.1 s", MotorOptions(type="kobuki", threshold_m_s=(0.02, 0.03), report_delay_s=0.03)),
    ("Create 2: steps of 28.5 mm/s", MotorOptions(type="create2", threshold_m_s=(0.03, 0.03), report_delay_s=0.05)),
    (
        "slow firmware: 0.7 m/s², lag 0.15 s",
        MotorOptions(dead_time_s=0.1, lag_s=0.15, accel_m_s2=0.7, report_delay_s=0.05),
    ),
    (
        "worn: starts at 0.08 and 0.11 m/s",
        MotorOptions(dead_time_s=0.15, lag_s=0.2, threshold_m_s=(0.08, 0.11), gain=(0.95, 1.05), report_delay_s=0.1),
    ),
)

SHOWN_S = 6.0


def draw(path: Path) -> None:
    """Write the figure: the way that is left of 0.25 m over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(BASES), figsize=(15, 5.6), sharex=True, sharey="row", layout="constrained")
    for column, (name, motors) in enumerate(BASES):
        base = RandomBase(column, motors, 1.0)
        for (label, left_mm), dashes in zip(_ways(base).items(), ("-", "-.", "--", ":"), strict=True):
            seconds = [index / INFO.rate_hz for index in range(len(left_mm))]
            for row in axes[:, column]:
                row.plot(seconds, left_mm, dashes, label=label, linewidth=2 if label == "calibrated" else 1.4)
        axes[0, column].set_title(name, fontsize=9)
        axes[1, column].axhspan(-5, 5, color="0.9", zorder=0)
        axes[1, column].set_xlabel("time (s)")
        for row in axes[:, column]:
            row.grid(alpha=0.3)
    axes[0, 0].set_ylabel("left of 250 mm")
    axes[1, 0].set_ylabel("the same, near the goal (mm)")
    axes[1, 0].set_ylim(-40, 40)
    axes[1, 0].set_xlim(0, SHOWN_S)
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _ways(base: RandomBase) -> dict[str, list[float]]:
    """Distance left of a step at each tick, millimeters, by law."""
    found, _, _ = identify(base)
    model = base.nominal if found is None else found.model
    ways = {}
    for label, known in (
        ("calibrated", KnownMotors(model, calibrated=True)),
        ("not calibrated", KnownMotors(base.nominal)),
    ):
        robot = BenchRobot(base, known)
        trace = Trace(robot)
        MotionController(robot.clock, robot.base, robot.head).execute(FORWARD)
        ways[label] = _left_mm(robot, trace)
    for label, law in (("PyRobot's proportional law", proportional), ("ROS4VSN's law", threshold)):
        robot = BenchRobot(base)
        trace = Trace(robot)
        law(robot, FORWARD)
        ways[label] = _left_mm(robot, trace)
    return ways


def _left_mm(robot: BenchRobot, trace: Trace) -> list[float]:
    robot.clock.sleep(SHOWN_S)
    return [1000 * (FORWARD.forward_m - way_m) for way_m in trace.forward_m[: round(SHOWN_S * INFO.rate_hz)]]
