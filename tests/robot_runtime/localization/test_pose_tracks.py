"""Tracks of a drive with known truth, and their picture; the log is stood in for by what is asked of one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate
from robot_runtime.scoring.pose_tracks import PoseTrack, ellipse, pose_tracks
from robot_runtime.scoring.reference_poses import scored_steps
from robot_runtime.scoring.report.episode_charts import pose_plot

NS = 1_000_000_000
COVARIANCE = np.diag([0.02**2, 0.02**2, math.radians(2) ** 2])
TRUE = [SE2(1.0 + 0.02 * i, 2.0, 0.0) for i in range(101)]
STEPS = (0, 25, 50, 75, 100)


@dataclass(frozen=True)
class _Record:
    pose: PoseEstimate
    referee: PoseEstimate


def estimates(poses: list[SE2], frame: str) -> list[PoseEstimate]:
    return [PoseEstimate(i * NS // 10, pose, frame, COVARIANCE) for i, pose in enumerate(poses)]


def made_log(with_beacons: bool = True, raw: bool = True) -> Any:
    """Beacons 3 cm to the left of the truth, in turns; odometry turned and shifted; the referee exact."""
    seen = [SE2(pose.x_m, pose.y_m + 0.03 * (-1) ** i, 0.0) for i, pose in enumerate(TRUE)]
    streams = {"odometry": estimates([SE2(0, 0, 1.0) @ pose for pose in TRUE], "odom")}
    if with_beacons:
        streams["beacons"] = estimates(seen, "map")
    names = {"odometry": ("odometry",), "referee": ("beacons",), "policy": ("odometry", "beacons")}
    if not with_beacons:
        names = {"odometry": ("odometry",), "referee": ("truth",), "policy": ("odometry",)}
    records = [
        _Record(*[PoseEstimate(i * NS // 10, seen[i], "map", COVARIANCE) for _ in ("policy", "referee")]) for i in STEPS
    ]
    return SimpleNamespace(
        path="log.mcap",
        header=SimpleNamespace(localizers=names, episode=SimpleNamespace(start=TRUE[0])),
        poses=lambda: streams if raw else {},
        steps=lambda images, verify=False: iter(records),
        records=records,
    )


def test_every_source_is_shown_on_the_map() -> None:
    log = made_log()
    tracks = {track.kind: track for track in pose_tracks(log, log.records)}
    assert set(tracks) == {"odometry", "measured", "policy", "smoothed", "referee"}
    assert len(tracks["measured"].points) == 101
    assert len(tracks["policy"].ellipses) == 5
    np.testing.assert_allclose(tracks["odometry"].points[-1] - tracks["odometry"].points[0], [2.0, 0.0], atol=0.03)
    truth = np.array([(TRUE[i].x_m, TRUE[i].y_m) for i in STEPS])
    assert np.abs(tracks["smoothed"].points - truth).max() < 0.01
    assert np.abs(tracks["policy"].points - truth).max() == pytest.approx(0.03)
    assert max(one.long_m for one in tracks["smoothed"].ellipses) < tracks["policy"].ellipses[0].long_m


def test_logs_without_raw_poses_show_none_and_logs_without_beacons_smooth_none() -> None:
    log = made_log(raw=False)
    assert pose_tracks(log, log.records) == ()
    log = made_log(with_beacons=False)
    assert [track.kind for track in pose_tracks(log, log.records)] == ["odometry", "policy", "referee"]


def test_smoothed_steps_replace_the_referees_pose_and_nothing_else() -> None:
    log = made_log()
    smoothed = list(scored_steps(log, "smoothed"))
    assert [record.pose for record in smoothed] == [record.pose for record in log.records]
    assert [record.referee.stamp_ns for record in smoothed] == [i * NS // 10 for i in STEPS]
    assert max(abs(record.referee.pose.y_m - 2.0) for record in smoothed) < 0.01
    assert list(scored_steps(log, "logged")) == log.records


def test_an_ellipse_points_where_the_spread_is() -> None:
    turn = np.array([[math.cos(0.5), -math.sin(0.5)], [math.sin(0.5), math.cos(0.5)]])
    found = ellipse(SE2(1, 2), turn @ np.diag([0.04, 0.01]) @ turn.T)
    assert (found.long_m, found.short_m) == pytest.approx((2.448 * 0.2, 2.448 * 0.1))
    assert math.remainder(found.angle_rad - 0.5, math.pi) == pytest.approx(0.0, abs=1e-9)


def test_the_plot_draws_lines_dots_ellipses_and_a_scale() -> None:
    log = made_log()
    view: Any = SimpleNamespace(pose_tracks=pose_tracks(log, log.records))
    drawn = str(pose_plot(view))
    for kind in ("odometry", "policy", "smoothed", "referee"):
        assert f'<polyline class="pose-{kind}"' in drawn
    assert drawn.count('<circle class="pose-measured"') == 102  # the legend's, too
    assert "95 % within" in drawn
    assert re.search(r">0\.5 m<|>1 m<|>0\.2 m<", drawn)
    assert "nan" not in drawn


def test_one_track_is_no_comparison() -> None:
    alone: Any = SimpleNamespace(pose_tracks=(PoseTrack("referee", "the referee", np.zeros((3, 2))),))
    assert pose_plot(alone) == ""
