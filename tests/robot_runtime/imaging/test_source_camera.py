import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_room import CAMERA, Witness, make_episode, make_fake, make_scene, make_task
from raising import raises_naming
from raw_source import NARROW, WIDE, RawSource

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import Offset
from robot_runtime.conformance import CameraConformance
from robot_runtime.env import Env
from robot_runtime.errors import (
    BlindCamera,
    ConfigError,
    DeviceFault,
    ForeignCalibration,
    FrozenCamera,
    NotConnected,
    StaleData,
    UnpairedImages,
)
from robot_runtime.hal import Intrinsics, Robot, Velocity
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.camera import BLIND_FRAMES, ImagingOptions, color_from_target, source_camera
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, Outcome
from robot_runtime.robots.calibration_file import Stamp, write_calibration
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.robots.loader import RobotContext
from robot_runtime.sensors import check_camera

TASK = make_task()
CONTEXT = RobotContext(make_scene(), CAMERA, 0)


def robot_with(pinhole: Intrinsics = WIDE, has_depth: bool = True, **options: Any) -> tuple[Robot, RawSource]:
    """The fake robot, seeing through a source."""
    robot = make_fake(TASK)
    source = RawSource(robot, pinhole, has_depth=has_depth)
    return replace(robot, camera=source_camera(source, robot, CONTEXT, ImagingOptions(**options))), source


@contextmanager
def connected(**arguments: Any) -> Iterator[tuple[Robot, RawSource]]:
    robot, source = robot_with(**arguments)
    with robot:
        robot.clock.sleep(0.2)
        yield robot, source


class TestConformance(CameraConformance):
    def make_robot(self) -> Robot:
        return robot_with()[0]


def test_it_sees_what_the_training_camera_would() -> None:
    with connected(depth_unit_m=0.0) as (robot, _):
        frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
        rays = Lens.of(CAMERA.intrinsics).pixel_rays()
    floor_m = CAMERA.height_m / rays[-1, :, 1]
    np.testing.assert_allclose(frame.depth_m[-1], floor_m, rtol=0.005)
    assert frame.depth_m[12, 16] == pytest.approx(2.9, abs=0.002)
    assert robot.camera.info.intrinsics == CAMERA.intrinsics


def test_depth_is_whole_millimeters_unless_told_otherwise() -> None:
    for unit_m, whole in ((0.001, True), (0.0, False)):
        with connected(depth_unit_m=unit_m) as (robot, _):
            assert robot.camera.info.depth_unit_m == unit_m
            depth_m = robot.camera.capture(robot.clock.now_ns(), 1.0).depth_m
        counts = np.rint(depth_m * 1000).astype(np.uint16)
        assert np.array_equal(counts * np.float32(0.001), depth_m) is whole


def test_exposures_begin_after_the_instant_asked_for() -> None:
    with connected(exposure_s=0.02) as (robot, _):
        asked_ns = robot.clock.now_ns()
        frame = robot.camera.capture(asked_ns, 1.0)
    assert frame.stamp_ns >= asked_ns + seconds_to_ns(0.01)


@pytest.mark.parametrize("name", [name for name, _ in config.presets("cameras") if name != "replay"])
def test_presets_wait_for_an_exposure_that_began_after_the_motion(name: str) -> None:
    document = config.read_yaml(config.find_preset("cameras", name))
    assert document["options"]["imaging"]["exposure_s"] >= 1 / document["options"].get("rate_hz", 30) - 0.001


def test_a_turned_mount_is_turned_back() -> None:
    mount = CameraMount((0.0, 0.0, 0.6), camera=Offset((0.1, 0.0, 0.0), (2.0, 5.0, -3.0)))
    turn = color_from_target(mount)
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-12)
    # The sensor looks 5 degrees down (pitch is positive there): the target's axis lies above its own, y is down.
    assert turn[1, 2] == pytest.approx(-math.sin(math.radians(5)), abs=0.005)
    # And it looks 3 degrees to the right (yaw is positive to the left): the target's axis lies to its left.
    assert turn[0, 2] == pytest.approx(-math.sin(math.radians(3)), abs=0.005)
    # It is rolled 2 degrees to its right: up is to the left in its image.
    assert turn[0, 1] == pytest.approx(math.sin(math.radians(2)), abs=0.005)
    np.testing.assert_array_equal(color_from_target(CameraMount((0.0, 0.0, 0.6))), np.eye(3))


def test_the_mount_comes_from_a_file_or_from_the_robot(tmp_path: Path) -> None:
    own, _ = robot_with()
    assert own.camera.info.mount.z_m == CAMERA.height_m
    file = tmp_path / "mount.yaml"
    file.write_text("pan_joint_m: [0.02, 0.0, 0.5]\ncamera: {xyz_m: [0.1, 0.0, 0.05]}\n")
    robot, _ = robot_with(mount=str(file))
    mount = robot.camera.info.mount
    assert (mount.x_m, mount.y_m, mount.z_m) == pytest.approx((0.12, 0.0, 0.55))


def test_a_mode_that_is_too_narrow_is_refused_with_those_that_are_not() -> None:
    with raises_naming(ConfigError, "test camera 12", "31.2") as caught:
        robot_with(pinhole=NARROW)
    assert "set color to wide (100%)" in caught.value.remedy
    with connected(pinhole=NARROW, allow_partial_coverage=True) as (robot, _):
        frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
        assert not frame.rgb[0].any()
        assert robot.camera.coverage()[0].fraction < 0.5  # type: ignore[attr-defined]


def test_a_calibration_file_replaces_the_factorys_for_its_own_device_only(tmp_path: Path) -> None:
    _, source = robot_with()
    found = replace(source.calibration, depth_bias_m=0.1, source="intrinsics")

    def write(robot: str, serial: str) -> str:
        path = tmp_path / f"{robot}{serial}.yaml"
        stamp = Stamp.now("intrinsics", robot, serial, 10, "by hand", {}, {})
        write_calibration(path, stamp, found.to_document())
        return str(path)

    with connected(calibration=write("fake", "12")) as (robot, _):
        assert robot.camera.calibration == found  # type: ignore[attr-defined]
        depth_m = robot.camera.capture(robot.clock.now_ns(), 1.0).depth_m
    assert depth_m[12, 16] == pytest.approx(3.0, abs=0.002)
    for robot_name, serial in (("other", "12"), ("fake", "13")):
        robot, source = robot_with(calibration=write(robot_name, serial))
        with pytest.raises(ForeignCalibration):
            robot.camera.connect()
        assert not source.connected


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_frozen_pictures_are_noticed_once_the_robot_moves() -> None:
    with connected() as (robot, source):
        source.frozen = True
        for _ in range(3):
            robot.camera.capture(robot.clock.now_ns(), 1.0)  # nothing moves: nothing is wrong
        robot.head.command(0.0, math.radians(-30))
        robot.clock.sleep(1.0)
        with raises_naming(FrozenCamera, "test camera 12"):
            robot.camera.capture(robot.clock.now_ns(), 1.0)
        source.frozen = False
        robot.camera.capture(robot.clock.now_ns(), 1.0)


def test_a_blind_depth_sensor_is_named_and_a_single_flash_is_not() -> None:
    with connected() as (robot, source):
        source.blind = True
        with pytest.raises(BlindCamera, match=f"{BLIND_FRAMES} depth images in succession") as caught:
            robot.camera.capture(robot.clock.now_ns(), 1.0)
        assert "allow_blind_depth" in caught.value.remedy
        with pytest.raises(BlindCamera):
            robot.camera.capture(robot.clock.now_ns(), 0.05)  # even where the time runs out first
        source.blind = False
        robot.camera.capture(robot.clock.now_ns(), 1.0)
    with connected(allow_blind_depth=True) as (robot, source):
        source.blind = True
        assert not robot.camera.capture(robot.clock.now_ns(), 1.0).depth_m.any()


def test_halves_that_were_not_exposed_together_are_no_pair() -> None:
    with connected(max_skew_s=0.02) as (robot, source):
        source.skew_s = 0.03
        with raises_naming(UnpairedImages, "0.030", "0.02"):
            robot.camera.capture(robot.clock.now_ns(), 1.0)


def test_it_says_when_it_is_not_connected_and_that_it_has_no_segmentation() -> None:
    robot, source = robot_with()
    with raises_naming(NotConnected, "test camera 12"):
        robot.camera.capture(0, 1.0)
    with robot:
        robot.clock.sleep(0.1)
        with raises_naming(DeviceFault, "segmentation"):
            robot.camera.capture(robot.clock.now_ns(), 1.0, semantic=True)
    assert not source.connected
    robot.camera.close()


def test_a_camera_of_color_alone_has_holes_and_is_refused_to_who_needs_depth() -> None:
    with connected(has_depth=False) as (robot, _):
        frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
        assert frame.rgb.any()
        assert not frame.depth_m.any()
        with raises_naming(ConfigError, "'depth'"):
            check_camera(TASK, robot.camera.info)
        check_camera(make_task(sensors=("rgb", "gps")), robot.camera.info)


@pytest.mark.parametrize(
    ("fault", "value", "error"),
    [
        ("unplugged", True, DeviceFault),
        ("blind", True, BlindCamera),
        ("frozen", True, FrozenCamera),
        ("skew_s", 0.2, UnpairedImages),
    ],
)
def test_an_episode_ends_with_wheels_at_zero_and_the_log_intact(
    tmp_path: Path, fault: str, value: object, error: type[DeviceFault]
) -> None:
    witness = Witness()
    with connected() as (robot, source), closing(Recorder(tmp_path)) as recorder:
        env = Env(robot, TASK, make_scene(), (recorder, witness))
        env.reset(make_episode(SE2(-2.0, 0.0, 0.0), goal=(2.0, 0.0)))
        env.step(Action.MOVE_FORWARD)
        setattr(source, fault, value)
        with pytest.raises(error, match="12") as caught:
            env.step(Action.MOVE_FORWARD)
        assert env.episode_over
        assert robot.base.command(Velocity()) == Velocity()
        assert robot.base.state(0.1).velocity == Velocity()
    (end,) = witness.ends
    assert (end.reason, end.detail) == (EndReason.FAULT, caught.value.message)
    with LogReader(next(tmp_path.glob("*.mcap"))) as log:
        assert log.end is not None
        assert log.end.reason is EndReason.FAULT
        assert len(list(log.steps())) == 2


def test_a_camera_that_falls_silent_is_stale_in_time() -> None:
    with connected() as (robot, _):
        before_ns = robot.clock.now_ns()
        with pytest.raises(StaleData):
            robot.camera.capture(before_ns + seconds_to_ns(9), 0.3)
        assert robot.clock.now_ns() - before_ns < seconds_to_ns(0.5)


def test_misspelt_options_are_refused() -> None:
    with raises_naming(ConfigError, "allow_partial_covrage"):
        config.parse({"allow_partial_covrage": True}, ImagingOptions, "my.yaml: imaging")


def test_a_robot_that_cannot_move_is_no_frozen_camera() -> None:
    robot = make_fake(TASK, wall_x_m=0.3)
    camera = source_camera(RawSource(robot), robot, CONTEXT, ImagingOptions())
    with replace(robot, camera=camera) as blocked:
        env = Env(blocked, TASK, make_scene())
        env.reset(make_episode(goal=(2.0, 0.0)))
        for _ in range(6):
            env.step(Action.MOVE_FORWARD)
        assert env.record.result is not None
        assert env.record.result.outcome is Outcome.CONTACT
