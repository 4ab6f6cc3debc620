"""Poses of objects, objects that episodes bring, and what a robot without physics does with them in an episode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import open_room
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from drivers.object_tracker.manual import make_tracker as make_operator
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import DeviceFault, InvalidStart, StaleData
from robot_runtime.hal import ObjectTracker, Robot, TrackerInfo
from robot_runtime.recording.messages import objects_now
from robot_runtime.recording.reader import LogReader
from robot_runtime.recording.writer import Recorder
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource, TrackedObjects
from robot_runtime.scenes.scene import Scene, SceneObject
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.episode_objects import DEFAULT_SIZE_M, added_objects, size_of
from robot_runtime.tasks.state import NO_STATE
from robot_runtime.tasks.task import Success, Task

ANGLE = st.floats(-math.pi, math.pi)
COORDINATE = st.floats(-50, 50)
PLANE = st.builds(SE2, COORDINATE, COORDINATE, ANGLE)
MUG = synthetic.MUG
HERE = ObjectPose((0.9, 0.0, 0.88))


def spread(a: ObjectPose, b: ObjectPose) -> float:
    turn = 1 - abs(sum(p * q for p, q in zip(a.quaternion, b.quaternion, strict=True)))
    return max(math.dist(a.position, b.position), abs(turn))


# --- poses ---


@given(st.tuples(COORDINATE, COORDINATE, COORDINATE), ANGLE, PLANE, PLANE)
def test_motions_in_the_plane_compose_and_undo(
    position: tuple[float, float, float], yaw_rad: float, first: SE2, second: SE2
) -> None:
    pose = ObjectPose.upright(position, yaw_rad)
    assert spread(pose.moved(first).moved(second), pose.moved(second @ first)) < 1e-9
    assert spread(pose.moved(first).moved(first.inverse()), pose) < 1e-9
    assert pose.moved(first).fault is None


@pytest.mark.parametrize(
    ("pose", "what"),
    [
        (ObjectPose((math.nan, 0, 0)), "position"),
        (ObjectPose((0, 0, math.inf)), "position"),
        (ObjectPose((0, 0, 0), (1, 1, 0, 0)), "quaternion"),
        (ObjectPose((0, 0, 0), (math.nan, 0, 0, 0)), "quaternion"),
        (ObjectPose((0, 0, 0), openness=1.1), "openness"),
        (ObjectPose((0, 0, 0), openness=math.nan), "openness"),
    ],
)
def test_what_is_no_pose_says_why(pose: ObjectPose, what: str) -> None:
    assert what in str(pose.fault)


def test_an_objects_pose_is_that_of_its_box() -> None:
    assert MUG.pose.position == MUG.center
    assert 2 * math.acos(MUG.pose.quaternion[0]) == pytest.approx(math.radians(MUG.yaw_deg))


# --- what episodes bring ---


def episode(*objects: RearrangedObject) -> Episode:
    return Episode("1", "two rooms", SE2(), (), details=Layout(objects=objects))


def test_objects_that_the_scene_lacks_are_brought_once_at_their_size() -> None:
    box = RearrangedObject("003_cracker_box_:0000", HERE, template="objects/ycb/003_cracker_box.object_config.json")
    thing = RearrangedObject("thing", HERE, category="gizmo")
    drawer = RearrangedObject("Drawer_1", ObjectPose((0, 0, 0), openness=0.5))
    known = RearrangedObject("mug_1", HERE)
    found = added_objects(
        synthetic.scene(), [episode(box, known), episode(replace(box, start=MUG.pose), thing, drawer)]
    )
    assert [(item.id, item.center, item.size) for item in found] == [
        ("003_cracker_box_:0000", HERE.position, (0.06, 0.16, 0.23)),
        ("thing", HERE.position, DEFAULT_SIZE_M),
    ]
    assert all(item.movable for item in found)
    assert size_of(known, synthetic.scene()) == MUG.size


# --- episodes on the fake robot ---


def room() -> Scene:
    mug = SceneObject("mug", "Mug", HERE.position, (0.1, 0.1, 0.1), movable=True)
    scene = open_room.make_scene()
    return replace(scene, file=replace(scene.file, objects=(*scene.objects, mug)))


def task() -> Task:
    rules = Rearrangement("geometric", (0.5, 0.5), reach_m=1.2, max_translation_m=0.5)
    return replace(
        open_room.make_task("pointnav"),
        kind="rearrangement",
        actions=(Action.STOP, Action.MOVE_FORWARD, Action.TURN_LEFT, Action.GRAB_RELEASE),
        sensors=("rgb", "held"),
        success=Success("objects"),
        settings=rules,
    )


def move_mug() -> Episode:
    return open_room.make_episode(
        goals=(), details=Layout(objects=(RearrangedObject("mug", HERE, ObjectPose((0.0, 0.9, 0.88))),))
    )


@pytest.fixture
def fake() -> Iterator[Robot]:
    with open_room.fake_robot(task(), objects={"mug": (3.0, 0.0, 0.1)}) as robot:
        yield robot


def test_an_episode_moves_an_object_and_its_log_says_so(fake: Robot, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with Env(fake, task(), room(), (recorder,)) as env:
        env.reset(move_mug())
        for action in (Action.GRAB_RELEASE, *[Action.TURN_LEFT] * 3, Action.GRAB_RELEASE, Action.STOP):
            env.step(action)
        end = env.record
    assert spread(end.state.poses["mug"], ObjectPose.upright((0.0, 0.9, 0.88), math.pi / 2)) < 0.02
    assert recorder.path is not None
    with LogReader(recorder.path) as reader:
        assert reader.header.object_source is ObjectSource.TRACKER
        steps = list(reader.steps(images=False))
    assert steps[1].state.grab == Grab(GrabOutcome.GRABBED, "mug")
    assert [step.state.held for step in steps] == [(), *[("mug",)] * 4, (), ()]
    assert steps[-1].state == end.state
    shown = [len(objects_now(reader.header, step).entities[0].cubes) for step in steps[:2]]
    assert shown == [len(room().objects), len(room().objects) - 1]


class Slow(ObjectTracker):
    """Sees one thing, half a second late, or never again."""

    def __init__(self, robot: Robot, lag_s: float, seen: ObjectPose = HERE) -> None:
        self._clock, self._lag_ns, self._seen = robot.clock, round(lag_s * 1e9), seen

    @property
    def info(self) -> TrackerInfo:
        return TrackerInfo("slow", ObjectSource.TRACKER, 10.0)

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def objects(self, max_age_s: float) -> TrackedObjects:
        return TrackedObjects(self._clock.now_ns() - self._lag_ns, {"mug": self._seen})


def test_poses_of_a_step_were_measured_after_its_action(fake: Robot) -> None:
    with Env(replace(fake, tracker=Slow(fake, 0.3)), task(), room()) as env:
        env.reset(move_mug())
        env.step(Action.TURN_LEFT)
        waited_s = (env.record.times.observed_ns - env.record.times.action_end_ns) / 1e9
        assert 0.3 <= waited_s < 0.6
    with Env(replace(fake, tracker=Slow(fake, 5.0)), task(), room()) as env, raises_naming(StaleData, "'slow'"):
        env.reset(move_mug())


def test_an_object_that_is_seen_elsewhere_is_no_start(fake: Robot) -> None:
    astray = replace(fake, tracker=Slow(fake, 0.0, ObjectPose((0.9, 0.3, 0.88))))
    with Env(astray, task(), room()) as env, raises_naming(InvalidStart, "'mug'", "0.30 m", "0.1 m"):
        env.reset(move_mug())


def test_a_run_whose_poses_are_told_afterwards_records_none(fake: Robot, tmp_path: Path) -> None:
    operator = make_operator(fake, RobotContext(room(), None, seed=0), {}, "test")
    recorder = Recorder(tmp_path)
    with operator, Env(replace(fake, tracker=operator), task(), room(), (recorder,)) as env:
        env.reset(move_mug())
        env.step(Action.GRAB_RELEASE)
        env.step(Action.STOP)
    assert recorder.path is not None
    with LogReader(recorder.path) as reader:
        assert reader.header.object_source is ObjectSource.OPERATOR
        steps = list(reader.steps(images=False))
    assert [dict(step.state.poses) for step in steps] == [{}] * 3
    assert [step.state.held for step in steps] == [(), ("mug",), ("mug",)]


def test_a_placer_that_moves_no_objects_says_so() -> None:
    with open_room.fake_robot(task()) as robot, raises_naming(DeviceFault, "objects") as caught:
        robot.placer.place_objects({})
    assert "simulated" in caught.value.remedy


def test_other_tasks_record_no_objects(tmp_path: Path) -> None:
    pointnav = open_room.make_task("pointnav")
    recorder = Recorder(tmp_path)
    with open_room.fake_robot(pointnav) as robot, Env(robot, pointnav, open_room.make_scene(), (recorder,)) as env:
        env.reset(open_room.make_episode())
        assert env.record.state == NO_STATE
        env.step(Action.STOP)
    assert recorder.path is not None
    with LogReader(recorder.path) as reader:
        assert reader.header.object_source is None
        assert [step.state for step in reader.steps(images=False)] == [NO_STATE] * 2
