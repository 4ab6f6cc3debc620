"""The grid of settings of a sweep, and errors in its definition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from raising import raises_naming

from robot_runtime.errors import ConfigError
from sim_bridge.tuning.settings import UNCHANGED, Range, Setting, make_grid, make_setting
from sim_bridge.tuning.sweep import refine


def test_the_default_grid_is_sliding_and_noise() -> None:
    grid = make_grid("sim", [])
    assert [setting.name for setting in grid][:2] == [UNCHANGED, "contact slide, noise pyrobot Proportional x 0"]
    assert len(grid) == 7
    assert {setting.options.contact.behaviour for setting in grid[1:]} == {"stop", "slide"}


def test_noise_of_its_own_is_multiplied(robot_file: Path) -> None:
    names = [setting.name for setting in make_grid(str(robot_file), [])]
    # Stop and once its own noise are what it is already.
    assert "contact stop, noise x 1.0" not in names
    assert "contact slide, noise x 0.5" in names


def test_all_combinations_are_tried_once_and_others_beside(robot_file: Path) -> None:
    vary = ["contact.behaviour=stop,slide", "camera.latency_s=0,0.1"]
    grid = make_grid("sim", vary, [str(robot_file)])
    assert [setting.name for setting in grid] == [
        UNCHANGED,
        "contact stop, camera.latency_s 0.1",
        "contact slide, camera.latency_s 0",
        "contact slide, camera.latency_s 0.1",
        "fitted: hidden",
    ]


def test_two_fits_of_one_robot_are_named_apart(tmp_path: Path) -> None:
    paths = [tmp_path / name / "robot.yaml" for name in ("floor", "replays")]
    for path, tilt_deg in zip(paths, (1.0, 2.0), strict=True):
        path.parent.mkdir()
        options = f"{{camera: {{mount_error: {{tilt_deg: {tilt_deg}}}}}}}"
        text = f"name: lab-fitted\ndriver: sim_bridge.robot.driver.make_robot\noptions: {options}\n"
        path.write_text(text, encoding="utf-8")
    names = [setting.name for setting in make_grid("sim", [], [str(path) for path in paths], study=False)]
    assert names == [UNCHANGED, "fitted: lab-fitted", f"fitted: lab-fitted, {paths[1]}"]


def test_values_may_be_mappings() -> None:
    grid = make_grid("sim", ["action_noise={model: robothor},{model: pyrobot, multiplier: 0.5}"])
    assert [setting.name for setting in grid[1:]] == ["noise robothor", "noise pyrobot x 0.5"]


@pytest.mark.parametrize(
    ("vary", "named", "remedy"),
    [
        ("contact.behavior=stop", "'contact.behavior'", "'contact.behaviour'"),
        ("camera.tilt=0", "'camera.tilt'", "'camera.mount_error.tilt_deg'"),
        ("latency_s=0", "'latency_s'", "'camera.latency_s'"),
        ("contact.behaviour=bounce", "contact.behaviour", "bounce"),
        ("camera.latency_s=-1", "camera.latency_s", "-1"),
        ("contact.behaviour", "KEY=V1,V2", "--vary"),
        ("contact.behaviour=stop,,slide", "KEY=V1,V2", "--vary"),
    ],
)
def test_invalid_settings_are_named(vary: str, named: str, remedy: str) -> None:
    with raises_naming(ConfigError, named, remedy):
        make_grid("sim", [vary])


def test_robots_of_other_drivers_have_no_settings() -> None:
    with raises_naming(ConfigError, "'fake'", "sim_bridge.robot.driver.make_robot"):
        make_grid("fake", [])


@pytest.mark.parametrize("text", ["camera.latency_s", "camera.latency_s=0", "camera.latency_s=1:0", "x=a:b", "=0:1"])
def test_invalid_ranges_are_named(text: str) -> None:
    with raises_naming(ConfigError, text, "KEY=LOW:HIGH"):
        Range.parse(text)


def quadratic(**peaks: float) -> Callable[[Setting], float]:
    def total(setting: Setting) -> float:
        camera = setting.options.camera
        latency_s, tilt_deg = camera.latency_s, camera.mount_error.tilt_deg
        off_s, off_deg = latency_s - peaks["latency_s"], tilt_deg - peaks["tilt_deg"]
        return -((off_s / 0.1) ** 2) - off_deg**2 - off_s / 0.1 * off_deg

    return total


def test_numbers_are_found_between_those_of_a_grid() -> None:
    (start,) = make_grid("sim", [], study=False)
    ranges = [Range.parse("camera.latency_s=0:0.4"), Range.parse("camera.mount_error.tilt_deg=-5:5")]
    found = refine(start, ranges[:1], quadratic(latency_s=0.123, tilt_deg=0.0), lambda: None)
    assert found.options.camera.latency_s == pytest.approx(0.123, abs=0.001)
    assert found.name.startswith("refined: camera.latency_s 0.12")
    both = refine(start, ranges, quadratic(latency_s=0.123, tilt_deg=1.5), lambda: None)
    assert both.options.camera.latency_s == pytest.approx(0.123, abs=0.03)
    assert both.options.camera.mount_error.tilt_deg == pytest.approx(1.5, abs=0.4)


def test_a_refined_setting_keeps_what_it_began_with() -> None:
    start = make_grid("sim", ["contact.behaviour=slide"])[1]
    found = refine(start, [Range.parse("camera.latency_s=0:0.4")], quadratic(latency_s=0.2, tilt_deg=0), lambda: None)
    assert found.options.contact.behaviour == "slide"
    assert found.changes[0] == ("contact.behaviour", "slide")


def test_ranges_outside_of_what_an_option_takes_are_refused_first() -> None:
    (start,) = make_grid("sim", [], study=False)
    with raises_naming(ConfigError, "camera.latency_s"):
        refine(start, [Range.parse("camera.latency_s=-1:1")], lambda _: pytest.fail("asked"), lambda: None)


def test_settings_have_their_options() -> None:
    (start,) = make_grid("sim", [], study=False)
    assert make_setting(start.robot, start.path, [("body.radius_m", "0.2")]).options.body.radius_m == 0.2
