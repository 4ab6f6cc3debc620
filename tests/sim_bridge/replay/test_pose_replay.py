"""Recorded poses in the simulator: an exact camera's images repeat bit for bit, and a wrong one is found out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scripted import DOWN, INTO_A_WALL, TASK, UP, F, L, R, record, replayed, steps_of
from things_room import BOWL, CAMERA, MUG, crosshair_on, make_scene, make_things_robot, on_floor

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import RecordingError
from robot_runtime.hal import RgbdFrame
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import StepRecord
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.task import Success, Task
from sim_bridge.replay.backends.base import SimulatorBackend
from sim_bridge.replay.backends.mujoco import factory
from sim_bridge.replay.camera_pose import logged_camera
from sim_bridge.replay.image_error import ColorError, DepthError
from sim_bridge.replay.pose_replay import FramePair, pose_replay
from sim_bridge.replay.results import FarFrames, FrameDifference, PoseReplay, Replay
from sim_bridge.replay.text import far_sentence

LOOKS = [L, UP, F, R, DOWN, DOWN, F, L, L, UP, F]
LARGER = replace(TASK, camera=replace(TASK.camera, width=160, height=120))


def at_height(height_m: float) -> Task:
    return replace(TASK, camera=replace(TASK.camera, height_m=height_m))


def pose_of(replay: Replay) -> PoseReplay:
    assert replay.pose is not None, replay.notes
    return replay.pose


def assert_identical(pose: PoseReplay, frames: int) -> None:
    assert [frame.index for frame in pose.frames] == list(range(frames))
    for frame in pose.frames:
        assert (frame.depth.mean_abs_mm, frame.depth.missing_recorded, frame.depth.missing_twin) == (0, 0, 0)
        assert (frame.color.mean_abs, frame.color.psnr_db, frame.color.ssim) == (0, None, 1)


@pytest.fixture(scope="module")
def log(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exact robot's log, with looks."""
    return record(tmp_path_factory.mktemp("exact"), room, [INTO_A_WALL])[0]


def test_an_exact_cameras_images_repeat_to_the_last_bit(log: Path) -> None:
    (replay,) = replayed([log], parts=("pose",))
    assert replay.notes == ()
    assert_identical(pose_of(replay), len(INTO_A_WALL) + 1)
    offset = pose_of(replay).offset
    assert offset is not None
    assert offset.tilt_deg is not None
    assert offset.tilt_deg.value == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "height_m"), [("interbotix", 0.562), ("pyrobot-kobuki", 0.591)])
def test_a_camera_that_turns_off_its_own_centre(room: Scene, tmp_path: Path, name: str, height_m: float) -> None:
    (log,) = record(tmp_path, room, [LOOKS], task=at_height(height_m), options={"camera": {"mount": name}})
    (replay,) = replayed([log], parts=("pose",))
    assert replay.notes == ()
    assert_identical(pose_of(replay), len(LOOKS) + 2)


@pytest.mark.slow
def test_a_mount_that_is_gone_or_was_changed_is_named(room: Scene, tmp_path: Path) -> None:
    mount = tmp_path / "mount.yaml"
    mount.write_text(yaml.safe_dump({"pan_joint_m": [0.0, 0.0, 0.5], "camera": {"xyz_m": [0.05, 0.0, 0.0]}}))
    (log,) = record(tmp_path / "logs", room, [[UP]], task=at_height(0.5), options={"camera": {"mount": str(mount)}})
    mount.write_text(yaml.safe_dump({"pan_joint_m": [0.0, 0.0, 0.6]}))
    (changed,) = replayed([log], parts=("pose",))
    mount.unlink()
    (gone,) = replayed([log], parts=("pose",))
    for replay, said in ((changed, "was changed: it has the camera 112 mm"), (gone, "cannot be read")):
        (note,) = replay.notes
        assert note.part == "pose"
        assert said in note.message
        assert "taken to turn about its own center" in note.message
        level, up, *_ = pose_of(replay).frames
        assert level.depth.mean_abs_mm == 0  # where it is at rest is in the log
        assert up.depth.mean_abs_mm is not None
        assert up.depth.mean_abs_mm > 0


@pytest.mark.slow
def test_a_camera_that_hangs_is_found_and_the_images_top_tells(room: Scene, tmp_path: Path) -> None:
    wrong = {"tilt_deg": -2.5, "roll_deg": 1.0, "pan_deg": 0.5, "height_m": 0.02}
    options = {"camera": {"mount_error": wrong}}
    (log,) = record(tmp_path, room, [LOOKS, [R] * 8], task=LARGER, options=options)[:1]
    pose = pose_of(replayed([log], parts=("pose",))[0])
    offset = pose.offset
    assert offset is not None
    found = [offset.tilt_deg, offset.roll_deg, offset.pan_deg, offset.up_mm]
    assert [one.value for one in found if one is not None] == pytest.approx([-2.5, 1.0, 0.5, 20.0], abs=0.5)
    assert found[0] is not None
    assert found[0].value == pytest.approx(-2.5, abs=0.05)
    first = pose.frames[0].depth
    assert first.median_mm is not None
    assert first.median_mm > 1


@pytest.mark.slow
def test_outside_the_log_cameras_range_the_simulator_is_blind_too(room: Scene, tmp_path: Path) -> None:
    options = {"camera": {"depth_min_m": 0.5, "depth_max_m": 2.0}}
    (log,) = record(tmp_path, room, [[L, F, F]], options=options)
    pose = pose_of(replayed([log], parts=("pose",))[0])
    assert pose.depth_range_m == (0.5, 2.0)
    assert all(0 < frame.depth.compared < 1 for frame in pose.frames)
    assert_identical(pose, 5)


class Watched(SimulatorBackend):
    """A backend that records its calls and renders one color, and a wall at a distance of one meter."""

    name = "watched"

    def __init__(self) -> None:
        self.asked: list[np.ndarray] = []

    def begin(self, *_: object) -> None:  # type: ignore[override]
        raise AssertionError

    act = begin  # type: ignore[assignment]

    def render(self, lens, map_from_camera):  # type: ignore[no-untyped-def]
        self.asked.append(map_from_camera)
        return np.full((48, 64, 3), 90, np.uint8), np.ones((48, 64), np.float32)

    def close(self) -> None:
        pass


def test_steps_without_pose_or_images_are_left_out_and_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = steps_of(log)
    lost = replace(records[2].referee, pose=SE2(math.nan, 0.0, 0.0))
    elsewhere = replace(records[4].referee, frame="odom")
    records[2], records[4] = replace(records[2], referee=lost), replace(records[4], referee=elsewhere)
    seen: list[FramePair] = []
    with LogReader(log) as reader:
        list(reader.steps(images=False))
        frame = reader.frame

        def some(record: StepRecord) -> RgbdFrame:
            if record.index in (6, 7):
                raise RecordingError(f"{log}: step {record.index} has no images", "record it again")
            return frame(record)

        monkeypatch.setattr(reader, "frame", some)
        simulator = Watched()
        pose, notes = pose_replay(reader, records, simulator, seen.append)
    assert pose is not None
    left = [index for index in range(len(records)) if index not in (2, 4, 6, 7)]
    assert [frame.index for frame in pose.frames] == [pair.index for pair in seen] == left
    assert len(simulator.asked) == len(left)
    assert [note.message for note in notes] == [
        "step 2 not compared: the referee has no pose there",
        "step 4 not compared: the referee's poses are in 'odom', not in 'map'",
        "2 steps, 6 to 7, not compared: the log has no images",
    ]


def test_without_any_image_there_is_a_reason_and_no_result(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: LogReader, record: StepRecord) -> RgbdFrame:
        raise RecordingError(f"{self.path}: step {record.index} has no images", "record it again")

    monkeypatch.setattr(LogReader, "frame", none)
    (replay,) = replayed([log])
    assert replay.action is not None  # needs no images
    (replay,) = replayed([log], parts=("pose",))
    assert replay.pose is None
    assert "the log has no images" in replay.notes[0].message


def test_a_chosen_cameras_images_look_where_the_head_points(log: Path) -> None:
    """A camera that straightens its images sits where its mount has it, but looks where pan and tilt say."""
    with LogReader(log) as reader:
        header = reader.header
        part = {"driver": "drivers.x.make_camera", "options": {"imaging": {"mount": "interbotix"}}, "name": "x"}
        config = {**header.robot_config, "camera": part}
        plain = logged_camera(header)
        mount = (0.101445, 0.032456, 0.561689)
        chosen = logged_camera(replace(header, robot_config=config, mount=mount))
    assert not plain.straightened
    assert chosen.straightened
    assert chosen.note == ""
    pose = chosen.pose_from(SE2(1.0, 2.0, 0.0), 0.0, math.radians(30))
    assert pose[:3, 2] == pytest.approx((math.cos(math.radians(30)), 0, math.sin(math.radians(30))))
    assert pose[2, 3] > mount[2] + 0.02  # beyond the tilt axis, it goes up as it looks up


@pytest.mark.slow
def test_objects_stand_where_they_stood_and_what_is_carried_is_nowhere(tmp_path: Path) -> None:
    rules = Rearrangement("geometric", crosshair_on(MUG.center), reach_m=1.2, max_translation_m=0.5, harm_min_iou=0.5)
    task = replace(
        TASK,
        kind="rearrangement",
        actions=(*TASK.actions, Action.GRAB_RELEASE),
        sensors=("rgb", "held", "phase"),
        camera=CAMERA,
        success=Success("objects"),
        settings=rules,
    )
    objects = (RearrangedObject("mug", MUG.pose, on_floor(MUG, 0.0, -1.1)), RearrangedObject("bowl", BOWL.pose))
    scene, episode = make_scene(tmp_path), Episode("1", "things", SE2(), (), details=Layout(objects=objects))
    recorder = Recorder(tmp_path / "logs")
    with make_things_robot(scene) as robot, Env(robot, task, scene, (recorder,)) as env:
        env.reset(episode)
        for action in (Action.GRAB_RELEASE, R, R, R, Action.GRAB_RELEASE, L, L, Action.STOP):
            env.step(action)
        recorder.close()
    assert recorder.path is not None
    with LogReader(recorder.path) as log, factory("sim")(log.header, scene, False, {}, "test") as simulator:
        records = list(log.steps(images=False))
        pose, notes = pose_replay(log, records, simulator)
    assert {record.state.held for record in records} == {(), ("mug",)}
    assert pose is not None
    assert notes == ()
    assert_identical(pose, len(records))


def test_frames_that_a_median_hides_are_counted_and_the_worst_is_named() -> None:
    """7 of 48 frames far off, the worst 19 %: the median over frames says 0.0 %."""
    shares = [0.0] * 40 + [0.005] + [0.02] * 6 + [0.19]
    color = ColorError(0.0, None, 1.0)
    frames = tuple(
        FrameDifference(index, 0, DepthError(1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, share), color)
        for index, share in enumerate(shares)
    )
    pose = PoseReplay(frames, (0.1, 10.0), None)
    assert pose.median("depth", "far_off") == 0.0
    assert pose.far_frames == FarFrames(7, 48, 0.19, 47)
    assert far_sentence(pose.far_frames) == "7 of 48 frames above 1 %, the worst 19.0 %, at step 47"
    assert replace(pose, frames=()).far_frames is None
    assert far_sentence(None) == "no depth to compare"
