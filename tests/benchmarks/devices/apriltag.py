"""Rows of ``bench localization``: accuracy of poses from tags 3 m away."""

from __future__ import annotations

import importlib.util
import math

import numpy as np

from robot_runtime.errors import RuntimeFault
from tests.benchmarks.report import Row


def rows(seed: int) -> list[Row]:
    """Return the errors of position and heading from two or more tags, and from one."""
    if importlib.util.find_spec("pupil_apriltags") is None:
        return [_not_run("needs pip install 'robot-runtime[apriltag]'")]
    from tests.benchmarks.devices.apriltag_poses import measure

    try:
        errors, refused = measure(seed)
    except RuntimeFault as error:
        return [_not_run(error.message)]
    several, single = [e for e in errors if e.tags > 1], [e for e in errors if e.tags == 1]
    about = (
        f"root mean square at {len(several)} places, by two or more tags of 16 cm, 2.5 to 3.5 m away, through an "
        f"emulated Azure Kinect and the policy's 640x480 of 79 degrees; in brackets median and 95th percentile"
    )
    note = f"{refused} images were refused as ambiguous"
    made = [
        _row("apriltag_3m_cm", about, [100 * e.off_m for e in several], "cm", 3.0, note),
        _row("apriltag_3m_deg", "its heading", [math.degrees(e.off_rad) for e in several], "deg", 1.0, ""),
    ]
    if single:
        about = f"the same by a single tag, at {len(single)} places"
        made.append(_row("apriltag_3m_single_cm", about, [100 * e.off_m for e in single], "cm", None, ""))
    return made


def _not_run(reason: str) -> Row:
    return Row("apriltag_3m_cm", "AprilTags 3 m away", None, "cm", 3.0, "<=", note=reason)


def _row(name: str, label: str, values: list[float], unit: str, target: float | None, note: str) -> Row:
    rms = math.sqrt(float(np.mean(np.square(values))))
    low, high = np.percentile(values, (50, 95)).tolist()
    return Row(name, label, rms, unit, target, "<=", low=low, high=high, note=note)
