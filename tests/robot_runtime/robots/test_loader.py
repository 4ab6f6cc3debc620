"""A robot's YAML file becomes a robot, or one message that names file, field and remedy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming

from robot_runtime.common import config
from robot_runtime.errors import ConfigError, DriverMissing
from robot_runtime.hal import Robot
from robot_runtime.robots.loader import DeviceConfig, DeviceOverrides, RobotContext, load_robot, read_robot_file

CONTEXT = RobotContext(scene=None, camera=None, seed=7)


def robot_file(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def no_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> object:
    """A factory that says what it was given and makes the wrong thing."""
    return [context, name, dict(options), where]


def test_a_preset_becomes_a_robot() -> None:
    robot = load_robot("fake", CONTEXT)
    assert isinstance(robot, Robot)
    assert robot.name == "fake"
    assert robot.base.info.name == "fake"


def test_every_simulated_preset_but_sim_has_the_motors_of_a_real_base() -> None:
    types = {}
    for path in config.find_preset("robots", "sim").parent.glob("*.yaml"):
        _, file = read_robot_file(str(path))
        if not file.driver.startswith(("drivers.ros_locobot.", "drivers.ros2.")):  # those get them from their variant
            types[path.stem] = file.options.get("motors", {}).get("type", "ideal")
    assert types.pop("sim") == "ideal"
    assert set(types.values()) == {"kobuki", "create2"}


def test_a_path_becomes_a_robot_with_its_options(tmp_path: Path) -> None:
    text = "name: slow\ndriver: drivers.fake.driver:make_robot\noptions: {max_linear_m_s: 0.1}\n"
    robot = load_robot(robot_file(tmp_path, text), CONTEXT)
    assert (robot.name, robot.base.info.max_linear_m_s) == ("slow", 0.1)


def test_a_robot_file_can_be_read_without_its_driver(tmp_path: Path) -> None:
    name = robot_file(tmp_path, "name: r\ndriver: not.there.yet\n")
    path, file = read_robot_file(name)
    assert str(path) == name
    assert (file.name, file.driver, file.options) == ("r", "not.there.yet", {})


@pytest.mark.parametrize(
    ("driver", "message", "remedy"),
    [
        ("drivers.kobuky.driver.make", "there is no module 'drivers.kobuky'", "check the spelling of the driver"),
        ("drivers.fake.driver.make_robt", "has no 'make_robt'", "did you mean 'make_robot'?"),
        ("make_robot", "is not of the form package.module.Name", "write the full dotted name"),
        ("math.pi", "'math.pi' is not a function", "name the driver's factory function, not one of its parts"),
        ("drivers.fake.head.FakeHead", "is not a function", "name the driver's factory function, not one of its parts"),
    ],
)
def test_a_driver_that_is_not_there_is_named(tmp_path: Path, driver: str, message: str, remedy: str) -> None:
    path = robot_file(tmp_path, f"name: r\ndriver: {driver}\n")
    with pytest.raises(ConfigError) as caught:
        load_robot(path, CONTEXT)
    assert caught.value.message.startswith(f"{path}: field 'driver': ")
    assert message in caught.value.message
    assert caught.value.remedy == remedy


@pytest.mark.parametrize("line", ["def make(options): ...", "def make(context, name, options, where, port): ..."])
def test_a_factory_with_another_signature_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    (tmp_path / "odd_driver.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd_driver", raising=False)
    robot = robot_file(tmp_path, "name: r\ndriver: odd_driver.make\n")
    with raises_naming(ConfigError, robot, "'odd_driver.make'", "make(context, name, options, where)"):
        load_robot(robot, CONTEXT)
    part = tmp_path / "part.yaml"
    part.write_text("name: p\ndriver: odd_driver.make\n")
    with raises_naming(ConfigError, part, "'odd_driver.make'", "make(robot, context, options, where)"):
        load_robot("fake", CONTEXT, DeviceOverrides(camera=str(part)))


def test_a_missing_driver_module_is_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(DriverMissing):
        load_robot(robot_file(tmp_path, "name: r\ndriver: drivers.kobuky.driver.make\n"), CONTEXT)


def test_a_missing_dependency_of_a_driver_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lidar_driver.py").write_text("import a_vendor_sdk\n")
    monkeypatch.syspath_prepend(tmp_path)
    with raises_naming(DriverMissing, "'a_vendor_sdk'") as caught:
        load_robot(robot_file(tmp_path, "name: r\ndriver: lidar_driver.make\n"), CONTEXT)
    assert caught.value.remedy == "install the package that provides 'a_vendor_sdk'"


def test_a_factory_gets_everything_and_must_make_a_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = robot_file(tmp_path, "name: r\ndriver: somewhere.no_robot\noptions: {a: 1}\n")
    given: list[object] = []

    def factory(*args: object) -> object:
        given.append(no_robot(*args))  # type: ignore[arg-type]
        return given

    monkeypatch.setattr(config, "resolve", lambda dotted, where: factory)
    with raises_naming(ConfigError, "'somewhere.no_robot'", "list", "Robot"):
        load_robot(path, CONTEXT)
    assert given == [[CONTEXT, "r", {"a": 1}, f"{path}: options"]]


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ("{wall_x: 1}", "wall_x", "there is no such field"),
        ("{rate_hz: fast}", "rate_hz", "found 'fast'"),
        ("{rate_hz: 0}", "rate_hz", "rate_hz must be a positive number, got 0"),
        ("{faults: [{kind: gremlins}]}", "faults.0", "gremlins"),
        ("{faults: [{kind: stuck_bumper, zone: rear}]}", "faults.0.stuck_bumper.zone", "found 'rear'"),
        ("{faults: [{kind: stuck_bumper, zne: left}]}", "faults.0.stuck_bumper.zne", "no such field"),
    ],
)
def test_a_bad_option_names_file_and_field(tmp_path: Path, options: str, field: str, message: str) -> None:
    path = robot_file(tmp_path, f"name: r\ndriver: drivers.fake.driver.make_robot\noptions: {options}\n")
    with pytest.raises(ConfigError) as caught:
        load_robot(path, CONTEXT)
    assert caught.value.message.startswith(f"{path}: options: field '{field}")
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["driver: a.b\n", "name: r\n", "name: r\ndriver: a.b\nrobot: x\n", "name: 1\n", ""])
def test_a_malformed_robot_file_is_refused(tmp_path: Path, text: str) -> None:
    path = robot_file(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_robot(path, CONTEXT)
    assert caught.value.message.startswith(f"{path}: {'field' if text else 'the document'}")


def test_a_cameras_options_can_be_given_when_a_command_starts(tmp_path: Path) -> None:
    camera = tmp_path / "camera.yaml"
    camera.write_text("name: c\ndriver: a.b\noptions: {color: 720p, imaging: {mount: habitat, exposure_s: 0.01}}\n")
    changes = ("color=1536p", "imaging.mount=null", "noise.sigma=0.5")
    _, file = read_robot_file("fake", DeviceOverrides(camera=str(camera), camera_options=changes))
    assert file.camera is not None
    assert file.camera.options == {
        "color": "1536p",
        "imaging": {"mount": None, "exposure_s": 0.01},
        "noise": {"sigma": 0.5},
    }


@pytest.mark.parametrize("change", ["color", "=1", "imaging.=1", "color.deep=1"])
def test_what_is_no_option_of_a_camera_is_refused(change: str, tmp_path: Path) -> None:
    camera = tmp_path / "camera.yaml"
    camera.write_text("name: c\ndriver: a.b\noptions: {color: 720p}\n")
    with raises_naming(ConfigError, repr(change)):
        read_robot_file("fake", DeviceOverrides(camera=str(camera), camera_options=(change,)))
    with raises_naming(ConfigError, "camera", "color=1"):
        read_robot_file("fake", DeviceOverrides(camera_options=("color=1",)))


# --- parts ----------------------------------------------------------------------------------------------------------

FUSED = "driver: robot_runtime.localization.fused.make_localizer"


def test_a_chosen_part_replaces_the_drivers_own_and_stands_in_the_configuration(tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text(f"name: mine\n{FUSED}\noptions: {{max_std_m: 0.1}}\n", encoding="utf-8")
    chosen = DeviceOverrides(localizer=str(preset))
    robot = load_robot("fake", CONTEXT, chosen)
    assert robot.localizer.info.name == "fused fake localizer"
    assert robot.referee.info.name == "fake referee"
    _, file = read_robot_file("fake", chosen)
    assert file.localizer == DeviceConfig("robot_runtime.localization.fused.make_localizer", {"max_std_m": 0.1}, "mine")
    assert read_robot_file("fake")[1].localizer is None


def test_a_part_in_the_robots_file_yields_to_a_chosen_one(tmp_path: Path) -> None:
    text = f"name: r\ndriver: drivers.fake.driver.make_robot\nreferee: {{{FUSED}, options: {{nonsense: 1}}}}\n"
    path = robot_file(tmp_path, text)
    with raises_naming(ConfigError, "mine.yaml: referee: options: field 'nonsense'"):
        load_robot(path, CONTEXT)
    assert load_robot(path, CONTEXT, DeviceOverrides(referee="fused")).referee.info.name == "fused fake localizer"


def test_one_source_for_policy_and_referee_is_one_device() -> None:
    """A serial port opens once."""
    robot = load_robot("fake", CONTEXT, DeviceOverrides(localizer="fused", referee="fused"))
    assert robot.referee is robot.localizer


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (DeviceOverrides(localizer="fusd"), "there is no localizer preset 'fusd'"),
        (DeviceOverrides(camera="nothing.yaml"), "nothing.yaml: no such file"),
        (DeviceOverrides(camera="launch/localizers/fused.yaml"), "fused.yaml: field 'driver': .* makes no Camera"),
    ],
)
def test_a_chosen_part_that_cannot_be_is_named(chosen: DeviceOverrides, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_robot("fake", CONTEXT, chosen)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("imaging.depth_max_m=5500", "5500 m"),
        ("imaging.depth_mx_m=5", "depth_mx_m"),
        ("latency_s=30", "30 s"),
        ("imaging={depth_min_m: 3, depth_max_m: 2}", "depth_min_m"),
        ("rate_hz=soon", "soon"),
    ],
)
def test_a_wrong_value_of_the_command_line_names_it_and_not_the_preset(change: str, named: str) -> None:
    chosen = DeviceOverrides(camera="opencv", camera_options=("hfov_deg=90", change))
    with raises_naming(ConfigError, f"--camera-arg {change}", named) as caught:
        load_robot("fake", RobotContext(None, None, 0), chosen)
    assert "launch/cameras" not in caught.value.message


def test_a_wrong_value_of_the_preset_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "camera.yaml"
    path.write_text(
        "name: c\ndriver: drivers.opencv_camera.driver.make_camera\noptions:\n  hfov_deg: 90\n  latency_s: 30\n"
    )
    chosen = DeviceOverrides(camera=str(path), camera_options=("rate_hz=20",))
    with raises_naming(ConfigError, path, "latency_s", "line 5") as caught:
        load_robot("fake", RobotContext(None, None, 0), chosen)
    assert "--camera-arg" not in caught.value.message
