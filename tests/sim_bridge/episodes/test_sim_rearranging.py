"""Episodes in which objects are moved, on the simulated robot: layouts, phases, records, logs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from things_room import BOWL, CAMERA, MUG, crosshair_on, make_scene, make_things_robot, on_floor

from robot_runtime.actions.discrete import Action, Magnitudes
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, EpisodeError, InvalidStart
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.recover import recover
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import GrabOutcome, ObjectSource
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.task import Success, Task
from sim_bridge.robot.driver import make_robot

STOP, FORWARD, LEFT, GRAB = Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.GRAB_RELEASE
GOAL = on_floor(MUG, 0.0, -1.1)
BOWL_START = on_floor(BOWL, -0.5, -0.5)
RULES = Rearrangement("geometric", crosshair_on(MUG.center), reach_m=1.2, max_translation_m=0.5, harm_min_iou=0.5)


def make_task(**rules: object) -> Task:
    changed = replace(RULES, **rules)
    return Task(
        name="things",
        kind="rearrangement",
        source="tests",
        actions=(STOP, FORWARD, LEFT, Action.TURN_RIGHT, GRAB),
        magnitudes=Magnitudes(0.25, 90.0, 30.0),
        sensors=("rgb", "imagegoal") if changed.goal == "image" else ("rgb", "held", "phase"),
        camera=CAMERA,
        robot_radius_m=0.18,
        max_steps=6,
        success=Success("objects"),
        settings=changed,
    )


def make_episode(**changes: object) -> Episode:
    objects = (RearrangedObject("mug", MUG.pose, GOAL), RearrangedObject("bowl", BOWL_START))
    return replace(Episode("1", "things", SE2(), (), details=Layout(objects=objects)), **changes)


class Kept(Subscriber):
    """Everything that was recorded."""

    def __init__(self) -> None:
        self.header: EpisodeHeader | None = None
        self.steps: list[StepRecord] = []
        self.end: EpisodeEnd | None = None

    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.header, self.steps = header, []

    def on_step(self, record: StepRecord) -> None:
        self.steps.append(record)

    def on_episode_end(self, end: EpisodeEnd) -> None:
        self.end = end


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The room."""
    return make_scene(tmp_path_factory.mktemp("things"))


def run(scene: Scene, task: Task, actions: list[Action], *subscribers: Subscriber) -> Kept:
    kept = Kept()
    with make_things_robot(scene) as robot, Env(robot, task, scene, (kept, *subscribers)) as env:
        env.reset(make_episode())
        for action in actions:
            env.step(action)
    return kept


def test_an_episode_begins_with_every_object_at_its_start(things: Scene) -> None:
    kept = run(things, make_task(), [STOP])
    first = kept.steps[0]
    assert kept.header is not None
    assert kept.header.object_source is ObjectSource.SIMULATOR
    assert first.state.poses["mug"] == MUG.pose
    assert first.state.poses["bowl"] == BOWL_START
    assert (first.state.held, first.state.grab, first.state.phase) == ((), None, "unshuffle")
    assert kept.end is not None
    assert kept.end.reason is EndReason.STOP


def test_grabbing_carrying_and_releasing_stand_in_the_steps(things: Scene) -> None:
    kept = run(things, make_task(), [GRAB, Action.TURN_RIGHT, GRAB, STOP])
    grabs = [step.state.grab.outcome if step.state.grab else None for step in kept.steps]
    assert grabs == [None, GrabOutcome.GRABBED, None, GrabOutcome.RELEASED, None]
    assert [step.state.held for step in kept.steps] == [(), ("mug",), ("mug",), (), ()]
    assert ["mug" in step.state.poses for step in kept.steps] == [True, False, False, True, True]
    end = kept.steps[-1].state.poses["mug"].position
    assert end == pytest.approx((0.0, -0.9, MUG.size[2] / 2), abs=0.05)
    assert kept.steps[-1].state.poses["bowl"] == BOWL_START
    assert [int(step.observation["held"][0] > -1) for step in kept.steps][:2] == [0, 1]


def test_the_steps_end_where_they_end_in_other_tasks(things: Scene) -> None:
    kept = run(things, make_task(), [LEFT] * 6)
    assert kept.end is not None
    assert (kept.end.reason, kept.end.steps) == (EndReason.MAX_STEPS, 6)


@pytest.mark.parametrize(
    ("walk", "switch"), [([LEFT, STOP], 2), ([LEFT, GRAB, LEFT], 3)], ids=["stopped", "out of steps"]
)
def test_the_walkthrough_shows_the_goal_and_then_everything_starts_anew(
    things: Scene, walk: list[Action], switch: int
) -> None:
    kept = run(things, make_task(goal="experience", walkthrough_steps=3), [*walk, GRAB, *[LEFT] * 5])
    phases = [step.state.phase for step in kept.steps]
    assert phases == ["walkthrough"] * switch + ["unshuffle"] * (len(phases) - switch)
    assert kept.steps[0].state.poses["mug"] == GOAL
    assert kept.steps[switch].state.poses["mug"] == MUG.pose
    assert kept.steps[switch].action is walk[-1]
    assert kept.steps[switch].referee.pose.distance_to(SE2()) < 1e-9
    turned_rad = kept.steps[switch - 1].referee.pose.yaw_rad
    assert turned_rad == pytest.approx(math.radians(90), abs=0.05)
    assert not np.array_equal(kept.steps[0].frame.rgb, kept.steps[switch].frame.rgb)
    assert kept.steps[switch + 1].state.grab is not None
    assert kept.steps[switch + 1].state.grab.outcome is GrabOutcome.GRABBED
    assert kept.end is not None
    assert (kept.end.reason, kept.end.steps) == (EndReason.MAX_STEPS, switch + 6)


def test_nothing_is_taken_in_the_walkthrough(things: Scene) -> None:
    kept = run(things, make_task(goal="experience", walkthrough_steps=3), [GRAB, STOP, STOP])
    assert kept.steps[1].state.grab is not None
    assert kept.steps[1].state.grab.outcome is GrabOutcome.NOTHING
    assert "walkthrough" in kept.steps[1].state.grab.detail
    assert kept.end is not None
    assert kept.end.reason is EndReason.STOP


def test_the_image_of_the_goal_is_what_the_robot_sees_when_all_is_done(things: Scene) -> None:
    kept = run(things, make_task(goal="image"), [STOP])
    walked = run(things, make_task(goal="experience", walkthrough_steps=3), [STOP, STOP])
    goal = kept.steps[0].observation["imagegoal"]
    assert np.array_equal(goal, walked.steps[0].frame.rgb)
    assert not np.array_equal(goal, kept.steps[0].observation["rgb"])
    assert kept.steps[0].state.poses["mug"] == MUG.pose


def test_a_robot_without_a_hand_is_refused_before_anything_moves(things: Scene) -> None:
    bare = make_robot(RobotContext(things, CAMERA, seed=0), "bare", {}, "test")
    with pytest.raises(ConfigError, match=r"'bare' has no manipulator.* and no tracker") as caught:
        Env(bare, make_task(), things)
    assert "YAML" in caught.value.remedy


def test_an_object_that_is_not_where_it_should_start_is_named(things: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with make_things_robot(things) as robot, Env(robot, make_task(), things) as env:
        place = robot.placer.place_objects
        astray = {"mug": on_floor(MUG, 1.5, 1.5)}
        monkeypatch.setattr(robot.placer, "place_objects", lambda poses: place({**poses, **astray}))
        with pytest.raises(InvalidStart, match=r"'mug' is .* m from its start"):
            env.reset(make_episode())


def test_an_episode_with_an_object_that_is_not_there_is_refused(things: Scene) -> None:
    stranger = RearrangedObject("teapot", MUG.pose, GOAL)
    with make_things_robot(things) as robot, Env(robot, make_task(), things) as env:
        with pytest.raises(EpisodeError, match="teapot"):
            env.reset(make_episode(details=Layout(objects=(stranger,))))
        assert env.episode_over


# --- logs ---


@pytest.fixture(scope="module")
def logged(things: Scene, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, Path]:
    """An episode in which the mug is carried, and its log."""
    recorder = Recorder(tmp_path_factory.mktemp("logs"))
    kept = run(things, make_task(), [GRAB, Action.TURN_RIGHT, GRAB, LEFT, STOP], recorder)
    assert recorder.path is not None
    return kept, recorder.path


def same_things(steps: list[StepRecord], read: list[StepRecord]) -> bool:
    return [step.state for step in steps] == [step.state for step in read]


def test_a_log_gives_back_objects_backpack_hand_and_phase(logged: tuple[Kept, Path]) -> None:
    kept, path = logged
    with LogReader(path) as reader:
        assert reader.header.object_source is ObjectSource.SIMULATOR
        assert same_things(kept.steps, list(reader.steps(images=False)))
        assert all(np.array_equal(a.frame.rgb, b.frame.rgb) for a, b in zip(kept.steps, reader.steps(), strict=True))


def test_poses_are_written_only_when_something_moved(logged: tuple[Kept, Path]) -> None:
    with logged[1].open("rb") as file:
        written = [message.sequence for _, _, message in make_reader(file).iter_messages(topics=["/objects"])]
    assert written == [0, 1, 3]


def test_a_recovered_log_has_them_too(logged: tuple[Kept, Path], tmp_path: Path) -> None:
    kept, path = logged
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.8)])
    recover(torn, tmp_path / "whole.mcap")
    with LogReader(tmp_path / "whole.mcap") as reader:
        read = list(reader.steps(images=False))
    assert len(read) >= 3
    assert same_things(kept.steps[: len(read)], read)


def test_two_episodes_agree_bit_for_bit(things: Scene, logged: tuple[Kept, Path]) -> None:
    again = run(things, make_task(), [GRAB, Action.TURN_RIGHT, GRAB, LEFT, STOP])
    assert same_things(logged[0].steps, again.steps)
    seen, again_seen = ([step.frame.rgb.tobytes() for step in kept.steps] for kept in (logged[0], again))
    assert seen == again_seen


def test_the_second_episode_of_a_run_is_the_same_as_the_first(things: Scene) -> None:
    kept, seen = Kept(), []
    with make_things_robot(things) as robot, Env(robot, make_task(), things, (kept,)) as env:
        for _ in range(2):
            env.reset(make_episode())
            for action in (GRAB, Action.TURN_RIGHT, GRAB, STOP):
                env.step(action)
            seen.append([(step.state.poses, step.state.held, step.frame.rgb.tobytes()) for step in kept.steps])
    assert seen[0] == seen[1]
