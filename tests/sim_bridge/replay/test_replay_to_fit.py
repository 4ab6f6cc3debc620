"""A fit reads the results of a pose replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scripted import DOWN, TASK, UP, F, L, R, record, replayed

from calibration.fitting.replay_results import read_replays
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.results import write_replay

LARGER = replace(TASK, camera=replace(TASK.camera, width=160, height=120))


@pytest.mark.slow
def test_the_cameras_place_and_the_depths_bias_go_from_replays_to_a_fit(room: Scene, tmp_path: Path) -> None:
    wrong = {"tilt_deg": -2.5, "pan_deg": 1.5, "height_m": 0.02}
    noise = {"model": "fitted", "bias": [0.0, 0.0, 0.004]}
    options = {"camera": {"mount_error": wrong, "depth_noise": noise}}
    looks = [L, UP, F, R, DOWN, DOWN, F, L, L, UP, F]
    logs = record(tmp_path / "logs", room, [looks, [R] * 8], task=LARGER, options=options)
    robots = set()
    for replay in replayed(logs, parts=("pose",)):
        write_replay(tmp_path / "replays" / f"{replay.episode}.json", replay)
        robots.add(replay.robot)
    (robot,) = robots
    found = read_replays([tmp_path / "replays"], robot)
    assert found is not None
    assert found.replays == 2
    assert found.tilt_deg is not None
    assert found.tilt_deg.mean == pytest.approx(-2.5, abs=0.3)
    assert found.pan_deg is not None
    assert found.pan_deg.mean == pytest.approx(1.5, abs=0.5)
    assert found.forward_m is not None
    # A camera that measures too far and one that hangs farther back see the same: together they are what it saw.
    for z_m in (2.5, 3.0):  # where there are walls ahead
        seen_m = sum(c * z_m**power for power, c in enumerate(found.bias)) - found.forward_m.mean
        assert seen_m == pytest.approx(0.004 * z_m**2, abs=0.006)
