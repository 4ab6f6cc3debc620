"""``bench localization``: accuracy of fused poses, beside other implementations of fusion."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from tests.benchmarks.report import JsonFile, Row, cpu_s, report

if TYPE_CHECKING:
    from robot_runtime.hal import PoseEstimate
    from robot_runtime.localization.gaussian_pose import Measurement
    from tests.benchmarks.runtime.synthetic_drives import Drive

    Poses = list[PoseEstimate]
    Arriving = list[tuple[int, PoseEstimate]]

ROUNDS = 5
"""Runs of a measurement of speed, of which the median and the range are reported."""

_ABOUT = "beacons at 8 Hz, 2 cm noise, 80 ms late, 5 % outliers of up to 1.5 m, silent for 2 s three times a minute"


def localization(
    drives: Annotated[int, typer.Option(min=1, help="Imagined drives of 80 actions each.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of drives and errors.")] = 0,
    rows: Annotated[bool, typer.Option("--all/--fusion", help="Whether rows of other parts are run, too.")] = True,
    json: JsonFile = None,
) -> None:
    """Measure fused poses on imagined drives whose truth is known, beside filterpy and robot_localization's way."""
    from robot_runtime.common.console import console
    from tests.benchmarks.devices import apriltag
    from tests.benchmarks.runtime import path_length

    measured = fused_rows(drives, seed)
    if rows:
        measured += [*apriltag.rows(seed), *path_length.rows(seed)]
    report("localization", measured, json, console)


def fused_rows(drives: int, seed: int) -> list[Row]:
    """Rows of the accuracy, jumps and speed of ``localization.fused``."""
    from tests.benchmarks.runtime.localization_baselines import filterpy_track, undelayed_track
    from tests.benchmarks.runtime.synthetic_drives import Beacons, make_drive, measure

    made = [make_drive(80, seed + index) for index in range(drives)]
    arriving = [measure(drive, Beacons(), seed + index) for index, drive in enumerate(made)]
    both = list(zip(made, arriving, strict=True))
    ours = [fused_track(drive, arrivals) for drive, arrivals in both]
    undelayed = [undelayed_track(drive, arrivals) for drive, arrivals in both]
    library = [filterpy_track(drive, arrivals) for drive, arrivals in both]
    errors = [_errors(drive, track) for drive, track in zip(made, ours, strict=True)]
    theirs = _pooled([_errors(drive, track) for drive, track in zip(made, undelayed, strict=True)])
    other = None
    if all(track is not None for track in library):
        other = _pooled([_errors(drive, track or []) for drive, track in zip(made, library, strict=True)])
    way = "robot_localization's way (an EKF with the same gate, measurements taken as of now)"
    missing = "filterpy is not installed: pip install filterpy"
    rmse_cm, heading_deg = _pooled(errors)
    about = f"{drives} drives of 80 actions, {_ABOUT}"
    return [
        Row(
            "fused_rmse_cm",
            f"fused position, RMS error; {about}",
            rmse_cm,
            "cm",
            1.5,
            "<=",
            way,
            theirs[0],
            min(error[0] for error in errors),
            max(error[0] for error in errors),
            note=missing if other is None else f"filterpy's EKF as it comes (no gate, no delays): {other[0]:.2f} cm",
        ),
        Row(
            "fused_heading_deg",
            "fused heading while moving, RMS error; the beacons know none; same drives",
            heading_deg,
            "deg",
            1.0,
            "<=",
            way,
            theirs[1],
            min(error[1] for error in errors),
            max(error[1] for error in errors),
            note=missing if other is None else f"filterpy: {other[1]:.2f} deg",
        ),
        Row(
            "fused_jump_cm",
            "largest step between two published poses that odometry did not make; same drives",
            max(_jump_cm(drive, track) for drive, track in zip(made, ours, strict=True)),
            "cm",
            5.0,
            "<=",
            way,
            max(_jump_cm(drive, track) for drive, track in zip(made, undelayed, strict=True)),
        ),
        speed_row(seed),
        *fixed_lag_rows(both, ours, seed),
    ]


def fixed_lag_rows(both: list[tuple[Drive, Arriving]], ours: list[Poses], seed: int) -> list[Row]:
    """The same figures of gtsam's fixed-lag smoother, beside ours; no rows where gtsam is not installed."""
    from tests.benchmarks.runtime.localization_baselines import fixed_lag_track

    found = [fixed_lag_track(drive, arrivals) for drive, arrivals in both]
    tracks = [track for track in found if track is not None]
    if not tracks:
        return []
    drives = [drive for drive, _ in both]
    theirs = [_errors(drive, track) for drive, track in zip(drives, tracks, strict=True)]
    rmse_cm, heading_deg = _pooled(theirs)
    fused = _pooled([_errors(drive, track) for drive, track in zip(drives, ours, strict=True)])
    jumps_cm = [max(_jump_cm(drive, track) for drive, track in zip(drives, of, strict=True)) for of in (tracks, ours)]
    drive, arrivals, fixes = _overtaking(seed)
    rate = len(arrivals) / _seconds(lambda: fixed_lag_track(drive, arrivals, smooth_output=False))
    own_rate = len(arrivals) / _seconds(lambda: _filtered(drive, fixes))
    what, rival = "gtsam's IncrementalFixedLagSmoother (5 s, Cauchy) with the same output smoothing", "fused"
    return [
        Row("fixed_lag_rmse_cm", f"{what}: position", rmse_cm, "cm", rival=rival, rival_value=fused[0]),
        Row("fixed_lag_heading_deg", f"{what}: heading", heading_deg, "deg", rival=rival, rival_value=fused[1]),
        Row("fixed_lag_jump_cm", f"{what}: largest step", jumps_cm[0], "cm", rival=rival, rival_value=jumps_cm[1]),
        Row("fixed_lag_measurements_per_s", f"{what}: speed", rate, "1/s", rival="our filter", rival_value=own_rate),
    ]


def fused_track(drive: Drive, arrivals: Arriving) -> Poses:
    """Poses that ``FusedLocalizer`` publishes of a drive when it is queried at 30 Hz."""
    from robot_runtime.common.clock import SimulatedClock
    from robot_runtime.hal import LocalizerInfo
    from robot_runtime.localization.fused import FusedLocalizer
    from tests.benchmarks.runtime.synthetic_drives import ODOMETRY_HZ, ReplayedLocalizer, odometry_of

    clock = SimulatedClock(drive.stamps_ns[1] - drive.stamps_ns[0])
    odometry = ReplayedLocalizer(clock, LocalizerInfo("odometry", "odom", ODOMETRY_HZ), odometry_of(drive))
    beacons = ReplayedLocalizer(clock, LocalizerInfo("beacons", "map", 8.0), arrivals)
    published: Poses = []
    with FusedLocalizer(clock, odometry, beacons) as fused:
        clock.sleep_until(drive.stamps_ns[0])
        fused.expect(drive.truth[0], 0.05, math.radians(5))
        mark = 0
        while clock.now_ns() < drive.stamps_ns[-1]:
            clock.sleep(1 / 30)
            arrived = fused.arrivals(mark)
            mark = arrived.mark
            published.extend(arrived.estimates)
    return published


def speed_row(seed: int) -> Row:
    """Row of measurements per second into the filter, with odometry at 50 Hz, delayed and out of order."""
    from tests.benchmarks.runtime.localization_baselines import filterpy_track

    drive, arrivals, fixes = _overtaking(seed)
    rates = sorted(len(fixes) / _seconds(lambda: _filtered(drive, fixes)) for _ in range(ROUNDS))
    rival = None
    if filterpy_track(drive, arrivals[:1]) is not None:
        rival = len(arrivals) / _seconds(lambda: filterpy_track(drive, arrivals))
    return Row(
        "measurements_per_s",
        "50 Hz of odometry and 50 Hz of positions, 80 to 180 ms late and overtaking each other; per CPU second",
        rates[ROUNDS // 2],
        "1/s",
        20000,
        ">=",
        "filterpy's EKF, which takes them in as they come" if rival is not None else "",
        rival,
        rates[0],
        rates[-1],
    )


def _overtaking(seed: int) -> tuple[Drive, Arriving, list[tuple[int, Measurement]]]:
    """A drive with 50 positions a second that overtake each other, as estimates and as the filter takes them."""
    from robot_runtime.localization.gaussian_pose import Measurement, whitening
    from tests.benchmarks.runtime.synthetic_drives import Beacons, make_drive, measure

    beacons = Beacons(rate_hz=50, jitter_s=0.1)
    drive = make_drive(100, seed)
    arrivals = measure(drive, beacons, seed)
    weights = whitening(beacons.covariance, 0.005, 0.005)
    fixes = [(at, Measurement(e.stamp_ns, e.pose.x_m, e.pose.y_m, 0.0, weights)) for at, e in arrivals]
    return drive, arrivals, fixes


def _filtered(drive: Drive, fixes: list[tuple[int, Measurement]]) -> None:
    """Run the filter over a drive."""
    from robot_runtime.localization.ekf import PoseFilter

    filter_, coming = PoseFilter(), 0
    for index, stamp_ns in enumerate(drive.stamps_ns):
        filter_.add_odometry(stamp_ns, drive.odometry[index])
        if not index:
            filter_.initialize(stamp_ns, drive.truth[0], 0.05, 0.1)
        while coming < len(fixes) and fixes[coming][0] <= stamp_ns:
            filter_.add_measurement(fixes[coming][1])
            coming += 1


def _seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call, independent of other load."""
    before_s = cpu_s(resource.RUSAGE_SELF)
    run()
    return cpu_s(resource.RUSAGE_SELF) - before_s


def _errors(drive: Drive, track: Poses) -> tuple[float, float]:
    """RMS of the position in cm, and of the heading in degrees while moving."""
    from robot_runtime.common.geometry import wrap_angle

    moving = dict(zip(drive.stamps_ns, drive.moving, strict=True))
    truth = dict(zip(drive.stamps_ns, drive.truth, strict=True))
    off_m = [estimate.pose.distance_to(truth[estimate.stamp_ns]) for estimate in track]
    off_rad = [
        wrap_angle(estimate.pose.yaw_rad - truth[estimate.stamp_ns].yaw_rad)
        for estimate in track
        if moving[estimate.stamp_ns]
    ]
    return 100 * _rms(off_m), math.degrees(_rms(off_rad))


def _pooled(errors: list[tuple[float, float]]) -> tuple[float, float]:
    return _rms([error[0] for error in errors]), _rms([error[1] for error in errors])


def _rms(values: list[float]) -> float:
    return math.sqrt(sum(value * value for value in values) / len(values))


def _jump_cm(drive: Drive, track: Poses) -> float:
    """Largest step of the track beyond odometry's, in cm."""
    odometry = dict(zip(drive.stamps_ns, drive.odometry, strict=True))
    longest_m = 0.0
    for before, after in pairwise(track):
        moved = odometry[after.stamp_ns].relative_to(odometry[before.stamp_ns])
        longest_m = max(longest_m, (before.pose @ moved).distance_to(after.pose))
    return 100 * longest_m
