"""Rows of ``bench localization``: error of SPL's path length, from noisy poses.

Scores sum straight lines between the poses at the ends of actions, where the robot rests. The sum over a stream of
poses would include their noise: 2 cm at 10 Hz turn 5 m into 20.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError
from robot_runtime.hal import PoseEstimate
from robot_runtime.localization.smoother import smooth
from robot_runtime.metrics.functional.path import path_length
from tests.benchmarks.report import Row
from tests.benchmarks.runtime.localization import fused_track
from tests.benchmarks.runtime.synthetic_drives import Beacons, Drive, make_drive, measure, odometry_of

DRIVES = 10
ACTIONS = 40
NAIVE_HZ = 10


def rows(seed: int) -> list[Row]:
    """The row ``path_length_error_pct``."""
    ours, naive, after = [], [], []
    for index in range(DRIVES):
        drive = make_drive(ACTIONS, seed + index)
        arrivals = measure(drive, Beacons(), seed + index)
        truth_m = _length_m([drive.truth[i] for i in drive.rests])
        fused = fused_track(drive, arrivals)
        ours.append(_error_pct(_length_m([_at(fused, drive.stamps_ns[i]) for i in drive.rests]), truth_m))
        naive.append(_error_pct(_length_m(_stream([estimate for _, estimate in arrivals])), truth_m))
        smoothed = _smoothed(drive, arrivals)
        if smoothed is not None:
            after.append(_error_pct(_length_m(smoothed), truth_m))
    note = f"by the smoothed trajectory {_median(after):.2f} %" if after else "GTSAM is not installed: [smoother]"
    return [
        Row(
            "path_length_error_pct",
            f"path length at the ends of {ACTIONS} actions, fused, |error|; median and range of {DRIVES} drives; "
            "the beacons of the rows above",
            _median(ours),
            "%",
            1.0,
            "<=",
            f"the raw poses added up at {NAIVE_HZ} Hz",
            _median(naive),
            min(ours),
            max(ours),
            note=note,
        )
    ]


def _length_m(poses: Sequence[SE2]) -> float:
    return path_length([(pose.x_m, pose.y_m) for pose in poses])


def _error_pct(length_m: float, truth_m: float) -> float:
    return 100 * abs(length_m / truth_m - 1)


def _at(track: Sequence[PoseEstimate], stamp_ns: int) -> SE2:
    """The last published pose up to a time."""
    return track[max(0, bisect_right(track, stamp_ns, key=lambda estimate: estimate.stamp_ns) - 1)].pose


def _stream(estimates: Sequence[PoseEstimate]) -> list[SE2]:
    ordered = sorted(estimates, key=lambda estimate: estimate.stamp_ns)
    stamps_ns = range(ordered[0].stamp_ns, ordered[-1].stamp_ns, round(1e9 / NAIVE_HZ))
    return [_at(ordered, stamp_ns) for stamp_ns in stamps_ns]


def _smoothed(drive: Drive, arrivals: Sequence[tuple[int, PoseEstimate]]) -> Sequence[SE2] | None:
    """Smoothed poses at the ends of actions; None if GTSAM is not installed."""
    odometry = [estimate for _, estimate in odometry_of(drive)]
    stamps_ns = [drive.stamps_ns[i] for i in drive.rests]
    try:
        return smooth(odometry, [estimate for _, estimate in arrivals], stamps_ns, drive.truth[0]).poses
    except ConfigError:
        return None


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
