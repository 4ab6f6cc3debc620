"""Logs of every kind and in every state: what can be replayed is, and the rest is said."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from raising import raises_naming
from scripted import INTO_A_WALL, TASK, F, L, R, moved, record, replayed, rewritten, steps_of

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd, Outcome
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.action_replay import replay_actions
from sim_bridge.replay.backends.mujoco import START_REACH_M, factory
from sim_bridge.replay.results import Replay


@pytest.fixture(scope="module")
def log(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One episode of an exact robot."""
    (path,) = record(tmp_path_factory.mktemp("one"), room, [INTO_A_WALL])
    return path


def said(replay: Replay) -> str:
    """All notes."""
    return "\n".join(f"{note.part}: {note.message} [{note.remedy}]" for note in replay.notes)


# --- where it begins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("into_wall_m", "free"), [(0.03, True), (0.1, True), (START_REACH_M + 0.1, False)])
def test_a_start_that_is_not_free_is_moved_to_the_nearest_or_refused(
    into_wall_m: float, free: bool, room: Scene, tmp_path: Path
) -> None:
    """The body ends 0.18 m from its center, the room at x = 3 m; the error of a referee is a few centimeters."""
    (near,) = record(tmp_path / "near", room, [[L, L, L, F, F]], starts=[SE2(2.81, 0.0, math.pi / 2)])
    shifted = rewritten(near, tmp_path / "off", lambda step: moved(step, x_m=0.01 + into_wall_m))
    (replay,) = replayed([shifted])
    if not free:
        assert replay.action is None
        assert f"nor is any pose free within {START_REACH_M:g} m" in said(replay)
        return
    assert replay.action is not None
    assert into_wall_m - 1e-6 <= replay.action.start_moved_m < into_wall_m + 0.03
    assert "the recorded start is not free in the simulator" in said(replay)
    assert f"{100 * replay.action.start_moved_m:.1f} cm" in said(replay)
    assert replay.action.largest_error_m == pytest.approx(replay.action.start_moved_m, abs=2e-3)


def test_a_log_without_poses_says_so(log: Path, tmp_path: Path) -> None:
    lost = rewritten(log, tmp_path, lambda step: moved(step, frame="odom"))
    (replay,) = replayed([lost])
    assert replay.action is None
    assert "step 0 has no pose in 'map'" in said(replay)


def test_steps_without_poses_are_replayed_and_not_compared(log: Path, tmp_path: Path) -> None:
    gap = rewritten(log, tmp_path, lambda step: moved(step, x_m=math.nan) if 3 <= step.index <= 5 else step)
    (replay,) = replayed([gap], forced=True)
    action = replay.action
    assert action is not None
    assert len(action.steps) == action.recorded_steps
    assert [step.index for step in action.steps if step.distance_m is None] == [3, 4, 5]
    assert [step.index for step in action.steps if step.difference is None] == [0, 3, 4, 5, 6]
    assert [step.index for step in action.steps if step.forced is None] == [0, 3, 4, 5, 6]
    assert "3 steps from 3 on have no recorded pose" in said(replay)
    assert action.largest_error_m == pytest.approx(0, abs=1e-9)


# --- how it ends ----------------------------------------------------------------------------------------------------


def test_what_is_left_of_a_torn_log_is_replayed(log: Path, tmp_path: Path) -> None:
    content = log.read_bytes()
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(content[: 2 * len(content) // 3])
    left = len(steps_of(torn))
    assert 1 < left < len(steps_of(log))
    (replay,) = replayed([torn])
    assert not replay.complete
    assert "the complete part is replayed" in said(replay)
    assert replay.action is not None
    assert len(replay.action.steps) == replay.action.recorded_steps == left
    assert replay.action.largest_error_m == pytest.approx(0, abs=1e-9)


def test_a_log_without_steps_or_without_a_header_has_nothing_to_replay(log: Path, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "empty")
    with LogReader(log) as reader:
        recorder.on_episode_start(reader.header)
    recorder.close()
    assert recorder.path is not None
    (replay,) = replayed([recorder.path])
    assert replay.action is None
    assert "no step in" in said(replay)
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(log.read_bytes()[:100])
    with raises_naming(RecordingError, "torn.mcap"):
        replayed([torn])


def test_steps_that_were_lost_end_the_replay_before_them(log: Path, room: Scene) -> None:
    """As in a log that ``logs recover`` has repaired."""
    with LogReader(log) as reader, factory("sim")(reader.header, room, False, {}, "test") as simulator:
        whole = list(reader.steps(images=False))
        action, notes = replay_actions(reader, [*whole[:4], *whole[6:]], simulator)
        assert [step.index for step in action.steps] == [0, 1, 2, 3]
        assert "replayed up to step 3: the log has no step 4" in notes[0].message
        action, notes = replay_actions(reader, whole[2:], simulator)
    assert "begins at step 2" in notes[0].message
    assert action.largest_error_m == pytest.approx(0, abs=5e-3)  # headings are aimed at from there on anew


def test_an_aborted_episode_is_replayed_up_to_there(log: Path, tmp_path: Path) -> None:
    last = steps_of(log)[-2]
    assert last.result is not None
    result = replace(last.result, outcome=Outcome.FAULT)
    end = EpisodeEnd(EndReason.LOCALIZATION_LOST, last.index, 0, "beacons are silent", F, result)
    (replay,) = replayed([rewritten(log, tmp_path, end=end)])
    assert "the episode was ended by localization_lost (beacons are silent)" in said(replay)
    assert "the last action, move_forward, is not replayed" in said(replay)
    assert replay.action is not None
    assert replay.action.largest_error_m == pytest.approx(0, abs=1e-9)


def test_a_simulator_that_cannot_go_on_says_where(log: Path) -> None:
    """Its localizer loses the robot, and never finds it again."""
    silent = {"localizer": {"dropout_probability": 0.02, "dropout_s": 1000.0}}
    (replay,) = replayed([log], twin_options=silent)
    assert replay.action is None or len(replay.action.steps) < replay.action.recorded_steps
    assert "localizer" in said(replay)


# --- scenes and robots ----------------------------------------------------------------------------------------------


def test_without_its_scene_nothing_is_placed(log: Path, room_folder: Path, tmp_path: Path) -> None:
    gone = rewritten(log, tmp_path, header={"scene": _elsewhere(log, tmp_path / "gone")})
    (replay,) = replayed([gone], parts=("pose", "action"))
    assert (replay.pose, replay.action, replay.scene.folder) == (None, None, None)
    assert len(replay.notes) == 1
    assert "'room' is not at" in said(replay)
    assert "--scene" in said(replay)
    (named,) = replayed([gone], scene=str(room_folder))
    assert named.action is not None
    assert named.scene.same


def test_another_version_of_the_scene_is_refused_unless_it_will_do(
    log: Path, room_folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "room"
    shutil.copytree(room_folder, other)
    with (other / "scene.yaml").open("a", encoding="utf-8") as file:
        file.write("# moved a chair\n")
    (refused,) = replayed([log], scene=str(other))
    assert refused.action is None
    recorded = refused.scene.recorded_digest
    assert recorded[:12] in said(refused)
    assert "--any-scene-version" in said(refused)
    (taken,) = replayed([log], scene=str(other), any_scene_version=True)
    assert taken.action is not None
    assert not taken.scene.same
    assert taken.scene.replayed_digest is not None
    assert taken.scene.replayed_digest[:12] in said(refused)


def test_another_robots_log_is_replayed(room: Scene, tmp_path: Path) -> None:
    """The fake robot has no physics; its way is the simulated one's, but for walls that it does not know."""
    script = [F, F, L, F, R, R, F]
    logs = record(tmp_path, room, [script], driver="drivers.fake.driver.make_robot", options={"rate_hz": 50.0})
    (replay,) = replayed(logs, images=True)
    action = replay.action
    assert action is not None
    assert action.largest_error_m is not None
    assert action.largest_error_m < 0.01
    assert (action.contact_agreement, action.divergence) == (1, None)
    assert all(step.image is not None and not step.image.rgb_identical for step in action.steps)


@pytest.mark.slow
def test_the_recorded_robot_is_made_again(room: Scene, tmp_path: Path) -> None:
    """With its errors, which are those of its first episode."""
    noisy = {"actuation": {"linear_noise_m": 0.01, "angular_noise_rad": 0.02}, "body": {"radius_m": 0.2}}
    logs = record(tmp_path / "own", room, [INTO_A_WALL], options=noisy)
    own, sim = replayed(logs, into="recorded")[0], replayed(logs)[0]
    assert own.action is not None
    assert own.action.largest_error_m == pytest.approx(0, abs=1e-9)
    assert sim.action is not None
    assert sim.action.largest_error_m is not None
    assert sim.action.largest_error_m > 1e-4
    nameless = rewritten(logs[0], tmp_path / "nameless", header={"robot_config": {}})
    assert "no configuration of its robot 'scripted'" in said(replayed([nameless], into="recorded")[0])


@pytest.mark.slow
def test_a_camera_that_recorded_its_bytes_does_not_record_again(room: Scene, tmp_path: Path) -> None:
    """An Azure Kinect wrote a file, which is there still."""
    (log,) = record(tmp_path / "short", room, [[F]])
    taken = tmp_path / "run.mkv"
    taken.touch()
    part = {"name": "kinect", "driver": "drivers.azure_kinect.driver.make_camera", "options": {"record_to": str(taken)}}
    own = {"name": "own", "driver": "sim_bridge.robot.driver.make_robot", "options": {}, "camera": part}
    recorded = rewritten(log, tmp_path / "kinect", header={"robot_config": own})
    (replay,) = replayed([recorded], into="recorded")
    assert replay.action is not None, said(replay)
    assert replay.action.largest_error_m == pytest.approx(0, abs=1e-3)
    assert taken.stat().st_size == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"into": "fake"}, "is not simulated in this process"),
        ({"into": "simm"}, "there is no robot preset 'simm'"),
        ({"twin_options": {"actuation": {"linear_scael": 2}}}, "linear_scael"),
    ],
)
def test_a_simulator_that_cannot_be_made_is_named(options: dict, message: str, log: Path) -> None:
    (replay,) = replayed([log], **options)
    assert replay.action is None
    assert message in said(replay)


def test_neither_step_limit_nor_success_ends_a_replay(room: Scene, tmp_path: Path) -> None:
    """In the simulator as in the log, actions follow each other until the last."""
    short = replace(TASK, max_steps=3, success=replace(TASK.success, when="reached"))
    (cut,) = record(tmp_path / "long", room, [[F, L, F, L, F, R, F]])
    (replay,) = replayed([rewritten(cut, tmp_path / "short", header={"task": short})])
    assert replay.action is not None
    assert len(replay.action.steps) == replay.action.recorded_steps == 9


def _elsewhere(log: Path, folder: Path) -> Scene:
    with LogReader(log) as reader:
        return replace(reader.header.scene, folder=folder)
