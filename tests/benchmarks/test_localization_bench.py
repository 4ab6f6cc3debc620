"""Rows of ``bench localization``, except for speeds."""

from __future__ import annotations

import pytest

from tests.benchmarks.runtime.localization import fused_rows
from tests.benchmarks.runtime.localization_baselines import filterpy_track, fixed_lag_track, undelayed_track
from tests.benchmarks.runtime.synthetic_drives import Beacons, make_drive, measure


@pytest.mark.slow
def test_fusion_reaches_its_targets_and_is_ahead_of_others() -> None:
    rows = {row.id: row for row in fused_rows(1, 3)}
    assert list(rows)[:4] == ["fused_rmse_cm", "fused_heading_deg", "fused_jump_cm", "measurements_per_s"]
    for name in ("fused_rmse_cm", "fused_heading_deg", "fused_jump_cm"):
        assert rows[name].reached, rows[name]
    ours, theirs = rows["fused_rmse_cm"].value, rows["fused_rmse_cm"].rival_value
    assert ours is not None
    assert theirs is not None
    assert ours < theirs
    assert "filterpy" in rows["fused_rmse_cm"].note


@pytest.mark.slow
def test_rivals_are_given_the_same_and_do_well_where_nothing_is_late_or_wrong() -> None:
    drive = make_drive(15, 0)
    arrivals = measure(drive, Beacons(latency_s=0.0, outliers=0.0, dropouts_per_min=0.0), 0)
    for track in (run(drive, arrivals) for run in (undelayed_track, filterpy_track, fixed_lag_track)):
        assert track is not None, "set-up installs filterpy and gtsam"
        assert max(e.pose.distance_to(drive.at(e.stamp_ns)) for e in track) < 0.06
